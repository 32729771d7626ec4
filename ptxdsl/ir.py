"""The program: modules, functions, instructions and operands, with PTX semantics.

Operands print as PTX (`str`). Names of registers, labels and variables are made unique in their function on creation
(`Function.register`, `Function.label`), so nothing is renamed later. No source text is kept.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias

from ptxdsl.errors import Location
from ptxdsl.types import Type, f32, f64


class Named:
    """Base class of what prints as its name."""

    __slots__ = ()
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class Register(Named):
    """A virtual register; registers compare by identity.

    The elements of a vector register `v` are registers named `v.x`, `v.y`, …; `vector` is their number.
    """

    name: str
    type: Type
    vector: int = 1


@dataclass(frozen=True, slots=True)
class SpecialRegister(Named):
    """`%tid.x`, `%clock64`, …"""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. With a floating type, `value` is its bit pattern, so that NaN payloads survive."""

    value: int
    type: Type | None = None

    @classmethod
    def float(cls, number: float, type: Type = f32) -> Immediate:
        """The constant nearest to `number` in f32 or f64."""
        code, width = ("<f", 4) if type is f32 else ("<d", 8)
        return cls(int.from_bytes(struct.pack(code, number)[:width], "little"), f32 if type is f32 else f64)

    def __str__(self) -> str:
        if self.type is f32:
            return f"0f{self.value:08X}"
        if self.type is f64:
            return f"0d{self.value:016X}"
        return str(self.value)


@dataclass(eq=False, slots=True)
class Label(Named):
    """A branch target, or the name of a list of targets or a prototype."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol(Named):
    """A name that the module does not define: an external function or variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Offset:
    """The address of a variable plus bytes, without brackets: `mov.u64 d, table+8`."""

    base: Variable | Symbol | Generic
    bytes: int

    def __str__(self) -> str:
        return f"{self.base}+{self.bytes}"


@dataclass(frozen=True, slots=True)
class Generic:
    """`generic(x)`: in an initial value, the generic address of a variable."""

    base: Variable | Symbol

    def __str__(self) -> str:
        return f"generic({self.base})"


@dataclass(frozen=True, slots=True)
class Masked:
    """`0xff00(x)`: in an initial value, the byte of an address selected by the mask."""

    mask: int
    address: Variable | Symbol | Function | Generic | Offset

    def __str__(self) -> str:
        return f"0x{self.mask:x}({self.address})"


@dataclass(frozen=True, slots=True)
class Setting:
    """`filter_mode = nearest`: a field in the initial value of a texture, sampler or surface reference."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]` in bytes; with `coordinates`, the tensor form `[map, {x, y}]` or `[texture, sampler, {x, y}]`.

    `explicit` keeps an offset of 0 in the text: the assembler may schedule `[r+0]` differently from `[r]`.
    """

    base: Register | Variable | Symbol | Immediate
    offset: int = 0
    coordinates: Vector | None = None
    sampler: Register | Variable | None = None
    explicit: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        inner = f"{self.base}+{self.offset}" if self.offset or self.explicit else str(self.base)
        if self.sampler:
            inner += f", {self.sampler}"
        return f"[{inner}, {self.coordinates}]" if self.coordinates else f"[{inner}]"


COMPONENTS = "xr", "yg", "zb", "wa"
"""Names of the elements of a vector register."""


def element_names(vector: str, count: int) -> list[str]:
    """Return the names of the elements of a vector register."""
    return [f"{vector}.{letters[0]}" for letters in COMPONENTS[:count]]


@dataclass(frozen=True, slots=True)
class _Enclosed:
    """Operands between two `brackets`."""

    elements: tuple[Operand, ...]
    brackets: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.brackets[0]}{', '.join(map(str, self.elements))}{self.brackets[1]}"


class Vector(_Enclosed):
    """`{a, b}`, or `v` for all elements of a vector register."""

    __slots__ = ()
    brackets = "{}"

    def __str__(self) -> str:
        first, count = next(iter(self.elements), None), len(self.elements)
        if isinstance(first, Register) and first.vector == count > 1:
            vector = first.name.removesuffix(".x")
            if list(map(str, self.elements)) == element_names(vector, count):
                return vector
        return super().__str__()


