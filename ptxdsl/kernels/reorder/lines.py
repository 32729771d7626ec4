"""Aligned copies of matrices, in words of 16 bytes: for rows that TMA cannot address or loads slowly, or that are
rounded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, s64, u8, u16, u32
from ptxdsl.kernels.product.tf32 import round_to_tf32
from ptxdsl.kernels.traits.parameters import Group, view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type

WORD_BYTES, REGISTER_BYTES = 16, 4
THREADS = 256
EACH = 4  # words of a thread
BITS = {1: u8, 2: u16, 4: u32}  # the type as which elements of a size are copied


@lru_cache(maxsize=64)
def lines_parameters(type: Type, batched: bool = False) -> Group:
    """Return the parameters of a copy: `lines` rows of `length` elements, or that many of each of `batches`. Strides of
    the copy are multiples of a word."""
    apart = {"source_batch": s64, "lined_batch": s64, "batches": u32} if batched else {}
    return pd.Parameters.of("Lines", source=view(type), lined=view(type), lines=u32, length=u32, **apart)


@pd.kernel(reqntid=THREADS)
def lines_kernel(
    p: lines_parameters(type, batched), *, type: Type = u16, batched: bool = False, rounded: bool = False
) -> None:
    """Copy rows element by element. The last word of a row is padded with its last element. With `rounded`, float32
    elements are rounded to tf32."""
    each = WORD_BYTES // type.bytes
    words = ceil_div(p.length, each)
    item = pd.ctaid.x * THREADS + pd.tid.x
    with pd.if_(item < _count(p, batched) * words):
        line = item // words
        first = (item - line * words) * each
        source, target = _line(p, line, batched)
        values = source.bitcast(BITS[type.bytes])
        elements = [values[pd.min(first + i, p.length - 1)].to(u32) for i in range(each)]
        pd.ptx.st.global_.v4.b32(target + first.to(s64), word_of(packed(elements, type.bytes), rounded))


@pd.kernel(reqntid=THREADS)
def word_lines_kernel(
    p: lines_parameters(type, batched), *, type: Type = u16, batched: bool = False, rounded: bool = False
) -> None:
    """Copy rows that consist of whole aligned words. A thread has EACH words, all of which are read before the first is
    written; a warp has neighbouring ones."""
    each = WORD_BYTES // type.bytes
    words = p.length // each
    count = _count(p, batched) * words
    begin = pd.ctaid.x * (THREADS * EACH) + pd.tid.x
    items = [begin + number * THREADS for number in range(EACH)]
    copies = []
    for item in items:
        inside = pd.min(item, count - 1)
        line = inside // words
        first = ((inside - line * words) * each).to(s64)
        source, target = _line(p, line, batched)
        copies.append((target + first, pd.ptx.ld.global_.nc.L1__no_allocate.v4.b32(source + first)))
    for item, (target, word) in zip(items, copies, strict=True):
        with pd.if_(item < count):
            pd.ptx.st.global_.v4.b32(target, word_of(word, rounded))


def _count(p: Any, batched: bool) -> Scalar:
    """Return the number of rows of all matrices."""
    count: Scalar = p.lines * p.batches if batched else p.lines
    return count


def _line(p: Any, number: Scalar, batched: bool) -> tuple[PointerValue, PointerValue]:
    """Return where a row begins, by its number among all, and where its copy begins."""
    source, target = p.source.pointer, p.lined.pointer
    if batched:
        batch = number // p.lines
        number = number - batch * p.lines
        source, target = source + batch.to(s64) * p.source_batch, target + batch.to(s64) * p.lined_batch
    return source + number.to(s64) * p.source.stride, target + number.to(s64) * p.lined.stride


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
