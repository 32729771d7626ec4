"""Multi-head latent attention (MLA) of one query a sequence, on sm_90a: decoding.

All query heads share one key head of 576 columns, whose first 512 are the values too: a tile of keys is loaded once,
and multiplied as K and as V. Two consumer warpgroups compute 64 query heads, each 256 columns of the output. They own
alternate tiles of keys: the owner computes the scores and weights of a tile, and hands the weights to the other through
the shared memory of the tile's rotary columns, which are no longer needed. So one computes its softmax while the other
multiplies, and a tile is loaded while the other one is computed.
"""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import f32, s32, s64
from ptxdsl.errors import public
from ptxdsl.kernels.attention_decode import combine_kernel, store
from ptxdsl.kernels.flash.call import remembered
from ptxdsl.kernels.flash.decode import DecodeTile
from ptxdsl.kernels.flash.latent import BOTH, Consumer, TileRings
from ptxdsl.kernels.flash.mla import (
    BOX,
    HALF,
    KEYS,
    OWNERS,
    PIECE,
    PIECE_BYTES,
    PIECES,
    VALUE_PIECES,
    MlaCall,
    MlaTraits,
    mla_parameters,
)
from ptxdsl.kernels.flash.output import store_tile
from ptxdsl.kernels.flash.traits import ROWS, WARPGROUP
from ptxdsl.layout import tile_layout
from ptxdsl.layout.swizzle import stacked

ALIGNMENT = 1024  # bytes after which a 128-byte swizzle repeats
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
DEFAULT = MlaTraits()


@pd.kernel(arch="sm_90a", reqntid=WARPGROUP + BOTH)
def mla_kernel(p: mla_parameters(traits), *, traits: MlaTraits = DEFAULT) -> None:
    """Compute a part of attention; the grid is (tiles of query heads x splits, 1, sequences)."""
    piece = tile_layout(KEYS, BOX, 16)
    queries, keys = (
        pd.dynamic_shared(traits.dtype, stacked(piece, tiles * PIECES, PIECE), align=ALIGNMENT, name=name)
        for name, tiles in (("queries", 1), ("keys", OWNERS))
    )
    statistics = pd.shared(f32, (2, OWNERS, ROWS))
    q_ring = pd.Ring(1, stage_bytes=PIECES * PIECE_BYTES, consumers=BOTH, each="warpgroup")
    rings = [TileRings.create() for _ in range(OWNERS)]
    tile = DecodeTile(p, traits)
    for number, visit in enumerate((lead, follow)):
        with pd.warpgroup(1 + number, registers=CONSUMER_REGISTERS) as role:
            consumer = Consumer(tile, role, number, p.scale, (queries, keys, statistics), rings)
            q_ring.reader().wait()
            visit(consumer, tile)
            consumer.add_totals()
            store_half(p, tile, consumer)
    # The producer comes last: after its code, ptxas would compute the descriptors of the consumers in vector registers.
    with pd.warpgroup(0, registers=PRODUCER_REGISTERS), pd.warp(0), pd.elect():
        load(p, tile, (queries, keys), q_ring, rings)


