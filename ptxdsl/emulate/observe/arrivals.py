"""Arrivals at mbarriers, by thread: deadlock reports name the threads that did not arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...isa.step import PhaseArrival
from ..memory.access import Event, Observer, Requester
from ..memory.distributed import owners
from ..memory.spaces import WINDOW
from ..run.residents import Residents


@dataclass(frozen=True, slots=True)
class ArrivalCount:
    """The arrivals at an mbarrier since its block started: the number of threads, and the `most` arrivals of one
    thread.
    """

    total: int = 0
    threads: int = 0
    most: int = 0


class ArrivalCounter(Observer):
    """Counts of arrivals by (ordinal of the block, address in its shared memory), and by thread of its cluster."""

    residents: Residents

    def __init__(self) -> None:
        self.counts: dict[tuple[int, int], np.ndarray] = {}

    def settle(self, residents: Residents) -> None:
        self.residents = residents
        self.counts.clear()

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        self.residents = residents
        running = set(residents.ordinals.tolist())
        self.counts = {key: count for key, count in self.counts.items() if key[0] in running}

    def order(self, event: Event, by: Requester) -> None:
        if not isinstance(event, PhaseArrival):
            return
        r, address = self.residents, event.address.view(np.int64) & WINDOW
        lanes = by.lanes_of(address.shape).reshape(-1)
        offsets, _, slots = owners(r, lanes, address.reshape(-1))
        threads = r.rank[r.slot[lanes]] * r.threads + r.thread[lanes]
        keys = np.maximum(slots, 0) << 32 | offsets
        for key in np.unique(keys).tolist():
            mbarrier = int(r.ordinals[key >> 32]), key & 0xFFFFFFFF
            if mbarrier not in self.counts:
                self.counts[mbarrier] = np.zeros(r.threads * r.cluster_blocks, np.int64)
            np.add.at(self.counts[mbarrier], threads[keys == key], 1)

    def at(self, slot: int, offset: int) -> ArrivalCount:
        """Return the arrivals at an mbarrier of the block in a slot."""
        count = self.counts.get((int(self.residents.ordinals[slot]), offset))
        if count is None:
            return ArrivalCount()
        return ArrivalCount(int(count.sum()), int((count > 0).sum()), int(count.max()))
