"""Which way one product goes on the sm_90a path.

All that could be launched is estimated by the rates of the GPU: tensor cores, copies to a multiprocessor, the latency
of an iteration, and DRAM, of which the slowest counts; then what a launch, a tile and a meeting take.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from math import ceil, inf
from operator import itemgetter

from ptxdsl.kernels.choose.large_products import (
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
from ptxdsl.kernels.choose.product_options import (
    ALONE,
    ANY,
    FEW_ROWS,
    FOR_A_ROUND,
    IN_COLUMNS,
    LONG_ITERATIONS,
    PERSISTENT,
    STREAM_K,
    TURNS,
    WHOLE,
    Option,
    Sharing,
    blocks_at_once,
    depth_of,
    depths,
    options,
    options_of_batches,
    options_shared,
    part_in_clusters,
    was_measured,
)
from ptxdsl.kernels.choose.swapped import swapped
from ptxdsl.kernels.choose.warpgroup_rates import WarpgroupRates
from ptxdsl.kernels.choose.warpgroups import (
    CLEARLY,
    ProductFacts,
    choose_warpgroups,
    loading,
    most_stagger,
    overlapped,
    ranked_warpgroups,
    stages_of,
)
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import COLUMNS, GROUP_ROWS
from ptxdsl.kernels.tiles.resolve import tile_schedule
from ptxdsl.schedule import HorizontalThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div

LEAST_ROWS = 256  # and columns, that fill a round of large tiles where K is very long
STAGED_IN_RING = 64, *FOR_A_ROUND  # of one tile a block: quicker even where the ring gains no stage
MOST_OF_MANY_ROUNDS = 352  # rows of which such tiles were quicker than large ones that fill the GPU often
IN_ROWS = HorizontalThreadblockSwizzle()  # where few columns of tiles read many rows: neighbours read the same ones
TALL = 4  # times as many tiles along M as along N
LARGE = 128, 256  # the tile of products that fill the GPU often: they have less to choose
LONG, VERY_LONG = 2048, 4096  # what M, N and K, or K alone, have of products that one round is long for


def choose_product(
    facts: ProductFacts, model: CostModel, other_time: float, sharing: Sharing = ANY
) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds, or where none has blocks that share K as is said."""
    if facts.operands.from_registers == "b":
        config = choose_product(facts.swapped, model, other_time, sharing)
        return config and swapped(config, facts)
    config = _shortest(facts, model, other_time, sharing)
    return one_tile_each(config, facts, model.multiprocessors) if config and sharing == ANY else config


def _shortest(facts: ProductFacts, model: CostModel, other_time: float, sharing: Sharing) -> GemmConfig | None:
    """The same by persistent blocks, or by those that share K."""
    m, n, k, batches, *_ = facts
    facts = facts._replace(m=max(1, m), n=max(1, n), k=max(1, k), batches=max(1, batches))
    if _is_large(facts, model) and not sharing.is_shared:
        if not takes_large(facts.operands):
            return choose_warpgroups(facts, model, other_time)
        time, config = min(_ranked_large(facts, model), key=itemgetter(0))
        return config if time < other_time else None
    if _is_deep(facts, model) and not sharing.is_shared:
        return choose_large(facts, model, inf)
    timed = _timed_options(facts, model, sharing)
    time, option = min(timed, default=(other_time, None), key=_by_time)
    if option is None or time >= CLEARLY * other_time:
        return None
    return option.config(depth_of(facts))


