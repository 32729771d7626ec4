"""Accesses to shared memory that are not remembered word by word yet.

In a kernel whose blocks meet at barriers, all threads soon know of an access: nothing can race with it any more, and it
is dropped. Only where a warp comes near one that it does not know of are the words looked up, and then all that are
kept here are taken there first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....cached import cached_property
from ....isa.step import NON_COHERENT, WEAK
from ...memory.access import READS, UPDATES, WRITES, Access
from ...run.residents import WARP
from .accesses import Accesses
from .clocks import Clocks
from .stamps import STAMP

_MOST, _MOST_BYTES = 256, 1 << 25
_MOST_COMPARED = 32  # place by place


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


class Runs:
    """Some lanes, where those of a warp follow each other; the shared memory of warps begins at `base` (rows,)."""

    def __init__(self, lanes: np.ndarray, base: np.ndarray) -> None:
        self.lanes, self.count = lanes, len(base)
        rows = lanes // WARP
        self.starts = np.append(0, np.flatnonzero(rows[1:] != rows[:-1]) + 1) if len(rows) else np.empty(0, np.intp)
        self.rows = rows[self.starts]
        self.base = base[self.rows]
        self.ascends = bool((self.rows[1:] > self.rows[:-1]).all())

    def ends(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest place of each run, in the shared memory of its block."""
        return np.minimum.reduceat(flat, self.starts) - self.base, np.maximum.reduceat(flat, self.starts) - self.base

    def spread(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of all warps, (rows,); those that have no lanes end before they begin."""
        if self.ascends and len(self.rows) == self.count:
            return low, high
        first, last = np.full(self.count, np.iinfo(np.int64).max), np.zeros(self.count, np.int64)
        np.minimum.at(first, self.rows, low)
        np.maximum.at(last, self.rows, high)
        return first, last


class Total:
    """What each warp touched in several accesses, and the stamp of its last one, (warps, blocks)."""

    def __init__(self, extents: Extents) -> None:
        self.first, self.last = extents.first.copy(), extents.last.copy()
        self.stamp = np.zeros(self.first.shape, STAMP)

    def add(self, extents: Extents, stamp: int) -> None:
        np.minimum(self.first, extents.first, out=self.first)
        np.maximum(self.last, extents.last, out=self.last)
        self.stamp[extents.first < extents.last] = stamp


class Recent:
    """Those since the last time that all were taken, of blocks whose memory begins at `base` (lanes,).

    `extents` has those of the accesses that were asked about, by stamp; `totals` those of all these and of the writes.
    """

    def __init__(self, base: np.ndarray, clocks: Clocks, bytes: int) -> None:
        self.base, self.clocks, self.bytes = base[::WARP], clocks, bytes
        self.accesses: list[RecentAccess] = []
        self.extents: dict[int, Extents] = {}
        self.totals: dict[bool, Total] = {}
        self.size = 0
        self._latest: Extents | None = None
        self._runs = Runs(np.empty(0, np.int64), self.base)

    @cached_property
    def _marks(self) -> np.ndarray:
        """Of each byte of shared memory; all are unmarked but while accesses are compared."""
        return np.zeros(self.bytes, bool)

    def _extents(self, flat: np.ndarray, bytes: int, lanes: np.ndarray) -> Extents:
        """Those of accesses; of the ones that were asked about last they are known."""
        if self._latest is not None and self._latest.flat is flat:
            return self._latest
        if not np.array_equal(lanes, self._runs.lanes):
            self._runs = Runs(lanes, self.base)
        low, high = self._runs.ends(flat)
        first, last = self._runs.spread(low, high + bytes)
        warps = self.clocks.residents.warps
        least, most = int(low.min()), int(high.max()) + bytes
        self._latest = Extents(first.reshape(warps, -1), last.reshape(warps, -1), least, most, flat, bytes)
        return self._latest

    def _ask(self) -> None:
        """Works out the extents of accesses that came since this was asked last."""
        for access in self.accesses[len(self.extents) :]:
            extents = self._extents(access.flat, access.bytes, access.lanes)
            self.extents[access.stamp] = extents
            for writes in (False, True) if access.kind == WRITES else (False,):
                self.totals.setdefault(writes, Total(extents)).add(extents, access.stamp)

    def _come_near(self, extents: Extents, writes: bool) -> bool:
        """Whether a warp comes near anything of another warp that it does not know all of."""
        total = self.totals[not writes]
        near = (total.first[:, np.newaxis] < extents.last) & (extents.first < total.last[:, np.newaxis])
        near &= self._known(near) < total.stamp[:, np.newaxis]
        each = np.arange(len(near))
        near[each, each] = False
        return bool(near.any())

    def _known(self, near: np.ndarray) -> np.ndarray:
        """Up to when of each warp, by the one that knows it and the block."""
        return self.clocks.seen.reshape(*near.shape[1:], -1).transpose(2, 0, 1)

    def _is_near(self, stamp: int, extents: Extents) -> bool:
        """Whether a warp that touches so much comes near an access of a warp that it does not know of."""
        other = self.extents[stamp]
        near = (other.first[:, np.newaxis] < extents.last) & (extents.first < other.last[:, np.newaxis])
        return bool((near & (self._known(near) < stamp)).any())

    def _near_itself(self, stamps: list[int], extents: Extents) -> list[int]:
        """Those accesses that a warp comes near which made them and whose lanes have not met since."""
        known = self.clocks.met().reshape(extents.first.shape)
        floor = int(known.min())
        stamps = [stamp for stamp in stamps if stamp > floor]
        if not stamps:
            return []
        first, last = (np.array([getattr(self.extents[stamp], end) for stamp in stamps]) for end in ("first", "last"))
        near = (first < extents.last) & (extents.first < last) & (known < np.array(stamps)[:, np.newaxis, np.newaxis])
        return [stamps[n] for n in np.flatnonzero(near.any((1, 2)))]

    def _near(self, stamps: list[int], extents: Extents, writes: bool) -> list[int]:
        """Those accesses that a warp comes near and does not know of."""
        if self._come_near(extents, writes):
            return [stamp for stamp in stamps if self._is_near(stamp, extents)]
        return self._near_itself(stamps, extents)

    def _meet(self, extents: Extents, stamps: list[int]) -> bool:
        """Whether an access is to the same place as one of others, as far as they can be told apart."""
        others = [self.extents[stamp] for stamp in stamps]
        bits = max(each.bytes for each in (extents, *others)).bit_length() - 1
        units = [other.flat >> bits for other in others]
        for each in units:
            self._marks[each] = True
        meets = bool(self._marks[extents.flat >> bits].any())
        for each in units:
            self._marks[each] = False
        return meets

    def keeps(self, access: Access, stamp: int, accesses: Accesses) -> bool:
        """Remembers weak reads, and weak writes of which no two are to one place; whether it did."""
        if access.kind == UPDATES or access.ordering not in (WEAK, NON_COHERENT):
            return False
        if access.kind == WRITES and _is_crowded(accesses.flat):
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
        if self.is_full:
            return True
        writes = access.kind != READS
        stamps = [a.stamp for a in self.accesses if a.stamp > floor and (writes or a.kind == WRITES)]
        if not stamps:
            return False
        self._ask()
        extents = self._extents(accesses.flat, accesses.size, accesses.lanes)
        stamps = [s for s in stamps if self.extents[s].low < extents.high and extents.low < self.extents[s].high]
        near = self._near(stamps, extents, writes) if stamps else []
        return len(near) > _MOST_COMPARED or bool(near and self._meet(extents, near))

    def take(self, floor: int) -> list[RecentAccess]:
        """Those that somebody does not know of; nothing is kept."""
        unknown = [access for access in self.accesses if access.stamp > floor]
        self.accesses, self.size = [], 0
        self.extents.clear()
        self.totals.clear()
        return unknown


def _is_crowded(flat: np.ndarray) -> bool:
    """Whether two accesses are to one place."""
    ordered = np.sort(flat)
    return bool((ordered[1:] == ordered[:-1]).any())
