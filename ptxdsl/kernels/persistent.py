"""Persistent blocks: as many as are resident compute tile after tile, in the order of a PersistentScheduler."""

from __future__ import annotations

from math import prod
from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.block import Block
from ptxdsl.kernels.config import RASTER_PARAMETERS
from ptxdsl.schedule import ClusterRaster, PersistentPlan


def compute_persistently(block: Block, raster: tuple[Any, ...]) -> None:
    """Block b of G takes the work items b, b + G, b + 2G, …; `raster` is what `raster_numbers` gives."""
    scheduler: Any = block.config.schedule
    log, clusters_m, clusters_n, is_m = raster
    along = scheduler.raster if scheduler.raster in ("m", "n") else is_m == 1
    walk = ClusterRaster(scheduler.cluster, along, log, (clusters_m, clusters_n))
    of_batch = walk.items
    for item in pd.range(pd.ctaid.x, of_batch * block.batches, pd.nctaid.x):
        batch = item // of_batch if block.place else 0
        tile = walk.tile(item - batch * of_batch)
        with pd.if_(block.has(tile)):
            block.compute(block.of(batch), tile)


def raster_numbers(plan: PersistentPlan) -> tuple[int, ...]:
    """A raster as the kernel takes it."""
    raster = plan.raster
    numbers = raster.log, *raster.clusters, int(raster.along == "m")
    assert len(numbers) == len(RASTER_PARAMETERS)
    return numbers


def blocks_of(plan: PersistentPlan) -> int:
    return prod(plan.grid)
