"""From accumulators to memory by tensor copies, where rows of the output begin at multiples of 16 bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl import b32, s32, u32
from ptxdsl.kernels.product.product import OutputTile, View, WorkTile
from ptxdsl.kernels.product.words import pack, read_words, widened, write_words
from ptxdsl.kernels.sm90.addend import Addend
from ptxdsl.kernels.sm90.deferred import DeferredBoxes
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.maps import MATRICES, NO_PROBLEM, ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.staging import LastTile, StagedBox
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.sm90.vectors import MATRIX, Axis, Vectors
from ptxdsl.kernels.store.epilogue import WarpEpilogue
from ptxdsl.kernels.store.readers import Running, element
from ptxdsl.kernels.store.traced import traced
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

COLUMNS = 2 * MATRIX  # of the four matrices that a warp stores at once
WORDS = 4  # registers of a thread for these


class Staged(NamedTuple):
    """What a lane stages of 16 rows and 16 columns of a warp, and where it says that a row of them begins."""

    address: PointerValue
    words: list[Scalar]


class TensorStore:
    """A warpgroup's way from its accumulators to memory: alpha, and a function of one element and of vectors; then
    boxes of 64 rows and up to 128 bytes that one thread copies, while the warpgroup goes on to multiply.

    A box must have been read from shared memory before it is written again: that thread waits for it, and then all.
    What is staged there next is computed meanwhile.

    Of C there is memory beside half of a tile. Where warpgroups end a tile one after the other, that half goes to
    registers before the last products, and the other half comes beside them.
    """

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        self.traits, self.consumer, self.type = traits, consumer, traits.operands.output
        self.columns = traits.out_map.box[-1]
        self.boxes = traits.staged_boxes
        self.origin = (0,) * (traits.out_map.rank - 2)
        number = 0 if traits.stages_in_turn else consumer.index * (traits.staged_bytes // self.type.bytes)
        self.staged = pd.view(memory.staging.bitcast(self.type) + number, traits.out_map.boxes_layout(self.boxes))
        lane = pd.laneid
        self.first_row = consumer.index * traits.tiling.rows_apart
        self.prepared = False  # whether what is beside the boxes that are staged next is on its way
        self.warp_row = consumer.thread % WARPGROUP // WARP * WARP_ROWS
        self.row = self.warp_row + lane % WARP_ROWS
        self.column = lane // WARP_ROWS * MATRIX
        self.leads = consumer.thread % WARPGROUP == 0
        self.addend = Addend(memory.addends, consumer.index, self.leads) if memory.addends else None
        self.held: list[list[Var]] = []  # words of C, where those beside what is staged next are in registers
        self.late = memory.late
        self.vectors = self._vectors() if traits.operands.extras else None
        self.last = LastTile(traits, memory, consumer.index) if traits.boxes_in_ring else None
        self.deferred: DeferredBoxes | None = None

    def defer(self) -> None:
        """The last boxes of a tile wait from here on, until `store_slice` is called beside products of the next one."""
        self.deferred = DeferredBoxes(self.traits)

    def prepare(self, work: WorkTile) -> None:
        """What can be done before the accumulators are there: the first boxes of C come, and values beside the others.
        Where warpgroups end a tile one after the other, C comes later; and such values, where boxes were deferred."""
        if not (self.addend or self.vectors or self.deferred):
            return  # a kernel that changes an object in a loop is traced again
        self.work = work
        if self.deferred:
            with pd.if_(self.deferred.wait == 1):
                self._fetch_vectors(self.deferred.work(work.product), self.deferred.first)
                self.await_read()
            return
        self.fetch_beside()
        if not self.traits.tiling.stagger:
            self._fetch_c(work, 0)

    def fetch_beside(self) -> None:
        """Values beside the first boxes of the work that was prepared are on their way from here on."""
        self._fetch_vectors(self.work, 0)
        self.prepared = True

    def bring_c(self) -> None:
        """Begins to bring the first boxes of C, of the work that was prepared."""
        self._fetch_c(self.work, 0)

    def hold_c(self) -> None:
        """Where others follow, they go to registers, and the others come. For the time before the last products."""
        if not self.addend or not self.traits.held_words:
            return
        self.addend.wait()
        self.held = [[pd.var(b32) for _ in range(WORDS)] for _ in range(0, self.traits.held_words, WORDS)]
        for number, words in enumerate(self.held):
            box, column = divmod(number * COLUMNS, self.columns)
            address = self.staged.address(box, *self.origin, self.row, self.column + column)
            self._hold(words, address)
        # Without the fence copies had written there before all was read, on an H200: a barrier alone does not order it
        pd.ptx.fence.proxy.async_.shared__cta()
        self.consumer.warpgroup_barrier()
        self._fetch_c(self.work, self.boxes * self.columns)

    def __call__(self, part: OutputTile) -> None:
        """Begins to store accumulators that are complete."""
        in_ring = self.last.takes(part) if self.last else None
        *others, last = range(0, self.traits.tile[1], self.boxes * self.columns)
        for first in others:
            self._store_boxes(part, first, in_ring)
            self.held = [] if first else self.held
        if self.deferred and part.is_last:
            with pd.if_(part.is_last()):
                self._store_boxes(part, last, True if self.last else None)
                self.deferred.drop()
            with pd.else_():
                self.deferred.hold(self._combined(part, last), part.work)
        else:
            self._store_boxes(part, last, in_ring)
        self.held = [] if self.held else self.held  # another list would be traced again

    def _store_boxes(self, part: OutputTile, first: int, in_ring: Scalar | Literal[True] | None) -> None:
        """Begins to store the boxes that are staged together, from these columns on."""
        self._bring(part.work, first)
        if self.late is None:
            self._await(first, in_ring)
        boxes, late = self._staged(part, first, in_ring), self._belated(part)
        columns = zip(boxes, self._columns(first), strict=True)
        staged: Iterable[Staged] = chain.from_iterable(self._packed(box, column, late) for box, column in columns)
        if self.late is not None:
            staged = [*staged]
            self._await(first, in_ring)
        self._stage(staged, first)
        self._copy_out(part.work, first, boxes)

    def _copy_out(self, work: WorkTile, first: int, boxes: Sequence[StagedBox]) -> None:
        """Begins to copy boxes to memory that are staged."""
        pd.ptx.fence.proxy.async_.shared__cta()
        self.consumer.warpgroup_barrier()
        with pd.if_(self.leads):
            for address, at in self._boxes(work, work.product.out, first, boxes):
                work.product.out.map.store(at, address)
            pd.ptx.cp.async_.bulk.commit_group()

    def _combined(self, part: OutputTile, first: int) -> list[Scalar]:
        """alpha·a@b + beta·c of the boxes from these columns on, where C is in registers if there is one."""
        combined: list[Scalar] = []
        for column in range(first, self.traits.tile[1], COLUMNS):
            c = [*self.held[column // COLUMNS % len(self.held)]] if self.held else []
            combined += self._added(part, self._scaled(part, column // MATRIX * 4), c)
        return combined

    @property
    def slices(self) -> int:
        """In how many parts boxes that were deferred are staged."""
        return self.traits.deferred_columns // COLUMNS

    def store_slice(self, number: Scalar) -> None:
        """Stages one of them, if boxes were deferred; behind the last one they are stored."""
        assert self.deferred
        with pd.if_(self.deferred.wait == 1):
            for each in range(self.slices):
                with pd.if_(number == each):
                    self._store_slice(self.deferred, each)

    def _store_slice(self, deferred: DeferredBoxes, number: int) -> None:
        column, work = number * COLUMNS, deferred.work(self.work.product)
        boxes = [StagedBox(self.staged, box) for box, _ in enumerate(self._columns(deferred.first))]
        box, behind = divmod(column, self.columns)
        kept = deferred.values[column // MATRIX * 4 :][:MATRIX]
        values = self._applied(kept, self._beside(work, deferred.first + column))
        address = boxes[box].address(*self.origin, self.row, self.column + behind)
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(address, pack(values, self.type))
        if number == self.slices - 1:
            self._copy_out(work, deferred.first, boxes)

    def _staged(self, part: OutputTile, first: int, in_ring: Scalar | Literal[True] | None) -> list[StagedBox]:
        """Where the boxes are staged that begin at these columns."""
        boxes = [StagedBox(self.staged, number) for number, _ in enumerate(self._columns(first))]
        if self.last is None or in_ring is None:
            return boxes
        before = first // self.columns
        return [self.last.box(in_ring, part, before + number, box) for number, box in enumerate(boxes)]

    def _vectors(self) -> Vectors:
        return Vectors(self.traits, "n", self.traits.tile[1], self.boxes * self.columns)

    def _axes(self, work: WorkTile) -> tuple[Axis, Axis]:
        """What is down and across of the accumulators of this warp."""
        (row, column), product = work.first, work.product
        return Axis(row + self.first_row + self.warp_row, product.m), Axis(column, product.n)

    def _columns(self, first: int) -> range:
        """The first columns of the boxes that are staged at a time."""
        return range(first, min(first + self.boxes * self.columns, self.traits.tile[1]), self.columns)

    def _boxes(
        self, work: WorkTile, matrix: TensorView, first: int, boxes: Sequence[StagedBox]
    ) -> list[tuple[PointerValue, tuple[Any, ...]]]:
        """Where they are staged, and where in the tensor of a matrix they are."""
        (first_m, first_n), planes = work.first, (matrix.batch,) if self.origin else ()
        row = matrix.line(first_m + self.first_row)
        return [
            (box.address(*self.origin, 0, 0), (*planes, row, first_n + column))
            for box, column in zip(boxes, self._columns(first), strict=True)
        ]

    def _bring(self, work: WorkTile, first: int) -> None:
        """What is beside the boxes that are staged next is there, or on its way."""
        if not self.prepared:
            self._fetch_vectors(work, first)
        if not self.prepared and not self.held:
            self._fetch_c(work, first)
        self.prepared = False
        if self.addend and not self.held:
            self.addend.wait()

    def _await(self, first: int, in_ring: Scalar | Literal[True] | None = None) -> None:
        """Until the boxes may be written: what was stored from there has been read, or C is there instead; those that
        are written to the ring may be now."""
        if in_ring is True:
            return
        if in_ring is not None:
            with pd.if_(~in_ring):
                self.await_read()
        elif not self.addend:
            self.await_read()
        elif self.held:
            self.addend.wait() if not first else self.await_read()

    def _belated(self, part: OutputTile) -> OutputTile:
        """The same with an alpha that nobody knows before: ptxas would compute all of a tile as soon as its
        accumulators are there, before a slot of the ring is free and the first boxes are stored."""
        if self.late is None:
            return part
        pd.ptx.bar.warp.sync(0xFFFFFFFF)
        one = pd.ptx(f"ld.volatile.shared.{self.traits.scalar}", self.late)
        product = part.work.product._replace(alpha=part.work.product.alpha * one)
        return part._replace(work=part.work._replace(product=product))

    def _fetch_c(self, work: WorkTile, first: int) -> None:
        """Begins to bring the boxes of C beside those that are staged from a column on."""
        if self.addend:
            c = work.product.c
            boxes = [StagedBox(self.staged, number) for number, _ in enumerate(self._columns(first))]
            self.addend.fetch(c.map, self._boxes(work, c, first, boxes))

    def _fetch_vectors(self, work: WorkTile, first: int) -> None:
        """Begins to read values of rows and columns beside them."""
        if self.vectors and self.vectors.is_ahead:
            self.vectors.fetch(work.product, *self._axes(work), first)

    def _beside(self, work: WorkTile, first: int) -> Sequence[Sequence[Scalar]]:
        """What is beside 16 columns of the tile."""
        if not self.vectors:
            return ()
        if not self.vectors.is_ahead:
            self.vectors.fetch(work.product, *self._axes(work), first)
        return self.vectors.beside(first)

    def finish(self) -> None:
        """Until all has been read: shared memory may be given to another block then. The kernel ends when it is all in
        memory."""
        with pd.if_(self.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)

    def await_read(self) -> None:
        """Until the warpgroup may write to the shared memory of its boxes."""
        with pd.if_(self.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
        self.consumer.warpgroup_barrier()

    def _packed(self, box: StagedBox, first: int, part: OutputTile) -> Iterator[Staged]:
        """What is staged of the columns of a box."""
        for column in range(0, self.columns, COLUMNS):
            begin = (first + column) // MATRIX * 4  # a thread holds four of each 16×8 accumulators
            values = self._scaled(part, begin)
            address = box.address(*self.origin, self.row, self.column + column)
            beside = self._beside(part.work, first + column)
            values = self._finished(part, values, self._c(address, first + column), beside)
            yield Staged(address, pack(values, self.type))

    def _stage(self, staged: Iterable[Staged], first: int) -> None:
        """Writes boxes to shared memory. Where C lies there that is beside the following ones, it is held then."""
        following = self.traits.tile[1] // COLUMNS - len(self.held) if not first else 0
        for number, (address, words) in enumerate(staged):
            if self.held and number < following:
                self._hold(self.held[number], address)
            pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(address, words)

    def _c(self, address: PointerValue, column: int) -> list[Scalar]:
        """The words of C beside what is staged at an address, of 16 columns of the tile."""
        if not self.addend:
            return []
        return [*self.held[column // COLUMNS % len(self.held)]] if self.held else self._load_c(address)

    def _hold(self, registers: list[Var], address: PointerValue) -> None:
        """Brings the words of C there to registers."""
        for register, word in zip(registers, self._load_c(address), strict=True):
            register.set(word)

    def _load_c(self, address: PointerValue) -> list[Scalar]:
        """What lies there of C."""
        return [*pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(address)]

    def _scaled(self, part: OutputTile, begin: int) -> list[Scalar]:
        """alpha times the accumulators of four matrices."""
        scalar, accumulators = self.traits.scalar, part.accumulators.registers[begin : begin + MATRIX]
        return [(sum if sum.type is scalar else sum.to(scalar)) * part.work.product.alpha for sum in accumulators]

    def _finished(
        self, part: OutputTile, values: list[Scalar], c: Sequence[Scalar], beside: Sequence[Sequence[Scalar]]
    ) -> list[Scalar]:
        """With words of C, where there is one, and the function of that and of what is beside each."""
        return self._applied(self._added(part, values, c), beside)

    def _added(self, part: OutputTile, values: list[Scalar], c: Sequence[Scalar]) -> list[Scalar]:
        """With words of C, where there is one."""
        beta = part.work.product.beta
        return [pd.fma(beta, w, v) for v, w in zip(values, widened(c, self.type), strict=True)] if c else values

    def _applied(self, values: Sequence[Scalar], beside: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """The function of values and of what is beside each."""
        function = self.traits.epilogue
        return [traced(function, *each) for each in zip(values, *beside, strict=True)] if function else [*values]


class TurnedStore(TensorStore):
    """The same of a tile whose A and B are swapped: a warpgroup has 64 of its columns, and stores them in boxes of 16
    to 64 rows. It turns its accumulators as it stages them."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        self.rows = traits.out_map.box[-2]  # of a box
        super().__init__(traits, memory, consumer)
        lane = pd.laneid
        self.first_column = consumer.index * traits.tiling.columns_apart
        self.row = lane % MATRIX + lane // COLUMNS * MATRIX
        self.column = consumer.thread % WARPGROUP // WARP * WARP_ROWS + lane // MATRIX % 2 * MATRIX

    def __call__(self, part: OutputTile) -> None:
        """Begins to store accumulators that are complete."""
        work, rows, together = part.work, self.traits.tile[0], self.boxes * self.rows
        for first in range(0, rows, together):
            self._bring(work, first)
            if self.late is None:
                self.await_read()
            late, firsts = self._belated(part), range(first, min(first + together, rows), self.rows)
            boxes = ((StagedBox(self.staged, box), row) for box, row in enumerate(firsts))
            staged: Iterable[Staged] = chain.from_iterable(self._packed(box, row, late) for box, row in boxes)
            if self.late is not None:
                staged = [*staged]
                self.await_read()
            self._stage(staged)
            pd.ptx.fence.proxy.async_.shared__cta()
            self.consumer.warpgroup_barrier()
            with pd.if_(self.leads):
                for box, row in enumerate(firsts):
                    self._store_box(box, row, work)
                pd.ptx.cp.async_.bulk.commit_group()

    def _store_box(self, box: int, row: int, work: WorkTile, out: TensorView | None = None) -> None:
        """Begins to store a box, from this row of the tile on; by the thread that copies."""
        matrix = out or work.product.out
        planes = (matrix.batch,) if self.origin else ()
        at = matrix.line(work.first[0] + row), work.first[1] + self.first_column
        matrix.map.store((*planes, *at), self.staged.address(box, *self.origin, 0, 0))

    def _vectors(self) -> Vectors:
        return Vectors(self.traits, "m", self.boxes * self.rows)

    def _axes(self, work: WorkTile) -> tuple[Axis, Axis]:
        (row, column), product = work.first, work.product
        return Axis(column + self.first_column + self.warp_row, product.n), Axis(row, product.m)

    def _packed(self, box: StagedBox, first: int, part: OutputTile) -> Iterator[Staged]:
        """What is staged of the rows of a box."""
        for row in range(0, self.rows, WARP_ROWS):
            begin = (first + row) // MATRIX * 4  # a thread holds four of each 8 rows and 16 columns
            address = box.address(*self.origin, self.row + row, self.column)
            beside = self._beside(part.work, first + row)
            yield Staged(address, pack(self._finished(part, self._scaled(part, begin), [], beside), self.type))

    def _stage(self, staged: Iterable[Staged], first: int = 0) -> None:
        """Writes boxes to shared memory, turned."""
        for address, words in staged:
            pd.ptx.stmatrix.sync.aligned.m8n8.x4.trans.shared.b16(address, words)


