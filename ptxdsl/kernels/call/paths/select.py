"""Select a configuration: the measured winner of the shape class, else the one with the least estimate of all paths."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.paths.path import GroupRequest, InputLayout, Path, Request
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.paths.sm90 import WarpgroupPath
from ptxdsl.kernels.candidates.sm90 import HEURISTIC
from ptxdsl.kernels.choose.products import Ranked, measured_label
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.traits.traits import Traits

PATHS: list[Path] = [WarpPath(), WarpgroupPath()]
COPY_MARGIN = (
    1.02  # times the estimate, for each copy that could be left out: estimates are no closer to measured times
)


def path_of(kernel: GemmConfig | Traits) -> Path:
    """Return the path of a configuration, or of the traits of a kernel."""
    return next(path for path in PATHS if path.name == kernel.path)


class RankedLayout(NamedTuple):
    """The configurations of one path for operands in a layout, the fastest first. `winners` are the labels of measured
    winners: for the call including its copies, and for the product of the copies alone."""

    layout: InputLayout
    ranked: Ranked
    winners: tuple[str, str]

    @property
    def best(self) -> tuple[float, GemmConfig]:
        """The winner, or the configuration with the least estimate, with its microseconds including the copies. The
        winner of the call counts as 0, so that it precedes all estimates."""
        of_call, of_product = self.winners
        least, config = self.ranked[0]
        time = (self.layout.time + least) * COPY_MARGIN**self.layout.optional
        for _, each in self.ranked if of_call or of_product else ():
            if each.label == of_product:
                config, time = each, 0.0 if self.layout.measured else time
            if of_call and TuningCandidate(each, self.layout.copied).label == of_call:
                return 0.0, each
        return time, config


def ranked_layouts(request: Request, paths: Sequence[Path] = PATHS) -> list[RankedLayout]:
    """Return the ranked layouts of all paths that do not refuse a call."""
    ranked_by_layout = []
    for path in paths:
        for layout in path.layouts(request) if path.refusal(request) is None else ():
            if ranked := path.ranked(layout.facts, request):
                ranked_by_layout.append(RankedLayout(layout, ranked, _winners(layout, request)))
    return ranked_by_layout


def _winners(layout: InputLayout, request: Request) -> tuple[str, str]:
    """Return the labels of the measured winners, "" if there is none or the caller sets the decomposition of K."""
    if request.decomposition != HEURISTIC:
        return "", ""
    of_product = measured_label(layout.facts, request.rates, request.form)
    return measured_label(request.facts, request.rates, request.form) if layout.copied else of_product, of_product


def select(request: Request, paths: Sequence[Path] = PATHS) -> tuple[GemmConfig, str]:
    """Return the configuration for a call that has none, and the operands to copy before, such as "ab". Raises
    LaunchError if all paths refuse the call."""
    layouts = ranked_layouts(request, paths)
    if not layouts:
        cause, help = next(refusal for path in reversed(paths) if (refusal := path.refusal(request)))
        raise LaunchError(cause, help=help or None)
    bests = [(*each.best, each.layout.copied) for each in layouts]
    _, config, copied = min(bests, key=itemgetter(0))
    return config, copied


def grouped(config: GemmConfig | None, request: GroupRequest, paths: Sequence[Path] = PATHS) -> Traits:
    """Return the traits of a grouped kernel for the configuration of the caller, by default the selected one."""
    chosen = select(request, paths)[0] if config is None else config
    return path_of(chosen).grouped(chosen, request, config is None)


def trials_of_class(request: Request, paths: Sequence[Path] = PATHS) -> list[tuple[float, TuningCandidate]]:
    """Return the tuning candidates of the shape class of a call, none if there is nothing to multiply."""
    facts = request.facts
    return trials(request.of_class, paths) if facts.longest and facts.tiles((1, 1)) else []


def trials(request: Request, paths: Sequence[Path] = PATHS) -> list[tuple[float, TuningCandidate]]:
    """Return the tuning candidates of a call with their estimates in microseconds. In each layout, the configuration
    that would be selected comes first."""
    timed: dict[tuple[GemmConfig, str], tuple[float, TuningCandidate]] = {}
    for layout, ranked, _ in (known := ranked_layouts(request, paths)):
        chosen = next(option.best[1] for option in known if option.layout is layout)
        for time, config in [(ranked[0][0], chosen), *ranked]:
            each = TuningCandidate(config, layout.copied)
            if isinstance(request, GroupRequest):
                each = TuningCandidate(path_of(config).as_chosen(config, request), chosen=config.label)
            timed.setdefault(each[:2], (layout.time + time, each))
    return list(timed.values())
