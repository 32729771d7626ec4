"""One product on the sm_90a path: tiles, whether A and B are swapped, the depth of the ring, and how blocks share K.

All that could be launched is estimated by the rates of the GPU: tensor cores, copies to a multiprocessor, the latency
of an iteration, and DRAM, of which the slowest counts; then what a launch, a tile and a meeting take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from math import ceil, inf
from typing import NamedTuple

from ptxdsl.kernels.choose.large_products import (
    HIGH_TILES,
    HIGHEST,
    MANY,
    choose_large,
    filling_tiles,
    fills,
    ranked_large,
    shares_lines,
    takes_large,
)
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_rates import WarpgroupRates
from ptxdsl.kernels.choose.warpgroups import (
    CLEARLY,
    LEAST_STAGES,
    ProductFacts,
    choose_warpgroups,
    most_stagger,
    ranked_warpgroups,
    shortest,
    stages_of,
)
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import COLUMNS, GROUP_ROWS, MOST_COLUMNS, MOST_SUMS, TURNED, WARPGROUP
from ptxdsl.kernels.tiles.choice import tile_schedule
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import bf16, f16

FEW_ROWS, MOST_ROWS = 128, 448  # of which A and B may be swapped: always; where other tiles waste rows
LEAST_ROWS = 256  # and columns, that fill a round of large tiles where K is very long
SWAPPED = (64, 128)  # columns of a tile whose A and B are swapped
LOW = 16, 32, 64, 96, 128, 192, 256  # columns of the others, of 64 rows
HIGH = 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 208, 224, 256  # and of 128
FOR_A_ROUND = 144, 176, 240  # beside those of 128 rows: of tiles that are computed all at once
FOR_LONG_TURNS = 144  # of tiles of 128 rows that warpgroups take in turns, where K is long
FOR_TURNS = 96, 112, 128, FOR_LONG_TURNS, 160, 192, 208  # of all such tiles
STAGED_IN_RING = 64, *FOR_A_ROUND  # of one tile a block: quicker even where the ring gains no stage
LEAST_OF_A_ROUND = 24  # iterations, of which they were measured; with fewer a tile is stored as long as multiplied
LEAST_BOX = 32  # columns of the last box of a tile: such ones of 16 take up to twice as long to store
BATCHED_TURNS, TURNED_ROUNDS = (
    (128, 128),
    3,
)  # the tile that warpgroups take in turns of batches, and from which round on
# Of a tile that blocks share, columns of float sums and of int32: more leave no registers to add up
MOST_SPLIT_COLUMNS, MOST_SPLIT_INTEGERS = 128, 80
LEAST_ITERATIONS, LONG_ITERATIONS = 4, 64  # of a slice; of a tile whose K is long
# Of swapped tiles for more rows: the N and K of which they were measured, at least, and tiles along M, at most
LEAST_MEASURED, MOST_PARTS = 1536, 3
MOST_OF_MANY_ROUNDS = 352  # rows of which such tiles were quicker than large ones that fill the GPU often
EXCHANGED_TILE = 128, 128  # whose sums leave room for a ring of four stages, or meet in one of seven
LEAST_EXCHANGED = 32 << 20  # bytes of a product from which on that gains: of fewer, copies come from the L2 cache
# The tiles for a round, and sums that meet in the ring, were measured of bf16; those of f16 are the same but for a name
MEASURED = tuple(Operands(type, type) for type in (bf16, f16))
LEAST_ALONE = 6  # stages of a block that is alone on a multiprocessor, where memory has room for them
WAYS = ("cluster", "scatter")  # to add up, of which one is chosen
STREAM_K = "stream-k"
COPIES = "copies of b"  # what two blocks of a cluster share, instead of K
TURNS = "turns"  # in which warpgroups have tiles of their own
IN_COLUMNS, PERSISTENT, STREAMED = IdentityThreadblockSwizzle(1), Strips(), StreamKThreadblockSwizzle()
PAIRS = ClusterStrips((2, 1))
LARGE = 128, 256  # the tile of products that fill the GPU often: they have less to choose
LONG, VERY_LONG = 2048, 4096  # what M, N and K, or K alone, have of products that one round is long for
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
    which add up by `way`: a reduction, or STREAM_K. With COPIES two blocks, one below the other, share those of B; with
    TURNS warpgroups take turns at tiles, and each stores while the other multiplies."""

    tile: tuple[int, int]
    swap_ab: bool
    stages: int
    resident: int = 1
    slices: int = 1
    way: str = ""

    def config(self, depth: int) -> GemmConfig:
        """The configuration, whose tiles have so many elements of K."""
        whole = GemmConfig(
            (*self.tile, depth), stages=self.stages, schedule=PERSISTENT, atom=WGMMA, swap_ab=self.swap_ab
        )
        if self.way == STREAM_K:
            return replace(whole, schedule=STREAMED)
        if self.way == COPIES:
            return replace(whole, schedule=PAIRS)
        if self.way == TURNS:
            return replace(whole, pingpong=True)
        if self.slices == 1:
            return whole
        return replace(whole, schedule=IN_COLUMNS, split_k=self.slices, reduction=self.way)


