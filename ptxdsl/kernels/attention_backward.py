"""The gradient of attention on sm_90a: dq from one kernel, dk and dv from another.

The weights are computed again from q, k and the log-sum-exp. A block of the first kernel owns queries and visits keys;
one of the second owns keys and visits queries, for which it computes the transposed scores, so that weights and their
gradients are operand A of the next product in registers. Neither adds to memory that another block adds to. Without
`deterministic`, the second kernel computes dq too, by atomic additions.
"""

from __future__ import annotations

from typing import Any, cast

import ptxdsl as pd
from ptxdsl import f32, u32
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.kernels.attention import ELSEWHERE
from ptxdsl.kernels.call.call import flag
from ptxdsl.kernels.flash.backward import KEY_TILES, QUERY_TILES, BackwardTraits, KeyTile, backward_parameters
from ptxdsl.kernels.flash.call import remembered
from ptxdsl.kernels.flash.gradients import BackwardCall
from ptxdsl.kernels.flash.key_gradients import KeyGradients, cap, multiply, stage_of, visited, weigh
from ptxdsl.kernels.flash.output import offset, store_tile
from ptxdsl.kernels.flash.problem import window_of
from ptxdsl.kernels.flash.query_gradient import QueryGradient, convert_kernel
from ptxdsl.kernels.flash.softmax import hide
from ptxdsl.kernels.flash.statistics import statistic, statistics_kernel
from ptxdsl.kernels.flash.tile import AttentionTile
from ptxdsl.kernels.flash.traits import ROWS, WARPGROUP

CONSUMERS = 2 * WARPGROUP
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
OWNS_QUERIES, OWNS_KEYS = BackwardTraits(config=QUERY_TILES[128]), BackwardTraits(config=KEY_TILES[128])


@pd.kernel(arch="sm_90a", reqntid=CONSUMERS + WARPGROUP)
def dq_kernel(p: backward_parameters(traits), *, traits: BackwardTraits = OWNS_QUERIES) -> None:
    """Compute dq of one tile of queries of one head; the grid is (tiles of queries x band, heads / band, batches)."""
    stages = traits.config.stages
    queries, douts, keys, values = p.q.shared(), p.dout.shared(), p.k.shared(stages), p.v.shared(stages)
    begun = pd.Ring(1, stage_bytes=p.q.bytes + p.dout.bytes, consumers=CONSUMERS, each="warpgroup")
    ring = pd.Ring(stages, stage_bytes=p.k.bytes + p.v.bytes, consumers=CONSUMERS, each="warpgroup")
    with pd.warpgroup(0, registers=24), pd.warp(0):
        tile = AttentionTile(p, traits)
        with pd.elect():
            slot = begun.acquire()
            for tensor, array in ((p.q, queries), (p.dout, douts)):
                tensor.load(array, (tile.batch, tile.head, tile.q_start + tile.first, 0), slot.full)
            begun.commit()
            for number in pd.range(tile.begin, tile.end, unroll=1):
                slot = ring.acquire()
                for tensor, array in ((p.k, keys), (p.v, values)):
                    at = tile.batch, tile.kv_head, tile.k_start + number * traits.config.keys, 0
                    tensor.load(stage_of(array, slot.index), at, slot.full)
                ring.commit()
    with pd.warpgroup(1, 2, registers=240) as consumer:
        tile = AttentionTile(p, traits)
        accumulators = differentiate_queries(
            p, tile, (queries, douts, keys, values), begun, ring, consumer.index * ROWS
        )
        out = p.outputs[0] + offset(p.strides[:3], tile.batch, tile.head)
        rows = tile.q_start + tile.first, tile.q_start + tile.m
        store_tile(accumulators, queries, consumer.index * ROWS, traits.dtype, out, p.strides[2], rows)


