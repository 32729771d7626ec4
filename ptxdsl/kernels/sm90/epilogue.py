"""The epilogue of a consumer warpgroup on sm_90a: accumulator fragment → boxes in shared memory → writer.

    acc = alpha·acc (+ beta·C) (+ operands of rows and columns) → function → stmatrix → TMA store

Boxes have up to 64 rows of up to 128 bytes. One thread issues their TMA stores, and the warpgroup goes on to the next
tile. `fragments` says where a thread's accumulators belong, `staging` where boxes are in shared memory and how C is
loaded to them, `writers` how boxes are written. `broadcast` reads row and column operands. Outputs that TMA cannot
write, whose rows do not begin at multiples of 16 bytes, are left to the WarpEpilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.product.product import OutputTile, WorkTile
from ptxdsl.kernels.product.words import pack, widened
from ptxdsl.kernels.sm90.broadcast import BroadcastOperands
from ptxdsl.kernels.sm90.fragments import STEP, Boxes, RowFragment, fragment_of
from ptxdsl.kernels.sm90.maps import ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.staging import InRing, RingStaging, SourceBoxes, StagedBox, Staging
from ptxdsl.kernels.sm90.tiling import MATRIX
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.sm90.writers import GroupWriter, ScatterWriter, Writer
from ptxdsl.kernels.store.epilogue import Epilogue, WarpEpilogue
from ptxdsl.kernels.store.traced import traced
from ptxdsl.trace.instruction import Scalar


class TmaEpilogue(Epilogue):
    """The epilogue of a warpgroup whose output is staged in boxes.

    A box that is staged again must have been read by TMA: the thread that stored it waits, and then the warpgroup. What
    is staged next is computed meanwhile. `prefetches` says that C is loaded during the mainloop; kernels of groups
    load it when they store, since a warpgroup may have no rows in a tile."""

    def __init__(
        self,
        traits: WarpgroupTraits,
        memory: SharedTiles,
        consumer: pd.warpgroup,
        writer: Callable[[WarpgroupTraits, Staging, RowFragment], Writer] = Writer,
        prefetches: bool = True,
    ) -> None:
        self.traits, self.type, self.prefetches = traits, traits.operands.output, prefetches
        self.staging = staging = Staging(traits, memory, consumer)
        self.source = SourceBoxes(memory.source.address(consumer.index), staging) if memory.source is not None else None
        self.fragment = fragment_of(traits, staging)
        self.broadcast = BroadcastOperands(traits) if traits.operands.extras else None
        self.ring = RingStaging(traits, memory, consumer.index) if traits.boxes_in_ring else None
        self.writer = writer(traits, staging, self.fragment)
        self.is_loaded = False  # the loads of C for the first boxes of a tile have started

    def prepare(self, work: WorkTile) -> None:
        """Request C of the boxes that are staged first, which is loaded during the mainloop."""
        self.writer.prepare(work)
        if self.prefetches and self.source:  # a kernel that changes an object in a loop is traced again
            self._load_source(self.source, work, 0)
            self.is_loaded = True

    def __call__(self, output: OutputTile) -> None:
        """Apply the epilogue to complete accumulators and start their stores."""
        if self.traits.meets_before_staging:
            self.traits.accumulators.meet()
        rows_left = self.writer.begin(output.work)
        in_ring = self.ring.holds(output) if self.ring else None
        for first in range(0, self.fragment.length, self.fragment.staged):
            with self._if_left(rows_left, first):
                self._await(output.work, first, in_ring)
                boxes = self._boxes(output, first, in_ring)
                for box, offset in boxes:
                    with self._if_left(rows_left, offset):
                        self._stage(box, offset, output)
                self.writer.write(output.work, boxes, rows_left)

    def finish(self) -> None:
        """Wait until TMA has read all boxes: shared memory may be given to another block then. The kernel does not end
        before all are in global memory."""
        with pd.if_(self.staging.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)

    def _if_left(self, rows_left: Scalar | None, offset: int) -> AbstractContextManager[Any]:
        """Run the body if a box has rows, or always if their number does not matter."""
        return nullcontext() if rows_left is None else pd.if_(rows_left > self.fragment.row(offset))

    def _await(self, work: WorkTile, first: int, in_ring: InRing) -> None:
        """Wait until boxes may be written: TMA has loaded C to them, or has read them. Those in the ring are free."""
        if self.source:
            if not self.is_loaded:
                self._load_source(self.source, work, first)
            self.is_loaded = False
            self.source.wait()
        elif in_ring is None:
            self.staging.await_read()
        elif in_ring is not True:
            with pd.if_(~in_ring):
                self.staging.await_read()

    def _boxes(self, output: OutputTile, first: int, in_ring: InRing) -> Boxes:
        """Return the boxes of an output tile from row or column `first` on."""
        boxes = self.fragment.boxes(first)
        if self.ring is None or in_ring is None:
            return boxes
        before = first // self.fragment.extent
        return [
            (self.ring.box(in_ring, output, before + number, box), offset) for number, (box, offset) in enumerate(boxes)
        ]

    def _load_source(self, source: SourceBoxes, work: WorkTile, first: int) -> None:
        """Start the TMA loads of C to the boxes from row or column `first` on."""
        c = work.product.c
        source.load(c.map, [*self.fragment.copies(work, c, self.fragment.boxes(first))])

    def _stage(self, box: StagedBox, first: int, output: OutputTile) -> None:
        """Compute the elements of a box, 16 rows and 16 columns of each warp at a time, and write them to it."""
        fragment, work = self.fragment, output.work
        for offset in range(0, fragment.extent, STEP):
            begin = (first + offset) // MATRIX * 4  # a thread holds four accumulators of 8 rows or columns of a warp
            values = self._scaled(output, begin)
            address = fragment.address(box, offset)
            operands = self._operands(work, first + offset)
            if self.source:
                c = widened(self.source.words(address), self.type)
                values = [pd.fma(work.product.beta, other, value) for value, other in zip(values, c, strict=True)]
            fragment.store(address, pack(self._applied(values, operands), self.type))

    def _scaled(self, output: OutputTile, begin: int) -> list[Scalar]:
        """Return alpha times eight accumulators of a thread."""
        scalar, registers = self.traits.scalar, output.accumulators.registers[begin : begin + MATRIX]
        alpha = output.work.product.alpha
        return [(value if value.type is scalar else value.to(scalar)) * alpha for value in registers]

    def _operands(self, work: WorkTile, offset: int) -> Sequence[Sequence[Scalar]]:
        """Return the broadcast operands of 16 rows and columns."""
        return self.broadcast.read(work.product, *self.fragment.axes(work), offset) if self.broadcast else ()

    def _applied(self, values: Sequence[Scalar], operands: Sequence[Sequence[Scalar]]) -> Sequence[Scalar]:
        """Apply the caller's function to values and the operands of each."""
        function = self.traits.epilogue
        return [traced(function, *each) for each in zip(values, *operands, strict=True)] if function else values


def warpgroup_epilogue(traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> Epilogue:
    """Return the epilogue of a product: in boxes if TMA can write the output, else by warps."""
    if traits.operands.out_boxes:
        return TmaEpilogue(traits, memory, consumer)
    return WarpEpilogue(traits, memory.staging)


def group_epilogue(
    traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, scatters: bool = False
) -> Epilogue:
    """Return the epilogue of groups of rows; with `scatters` an index says which row of the output each row is."""
    if traits.operands.out_boxes:
        return TmaEpilogue(traits, memory, consumer, ScatterWriter if scatters else GroupWriter, prefetches=False)
    return WarpEpilogue(traits, memory.staging)


def list_epilogue(traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, maps: ProblemMaps) -> Epilogue:
    """Return the epilogue of a list of problems, whose tensor maps another warp rewrites."""
    if traits.operands.out_boxes:
        writer = partial(GroupWriter if traits.tiling.swap_ab else Writer, maps=maps)
        return TmaEpilogue(traits, memory, consumer, writer, prefetches=False)
    return WarpEpilogue(traits, memory.staging)
