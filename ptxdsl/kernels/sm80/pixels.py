"""The image operand of an implicit-GEMM convolution: a matrix that is not in memory.

Its rows are output pixels (n, p, q), its columns are window positions and channels (r, s, c), channels innermost. An
element is the input at (n, p·stride - pad + r·dilation, q·stride - pad + s·dilation, c), or 0 outside the image. A
chunk is within one window position, so that it is in or out of bounds as a whole.
"""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import b8, b32, b64, s32, s64, u32
from ptxdsl.kernels.product.product import Index, View
from ptxdsl.kernels.sm80.copies import TileCopies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.traits.parameters import Geometry
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

NOWHERE = 1 << 31  # an image row that no image has, for rows past the last output pixel
ROW_BYTES = 16  # of an entry: an address and two coordinates
KEPT = 8  # entries of a thread that stay in registers


class PixelRows:
    """The first input pixels of the windows of a tile's output pixels, computed once by all threads of the block.

    A row of the table is 16 bytes of shared memory: the address of the window's first pixel, which may be outside the
    array, and its image row and column, which may be negative.
    """

    def __init__(self, count: int, geometry: Geometry) -> None:
        self.count, self.geometry = count, geometry
        self.table = pd.shared(b64, (count, 2), name="shared")
        self.memory = self.table.address().bitcast(b8)

    def find(self, x: PointerValue, first: Index, threads: int) -> None:
        """Fill the table for the rows from `first` on. The table must be free for all threads."""
        for start in range(0, self.count, threads):
            row = pd.tid.x + start
            with pd.if_(row < self.count):
                pointer, line, column = _window(x, self.geometry, first + row)
                begin = pd.pack(line.bitcast(b32), column.bitcast(b32))
                pd.ptx.st.shared.v2.b64(self.table.address(row, 0), [pointer.value, begin])
        pd.ptx.bar.sync(0)

    def read(self, distance: int) -> tuple[PointerValue, Scalar, Scalar]:
        """Return (address, image row, column) of the entry `distance` bytes from the first."""
        pointer, begin = pd.ptx.ld.shared.v2.b64(self.memory + distance)
        return pd.pointer(pointer, b8), *pd.unpack(begin, u32)  # type: ignore[return-value]


def _window(x: PointerValue, geometry: Geometry, row: Scalar) -> tuple[PointerValue, Scalar, Scalar]:
    """Return the address, image row and column of the first pixel of an output pixel's window."""
    g = geometry
    above, q = row // g.out_width, row % g.out_width
    n, p = above // g.out_height, above % g.out_height
    line, column = (p * g.stride_h - g.pad_top).bitcast(s32), (q * g.stride_w - g.pad_left).bitcast(s32)
    at = n.to(s64) * g.image + line.to(s64) * g.line + column.to(s64) * g.pixel
    return x + at, pd.select(row < g.m, line.bitcast(u32), NOWHERE), column.bitcast(u32)


class PixelCopies(TileCopies):
    """The share of a thread in loads of the image operand. It advances along k without a division: (r, s, c) count as
    the digits of a number, and the distance from the window's first pixel follows them."""

    is_quick = False  # all threads locate pixels together

    def __init__(self, traits: WarpTraits, memory: SharedMemory, geometry: Geometry) -> None:
        super().__init__(traits.a, memory.a, traits.threads)
        self.geometry, self.threads = geometry, traits.threads
        self.rows, self.first = PixelRows(traits.tile[0], geometry), self.mn * ROW_BYTES
        self.k_left = pd.var(s32)
        self.channel = pd.var(u32)
        self.column = pd.var(u32)
        self.line = pd.var(u32)
        self.distance = pd.var(s64)
        self.kept: list[tuple[PointerValue, Scalar, Scalar]] = []

    def seek(self, matrix: View, mn: tuple[Index, Index], k: tuple[Index, Index]) -> None:
        """Go to the tile at output pixel mn[0] and k[0], whose K ends at k[1]."""
        g, begin = self.geometry, k[0] + self.k
        self.rows.find(matrix.pointer, mn[0], self.threads)
        self.k_left.set((k[1] - begin).to(s32))
        position, channel = begin // g.channels, begin % g.channels
        line, column = position // g.window_width * g.dilation_h, position % g.window_width * g.dilation_w
        at = line.to(s64) * g.line + column.to(s64) * g.pixel + channel.to(s64)
        self.channel.set(channel)
        self.column.set(column)
        self.line.set(line)
        self.distance.set(at * self.tile.type.bytes)
        self.kept = [self._row(n) for n in range(len(self.copies))] if len(self.copies) <= KEPT else []

    def _row(self, number: int) -> tuple[PointerValue, Scalar, Scalar]:
        return self.rows.read(self.first + number * self.apart * ROW_BYTES)

    def fetch(self, slot: Index) -> None:
        """Start the loads of the next tile to a slot of the ring, with zeros outside the image."""
        g, bases = self.geometry, [base + slot for base in self.addresses.bases]
        height = pd.select(self.k_left > 0, g.height, 0)
        for number, (base, distance) in enumerate(self.copies):
            pointer, line, column = self.kept[number] if self.kept else self._row(number)
            inside = (line + self.line < height) & (column + self.column < g.width)
            self.bring(number, bases[base] + distance, pointer + self.distance, ~inside)
        self._walk()

    def _walk(self) -> None:
        """Advance by a tile along k. Each digit and each step is less than its base, so one carry is enough."""
        g = self.geometry
        self.k_left -= self.tile.k
        self.channel += g.step_c
        self.column += g.step_w
        self.line += g.step_h
        self.distance += g.step
        carried = self.channel >= g.channels
        self.channel -= pd.select(carried, g.channels, 0)
        self.column += pd.select(carried, g.dilation_w, 0)
        self.distance += pd.select(carried, g.carry_w, 0)
        carried = self.column >= g.turn
        self.column -= pd.select(carried, g.turn, 0)
        self.line += pd.select(carried, g.dilation_h, 0)
        self.distance += pd.select(carried, g.carry_h, 0)
