"""Split-K: blocks share the K of an output tile and add up in global memory, in a fixed order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.tiles.one_tile import leave_without, located
from ptxdsl.kernels.tiles.partial_sums import PartialSums, SumSlots, announce, wait_for
from ptxdsl.kernels.tiles.scatter import ScatterWalk
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, StartLoads, TileSchedule, Walk
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

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
        return WALKS[self.reduction](self.order, context)


class SplitKWalk(Walk):
    """A slice of the K of a tile. The last block of a tile has the complete accumulators, and stores it."""

    def __init__(self, order: ThreadblockSwizzle, context: KernelContext) -> None:
        self.order, self.context = order, context

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
        with pd.if_(self._meet(accumulators, partial, semaphore, number, tiles)):
            yield OutputTile(work, accumulators)

    @abstractmethod
    def _meet(
        self,
        accumulators: TileAccumulators,
        partial: PartialSums,
        semaphore: PointerValue,
        number: Scalar,
        tiles: Index,
    ) -> Scalar:
        """Return whether this block is the last of its tile, whose accumulators are then complete."""


class ParallelWalk(SplitKWalk):
    def _meet(
        self,
        accumulators: TileAccumulators,
        partial: PartialSums,
        semaphore: PointerValue,
        number: Scalar,
        tiles: Index,
    ) -> Scalar:
        slots = SumSlots(number, self.slices, tiles)
        return sums_in_last(accumulators, partial, semaphore, self.context.scratch, self.slice, slots)


class SerialWalk(SplitKWalk):
    """Each block waits for the one before it, and adds its accumulators to those of all before."""

    def _meet(
        self,
        accumulators: TileAccumulators,
        partial: PartialSums,
        semaphore: PointerValue,
        number: Scalar,
        tiles: Index,
    ) -> Scalar:
        wait_for(accumulators.layout, semaphore, self.slice)
        with pd.if_(self.slice > 0):
            partial.add(accumulators, number)
        is_last = self.slice == self.slices - 1
        with pd.if_(~is_last):
            partial.store(accumulators, number)
        announce(accumulators.layout, semaphore, pd.select(is_last, 0, self.slice + 1))
        return is_last


WALKS: dict[str, Callable[[ThreadblockSwizzle, KernelContext], Walk]] = {
    "parallel": ParallelWalk,
    "serial": SerialWalk,
    "scatter": ScatterWalk,
}


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
