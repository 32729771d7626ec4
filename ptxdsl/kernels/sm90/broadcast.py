"""Operands of an epilogue with one value for a row or a column, read into registers in the fragment of the
accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ptxdsl as pd
from ptxdsl import b32
from ptxdsl.kernels.product.operands import Along, Extra
from ptxdsl.kernels.product.product import Product
from ptxdsl.kernels.product.words import read_words, unpack
from ptxdsl.kernels.sm90.fragments import Axis
from ptxdsl.kernels.sm90.tiling import MATRIX
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import Type

NEIGHBOURS = 2 * MATRIX  # columns or rows that are requested at a time
EPILOGUE_REGISTERS = 40  # of a thread, in addition to accumulators and operands


class BroadcastOperands:
    """Row and column operands of an epilogue in the fragment of a thread, which holds, of each 16×8 accumulators, two
    neighbours across and those eight rows further down. Indices are clamped to the last row or column: what is out of
    bounds is not stored.

    They are requested before the accumulators are complete, in pairs if they are aligned, for a whole tile or for the
    boxes that are staged together: one read for each 16×16 would stall. If accumulators leave no registers for that,
    they are read so.
    """

    def __init__(self, traits: WarpgroupTraits, *reaches: int) -> None:
        """`reaches` are the numbers of columns, or of rows if transposed, over which operands can be read at a time;
        the largest one for which registers are left is used."""
        self.scalar, self.extras = traits.operands.scalar, traits.operands.extras
        self.along = along = Along.M if traits.tiling.swap_ab else Along.N
        words = [_words(extra) for extra in self.extras if extra.along is along]
        registers = sum(max(1, type.bits // 32) for types in words for type in types)
        left = (
            traits.tiling.multiplying_registers
            - traits.tiling.held_accumulators
            - traits.held_words
            - EPILOGUE_REGISTERS
        )
        if traits.deferred_columns:
            left, reaches = min(left, traits.deferred_columns // MATRIX), reaches[-1:]
        ahead = [reach for reach in reaches if registers * reach // MATRIX <= left]
        self.is_ahead, self.reach = bool(ahead), ahead[0] if ahead else NEIGHBOURS
        self.offsets = range(0, self.reach, MATRIX)
        # The same registers for all reads: a kernel may have several mainloops
        self.words = [[[pd.var(type) for type in types] for _ in self.offsets] for types in words]
        late = (0,) if traits.deferred_columns else ()  # read before they are written if no boxes are deferred
        self.scalars = [
            [pd.var(extra.type, *late) for _ in range(2)] for extra in self.extras if extra.along is not along
        ]

    def read(self, product: Product, down: Axis, across: Axis, begin: int) -> None:
        """Request the operands of the boxes from `begin` across, and those of all rows with the first boxes."""
        if begin % self.reach:
            return
        words, values = iter(self.words), iter(self.scalars)
        row, column = down.first + pd.laneid // 4, across.first + pd.laneid % 4 * 2 + begin
        for extra, vector in zip(self.extras, product.extras, strict=True):
            if extra.along is self.along:
                for offset, registers in zip(self.offsets, next(words), strict=True):
                    _set(registers, _pair(extra, vector, column + offset, across.length))
            elif not begin:
                at = row, row + MATRIX
                _set(next(values), [_value(vector, each, down.length) for each in at])

    def values(self, offset: int) -> list[list[Scalar]]:
        """Return the values of each operand for eight accumulators, those of 16 columns from `offset` on."""
        words, values = iter(self.words), iter(self.scalars)
        return [
            self._neighbours(extra, next(words)[offset % self.reach // MATRIX :][:2])
            if extra.along is self.along
            else self._lines(next(values))
            for extra in self.extras
        ]

    def _neighbours(self, extra: Extra, words: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        left, right = ([self._converted(value) for value in unpack(each, extra.type)] for each in words)
        return [*left, *left, *right, *right]

    def _lines(self, values: Sequence[Scalar]) -> list[Scalar]:
        upper, lower = map(self._converted, values)
        return [upper, upper, lower, lower] * 2

    def _converted(self, value: Scalar) -> Scalar:
        return value if value.type is self.scalar else value.to(self.scalar)


def _is_paired(extra: Extra) -> bool:
    """Return whether two neighbours can be read at a time."""
    return extra.bytes >= 2 * extra.type.bytes


def _words(extra: Extra) -> list[Type]:
    """Return the types of the registers of two neighbours."""
    return [b32] if extra.type.bits == 16 and _is_paired(extra) else [extra.type] * 2


def _pair(extra: Extra, vector: Any, at: Scalar, count: Scalar) -> list[Scalar]:
    """Read two neighbours into registers."""
    if _is_paired(extra):
        return read_words(vector.pointer + pd.min(at, count - 2), 2, extra.type)
    return [_value(vector, at + n, count) for n in range(2)]


def _value(vector: Any, at: Scalar, count: Scalar) -> Scalar:
    return (vector.pointer + pd.min(at, count - 1)).load()


def _set(registers: Sequence[pd.Var], values: Sequence[Scalar]) -> None:
    for register, value in zip(registers, values, strict=True):
        register.set(value)
