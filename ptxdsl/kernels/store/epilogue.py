"""Epilogues: alpha and beta, a function of the caller, and stores of whole chunks through shared memory. C and the
operands of the function are read next to the elements of the output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, s32, s64, u32
from ptxdsl.kernels.product.operands import Along, COrder, CSource, Extra
from ptxdsl.kernels.product.product import OutputTile, ScatteredView, View, WorkTile
from ptxdsl.kernels.product.words import WIDEST, pack, read, read_words, write_words
from ptxdsl.kernels.store.traced import traced
from ptxdsl.kernels.traits.traits import PAD, Traits
from ptxdsl.layout import Layout, composition, in_bytes, make_tiled_copy, make_tiled_copy_c
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type


class RowPointer:
    """A pointer that advances down the rows of a matrix, `rows` at a time."""

    def __init__(self, matrix: View, at: tuple[Scalar, Scalar], rows: int) -> None:
        self.pointer = pd.var(matrix.pointer.type, element(matrix, at))
        self.step = matrix.stride * rows

    def exists(self, wanted: Scalar) -> Scalar:
        """Return whether the row exists, if it is `wanted`."""
        return wanted

    def advance(self) -> None:
        self.pointer += self.step


class ScatteredRowPointer(RowPointer):
    """A pointer to rows that an index names, `rows` further down the product each time."""

    def __init__(self, matrix: ScatteredView, at: tuple[Scalar, Scalar], rows: int) -> None:
        self.matrix, self.rows, self.column = matrix, rows, at[1]
        self.row, self.number = pd.var(u32, at[0]), pd.var(s32, 0)
        self.pointer = pd.var(matrix.pointer.type, matrix.pointer)
        self._seek()

    def exists(self, wanted: Scalar) -> Scalar:
        """Return whether the row exists, if it is `wanted`."""
        return wanted & (self.number >= 0) & (self.number < self.matrix.rows.to(s32))

    def advance(self) -> None:
        self.row += self.rows
        self._seek()

    def _seek(self) -> None:
        matrix = self.matrix
        self.number.set(matrix.numbers[pd.min(self.row, matrix.last)])
        self.pointer.set(element(View(matrix.pointer, matrix.stride), (self.number, self.column)))


def element(matrix: View, at: tuple[Scalar, Scalar]) -> PointerValue:
    """Return the address of an element, given as (row, column) of a row-major matrix."""
    return matrix.pointer + (at[0].to(s64) * matrix.stride + at[1].to(s64))


class Reader:
    """Reads the elements of an operand for a chunk of the output, converted to `scalar`."""

    def __init__(
        self, extra: Extra, values: Any, at: tuple[Scalar, Scalar], out: RowPointer, step: int, chunk: int, scalar: Type
    ) -> None:
        """`at` is the (row, column) of the first chunk of a thread; `step` rows are stored at a time."""
        self.extra, self.scalar, self.chunk = extra, scalar, chunk
        if extra.in_place:
            self.running = out
        elif extra.along is Along.MN:
            self.running = RowPointer(values, at, step)
        elif extra.along is Along.NM:
            self.first, self.stride = element(values, at[::-1]), values.stride
        else:
            self.first = values.pointer + at["mn".index(extra.along)]

    def read(self, row: int, column: int) -> list[Scalar]:
        """Return the elements for the chunk `row` rows and `column` columns from the first, in the type of alpha."""
        if self.extra.along is Along.MN:
            return self._read(self.running.pointer + column, self.chunk)
        if self.extra.along is Along.N:
            return self._read(self.first + column, self.chunk)
        if self.extra.along is Along.M:
            return self._read(self.first + row, 1) * self.chunk
        addresses = (self.first + row + self.stride * (column + i) for i in range(self.chunk))
        return [value for address in addresses for value in self._read(address, 1)]

    def _read(self, address: PointerValue, count: int) -> list[Scalar]:
        return read(address, count, self.extra.type, self.scalar, self.extra.bytes)


class Epilogue(ABC):
    """The epilogue of a thread: from complete accumulators to global memory."""

    def prepare(self, work: WorkTile) -> None:  # noqa: B027
        """Request what can be read during the mainloop of a tile."""

    @abstractmethod
    def __call__(self, output: OutputTile) -> None:
        """Store complete accumulators, or start to."""

    def finish(self) -> None:  # noqa: B027
        """Wait, after the last tile, until shared memory is free."""


class WarpEpilogue(Epilogue):
    """The epilogue of a warp, on every path: a group of its rows at a time goes through shared memory to global memory.

    A chunk is what a lane stores at a time. As many neighbouring lanes as a row has chunks store a row, and the next
    lanes the next row. A row whose chunks are not a power of two is stored in several steps.
    """

    def __init__(self, traits: Traits, staging: PointerValue) -> None:
        """`staging` is shared memory that is free when accumulators are stored."""
        operands, layout = traits.operands, traits.accumulators
        self.operands, self.layout, self.function, self.staging = operands, layout, traits.epilogue, staging
        self.meets = traits.meets_before_staging
        self.chunk = min(operands.out_bytes // operands.output.bytes, layout.rows * layout.strip // layout.lanes)
        self.lanes = max(gcd(layout.strip // self.chunk, layout.lanes), layout.lanes // layout.rows)
        self.step = layout.lanes // self.lanes  # rows that a warp stores at a time
        self.columns = range(0, layout.strip, self.lanes * self.chunk)
        self.pitch = layout.strip + PAD
        self.staged = Layout((layout.rows, layout.strip), (self.pitch, 1))  # of a warp
        self.held = Layout((layout.strip, layout.rows), (1, self.pitch)) if layout.is_transposed else self.staged
        self.is_final = operands.staged is operands.output and operands.c is CSource.NONE and not operands.extras

    def __call__(self, output: OutputTile) -> None:
        if self.meets:
            self.layout.meet()
        for strip in range(self.layout.strips):
            self._store_strip(output, strip)

    def _store_strip(self, output: OutputTile, strip: int) -> None:
        writer = StripWriter(self, output, strip * self.layout.strip)
        with self.layout.holding():
            for number, registers in enumerate(output.accumulators.strip(strip)):
                writer.stage(registers)
                pd.ptx.bar.warp.sync(0xFFFFFFFF)
                for row in range(0, self.layout.rows, self.step):
                    writer.write(number * self.layout.rows + row, row)
                pd.ptx.bar.warp.sync(0xFFFFFFFF)


class StripWriter:
    """The share of a thread in storing an output tile: the column strip of its warp that begins at `first_column`."""

    def __init__(self, epilogue: WarpEpilogue, output: OutputTile, first_column: int) -> None:
        self.epilogue, self.product, layout = epilogue, output.work.product, epilogue.layout
        first_m, first_n = output.work.first
        first = first_m + output.group * layout.rows, first_n + first_column if first_column else first_n
        warp_bytes = layout.rows * epilogue.pitch * epilogue.operands.staged.bytes
        rows = epilogue.staging.bitcast(b8) + pd.warpid * warp_bytes
        self.corner, self.written = self._writes(rows)
        self.chunks, row, column = self._reads(rows)
        warp = pd.warpid if output.warp is None else output.warp
        warp_m, warp_n = warp % layout.warps[0], warp // layout.warps[0]
        at = first[0] + warp_m * layout.warp[0] + row, first[1] + warp_n * layout.warp[1] + column
        self.rows_left, self.columns_left = (self.product.m - at[0]).to(s32), (self.product.n - at[1]).to(s32)
        out = self.product.out
        self.out = (ScatteredRowPointer if isinstance(out, ScatteredView) else RowPointer)(out, at, epilogue.step)
        self.c = self._reader_of_c(at)
        extras = zip(epilogue.operands.extras, self.product.extras, strict=True)
        self.extras = [self._reader(extra, values, at) for extra, values in extras]

    def _reader(self, extra: Extra, values: Any, at: tuple[Scalar, Scalar]) -> Reader:
        epilogue = self.epilogue
        return Reader(extra, values, at, self.out, epilogue.step, epilogue.chunk, epilogue.operands.scalar)

    def _reader_of_c(self, at: tuple[Scalar, Scalar]) -> Reader | None:
        operands = self.epilogue.operands
        if operands.c is CSource.NONE:
            return None
        along = Along.MN if operands.c_major is COrder.ROW else Along.NM
        bytes = max(operands.added.bytes, operands.out_bytes)
        extra = Extra(operands.added, along, bytes, in_place=operands.c is CSource.IN_PLACE)
        return self._reader(extra, self.product.c, at)

    def _writes(self, rows: PointerValue) -> tuple[PointerValue, list[tuple[int, list[int]]]]:
        """Return the address of a thread's first value, and the byte offset and register numbers of each pair of
        neighbours. Transposed accumulators have no neighbours in a row."""
        type, layout = self.epilogue.operands.staged, self.epilogue.layout
        copy = make_tiled_copy_c(f"st.shared.{type.bytes}", layout.mma, type.bits)
        held = composition(self.epilogue.held, layout.order)
        partition = in_bytes(copy.partition_d(held, "shared"), type.bytes)
        corner = rows + copy.get_slice(pd.laneid).partition_d(held, "shared", bytes=True)(0, 0, 0)
        distances = {partition(0, (0, i), 0, 0): i for i in range(copy.values)}
        together = 1 if layout.is_transposed else 2
        first = [at for at in distances if at % (together * type.bytes) == 0]
        return corner, [(at, [distances[at + n * type.bytes] for n in range(together)]) for at in first]

    def _reads(self, rows: PointerValue) -> tuple[PointerValue, Scalar, Scalar]:
        """Return the address of a thread's first chunk, and its row and column."""
        epilogue, type = self.epilogue, self.epilogue.operands.staged
        lanes = Layout((epilogue.step, epilogue.lanes), (epilogue.lanes, 1))
        width = min(WIDEST, epilogue.chunk * type.bytes)
        copy = make_tiled_copy(f"ld.shared.{width}", lanes, (1, epilogue.chunk), type.bits)
        slice = copy.get_slice(pd.laneid)
        row, column = (c(0, 0, 0) for c in slice.coordinates((epilogue.layout.rows, epilogue.layout.strip)))
        return rows + slice.partition_s(epilogue.staged, "shared", bytes=True)(0, 0, 0), row, column

    def stage(self, registers: Sequence[Scalar]) -> None:
        """Write a group of rows to shared memory, in pairs of neighbours."""
        values, type = [self._scaled(register) for register in registers], self.epilogue.operands.staged
        for distance, neighbours in self.written:
            write_words((self.corner + distance).bitcast(type), pack([values[n] for n in neighbours], type))

    def _scaled(self, value: Scalar) -> Scalar:
        """Return alpha times an accumulator, with the function applied if it needs nothing else."""
        scalar = self.epilogue.operands.scalar
        value = (value if value.type is scalar else value.to(scalar)) * self.product.alpha
        return self._apply(value) if self.epilogue.is_final else value

    def _apply(self, value: Scalar, *extras: Scalar) -> Scalar:
        function = self.epilogue.function
        return traced(function, value, *extras) if function else value

    def write(self, first: int, row: int) -> None:
        """Store one chunk a lane, of rows `first` and the following, which are staged from `row` on."""
        epilogue, type = self.epilogue, self.epilogue.operands.staged
        for column in epilogue.columns:
            with pd.if_(self.out.exists((self.rows_left > first) & (self.columns_left > column))):
                address = (self.chunks + (row * epilogue.pitch + column) * type.bytes).bitcast(type)
                words = read_words(address, epilogue.chunk, type)
                if not epilogue.is_final:
                    words = pack(list(self._finished(words, first, column)), epilogue.operands.output)
                write_words(self.out.pointer + column, words, epilogue.chunk)
        for running in {id(r): r for r in (self.out, *self._running())}.values():
            running.advance()

    def _running(self) -> list[RowPointer]:
        """Return the pointers to matrices with the layout of the output."""
        readers = [*filter(None, [self.c]), *self.extras]
        return [reader.running for reader in readers if reader.extra.along is Along.MN]

    def _finished(self, values: Sequence[Scalar], first: int, column: int) -> Iterator[Scalar]:
        """Yield the elements of a chunk, in the type of alpha."""
        if self.c:
            before = self.c.read(first, column)
            values = [v + self.product.beta * w for v, w in zip(values, before, strict=True)]
        extras = [extra.read(first, column) for extra in self.extras]
        for number, value in enumerate(values):
            yield self._apply(value, *(extra[number] for extra in extras))
