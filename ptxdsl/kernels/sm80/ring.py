"""A ring of stages in shared memory, through which tiles go from cp.async to the tensor cores."""

from __future__ import annotations

from collections.abc import Iterator

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.trace.value import Var


class CpAsyncRing:
    """Stages that are filled in their order, and emptied in the same. A slot is where a stage begins, in bytes.

    All threads fill and all threads read. What a thread copies between two commits is one group of cp.async; a stage is
    there for all threads when each has waited for its own group, and all have met.
    """

    def __init__(self, stages: int, stage_bytes: int) -> None:
        self.stages, self.stage_bytes, self.end = stages, stage_bytes, stages * stage_bytes
        self._read = pd.var(u32)
        self._written = pd.var(u32)

    def fill(self) -> Iterator[int]:
        """The slots that are filled before the first is read: all but one, of a ring that is free."""
        for stage in range(self.stages - 1):
            yield stage * self.stage_bytes
            pd.ptx.cp.async_.commit_group()

    def first(self) -> Var:
        """The first slot of a ring whose filling has begun, when it is there."""
        self._read.set(0)
        self._written.set(self.stage_bytes * (self.stages - 1))
        return self.wait()

    def acquire(self) -> Var:
        """The slot to be filled next: nobody reads it any more."""
        return self._written

    def commit(self) -> None:
        """Ends the filling of that slot, as far as this thread begins it."""
        pd.ptx.cp.async_.commit_group()
        self._advance(self._written)

    def release(self) -> None:
        """This thread has read the slot it waited for: the next `wait` is for the one behind it."""
        self._advance(self._read)

    def wait(self) -> Var:
        """The slot to be read next, when it is there for all threads; all of them have then read the one before."""
        pd.ptx.cp.async_.wait_group(self.stages - 2)
        pd.ptx.bar.sync(0)
        return self._read

    def drain(self) -> None:
        """Until no copy is under way and nobody reads: the memory is free for all threads."""
        pd.ptx.cp.async_.wait_all()
        pd.ptx.bar.sync(0)

    def _advance(self, slot: Var) -> None:
        """To the next stage, from the last to the first."""
        slot += self.stage_bytes
        slot.set(pd.select(slot == self.end, 0, slot))
