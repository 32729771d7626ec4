"""What may be timed of one product on the sm_90a path: what the model chooses from, and ways that it never looks at for
such sizes, so that tuning does not depend on where the model sees the borders between them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ptxdsl.kernels.choose import large_products
from ptxdsl.kernels.choose.large_products import LargeTile, large_tiles, takes_large
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.product_options import (
    ANY,
    FEW_ROWS,
    SWAPPED,
    Option,
    Sharing,
    depths,
    options,
    options_in_turns,
    options_shared,
)
from ptxdsl.kernels.choose.swapped import swapped
from ptxdsl.kernels.choose.warpgroup_products import choose_product, estimate, ranked_products
from ptxdsl.kernels.choose.warpgroups import ProductFacts, ranked_warpgroups
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH, COLUMNS, MOST_COLUMNS
from ptxdsl.schedule.arithmetic import ceil_div

SLICES = (2, 4)  # of a cluster, that are tried however few blocks tiles leave idle
CLUSTERS = (LargeTile(256, blocks=2), LargeTile(224, blocks=2))  # tried also where lines begin at sectors
Ranked = list[tuple[float, GemmConfig]]


def ranked_ways(facts: ProductFacts, model: CostModel, sharing: Sharing = ANY) -> Ranked:
    """Configurations that fit the GPU, with the microseconds that each should take. The first is the choice of the
    model, which stands before those that other rates than those that it goes by say less of. Where a caller says how
    blocks share K, those that do alone; of batches, those of whole tiles."""
    if facts.operands.from_registers == "b":
        return [(time, swapped(config, facts)) for time, config in ranked_ways(facts.swapped, model, sharing)]
    known = ranked_products(facts, model, sharing)
    if sharing == ANY:
        known += _whole_ways(facts, model)
    if sharing == ANY and facts.operands.batches == "none":
        known += _shared_ways(facts, model)
    fitting = [(time, config) for time, config in known if config.traits(facts.operands, ARCH).fits(ARCH)]
    chosen = choose_product(facts, model, inf, sharing)
    return [(min(time for time, _ in fitting), chosen), *fitting] if chosen and fitting else fitting


def _whole_ways(facts: ProductFacts, model: CostModel) -> Ranked:
    """Of persistent blocks: in turns, one warpgroup after the other or together, swapped, by clusters that share B."""
    operands, rates, multiprocessors = facts.operands, model.rates, model.multiprocessors
    known = ranked_warpgroups(facts, model, in_turns=operands.batches == "none")
    if takes_large(operands):
        tiles = {*large_tiles(facts), *(CLUSTERS if operands.batches == "none" else ())}
        for tile in sorted(tiles):
            time = large_products.estimate(tile, facts, rates.large, multiprocessors)
            known.append((time, tile.config(operands)))
    return known + _timed(_swapped(facts), facts, model)


def _shared_ways(facts: ProductFacts, model: CostModel) -> Ranked:
    """All tiles whole or in slices, of the rates of small products; slices of a cluster and stream-K, however many
    tiles there are."""
    sharing = [*(Sharing(slices, "cluster") for slices in SLICES), Sharing(blocks=model.multiprocessors)]
    known = [*options(facts, model.rates.warpgroups, model.multiprocessors)]
    known += [option for each in sharing for option in options_shared(facts, model.multiprocessors, each)]
    return _timed(known, facts, model)


def _swapped(facts: ProductFacts) -> Iterator[Option]:
    """Tiles of as many rows as there are: that warpgroups take in turns, of single products; and whole ones, where
    these are more than A and B are usually swapped for."""
    rows = COLUMNS * ceil_div(facts.m, COLUMNS)
    if rows > MOST_COLUMNS or facts.operands.from_registers == "a":
        return
    for tile in ((rows, columns) for columns in SWAPPED):
        if facts.operands.batches == "none":
            yield from options_in_turns(tile, facts)
        if rows > FEW_ROWS:
            yield from (Option(tile, True, *depth) for depth in depths(tile, True, facts.operands))


def _timed(known: list[Option] | Iterator[Option], facts: ProductFacts, model: CostModel) -> Ranked:
    rates, depth = model.rates.warpgroups, LINE_BYTES // facts.operands.inputs.bytes
    return [(estimate(each, facts, rates, model.multiprocessors), each.config(depth)) for each in known]
