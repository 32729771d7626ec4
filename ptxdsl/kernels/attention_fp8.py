"""Attention of 8-bit q, k and v (e4m3) on sm_90a, with one scale a head: out = softmax(scale · q @ kᵀ) @ v.

The kernel is that of `attention`. The weights become e4m3 in registers: they are 2**8 at most, so that small
ones keep their bits. wgmma reads 8-bit operands along K only, which are the keys, so a first kernel transposes V. It
also puts the keys in the order of the weights, which then need no exchange between lanes.
"""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import b32, s64
from ptxdsl.errors import public
from ptxdsl.kernels.attention import attention_kernel
from ptxdsl.kernels.flash.call import remembered
from ptxdsl.kernels.flash.fp8 import PADDED, Fp8Call, transpose_parameters
from ptxdsl.kernels.flash.output import offset
from ptxdsl.kernels.flash.problem import window_of
from ptxdsl.kernels.flash.traits import WARP, WARPGROUP

HEAD = 128  # columns of q, k and v
COLUMNS, UNIT_KEYS = 4, 16  # of a word, and of 16 bytes, in which `Accumulators.as_a(in_order=False)` permutes keys
UNITS = PADDED // UNIT_KEYS
KEYS_OF_WORDS = [[2 * t + 8 * h + b for h in range(2) for b in range(2)] for t in range(4)]


@pd.kernel(reqntid=WARPGROUP)
def transpose_kernel(p: transpose_parameters()) -> None:
    """Write V (batch, head, key, 128) as (batch, head, 128, padded key); keys past the end are zero.

    A block transposes 128 keys: a lane loads four columns of 32 keys, and stores 16 keys of a column, of 4 columns a
    warp. The grid is (padded keys / 128, heads, batches).
    """
    tile = pd.shared(b32, (HEAD, UNITS, 4))  # units of 16 keys, in an order that avoids bank conflicts
    first = pd.ctaid.x * PADDED
    source = p.v + offset(p.strides, pd.ctaid.z, pd.ctaid.y) + (pd.laneid * COLUMNS).to(s64)
    words = [pd.var(b32, 0) for _ in range(WARP)]  # of each key, four columns
    for i, word in enumerate(words):
        key = first + pd.warpid * WARP + i
        with pd.if_(key < p.n):
            word.set(pd.ptx.ld.global_.b32(source + key.to(s64) * p.strides[2]))
    for half in range(2):
        units = zip(*(transposed([words[half * UNIT_KEYS + n] for n in keys]) for keys in KEYS_OF_WORDS), strict=True)
        for i, unit in enumerate(units):
            at = (pd.warpid * 2 + half) ^ pd.laneid % UNITS
            pd.ptx.st.shared.v4.b32(tile.address(pd.laneid * COLUMNS + i, at, 0), unit)
    pd.ptx.bar.sync(0)
    padded, number = pd.nctaid.x * PADDED, pd.tid.x % UNITS
    target = p.out + ((pd.ctaid.z * pd.nctaid.y + pd.ctaid.y) * HEAD).to(s64) * padded.to(s64)
    for begin in range(0, HEAD, WARPGROUP // UNITS):
        column = pd.tid.x // UNITS + begin
        at = number ^ column // COLUMNS % UNITS
        row = target + (column.to(s64) * padded.to(s64) + (first + number * UNIT_KEYS).to(s64))
        pd.ptx.st.global_.v4.b32(row, pd.ptx.ld.shared.v4.b32(tile.address(column, at, 0)))


def transposed(rows: list[Any]) -> list[Any]:
    """Transpose four rows of four bytes."""
    a, b, c, d = rows
    halves = [(pd.ptx.prmt.b32(a, b, bytes_), pd.ptx.prmt.b32(c, d, bytes_)) for bytes_ in (0x5140, 0x7362)]
    return [pd.ptx.prmt.b32(upper, lower, bytes_) for upper, lower in halves for bytes_ in (0x5410, 0x7632)]


@public
def attention_fp8(
    q: Any,
    k: Any,
    v: Any,
    scale_q: Any,
    scale_k: Any,
    scale_v: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    out: Any = None,
    return_lse: bool = False,
) -> Any:
    """Compute softmax(scale · (scale_q·q) @ (scale_k·k)ᵀ) @ (scale_v·v) for each head, and return it.

    q (B, H, M, 128), k and v (B, Hkv, N, 128): float8_e4m3fn, with the strides of `attention`. H is a multiple of Hkv.
    scale_q (B, H), scale_k and scale_v (B, Hkv): float32, the scale of each head.
    causal, window, scale: as in `attention`.
    out (B, H, M, 128): bfloat16 or float16, allocated as bfloat16 by default.
    return_lse: return (out, lse), where lse (B, H, M) is the logarithm of the sum of exp(score), in float32.

    v is transposed first, into memory of its size: wgmma reads 8-bit operands along K only. Weights are rounded to e4m3
    before they are multiplied by v; the tensor cores add products with fewer bits than float32 has. A query that
    sees no key gets an output of 0 and an lse of -inf. Raises LaunchError for arrays that do not fit each other or the
    kernel; nothing is written then.

    >>> out = attention_fp8(q, k, v, scale_q, scale_k, scale_v, causal=True)
    """
    kernels, arrays = (transpose_kernel, attention_kernel), (out, q, k, v, scale_q, scale_k, scale_v)
    results = remembered(Fp8Call, kernels, arrays, window_of(causal, window), scale)
    return results if return_lse else results[0]
