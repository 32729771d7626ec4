"""Progress on one line of a terminal, with rich if it is installed; nothing is shown if stderr is not a terminal."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import TracebackType
from typing import Any, Self


class ProgressLine:
    """A line of text that disappears at the end: `with ProgressLine() as line: line.show("tuning saxpy")`."""

    def __init__(self) -> None:
        self._spinner: Any = None
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._is_shown and importlib.util.find_spec("rich") is not None:
            rich: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
            text = rich.TextColumn("{task.description}", markup=False)
            columns = rich.SpinnerColumn(), text, rich.TimeElapsedColumn()
            self._spinner = rich.Progress(*columns, console=console.Console(stderr=True), transient=True)
            self._spinner.start()
            self._task = self._spinner.add_task("", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()
        elif self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        """Replace the text."""
        if self._spinner is not None:
            self._spinner.update(self._task, description=text)
        elif self._is_shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


class TuningProgress(ProgressLine):
    """The progress of tuning: `with TuningProgress("saxpy", 8) as progress: progress.tell("tile=64", 12.3)`."""

    def __init__(self, subject: str, total: int) -> None:
        super().__init__()
        self.subject, self.total, self.count = subject, total, 0
        self.best: tuple[float, str] | None = None

    def tell(self, label: str, microseconds: float) -> None:
        """Count a candidate that was timed."""
        self.best = min(filter(None, (self.best, (microseconds, label))))
        self.skip()

    def skip(self) -> None:
        """Count a candidate, such as one that cannot be launched."""
        self.count += 1
        self.show(self.text)

    @property
    def text(self) -> str:
        best = f", best {self.best[1]} {self.best[0]:.1f} us" if self.best else ""
        return f"tuning {self.subject}: {self.count} of {self.total}{best}"
