"""Scales of the rows of A and the columns of B, by which accumulators are multiplied at the end of a tile.

A thread holds four accumulators of each 16×8: columns 2·(lane % 4) and the next, in rows lane / 4 and lane / 4 + 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl import f32, s32, s64
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.sm90.broadcast import EPILOGUE_REGISTERS
from ptxdsl.kernels.sm90.mma import StageMma
from ptxdsl.kernels.sm90.tiling import (
    GROUP_ROWS,
    REGISTER_FILE,
    WARP,
    WARP_ROWS,
    WARPGROUP,
)
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.epilogue import Epilogue
from ptxdsl.kernels.tiles.schedule import Walk
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

GROUP_UNIT = 16  # elements along K: tensor maps of 8-bit floats start at a multiple of it
BLOCK = 128  # elements along K, and columns of B, that share a scale; along K, one stage of the ring
MATRIX = 8  # rows and columns of an accumulator matrix
ROWS = 2  # of a thread, among the 64 of its warpgroup
LANES = 4  # with the same rows

Mainloop: TypeAlias = "Callable[[pd.Ring, StageMma, Epilogue, Walk, WorkTile], TileAccumulators]"
"""Return the accumulators of a tile, as `gemm.multiply_tiles`."""


class ScaleLine(NamedTuple):
    """The scales of the rows of A or the columns of B: the first scale of the matrix, the elements between scales, and
    the numbers of the first scale of a tile and of the end."""

    pointer: PointerValue
    apart: Index
    first: Index
    last: Scalar


class Scales:
    """The addresses of the scales of a thread's accumulators.

    `p` has `scale_a` and `scale_b`. `located(work)` returns the group of a tile, and the number of the first row of the
    group among all `rows` of its matrix of scales. `down` and `across` are the thread's first row and column in a
    product of wgmma, which are a column and a row of a swapped tile.
    """

    def __init__(
        self,
        p: Any,
        traits: WarpgroupTraits,
        consumer: pd.warpgroup,
        rows: Scalar,
        located: Callable[[WorkTile], tuple[Index, Index]],
    ) -> None:
        self.a, self.b, self.rows, self.located = p.scale_a, p.scale_b, rows, located
        self.tiling, self.tile_n = traits.tiling, traits.tile[1]
        lane = pd.laneid
        warp = consumer.thread % WARPGROUP // WARP
        of_warpgroup = consumer.index * (0 if traits.tiling.pingpong else GROUP_ROWS)
        self.down = of_warpgroup + warp * WARP_ROWS + lane // 4
        self.across = lane % 4 * 2

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile by the mainloop of unscaled products: the scales of tensors are part of
        alpha."""
        return plain(ring, mma, epilogue, walk, work)

    def rows_of(self, work: WorkTile) -> list[Any]:
        """Return pointers to the first scales of a thread's two rows."""
        line = self.along_m(work)
        rows = [pd.min(line.first + self.down + further, line.last - 1) for further in (0, MATRIX)]
        return [line.pointer + row.to(s64) * line.apart for row in rows]

    def along_m(self, work: WorkTile) -> ScaleLine:
        """Return the first scales of the rows of a tile."""
        group, first = self.located(work)
        matrix = self.a.pointer + pd.cast(group, s64) * self.a.apart
        return ScaleLine(matrix, self.a.line, first + work.first[0], self.rows)

    def columns_of(self, work: WorkTile) -> Any:
        """Return a pointer to the scales of B, or of the group's matrix of B."""
        group, _ = self.located(work)
        return self.b.pointer + pd.cast(group, s64) * self.b.apart

    def along_n(self, work: WorkTile) -> ScaleLine:
        """Return the scales of the columns of a tile, which are contiguous."""
        return ScaleLine(self.columns_of(work), 1, work.first[1], work.product.n)


class RowScales(Scales):
    """One scale for each row of A and each column of B. If registers are left next to the accumulators, all are loaded
    before the mainloop, which hides the latency; otherwise those across are loaded after it."""

    may_be_ahead = True

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        tiling, (_, width) = traits.tiling, traits.tiling.multiplied
        self.row_blocks, self.width = tiling.row_blocks, width
        self.of_down = [pd.var(f32, 0.0) for _ in range(self.row_blocks * ROWS)]
        self.is_ahead = self.may_be_ahead and width // LANES <= _registers_left(traits)
        self.of_across = [pd.var(f32, 0.0) for _ in range(width // LANES if self.is_ahead else 0)]

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, each multiplied by its scales."""
        self.fetch(work)
        return self.scaled(plain(ring, mma, epilogue, walk, work), work)

    def fetch(self, work: WorkTile) -> None:
        """Load the scales of a tile; those across only if they are loaded before the mainloop."""
        line, _ = self._lines(work)
        offsets = [row_block * GROUP_ROWS + further for row_block in range(self.row_blocks) for further in (0, MATRIX)]
        self._read(self.of_down, line, self.down, offsets)
        if self.is_ahead:
            self._read_across(self.of_across, work, range(0, self.width, MATRIX))

    def scaled(self, accumulators: TileAccumulators, work: WorkTile) -> TileAccumulators:
        """Multiply each accumulator by its two scales, after `fetch`."""
        for first in range(0, self.width, MATRIX):
            across = self.of_across[first // LANES :][:2]
            if not self.is_ahead:
                across = [pd.var(f32, 0.0) for _ in range(2)]  # new ones, so that no read waits for the one before
                self._read_across(across, work, [first])
            for number, row_block in enumerate(accumulators.row_blocks(self.row_blocks)):
                down = self.of_down[number * ROWS :][:ROWS]
                for n, register in enumerate(row_block.registers[first // MATRIX * 4 :][:4]):
                    register.set(register * down[n // 2] * across[n % 2])
        return accumulators

    def _lines(self, work: WorkTile) -> tuple[ScaleLine, ScaleLine]:
        """Return the scales down and across a product of wgmma."""
        along_m, along_n = self.along_m(work), self.along_n(work)
        return (along_n, along_m) if self.tiling.swap_ab else (along_m, along_n)

    def _read_across(self, scales: Sequence[Var], work: WorkTile, firsts: Iterable[int]) -> None:
        offsets = [first + right for first in firsts for right in (0, 1)]
        self._read(scales, self._lines(work)[1], self.across, offsets)

    def _read(self, scales: Sequence[Var], line: ScaleLine, begin: Scalar, offsets: Sequence[int]) -> None:
        """Load the scales at these offsets from number `begin` of the tile, none past the end."""
        first = line.first + begin
        pointer, left = line.pointer + first.to(s64) * line.apart, (line.last - first).to(s32)
        for scale, offset in zip(scales, offsets, strict=True):
            pd.ptx("ld.global.f32", pointer + offset * line.apart, out=scale, guard=left > offset)


def _registers_left(traits: WarpgroupTraits) -> int:
    """Return the number of a thread's registers for scales loaded before the mainloop: 0 with epilogue operands, which
    may be loaded early too. Without setmaxnreg, two blocks must fit a multiprocessor."""
    if traits.operands.extras:
        return 0
    most = traits.tiling.role_registers[1] or REGISTER_FILE // (2 * traits.threads)
    return (
        most - traits.tiling.held_accumulators - traits.held_words - traits.deferred_accumulators - EPILOGUE_REGISTERS
    )
