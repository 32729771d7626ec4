"""Split-K in a cluster: blocks share the K of an output tile and add up in each other's shared memory.

Each block adds up and stores a share of the tile. It writes the accumulators of every other share straight to the
shared memory of the block that owns it. After a cluster barrier, the parts are added in the order of K, so results are
reproducible. The memory is past the end of the ring; or in the ring, which takes one more barrier and leaves room for
more stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ptxdsl as pd
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.kernels.tiles.one_tile import leave_without, located
from ptxdsl.kernels.tiles.schedule import (
    ExchangeMemory,
    Extents,
    KernelContext,
    Plan,
    ProblemShape,
    StartLoads,
    TileSchedule,
    Walk,
)
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

MOST_BLOCKS = 8  # blocks of a portable cluster


@dataclass(frozen=True)
class ClusterSplitK(TileSchedule):
    """A cluster of `slices` blocks for each tile, in the order of a threadblock swizzle; z of the grid is the slice."""

    order: ThreadblockSwizzle
    slices: int

    @property
    def cluster(self) -> tuple[int, int, int]:
        """The slices of a tile."""
        return 1, 1, self.slices

    def plan(self, problem: ProblemShape, tile: Extents, resident: object) -> Plan:
        return Plan(self.order.grid_shape(self.order.tiled_shape(problem.shape, tile, self.slices)))

    def exchanged(self, layout: AccumulatorLayout) -> int:
        """The bytes of a share of the tile from every block."""
        pieces = self.slices * ceil_div(layout.all_warps * layout.groups, self.slices)
        return pieces * layout.each * layout.lanes * layout.type.bytes

    def walk(self, context: KernelContext) -> Walk:
        return ClusterSplitKWalk(self, context)


class ClusterSplitKWalk(Walk):
    """A slice of the K of a tile, and a share of the tile: each `slices`-th group of a warp's accumulators."""

    def __init__(self, schedule: ClusterSplitK, context: KernelContext) -> None:
        self.order, self.slices, self.context = schedule.order, schedule.slices, context

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        products = self.context.products
        tile, self.slice, slices = located(self.order, products)
        leave_without(products, tile, self.slice, slices)
        work = products.work(tile, k=slice_of_k(self.slice, self.slices, products.product.k, products.extents[2]))
        start(work)
        yield work

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        layout, exchange = accumulators.layout, self.context.exchange
        assert exchange is not None
        _await_room(exchange)
        for group, registers in enumerate(accumulators.groups):
            piece = group * layout.all_warps + pd.warpid
            share = ClusterShare(layout, exchange.memory, self.slices).of_block(piece % self.slices)
            share.store(registers, piece // self.slices, self.slice)
        pd.ptx.barrier.cluster.arrive.release.aligned()
        pd.ptx.barrier.cluster.wait.acquire.aligned()
        share, pieces = ClusterShare(layout, exchange.memory, self.slices), layout.all_warps * layout.groups
        for piece in pd.range(self.slice + self.slices * pd.warpid, pieces, self.slices * layout.all_warps):
            rows = TileAccumulators(layout, groups=1)
            for rank in range(self.slices):
                share.add(rows, piece // self.slices, rank)
            yield OutputTile(work, rows, piece // layout.all_warps, piece % layout.all_warps)


def _await_room(exchange: ExchangeMemory) -> None:
    """Wait until the other blocks of the cluster can be written to: they have started, or have read their rings to the
    end."""
    if exchange.is_in_ring:
        pd.ptx.barrier.cluster.arrive.release.aligned()
        pd.ptx.barrier.cluster.wait.acquire.aligned()
    else:
        pd.ptx.barrier.cluster.wait.aligned()


class ClusterShare:
    """The partial accumulators of one block's share of a tile: for each group those of all blocks, in the order of
    K."""

    def __init__(self, layout: AccumulatorLayout, memory: PointerValue, slices: int) -> None:
        self.layout, self.slices = layout, slices
        self.memory = memory.bitcast(layout.type)

    def of_block(self, rank: Scalar) -> ClusterShare:
        """Return the share of another block, for writing."""
        address = pd.ptx.mapa.shared__cluster.u32(self.memory, rank)
        memory = pd.pointer(address, self.memory.element, "shared::cluster")
        return ClusterShare(self.layout, memory, self.slices)

    def store(self, registers: list[Var], number: Scalar, rank: Scalar) -> None:
        """Write a group, the `number`-th of the share."""
        address = self._address(number, rank)
        for first in range(0, len(registers), self.layout.word):
            write_words(address + first * self.layout.lanes, registers[first : first + self.layout.word])

    def add(self, rows: TileAccumulators, number: Scalar, rank: int) -> None:
        """Add a group that a block has written."""
        address = self._address(number, rank)
        for first, word in rows.words():
            others = read_words(address + first * self.layout.lanes, self.layout.word, self.layout.type)
            for register, other in zip(word, others, strict=True):
                register += other

    def _address(self, number: Scalar, rank: Index) -> PointerValue:
        """Return the address of this lane's first word."""
        piece = self.layout.each * self.layout.lanes
        return self.memory + (number * self.slices + rank) * piece + pd.laneid * self.layout.word
