"""The steps of a program at which a Python line begins, as places for breakpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ptxdsl.emulate.run.decode import Code, Decoded
from ptxdsl.errors import Error, Location

Line = tuple[str, int]
NEAR = 3  # lines that an error message names


@dataclass(frozen=True)
class CodeLines:
    """The lines with instructions, of the kernel and the functions that it calls, and the steps where each begins.

    The instructions of an inlined Python function also belong to the line of its call.
    """

    kernel: str
    starts: Mapping[Line, frozenset[int]]  # identities of steps

    @classmethod
    def of(cls, kernel: str, codes: Iterable[Code]) -> CodeLines:
        starts: dict[Line, set[int]] = {}
        for code in codes:
            before: set[Line] = set()
            for step in code.steps:
                now = set(lines_of(step))
                for line in now - before:
                    starts.setdefault(line, set()).add(id(step))
                before = now
        return cls(kernel, {line: frozenset(steps) for line, steps in starts.items()})

    def find(self, position: str | int, file: str | None) -> Line:
        """Return the line that `file.py:12`, `12` or 12 means; `file` is the file of a plain number.

        Raises Error for an invalid position, a file without code of the kernel, and a line without code.
        """
        named, line = _read(position)
        files = self._files(named or file or next(iter(self.starts))[0], named is not None)
        for path in files:
            if (path, line) in self.starts:
                return path, line
        shown = os.path.basename(files[0])
        raise Error(
            f"{shown}:{line} has no instruction of {self.kernel}, so nothing can stop there",
            help=f"lines with code near it: {', '.join(map(str, self._near(files[0], line)))}",
        )

    def _files(self, wanted: str, is_named: bool) -> list[str]:
        known = dict.fromkeys(file for file, _ in self.starts)
        files = [file for file in known if file == wanted or file.endswith(f"{os.sep}{wanted}")]
        if files:
            return files
        names = ", ".join(sorted({os.path.basename(file) for file in known}))
        raise Error(f"{self.kernel} has no code from {wanted}", help=f"it has code from {names}" if is_named else None)

    def _near(self, file: str, line: int) -> list[int]:
        lines = sorted((abs(other - line), other) for path, other in self.starts if path == file)
        return sorted(other for _, other in lines[:NEAR])


def lines_of(step: Decoded) -> Iterator[Line]:
    """Return the line of a step and the lines of the calls that led to it; for a batch, of all its steps."""
    for each in step.batch.steps if step.batch is not None else (step,):
        for location in each.location.chain() if each.location is not None else ():
            yield location.file, location.line


def innermost(location: Location | None) -> Line | None:
    return None if location is None else (location.file, location.line)


def outermost(location: Location | None) -> Line | None:
    """Return the line of the kernel itself, from which helpers were called."""
    return None if location is None else innermost(location.chain()[-1])


def _read(position: str | int) -> tuple[str | None, int]:
    match = re.fullmatch(r"(?:(?P<file>.+):)?(?P<line>\d{1,9})", str(position).strip())
    if isinstance(position, bool) or match is None:
        raise Error(f"{position!r} is no line", help="write a number, or file.py:12")
    return match["file"], int(match["line"])
