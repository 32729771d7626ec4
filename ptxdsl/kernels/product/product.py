"""Products as a kernel sees them: matrices, tiles to multiply, and tiles to store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

Index: TypeAlias = "Scalar | int"
"""A number in a register, or one that is known while tracing."""
Tile: TypeAlias = "tuple[Index, Index]"
"""The (row, column) of a tile among those of a product."""


class View(NamedTuple):
    """A matrix in global memory: its first element, and the elements between rows, or between columns if it is
    column-major."""

    pointer: PointerValue
    stride: Scalar


class ScatteredView(NamedTuple):
    """The rows of a matrix in any order: row n of a product is row `numbers[n]`, an s32, of the matrix; `last` is the
    last n. Numbers outside of 0 to `rows` name no row."""

    pointer: PointerValue
    stride: Scalar
    numbers: PointerValue
    last: Scalar
    rows: Scalar


class Product(NamedTuple):
    """epilogue(alpha·a@b + beta·c). Sizes are u32; c and out are row-major. Each matrix is a View, or the equivalent of
    its path. `extras` are the operands of the epilogue: a View each, of which vectors have no stride, or None for the
    output itself."""

    m: Scalar
    n: Scalar
    k: Scalar
    a: Any
    b: Any
    c: Any
    out: Any
    alpha: Index
    beta: Index
    extras: tuple[Any, ...] = ()


class WorkTile(NamedTuple):
    """A tile of a product, for the iterations along K from `begin` to before `end`. `extents` are the (M, N, K) of a
    tile; `item` is its identity in the schedule. K begins `lead` elements before the first, with zeros.
    """

    product: Product
    tile: Tile
    begin: Index
    end: Index
    extents: tuple[int, int, int]
    item: Any = None
    lead: Index = 0

    @property
    def iterations(self) -> Index:
        return self.end - self.begin

    @property
    def first(self) -> tuple[Index, Index]:
        """The (row, column) of its first element."""
        return self.tile[0] * self.extents[0], self.tile[1] * self.extents[1]

    @property
    def k_extent(self) -> tuple[Index, Index]:
        """The range of K in elements."""
        tile_k = self.extents[2]
        return self.begin * tile_k, pd.min(self.end * tile_k, self.product.k)


class Products:
    """The product of a kernel or its batches, cut into tiles of (M, N, K) `extents`. `count` is the number of batches,
    None for a single product; `batch` returns the product of one."""

    def __init__(
        self,
        product: Product,
        extents: tuple[int, int, int],
        count: Scalar | None = None,
        batch: Callable[[Scalar], Product] | None = None,
    ) -> None:
        self.product, self.extents, self.count, self._batch = product, extents, count, batch
        self.tiles = ceil_div(product.m, extents[0]), ceil_div(product.n, extents[1])
        self.iterations = ceil_div(product.k, extents[2])

    def of(self, batch: Index) -> Product:
        """Return the product of one batch."""
        return self.product if self._batch is None or isinstance(batch, int) else self._batch(batch)

    def has(self, tile: Tile) -> Scalar:
        return (tile[0] < self.tiles[0]) & (tile[1] < self.tiles[1])

    def number(self, tile: Tile) -> Scalar:
        """Return the number of a tile among all of a product."""
        return tile[0] + tile[1] * self.tiles[0]

    def work(self, tile: Tile, batch: Index = 0, k: tuple[Index, Index] | None = None, item: Any = None) -> WorkTile:
        """Return a tile, for all iterations along K or for those from k[0] to k[1]."""
        begin, end = k or (0, self.iterations)
        return WorkTile(self.of(batch), tile, begin, end, self.extents, item)


class OutputTile(NamedTuple):
    """Complete accumulators, to be stored: a whole tile, the groups of a tile from `group` on, those of another `warp`,
    or the 64-row block `row_block` of a tile. `is_last` tells, if the schedule knows, whether this is the last tile of
    its block."""

    work: WorkTile
    accumulators: TileAccumulators
    group: Index = 0
    warp: Scalar | None = None
    row_block: int = 0
    is_last: Callable[[], Scalar] | None = None
