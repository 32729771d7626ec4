"""Launches on a stream: the accesses of the previous launch to the caller's memory, which a dependent launch may
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from .memory.regions import Allocation
from .observe.races.beside import GridBeside, TouchedBytes


class HeldArray(NamedTuple):
    """Memory of the caller: its allocation, its bytes, and the object that owns it."""

    allocation: Allocation
    octets: np.ndarray
    owner: object

    @property
    def addresses(self) -> tuple[int, int]:
        """The addresses of the first byte and past the last one, in this process."""
        first: int = self.octets.ctypes.data
        return first, first + self.octets.size


class EndedArray(NamedTuple):
    """Memory that a grid wrote, or only read, by its addresses, while its owner exists."""

    owner: ReferenceType[np.ndarray]
    first: int
    end: int
    written: bool


class Stream:
    """The previous launches. `last` is the latest one if its dependents may start early: its name and its arrays."""

    def __init__(self) -> None:
        self.last: tuple[str, Sequence[EndedArray]] | None = None

    def remember(self, name: str, arrays: Sequence[HeldArray]) -> None:
        """Record a grid that has ended."""
        self.last = name, [ended for held in arrays if (ended := _ended(held)) is not None]

    def beside(self, arrays: Sequence[HeldArray]) -> GridBeside | None:
        """Return the previous grid, for one that holds these arrays and may start before that has ended."""
        if self.last is None:
            return None
        name, ended = self.last
        return GridBeside(name, tuple(_touched(ended, arrays)))


def _ended(held: HeldArray) -> EndedArray | None:
    """Return what a grid did to a numpy array."""
    allocation, owner = held.allocation, held.owner
    while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not isinstance(owner, np.ndarray) or not (allocation.written or allocation.read):
        return None
    return EndedArray(ref(owner), *held.addresses, allocation.written)


def _touched(ended: Sequence[EndedArray], arrays: Sequence[HeldArray]) -> Iterator[TouchedBytes]:
    for old in ended:
        for held in arrays if old.owner() is not None else ():
            start, stop = held.addresses
            first, end = max(start, old.first), min(stop, old.end)
            if first < end:
                yield TouchedBytes(held.allocation, first - start, end - start, old.written)
