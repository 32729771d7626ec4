"""The blocks of a cluster share the K of one output tile: their sums meet in the shared memory of each of them.

Each block leaves its sums in the memory of its ring, which nobody fills or reads any more. When all have done so, it
adds up a share of the tile, the parts in the order of K, and stores it: results never change from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ptxdsl as pd
from ptxdsl.kernels.store.sums import Sums
from ptxdsl.kernels.tiles.one_tile import leave_without, located
from ptxdsl.kernels.tiles.partial_sums import PartialSums
from ptxdsl.kernels.tiles.product import Part, Work
from ptxdsl.kernels.tiles.schedule import Extents, Plan, ProblemShape, Scene, Start, TileSchedule, Walk
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k
from ptxdsl.trace.memory import PointerValue

MOST_BLOCKS = 8  # of a cluster, on every GPU that has them


@dataclass(frozen=True)
class ClusterSplitK(TileSchedule):
    """A cluster of `slices` blocks for each tile, in the order of a threadblock swizzle; z of the grid is the slice."""

    order: ThreadblockSwizzle
    slices: int

    @property
    def cluster(self) -> tuple[int, int, int]:
        """The slices of a tile."""
        return 1, 1, self.slices

    def plan(self, problem: ProblemShape, tile: Extents, resident: object) -> Plan:
        return Plan(self.order.grid_shape(self.order.tiled_shape(problem.shape, tile, self.slices)))

    def walk(self, scene: Scene) -> Walk:
        return ClusterSplitKWalk(self, scene)


class ClusterSplitKWalk(Walk):
    """A slice of the K of a tile, and a share of the tile: each `slices`-th group of a warp's sums."""

    def __init__(self, schedule: ClusterSplitK, scene: Scene) -> None:
        self.order, self.slices, self.scene = schedule.order, schedule.slices, scene
        self.memory = scene.scratch if scene.ring is None else scene.ring

    def tiles(self, start: Start) -> Iterator[Work]:
        products = self.scene.products
        tile, self.slice, slices = located(self.order, products)
        leave_without(products, tile, self.slice, slices)
        k = slice_of_k(self.slice, self.slices, products.product.k, products.extents[2])
        work = products.work(tile, k=k)
        start(work)
        yield work

    def complete(self, work: Work, sums: Sums) -> Iterator[Part]:
        layout, memory = sums.layout, self.memory.bitcast(sums.layout.type)
        layout.meet()  # all have read the ring
        PartialSums(layout, memory).store(sums, 0)
        _meet_in_cluster()
        warps = layout.warps[0] * layout.warps[1]
        for piece in pd.range(self.slice + self.slices * pd.warpid, warps * layout.groups, self.slices * warps):
            group, warp = piece // warps, piece % warps
            rows = Sums(layout, groups=1)
            for rank in range(self.slices):
                PartialSums(layout, _of_block(memory, rank), warp * layout.lanes + pd.laneid).add(rows, 0, group)
            yield Part(work, rows, group, warp)
        _meet_in_cluster()  # no block ends while others read its sums


def _of_block(memory: PointerValue, rank: int) -> PointerValue:
    """The same shared memory of a block of the cluster."""
    address = pd.ptx.mapa.shared__cluster.u32(memory, rank)
    return pd.pointer(address, memory.element, "shared::cluster")


def _meet_in_cluster() -> None:
    """Until all threads have come that have not ended: those that hold the sums of the blocks of a cluster."""
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()
