"""Partial accumulators that blocks exchange through global memory, and the semaphores that guard them."""

from __future__ import annotations

from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, TileAccumulators
from ptxdsl.kernels.product.product import Index
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

IN_FLIGHT = 64  # accumulators that a thread reads before it adds the first


class SumSlots(NamedTuple):
    """`size` slots, `apart` from each other."""

    first: Scalar
    size: Index
    apart: Index


class PartialSums:
    """Slots in memory for the accumulators of a tile, interleaved by 16 bytes of each thread."""

    def __init__(self, layout: AccumulatorLayout, memory: PointerValue, thread: Scalar | None = None) -> None:
        """`thread` owns the accumulators; this thread by default."""
        self.layout = layout
        self.memory = memory + (pd.tid.x if thread is None else thread) * layout.word

    def _address(self, slot: Index, accumulators: TileAccumulators, group: Index) -> PointerValue:
        """Return the address of the first word of a `group`. Shared memory has one slot, 0."""
        tile_m, tile_n = self.layout.tile
        distance = group * (len(accumulators.registers) * self.layout.holders)
        if isinstance(slot, int):
            return self.memory + distance
        return self.memory + slot.to(pd.u64) * (tile_m * tile_n) + distance

    def store(self, accumulators: TileAccumulators, slot: Index) -> None:
        with self.layout.holding():
            address = self._address(slot, accumulators, 0)
            for number, word in accumulators.words():
                write_words(address + number * self.layout.holders, word)

    def add(self, accumulators: TileAccumulators, slot: Index, group: Index = 0) -> None:
        """Add a slot to accumulators, which are a `group` of the tile."""
        with self.layout.holding():
            address = self._address(slot, accumulators, group)
            for number, word in accumulators.words():
                others = read_words(address + number * self.layout.holders, self.layout.word, self.layout.type)
                for register, other in zip(word, others, strict=True):
                    register += other

    def add_all(self, accumulators: TileAccumulators, slots: SumSlots, group: Index = 0) -> None:
        """Add all slots in order; several are read before the first is added."""
        end = slots.first + slots.size * slots.apart
        for slot in pd.range(slots.first, end, slots.apart, unroll=max(1, IN_FLIGHT // len(accumulators.registers))):
            self.add(accumulators, slot, group)


def wait_for(layout: AccumulatorLayout, semaphore: PointerValue, value: Index) -> None:
    """Wait until a semaphore has a value, and make the writes before it visible to all threads with accumulators."""
    with pd.if_(pd.tid.x == 0):
        seen = pd.var(u32, pd.ptx.ld.acquire.gpu.global_.u32(semaphore))
        with pd.while_(lambda: seen != value):
            pd.ptx.ld.acquire.gpu.global_.u32(semaphore, out=seen)
    layout.meet()


def announce(layout: AccumulatorLayout, semaphore: PointerValue, value: Index) -> None:
    """Set a semaphore after all writes of the threads with accumulators."""
    layout.meet()
    with pd.if_(pd.tid.x == 0):
        pd.ptx.st.release.gpu.global_.u32(semaphore, value)
