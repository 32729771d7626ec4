"""The fragment of the accumulators that a thread of a consumer warpgroup holds, and the boxes to which it belongs.

A thread holds four accumulators of each 8 columns of 16 rows; stmatrix stores 16×16 at a time. The products of a tile
whose A and B are swapped are the transpose of the output: 16 rows of the accumulators are columns of the output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.staging import StagedBox, Staging
from ptxdsl.kernels.sm90.tiling import MATRIX, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

STEP = 2 * MATRIX  # rows and columns of the four matrices that a warp stores at a time
Boxes: TypeAlias = Sequence[tuple[StagedBox, int]]
"""Boxes that are staged together, each with its first row or column in the tile."""
Copies: TypeAlias = Iterable[tuple[PointerValue, tuple[Any, ...]]]
"""TMA copies of boxes: the address in shared memory, and the coordinates in the tensor."""


class Axis(NamedTuple):
    """Rows or columns of a product: `first` is that of a warp's first accumulator, and there are `length`."""

    first: Any
    length: Scalar


class RowFragment:
    """Accumulators whose rows are rows of the output. Boxes have 64 rows each, and follow each other along N."""

    def __init__(self, traits: WarpgroupTraits, staging: Staging) -> None:
        self.staging, self.length, self.extent = staging, traits.tile[1], traits.out_map.box[-1]
        self.staged = staging.count * self.extent  # columns that are staged together
        self.first_row, self.first_column = staging.first_row, 0  # of a warpgroup in the tile

    def boxes(self, first: int) -> Boxes:
        """Return the boxes that are staged together, from row or column `first` on."""
        offsets = range(first, min(first + self.staged, self.length), self.extent)
        return [(self.staging.box(number), offset) for number, offset in enumerate(offsets)]

    def row(self, offset: int) -> int:
        """Return the first row of a box among those of the warpgroup."""
        return 0

    def corner(self, work: WorkTile, offset: int) -> tuple[Index, Index]:
        """Return the first row and column of a box in the product."""
        return work.first[0] + self.first_row, work.first[1] + offset

    def address(self, box: StagedBox, offset: int) -> PointerValue:
        """Return the address that this lane passes to stmatrix for 16 columns of a box."""
        staging = self.staging
        return box.address(*staging.origin, staging.row, staging.column + offset)

    def store(self, address: PointerValue, registers: Sequence[Scalar]) -> None:
        """Write 16 rows and 16 columns of each warp."""
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(address, registers)

    def copies(self, work: WorkTile, matrix: TensorView, boxes: Boxes) -> Copies:
        """Return the TMA copies between boxes and a matrix."""
        (first_m, first_n), origin = work.first, self.staging.origin
        row = matrix.line(first_m + self.first_row)
        return [(box.address(*origin, 0, 0), (*_plane(matrix, origin), row, first_n + column)) for box, column in boxes]

    def axes(self, work: WorkTile) -> tuple[Axis, Axis]:
        """Return the axes of the accumulators of this warp, down and across."""
        (row, column), product = work.first, work.product
        return Axis(row + self.first_row + self.staging.warp_row, product.m), Axis(column, product.n)


class TransposedFragment(RowFragment):
    """Accumulators whose rows are columns of the output. A warpgroup has 64 columns of the tile, in boxes of 16 to 64
    rows; stmatrix transposes them."""

    def __init__(self, traits: WarpgroupTraits, staging: Staging) -> None:
        super().__init__(traits, staging)
        self.length, self.extent = traits.tile[0], traits.out_map.box[-2]
        self.staged = staging.count * self.extent  # rows
        lane, consumer = pd.laneid, staging.consumer
        self.first_row, self.first_column = 0, consumer.index * traits.tiling.columns_apart
        self.lane_row = lane % MATRIX + lane // STEP * MATRIX
        self.column = consumer.thread % WARPGROUP // WARP * WARP_ROWS + lane // MATRIX % 2 * MATRIX

    def row(self, offset: int) -> int:
        return offset

    def corner(self, work: WorkTile, offset: int) -> tuple[Index, Index]:
        return work.first[0] + offset, work.first[1] + self.first_column

    def address(self, box: StagedBox, offset: int) -> PointerValue:
        return box.address(*self.staging.origin, self.lane_row + offset, self.column)

    def store(self, address: PointerValue, registers: Sequence[Scalar]) -> None:
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.trans.shared.b16(address, registers)

    def copies(self, work: WorkTile, matrix: TensorView, boxes: Boxes) -> Copies:
        origin = self.staging.origin
        for box, row in boxes:
            at = matrix.line(work.first[0] + row), work.first[1] + self.first_column
            yield box.address(*origin, 0, 0), (*_plane(matrix, origin), *at)

    def axes(self, work: WorkTile) -> tuple[Axis, Axis]:
        (row, column), product = work.first, work.product
        return Axis(column + self.first_column + self.staging.warp_row, product.n), Axis(row, product.m)


def _plane(matrix: TensorView, origin: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the coordinate of a matrix among those of batches, if its tensor has one."""
    return (matrix.batch,) if origin else ()


def fragment_of(traits: WarpgroupTraits, staging: Staging) -> RowFragment:
    return (TransposedFragment if traits.tiling.swap_ab else RowFragment)(traits, staging)
