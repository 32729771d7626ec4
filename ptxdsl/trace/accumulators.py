"""Accumulators in registers: the rows that a thread holds, and the coordinates of each register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ptxdsl.errors import public, public_class
from ptxdsl.trace.operators import operate, steps
from ptxdsl.trace.roles import ALL_LANES, WARP
from ptxdsl.trace.value import laneid
from ptxdsl.types import Type

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
    registers: Sequence[Any], shape: tuple[int, int], warp: Any, first_row: Any = 0, first_column: int = 0
) -> list[AccumulatorRow]:
    """Return the rows of accumulators in the layout of wgmma: two of each 64 rows, shared by four lanes."""
    rows, columns = shape
    each = columns // 2  # registers of a thread for 64 rows
    with steps():
        top = warp * WARP_ROWS + laneid // QUAD + first_row
        column = laneid % QUAD * 2 + first_column
        held = []
        for block, half in product(range(rows // QUAD_ROWS), range(2)):
            numbers = [n for n in range(each) if n // 2 % 2 == half]
            offsets = tuple(n // QUAD * REGISTER_COLUMNS + n % 2 for n in numbers)
            kept = tuple(registers[block * each + n] for n in numbers)
            held.append(AccumulatorRow(top + (block * QUAD_ROWS + half * ROWS_APART), column, offsets, kept))
    return held
