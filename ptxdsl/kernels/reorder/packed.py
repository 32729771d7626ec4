"""Images of few channels, copied with their padding so that a row of a window is a row of a TMA box.

A pixel of the copy has 16 bytes: the channels of `fold` pixels below each other. Pixels that are neighbours in a window
are neighbours in memory: TMA loads them as the channels of one pixel, and few zeros are multiplied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, ptr, s64, u32
from ptxdsl.kernels.reorder.rows import BITS, REGISTER_BYTES, THREADS, WORD_BYTES, packed
from ptxdsl.kernels.sm90.pixels import divmod_of
from ptxdsl.kernels.traits.parameters import Group
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type, f16


@lru_cache(maxsize=64)
def packing_parameters(type: Type) -> Group:
    """Return the parameters of `packing_kernel`: images and filters, which are packed alike."""
    return pd.Parameters.of("Packing", images=packed_images(type), filters=packed_images(type))


@lru_cache(maxsize=64)
def packed_images(type: Type) -> Group:
    """Return the parameters of images of `height`×`width` pixels, with the elements between images, rows and pixels.
    Their copy has `lines`×`columns` pixels an image, `words` in all, and begins `above` and `left` of the first
    pixel."""
    strides = dict.fromkeys(("image", "line", "pixel"), s64)
    numbers = dict.fromkeys(("height", "width", "above", "left", "lines", "columns", "words"), u32)
    return pd.Parameters.of("PackedImages", source=ptr[type], copy=ptr[type], **strides, **numbers)


@pd.kernel(reqntid=THREADS)
def packing_kernel(
    p: packing_parameters(type), *, type: Type = f16, channels: int = 3, fold: int = 2, access: int = 2
) -> None:
    """Copy one word a thread; `access` is the bytes of a read."""
    item = pd.ctaid.x * THREADS + pd.tid.x
    with pd.if_(item < p.images.words):
        pack_word(p.images, item, PixelWords(type, channels, fold, access))
    with pd.else_(), pd.if_(item - p.images.words < p.filters.words):
        pack_word(p.filters, item - p.images.words, PixelWords(type, channels, fold, access))


class PixelWords:
    """The conversion of a pixel to its part of a word."""

    def __init__(self, type: Type, channels: int, fold: int, access: int) -> None:
        self.type, self.channels, self.fold, self.access = type, channels, fold, access
        self.registers = WORD_BYTES // fold // REGISTER_BYTES

    def read(self, source: PointerValue) -> list[Scalar]:
        """Return the registers of a pixel; the last ones may be left out."""
        each = self.type.bytes
        if self.access < REGISTER_BYTES:
            elements = [source.bitcast(BITS[each])[i].to(u32) for i in range(self.channels)]
            missing = -self.channels % (REGISTER_BYTES // each)
            return packed([*elements, *[pd.cast(0, u32)] * missing], each)
        words, count = source.bitcast(b32), self.access // REGISTER_BYTES
        if count == 1:
            return [words[i] for i in range(self.channels * each // REGISTER_BYTES)]
        accesses = range(0, self.channels * each // REGISTER_BYTES, count)
        return [word for i in accesses for word in pd.ptx(f"ld.global.v{count}.b32", words + i)]


def pack_word(g: Any, item: Scalar, pixel: PixelWords) -> None:
    """Copy the pixels of a word, with zeros for those outside of their image."""
    above, column = divmod_of(item, g.columns)
    image, line = divmod_of(above, g.lines)
    across = column - g.left
    registers = [pd.var(u32, 0) for _ in range(WORD_BYTES // REGISTER_BYTES)]
    for number in range(pixel.fold):
        down = line * pixel.fold + number - g.above
        with pd.if_((down < g.height) & (across < g.width)):
            at = image.to(s64) * g.image + down.to(s64) * g.line + across.to(s64) * g.pixel
            for register, word in enumerate(pixel.read(g.source + at)):
                registers[number * pixel.registers + register].set(word.bitcast(u32))
    words = (g.copy.bitcast(b32) + item.to(s64) * len(registers)).bitcast(b32)
    pd.ptx.st.global_.v4.b32(words, [register.bitcast(b32) for register in registers])
