"""Checks of wgmma descriptors while tracing: the unit of their address, and the layout of the array at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ptxdsl import ir
from ptxdsl.driver import Late
from ptxdsl.notes import SharedArray
from ptxdsl.trace.builder import Builder, refuse

formats: Any = Late("ptxdsl.layout.descriptors")

_COPIES = ("mov", "cvt", "shfl", "and")
_SHIFTS = ("shr", "bfe")
DEEPEST = 64  # instructions between an address and the descriptor made of it
_ROWS = 16  # rows of an operand whose addresses are compared


@dataclass(slots=True)
class Definitions:
    """The instruction that computes each register, as far as the body was read; None for several."""

    by_register: dict[int, ir.Instruction | None] = field(default_factory=dict)
    bodies: dict[int, int] = field(default_factory=dict)

    def of(self, register: ir.Register, builder: Builder) -> ir.Instruction | None:
        for body in (builder.prologue, builder.body):
            for item in body[self.bodies.get(id(body), 0) :]:
                written = item.operands[:1] if isinstance(item, ir.Instruction) else ()
                for each in written:
                    if isinstance(each, ir.Register):
                        self.by_register[id(each)] = item if id(each) not in self.by_register else None  # type: ignore[assignment]
            self.bodies[id(body)] = len(body)
        return self.by_register.get(id(register))


@dataclass(frozen=True, slots=True)
class DescriptorStart:
    """The variable whose address a descriptor holds; `bits` were combined with the address in units of 16 bytes, and
    `offset` bytes added to it before. `is_shifted` is False for an address in bytes, `is_known` for traced offsets.
    """

    variable: ir.Variable
    bits: int = 0
    offset: int = 0
    is_shifted: bool = False
    is_known: bool = True


def check_descriptors(builder: Builder, instruction: ir.Instruction) -> None:
    """Refuse a descriptor with an address in bytes, and one of another layout than that of the array at its address."""
    opcode: Any = instruction.opcode
    for operand, value in zip(opcode.operands, opcode.bind(instruction.operands), strict=True):
        if operand.name in ("a_desc", "b_desc") and isinstance(value, ir.Register):
            start = _start(builder, value, DEEPEST)
            if start is not None and not start.is_shifted:
                refuse(
                    f"`{operand.name}` holds the address of `{start.variable}` in bytes; a descriptor counts 16 bytes",
                    "shift it, `(address & 0x3FFFF) >> 4`, or let shared_operand(…).descriptor(address) make it",
                )
            if start is not None and start.is_known:
                _check_layout(builder, opcode, operand.name, start)


def _start(builder: Builder, register: ir.Operand, depth: int) -> DescriptorStart | None:
    """Follow a descriptor back to the shared variable whose address it holds; None if there is no such."""
    if isinstance(register, ir.Variable):
        return DescriptorStart(register) if register.space == "shared" else None
    known: Definitions = builder.memory.setdefault(Definitions, Definitions())
    definition = known.of(register, builder) if isinstance(register, ir.Register) and depth else None
    name = definition.opcode.text.partition(".")[0] if definition is not None else ""
    if definition is None or name not in (*_COPIES, *_SHIFTS, "or", "add", "mad"):
        return None
    sources = definition.operands[1:]
    start = next(filter(None, (_start(builder, each, depth - 1) for each in reversed(sources))), None)
    if start is None or name in _COPIES:
        return start
    if name in _SHIFTS:
        return DescriptorStart(start.variable, 0, start.offset, True, start.is_known)
    constants = [each.value for each in sources if isinstance(each, ir.Immediate)]
    if name == "mad" or not constants:
        return DescriptorStart(start.variable, start.bits, start.offset, start.is_shifted, False)
    bits, offset = (constants[0], 0) if start.is_shifted else (0, constants[0])
    return DescriptorStart(start.variable, start.bits + bits, start.offset + offset, start.is_shifted, start.is_known)


def _check_layout(builder: Builder, opcode: Any, name: str, start: DescriptorStart) -> None:
    """Compare the first rows of an operand with the array that begins at the descriptor's address, if one does."""
    arrays: dict[str, SharedArray] = builder.memory.get(SharedArray, {})
    here = [a for a in arrays.values() if (a.variable, a.offset) == (start.variable.name, start.offset)]
    fields, bits = formats.decode(start.bits), opcode.atype.bits
    if len(here) != 1 or here[0].layout is None or here[0].element.bits != bits or fields.start:
        return
    shape = next(word for word in opcode.text.split(".") if word[0] == "m" and word[1].isdigit())
    columns = int(shape.partition("n")[2].partition("k")[0])
    array, rows = here[0], min(_ROWS, columns) if name == "b_desc" else _ROWS
    key = check_descriptors, fields, bits, rows, array.name
    if key not in builder.memory:
        builder.memory[key] = _are_alike(array, fields, bits, rows)
    if not builder.memory[key]:
        swizzle = f"a swizzle of {fields.swizzle_bytes} bytes" if fields.swizzle_bytes else "no swizzle"
        refuse(
            f"`{name}` describes a tile with {swizzle} and a stride of {fields.stride_bytes} bytes, but the array "
            f"`{array.name}` has layout {array.layout}",
            "make descriptor and array from one layout: `shared_operand(mma, operand, array)`",
        )


def _are_alike(array: SharedArray, fields: Any, bits: int, rows: int) -> bool:
    """True if a descriptor reads the first rows of an array, (rows, K) or (K, rows), or if the array is smaller."""
    width = formats.OPERAND_K_BYTES * 8 // bits
    held, pairs = list(_addresses(array, rows, width)), list(product(range(rows), range(width)))
    majors = (False, True) if bits == 16 else (False,)
    read = [[formats.element_address(fields, row, k, bits, major) for row, k in pairs] for major in majors]
    return not held or any(each in held for each in read)


def _addresses(array: SharedArray, rows: int, width: int) -> Iterator[list[int]]:
    """Yield the byte offsets of the first rows of a tile (rows, K) in an array, and those of (K, rows)."""
    layout, outer = array.layout, (0,) * (array.layout.rank - 2)
    extents = [mode.size for mode in getattr(layout, "layout", layout)][-2:]
    for order in (1, -1) if len(extents) == 2 else ():
        if extents[::order][0] >= rows and extents[::order][1] >= width:
            pairs = product(range(rows), range(width))
            yield [layout(*outer, *pair[::order]) * array.element.bytes for pair in pairs]
