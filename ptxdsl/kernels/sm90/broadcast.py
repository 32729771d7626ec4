"""Operands of an epilogue with one value for a row or a column, read into registers in the fragment of the
accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.product.operands import Along, Extra
from ptxdsl.kernels.product.product import Product
from ptxdsl.kernels.product.words import read_words, unpack
from ptxdsl.kernels.sm90.fragments import Axis
from ptxdsl.kernels.sm90.tiling import MATRIX
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar


class BroadcastOperands:
    """Row and column operands of an epilogue in the fragment of a thread, which holds, of each 16×8 accumulators, two
    neighbours across and those eight rows further down. Indices are clamped to the last row or column: what is out of
    bounds is not stored.

    Those across are read for each 16×16 accumulators, in pairs if they are aligned; those down once for a tile.
    """

    def __init__(self, traits: WarpgroupTraits) -> None:
        self.scalar, self.extras = traits.operands.scalar, traits.operands.extras
        self.along = Along.M if traits.tiling.swap_ab else Along.N
        down = [extra.type for extra in self.extras if extra.along is not self.along]
        # The same registers for all reads: a kernel may have several mainloops
        self.down = [[pd.var(type) for _ in range(2)] for type in down]

    def read(self, product: Product, down: Axis, across: Axis, begin: int) -> list[list[Scalar]]:
        """Return the values of each operand for eight accumulators, those of 16 columns from `begin` on."""
        row, column = down.first + pd.laneid // 4, across.first + pd.laneid % 4 * 2 + begin
        values, held = list[list[Scalar]](), iter(self.down)
        for extra, vector in zip(self.extras, product.extras, strict=True):
            if extra.along is self.along:
                values.append(
                    self._neighbours(extra, [_pair(extra, vector, column + n, across.length) for n in (0, MATRIX)])
                )
                continue
            registers = next(held)
            if not begin:
                for register, at in zip(registers, (row, row + MATRIX), strict=True):
                    register.set(_value(vector, at, down.length))
            values.append(self._lines(registers))
        return values

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


def _pair(extra: Extra, vector: Any, at: Scalar, count: Scalar) -> list[Scalar]:
    """Read two neighbours into registers."""
    if _is_paired(extra):
        return read_words(vector.pointer + pd.min(at, count - 2), 2, extra.type)
    return [_value(vector, at + n, count) for n in range(2)]


def _value(vector: Any, at: Scalar, count: Scalar) -> Scalar:
    return (vector.pointer + pd.min(at, count - 1)).load()
