"""What launches take on a GPU, one at a time: after a rest, with the L2 cache emptied before each, medians of rounds.

A GPU under load for long lowers its clock, and caches that are warm from the launch before flatter a kernel; so
contenders go in turn, one launch of each in a round, and the first round, which wakes the GPU, does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from ptxdsl import driver
from ptxdsl.driver import call

REST_SECONDS = 0.5
FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU
FLUSHES = 2  # keep the GPU busy for longer than the host needs to launch
ROUNDS = 9
Run = Callable[[], object]


class LaunchClock(Protocol):
    """What timing needs of a GPU; tests give one whose clock they turn."""

    def rest(self, seconds: float) -> None:
        """Nothing runs for so long."""

    def microseconds(self, run: Run) -> float:
        """One launch, on a cold L2 cache."""


class GpuClock:
    """The clock of the GPU whose context is current, on a stream, while it is entered."""

    def __init__(self, stream: int = 0) -> None:
        self.stream = stream

    def __enter__(self) -> GpuClock:
        self._events = [call("timing", driver.cuda.cuEventCreate, 0) for _ in range(2)]
        self._flushed = int(call("timing", driver.cuda.cuMemAlloc, FLUSHED_BYTES))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        driver.cuda.cuMemFree(self._flushed)  # after a fault every call fails, and the first failure is on its way up
        for event in self._events:
            driver.cuda.cuEventDestroy(event)

    def rest(self, seconds: float) -> None:
        call("timing", driver.cuda.cuCtxSynchronize)
        time.sleep(seconds)

    def microseconds(self, run: Run) -> float:
        start, end = self._events
        for _ in range(FLUSHES):
            call("timing", driver.cuda.cuMemsetD8Async, self._flushed, 0, FLUSHED_BYTES, self.stream)
        call("timing", driver.cuda.cuEventRecord, start, self.stream)
        run()
        call("timing", driver.cuda.cuEventRecord, end, self.stream)
        call("timing", driver.cuda.cuEventSynchronize, end)
        return 1e3 * float(call("timing", driver.cuda.cuEventElapsedTime, start, end))


def at_rest(
    clock: LaunchClock, runs: Sequence[Run], rounds: int = ROUNDS, prepare: Run | None = None, rest: bool = True
) -> list[float]:
    """The median microseconds of a launch of each; `prepare` goes before each launch, and is not timed. Without `rest`
    the GPU has rested before."""
    if rest:
        clock.rest(REST_SECONDS)
    turns = [[_prepared(clock, run, prepare) for run in runs] for _ in range(rounds + 1)]
    return [statistics.median(times) for times in zip(*turns[1:], strict=True)]


def _prepared(clock: LaunchClock, run: Run, prepare: Run | None) -> float:
    if prepare is not None:
        prepare()
    return clock.microseconds(run)
