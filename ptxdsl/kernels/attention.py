"""Attention on sm_90a: out = softmax(scale · q @ kᵀ) @ v in one kernel; scores and weights never leave registers.

A thread block computes a tile of queries of one head. A producer thread loads tiles of K and V by TMA into rings of
shared-memory stages. Each consumer warpgroup holds 64 queries: it computes the scores of one tile of keys with wgmma
while the tensor cores multiply the weights of the tile before by V. Warpgroups take turns at the tensor cores, so that
the softmax of one runs beside the products of another. `flash` holds the traits, the masks and the softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ptxdsl as pd
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.kernels.flash.call import run
from ptxdsl.kernels.flash.output import offset, store_tile
from ptxdsl.kernels.flash.softmax import Softmax, Turns
from ptxdsl.kernels.flash.tile import AttentionTile
from ptxdsl.kernels.flash.traits import ROWS, WARPGROUP, AttentionConfig, AttentionTraits, parameters

DEFAULT = AttentionTraits()
PADDING = 8  # elements after a row of a staged output that is wider than the queries, against bank conflicts
ELSEWHERE = {
    "is_causal": "use `causal=`",
    "attn_mask": "use `causal=` or `window=`; other masks are not supported",
    "dropout_p": "dropout is not supported",
    "enable_gqa": "leave it out: the heads of k and v may divide those of q",
    "window_size": "use `window=(left, right)`",
    "softmax_scale": "use `scale=`",
}
"""Arguments of torch and FlashAttention, and what to write here."""


@pd.kernel(arch="sm_90a", reqntid=lambda traits: traits.threads)
def attention_kernel(p: parameters(traits), *, traits: AttentionTraits = DEFAULT) -> None:
    """Compute one tile of queries of one head; the grid is (tiles of queries x band, heads / band, batches)."""
    stages, consumers = traits.config.stages, traits.consumers * WARPGROUP
    queries, keys, values = p.q.shared(), p.k.shared(stages), p.v.shared(stages)
    staging = queries  # of the output
    if traits.is_scaled:
        staging = pd.dynamic_shared(traits.out_type, (traits.config.queries, traits.value_head + PADDING), align=16)
    with pd.if_(pd.tid.x == 0):
        for tensor in (p.q, p.k, p.v):
            tensor.prefetch()
    rings = tuple(
        pd.Ring(count, stage_bytes=tensor.bytes, consumers=consumers, each="warpgroup")
        for count, tensor in ((1, p.q), (stages, p.k), (stages, p.v))
    )
    loading, multiplying = traits.registers
    with pd.warpgroup(0, registers=loading), pd.warp(0):
        tile = AttentionTile(p, traits)
        with pd.elect():
            load(p, tile, (queries, keys, values), rings)
    with pd.warpgroup(*range(1, 1 + traits.consumers), registers=multiplying) as consumer:
        tile, row = AttentionTile(p, traits), consumer.index * ROWS
        qk = pd.WarpgroupMma(traits.scores_atom, queries, keys, first_row=row)
        pv = pd.WarpgroupMma(traits.output_atom, b=values, b_transposed=not traits.is_scaled, first_row=row)
        scale = p.scale
        if traits.is_scaled:
            head, kv_head = heads_of(p, tile)
            scale = scale * p.scale_q[head] * p.scale_k[kv_head]
        cap = p.cap if traits.is_capped else None
        softmax = Softmax(qk.accumulators(), pv.accumulators(), scale, cap, *traits.headroom)
        attend(tile, qk, pv, softmax, rings, Turns(consumer.index, traits.consumers))
        store(p, tile, softmax, staging, consumer)


def load(p: Any, tile: AttentionTile, arrays: Sequence[Any], rings: Sequence[pd.Ring]) -> None:
    """Load the queries, then the tiles of keys and values from the last to the first."""
    (queries, keys, values), (q_ring, k_ring, v_ring) = arrays, rings
    batch = 0 if tile.traits.is_packed else tile.batch
    p.q.load(queries, (batch, tile.head, tile.q_start + tile.first, 0), q_ring.acquire().full)
    q_ring.commit()
    for i in pd.range(tile.count, unroll=1):
        row = tile.k_start + (tile.end - 1 - i) * tile.traits.config.keys
        at_values = (0, row) if tile.traits.is_scaled else (row, 0)
        for tensor, array, ring, at in ((p.k, keys, k_ring, (row, 0)), (p.v, values, v_ring, at_values)):
            slot = ring.acquire()
            tensor.load(array.address(slot.index, 0, 0, 0, 0), (batch, tile.kv_head, *at), slot.full)
            ring.commit()


def heads_of(p: Any, tile: AttentionTile) -> tuple[Any, Any]:
    """Return the numbers of the head and of its key head among those of all batches."""
    heads = pd.nctaid.y * p.band
    return pd.ctaid.z * heads + tile.head, pd.ctaid.z * (heads // p.group) + tile.kv_head


def attend(
    tile: Any,
    qk: pd.WarpgroupMma,
    pv: pd.WarpgroupMma,
    softmax: Softmax,
    rings: Sequence[pd.Ring],
    turns: Turns,
) -> None:
    """Visit all tiles of keys: masked ones at the end of the window, whole ones, and masked ones at its beginning."""
    (q_ring, k_ring, v_ring), weights, dtype = rings, pv.a_registers(), tile.traits.dtype

    def visit(number: Any, is_masked: bool) -> None:
        """Compute the weights of a tile while those of the tile before are multiplied by its values."""
        turns.begin()
        qk(softmax.scores, 0, k_ring.wait(), accumulate=False)
        pv(softmax.output, weights, v_ring.wait())
        turns.end()
        qk.wait(1)
        k_ring.release()
        softmax.limit(tile, number, is_masked)
        softmax.weigh()
        pv.wait(0)
        v_ring.release()
        softmax.rescale()
        softmax.scores.as_a(dtype, out=weights, in_order=False)

    q_ring.wait()
    with pd.if_(tile.count > 0):
        turns.begin()
        qk(softmax.scores, 0, k_ring.wait(), accumulate=False)
        turns.end()
        qk.wait(0)
        k_ring.release()
        softmax.limit(tile, tile.end - 1, is_masked=True)
        softmax.weigh()
        softmax.scores.as_a(dtype, out=weights, in_order=False)
        top = pd.min(tile.end - 1, tile.whole_end)
        for i in pd.range(tile.end - 1 - top, unroll=1):
            visit(tile.end - 2 - i, True)
        bottom = pd.max(tile.begin, pd.min(tile.whole_begin, top))
        for _ in pd.range(top - bottom, unroll=1):
            visit(0, False)
        if tile.traits.is_bounded[0]:
            for i in pd.range(bottom - tile.begin, unroll=1):
                visit(bottom - 1 - i, True)
        pv(softmax.output, weights, v_ring.wait())
        pv.wait(0)
        v_ring.release()


def store(p: Any, tile: AttentionTile, softmax: Softmax, staging: Any, consumer: pd.warpgroup) -> None:
    """Store the log-sum-exp of each row, and the output through shared memory."""
    outer = 0 if tile.traits.is_packed else tile.batch, tile.head
    for row, lse in softmax.finish():
        query = row.index.to(pd.s32) + tile.first
        with pd.if_((query < tile.m) & (row.first_column == 0)):
            p.lse[offset(p.lse_strides, *outer) + (tile.q_start + query).to(pd.s64)] = lse
    if tile.traits.is_scaled:
        factor = p.scale_v[heads_of(p, tile)[1]]
        for value in softmax.output.registers:
            value *= factor
    out = p.out + offset(p.out_strides, *outer)
    rows = tile.q_start + tile.first, tile.q_start + tile.m
    store_tile(softmax.output, staging, consumer.index * ROWS, tile.traits.out_type, out, p.out_strides[2], rows)


@public
@called_elsewhere(**ELSEWHERE)
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    out: Any = None,
    return_lse: bool = False,
    config: AttentionConfig | None = None,
) -> Any:
    """Compute softmax(scale · q @ kᵀ) @ v for each head, and return it.

    q (B, H, M, D), k (B, Hkv, N, D), v (B, Hkv, N, Dv): float16 or bfloat16, all of one type, with contiguous columns
        and other strides of multiples of 16 bytes: views of packed qkv, or of (B, M, H, D) arrays, are read in place.
        H is a multiple of Hkv. D is 64, 96, 128, 192 (with Dv 128) or 256. numpy arrays run on the emulator, CUDA
        arrays on an sm_90 GPU.
    causal: query i of M sees the keys up to i + N - M.
    window: (left, right): query i sees the keys from i + N - M - left to i + N - M + right; None for no bound.
    scale: 1/√D by default; positive.
    softcap: if positive, scores become softcap · tanh(scale · score / softcap).
    out (B, H, M, Dv): the output, allocated row-major by default. May be q.
    return_lse: return (out, lse), where lse (B, H, M) is the logarithm of the sum of exp(score), in float32.
    config: the tile, an AttentionConfig; by default chosen for D.

    A query that sees no key gets an output of 0 and an lse of -inf. Raises LaunchError for arrays that do not fit each
    other or the kernel; nothing is written then.

    >>> out = attention(q, k, v, causal=True)
    """
    return run(
        attention_kernel, (q, k, v), None, causal=causal, window=window, scale=scale, softcap=softcap, out=out,
        return_lse=return_lse, config=config,
    )  # fmt: skip


@public
@called_elsewhere(cu_seqlens_q="pass `q_offsets`", cu_seqlens_k="pass `k_offsets`", **ELSEWHERE)
def attention_varlen(
    q: Any,
    k: Any,
    v: Any,
    q_offsets: Any,
    k_offsets: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    out: Any = None,
    return_lse: bool = False,
    config: AttentionConfig | None = None,
) -> Any:
    """Compute attention of sequences of different lengths, packed along the rows.

    q (M, H, D), k (N, Hkv, D), v (N, Hkv, Dv): the rows of all sequences in order; otherwise as in `attention`.
    q_offsets, k_offsets (S + 1,): int32; the rows of sequence s are q_offsets[s] to q_offsets[s + 1], ascending. On a
        GPU, they are not read on the host: offsets outside of the arrays give wrong results.
    out (M, H, Dv) and lse (H, M) are packed alike; the other arguments are those of `attention`.

    >>> out = attention_varlen(q, k, v, offsets, offsets, causal=True)
    """
    return run(
        attention_kernel, (q, k, v), (q_offsets, k_offsets), causal=causal, window=window, scale=scale, softcap=softcap,
        out=out, return_lse=return_lse, config=config,
    )  # fmt: skip


attention.kernel = attention_kernel  # type: ignore[attr-defined]  # for `ptxdsl dump`
