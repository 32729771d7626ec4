"""Readers of words in global memory beyond the two that a word has room for, and other accesses that last ones hide."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .stamps import LANE_MASK, STAMP, TICK

_MOST = 1 << 21  # reads; beyond that the oldest are forgotten
_FEW = 64  # that are not worth sorting
_MOST_PARTS, _SMALL = 256, 1 << 16  # so many parts that are small together are made one
Reads: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Words, stamps and warps."""


class MoreReaders:
    """Reads by word, warp of the grid and stamp, in lists that are sorted when a write asks for them.

    `marks` says of each word whether it may have any.
    """

    def __init__(self, words: int) -> None:
        self.marks = np.zeros(words, bool)
        self.parts: list[Reads] = []
        self.count = 0

    def add(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> None:
        """Remembers reads, one entry each."""
        part = _latest(words, stamps, warps) if len(words) > _FEW else (words, stamps, warps)
        self.marks[part[0]] = True
        if self.parts and _same_readers(self.parts[-1], part):  # who waits for a flag reads it again and again
            self.parts[-1] = part
            return
        self.parts.append(part)
        self.count += len(part[0])
        if self.count > _MOST or (len(self.parts) > _MOST_PARTS and self.count < _SMALL):
            self._sort()

    def of(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Reads of words: the number of the word among these, stamps and warps."""
        entry = np.flatnonzero(self.marks[words])
        if not entry.size:
            return entry, np.empty(0, STAMP), np.empty(0, STAMP)
        known, stamps, warps = self._sort()
        low, high = (np.searchsorted(known, words[entry], side) for side in ("left", "right"))
        counts = high - low
        index = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return np.repeat(entry, counts), stamps[index], warps[index]

    def forget(self, words: np.ndarray) -> None:
        """The words are written: who is ordered behind that write is ordered behind the reads."""
        self.marks[words] = False

    def refined(self, factor: int, words: int) -> MoreReaders:
        """The same for words of fewer bytes."""
        new = MoreReaders(words)
        for known, stamps, warps in self.parts:
            parts = known[:, np.newaxis] * factor + np.arange(factor)
            new.add(parts.reshape(-1), np.repeat(stamps, factor), np.repeat(warps, factor))
        return new

    def moved(self, each: int, numbers: np.ndarray, words: int) -> MoreReaders:
        """The same where pieces of `each` words have other numbers, -1 for those that are gone."""
        new = MoreReaders(words)
        for known, stamps, warps in self.parts:
            target = numbers[np.minimum(known // each, len(numbers) - 1)]
            stay = target >= 0
            if stay.any():
                new.add(target[stay] * each + known[stay] % each, stamps[stay], warps[stay])
        return new

    def _sort(self) -> Reads:
        """All reads in one list, by word."""
        if len(self.parts) > 1 or self.count > _MOST:
            known, stamps, warps = (np.concatenate(column) for column in zip(*self.parts, strict=True))
            wanted = self.marks[known]
            part = _latest(known[wanted], stamps[wanted], warps[wanted])
            if len(part[0]) > _MOST // 2:
                recent = part[1] >= np.partition(part[1], -_MOST // 2)[-_MOST // 2]
                part = part[0][recent], part[1][recent], part[2][recent]
            self.parts, self.count = [part], len(part[0])
        known, stamps, warps = self.parts[0]
        if len(known) <= _FEW:
            order = np.argsort(known, kind="stable")
            return known[order], stamps[order], warps[order]
        return known, stamps, warps


def _same_readers(one: Reads, other: Reads) -> bool:
    return len(one[0]) == len(other[0]) and bool((one[0] == other[0]).all() and (one[2] == other[2]).all())


def _latest(words: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> Reads:
    """The last read of each word by each warp, by word; several lanes that read at once are one entry."""
    order = np.lexsort((stamps, warps, words))
    words, stamps, warps = words[order], stamps[order], warps[order]
    again = (words[1:] == words[:-1]) & (warps[1:] == warps[:-1])
    last = np.append(~again, True) if len(words) else np.empty(0, bool)
    together = np.append(False, again & (stamps[1:] // TICK == stamps[:-1] // TICK) & (stamps[1:] != stamps[:-1]))
    stamps = np.where(together[: len(words)], stamps | LANE_MASK, stamps)
    return words[last], stamps[last], warps[last]
