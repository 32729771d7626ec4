"""The previous grid: a dependent grid may run concurrently with it, until its threads wait (`griddepcontrol.wait`).

What the grid before wrote and read counts as done by a warp of its own, of which nobody knows; a wait makes it known,
and it spreads as other knowledge does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....isa.step import Fence
from ...memory.access import READS, WRITES, Event, Observer, Origin, Requester
from ...memory.regions import CHUNK, Allocation
from ...run.residents import Residents
from .detector import Races
from .shadow import WarpReads
from .stamps import SEVERAL, STAMP
from .telling import Told


@dataclass(frozen=True, slots=True)
class TouchedBytes:
    """Bytes of an array, from `first` up to `end`, that the previous grid wrote, or only read."""

    allocation: Allocation
    first: int
    end: int
    written: bool


@dataclass(frozen=True, slots=True)
class GridBeside:
    """The previous grid, which may still run, and the bytes that it touches."""

    name: str
    touched: tuple[TouchedBytes, ...]


class GridWaits(Observer):
    """Lets `races` know what the grid before did, and who has waited for it; stands behind `races`."""

    def __init__(self, races: Races, beside: GridBeside) -> None:
        self.races, self.beside = races, beside
        self.latest = 0

    def settle(self, residents: Residents) -> None:
        if self.latest:
            return
        origin = Origin(self.beside.name, None)
        stamps = {
            written: self.races.journal.note(Told(origin, WRITES if written else READS, grid=self.beside.name))
            for written in (False, True)
        }
        self.latest = max(stamps.values()) | SEVERAL
        for touched in self.beside.touched:
            self._note(touched, stamps[touched.written] | SEVERAL)

    def _note(self, touched: TouchedBytes, stamp: int) -> None:
        """Record accesses to all of some bytes."""
        ends = touched.allocation.offset + touched.first, touched.allocation.offset + touched.end
        size = min(CHUNK, *(offset & -offset for offset in ends))
        flat = np.arange(*ends, size)
        warps = np.full(flat.shape, self.races.clocks.grid_before, STAMP)
        stamps, shadow = np.full(flat.shape, stamp, STAMP), self.races.array(touched.allocation)
        if not touched.written:
            shadow.read(flat, size, WarpReads(stamps, warps))
            return
        shadow.settle()
        shadow.written = True
        words = shadow.words(flat, size)
        shadow.writes.put(words, words.each(stamps), words.each(warps))

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, Fence) and event.proxy == "grid":
            known = self.races.clocks.blank()
            known.warps[self.races.clocks.grid_before] = self.latest
            self.races.clocks.hear(by.lanes_now.reshape(-1), known, by.alive)
