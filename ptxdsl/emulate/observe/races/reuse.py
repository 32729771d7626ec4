"""Reuse of the barriers of a block: arriving threads must know that the previous use has completed.

Two groups of threads that share a barrier by turns meet each other there where nothing orders the second turn behind
the first, and a barrier is free again for whoever has waited at it, or learned of it by those who have.
"""

from __future__ import annotations

import numpy as np

from ...memory.access import BarrierArrival, BarrierCompletion, Event, Observer, Requester
from ...run.barriers import BARRIERS
from ...run.residents import Residents
from .detector import Races
from .stamps import STAMP

_HELP = "give each group of threads its own barrier (0 to 15), or synchronize the groups before they swap barriers"


class BarrierReuse(Observer):
    """Checks arrivals at barriers against their last completion; subscribed after `races`, whose clocks it uses.

    `since`, by slot, barrier and warp, is the stamp at which warps went on that waited there last, 0 for others;
    `origins`, by slot and barrier, the instruction that came last then.
    """

    def __init__(self, races: Races) -> None:
        self.races = races

    def settle(self, residents: Residents) -> None:
        self.since = np.zeros((residents.slots, BARRIERS, residents.warps), STAMP)
        self.origins = np.full((residents.slots, BARRIERS), None, object)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        since, origins, remain = self.since, self.origins, np.flatnonzero(slots >= 0)
        self.settle(residents)
        self.since[slots[remain]], self.origins[slots[remain]] = since[remain], origins[remain]

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, BarrierCompletion):
            rows = event.warp * self.races.residents.slots + event.slot
            self.since[event.done], self.origins[event.done] = 0, by.origin
            self.since[event.slot, event.barrier, event.warp] = self.races.clocks.met()[rows]
        elif isinstance(event, BarrierArrival) and event.slot is not None:
            assert event.warp is not None and event.barrier is not None
            late = self.since[event.slot, event.barrier, event.warp] == 0
            if late.any():
                self._check(by, event.slot, event.barrier, event.warp.astype(np.int64), late)

    def _check(self, by: Requester, slot: np.ndarray, barrier: np.ndarray, warp: np.ndarray, late: np.ndarray) -> None:
        """Reports the warps of a mask that know of nobody who has waited at their barrier."""
        clocks = self.races.clocks
        rows, since = warp * self.races.residents.slots + slot, self.since[slot, barrier]
        if since.max() > clocks.met()[rows].max():  # the clock began anew
            self.since[:] = 0
            return
        first = clocks.column[rows] - clocks.warp_in_block[rows]
        known = np.take_along_axis(clocks.seen[rows], first[:, np.newaxis] + np.arange(since.shape[1]), axis=1)
        late &= since.any(1) & ~((since > 0) & (known >= since)).any(1)
        if late.any():
            n = int(np.argmax(late))
            waited = np.flatnonzero(since[n]).tolist()
            message = (
                f"{by.name}: warp {int(warp[n])} arrives at barrier {int(barrier[n])}, where {_warps(waited)} met "
                "before; nothing orders the two uses, so their arrivals may mix"
            )
            location = self.origins[slot[n], barrier[n]].location
            by.finding("barrier", message, late[:, np.newaxis], [location] if location is not None else [], _HELP)


def _warps(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"warp {numbers[0]}"
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"warps {numbers[0]} to {numbers[-1]}"
    return f"warps {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