def choose_product(
    facts: ProductFacts, model: CostModel, other_time: float, sharing: Sharing = ANY
) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds, or where none has blocks that share K as is said."""
    config = _shortest(facts, model, other_time, sharing)
    return with_longest_ring(config, facts, model.multiprocessors) if config and sharing == ANY else config


def _shortest(facts: ProductFacts, model: CostModel, other_time: float, sharing: Sharing) -> GemmConfig | None:
    """The same by persistent blocks, or by those that share K."""
    m, n, k, batches, *_ = facts
    facts = facts._replace(m=max(1, m), n=max(1, n), k=max(1, k), batches=max(1, batches))
    if _is_large(facts, model) and not sharing.is_shared:
        choose = choose_large if takes_large(facts.operands) else choose_warpgroups
        return choose(facts, model, other_time)
    if _is_deep(facts, model) and not sharing.is_shared:
        return choose_large(facts, model, inf)
    timed = _timed_options(facts, model, sharing)
    time, option = min(timed, default=(other_time, None), key=_alone_first)
    if option is None or time >= CLEARLY * other_time:
        return None
    return option.config(_depth(facts))


def _alone_first(timed: tuple[float, Option | None]) -> tuple[object, ...]:
    """An order of options: of those that should take as long, blocks that are alone have the longer rings."""
    time, option = timed
    return time, *((option.resident, option) if option else ())


def ranked_products(facts: ProductFacts, model: CostModel, sharing: Sharing = ANY) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_product` chooses from, with the microseconds that each should take."""
    known = _ranked(facts, model, sharing)
    if sharing != ANY:
        return known
    return [(time, with_longest_ring(config, facts, model.multiprocessors)) for time, config in known]


def _ranked(facts: ProductFacts, model: CostModel, sharing: Sharing) -> list[tuple[float, GemmConfig]]:
    """The same by persistent blocks, or by those that share K."""
    if _is_large(facts, model) and not sharing.is_shared:
        return (ranked_large if takes_large(facts.operands) else ranked_warpgroups)(facts, model)
    if _is_deep(facts, model) and not sharing.is_shared:
        return ranked_large(facts, model)
    timed = _timed_options(facts, model, sharing)
    return [(time, option.config(_depth(facts))) for time, option in timed]


def with_longest_ring(config: GemmConfig, facts: ProductFacts, multiprocessors: int) -> GemmConfig:
    """The same, with as little beside the ring as its blocks need."""
    if config.split_k > 1:
        return meeting_in_ring(config, facts)
    return one_tile_each(config, facts, multiprocessors)


