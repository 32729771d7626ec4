"""The configuration of a product of scaled 8-bit floats: that of a plain one, but where sums are scaled along K."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from operator import itemgetter

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.product_options import FEW_ROWS, WHOLE, Option, options
from ptxdsl.kernels.choose.warpgroup_products import choose_product, estimate
from ptxdsl.kernels.choose.warpgroups import GroupFacts, ProductFacts, ranked_scaled
from ptxdsl.kernels.choose.ways import Ranked, ranked_ways
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS

# With scales of blocks, beside whose sums products are in registers, and the scales of rows or columns: columns of a
# tile of few rows, of one warpgroup and of two, which give each other some; rows of one whose A and B are swapped; and
# both where a multiprocessor holds two blocks
MOST_COLUMNS, MOST_SWAPPED = {GROUP_ROWS: 160, 2 * GROUP_ROWS: 192}, 32
MOST_COLUMNS_OF_TWO, MOST_SWAPPED_OF_TWO = 64, {64: 16, 128: 8}
LEAST_SHARED = 32  # columns of a tile that have one scale, at least
SCALED = 0.09  # microseconds of an iteration whose products end, and are scaled, before the next begin: by estimate


def choose_scaled_product(facts: ProductFacts, model: CostModel) -> GemmConfig:
    """The configuration that should take the least time. Scales of tensors, and of rows and columns, come in where sums
    are stored, and cost a product little; those of blocks take registers for products beside the sums."""
    if facts.operands.scaling is Scaling.BLOCKS:
        _, config = min(_ranked_blocks(facts, model), key=itemgetter(0))
        return config
    chosen = choose_product(facts, model, inf) or choose_product(facts, model, inf, WHOLE)
    assert chosen is not None  # there is no other path
    return chosen


def ranked_scaled_products(facts: ProductFacts, model: CostModel) -> Ranked:
    """The configurations that may be timed, with the microseconds that each should take."""
    return _ranked_blocks(facts, model) if facts.operands.scaling is Scaling.BLOCKS else ranked_ways(facts, model)


def choose_scaled_groups(facts: GroupFacts, model: CostModel) -> GemmConfig:
    """The same of groups of rows."""
    _, config = min(ranked_scaled_groups(facts, model), key=itemgetter(0))
    return config


def ranked_scaled_groups(facts: GroupFacts, model: CostModel) -> Ranked:
    """The same of groups of rows."""
    return _ranked_whole(facts, model) if facts.operands.scaling is Scaling.BLOCKS else ranked_scaled(facts, model)


def _ranked_whole(facts: GroupFacts | ProductFacts, model: CostModel) -> Ranked:
    """Whole tiles by scales of blocks. Of wide ones two warpgroups multiply halves of the columns."""
    ranked, most = ranked_scaled(facts, model), MOST_COLUMNS[GROUP_ROWS]
    return [(time, each) for time, each in ranked if each.tile[0] > GROUP_ROWS or each.tile[1] <= most]


def _ranked_blocks(facts: ProductFacts, model: CostModel) -> Ranked:
    """With scales of blocks: persistent blocks; or, where rows are few or half of the multiprocessors would be idle,
    small tiles too, and blocks that share K."""
    whole = _ranked_whole(facts, model)
    _, usual = min(whole, key=itemgetter(0))
    if facts.m > FEW_ROWS and 2 * facts.tiles(usual.tile) > model.multiprocessors:
        return whole
    rates = replace(model.rates.warpgroups, narrow=model.rates.warpgroups.narrow + SCALED)
    depth = LINE_BYTES // facts.operands.inputs.bytes
    small = [
        (estimate(option, facts, rates, model.multiprocessors), option.config(depth)) for option in _small(facts, model)
    ]
    return small or whole


def _small(facts: ProductFacts, model: CostModel) -> Iterator[Option]:
    """Ways to compute few rows by scales of blocks."""
    known = facts._replace(m=max(1, facts.m), n=max(1, facts.n), k=max(1, facts.k), batches=max(1, facts.batches))
    for option in options(known, model.rates.warpgroups, model.multiprocessors):
        is_shared = option.slices > 1 and facts.operands.batches == "none"
        if _has_registers(option) and (is_shared or option.way == ""):
            yield option


def _has_registers(option: Option) -> bool:
    """Whether there are enough for scales of blocks."""
    (rows, columns), are_two = option.tile, option.resident > 1
    if option.swap_ab:
        return rows <= (MOST_SWAPPED_OF_TWO[columns] if are_two else MOST_SWAPPED)
    most = MOST_COLUMNS.get(rows, 0)
    if are_two:
        most = MOST_COLUMNS_OF_TWO if rows == GROUP_ROWS else 0
    return columns <= most and columns % LEAST_SHARED == 0
