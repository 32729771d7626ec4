"""The best of several ways to launch: what the disk remembers, else what is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    subject: Subject, options: Sequence[TuningOption], clock: LaunchClock, prepare: Run | None = None
) -> TuningOption:
    """The option that takes the least time, which is kept on disk. `prepare` goes before each launch.

    Those that the GPU cannot launch are left out. Raises LaunchError where there is none that it can.
    """
    running, reasons = [], []
    for option in options:
        try:
            if prepare is not None:
                prepare()
            option.run()  # assembled and loaded
            running.append(option)
        except Error as error:
            reasons.append(f"{option.label}: {error.message}")
    if not running:
        raise LaunchError(
            f"no configuration of `{subject.kernel}` can be launched on {subject.gpu}:\n  " + "\n  ".join(reasons),
            help="give it smaller tiles, fewer stages or fewer threads",
        )
    times = _timed(subject, running, clock, prepare)
    least = min(times)
    close = [option for option, time in zip(running, times, strict=True) if time <= CLOSE * least]
    times = at_rest(clock, [option.run for option in close], FINE, prepare) if len(close) > 1 else [least]
    least, best = min(zip(times, close, strict=True), key=lambda pair: pair[0])
    record = TuningRecord(
        subject.kernel, subject.gpu, subject.key, best.label, records.digest_of(best.text()), round(least, 3)
    )
    records.store(config.current().cache_dir, subject.name, record)
    return best


def _timed(subject: Subject, options: Sequence[TuningOption], clock: LaunchClock, prepare: Run | None) -> list[float]:
    """A first time of each, told while it goes on."""
    times: list[float] = []
    with TuningProgress(subject.kernel, len(options)) as progress:
        for option in options:
            times += at_rest(clock, [option.run], COARSE, prepare, rest=not times)
            progress.tell(option.label, times[-1])
    return times