class Arguments(_Enclosed):
    """The parenthesised list of a call."""

    __slots__ = ()
    brackets = "()"

    @property
    def flat(self) -> tuple[Operand, ...]:
        """The operands, with the elements of vector registers one by one."""
        return tuple(e for each in self.elements for e in (each.elements if isinstance(each, Vector) else (each,)))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations: `d|p`."""

    first: Operand
    second: Operand

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Not:
    """A negated predicate operand: `!p`."""

    register: Register

    def __str__(self) -> str:
        return f"!{self.register}"


@dataclass(frozen=True, slots=True)
class Lane:
    """One element of a vector register or video operand: `r.x`, `r.b0`, `r.h1`."""

    register: Register
    selector: str

    def __str__(self) -> str:
        return f"{self.register}.{self.selector}"


@dataclass(frozen=True, slots=True)
class Negative:
    """A negated operand of a video instruction: `-r`, `-r.h1`."""

    operand: Register | Lane

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: an unused destination or operand."""

    def __str__(self) -> str:
        return "_"


Operand: TypeAlias = (
    "Register | SpecialRegister | Immediate | Label | Symbol | Offset | Address | Vector | Pair | Not | Negative | Lane"
    " | Arguments | Sink | Variable | Function"
)


def registers_of(operand: Any) -> Iterator[Register]:
    """Yield every register in an operand, including those in addresses and vectors."""
    if isinstance(operand, Register):
        yield operand
    elif is_dataclass(operand) and not isinstance(operand, Variable | Label | Function | type):
        yield from (register for each in fields(operand) for register in registers_of(getattr(operand, each.name)))
    elif isinstance(operand, tuple):
        yield from (register for each in operand for register in registers_of(each))


def substituted(operand: Any, instead: Mapping[Any, Any]) -> Any:
    """Return an operand with registers, labels and variables replaced."""
    if isinstance(operand, Register | Label | Variable | Function):
        return instead.get(operand, operand)
    if isinstance(operand, tuple):
        return tuple([substituted(each, instead) for each in operand])
    if not is_dataclass(operand) or isinstance(operand, Immediate | SpecialRegister | Symbol | type):
        return operand
    parts = {each.name: getattr(operand, each.name) for each in fields(operand)}
    changed = {name: substituted(part, instead) for name, part in parts.items()}
    return operand if all(changed[name] is parts[name] for name in parts) else replace(operand, **changed)


class TableEntry(Protocol):
    """The interface that an instruction needs of its table entry (`isa.opcode.Opcode`)."""

    text: str


@dataclass(slots=True)
class Instruction:
    """`@guard opcode operands;` with all operands in PTX order, destinations first."""

    opcode: TableEntry
    operands: tuple[Operand, ...] = ()
    guard: Register | Not | None = None
    location: Location | None = None

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode.text}{' ' if self.operands else ''}{', '.join(map(str, self.operands))};"


@dataclass(slots=True)
class Directive:
    """A directive kept verbatim: `.maxntid 128, 1, 1`, `.pragma "nounroll";`, `.branchtargets A, B;`.

    `label` is the name before it (`prototype_0 : .callprototype …`).
    """

    name: str
    arguments: tuple[object, ...] = ()
    label: Label | None = None

    def __str__(self) -> str:
        front = f"{self.label}: " if self.label else ""
        return f"{front}.{self.name} {', '.join(map(str, self.arguments))}".rstrip()


