"""The selection of a configuration: the measured winner of the shape class, else the least estimate of all paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.paths.path import GroupRequest, InputLayout, Path, Request
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.paths.sm90 import WarpgroupPath
from ptxdsl.kernels.candidates.sm90 import ANY
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


class Option(NamedTuple):
    """The configurations of one path for operands in a layout, the fastest first; the first of `order` is chosen."""

    layout: InputLayout
    ranked: Ranked
    wanted: str  # the label of the measured winner

    @property
    def best(self) -> tuple[float, GemmConfig]:
        """The winner, or the configuration with the least estimate, and its microseconds with those of the copies. A
        winner takes none, since no estimate outdoes a measurement, unless it was measured without the copies."""
        least, first = self.ranked[0]
        winner = next((config for _, config in self.ranked if self.wanted == config.label), None)
        time = 0.0 if winner and (self.layout.measured or not self.layout.copied) else self.layout.time + least
        return time * COPY_MARGIN**self.layout.optional, winner or first


def options(request: Request, paths: Sequence[Path] = PATHS) -> list[Option]:
    """Return the options of the paths that do not refuse a call."""
    known = []
    for path in paths:
        for layout in path.layouts(request) if path.refusal(request) is None else ():
            wanted = measured_label(layout.facts, request.rates, request.form) if request.sharing == ANY else ""
            if ranked := path.ranked(layout.facts, request):
                known.append(Option(layout, ranked, wanted))
    return known


def select(request: Request, paths: Sequence[Path] = PATHS) -> tuple[GemmConfig, str]:
    """Return the configuration for a call that has none, and the operands to copy before, such as "ab". Raises
    LaunchError if all paths refuse the call."""
    known = options(request, paths)
    if not known:
        cause, help = next(refusal for path in reversed(paths) if (refusal := path.refusal(request)))
        raise LaunchError(cause, help=help or None)
    fastest = min(known, key=lambda option: option.best[0])
    return fastest.best[1], fastest.layout.copied


def grouped(config: GemmConfig | None, request: GroupRequest, paths: Sequence[Path] = PATHS) -> Traits:
    """Return the traits of the kernel of groups, with the configuration of the caller or the one that is selected."""
    chosen = select(request, paths)[0] if config is None else config
    return path_of(chosen).grouped(chosen, request, config is None)


def trials(request: Request, paths: Sequence[Path] = PATHS) -> list[tuple[float, TuningCandidate]]:
    """Return all that may be timed for a call, with the expected microseconds: in each option what would be selected
    comes first, whatever its estimate."""
    timed: dict[TuningCandidate, float] = {}
    for option in options(request, paths):
        layout, ranked = option.layout, option.ranked
        for time, config in [(ranked[0][0], option.best[1]), *ranked]:
            each = path_of(config).variants(config, request) if isinstance(request, GroupRequest) else [config]
            for variant in each:
                timed.setdefault(TuningCandidate(variant, layout.copied), layout.time + time)
    return [(time, each) for each, time in timed.items()]
