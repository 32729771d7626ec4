"""Images of few channels, copied with their padding so that a line of a window is a line of a box.

A word of what is packed has 16 bytes: the channels of `fold` pixels below each other. Those that a window sees side by
side lie side by side, once for each window: tensor copies bring them as the channels of one pixel. Windows could share
them in memory, in lines that overlap; these come in a third of the rate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, ptr, s64, u32
from ptxdsl.kernels.parameters import Group
from ptxdsl.kernels.sm90.lines import BITS, REGISTER_BYTES, THREADS, WORD_BYTES, packed
from ptxdsl.kernels.sm90.pixels import divmod_of
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type, f16


@lru_cache(maxsize=64)
def packing_parameters(type: Type) -> Group:
    """Images and filters, which are packed alike; `count` images."""
    return pd.Parameters.of("Packing", images=packed_images(type), filters=packed_images(type), count=u32)


@lru_cache(maxsize=64)
def packed_images(type: Type) -> Group:
    """Images of `height`×`width` pixels, with the elements between them, between lines and pixels. Their copy has
    `lines` of `words` an image, `total` lines in all; a window sees `seen` columns, begins `step` of them behind the
    window before, and the first so far above and left of the first pixel."""
    strides = dict.fromkeys(("image", "line", "pixel"), s64)
    numbers = dict.fromkeys(("height", "width", "above", "left", "lines", "words", "total", "seen", "step"), u32)
    return pd.Parameters.of("PackedImages", source=ptr[type], copy=ptr[type], **strides, **numbers)


@pd.kernel(reqntid=THREADS)
def packing_kernel(
    p: packing_parameters(type), *, type: Type = f16, channels: int = 3, fold: int = 2, access: int = 2, pitch: int = 8
) -> None:
    """A thread copies a word; z of the grid is an image, y a line, and behind the images all lines of filters follow.
    `access` is the bytes that are read at a time, `pitch` the words from one window to the next."""
    pixel, column = PixelWords(type, channels, fold, access), pd.ctaid.x * THREADS + pd.tid.x
    with pd.if_(pd.ctaid.z < p.count), pd.if_((column < p.images.words) & (pd.ctaid.y < p.images.lines)):
        pack_word(p.images, pd.ctaid.z, pd.ctaid.y, column, pixel, pitch)
    with pd.else_():
        number = (pd.ctaid.z - p.count) * pd.nctaid.y + pd.ctaid.y
        with pd.if_((column < p.filters.words) & (number < p.filters.total)):
            filter, line = divmod_of(number, p.filters.lines)
            pack_word(p.filters, filter, line, column, pixel, pitch)


class PixelWords:
    """How one of an image becomes a part of a word."""

    def __init__(self, type: Type, channels: int, fold: int, access: int) -> None:
        self.type, self.channels, self.fold, self.access = type, channels, fold, access
        self.registers = WORD_BYTES // fold // REGISTER_BYTES

    def read(self, source: PointerValue) -> list[Scalar]:
        """Its registers, of which the last ones may be left out."""
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


def pack_word(g: Any, image: Scalar, line: Scalar, column: Scalar, pixel: PixelWords, pitch: int) -> None:
    """Copies the pixels of a word: zeros where they are outside of their image."""
    window, place = divmod_of(column, pitch)
    across = window * g.step + place - g.left
    registers = [pd.var(u32, 0) for _ in range(WORD_BYTES // REGISTER_BYTES)]
    is_seen = (across < g.width) & (place < g.seen)
    for number in range(pixel.fold):
        down = line * pixel.fold + number - g.above
        with pd.if_((down < g.height) & is_seen):
            at = image.to(s64) * g.image + down.to(s64) * g.line + across.to(s64) * g.pixel
            for register, word in enumerate(pixel.read(g.source + at)):
                registers[number * pixel.registers + register].set(word.bitcast(u32))
    words = (image * g.lines + line).to(s64) * g.words.to(s64) + column.to(s64)
    pd.ptx.st.global_.v4.b32(g.copy.bitcast(b32) + words * len(registers), [each.bitcast(b32) for each in registers])
