"""Which parameters of a kernel it may write memory through, found by following their values through its registers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import ir
from .isa.spec import Opcode

Names = frozenset[str]
_NONE: Names = frozenset()


def written(function: ir.Function) -> Names:
    """The names of parameters of 64 bits whose value may be part of an address that the kernel writes to.

    An address that is itself stored, or passed to a function, counts as written through.
    """
    parameters = {p for p in function.parameters if isinstance(p, ir.Variable) and p.type.bits == 64 and not p.shape}
    instructions = [i for i in function.walk() if isinstance(i.opcode, Opcode)]
    held = _flow(instructions, parameters)
    return _NONE.union(*(held[r] for i in instructions for r in _written_through(i)))


def _flow(instructions: list[ir.Instruction], parameters: set[ir.Variable]) -> Mapping[ir.Register, Names]:
    """The parameters that each register's value may come from."""
    held: dict[ir.Register, Names] = defaultdict(frozenset)
    changed = True
    while changed:
        changed = False
        for instruction in instructions:
            given = _NONE.union(*_given(instruction, held, parameters))
            for register in _registers(_destinations(instruction)) if given else ():
                changed |= not given <= held[register]
                held[register] |= given
    return held


def _given(
    instruction: ir.Instruction, held: Mapping[ir.Register, Names], parameters: set[ir.Variable]
) -> Iterator[Names]:
    """What the sources of an instruction come from. What is loaded from memory is no address of ours."""
    for operand in _sources(instruction):
        if isinstance(operand, ir.Address) and operand.base in parameters:
            yield frozenset([str(operand.base)])
        elif not isinstance(operand, ir.Address):
            yield from (held[register] for register in _registers([operand]))


def _bound(instruction: ir.Instruction) -> Iterator[tuple[Any, Any]]:
    bound = instruction.opcode.bind(instruction.operands)  # type: ignore[attr-defined]
    yield from zip(instruction.opcode.operands, bound, strict=True)  # type: ignore[attr-defined]


def _destinations(instruction: ir.Instruction) -> list[Any]:
    return [value for operand, value in _bound(instruction) if operand.written]


def _sources(instruction: ir.Instruction) -> list[Any]:
    return [value for operand, value in _bound(instruction) if not operand.written]


def _written_through(instruction: ir.Instruction) -> Iterator[ir.Register]:
    """The registers of a store or a call that hold, or lead to, what it may write."""
    stores = instruction.opcode.op.stores  # type: ignore[attr-defined]
    called = any(operand.word == "arguments" for operand, _ in _bound(instruction))
    for operand, value in _bound(instruction):
        if stores and isinstance(value, ir.Address) and operand.name == stores:
            yield from _registers([value.base])
        elif (stores or called) and not isinstance(value, ir.Address):
            yield from (register for register in _registers([value]) if register.type.bits == 64)


def _registers(operands: Iterable[Any]) -> Iterator[ir.Register]:
    for operand in operands:
        if isinstance(operand, ir.Register):
            yield operand
        elif isinstance(operand, ir.Vector | ir.Arguments):
            yield from _registers(operand.elements)