def _ranked_large(facts: ProductFacts, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """The configurations that a large product may have, with the microseconds that each should take. Batches may have
    tiles of any size: each has rows and columns at its edges, and rates of large products are not fitted to them."""
    large = ranked_large(facts, model)
    if facts.operands.batches == "none" or any(facts.split_lines):
        return large
    small = sorted(_timed_options(facts, model, WHOLE), key=_by_time)
    known = [each for each in small if each[1].way != TURNS or each[1].swap_ab]
    return large + [(time, option.config(depth_of(facts))) for time, option in known]


def _by_time(timed: tuple[float, Option | None]) -> tuple[object, ...]:
    """An order of options: of those that should take as long, blocks that leave room for those of the next launch come
    first, which are there when that begins."""
    time, option = timed
    return time, *((-option.resident, option) if option else ())


def ranked_products(facts: ProductFacts, model: CostModel, sharing: Sharing = ANY) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_product` chooses from, with the microseconds that each should take."""
    if facts.operands.from_registers == "b":
        return [(time, swapped(config, facts)) for time, config in ranked_products(facts.swapped, model, sharing)]
    known = _ranked(facts, model, sharing)
    if sharing != ANY:
        return known
    return [(time, one_tile_each(config, facts, model.multiprocessors)) for time, config in known]


def _ranked(facts: ProductFacts, model: CostModel, sharing: Sharing) -> list[tuple[float, GemmConfig]]:
    """The same by persistent blocks, or by those that share K."""
    if _is_large(facts, model) and not sharing.is_shared:
        return (_ranked_large if takes_large(facts.operands) else ranked_warpgroups)(facts, model)
    if _is_deep(facts, model) and not sharing.is_shared:
        return ranked_large(facts, model)
    timed = _timed_options(facts, model, sharing)
    return [(time, option.config(depth_of(facts))) for time, option in timed]


def one_tile_each(config: GemmConfig, facts: ProductFacts, multiprocessors: int) -> GemmConfig:
    """The same; or, where persistent blocks would have one tile each, by blocks that begin with that: of one warpgroup;
    or of several that share the tile, if they stage it in a ring that has a stage more so, and some where no stage is
    gained. Where it is stored in boxes their warpgroups end the tile one after the other; else K is long, of which it
    was measured."""
    tile, operands = config.tile, facts.operands
    has_matrices = any(extra.is_matrix for extra in operands.extras)
    in_boxes = operands.output.bits == 16 and operands.out_bytes == WIDEST and not has_matrices
    is_measured = in_boxes or ceil_div(facts.k, tile[2]) >= LONG_ITERATIONS
    if config.schedule != PERSISTENT or config.pingpong or config.swap_ab or not is_measured:
        return config
    if tile[0] == GROUP_ROWS:
        stages, stagger = config.stages if operands.c == "none" else 0, 0
        held = multiprocessors * dict(depths(tile[:2], False, operands)).get(stages, 1)
    else:
        stages, held = stages_of_one_tile(tile, config.stages, operands), multiprocessors
        stagger = most_stagger(stages, tile[0] // GROUP_ROWS) if in_boxes else 0
    if not stages or facts.tiles(tile) > held:
        return config
    is_tall = ceil_div(facts.m, tile[0]) >= TALL * ceil_div(facts.n, tile[1])
    return replace(config, stages=stages, schedule=IN_ROWS if is_tall else IN_COLUMNS, stagger=stagger)


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
    tiles, multiprocessors = facts.tiles((*LARGE, depth_of(facts))), model.multiprocessors
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
    iterations = facts.m * facts.n * facts.batches / (rows * columns) * ceil_div(facts.k, depth_of(facts))
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


def _timed_options(facts: ProductFacts, model: CostModel, sharing: Sharing) -> list[tuple[float, Option]]:
    rates, multiprocessors = model.rates.warpgroups, model.multiprocessors
    if facts.operands.batches != "none":
        sharing = WHOLE
    any_known = options(facts, rates, multiprocessors)
    known = any_known if sharing == ANY else options_shared(facts, multiprocessors, sharing)
    turned = options_of_batches(facts, multiprocessors)
    return [(estimate(option, facts, rates, multiprocessors), option) for option in chain(known, turned)]


def estimate(option: Option, facts: ProductFacts, rates: WarpgroupRates, multiprocessors: int) -> float:
    """Microseconds."""
    tile_m, tile_n = option.tile
    operands, slices = facts.operands, option.slices
    iterations = ceil_div(ceil_div(facts.k * operands.inputs.bytes, LINE_BYTES), slices)
    (rows, columns), down, across = option.cluster, ceil_div(facts.m, tile_m), ceil_div(facts.n, tile_n)
    blocks = ceil_div(down, rows) * ceil_div(across, columns) * rows * columns * facts.batches * slices
    stage_bytes = (tile_m + tile_n) * LINE_BYTES
    held = blocks_at_once(option, rates, multiprocessors)
    if option.way == STREAM_K:
        iterations, blocks = ceil(blocks * iterations / held), int(held)
    on_each = ceil(blocks / (multiprocessors * part_in_clusters(option, rates)))
    rounds = ceil(blocks / held)
    multiplying = _multiplying(option, rates) + loading(facts.operands, tile_n)
    busy = on_each * iterations * max(multiplying, stage_bytes / rates.copies)
    latency = rounds * iterations * rates.copy_latency / option.stages
    stored = 1 if option.way == TURNS else 1 + rates.felt * (rounds - 1)
    lines = tile_m / columns + tile_n / rows
    bringing = blocks * iterations * lines * LINE_BYTES / rates.cache_bandwidth
    computing = max(busy, latency, bringing) + stored * tile_m * tile_n * rates.store
    # The larger operand comes from DRAM; the other one stays in the L2 cache
    is_read_again = (down > rows) if facts.n > facts.m else (across > columns)
    larger = max(facts.m, facts.n) * facts.k * facts.batches * operands.inputs.bytes
    moved = facts.moved + (rates.again * larger if is_read_again else 0.0)
    reading = moved / rates.dram_bandwidth
    meeting = _meeting(option, rates)
    if option.way == "cluster" and is_read_again:
        meeting += rates.cluster_again * larger / rates.dram_bandwidth
    launching = rates.launch + rates.sharing * (option.cluster != ALONE)
    if _has_one_tile(option, facts, blocks, multiprocessors):
        launching -= min(launching, rates.one_tile)
    return launching + overlapped(computing, reading, rates.hidden) + rates.crowding * bringing + meeting


def _has_one_tile(option: Option, facts: ProductFacts, blocks: int, multiprocessors: int) -> bool:
    """Whether its blocks have one tile each that warpgroups share, as `one_tile_each` has them."""
    is_whole = option.way == "" and option.slices == 1 and option.resident == 1 and not option.swap_ab
    if not is_whole or option.cluster != ALONE or option.tile[0] <= GROUP_ROWS or blocks > multiprocessors:
        return False
    return stages_of_one_tile((*option.tile, depth_of(facts)), option.stages, facts.operands) > 0


def _multiplying(option: Option, rates: WarpgroupRates) -> float:
    """Of an iteration: narrow products wait for shared memory."""
    rows, columns = reversed(option.tile) if option.swap_ab else option.tile
    return rows // GROUP_ROWS * max(columns * rates.column, rates.narrow + columns * rates.column / 2)


def _meeting(option: Option, rates: WarpgroupRates) -> float:
    if option.way in ("", TURNS):
        return 0.0
    elements = option.tile[0] * option.tile[1]
    if option.way == "cluster":
        each = rates.swapped_sum if option.swap_ab else rates.cluster_sum
        return option.slices * rates.cluster + elements * each + rates.in_ring * option.in_ring
    adding = elements * rates.scatter_sum
    if option.way == "serial":
        return option.slices * (rates.scatter + adding)
    return rates.scatter + adding * (option.slices if option.way == "parallel" else 1)
