"""Persistent blocks: as many as are resident compute tile after tile, in the order of a PersistentScheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.operands import Operands
from ptxdsl.kernels.tiles.product import Index, Tile, Work
from ptxdsl.kernels.tiles.schedule import Extents, Plan, ProblemShape, Scene, TileAfterTile, TileSchedule, Walk
from ptxdsl.schedule import ClusterRaster, PersistentScheduler
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import Type

MOST_ITEMS = 1 << 31


@dataclass(frozen=True)
class Persistent(TileSchedule):
    """As many blocks as are resident, which take tile after tile."""

    scheduler: PersistentScheduler

    def is_ahead(self, operands: Operands) -> bool:
        return True

    def fields(self) -> dict[str, Type]:
        return dict.fromkeys(("log", "clusters_m", "clusters_n", "along_m"), u32)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        scheduler, blocks = self.scheduler, resident()
        clusters = max(1, blocks // prod(scheduler.cluster))
        batches = 1 if problem.batches is None else problem.batches
        plan = scheduler.plan(problem.shape, tile, blocks, batches=batches, max_active_clusters=clusters)
        if plan.items > MOST_ITEMS:
            raise ScheduleError(
                f"{plan.items} work items, with those that clusters and strips add, are more than 2**31",
                help="take larger tiles, or compute the problem in parts",
            )
        raster = plan.raster
        clusters_m, clusters_n = raster.clusters
        numbers = dict(log=raster.log, clusters_m=clusters_m, clusters_n=clusters_n, along_m=int(raster.along == "m"))
        return Plan((prod(plan.grid), 1, 1), numbers)

    def walk(self, scene: Scene) -> Walk:
        fields, raster = scene.fields, self.scheduler.raster
        along = raster if raster in ("m", "n") else fields.along_m == 1
        clusters = fields.clusters_m, fields.clusters_n
        return PersistentWalk(scene, ClusterRaster(self.scheduler.cluster, along, fields.log, clusters))


@dataclass(frozen=True)
class EvenPersistent(Persistent):
    """As few blocks as need no more rounds than all resident ones: others would only share memory and power in the
    last round."""

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        m, n, _ = problem.shape
        tiles = max(1, ceil_div(m, tile[0]) * ceil_div(n, tile[1]) * (problem.batches or 1))
        blocks = max(1, resident())
        return super().plan(problem, tile, lambda: ceil_div(tiles, ceil_div(tiles, blocks)))


class PersistentWalk(TileAfterTile):
    """Block b of G takes the work items b, b + G, b + 2G, …; those outside of the problem are passed over."""

    def __init__(self, scene: Scene, raster: ClusterRaster) -> None:
        self.ahead, self.products, self.raster, self.of_batch = scene.ahead, scene.products, raster, raster.items
        count = self.products.count
        self.items = self.of_batch * (1 if count is None else count)
        self.item = pd.var(u32, pd.ctaid.x)

    def has_tile(self) -> Scalar:
        return self.item < self.items

    def work(self) -> Work:
        batch, tile = self._located()
        return self.products.work(tile, batch)

    def _located(self) -> tuple[Index, Tile]:
        """The batch and the tile of this item, which may be none."""
        batch = 0 if self.products.count is None else self.item // self.of_batch
        return batch, self.raster.tile(self.item - batch * self.of_batch)

    def seek(self) -> None:
        with pd.while_(lambda: self.has_tile() & ~self.products.has(self._located()[1])):
            self.item += pd.nctaid.x

    def advance(self) -> None:
        self.item += pd.nctaid.x
        self.seek()
