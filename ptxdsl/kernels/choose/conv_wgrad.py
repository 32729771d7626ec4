"""The configuration of the gradient of a convolution's filters: its tiles, and how many blocks share the pixels of one.

There are few tiles, and many pixels to add up. So blocks share each tile, as many as all multiprocessors have, and add
up a part of it each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_rates import FilterGradientRates
from ptxdsl.kernels.choose.warpgroups import ProductFacts, overlapped, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.resolve import tile_schedule
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div

TILES = ((128, 256), (128, 224), (128, 128), (64, 256), (64, 128), (128, 64))  # M and N
WIDEST_SPLIT = 128  # columns of a tile that blocks share
LEAST_ITERATIONS = 4  # of a block
PERSISTENT, IN_COLUMNS = Strips(), IdentityThreadblockSwizzle(1)


class GradientFacts(NamedTuple):
    """What the choice depends on: the product, whose K are the pixels of the output, and the bytes that are read and
    written."""

    product: ProductFacts
    moved: int


class GradientOption(NamedTuple):
    """A tile, and how many blocks share its pixels."""

    m: int
    n: int
    slices: int = 1

    @property
    def name(self) -> str:
        """As tables of rates have it."""
        return f"{self.m}x{self.n}"

    def config(self, facts: ProductFacts) -> GemmConfig:
        tile = self.m, self.n, LINE_BYTES // facts.operands.inputs.bytes
        whole = GemmConfig(tile, stages=stages_of(tile, facts.operands), schedule=PERSISTENT, atom=WGMMA)
        if self.slices == 1:
            return whole
        stages = stages_of(tile, facts.operands, schedule=tile_schedule(IN_COLUMNS, self.slices, "scatter"))
        return replace(whole, stages=stages, schedule=IN_COLUMNS, split_k=self.slices, reduction="scatter")


def choose_wgrad(facts: GradientFacts, model: CostModel) -> GemmConfig:
    """The configuration that should take the least time."""
    return min(ranked_wgrad(facts, model), key=itemgetter(0))[1]


def ranked_wgrad(facts: GradientFacts, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """Configurations, and the microseconds that each should take."""
    rates, multiprocessors = model.rates.wgrad, model.multiprocessors
    return [
        (estimate(option, facts, rates, multiprocessors), option.config(facts.product))
        for option in options(facts.product, multiprocessors)
    ]


def options(facts: ProductFacts, multiprocessors: int) -> Iterator[GradientOption]:
    """What can be launched."""
    for m, n in TILES:
        if m < 2 * max(facts.m, 64):
            yield GradientOption(m, n)
            slices = min(multiprocessors // _count(m, n, facts), _iterations(facts) // LEAST_ITERATIONS)
            if n <= WIDEST_SPLIT and slices > 1:
                yield GradientOption(m, n, slices)


def _count(m: int, n: int, facts: ProductFacts) -> int:
    """How many tiles there are."""
    return ceil_div(facts.m, m) * ceil_div(facts.n, n)


def _iterations(facts: ProductFacts) -> int:
    return ceil_div(facts.k, LINE_BYTES // facts.operands.inputs.bytes)


def estimate(option: GradientOption, facts: GradientFacts, rates: FilterGradientRates, multiprocessors: int) -> float:
    """Microseconds."""
    m, n, slices = option
    count = _count(m, n, facts.product)
    iterations = ceil_div(_iterations(facts.product), slices)
    each = iterations * rates.iteration[option.name] + rates.tile[option.name]
    computing = ceil_div(count * slices, multiprocessors) * each
    reading = facts.moved / rates.dram_bandwidth
    if slices > 1:
        sums = slices * count * m * n * facts.product.operands.sum.bytes
        computing += rates.meeting + sums / rates.sum_bandwidth
    return overlapped(computing, reading, rates.hidden)
