"""Transposed matrices, with rows that begin at multiples of 16 bytes: for types that wgmma reads K-major only.

A block takes square pieces of 128 bytes a row through shared memory, so that warps read and write neighbouring words of
global memory; it has as many pieces as give each thread four words in flight. Shared memory transposes registers;
elements smaller than a register are exchanged within a thread first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import isqrt
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, s64, u32
from ptxdsl.kernels.reorder.rows import REGISTER_BYTES, THREADS, WORD_BYTES, word_at, word_of
from ptxdsl.kernels.traits.parameters import Group, view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.types import Type, u8

LINE_BYTES = 128  # of a row of a piece, in the source and in the target
WORDS = LINE_BYTES // WORD_BYTES  # of a row of a piece
REGISTERS = WORD_BYTES // REGISTER_BYTES  # of a word
ROWS = THREADS // WORDS  # of a piece in shared memory that a block writes at a time
# For prmt: interleaved bytes of two registers, and interleaved halves
LOW_BYTES, HIGH_BYTES = 0x5140, 0x7362
LOW_HALVES, HIGH_HALVES = 0x5410, 0x7632


@lru_cache(maxsize=64)
def transposed_parameters(type: Type) -> Group:
    """Return the parameters of `transposed_kernel`: matrices of `lines` rows of `length` elements, `source_batch`
    elements apart, and their transposes, whose rows begin at multiples of a word."""
    numbers = {"source_batch": s64, "target_batch": s64, "lines": u32, "length": u32}
    return pd.Parameters.of("Transposed", source=view(type), target=view(type), **numbers)


def piece_of(type: Type) -> int:
    """Return the number of rows, and of elements of each, in a piece."""
    return LINE_BYTES // type.bytes


def edge_of(type: Type) -> int:
    """Return the number of rows of a block, which has as many pieces as an element has bytes."""
    return isqrt(type.bytes) * piece_of(type)


@pd.kernel(reqntid=THREADS)
def transposed_kernel(
    p: transposed_parameters(type), *, type: Type = u8, in_words: bool = False, rounded: bool = False
) -> None:
    """Store target[batch, j, i] = source[batch, i, j] for all batches. With `in_words`, rows consist of whole aligned
    words. The last word of a row of the target is padded with its last element. With `rounded`, float32 elements are
    rounded to tf32."""
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
    """Read words of a piece, from a row and element on. A thread has one of each of the rows whose elements are a
    register of the transposed piece; a warp has whole rows."""
    (line, first), each, lines = at, WORD_BYTES // type.bytes, REGISTER_BYTES // type.bytes
    column, register = pd.tid.x % WORDS, pd.tid.x // WORDS
    begin = pd.min(first + column * each, (p.length - 1) // each * each)
    numbers = [pd.min(line + register * lines + n, p.lines - 1) for n in range(lines)]
    return [word_at(source + number.to(s64) * p.source.stride, begin, p.length, type, in_words) for number in numbers]


def _lay_down(tiles: ArrayView, number: int, words: list[Sequence[Scalar]], type: Type) -> None:
    """Write words to shared memory, transposed."""
    each, lines = WORD_BYTES // type.bytes, REGISTER_BYTES // type.bytes
    column, register = pd.tid.x % WORDS, pd.tid.x // WORDS
    word = (register // REGISTERS) ^ column  # so that the rows of a warp, `each` apart, are in different banks
    for n in range(REGISTERS):
        for row, value in enumerate(exchanged([registers[n] for registers in words], type)):
            tiles[number, column * each + (n * lines + row), word * REGISTERS + register % REGISTERS] = value


def _write(p: Any, target: PointerValue, tiles: ArrayView, number: int, at: tuple[Scalar, Scalar], type: Type) -> None:
    """Write rows of a piece from shared memory to rows of the target."""
    (line, first), each = at, WORD_BYTES // type.bytes
    column = pd.tid.x % WORDS
    begin = line + column * each
    for above in range(0, piece_of(type), ROWS):
        row = pd.tid.x // WORDS + above
        with pd.if_((first + row < p.length) & (begin < p.lines)):
            word = pd.ptx.ld.shared.v4.b32(tiles.address(number, row, (column ^ (row // each)) * REGISTERS))
            pd.ptx.st.global_.v4.b32(target + ((first + row).to(s64) * p.target.stride + begin.to(s64)), word)


def exchanged(registers: list[Scalar], type: Type) -> list[Scalar]:
    """Transpose registers of neighbouring elements: each then has one element of every row."""
    if type.bytes == REGISTER_BYTES:
        return registers
    (a, b, c, d), prmt = registers, pd.ptx.prmt.b32
    low, high = (prmt(a, b, LOW_BYTES), prmt(c, d, LOW_BYTES)), (prmt(a, b, HIGH_BYTES), prmt(c, d, HIGH_BYTES))
    return [prmt(*pair, halves) for pair in (low, high) for halves in (LOW_HALVES, HIGH_HALVES)]
