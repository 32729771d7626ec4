"""Operands of tensor cores in shared memory, and accumulators in registers with their coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ptxdsl.driver import Late
from ptxdsl.errors import public, public_class
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import Scalar, shown
from ptxdsl.trace.memory import ArrayView
from ptxdsl.trace.operators import cast, operate, steps
from ptxdsl.trace.ring import Slot
from ptxdsl.trace.roles import ALL_LANES, WARP
from ptxdsl.trace.value import laneid
from ptxdsl.types import Type, f32, u64

QUAD_ROWS = 64  # rows of the accumulators of one wgmma, 16 for each warp
WARP_ROWS, QUAD, ROWS_APART = 16, 4, 8  # a warp holds 16 rows; four lanes share a row and the row 8 below it
REGISTER_COLUMNS = 8  # columns of C after which a lane's registers repeat


@dataclass(frozen=True)
class AccumulatorRow:
    """The accumulators that a thread holds of one row of C.

    `index` is the row in the tile. The columns are `first_column` + `offsets[i]` for `registers[i]`; `first_column` may
    be traced and `offsets` are ints. `lanes` neighbouring lanes hold all columns of a row: four, or one for rows loaded
    from 128 lanes of tensor memory.
    """

    index: Any
    first_column: Any
    offsets: tuple[int, ...]
    registers: tuple[Any, ...]
    lanes: int = QUAD

    @public
    def reduce(self, combine: Callable[[Any, Any], Any], value: Any) -> Any:
        """Combine a value of each of the lanes that hold this row; every lane gets the result."""
        with steps():
            for distance in (1, 2)[: self.lanes // 2]:
                other: Any = operate("shfl.sync.bfly.b32", value, distance, WARP - 1, ALL_LANES, type=value.type)
                value = combine(value, other)
        return value


@public_class
class HeldAccumulators:
    """Accumulators of a warpgroup in registers: (rows, columns) of C from column `first`.

    `registers` lists those of this thread, in the order of the instruction. All threads of the warpgroup together hold
    each element once.
    """

    def __init__(self, type: Type, shape: tuple[int, int], registers: Sequence[Any], first: int = 0) -> None:
        self.type, self.shape, self.first = type, shape, first
        self.registers = list(registers)

    @public
    def rows(self) -> list[AccumulatorRow]:
        """Return the rows that this thread holds, each with its registers and their columns."""
        raise NotImplementedError

    @public
    def coordinates(self) -> list[tuple[Any, Any]]:
        """Return the (row, column) of each register, in the order of `registers`."""
        where = {}
        with steps():
            for row in self.rows():
                for offset, register in zip(row.offsets, row.registers, strict=True):
                    where[id(register)] = row.index, row.first_column + offset
        return [where[id(register)] for register in self.registers]


def quad_rows(
    registers: Sequence[Any],
    shape: tuple[int, int],
    warp: Any,
    first_row: Any = 0,
    first_column: Any = 0,
    block_rows: int = QUAD_ROWS,
) -> list[AccumulatorRow]:
    """Return the rows of accumulators in the layout of wgmma, or of mma.sync with blocks of 16 rows: two of each block,
    shared by four lanes.
    """
    rows, columns = shape
    each = columns // 2  # registers of a thread for a block
    with steps():
        top = warp * WARP_ROWS + laneid // QUAD + first_row
        column = laneid % QUAD * 2 + first_column
        held = []
        for block, half in product(range(rows // block_rows), range(2)):
            numbers = [n for n in range(each) if n // 2 % 2 == half]
            offsets = tuple(n // QUAD * REGISTER_COLUMNS + n % 2 for n in numbers)
            kept = tuple(registers[block * each + n] for n in numbers)
            held.append(AccumulatorRow(top + (block * block_rows + half * ROWS_APART), column, offsets, kept))
    return held


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
    check_array(name, array)
    check_element(atom, name, array)
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


def check_array(name: str, array: Any) -> None:
    """Refuse an operand that is not an array in shared memory."""
    if not isinstance(array, ArrayView) or array.layout is None or not array.space.startswith("shared"):
        refuse(
            f"operand {name.upper()} is an array in shared memory; found {shown(array)}", "such as `tensor.shared(4)`"
        )


def check_element(atom: Any, name: str, array: ArrayView) -> None:
    """Refuse elements of another width than the atom's, and other floats; integers may stand for any bits."""
    wanted, element = atom.input_type(name), array.element
    same = str(element) == wanted or (element is f32 and wanted == "tf32")
    if element.bits != atom.element_bits or (element.is_float and not same):
        width = f"{wanted}, {atom.element_bits} bits wide"
        refuse(
            f"operand {name.upper()} of {atom} has elements of {width}; the elements of `{array.name}` are {element}",
            f"use an instruction of {element}, or convert the elements",
        )
