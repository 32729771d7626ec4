"""Persistent blocks: as many as are resident compute tile after tile, in the order of a raster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Protocol, Self

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, Tile, WorkTile
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, TileAfterTile, TileSchedule, Walk
from ptxdsl.layout.number import Computed, Number
from ptxdsl.schedule import ClusterRaster, PersistentScheduler, Serpentine, strip_width
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.value import Var
from ptxdsl.types import Type

MOST_ITEMS = 1 << 31


@dataclass(frozen=True)
class Persistent(TileSchedule):
    """The resident blocks compute tile after tile."""

    ahead = True
    scheduler: PersistentScheduler

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

    def walk(self, context: KernelContext) -> Walk:
        fields, raster = context.fields, self.scheduler.raster
        along = raster if raster in ("m", "n") else fields.along_m == 1
        clusters = fields.clusters_m, fields.clusters_n
        return ClusterWalk(context, ClusterRaster(self.scheduler.cluster, along, fields.log, clusters))


@dataclass(frozen=True)
class Strips(TileSchedule):
    """As few persistent blocks as need no more waves than all resident ones: others would only share memory and power
    in the last wave. Tiles are in the order of a Serpentine, whose strip width minimises reads."""

    ahead = True
    width: int = 0  # tiles of a strip along M; 0 for the number that minimises reads

    def general(self) -> TileSchedule:
        return Strips()

    def fields(self) -> dict[str, Type]:
        return dict.fromkeys(("width",), u32)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        (m, n, _), batches = problem.shape, 1 if problem.batches is None else problem.batches
        tiled = ceil_div(m, tile[0]), ceil_div(n, tile[1])
        tiles = max(1, prod(tiled) * batches)
        if tiles > MOST_ITEMS:
            raise ScheduleError(f"{tiles} tiles are more than 2**31", help="take larger tiles, or compute parts")
        blocks = ceil_div(tiles, ceil_div(tiles, max(1, resident())))
        return Plan((blocks, 1, 1), {"width": self.width or strip_width(blocks, tiled, tile)})

    def walk(self, context: KernelContext) -> Walk:
        return PersistentWalk(context, Serpentine(context.products.tiles, context.fields.width))


class RasterOfTiles(Protocol):
    """An order of the tiles of a problem: `items` of them, with those out of bounds."""

    @property
    def items(self) -> Computed: ...

    def tile(self, item: Number) -> Tile: ...


class PersistentWalk(TileAfterTile):
    """Block b of G computes the work items b, b + G, b + 2G, …"""

    def __init__(self, context: KernelContext, raster: RasterOfTiles) -> None:
        self.ahead, self.products, self.raster, self.of_batch = context.ahead, context.products, raster, raster.items
        count = self.products.count
        self.items = self.of_batch * (1 if count is None else count)
        self.item = pd.var(u32, pd.ctaid.x)
        self.known: list[Var] = []  # row, column and batch of the item, if located in advance

    def located_by(self, who: Scalar) -> Self:
        self.known = [pd.var(u32) for _ in range(2 if self.products.count is None else 3)]
        self._find(who & self.has_tile())
        return self

    def has_tile(self) -> Scalar:
        return self.item < self.items

    def work(self) -> WorkTile:
        if not self.known:
            batch, tile = self._located()
            return self.products.work(tile, batch)
        row, column, *batches = (number.value for number in self.known)
        return self.products.work((row, column), batches[0] if batches else 0)

    def _find(self, where: Scalar) -> None:
        """Locate the current item in the threads of a predicate."""
        with pd.if_(where):
            batch, (row, column) = self._located()
            for known, number in zip(self.known, (row, column, batch), strict=False):
                known.set(number)

    def _located(self) -> tuple[Index, Tile]:
        """Return the batch and the tile of the current item, which may be out of bounds."""
        batch = 0 if self.products.count is None else self.item // self.of_batch
        return batch, self.raster.tile(self.item - batch * self.of_batch)

    def advance(self) -> None:
        self.item += pd.nctaid.x
        self.seek()
        if self.known:
            self._find(self.has_tile())

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        yield OutputTile(work, accumulators, is_last=self._is_done if self.ahead else None)

    def _is_done(self) -> Scalar:
        """Return whether this block has no more tiles, after it has advanced."""
        return ~self.has_tile()


class ClusterWalk(PersistentWalk):
    """The walk over items of which some are out of bounds: they are skipped."""

    def located_by(self, who: Scalar) -> Self:
        """Return this walk: its tiles are located on demand."""
        return self

    def seek(self) -> None:
        with pd.while_(lambda: self.has_tile() & ~self.products.has(self._located()[1])):
            self.item += pd.nctaid.x