def differentiate_queries(
    p: Any, tile: AttentionTile, arrays: tuple[Any, ...], begun: pd.Ring, ring: pd.Ring, first_row: Any
) -> Any:
    """Return the accumulators of dq = scale · (weights · (dout @ vᵀ - delta)) @ k."""
    (queries, douts, keys, values), traits = arrays, cast(BackwardTraits, tile.traits)
    qk = pd.WarpgroupMma(traits.atom, queries, keys, first_row=first_row)
    ov = pd.WarpgroupMma(traits.atom, douts, values, first_row=first_row)
    sk = pd.WarpgroupMma(traits.output_atom, b=keys, b_transposed=True, first_row=first_row)
    scores, products, dq = qk.accumulators(), ov.accumulators(), sk.accumulators()
    rows = scores.rows()
    first = tile.first.to(u32)
    if traits.is_packed:  # tiles past the last one have no rows
        first = pd.select(tile.first < tile.m, first, 0)
    at = [statistic(p, tile, tile.head, first) + row.index for row in rows]
    lse, delta = (
        [[value] * len(row.registers) for value, row in zip([pd.var(f32, array[i]) for i in at], rows, strict=True)]
        for array in (p.lse, p.delta)
    )
    slot = pd.var(u32, 0)

    def begin() -> None:
        """Begin the products of the next tile of keys."""
        slot.set(ring.wait().index)
        qk(scores, 0, slot, accumulate=False)
        ov(products, 0, slot, accumulate=False)

    def visit(number: Any, begins_next: bool = False) -> None:
        """Add a tile's part of dq, while the products of the next tile are computed if they begin here."""
        if traits.is_capped:
            ov.wait(0)
            cap(rows, products, delta, p.cap)
        with pd.if_((number < tile.whole_begin) | (number >= tile.whole_end)):
            for row in rows:
                hide(row, *tile.limits(row, number))
        weigh(rows, lse, p.scale)
        ov.wait(0)
        multiply(rows, products, None if traits.is_capped else delta)
        sk(dq, scores.as_a(traits.dtype), slot)
        if begins_next:
            begin()
        sk.wait(2 if begins_next else 0)
        ring.release()

    begun.wait()
    if traits.is_pipelined:
        with pd.if_(tile.end > tile.begin):
            begin()
            qk.wait(1)
            for number in pd.range(tile.begin, tile.end - 1, unroll=1):
                visit(number, begins_next=True)
                qk.wait(1)
            visit(tile.end - 1)
    else:
        for number in pd.range(tile.begin, tile.end, unroll=1):
            begin()
            qk.wait(1)
            visit(number)
    for value in dq.registers:
        value *= p.factor
    return dq


@pd.kernel(arch="sm_90a", reqntid=CONSUMERS + WARPGROUP)
def dkv_kernel(p: backward_parameters(traits), *, traits: BackwardTraits = OWNS_KEYS) -> None:
    """Compute dk and dv of one tile of keys of one key head; the grid is (tiles of keys x band, key heads / band,
    batches)."""
    stages, count = traits.config.stages, traits.config.queries
    keys, values, queries, douts = p.k.shared(), p.v.shared(), p.q.shared(stages), p.dout.shared(stages)
    statistics = pd.shared(f32, (stages, 2, count), align=128)
    shifted = QueryGradient.shared(traits) if traits.adds_dq else None
    begun = pd.Ring(1, stage_bytes=p.k.bytes + p.v.bytes, consumers=CONSUMERS, each="warpgroup")
    stage_bytes = p.q.bytes + p.dout.bytes + 2 * count * f32.bytes
    ring = pd.Ring(stages, stage_bytes=stage_bytes, consumers=CONSUMERS, each="warp")  # warps read the statistics
    with pd.warpgroup(0, registers=24), pd.warp(0):
        tile = KeyTile(p, traits)
        with pd.elect():
            slot = begun.acquire()
            for tensor, array in ((p.k, keys), (p.v, values)):
                tensor.load(array, (tile.batch, tile.kv_head, tile.k_start + tile.first, 0), slot.full)
            begun.commit()
            for head, number in visited(p, tile):
                slot = ring.acquire()
                row = number * count
                for tensor, array in ((p.q, queries), (p.dout, douts)):
                    at = tile.batch, head, tile.q_start + row, 0
                    tensor.load(stage_of(array, slot.index), at, slot.full)
                start = statistic(p, tile, head, row.to(u32))
                for i, array in enumerate((p.lse, p.delta)):
                    pd.ptx(BULK, statistics.address(slot.index, i, 0), array + start, count * f32.bytes, slot.full)
                ring.commit()
    with pd.warpgroup(1, 2, registers=240) as consumer:
        tile = KeyTile(p, traits)
        arrays = keys, values, queries, douts, statistics
        dq = QueryGradient(p, tile, keys, shifted, consumer.index) if traits.adds_dq else None
        gradients = differentiate_keys(p, tile, arrays, begun, ring, consumer.index * ROWS, dq)
        for i, (accumulators, staging) in enumerate(zip(gradients, (keys, values), strict=True)):
            strides = p.strides[3 * i : 3 * i + 3]
            out = p.outputs[i] + offset(strides, tile.batch, tile.kv_head)
            extent = tile.k_start + tile.first, tile.k_start + tile.n
            store_tile(accumulators, staging, consumer.index * ROWS, traits.dtype, out, strides[2], extent)


