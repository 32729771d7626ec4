"""Split-K: blocks share the K of an output tile, leave partial accumulators in global memory, and add them up in the
order of K, so that results are reproducible.

Serial: a block adds its accumulators to those of all before it. Parallel: the block that comes last adds up all.
Scatter: each block adds up a share of the tile. It stores its accumulators, waits until all blocks of the tile have
done so, adds up the groups of its share and stores them. It waits only for blocks that are running, so that they need
not all be resident: if one starts after another has stored its accumulators, the last block adds up everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import u32, u64
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.kernels.tiles.one_tile import leave_without, located
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, StartLoads, TileSchedule, Walk
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k
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


ANY = 2  # slices: a kernel serves any number


@dataclass(frozen=True)
class SplitK(TileSchedule):
    """`slices` blocks for each tile, in the order of a threadblock swizzle; z of the grid is the slice of K.

    They add up one after another ("serial"), all in the last one ("parallel"), or a share of the tile each ("scatter").
    """

    order: ThreadblockSwizzle
    slices: int
    reduction: str
    shares = True

    def general(self) -> SplitK:
        return replace(self, slices=ANY)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        tiled = self.order.tiled_shape(problem.shape, tile, self.slices)
        tiles = tiled.m * tiled.n
        slots = tiles if self.reduction == "serial" else tiles * self.slices
        return Plan(self.order.grid_shape(tiled), sums=slots * tile[0] * tile[1], semaphores=2 * tiles)

    def walk(self, context: KernelContext) -> Walk:
        return (ScatterWalk if self.reduction == "scatter" else SplitKWalk)(self, context)


class SplitKWalk(Walk):
    """A slice of the K of a tile. The last block of a tile has the complete accumulators, and stores it."""

    def __init__(self, schedule: SplitK, context: KernelContext) -> None:
        self.order, self.context, self.is_serial = schedule.order, context, schedule.reduction == "serial"

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        products = self.context.products
        tile, self.slice, self.slices = located(self.order, products)
        leave_without(products, tile, self.slice, self.slices)
        k = slice_of_k(self.slice, self.slices, products.product.k, products.extents[2])
        work = products.work(tile, k=k)
        start(work)
        yield work

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        products, fields = self.context.products, self.context.fields
        number, tiles = products.number(work.tile), products.tiles[0] * products.tiles[1]
        semaphore, partial = fields.semaphores + number, PartialSums(accumulators.layout, fields.sums)
        if self.is_serial:
            is_last = self._added_in_turn(accumulators, partial, semaphore, number)
        else:
            slots = SumSlots(number, self.slices, tiles)
            is_last = sums_in_last(accumulators, partial, semaphore, self.context.scratch, self.slice, slots)
        with pd.if_(is_last):
            yield OutputTile(work, accumulators)

    def _added_in_turn(
        self, accumulators: TileAccumulators, partial: PartialSums, semaphore: PointerValue, number: Scalar
    ) -> Scalar:
        """Wait for the block before this one, and add its accumulators. Return whether this block is the last."""
        wait_for(accumulators.layout, semaphore, self.slice)
        with pd.if_(self.slice > 0):
            partial.add(accumulators, number)
        is_last = self.slice == self.slices - 1
        with pd.if_(~is_last):
            partial.store(accumulators, number)
        announce(accumulators.layout, semaphore, pd.select(is_last, 0, self.slice + 1))
        return is_last


def sums_in_last(
    accumulators: TileAccumulators,
    partial: PartialSums,
    semaphore: PointerValue,
    scratch: PointerValue,
    number: Scalar,
    slots: SumSlots,
) -> Scalar:
    """Store the accumulators of each block in the slot of its number, and add up all in the block that comes last, the
    first slot first. Return whether this block is the last.

    The semaphore is 0 before and after. `scratch` is free for all threads: an array of its own would misalign the ring.
    """
    order = scratch.bitcast(u32)
    partial.store(accumulators, number * slots.apart + slots.first)
    accumulators.layout.meet()
    with pd.if_(pd.tid.x == 0):
        arrived = pd.ptx.atom.acq_rel.gpu.global_.add.u32(semaphore, 1)
        order.store(arrived)
        with pd.if_(arrived == slots.size - 1):
            semaphore.store(0)
    accumulators.layout.meet()
    is_last = order.load() == slots.size - 1
    accumulators.layout.meet()
    with pd.if_(is_last):
        accumulators.clear()
        partial.add_all(accumulators, slots)
    return is_last


# The semaphore of a tile has four counters of 16 bits: blocks that are done with it, that have stored their partial
# accumulators, that have started, and that started after another block had stored its own
DONE, LEFT, BEGUN, LATE = 1, 1 << 16, 1 << 32, 1 << 48
COUNT = 0xFFFF  # the bits of one of them
# Shares of a tile: all of its groups, or none. Any other number n stands for every n-th group
EVERYTHING, NOTHING = 1, 0


class TileSemaphore:
    """The 64-bit semaphore of the `blocks` of one tile, 0 before and after; one thread of each block counts, and all
    threads `meet`."""

    def __init__(self, semaphore: PointerValue, blocks: Scalar, meet: Callable[[], None]) -> None:
        self.semaphore, self.blocks, self.meet = semaphore, blocks, meet
        self.is_counter = pd.tid.x == 0
        self.seen = pd.var(u64, 0)  # the last value that the counting thread has read

    def begin(self) -> None:
        """Announce that this block has started, so that others may wait for it."""
        with pd.if_(self.is_counter):
            self._count(BEGUN)
            with pd.if_(left(self.seen) > 0):
                self._count(LATE)

    def _count(self, event: int, order: str = "relaxed") -> None:
        """Count this block; `seen` is the count before."""
        pd.ptx(f"atom.{order}.gpu.global.add.u64", self.semaphore, event, out=self.seen)

    def share(self, scratch: PointerValue) -> Scalar:
        """Return the share of this block to all its threads, when all blocks have stored their accumulators: each
        `blocks`-th group if all blocks are running, else EVERYTHING for the last one and NOTHING for the others.
        `scratch` is free shared memory."""
        self.meet()
        with pd.if_(self.is_counter):
            self._count(LEFT, "acq_rel")
            self.seen += LEFT
            alone = pd.select(left(self.seen) == self.blocks, EVERYTHING, pd.cast(NOTHING, u32))
            with (
                pd.if_(begun(self.seen) == self.blocks),
                pd.while_(lambda: left(self.seen) != self.blocks),
            ):
                pd.ptx.ld.acquire.gpu.global_.u64(self.semaphore, out=self.seen)
            scratch.store(pd.select(begun(self.seen) == self.blocks, self.blocks, alone))
        self.meet()
        share = scratch.load()
        with pd.if_(self.is_counter):
            self._count(DONE)
        self.meet()
        return share

    def end(self) -> None:
        """Reset the semaphore, in the last block."""
        with pd.if_(self.is_counter & (self.seen.to(u32) & COUNT == self.blocks - 1)):
            pd.ptx.st.relaxed.gpu.global_.u64(self.semaphore, 0)  # all accesses of other blocks have ended


def left(seen: Scalar) -> Scalar:
    """Return how many blocks have stored their accumulators."""
    return (seen >> 16).to(u32) & COUNT


def begun(seen: Scalar) -> Scalar:
    """Return how many blocks have started, if none was late; else, with the late ones in the upper bits, more than
    there are."""
    return (seen >> 32).to(u32)


class ScatterWalk(Walk):
    """A slice of the K of a tile, and a share of the tile. The tile is located again after the mainloop, so that its
    coordinates need no registers in it."""

    def __init__(self, schedule: SplitK, context: KernelContext) -> None:
        self.order, self.context, self.products = schedule.order, context, context.products

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        tile, slice, slices = located(self.order, self.products)
        leave_without(self.products, tile, slice, slices)
        work, slice, slices = self._work()
        start(work)
        self._meeting(work, slices).begin()
        yield work

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        work, slice, slices = self._work()
        number, tiles = self.products.number(work.tile), self.products.tiles[0] * self.products.tiles[1]
        PartialSums(accumulators.layout, self.context.fields.sums).store(accumulators, slice * tiles + number)
        meeting = self._meeting(work, slices)
        share = meeting.share(self.context.scratch.bitcast(u32))
        slots = SumSlots(number, slices, tiles)
        yield from self._pieces(work, accumulators, slots, pd.select(share == EVERYTHING, 0, slice), share)
        meeting.end()

    def _work(self) -> tuple[WorkTile, Scalar, Scalar]:
        tile, slice, slices = located(self.order, self.products)
        k = slice_of_k(slice, slices, self.products.product.k, self.products.extents[2])
        return self.products.work(tile, k=k), slice, slices

    def _meeting(self, work: WorkTile, slices: Scalar) -> TileSemaphore:
        semaphores = self.context.fields.semaphores.bitcast(u64)
        return TileSemaphore(semaphores + self.products.number(work.tile), slices, self.context.layout.meet)

    def _pieces(
        self, work: WorkTile, accumulators: TileAccumulators, slots: SumSlots, first: Index, step: Scalar
    ) -> Iterator[OutputTile]:
        """Yield each `step`-th group from the `first` on, none if `step` is 0. Any warp can add up any group."""
        layout = accumulators.layout
        warps = layout.warps[0] * layout.warps[1]
        with layout.holding(), pd.if_(step > 0):
            for piece in pd.range(first + step * pd.warpid, warps * layout.groups, step * warps):
                group, warp = piece // warps, piece % warps
                rows = TileAccumulators(layout, groups=1)
                partial = PartialSums(layout, self.context.fields.sums, warp * layout.lanes + pd.laneid)
                partial.add_all(rows, slots, group)
                yield OutputTile(work, rows, group, warp)
