"""The image operand of an implicit-GEMM convolution by tensor copies: columns of pixels, as im2col maps bring them.

Its rows are output pixels (n, p, q). Along k it runs over the places of the window, and at each of them over the
channels in whole lines of a box: channels behind the last one are zeros, in the images as in the filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ptxdsl as pd
from ptxdsl import s32, u16, u32
from ptxdsl.kernels.sm90.boxes import L2_PROMOTION
from ptxdsl.kernels.sm90.copies import TensorCopies
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.product import Work
from ptxdsl.trace.ring import Slot
from ptxdsl.types import Type

NO_CORNER = (0, 0)


@dataclass(frozen=True)
class ColumnBoxes:
    """A column of `pixels` output pixels, each with the `channels` of a line, for one place of the window."""

    type: Type
    pixels: int
    channels: int

    @cached_property
    def map(self) -> pd.TensorMap:
        """What a kernel takes of images, whose padding and stride it is not made for."""
        return self.map_of(NO_CORNER, NO_CORNER, (1, 1))

    def map_of(
        self,
        lower: tuple[int, int],
        upper: tuple[int, int],
        strides: tuple[int, int],
        l2_promotion: int = L2_PROMOTION,
    ) -> pd.TensorMap:
        """The map of images whose windows go from one corner to the other in such strides."""
        swizzle = self.channels * self.type.bytes
        return pd.TensorMap.im2col(
            self.type, self.pixels, self.channels, lower, upper, strides, swizzle, l2_promotion=l2_promotion
        )


@dataclass(frozen=True)
class FilterBoxes:
    """The `channels` of a line of so many `filters`, at one place of the window."""

    type: Type
    filters: int
    channels: int

    @cached_property
    def map(self) -> pd.TensorMap:
        """What a kernel takes of filters (K, R·S, C)."""
        box = self.filters, 1, self.channels
        return pd.TensorMap(self.type, box, swizzle=self.channels * self.type.bytes, l2_promotion=L2_PROMOTION)


def boxes_of(traits: WarpgroupTraits) -> tuple[ColumnBoxes, FilterBoxes]:
    """How the tiles of images and filters come: in shared memory they are those of A and B."""
    a, b = traits.a, traits.b
    return ColumnBoxes(a.type, a.mn, a.line), FilterBoxes(b.type, b.mn, b.line)


class WindowGeometry(pd.Parameters):
    """The numbers of a convolution whose images and filters are tensors.

    As a GEMM it is m×n×k: N·P·Q, K, and R·S times the channels in whole tiles of k. `turn` is how far the window
    reaches along a line, S·dilation.
    """

    m: u32
    n: u32
    k: u32
    channels: u32
    image: u32  # output pixels of an image, and of a line
    line: u32
    pad_top: u32
    pad_left: u32
    stride_h: u32
    stride_w: u32
    dilation_h: u32
    dilation_w: u32
    turn: u32


class WindowCopies(TensorCopies):
    """The copies of both operands, tile after tile along the K of some work; for one thread."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, geometry: WindowGeometry) -> None:
        super().__init__(traits, memory)
        self.geometry = geometry
        self.image, self.line, self.column = (pd.var(s32, 0) for _ in range(3))
        self.place, self.channel, self.down, self.right = (pd.var(u32, 0) for _ in range(4))

    def seek(self, work: Work) -> None:
        """Goes to where the window of a tile's first output pixel begins, and to the place of the window and the
        channels with which the work does."""
        g, first = self.geometry, pd.cast(work.first[0], u32)
        image = first // g.image
        row, column = divmod_of(first - image * g.image, g.line)
        self.image.set(image.bitcast(s32))
        self.line.set((row * g.stride_h - g.pad_top).bitcast(s32))
        self.column.set((column * g.stride_w - g.pad_left).bitcast(s32))
        place, line = divmod_of(pd.cast(work.begin, u32), (g.channels + (self.depth - 1)) // self.depth)
        down, right = divmod_of(place * g.dilation_w, g.turn)
        self.place.set(place)
        self.channel.set(line * self.depth)
        self.down.set(down * g.dilation_h)
        self.right.set(right)

    def fetch(self, work: Work, iteration: Any, slot: Slot) -> None:
        """Begins to copy the tiles of the next iteration along K to a slot of the ring."""
        behind, product = slot.index * self.memory.stage, work.product
        corner = self.image, self.line, self.column, self.channel.bitcast(s32)
        offsets = self.down.to(u16), self.right.to(u16)
        product.a.load(self.memory.a + behind, corner, slot.full, offsets=offsets)
        product.b.load(self.memory.b + behind, (work.first[1], self.place, self.channel), slot.full)
        self._advance()

    def _advance(self) -> None:
        """Over the channels, then along a line of the window, then down."""
        g = self.geometry
        self.channel += self.depth
        with pd.if_(self.channel >= g.channels):
            self.channel.set(0)
            self.place += 1
            self.right += g.dilation_w
            with pd.if_(self.right >= g.turn):
                self.right.set(0)
                self.down += g.dilation_h


def divmod_of(number: Any, divisor: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of traced values, by one division."""
    quotient = number // divisor
    return quotient, number - quotient * divisor
