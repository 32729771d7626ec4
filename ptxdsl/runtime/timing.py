"""Time single launches on a GPU: after a rest, with a cold L2 cache, as the median over rounds.

A GPU under sustained load lowers its clock, and caches warmed by the previous launch flatter a kernel. So the
candidates are interleaved, one launch of each per round, and the first round, which wakes the GPU, is discarded.
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
FLUSHED_BYTES = 256 << 20  # larger than the L2 cache of any GPU
FLUSHES = 2  # keep the GPU busy for longer than the host needs to launch
ROUNDS = 9
Run = Callable[[], object]


class LaunchClock(Protocol):
    """The GPU operations that timing needs; tests pass a fake clock."""

    def rest(self, seconds: float) -> None:
        """Keep the GPU idle for this long."""

    def microseconds(self, run: Run) -> float:
        """Time one launch with a cold L2 cache."""


class GpuClock:
    """A context manager that times launches on a stream of the current GPU context."""

    def __init__(self, stream: int = 0) -> None:
        self.stream = stream

    def __enter__(self) -> GpuClock:
        self._events = [call("timing", driver.cuda.cuEventCreate, 0) for _ in range(2)]
        self._flushed = int(call("timing", driver.cuda.cuMemAlloc, FLUSHED_BYTES))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        driver.cuda.cuMemFree(self._flushed)  # after a fault every call fails; the first failure is already raised
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
    """Return the median microseconds of one launch of each run.

    `prepare` runs before each launch and is not timed. Pass `rest=False` if the GPU has already rested.
    """
    if rest:
        clock.rest(REST_SECONDS)
    turns = [[_prepared(clock, run, prepare) for run in runs] for _ in range(rounds + 1)]
    return [statistics.median(times) for times in zip(*turns[1:], strict=True)]


def _prepared(clock: LaunchClock, run: Run, prepare: Run | None) -> float:
    if prepare is not None:
        prepare()
    return clock.microseconds(run)
