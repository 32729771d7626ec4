"""Rows of a matrix gathered by an index, for kernels that load boxes of them."""

from __future__ import annotations

from functools import lru_cache

import ptxdsl as pd
from ptxdsl import b32, ptr, s32, s64, u32
from ptxdsl.kernels.reorder.lines import WORD_BYTES, word_at
from ptxdsl.kernels.traits.parameters import Group, view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type

WARP, WARPS = 32, 8  # of a block; one row a warp
EACH = 4  # words of a thread that are read before the first of them is written


@lru_cache(maxsize=64)
def rows_parameters(type: Type) -> Group:
    """Return the parameters of `rows_kernel`: `index` names `rows` of the `source_rows` rows of `source`; each has
    `length` elements. Rows of `target` begin at multiples of a word."""
    numbers = {"rows": u32, "source_rows": u32, "length": u32}
    return pd.Parameters.of("GatheredRows", source=view(type), target=view(type), index=ptr[s32], **numbers)


@pd.kernel(reqntid=WARP * WARPS)
def rows_kernel(p: rows_parameters(type), *, type: Type, in_words: bool) -> None:
    """Copy one row a warp; an invalid index stands for a row of zeros. With `in_words`, rows consist of whole aligned
    words; else the last word of a row is padded with its last element."""
    each = WORD_BYTES // type.bytes
    words, row = ceil_div(p.length, each), pd.ctaid.x * WARPS + pd.warpid
    with pd.if_(row < p.rows):
        number = p.index[row]
        exists = (number >= 0) & (number < p.source_rows.to(s32))
        source = p.source.pointer + pd.select(exists, number, 0).to(s64) * p.source.stride
        target = p.target.pointer + row.to(s64) * p.target.stride
        for begin in pd.range(pd.laneid, words, WARP * EACH):
            firsts = [begin + WARP * n for n in range(EACH)]
            read = [word_at(source, pd.min(first, words - 1) * each, p.length, type, in_words) for first in firsts]
            for first, registers in zip(firsts, read, strict=True):
                values = [pd.select(exists, register, pd.cast(0, b32)) for register in registers]
                with pd.if_(first < words):
                    pd.ptx.st.global_.v4.b32(target + (first * each).to(s64), values)
