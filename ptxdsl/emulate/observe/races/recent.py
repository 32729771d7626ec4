"""Accesses to shared memory that are not remembered word by word yet.

In a kernel whose blocks meet at barriers, all threads soon know of an access: nothing can race with it any more, and it
is dropped. Only where a warp comes near one that it does not know of are the words looked up, and then all that are
kept here are taken there first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....isa.step import WEAK
from ...memory.access import READS, UPDATES, WRITES, Access
from ...run.residents import WARP
from .accesses import Accesses
from .clocks import Clocks

_MOST, _MOST_BYTES = 256, 1 << 25
_MOST_COMPARED = 8  # place by place


@dataclass(frozen=True, eq=False, slots=True)
class RecentAccess:
    """Lanes read or wrote, or copies that they waited for wrote, `bytes` bytes at each place, (accesses,)."""

    kind: str
    stamp: int
    flat: np.ndarray
    bytes: int
    lanes: np.ndarray
    collective: bool
    landing: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Extents:
    """The bytes that each warp touches, from `first` up to `last`, (warps, blocks); from `low` up to `high` of any.

    `flat` are the places of `bytes` bytes that are touched, in any order.
    """

    first: np.ndarray
    last: np.ndarray
    low: int
    high: int
    flat: np.ndarray
    bytes: int

    def meets(self, other: Extents) -> bool:
        """Whether an access of one is to the same place as one of the other, as far as both can be told apart."""
        bits = max(self.bytes, other.bytes).bit_length() - 1
        one, two = (np.sort(extents.flat >> bits) for extents in (self, other))
        index = np.searchsorted(one, two)
        return bool((one[np.minimum(index, len(one) - 1)] == two).any())


class Recent:
    """Those since the last time that all were taken, of blocks whose memory begins at `base` (lanes,).

    `extents` has those of the accesses that were asked about, by stamp.
    """

    def __init__(self, base: np.ndarray, clocks: Clocks) -> None:
        self.base, self.clocks = base[::WARP], clocks
        self.accesses: list[RecentAccess] = []
        self.extents: dict[int, Extents] = {}
        self.size = 0

    def _extents(self, flat: np.ndarray, bytes: int, lanes: np.ndarray) -> Extents:
        rows = lanes // WARP
        starts = np.concatenate([[0], np.flatnonzero(rows[1:] != rows[:-1]) + 1])
        rows = rows[starts]
        first = np.full(len(self.base), np.iinfo(np.int64).max)
        last = np.zeros(len(self.base), np.int64)
        np.minimum.at(first, rows, np.minimum.reduceat(flat, starts) - self.base[rows])
        np.maximum.at(last, rows, np.maximum.reduceat(flat, starts) - self.base[rows] + bytes)
        low, high = int(first.min()), int(last.max())
        warps = self.clocks.residents.warps
        return Extents(first.reshape(warps, -1), last.reshape(warps, -1), low, high, flat, bytes)

    def _may_race(self, access: RecentAccess, extents: Extents) -> Extents | None:
        """Those of an access if a warp that touches so much comes near one of a warp that it does not know of."""
        if access.stamp not in self.extents:
            self.extents[access.stamp] = self._extents(access.flat, access.bytes, access.lanes)
        other = self.extents[access.stamp]
        if other.low >= extents.high or extents.low >= other.high:
            return None
        near = (other.first[:, np.newaxis] < extents.last) & (extents.first < other.last[:, np.newaxis])
        known = self.clocks.seen.reshape(*near.shape[1:], -1).transpose(2, 0, 1)  # of each warp, by the one, the block
        return other if (near & (known < access.stamp)).any() else None

    def keeps(self, access: Access, stamp: int, accesses: Accesses) -> bool:
        """Remembers weak reads, and weak writes of which no two are to one place; whether it did."""
        if access.kind == UPDATES or access.ordering != WEAK:
            return False
        if access.kind == WRITES and _meet(accesses.flat):
            return False
        if accesses.flat.size:
            collective = access.by.collective
            self.add(RecentAccess(access.kind, stamp, accesses.flat, accesses.size, accesses.lanes, collective))
        return True

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

    def is_disturbed(self, access: Access, accesses: Accesses, floor: int) -> bool:
        """Whether all must be taken to the words: a warp comes near one that it does not know of, or they are many."""
        if self.accesses:
            self.forget(floor)
        if not (self.accesses and accesses.flat.size):
            return False
        writes = access.kind != READS
        others = [a for a in self.accesses if a.stamp > floor and (writes or a.kind == WRITES)]
        if self.is_full or not others:
            return self.is_full
        extents = self._extents(accesses.flat, accesses.size, accesses.lanes)
        near = [other for access in others if (other := self._may_race(access, extents)) is not None]
        return len(near) > _MOST_COMPARED or any(other.meets(extents) for other in near)

    def take(self, floor: int) -> list[RecentAccess]:
        """Those that somebody does not know of; nothing is kept."""
        unknown = [access for access in self.accesses if access.stamp > floor]
        self.accesses, self.size = [], 0
        self.extents.clear()
        return unknown


def _meet(flat: np.ndarray) -> bool:
    """Whether two accesses are to one place."""
    places = np.sort(flat)
    return bool((places[1:] == places[:-1]).any())
