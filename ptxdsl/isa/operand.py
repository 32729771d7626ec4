"""Operand declarations, and the check of operands against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .. import ir, types
from ..types import TYPES, Type
from .form import Derived, FormOperand

WIDER = {8: 16, 16: 32, 32: 64, 64: 128}
TYPE_FUNCTIONS: dict[str, Callable[[Type], Type]] = {
    "wide": lambda t: TYPES[f"{t.kind}{WIDER[t.bits]}"],
    "bits": lambda t: types.bits(max(8, t.bits)),
    "register": lambda t: t.register,
}
NOT_REGISTERS = ("imm", "label", "function", "symbol", "any", "arguments", "sink")
FLAG = "flag"

OperandList: TypeAlias = "Sequence[ir.Operand | None]"
"""The operands of an instruction, None for omitted ones."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an instruction violates: the operand ('' for the whole instruction), the message, and the fix."""

    operand: str
    message: str
    help: str | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an opcode, with its type and count resolved.

    `type` is None for operands that are not registers (`word` gives their kind); `space` is set for addresses. With
    `vector`, `count` registers are written in braces, and arrays have a leading axis for them, even for one register.
    With `flag`, 0 and 1 are accepted as predicates.
    """

    name: str
    role: str
    type: Any  # a Type, or None for an operand that is not a register
    count: int
    space: str | None
    word: str
    negatable: bool
    optional: bool
    paired: bool
    vector: bool = False
    joined: bool = False
    flag: bool = False

    @property
    def written(self) -> bool:
        return self.role in ("out", "both")

    @property
    def read(self) -> bool:
        return self.role in ("in", "both", "address")

    @property
    def one(self) -> Operand:
        """One register of a vector operand."""
        return self if self.count == 1 else replace(self, count=1)

    def describe(self) -> str:
        """Describe in words the operands that are accepted."""
        if self.role == "address":
            return "an address" if self.space in (None, "generic") else f"an address in {space_words(self.space)}"
        if self.type is None:
            return {
                "imm": "an integer constant",
                "any": "a register or symbol",
                "arguments": "a list in parentheses",
                "sink": "`_`, since there is no result",
            }.get(self.word, f"a {self.word}")
        if self.type is types.pred:
            one = "a predicate, 0 or 1" if self.flag else "a predicate"
            return one if self.count == 1 else f"{self.count} predicates"
        if self.type.register is not self.type:
            kind, held = str(self.type.register), f" ({self.type})"
        else:
            kinds = {"b": f"{self.type.bits}-bit", **dict.fromkeys("us", f"{self.type.bits}-bit integer")}
            kind, held = kinds.get(self.type.kind, str(self.type)), ""
        return (f"{_article(kind)} register" if self.count == 1 else f"{self.count} {kind} registers") + held


def space_words(space: str) -> str:
    """Return the name of a state space as used in messages."""
    return "tensor memory" if space == "tmem" else f".{space}"


def _article(words: str) -> str:
    return ("an " if words[0] in "aeio8" or (words[0] in "fs" and words[1:2].isdigit()) else "a ") + words


def resolve(parameter: FormOperand, values: Mapping[str, Derived]) -> Operand:
    """Resolve an operand with the modifiers of a spelling."""
    space, type_, word = None, None, ""
    if parameter.role == "address":
        chosen = values.get(parameter.type, parameter.type)  # a slot's choice; True for a literal modifier
        space = parameter.type if chosen is True else str(chosen or "generic")
    elif parameter.type in NOT_REGISTERS:
        word = parameter.type
    else:
        type_ = types.pred if parameter.type == FLAG else _resolve_type(parameter.type, values)
    vector = parameter.count.isdigit() or bool(values.get(parameter.count))
    return Operand(
        parameter.name,
        parameter.role,
        type_,
        _resolve_count(parameter.count, values) if vector else 1,
        space,
        word,
        parameter.negatable,
        parameter.optional,
        parameter.paired,
        vector,
        parameter.joined,
        parameter.type == FLAG,
    )


def _resolve_type(text: str, values: Mapping[str, Derived]) -> Type:
    function, _, inner = text.rstrip(")").partition("(")
    if inner:
        return TYPE_FUNCTIONS[function](_resolve_type(inner, values))
    type_ = TYPES.get(text) or values.get(text)
    assert isinstance(type_, Type), f"{text} is not a type"
    return type_


def _resolve_count(text: str, values: Mapping[str, Derived]) -> int:
    """Return a literal number, a derived one, or the number in a choice such as v4 or x2."""
    count = int(text) if text.isdigit() else values[text]
    return count if isinstance(count, int) else int("".join(filter(str.isdigit, str(count))))


_WORDS: dict[str, type | tuple[type, ...]] = {
    "label": ir.Label,
    "function": (ir.Function, ir.Symbol),
    "arguments": ir.Arguments,
    "sink": ir.Sink,
}
_NAMED = (ir.SpecialRegister, ir.Variable, ir.Symbol, ir.Offset)


GROWN = ("%tid", "%ntid", "%ctaid", "%nctaid", "%gridid")
"""Special registers that were half as wide in PTX 1, and may still be read at that width."""


@dataclass(frozen=True, slots=True)
class OperandCheck:
    """The operand check of an instruction, which may accept further kinds of operands, or wider registers."""

    named: tuple[type, ...] = ()
    relaxed: bool = False

    def problems(self, operand: Operand, value: ir.Operand) -> Iterator[Problem]:
        """Report the problems of one operand: kind, width, type, number of registers."""
        if isinstance(value, ir.Sink):
            if not operand.written:
                yield Problem(operand.name, f"`{operand.name}` is read, so it cannot be `_`")
        elif operand.role == "address":
            yield from _address_problems(operand, value)
        elif operand.type is None:
            yield from _word_problems(operand, value)
        elif operand.vector or isinstance(value, ir.Vector):
            yield from self._vector(operand, value)
        else:
            yield from self._scalar(operand, value)

    def _vector(self, operand: Operand, value: ir.Operand) -> Iterator[Problem]:
        elements = value.elements if isinstance(value, ir.Vector) else (value,)
        if len(elements) != operand.count:
            count = f"{len(elements)} register{'s' * (len(elements) != 1)}"
            yield Problem(operand.name, f"`{operand.name}` has {count}; this form takes {operand.count}")
            return
        checked = (self._scalar(operand, e) for e in elements if not isinstance(e, ir.Sink))
        yield from dict.fromkeys(problem for problems in checked for problem in problems)

    def _scalar(self, operand: Operand, value: ir.Operand) -> Iterator[Problem]:
        if isinstance(value, ir.Not):
            if not operand.negatable:
                yield Problem(operand.name, f"`{operand.name}` cannot be negated here")
            value = value.register
        if isinstance(value, ir.Immediate):
            yield from _immediate_problems(operand, value)
        elif not isinstance(value, (ir.Register, () if operand.written else self.named)):
            help = "copy it to a register first, with mov" if isinstance(value, _NAMED) else None
            yield _mismatch(operand, value, help)
        elif isinstance(value, (ir.Register, ir.SpecialRegister)) and not (
            compatible(operand.type, value.type, self.relaxed) or _is_cut(operand.type, value)
        ):
            yield _mismatch(operand, value)


def _is_cut(type: Type, value: ir.Register | ir.SpecialRegister) -> bool:
    """True if the type is half as wide as a special register that was that narrow in PTX 1."""
    halves = isinstance(value, ir.SpecialRegister) and value.name.partition(".")[0] in GROWN
    return halves and type.kind in "bus" and type.bits * 2 == value.type.bits


def _word_problems(operand: Operand, value: ir.Operand) -> Iterator[Problem]:
    if operand.word == "imm":
        if not (isinstance(value, ir.Immediate) and value.type is None):
            yield Problem(operand.name, f"`{operand.name}` is {describe(value)}; it must be an integer constant")
    elif operand.word in _WORDS and not isinstance(value, _WORDS[operand.word]):
        yield Problem(operand.name, f"`{operand.name}` is {describe(value)}; this form takes {operand.describe()}")


def _address_problems(operand: Operand, value: ir.Operand) -> Iterator[Problem]:
    name, space = operand.name, operand.space
    if not isinstance(value, ir.Address):
        yield Problem(name, f"`{name}` is {describe(value)}; it must be an address in brackets")
    elif value.coordinates is not None:
        yield Problem(name, f"`{name}` has coordinates; this instruction takes an address alone", f"write [{name}]")
    elif isinstance(value.base, ir.Register):
        yield from _pointer_problems(operand, value.base)
    elif isinstance(value.base, ir.Variable) and space == "generic":
        if value.base.space in ("param", "const"):
            home = value.base.space
            message = f"`{name}` is `{value.base}` in .{home}, which has no generic address"
            yield Problem(name, message, f"name the space: ld.{home}")
    elif isinstance(value.base, ir.Variable) and space is not None:
        home, wanted = (s.partition("::")[0] for s in (value.base.space, str(space)))
        if home != wanted:
            takes = f"this instruction takes an address in {space_words(wanted)}"
            yield Problem(name, f"`{name}` is `{value.base}` in .{home}; {takes}")


def _pointer_problems(operand: Operand, base: ir.Register) -> Iterator[Problem]:
    name, space = operand.name, operand.space
    if not (base.type.bits in (32, 64) and base.type.kind in "bus"):
        help = "pass the address of an element, not its value: `array.address(…)`, or `pointer + i`"
        yield Problem(name, f"`{name}` is {describe(base)}; an address is a 32- or 64-bit integer", help)
    elif base.type.bits == 32 and space in ("global", "generic"):
        wanted = "a generic address" if space == "generic" else f"an address in .{space}"
        yield Problem(name, f"`{name}` is {describe(base)}; {wanted} has 64 bits")
    elif base.type.bits == 64 and space == "tmem":
        yield Problem(name, f"`{name}` is {describe(base)}; an address in tensor memory has 32 bits")


def _mismatch(operand: Operand, value: ir.Operand, help: str | None = None) -> Problem:
    message = f"`{operand.name}` is {describe(value)}; this form takes {operand.one.describe()}"
    return Problem(operand.name, message, help)


def _immediate_problems(operand: Operand, value: ir.Immediate) -> Iterator[Problem]:
    type_, name = operand.type, operand.name
    if operand.written:
        yield Problem(name, f"`{name}` is written, so it cannot be a constant")
    elif type_.kind == "x" or (type_.is_float and type_ not in (types.f32, types.f64)):
        yield Problem(name, f"`{name}` is a constant; this form takes {operand.describe()}")
    elif value.type is not None and (type_.is_integer or (type_.kind == "b" and type_.bits != value.type.bits)):
        yield Problem(name, f"`{name}` is a floating constant; this form takes {operand.describe()}")
    elif value.type is None and type_.is_float:
        yield Problem(name, f"`{name}` is an integer constant; this form takes {type_}", f"write {value.value}.0")
    elif value.type is None and type_ is not types.pred and not _fits(value.value, type_):
        yield Problem(name, f"`{name}` is {value.value}, which does not fit {type_}")
    elif operand.flag and value.value not in (0, 1):
        yield Problem(name, f"`{name}` is {value.value}; this form takes {operand.describe()}")


def _fits(value: int, type: Type) -> bool:
    """True if the constant fits the type; a 64-bit constant may also be the bits of a negative number."""
    width = max(type.bits, 8)
    if width < 64 and value >= 1 << 63:
        value -= 1 << 64
    return -(1 << width - 1) <= value < 1 << width


def describe(value: object) -> str:
    """Describe a value for a message: 'an f32 register', 'a constant'."""
    if isinstance(value, ir.SpecialRegister):
        return f"{value}, a special {value.type} register"
    if isinstance(value, ir.Register):
        return "a predicate" if value.type is types.pred else f"{_article(str(value.type))} register"
    if isinstance(value, ir.Offset):
        return f"{value}, the address of a variable"
    kinds = {ir.Immediate: "a constant", ir.Vector: "a vector", ir.Address: "an address", ir.Label: "a label"}
    return kinds.get(type(value), f"a {type(value).__name__.lower()}")


def compatible(wanted: Type, actual: Type, relaxed: bool = False) -> bool:
    """True if a register of type `actual` is accepted where `wanted` is expected (PTX ISA, "Operand Type Checking").

    Types that registers cannot have (bf16, tf32, bf16x2, e4m3x2, …) are held in untyped registers of the same width.
    """
    if wanted is actual or types.pred in (wanted, actual):
        return wanted is actual
    plain = wanted.register is wanted and wanted.kind != "x"
    if actual.bits != max(wanted.bits, 8 if relaxed else 16) and not (relaxed and plain and actual.bits > wanted.bits):
        return False
    if wanted.kind == "b" or actual.kind == "b":
        return True
    return wanted.is_integer and actual.is_integer
