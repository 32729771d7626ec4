"""The best of several ways to launch: what the disk remembers, else what is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

from ptxdsl import config
from ptxdsl.errors import Error, LaunchError
from ptxdsl.runtime.timing import LaunchClock, Run, at_rest
from ptxdsl.tune import records
from ptxdsl.tune.progress import TuningProgress
from ptxdsl.tune.records import TuningRecord

COARSE, FINE = 3, 9  # rounds: for all, then for those that are close
CLOSE = 1.2  # times the best


@dataclass(frozen=True)
class TuningOption:
    """One way to launch: its name, what launches, and the PTX of its kernel."""

    label: str
    run: Run
    text: Callable[[], str]


@dataclass(frozen=True)
class Subject:
    """What is tuned: a kernel, by its name and what tells it from others of that name, for a key on a GPU."""

    kernel: str
    gpu: str
    key: str
    code: str = ""

    @property
    def name(self) -> str:
        """Of its entry on disk."""
        return records.name_of(self.kernel, self.gpu, self.key, self.code)


def remembered(subject: Subject, options: Sequence[TuningOption]) -> TuningOption | None:
    """The option that an earlier process found best, if its kernel is still the same."""
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
    """The option that takes the least time, which is kept on disk. `prepare` goes before each launch.

    Those that the GPU cannot launch are left out, and those that `most_seconds` have passed before. Raises LaunchError
    where there is none that it can.
    """
    timed = _timed(subject, options, clock, prepare, most_seconds)
    least = min(time for time, _ in timed)
    close = [option for time, option in timed if time <= CLOSE * least]
    times = at_rest(clock, [option.run for option in close], FINE, prepare) if len(close) > 1 else [least]
    least, best = min(zip(times, close, strict=True), key=lambda pair: pair[0])
    record = TuningRecord(
        subject.kernel, subject.gpu, subject.key, best.label, records.digest_of(best.text()), round(least, 3)
    )
    records.store(config.current().cache_dir, subject.name, record)
    return best


def _timed(
    subject: Subject, options: Sequence[TuningOption], clock: LaunchClock, prepare: Run | None, most_seconds: float
) -> list[tuple[float, TuningOption]]:
    """A first time of each that can be launched, told while it goes on: most of it passes while kernels are assembled.
    The first one is timed however long that takes."""
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
                option.run()  # assembled and loaded
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
            help="give it smaller tiles, fewer stages or fewer threads",
        )
    return timed
