"""Stream-K: whole tiles for most blocks, and the rest of the K-iterations dealt evenly to the blocks of one more wave.

A data-parallel block computes whole tiles. The stream-K blocks share a row of K-iterations, those of the first tiles:
each takes an equal length of it, so that a tile may be computed by several blocks (its peers), which add up their parts
through a workspace. A reduction block adds one fragment of a tile whose peers are many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapreplace
from typing import NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
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
from ptxdsl.schedule.timeline import Span, Timeline

COHORT_M, COHORT_N = 8, 4
COHORT = COHORT_M * COHORT_N
LEAST_COHORT_EFFICIENCY = 0.85  # of data-parallel blocks in cohorts: the others have no tile
LEAST_ITERATIONS = 2  # of a stream-K block
# What adding up costs, in K-iterations: a wave of blocks, a peer of a tile, and what peers out of step lose
WAVE_COST, PEER_COST, SKEW_COST = 2.0, 2.0, 0.02


class TileWork(NamedTuple):
    """A tile along m and n, and the K-iterations of it that a block does, half-open."""

    m: int
    n: int
    k_begin: int
    k_end: int


@dataclass(frozen=True)
class StreamKThreadblockSwizzle:
    """Stream-K on a GPU with so many multiprocessors, of which `available` are free for the kernel (default: all).

    `occupancy` is how many blocks one of them holds, `fragments` the pieces in which a reduction adds up a tile.
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
                    f"{self.available} multiprocessors are available, of {self.multiprocessors}",
                    help="leave `available` out where all of them are",
                )

    @property
    def free(self) -> int:
        return self.available or self.multiprocessors

    @property
    def resident_blocks(self) -> int:
        """How many blocks run at the same time."""
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
        """How many tiles a problem has, and batches. K is not cut here: the plan does that."""
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
        """Who does what for a problem (M, N, K) and a tile (M, N, K).

        split_k > 1 cuts each tile into as many parts instead. Batched problems are not cut: their tiles fill the GPU.
        Raises ScheduleError where more blocks would wait for each other than can run at the same time.
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
                f"{self.name}: the grid depends on K, and {plan} is how many tiles there are",
                help="pass the plan: swizzle.grid_shape(swizzle.plan(problem, tile))",
            )
        return plan.grid

    def log_tile(self, tiled: Extents) -> int:
        """0: tiles are numbered row by row, column by column or by cohorts."""
        return 0

    def tile_offset(
        self, tile: Number, log_tile: Number | None = None, tiled_shape: Extents | None = None
    ) -> tuple[Computed, Computed]:
        """The (m, n) of a tile by its number; `tiled_shape` is the plan."""
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
                f"{self.name}: {blocks} blocks would wait for each other's parts, and {self.resident_blocks} can be "
                f"resident ({self.free} multiprocessors, {self.occupancy} blocks on each)",
                help=f"leave split_k out, {few}or take SplitKIdentityThreadblockSwizzle, whose blocks wait only for "
                "those that started before them",
            )

    def _divide(self, tiles: int, iterations: int) -> tuple[int, int]:
        """(tiles of data-parallel blocks, stream-K blocks)."""
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
        """(iterations saved against whole tiles, stream-K blocks): the most that any number of blocks saves."""
        all_iterations = tiles * iterations
        most = min(self.free * occupancy, all_iterations // LEAST_ITERATIONS)
        whole = iterations * ceil_div(tiles, self.free)
        tried = ((whole - self._cost(blocks, tiles, all_iterations), blocks) for blocks in range(least, most + 1))
        return max(tried, default=(-1, 0))

    def _cost(self, blocks: int, tiles: int, iterations: int) -> int:
        """What the stream-K wave takes, in K-iterations, with what it costs to add up the parts."""
        waves = ceil_div(blocks, self.free)
        length = ceil_div(iterations, blocks) * waves
        aligned = blocks % tiles == 0
        peers = blocks // tiles if aligned else ceil_div(blocks, tiles) + 1
        skew = 0.0 if aligned else SKEW_COST * peers * length
        return length + int(WAVE_COST * waves + skew + PEER_COST * peers)


class Share(NamedTuple):
    """The tiles of a block: `count` of them, from `tile` on; of stream-K tiles the K-iterations from `begin` up to
    `end`, in the row of all of them."""

    is_stream_k: Computed
    tile: Computed
    count: Computed
    begin: Computed
    end: Computed


class StreamKNumbers(NamedTuple):
    """A plan as numbers, and who does what by them: known ones, or those that a kernel is given (as u32).

    `regions` is 1 or more; `interleaved_blocks` is 0 where blocks do not take turns, `cohorts` 0 or 1.
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
        """The (m, n) of a tile by its number."""
        m, n = self._in_cohorts(tile)
        line, across = self._in_lines(tile)
        return where(self.cohorts == 1, m, line), where(self.cohorts == 1, n, across)

    def _in_cohorts(self, tile: Number) -> tuple[Computed, Computed]:
        cohort, position = tile // COHORT, tile % COHORT
        row = cohort // self.cohort_columns
        column = cohort - row * self.cohort_columns
        return row * COHORT_M + position // COHORT_N, column * COHORT_N + position % COHORT_N

    def _in_lines(self, tile: Number) -> tuple[Computed, Computed]:
        """Along the shorter side."""
        width = minimum(self.tiles_m, self.tiles_n)
        line = tile // width
        across = tile - line * width
        upright = self.tiles_m < self.tiles_n
        return where(upright, across, line), where(upright, line, across)

    def mapped(self, block: Number) -> Computed:
        """The number under which a block of the grid works."""
        turn = (block >> 1) + (block & 1) * self.free
        block = where(block < self.interleaved_blocks, turn, block)
        spread = block % self.regions * self.blocks_per_region + block // self.regions
        return where(block < self.sk_blocks, spread, block)

    def extent(self, block: Number) -> tuple[Computed, Computed]:
        """The first and last (half-open) of the K-iterations that a stream-K block does, in the row of all of them."""
        region = block // self.blocks_per_region
        position = block - region * self.blocks_per_region
        big = self.big_blocks_per_region
        begin = region * self.iterations_per_region + position * self.iterations_per_block + minimum(position, big)
        return begin, begin + where(position < big, position * 0 + 1, position * 0) + self.iterations_per_block

    def block_of(self, iteration: Number) -> Computed:
        """The stream-K block that does one of all K-iterations."""
        region = iteration // self.iterations_per_region
        within = iteration - region * self.iterations_per_region
        each, big = self.iterations_per_block, self.big_blocks_per_region
        longer = big * (each + 1)
        position = where(within < longer, within // (each + 1), big + (maximum(within, longer) - longer) // each)
        return region * self.blocks_per_region + position

    def peers(self, tile: Number) -> tuple[Computed, Computed]:
        """The first and the last of the blocks that compute parts of a stream-K tile."""
        start = tile * self.iterations
        return self.block_of(start), self.block_of(start + (self.iterations - 1))

    def share(self, block: Number) -> Share:
        """What a stream-K or data-parallel block computes, by its working number; of others, nothing.

        A stream-K block goes from its last tile back to its first: what is ended first is not waited for.
        """
        is_stream_k = block < self.sk_blocks
        begin, end = self.extent(where(is_stream_k, block, block * 0))
        of_tile = maximum(self.iterations, 1)
        first, last = begin // of_tile, (end - 1) // of_tile
        tile, count = self._whole_tiles(block)
        tile, count = where(is_stream_k, last, tile), where(is_stream_k, last - first + 1, count)
        return Share(is_stream_k, tile, count, begin, end)

    def _whole_tiles(self, block: Number) -> tuple[Computed, Computed]:
        """(the first tile, how many) of a data-parallel block; 0 tiles of others."""
        none = block * 0
        is_one = (block >= self.first_dp_block) & (block < self.first_reduction_block)
        position = where(is_one, block - self.first_dp_block, none)
        later = position >= self.free
        tile = position + where(self.cohorts == 1, none, none + self.sk_tiles)
        tile = tile + where(later, (self.first_wave_tiles - 1) * self.free, none)
        return tile, where(is_one, where(later, none + 1, none + self.first_wave_tiles), none)

    def following(self, share: Share, tile: Number) -> Computed:
        """The tile of a block after this one."""
        return where(share.is_stream_k, tile - 1, tile + self.free)

    def part(self, share: Share, tile: Number) -> tuple[Computed, Computed]:
        """The first and last (half-open) of the K-iterations of a tile that a block does."""
        start = tile * self.iterations
        begin, end = maximum(share.begin, start) - start, minimum(share.end, start + self.iterations) - start
        return where(share.is_stream_k, begin, start * 0), where(share.is_stream_k, end, start * 0 + self.iterations)

    def has(self, share: Share, tile: Number) -> Computed:
        """Whether a block computes a tile of its share: cohorts reach out of the problem, and over stream-K tiles."""
        m, n = self.tile_offset(tile)
        return share.is_stream_k | ((tile >= self.sk_tiles) & (m < self.tiles_m) & (n < self.tiles_n))

    def reduction(self, block: Number) -> tuple[Computed, Computed]:
        """The (tile, fragment) that a reduction block adds up, by its working number."""
        number = block - self.first_reduction_block
        tile = number // self.fragments
        return tile, number - tile * self.fragments


class StreamKCoverage(NamedTuple):
    """(m, n, k-iteration) done, missing and done more than once; blocks that have nothing to do."""

    tiles: list[tuple[int, ...]]
    missing: list[tuple[int, ...]]
    repeated: list[tuple[int, ...]]
    no_op_blocks: list[int]


@dataclass(frozen=True)
class StreamKPlan:
    """Blocks in the order of the grid: stream-K (padded to whole waves), data-parallel, reduction.

    `iterations` is the K-iterations of a tile. The first `sk_tiles` tiles are those of the stream-K blocks.
    """

    swizzle: StreamKThreadblockSwizzle
    tiled: TiledShape
    iterations: int
    sk_tiles: int
    sk_blocks: int
    dp_blocks: int
    first_wave_tiles: int = 1  # of each data-parallel block of the first wave
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
    def regions(self) -> int:
        """Parts of the row of iterations that no block crosses: the tiles, where each has the same blocks."""
        if not self.sk_blocks:
            return 0
        aligned = self.sk_blocks > self.sk_tiles and self.sk_blocks % self.sk_tiles == 0
        return self.sk_tiles if aligned else 1

    @property
    def blocks_per_region(self) -> int:
        return self.sk_blocks // max(1, self.regions)

    @property
    def iterations_per_region(self) -> int:
        return self.sk_tiles * self.iterations // max(1, self.regions)

    @property
    def iterations_per_block(self) -> int:
        """Of a stream-K block; the first `big_blocks_per_region` of a region do one more."""
        return self.sk_tiles * self.iterations // max(1, self.sk_blocks)

    @property
    def big_blocks_per_region(self) -> int:
        return self.sk_tiles * self.iterations % max(1, self.sk_blocks) // max(1, self.regions)

    @property
    def reduction_blocks(self) -> int:
        """One a fragment of each stream-K tile, where many peers meet on a GPU that is not full."""
        apart = self.sk_waves < self.swizzle.occupancy and self.sk_blocks > 2 * self.sk_tiles
        return self.sk_tiles * self.swizzle.fragments if apart else 0

    @property
    def interleaved(self) -> bool:
        """Whether the blocks of the first two waves take turns, so that each multiprocessor gets a stream-K block."""
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
    def padding_blocks(self) -> int:
        """Blocks that only fill the stream-K waves."""
        return self.first_dp_block - self.sk_blocks

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
        """With data-parallel tiles in cohorts where that pays, else with whole wavesets."""
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
        """Whether the cohorts of the stream-K tiles lie inside of the problem."""
        if not self.sk_tiles:
            return True
        columns = self.cohort_shape[1]
        row, column = divmod((self.sk_tiles - 1) // COHORT, columns)
        last = columns - 1 if row else column
        return (row + 1) * COHORT_M < self.tiled.m and (last + 1) * COHORT_N < self.tiled.n

    @cached_property
    def numbers(self) -> StreamKNumbers:
        """The plan as its kernel takes it."""
        return StreamKNumbers(
            *(self.tiled.m, self.tiled.n, self.iterations, self.sk_tiles, self.sk_blocks, max(1, self.regions)),
            *(max(1, self.blocks_per_region), max(1, self.iterations_per_region), max(1, self.iterations_per_block)),
            self.big_blocks_per_region,
            2 * self.swizzle.free if self.interleaved else 0,
            self.swizzle.free,
            *(self.first_dp_block, self.first_wave_tiles, self.first_reduction_block, self.active_blocks),
            *(self.swizzle.fragments, int(self.cohorts), self.cohort_shape[1]),
        )

    def tile_offset(self, tile: Number) -> tuple[Computed, Computed]:
        """The (m, n) of a tile by its number, of an int, an array or a register."""
        return self.numbers.tile_offset(tile)

    def mapped(self, block: Number) -> Computed:
        """The number under which a block of the grid works."""
        return self.numbers.mapped(block)

    def extent(self, block: Number) -> tuple[Computed, Computed]:
        """The first and last (half-open) of the K-iterations that a stream-K block does, in the row of all of them."""
        if not self.sk_blocks:
            raise ScheduleError(
                f"{self.swizzle.name}: all {self.tiles} tiles are computed whole", help="ask plan.sk_blocks before"
            )
        return self.numbers.extent(block)

    def role(self, block: int) -> str:
        """What a block of the grid is: "sk", "dp", "reduction", or "idle"."""
        check_block(block, self.grid[0], "blocks")
        mapped = self.mapped(block)
        ends = (self.sk_blocks, self.first_dp_block, self.first_reduction_block, self.active_blocks)
        names = ("sk", "idle", "dp", "reduction", "idle")
        return names[sum(mapped >= end for end in ends)]

    def work(self, block: int | tuple[int, ...]) -> list[TileWork]:
        """The tiles of a block of the grid in its order, with their K-iterations; a reduction block has none."""
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
        """The stream-K blocks, by their working numbers, that compute parts of a stream-K tile, the first one first."""
        if not 0 <= tile < self.sk_tiles:
            return range(0)
        first, last = self.numbers.peers(tile)
        return range(first, last + 1)

    def reduction(self, block: int) -> tuple[Computed, Computed]:
        """The (tile, fragment) that a reduction block adds up."""
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

    def timeline(self) -> Timeline:
        """The multiprocessors' slots over K-iterations: blocks go to whichever is free first."""
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
