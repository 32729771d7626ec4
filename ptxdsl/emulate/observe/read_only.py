"""Non-coherent loads (ld.global.nc, ldu) of memory that the launch has written.

They go through a cache that does not see stores: no barrier or fence orders them after a store.
"""

from __future__ import annotations

import numpy as np

from ..memory.access import READS, Access, Observer, Origin
from ..memory.regions import Allocation, Region

_WORD = 4
_HELP = "load it without .nc: no barrier or fence orders such a load after a store"


class ReadOnlyLoads(Observer):
    """Records the instruction that wrote each word of arrays, and reports non-coherent loads of them."""

    def __init__(self, memory: Region) -> None:
        self.memory = memory
        self.writers: dict[int, np.ndarray] = {}  # by start of an array: indices in `origins` by word, 0 for none
        self.origins: list[Origin] = []

    def access(self, access: Access) -> None:
        holder = access.holder
        if access.region is not self.memory or holder is None or access.asynchronous:
            return
        if access.kind != READS:
            self._note(access, holder)
        elif not access.ordering.coherent and holder.start in self.writers:
            self._check(access, holder)

    def _note(self, access: Access, holder: Allocation) -> None:
        if holder.start not in self.writers:
            self.writers[holder.start] = np.zeros(-(-holder.bytes // _WORD), np.uint16)
        if access.by.origin not in self.origins:
            self.origins.append(access.by.origin)
        number = self.origins.index(access.by.origin) + 1
        for words in _words(access, holder):
            self.writers[holder.start][words] = number

    def _check(self, access: Access, holder: Allocation) -> None:
        writers = self.writers[holder.start]
        wrote = np.maximum.reduce([writers[words] for words in _words(access, holder)])
        if not wrote.any():
            return
        which = wrote > 0
        first = int(access.address[which].flat[0])
        by = self.origins[int(wrote[which].flat[0]) - 1]
        message = (
            f"{access.by.name} reads {holder.at(first)}, which this launch wrote earlier with {by.name}; "
            "such a load requires memory that nothing writes while the kernel runs"
        )
        others = [by.location] if by.location is not None else []
        access.by.finding("race", message, which, others, _HELP)


def _words(access: Access, holder: Allocation) -> list[np.ndarray]:
    """Return the word numbers of accesses in an array."""
    offsets = access.address - holder.start
    return [(offsets + part) // _WORD for part in range(0, access.size, _WORD)]
