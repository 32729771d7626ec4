"""Stream-K: whole tiles for most blocks, and the remaining K iterations distributed evenly to the blocks of one more
wave.

A data-parallel block computes whole tiles. The stream-K blocks share the K iterations of the first tiles, counted
consecutively: each computes an equal range, so that several blocks (the peers) may compute parts of one tile and reduce
them through a workspace. If a tile has many peers, separate reduction blocks reduce one fragment of it each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapreplace
from typing import NamedTuple

import numpy as np

from ptxdsl.cached import cached_property
from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import picture_html
from ptxdsl.layout.number import Computed, Extents, Number
from ptxdsl.schedule.arithmetic import all_ints, ceil_div, counted, maximum, minimum, where
from ptxdsl.schedule.problems import (
    ProblemLike,
    TiledShape,
    check_block,
    countable,
    gemm_shape,
    sizes,
    slices_of,
    tile_sizes,
)
from ptxdsl.schedule.swizzle import launchable, xyz
from ptxdsl.schedule.timeline import Span, Timeline, check_rows

COHORT_M, COHORT_N = 8, 4
COHORT = COHORT_M * COHORT_N
LEAST_COHORT_EFFICIENCY = 0.85  # minimum share of data-parallel blocks with a tile when tiles are in cohorts
LEAST_ITERATIONS = 2  # K iterations of a stream-K block
# Costs in K iterations: a wave of blocks, a peer of a tile, and the skew of peers that are out of step
WAVE_COST, PEER_COST, SKEW_COST = 2.0, 2.0, 0.02


class TileWork(NamedTuple):
    """A tile along m and n, and the range of its K iterations that a block computes."""

    m: int
    n: int
    k_begin: int
    k_end: int


@dataclass(frozen=True)
class StreamKThreadblockSwizzle:
    """Stream-K on a GPU of `multiprocessors`, of which `available` are free for the kernel (default: all).

    `occupancy` is the number of resident blocks per multiprocessor, `fragments` the number of fragments of a tile that
    are reduced separately.
    """

    multiprocessors: int = 132
    occupancy: int = 1
    available: int | None = None
    fragments: int = 8
    name = "stream-k"

    def __post_init__(self) -> None:
        names = ("multiprocessors", "occupancy", "fragments")
        sizes((self.multiprocessors, self.occupancy, self.fragments), type(self).__name__, names, least=1)
        if self.available is not None:
            sizes((self.available,), type(self).__name__, ("available",), least=1)
            if all_ints((self.available, self.multiprocessors)) and self.available > self.multiprocessors:
                raise ScheduleError(
                    f"{self.available} multiprocessors are available, but the GPU has {self.multiprocessors}",
                    help="leave `available` out if all multiprocessors are available",
                )

    @property
    def free(self) -> int:
        return self.available or self.multiprocessors

    @property
    def resident_blocks(self) -> int:
        """The number of resident blocks."""
        return self.free * self.occupancy

    def tiled_shape(
        self,
        problem: ProblemLike,
        tile: Extents,
        split_k: Number | None = None,
        *,
        op: str | None = None,
        batches: int = 1,
    ) -> TiledShape:
        """Return the number of tiles and batches of a problem. The plan splits K, not this method."""
        m, n, _ = gemm_shape(problem, op)
        (batches,) = sizes((batches,), "the problem", ("batches",), least=1)
        tile_m, tile_n, *_ = tile_sizes(tile)
        return countable(TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), batches))

    def plan(
        self,
        problem: ProblemLike,
        tile: Extents,
        split_k: Number | None = None,
        *,
        op: str | None = None,
        batches: int = 1,
    ) -> StreamKPlan:
        """Return the plan for a problem (M, N, K) and a tile (M, N, K).

        split_k > 1 splits each tile into that number of parts instead. Batched problems are not split, since their
        tiles fill the GPU. Raises ScheduleError if more blocks would wait for each other than can be resident.
        """
        tiled = self.tiled_shape(problem, tile, op=op, batches=batches)
        tile_k = sizes(tile, "the tile", ("M", "N", "K"), least=1)[2]
        iterations = ceil_div(gemm_shape(problem, op).k, tile_k)
        tiles, slices = tiled.m * tiled.n, slices_of(problem, split_k)
        if batches > 1 or not tiles * iterations:
            whole, blocks = tiles, 0
        elif slices > 1:
            whole, blocks = 0, min(tiles * slices, tiles * iterations)
            self._check_resident(blocks, slices)
        elif self.free > 1:
            whole, blocks = self._divide(tiles, iterations)
        else:
            whole, blocks = tiles, 0
        plan = StreamKPlan(self, tiled, iterations, tiles - whole, blocks, dp_blocks=whole)
        return plan._arranged()

    def grid_shape(self, plan: StreamKPlan) -> tuple[int, int, int]:
        if not isinstance(plan, StreamKPlan):
            raise ScheduleError(
                f"{self.name}: the grid depends on K, but {plan} is only the number of tiles",
                help="pass the plan: swizzle.grid_shape(swizzle.plan(problem, tile))",
            )
        return plan.grid

    def log_tile(self, tiled: Extents) -> int:
        """Return 0: tiles are numbered row by row, column by column or by cohorts."""
        return 0

    def tile_offset(
        self, tile: Number, log_tile: Number | None = None, tiled_shape: Extents | None = None
    ) -> tuple[Computed, Computed]:
        """Return the (m, n) of a tile index; `tiled_shape` is the plan."""
        if not isinstance(tiled_shape, StreamKPlan):
            raise ScheduleError(
                f"{self.name}: the order of the tiles is part of the plan",
                help="pass tiled_shape=swizzle.plan(problem, tile)",
            )
        return tiled_shape.tile_offset(tile)

    def coverage(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> StreamKCoverage:
        return self.plan(problem, tile, split_k, op=op).coverage()

    def _check_resident(self, blocks: int, slices: int) -> None:
        if blocks > self.resident_blocks:
            few = f"split K into fewer than {slices} parts, " if slices > 2 else ""
            raise ScheduleError(
                f"{self.name}: {blocks} blocks would wait for each other's parts, but only {self.resident_blocks} "
                f"can be resident ({self.free} multiprocessors, {self.occupancy} blocks on each)",
                help=f"leave split_k out, {few}or use SplitKIdentityThreadblockSwizzle, whose blocks wait only for "
                "blocks that started before them",
            )

    def _divide(self, tiles: int, iterations: int) -> tuple[int, int]:
        """Return (data-parallel tiles, stream-K blocks)."""
        waves, rest = divmod(tiles, self.free)
        if not rest:
            return tiles, 0
        if waves < self.occupancy or (self.occupancy > 1 and waves % self.occupancy == self.occupancy - 1):
            occupancy = self.occupancy - waves if waves < self.occupancy else 1
            saved, blocks = self._best_blocks(rest, iterations, occupancy, least=min(self.free, rest + 1))
            if saved >= 0:
                return tiles - rest, blocks
            if waves < self.occupancy:
                return tiles, 0
        occupancy = self.occupancy - (waves - 1) % self.occupancy
        shared = rest + self.free
        saved, blocks = self._best_blocks(shared, iterations, occupancy, least=self.free)
        return (tiles - shared, blocks) if saved >= 0 else (tiles, 0)

    def _best_blocks(self, tiles: int, iterations: int, occupancy: int, least: int) -> tuple[int, int]:
        """Return (iterations saved compared with whole tiles, stream-K blocks) for the number of blocks that saves the
        most.
        """
        all_iterations = tiles * iterations
        most = min(self.free * occupancy, all_iterations // LEAST_ITERATIONS)
        whole = iterations * ceil_div(tiles, self.free)
        tried = ((whole - self._cost(blocks, tiles, all_iterations), blocks) for blocks in range(least, most + 1))
        return max(tried, default=(-1, 0))

    def _cost(self, blocks: int, tiles: int, iterations: int) -> int:
        """Return the cost of the stream-K wave in K iterations, including the reduction."""
        waves = ceil_div(blocks, self.free)
        length = ceil_div(iterations, blocks) * waves
        aligned = blocks % tiles == 0
        peers = blocks // tiles if aligned else ceil_div(blocks, tiles) + 1
        skew = 0.0 if aligned else SKEW_COST * peers * length
        return length + int(WAVE_COST * waves + skew + PEER_COST * peers)


class Share(NamedTuple):
    """The tiles of a block: `count` tiles starting at `tile`.

    For stream-K tiles, `begin` and `end` are the range of K iterations, counted over all stream-K tiles.
    """

    is_stream_k: Computed
    tile: Computed
    count: Computed
    begin: Computed
    end: Computed


class StreamKNumbers(NamedTuple):
    """A plan as numbers, and the work of each block computed from them; in a kernel the numbers are u32 registers.

    `regions` is 1 or more; `interleaved_blocks` is 0 if blocks are not interleaved; `cohorts` is 0 or 1.
    """

    tiles_m: Computed
    tiles_n: Computed
    iterations: Computed
    sk_tiles: Computed
    sk_blocks: Computed
    regions: Computed
    blocks_per_region: Computed
    iterations_per_region: Computed
    iterations_per_block: Computed
    big_blocks_per_region: Computed
    interleaved_blocks: Computed
    free: Computed
    first_dp_block: Computed
    first_wave_tiles: Computed
    first_reduction_block: Computed
    active_blocks: Computed
    fragments: Computed
    cohorts: Computed
    cohort_columns: Computed

    def tile_offset(self, tile: Number) -> tuple[Computed, Computed]:
        """Return the (m, n) of a tile index."""
        m, n = self._in_cohorts(tile)
        line, across = self._in_lines(tile)
        return where(self.cohorts == 1, m, line), where(self.cohorts == 1, n, across)

    def _in_cohorts(self, tile: Number) -> tuple[Computed, Computed]:
        cohort, position = tile // COHORT, tile % COHORT
        row = cohort // self.cohort_columns
        column = cohort - row * self.cohort_columns
        return row * COHORT_M + position // COHORT_N, column * COHORT_N + position % COHORT_N

    def _in_lines(self, tile: Number) -> tuple[Computed, Computed]:
        """Return the (m, n) of a tile index for tiles numbered along the shorter side."""
        width = minimum(self.tiles_m, self.tiles_n)
        line = tile // width
        across = tile - line * width
        upright = self.tiles_m < self.tiles_n
        return where(upright, across, line), where(upright, line, across)

    def mapped(self, block: Number) -> Computed:
        """Return the working index of a block of the grid."""
        turn = (block >> 1) + (block & 1) * self.free
        block = where(block < self.interleaved_blocks, turn, block)
        spread = block % self.regions * self.blocks_per_region + block // self.regions
        return where(block < self.sk_blocks, spread, block)

    def extent(self, block: Number) -> tuple[Computed, Computed]:
        """Return the first K iteration of a stream-K block, and the end, counted over all stream-K tiles."""
        region = block // self.blocks_per_region
        position = block - region * self.blocks_per_region
        big = self.big_blocks_per_region
        begin = region * self.iterations_per_region + position * self.iterations_per_block + minimum(position, big)
        return begin, begin + where(position < big, position * 0 + 1, position * 0) + self.iterations_per_block

    def block_of(self, iteration: Number) -> Computed:
        """Return the stream-K block that computes a K iteration, counted over all stream-K tiles."""
        region = iteration // self.iterations_per_region
        within = iteration - region * self.iterations_per_region
        each, big = self.iterations_per_block, self.big_blocks_per_region
        longer = big * (each + 1)
        position = where(within < longer, within // (each + 1), big + (maximum(within, longer) - longer) // each)
        return region * self.blocks_per_region + position

    def peers(self, tile: Number) -> tuple[Computed, Computed]:
        """Return the first and the last of the blocks that compute parts of a stream-K tile."""
        start = tile * self.iterations
        return self.block_of(start), self.block_of(start + (self.iterations - 1))

    def share(self, block: Number) -> Share:
        """Return the tiles of a stream-K or data-parallel block by its working index; other blocks have no tiles.

        A stream-K block computes its last tile first, because other blocks do not wait for the tile that it finishes
        first.
        """
        is_stream_k = block < self.sk_blocks
        begin, end = self.extent(where(is_stream_k, block, block * 0))
        of_tile = maximum(self.iterations, 1)
        first, last = begin // of_tile, (end - 1) // of_tile
        tile, count = self._whole_tiles(block)
        tile, count = where(is_stream_k, last, tile), where(is_stream_k, last - first + 1, count)
        return Share(is_stream_k, tile, count, begin, end)

    def _whole_tiles(self, block: Number) -> tuple[Computed, Computed]:
        """Return (the first tile, the number of tiles) of a data-parallel block; other blocks have 0 tiles."""
        none = block * 0
        is_one = (block >= self.first_dp_block) & (block < self.first_reduction_block)
        position = where(is_one, block - self.first_dp_block, none)
        later = position >= self.free
        tile = position + where(self.cohorts == 1, none, none + self.sk_tiles)
        tile = tile + where(later, (self.first_wave_tiles - 1) * self.free, none)
        return tile, where(is_one, where(later, none + 1, none + self.first_wave_tiles), none)

    def following(self, share: Share, tile: Number) -> Computed:
        """Return the block's next tile."""
        return where(share.is_stream_k, tile - 1, tile + self.free)

    def part(self, share: Share, tile: Number) -> tuple[Computed, Computed]:
        """Return the first K iteration of a tile that a block computes, and the end."""
        start = tile * self.iterations
        begin, end = maximum(share.begin, start) - start, minimum(share.end, start + self.iterations) - start
        return where(share.is_stream_k, begin, start * 0), where(share.is_stream_k, end, start * 0 + self.iterations)

    def has(self, share: Share, tile: Number) -> Computed:
        """True if the block computes this tile of its share; cohorts may include out-of-bounds and stream-K tiles."""
        m, n = self.tile_offset(tile)
        return share.is_stream_k | ((tile >= self.sk_tiles) & (m < self.tiles_m) & (n < self.tiles_n))

    def reduction(self, block: Number) -> tuple[Computed, Computed]:
        """Return the (tile, fragment) that a reduction block reduces, by its working index."""
        number = block - self.first_reduction_block
        tile = number // self.fragments
        return tile, number - tile * self.fragments