def load(p: Any, tile: DecodeTile, arrays: Any, q_ring: pd.Ring, rings: Any) -> None:
    """Load the queries, then the tiles of keys from the last to the first, page by page."""
    (queries, keys), traits = arrays, tile.traits
    p.q.load(queries.address(), (tile.batch, 0, tile.first, 0), q_ring.acquire().full)
    q_ring.commit()
    last = (tile.length - 1) // traits.page  # the last page that the sequence has

    def load_tile(number: Any, owner: int) -> None:
        first, parts = number * KEYS, range(0, KEYS, traits.box_rows)
        pages = [pd.min((first + part) // traits.page, last) for part in parts]
        numbers = [p.page_table[tile.batch * p.pages + page.to(pd.u32)] for page in pages]
        for ring, piece in rings[owner].pieces(owner):
            slot, stage = ring.acquire(), keys.address(owner * PIECES + piece, 0, 0)
            for part, page in zip(parts, numbers, strict=True):
                p.kv.load(stage + part * BOX, (page, (first + part) % traits.page, 0, piece * BOX), slot.full)
            ring.commit()

    for i in pd.range(0, tile.count, OWNERS, unroll=1):
        load_tile(tile.end - 1 - i, 0)
        with pd.if_(i + 1 < tile.count):
            load_tile(tile.end - 2 - i, 1)


def lead(consumer: Consumer, tile: Any) -> None:
    """Visit all tiles as the owner of the even ones. Only the first may be masked."""

    def visit_owned(i: Any) -> None:
        consumer.begin_scores()
        consumer.qk.wait(0)
        with pd.if_(i == 0):
            consumer.softmax.limit(tile, tile.end - 1, is_masked=True)
        consumer.multiply(consumer.weigh())

    pairs = tile.count // OWNERS
    for i in pd.range(pairs, unroll=1):
        visit_owned(i)
        consumer.begin_other()
        consumer.end_other()
    with pd.if_(tile.count % OWNERS == 1):
        visit_owned(pairs)


def follow(consumer: Consumer, tile: Any) -> None:
    """Visit all tiles as the owner of the odd ones, whose scores are begun before the leader's weights arrive."""
    for _ in pd.range(tile.count // OWNERS, unroll=1):
        consumer.begin_scores()
        consumer.begin_other()
        consumer.qk.wait(1)
        weights = consumer.weigh()
        consumer.end_other()
        consumer.multiply(weights)
    with pd.if_(tile.count % OWNERS == 1):
        consumer.begin_other()
        consumer.end_other()


def store_half(p: Any, tile: Any, consumer: Consumer) -> None:
    """Store this warpgroup's columns of the output, through the shared memory of the queries; and the log-sum-exp."""
    softmax, number = consumer.softmax, consumer.number
    if tile.traits.is_split:
        store(p, tile, softmax, number * HALF)
        return
    for row, lse in softmax.finish():
        head = tile.first + row.index
        if number == 0:
            with pd.if_((head < p.group) & (row.first_column == 0)):
                p.lse[tile.batch * p.group + head] = lse
    out = p.out + p.out_strides[0] * tile.batch.to(s64) + number * HALF
    staging = pd.view(consumer.queries.address(number * VALUE_PIECES, 0, 0), tile_layout(ROWS, HALF, 16))
    store_tile(
        softmax.output, staging, 0, tile.traits.dtype, out, p.out_strides[1], (tile.first.to(s32), p.group.to(s32))
    )


@public
def attention_decode_mla(
    q: Any,
    kv_pages: Any,
    page_table: Any,
    lengths: Any,
    *,
    scale: float | None = None,
    out: Any = None,
    return_lse: bool = False,
) -> Any:
    """Compute multi-head latent attention (MLA) of one query for each sequence to a cache in pages, and return it.

    q (B, H, 576): float16 or bfloat16, absorbed queries: 512 latent columns, then 64 rotary ones. H is 16 to 128.
    kv_pages (P, page, 1, 576): the one key head that all query heads share, in pages of 16, 32, 64, 128 or 256 rows.
        Its first 512 columns are the values.
    page_table, lengths: as in `attention_decode`.
    scale: 1/√576 by default; positive. Models scale by the columns before absorption: 1/√192 for heads of 128 + 64.
    out (B, H, 512): the output, allocated row-major by default.
    return_lse: return (out, lse), where lse (B, H) is the logarithm of the sum of exp(score), in float32.

    A sequence without keys gets an output of 0 and an lse of -inf. Raises LaunchError for arrays that do not fit each
    other or the kernel; nothing is written then.

    >>> out = attention_decode_mla(q, kv_pages, page_table, lengths, scale=192**-0.5)
    """
    arrays = out, q, kv_pages, page_table, lengths
    results = remembered(MlaCall, (mla_kernel, combine_kernel), arrays, scale)
    return results if return_lse else results[0]
