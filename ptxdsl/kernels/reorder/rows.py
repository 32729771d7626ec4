"""Aligned copies of rows in words of 16 bytes: rows that TMA cannot address or loads slowly, that are rounded, or that
an index names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, ptr, s32, s64, u8, u16, u32
from ptxdsl.kernels.product.words import round_to_tf32
from ptxdsl.kernels.traits.parameters import Group, view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type

WORD_BYTES, REGISTER_BYTES = 16, 4
THREADS = 256
EACH, MOST_READS = 4, 16  # words of a thread, and the elements that it reads one by one at most
BITS = {1: u8, 2: u16, 4: u32}  # the type as which elements of a size are copied


def words_of_thread(type: Type, in_words: bool) -> int:
    """Return the number of words that a thread copies, whole or element by element."""
    return EACH if in_words else MOST_READS * type.bytes // WORD_BYTES


def rows_grid(words: int, type: Type, in_words: bool) -> int:
    """Return the number of blocks that copy this many words."""
    return ceil_div(words, THREADS * words_of_thread(type, in_words))


@lru_cache(maxsize=64)
def rows_parameters(type: Type, batched: bool = False, indexed: bool = False) -> Group:
    """Return the parameters of a copy of `rows` rows of `length` elements. A batch has that many in each of `batches`
    matrices; with an `index`, they are any of `source_rows` rows. Strides of the target are multiples of a word."""
    batches = {"source_batch": s64, "target_batch": s64, "batches": u32} if batched else {}
    index = {"index": ptr[s32], "source_rows": u32} if indexed else {}
    return pd.Parameters.of("Rows", source=view(type), target=view(type), rows=u32, length=u32, **batches, **index)


@pd.kernel(reqntid=THREADS)
def rows_kernel(
    p: rows_parameters(type, batched, indexed),
    *,
    type: Type = u16,
    batched: bool = False,
    indexed: bool = False,
    in_words: bool = False,
    rounded: bool = False,
) -> None:
    """Copy rows. A thread reads all of its words before it writes the first; a warp has neighbouring ones. With
    `in_words`, rows consist of whole aligned words; else they are read element by element, and the last word of a row
    is padded with its last element. An invalid index stands for a row of zeros. With `rounded`, float32 elements are
    rounded to tf32."""
    each = WORD_BYTES // type.bytes
    words = p.length // each if in_words else ceil_div(p.length, each)
    count = (p.rows * p.batches if batched else p.rows) * words
    together = words_of_thread(type, in_words)
    begin = pd.ctaid.x * (THREADS * together) + pd.tid.x
    items = [begin + number * THREADS for number in range(together)]
    copies = []
    for item in items:
        inside = pd.min(item, count - 1)
        row = inside // words
        first = (inside - row * words) * each
        source, target, exists = _row(p, row, batched, indexed)
        word = word_of(word_at(source, first, p.length, type, in_words), rounded)
        copies.append(
            (target + first.to(s64), word if exists is None else [pd.select(exists, w, pd.cast(0, b32)) for w in word])
        )
    for item, (target, word) in zip(items, copies, strict=True):
        with pd.if_(item < count):
            pd.ptx.st.global_.v4.b32(target, word)


def _row(p: Any, number: Scalar, batched: bool, indexed: bool) -> tuple[PointerValue, PointerValue, Scalar | None]:
    """Return where a row begins, by its number among all, where its copy begins, and if an index names a valid row."""
    source, target, exists = p.source.pointer, p.target.pointer, None
    if batched:
        batch = number // p.rows
        number = number - batch * p.rows
        source, target = source + batch.to(s64) * p.source_batch, target + batch.to(s64) * p.target_batch
    target = target + number.to(s64) * p.target.stride
    if indexed:
        named = p.index[number]
        exists = (named >= 0) & (named < p.source_rows.to(s32))
        number = pd.select(exists, named, 0)
    return source + number.to(s64) * p.source.stride, target, exists


def word_of(registers: Sequence[Scalar], rounded: bool) -> Sequence[Scalar]:
    """Return the registers of a word, as float32 elements rounded to tf32 if `rounded`."""
    return [round_to_tf32(register).bitcast(b32) for register in registers] if rounded else registers


def word_at(line: PointerValue, first: Scalar, length: Scalar, type: Type, in_words: bool) -> list[Scalar]:
    """Return the registers of a word, from element `first` of a row on. Elements past the last of `length` repeat it;
    with `in_words` the row consists of whole aligned words."""
    if in_words:
        return list(pd.ptx.ld.global_.nc.L1__no_allocate.v4.b32(line + first.to(s64)))
    elements = line.bitcast(BITS[type.bytes])
    values = [elements[pd.min(first + n, length - 1)].to(u32) for n in range(WORD_BYTES // type.bytes)]
    return packed(values, type.bytes)


def packed(elements: list[Scalar], bytes: int) -> list[Scalar]:
    """Return elements of `bytes` each, one a register, packed in as few registers as possible."""
    each = REGISTER_BYTES // bytes
    registers = []
    for first in range(0, len(elements), each):
        register = elements[first]
        for i in range(1, each):
            register = register | (elements[first + i] << (8 * bytes * i))
        registers.append(register.bitcast(b32))
    return registers
