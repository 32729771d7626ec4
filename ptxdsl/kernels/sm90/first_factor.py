"""The first factor of wgmma in registers: MN-major float32, which wgmma cannot read from shared memory, and float32
that is rounded to tf32 on the way, since wgmma truncates.

Rows are those of A, or columns of B if the factors are swapped. In one step along K a warp has 16 of the 64 rows of a
warpgroup, and 8 of K. A lane has four registers: the first two belong to rows 8 apart and to the first four of K, the
last two to the same rows and the last four of K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, b32, f32, u32
from ptxdsl.kernels.product.operands import Major, Side
from ptxdsl.kernels.product.words import round_to_tf32
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import DEPTH_BYTES, GROUP_ROWS, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

ROWS, WORDS, CHUNK = 8, 4, 16  # rows and words of one register of a warp, and bytes of such a row
ROW_BLOCK_BYTES = GROUP_ROWS * LINE_BYTES  # between blocks of 64 rows in the tile


class FirstFactor(ABC):
    """Loads the fragments of a warp, for a block of 64 rows and a step along K."""

    def __init__(self, traits: WarpgroupTraits) -> None:
        self.depth, self.rounds = traits.tile[2], traits.operands.rounded is not Side.NONE

    def find(self, memory: PointerValue, row_block: Any) -> None:
        """Locate the fragments. `memory` is the tile in the first stage of the ring, `row_block` the first 64-row block
        of this warpgroup."""
        self.memory = memory.bitcast(b8) + pd.cast(row_block, u32) * ROW_BLOCK_BYTES
        self.first = self._first(pd.tid.x % WARP, pd.warpid % (WARPGROUP // WARP))

    def load(self, behind: Scalar, row_block: int, step: int) -> list[Scalar]:
        """Return the registers of a step, from the stage `behind` bytes after the first."""
        registers = self._load(self.memory + behind + row_block * ROW_BLOCK_BYTES, step)
        return [round_to_tf32(register).bitcast(b32) for register in registers] if self.rounds else registers

    @abstractmethod
    def _first(self, lane: Scalar, warp: Scalar) -> Scalar:
        """Return the byte that a lane reads first, in a block of 64 rows."""

    @abstractmethod
    def _load(self, row_block: PointerValue, step: int) -> list[Scalar]:
        """Load the registers of a step along K without conversion."""


class KMajorFactor(FirstFactor):
    """K-major tiles, of 128 bytes a row: four ldmatrix matrices, whose rows are chunks of 16 bytes."""

    def _first(self, lane: Scalar, warp: Scalar) -> Scalar:
        row, chunk = warp * WARP_ROWS + lane % WARP_ROWS, lane // WARP_ROWS
        return row * LINE_BYTES + (chunk ^ lane % ROWS) * CHUNK

    def _load(self, row_block: PointerValue, step: int) -> list[Scalar]:
        return list(pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(row_block + (self.first ^ step * DEPTH_BYTES)))


class MnMajorFactor(FirstFactor):
    """MN-major tiles, whose rows of 128 bytes have 32 rows of the factor for one K: single words. Lanes of the last
    four of eight rows read the last four of K first; otherwise two lanes would read from each bank."""

    def _first(self, lane: Scalar, warp: Scalar) -> Scalar:
        row, box, chunk = lane // WORDS, warp // 2, warp % 2 * 4 + lane // CHUNK
        line = lane % WORDS + lane // CHUNK * WORDS
        self.is_low = row < ROWS // 2
        return (box * self.depth + line) * LINE_BYTES + (chunk ^ line) * CHUNK + row % WORDS * f32.bytes

    def _load(self, row_block: PointerValue, step: int) -> list[Scalar]:
        """The words of a lane differ in one bit of the row, which selects the swizzle, and in one bit of the chunk."""
        lines, next_rows = row_block + step * ROWS * LINE_BYTES, ROWS * f32.bytes
        first, second = (
            [pd.ptx.ld.shared.b32(lines + (self.first ^ rows ^ other)) for rows in (0, next_rows)]
            for other in (0, WORDS * (LINE_BYTES + CHUNK))
        )
        low = [pd.ptx.selp.b32(*pair, self.is_low) for pair in zip(first, second, strict=True)]
        return low + [pd.ptx.selp.b32(*pair, self.is_low) for pair in zip(second, first, strict=True)]


def first_factor(traits: WarpgroupTraits) -> FirstFactor:
    """Return the loader for the layout of the tile."""
    tile = traits.b if traits.tiling.swap_ab else traits.a
    return (KMajorFactor if tile.major is Major.K else MnMajorFactor)(traits)
