"""What a block computes, as a kernel sees it: products, tiles of them, and what becomes of their accumulators."""

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
    """A matrix in global memory: its first element, and the elements between lines."""

    pointer: PointerValue
    stride: Scalar


class ScatteredView(NamedTuple):
    """Rows of a matrix in any order: row n of a product is the one that `numbers[n]`, an s32, says, up to `last`;
    of those it may say there are `rows`."""

    pointer: PointerValue
    stride: Scalar
    numbers: PointerValue
    last: Scalar
    rows: Scalar


class Product(NamedTuple):
    """epilogue(alpha·a@b + beta·c): sizes are u32; c and out are row-major. The matrices are a View each, or what else
    their path takes of one. `extras` are the operands of the epilogue: a View of each (of a vector the stride says
    nothing), or None for the output itself."""

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
    """A tile of a product, of the iterations along K from `begin` to before `end`. `extents` are (M, N, K) of a tile;
    `item` is how its schedule knows it. Where `halved` holds, warpgroups have tiles of half the rows, side by side, of
    which this is one; None says that it never does. K begins `lead` elements before the first, with zeros."""

    product: Product
    tile: Tile
    begin: Index
    end: Index
    extents: tuple[int, int, int]
    item: Any = None
    halved: Any = None
    lead: Index = 0

    @property
    def iterations(self) -> Index:
        return self.end - self.begin

    @property
    def first(self) -> tuple[Index, Index]:
        """(M, N) of its first element."""
        return self.tile[0] * self.extents[0], self.tile[1] * self.extents[1]

    @property
    def k_extent(self) -> tuple[Index, Index]:
        """Where it begins and ends along K, in elements."""
        tile_k = self.extents[2]
        return self.begin * tile_k, pd.min(self.end * tile_k, self.product.k)


class Products:
    """The product of a kernel, or its batches, cut into tiles of (M, N, K) `extents`; `count` batches, None for
    a single product, of which `batch` gives each."""

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
        """The product of one batch."""
        return self.product if self._batch is None or isinstance(batch, int) else self._batch(batch)

    def has(self, tile: Tile) -> Scalar:
        return (tile[0] < self.tiles[0]) & (tile[1] < self.tiles[1])

    def number(self, tile: Tile) -> Scalar:
        """Of a tile, among all of a product."""
        return tile[0] + tile[1] * self.tiles[0]

    def work(self, tile: Tile, batch: Index = 0, k: tuple[Index, Index] | None = None, item: Any = None) -> WorkTile:
        """A tile, of all iterations along K or of those from k[0] to k[1]."""
        begin, end = k or (0, self.iterations)
        return WorkTile(self.of(batch), tile, begin, end, self.extents, item)


class OutputTile(NamedTuple):
    """Complete accumulators, to be stored. They may be some groups of a tile, from `group` on, of a `warp`
    that is not the one that has them; or a `piece` of a tile, of 64 rows. `is_last` tells whether its block has no tile
    behind this one, where its schedule knows."""

    work: WorkTile
    accumulators: TileAccumulators
    group: Index = 0
    warp: Scalar | None = None
    piece: int = 0
    is_last: Callable[[], Scalar] | None = None
