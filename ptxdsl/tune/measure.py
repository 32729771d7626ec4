"""Choose the fastest of several configurations: the one recorded on disk, else by timing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import perf_counter

from ptxdsl import config, driver
from ptxdsl.driver import call
from ptxdsl.errors import Error, LaunchError
from ptxdsl.runtime.timing import LaunchClock, Run, at_rest
from ptxdsl.runtime.variant import Variant
from ptxdsl.tune import records
from ptxdsl.tune.progress import TuningProgress
from ptxdsl.tune.records import TuningRecord

COARSE, FINE = 3, 9  # rounds: of all candidates, then of the close ones
CLOSE = 1.2  # times the best time


@dataclass(frozen=True)
class TuningOption:
    """A candidate: its label, the function that launches it, and the PTX of its kernel."""

    label: str
    run: Run
    text: Callable[[], str]


@dataclass(frozen=True)
class Subject:
    """The key of a tuning result: kernel, GPU and key values, and `code`, which separates kernels of one name."""

    kernel: str
    gpu: str
    key: str
    code: str = ""

    @property
    def name(self) -> str:
        """The name of its entry on disk."""
        return records.name_of(self.kernel, self.gpu, self.key, self.code)


def remembered(subject: Subject, options: Sequence[TuningOption]) -> TuningOption | None:
    """Return the candidate that an earlier process found best, if its kernel is unchanged."""
    record = records.load(config.current().cache_dir, subject.name)
    option = next((each for each in options if record is not None and each.label == record.config), None)
    if option is None or record is None or records.digest_of(option.text()) != record.text:
        return None
    return option


def best_of(
    subject: Subject,
    options: Sequence[TuningOption],
    clock: LaunchClock,
    prepare: Run | None = None,
    most_seconds: float = inf,
) -> TuningOption:
    """Return the fastest candidate, as `fastest` does, and store it on disk."""
    least, best = fastest(subject, options, clock, prepare, most_seconds)
    record = TuningRecord(
        subject.kernel, subject.gpu, subject.key, best.label, records.digest_of(best.text()), round(least, 3)
    )
    records.store(config.current().cache_dir, subject.name, record)
    return best


def fastest(
    subject: Subject,
    options: Sequence[TuningOption],
    clock: LaunchClock,
    prepare: Run | None = None,
    most_seconds: float = inf,
) -> tuple[float, TuningOption]:
    """Return the fastest candidate with its microseconds. `prepare` runs before each launch.

    Candidates that the GPU cannot launch are skipped, and so are the remaining ones after `most_seconds`. Raises
    LaunchError if none can be launched.
    """
    timed = _timed(subject, options, clock, prepare, most_seconds)
    least = min(time for time, _ in timed)
    close = [option for time, option in timed if time <= CLOSE * least]
    times = at_rest(clock, [option.run for option in close], FINE, prepare) if len(close) > 1 else [least]
    return min(zip(times, close, strict=True), key=lambda pair: pair[0])


def _timed(
    subject: Subject, options: Sequence[TuningOption], clock: LaunchClock, prepare: Run | None, most_seconds: float
) -> list[tuple[float, TuningOption]]:
    """Time each candidate that can be launched with a few rounds, and show progress, since assembling takes long.

    The first candidate is timed regardless of `most_seconds`.
    """
    timed: list[tuple[float, TuningOption]] = []
    reasons: list[str] = []
    begun = perf_counter()
    with TuningProgress(subject.kernel, len(options)) as progress:
        for option in options:
            if timed and perf_counter() - begun >= most_seconds:
                break
            try:
                if prepare is not None:
                    prepare()
                option.run()  # assembles and loads it
            except Error as error:
                reasons.append(f"{option.label}: {error.message}")
                progress.skip()
                continue
            (time,) = at_rest(clock, [option.run], COARSE, prepare, rest=not timed)
            timed.append((time, option))
            progress.tell(option.label, time)
    if not timed:
        raise LaunchError(
            f"no configuration of `{subject.kernel}` can be launched on {subject.gpu}:\n  " + "\n  ".join(reasons),
            help="use smaller tiles, fewer stages or fewer threads",
        )
    return timed


@contextmanager
def saved(variant: Variant, arguments: Sequence[object], device: int, stream: int) -> Iterator[Run]:
    """Copy the arrays on a GPU that a kernel writes, and yield a function that restores them.

    The arrays are also restored at the end of the `with` body.
    """
    signature = variant.signature
    values = signature.check(signature.flat(arguments), device, may_overlap=True)
    spans = [array.span for _, array, written in signature.arrays(values) if written]
    copies: list[tuple[int, int, int]] = []

    def restore() -> None:
        for copy, start, size in copies:
            call("restoring the arrays of a tuned kernel", driver.cuda.cuMemcpyDtoDAsync, start, copy, size, stream)

    with driver.on(device):
        try:
            for start, end in spans:
                copy = int(call("saving the arrays of a tuned kernel", driver.cuda.cuMemAlloc, max(1, end - start)))
                copies.append((copy, start, end - start))
                size = end - start
                call("saving the arrays of a tuned kernel", driver.cuda.cuMemcpyDtoDAsync, copy, start, size, stream)
            yield restore
            restore()
            call("restoring the arrays of a tuned kernel", driver.cuda.cuStreamSynchronize, stream)
        finally:
            for copy, _, _ in copies:
                driver.cuda.cuMemFree(copy)
