"""The accesses of one event, one by one and word by word."""

from __future__ import annotations

import numpy as np

from ...memory.access import Access
from ...run.residents import WARP
from .pages import ALL
from .shadow import Shadow, Words


class Accessors:
    """The accesses of one event, one entry for each group of words, with their lanes and rows."""

    def __init__(self, words: Words, lanes: np.ndarray, rows: np.ndarray, number: np.ndarray) -> None:
        self.words, self.lanes, self.rows, self.number = words, lanes, rows, number

    def only(self, which: np.ndarray | slice) -> Accessors:
        return Accessors(self.words.only(which), self.lanes[which], self.rows[which], self.number[which])


class Accesses:
    """The accesses of one event, (accesses,): their offsets, lanes and numbers."""

    def __init__(self, shadow: Shadow, size: int, flat: np.ndarray, lanes: np.ndarray, number: np.ndarray) -> None:
        self.shadow, self.size = shadow, size
        self.flat, self.lanes, self.number = flat, lanes, number
        self._everyone: Accessors | None = None

    def those(self, which: np.ndarray | slice) -> Accessors:
        """Return some of the accesses by words."""
        if which is not ALL:
            return self._words(which)
        if self._everyone is None:
            self._everyone = self._words(ALL)
        return self._everyone

    def by_warps(self) -> Accesses | None:
        """Return one access for each warp, None unless all lanes of each warp access the same bytes."""
        if self.flat.size % WARP:
            return None
        flat, lanes = self.flat.reshape(-1, WARP), self.lanes.reshape(-1, WARP)
        if (flat != flat[:, :1]).any() or (lanes != lanes[:, :1] // WARP * WARP + np.arange(WARP)).any():
            return None
        return Accesses(self.shadow, self.size, flat[:, 0], lanes[:, 0], self.number[::WARP])

    def _words(self, which: np.ndarray | slice) -> Accessors:
        words = self.shadow.words(self.flat[which], self.size)
        lanes = words.each(self.lanes[which])
        return Accessors(words, lanes, lanes // WARP, words.each(self.number[which]))


def allowed(access: Access) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets, lanes and numbers of the allowed accesses, (accesses,)."""
    flat, lanes = access.flat.reshape(-1), access.lanes.reshape(-1)
    if access.allowed is None:
        return flat, lanes, np.arange(len(flat))
    number = np.flatnonzero(access.allowed)
    return flat[number], lanes[number], number
