"""Persistent blocks: as many as are resident compute tile after tile, in the order of a PersistentScheduler."""

from __future__ import annotations

from math import prod
from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.block import Ahead, Product, ProductBlock
from ptxdsl.kernels.config import RASTER_PARAMETERS
from ptxdsl.schedule import ClusterRaster, PersistentPlan


def compute_persistently(block: ProductBlock, raster: tuple[Any, ...]) -> None:
    """Block b of G takes the work items b, b + G, b + 2G, …; `raster` is what `raster_numbers` gives."""
    scheduler: Any = block.config.schedule
    log, clusters_m, clusters_n, is_m = raster
    along = scheduler.raster if scheduler.raster in ("m", "n") else is_m == 1
    walk = ClusterRaster(scheduler.cluster, along, log, (clusters_m, clusters_n))
    Walk(block, walk).run()


class Walk:
    """The work items of one block; those outside of the problem are passed over."""

    def __init__(self, block: ProductBlock, raster: ClusterRaster) -> None:
        self.block, self.raster, self.of_batch = block, raster, raster.items
        self.items = self.of_batch * block.batches
        self.item: Any = pd.var(u32, pd.ctaid.x)

    def run(self) -> None:
        if self.block.goes_ahead:
            self._run_ahead(self.block.ahead())
        else:
            self._run()

    def _run(self) -> None:
        self._seek()
        with pd.while_(lambda: self.item < self.items):
            self.block.compute(*self._work())
            self.item += pd.nctaid.x
            self._seek()

    def _run_ahead(self, ahead: Ahead) -> None:
        self._start(ahead)
        with pd.while_(lambda: self.item < self.items):
            product, tile = self._work()
            accumulators = ahead.multiply(self.block.iterations)
            self.item += pd.nctaid.x
            self._start(ahead)
            self.block.write(product, tile, accumulators)

    def _work(self) -> tuple[Product, tuple[Any, Any]]:
        """The product and the tile of this item."""
        batch, tile = self._place()
        return self.block.of(batch), tile

    def _place(self) -> tuple[Any, tuple[Any, Any]]:
        """The batch and the tile of this item, which may be none."""
        batch = self.item // self.of_batch if self.block.place else 0
        return batch, self.raster.tile(self.item - batch * self.of_batch)

    def _seek(self) -> None:
        """Goes on to an item that has a tile."""
        with pd.while_(lambda: (self.item < self.items) & ~self.block.has(self._place()[1])):
            self.item += pd.nctaid.x

    def _start(self, ahead: Ahead) -> None:
        """Goes on to an item that has a tile, and begins its copies."""
        self._seek()
        with pd.if_(self.item < self.items):
            ahead.start(*self._work())


def raster_numbers(plan: PersistentPlan) -> tuple[int, ...]:
    """A raster as the kernel takes it."""
    raster = plan.raster
    numbers = raster.log, *raster.clusters, int(raster.along == "m")
    assert len(numbers) == len(RASTER_PARAMETERS)
    return numbers


def blocks_of(plan: PersistentPlan) -> int:
    return prod(plan.grid)
