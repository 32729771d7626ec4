"""What a thread block does with a tile, whichever tile that is: products of its K, and the way to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import s64
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Output, Target, Writer
from ptxdsl.kernels.mainloop import Accumulators, Mainloop
from ptxdsl.kernels.operand import Source
from ptxdsl.schedule.arithmetic import ceil_div


class Product(NamedTuple):
    """epilogue(alpha·a@b + beta·c) in a kernel: sizes are u32; rows, or columns, are as far apart as matrices say."""

    m: Any
    n: Any
    k: Any
    a: Target
    b: Target
    c: Target
    out: Target
    alpha: Any
    beta: Any
    extras: tuple[Any, ...] = ()


class Block:
    """Computes tiles of products, one after another in the same shared memory; a tile is a (row, column) of tiles."""

    goes_ahead = True  # its loaders can be seated anew

    def __init__(self, config: GemmConfig) -> None:
        self.config = config
        self.memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
        self.staging = (
            self.memory + config.staged_at // config.inputs.bytes
        )  # free when the ring is not, if they differ
        self.mainloop = Mainloop(config, self.memory)

    def iterations_of(self, product: Product) -> Any:
        """How many tiles its K has."""
        return ceil_div(product.k, self.config.tile[2])

    def loaders(self, product: Product, first: tuple[Any, Any], k: tuple[Any, Any]) -> tuple[Any, ...]:
        """The copies of the operands of the tile whose first element is at (m, n) = `first`, from k[0] to k[1]."""
        sources = Source(*product.a, product.m), Source(*product.b, product.n)
        return self.mainloop.loaders(*sources, first, k)

    def loaders_of(self, product: Product, tile: tuple[Any, Any], k: tuple[Any, Any] | None = None) -> tuple[Any, ...]:
        """The copies of a tile, of all K or of its iterations k[0] to k[1]."""
        begin, end = k or (0, self.iterations_of(product))
        tile_k = self.config.tile[2]
        extent = begin * tile_k, pd.min(end * tile_k, product.k)
        return self.loaders(product, self._first(tile), extent)

    def multiply(self, product: Product, tile: tuple[Any, Any], k: tuple[Any, Any] | None = None) -> Accumulators:
        """The sums of a tile, of all K or of its iterations k[0] to k[1]. Afterwards the shared memory is free."""
        begin, end = k or (0, self.iterations_of(product))
        return self.mainloop.run(self.loaders_of(product, tile, k), end - begin)

    def write(
        self, product: Product, tile: tuple[Any, Any], accumulators: Accumulators, row: Any = 0, warp: Any = None
    ) -> None:
        """Sends sums to memory, `row` rows further down in each warp's part of the tile; uses the shared memory.

        `warp` is the one whose part is meant, if not this one's."""
        first_m, first_n = self._first(tile)
        extent, rest = (product.m, product.n), product[7:]
        output = Output(product.out, product.c, extent, *rest)
        Writer(self.config, self.staging, (first_m + row, first_n), output, warp).write(accumulators)

    def _first(self, tile: tuple[Any, Any]) -> tuple[Any, Any]:
        return tile[0] * self.config.tile[0], tile[1] * self.config.tile[1]

    def compute(self, product: Product, tile: tuple[Any, Any]) -> None:
        """A whole tile, after which another one may follow."""
        self.write(product, tile, self.multiply(product, tile))
        pd.ptx.bar.sync(0)


class ProductBlock(Block):
    """Computes tiles of one product, or of a batch: `place` says where those lie, and `of` which one is meant."""

    def __init__(self, config: GemmConfig, product: Product, place: tuple[Any, ...] = ()) -> None:
        self.product, self.place = product, place
        tile_m, tile_n, tile_k = config.tile
        self.tiles = ceil_div(product.m, tile_m), ceil_div(product.n, tile_n)
        self.iterations = ceil_div(product.k, tile_k)
        super().__init__(config)

    def iterations_of(self, product: Product) -> Any:
        return self.iterations

    @property
    def batches(self) -> Any:
        return self.place[0] if self.place else 1

    def of(self, batch: Any) -> Product:
        """The product of one batch."""
        if not self.place:
            return self.product
        moved = [self._moved(n, matrix, batch) for n, matrix in enumerate(self.product[3:7])]
        extras = tuple(self._moved_extras(batch))
        return self.product._replace(a=moved[0], b=moved[1], c=moved[2], out=moved[3], extras=extras)

    def _moved_extras(self, batch: Any) -> Iterator[Any]:
        """The operands of the epilogue of a batch."""
        given = iter(self.product.extras)
        for extra in self.config.extras:
            values = [next(given) for _ in extra.parameters]
            if extra.is_batched:
                values[0] = values[0] + batch.to(s64) * values.pop()
            yield from values

    def _moved(self, number: int, matrix: Target, batch: Any) -> Target:
        """A matrix of a batch: by their distance, or by the table of their addresses."""
        if self.config.batches == "strided":
            return Target(matrix.pointer + batch.to(s64) * self.place[1 + number], matrix.stride)
        count, table = self.place
        return Target(pd.pointer(table[number * count + batch], matrix.pointer.element), matrix.stride)

    def number(self, tile: tuple[Any, Any]) -> Any:
        """Of a tile, among all of a product."""
        return tile[0] + tile[1] * self.tiles[0]

    def has(self, tile: tuple[Any, Any]) -> Any:
        return (tile[0] < self.tiles[0]) & (tile[1] < self.tiles[1])

    def ahead(self) -> Ahead:
        """Its tiles with their copies begun early."""
        return Ahead(self, self.loaders(self.product, (0, 0), (0, self.product.k)), SEAT)


SEAT = "source", "mn_left", "k_left"  # of a loader: where it stands in its matrix
MATRIX = "between", "step"  # of a loader: how its matrix lies


class Ahead:
    """Tiles of a block one after another: the copies of the next one are under way while one is written.

    `loaders` go from tile to tile; `changing` is what becomes another, where it is no constant.
    """

    def __init__(self, block: Block, loaders: tuple[Any, ...], changing: tuple[str, ...]) -> None:
        self.block, self.loaders = block, loaders
        self.changing = [(i, name) for i, loader in enumerate(loaders) for name in changing if _varies(loader, name)]
        for i, name in self.changing:
            value = getattr(loaders[i], name)
            if not hasattr(value, "set"):
                setattr(loaders[i], name, pd.var(value.type, value))

    def start(self, product: Product, tile: tuple[Any, Any], k: tuple[Any, Any] | None = None) -> None:
        """Begins the copies of a tile, when the sums of the one before are complete."""
        found = self.block.loaders_of(product, tile, k)
        for i, name in self.changing:
            getattr(self.loaders[i], name).set(getattr(found[i], name))
        self.block.mainloop.start(self.loaders)

    def multiply(self, iterations: Any) -> Accumulators:
        """The sums of the tile whose copies were started, of so many iterations along k."""
        return self.block.mainloop.go_on(self.loaders, iterations)


def _varies(loader: Any, name: str) -> bool:
    return not isinstance(getattr(loader, name), int)
