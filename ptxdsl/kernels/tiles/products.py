"""The product of a kernel, or its batches, cut into tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxdsl.kernels.product import Product, Tile, Work
from ptxdsl.schedule.arithmetic import ceil_div


class Products:
    """Tiles of (M, N, K) `extents`; `count` batches, None for a single product, of which `batch` gives each."""

    def __init__(
        self,
        product: Product,
        extents: tuple[int, int, int],
        count: Any = None,
        batch: Callable[[Any], Product] | None = None,
    ) -> None:
        self.product, self.extents, self.count, self._batch = product, extents, count, batch
        self.tiles = ceil_div(product.m, extents[0]), ceil_div(product.n, extents[1])
        self.iterations = ceil_div(product.k, extents[2])

    def of(self, batch: Any) -> Product:
        """The product of one batch."""
        return self.product if self._batch is None else self._batch(batch)

    def has(self, tile: Tile) -> Any:
        return (tile[0] < self.tiles[0]) & (tile[1] < self.tiles[1])

    def number(self, tile: Tile) -> Any:
        """Of a tile, among all of a product."""
        return tile[0] + tile[1] * self.tiles[0]

    def work(self, tile: Tile, batch: Any = 0, k: tuple[Any, Any] | None = None, item: Any = None) -> Work:
        """A tile, of all iterations along K or of those from k[0] to k[1]."""
        begin, end = k or (0, self.iterations)
        return Work(self.of(batch), tile, begin, end, self.extents, item)
