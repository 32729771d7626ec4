"""The candidates that are timed for a product: those of its shape class, the same for all products of the class."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.errors import Error
from ptxdsl.kernels.call.paths.kernel import configure
from ptxdsl.kernels.call.paths.select import trials
from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.candidates.facts import class_name, class_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.product.operands import Operands


def describe_class(selection: Selection) -> str:
    """Return the name of the shape class of a product in tables of measured winners, with the options of the caller."""
    return class_name(selection.facts) + said(selection.choice)


def said(choice: Choice) -> str:
    """Return the options of a caller that tables of measured winners do not know, "" for none."""
    options = choice.schedule, choice.split_k, choice.reduction
    return "" if options == (None, None, None) else f", said {options}"


def candidates_of(selection: Selection) -> list[tuple[float, TuningCandidate]]:
    """Return all that can be launched, with the microseconds that each should take for the largest product of the
    class."""
    known = class_of(selection.facts)
    if not known.m or not known.n or not known.k or not known.batches:
        return []
    request = selection.request_for(known, selection.copies)
    facts = {layout.copied: layout.facts for layout in request.copies}
    return [
        (time, each)
        for time, each in trials(request, selection.paths)
        if _is_launchable(selection, each, facts.get(each.copied, known).operands)
    ]


def _is_launchable(selection: Selection, candidate: TuningCandidate, operands: Operands) -> bool:
    """Return True if a candidate agrees with the options of the caller and fits the GPU."""
    choice = selection.choice._replace(config=candidate.config, epilogue=None)
    try:
        configure(replace(selection, choice=choice).config(), operands, selection.device, shares_copies=True)
    except Error:
        return False
    return True
