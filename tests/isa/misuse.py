"""Instructions that break one rule, made from ones that break none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ptxdsl import ir
from ptxdsl.isa import Op
from ptxdsl.isa.operand import Operand
from ptxdsl.types import TYPES, b32, b64, bits, f32, pred, u32

from .spelled import Spelled, register

SPARE = 100
"""Registers from this number on are in no spelled instruction."""


def misuses(right: Spelled) -> Iterator[tuple[str, Spelled]]:
    """What is wrong, in words, and the instruction that is wrong so."""
    opcode = right.opcode
    bound = opcode.bind(right.operands)
    assert isinstance(bound, list)
    for position, (operand, value) in enumerate(zip(opcode.operands, bound, strict=True)):
        if value is None:
            continue
        for kind, wrong in _replacements(opcode.op, operand, value, _in_group(opcode.operands, position)):
            yield kind, Spelled(opcode, opcode.group([*bound[:position], wrong, *bound[position + 1 :]]))
        if not _in_group(opcode.operands, position) and not any(o.optional for o in opcode.operands):
            rest = opcode.group([*bound[:position], None, *bound[position + 1 :]])
            yield "an operand is missing", Spelled(opcode, rest)
    if None not in bound:
        yield "an operand too many", Spelled(opcode, (*right.operands, register(u32, SPARE)))


def _in_group(operands: Sequence[Operand], position: int) -> bool:
    """Whether an operand is one of two that are written as one."""
    first, *following = operands[position : position + 2]
    return first.paired or first.joined or any(second.paired or second.joined for second in following)


def _replacements(op: Op, operand: Operand, value: Any, grouped: bool) -> Iterator[tuple[str, Any]]:
    if operand.role == "address":
        if not grouped:
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
