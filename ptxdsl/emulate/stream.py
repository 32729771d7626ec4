"""Launches one after another: what the last one did to the caller's memory, beside which a dependent one may run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from .memory.regions import Allocation
from .observe.races.beside import GridBeside, TouchedBytes


class HeldArray(NamedTuple):
    """Memory of the caller, its bytes as they are there, and who keeps it alive."""

    allocation: Allocation
    octets: np.ndarray
    owner: object

    @property
    def addresses(self) -> tuple[int, int]:
        """Of the first byte and behind the last one, in this process."""
        first: int = self.octets.ctypes.data
        return first, first + self.octets.size


class EndedArray(NamedTuple):
    """Memory that a grid wrote, or only read, by its addresses; another's once its owner is gone."""

    owner: ReferenceType[np.ndarray]
    first: int
    end: int
    written: bool


class Stream:
    """The launches before. `last` is the newest, if it lets its dependents begin: its name and what it touched."""

    def __init__(self) -> None:
        self.last: tuple[str, Sequence[EndedArray]] | None = None

    def remember(self, name: str, arrays: Sequence[HeldArray]) -> None:
        """A grid has ended."""
        self.last = name, [ended for held in arrays if (ended := _ended(held)) is not None]

    def beside(self, arrays: Sequence[HeldArray]) -> GridBeside | None:
        """The last grid, for one that holds these arrays and may begin before that has ended."""
        if self.last is None:
            return None
        name, ended = self.last
        return GridBeside(name, tuple(_touched(ended, arrays)))


def _ended(held: HeldArray) -> EndedArray | None:
    """What was done to an array of numpy."""
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
