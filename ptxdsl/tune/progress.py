"""Show tuning progress on one line, with rich if it is installed; show nothing if stderr is not a terminal."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import TracebackType
from typing import Any


class TuningProgress:
    """The progress of tuning: `with TuningProgress("saxpy", 8) as progress: progress.tell("tile=64", 12.3)`."""

    def __init__(self, subject: str, total: int) -> None:
        self.subject, self.total, self.count = subject, total, 0
        self.best: tuple[float, str] | None = None
        self._bar: Any = None
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> TuningProgress:
        if self._is_shown and importlib.util.find_spec("rich") is not None:
            rich: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
            self._bar = rich.Progress(console=console.Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(f"tuning {self.subject}", total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def tell(self, label: str, microseconds: float) -> None:
        """Count a candidate that was timed."""
        self.best = min(filter(None, (self.best, (microseconds, label))))
        self._count_one()

    def skip(self) -> None:
        """Count a candidate that cannot be launched."""
        self._count_one()

    def _count_one(self) -> None:
        self.count += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self.count, description=self.text)
        elif self._is_shown:
            print(f"\r\x1b[K{self.text}", end="", file=sys.stderr, flush=True)

    @property
    def text(self) -> str:
        best = f", best {self.best[1]} {self.best[0]:.1f} us" if self.best else ""
        return f"tuning {self.subject}: {self.count} of {self.total}{best}"
