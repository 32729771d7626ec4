"""Attention of one query a sequence to keys and values in pages, on sm_90a: decoding.

The query heads that share a key head are the rows of one tile. Blocks share the keys of a sequence; each writes its
part of the output with its log-sum-exp, and a second kernel combines the parts. The loop over keys is that of
`attention`; the producer looks up each page in the page table.
"""

from __future__ import annotations

import math
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, s64, u32
from ptxdsl.errors import public
from ptxdsl.kernels.attention import attend
from ptxdsl.kernels.flash.call import remembered
from ptxdsl.kernels.flash.decode import (
    COMBINING,
    DecodeCall,
    DecodeTile,
    DecodeTraits,
    combine_parameters,
    decode_parameters,
)
from ptxdsl.kernels.flash.softmax import Softmax, Turns
from ptxdsl.kernels.flash.traits import WARPGROUP
from ptxdsl.layout import tile_layout
from ptxdsl.layout.swizzle import stacked

BOX = 64  # columns of a TMA box
ALIGNMENT = 1024  # bytes after which a 128-byte swizzle repeats
LOG2_E = math.log2(math.e)
DEFAULT = DecodeTraits()


@pd.kernel(arch="sm_90a", reqntid=2 * WARPGROUP)
def decode_kernel(p: decode_parameters(traits), *, traits: DecodeTraits = DEFAULT) -> None:
    """Compute a part of attention; the grid is (tiles of query heads x splits, key heads, sequences)."""
    stages, rows = traits.config.stages, traits.config.keys
    queries = p.q.shared()
    keys, values = (
        pd.dynamic_shared(
            traits.dtype, stacked(tile_layout(rows, columns, 16), stages, rows * columns), align=ALIGNMENT, name=name
        )
        for name, columns in (("keys", traits.head), ("values", traits.value_head))
    )
    tile_bytes = [rows * columns * 2 for columns in (traits.head, traits.value_head)]
    rings = tuple(
        pd.Ring(count, stage_bytes=size, consumers=WARPGROUP, each="warpgroup")
        for count, size in ((1, p.q.bytes), *((stages, size) for size in tile_bytes))
    )
    tile = DecodeTile(p, traits)
    with pd.warpgroup(0), pd.warp(0), pd.elect():
        load(p, tile, (queries, keys, values), rings)
    with pd.warpgroup(1):
        qk = pd.WarpgroupMma(traits.scores_atom, queries, keys)
        pv = pd.WarpgroupMma(traits.output_atom, b=values, b_transposed=True)
        softmax = Softmax(qk.accumulators(), pv.accumulators(), p.scale, None)
        attend(tile, qk, pv, softmax, rings, Turns(0, 1))
        store(p, tile, softmax)


