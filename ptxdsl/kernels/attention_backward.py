"""The gradient of attention on sm_90a: dq from one kernel, dk and dv from another; both are deterministic.

The weights are computed again from q, k and the log-sum-exp. A block of the first kernel owns queries and visits keys;
one of the second owns keys and visits queries, for which it computes the transposed scores, so that weights and their
gradients are operand A of the next product in registers. Neither adds to memory that another block adds to.
"""

from __future__ import annotations

import math
from typing import Any, cast

import ptxdsl as pd
from ptxdsl import f32, u32
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.kernels.attention import ELSEWHERE
from ptxdsl.kernels.flash.backward import (
    KEY_TILE,
    PADDED,
    QUERY_TILE,
    BackwardTraits,
    KeyTile,
    backward_parameters,
    first_statistic,
    statistics_parameters,
)
from ptxdsl.kernels.flash.gradients import run_backward
from ptxdsl.kernels.flash.output import offset, store_tile
from ptxdsl.kernels.flash.problem import window_of
from ptxdsl.kernels.flash.softmax import hide
from ptxdsl.kernels.flash.tile import AttentionTile, find_sequence
from ptxdsl.kernels.flash.traits import ROWS, WARP, WARPGROUP

CONSUMERS = 2 * WARPGROUP
STATISTICS = WARPGROUP // WARP  # rows of a block of the statistics kernel
LOG2_E = math.log2(math.e)
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
OWNS_QUERIES, OWNS_KEYS = BackwardTraits(config=QUERY_TILE), BackwardTraits(config=KEY_TILE)


