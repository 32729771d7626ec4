"""Initialised mbarriers, and the fences after which the async proxy sees them.

An mbarrier is initialised through the generic proxy. A bulk copy that completes bytes there does so through the async
proxy: the initialisation must be fenced by the thread that made it (`fence.mbarrier_init`), or by one that knows of it
(`fence.proxy.async`), on the way to the thread that issues the copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...run.residents import WARP
from .clocks import Clocks
from .proxies import Proxies
from .stamps import STAMP, TICK


@dataclass(eq=False, slots=True)
class Initialisation:
    """The warp of the grid and the stamp of an initialisation, and the stamp of its fence by that lane, 0 for none."""

    warp: int
    stamp: int
    fenced: int = 0


class Initialised:
    """The latest initialisation of each mbarrier, by its place in shared memory."""

    def __init__(self, clocks: Clocks, proxies: Proxies) -> None:
        self.clocks, self.proxies = clocks, proxies
        self.at: dict[int, Initialisation] = {}

    def begin(self, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """Record that lanes initialise mbarriers."""
        warps = self.clocks.warp[lanes // WARP].tolist()
        for address, warp, lane in zip(flat.tolist(), warps, (lanes % WARP).tolist(), strict=True):
            self.at[address] = Initialisation(warp, now + lane)

    def fence(self, lanes: np.ndarray, now: int) -> None:
        """Record that lanes fence what they initialised."""
        threads = set(self.clocks.threads(lanes))
        for known in self.at.values():
            if not known.fenced and known.warp * WARP + known.stamp % TICK in threads:
                known.fenced = now + known.stamp % TICK

    def unfenced(self, flat: np.ndarray, lanes: np.ndarray) -> list[tuple[int, Initialisation]]:
        """Return the copies, by number, that may complete at mbarriers before the async proxy sees them initialised."""
        entries = ((n, self.at.get(address)) for n, address in enumerate(flat.tolist()))
        return [(n, known) for n, known in entries if known is not None and not self._seen(known, int(lanes[n]))]

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

    def move(self, slots: np.ndarray, stride: int) -> None:
        """Renumber slots of shared memory; -1 stands for slots that are gone."""
        self.at = {
            int(slots[address // stride]) * stride + address % stride: known
            for address, known in self.at.items()
            if slots[address // stride] >= 0
        }
