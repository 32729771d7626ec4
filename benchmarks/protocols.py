"""Two ways to time contenders on one GPU, medians of interleaved turns in both.

*rest*: after half a second without load, rounds of one launch of each contender in turn, the L2 cache flushed before
each launch. It shows what a single product takes: a GPU under full load lowers its clock after some 50 ms.

*held*: contenders take turns of a second of back-to-back launches, caches as they are; the first slice of 150 ms of a
turn does not count. It shows what a GPU gives that works all the time, at the clock that its power limit allows. Where
a launch takes the host longer than the GPU, the host is what it shows.

A slice inherits the clock that the contender before it has left, and the power limit is approached in swings of some
0.8 s: at 8192³ on an H200 slices of one kernel had 626 to 706 TFLOP/s, and whole turns of it 685 to 687. Medians of
slices therefore depended on who came before whom, by 5 % and more.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

Run = Callable[[], object]
Times = dict[str, dict[str, float]]  # protocol, contender: milliseconds of a launch

PROTOCOLS = ("rest", "held")
REST_SECONDS = 0.5
SLICE_SECONDS = 0.15
COUNTED_SLICES = 6  # of a turn, behind the one that is dropped
LEAST_ROUNDS, LEAST_TURNS = 3, 1
FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU


class Gpu(Protocol):
    """What timing needs of a GPU; tests give one whose clock they turn."""

    def mark(self) -> object:
        """An event, recorded behind all that was launched."""

    def elapsed_ms(self, start: object, end: object) -> float:
        """Between two marks, once the GPU has passed the second."""

    def flush(self) -> None:
        """Empties the L2 cache."""

    def wait(self, cycles: int) -> None:
        """Lets the GPU wait, while the host launches what comes next."""

    def rest(self, seconds: float) -> None:
        """Nothing runs for so long."""

    def now(self) -> float:
        """Seconds on the host's clock."""


class TorchGpu:
    """torch's current CUDA device."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda
        self._flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")

    def mark(self) -> object:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, start, end) -> float:
        end.synchronize()
        return start.elapsed_time(end)

    def flush(self) -> None:
        self._flushed.zero_()

    def wait(self, cycles: int) -> None:
        self._cuda._sleep(cycles)

    def rest(self, seconds: float) -> None:
        self._cuda.synchronize()
        time.sleep(seconds)

    def now(self) -> float:
        return time.perf_counter()


class Contender(Protocol):
    """Something that is timed, in this process or in another one. The GPU is idle when a method returns."""

    def single_ms(self) -> float:
        """One launch after a flush of the L2 cache."""

    def slice_ms(self, launches: int) -> float:
        """The mean of so many launches back to back."""

    def host_us(self, launches: int) -> float:
        """The mean microseconds until a launch returns, of so many into an empty queue."""


@dataclass(frozen=True)
class Local:
    """A contender in this process. Before a single run, a loop of launches maybe, the GPU waits `wait_cycles`."""

    gpu: Gpu
    run: Run
    wait_cycles: int = 0

    def single_ms(self) -> float:
        self.gpu.flush()
        if self.wait_cycles:
            self.gpu.wait(self.wait_cycles)
        return self.slice_ms(1)

    def slice_ms(self, launches: int) -> float:
        run = self.run
        start = self.gpu.mark()
        for _ in range(launches):
            run()
        return self.gpu.elapsed_ms(start, self.gpu.mark()) / launches

    def host_us(self, launches: int) -> float:
        run = self.run
        self.gpu.rest(0)
        start = self.gpu.now()
        for _ in range(launches):
            run()
        passed = self.gpu.now() - start
        self.gpu.rest(0)
        return 1e6 * passed / launches


Contenders = Mapping[str, Contender]


@dataclass(frozen=True)
class Extent:
    """How long a case is timed: rounds at rest, turns held; 0 leaves a protocol out."""

    rounds: int
    turns: int

    def seconds(self, launch_seconds: float, contenders: int) -> float:
        """An upper bound, by what one launch of each contender takes together, flush and all."""
        at_rest = REST_SECONDS + (self.rounds + 1) * launch_seconds if self.rounds else 0.0
        # A slice is a whole number of launches; one of each tells how many.
        turn = (1 + COUNTED_SLICES) * (contenders * SLICE_SECONDS + launch_seconds)
        return at_rest + self.turns * turn + launch_seconds

    def within(self, seconds: float, launch_seconds: float, contenders: int) -> Extent:
        """The same, or fewer of both, so that it ends in time; never fewer than medians need."""
        fixed = Extent(min(self.rounds, 1), 0).seconds(launch_seconds, contenders)
        share = max(0.0, min(1.0, (seconds - fixed) / (self.seconds(launch_seconds, contenders) - fixed)))
        return Extent(
            min(self.rounds, max(LEAST_ROUNDS, int(share * self.rounds))),
            min(self.turns, max(LEAST_TURNS, int(share * self.turns))),
        )


def rest(gpu: Gpu, contenders: Contenders, rounds: int, seconds: float = REST_SECONDS) -> dict[str, float]:
    """Median milliseconds of single launches. The first round after the rest of so many seconds wakes the GPU, and does
    not count."""
    gpu.rest(seconds)
    turns = [{name: contender.single_ms() for name, contender in contenders.items()} for _ in range(rounds + 1)]
    return _medians(turns[1:])


class Watcher(Protocol):
    """Something that looks on while launches are counted."""

    def turn(self, name: str) -> AbstractContextManager[None]:
        """Around the slices of a contender's turn that count."""


