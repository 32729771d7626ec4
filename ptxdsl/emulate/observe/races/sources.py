"""What asynchronous copies read of global memory: a write of it before the copy has ended races with the copy."""

from __future__ import annotations

import numpy as np

from ...memory.access import BulkLanding, CopyStart, Landing, Requester
from ...memory.regions import Allocation, Region
from ...run.residents import WARP, Residents
from .clocks import Clocks
from .journal import Journal
from .shadow import GlobalShadow
from .stamps import LANE_MASK, SEVERAL, TICK
from .telling import tell_overtaken

_EVERY = 1 << 12  # copies, after which those that have ended are forgotten


def holders(region: Region, flat: np.ndarray) -> list[tuple[Allocation, np.ndarray | slice]]:
    """Return the arrays that hold bytes of global memory, each with the entries in it."""
    allocations = region.table.allocations
    starts = np.array([allocation.offset for allocation in allocations])
    first, last = np.searchsorted(starts, [int(flat.min()), int(flat.max())], "right") - 1
    if first == last:
        return [(allocations[first], slice(None))]
    index = np.searchsorted(starts, flat, "right") - 1
    return [(allocations[n], index == n) for n in np.unique(index)]


class Sources:
    """`issued` has, by the kind and the serial number of copies, when they were issued."""

    def __init__(self, journal: Journal, clocks: Clocks) -> None:
        self.journal, self.clocks = journal, clocks
        self.issued: dict[tuple[bool, int], int] = {}

    def start(self, event: CopyStart) -> None:
        """Copies are issued."""
        self.issued[event.is_bulk, event.serial] = self.journal.now | SEVERAL
        if event.serial % _EVERY == 0:
            self.issued = {
                (is_bulk, serial): now
                for (is_bulk, serial), now in self.issued.items()
                if is_bulk != event.is_bulk or serial >= event.oldest
            }

    def check(
        self, event: Landing | BulkLanding, by: Requester, residents: Residents, shadow: GlobalShadow,
        holder: Allocation, flat: np.ndarray, lanes: np.ndarray,
    ) -> None:  # fmt: skip
        """Copies of lanes from places of an array end; reports writes of it since they were issued."""
        is_bulk = isinstance(event, BulkLanding)
        issued = self.issued.get((is_bulk, event.serial))
        if issued is None or not shadow.written:
            return
        words = shadow.words(flat, event.unit if isinstance(event, BulkLanding) else event.bytes)
        stamps, warps = shadow.writes.take(words)
        late = stamps > issued
        if not late.any():
            return
        entry, part = np.argwhere(late)[0].tolist()
        stamp, warp = int(stamps[entry, part]), int(warps[entry, part])
        earlier, lane = self.journal.told[stamp // TICK], int(words.each(lanes)[entry])
        assert earlier is not None
        same = warp == int(self.clocks.warp[lane // WARP]) and stamp & int(LANE_MASK) == lane % WARP
        where = holder.at(int(words.first[entry] + part) * shadow.grain + shadow.origin + holder.delta)
        which = np.isin(by.lanes_now, words.each(lanes)[late.any(1)])
        if not which.any():
            which[...] = True
        tell_overtaken(by, event.origin, where, earlier, (residents, warp, stamp % TICK), same, which)