@dataclass(eq=False, slots=True)
class Variable(Named):
    """A variable in a state space. `shape` has None for an array of unknown length (`x[]`).

    `attributes` are the words between space and name that are kept as written (`.ptr .global .align 16`).
    """

    name: str
    space: str
    type: Type
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    initial: object = None
    linkage: str = ""
    attributes: tuple[str, ...] = ()
    vector: int = 1

    @property
    def bytes(self) -> int:
        """Size in bytes; 0 if the length is unknown."""
        count = self.vector
        for extent in self.shape:
            count *= extent or 0
        return count * max(1, self.type.bits // 8)


@dataclass(slots=True)
class Scope:
    """A `{ … }` block inside a function, with its variables. Registers belong to the function."""

    body: list[Item] = field(default_factory=list)


Item: TypeAlias = "Instruction | Label | Directive | Variable | Scope"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Function(Named):
    """A kernel (`entry`) or a device function (`func`); `body` is None for a declaration."""

    name: str
    kind: str = "entry"
    parameters: list[Variable | Register] = field(default_factory=list)
    returns: list[Variable | Register] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    body: list[Item] | None = field(default_factory=list)
    linkage: str = "visible"
    registers: list[Register] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def bounds(self) -> dict[str, list[int]]:
        """The numbers of its directives by name, such as {"reqntid": [128, 1, 1]}; pragmas have none."""
        return {d.name: [int(str(n)) for n in d.arguments] for d in self.directives if d.name != "pragma"}

    def unique(self, hint: str) -> str:
        """Return `hint`, or `hint_1`, `hint_2`, … if that name is taken in this function."""
        if hint not in self.names:
            self.names[hint] = 0
            return hint
        while True:
            self.names[hint] += 1
            name = f"{hint}_{self.names[hint]}"
            if name not in self.names:
                self.names[name] = 0
                return name

    def register(self, hint: str, type: Type) -> Register:
        """Create a new register, declared in this function."""
        register = Register(self.unique(hint), type)
        self.registers.append(register)
        return register

    def label(self, hint: str) -> Label:
        """Create a new label; it is not placed until it is added to a body."""
        return Label(self.unique(hint))

    def walk(self) -> Iterator[Instruction]:
        """Yield every instruction in text order, including nested scopes."""
        yield from (item for item in items(self.body or []) if isinstance(item, Instruction))

    def variables(self) -> Iterator[Variable]:
        """Yield every variable declared in the body, in text order."""
        yield from (item for item in items(self.body or []) if isinstance(item, Variable))


def items(body: list[Item]) -> Iterator[Item]:
    """Yield all items of a body, with nested scopes flattened; scopes themselves are not yielded."""
    for item in body:
        if isinstance(item, Scope):
            yield from items(item.body)
        else:
            yield item


@dataclass(slots=True)
class Section:
    """A `.section .debug_…` with its lines: labels and data, kept as tokens."""

    name: str
    lines: list[str] = field(default_factory=list)

    def data(self) -> dict[str, bytes]:
        """Return the labels, each with the bytes (`.b8`) up to the next label."""
        contents: dict[str, bytearray] = {}
        for line in self.lines:
            if line.endswith(":"):
                contents[line[:-1]] = current = bytearray()
            elif contents and line.startswith(".b8"):
                current += bytes(int(value, 0) & 255 for value in line[3:].split(","))
        return {label: bytes(text) for label, text in contents.items()}


def text_at(data: bytes) -> str:
    """Return the zero-terminated string at the start of a section's bytes."""
    return data.partition(b"\0")[0].decode(errors="replace")


def quoted(name: str) -> str:
    """Return a file name as a PTX string: printable ASCII, with other bytes in octal, as nvcc writes them."""
    try:
        content = name.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # not a valid file name, but Python code objects may have it
        content = name.encode(errors="replace")
    return '"' + "".join(map(_escape, content)) + '"'


def _escape(byte: int) -> str:
    if byte == ord("\\"):
        return "\\\\"
    return chr(byte) if 32 <= byte < 127 and byte != ord('"') else f"\\{byte:03o}"


def unquoted(text: str) -> str:
    """Return the name in a PTX string without its quotes."""
    if "\\" not in text:
        return text
    content = re.sub(rb"\\(\\|[0-3][0-7]{2})", _unescape, text.encode(errors="surrogateescape"))
    return content.decode(errors="surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    return b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)])


@dataclass(slots=True)
class PtxModule:
    """One PTX file. `version` is None until `lower` determines the minimum for its instructions."""

    target: tuple[str, ...] = ("sm_80",)
    version: tuple[int, int] | None = None
    address_size: int = 64
    items: list[Function | Variable | Directive | Section] = field(default_factory=list)

    @property
    def functions(self) -> list[Function]:
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def kernels(self) -> list[Function]:
        return [f for f in self.functions if f.kind == "entry" and f.body is not None]

    @property
    def globals(self) -> list[Variable]:
        return [item for item in self.items if isinstance(item, Variable)]
