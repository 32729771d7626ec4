"""Initialised mbarriers, and the fences after which the async proxy sees them.

An mbarrier is initialised through the generic proxy. A bulk copy that completes bytes there does so through the async
proxy: the initialisation must be fenced by the thread that made it (`fence.mbarrier_init`), or by one that knows of it
(`fence.proxy.async`), on the way to the thread that issues the copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...run.residents import WARP
from .clocks import Clocks
from .proxies import Proxies
from .stamps import STAMP, TICK

_WORD = 8  # bytes of an mbarrier


@dataclass(eq=False, slots=True)
class Initialisation:
    """The warp of the grid and the stamp of an initialisation, and the stamp of its fence by that lane, 0 for none.

    `seen_by` are the threads of the grid that are known to follow a fence after it.
    """

    warp: int
    stamp: int
    fenced: int = 0
    seen_by: set[int] = field(default_factory=set)


class Initialised:
    """The latest initialisation of each mbarrier, by its place in shared memory of `bytes` bytes.

    `stamps` and `warps` have the same by words of 8 bytes, 0 where there is none.
    """

    def __init__(self, clocks: Clocks, proxies: Proxies, bytes: int) -> None:
        self.clocks, self.proxies = clocks, proxies
        self.at: dict[int, Initialisation] = {}
        self.stamps, self.warps = np.zeros((2, bytes // _WORD + 1), STAMP)

    def change(self, flat: np.ndarray, lanes: np.ndarray, now: int | None) -> None:
        """Record that lanes initialise mbarriers or, without `now`, invalidate or overwrite them."""
        if now is None:
            self.stamps[flat // _WORD] = 0
            return
        warps = self.clocks.warp[lanes // WARP].tolist()
        for address, warp, lane in zip(flat.tolist(), warps, (lanes % WARP).tolist(), strict=True):
            self._put(address, Initialisation(warp, now + lane))

    def _put(self, address: int, known: Initialisation) -> None:
        self.at[address] = known
        self.stamps[address // _WORD], self.warps[address // _WORD] = known.stamp, known.warp

    def are_known(self, flat: np.ndarray, lanes: np.ndarray) -> bool:
        """Return True if all lanes know of the initialisation of the mbarriers at these places.

        Then operations on them race with nothing: between initialisation and invalidation there are no other accesses.
        """
        words = flat // _WORD
        stamps, rows = self.stamps[words], lanes // WARP
        return bool(stamps.all()) and bool((self.clocks.limits(rows, self.warps[words]) >= stamps).all())

    def fence(self, lanes: np.ndarray, now: int) -> None:
        """Record that lanes fence what they initialised."""
        threads = set(self.clocks.threads(lanes))
        for known in self.at.values():
            if not known.fenced and known.warp * WARP + known.stamp % TICK in threads:
                known.fenced = now + known.stamp % TICK

    def unfenced(self, flat: np.ndarray, lanes: np.ndarray) -> list[tuple[int, Initialisation]]:
        """Return the copies, by number, that may complete at mbarriers before the async proxy sees them initialised."""
        unfenced = []
        for n, (address, thread) in enumerate(zip(flat.tolist(), self.clocks.threads(lanes), strict=True)):
            known = self.at.get(address)
            if known is None or thread in known.seen_by:
                continue
            if self._seen(known, int(lanes[n])):
                known.seen_by.add(thread)
            else:
                unfenced.append((n, known))
        return unfenced

    def _seen(self, known: Initialisation, lane: int) -> bool:
        """Return True if a lane knows of a fence after an initialisation."""
        if known.fenced and self._knows(lane, known.warp, known.fenced):
            return True
        stamp, warp = np.array([[known.stamp]], STAMP), np.array([[known.warp]], STAMP)
        return not self.proxies.unfenced(np.array([lane]), stamp, warp, "shared").any()

    def _knows(self, lane: int, warp: int, stamp: int) -> bool:
        """True if a lane knows of an access or a fence of a thread."""
        row, warps, stamps = np.array([lane // WARP]), np.array([warp], STAMP), np.array([stamp], STAMP)
        if self.clocks.warp[row] == warps and lane % WARP == stamp % TICK:
            return True
        known = self.clocks.limits(row, warps) >= stamps
        return bool(known.any()) or not self.clocks.unordered(np.array([lane]), warps, stamps, False).any()

    def move(self, slots: np.ndarray, stride: int, bytes: int) -> None:
        """Renumber slots of shared memory; -1 stands for slots that are gone."""
        old, live = self.at, self.stamps
        self.at, (self.stamps, self.warps) = {}, np.zeros((2, bytes // _WORD + 1), STAMP)
        for address, known in old.items():
            if (slot := int(slots[address // stride])) >= 0:
                moved = slot * stride + address % stride
                self._put(moved, known)
                self.stamps[moved // _WORD] = live[address // _WORD]
