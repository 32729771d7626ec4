"""Operands from PTX text. What is common is read by hand and remembered; the grammar reads the rest."""

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
from ptxdsl.parse.syntax import Node, Source, is_rule, is_token
from ptxdsl.types import Type, f64

Read = tuple[Operand, Hashable]
"""An operand, and its shape: all of it that decides which form of an instruction is meant."""

DOUBLE = "0d"
"""The shape of a floating constant that may stand for an f32."""

_VECTORS = {
    name[:-2]: Vector(tuple(SPECIAL_REGISTERS[name[:-1] + axis] for axis in "xyzw"))
    for name in SPECIAL_REGISTERS
    if name.endswith(".x")
}
PREDEFINED: dict[str, Operand] = {**SPECIAL_REGISTERS, **_VECTORS, "_": Sink(), "WARP_SZ": Immediate(32)}
_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|[1-9]\d*|0)")
_ADDRESS = re.compile(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?(?:[1-9]\d*|0))\s*|(-[1-9]\d*)\s*)?\]")
_PAIR = re.compile(r"([\w$%]+)\s*\|\s*([\w$%]+)")
_DIGITS = "0123456789"
_NUMBERED = re.compile(r"(.*?)(\d+)$")
_OPENING, _CLOSING = re.compile(r"[\[{(]"), re.compile(r"[\]})]")
_EXACT = 256
"""Constants below this may decide between forms by their value; greater ones by their size only."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A register declared in a nested scope; it is made when something uses it."""

    name: str
    type: Type


class Operands:
    """Reads operands by the names that a place in the text can see."""

    def __init__(self, source: Source, outer: Mapping[str, Operand]) -> None:
        self.source, self.outer = source, outer
        self.names: dict[str, Any] = {}
        self.memo: dict[str, Read] = {}

    def read(self, text: str, origin: int) -> list[Read]:
        """The operands in a comma-separated list that stands at `origin`."""
        found = []
        pieces = iter(text.split(","))
        for piece in pieces:
            entry = self.memo.get(piece)
            if entry is None:
                while len(_OPENING.findall(piece)) > len(_CLOSING.findall(piece)):
                    piece = f"{piece},{self._next(pieces, piece, origin)}"
                entry = self.memo.get(piece) or self._remember(piece, origin)
            found.append(entry)
            origin += len(piece) + 1
        return found

    def _next(self, pieces: Iterator[str], opened: str, origin: int) -> str:
        """The rest of an operand whose bracket is still open; where there is none, the grammar says what is wrong."""
        piece = next(pieces, None)
        if piece is None:
            self.source.operands(opened, origin)
            raise self.source.error(origin, 1, "a bracket of these operands is not closed")
        return piece

    def _remember(self, piece: str, origin: int) -> Read:
        text = piece.strip()
        origin += len(piece) - len(piece.lstrip())
        operand = self._common(text, origin) or self._unusual(text, origin)
        self.memo[piece] = entry = operand, shape(operand)
        return entry

    def _common(self, text: str, origin: int) -> Operand | None:
        """Names, integers, `[name+offset]`, vectors of these and `d|p`; None for all else."""
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
        if text.startswith("{") and text.endswith("}"):
            return Vector(tuple(operand for operand, _ in self.read(text[1:-1], origin + 1)))
        if match := _PAIR.fullmatch(text):
            first, second = self.lookup(match[1]), self.lookup(match[2])
            return Pair(first, second) if first is not None and second is not None else None
        return None

    def _unusual(self, text: str, origin: int) -> Operand:
        tree = self.source.operands(text, origin)
        if not tree.children:
            raise self.source.error(origin, 1, "an operand is missing", "remove the comma, or write the operand")
        return self.operand(tree.children[0], origin)

    def call(self, text: str, origin: int) -> list[Read]:
        """The operands of a call: whatever stands in parentheses is a list."""
        found: list[Read] = []
        for node in self.source.operands(text, origin).children:
            is_list = is_rule(node, "list")
            operand = self.arguments(node, origin) if is_list else self.operand(node, origin)
            found.append((operand, shape(operand)))
        return found

    def arguments(self, node: Node, origin: int) -> Arguments:
        """What stands in the parentheses of a call."""
        return Arguments(tuple(self.operand(child, origin) for child in node.children))

    def lookup(self, name: str) -> Operand | None:
        """What a name stands for here; None if it was not declared."""
        found = self.names.get(name)
        if found is None:
            found = self.outer.get(name) or PREDEFINED.get(name)
        if found is None and "." in name:
            base, _, selector = name.rpartition(".")
            register = self.lookup(base)
            return Lane(register, selector) if isinstance(register, Register) else None
        return self.made(name, found) if isinstance(found, Pending) else found

    def made(self, name: str, pending: Pending) -> Operand:
        """The register that a name in a nested scope stands for."""
        raise NotImplementedError

    def operand(self, node: Node, origin: int) -> Operand:
        """The operand of a tree of the rule `operand`; the text that it was made from stands at `origin`."""
        if is_rule(node, "vector"):
            return Vector(tuple(self.operand(child, origin) for child in node.children))
        if is_rule(node, "address"):
            return self._address(node, origin)
        value: Any = _Expressions(self, origin).value(node)
        if isinstance(value, Offset) and _is_register(value.base):
            raise self._mistake(
                node, origin, f"`{value}` is an address", f"write [{value}] for memory, or add with an instruction"
            )
        return Immediate(value) if isinstance(value, int) else value

    def _address(self, node: Node, origin: int) -> Address:
        first, *others = node.children
        value = _Expressions(self, origin).value(first)
        base: Any
        base, offset = (value.base, value.bytes) if isinstance(value, Offset) else (value, 0)
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
        """The error for a name that nothing declares."""
        family = _NUMBERED.match(name)
        if family and isinstance(self.names.get(f"{family[1]}0"), Register):
            type = self.names[f"{family[1]}0"].type
            hint = f"declare more registers of this name: `.reg .{type} {family[1]}<{int(family[2]) + 1}>;`"
        elif near := self._nearest(name):
            hint = f"did you mean `{near}`?"
        else:
            hint = "declare the register or variable, or write the label, before this"
        return self.source.error(position, len(name), f"`{name}` is not declared", hint)

    def _nearest(self, name: str) -> str | None:
        """The declared name that is most like one that is not: first of those that differ in their number."""
        siblings = [known for known in self.names if known.rstrip(_DIGITS) == name.rstrip(_DIGITS)]
        for known, likeness in ((siblings, 0.0), ([*self.names], 0.6), ([*self.outer, *PREDEFINED], 0.85)):
            if found := difflib.get_close_matches(name, known, 1, likeness):
                return str(found[0])
        return None