def load(p: Any, tile: DecodeTile, arrays: Any, rings: Any) -> None:
    """Load the queries, then the tiles of keys and values from the last to the first, page by page."""
    (queries, keys, values), (q_ring, k_ring, v_ring), traits = arrays, rings, tile.traits
    p.q.load(queries, (tile.batch, tile.kv_head, tile.first, 0), q_ring.acquire().full)
    q_ring.commit()
    rows, box_rows = traits.config.keys, traits.box_rows
    last = (tile.length - 1) // traits.page  # the last page that the sequence has
    for i in pd.range(tile.count, unroll=1):
        row = (tile.end - 1 - i) * rows
        pages = [(row + begin) // traits.page for begin in range(0, rows, box_rows)]
        numbers = [p.page_table[tile.batch * p.pages + pd.min(page, last).to(u32)] for page in pages]
        for tensor, array, ring in ((p.k, keys, k_ring), (p.v, values, v_ring)):
            slot = ring.acquire()
            for part, number in enumerate(numbers):
                at = number, (row + part * box_rows) % traits.page, tile.kv_head, 0
                boxes = [
                    ((0, 0, 0, column), column * rows + part * box_rows * BOX)
                    for column in range(0, tensor.tile[-1], BOX)
                ]
                stage = array.address() + slot.index * (rows * tensor.tile[-1])
                tensor.load(stage, at, slot.full, boxes=boxes)
            ring.commit()


def store(p: Any, tile: DecodeTile, softmax: Softmax, first_column: int = 0) -> None:
    """Store this part of the output in float32, from `first_column` on; with the first columns, its log-sum-exp."""
    columns = tile.traits.value_head
    for (row, lse), values in zip(softmax.finish(), softmax.output.rows(), strict=True):
        member = tile.first + row.index  # of the query heads that share the key head
        head = (tile.batch * pd.nctaid.y + tile.kv_head) * p.group + member
        part = head * p.splits + tile.split
        with pd.if_(member < p.group):
            if first_column == 0:
                with pd.if_(row.first_column == 0):
                    p.lse[part] = lse
            out = p.partial + part.to(s64) * columns + row.first_column.to(s64) + first_column
            for offset, low, high in zip(
                values.offsets[::2], values.registers[::2], values.registers[1::2], strict=True
            ):
                pd.ptx.st.global_.v2.f32(out + offset, (low, high))


@pd.kernel(reqntid=COMBINING)
def combine_kernel(p: combine_parameters(dtype), *, dtype: Any, columns: int) -> None:
    """Combine the parts of one head: their mean, weighted by the exponentials of their log-sum-exps."""
    partial, sums, out, lse, splits, heads, (batch_stride, head_stride) = (
        p.partial, p.sums, p.out, p.lse, p.splits, p.heads, p.out_strides
    )  # fmt: skip
    first = pd.ctaid.x * splits
    most, total = pd.var(f32, -math.inf), pd.var(f32, 0.0)
    for split in pd.range(splits):
        most.set(pd.max(most, sums[first + split]))
    top = pd.select(most == -math.inf, 0.0, most)
    values = [pd.var(f32, 0.0) for _ in range(0, columns, COMBINING)]
    for split in pd.range(splits):
        weight = pd.ptx.ex2.approx.f32((sums[first + split] - top) * LOG2_E)
        total += weight
        for i, value in enumerate(values):
            column = pd.tid.x + i * COMBINING
            with pd.if_((column < columns) & (weight > 0.0)):
                value.set(pd.fma(weight, partial[(first + split).to(s64) * columns + column.to(s64)], value))
    factor = pd.select(total == 0.0, 0.0, pd.ptx.rcp.approx.ftz.f32(total))
    row = (pd.ctaid.x // heads).to(s64) * batch_stride + (pd.ctaid.x % heads).to(s64) * head_stride
    for i, value in enumerate(values):
        column = pd.tid.x + i * COMBINING
        with pd.if_(column < columns):
            out[row + column.to(s64)] = pd.cast(value * factor, dtype)
    with pd.if_(pd.tid.x == 0):
        lse[pd.ctaid.x] = pd.select(total == 0.0, -math.inf, most + pd.ptx.lg2.approx.f32(total) * math.log(2))


@public
def attention_decode(
    q: Any,
    k_pages: Any,
    v_pages: Any,
    page_table: Any,
    lengths: Any,
    *,
    scale: float | None = None,
    out: Any = None,
    return_lse: bool = False,
) -> Any:
    """Compute attention of one query for each sequence to keys and values in pages, and return it.

    q (B, H, D): float16 or bfloat16. H is a multiple of Hkv; D is 64, 128 or 256.
    k_pages, v_pages (P, page, Hkv, D): pages of 16, 32, 64, 128 or 256 rows.
    page_table (B, pages): int32, the pages of each sequence in order. Entries past the last page are not read.
    lengths (B,): int32, the number of keys of each sequence, up to pages · page. On a GPU, they are not read on the
        host: entries outside of the pages give wrong results.
    scale: 1/√D by default; positive.
    out (B, H, D): the output, allocated row-major by default.
    return_lse: return (out, lse), where lse (B, H) is the logarithm of the sum of exp(score), in float32.

    A sequence without keys gets an output of 0 and an lse of -inf. Raises LaunchError for arrays that do not fit each
    other or the kernel; nothing is written then.

    >>> out = attention_decode(q, k_pages, v_pages, page_table, lengths)
    """
    operands = q, k_pages, v_pages, page_table, lengths
    results = remembered(DecodeCall, (decode_kernel, combine_kernel), (out, *operands), scale)
    return results if return_lse else results[0]