@pd.kernel(reqntid=WARPGROUP)
def statistics_kernel(p: statistics_parameters(traits), *, traits: BackwardTraits = OWNS_QUERIES) -> None:
    """Write lse·log2(e) and delta = sum(out·dout) of each row, padded; a warp computes one row.

    The grid is (blocks of 4 rows, heads, batches); packed sequences take as many blocks as their padded rows.
    """
    number, outer = pd.ctaid.x * STATISTICS + pd.warpid, pd.ctaid.z * pd.nctaid.y + pd.ctaid.y
    row, m, source, target = number, p.rows, number, number  # in the sequence, and in the statistics read and written
    if traits.is_packed:
        sequence, tile = find_sequence(pd.ctaid.x // (PADDED // STATISTICS), p.q_offsets, p.sequences, PADDED)
        start = p.q_offsets[sequence]
        row, m = tile * PADDED + number % PADDED, (p.q_offsets[sequence + 1] - start).to(u32)
        source, target = start.to(u32) + row, first_statistic(start, sequence) + row
    total, exponent = pd.var(f32, 0.0), pd.var(f32, math.inf)
    with pd.if_(row < m):
        for column in range(0, traits.head, 2 * WARP):
            out, dout = (
                array + offset(strides, pd.ctaid.z, pd.ctaid.y) + source.to(pd.s64) * strides[2]
                + (pd.laneid * 2 + column).to(pd.s64)
                for array, strides in ((p.out, p.out_strides), (p.dout, p.dout_strides))
            )  # fmt: skip
            for i in range(2):
                total += out[i].to(f32) * dout[i].to(f32)
        value = p.lse[outer * p.rows + source]
        exponent.set(pd.select(value == -math.inf, math.inf, value * LOG2_E))
    for distance in (1, 2, 4, 8, 16):
        total += pd.ptx.shfl.sync.bfly.b32(total, distance, 31, 0xFFFFFFFF)
    is_written: Any = pd.laneid == 0
    if traits.is_packed:  # blocks past the last tile have no rows
        is_written = is_written & (row // PADDED * PADDED < m)
    with pd.if_(is_written):
        p.lse2[outer * p.padded + target], p.delta[outer * p.padded + target] = exponent, total


@pd.kernel(arch="sm_90a", reqntid=CONSUMERS + WARPGROUP)
def dq_kernel(p: backward_parameters(traits), *, traits: BackwardTraits = OWNS_QUERIES) -> None:
    """Compute dq of one tile of queries of one head; the grid is (tiles of queries, heads, batches)."""
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
        first = first_statistic(tile.q_start, tile.sequence) + pd.select(tile.first < tile.m, first, 0)
    at = [(tile.batch * p.heads + tile.head) * p.padded + first + row.index for row in rows]
    lse, delta = (
        [[value] * len(row.registers) for value, row in zip([pd.var(f32, array[i]) for i in at], rows, strict=True)]
        for array in (p.lse, p.delta)
    )
    begun.wait()
    for number in pd.range(tile.begin, tile.end, unroll=1):
        slot = ring.wait()
        qk(scores, 0, slot, accumulate=False)
        ov(products, 0, slot, accumulate=False)
        qk.wait(1)
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
        sk.wait(0)
        ring.release()
    for value in dq.registers:
        value *= p.factor
    return dq


@pd.kernel(arch="sm_90a", reqntid=CONSUMERS + WARPGROUP)
def dkv_kernel(p: backward_parameters(traits), *, traits: BackwardTraits = OWNS_KEYS) -> None:
    """Compute dk and dv of one tile of keys of one key head; the grid is (tiles of keys, key heads, batches)."""
    stages, count = traits.config.stages, traits.config.queries
    keys, values, queries, douts = p.k.shared(), p.v.shared(), p.q.shared(stages), p.dout.shared(stages)
    statistics = pd.shared(f32, (stages, 2, count), align=128)
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
                first = row.to(u32)
                if traits.is_packed:
                    first = first_statistic(tile.q_start, tile.sequence) + first
                start = (tile.batch * p.heads + head) * p.padded + first
                for i, array in enumerate((p.lse, p.delta)):
                    pd.ptx(BULK, statistics.address(slot.index, i, 0), array + start, count * f32.bytes, slot.full)
                ring.commit()
    with pd.warpgroup(1, 2, registers=240) as consumer:
        tile = KeyTile(p, traits)
        arrays = keys, values, queries, douts, statistics
        gradients = differentiate_keys(p, tile, arrays, begun, ring, consumer.index * ROWS)
        for i, (accumulators, staging) in enumerate(zip(gradients, (keys, values), strict=True)):
            strides = p.strides[3 * i : 3 * i + 3]
            out = p.outputs[i] + offset(strides, tile.batch, tile.kv_head)
            extent = tile.k_start + tile.first, tile.k_start + tile.n
            store_tile(accumulators, staging, consumer.index * ROWS, traits.dtype, out, strides[2], extent)


def visited(p: Any, tile: KeyTile) -> Any:
    """Loop over the (query head, number of a tile of queries) that a tile of keys visits."""
    for member in pd.range(p.group, unroll=1):
        for number in pd.range(tile.begin, tile.end, unroll=1):
            yield tile.kv_head * p.group + member, number


def differentiate_keys(
    p: Any, tile: KeyTile, arrays: tuple[Any, ...], begun: pd.Ring, ring: pd.Ring, first_row: Any
) -> tuple[Any, Any]:
    """Return the accumulators of dk = scale · (weightsᵀ · (v @ doutᵀ - delta)) @ q, and of dv = weightsᵀ @ dout."""
    (keys, values, queries, douts, statistics), traits = arrays, tile.traits
    kq = pd.WarpgroupMma(traits.atom, keys, queries, first_row=first_row)
    vo = pd.WarpgroupMma(traits.atom, values, douts, first_row=first_row)
    sq = pd.WarpgroupMma(traits.output_atom, b=queries, b_transposed=True, first_row=first_row)
    wo = pd.WarpgroupMma(traits.output_atom, b=douts, b_transposed=True, first_row=first_row)
    scores, products, dk, dv = (mma.accumulators() for mma in (kq, vo, sq, wo))
    rows = scores.rows()
    begun.wait()
    for _, number in visited(p, tile):
        slot = ring.wait()
        kq(scores, 0, slot, accumulate=False)
        vo(products, 0, slot, accumulate=False)
        kq.wait(1)
        if traits.is_capped:
            vo.wait(0)
            cap(rows, products, of_columns(statistics, slot.index, 1, rows), p.cap)
        partial = tile.is_partial(number)
        if partial is not None:
            with pd.if_(partial):
                for row in rows:
                    hide(row, *tile.limits(row, number))
        weigh(rows, of_columns(statistics, slot.index, 0, rows), p.scale)
        wo(dv, scores.as_a(traits.dtype), slot)
        wo.wait(1)
        multiply(rows, products, None if traits.is_capped else of_columns(statistics, slot.index, 1, rows))
        sq(dk, scores.as_a(traits.dtype), slot)
        sq.wait(0)
        pd.ptx.bar.warp.sync(0xFFFFFFFF)
        ring.release()
    for value in dk.registers:
        value *= p.factor
    return dk, dv


def cap(rows: Any, products: Any, delta: Any, factor: Any) -> None:
    """Cap the scores by tanh. The products become (product - delta) · (1 - tanh²), before scores are masked."""
    for row, gradients, values in zip(rows, products.rows(), delta, strict=True):
        for score, gradient, value in zip(row.registers, gradients.registers, values, strict=True):
            score.set(pd.ptx.tanh.approx.f32(score * factor))
            gradient.set((gradient - value) * pd.fma(-score, score, 1.0))


def weigh(rows: Any, exponents: Any, scale: Any) -> None:
    """Replace the scores by their weights 2^(scale·score - exponent)."""
    for row, values in zip(rows, exponents, strict=True):
        for score, exponent in zip(row.registers, values, strict=True):
            score.set(pd.ptx.ex2.approx.ftz.f32(pd.fma(score, scale, -exponent)))


def multiply(rows: Any, products: Any, delta: Any) -> None:
    """Multiply the weights by the products less delta, which is None after `cap`."""
    for i, (row, gradients) in enumerate(zip(rows, products.rows(), strict=True)):
        for j, (score, gradient) in enumerate(zip(row.registers, gradients.registers, strict=True)):
            score *= gradient if delta is None else gradient - delta[i][j]


def of_columns(statistics: Any, stage: Any, which: int, rows: Any) -> list[list[Any]]:
    """Return the statistic of each column that a thread holds, for each of its rows."""
    values: dict[int, Any] = {}
    for offset_ in rows[0].offsets[::2]:
        address = statistics.address(stage, which, rows[0].first_column + offset_)
        values[offset_], values[offset_ + 1] = pd.ptx.ld.shared.v2.f32(address)
    return [[values[offset_] for offset_ in row.offsets] for row in rows]


def stage_of(array: Any, stage: Any) -> Any:
    """Return the address of a stage."""
    return array.address(stage, *[0] * (len(array.shape) - 1))


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
) -> tuple[Any, Any, Any]:
    """Compute the gradients (dq, dk, dv) of `attention`; the same inputs always give the same bits.

    dout, out (B, H, M, D): the gradient of the output, and the output. q, k, v: as in `attention`, with D 64 or 128.
    lse (B, H, M): what `attention` returned with return_lse=True, contiguous float32.
    q_offsets, k_offsets: those of `attention_varlen`, whose gradients are computed then: all arrays are packed.
    causal, window, scale, softcap: those of the call of `attention`.

    dq, dk and dv have the shapes of q, k and v and are row-major; rows outside of all packed sequences are not written.
    Heads of q that share a head of k and v add their gradients in order. Raises LaunchError for arrays that do not fit
    each other or the kernel.

    >>> out, lse = attention(q, k, v, causal=True, return_lse=True)
    >>> dq, dk, dv = attention_backward(dout, q, k, v, out, lse, causal=True)
    """
    kernels = statistics_kernel, dq_kernel, dkv_kernel
    offsets = None if q_offsets is None and k_offsets is None else (q_offsets, k_offsets)
    return run_backward(kernels, dout, (q, k, v), (out, lse), offsets, window_of(causal, window), scale, softcap)
