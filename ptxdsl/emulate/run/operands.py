"""Readers and writers of operands, for the registers of many lanes.

A reader has `read(x)`, a writer `put(x, value)`; `x` is the processor, whose `index` selects the lanes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ... import ir
from ...errors import EmulationError
from ...isa.operand import Operand
from ...types import Type, b64, f16, pred


class RegisterFile(Protocol):
    """The registers of a frame."""

    registers: list[np.ndarray | None]

    def poison(self, slot: int) -> np.ndarray: ...


class Lanes(Protocol):
    """The lanes whose registers are read and written: `index` of all."""

    @property
    def frame(self) -> RegisterFile: ...

    index: np.ndarray | slice | None

    def constant(self, bits: int, dtype: np.dtype) -> np.ndarray: ...

    def special(self, name: str) -> np.ndarray: ...

    def own_address(self, target: Any, offset: int, dtype: np.dtype) -> np.ndarray: ...

    def generic(self, space: str, address: np.ndarray) -> np.ndarray: ...

    def put(self, slot: int, value: np.ndarray) -> None: ...


ADDRESS = np.dtype(np.uint64)


@dataclass(frozen=True, slots=True)
class ReadRegister:
    """Reads a register as `dtype`, truncated if the operand is narrower than the register."""

    slot: int
    dtype: np.dtype
    narrow: np.dtype | None = None
    wide: np.dtype = ADDRESS
    negated: bool = False

    def read(self, x: Lanes) -> np.ndarray:
        array = x.frame.registers[self.slot]
        if array is None:
            array = x.frame.poison(self.slot)
        if x.index is not None:
            array = array[x.index]
        if self.narrow is not None:
            array = array.view(self.wide).astype(self.narrow)
        if array.dtype is not self.dtype:
            array = array.view(self.dtype)
        return ~array if self.negated else array


@dataclass(frozen=True, slots=True)
class ReadPart:
    """Reads a byte or half of a register, with the sign of the operand's type (video instructions)."""

    whole: ReadRegister
    shift: int
    part: np.dtype

    def read(self, x: Lanes) -> np.ndarray:
        bits = self.whole.read(x).view(np.uint32) >> np.uint32(self.shift)
        return bits.astype(self.part).astype(self.whole.dtype)


@dataclass(frozen=True, slots=True)
class ReadNegative:
    """Reads the negative of a value, with more bits than its type has (video instructions)."""

    value: Reader

    def read(self, x: Lanes) -> np.ndarray:
        return -self.value.read(x).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ReadConstant:
    """Reads the same value for all lanes, given as its bits."""

    bits: int
    dtype: np.dtype

    def read(self, x: Lanes) -> np.ndarray:
        return x.constant(self.bits, self.dtype)


@dataclass(frozen=True, slots=True)
class ReadWords:
    """A constant of 128 bits: two words for each lane."""

    words: tuple[ReadConstant, ...]

    def read(self, x: Lanes) -> np.ndarray:
        return np.stack([word.read(x) for word in self.words], axis=-1)


@dataclass(frozen=True, slots=True)
class ReadSpecial:
    """Reads a special register."""

    name: str
    dtype: np.dtype

    def read(self, x: Lanes) -> np.ndarray:
        array = x.special(self.name)
        return array if array.dtype == self.dtype else array.astype(self.dtype)


@dataclass(frozen=True, slots=True)
class ReadVariable:
    """Reads the address of a variable in its state space, plus bytes; for a function, its code address."""

    target: ir.Variable | ir.Function | ir.Symbol | ir.Generic
    offset: int
    dtype: np.dtype

    def read(self, x: Lanes) -> np.ndarray:
        return x.own_address(self.target, self.offset, self.dtype)


@dataclass(frozen=True, slots=True)
class ReadGeneric:
    """Reads the generic address of a variable in shared or local memory, plus bytes."""

    target: ir.Variable
    space: str
    offset: int

    def read(self, x: Lanes) -> np.ndarray:
        return x.generic(self.space, x.own_address(self.target, self.offset, ADDRESS))


@dataclass(frozen=True, slots=True)
class ReadAddress:
    """Reads a register plus bytes; 32-bit addresses wrap around at 32 bits."""

    base: ReadRegister
    offset: int

    def read(self, x: Lanes) -> np.ndarray:
        address = self.base.read(x)
        if self.offset:
            address = address + address.dtype.type(self.offset % (1 << 8 * address.dtype.itemsize))
        return address if address.dtype == ADDRESS else address.astype(ADDRESS)


