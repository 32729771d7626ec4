"""What a block computes, as a kernel sees it: products, tiles of them, and what becomes of their sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl.kernels.store.sums import Sums

Tile = tuple[Any, Any]
"""The (row, column) of a tile among those of a product."""


class View(NamedTuple):
    """A matrix in global memory: its first element, and the elements between lines."""

    pointer: Any
    stride: Any


class Product(NamedTuple):
    """epilogue(alpha·a@b + beta·c): sizes are u32; c and out are row-major. `extras` are the operands of the epilogue:
    a View of each (of a vector the stride says nothing), or None for the output itself."""

    m: Any
    n: Any
    k: Any
    a: Any
    b: Any
    c: Any
    out: Any
    alpha: Any
    beta: Any
    extras: tuple[Any, ...] = ()


class Work(NamedTuple):
    """A tile of a product, of the iterations along K from `begin` to before `end`. `extents` are (M, N, K) of a tile;
    `item` is how its schedule knows it."""

    product: Product
    tile: Tile
    begin: Any
    end: Any
    extents: tuple[int, int, int]
    item: Any = None

    @property
    def iterations(self) -> Any:
        return self.end - self.begin

    @property
    def first(self) -> tuple[Any, Any]:
        """(M, N) of its first element."""
        return self.tile[0] * self.extents[0], self.tile[1] * self.extents[1]

    @property
    def k_extent(self) -> tuple[Any, Any]:
        """Where it begins and ends along K, in elements."""
        tile_k = self.extents[2]
        return self.begin * tile_k, pd.min(self.end * tile_k, self.product.k)


class Part(NamedTuple):
    """Sums that are complete, to be stored. They may be some groups of a tile, from `group` on, of a `warp` that is not
    the one that has them."""

    work: Work
    sums: Sums
    group: Any = 0
    warp: Any = None
