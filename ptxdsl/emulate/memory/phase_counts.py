"""Counts of the arrivals, waits and completed phases at mbarriers, which tell findings the likely mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import Location
from ...isa.cluster_address import OFFSET
from ..run.residents import Residents
from .distributed import owners


@dataclass(frozen=True, slots=True)
class ArrivalCount:
    """Arrivals at an mbarrier since its block began: the total, the number of threads, and the most by one thread."""

    total: int = 0
    threads: int = 0
    most: int = 0


class PhaseCounts:
    """Counts by mbarrier: its slot and its offset in shared memory.

    `arrived` has the arrivals of each thread of the cluster, `complete` the completed phases. `waited` has, by offset,
    the waits of each lane that returned, for the mbarrier of its own block, and `waited_at` where the last of them is.
    """

    residents: Residents

    def settle(self, residents: Residents) -> None:
        self.residents = residents
        self.arrived: dict[tuple[int, int], np.ndarray] = {}
        self.complete: dict[tuple[int, int], int] = {}
        self.waited: dict[int, np.ndarray] = {}
        self.waited_at: dict[int, Location | None] = {}

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Renumber lanes and slots; -1 for those that are gone."""
        moved = {slot: int(new) for slot, new in enumerate(slots.tolist()) if new >= 0}
        self.residents = residents
        self.arrived = {(moved[s], offset): n for (s, offset), n in self.arrived.items() if s in moved}
        self.complete = {(moved[s], offset): n for (s, offset), n in self.complete.items() if s in moved}
        remain = np.flatnonzero(lanes >= 0)
        for offset, counts in self.waited.items():
            self.waited[offset] = np.zeros(residents.lanes, np.int64)
            self.waited[offset][lanes[remain]] = counts[remain]

    # Events

    def arrive(self, lanes: np.ndarray, address: np.ndarray) -> None:
        """Count arrivals of lanes at the mbarriers at these addresses."""
        r = self.residents
        threads = r.rank[r.slot[lanes]] * r.threads + r.thread[lanes]
        offsets, _, slots = owners(r, lanes, address)
        keys = np.maximum(slots, 0) << 32 | offsets
        for key in np.unique(keys).tolist():
            mbarrier = key >> 32, key & 0xFFFFFFFF
            if mbarrier not in self.arrived:
                self.arrived[mbarrier] = np.zeros(r.threads * r.cluster_blocks, np.int64)
            np.add.at(self.arrived[mbarrier], threads[keys == key], 1)

    def end(self, lanes: np.ndarray, address: np.ndarray) -> None:
        """Count phases of the mbarriers at these addresses, which arrivals of lanes complete."""
        offsets, _, slots = owners(self.residents, lanes, address)
        self.end_at(slots.tolist(), offsets.tolist())

    def end_at(self, slots: Sequence[int], offsets: Sequence[int]) -> None:
        """Count completed phases of mbarriers."""
        for mbarrier in zip(slots, offsets, strict=True):
            self.complete[mbarrier] = self.complete.get(mbarrier, 0) + 1

    def wait(self, lanes: np.ndarray, address: np.ndarray, at: Location | None) -> None:
        """Count waits of lanes, at mbarriers of their blocks, that return."""
        offsets = address & OFFSET
        for offset in np.unique(offsets).tolist():
            if offset not in self.waited:
                self.waited[offset] = np.zeros(self.residents.lanes, np.int64)
            self.waited[offset][lanes[offsets == offset]] += 1
            self.waited_at[offset] = at

    # Queries

    def arrivals(self, slot: int, offset: int, threads: range | None = None) -> ArrivalCount:
        """Return the arrivals at an mbarrier, by threads of its cluster or by all."""
        count = self.arrived.get((slot, offset))
        if count is None:
            return ArrivalCount()
        count = count if threads is None else count[threads.start : threads.stop]
        return ArrivalCount(int(count.sum()), int((count > 0).sum()), int(count.max(initial=0)))

    def completed(self, slot: int, offset: int) -> int:
        """Return the number of completed phases of an mbarrier."""
        return self.complete.get((slot, offset), 0)

    def waits(self, lane: int, offset: int) -> int:
        """Return the number of waits of a lane for an mbarrier of its block that returned."""
        return int(self.waited[offset][lane]) if offset in self.waited else 0

    def ahead(self, lane: int, by: int) -> Iterator[int]:
        """Yield the offsets of the mbarriers for which a lane waited `by` times more than phases are complete."""
        slot = int(self.residents.slot[lane])
        for offset, waits in self.waited.items():
            if int(waits[lane]) - self.completed(slot, offset) >= by:
                yield offset
