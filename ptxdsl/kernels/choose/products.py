"""The configuration of a product, a batch or a convolution: the measured winner of its shape class, else the candidate
with the least estimate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ptxdsl.kernels.candidates.candidate import IN_COLUMNS, IN_ROWS, Candidate
from ptxdsl.kernels.candidates.facts import Facts, ProductFacts, ProductKind, class_name
from ptxdsl.kernels.candidates.sm80 import candidate, candidates_of_convolutions, candidates_of_products, of_groups
from ptxdsl.kernels.candidates.sm90 import (
    DATA_PARALLEL,
    HEURISTIC,
    Decomposition,
    candidates_of_groups,
    candidates_of_product,
)
from ptxdsl.kernels.choose.estimate import estimate
from ptxdsl.kernels.choose.rates import Rates
from ptxdsl.kernels.config import GemmConfig, specialise
from ptxdsl.kernels.product.operands import Major, Operands, Side
from ptxdsl.kernels.sm90.stages import stages_of
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import ThreadblockSwizzle

Ranked = list[tuple[float, GemmConfig]]
USUAL_TILES = (128, 128), (128, 256)  # for a caller who chooses wgmma and no tile
TRANSPOSED: Mapping[Schedule, ThreadblockSwizzle] = {IN_COLUMNS: IN_ROWS, IN_ROWS: IN_COLUMNS}


def rank(candidates: Iterable[Candidate], facts: Facts, rates: Rates) -> Ranked:
    """Return configurations with their estimates, the fastest first; of those that tie, those whose blocks leave room
    for the next launch."""
    timed = [(estimate(each, facts, rates), -each.resident, each.config) for each in candidates]
    return [(time, config) for time, _, config in sorted(timed, key=lambda entry: entry[:2])]


def measured_label(facts: Facts, rates: Rates, form: str = "") -> str:
    """Return the label of the measured winner of the shape class, else of the class without an epilogue, else ""."""
    known = [facts, facts.plain] if isinstance(facts, ProductFacts) else [facts]
    return next(filter(None, (rates.winners.get(class_name(each, form)) for each in known)), "")


def best(ranked: Ranked, facts: Facts, rates: Rates, form: str = "") -> GemmConfig:
    """Return the measured winner of the shape class if it is a candidate, else the one with the least estimate."""
    wanted = measured_label(facts, rates, form)
    return next((config for _, config in ranked if wanted and config.label == wanted), ranked[0][1])


def ranked_products(facts: ProductFacts, rates: Rates, decomposition: Decomposition = HEURISTIC) -> Ranked:
    """Return the configurations of the sm_90a path with their estimates, the fastest first."""
    if facts.operands.from_registers is Side.B:
        return [
            (time, transposed(config, facts)) for time, config in ranked_products(facts.swapped, rates, decomposition)
        ]
    known = _at_least_one(facts)
    return rank(candidates_of_product(known, rates.multiprocessors, decomposition), known, rates)


def choose_product(facts: ProductFacts, rates: Rates, decomposition: Decomposition = HEURISTIC) -> GemmConfig | None:
    """Return the configuration of the sm_90a path that should take the least time; None if no blocks share K as the
    caller says."""
    ranked = ranked_products(facts, rates, decomposition)
    if not ranked:
        return None
    return best(ranked, facts, rates) if decomposition == HEURISTIC else ranked[0][1]


def ranked_by_warps(facts: ProductFacts, arch: str, rates: Rates, scheduled: bool = False) -> Ranked:
    """Return the configurations of the sm_80 path with their estimates, the fastest first."""
    known = _at_least_one(facts)
    return rank(candidates_of_products(known, arch, rates.multiprocessors, scheduled), known, rates)


def time_by_warps(config: GemmConfig, facts: ProductFacts, rates: Rates) -> float:
    """Return the microseconds that a configuration of the sm_80 path should take."""
    whole = candidate(replace(config, split_k=1), facts.operands.inputs, facts.operands.narrowest)
    known = replace(whole, config=config)
    return estimate(known, _at_least_one(facts), rates)


def ranked_convolutions(facts: ProductFacts, rates: Rates, is_wide: bool, split_k: int | None = None) -> Ranked:
    """Return the configurations of the sm_80 path for a convolution with their estimates, the fastest first."""
    return rank(candidates_of_convolutions(facts, rates.multiprocessors, is_wide, split_k), facts, rates)


def ranked_groups_by_warps(facts: Facts, arch: str, operands: Operands, schedule: TileSchedule, rates: Rates) -> Ranked:
    """Return the configurations of the sm_80 path, without a schedule, with their estimates, the fastest first."""
    every = of_groups(operands.inputs, operands.narrowest, operands.a_major == operands.b_major is Major.K)
    fitting = [each for each in every if specialise(each, schedule=schedule).traits(operands, arch).fits(arch)]
    known = [candidate(each, operands.inputs, operands.narrowest, persistent=True) for each in fitting]
    return rank(known, facts, rates)


def ranked_groups(facts: Facts, rates: Rates) -> Ranked:
    """Return the configurations of the sm_90a path, without a schedule, with their estimates, the fastest first."""
    ranked = rank(candidates_of_groups(facts), facts, rates)
    return [(time, specialise(config, schedule=GemmConfig.schedule)) for time, config in ranked]


def usual_tile(facts: ProductFacts, rates: Rates) -> tuple[int, int, int]:
    """Return the tile of whole tiles for a caller who chooses wgmma and no tile: the faster of two."""
    ranked = ranked_products(facts._replace(kind=ProductKind.GEMM), rates, DATA_PARALLEL)
    known = (config.tile for _, config in ranked if config.tile[:2] in USUAL_TILES and not config.swap_ab)
    return next(known, (*USUAL_TILES[0], 128 // facts.operands.inputs.bytes))


def transposed(config: GemmConfig, facts: ProductFacts) -> GemmConfig:
    """Return the configuration of a product whose first factor is B, from that of BᵀAᵀ."""
    n, m, depth = config.tile
    known = replace(
        config, tile=(m, n, depth), schedule=TRANSPOSED.get(config.schedule, config.schedule), swap_ab=True, stagger=0
    )
    boxed = (replace(facts.operands, out_boxes=each) for each in (False, True))
    most = min(stages_of(known.tile, each, True, 1, known.tile_schedule, known.pingpong) for each in boxed)
    stages = min(config.stages, most)
    return replace(known, stages=stages, stagger=min(config.stagger, max(0, stages - 1)))


def _at_least_one(facts: ProductFacts) -> ProductFacts:
    m, n, k, batches = (max(1, extent) for extent in facts[:4])
    return facts._replace(m=m, n=n, k=k, batches=batches)