def held(contenders: Contenders, turns: int, watcher: Watcher | None = None) -> dict[str, float]:
    """Median milliseconds of a launch over so many turns of each contender."""
    latest = {name: contender.slice_ms(1) for name, contender in contenders.items()}
    counted = []
    for _ in range(turns):
        turn = {}
        for name, contender in contenders.items():
            launches = _launches(contender.slice_ms(_launches(latest[name])))
            with watcher.turn(name) if watcher else nullcontext():
                turn[name] = contender.slice_ms(COUNTED_SLICES * launches)
        latest = turn
        counted.append(turn)
    return _medians(counted)


def host(contenders: Contenders, rounds: int, launches: int) -> dict[str, float]:
    """Median microseconds of the host until a launch returns, over rounds in which each contender launches so often.
    The first round does not count."""
    turns = [{name: contender.host_us(launches) for name, contender in contenders.items()} for _ in range(rounds + 1)]
    return _medians(turns[1:])


def least(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The least of each figure: of processes, of which some are slower than others for as long as they live."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def warm(gpu: Gpu, contenders: Contenders) -> float:
    """Runs everything twice, which traces, assembles and loads it; the seconds of the second time."""
    for _ in range(2):
        start = gpu.now()
        for contender in contenders.values():
            contender.single_ms()
    return gpu.now() - start


def timed(gpu: Gpu, contenders: Contenders, extent: Extent, watcher: Watcher | None = None) -> Times:
    """Contenders that are warm, by the protocols that `extent` has time for; a watcher looks on while they are
    held."""
    times: Times = {}
    if extent.rounds:
        times["rest"] = rest(gpu, contenders, extent.rounds)
    if extent.turns:
        times["held"] = held(contenders, extent.turns, watcher)
    return times


class Budget:
    """Seconds for a whole run on the host's clock, from `start`; without a number there is no end."""

    def __init__(self, gpu: Gpu, seconds: float | None, start: float) -> None:
        self._gpu, self._end = gpu, math.inf if seconds is None else start + seconds

    def left(self) -> float:
        """Seconds; negative when the time is up."""
        return self._end - self._gpu.now()

    def extent(self, wanted: Extent, share: float, launch_seconds: float, contenders: int) -> Extent | None:
        """What fits into `share` seconds; at least what medians need, and None where not even that is left."""
        extent = wanted.within(share, launch_seconds, contenders)
        return extent if extent.seconds(launch_seconds, contenders) <= self.left() else None


def _launches(ms: float) -> int:
    return max(1, round(1000 * SLICE_SECONDS / max(ms, 1e-4)))


def _medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
