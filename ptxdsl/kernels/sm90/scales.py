"""Scales of 8-bit floats on their way into sums: by rows and columns at the end of a tile, or by blocks along K.

A thread holds four of each 16×8 sums: columns 2·(lane % 4) and the next, of rows lane / 4 and eight further down.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, TypeAlias

import ptxdsl as pd
from ptxdsl import f32, s32, s64, u32
from ptxdsl.kernels.sm90.mma import WarpgroupMma
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.sums import Sums
from ptxdsl.kernels.tiles.product import Index, Work
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

BLOCK = 128  # of K, and of columns of B, that share a scale; that much of K is one stage of the ring
MATRIX = 8  # rows and columns of a matrix of sums
Multiply: TypeAlias = Callable[[Work], Sums]


class Scales:
    """Where the scales of a warpgroup's rows and columns are. `p` has `scale_a` and `scale_b`; `located(work)` is the
    group of a tile and the first of its rows among all that lie with them, of which there are `rows`."""

    def __init__(
        self,
        p: Any,
        traits: WarpgroupTraits,
        consumer: pd.warpgroup,
        rows: Scalar,
        located: Callable[[Work], tuple[Index, Index]],
    ) -> None:
        self.a, self.b, self.rows, self.located = p.scale_a, p.scale_b, rows, located
        self.tile_n = traits.tile[1]
        lane = pd.laneid
        warp = consumer.thread % WARPGROUP // WARP
        self.row = consumer.index * GROUP_ROWS + warp * WARP_ROWS + lane // 4
        self.column = lane % 4 * 2

    def rows_of(self, work: Work) -> list[Any]:
        """Pointers to the first scales of a thread's two rows."""
        group, first = self.located(work)
        rows = [pd.min(first + work.first[0] + self.row + down, self.rows - 1) for down in (0, MATRIX)]
        matrix = self.a.pointer + pd.cast(group, s64) * self.a.apart
        return [matrix + row.to(s64) * self.a.line for row in rows]

    def columns_of(self, work: Work) -> Any:
        """A pointer to the scales of B, or of the matrix of B of a group."""
        group, _ = self.located(work)
        return self.b.pointer + pd.cast(group, s64) * self.b.apart


class RowScales(Scales):
    """One for each row of A and column of B; those of columns lie side by side."""

    def scaled(self, sums: Sums, work: Work) -> Sums:
        """The sums, each times both of its scales."""
        of_rows, registers = [pointer[0] for pointer in self.rows_of(work)], sums.registers
        column = work.first[1] + self.column
        columns, left = self.columns_of(work) + column.to(s64), (work.product.n - column).to(s32)
        for first in range(0, self.tile_n, MATRIX):
            of_columns = [self._read(columns + first + right, left > first + right) for right in (0, 1)]
            for number, register in enumerate(registers[first // MATRIX * 4 :][:4]):
                register.set(register * of_rows[number // 2] * of_columns[number % 2])
        return sums

    def _read(self, scale: PointerValue, exists: Scalar) -> Scalar:
        """The scale of a column; 0 behind the last one."""
        value = pd.var(f32, 0.0)
        pd.ptx("ld.global.f32", scale, out=value, guard=exists)
        return value


class BlockScales(Scales):
    """One for 128 of K of each row of A, and for 128 of K by 128 columns of B. The products of a stage have sums of
    their own, which are scaled and added to those of the tile: nothing is lost to what the tensor cores keep of 8-bit
    floats over a long K.

    All products of a warpgroup end before the next begin; the other warpgroup has the tensor cores meanwhile.
    """

    def multiply(self, ring: pd.Ring, mma: WarpgroupMma, work: Work) -> Sums:
        """The sums of a tile."""
        sums, products = Sums(mma.layout), Sums(mma.layout)
        of_rows, columns = self.rows_of(work), self.columns_of(work)
        chunks = [self._chunk(work, first) for first in range(0, self.tile_n, self.width)]
        for iteration in pd.range(pd.cast(work.begin, u32), work.end, unroll=1):
            mma.multiply(products, ring.wait(), accumulate=False)
            k = iteration.to(s64)
            a = [pointer[k * self.a.step] for pointer in of_rows]
            b = [columns[k * self.b.step + chunk] for chunk in chunks]
            mma.wait(0)
            ring.release()
            self._add(sums, products, a, b)
        return sums

    @property
    def width(self) -> int:
        """Columns of a tile that have one scale, wherever the tile begins."""
        return gcd(self.tile_n, BLOCK)

    def _chunk(self, work: Work, first: int) -> Scalar:
        """Where the scales of some columns of the tile are."""
        column = pd.min(work.first[1] + first, work.product.n - 1)
        return (column // BLOCK).to(s64) * self.b.line

    def _add(self, sums: Sums, products: Sums, a: list[Scalar], b: list[Scalar]) -> None:
        each = self.width // MATRIX * 4
        for number, scale in enumerate(b):
            factors = [of_row * scale for of_row in a]
            pairs = zip(sums.registers[number * each :][:each], products.registers[number * each :][:each], strict=True)
            for n, (total, product) in enumerate(pairs):
                total.set(pd.ptx.fma.rn.f32(product, factors[n % 4 // 2], total))
