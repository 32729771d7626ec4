"""Clock and power of the GPU while contenders run, as nvidia-smi samples them."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

QUERY = "clocks.sm,power.draw.instant"  # power.draw is the mean of a second, in which all contenders have their turn
COLUMNS = ("MHz, held", "W, held")  # of results
PERIOD_MS = 20
SETTLING_SECONDS = 0.05  # a sample may be as old


class Sample(NamedTuple):
    """`time` is seconds on the host's clock."""

    time: float
    mhz: float
    watts: float


class Samples:
    """Those that nvidia-smi prints every PERIOD_MS, from `start` on; none where there is no such program."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [
            "nvidia-smi", "-i", "0", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", f"--loop-ms={PERIOD_MS}",
        ]  # fmt: skip
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def close(self) -> None:
        """Ends the program."""
        if self._process:
            self._process.terminate()
            self._process.wait()

    def _read(self, lines: Iterator[str]) -> None:
        for line in lines:
            sample = sample_of(line, time.perf_counter())
            if sample:
                self.samples.append(sample)


def sample_of(line: str, now: float) -> Sample | None:
    """What a line says; None for one that is no sample."""
    try:
        mhz, watts = map(float, line.split(","))
    except ValueError:
        return None
    return Sample(now, mhz, watts)


class Watch:
    """Says of each contender what was sampled in its turns."""

    def __init__(self, samples: Sequence[Sample], now: Callable[[], float]) -> None:
        self._samples, self._now = samples, now
        self._turns: dict[str, list[tuple[float, float]]] = {}

    @contextlib.contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Around what counts of a contender's turn."""
        begin = self._now()
        yield
        self._turns.setdefault(name, []).append((begin + SETTLING_SECONDS, self._now()))

    def medians(self) -> dict[str, tuple[float, float]]:
        """MHz and watts of each contender that was sampled, over all its turns."""
        inside = {
            name: [sample for sample in self._samples if any(begin <= sample.time <= end for begin, end in turns)]
            for name, turns in self._turns.items()
        }
        return {
            name: (statistics.median(s.mhz for s in samples), statistics.median(s.watts for s in samples))
            for name, samples in inside.items()
            if samples
        }