class _Expressions:
    """What expressions stand for: ints for constants, otherwise operands."""

    def __init__(self, operands: Operands, origin: int) -> None:
        self.operands, self.origin = operands, origin

    def value(self, node: Node) -> Any:
        if not is_token(node):
            return getattr(self, f"_{node.data}")(node)
        if node.type == "NAME":
            return self._name(node)
        try:
            return constants.number(str(node))
        except ValueError:
            raise self._error(node, f"`{node}` is no octal number", "drop the leading 0 of a decimal number") from None

    def _error(self, token: Token, message: str, help: str | None = None) -> ParseError:
        return self.operands.source.error(self.origin + (token.start_pos or 0), len(token), message, help)

    def _name(self, token: Token) -> Operand:
        found = self.operands.lookup(str(token))
        if found is None:
            raise self.operands.undeclared(str(token), self.origin + (token.start_pos or 0))
        return found

    def _choice(self, node: Node) -> Any:
        condition, yes, no = node.children
        return self.value(yes if self.value(condition) else no)

    def _chain(self, node: Node) -> Any:
        """Terms with operators between them, those that bind tighter first."""
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
        if isinstance(a, int) and isinstance(b, int):
            if sign in "/%" and b == 0:
                raise self._error(sign, "division by zero in a constant expression")
            values.append(constants.wrap(constants.BINARY[sign](a, b)))
        elif sign == "|":
            values.append(Pair(a, b))
        elif sign in "+-" and isinstance(b, int):
            values.append(_displaced(a, b if sign == "+" else -b))
        else:
            raise self._error(sign, f"`{a} {sign} {b}` is no constant", "compute it with an instruction")

    def _unary(self, node: Node) -> Any:
        sign, term = node.children
        value = self.value(term)
        if isinstance(value, int):
            return constants.wrap(constants.UNARY[sign](value))
        if sign == "-" and isinstance(value, Immediate):
            return constants.negative(value)
        if sign in "!-" and isinstance(value, Register):
            return Not(value) if sign == "!" else Negative(value)
        raise self._error(sign, f"`{sign}` cannot stand before `{value}`")

    def _cast(self, node: Node) -> Any:
        type, term = node.children
        value = self.value(term) & constants.MASK
        return value - (1 << 64) if type == ".s64" and value >> 63 else value

    def _list(self, node: Node) -> Any:
        """A constant in parentheses is that constant; all else is the list of a call."""
        if len(node.children) == 1:
            (only,) = node.children
            value = None if is_rule(only, "vector", "address") else self.value(only)
            if isinstance(value, int):
                return value
        return self.operands.arguments(node, self.origin)

    def _applied(self, node: Node) -> Any:
        """`generic(x)`, `mask(0xff, x)` and `0xff(x)`."""
        function, inner = node.children
        values = [self.value(child) for child in inner.children]
        if function == "generic" and len(values) == 1:
            return Generic(values[0])
        if function.type == "INT" and len(values) == 1:
            return Masked(int(constants.number(str(function))), values[0])  # type: ignore[arg-type]
        if function == "mask" and len(values) == 2:
            return Masked(*values)
        raise self._error(function, f"`{function}(…)` is nothing that PTX knows", "write generic(name) or 0xff(name)")


def _is_register(value: Any) -> bool:
    return isinstance(value, Register)


def _displaced(base: Any, bytes: int) -> Any:
    """An address and a number of bytes."""
    if isinstance(base, Offset):
        base, bytes = base.base, base.bytes + bytes
    return Offset(base, bytes) if bytes else base


def _immediate_shape(operand: Immediate) -> Hashable:
    if operand.type is not None:
        return DOUBLE if operand.type is f64 else "0f"
    value = operand.value
    return value if abs(value) < _EXACT else ("int", value < 0, value.bit_length())


_SHAPES: dict[type, Callable[[Any], Hashable]] = {
    Register: lambda o: o.type.name,
    SpecialRegister: lambda o: o.type.name,
    Immediate: _immediate_shape,
    Address: lambda o: (Address, shape(o.base), o.coordinates and shape(o.coordinates), o.sampler is None),
    Vector: lambda o: tuple(map(shape, o.elements)),
    Arguments: lambda o: (Arguments, len(o.elements)),
    Pair: lambda o: (Pair, shape(o.first), shape(o.second)),
    Not: lambda o: (Not, shape(o.register)),
    Lane: lambda o: (Lane, o.selector, shape(o.register)),
    Variable: lambda o: (Variable, o.space),
    Function: lambda o: Function,
}


def shape(operand: Operand) -> Hashable:
    """What decides the form of an instruction: kinds, types, counts, small constants."""
    return _SHAPES.get(type(operand), type)(operand)