class TurnedGroupStore(TurnedStore):
    """The same of groups of rows, whose out is a GroupRows: the box in which a group ends is stored by the threads, so
    that the rows of the next one are left alone."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        super().__init__(traits, memory, consumer)
        self.chunk = traits.operands.out_bytes // self.type.bytes
        self.lanes = traits.out_map.box[-1] // self.chunk  # that send a row
        self.step = WARPGROUP // self.lanes  # rows that are sent at a time

    def prepare(self, work: WorkTile) -> None:
        """As of a GroupStore."""

    def __call__(self, part: OutputTile) -> None:
        """Begins to store accumulators that are complete."""
        work, rows, together = part.work, self.traits.tile[0], self.boxes * self.rows
        left = work.product.m - work.first[0]
        for first in range(0, rows, together):
            firsts = range(first, min(first + together, rows), self.rows)
            with pd.if_(left > first):
                self._bring(work, first)
                self.await_read()
                for box, row in enumerate(firsts):
                    with pd.if_(left > row):
                        self._stage(self._packed(StagedBox(self.staged, box), row, part))
                self._send(firsts, left, work)

    def _send(self, firsts: Sequence[int], left: Scalar, work: WorkTile) -> None:
        """Begins to store the boxes that are staged; so many rows are left of the tile."""
        pd.ptx.fence.proxy.async_.shared__cta()
        self.consumer.warpgroup_barrier()
        with pd.if_(self.leads):
            for box, row in enumerate(firsts):
                with pd.if_(left >= row + self.rows):
                    self._store_box(box, row, work, work.product.out.tensor)
            pd.ptx.cp.async_.bulk.commit_group()
        for box, row in enumerate(firsts):
            with pd.if_((left > row) & (left < row + self.rows)):
                self._send_rows(box, row, work)

    def _send_rows(self, box: int, first: int, work: WorkTile) -> None:
        """Stores those rows of a box that there are, each by some neighbouring threads."""
        thread, product = self.consumer.thread % WARPGROUP, work.product
        row, column = thread // self.lanes, thread % self.lanes * self.chunk
        left, of_out = product.m - work.first[0] - first, work.first[1] + self.first_column + column
        running = Running(product.out, (work.first[0] + first + row, of_out), self.step)
        for step in range(0, self.rows, self.step):
            with pd.if_((row + step < left) & (of_out < product.n)):
                staged = self.staged.address(box, *self.origin, row + step, column)
                write_words(running.pointer, read_words(staged, self.chunk, self.type), self.chunk)
            running.advance()


class TurnedScatteredStore(TurnedGroupStore):
    """The same of rows whose out is a ScatteredView: all are stored by the threads, which ask for the numbers of a box
    at once, so that they wait for them once."""

    def _send(self, firsts: Sequence[int], left: Scalar, work: WorkTile) -> None:
        self.consumer.warpgroup_barrier()
        for box, row in enumerate(firsts):
            with pd.if_(left > row):
                self._send_rows(box, row, work)

    def _send_rows(self, box: int, first: int, work: WorkTile) -> None:
        thread, product = self.consumer.thread % WARPGROUP, work.product
        row, column, out = thread // self.lanes, thread % self.lanes * self.chunk, product.out
        left, of_out = product.m - work.first[0] - first, work.first[1] + self.first_column + column
        steps, behind = range(0, self.rows, self.step), work.first[0] + first + row
        numbers = [out.numbers[pd.min(behind + step, out.last)] for step in steps]
        for step, number in zip(steps, numbers, strict=True):
            is_row = (row + step < left) & (number >= 0) & (number < out.rows.to(s32))
            with pd.if_(is_row & (of_out < product.n)):
                staged = self.staged.address(box, *self.origin, row + step, column)
                to = element(View(out.pointer, out.stride), (number, of_out))
                write_words(to, read_words(staged, self.chunk, self.type), self.chunk)


class GroupStore:
    """The same of groups of rows, whose out is a GroupRows: in boxes where the group has all rows of a warpgroup; else
    by its warps, so that those of the next group are left alone. Both stage the output in the same shared memory."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        self.consumer, self.boxes = consumer, TensorStore(traits, memory, consumer)
        if traits.stages_in_turn:
            self.rows = WarpEpilogue(traits, memory.staging, consumer.index * (WARPGROUP // WARP))
        else:
            apart = traits.staged_bytes - WARPGROUP // WARP * traits.warp_staged_bytes
            self.rows = WarpEpilogue(traits, memory.staging + consumer.index * (apart // traits.operands.inputs.bytes))

    def prepare(self, work: WorkTile) -> None:
        """Groups have no C, and what else is beside them is read where a warpgroup has rows of them."""

    def __call__(self, part: OutputTile) -> None:
        """Stores accumulators that are complete, or begins to."""
        product = part.work.product
        whole = part._replace(work=part.work._replace(product=product._replace(out=product.out.tensor)))
        row = part.work.first[0] + self.boxes.first_row
        with pd.if_(product.m >= row + GROUP_ROWS):
            self.boxes(whole)
        with pd.else_(), pd.if_(product.m > row):
            self.boxes.await_read()
            self.rows(part)

    def finish(self) -> None:
        """Until all is in memory."""
        self.boxes.finish()


class ListStore:
    """The same of problems of a list, whose out is a GroupRows by a map that another warp has rewritten: of version
    `work.item[1]`."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, maps: ProblemMaps) -> None:
        self.turned, self.maps = traits.tiling.swap_ab, maps
        self.boxes = (TurnedGroupStore if self.turned else TensorStore)(traits, memory, consumer)
        self.version = pd.var(u32, NO_PROBLEM)

    def prepare(self, work: WorkTile) -> None:
        """While the first products are under way."""
        with pd.if_(self.boxes.leads & (work.item[1] != self.version)):
            self.version.set(work.item[1])
            self.maps.acquire(MATRICES, work.item[1])

    def __call__(self, part: OutputTile) -> None:
        """Begins to store accumulators that are complete, when all of the tile before is in memory."""
        with pd.if_(self.boxes.leads):
            pd.ptx.cp.async_.bulk.wait_group(0)
        if not self.turned:
            product = part.work.product
            part = part._replace(work=part.work._replace(product=product._replace(out=product.out.tensor)))
        self.boxes(part)

    def finish(self) -> None:
        """As of a TensorStore."""
        self.boxes.finish()


Epilogue: TypeAlias = WarpEpilogue | TensorStore | GroupStore | ListStore


def group_epilogue(
    traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup, scatters: bool = False
) -> Epilogue:
    """For groups of rows: in boxes where that can be, staged as these where it `scatters` rows of swapped tiles."""
    if not traits.operands.out_boxes:
        return warpgroup_epilogue(traits, memory, consumer)
    if scatters:
        return TurnedScatteredStore(traits, memory, consumer)
    return (TurnedGroupStore if traits.tiling.swap_ab else GroupStore)(traits, memory, consumer)


def warpgroup_epilogue(traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> Epilogue:
    """In boxes, where the output can be stored so; else by the warps, each its rows."""
    if traits.operands.out_boxes:
        return (TurnedStore if traits.tiling.swap_ab else TensorStore)(traits, memory, consumer)
    return WarpEpilogue(traits, memory.staging)
