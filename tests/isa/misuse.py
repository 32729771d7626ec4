"""Instructions that break one rule, made from ones that break none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ptxdsl import ir
from ptxdsl.isa import Op
from ptxdsl.isa.spec import Operand
from ptxdsl.types import TYPES, b32, b64, bits, f32, pred, u32

from .spelled import Spelled, paired, register

SPARE = 100
"""Registers from this number on are in no spelled instruction."""


def misuses(right: Spelled) -> Iterator[tuple[str, Spelled]]:
    """What is wrong, in words, and the instruction that is wrong so."""
    opcode = right.opcode
    bound = opcode.bind(right.operands)
    assert isinstance(bound, list)
    present = [(operand, value) for operand, value in zip(opcode.operands, bound, strict=True) if value is not None]
    operands, values = [operand for operand, _ in present], [value for _, value in present]
    for place, (operand, value) in enumerate(present):
        for kind, wrong in _replacements(opcode.op, operand, value):
            yield kind, Spelled(opcode, paired(operands, [*values[:place], wrong, *values[place + 1 :]]))
        if not _in_pair(operands, place) and not any(o.optional for o in opcode.operands):
            rest = paired(operands[:place] + operands[place + 1 :], values[:place] + values[place + 1 :])
            yield "an operand is missing", Spelled(opcode, rest)
    if len(operands) == len(opcode.operands):
        yield "an operand too many", Spelled(opcode, (*right.operands, register(u32, SPARE)))


def _in_pair(operands: Sequence[Operand], place: int) -> bool:
    return operands[place].paired or (place + 1 < len(operands) and operands[place + 1].paired)


def _replacements(op: Op, operand: Operand, value: Any) -> Iterator[tuple[str, Any]]:
    if operand.role == "address":
        yield "an address without brackets", value.base
        yield "a float as address", ir.Address(register(f32, SPARE))
    elif operand.word == "imm":
        yield "a register for a constant", register(b32, SPARE)
    elif operand.type is not None:
        for kind, wrong in _wrong_types(op, operand):
            if operand.vector:
                yield f"{kind}, in braces", ir.Vector((wrong, *value.elements[1:]))
            else:
                yield kind, wrong
        yield from _wrong_shapes(operand, value)


def _wrong_types(op: Op, operand: Operand) -> Iterator[tuple[str, Any]]:
    type_, spare = operand.type, SPARE
    assert type_ is not None
    if type_ is pred:
        yield "a number for a predicate", register(b32, spare)
        return
    width = max(type_.bits, 16)
    yield "a predicate for a number", register(pred, spare)
    if width > 16:
        yield "too narrow", register(bits(width // 2) if width < 128 else b64, spare)
    if width < 64 and not op.relaxed:
        yield "too wide", register(bits(2 * width), spare)
    if type_.is_integer and width <= 64:
        yield "a float for an integer", register(TYPES[f"f{width}"], spare)
    if type_.is_float or type_.kind == "x":
        yield "an integer for a float", register(TYPES[f"u{width}"], spare)


def _wrong_shapes(operand: Operand, value: Any) -> Iterator[tuple[str, Any]]:
    type_ = operand.type
    assert type_ is not None
    spare = register(type_.register, SPARE)
    if operand.vector:
        yield "a register too many", ir.Vector((*value.elements, spare))
        if operand.count > 1:
            yield "a register too few", ir.Vector(value.elements[1:])
        return
    if not operand.paired:
        yield "two registers for one", ir.Vector((value, spare))
    if operand.written:
        yield "a constant is written", ir.Immediate(1)
        return
    yield "`_` is read", ir.Sink()
    if type_ is not pred:
        yield "a number is negated", ir.Not(spare)
    if type_.is_integer:
        yield "a constant that does not fit", ir.Immediate(1 << type_.bits)
