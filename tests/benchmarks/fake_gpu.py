"""A GPU whose clock moves only by what runs on it, and contenders that take a known time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class FakeGpu:
    """Its marks are times; everything that it does is written down."""

    seconds: float = 0.0
    log: list[str] = field(default_factory=list)

    def mark(self) -> float:
        return self.seconds

    def elapsed_ms(self, start: float, end: float) -> float:
        return 1000 * (end - start)

    def flush(self) -> None:
        self.log.append("flush")
        self.seconds += 1e-4

    def wait(self, cycles: int) -> None:
        self.log.append(f"wait {cycles}")

    def rest(self, seconds: float) -> None:
        self.log.append(f"rest {seconds}")
        self.seconds += seconds

    def now(self) -> float:
        return self.seconds

    def takes(self, name: str, *milliseconds: float):
        """A run that takes these times in turn, and the last of them from then on."""
        times = list(milliseconds)

        def run() -> None:
            self.log.append(name)
            self.seconds += (times.pop(0) if len(times) > 1 else times[0]) / 1000

        return run
