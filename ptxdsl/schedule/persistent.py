"""Persistent schedules: as many blocks as fit at the same time, each of which computes several tiles.

Block b of G takes the work items b, b + G, b + 2G, … . An item is a tile, or one outside of the problem that only
rounding to whole clusters and strips has made, and that must be passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.grid import Cell
from ptxdsl.layout.number import BlockIndex, Computed, Extents, Number
from ptxdsl.schedule.arithmetic import all_ints, ceil_div, constant_like, counted, is_int, low_bits, where
from ptxdsl.schedule.problems import (
    ProblemLike,
    Problems,
    TiledShape,
    check_position,
    countable,
    gemm_shape,
    sizes,
    tile_sizes,
)
from ptxdsl.schedule.swizzle import STRIPS, TileOffset
from ptxdsl.schedule.tile_map import COLOURS, Coverage, TileMap

MULTIPROCESSORS_OF_GPC = 18  # the most that a cluster's blocks can share (Hopper)
SWIZZLES = (1, 2, 4, 8)


class ClusterRaster(NamedTuple):
    """The work items of one problem: clusters of (m, n) tiles, in strips 2**log clusters wide.

    `clusters` is how many there are along m and n, rounded to whole strips. `along` is the axis in which a strip runs,
    "m" or "n". A NamedTuple of ints on the host; in a kernel `log` and `clusters` may be registers, and `along` a
    predicate that holds where it is m.
    """

    cluster: tuple[int, int]
    along: Computed
    log: Computed
    clusters: tuple[Computed, Computed]

    @property
    def items(self) -> Computed:
        return self.clusters[0] * self.clusters[1] * (self.cluster[0] * self.cluster[1])

    def tile(self, item: Number) -> tuple[Computed, Computed]:
        """The (m, n) of a work item. The tiles of a cluster are neighbours, across the strip first."""
        down = self.along == "m" if isinstance(self.along, str) else self.along
        across, ahead = (_either(down, *pair, like=item) for pair in (self.cluster[::-1], self.cluster))
        row, in_row = _divide(item, across)
        cluster, in_cluster = _divide(row, ahead)
        strip, position = _divide(cluster >> self.log, _either(down, *self.clusters, like=item))
        wide = ((strip << self.log) + low_bits(cluster, self.log)) * across + in_row
        far = position * ahead + in_cluster
        return where(down, far, wide), where(down, wide, far)


def _either(condition: Number, a: Number, b: Number, like: Number) -> Computed:
    if not all_ints((a, b)):
        return where(condition, a, b)
    return a if a == b else where(condition, constant_like(like, a), b)


def _divide(value: Number, divisor: Number) -> tuple[Computed, Computed]:
    quotient = value // divisor
    return quotient, value - quotient * divisor


@dataclass(frozen=True)
class PersistentScheduler:
    """How persistent blocks go through the tiles of a problem: the static scheduler of sm_90.

    `cluster` is in tiles along m and n. Strips are up to `max_swizzle` clusters wide, as far as the problem is.
    `raster` is the axis in which a strip runs, "m" or "n"; "heuristic" takes the shorter one.
    """

    cluster: tuple[int, int] = (1, 1)
    max_swizzle: int = 1
    raster: str = "heuristic"

    def __post_init__(self) -> None:
        sizes(self.cluster, "the cluster", ("M", "N"), least=1)
        if not is_int(self.max_swizzle) or self.max_swizzle not in SWIZZLES:
            raise ScheduleError(
                f"max_swizzle is {self.max_swizzle!r}", help=f"take one of {', '.join(map(str, SWIZZLES))}"
            )
        if not isinstance(self.raster, str) or self.raster not in ("m", "n", "heuristic"):
            raise ScheduleError(f"raster is {self.raster!r}", help='take "m", "n" or "heuristic"')

    def plan(
        self,
        problem: ProblemLike,
        tile: Extents,
        multiprocessors: int,
        *,
        batches: int = 1,
        max_active_clusters: int = 0,
    ) -> PersistentPlan:
        """The schedule of one problem (M, N, K), or of `batches` of it.

        `max_active_clusters` is what the driver says can run at the same time; 0 estimates it from `multiprocessors`.
        """
        m, n, _ = gemm_shape(problem)
        (batches,) = sizes((batches,), "the problem", ("batches",), least=1)
        tile_m, tile_n, *_ = tile_sizes(tile)
        tiled = countable(TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), batches))
        raster = self.cluster_raster(tiled.m, tiled.n)
        count = self.resident_blocks(multiprocessors, max_active_clusters)
        return PersistentPlan(raster, tiled, self._grid(raster.along, min(count, raster.items * batches)))

    def cluster_raster(self, tiles_m: int, tiles_n: int) -> ClusterRaster:
        """The work items of one problem of so many tiles."""
        blocks = [_round_up(t, c) for t, c in zip((tiles_m, tiles_n), self.cluster, strict=True)]
        log = max((s for s, least in STRIPS if self.max_swizzle >= 1 << s and min(blocks) >= least), default=0)
        clusters = [_round_up(b, c << log) // c for b, c in zip(blocks, self.cluster, strict=True)]
        along = self.raster if self.raster != "heuristic" else "m" if blocks[1] > blocks[0] else "n"
        return ClusterRaster(self.cluster, along, log, (clusters[0], clusters[1]))

    def resident_blocks(self, multiprocessors: int, max_active_clusters: int = 0) -> int:
        """How many blocks run at the same time, one a multiprocessor, in whole clusters.

        Raises ScheduleError where not even one cluster does.
        """
        sizes((multiprocessors,), "the GPU", ("multiprocessors",), least=1)
        sizes((max_active_clusters,), "the GPU", ("max_active_clusters",))
        size = prod(self.cluster)
        estimate = self._estimate(multiprocessors, size, max_active_clusters)
        if estimate < size:
            within = min(multiprocessors, MULTIPROCESSORS_OF_GPC)
            raise ScheduleError(
                f"a cluster of {self.cluster[0]} x {self.cluster[1]} blocks runs on {size} multiprocessors at a time, "
                f"and at most {within} of {multiprocessors} share one",
                help="take a smaller cluster, or say how many clusters run: max_active_clusters=…",
            )
        return estimate

    def _estimate(self, multiprocessors: int, size: int, max_active_clusters: int) -> int:
        if max_active_clusters:
            return max_active_clusters * size
        if size == 1:
            return multiprocessors
        whole, rest = divmod(multiprocessors, MULTIPROCESSORS_OF_GPC)
        if not whole:
            whole, rest = 1, 0
        in_gpcs = whole * _round_down(MULTIPROCESSORS_OF_GPC, size) + _round_down(rest, size)
        return min(multiprocessors, in_gpcs)

    def _grid(self, along: str, blocks: int) -> tuple[int, int, int]:
        """The cluster lies across one axis of the grid; the other one holds as many as there is work for."""
        m, n = self.cluster
        return (m, blocks // m, 1) if along == "n" else (blocks // n, n, 1)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _round_down(value: int, step: int) -> int:
    return value - value % step


def linear_block(block: BlockIndex, grid: tuple[Number, ...], along: str) -> Computed:
    """The first work item of a block: its number, where the blocks of a cluster are neighbours."""
    if not isinstance(block, tuple | list):
        return block
    x, y = block[:2]
    return x + y * grid[0] if along == "n" else x * grid[1] + y


@dataclass(frozen=True, eq=False, repr=False)
class ItemMap(TileMap):
    """Work items instead of blocks, several of which the same block computes: a cell says which. `along` as of the
    raster."""

    along: str = "n"

    def _blocks(self, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        first = numbers % prod(self.grid)
        x, y = first % self.grid[0], first // self.grid[0]
        if self.along == "m":
            x, y = first // self.grid[1], first % self.grid[1]
        return x, y, np.zeros_like(first)

    def _counted_as(self, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        return numbers, np.zeros_like(numbers), np.zeros_like(numbers)

    def _without_tile(self, idle: int) -> str:
        return f"{counted(len(self.offsets), 'work item')}, {idle} without a tile"

    def _cell(self, number: int) -> Cell:
        return Cell((str(number), f"by {self._index(number)}"), number * COLOURS // len(self.offsets), joint=" ")


@dataclass(frozen=True)
class PersistentPlan:
    """One problem on a grid of persistent blocks."""

    raster: ClusterRaster
    tiled: TiledShape
    grid: tuple[int, int, int]

    @property
    def items(self) -> int:
        """All work items, with those that have no tile."""
        return int(self.raster.items * self.tiled.k)

    def tile(self, item: Number) -> TileOffset:
        """The (m, n, batch) of a work item."""
        batch, within = _divide(item, self.raster.items)
        return TileOffset(*self.raster.tile(within), batch)

    def tiles(self, block: int | tuple[int, ...]) -> list[TileOffset]:
        """What a block computes, in order; `block` is its number or its (x, y)."""
        check_position(block, self.grid)
        first = linear_block(block, self.grid, self.raster.along)
        tiles = (self.tile(item) for item in range(first, self.items, prod(self.grid)))
        return [tile for tile in tiles if all(t < size for t, size in zip(tile, self.tiled, strict=True))]

    def map(self) -> TileMap:
        offsets = np.stack(self.tile(np.arange(self.items)), axis=1)
        return ItemMap("persistent", self.tiled, self.grid, offsets, "batch", self.raster.along)

    def coverage(self) -> Coverage:
        """As of a swizzle; a work item counts as a block."""
        return self.map().coverage()


@dataclass(frozen=True)
class GroupScheduler(PersistentScheduler):
    """Persistent blocks on problems of different sizes, one after another: the group scheduler of sm_90.

    Each problem has strips as wide as it is worth. The items are counted as the blocks walk them, strips and all, so
    that no problem loses tiles.
    """

    raster: str = "m"

    def group(
        self,
        problems: Problems,
        tile: Extents,
        multiprocessors: int,
        *,
        max_active_clusters: int = 0,
    ) -> GroupPlan:
        """The schedule of problems (M, N, K)."""
        if self.raster == "heuristic":
            raise ScheduleError("a group of problems has one raster for all", help='take raster="m" or raster="n"')
        tile_m, tile_n, *_ = tile_sizes(tile)
        shapes = [gemm_shape(problem) for problem in problems]
        tiled = [TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), 1) for m, n, _ in shapes]
        rasters = [self.cluster_raster(m, n) for m, n, _ in tiled]
        ends = list(accumulate(int(raster.items) for raster in rasters))
        count = min(self.resident_blocks(multiprocessors, max_active_clusters), ends[-1] if ends else 0)
        return GroupPlan(tuple(rasters), tuple(tiled), tuple(ends), self._grid(self.raster, count))


class GroupTile(NamedTuple):
    """Which problem of a group, and which tile of it along m and n."""

    problem: int
    m: int
    n: int


@dataclass(frozen=True)
class GroupPlan:
    """Several problems on one grid; `ends` is where the work items of each problem end."""

    rasters: tuple[ClusterRaster, ...]
    tiled: tuple[TiledShape, ...]
    ends: tuple[int, ...]
    grid: tuple[int, int, int]

    @property
    def items(self) -> int:
        return self.ends[-1] if self.ends else 0

    def tiles(self, block: int | tuple[int, ...]) -> list[GroupTile]:
        """What a block computes, in order; `block` is its number or its (x, y)."""
        if not self.items:
            return []
        check_position(block, self.grid)
        first = linear_block(block, self.grid, self.rasters[0].along)
        tiles = map(self.tile, range(first, self.items, prod(self.grid)))
        return [t for t in tiles if t.m < self.tiled[t.problem].m and t.n < self.tiled[t.problem].n]

    def tile(self, item: int) -> GroupTile:
        """The tile of a work item, which may lie outside of its problem."""
        problem = int(np.searchsorted(self.ends, item, side="right"))
        start = self.ends[problem - 1] if problem else 0
        return GroupTile(problem, *self.rasters[problem].tile(item - start))