@dataclass(frozen=True, slots=True)
class ReadVector:
    """Reads several registers, stacked."""

    elements: tuple[Any, ...]

    def read(self, x: Lanes) -> np.ndarray:
        values = [element.read(x) for element in self.elements]
        return np.concatenate(values).reshape(len(values), *values[0].shape)


@dataclass(frozen=True, slots=True)
class ReadAsIs:
    """Returns an operand that is no value: a label, a function, a list of arguments, an integer constant, or None."""

    value: Any

    def read(self, x: Lanes) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class WriteRegister:
    """Writes a register; narrower values are extended to it as `wide`."""

    slot: int
    dtype: np.dtype
    bytes: int
    wide: np.dtype | None = None

    def put(self, x: Lanes, value: np.ndarray) -> None:
        if value.dtype is not self.dtype:
            value = self._cast(value)
        if self.wide is not None:
            value = value.view(f"{self.wide.kind}{self.dtype.itemsize}").astype(self.wide)
        x.put(self.slot, value)

    def _cast(self, value: np.ndarray) -> np.ndarray:
        """Convert a result to another type: by value if the size differs, else by its bits."""
        if value.dtype.itemsize != self.dtype.itemsize or (self.dtype.kind == "b") != (value.dtype.kind == "b"):
            return value.astype(self.dtype)
        return value


@dataclass(frozen=True, slots=True)
class WriteVector:
    """Writes several registers, from rows; None for `_`."""

    elements: tuple[WriteRegister | None, ...]

    def put(self, x: Lanes, value: np.ndarray) -> None:
        for element, row in zip(self.elements, value, strict=True):
            if element is not None:
                element.put(x, row)


Reader: TypeAlias = (
    ReadRegister
    | ReadPart
    | ReadNegative
    | ReadConstant
    | ReadWords
    | ReadSpecial
    | ReadVariable
    | ReadGeneric
    | ReadAddress
    | ReadAsIs
    | ReadVector
)


