"""Accesses to shared memory that are not remembered word by word yet.

In a kernel whose blocks meet at barriers, all threads soon know of an access: nothing can race with it any more, and it
is dropped. Only where an access comes near one that somebody does not know of are the words looked up, and then all
that are kept here are taken there first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...memory.access import WRITES

_MOST, _MOST_BYTES = 256, 1 << 25


@dataclass(frozen=True, eq=False, slots=True)
class RecentAccess:
    """Lanes read, or copies that they waited for wrote, `bytes` bytes at each place, (accesses,), at a stamp."""

    kind: str
    stamp: int
    flat: np.ndarray
    bytes: int
    lanes: np.ndarray
    collective: bool


class Recent:
    """Those since the last time that all were taken, of blocks whose memory begins at `base` (lanes,).

    `extents` has the least and the greatest place within the shared memory of a block, of those that were asked about.
    """

    def __init__(self, base: np.ndarray) -> None:
        self.base = base
        self.accesses: list[RecentAccess] = []
        self.extents: dict[int, tuple[int, int]] = {}  # by stamp
        self.size = 0

    def _extent(self, flat: np.ndarray, lanes: np.ndarray) -> tuple[int, int]:
        offset = flat - self.base[lanes]
        return int(offset.min()), int(offset.max())

    def _is_near(self, access: RecentAccess, low: int, high: int) -> bool:
        """Whether an access may touch bytes from low up to high."""
        if access.stamp not in self.extents:
            self.extents[access.stamp] = self._extent(access.flat, access.lanes)
        first, last = self.extents[access.stamp]
        return first < high and low < last + access.bytes

    def add(self, access: RecentAccess) -> None:
        """Remembers accesses, one at least."""
        self.accesses.append(access)
        self.size += access.flat.nbytes + access.lanes.nbytes

    def forget(self, floor: int) -> None:
        """Drops what everybody knows, if that is all there is."""
        if self.accesses and self.accesses[-1].stamp <= floor:
            self.take(floor)

    @property
    def is_full(self) -> bool:
        """Whether it has so many that a look at each of them takes longer than at the words."""
        return len(self.accesses) > _MOST or self.size > _MOST_BYTES

    def near(self, floor: int, flat: np.ndarray, bytes: int, lanes: np.ndarray, writes: bool) -> bool:
        """Whether an access comes near one that somebody does not know of, a write or, if it `writes`, any."""
        others = [a for a in self.accesses if a.stamp > floor and (writes or a.kind == WRITES)]
        if not (others and flat.size):
            return False
        low, high = self._extent(flat, lanes)
        return any(self._is_near(other, low, high + bytes) for other in others)

    def take(self, floor: int) -> list[RecentAccess]:
        """Those that somebody does not know of; nothing is kept."""
        unknown = [access for access in self.accesses if access.stamp > floor]
        self.accesses, self.size = [], 0
        self.extents.clear()
        return unknown
