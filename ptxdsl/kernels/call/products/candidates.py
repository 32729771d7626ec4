"""The candidates that are timed for a product: those of its shape class, the same for all products of the class."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.errors import Error
from ptxdsl.kernels.call.products.configure import configure
from ptxdsl.kernels.call.products.lines import LineCopies, facts_with, takes_copies, ways_to_copy
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.candidates.facts import ProductFacts, class_of
from ptxdsl.kernels.candidates.sm90 import ANY, WHOLE
from ptxdsl.kernels.choose.products import Ranked, best, ranked_by_warps, ranked_products
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import INPUTS
from ptxdsl.kernels.traits.traits import Traits

Timed = list[tuple[float, TuningCandidate]]


def describe_class(selection: Selection) -> str:
    """Return the shape class of a product, with the schedule that the caller asks for."""
    choice, copies = selection.choice, [copies.names for copies in _copies(selection)]
    said = choice.schedule, choice.split_k, choice.reduction
    return f"{class_of(selection.facts)}, mapped {selection.is_mappable}, copies {copies}, said {said}"


def candidates_of(selection: Selection) -> Timed:
    """All that can be launched, with the microseconds that each should take: the choice of the model for the largest
    product of the class, other configurations of both paths, and those of wgmma with copies of operands before."""
    known = class_of(selection.facts)
    if not known.m or not known.n or not known.k or not known.batches:
        return []
    timed: Timed = []
    if not selection.takes_wgmma:
        timed += [(time, TuningCandidate(config)) for time, config in _by_warps(selection, known)]
    if selection.takes_warpgroups and selection.is_for_wgmma:
        timed += _by_wgmma(selection, known)
    known_times: dict[TuningCandidate, float] = {}
    for time, each in timed:
        known_times.setdefault(each, time)
    return [(time, each) for each, time in known_times.items() if _is_launchable(selection, each)]


def _traits_of(selection: Selection, candidate: TuningCandidate, operands: Operands) -> Traits:
    """Return the traits of the kernel of a candidate, without an epilogue. Raises LaunchError for what no GPU of this
    kind can launch."""
    choice = selection.choice._replace(config=candidate.config, epilogue=None)
    said = replace(selection, choice=choice).config()
    return configure(said, operands, selection.device, selection.takes_warpgroups, shares_copies=True)


def _operands_of(selection: Selection, candidate: TuningCandidate) -> Operands:
    """Return the operand facts of the kernel of a candidate: of the copies that it makes."""
    if not candidate.copied:
        return selection.operands
    return facts_with(LineCopies.named(candidate.copied), selection.facts, selection.problem).operands


def _is_launchable(selection: Selection, candidate: TuningCandidate) -> bool:
    """Return True if a candidate agrees with the options of the caller and fits the GPU."""
    try:
        _traits_of(selection, candidate, _operands_of(selection, candidate))
    except Error:
        return False
    return True


def _copies(selection: Selection) -> list[LineCopies]:
    """The copies of operands that may be made before, with the microseconds that they take; those that cannot be read
    otherwise are always among them."""
    problem = selection.problem
    may_take = selection.takes_warpgroups and selection.is_for_wgmma and problem.a.type in INPUTS
    if not may_take or not takes_copies(problem):
        return []
    return [copies for copies in ways_to_copy(problem, selection.rates) if copies.names]


def _by_wgmma(selection: Selection, known: ProductFacts) -> Timed:
    """Of the sm_90a path, with each way to copy operands. Where no other path is for the call, and the model knows of
    no tile whose blocks share K as the caller says, those of whole tiles, of which that is said."""
    timed: Timed = []
    for copies in [*([LineCopies.named("")] if selection.is_mappable else []), *_copies(selection)]:
        facts = facts_with(copies, known, selection.problem) if copies.names else known
        ranked = _ranked(facts, selection)
        timed += [(time + copies.time, TuningCandidate(config, copies.names)) for time, config in ranked]
    return timed


def _ranked(facts: ProductFacts, selection: Selection) -> Ranked:
    """The candidates for what the caller says of K, the choice of config=None first."""
    ranked = ranked_products(facts, selection.rates, selection.sharing)
    if selection.takes_wgmma and not ranked:
        ranked = ranked_products(facts, selection.rates, WHOLE)
    return _chosen_first(ranked, facts, selection) if selection.sharing == ANY else ranked


def _by_warps(selection: Selection, known: ProductFacts) -> Ranked:
    """Of the sm_80 path, the choice of config=None first."""
    ranked = ranked_by_warps(known, selection.arch, selection.rates, *selection.lines, selection.is_scheduled)
    return _chosen_first(ranked, known, selection)


def _chosen_first(ranked: Ranked, facts: ProductFacts, selection: Selection) -> Ranked:
    """The same with the choice of config=None in front, which is timed whatever its estimate."""
    return [(ranked[0][0], best(ranked, facts, selection.rates)[1]), *ranked] if ranked else []