def differentiate_keys(
    p: Any,
    tile: KeyTile,
    arrays: tuple[Any, ...],
    begun: pd.Ring,
    ring: pd.Ring,
    first_row: Any,
    dq: QueryGradient | None,
) -> tuple[Any, Any]:
    """Return the accumulators of dk = scale · (weightsᵀ · (v @ doutᵀ - delta)) @ q, and of dv = weightsᵀ @ dout.

    Add to dq too if it is given.
    """
    visit = KeyGradients(p, tile, arrays, ring, first_row)
    begun.wait()
    if tile.traits.is_pipelined:
        with pd.if_(tile.end > tile.begin):
            visit.begin()
            for _, number in visited(p, tile, but_last=True):
                visit.differentiate(number)
                visit.begin_next()
            visit.differentiate(tile.end - 1)
            visit.end()
    else:
        for head, number in visited(p, tile):
            visit.begin()
            shifted = visit.differentiate(number)
            if dq:
                dq.begin(shifted)
            visit.end(1 if dq else 0)
            if dq:
                dq.add(head, number)
    if dq:
        dq.meet()  # the keys are read no more
    for value in visit.dk.registers:
        value *= p.factor
    return visit.dk, visit.dv


@public
@called_elsewhere(
    cu_seqlens_q="pass `q_offsets`", cu_seqlens_k="pass `k_offsets`", softmax_lse="pass `lse`", **ELSEWHERE
)
def attention_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    q_offsets: Any = None,
    k_offsets: Any = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    deterministic: bool = True,
) -> tuple[Any, Any, Any]:
    """Compute the gradients (dq, dk, dv) of `attention`; by default, the same inputs always give the same bits.

    dout, out (B, H, M, D): the gradient of the output, and the output. q, k, v: as in `attention`, with D 64 or 128.
    lse (B, H, M): what `attention` returned with return_lse=True, contiguous float32.
    q_offsets, k_offsets: those of `attention_varlen`, whose gradients are computed then: all arrays are packed.
    causal, window, scale, softcap: those of the call of `attention`.
    deterministic: if false, and D is 128, blocks add to dq in any order, by atomic additions in float32: fewer
        products, up to 6 % faster for 16,384 queries, and memory of twice the size of q.

    dq, dk and dv have the shapes of q, k and v and are row-major; rows outside of all packed sequences are not written.
    Heads of q that share a head of k and v add their gradients in order. Raises LaunchError for arrays that do not fit.

    >>> out, lse = attention(q, k, v, causal=True, return_lse=True)
    >>> dq, dk, dv = attention_backward(dout, q, k, v, out, lse, causal=True)
    """
    offsets = () if q_offsets is None and k_offsets is None else (q_offsets, k_offsets)
    options = window_of(causal, window), scale, softcap, flag("deterministic", deterministic)
    gradients: tuple[Any, Any, Any] = remembered(
        BackwardCall, KERNELS, (None, q, k, v, dout, out, lse, *[None] * 4, *offsets), *options
    )
    return gradients


KERNELS = statistics_kernel, dq_kernel, dkv_kernel, convert_kernel
