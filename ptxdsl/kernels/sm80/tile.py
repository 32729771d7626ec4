"""Operand tiles in shared memory: their layouts and copies.

A tile has an `mn` extent (M for A, N for B) and a `k` extent, with the major dimension of global memory. A swizzle
keeps the rows that are read together in different banks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxdsl import b8
from ptxdsl.kernels.product.operands import Major
from ptxdsl.layout import Layout, Swizzle, TiledCopy, composition, make_tiled_copy, slice_
from ptxdsl.layout.number import Coordinate
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type

CHUNK_BYTES = 16  # one row of an 8x8 matrix, as ldmatrix takes it
LINE_BYTES = 128  # all banks
SWIZZLED_ROWS = 8  # the period of swizzles
WARP_TILE = 16  # the mn extent of one ldmatrix.x4


@dataclass(frozen=True)
class OperandTile:
    """The tile of one operand. `major` is its contiguous dimension; `copy_bytes` is the width of a load
    from global memory, less than 16 if rows are not aligned to that."""

    type: Type
    mn: int
    k: int
    major: Major
    copy_bytes: int

    @property
    def rows(self) -> int:
        return self.mn if self.major is Major.K else self.k

    @property
    def row(self) -> int:
        """The elements of a row."""
        return self.k if self.major is Major.K else self.mn

    @property
    def bytes(self) -> int:
        return self.mn * self.k * self.type.bytes

    @property
    def chunk(self) -> int:
        """The elements of one load."""
        return self.copy_bytes // self.type.bytes

    @property
    def by_matrices(self) -> bool:
        """True if ldmatrix can load its fragments; MN-major, it transposes 16-bit elements only."""
        return self.type.bits == 16 or (self.major is Major.K and self.type.bits < 64)

    @property
    def by_pairs(self) -> bool:
        """True if ldmatrix transposes pairs of its elements, which are separated afterwards."""
        return self.type.bits == 8 and self.major is Major.MN

    @property
    def swizzle(self) -> Swizzle:
        """The swizzle. Eight rows of 16 bytes, or four of 32 if threads read single elements, are in different banks;
        of the eight rows of pairs, two and two are.

        Rows of 2**of_row times an odd number of pieces repeat in the banks after 2**(of_line - of_row) rows, and the
        bits that select the swizzle count these repetitions; or rows, if each row begins at the same bank. Pieces of a
        row are exchanged within aligned groups of 2**bits, which do not reach into another row.
        """
        piece = CHUNK_BYTES if self.by_matrices or self.by_pairs else 2 * CHUNK_BYTES
        base, of_line = _twos(piece // self.type.bytes), _twos(LINE_BYTES // piece)
        of_row = _twos(max(1, self.row * self.type.bytes // piece))
        return Swizzle(min(of_line, of_row), base, max(of_line, of_row))

    @property
    def layout(self) -> AnyLayout:
        """The layout (mn, k) → element."""
        strides = (self.k, 1) if self.major is Major.K else (1, self.mn)
        swizzled: AnyLayout = composition(self.swizzle, Layout((self.mn, self.k), strides))
        return swizzled

    def copy(self, threads: int) -> TiledCopy:
        """Return the copy to shared memory by at most `threads` threads: neighbours in a row, and as many rows as that
        gives."""
        columns = self.row // self.chunk
        apart = self._rows_at_a_time(max(1, threads // columns))
        atom = f"cp.async.{self.copy_bytes}" if self.copy_bytes >= 4 else f"st.shared.{self.copy_bytes}"
        if self.major is Major.K:
            return make_tiled_copy(atom, Layout((apart, columns), (columns, 1)), (1, self.chunk), self.type.bits)
        return make_tiled_copy(atom, Layout((columns, apart)), (self.chunk, 1), self.type.bits)

    def _rows_at_a_time(self, most: int) -> int:
        """Return the largest divisor of the rows that is at most `most`: a multiple of eight if possible, after which
        swizzles repeat, so that a thread's addresses are equally far apart for all threads."""
        parts = [part for part in range(1, min(self.rows, most) + 1) if self.rows % part == 0]
        return max([part for part in parts if part % SWIZZLED_ROWS == 0] or parts)


def _twos(number: int) -> int:
    """Return the exponent of 2 in a number."""
    return (number & -number).bit_length() - 1


class Addresses:
    """The addresses of a thread's part of a tile in shared memory: few base registers, and constant distances from
    them.

    `partition` is (threads, …) → byte; coordinates that are equally far apart for all threads share a register.
    """

    def __init__(self, memory: PointerValue, partition: AnyLayout, thread: Scalar) -> None:
        self._memory, self._partition, self._thread = memory.bitcast(b8), partition, thread
        self._all = np.arange(partition[0].size)
        self._offsets: list[np.ndarray] = []
        self.bases: list[PointerValue] = []

    def of(self, *coordinate: Coordinate) -> tuple[int, int]:
        """Return (number of the base, bytes after it)."""
        offsets = self._partition(self._all, *coordinate)
        for number, known in enumerate(self._offsets):
            distance = offsets - known
            if (distance == distance[0]).all():
                return number, int(distance[0])
        part = slice_(self._partition, self._thread, *[None] * (self._partition.rank - 1))
        self._offsets.append(offsets)
        self.bases.append(self._memory + part(*coordinate))
        return len(self.bases) - 1, 0
