"""Dilation: zeros between pixels, for the input gradient of strided convolutions."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import b32, ptr, s64, u32
from ptxdsl.kernels.reorder.rows import EACH, THREADS, WORD_BYTES
from ptxdsl.kernels.sm90.pixels import divmod_of
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type, f16


def dilate_grid(lines: int, columns: int, words: int) -> tuple[int, int]:
    """Return the grid for `lines` image rows, of all images, each of `columns` pixels of `words` 16-byte words."""
    return lines, ceil_div(columns * words, THREADS * EACH)


@pd.kernel(reqntid=THREADS)
def dilate_kernel(
    pixels: ptr[type], out: ptr[type], height: u32, width: u32, lines: u32, columns: u32, words: u32,
    *, type: Type = f16, down: int = 2, right: int = 2,
) -> None:  # fmt: skip
    """Store out[n, h, w] = pixels[n, h / down, w / right] if there is such a pixel, else 0. Images of height×width
    pixels become images of lines×columns. A thread has EACH words of a row, and reads all before it writes the
    first."""
    image, line = divmod_of(pd.ctaid.x, lines)
    above = line // down
    has_line = (above * down == line) & (above < height)
    first, each = (image * height + above) * width, WORD_BYTES // type.bytes
    begin, count = pd.ctaid.y * (THREADS * EACH) + pd.tid.x, columns * words
    copies = []
    for item in [begin + number * THREADS for number in range(EACH)]:
        column, number = divmod_of(item, words)
        left = column // right
        is_copied = has_line & (left * right == column) & (left < width)
        at = pd.select(is_copied, (first + left) * words + number, 0)  # if there is none, any word: it is discarded
        word = pd.ptx.ld.global_.v4.b32(pixels + at.to(s64) * each)
        copies.append((item, [pd.select(is_copied, register, pd.cast(0, b32)) for register in word]))
    target = out + pd.ctaid.x.to(s64) * (count * each).to(s64)
    for item, registers in copies:
        with pd.if_(item < count):
            pd.ptx.st.global_.v4.b32(target + item.to(s64) * each, registers)
