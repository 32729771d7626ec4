"""Tensor maps that a kernel changes, and the proxy fences after which copies see the change.

A copy reads its tensor map through a proxy of its own. It sees what the generic proxy wrote there after a release by a
thread that knows of the write (`fence.proxy.tensormap::generic.release`, `tensormap.cp_fenceproxy`), and an acquire of
that very map, which knows of the release, by a thread of the block that copies.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ....isa.step import Fence, TensorMapAcquire
from ....isa.tensor_map import MAP_BYTES
from ...memory.access import Access, Event, Observer, Requester
from ...memory.regions import CHUNK
from ...run.residents import WARP
from .clocks import Message
from .detector import Races
from .mailboxes import REACH
from .stamps import SEVERAL, STAMP, TICK
from .telling import Conflict, tell_of_map

_ITEMS = MAP_BYTES // 8  # by which a copy reads its map
_KEPT = 16  # releases of each thread


@dataclass(frozen=True, eq=False, slots=True)
class ProxyFence:
    """A release or an acquire by a thread of a warp of the grid: its time, its knowledge, and its reach."""

    stamp: int
    warp: int
    block: int
    cluster: int
    known: Message
    reach: int

    def known_to(self, message: Message) -> bool:
        """True if a thread with this knowledge knows of the fence."""
        return bool(message.knows(np.array([self.warp], STAMP), np.array([self.stamp], STAMP))[0])


@dataclass(frozen=True, eq=False, slots=True)
class MapWrites:
    """The last writes to the words of a tensor map, (words,): stamps, 0 for none in this launch, and their warps."""

    stamps: np.ndarray
    warps: np.ndarray

    def released(self, fence: ProxyFence) -> np.ndarray:
        """Return which words hold writes that a release covers."""
        return fence.known.knows(self.warps, self.stamps) | (self.stamps == 0)


class MapFences(Observer):
    """Checks copies by tensor maps against writes to these maps; subscribed after `races`, which sees both."""

    def __init__(self, races: Races) -> None:
        self.races = races
        self.newest = 0
        self.releases: dict[int, deque[ProxyFence]] = {}  # by the number of the thread
        self.acquires: dict[tuple[int, int], dict[int, ProxyFence]] = {}  # by block and address, of each thread

    def order(self, event: Event, by: Requester) -> None:
        if not isinstance(event, Fence) or event.proxy != "tensormap":
            return
        self._follow_the_clock()
        lanes, reach = by.lanes_now.reshape(-1).tolist(), REACH[event.scope]
        if isinstance(event, TensorMapAcquire):
            for lane, address in zip(lanes, event.address.reshape(-1).tolist(), strict=True):
                self._acquire(self._fence(lane, reach, by.collective), address)
            return
        for lane, thread in zip(lanes, self.races.clocks.threads(np.array(lanes)), strict=True):
            self.releases.setdefault(thread, deque(maxlen=_KEPT)).append(self._fence(lane, reach, by.collective))

    def _follow_the_clock(self) -> None:
        """Forget everything if the clock was restarted."""
        if self.races.journal.now < self.newest:
            self.releases.clear()
            self.acquires.clear()
        self.newest = self.races.journal.now

    def _fence(self, lane: int, reach: int, collective: bool) -> ProxyFence:
        """Return a fence by a thread, which knows what its warp did if the instruction is a collective."""
        clocks, now = self.races.clocks, self.races.journal.now
        row = lane // WARP
        known = clocks.tell(lane, now | SEVERAL)
        if collective:
            known.warps[clocks.warp[row]] = now | SEVERAL
        where = int(clocks.warp[row]), int(clocks.block[row]), int(clocks.cluster[row])
        return ProxyFence(now + lane % WARP, *where, known, reach)

    def _writes(self, address: int) -> MapWrites | None:
        """Return the writes to a tensor map in global memory, None if there were none."""
        holder = self.races.global_region.table.holder(address, address + MAP_BYTES)
        shadow = self.races.arrays.get(id(holder))
        if holder is None or shadow is None or not shadow.written or address % CHUNK:
            return None
        chunks = np.arange(0, MAP_BYTES, CHUNK) + (address - holder.delta)
        stamps, warps = shadow.writes.take(shadow.words(chunks, CHUNK))
        return MapWrites(stamps.reshape(-1), warps.reshape(-1)) if stamps.any() else None

    def _acquire(self, acquire: ProxyFence, address: int) -> None:
        """Record that a thread acquires a map, if all that was written there was released for it."""
        writes = self._writes(address)
        if writes is not None and self._released(writes, acquire):
            thread = acquire.warp * WARP + acquire.stamp % TICK
            self.acquires.setdefault((acquire.block, address), {})[thread] = acquire

    def _released(self, writes: MapWrites, acquire: ProxyFence | None) -> bool:
        """True if all writes to a map were released, by fences that an acquire knows of."""
        missing = np.ones(len(writes.stamps), bool)
        block = acquire.block if acquire else 0
        # releases of its own block first, which most kernels acquire
        every = (fence for each in self.releases.values() for fence in each)
        for fence in sorted(every, key=lambda fence: (fence.block != block, -fence.stamp)):
            if acquire is None or (_reaches(fence, acquire) and fence.known_to(acquire.known)):
                missing &= ~writes.released(fence)
                if not missing.any():
                    return True
        return False

    def access(self, access: Access) -> None:
        if access.ordering.proxy != "tensormap" or access.region is not self.races.global_region:
            return
        self._follow_the_clock()
        address, lanes = access.address.reshape(_ITEMS, -1), access.lanes.reshape(_ITEMS, -1)
        for lane, first in zip(lanes[0].tolist(), address[0].tolist(), strict=True):
            writes = self._writes(first)
            if writes is not None and not self._acquired(writes, lane, first):
                self._report(access, writes, lane, first)
                return

    def _acquired(self, writes: MapWrites, lane: int, address: int) -> bool:
        """True if a lane knows of an acquire after all writes to a map, its own or that of another thread."""
        clocks = self.races.clocks
        known, latest = clocks.tell(lane, self.races.journal.now | SEVERAL), int(writes.stamps.max())
        acquires = self.acquires.get((int(clocks.block[lane // WARP]), address), {})
        latest_own = acquires.get(clocks.threads(np.array([lane]))[0])
        candidates = acquires.values() if latest_own is None else (latest_own, *acquires.values())
        return any(acquire.stamp > latest and acquire.known_to(known) for acquire in candidates)

    def _report(self, access: Access, writes: MapWrites, lane: int, address: int) -> None:
        word = int(np.argmax(writes.stamps))
        stamp = int(writes.stamps[word])
        earlier = self.races.journal.told[stamp // TICK]
        assert earlier is not None
        which = np.zeros(access.address.shape, bool)
        which.reshape(_ITEMS, -1)[:] = access.address.reshape(_ITEMS, -1)[0] == address
        conflict = Conflict(access, address, lane, earlier, int(writes.warps[word]), stamp % TICK, self.races.residents)
        tell_of_map(conflict, which, self._released(writes, None))


def _reaches(release: ProxyFence, acquire: ProxyFence) -> bool:
    """True if the scopes of two fences include both threads."""
    same = (release.block == acquire.block, release.cluster == acquire.cluster, True)
    return same[min(release.reach, acquire.reach)]