def meeting_in_ring(config: GemmConfig, facts: ProductFacts) -> GemmConfig:
    """The same; or, where the two blocks of a cluster bring each other so many sums that little is left for the ring,
    by one of all shared memory, in which the sums meet: it costs a meeting more, and waits less for copies."""
    is_short = config.tile[:2] == EXCHANGED_TILE and config.split_k == 2 and not config.swap_ab
    gains = is_short and config.reduction == "cluster" and facts.moved >= LEAST_EXCHANGED
    if not gains or not was_measured(facts):
        return config
    return replace(config, stages=stages_of(config.tile, facts.operands, schedule=tile_schedule(IN_COLUMNS, 1, "")))


def was_measured(facts: ProductFacts) -> bool:
    """Whether what was measured without an epilogue, of these operands alone, is for it."""
    return facts.operands in MEASURED and not facts.computes


def one_tile_each(config: GemmConfig, facts: ProductFacts, multiprocessors: int) -> GemmConfig:
    """The same; or, where persistent blocks would have one tile each that warpgroups share, and the ring a stage
    more but for the memory in which the output is staged, by blocks that stage it in the ring; so are some
    where no stage is gained. Where it is stored in boxes their warpgroups end the tile one after the other; else K is
    long, of which it was measured."""
    tile, operands = config.tile, facts.operands
    is_shared = config.schedule == PERSISTENT and tile[0] > GROUP_ROWS and not (config.pingpong or config.swap_ab)
    has_matrices = any(extra.is_matrix for extra in operands.extras)
    in_boxes = operands.output.bits == 16 and operands.out_bytes == WIDEST and not has_matrices
    is_measured = in_boxes or ceil_div(facts.k, tile[2]) >= LONG_ITERATIONS
    if not (is_shared and is_measured) or facts.tiles(tile) > multiprocessors:
        return config
    stages = stages_of_one_tile(tile, config.stages, operands)
    if not stages:
        return config
    stagger = most_stagger(stages, tile[0] // GROUP_ROWS) if in_boxes else 0
    return replace(config, stages=stages, schedule=IN_COLUMNS, stagger=stagger)


def stages_of_one_tile(tile: tuple[int, int, int], stages: int, operands: Operands) -> int:
    """Of blocks that have one tile each and stage it in the ring, where persistent ones have so many; 0 where that is
    not quicker."""
    alone = stages_of(tile, operands, schedule=tile_schedule(IN_COLUMNS, 1, ""))
    least = stages + (tile[1] not in STAGED_IN_RING and tile[0] < HIGHEST)
    return alone if stages == stages_of(tile, operands) and alone >= least else 0


def shares_split_lines(facts: ProductFacts, model: CostModel) -> bool:
    """Whether clusters bring lines in the midst of sectors, so that none need to be copied before."""
    return _is_large(facts, model) and shares_lines(facts)


def _is_large(facts: ProductFacts, model: CostModel) -> bool:
    """Whether it fills the GPU often with the largest tile; or where M, N and K are long, and rounds are full, or lines
    begin in the midst of sectors. Not where tiles of few rows multiply less, or where DRAM is what it waits for."""
    tiles, multiprocessors = facts.tiles((*LARGE, _depth(facts))), model.multiprocessors
    if (_has_few_rows(facts) and not any(facts.split_lines)) or _waits_for_reading(facts, model):
        return False
    is_long = min(facts.m, facts.n, facts.k) >= LONG
    is_for_one = fills(tiles, multiprocessors) or (any(facts.split_lines) and tiles >= multiprocessors)
    return tiles >= MANY * multiprocessors or (is_long and is_for_one)


def _waits_for_reading(facts: ProductFacts, model: CostModel) -> bool:
    """Whether its bytes take longer than its products by the largest tile would, if all of that were in use: of batches
    and of few columns. Else that tile was measured to be quickest."""
    rates, (rows, columns) = model.rates, LARGE
    if facts.n > columns and facts.operands.batches == "none":
        return False
    iterations = facts.m * facts.n * facts.batches / (rows * columns) * ceil_div(facts.k, _depth(facts))
    multiplying = iterations * rates.large.iteration[f"{rows}x{columns}"] / model.multiprocessors
    return multiplying < facts.moved / rates.warpgroups.dram_bandwidth


def _has_few_rows(facts: ProductFacts) -> bool:
    """Whether sixteens of rows are fewer by two at least than the rows of tiles of 128."""
    if facts.m <= FEW_ROWS:
        return True
    rows, tiles = ceil_div(facts.m, COLUMNS) * COLUMNS, ceil_div(facts.m, 2 * GROUP_ROWS) * 2 * GROUP_ROWS
    return was_measured(facts) and facts.m <= MOST_OF_MANY_ROUNDS and rows + 2 * COLUMNS <= tiles


def _is_deep(facts: ProductFacts, model: CostModel) -> bool:
    """Whether K is very long, and rounds of some large tile are full: no path takes less time there, though the rates
    of large products have reading take too long where rows are few."""
    is_long = facts.k >= VERY_LONG and min(facts.m, facts.n) >= LEAST_ROWS
    return is_long and takes_large(facts.operands) and bool(filling_tiles(facts, model.multiprocessors))


def _depth(facts: ProductFacts) -> int:
    """Elements of K in a tile."""
    return LINE_BYTES // facts.operands.inputs.bytes


def _timed_options(facts: ProductFacts, model: CostModel, sharing: Sharing) -> list[tuple[float, Option]]:
    rates, multiprocessors = model.rates.warpgroups, model.multiprocessors
    if facts.operands.batches != "none":
        sharing = WHOLE
    any_known = options(facts, rates, multiprocessors)
    known = any_known if sharing == ANY else options_shared(facts, multiprocessors, sharing)
    turned = options_of_batches(facts, multiprocessors)
    return [(estimate(option, facts, rates, multiprocessors), option) for option in chain(known, turned)]


def options(facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> Iterator[Option]:
    """All that are estimated. Blocks share K only where all of them can be resident."""
    iterations = ceil_div(facts.k, _depth(facts))
    yield from options_for_a_round(facts, multiprocessors)
    yield from options_of_rows(facts, rates, multiprocessors)
    for tile, swap_ab in tiles(facts):
        count = ceil_div(facts.m, tile[0]) * ceil_div(facts.n, tile[1])
        for stages, resident in depths(tile, swap_ab, facts.operands):
            option = Option(tile, swap_ab, stages, resident)
            if not _waits(option, count * facts.batches, multiprocessors):
                yield option
        if swap_ab and count > multiprocessors and facts.batches == 1 and was_measured(facts):
            yield from options_in_turns(tile, facts)
        if not _may_share(tile, swap_ab, facts.operands):
            continue
        most = min(MOST_BLOCKS, iterations // LEAST_ITERATIONS, multiprocessors * RESIDENT // count)
        for slices, way in product(range(2, most + 1), WAYS):
            for stages, resident in depths(tile, swap_ab, facts.operands, way, slices):
                option = Option(tile, swap_ab, stages, resident, slices, way)
                is_held = count * slices <= _held(option, rates, multiprocessors)
                if is_held and not _waits(option, count * slices, multiprocessors):
                    yield option


def _waits(option: Option, blocks: int, multiprocessors: int) -> bool:
    """Whether blocks that are alone on their multiprocessors would have short rings, to leave room for others: they
    wait for copies about twice as long as the rates say. Or whether some would be alone, and others not, as persistent
    blocks are as few as need no more rounds."""
    if option.resident == 1:
        return False
    if option.stages < LEAST_ALONE and blocks <= multiprocessors:
        return True
    rounds = ceil_div(blocks, option.resident * multiprocessors)
    return option.slices == 1 and rounds > 1 and not fills(ceil_div(blocks, rounds), multiprocessors)


def options_for_a_round(facts: ProductFacts, multiprocessors: int) -> Iterator[Option]:
    """Tiles of 128 or 192 rows, of columns that leave fewer multiprocessors idle: computed all at once; or, of several
    rounds, in turns."""
    iterations = ceil_div(facts.k, _depth(facts))
    if iterations < LEAST_OF_A_ROUND or facts.m <= GROUP_ROWS or not was_measured(facts):
        return
    for columns in HIGH_TILES:
        tile = HIGHEST, columns
        if facts.m > MOST_ROWS and facts.tiles((*tile, 0)) <= multiprocessors and columns < 2 * facts.n:
            yield Option(tile, False, stages_of((*tile, _depth(facts)), facts.operands))
    for columns in sorted({*FOR_A_ROUND, *FOR_TURNS}):
        tile = 2 * GROUP_ROWS, columns
        is_round = facts.tiles((*tile, 0)) <= multiprocessors
        if columns >= 2 * facts.n:
            continue
        if is_round and columns in FOR_A_ROUND:
            yield from (Option(tile, False, *depth) for depth in depths(tile, False, facts.operands))
        if not is_round and columns in FOR_TURNS and (columns != FOR_LONG_TURNS or iterations >= LONG_ITERATIONS):
            yield Option(tile, False, stages_of((*tile, _depth(facts)), facts.operands, pingpong=True), way=TURNS)


def options_of_rows(facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> Iterator[Option]:
    """Swapped tiles of as many rows as there are. Those that are computed all at once are of blocks alone, or of pairs
    below each other that share the copies of B; or the blocks of a cluster share K, whose sums meet in the ring: of one
    warpgroup each, as those of two took longer than the rates say. Of several rounds warpgroups take turns."""
    if min(facts.n, facts.k) < LEAST_MEASURED or not was_measured(facts):
        return
    for parts, columns in product(parts_of_rows(facts.m), SWAPPED):
        tile = COLUMNS * ceil_div(facts.m, COLUMNS * parts), columns
        extents, count = (*tile, _depth(facts)), parts * ceil_div(facts.n, columns)
        if count > multiprocessors:
            yield from options_in_turns(tile, facts)
            continue
        yield Option(tile, True, stages_beside_boxes(tile, facts))
        if not parts % 2:
            yield Option(tile, True, stages_of(extents, facts.operands, True, schedule=PAIRS), way=COPIES)
        stages = stages_of(extents, facts.operands, True, schedule=tile_schedule(IN_COLUMNS, 1, ""))
        for slices in range(2, MOST_BLOCKS + 1) if columns == GROUP_ROWS else ():
            option = Option(tile, True, stages, 1, slices, "cluster")
            if count * slices <= _held(option, rates, multiprocessors):
                yield option


def options_of_batches(facts: ProductFacts, multiprocessors: int) -> Iterator[Option]:
    """Tiles of batches that warpgroups take in turns, of several rounds: each stores while the other multiplies."""
    tile = *BATCHED_TURNS, _depth(facts)
    is_known = facts.operands.batches != "none" and facts.operands.inputs in TURNED
    if is_known and min(facts.m, facts.n) > GROUP_ROWS and facts.tiles(tile) >= TURNED_ROUNDS * multiprocessors:
        yield Option(BATCHED_TURNS, False, stages_of(tile, facts.operands, pingpong=True), way=TURNS)


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
    return min(stages_of((*tile, _depth(facts)), each, True, pingpong=pingpong) for each in known)


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
    for tile, swap_ab in tiles(facts):
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
    operands, is_short = facts.operands, ceil_div(facts.k, _depth(facts)) < LEAST_OF_A_ROUND
    if facts.m <= FEW_ROWS:
        least = 8 if operands.a_major == "k" else 16
        rows = least if facts.m <= least else ceil(facts.m / 16) * 16
        yield from (((rows, columns), True) for columns in SWAPPED)
    for rows, widths in ((GROUP_ROWS, LOW), (2 * GROUP_ROWS, HIGH)):
        if rows < 2 * max(facts.m, GROUP_ROWS // 2 + 1):
            known = (columns for columns in widths if columns < 2 * max(facts.n, widths[0]))
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


def estimate(option: Option, facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> float:
    """Microseconds."""
    tile_m, tile_n = option.tile
    operands, slices = facts.operands, option.slices
    iterations = ceil_div(ceil_div(facts.k * operands.inputs.bytes, LINE_BYTES), slices)
    down, across = ceil_div(facts.m, tile_m), ceil_div(facts.n, tile_n)
    blocks, stage_bytes = down * across * facts.batches * slices, (tile_m + tile_n) * LINE_BYTES
    held = _held(option, rates, multiprocessors)
    if option.way == STREAM_K:
        iterations, blocks = ceil(blocks * iterations / held), int(held)
    on_each = ceil(blocks / multiprocessors)
    rounds = ceil(blocks / held)
    busy = on_each * iterations * max(_multiplying(option, rates), stage_bytes / rates.copies)
    latency = rounds * iterations * (rates.iteration + rates.copy_latency / option.stages)
    stored = 1 if option.way == TURNS else rounds
    lines = tile_m + tile_n / (2 if option.way == COPIES else 1)
    bringing = blocks * iterations * lines * LINE_BYTES / rates.cache_bandwidth
    computing = max(busy, latency, bringing) + stored * tile_m * tile_n * rates.store
    # The larger operand comes from DRAM; the other one stays in the L2 cache
    streamed, tiles_beside = (tile_n, down) if facts.n > facts.m else (tile_m, across)
    is_read_again = tiles_beside > 1 and option.way != COPIES
    in_flight = min(blocks, held) * min(option.stages, iterations) * streamed * LINE_BYTES
    larger = max(facts.m, facts.n) * facts.k * facts.batches * operands.inputs.bytes
    moved = facts.moved + (rates.again * larger if is_read_again else 0.0)
    reading = moved / rates.dram_bandwidth * (1 + rates.in_flight / in_flight)
    meeting = _meeting(option, rates)
    if option.way == "cluster" and is_read_again:
        meeting += rates.cluster_again * larger / rates.dram_bandwidth
    launch = rates.launch + rates.alone * (option.resident == 1)
    if _has_one_tile(option, facts, blocks, multiprocessors):
        launch -= min(launch, rates.one_tile)
    return launch + max(computing, reading) + rates.hidden * min(computing, reading) + meeting


def _has_one_tile(option: Option, facts: ProductFacts, blocks: int, multiprocessors: int) -> bool:
    """Whether its blocks have one tile each that warpgroups share, as `one_tile_each` has them."""
    is_whole = option.way == "" and option.slices == 1 and option.resident == 1 and not option.swap_ab
    if not is_whole or option.tile[0] <= GROUP_ROWS or blocks > multiprocessors:
        return False
    return stages_of_one_tile((*option.tile, _depth(facts)), option.stages, facts.operands) > 0


def _held(option: Option, rates: WarpgroupRates, multiprocessors: int) -> float:
    """How many blocks run at the same time: clusters stay within a part of the GPU, and do not fill it."""
    part = rates.in_clusters[option.slices - 1] if option.way == "cluster" else 1.0
    return max(1.0, multiprocessors * option.resident * part)


def _multiplying(option: Option, rates: WarpgroupRates) -> float:
    """Of an iteration: narrow products wait for shared memory."""
    rows, columns = reversed(option.tile) if option.swap_ab else option.tile
    return rows // GROUP_ROWS * max(columns * rates.column, rates.narrow + columns * rates.column / 2)


def _meeting(option: Option, rates: WarpgroupRates) -> float:
    if option.way in ("", COPIES, TURNS):
        return 0.0
    elements = option.tile[0] * option.tile[1]
    if option.way == "cluster":
        return option.slices * rates.cluster + elements * (rates.swapped_sum if option.swap_ab else rates.cluster_sum)
    adding = elements * rates.scatter_sum
    if option.way == "serial":
        return option.slices * (rates.scatter + adding)
    return rates.scatter + adding * (option.slices if option.way == "parallel" else 1)
