"""Which lanes of a warp read a word, where several did and nobody can say that they met.

Each lane may tell others of what it read, at an mbarrier or by a flag, so that of each its last read counts.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...run.residents import WARP
from .stamps import ASYNC_LANE, LANE_MASK, SEVERAL, STAMP, TICK

_LAST = ASYNC_LANE - 1  # of their numbers
_MOST = 1 << 17  # crowds; beyond that the oldest are forgotten
_LANES = np.arange(WARP, dtype=STAMP)
_BITS = np.uint32(1) << _LANES
_EVERYONE = np.uint32(0xFFFFFFFF)
Table: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Crowds of one time: warps and numbers as keys, in order, and of each lane its last read, (crowds, WARP)."""


class Crowds:
    """The readers of words by warp and stamp: of each lane of the warp its last read.

    In place of a lane the stamp of a crowd has a number from WARP on, up to ASYNC_LANE. A crowd of which nothing is
    remembered is all lanes of its warp.
    """

    def __init__(self) -> None:
        self._tables: dict[int, Table] = {}
        self._count = 0

    def readers(self, warps: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        """Of those for which stamps of warps stand, the last read of each lane, (entries, WARP); 0 of other lanes."""
        lanes, times = stamps & LANE_MASK, stamps // TICK
        alone = lanes[:, np.newaxis] == _LANES
        readers: np.ndarray = np.where(alone | (lanes >= WARP)[:, np.newaxis], stamps[:, np.newaxis], np.uint32(0))
        keys = _keys(warps, stamps)
        for time in np.unique(times[lanes >= WARP]).tolist() if self._tables else ():
            if time in self._tables:
                known, rows = self._tables[time]
                which = np.flatnonzero(times == time)
                at = np.minimum(np.searchsorted(known, keys[which]), len(known) - 1)
                same = known[at] == keys[which]
                readers[which[same]] = rows[at[same]]
        return readers

    def are_known(self, warps: np.ndarray, stamps: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Whether who knows so much of each lane, (entries, WARP), knows of all for which stamps of warps stand."""
        result: np.ndarray = known.min(1) >= stamps
        rest = ~result
        if rest.any():
            result[rest] = (known[rest] >= self.readers(warps[rest], stamps[rest])).all(1)
        return result

    def gathered(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Stamps for words, (reads,), that lanes read now: of all of them, and of the reads before, `old` or 0.

        All reads of one word are by one warp.
        """
        order = np.argsort(words, kind="stable")
        first = np.flatnonzero(_is_new(words[order]))
        lanes = stamps & LANE_MASK
        bits = np.where(lanes < WARP, _BITS[lanes % WARP], _EVERYONE)[order]
        before = np.minimum.reduceat(old[order], first)  # who knows one of the readers knows what that one knew
        now = int(stamps[0]) // TICK * TICK
        each = self._stamps(np.bitwise_or.reduceat(bits, first), before, warps[order[first]], now)
        result = np.empty(len(words), STAMP)
        result[order] = np.repeat(each, np.diff(first, append=len(words)))
        return result

    def _stamps(self, masks: np.ndarray, before: np.ndarray, warps: np.ndarray, now: int) -> np.ndarray:
        """Stamps of lanes that read now, and of reads before, or 0."""
        lane = before & LANE_MASK
        again = (masks == _EVERYONE) | ((lane < WARP) & (masks & _BITS[lane % WARP] != 0))
        before = np.where(again, np.uint32(0), before)
        lowest = np.bitwise_count(~masks & (masks - np.uint32(1))).astype(STAMP)
        stamps = np.where(masks == _EVERYONE, np.uint32(SEVERAL), lowest) + np.uint32(now)
        crowded = np.flatnonzero((masks & (masks - np.uint32(1)) != 0) & (masks != _EVERYONE) | (before != 0))
        if crowded.size:
            stamps[crowded] = self._remembered(masks[crowded], before[crowded], warps[crowded], now)
        return stamps

    def _remembered(self, masks: np.ndarray, before: np.ndarray, warps: np.ndarray, now: int) -> np.ndarray:
        """Stamps of crowds; where a warp has more of them than there are numbers, all are one."""
        order = np.lexsort((masks, before, warps))
        masks, before, warps = masks[order], before[order], warps[order]
        new_warp = _is_new(warps)
        new = new_warp | _is_new(before) | _is_new(masks)
        each = np.cumsum(new_warp) - 1
        rank = np.cumsum(new) - 1
        rank -= rank[new_warp][each]
        numbers = rank + self._next_number(now)
        numbers[np.maximum.reduceat(numbers, np.flatnonzero(new_warp))[each] > _LAST] = _LAST
        first = np.flatnonzero(new_warp | (np.diff(numbers, prepend=0) != 0))
        rows = self._rows(np.bitwise_or.reduceat(masks, first), before, warps, first, now)
        stamps = (now + numbers).astype(STAMP)
        self._remember(now // TICK, _keys(warps[first], stamps[first]), rows)
        result = np.empty(len(order), STAMP)
        result[order] = stamps
        return result

    def _rows(
        self, masks: np.ndarray, before: np.ndarray, warps: np.ndarray, first: np.ndarray, now: int
    ) -> np.ndarray:
        """Of crowds that begin at `first` of some entries: the last read of each lane, now or before."""
        rows = np.zeros((len(first), WARP), STAMP)
        if before.any():
            begins = _is_new(before) | _is_new(warps)
            begins[first] = True
            each = np.flatnonzero(begins)
            rows = np.maximum.reduceat(self.readers(warps[each], before[each]), np.searchsorted(each, first))
        return np.where(masks[:, np.newaxis] & _BITS != 0, np.uint32(now) + _LANES, rows)

    def _next_number(self, now: int) -> int:
        """That of the crowds of a time that has some already."""
        table = self._tables.get(now // TICK)
        return WARP if table is None else int((table[0] % TICK).max()) + 1

    def _remember(self, time: int, keys: np.ndarray, rows: np.ndarray) -> None:
        """Keeps crowds; forgets old ones, if there are many."""
        if (earlier := self._tables.pop(time, None)) is not None:
            self._count -= len(earlier[0])
            keys, rows = (np.concatenate(both) for both in zip(earlier, (keys, rows), strict=True))
            order = np.argsort(keys)
            first = np.flatnonzero(_is_new(keys[order]))
            keys, rows = keys[order[first]], np.maximum.reduceat(rows[order], first)
        self._tables[time] = keys, rows
        self._count += len(keys)
        while self._count > _MOST and len(self._tables) > 1:
            self._count -= len(self._tables.pop(next(iter(self._tables)))[0])


def _keys(warps: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    keys: np.ndarray = warps.astype(np.int64) * TICK + (stamps & LANE_MASK)
    return keys


def _is_new(ordered: np.ndarray) -> np.ndarray:
    """Which values differ from the one before."""
    return np.append(True, ordered[1:] != ordered[:-1])
