"""Feeds the counts of arrivals, waits and completed phases at mbarriers."""

from __future__ import annotations

import numpy as np

from ...isa.step import PhaseArrival, PhaseCompletion, PhaseWait
from ..memory.access import BulkLanding, Event, Observer, Requester
from ..memory.phase_counts import PhaseCounts
from ..memory.spaces import WINDOW
from ..run.residents import Residents


class PhaseCounter(Observer):
    """Counts the events at mbarriers. `stride` is the shared memory of a block in bytes."""

    def __init__(self, counts: PhaseCounts, stride: int) -> None:
        self.counts, self.stride = counts, max(1, stride)

    def settle(self, residents: Residents) -> None:
        self.counts.settle(residents)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        self.counts.move(residents, lanes, slots)

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, BulkLanding):
            slots, offsets = np.divmod(event.phases, self.stride)
            self.counts.end_at(slots.tolist(), offsets.tolist())
        elif isinstance(event, PhaseArrival):
            self.counts.arrive(*_places(event, by, None))
        elif isinstance(event, PhaseCompletion):
            self.counts.end(*_places(event, by, event.complete))
        elif isinstance(event, PhaseWait) and event.complete.any():
            self.counts.wait(*_places(event, by, event.complete), by.origin.location)


def _places(
    event: PhaseArrival | PhaseCompletion | PhaseWait, by: Requester, which: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lanes and the addresses of an event, of those in `which` alone."""
    address = event.address.view(np.int64) & WINDOW
    lanes = by.lanes_of(address.shape)
    return (lanes.reshape(-1), address.reshape(-1)) if which is None else (lanes[which], address[which])
