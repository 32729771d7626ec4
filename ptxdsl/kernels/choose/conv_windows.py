"""The configuration of a convolution on the sm_90a path: tiles, and how many blocks share the K of one.

What blocks take for an iteration and for a tile was measured with convolutions on an H200 (`benchmarks/conv.py
--tiles`). Windows overlap: what a convolution reads of DRAM are its images, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroups import ProductFacts, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, TURNED
from ptxdsl.kernels.tiles.choice import tile_schedule
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div


class WindowTile(NamedTuple):
    """M and N of a tile, whether A and B are swapped, whether warpgroups take turns at tiles of their own, how many
    blocks of it shall fit a multiprocessor, and whether those of a cluster of two share the rows of A, which leave the
    L2 cache first."""

    m: int
    n: int
    swap_ab: bool = False
    pingpong: bool = False
    resident: int = 1
    streamed: bool = False

    @property
    def needs_boxes(self) -> bool:
        """Whether the output has to be stored so: wgmma waits for sums that are swapped or taken in turns else."""
        return self.swap_ab or self.pingpong or self.streamed

    @property
    def is_of_one(self) -> bool:
        """Whether a single warpgroup of a block multiplies."""
        return not self.pingpong and (self.n if self.swap_ab else self.m) == GROUP_ROWS

    @property
    def schedule(self) -> TileSchedule:
        """Of blocks that compute whole tiles."""
        return STREAMED if self.streamed else PERSISTENT


class TileCost(NamedTuple):
    """Microseconds of a block for 128 bytes of K, for all else that it does for a tile, and for a tile at least; and
    the part by which DRAM takes longer, of what the L2 cache has no room for, where much is written at once."""

    iteration: float
    tile: float
    least: float = 0.0
    bursts: float = 0.0


COSTS = {
    WindowTile(128, 256): TileCost(0.57, 1.65, bursts=0.06),
    WindowTile(128, 224): TileCost(0.51, 1.5),
    WindowTile(128, 128): TileCost(0.305, 1.05),
    WindowTile(128, 128, pingpong=True): TileCost(0.305, 0.6, 2.05),
    WindowTile(128, 128, pingpong=True, streamed=True): TileCost(0.305, 0.2, 2.05),
    WindowTile(64, 256): TileCost(0.32, 1.15),
    WindowTile(64, 208, pingpong=True): TileCost(0.25, 0.3, 1.6),
    WindowTile(64, 128): TileCost(0.197, 0.39),
    WindowTile(128, 64): TileCost(0.245, 0.45),
    WindowTile(128, 64, resident=2): TileCost(0.27, 0.3),
    WindowTile(256, 128, swap_ab=True): TileCost(0.57, 2.0),
    WindowTile(192, 128, swap_ab=True): TileCost(0.465, 1.3),
    WindowTile(192, 128, swap_ab=True, pingpong=True): TileCost(0.47, 0.5, 3.35, bursts=0.03),
    WindowTile(96, 128, swap_ab=True): TileCost(0.233, 0.95),
    WindowTile(256, 64, swap_ab=True): TileCost(0.32, 2.3),
    WindowTile(256, 64, swap_ab=True, pingpong=True): TileCost(0.42, 0.6),
}
"""Products of 64 rows and 256 columns wait less for shared memory: an iteration takes as long as it takes to write the
copies there and to read them for wgmma, at 128 bytes a clock. In turns the sums of one tile are stored while the next
one is multiplied, where that takes long enough."""
CACHE = 50e6  # bytes of the L2 cache
BESIDE = 2.8e-5  # microseconds in which a lone warpgroup, whose time no other one fills, adds operands to an element
BY_WARPS = 7e-5  # microseconds in which a block stores an element where that is not in boxes
SLOW_LINE = 0.0068  # microseconds in which a multiprocessor gets a line of a box that reaches over the last channel
PACKING = 3e6  # bytes of a microsecond
BEGINNING = 6.0  # microseconds of a launch, with its first copies, where nothing is in the caches
WARPS_READ = 1.35  # times as long as the bandwidth allows: what the sm_80 path takes at least
MEETING = 1.5  # for each of the blocks that share a tile
COLUMN = 0.001342  # what WarpgroupRates has of the GPU on which this was measured
WIDEST_SPLIT, WIDEST_INTEGERS = 128, 64  # columns of a tile that blocks share, of float sums and of int32
LEAST_ITERATIONS, LEAST_STAGES = 4, 3
PERSISTENT, IN_COLUMNS = Strips(), IdentityThreadblockSwizzle(1)
STREAMED = ClusterStrips((1, 2), streamed=True)
TURNED_PRODUCTS = WindowTile(192, 128, swap_ab=True, pingpong=True), WindowTile(96, 128, swap_ab=True)


class WindowFacts(NamedTuple):
    """What the choice depends on: the product, whose K is in whole lines of a box; the bytes that are read and written;
    how many lines of boxes reach over the last channel; whether it goes as a product of matrices, as windows of one
    pixel do; and whether tiles can be stored in boxes."""

    product: ProductFacts
    moved: int
    slow_lines: int
    is_product: bool
    in_boxes: bool


def choose_windows(facts: WindowFacts, model: CostModel) -> tuple[float, GemmConfig]:
    """The microseconds that it should take, and the configuration."""
    return min(ranked_windows(facts, model), key=lambda option: option[0])


def ranked_windows(facts: WindowFacts, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_windows` chooses from, with the microseconds that each should take."""
    rates = model.rates.warpgroups
    slower, beyond = rates.column / COLUMN, max(0.0, facts.moved - CACHE)
    timed = []
    for computing, bursts, config in _options(facts, model.multiprocessors):
        reading = (facts.moved + bursts * beyond) / rates.dram_bandwidth
        across = ceil_div(facts.product.n, config.tile[1])
        computing += facts.slow_lines * across * SLOW_LINE / model.multiprocessors
        longer, shorter = sorted((slower * computing, reading), reverse=True)
        timed.append((BEGINNING + longer + rates.hidden * shorter, config))
    return timed


