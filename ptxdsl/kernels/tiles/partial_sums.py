"""Sums that blocks leave for each other in global memory, and semaphores that say when."""

from __future__ import annotations

from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Index
from ptxdsl.kernels.product.sums import Sums, SumsLayout
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

IN_FLIGHT = 64  # sums that a thread reads before it adds the first


class SumSlots(NamedTuple):
    """`size` slots, `apart` from each other."""

    first: Scalar
    size: Index
    apart: Index


class PartialSums:
    """Slots in memory, each with room for the sums of a tile: 16 bytes of each thread side by side."""

    def __init__(self, layout: SumsLayout, memory: PointerValue, thread: Scalar | None = None) -> None:
        """`thread` is the one whose sums are meant, if not this one's."""
        self.layout = layout
        self.memory = memory + (pd.tid.x if thread is None else thread) * layout.word

    def _address(self, slot: Index, sums: Sums, group: Index) -> PointerValue:
        """Of the first word; `sums` are the `group`-th of as many. In shared memory 0 is the only slot."""
        tile_m, tile_n = self.layout.tile
        distance = group * (len(sums.registers) * self.layout.holders)
        if isinstance(slot, int):
            return self.memory + distance
        return self.memory + slot.to(pd.u64) * (tile_m * tile_n) + distance

    def store(self, sums: Sums, slot: Index) -> None:
        with self.layout.holding():
            address = self._address(slot, sums, 0)
            for number, word in sums.words():
                write_words(address + number * self.layout.holders, word)

    def add(self, sums: Sums, slot: Index, group: Index = 0) -> None:
        """Adds the sums of a slot to these, which are the `group`-th of as many."""
        with self.layout.holding():
            address = self._address(slot, sums, group)
            for number, word in sums.words():
                others = read_words(address + number * self.layout.holders, self.layout.word, self.layout.type)
                for register, other in zip(word, others, strict=True):
                    register += other

    def add_all(self, sums: Sums, slots: SumSlots, group: Index = 0) -> None:
        """Adds those of all slots in their order; several are read before the first is added."""
        end = slots.first + slots.size * slots.apart
        for slot in pd.range(slots.first, end, slots.apart, unroll=max(1, IN_FLIGHT // len(sums.registers))):
            self.add(sums, slot, group)


def wait_for(layout: SumsLayout, semaphore: PointerValue, value: Index) -> None:
    """Until a semaphore has this value; all threads of a layout then see what was written before it got that."""
    with pd.if_(pd.tid.x == 0):
        seen = pd.var(u32, pd.ptx.ld.acquire.gpu.global_.u32(semaphore))
        with pd.while_(lambda: seen != value):
            pd.ptx.ld.acquire.gpu.global_.u32(semaphore, out=seen)
    layout.meet()


def announce(layout: SumsLayout, semaphore: PointerValue, value: Index) -> None:
    """Sets a semaphore, behind all that the threads of a layout have written."""
    layout.meet()
    with pd.if_(pd.tid.x == 0):
        pd.ptx.st.release.gpu.global_.u32(semaphore, value)
