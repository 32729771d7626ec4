"""The shared memory of a block on sm_80, and the ring of stages in it, filled by cp.async and read by tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Products
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.tiles.schedule import KernelContext
from ptxdsl.trace.value import Var


class SharedMemory:
    """`a` and `b` point at the tiles of A and B in the first stage of the ring, next to each other. `staging` is free
    once the accumulators of a tile are complete: past the end of the ring if loads run ahead, else in it."""

    def __init__(self, traits: WarpTraits) -> None:
        self.traits, inputs = traits, traits.operands.inputs
        self.a = pd.dynamic_shared(inputs, traits.shared_bytes // inputs.bytes, align=1024).address()
        self.staging = self.a + traits.staged_at // inputs.bytes
        self.b = self.a + traits.a.bytes // inputs.bytes

    def context(self, products: Products, fields: Any, ahead: bool | None = None) -> KernelContext:
        """Return the context of the walk over the tiles of `products`; `fields` are those of the schedule."""
        ahead = self.traits.is_ahead if ahead is None else ahead
        return KernelContext(products, fields, self.traits.accumulators, self.staging, ahead)


class CpAsyncRing:
    """Stages that are filled and read in order. A slot is the offset of a stage, in bytes.

    All threads fill and all threads read. The loads of a thread between two commits are one group of cp.async. A stage
    is complete when each thread has waited for its own group, and all have synchronised.
    """

    def __init__(self, stages: int, stage_bytes: int) -> None:
        self.stages, self.stage_bytes, self.end = stages, stage_bytes, stages * stage_bytes
        self._read = pd.var(u32)
        self._written = pd.var(u32)

    def fill(self) -> Iterator[int]:
        """Yield the slots of a free ring that are filled before the first is read: all but one."""
        for stage in range(self.stages - 1):
            yield stage * self.stage_bytes
            pd.ptx.cp.async_.commit_group()

    def first(self) -> Var:
        """Return the first slot of a ring whose filling has started, when it is complete."""
        self._read.set(0)
        self._written.set(self.stage_bytes * (self.stages - 1))
        return self.wait()

    def acquire(self) -> Var:
        """Return the slot to be filled next, which no thread reads any more."""
        return self._written

    def commit(self) -> None:
        """End the loads of this thread to that slot."""
        pd.ptx.cp.async_.commit_group()
        self._advance(self._written)

    def release(self) -> None:
        """Advance past the slot that this thread has read."""
        self._advance(self._read)

    def wait(self) -> Var:
        """Return the slot to be read next, when it is complete; all threads have read the one before then."""
        pd.ptx.cp.async_.wait_group(self.stages - 2)
        pd.ptx.bar.sync(0)
        return self._read

    def drain(self) -> None:
        """Wait until no load is in flight and no thread reads: the memory is free for all threads."""
        pd.ptx.cp.async_.wait_all()
        pd.ptx.bar.sync(0)

    def _advance(self, slot: Var) -> None:
        """Advance to the next stage, from the last to the first."""
        slot += self.stage_bytes
        slot.set(pd.select(slot == self.end, 0, slot))
