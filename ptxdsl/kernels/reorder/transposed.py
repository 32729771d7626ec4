"""Matrices transposed, to lines that begin at multiples of a word of 16 bytes: of types that wgmma reads along K alone.

A block takes pieces, 128 bytes of as many lines as these have elements, through shared memory, so that warps read and
write neighbouring words of global memory: so many that a thread has four words under way. There a piece is transposed
by registers: where these have several elements, they are exchanged within a thread before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import isqrt
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, s64, u32
from ptxdsl.kernels.reorder.lines import REGISTER_BYTES, THREADS, WORD_BYTES, word_at, word_of
from ptxdsl.kernels.traits.parameters import Group, view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.types import Type, u8

LINE_BYTES = 128  # of a piece, along the lines of the source and along those of the target
WORDS = LINE_BYTES // WORD_BYTES  # of a line of a piece
REGISTERS = WORD_BYTES // REGISTER_BYTES  # of a word
ROWS = THREADS // WORDS  # of a piece in shared memory, that a block writes at a time
# For prmt: bytes of two registers by turns, and halves of them
LOW_BYTES, HIGH_BYTES = 0x5140, 0x7362
LOW_HALVES, HIGH_HALVES = 0x5410, 0x7632


@lru_cache(maxsize=64)
def transposed_parameters(type: Type) -> Group:
    """Matrices of `lines` lines of `length` elements of such a type, `source_batch` elements apart; and where their
    transposes go, whose lines begin at multiples of a word."""
    numbers = {"source_batch": s64, "target_batch": s64, "lines": u32, "length": u32}
    return pd.Parameters.of("Transposed", source=view(type), target=view(type), **numbers)


def piece_of(type: Type) -> int:
    """How many lines, and how many elements of each, are a piece."""
    return LINE_BYTES // type.bytes


def edge_of(type: Type) -> int:
    """The same of a block, which has as many pieces as an element has bytes."""
    return isqrt(type.bytes) * piece_of(type)


@pd.kernel(reqntid=THREADS)
def transposed_kernel(
    p: transposed_parameters(type), *, type: Type = u8, in_words: bool = False, rounded: bool = False
) -> None:
    """target[batch, j, i] = source[batch, i, j], of all batches. Lines are read `in_words` where they begin and end at
    multiples of one; what lies behind the end of a line of the target in its last word is its last element. Of float32,
    elements may be `rounded` to tf32."""
    edge, piece = edge_of(type), piece_of(type)
    down, across = ceil_div(p.lines, edge), ceil_div(p.length, edge)
    strip = pd.ctaid.x // across
    batch = strip // down
    line, first = (strip - batch * down) * edge, (pd.ctaid.x - strip * across) * edge
    corners = [(line + below, first + along) for below, along in product(range(0, edge, piece), repeat=2)]
    tiles = pd.shared(b32, (len(corners), piece, LINE_BYTES // REGISTER_BYTES), align=LINE_BYTES)
    source = p.source.pointer + batch.to(s64) * p.source_batch
    target = p.target.pointer + batch.to(s64) * p.target_batch
    read = [_read(p, source, corner, type, in_words) for corner in corners]
    for number, words in enumerate(read):
        _lay_down(tiles, number, [word_of(word, rounded) for word in words], type)
    pd.ptx.bar.sync(0)
    for number, corner in enumerate(corners):
        _write(p, target, tiles, number, corner, type)


def _read(p: Any, source: PointerValue, at: tuple[Scalar, Scalar], type: Type, in_words: bool) -> list[list[Scalar]]:
    """Words of a piece, from a line and element on. A thread has one of each of the lines whose elements are a register
    of the transposed piece; a warp has whole lines of it."""
    (line, first), each, lines = at, WORD_BYTES // type.bytes, REGISTER_BYTES // type.bytes
    column, register = pd.tid.x % WORDS, pd.tid.x // WORDS
    begin = pd.min(first + column * each, (p.length - 1) // each * each)
    numbers = [pd.min(line + register * lines + n, p.lines - 1) for n in range(lines)]
    return [word_at(source + number.to(s64) * p.source.stride, begin, p.length, type, in_words) for number in numbers]


def _lay_down(tiles: ArrayView, number: int, words: list[Sequence[Scalar]], type: Type) -> None:
    """To shared memory, transposed."""
    each, lines = WORD_BYTES // type.bytes, REGISTER_BYTES // type.bytes
    column, register = pd.tid.x % WORDS, pd.tid.x // WORDS
    word = (register // REGISTERS) ^ column  # so that rows of a warp, which are `each` apart, lie in all banks
    for n in range(REGISTERS):
        for row, value in enumerate(exchanged([registers[n] for registers in words], type)):
            tiles[number, column * each + (n * lines + row), word * REGISTERS + register % REGISTERS] = value


def _write(p: Any, target: PointerValue, tiles: ArrayView, number: int, at: tuple[Scalar, Scalar], type: Type) -> None:
    """Rows of a piece, whose words are where `_lay_down` has put them, to lines of the target."""
    (line, first), each = at, WORD_BYTES // type.bytes
    column = pd.tid.x % WORDS
    begin = line + column * each
    for above in range(0, piece_of(type), ROWS):
        row = pd.tid.x // WORDS + above
        with pd.if_((first + row < p.length) & (begin < p.lines)):
            word = pd.ptx.ld.shared.v4.b32(tiles.address(number, row, (column ^ (row // each)) * REGISTERS))
            pd.ptx.st.global_.v4.b32(target + ((first + row).to(s64) * p.target.stride + begin.to(s64)), word)


def exchanged(registers: list[Scalar], type: Type) -> list[Scalar]:
    """Registers of neighbouring elements of as many lines, transposed: each has an element of all lines."""
    if type.bytes == REGISTER_BYTES:
        return registers
    (a, b, c, d), prmt = registers, pd.ptx.prmt.b32
    low, high = (prmt(a, b, LOW_BYTES), prmt(c, d, LOW_BYTES)), (prmt(a, b, HIGH_BYTES), prmt(c, d, HIGH_BYTES))
    return [prmt(*pair, halves) for pair in (low, high) for halves in (LOW_HALVES, HIGH_HALVES)]
