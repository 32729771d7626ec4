"""Operands of tensor cores in shared memory: the descriptors of an array whose first axis are stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ptxdsl.driver import Late
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import Scalar, shown
from ptxdsl.trace.memory import ArrayView
from ptxdsl.trace.operators import cast
from ptxdsl.trace.ring import Slot
from ptxdsl.types import f32, u64

layouts: Any = Late("ptxdsl.layout.layout")
operands: Any = Late("ptxdsl.layout.shared_operand")

UNIT = 16  # bytes that one step of a descriptor's address counts


@dataclass(frozen=True)
class StagedOperand:
    """An operand in shared memory: the descriptor of its first stage, and its stages."""

    shared: Any
    first: Any
    stages: int
    stage_units: int

    def at(self, stage: Any) -> Any:
        """Return the descriptor of a stage, given by a number or a slot of a ring."""
        number = stage_number(stage, self.stages)
        return self.first + cast(number * self.stage_units, u64) if self.stages > 1 else self.first

    def rows_and_k(self) -> tuple[int, int]:
        """Return the rows of M or N, and K, of one stage, in elements of the instruction."""
        atom, operand = self.shared.atom, self.shared.operand
        return self.shared.row_starts.size * atom.extents(operand)[0], self.shared.k_starts.size * atom.shape[2]


def stage_number(stage: Any, stages: int, noun: str = "an array") -> Any:
    """Return the number of a stage, given by itself or by a slot of a ring; refuse one that is out of range."""
    number = stage.index if isinstance(stage, Slot) else stage
    if isinstance(number, int) and not 0 <= number < stages:
        refuse(f"stage {number} of {noun} of {stages} stage{'s' * (stages > 1)}", f"pass 0 to {stages - 1}")
    return number


def staged_operand(atom: Any, name: str, array: Any, transposed: bool, part: Any = 0) -> StagedOperand:
    """Derive an operand's descriptors from the layout of its array; `part` is its first part along M or N."""
    if not isinstance(array, ArrayView) or array.layout is None or not array.space.startswith("shared"):
        refuse(
            f"operand {name.upper()} is an array in shared memory; found {shown(array)}", "such as `tensor.shared(4)`"
        )
    _check_element(atom, name, array)
    inner = getattr(array.layout, "layout", array.layout)
    *outer, rows, columns = inner
    counts = [mode for mode in outer if mode.size > 1]
    if len(counts) > 1:
        refuse(f"`{array.name}` has {len(counts)} axes of stages", "give it one axis of stages before the last two")
    tile = layouts.from_modes([columns, rows] if transposed else [rows, columns])
    shared = operands.shared_operand(atom, name, tile if inner is array.layout else replace(array.layout, layout=tile))
    stages, apart = (counts[0].size, counts[0](1) * array.element.bytes) if counts else (1, 0)
    if apart % shared.alignment_bytes:
        refuse(
            f"the stages of `{array.name}` are {apart} bytes apart",
            f"{atom.instruction} needs a multiple of {shared.alignment_bytes}",
        )
    first = shared.descriptor(cast(array.address().value, u64), cast(part, u64) if isinstance(part, Scalar) else part)
    return StagedOperand(shared, first, stages, apart // UNIT)


def _check_element(atom: Any, name: str, array: ArrayView) -> None:
    """Refuse elements of another width than the atom's, and other floats; integers may stand for any bits."""
    wanted, element = atom.input_type(name), array.element
    same = str(element) == wanted or (element is f32 and wanted == "tf32")
    if element.bits != atom.element_bits or (element.is_float and not same):
        width = f"{wanted}, {atom.element_bits} bits wide"
        refuse(
            f"operand {name.upper()} of {atom} has elements of {width}; the elements of `{array.name}` are {element}",
            f"use an instruction of {element}, or convert the elements",
        )
