"""Progress of the launches of a command: a spinner on a terminal with rich, and a line on Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Any

from ptxdsl.cli.process import interrupted_in


class LaunchProgress:
    """Count launches, and show the current one with its elapsed time.

    On a terminal it is a line of rich, which disappears at the end, or without rich a plain line for each launch.
    Elsewhere nothing is shown. Ctrl-C during a launch prints how many launches had finished and where it stopped.
    """

    def __init__(self, doing: str) -> None:
        self.doing, self.finished = doing, 0

    @contextlib.contextmanager
    def launch(self, name: str) -> Iterator[None]:
        """Show the launch `name` during the body of a `with`, and count it at the end."""
        start = time.perf_counter()

        def described() -> str:
            done = f"{self.finished} launch{'es' * (self.finished != 1)} finished before"
            return f"{self.doing} {name}, after {time.perf_counter() - start:.1f} s; {done}"

        with interrupted_in(described), _shown(f"{self.doing} {name}"):
            yield
        self.finished += 1


@contextlib.contextmanager
def _shown(text: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
    elif importlib.util.find_spec("rich") is None:
        print(text, file=sys.stderr, flush=True)
        yield
    else:
        rich: Any = importlib.import_module("rich.progress")
        console: Any = importlib.import_module("rich.console")
        columns = rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False), rich.TimeElapsedColumn()
        with rich.Progress(*columns, console=console.Console(stderr=True), transient=True) as progress:
            progress.add_task(text, total=None)
            yield
