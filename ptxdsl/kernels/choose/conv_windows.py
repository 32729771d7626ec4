"""The configuration of a convolution on the sm_90a path: tiles, and how many blocks share the K of one.

Windows overlap: what a convolution reads of DRAM are its images, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_rates import WindowRates
from ptxdsl.kernels.choose.warpgroups import ProductFacts, loading, most_stagger, overlapped, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, MOST_COLUMNS, TURNED
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.resolve import tile_schedule
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import f32


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
    def is_shared(self) -> bool:
        """Whether two warpgroups share a tile by its rows: one ends it after the other then."""
        return not (self.swap_ab or self.pingpong or self.is_of_one)

    @property
    def name(self) -> str:
        """As tables of rates have it."""
        how = f"{' resident 2' * (self.resident == 2)}{' streamed' * self.streamed}"
        return f"{'swap ' * self.swap_ab}{'turns ' * self.pingpong}{self.m}x{self.n}{how}"

    @property
    def schedule(self) -> TileSchedule:
        """Of blocks that compute whole tiles."""
        return STREAMED if self.streamed else PERSISTENT


TILES = (
    WindowTile(128, 256),
    WindowTile(128, 224),
    WindowTile(128, 128),
    WindowTile(128, 128, pingpong=True),
    WindowTile(128, 128, pingpong=True, streamed=True),
    WindowTile(64, 256),
    WindowTile(64, 208, pingpong=True),
    WindowTile(64, 128),
    WindowTile(128, 64),
    WindowTile(128, 64, resident=2),
    WindowTile(256, 128, swap_ab=True),
    WindowTile(192, 128, swap_ab=True),
    WindowTile(192, 128, swap_ab=True, pingpong=True),
    WindowTile(96, 128, swap_ab=True),
    WindowTile(256, 64, swap_ab=True),
    WindowTile(256, 64, swap_ab=True, pingpong=True),
)
"""Products of 64 rows and 256 columns wait less for shared memory: an iteration takes as long as it takes to write the
copies there and to read them for wgmma, at 128 bytes a clock. In turns the sums of one tile are stored while the next
one is multiplied, where that takes long enough."""
WIDEST_SPLIT, WIDEST_INTEGERS = 128, 64  # columns of a tile that blocks share, of float sums and of int32
LEAST_ITERATIONS, LEAST_STAGES = 4, 3
ROUNDED = 1.15  # times as long as the rates say float32 takes there, by which twenty layers were off on average
PERSISTENT, IN_COLUMNS = Strips(), IdentityThreadblockSwizzle(1)
STREAMED = ClusterStrips((1, 2), streamed=True)
TURNED_PRODUCTS = WindowTile(192, 128, swap_ab=True, pingpong=True), WindowTile(96, 128, swap_ab=True)


class WindowOption(NamedTuple):
    """A tile, and how many blocks of a cluster share its K."""

    tile: WindowTile
    slices: int = 1

    def config(self, facts: ProductFacts) -> GemmConfig:
        tile, slices = self
        swap_ab, pingpong, stages = tile.swap_ab, tile.pingpong, _whole_stages(tile, facts)
        whole = GemmConfig(
            _extents(tile, facts), stages=stages, schedule=tile.schedule, atom=WGMMA, swap_ab=swap_ab, pingpong=pingpong
        )
        if slices == 1:
            is_staggered = tile.is_shared and _iterations(facts) > stages  # else the next tile has none to hide behind
            return replace(whole, stagger=most_stagger(stages)) if is_staggered else whole
        stages = _shared_stages(tile, slices, facts)
        return replace(whole, stages=stages, schedule=IN_COLUMNS, split_k=slices, reduction="cluster")


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
    rates, multiprocessors = model.rates.windows, model.multiprocessors
    return [
        (estimate(option, facts, rates, multiprocessors), option.config(facts.product))
        for option in options(facts, multiprocessors)
    ]


def estimate(option: WindowOption, facts: WindowFacts, rates: WindowRates, multiprocessors: int) -> float:
    """Microseconds."""
    tile, slices = option
    iterations = ceil_div(_iterations(facts.product), slices)
    rest = rates.tile[tile.name] + rates.unboxed * (not facts.in_boxes) * tile.m * tile.n
    if facts.in_boxes and facts.product.operands.extras and tile.is_of_one:
        rest += rates.beside * tile.m * tile.n
    iteration = rates.iteration[tile.name] + loading(facts.product.operands, tile.n)
    each = max(iterations * iteration + rest, rates.least.get(tile.name, 0.0))
    computing = ceil_div(_count(tile, facts.product) * slices, multiprocessors) * each
    computing += slices * rates.meeting if slices > 1 else 0.0
    computing += facts.slow_lines * ceil_div(facts.product.n, tile.n) * rates.slow_line / multiprocessors
    beyond = rates.bursts.get(tile.name, 0.0) * max(0.0, facts.moved - rates.cache)
    return rates.beginning + overlapped(computing, (facts.moved + beyond) / rates.dram_bandwidth, rates.hidden)


def options(facts: WindowFacts, multiprocessors: int) -> Iterator[WindowOption]:
    """What can be launched."""
    for tile in TILES:
        if _is_for(tile, facts, multiprocessors) and _whole_stages(tile, facts.product) >= LEAST_STAGES:
            yield WindowOption(tile)
        if tile == WindowTile(tile.m, tile.n):
            yield from _shared(tile, facts.product, multiprocessors)


def _is_for(shape: WindowTile, facts: WindowFacts, multiprocessors: int) -> bool:
    """Whether there is a kernel, and it was measured in such a case: turns and clusters for several tiles of a block,
    of types of 16 bits, clusters for all columns of a product, swapped tiles of products for many filters and several
    tiles of pixels, two blocks for few filters. Lines of B are whole where they do not lie along K."""
    product, line = facts.product, LINE_BYTES // facts.product.operands.inputs.bytes
    if (shape.needs_boxes and not facts.in_boxes) or (product.operands.b_major == "mn" and shape.n % line):
        return False
    if product.operands.from_registers == "a" and (shape.swap_ab or (shape.is_of_one and shape.n < MOST_COLUMNS)):
        return False  # A is the first factor; one warpgroup alone waits for narrow products of what it loads
    if shape.swap_ab and facts.is_product and (shape not in TURNED_PRODUCTS or product.m <= shape.m):
        return False
    if shape.streamed or shape.pingpong:
        has_columns = not shape.streamed or (facts.is_product and shape.n < product.n <= 2 * shape.n)
        return has_columns and product.operands.inputs in TURNED and _count(shape, product) > multiprocessors
    return shape.resident == 1 or product.n <= shape.n


def _count(shape: WindowTile, facts: ProductFacts) -> int:
    """How many tiles there are."""
    return ceil_div(facts.m, shape.m) * ceil_div(facts.n, shape.n)


def _extents(tile: WindowTile, facts: ProductFacts) -> tuple[int, int, int]:
    return tile.m, tile.n, LINE_BYTES // facts.operands.inputs.bytes


def _iterations(facts: ProductFacts) -> int:
    """Of a block along K."""
    return ceil_div(facts.k * facts.operands.inputs.bytes, LINE_BYTES)


def _whole_stages(tile: WindowTile, facts: ProductFacts) -> int:
    """Of blocks that compute tile after tile."""
    operands = replace(facts.operands, out_boxes=tile.swap_ab)
    return stages_of(_extents(tile, facts), operands, tile.swap_ab, tile.resident, tile.schedule, tile.pingpong)


def _shared_stages(tile: WindowTile, slices: int, facts: ProductFacts) -> int:
    """Of blocks that share the K of a tile."""
    return stages_of(_extents(tile, facts), facts.operands, schedule=tile_schedule(IN_COLUMNS, slices, "cluster"))


def _shared(tile: WindowTile, facts: ProductFacts, multiprocessors: int) -> Iterator[WindowOption]:
    """Of blocks that share the K of a tile, where there are too few for all multiprocessors."""
    widest = WIDEST_INTEGERS if facts.operands.sum.is_integer else WIDEST_SPLIT
    most = min(MOST_BLOCKS, _iterations(facts) // LEAST_ITERATIONS, multiprocessors // _count(tile, facts))
    for slices in range(2, most + 1) if tile.n <= widest else ():
        if _shared_stages(tile, slices, facts) >= LEAST_STAGES:
            yield WindowOption(tile, slices)


def time_by_warps(facts: WindowFacts, computing: float, model: CostModel) -> float:
    """The microseconds that the sm_80 path should take, which multiplies for `computing`: its own rates do not know
    that images are read once."""
    rates, rounding = model.rates.windows, ROUNDED if facts.product.operands.inputs is f32 else 1.0
    return rounding * (rates.by_warps + max(computing, rates.reading * facts.moved / rates.dram_bandwidth))


def packing_time(moved: int, model: CostModel) -> float:
    """The microseconds that it takes to pack images, which reads and writes so many bytes."""
    return model.rates.launch + moved / model.rates.windows.packing
