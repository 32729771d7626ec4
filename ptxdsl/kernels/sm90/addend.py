"""C on its way to where a warpgroup stages its output: the boxes that are stored next come there first."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import b64, u32
from ptxdsl.trace.memory import PointerValue


class BoxMbarriers:
    """An mbarrier for each warpgroup that stores. They are made before the ring, after which all threads have met."""

    def __init__(self, warpgroups: int) -> None:
        self.mbarriers = pd.shared(b64, warpgroups, name="addends")
        with pd.if_(pd.tid.x == 0):
            for number in range(warpgroups):
                pd.ptx.mbarrier.init.shared__cta.b64(self.mbarriers.address(number), 1)


class Addend:
    """The boxes of C that one thread of a warpgroup, which `leads`, asks for, and for which all of it waits."""

    def __init__(self, mbarriers: BoxMbarriers, warpgroup: Any, leads: Any) -> None:
        self.mbarrier, self.leads = mbarriers.mbarriers.address(warpgroup), leads
        self.parity = pd.var(u32, 0)

    def fetch(self, map: Any, boxes: list[tuple[PointerValue, tuple[Any, ...]]]) -> None:
        """Begins to copy boxes to their places, when what was stored from there has been read."""
        with pd.if_(self.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
            expected = len(boxes) * map.bytes
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(self.mbarrier, expected, out="_")
            for address, at in boxes:
                map.load(address, at, self.mbarrier)

    def wait(self) -> None:
        """Until they are there."""
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(self.mbarrier, self.parity)):
            pass
        self.parity.set(self.parity ^ 1)
