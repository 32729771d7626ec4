"""Two protocols that time contenders on one GPU. Both interleave the contenders and report medians.

*rest*: after half a second without load, each round launches every contender once, with the L2 cache flushed before
each launch. It measures a single launch at full clock; under full load the clock drops after about 50 ms.

*held*: contenders take turns of one second of back-to-back launches, with warm caches; the first 150 ms of a turn are
discarded. It measures a busy GPU at the clock its power limit allows. If a launch takes the host longer than the GPU,
it measures the host.

A turn must be long: a short slice inherits the clock that the previous contender left, and the clock oscillates for
about 0.8 s. At 8192³ on an H200, 150 ms slices of one kernel ranged from 626 to 706 TFLOP/s, one-second turns from 685
to 687.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Run = Callable[[], object]
Times = dict[str, dict[str, float]]  # protocol, contender: milliseconds of a launch

PROTOCOLS = ("rest", "held")
REST_SECONDS = 0.5
SLICE_SECONDS = 0.15
COUNTED_SLICES = 6  # of a turn, after the part that is discarded
LEAST_ROUNDS, LEAST_TURNS = 3, 1
FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU


class Gpu(Protocol):
    """The GPU operations that timing needs. Tests pass a GPU with a simulated clock."""

    def mark(self) -> object:
        """Record an event after all launches so far."""

    def elapsed_ms(self, start: object, end: object) -> float:
        """Wait for the second mark; return the milliseconds between both."""

    def flush(self) -> None:
        """Flush the L2 cache."""

    def wait(self, cycles: int) -> None:
        """Make the GPU wait while the host launches."""

    def rest(self, seconds: float) -> None:
        """Idle for some seconds."""

    def now(self) -> float:
        """Return the seconds of the host's clock."""


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
    """A timed function, in this process or in another one. The GPU is idle when a method returns."""

    def single_ms(self) -> float:
        """Time one launch after a flush of the L2 cache."""

    def slice_ms(self, launches: int) -> float:
        """Return the mean time of `launches` back-to-back launches."""

    def host_us(self, launches: int) -> float:
        """Return the mean host time of a call, over `launches` calls into an empty queue."""


@dataclass(frozen=True)
class Local:
    """A contender in this process. `wait_cycles` delays the GPU before a single run that launches many kernels."""

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
    """The number of rounds (rest) and turns (held) of a case; 0 skips a protocol."""

    rounds: int
    turns: int

    def seconds(self, launch_seconds: float, contenders: int) -> float:
        """Return an upper bound; `launch_seconds` is the time of one flushed launch of every contender."""
        at_rest = REST_SECONDS + (self.rounds + 1) * launch_seconds if self.rounds else 0.0
        # a slice is a whole number of launches; one launch of each contender gives the number
        turn = (1 + COUNTED_SLICES) * (contenders * SLICE_SECONDS + launch_seconds)
        return at_rest + self.turns * turn + launch_seconds

    def within(self, seconds: float, launch_seconds: float, contenders: int) -> Extent:
        """Reduce rounds and turns to fit into `seconds`, down to the fewest that a median needs."""
        fixed = Extent(min(self.rounds, 1), 0).seconds(launch_seconds, contenders)
        share = max(0.0, min(1.0, (seconds - fixed) / (self.seconds(launch_seconds, contenders) - fixed)))
        return Extent(
            min(self.rounds, max(LEAST_ROUNDS, int(share * self.rounds))),
            min(self.turns, max(LEAST_TURNS, int(share * self.turns))),
        )


def rest(gpu: Gpu, contenders: Contenders, rounds: int, seconds: float = REST_SECONDS) -> dict[str, float]:
    """Return the median milliseconds of single launches. The first round after the rest is discarded."""
    gpu.rest(seconds)
    turns = [{name: contender.single_ms() for name, contender in contenders.items()} for _ in range(rounds + 1)]
    return _medians(turns[1:])


def held(contenders: Contenders, turns: int) -> dict[str, float]:
    """Return the median milliseconds of a launch over `turns` turns of each contender."""
    latest = {name: contender.slice_ms(1) for name, contender in contenders.items()}
    counted = []
    for _ in range(turns):
        turn = {}
        for name, contender in contenders.items():
            launches = _launches(contender.slice_ms(_launches(latest[name])))
            turn[name] = contender.slice_ms(COUNTED_SLICES * launches)
        latest = turn
        counted.append(turn)
    return _medians(counted)


def host(contenders: Contenders, rounds: int, launches: int) -> dict[str, float]:
    """Return the median host microseconds of a call, over `rounds` rounds of `launches` calls. The first round is
    discarded."""
    turns = [{name: contender.host_us(launches) for name, contender in contenders.items()} for _ in range(rounds + 1)]
    return _medians(turns[1:])


def least(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the minimum of each figure over several processes; some are slower for their whole life."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def warm(gpu: Gpu, contenders: Contenders) -> float:
    """Run every contender twice (tracing, assembling, loading); return the seconds of the second run."""
    for _ in range(2):
        start = gpu.now()
        for contender in contenders.values():
            contender.single_ms()
    return gpu.now() - start


def timed(gpu: Gpu, contenders: Contenders, extent: Extent) -> Times:
    """Time warm contenders by the protocols that `extent` asks for."""
    times: Times = {}
    if extent.rounds:
        times["rest"] = rest(gpu, contenders, extent.rounds)
    if extent.turns:
        times["held"] = held(contenders, extent.turns)
    return times


class Budget:
    """The time budget of a whole run, in seconds of the host's clock from `start`; None is unlimited."""

    def __init__(self, gpu: Gpu, seconds: float | None, start: float) -> None:
        self._gpu, self._end = gpu, math.inf if seconds is None else start + seconds

    def left(self) -> float:
        """Return the seconds left; negative after the end."""
        return self._end - self._gpu.now()

    def extent(self, wanted: Extent, share: float, launch_seconds: float, contenders: int) -> Extent | None:
        """Return the extent that fits into `share` seconds, or None if not even the fewest rounds fit."""
        extent = wanted.within(share, launch_seconds, contenders)
        return extent if extent.seconds(launch_seconds, contenders) <= self.left() else None


def _launches(ms: float) -> int:
    return max(1, round(1000 * SLICE_SECONDS / max(ms, 1e-4)))


def _medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