class StreamKCoverage(NamedTuple):
    """The (m, n, K iteration) computed, missing and computed more than once; and the blocks without work."""

    tiles: list[tuple[int, ...]]
    missing: list[tuple[int, ...]]
    repeated: list[tuple[int, ...]]
    no_op_blocks: list[int]


@dataclass(frozen=True)
class StreamKPlan:
    """The blocks in grid order: stream-K (padded to whole waves), data-parallel, reduction.

    `iterations` is the number of K iterations of a tile. The first `sk_tiles` tiles belong to the stream-K blocks.
    """

    swizzle: StreamKThreadblockSwizzle
    tiled: TiledShape
    iterations: int
    sk_tiles: int
    sk_blocks: int
    dp_blocks: int
    first_wave_tiles: int = 1  # tiles of each data-parallel block of the first wave
    cohorts: bool = False

    @property
    def tiles(self) -> int:
        return int(self.tiled.m * self.tiled.n)

    @property
    def dp_tiles(self) -> int:
        return self.tiles - self.sk_tiles

    @property
    def sk_waves(self) -> int:
        return -(-self.sk_blocks // self.swizzle.free)

    @property
    def reduction_blocks(self) -> int:
        """The number of reduction blocks: one per fragment of each stream-K tile if tiles have many peers and the GPU
        is not full.
        """
        apart = self.sk_waves < self.swizzle.occupancy and self.sk_blocks > 2 * self.sk_tiles
        return self.sk_tiles * self.swizzle.fragments if apart else 0

    @property
    def interleaved(self) -> bool:
        """True if the first two waves are interleaved, so that each multiprocessor gets a stream-K block."""
        swizzle = self.swizzle
        first = self.sk_waves * swizzle.free + self.reduction_blocks
        return swizzle.occupancy > 1 and swizzle.free == swizzle.multiprocessors and first > 2 * swizzle.free

    @property
    def first_dp_block(self) -> int:
        return self.sk_waves * self.swizzle.free

    @property
    def first_reduction_block(self) -> int:
        return self.first_dp_block + self.dp_blocks

    @property
    def active_blocks(self) -> int:
        return self.first_reduction_block + self.reduction_blocks

    @property
    def grid(self) -> tuple[int, int, int]:
        blocks = self.active_blocks
        if self.interleaved:
            blocks = max(blocks, 4 * self.swizzle.free)
        x, y, z = launchable(self.swizzle.name, (blocks, 1, self.tiled.k))
        return x, y, z

    @property
    def cohort_shape(self) -> tuple[int, int]:
        return -(-self.tiled.m // COHORT_M), -(-self.tiled.n // COHORT_N)

    def _arranged(self) -> StreamKPlan:
        """Return the plan with data-parallel tiles in cohorts if that pays, otherwise with whole groups of `occupancy`
        waves.
        """
        rows, columns = self.cohort_shape
        blocks = rows * columns * COHORT
        swizzle = self.swizzle
        many = self.dp_blocks >= 2 * swizzle.multiprocessors * swizzle.occupancy
        if many and self.dp_blocks / blocks > LEAST_COHORT_EFFICIENCY and self._sk_tiles_fill_cohorts():
            return replace(self, cohorts=True, dp_blocks=blocks)
        waves = -(-self.dp_tiles // swizzle.free)
        excess = (self.sk_waves + waves) % swizzle.occupancy
        if not self.sk_waves or 1 + excess > self.dp_tiles // swizzle.free:
            return self
        return replace(self, first_wave_tiles=1 + excess, dp_blocks=self.dp_blocks - excess * swizzle.free)

    def _sk_tiles_fill_cohorts(self) -> bool:
        """True if the cohorts of the stream-K tiles are within the problem."""
        if not self.sk_tiles:
            return True
        columns = self.cohort_shape[1]
        row, column = divmod((self.sk_tiles - 1) // COHORT, columns)
        last = columns - 1 if row else column
        return (row + 1) * COHORT_M < self.tiled.m and (last + 1) * COHORT_N < self.tiled.n

    @cached_property
    def numbers(self) -> StreamKNumbers:
        """The plan as numbers for its kernel.

        A region is a range of K iterations that no stream-K block crosses: one tile if all tiles have the same number
        of blocks. The first blocks of a region compute one more iteration than the others.
        """
        iterations, blocks = self.sk_tiles * self.iterations, max(1, self.sk_blocks)
        aligned = self.sk_blocks > self.sk_tiles and self.sk_blocks % self.sk_tiles == 0
        regions = self.sk_tiles if aligned else 1
        return StreamKNumbers(
            *(self.tiled.m, self.tiled.n, self.iterations, self.sk_tiles, self.sk_blocks, regions),
            *(max(1, self.sk_blocks // regions), max(1, iterations // regions), max(1, iterations // blocks)),
            iterations % blocks // regions,
            2 * self.swizzle.free if self.interleaved else 0,
            self.swizzle.free,
            *(self.first_dp_block, self.first_wave_tiles, self.first_reduction_block, self.active_blocks),
            *(self.swizzle.fragments, int(self.cohorts), self.cohort_shape[1]),
        )

    def tile_offset(self, tile: Number) -> tuple[Computed, Computed]:
        """Return the (m, n) of a tile index: an int, an array or a register."""
        return self.numbers.tile_offset(tile)

    def mapped(self, block: Number) -> Computed:
        """Return the working index of a block of the grid."""
        return self.numbers.mapped(block)

    def extent(self, block: Number) -> tuple[Computed, Computed]:
        """Return the first K iteration of a stream-K block, and the end, counted over all stream-K tiles."""
        if not self.sk_blocks:
            raise ScheduleError(
                f"{self.swizzle.name}: there are no stream-K blocks, since all {self.tiles} tiles are computed whole",
                help="check plan.sk_blocks first",
            )
        return self.numbers.extent(block)

    def role(self, block: int) -> str:
        """Return the role of a block of the grid: "sk", "dp", "reduction", or "idle"."""
        check_block(block, self.grid[0], "blocks")
        mapped = self.mapped(block)
        ends = (self.sk_blocks, self.first_dp_block, self.first_reduction_block, self.active_blocks)
        names = ("sk", "idle", "dp", "reduction", "idle")
        return names[sum(mapped >= end for end in ends)]

    def work(self, block: int | tuple[int, ...]) -> list[TileWork]:
        """Return the tiles of a block of the grid in order, with their K iterations; a reduction block has no tiles."""
        numbers, (x, _, _) = self.numbers, xyz(block)
        if self.role(x) not in ("sk", "dp"):
            return []
        share = numbers.share(self.mapped(x))
        tile, pieces = share.tile, []
        for _ in range(share.count):
            if numbers.has(share, tile):
                pieces.append(TileWork(*self.tile_offset(tile), *numbers.part(share, tile)))
            tile = numbers.following(share, tile)
        return pieces

    def peers(self, tile: int) -> range:
        """Return the stream-K blocks, by working index, that compute parts of a stream-K tile, in ascending order."""
        if not 0 <= tile < self.sk_tiles:
            return range(0)
        first, last = self.numbers.peers(tile)
        return range(first, last + 1)

    def reduction(self, block: int) -> tuple[Computed, Computed]:
        """Return the (tile, fragment) that a reduction block reduces."""
        return self.numbers.reduction(self.mapped(block))

    def coverage(self) -> StreamKCoverage:
        times = np.zeros((self.tiled.m, self.tiled.n, self.iterations), np.int32)
        idle = []
        for block in range(self.grid[0]):
            work = self.work(block)
            for m, n, begin, end in work:
                times[m, n, begin:end] += 1
            if not work and self.role(block) != "reduction":
                idle.append(block)
        done, missing, repeated = (
            list(map(tuple, np.argwhere(at).tolist())) for at in (times > 0, times == 0, times > 1)
        )
        return StreamKCoverage(done, missing, repeated, idle)

    def _repr_html_(self) -> str:
        return picture_html(self._svg)

    def _svg(self) -> str:
        check_rows(self.swizzle.resident_blocks, "slot", self.tiles)  # before the spans are created
        return self.timeline().to_svg()

    def timeline(self) -> Timeline:
        """Return a timeline of the resident slots over K iterations; each block starts in the first free slot."""
        slots: list[list[Span]] = [[] for _ in range(self.swizzle.resident_blocks)]
        loads = [(0, slot) for slot in range(len(slots))]
        for block in range(self.grid[0]):
            load, slot = loads[0]
            for m, n, begin, end in self.work(block):
                slots[slot].append(Span(end - begin, f"{m},{n}", m + n))
                load += end - begin
            heapreplace(loads, (load, slot))
        share = "share" if self.sk_blocks > 1 else "has"
        shared = f"{counted(self.sk_blocks, 'block')} {share} {counted(self.sk_tiles, 'tile')}"
        title = f"{self.swizzle.name}: {shared if self.sk_blocks else 'blocks share no tiles'}"
        return Timeline(title, tuple(map(tuple, slots)), "slot")
