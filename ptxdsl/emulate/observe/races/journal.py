"""The clock of the detector, and the access at each time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.step import BULK_REDUCTION, Ordering
from ...memory.access import UPDATES, WRITES
from .stamps import LATEST, TICK
from .telling import Told

WEAK, BLOCK, CLUSTER, DEVICE = range(4)  # whose accesses a strong access cannot race with
_STRENGTHS = {"cta": BLOCK, "cluster": CLUSTER, "gpu": DEVICE, "sys": DEVICE}


def strength(ordering: Ordering) -> int:
    """Return how far an access is strong: not at all, or for the threads of its scope."""
    return WEAK if ordering.sem == "weak" else _STRENGTHS[ordering.scope]


def unit_of(ordering: Ordering, unit: int) -> int:
    """Return the bytes of the elements of accesses, negative for bulk reductions, which go through the async proxy.

    Strong accesses of different units or through different proxies are not morally strong.
    """
    return -unit if ordering == BULK_REDUCTION else unit


class Journal:
    """The accesses by time: `told`, `strengths`, and what `unit_of` says of them, `units`. `now` is the last stamp."""

    def __init__(self) -> None:
        self.strengths, self.units = np.zeros((2, 1 << 12), np.int8)
        self.clear()

    def clear(self) -> None:
        """Restart the clock."""
        self.now = TICK
        self.told: list[Told | None] = [None, None]

    @property
    def is_full(self) -> bool:
        return self.now + TICK >= LATEST

    def tick(self) -> int:
        """Return the stamp of the current event."""
        self.now += TICK
        self.told.append(None)
        return self.now

    def note(self, told: Told) -> int:
        """Return the stamp of the current access."""
        now, time = self.tick(), self.now // TICK
        self.told[time] = told
        if time >= len(self.strengths):
            self.strengths, self.units = (
                np.concatenate([old, np.zeros_like(old)]) for old in (self.strengths, self.units)
            )
        self.strengths[time], self.units[time] = strength(told.ordering), unit_of(told.ordering, told.unit)
        return now

    def strengths_of(self, stamps: np.ndarray) -> np.ndarray:
        """Return how strong accesses were."""
        strengths: np.ndarray = self.strengths[stamps // TICK]
        return strengths

    def sorts_of(self, stamps: np.ndarray) -> np.ndarray:
        """Return the strengths and units of accesses as one number: accesses of one sort race with the same others."""
        times = stamps // TICK
        sorts: np.ndarray = self.units[times].astype(np.int16) * (DEVICE + 1) + self.strengths[times]
        return sorts

    def wrote(self, stamp: int) -> bool:
        """Return True if the access at a stamp was a plain write."""
        told = self.told[stamp // TICK]
        return told is not None and told.kind == WRITES

    def are_generic(self, stamps: np.ndarray) -> np.ndarray:
        """Return which accesses were through the generic proxy."""
        return self._are(stamps, lambda told: told.ordering.proxy != "async")

    def are_updates(self, stamps: np.ndarray) -> np.ndarray:
        """Return which accesses were read-modify-writes, whose result depends on the old value."""
        return self._are(stamps, lambda told: told.kind == UPDATES)

    def _are(self, stamps: np.ndarray, which: Callable[[Told], bool]) -> np.ndarray:
        times, index = np.unique(stamps // TICK, return_inverse=True)
        result: np.ndarray = np.array([(told := self.told[time]) is not None and which(told) for time in times], bool)
        return result[index]
