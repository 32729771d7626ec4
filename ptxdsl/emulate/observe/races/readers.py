"""Readers of words in global memory beyond the two that a word has room for, and other accesses that last ones hide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .stamps import LANE_MASK, STAMP, are_crowds

_MOST = 1 << 21  # reads; beyond that the oldest are forgotten
_FEW = 64  # that are not worth sorting
_MOST_PARTS, _SMALL = 256, 1 << 16  # so many parts that are small together are made one


class Reads(NamedTuple):
    """Words, stamps and warps of reads; and when all lanes of each warp had met last, 0 if that is not known."""

    words: np.ndarray
    stamps: np.ndarray
    warps: np.ndarray
    met: np.ndarray

    @property
    def lanes(self) -> np.ndarray:
        lanes: np.ndarray = self.stamps & LANE_MASK
        return lanes

    def only(self, which: np.ndarray) -> Reads:
        return Reads(*(values[which] for values in self))


class MoreReaders:
    """Reads by word, warp of the grid and stamp, in lists that are sorted when a write asks for them.

    `marks` says of each word whether it may have any.
    """

    def __init__(self, words: int) -> None:
        self.marks = np.zeros(words, bool)
        self.parts: list[Reads] = []
        self.count = 0

    def add(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray, met: np.ndarray | None = None) -> None:
        """Remembers reads, one entry each."""
        part = Reads(words, stamps, warps, np.zeros_like(stamps) if met is None else met)
        if len(words) > _FEW:
            part = _latest(part)
        self.marks[part.words] = True
        if self.parts and _same_readers(self.parts[-1], part):  # who waits for a flag reads it again and again
            self.parts[-1] = part
            return
        self.parts.append(part)
        self.count += len(part.words)
        if self.count > _MOST or (len(self.parts) > _MOST_PARTS and self.count < _SMALL):
            self._sort()

    def of(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Reads of words: the number of the word among these, stamps and warps."""
        entry = np.flatnonzero(self.marks[words])
        if not entry.size:
            return entry, np.empty(0, STAMP), np.empty(0, STAMP)
        known = self._sort()
        low, high = (np.searchsorted(known.words, words[entry], side) for side in ("left", "right"))
        counts = high - low
        index = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return np.repeat(entry, counts), known.stamps[index], known.warps[index]

    def forget(self, words: np.ndarray) -> None:
        """The words are written: who is ordered behind that write is ordered behind the reads."""
        self.marks[words] = False

    def refined(self, factor: int, words: int) -> MoreReaders:
        """The same for words of fewer bytes."""
        new = MoreReaders(words)
        for known, *others in self.parts:
            parts = known[:, np.newaxis] * factor + np.arange(factor)
            new.add(parts.reshape(-1), *(np.repeat(values, factor) for values in others))
        return new

    def moved(self, each: int, numbers: np.ndarray, words: int) -> MoreReaders:
        """The same where pieces of `each` words have other numbers, -1 for those that are gone."""
        new = MoreReaders(words)
        for known, *others in self.parts:
            target = numbers[np.minimum(known // each, len(numbers) - 1)]
            stay = target >= 0
            if stay.any():
                new.add(target[stay] * each + known[stay] % each, *(values[stay] for values in others))
        return new

    def _sort(self) -> Reads:
        """All reads in one list, by word."""
        if len(self.parts) > 1 or self.count > _MOST:
            reads = Reads(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))
            part = _latest(reads.only(self.marks[reads.words]))
            if len(part.words) > _MOST // 2:
                part = part.only(part.stamps >= np.partition(part.stamps, -_MOST // 2)[-_MOST // 2])
            self.parts, self.count = [part], len(part.words)
        part = self.parts[0]
        return part.only(np.argsort(part.words, kind="stable")) if len(part.words) <= _FEW else part


def _same_readers(one: Reads, other: Reads) -> bool:
    if len(one.words) != len(other.words):
        return False
    same = (one.words == other.words) & (one.warps == other.warps) & (one.lanes == other.lanes)
    return bool((same & ~are_crowds(one.lanes)).all())


def _latest(reads: Reads) -> Reads:
    """By word, of each lane the last read, and all of crowds; but none of before its warp met and read again."""
    if not len(reads.words):
        return reads
    order = np.lexsort((_pairs(reads.lanes, reads.stamps), _pairs(reads.words, reads.warps)))
    words, stamps, warps, met = reads = reads.only(order)
    new = np.append(True, (words[1:] != words[:-1]) | (warps[1:] != warps[:-1]))
    lanes = reads.lanes
    last = np.append(new[1:] | (lanes[1:] != lanes[:-1]), True)
    last[:-1] |= are_crowds(lanes[:-1]) & (stamps[1:] != stamps[:-1])
    known = np.maximum.reduceat(met, np.flatnonzero(new))[np.cumsum(new) - 1]
    return reads.only(last & (stamps > known))


def _pairs(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Pairs of numbers as one."""
    pairs: np.ndarray = high.astype(np.int64) << 32 | low
    return pairs
