"""One tile a block, in the order of a threadblock swizzle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ptxdsl as pd
from ptxdsl.kernels.product.product import Products, Tile, WorkTile
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, StartLoads, TileSchedule, Walk
from ptxdsl.schedule import ThreadblockSwizzle
from ptxdsl.trace.instruction import Scalar


@dataclass(frozen=True)
class OneTile(TileSchedule):
    """One tile a block; z of the grid is the batch."""

    order: ThreadblockSwizzle
    has_one_tile = True

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        return Plan(self.order.grid_shape(self.order.tiled_shape(problem.shape, tile, problem.batches or 1)))

    def walk(self, context: KernelContext) -> Walk:
        return OneTileWalk(self.order, context.products)


class OneTileWalk(Walk):
    def __init__(self, order: ThreadblockSwizzle, products: Products) -> None:
        self.order, self.products = order, products

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        tile, batch, batches = located(self.order, self.products)
        leave_without(self.products, tile, batch, batches)
        work = self.products.work(tile, batch)
        start(work)
        yield work


def located(order: ThreadblockSwizzle, products: Products) -> tuple[Tile, Scalar, Scalar]:
    """Return the tile of this block, its slice of K or batch (z of the grid), and the number of these."""
    depth = pd.nctaid.z if products.count is None else products.count
    i, j, z = order.tile_offset(pd.ctaid, tiled_shape=(*products.tiles, depth))
    return (i, j), z, depth


def leave_without(products: Products, tile: Tile, z: Scalar, depth: Scalar) -> None:
    """Return from the kernel in blocks without a tile."""
    outside = ~products.has(tile)
    with pd.if_(outside if products.count is None else outside | (z >= depth)):
        pd.return_()
