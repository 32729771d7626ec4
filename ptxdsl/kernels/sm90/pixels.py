"""The image operand of an implicit-GEMM convolution by TMA: columns of pixels, as im2col maps load them.

Its rows are output pixels (n, p, q). K runs over the window positions, and at each of them over the channels in whole
rows of a box: channels past the last one are zeros, in the images as in the filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ptxdsl as pd
from ptxdsl import s32, u16, u32
from ptxdsl.cached import cached_property
from ptxdsl.kernels.product.operands import Major
from ptxdsl.kernels.product.product import WorkTile
from ptxdsl.kernels.sm90.boxes import L2_PROMOTION
from ptxdsl.kernels.sm90.loads import TileLoads, TmaLoads
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.ring import Slot
from ptxdsl.types import Type

NO_CORNER = (0, 0)


@dataclass(frozen=True)
class ColumnBoxes:
    """A column of `pixels` output pixels with `channels` each, for one window position."""

    type: Type
    pixels: int
    channels: int

    @cached_property
    def map(self) -> pd.TensorMap:
        """The kernel parameter for images, for any padding and stride."""
        return self.map_of(NO_CORNER, NO_CORNER, (1, 1))

    def map_of(
        self,
        lower: tuple[int, int],
        upper: tuple[int, int],
        strides: tuple[int, int],
        l2_promotion: int = L2_PROMOTION,
    ) -> pd.TensorMap:
        """Return the map of images whose windows go from one corner to the other in such strides."""
        swizzle = self.channels * self.type.bytes
        return pd.TensorMap.im2col(
            self.type, self.pixels, self.channels, lower, upper, strides, swizzle, l2_promotion=l2_promotion
        )


@dataclass(frozen=True)
class FilterBoxes:
    """`channels` of `filters` filters, at one window position."""

    type: Type
    filters: int
    channels: int

    @cached_property
    def map(self) -> pd.TensorMap:
        """The kernel parameter for filters (K, R·S, C)."""
        box = self.filters, 1, self.channels
        return pd.TensorMap(self.type, box, swizzle=self.channels * self.type.bytes, l2_promotion=L2_PROMOTION)


def boxes_of(traits: WarpgroupTraits) -> tuple[ColumnBoxes, FilterBoxes]:
    """Return the boxes of images and filters; in shared memory they form the tiles of A and B. Filters whose channels
    are along N, as in the gradient of images, are loaded row by row."""
    a, b = traits.a, traits.b
    filters = b.mn if b.major is Major.K else b.k
    return ColumnBoxes(a.type, a.mn, a.line), FilterBoxes(b.type, filters, b.line)


class WindowGeometry(pd.Parameters):
    """The geometry of a convolution whose images and filters are tensors.

    As a GEMM it is m×n×k: N·P·Q, K, and R·S times the channels in whole tiles of k. `turn` is the extent of the window
    along a row, S·dilation.
    """

    m: u32
    n: u32
    k: u32
    channels: u32
    image: u32  # output pixels of an image, and of an image row
    line: u32
    pad_top: u32
    pad_left: u32
    stride_h: u32
    stride_w: u32
    dilation_h: u32
    dilation_w: u32
    turn: u32


class WindowCopies(TmaLoads):
    """The loads of both operands, iteration after iteration along K; for one thread. If the channels of filters are
    along N, K runs over the filters, and over the window from its last position to the first."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, geometry: WindowGeometry) -> None:
        super().__init__(traits, memory)
        is_turned, self.columns = traits.b.major is Major.MN, range(0, traits.tile[1], traits.b.line)
        self.last = [pd.var(u32, 0)] if is_turned else []  # the window position at which such a product begins
        self.geometry = geometry
        self.image, self.line, self.column = (pd.var(s32, 0) for _ in range(3))
        self.position, self.channel, self.down, self.right = (pd.var(u32, 0) for _ in range(4))

    def of(self, work: WorkTile) -> TileLoads:
        """Go to the window of a tile's first output pixel, and to the window position and the channels at which its K
        begins; return the loads."""
        g, first = self.geometry, pd.cast(work.first[0], u32)
        image = first // g.image
        row, column = divmod_of(first - image * g.image, g.line)
        self.image.set(image.bitcast(s32))
        self.line.set((row * g.stride_h - g.pad_top).bitcast(s32))
        self.column.set((column * g.stride_w - g.pad_left).bitcast(s32))
        begin, lines = pd.cast(work.begin, u32), (g.channels + (self.depth - 1)) // self.depth
        for last in self.last:
            last.set((g.k // self.depth) // lines - 1)
        position, line = divmod_of(begin, lines)
        down, right = divmod_of(position * g.dilation_w, g.turn)
        self.position.set(position)
        self.channel.set(line * self.depth)
        self.down.set(down * g.dilation_h)
        self.right.set(right)
        return super().of(work)

    def fetch(self, work: WorkTile, iteration: Any, slot: Slot) -> None:
        """Start the loads of the next iteration along K to a slot of the ring."""
        behind, product = slot.index * self.memory.stage, work.product
        corner = self.image, self.line, self.column, self.channel.bitcast(s32)
        offsets = self.down.to(u16), self.right.to(u16)
        product.a.load(self.memory.a + behind, corner, slot.full, offsets=offsets)
        for last in self.last:
            for column in self.columns:
                b = self.memory.b + behind + column * self.depth
                product.b.load(b, (self.channel, last - self.position, work.first[1] + column), slot.full)
        if not self.last:
            product.b.load(self.memory.b + behind, (work.first[1], self.position, self.channel), slot.full)
        self._advance()

    def _advance(self) -> None:
        """Advance over the channels, then along a row of the window, then down."""
        g = self.geometry
        self.channel += self.depth
        with pd.if_(self.channel >= g.channels):
            self.channel.set(0)
            self.position += 1
            self.right += g.dilation_w
            with pd.if_(self.right >= g.turn):
                self.right.set(0)
                self.down += g.dilation_h


def filter_gradient_boxes(traits: WarpgroupTraits) -> ColumnBoxes:
    """Return the boxes of images as the second operand: 64 pixels along k, each with the channels of a row of the
    tile."""
    b = traits.b
    return ColumnBoxes(b.type, b.k, b.line)


class FilterGradientCopies(TmaLoads):
    """The loads of a product whose k runs over output pixels; for one thread. Its rows are filters, given by the
    gradient of the output, its columns the channels of all window positions. A row of boxes is a column of pixels at
    one window position."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, geometry: WindowGeometry) -> None:
        super().__init__(traits, memory)
        self.geometry, self.line = geometry, traits.b.line
        self.lines = [tuple(pd.var(u32, 0) for _ in range(3)) for _ in range(0, traits.tile[1], self.line)]

    def of(self, work: WorkTile) -> TileLoads:
        """Compute the window position and the first channel of each row of boxes of a tile; return its loads."""
        g, first = self.geometry, pd.cast(work.first[1], u32)
        for number, (down, right, channel) in enumerate(self.lines):
            position, begin = divmod_of(first + number * self.line, g.channels)
            row, column = divmod_of(position * g.dilation_w, g.turn)
            down.set(row * g.dilation_h)
            right.set(column)
            channel.set(begin)
        return super().of(work)

    def fetch(self, work: WorkTile, iteration: Any, slot: Slot) -> None:
        """Start the loads of the next pixels to a slot of the ring."""
        g, product, first = self.geometry, work.product, pd.cast(iteration * self.depth, u32)
        behind = slot.index * self.memory.stage
        self.a.load(product.a, self.memory.a + behind, work.first[0], first, slot.full)
        image, pixel = divmod_of(first, g.image)
        row, column = divmod_of(pixel, g.line)
        window = (row * g.stride_h - g.pad_top).bitcast(s32), (column * g.stride_w - g.pad_left).bitcast(s32)
        b = self.memory.b + behind
        for number, (down, right, channel) in enumerate(self.lines):
            corner = image.bitcast(s32), *window, channel.bitcast(s32)
            offsets = down.to(u16), right.to(u16)
            product.b.load(b + number * self.depth * self.line, corner, slot.full, offsets=offsets)


def divmod_of(number: Any, divisor: Any) -> tuple[Any, Any]:
    """Return the quotient and the remainder of traced values, with one division."""
    quotient = number // divisor
    return quotient, number - quotient * divisor
