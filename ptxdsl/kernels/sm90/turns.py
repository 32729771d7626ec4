"""Tiles dealt while a kernel runs: whichever block is free takes the next one, by a counter in global memory."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

COUNTERS = 2  # tiles that were taken behind the first of each block, and blocks that take no more
HELD = 4  # numbers on their way from who copies to who multiplies
EVERY_LANE = 0xFFFFFFFF


class TileTurns:
    """The numbers of a block's tiles, in the order in which it takes them; its first is its own number.

    The copying warp takes them: `take` and `tell` in one of its lanes, then `taken` in all. The warps that multiply
    have `heard` of them. `counters` are COUNTERS u32, 0 before a launch and after it.
    """

    def __init__(self, counters: PointerValue, holders: int) -> None:
        self.counters = counters
        self.ring = pd.Ring(HELD, producers=1, consumers=holders, each="warp")
        self.numbers = pd.shared(u32, HELD, name="turns")
        self.number: Var = pd.var(u32, 0)

    def take(self) -> Scalar:
        """The number of the next tile: the answer is on its way while copies begin."""
        taken: Scalar = pd.ptx.atom.relaxed.gpu.global_.add.u32(self.counters, 1)
        return taken

    def tell(self, taken: Scalar) -> None:
        """Passes it on to the warps that multiply."""
        self.number.set(taken + pd.nctaid.x)
        self.numbers[self.ring.acquire().index] = self.number
        self.ring.commit()

    def taken(self) -> Scalar:
        """The number that one lane has told, in all lanes of its warp."""
        number: Scalar = pd.ptx.redux.sync.max.u32(self.number, EVERY_LANE)  # the others have 0
        return number

    def heard(self) -> Scalar:
        """The number of the next tile, for a warp that multiplies."""
        number: Scalar = self.numbers[self.ring.wait().index]
        self.ring.release()
        return number

    def close(self) -> None:
        """By the lane that took them, when there are no more: the last block leaves the counters as they were."""
        self.ring.drain()
        ended = pd.ptx.atom.acq_rel.gpu.global_.add.u32(self.counters + 1, 1)
        with pd.if_(ended == pd.nctaid.x - 1):
            self.counters[0] = 0
            self.counters[1] = 0
