"""Reduce-scatter for split-K: each of the blocks that share the K of an output tile adds up a share of the tile.

A block stores its accumulators to global memory, waits until all blocks of the tile have done so, adds up the groups of
its share and stores them. It waits only for blocks that are running, so that they need not all be resident: if one
starts after another has stored its accumulators, the last block adds up everything. Parts are always added in the order
of K, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ptxdsl as pd
from ptxdsl import u32, u64
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.tiles.one_tile import leave_without, located
from ptxdsl.kernels.tiles.partial_sums import PartialSums, SumSlots
from ptxdsl.kernels.tiles.schedule import KernelContext, StartLoads, Walk
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

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

    def __init__(self, order: ThreadblockSwizzle, context: KernelContext) -> None:
        self.order, self.context, self.products = order, context, context.products

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
