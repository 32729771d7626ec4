"""Threads as users name them: a number in block 0, a pair of block and thread, or a thread of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import LaunchError, here
from .report import ExecutedStep, Index, Thread

ThreadName: TypeAlias = "int | Thread | tuple[Any, Any]"
"""The number of a thread in block 0, ((block), (thread)), or one of a finding."""
HELP = "pass a thread number in block 0, ((block), (thread)), or the thread of a finding"


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of a launch, by its grid and its block."""

    grid: Index
    block: Index

    def all_of(self, value: object, called: str) -> list[Thread] | None:
        """Return the threads that a caller names; None for True, which means all. Raises LaunchError for anything
        else.
        """
        if value is True:
            return None
        return [self.named(each, called) for each in (value if isinstance(value, list) else [value])]

    def named(self, value: object, called: str) -> Thread:
        """Return one thread. Raises LaunchError if there is no such thread."""
        if isinstance(value, Thread):
            pair: tuple[object, object] = value.block, value.thread
        elif isinstance(value, tuple) and len(value) == 2:
            pair = value
        else:
            pair = 0, value
        thread = Thread(_index(pair[0], self.grid, called, value), _index(pair[1], self.block, called, value))
        for name, index, extents in (("grid", thread.block, self.grid), ("block", thread.thread, self.block)):
            if any(i >= extent for i, extent in zip(index, extents, strict=True)):
                raise LaunchError(f"`{called}` names {thread}; the {name} is {extents}")
        return thread


@dataclass(frozen=True, slots=True)
class StepTraces:
    """The recorded steps, by thread; `wanted` are the requested threads, None for all."""

    threads: Threads
    steps: dict[Thread, list[ExecutedStep]]
    wanted: tuple[Thread, ...] | None

    def of(self, thread: object) -> Sequence[ExecutedStep]:
        """Return the steps of a thread. Raises LaunchError if none were recorded."""
        named = self.threads.named(thread, "thread")
        if self.wanted is not None and named not in self.wanted:
            known = " and ".join(map(str, self.wanted))
            raise LaunchError(f"{named} was not traced", help=f"pd.emulate(…, trace=[…]) takes several; it had {known}")
        if named not in self.steps:
            raise LaunchError(f"{named} executed no step", help="the kernel ended before its block started")
        return self.steps[named]


def _index(value: object, extents: Index, called: str, whole: object) -> Index:
    """Convert a value to coordinates (x, y, z): a tuple, whose later ones may be omitted, or a number with x
    fastest.
    """
    if isinstance(value, tuple) and len(value) <= 3 and all(_is_number(n) for n in value):
        x, y, z = (*value, 0, 0, 0)[:3]
        return x, y, z
    if not _is_number(value):
        raise LaunchError(f"`{called}` is {whole!r}, which is not a thread", at=here().location, help=HELP)
    number = int(value)  # type: ignore[call-overload]
    if number >= math.prod(extents):
        return number, 0, 0  # out of bounds for any extents
    return number % extents[0], number // extents[0] % extents[1], number // (extents[0] * extents[1])


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
