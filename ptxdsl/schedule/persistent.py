"""Persistent schedules: one resident wave of blocks, each of which computes several tiles.

Block b of G computes the work items b, b + G, b + 2G, … . A work item is a tile, or an out-of-bounds tile from rounding
up to whole clusters and strips, which a block must skip.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import Cell, picture_html
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

MULTIPROCESSORS_OF_GPC = 18  # maximum multiprocessors that one cluster can use (Hopper)
SWIZZLES = (1, 2, 4, 8)


class ClusterRaster(NamedTuple):
    """The work items of one problem: clusters of (m, n) tiles, in strips of 2**log clusters.

    `clusters` is the number of clusters along m and n, rounded up to whole strips. `along` is the axis of a strip, "m"
    or "n". On the host all fields are ints; in a kernel `log` and `clusters` may be registers, and `along` a predicate
    that is true for m.
    """

    cluster: tuple[int, int]
    along: Computed
    log: Computed
    clusters: tuple[Computed, Computed]

    @property
    def items(self) -> Computed:
        return self.clusters[0] * self.clusters[1] * (self.cluster[0] * self.cluster[1])

    def tile(self, item: Number) -> tuple[Computed, Computed]:
        """Return the (m, n) of a work item. The tiles of a cluster are adjacent, across the strip first."""
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
    """The static tile scheduler of sm_90: the order in which persistent blocks compute the tiles of a problem.

    `cluster` is in tiles along m and n. Strips are up to `max_swizzle` clusters wide, limited by the size of the
    problem. `raster` is the axis of a strip, "m" or "n"; "heuristic" uses the shorter one.
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
        """Return the schedule of one problem (M, N, K), or of `batches` problems of this size.

        `max_active_clusters` is the driver's limit of resident clusters; 0 estimates it from `multiprocessors`.
        """
        m, n, _ = gemm_shape(problem)
        (batches,) = sizes((batches,), "the problem", ("batches",), least=1)
        tile_m, tile_n, *_ = tile_sizes(tile)
        tiled = countable(TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), batches))
        raster = self.cluster_raster(tiled.m, tiled.n)
        count = self.resident_blocks(multiprocessors, max_active_clusters)
        return PersistentPlan(raster, tiled, self._grid(raster.along, min(count, raster.items * batches)))

    def cluster_raster(self, tiles_m: int, tiles_n: int) -> ClusterRaster:
        """Return the work items of one problem of `tiles_m` by `tiles_n` tiles."""
        blocks = [_round_up(t, c) for t, c in zip((tiles_m, tiles_n), self.cluster, strict=True)]
        log = max((s for s, least in STRIPS if self.max_swizzle >= 1 << s and min(blocks) >= least), default=0)
        clusters = [_round_up(b, c << log) // c for b, c in zip(blocks, self.cluster, strict=True)]
        along = self.raster if self.raster != "heuristic" else "m" if blocks[1] > blocks[0] else "n"
        return ClusterRaster(self.cluster, along, log, (clusters[0], clusters[1]))

    def resident_blocks(self, multiprocessors: int, max_active_clusters: int = 0) -> int:
        """Return the number of resident blocks, one per multiprocessor, in whole clusters.

        Raises ScheduleError if not even one cluster fits.
        """
        sizes((multiprocessors,), "the GPU", ("multiprocessors",), least=1)
        sizes((max_active_clusters,), "the GPU", ("max_active_clusters",))
        size = prod(self.cluster)
        estimate = self._estimate(multiprocessors, size, max_active_clusters)
        if estimate < size:
            within = min(multiprocessors, MULTIPROCESSORS_OF_GPC)
            raise ScheduleError(
                f"a cluster of {self.cluster[0]} x {self.cluster[1]} blocks needs {size} multiprocessors, but a "
                f"cluster can use at most {within} of {multiprocessors}",
                help="use a smaller cluster, or pass the number of resident clusters: max_active_clusters=…",
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
        """Return the grid: the cluster along one axis, and enough clusters for the work along the other."""
        m, n = self.cluster
        return (m, blocks // m, 1) if along == "n" else (blocks // n, n, 1)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _round_down(value: int, step: int) -> int:
    return value - value % step


def linear_block(block: BlockIndex, grid: tuple[Number, ...], along: str) -> Computed:
    """Return the first work item of a block, with the blocks of a cluster adjacent."""
    if not isinstance(block, tuple | list):
        return block
    x, y = block[:2]
    return x + y * grid[0] if along == "n" else x * grid[1] + y


@dataclass(frozen=True, eq=False, repr=False)
class ItemMap(TileMap):
    """The work items of a persistent schedule; a cell also names the block that computes it.

    `along` is that of the raster.
    """

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
    """The schedule of one problem on a grid of persistent blocks."""

    raster: ClusterRaster
    tiled: TiledShape
    grid: tuple[int, int, int]

    @property
    def items(self) -> int:
        """The number of work items, including out-of-bounds tiles."""
        return int(self.raster.items * self.tiled.k)

    def tile(self, item: Number) -> TileOffset:
        """Return the (m, n, batch) of a work item."""
        batch, within = _divide(item, self.raster.items)
        return TileOffset(*self.raster.tile(within), batch)

    def tiles(self, block: int | tuple[int, ...]) -> list[TileOffset]:
        """Return the tiles that a block computes, in order; `block` is its linear index or its (x, y)."""
        check_position(block, self.grid)
        first = linear_block(block, self.grid, self.raster.along)
        tiles = (self.tile(item) for item in range(first, self.items, prod(self.grid)))
        return [tile for tile in tiles if all(t < size for t, size in zip(tile, self.tiled, strict=True))]

    def _repr_html_(self) -> str:
        return picture_html(lambda: self.map().to_svg())

    def map(self) -> TileMap:
        offsets = np.stack(self.tile(np.arange(self.items)), axis=1)
        return ItemMap("persistent", self.tiled, self.grid, offsets, "batch", self.raster.along)

    def coverage(self) -> Coverage:
        """Return the coverage as a swizzle does; a work item counts as a block."""
        return self.map().coverage()


@dataclass(frozen=True)
class GroupScheduler(PersistentScheduler):
    """The group scheduler of sm_90: persistent blocks that compute problems of different sizes one after another.

    The strip width is chosen for each problem. Work items include the rounding to whole clusters and strips, so that no
    tile of a problem is missed.
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
        """Return the schedule of problems (M, N, K)."""
        if self.raster == "heuristic":
            raise ScheduleError(
                "a group of problems needs one raster for all problems", help='use raster="m" or raster="n"'
            )
        tile_m, tile_n, *_ = tile_sizes(tile)
        shapes = [gemm_shape(problem) for problem in problems]
        tiled = [TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), 1) for m, n, _ in shapes]
        rasters = [self.cluster_raster(m, n) for m, n, _ in tiled]
        ends = list(accumulate(int(raster.items) for raster in rasters))
        count = min(self.resident_blocks(multiprocessors, max_active_clusters), ends[-1] if ends else 0)
        return GroupPlan(tuple(rasters), tuple(tiled), tuple(ends), self._grid(self.raster, count))


class GroupTile(NamedTuple):
    """A tile of a group: its problem, and its index along m and n."""

    problem: int
    m: int
    n: int


@dataclass(frozen=True)
class GroupPlan:
    """The schedule of several problems on one grid; `ends` holds the end of each problem's work items."""

    rasters: tuple[ClusterRaster, ...]
    tiled: tuple[TiledShape, ...]
    ends: tuple[int, ...]
    grid: tuple[int, int, int]

    @property
    def items(self) -> int:
        return self.ends[-1] if self.ends else 0

    def tiles(self, block: int | tuple[int, ...]) -> list[GroupTile]:
        """Return the tiles that a block computes, in order; `block` is its linear index or its (x, y)."""
        if not self.items:
            return []
        check_position(block, self.grid)
        first = linear_block(block, self.grid, self.rasters[0].along)
        tiles = map(self.tile, range(first, self.items, prod(self.grid)))
        return [t for t in tiles if t.m < self.tiled[t.problem].m and t.n < self.tiled[t.problem].n]

    def tile(self, item: int) -> GroupTile:
        """Return the tile of a work item, which may be out of bounds of its problem."""
        problem = int(np.searchsorted(self.ends, item, side="right"))
        start = self.ends[problem - 1] if problem else 0
        return GroupTile(problem, *self.rasters[problem].tile(item - start))
