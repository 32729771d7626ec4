"""The arrays in shared memory that a kernel declares, kept for those who look at its memory while it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ptxdsl.trace.builder import Builder
from ptxdsl.types import Type


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in shared memory as Python has it: its name, the variable it lies in, bytes from there, its layout.

    The layout is None for an array of unknown length.
    """

    name: str
    variable: str
    offset: int
    element: Type
    layout: Any


def remember(builder: Builder, array: SharedArray) -> None:
    """Keeps an array, by another name where there is one of its name."""
    known: dict[str, SharedArray] = builder.memory.setdefault(SharedArray, {})
    called, number = array.name, 0
    while called in known:
        number += 1
        called = f"{array.name}_{number}"
    known[called] = replace(array, name=called)


def shared_arrays(builder: Builder) -> tuple[SharedArray, ...]:
    """The arrays in shared memory that a kernel declares."""
    return tuple(builder.memory.get(SharedArray, {}).values())