class Slots:
    """The number of each register of a function, and the operands made of them."""

    def __init__(self, function: ir.Function) -> None:
        named = [p for p in (*function.parameters, *function.returns) if isinstance(p, ir.Register)]
        self.registers = list(dict.fromkeys([*function.registers, *named]))
        self.number = {register: n for n, register in enumerate(self.registers)}
        self.dtypes = [storage(register.type) for register in self.registers]

    def of(self, register: ir.Register) -> int:
        """Return the slot of a register; an undeclared register gets a new slot."""
        if register not in self.number:
            self.number[register] = len(self.registers)
            self.registers.append(register)
            self.dtypes.append(storage(register.type))
        return self.number[register]

    def reader(self, operand: Operand, value: ir.Operand | None) -> Reader:
        """Return the reader of an operand."""
        if value is None or (operand.type is None and operand.role != "address"):
            return ReadAsIs(value) if not isinstance(value, ir.Immediate) else ReadAsIs(value.value)
        if operand.role == "address":
            return self.address(value, operand.space in (None, "generic"))
        assert operand.type is not None
        value = _unbraced(operand, value)
        if isinstance(value, ir.Vector):
            return ReadVector(tuple(self.scalar(operand.type, element) for element in value.elements))
        one = self.scalar(operand.type, value)
        return ReadVector((one,)) if operand.vector else one

    def scalar(self, type: Type, value: ir.Operand) -> Reader:
        """Return the reader of one value of a type."""
        if isinstance(value, ir.Register | ir.Not):
            return self.register(type, value)
        if isinstance(value, ir.Immediate):
            return _constant(constant_bits(type, value), type)
        if isinstance(value, ir.SpecialRegister):
            return ReadSpecial(value.name, type.dtype)
        if isinstance(value, ir.Offset):
            return ReadVariable(value.base, value.bytes, type.dtype)
        if isinstance(value, ir.Variable | ir.Function | ir.Symbol):
            return ReadVariable(value, 0, type.dtype)
        if isinstance(value, ir.Lane) and value.selector[0] in "bh":
            width = 8 if value.selector[0] == "b" else 16
            part = np.dtype(f"{type.dtype.kind}{width // 8}")
            return ReadPart(self.register(type, value.register), width * int(value.selector[1:]), part)
        if isinstance(value, ir.Negative):
            return ReadNegative(self.scalar(type, value.operand))
        if isinstance(value, ir.Sink):
            return ReadConstant(0, type.dtype)
        raise EmulationError(f"the emulator cannot read `{value}` as {type}")

    def register(self, type: Type, value: ir.Register | ir.Not) -> ReadRegister:
        negated, register = isinstance(value, ir.Not), value
        if isinstance(value, ir.Not):
            register = value.register
        assert isinstance(register, ir.Register)
        if type.bits > 64:
            return ReadRegister(self.of(register), storage(type))
        if register.type.bits > type.bits and type is not pred:
            wide = np.dtype(f"u{register.type.bytes}")
            return ReadRegister(self.of(register), type.dtype, np.dtype(f"u{max(1, type.bytes)}"), wide)
        return ReadRegister(self.of(register), type.dtype, negated=negated)

    def address(self, value: ir.Operand, generic: bool) -> Reader:
        """Return the reader of a byte address in the instruction's space; a variable of another space is addressed by
        name.
        """
        assert isinstance(value, ir.Address)
        if value.coordinates is not None:
            raise EmulationError(f"the emulator has no tensor maps: `{value}`")
        base = value.base
        if isinstance(base, ir.Register):
            bits = np.dtype(f"u{base.type.bytes}")
            return ReadAddress(ReadRegister(self.of(base), bits), value.offset)
        if isinstance(base, ir.Immediate):
            return ReadConstant((base.value + value.offset) % (1 << 64), ADDRESS)
        if generic and isinstance(base, ir.Variable) and base.space in ("shared", "local"):
            return ReadGeneric(base, base.space, value.offset)
        return ReadVariable(base, value.offset, ADDRESS)

    def writer(self, operand: Operand, value: ir.Operand | None) -> WriteRegister | WriteVector | None:
        """Return the writer of an operand; None if the result is not wanted."""
        value = value if value is None else _unbraced(operand, value)
        if isinstance(value, ir.Vector):
            return WriteVector(tuple(self.destination(operand.type, element) for element in value.elements))
        if operand.vector and value is not None:
            return WriteVector((self.destination(operand.type, value),))
        return self.destination(operand.type, value)

    def destination(self, type: Type | None, value: ir.Operand | None) -> WriteRegister | None:
        if value is None or isinstance(value, ir.Sink):
            return None
        if not isinstance(value, ir.Register) or type is None:
            raise EmulationError(f"the emulator cannot write to `{value}`")
        register = value.type
        if register.bits > type.bits and type is not pred:
            kind = "i" if type.is_signed else "u"
            return WriteRegister(self.of(value), type.dtype, register.bytes, np.dtype(f"{kind}{register.bytes}"))
        return WriteRegister(self.of(value), storage(type), register.bytes)


def _unbraced(operand: Operand, value: ir.Operand) -> ir.Operand:
    """Unwrap a scalar that is written in braces, as Triton does."""
    if isinstance(value, ir.Vector) and not operand.vector and len(value.elements) == 1:
        return value.elements[0]
    return value


def _constant(bits: int, type: Type) -> Reader:
    """How a constant is read, given as its bits."""
    if type.bits <= 64:
        return ReadConstant(bits, type.dtype)
    return ReadWords(tuple(ReadConstant(bits >> shift & ((1 << 64) - 1), np.dtype(np.uint64)) for shift in (0, 64)))


def storage(type: Type) -> np.dtype:
    """Return the numpy type that stores a register; 128 bits are two words."""
    return np.dtype(np.uint64) if type.bits > 64 else type.dtype


def constant_bits(type: Type, value: ir.Immediate) -> int:
    """Return a constant as bits of an operand's type; floating constants are converted if the width differs."""
    if type is pred:
        return int(value.value != 0)
    if value.type is None or value.type.bits == type.bits:
        return value.value % (1 << max(8, type.bits))
    packed = value.value.to_bytes(value.type.bytes, "little")
    (number,) = struct.unpack("<f" if value.type.bits == 32 else "<d", packed)
    code = {16: "<e", 32: "<f", 64: "<d"}.get(type.bits) if type.is_float or type in (b64, f16) else None
    return int.from_bytes(struct.pack(code, number), "little") if code else value.value % (1 << max(8, type.bits))
