"""Operands of PTX text. Common operands are parsed by hand and cached; the grammar parses the rest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lark import Token

from ptxdsl.errors import ParseError
from ptxdsl.ir import (
    Address,
    Arguments,
    Function,
    Generic,
    Immediate,
    Lane,
    Masked,
    Negative,
    Not,
    Offset,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Variable,
    Vector,
)
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.parse import constants
from ptxdsl.parse.syntax import MOST_NESTED, WORD_COLUMNS, Node, SourceText, is_rule, is_token, shortened
from ptxdsl.types import f64

Read = tuple[Any, Hashable]
"""An operand, an Indexed or a Sum, and its shape: the part of it that selects the form of an instruction."""

DOUBLE = "0d"
"""The shape of a floating constant that may be an f32."""
INDEXED = "array[n]"
"""The shape of an indexed array, which is a memory address for some instructions and a value for others."""
SUM = "r+n"
"""The shape of a register plus a constant, which needs an add instruction first."""
UNUSUAL = frozenset((DOUBLE, INDEXED, SUM))
"""Shapes that do not determine the treatment of their operand."""

_VECTORS = {
    name[:-2]: Vector(tuple(SPECIAL_REGISTERS[name[:-1] + axis] for axis in "xyzw"))
    for name in SPECIAL_REGISTERS
    if name.endswith(".x")
}
PREDEFINED: dict[str, Operand] = {**SPECIAL_REGISTERS, **_VECTORS, "_": Sink(), "WARP_SZ": Immediate(32)}
# Constants of up to 18 digits, which fit 64 bits; the grammar reads greater ones
_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,17}|0)")
_ADDRESS = re.compile(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?(?:[1-9][0-9]{0,17}|0))\s*|(-[1-9][0-9]{0,17})\s*)?\]", re.ASCII)
_PAIR = re.compile(r"([\w$%]+)\s*\|\s*([\w$%]+)", re.ASCII)
_DIGITS = "0123456789"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$", re.DOTALL)
_MOST_SIMILAR = 2000  # maximum number of names searched for a suggestion
_BRACKETS = {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}
_BRACKET = re.compile(r"[\[\]{}()]")
_EXACT = 256
"""Constants below this may select a form by their value; greater ones only by their size."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """`array[2]`: a variable plus bytes, as an address or as a value."""

    base: Variable
    bytes: int

    def __str__(self) -> str:
        return f"{self.base}+{self.bytes}"

    def address(self) -> Address:
        """Return the address, for an instruction that accesses memory."""
        return Address(self.base, self.bytes)

    def value(self) -> Operand:
        """Return the value, for other instructions."""
        return Offset(self.base, self.bytes) if self.bytes else self.base


@dataclass(frozen=True, slots=True)
class Sum:
    """`r+4`: a register plus a constant, as an address or as a value."""

    register: Register
    constant: int

    def __str__(self) -> str:
        return f"{self.register}+{self.constant}"


def number_in(name: str, prefix: str, zeros: bool = False) -> int | None:
    """Return 12 for `r12` with the prefix `r`; None for other names, and unless `zeros`, for `r012`."""
    digits = name[len(prefix) :] if name.startswith(prefix) else ""
    number = digits.lstrip("0") or digits[-1:]
    if not (digits.isascii() and digits.isdigit()) or len(number) > 18 or (number != digits and not zeros):
        return None
    return int(number)


class OperandReader:
    """Parse operands with the names visible at a position in the text."""

    def __init__(self, source: SourceText, outer: Mapping[str, Operand]) -> None:
        self.source, self.outer = source, outer
        self.names: dict[str, Any] = {}
        self.memo: dict[str, Read] = {}

    def read(self, text: str, origin: int) -> list[Read]:
        """Parse the operands in the comma-separated list that starts at `origin`."""
        operands, memo = [], self.memo
        pieces = iter(text.split(","))
        for piece in pieces:
            entry = memo.get(piece)
            if entry is None:
                if _may_be_open(piece) and (level := _level(piece)) > 0:
                    piece = self._whole(pieces, piece, level, origin)
                entry = memo.get(piece) or self._remember(piece, origin)
            operands.append(entry)
            origin += len(piece) + 1
        return operands

    def _whole(self, pieces: Iterator[str], opened: str, level: int, origin: int) -> str:
        """Return an operand up to its last bracket; if it is missing, the grammar reports the error."""
        parts = [opened]
        while level > 0:
            piece = next(pieces, None)
            if piece is None:
                self.source.operands(",".join(parts), origin)
                raise self.source.error(origin, 1, "a bracket of these operands is not closed")
            parts.append(piece)
            level += _level(piece)
        return ",".join(parts)

    def _remember(self, piece: str, origin: int) -> Read:
        text = piece.strip()
        origin += len(piece) - len(piece.lstrip())
        operand = self._common(text, origin) or self._unusual(text, origin)
        self.memo[piece] = entry = operand, shape(operand)
        return entry

    def _common(self, text: str, origin: int) -> Operand | None:
        """Parse names, integers, `[name+offset]`, vectors of these and `d|p`; return None for other operands."""
        if (operand := self.lookup(text)) is not None:
            return operand
        if match := _INTEGER.fullmatch(text):
            value = int(match[2], 0)
            return Immediate(-value if match[1] else value)
        if match := _ADDRESS.fullmatch(text):
            base = self.lookup(match[1])
            offset = match[2] or match[3]
            if isinstance(base, (Register, Variable)):
                return Address(base, int(offset or 0), explicit=offset == "0")
            return None
        if text.startswith("{") and text.endswith("}") and "{" not in text[1:]:
            return Vector(tuple(operand for operand, _ in self.read(text[1:-1], origin + 1)))
        if match := _PAIR.fullmatch(text):
            first, second = self.lookup(match[1]), self.lookup(match[2])
            return Pair(first, second) if first is not None and second is not None else None
        return None

    def _unusual(self, text: str, origin: int) -> Operand | Indexed | Sum:
        tree = self.source.operands(text, origin)
        if not tree.children:
            raise self.source.error(origin, 1, "an operand is missing", "remove the comma, or write the operand")
        return self.operand(tree.children[0], origin)

    def call(self, text: str, origin: int) -> list[Read]:
        """Parse the operands of a call; anything in parentheses is a list."""
        operands: list[Read] = []
        for node in self.source.operands(text, origin).children:
            is_list = is_rule(node, "list")
            operand = self.arguments(node, origin) if is_list else self.operand(node, origin)
            operands.append((operand, shape(operand)))
        return operands

    def arguments(self, node: Node, origin: int) -> Arguments:
        """Return the arguments in the parentheses of a call."""
        return Arguments(tuple(self._element(child, origin) for child in node.children))

    def lookup(self, name: str) -> Operand | None:
        """Resolve a name; None if it is not declared."""
        entity = self.names.get(name)
        if entity is None:
            entity = self.outer.get(name) or PREDEFINED.get(name) or self.member(name)
        if entity is None and "." in name:
            base, _, selector = name.rpartition(".")
            register = self.lookup(base)
            if isinstance(register, Register):
                return Lane(register, selector)
            entity = self.names.get(name)
        return entity

    def member(self, name: str) -> Operand | None:
        """Resolve a name that belongs to a family."""
        return None

    def operand(self, node: Node, origin: int) -> Operand | Indexed | Sum:
        """Return the operand of a tree of the rule `operand`, parsed from text that starts at `origin`."""
        if is_rule(node, "vector"):
            return Vector(tuple(self._element(child, origin) for child in node.children))
        if is_rule(node, "address"):
            return self._address(node, origin)
        value: Any = _Expressions(self, origin).result(node)
        return Immediate(value) if isinstance(value, int) else value

    def _element(self, node: Node, origin: int) -> Operand:
        """Return an operand in a list."""
        if is_rule(node, "vector", "address"):
            raise self._mistake(
                node, origin, "a list contains only registers and constants", "write `{a, b}`, or `(a, b)`"
            )
        operand = self.operand(node, origin)
        if isinstance(operand, Sum):
            help = f"write [{operand}] for memory, or add with an instruction"
            raise self._mistake(node, origin, f"`{operand}` is an address", help)
        return operand.value() if isinstance(operand, Indexed) else operand

    def constant(self, node: Node, least: int, noun: str) -> int:
        """Return an integer of at least `least` from the tree of the whole text."""
        operand = self.operand(node, 0)
        if isinstance(operand, Immediate) and operand.type is None and operand.value >= least:
            return operand.value
        raise self._mistake(
            node,
            0,
            f"{noun} is an integer of at least {least}; found {constants.described(operand)}",
            "write a constant",
        )

    def _address(self, node: Node, origin: int) -> Address:
        first, *others = node.children
        value: Any = _Expressions(self, origin).result(first)
        base: Any
        base, offset = _parts(value)
        rest: list[Any] = [self.operand(child, origin) for child in others]
        coordinates = rest.pop() if rest and isinstance(rest[-1], Vector) else None
        if isinstance(base, int):
            base = Immediate(base)
        if not isinstance(base, (Register, Variable, Symbol, Immediate)) or len(rest) > 1:
            raise self._mistake(first, origin, f"`{base}` cannot be an address", "write [register+offset]")
        return Address(base, offset, coordinates, rest[0] if rest else None)

    def _mistake(self, node: Node, origin: int, message: str, help: str) -> ParseError:
        first = node if is_token(node) else next(node.scan_values(is_token))
        return self.source.error(origin + (first.start_pos or 0), len(first), message, help)

    def undeclared(self, name: str, position: int) -> ParseError:
        """Return the error for an undeclared name."""
        family = _NUMBERED.match(name) if len(name) < WORD_COLUMNS else None
        if family and isinstance(self.names.get(f"{family[1]}0"), Register):
            type = self.names[f"{family[1]}0"].type
            hint = f"declare more registers of this name: `.reg .{type} {family[1]}<{int(family[2]) + 1}>;`"
        elif near := self._nearest(name):
            hint = f"did you mean `{near}`?"
        else:
            hint = "declare the register or variable, or write the label, before this"
        return self.source.error(position, len(name), f"`{shortened(name)}` is not declared", hint)

    def _nearest(self, name: str) -> str | None:
        """Return the declared name closest to an undeclared one; names that differ only in their number come first."""
        names = [known for known in self.names if not known.endswith("<>")]
        siblings = [known for known in names if known.rstrip(_DIGITS) == name.rstrip(_DIGITS)]
        if len(name) > WORD_COLUMNS:
            return None
        for known, likeness in ((siblings, 0.0), (names, 0.6), ([*self.outer, *PREDEFINED], 0.85)):
            if near := difflib.get_close_matches(name, known[:_MOST_SIMILAR], 1, likeness):
                return str(near[0])
        return None


class _Expressions:
    """Evaluate expressions: ints for constants, otherwise operands."""

    def __init__(self, operands: OperandReader, origin: int) -> None:
        self.operands, self.origin = operands, origin
        self.depth = 0

    def result(self, node: Node) -> Any:
        """Return the value of a whole expression; computed numbers are signed, since they fit any width."""
        value = self.value(node)
        if isinstance(value, constants.Unsigned):
            return int(value) if is_token(node) else constants.typed(value, is_unsigned=False)
        return value

    def value(self, node: Node) -> Any:
        """Return an int with its type, or the operand."""
        if not is_token(node):
            return self._inner(node)
        if node.type == "NAME":
            return self._name(node)
        value = constants.read(self.operands.source, str(node), self.origin + (node.start_pos or 0))
        return constants.literal(str(node), value) if isinstance(value, int) else value

    def _inner(self, node: Node) -> Any:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.operands.source.too_deep(self.origin, "expression")
        value = getattr(self, f"_{node.data}")(node)
        self.depth -= 1
        return value

    def _whole(self, node: Node, sign: Token) -> int:
        """Return the value of a term that must be an integer."""
        value = self.value(node)
        if not isinstance(value, int):
            raise self._error(
                sign, f"`{sign}` takes an integer; found {constants.described(value)}", "write an integer constant"
            )
        return value

    def _error(self, token: Token, message: str, help: str | None = None) -> ParseError:
        return self.operands.source.error(self.origin + (token.start_pos or 0), len(token), message, help)

    def _name(self, token: Token) -> Operand:
        entity = self.operands.lookup(str(token))
        if entity is None:
            raise self.operands.undeclared(str(token), self.origin + (token.start_pos or 0))
        return entity

    def _choice(self, node: Node) -> Any:
        condition, yes, no = node.children
        chosen = self.value(condition)
        if not isinstance(chosen, int):
            first = condition if is_token(condition) else next(condition.scan_values(is_token))
            raise self._error(
                first,
                f"`?` takes an integer condition; found {constants.described(chosen)}",
                "compare: `a != 0 ? b : c`",
            )
        return self.value(yes if chosen else no)

    def _chain(self, node: Node) -> Any:
        """Evaluate a chain of terms and binary operators, by precedence."""
        values: list[Any] = [self.value(node.children[0])]
        pending: list[Token] = []
        for sign, term in zip(node.children[1::2], node.children[2::2], strict=True):
            while pending and constants.STANDING[pending[-1]] >= constants.STANDING[sign]:
                self._apply(values, pending.pop())
            values.append(self.value(term))
            pending.append(sign)
        while pending:
            self._apply(values, pending.pop())
        return values[0]

    def _apply(self, values: list[Any], sign: Token) -> None:
        b, a = values.pop(), values.pop()
        if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
            values.append(self._constant(sign, a, b))
        elif sign == "|":
            values.append(Pair(_operand(a), _operand(b)))
        elif sign in "+-" and isinstance(b, int) and isinstance(a, _DISPLACED):
            values.append(_displaced(a, constants.typed(b if sign == "+" else -b, is_unsigned=False)))
        else:
            raise self._error(
                sign,
                f"`{constants.described(a)} {sign} {constants.described(b)}` is not a constant",
                "compute it with an instruction",
            )

    def _constant(self, sign: Token, a: Any, b: Any) -> int | Immediate:
        if sign in "/%" and (b == 0 or (constants.is_double(b) and constants.value(b) == 0)):
            raise self._error(sign, "division by zero in a constant expression")
        result = constants.combine(sign, a, b)
        if result is None:
            raise self._error(
                sign,
                f"`{constants.described(a)} {sign} {constants.described(b)}` is not a constant",
                "write both as integers, or both as decimals",
            )
        return result

    def _unary(self, node: Node) -> Any:
        sign, term = node.children
        value = self.value(term)
        if isinstance(value, int):
            return constants.before(sign, value)
        if sign in "-+" and isinstance(value, Immediate):
            return constants.negative(value) if sign == "-" else value
        if sign == "!" and isinstance(value, Register):
            return Not(value)
        if sign == "-" and isinstance(value, Register | Lane):
            return Negative(value)
        raise self._error(sign, f"`{sign}` cannot be applied to `{constants.described(value)}`")

    def _cast(self, node: Node) -> Any:
        type, term = node.children
        return constants.typed(self._whole(term, type), type == ".u64")

    def _indexed(self, node: Node) -> Indexed:
        """Return `array[2]`: an index counts elements, also of the outermost dimension and of vectors, as in ptxas."""
        name, index = node.children
        array = self._name(name)
        if not (isinstance(array, Variable) and array.shape):
            raise self._error(name, f"`{name}` has an index, but is not an array", "write [register+bytes] for memory")
        number = self.value(index)
        if not isinstance(number, int):
            message = f"the index of `{name}` must be an integer; found {constants.described(number)}"
            raise self._error(name, message, "write [register+bytes] for memory")
        return Indexed(array, number * max(1, array.type.bytes))

    def _list(self, node: Node) -> Any:
        """Return a constant in parentheses as that constant; otherwise the list of a call."""
        if len(node.children) == 1:
            (only,) = node.children
            value = None if is_rule(only, "vector", "address") else self.value(only)
            if isinstance(value, _NUMBERS):
                return value
        return self.operands.arguments(node, self.origin)

    def _applied(self, node: Node) -> Any:
        """Return `generic(x)`, `mask(0xff, x)` or `0xff(x)`."""
        function, inner = node.children
        values = [self.value(child) for child in inner.children]
        if function == "generic" and len(values) == 1 and isinstance(values[0], (Variable, Symbol)):
            return Generic(values[0])
        if function.type == "INT" and len(values) == 1 and isinstance(values[0], _NAMED):
            return Masked(int(self._whole(function, function)), values[0])
        if function == "mask" and len(values) == 2 and isinstance(values[0], int) and isinstance(values[1], _NAMED):
            return Masked(int(values[0]), values[1])
        raise self._error(function, f"`{function}(…)` is not a PTX operator", "write generic(name) or 0xff(name)")


_DISPLACED = (Register, Variable, Symbol, Generic, Offset, Sum, Indexed)
_NUMBERS = (int, Immediate)
_NAMED = (Variable, Symbol, Function, Generic, Offset)


def _operand(value: Any) -> Operand:
    return Immediate(value) if isinstance(value, int) else value


def _may_be_open(piece: str) -> bool:
    """True if brackets of a piece of text need counting; those of `[r+4]` do not."""
    return "{" in piece or "(" in piece or ("[" in piece and "]" not in piece)


def _level(piece: str) -> int:
    """Return the number of unclosed brackets in a piece of text."""
    return sum(_BRACKETS[bracket] for bracket in _BRACKET.findall(piece))


def _parts(value: Any) -> tuple[Any, int]:
    """Return the base of an address, and its offset in bytes."""
    if isinstance(value, Sum):
        return value.register, value.constant
    return (value.base, value.bytes) if isinstance(value, (Offset, Indexed)) else (value, 0)


def _displaced(value: Any, bytes: int) -> Any:
    """Return an address plus a number of bytes."""
    base, offset = _parts(value)
    if isinstance(value, Indexed):
        return Indexed(base, offset + bytes)
    if isinstance(base, Register):
        return Sum(base, offset + bytes) if offset + bytes else base
    return Offset(base, offset + bytes) if offset + bytes else base


def _immediate_shape(operand: Immediate) -> Hashable:
    if operand.type is not None:
        return DOUBLE if operand.type is f64 else "0f"
    value = operand.value
    return value if abs(value) < _EXACT else ("int", value < 0, value.bit_length())


_SHAPES: dict[type, Callable[[Any], Hashable]] = {
    Indexed: lambda o: INDEXED,
    Sum: lambda o: SUM,
    Register: lambda o: o.type.name,
    SpecialRegister: lambda o: o.type.name,
    Immediate: _immediate_shape,
    Address: lambda o: (Address, shape(o.base), o.coordinates and shape(o.coordinates), o.sampler is None),
    Vector: lambda o: tuple(map(shape, o.elements)),
    Arguments: lambda o: (Arguments, len(o.elements)),
    Pair: lambda o: (Pair, shape(o.first), shape(o.second)),
    Not: lambda o: (Not, shape(o.register)),
    Lane: lambda o: (Lane, o.selector, shape(o.register)),
    Negative: lambda o: (Negative, shape(o.operand)),
    Variable: lambda o: (Variable, o.space),
    Function: lambda o: Function,
}


def shape(operand: Operand | Indexed | Sum) -> Hashable:
    """Return the part of an operand that selects the form of an instruction: kinds, types, counts, small constants."""
    return _SHAPES.get(type(operand), type)(operand)
