"""`config="tune"`: the fastest configuration of a shape class, measured once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ptxdsl import config as settings
from ptxdsl import driver
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernels.call.launching.memory import common_library
from ptxdsl.kernels.call.matrix import allocator
from ptxdsl.kernels.choose.promising import TuningCandidate, promising
from ptxdsl.kernels.choose.winners import keep, kernel_sources, winners
from ptxdsl.runtime.timing import GpuClock
from ptxdsl.tune.measure import Subject, TuningOption, fastest

TUNE = "tune"
MOST_SECONDS = 20.0  # after which no further candidate is begun
T = TypeVar("T")


def wants_tuning(config: object) -> bool:
    """Return True if a caller asks for the fastest configuration."""
    return isinstance(config, str) and config == TUNE


def timed_output(arrays: Sequence[Any]) -> Any:
    """Return the output that trials write: that of the call, or a new one if the call also reads it, since it must not
    change before the last launch."""
    out, *others = arrays
    library = common_library(arrays)
    if out is None or library is None:
        return out
    read = library.addresses([other for other in others if other is not None])
    if library.address(out) not in read:
        return out
    return allocator(library.name, out.shape, out.dtype)(out)


class TuningSubject(NamedTuple):
    """The calls of a public function with a shape class on a GPU; `device_stream` is that of one of them."""

    called: str
    shape_class: str
    device_stream: tuple[int | None, int]


class Trials(NamedTuple):
    """The candidates of a call: `timed` pairs them with their estimates in microseconds, and `run` launches one on the
    GPU and stream of the arrays."""

    timed: Sequence[tuple[float, TuningCandidate]]
    run: Callable[[TuningCandidate], object]


def tuned(subject: TuningSubject, trials: Callable[[], Trials]) -> TuningCandidate | None:
    """Return the fastest candidate of a shape class: the winner in the table of the GPU, measured and added if missing.
    None selects by estimate: on the emulator, if there are no candidates, and if none can be launched, where the launch
    of the selected configuration then raises the reason."""
    device, stream = subject.device_stream
    if device is None or settings.current().device == "emulator":
        return None
    timed, run = trials()
    by_label, gpu = {candidate.label: candidate for _, candidate in timed}, driver.device(device).name
    kept = by_label.get(winners(gpu).get(subject.shape_class, ""))
    if kept is not None or not by_label:
        return kept
    of_class = Subject(subject.called, gpu, subject.shape_class)
    with driver.on(device), GpuClock(stream) as clock:
        options = [TuningOption(each.label, partial(run, each), kernel_sources) for each in promising(timed)]
        try:
            _, best = fastest(of_class, options, clock, most_seconds=MOST_SECONDS)
        except LaunchError:
            return None
    keep(gpu, subject.shape_class, best.label)
    return by_label[best.label]


def with_best(best: TuningCandidate | None, planned: Callable[[TuningCandidate | None], T]) -> T:
    """Return the plan of the fastest candidate of the class, or of the selected configuration if this member of the
    class cannot run it."""
    if best is not None:
        try:
            return planned(best)
        except Error:  # an error of the call itself is raised again below
            pass
    return planned(None)
