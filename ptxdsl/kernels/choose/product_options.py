"""Ways to compute one product on the sm_90a path: tiles, whether A and B are swapped, the depth of the ring, and how
blocks share K. `warpgroup_products.py` says how long each should take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import ceil, prod
from typing import NamedTuple

from ptxdsl.kernels.choose.large_products import HIGH_TILES, HIGHEST, SHORT, fills
from ptxdsl.kernels.choose.warpgroup_rates import WarpgroupRates
from ptxdsl.kernels.choose.warpgroups import LEAST_STAGES, ProductFacts, shortest, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import COLUMNS, GROUP_ROWS, MOST_COLUMNS, MOST_SUMS, TURNED, WARPGROUP
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.resolve import tile_schedule
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import bf16, f16

FEW_ROWS, MOST_ROWS = 128, 448  # of which A and B may be swapped: always; where other tiles waste rows
SWAPPED = (64, 128)  # columns of a tile whose A and B are swapped
LOW = 16, 32, 48, 64, 80, 96, 112, 128, 192, 256  # columns of the others, of 64 rows
HIGH = 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 208, 224, 256  # and of 128
FOR_A_ROUND = 144, 176, 240  # beside those of 128 rows: of tiles that are computed all at once
FOR_LONG_TURNS = 144  # of tiles of 128 rows that warpgroups take in turns, where K is long
FOR_TURNS = 96, 112, 128, FOR_LONG_TURNS, 160, 192, 208  # of all such tiles
LEAST_OF_A_ROUND = 24  # iterations, of which they were measured; with fewer a tile is stored as long as multiplied
LEAST_MEASURED_DEPTH = 16  # iterations of which the highest tiles were, and clusters that share copies
MOST_WASTED = 1.25  # times as many rows as there are that the highest tiles may have
VERY_SHORT = 2  # iterations, in which a tile is multiplied much sooner than stored
LEAST_BOX = 32  # columns of the last box of a tile: such ones of 16 take up to twice as long to store
# Of batches of so many rounds: the tile that warpgroups take in turns, and the smallest where K is very short
BATCHED_TILE, SEVERAL_ROUNDS = (128, 128), 3
# Of a tile that blocks share, columns of float sums and of int32: more leave no registers to add up
MOST_SPLIT_COLUMNS, MOST_SPLIT_INTEGERS = 128, 80
LEAST_ITERATIONS, LONG_ITERATIONS = 4, 64  # of a slice; of a tile whose K is long
# Of swapped tiles for more rows: the N and K of which they were measured, at least, and tiles along M, at most
LEAST_COLUMNS, LEAST_K, MOST_PARTS = 1024, 1536, 3
# The tiles for a round, and sums that meet in the ring, were measured of bf16; those of f16 are the same but for a name
MEASURED = tuple(Operands(type, type) for type in (bf16, f16))
# Stages of a block that is alone on a multiprocessor, where memory has room for them, by the bytes of an element
LEAST_ALONE = {1: 8, 2: 6, 4: 6}
LEAST_OF_BYTES = 64  # columns of tiles for 8-bit products that have as many
WAYS = ("cluster", "scatter")  # to add up, of which one is chosen
STREAM_K = "stream-k"
TURNS = "turns"  # in which warpgroups have tiles of their own
IN_COLUMNS, PERSISTENT, STREAMED = IdentityThreadblockSwizzle(1), Strips(), StreamKThreadblockSwizzle()
ALONE = 1, 1  # a cluster of one block
LEAST_SWAPPED = 6  # stages of swapped tiles of which blocks share K: shorter rings take up to twice as long
# Of blocks that share copies: elements of a tile of a pair, at most; rows of A that four share, and tiles of a row
MOST_PAIRED, LEAST_ROWS_OF_FOUR, LEAST_BESIDE = 128 * 128, 80, 80
RESIDENT, REGISTER_FILE = 2, 65536  # blocks that a multiprocessor may hold, and its registers
BESIDE_SUMS = 16  # registers of a thread, beside those that a tiling counts


class Sharing(NamedTuple):
    """What a caller says of how blocks share the K of tiles: so many `slices` of each, or as many as are best where it
    is 0, which add up by `way`, a reduction; or `blocks` of stream-K."""

    slices: int = 0
    way: str = ""
    blocks: int = 0

    @property
    def is_shared(self) -> bool:
        return self.slices > 1 or self.blocks > 0


ANY, WHOLE = Sharing(), Sharing(slices=1)


class Option(NamedTuple):
    """A way to compute a product: `resident` blocks of `stages` stages on a multiprocessor, `slices` for each tile,
    which add up by `way`: a reduction, or STREAM_K. Sums of a cluster meet behind the ring, or `in_ring`. With TURNS
    warpgroups take turns at tiles, and each stores while the other multiplies. The blocks of a `cluster`, along M and
    N, share copies: those beside each other the lines of A, those below each other the lines of B."""

    tile: tuple[int, int]
    swap_ab: bool
    stages: int
    resident: int = 1
    slices: int = 1
    way: str = ""
    cluster: tuple[int, int] = ALONE
    in_ring: bool = False

    def config(self, depth: int) -> GemmConfig:
        """The configuration, whose tiles have so many elements of K."""
        whole = GemmConfig(
            (*self.tile, depth), stages=self.stages, schedule=PERSISTENT, atom=WGMMA, swap_ab=self.swap_ab
        )
        if self.way == STREAM_K:
            return replace(whole, schedule=STREAMED)
        if self.cluster != ALONE:
            return replace(whole, schedule=ClusterStrips(self.cluster))
        if self.way == TURNS:
            return replace(whole, pingpong=True)
        if self.slices == 1:
            return whole
        return replace(whole, schedule=IN_COLUMNS, split_k=self.slices, reduction=self.way)


def options(facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> Iterator[Option]:
    """All that are estimated. Blocks share K only where all of them can be resident."""
    iterations = ceil_div(facts.k, depth_of(facts))
    yield from options_for_a_round(facts, multiprocessors)
    yield from options_of_rows(facts, rates, multiprocessors)
    for tile, swap_ab in tiles(facts):
        count = ceil_div(facts.m, tile[0]) * ceil_div(facts.n, tile[1])
        for stages, resident in depths(tile, swap_ab, facts.operands):
            option = Option(tile, swap_ab, stages, resident)
            if not _waits(option, count * facts.batches, facts, multiprocessors):
                yield option
        yield from options_in_clusters(tile, swap_ab, facts, multiprocessors)
        if swap_ab and count > multiprocessors and facts.batches == 1 and was_measured(facts):
            yield from options_in_turns(tile, facts)
        if not _may_share(tile, swap_ab, facts.operands):
            continue
        most = min(MOST_BLOCKS, iterations // LEAST_ITERATIONS, multiprocessors * RESIDENT // count)
        for slices, way in product(range(2, most + 1), WAYS):
            for option in options_of_slices(tile, swap_ab, facts.operands, slices, way, was_measured(facts)):
                is_held = count * slices <= blocks_at_once(option, rates, multiprocessors)
                if is_held and not _waits(option, count * slices, facts, multiprocessors):
                    yield option


def _waits(option: Option, blocks: int, facts: ProductFacts, multiprocessors: int) -> bool:
    """Whether blocks that are alone on their multiprocessors would have short rings, to leave room for others: they
    wait for copies about twice as long as the rates say. Or whether some would be alone, and others not, as persistent
    blocks are as few as need no more rounds."""
    if option.resident == 1:
        return False
    if option.stages < LEAST_ALONE[facts.operands.inputs.bytes] and blocks <= multiprocessors:
        return True
    rounds = ceil_div(blocks, option.resident * multiprocessors)
    return option.slices == 1 and rounds > 1 and not fills(ceil_div(blocks, rounds), multiprocessors)


def options_for_a_round(facts: ProductFacts, multiprocessors: int) -> Iterator[Option]:
    """Tiles of 128 or 192 rows, of columns that leave fewer multiprocessors idle: computed all at once; or, of several
    rounds, in turns."""
    iterations = ceil_div(facts.k, depth_of(facts))
    if iterations < LEAST_MEASURED_DEPTH or facts.m <= GROUP_ROWS or not was_measured(facts):
        return
    for columns in HIGH_TILES if ceil_div(facts.m, HIGHEST) * HIGHEST <= MOST_WASTED * facts.m else ():
        tile = HIGHEST, columns
        if facts.tiles((*tile, 0)) <= multiprocessors and columns < 2 * facts.n:
            yield Option(tile, False, stages_of((*tile, depth_of(facts)), facts.operands))
    for columns in sorted({*FOR_A_ROUND, *FOR_TURNS}):
        tile = 2 * GROUP_ROWS, columns
        is_round = facts.tiles((*tile, 0)) <= multiprocessors
        if columns >= 2 * facts.n or iterations < LEAST_OF_A_ROUND:
            continue
        if is_round and columns in FOR_A_ROUND:
            yield from (Option(tile, False, *depth) for depth in depths(tile, False, facts.operands))
        if not is_round and columns in FOR_TURNS and (columns != FOR_LONG_TURNS or iterations >= LONG_ITERATIONS):
            yield Option(tile, False, stages_of((*tile, depth_of(facts)), facts.operands, pingpong=True), way=TURNS)


def options_of_rows(facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> Iterator[Option]:
    """Swapped tiles of as many rows as there are. Those that are computed all at once are of blocks alone, or of
    clusters, which share copies or K. Of several rounds warpgroups take turns."""
    if facts.n < LEAST_COLUMNS or facts.k < LEAST_K or not was_measured(facts):
        return
    for parts, columns in product(parts_of_rows(facts.m), SWAPPED):
        tile, count = (COLUMNS * ceil_div(facts.m, COLUMNS * parts), columns), parts * ceil_div(facts.n, columns)
        if count > multiprocessors:
            yield from options_in_turns(tile, facts)
            continue
        yield Option(tile, True, stages_beside_boxes(tile, facts))
        yield from options_in_clusters(tile, True, facts, multiprocessors)
        for slices in range(2, MOST_BLOCKS + 1):
            for option in options_of_slices(tile, True, facts.operands, slices, "cluster", may_meet_in_ring=True):
                if count * slices <= blocks_at_once(option, rates, multiprocessors):
                    yield option


@lru_cache(maxsize=4096)
def options_of_slices(
    tile: tuple[int, int], swap_ab: bool, operands: Operands, slices: int, way: str, may_meet_in_ring: bool
) -> tuple[Option, ...]:
    """Of blocks that share K: two of them on a multiprocessor, or one, which has a longer ring where the sums of a
    cluster meet there."""
    known, least = depths(tile, swap_ab, operands, way, slices), LEAST_SWAPPED if swap_ab else LEAST_STAGES
    options = tuple(Option(tile, swap_ab, *depth, slices, way) for depth in known if depth[0] >= least)
    if way != "cluster" or not may_meet_in_ring:
        return options
    extents = *tile, LINE_BYTES // operands.inputs.bytes
    stages = stages_of(extents, operands, swap_ab, schedule=tile_schedule(IN_COLUMNS, 1, ""))
    if stages <= max((beside for beside, _ in known), default=LEAST_STAGES - 1):
        return options
    return *options, Option(tile, swap_ab, stages, 1, slices, way, in_ring=True)


def options_in_clusters(
    tile: tuple[int, int], swap_ab: bool, facts: ProductFacts, multiprocessors: int
) -> Iterator[Option]:
    """Of one tile, blocks that share copies, where that was measured to gain."""
    if ceil_div(facts.k, depth_of(facts)) < LEAST_MEASURED_DEPTH or not was_measured(facts):
        return
    for cluster in clusters_of(tile, swap_ab, facts, multiprocessors):
        extents = *tile, depth_of(facts)
        stages = stages_of(extents, facts.operands, swap_ab, schedule=ClusterStrips(cluster))
        if stages >= LEAST_STAGES:
            yield Option(tile, swap_ab, stages, cluster=cluster)


def clusters_of(
    tile: tuple[int, int], swap_ab: bool, facts: ProductFacts, multiprocessors: int
) -> Iterator[tuple[int, int]]:
    """Of few columns pairs of which each row of tiles has one. Of few rows, where one round is all, pairs below each
    other, which share the lines of B, and do not leave any outside; or four beside each other, which share those of A,
    where they are many."""
    down, across = ceil_div(facts.m, tile[0]), ceil_div(facts.n, tile[1])
    if down > across:
        yield from (pair for pair in ((2, 1), (1, 2)) if pair[1] == across)
    elif down * across > multiprocessors:
        return
    elif not down % 2 and tile[0] * tile[1] <= MOST_PAIRED and (swap_ab or tile[0] == GROUP_ROWS):
        yield 2, 1
    elif swap_ab and down == 1 and tile[0] >= LEAST_ROWS_OF_FOUR and across >= LEAST_BESIDE:
        yield 1, 4


def _is_stored_longer(facts: ProductFacts, multiprocessors: int) -> bool:
    """Whether tiles of batches are multiplied much sooner than stored."""
    return _has_several_rounds(facts, multiprocessors) and ceil_div(facts.k, depth_of(facts)) <= VERY_SHORT


def _has_several_rounds(facts: ProductFacts, multiprocessors: int) -> bool:
    """Whether there are batches of so many tiles, of which rows and columns are all."""
    is_batch, is_wide = facts.operands.batches != "none", min(facts.m, facts.n) > GROUP_ROWS
    return is_batch and is_wide and facts.tiles((*BATCHED_TILE, 0)) >= SEVERAL_ROUNDS * multiprocessors


def options_of_batches(facts: ProductFacts, multiprocessors: int) -> Iterator[Option]:
    """Tiles that warpgroups take in turns: each stores while the other multiplies, which takes longer than to store
    where K is not short. Where those of 128 rows would waste many, swapped ones of all rows."""
    operands = facts.operands
    if operands.inputs not in TURNED or facts.k < SHORT or not _has_several_rounds(facts, multiprocessors):
        return
    yield Option(BATCHED_TILE, False, stages_of((*BATCHED_TILE, depth_of(facts)), operands, pingpong=True), way=TURNS)
    rows = COLUMNS * ceil_div(facts.m, COLUMNS)
    if facts.m > FEW_ROWS and rows + 2 * COLUMNS <= MOST_COLUMNS and operands.from_registers == "none":
        yield from options_in_turns((rows, GROUP_ROWS), facts)


def options_in_turns(tile: tuple[int, int], facts: ProductFacts) -> Iterator[Option]:
    """Swapped tiles that warpgroups take in turns."""
    if tile[0] * tile[1] <= MOST_SUMS * WARPGROUP:
        stages = stages_beside_boxes(tile, facts, pingpong=True)
        yield from (Option(tile, True, n, way=TURNS) for n in (stages,) if n >= LEAST_STAGES)


def stages_beside_boxes(tile: tuple[int, int], facts: ProductFacts, pingpong: bool = False) -> int:
    """Of a swapped tile of persistent blocks: where others lie below it, it may be stored in boxes, which are turned in
    memory behind the ring."""
    boxed = (False, True) if facts.m > tile[0] else (False,)
    known = (replace(facts.operands, out_boxes=each) for each in boxed)
    return min(stages_of((*tile, depth_of(facts)), each, True, pingpong=pingpong) for each in known)


def parts_of_rows(m: int) -> Iterator[int]:
    """Into how many swapped tiles along M `m` rows may be cut: as few as can be, or one more."""
    if FEW_ROWS < m <= MOST_ROWS:
        least = ceil_div(m, MOST_COLUMNS)
        yield from (parts for parts in (least, least + 1) if parts <= MOST_PARTS)


def options_shared(facts: ProductFacts, multiprocessors: int, sharing: Sharing) -> Iterator[Option]:
    """Those whose blocks share K as a caller says. All blocks of stream-K must be able to be resident."""
    slices, way, blocks = sharing
    if blocks:
        slices, way = 1, STREAM_K
    is_stored = _is_stored_longer(facts, multiprocessors)
    for tile, swap_ab in tiles(facts):
        if is_stored and min(tile) < min(BATCHED_TILE):
            continue
        if sharing.is_shared and not _may_share(tile, swap_ab, facts.operands):
            continue
        for stages, resident in depths(tile, swap_ab, facts.operands, way if sharing.is_shared else "", slices):
            if blocks <= multiprocessors * resident:
                yield Option(tile, swap_ab, stages, resident, slices, way)


def _may_share(tile: tuple[int, int], swap_ab: bool, operands: Operands) -> bool:
    """Whether registers are left to add up the sums of other blocks."""
    return tile[0 if swap_ab else 1] <= (MOST_SPLIT_INTEGERS if operands.sum.is_integer else MOST_SPLIT_COLUMNS)


def tiles(facts: ProductFacts) -> Iterator[tuple[tuple[int, int], bool]]:
    """Tiles, and whether A and B are swapped: none of which half as many rows or columns would do."""
    operands, is_short = facts.operands, ceil_div(facts.k, depth_of(facts)) < LEAST_OF_A_ROUND
    may_swap = operands.from_registers == "none"
    if may_swap and facts.m <= (GROUP_ROWS if is_short and operands.batches != "none" else FEW_ROWS):
        least = 8 if operands.a_major == "k" else 16
        rows = least if facts.m <= least else ceil(facts.m / 16) * 16
        yield from (((rows, columns), True) for columns in SWAPPED)
    for rows, widths in ((GROUP_ROWS, LOW), (2 * GROUP_ROWS, HIGH)):
        if rows < 2 * max(facts.m, GROUP_ROWS // 2 + 1):
            known = (columns for columns in widths if columns < 2 * max(facts.n, widths[0]))
            if operands.inputs.bytes == 1:
                known = (columns for columns in known if columns >= min(LEAST_OF_BYTES, facts.n))
            if is_short:
                known = (columns for columns in known if columns >= facts.n or not columns % LEAST_BOX)
            yield from (((rows, columns), False) for columns in known)


@lru_cache(maxsize=4096)
def depths(
    tile: tuple[int, int], swap_ab: bool, operands: Operands, way: str = "", slices: int = 1
) -> tuple[tuple[int, int], ...]:
    """Lengths of the ring, and how many blocks of each a multiprocessor holds."""
    extents = *tile, LINE_BYTES // operands.inputs.bytes
    tiling = shortest(extents, swap_ab)
    registers = tiling.threads * (tiling.registers(operands) + BESIDE_SUMS)
    schedule = _schedule(slices, way) if way else PERSISTENT
    most = min(RESIDENT, REGISTER_FILE // registers)
    deepest = {stages_of(extents, operands, swap_ab, n, schedule): n for n in range(1, most + 1)}
    return tuple((stages, resident) for stages, resident in deepest.items() if stages >= LEAST_STAGES)


def _schedule(slices: int, way: str) -> TileSchedule:
    """Of blocks that share K."""
    return tile_schedule(STREAMED, 1, "") if way == STREAM_K else tile_schedule(IN_COLUMNS, slices, way)


def blocks_at_once(option: Option, rates: WarpgroupRates, multiprocessors: int) -> float:
    """How many blocks run at the same time."""
    return max(1.0, multiprocessors * option.resident * part_in_clusters(option, rates))


def part_in_clusters(option: Option, rates: WarpgroupRates) -> float:
    """The part of the GPU that its clusters fill: they stay within groups of multiprocessors."""
    return rates.in_clusters[(option.slices if option.way == "cluster" else prod(option.cluster)) - 1]


def was_measured(facts: ProductFacts) -> bool:
    """Whether what was measured without an epilogue, of these operands alone, is for it."""
    return facts.operands in MEASURED and not facts.computes


def depth_of(facts: ProductFacts) -> int:
    """Elements of K in a tile."""
    return LINE_BYTES // facts.operands.inputs.bytes
