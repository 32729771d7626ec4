"""The configuration of a convolution on the sm_90a path: tiles, and how many blocks share the K of one.

What blocks take for an iteration and for a tile was measured with convolutions on an H200 (`benchmarks/conv.py
--tiles`). Windows overlap: what a convolution reads of DRAM are its images, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroups import ProductFacts, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.tiles.choice import tile_schedule
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div


class TileCost(NamedTuple):
    """Microseconds of a block for 128 bytes of K, and for all else that it does for a tile."""

    iteration: float
    tile: float


COSTS = {
    (128, 256, False): TileCost(0.585, 1.65),
    (128, 128, False): TileCost(0.305, 1.05),
    (64, 256, False): TileCost(0.32, 1.15),
    (64, 128, False): TileCost(0.19, 0.5),
    (128, 64, False): TileCost(0.245, 0.45),
    (256, 64, True): TileCost(0.32, 2.3),
}
"""Of tiles, and whether A and B are swapped: products of 64 rows and 256 columns wait less for shared memory."""
SLOW_LINE = 0.0068  # microseconds in which a multiprocessor gets a line of a box that reaches over the last channel
PACKING = 3e6  # bytes of a microsecond
BEGINNING = 6.0  # microseconds of a launch, with its first copies, where nothing is in the caches
WARPS_READ = 1.25  # times as long as the bandwidth allows: what the sm_80 path takes at least
MEETING = 1.5  # for each of the blocks that share a tile
COLUMN = 0.001342  # what WarpgroupRates has of the GPU on which this was measured
WIDEST_SPLIT, WIDEST_INTEGERS = 128, 64  # columns of a tile that blocks share, of float sums and of int32
LEAST_ITERATIONS, LEAST_STAGES = 4, 3
PERSISTENT, IN_COLUMNS = Strips(), IdentityThreadblockSwizzle(1)


class WindowFacts(NamedTuple):
    """What the choice depends on: the product, whose K is in whole lines of a box; the bytes that are read and written;
    how many lines of boxes reach over the last channel; and whether tiles can be stored in boxes: those that are
    swapped are for that alone, as wgmma waits for its sums else."""

    product: ProductFacts
    moved: int
    slow_lines: int
    in_boxes: bool


def choose_windows(facts: WindowFacts, model: CostModel) -> tuple[float, GemmConfig]:
    """The microseconds that it should take, and the configuration."""
    return min(ranked_windows(facts, model), key=lambda option: option[0])


def ranked_windows(facts: WindowFacts, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_windows` chooses from, with the microseconds that each should take."""
    rates = model.rates.warpgroups
    slower, reading = rates.column / COLUMN, facts.moved / rates.dram_bandwidth
    timed = []
    for computing, config in _options(facts.product, model.multiprocessors):
        if config.swap_ab and not facts.in_boxes:
            continue
        across = ceil_div(facts.product.n, config.tile[1])
        computing += facts.slow_lines * across * SLOW_LINE / model.multiprocessors
        longer, shorter = sorted((slower * computing, reading), reverse=True)
        timed.append((BEGINNING + longer + rates.hidden * shorter, config))
    return timed


def _options(facts: ProductFacts, multiprocessors: int) -> Iterator[tuple[float, GemmConfig]]:
    """What can be launched, and the microseconds that blocks work."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    iterations = ceil_div(facts.k, depth)
    widest = WIDEST_INTEGERS if facts.operands.sum.is_integer else WIDEST_SPLIT
    for (m, n, swap_ab), cost in COSTS.items():
        count, tile = ceil_div(facts.m, m) * ceil_div(facts.n, n), (m, n, depth)
        stages = stages_of(tile, facts.operands, swap_ab)
        rounds = ceil_div(count, multiprocessors)
        if stages >= LEAST_STAGES:
            yield (
                rounds * (iterations * cost.iteration + cost.tile),
                GemmConfig(tile, stages=stages, schedule=PERSISTENT, atom=WGMMA, swap_ab=swap_ab),
            )
        most = min(MOST_BLOCKS, iterations // LEAST_ITERATIONS, multiprocessors // count)
        for slices in range(2, most + 1) if n <= widest and not swap_ab else ():
            shared = tile_schedule(IN_COLUMNS, slices, "cluster")
            stages = stages_of(tile, facts.operands, schedule=shared)
            if stages >= LEAST_STAGES:
                yield (
                    ceil_div(iterations, slices) * cost.iteration + cost.tile + slices * MEETING,
                    GemmConfig(
                        tile, stages=stages, schedule=IN_COLUMNS, atom=WGMMA, split_k=slices, reduction="cluster"
                    ),
                )


def least_by_warps(facts: WindowFacts, model: CostModel) -> float:
    """The microseconds that the sm_80 path takes at least, which its own rates do not know: images are read once."""
    return BEGINNING + WARPS_READ * facts.moved / model.rates.warpgroups.dram_bandwidth


def packing_time(moved: int, model: CostModel) -> float:
    """The microseconds that it takes to pack images, which reads and writes so many bytes."""
    return model.rates.launch + moved / PACKING