def _options(facts: WindowFacts, multiprocessors: int) -> Iterator[tuple[float, float, GemmConfig]]:
    """The microseconds that blocks work, the `bursts` of what they write, and what can be launched."""
    for shape, cost in COSTS.items():
        if not facts.in_boxes:
            cost = cost._replace(tile=cost.tile + BY_WARPS * shape.m * shape.n)
        elif facts.product.operands.extras and shape.is_of_one:
            cost = cost._replace(tile=cost.tile + BESIDE * shape.m * shape.n)
        if _is_for(shape, facts, multiprocessors):
            yield from ((t, cost.bursts, c) for t, c in _whole(shape, cost, facts.product, multiprocessors))
        if shape == WindowTile(shape.m, shape.n):
            yield from ((t, cost.bursts, c) for t, c in _shared(shape, cost, facts.product, multiprocessors))


def _is_for(shape: WindowTile, facts: WindowFacts, multiprocessors: int) -> bool:
    """Whether there is a kernel, and it was measured in such a case: turns and clusters for several tiles of a block,
    of types of 16 bits, clusters for all columns of a product, swapped tiles of products for many filters and several
    tiles of pixels, two blocks for few filters. Lines of B are whole where they do not lie along K."""
    product, line = facts.product, LINE_BYTES // facts.product.operands.inputs.bytes
    if (shape.needs_boxes and not facts.in_boxes) or (product.operands.b_major == "mn" and shape.n % line):
        return False
    if shape.swap_ab and facts.is_product and (shape not in TURNED_PRODUCTS or product.m <= shape.m):
        return False
    if shape.streamed or shape.pingpong:
        has_columns = not shape.streamed or (facts.is_product and shape.n < product.n <= 2 * shape.n)
        return has_columns and product.operands.inputs in TURNED and _count(shape, product) > multiprocessors
    return shape.resident == 1 or product.n <= shape.n


def _count(shape: WindowTile, facts: ProductFacts) -> int:
    """How many tiles there are."""
    return ceil_div(facts.m, shape.m) * ceil_div(facts.n, shape.n)


def _tile(shape: WindowTile, facts: ProductFacts) -> tuple[int, int, int]:
    return shape.m, shape.n, LINE_BYTES // facts.operands.inputs.bytes


def _whole(
    shape: WindowTile, cost: TileCost, facts: ProductFacts, multiprocessors: int
) -> Iterator[tuple[float, GemmConfig]]:
    """Of blocks that compute tile after tile."""
    tile, swap_ab, pingpong = _tile(shape, facts), shape.swap_ab, shape.pingpong
    operands = replace(facts.operands, out_boxes=swap_ab)
    stages = stages_of(tile, operands, swap_ab, shape.resident, shape.schedule, pingpong)
    if stages >= LEAST_STAGES:
        rounds, iterations = ceil_div(_count(shape, facts), multiprocessors), ceil_div(facts.k, tile[2])
        yield (
            rounds * max(iterations * cost.iteration + cost.tile, cost.least),
            GemmConfig(tile, stages=stages, schedule=shape.schedule, atom=WGMMA, swap_ab=swap_ab, pingpong=pingpong),
        )


def _shared(
    shape: WindowTile, cost: TileCost, facts: ProductFacts, multiprocessors: int
) -> Iterator[tuple[float, GemmConfig]]:
    """Of blocks that share the K of a tile, where there are too few for all multiprocessors."""
    tile, widest = _tile(shape, facts), WIDEST_INTEGERS if facts.operands.sum.is_integer else WIDEST_SPLIT
    iterations = ceil_div(facts.k, tile[2])
    most = min(MOST_BLOCKS, iterations // LEAST_ITERATIONS, multiprocessors // _count(shape, facts))
    for slices in range(2, most + 1) if shape.n <= widest else ():
        stages = stages_of(tile, facts.operands, schedule=tile_schedule(IN_COLUMNS, slices, "cluster"))
        if stages >= LEAST_STAGES:
            time = ceil_div(iterations, slices) * cost.iteration + cost.tile + slices * MEETING
            yield (
                time,
                GemmConfig(tile, stages=stages, schedule=IN_COLUMNS, atom=WGMMA, split_k=slices, reduction="cluster"),
            )


def least_by_warps(facts: WindowFacts, model: CostModel) -> float:
    """The microseconds that the sm_80 path takes at least, which its own rates do not know: images are read once."""
    return BEGINNING + WARPS_READ * facts.moved / model.rates.warpgroups.dram_bandwidth


def packing_time(moved: int, model: CostModel) -> float:
    """The microseconds that it takes to pack images, which reads and writes so many bytes."""
    return model.rates.launch + moved / PACKING
