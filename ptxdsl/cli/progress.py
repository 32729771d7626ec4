"""Progress of the launches of a command: a line on a terminal, and a line on Ctrl-C."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ptxdsl.cli.process import interrupted_in
from ptxdsl.tune.progress import ProgressLine


class LaunchProgress:
    """Count launches, and show the current one with its elapsed time.

    On a terminal it is a line that disappears at the end. Elsewhere nothing is shown. Ctrl-C during a launch prints how
    many launches had finished and where it stopped.
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

        with interrupted_in(described), ProgressLine() as line:
            line.show(f"{self.doing} {name}")
            yield
        self.finished += 1
