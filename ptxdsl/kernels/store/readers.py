"""Reads of C and of the operands of an epilogue, next to the elements of the output."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import s32, s64, u32
from ptxdsl.kernels.product.operands import Along, Extra
from ptxdsl.kernels.product.product import ScatteredView, View
from ptxdsl.kernels.product.words import read
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
