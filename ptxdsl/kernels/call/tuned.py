"""`config="tune"`: the fastest configuration of a shape class, measured once and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ptxdsl import config as settings
from ptxdsl import driver
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernels.call.launching.memory import MOST_KEYS, common_library
from ptxdsl.kernels.call.matrix import maker
from ptxdsl.kernels.choose.promising import TuningCandidate, promising
from ptxdsl.runtime.timing import GpuClock
from ptxdsl.tune.measure import Subject, TuningOption, best_of, remembered

TUNE = "tune"
KERNELS = Path(__file__).parent.parent
MOST_SECONDS = 20.0  # after which no further candidate is begun
TUNED: dict[Hashable, TuningCandidate | None] = {}
"""What was found in this process, by the call, its shape class and the GPU; None for the choice of the model."""
T = TypeVar("T")


def wants_tuning(config: object) -> bool:
    """Return True if a caller asks for the fastest configuration."""
    return isinstance(config, str) and config == TUNE


def timed_output(arrays: Sequence[Any]) -> Any:
    """Return the output that trials write: that of the call, or a new one if the call reads it too, since it must not
    change before the last launch."""
    out, *others = arrays
    library = common_library(arrays)
    if out is None or library is None:
        return out
    read = library.addresses([other for other in others if other is not None])
    if library.address(out) not in read:
        return out
    return maker(library.name, out.shape, out.dtype)(out)


class TuningSubject(NamedTuple):
    """Calls of a public function with products of a shape class, on a GPU; `device_stream` is that of one such call."""

    called: str
    shape_class: str
    device_stream: tuple[int | None, int]

    @property
    def device(self) -> int | None:
        return self.device_stream[0]


class Trials(NamedTuple):
    """The candidates of a call: `timed` are those with the microseconds that the model expects; `run` launches one on
    the GPU and stream of the arrays."""

    timed: Iterable[tuple[float, TuningCandidate]]
    run: Callable[[TuningCandidate], object]


@lru_cache(maxsize=1)
def kernel_sources() -> str:
    """Return a digest of the files that all kernels are made of. What was measured holds until one changes."""
    chosen_by = tuple(str(KERNELS / folder) for folder in ("call", "choose"))
    files = sorted(path for path in KERNELS.rglob("*.py") if not str(path).startswith(chosen_by))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def tuned_once(subject: TuningSubject, kernels: object, trials: Callable[[], Trials]) -> TuningCandidate | None:
    """Return the fastest candidate of a shape class, which is measured at the first call of `kernels` with it. None for
    the choice of the model, as on the emulator."""
    if subject.device is None or settings.current().device == "emulator":
        return None
    key = subject.called, subject.shape_class, subject.device, kernels, settings.deciding()
    if key not in TUNED:
        best = tuned(subject, trials())
        if len(TUNED) >= MOST_KEYS:
            TUNED.clear()
        TUNED[key] = best
    return TUNED[key]


def tuned(subject: TuningSubject, trials: Trials) -> TuningCandidate | None:
    """Return the fastest candidate, from disk or measured. None if there are no candidates, or none can be launched;
    the choice of the model then reports the reason."""
    device, stream = subject.device_stream
    timed = list(trials.timed)
    if device is None or not timed:
        return None
    kept = Subject(subject.called, driver.device(device).name, subject.shape_class)
    known = {each.label: each for _, each in timed}
    option = remembered(kept, [_option(trials, each) for each in known.values()])
    if option is None:
        with driver.on(device), GpuClock(stream) as clock:
            options = [_option(trials, each) for each in promising(timed)]
            try:
                option = best_of(kept, options, clock, most_seconds=MOST_SECONDS)
            except LaunchError:
                return None
    return known[option.label]


def _option(trials: Trials, candidate: TuningCandidate) -> TuningOption:
    return TuningOption(candidate.label, partial(trials.run, candidate), kernel_sources)


def with_best(best: TuningCandidate | None, planned: Callable[[TuningCandidate | None], T]) -> T:
    """Return the plan of the fastest candidate of the class, or that of the model if this member of the class cannot
    run it."""
    if best is not None:
        try:
            return planned(best)
        except Error:  # what is wrong with the call itself is said again below
            pass
    return planned(None)
