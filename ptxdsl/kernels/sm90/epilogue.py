"""The epilogue of a consumer warpgroup on sm_90a: accumulator fragment → boxes in shared memory → writer.

    acc = alpha·acc (+ beta·C) (+ operands of rows and columns) → function → stmatrix → TMA store

Boxes have up to 64 rows of up to 128 bytes. One thread issues their TMA stores, and the warpgroup goes on to the next
tile. `fragments` says where a thread's accumulators belong, `staging` where boxes are in shared memory, `writers` how
boxes are written. `source` loads C, `broadcast` reads row and column operands. Outputs that TMA cannot write, whose
rows do not begin at multiples of 16 bytes, are left to the WarpEpilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.product.words import pack, widened
from ptxdsl.kernels.sm90.broadcast import BroadcastOperands
from ptxdsl.kernels.sm90.deferred import DeferredBoxes
from ptxdsl.kernels.sm90.fragments import STEP, Boxes, RowFragment, fragment_of
from ptxdsl.kernels.sm90.maps import ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.source import WORDS, SourceBoxes
from ptxdsl.kernels.sm90.staging import InRing, RingStaging, StagedBox, Staging
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, MATRIX, WARP, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.sm90.writers import GroupWriter, ScatterWriter, Writer
from ptxdsl.kernels.store.epilogue import Epilogue, WarpEpilogue
from ptxdsl.kernels.store.traced import traced
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue


class StagedWords(NamedTuple):
    """16 rows and 16 columns of a warp as stmatrix takes them: its row address of this lane, and four registers."""

    address: PointerValue
    registers: list[Scalar]


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
        self.deferred: DeferredBoxes | None = None
        self.is_loaded = False  # the loads of C for the boxes that are staged next have started

    def begin(self) -> None:
        """Allocate the registers for the boxes of a tile that are stored during the mainloop of the next one."""
        if self.traits.deferred_columns:
            self.deferred = DeferredBoxes(self.traits)

    def prepare(self, work: WorkTile) -> None:
        """Request C, which is loaded during the mainloop. If warpgroups are staggered, it follows later, in
        `alongside`."""
        self.writer.prepare(work)
        if not self.prefetches or not (self.source or self.deferred):
            return  # a kernel that changes an object in a loop is traced again
        self.work = work
        if self.deferred:
            with pd.if_(self.deferred.wait == 1):
                self.staging.await_read()
        elif not self.traits.tiling.stagger:
            self._load_first_source()

    def alongside(self, iterations: Index, stagger: int) -> Iterator[object]:
        """Iterate the mainloop of staggered warpgroups, and use the time: store the deferred boxes of the previous
        tile, and load C.

        C is requested after the first iterations. The boxes in its place must have been read by TMA before; a warp that
        waited for that at once would not multiply while the other warpgroup stores.
        """
        if self.deferred:
            first = pd.min(iterations, self.deferred.slices)
            yield from self._store_slices(self.deferred, iterations)
        elif self.source:
            first = pd.min(iterations, stagger)
            yield from pd.range(first, unroll=1)
        else:
            yield from pd.range(iterations, unroll=1)
            return
        self._load_first_source()
        yield from pd.range(iterations - first, unroll=1)
        if self.source and self.traits.held_words:
            self._hold_source(self.source, self.traits.held_words)

    def __call__(self, output: OutputTile) -> None:
        """Apply the epilogue to complete accumulators and start their stores."""
        if self.traits.meets_before_staging:
            self.traits.accumulators.meet()
        rows_left = self.writer.begin(output.work)
        in_ring = self.ring.holds(output) if self.ring else None
        *others, last = range(0, self.fragment.length, self.fragment.staged)
        for first in others:
            with _if_left(rows_left, first):
                self._store_boxes(output, first, in_ring, rows_left)
            self._release_source(first > 0)
        if self.deferred and output.is_last:
            with pd.if_(output.is_last()):
                self._store_boxes(output, last, True if self.ring else None)
                self.deferred.drop()
            with pd.else_():
                self.deferred.hold(self._deferred_values(output, last), output.work)
        else:
            with _if_left(rows_left, last):
                self._store_boxes(output, last, in_ring, rows_left)
        self._release_source(True)

    def finish(self) -> None:
        """Wait until TMA has read all boxes: shared memory may be given to another block then. The kernel does not end
        before all are in global memory."""
        with pd.if_(self.staging.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)

    def _store_boxes(self, output: OutputTile, first: int, in_ring: InRing, rows_left: Scalar | None = None) -> None:
        """Compute the boxes that are staged together, from row or column `first` of the tile, and start their
        stores."""
        self._await_source(output.work, first)
        self._await_boxes(first, in_ring)
        boxes = self._boxes(output, first, in_ring)
        for box, offset in boxes:
            with _if_left(rows_left, offset):
                self._stage(self._computed(box, offset, output), first, offset)
        self.writer.write(output.work, boxes, rows_left)

    def _boxes(self, output: OutputTile, first: int, in_ring: InRing) -> Boxes:
        """Return the boxes of an output tile from row or column `first` on."""
        boxes = self.fragment.boxes(first)
        if self.ring is None or in_ring is None:
            return boxes
        before = first // self.fragment.extent
        return [
            (self.ring.box(in_ring, output, before + number, box), offset) for number, (box, offset) in enumerate(boxes)
        ]

    def _computed(self, box: StagedBox, first: int, output: OutputTile) -> Iterator[StagedWords]:
        """Compute the elements of a box, 16 rows and 16 columns of each warp at a time."""
        fragment, work = self.fragment, output.work
        for offset in range(0, fragment.extent, STEP):
            begin = (first + offset) // MATRIX * 4  # a thread holds four accumulators of 8 rows or columns of a warp
            # Transposed accumulators are scaled last: this order of instructions is the one that was measured
            values = [] if fragment.is_transposed else self._scaled(output, begin)
            address = fragment.address(box, offset)
            operands = self._operands(work, first + offset)
            values = values or self._scaled(output, begin)
            values = self._applied(self._with_source(output, values, self._source(address, first + offset)), operands)
            yield StagedWords(address, pack(values, self.type))

    def _stage(self, computed: Iterator[StagedWords], first: int, offset: int) -> None:
        """Write a box to shared memory. If C of the following boxes is there, it is held in registers first."""
        held = self.source.held if self.source else []
        following = self.fragment.length // STEP - len(held) if not first else 0
        for number, (address, registers) in enumerate(computed, (offset - first) // STEP):
            if self.source and held and number < following:
                self.source.read(held[number], address)
            self.fragment.store(address, registers)

    def _scaled(self, output: OutputTile, begin: int) -> list[Scalar]:
        """Return alpha times eight accumulators of a thread."""
        scalar, registers = self.traits.scalar, output.accumulators.registers[begin : begin + MATRIX]
        alpha = output.work.product.alpha
        return [(value if value.type is scalar else value.to(scalar)) * alpha for value in registers]

    def _with_source(self, output: OutputTile, values: list[Scalar], words: Sequence[Scalar]) -> list[Scalar]:
        """Add beta times words of C, if there is a C."""
        beta = output.work.product.beta
        if not words:
            return values
        return [pd.fma(beta, c, value) for value, c in zip(values, widened(words, self.type), strict=True)]

    def _applied(self, values: Sequence[Scalar], operands: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Apply the caller's function to values and the operands of each."""
        function = self.traits.epilogue
        return [traced(function, *each) for each in zip(values, *operands, strict=True)] if function else [*values]

    def _await_source(self, work: WorkTile, first: int) -> None:
        """Wait for C of the boxes that are staged next, and load it unless that has been done."""
        is_loaded, self.is_loaded = self.is_loaded, False
        if self.source and not self.source.held:
            if not is_loaded:
                self._load_source(work, first)
            self.source.wait()

    def _await_boxes(self, first: int, in_ring: InRing) -> None:
        """Wait until boxes may be written: TMA has read them, or has loaded C to them. Those in the ring are free."""
        if in_ring is True:
            return
        if in_ring is not None:
            with pd.if_(~in_ring):
                self.staging.await_read()
        elif self.source is None:
            self.staging.await_read()
        elif self.source.held:
            self.staging.await_read() if first else self.source.wait()

    def _load_first_source(self) -> None:
        """Start the TMA loads of C to the boxes of the current tile that are staged first."""
        self._load_source(self.work, 0)
        self.is_loaded = self.source is not None

    def _load_source(self, work: WorkTile, first: int) -> None:
        """Start the TMA loads of C to the boxes from row or column `first` on."""
        if self.source:
            c = work.product.c
            self.source.load(c.map, [*self.fragment.copies(work, c, self.fragment.boxes(first))])

    def _hold_source(self, source: SourceBoxes, words: int) -> None:
        """Move C of the first boxes to registers, and start the loads of the others in their place."""
        places = (divmod(offset, self.fragment.extent) for offset in range(0, words // WORDS * STEP, STEP))
        addresses = (self.fragment.address(self.staging.box(box), offset) for box, offset in places)
        source.hold(addresses, words)
        self._load_source(self.work, self.fragment.staged)

    def _release_source(self, is_used: bool) -> None:
        """Forget the registers of C if their boxes have been computed."""
        if is_used and self.source and self.source.held:
            self.source.held = []

    def _source(self, address: PointerValue, offset: int) -> list[Scalar]:
        """Return the words of C for 16 rows and columns, from registers or from the box at an address."""
        if not self.source:
            return []
        held = self.source.held
        return [*held[offset // STEP % len(held)]] if held else self.source.words(address)

    def _operands(self, work: WorkTile, offset: int) -> Sequence[Sequence[Scalar]]:
        """Return the broadcast operands of 16 rows and columns."""
        return self.broadcast.read(work.product, *self.fragment.axes(work), offset) if self.broadcast else ()

    def _deferred_values(self, output: OutputTile, first: int) -> list[Scalar]:
        """Return alpha·a@b + beta·c of the boxes from column `first` on; C is in registers if there is one."""
        held, values = self.source.held if self.source else [], list[Scalar]()
        for column in range(first, self.fragment.length, STEP):
            c = [*held[column // STEP % len(held)]] if held else []
            values += self._with_source(output, self._scaled(output, column // MATRIX * 4), c)
        return values

    def _store_slices(self, deferred: DeferredBoxes, iterations: Index) -> Iterator[object]:
        """Iterate the first iterations of a tile, and stage a slice of the deferred boxes before each, while the
        products of the one before are in flight. If there are fewer iterations, the other slices follow at once."""
        for number in pd.range(deferred.slices, unroll=1):
            with pd.if_(deferred.wait == 1):
                for each in range(deferred.slices):
                    with pd.if_(number == each):
                        self._store_slice(deferred, each)
            with pd.if_(number < iterations):
                yield number

    def _store_slice(self, deferred: DeferredBoxes, number: int) -> None:
        """Stage 16 columns of the deferred boxes; start their stores after the last ones."""
        work, fragment = deferred.work(self.work.product), self.fragment
        boxes = fragment.boxes(deferred.first)
        box, within = divmod(number * STEP, fragment.extent)
        kept = deferred.values[number * STEP // MATRIX * 4 :][:MATRIX]
        values = self._applied(kept, self._operands(work, deferred.first + number * STEP))
        fragment.store(fragment.address(boxes[box][0], within), pack(values, self.type))
        if number == deferred.slices - 1:
            self.writer.write(work, boxes)


class GroupEpilogue(TmaEpilogue):
    """The epilogue of groups of rows. A warpgroup whose 64 rows all belong to the group stores boxes; else its warps
    store the rows of the group one by one, and leave those of the next group alone. Both use the same shared memory."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        super().__init__(traits, memory, consumer, prefetches=False)
        if traits.stages_in_turn:
            self.rows = WarpEpilogue(traits, memory.staging, consumer.index * (WARPGROUP // WARP))
        else:
            apart = traits.staged_bytes - WARPGROUP // WARP * traits.warp_staged_bytes
            at = memory.staging + consumer.index * (apart // traits.operands.inputs.bytes)
            self.rows = WarpEpilogue(traits, at)

    def __call__(self, output: OutputTile) -> None:
        m, row = output.work.product.m, output.work.first[0] + self.staging.first_row
        with pd.if_(m >= row + GROUP_ROWS):
            super().__call__(output)
        with pd.else_(), pd.if_(m > row):
            self.staging.await_read()
            self.rows(output)


def _if_left(rows_left: Scalar | None, first: int) -> AbstractContextManager[Any]:
    """Run the body if there are rows from `first` on, or always if their number does not matter."""
    return nullcontext() if rows_left is None else pd.if_(rows_left > first)


def warpgroup_epilogue(traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> Epilogue:
    """Return the epilogue of a product: in boxes if TMA can write the output, else by warps."""
    if traits.operands.out_boxes:
        return TmaEpilogue(traits, memory, consumer)
    return WarpEpilogue(traits, memory.staging)


def group_epilogue(
    traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, scatters: bool = False
) -> Epilogue:
    """Return the epilogue of groups of rows; with `scatters` an index says which row of the output each row is."""
    if not traits.operands.out_boxes:
        return WarpEpilogue(traits, memory.staging)
    if scatters or traits.tiling.swap_ab:
        return TmaEpilogue(traits, memory, consumer, ScatterWriter if scatters else GroupWriter, prefetches=False)
    return GroupEpilogue(traits, memory, consumer)


def list_epilogue(traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, maps: ProblemMaps) -> Epilogue:
    """Return the epilogue of a list of problems, whose tensor maps another warp rewrites."""
    if not traits.operands.out_boxes:
        return WarpEpilogue(traits, memory.staging)
    writer = partial(GroupWriter if traits.tiling.swap_ab else Writer, maps=maps)
    return TmaEpilogue(traits, memory, consumer, writer, prefetches=False)
