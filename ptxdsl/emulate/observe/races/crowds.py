"""Which lanes of a warp read a word, where several did and nobody can say that they met."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...run.residents import WARP
from .stamps import ASYNC_LANE, LANE_MASK, SEVERAL, STAMP

_NUMBERS = range(WARP, ASYNC_LANE)  # in place of a lane: the crowds of one step and warp
_MOST = 1 << 14  # crowds; beyond that the oldest are forgotten


class Crowds:
    """The readers of words by stamp: of each lane of a warp its last read.

    `apart` says that warps meet by parts, the lanes that a mask names: only then it matters for which lanes a stamp of
    several stands. A crowd of which nothing is remembered is all lanes of its warp.
    """

    def __init__(self, apart: bool) -> None:
        self.apart = apart
        self._readers: dict[tuple[int, int], tuple[int, ...]] = {}

    def readers(self, warp: int, stamp: int) -> np.ndarray:
        """The last read of each lane (WARP,) for which a stamp of a warp stands, 0 of those that did not read."""
        lane = stamp & int(LANE_MASK)
        if lane < WARP:
            alone = np.zeros(WARP, STAMP)
            alone[lane] = stamp
            return alone
        return np.array(self._readers.get((warp, stamp), (stamp,) * WARP), STAMP)

    def gathered(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Stamps for words, (reads,), that lanes read now: of all of them, and of the reads before, `old` or 0."""
        crowds: dict[tuple[int, int], np.ndarray] = {}
        for word, stamp, warp, before in self._entries(words, stamps, warps, old):
            if (word, warp) not in crowds:
                crowds[word, warp] = self.readers(warp, before) if before else np.zeros(WARP, STAMP)
            lane = stamp & int(LANE_MASK)
            crowds[word, warp][lane if lane < WARP else slice(None)] = stamp
        now = int(stamps[0]) & ~int(LANE_MASK)
        numbered = {key: self._numbered(key[1], now, tuple(crowd.tolist())) for key, crowd in crowds.items()}
        return np.array([numbered[key] for key in zip(words.tolist(), warps.tolist(), strict=True)], STAMP)

    @staticmethod
    def _entries(*columns: np.ndarray) -> Iterator[tuple[int, ...]]:
        return zip(*(column.tolist() for column in columns), strict=True)

    def _numbered(self, warp: int, now: int, readers: tuple[int, ...]) -> int:
        """The stamp that stands for readers of a warp at a time."""
        for number in _NUMBERS:
            if self._readers.setdefault((warp, now | number), readers) == readers:
                if len(self._readers) > _MOST:
                    del self._readers[next(iter(self._readers))]
                return now | number
        return now | SEVERAL
