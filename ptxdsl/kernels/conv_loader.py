"""The image operand of an implicit-GEMM convolution: a matrix that is nowhere in memory.

Its rows are output pixels (n, p, q), its columns are places of the window and channels (r, s, c), channels innermost;
an element is the input at (n, p·stride - pad + r·dilation, q·stride - pad + s·dilation, c), or 0 outside the image. A
copy lies within one place of the window, so that each row of it is there as a whole or not at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import ptxdsl as pd
from ptxdsl import b8, b32, b64, s32, s64, u32
from ptxdsl.kernels.block import Product, ProductBlock
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.operand import Copies, Loader, Source
from ptxdsl.kernels.tile import OperandTile
from ptxdsl.types import Type

NOWHERE = 1 << 31  # a line that no image has: where rows lie behind the last output pixel
ROW_BYTES = 16  # what is known of a row: an address and two coordinates
KEPT = 8  # rows of a thread whose places stay in registers


class Geometry(NamedTuple):
    """The numbers of a convolution, as its kernel takes them; an annotation is the type of the parameter.

    As a GEMM it is m×n×k: N·P·Q, K and R·S·C. Lengths of steps in memory are in elements where they belong to an array,
    and in bytes where they belong to the walk along k.
    """

    m: u32
    n: u32
    k: u32
    height: u32  # of an input image
    width: u32
    channels: u32
    out_height: u32
    out_width: u32
    window_width: u32
    pad_top: u32
    pad_left: u32
    stride_h: u32
    stride_w: u32
    dilation_h: u32
    dilation_w: u32
    image: s64  # elements from one input image to the next, one line, one pixel
    line: s64
    pixel: s64
    ldw: s64  # elements from one filter to the next, from one output pixel to the next
    ldo: s64
    step_c: u32  # a tile of k further, without carries: channels, columns and lines
    step_w: u32
    step_h: u32
    turn: u32  # columns that the window spans, S·dilation
    step: s64  # bytes of that step, of a carry from channels to columns, and of one from columns to lines
    carry_w: s64
    carry_h: s64


GEOMETRY: tuple[Type, ...] = tuple(get_type_hints(Geometry).values())


class PixelBlock(ProductBlock):
    """Computes tiles of a convolution: of its product, `a` is the images."""

    goes_ahead = False  # where pixels lie is found for a tile as a whole

    def __init__(self, config: GemmConfig, product: Product, geometry: Geometry) -> None:
        super().__init__(config, product)
        self.geometry, self.rows = geometry, PixelRows(config.tile[0], geometry)

    def loaders(self, product: Product, first: tuple[Any, Any], k: tuple[Any, Any]) -> tuple[Any, ...]:
        config, loop = self.config, self.mainloop
        self.rows.find(product.a.pointer, first[0], config.threads)
        pixels = PixelLoader(config.a, loop.memory, self.rows, self.geometry, k, config.threads)
        filters = Source(*product.b, product.n)
        return pixels, Loader(config.b, loop.memory_b, filters, first[1], k, config.threads)


class PixelRows:
    """Where the windows of a tile's output pixels begin in the input, found once by all threads of the block.

    A row is 16 bytes of shared memory: the address of the window's first pixel, which may lie outside the array, and
    its line and column, which may be negative.
    """

    def __init__(self, count: int, geometry: Geometry) -> None:
        self.count, self.geometry = count, geometry
        self.table = pd.shared(b64, (count, 2))
        self.memory = self.table.address().bitcast(b8)

    def find(self, x: Any, first: Any, threads: int) -> None:
        """Fills the table for the rows from `first` on. The table is free for all threads."""
        for start in range(0, self.count, threads):
            row = pd.tid.x + start
            with pd.if_(row < self.count):
                pointer, line, column = _window(x, self.geometry, first + row)
                begin = pd.pack(line.bitcast(b32), column.bitcast(b32))
                pd.ptx.st.shared.v2.b64(self.table.address(row, 0), [pointer.value, begin])
        pd.ptx.bar.sync(0)

    def read(self, place: Any) -> tuple[Any, Any, Any]:
        """(address, line, column) of the row that is `place` bytes from the first."""
        pointer, begin = pd.ptx.ld.shared.v2.b64(self.memory + place)
        return pd.pointer(pointer, b8), *pd.unpack(begin, u32)


def _window(x: Any, geometry: Geometry, row: Any) -> tuple[Any, Any, Any]:
    """The address, line and column of the first pixel of an output pixel's window."""
    g = geometry
    above, q = row // g.out_width, row % g.out_width
    n, p = above // g.out_height, above % g.out_height
    line, column = (p * g.stride_h - g.pad_top).bitcast(s32), (q * g.stride_w - g.pad_left).bitcast(s32)
    at = n.to(s64) * g.image + line.to(s64) * g.line + column.to(s64) * g.pixel
    return x + at, pd.select(row < g.m, line.bitcast(u32), NOWHERE), column.bitcast(u32)


class PixelLoader(Copies):
    """A thread's share of the copies of the image operand. It walks along k without a division: (r, s, c) count as
    the digits of a number do, and the distance from the window's first pixel follows them."""

    def __init__(
        self, tile: OperandTile, memory: Any, rows: PixelRows, geometry: Geometry, k: tuple[Any, Any], threads: int
    ) -> None:
        """`memory` is the tile's place in the first stage. Tiles go from k[0] to k[1]."""
        super().__init__(tile, memory, threads)
        self.geometry = g = geometry
        begin = k[0] + self.k
        self.k_left: Any = pd.var(s32, (k[1] - begin).to(s32))
        place, channel = begin // g.channels, begin % g.channels
        line, column = place // g.window_width * g.dilation_h, place % g.window_width * g.dilation_w
        at = line.to(s64) * g.line + column.to(s64) * g.pixel + channel.to(s64)
        self.channel: Any = pd.var(u32, channel)
        self.column: Any = pd.var(u32, column)
        self.line: Any = pd.var(u32, line)
        self.distance: Any = pd.var(s64, at * tile.type.bytes)
        self.rows, self.first = rows, self.mn * ROW_BYTES
        self.kept = [self._row(n) for n in range(len(self.copies))] if len(self.copies) <= KEPT else []

    def _row(self, number: int) -> tuple[Any, Any, Any]:
        return self.rows.read(self.first + number * self.apart * ROW_BYTES)

    def fetch(self, stage: Any) -> None:
        """Begins to copy the next tile to a stage, `stage` bytes behind the first; zeros outside the image."""
        g, bases = self.geometry, [base + stage for base in self.places.bases]
        height = pd.select(self.k_left > 0, g.height, 0)
        for number, (base, distance) in enumerate(self.copies):
            pointer, line, column = self.kept[number] if self.kept else self._row(number)
            inside = (line + self.line < height) & (column + self.column < g.width)
            self.bring(number, bases[base] + distance, pointer + self.distance, ~inside)
        self._walk()

    def _walk(self) -> None:
        """A tile further along k. Each digit is less than its base, and so is the step: one carry is enough."""
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
