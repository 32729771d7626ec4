"""The statistics of the rows of attention that its gradient needs, and the kernel that computes them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.kernels.flash.backward import BackwardTraits
from ptxdsl.kernels.flash.output import offset
from ptxdsl.kernels.flash.tile import find_sequence
from ptxdsl.kernels.flash.traits import WARP, WARPGROUP
from ptxdsl.types import s32, s64

LOG2_E = math.log2(math.e)
PADDED = 384  # rows of the statistics of a sequence are padded to this, a multiple of the queries of all tiles
BLOCK_ROWS = 16  # rows of a block of the kernel
WARP_ROWS = BLOCK_ROWS * WARP // WARPGROUP  # their loads are in flight at once
VECTOR = 4  # elements of a 16-byte store
DEFAULT = BackwardTraits()


@lru_cache(maxsize=256)
def statistics_parameters(traits: BackwardTraits) -> Any:
    """Return the parameters of the statistics kernel: the output and its gradient, with their elements between batches,
    heads and rows, and the statistics of `rows` rows a head that it reads and of `padded` rows that it writes. `sums`
    are those of `QueryGradient`, which become zero.
    """
    return pd.Parameters.of(
        "AttentionStatistics",
        out=ptr[traits.dtype],
        dout=ptr[traits.dtype],
        lse=ptr[f32],
        out_strides=s64[3],
        dout_strides=s64[3],
        rows=u32,
        padded=u32,
        lse2=ptr[f32],
        delta=ptr[f32],
        **{"sequences": s32, "q_offsets": ptr[s32]} if traits.is_packed else {},
        **{"sums": ptr[f32]} if traits.adds_dq else {},
    )


def first_statistic(q_start: Any, sequence: Any) -> Any:
    """Return the row of the statistics at which those of a packed sequence begin: a multiple of PADDED."""
    return (q_start.to(u32) // PADDED + sequence.to(u32)) * PADDED


def statistic(p: Any, tile: Any, head: Any, row: Any) -> Any:
    """Return the row of the statistics of all heads that holds those of a row of a tile's sequence."""
    if tile.traits.is_packed:
        row = first_statistic(tile.q_start, tile.sequence) + row
    return (tile.batch * p.heads + head) * p.padded + row


@pd.kernel(reqntid=WARPGROUP)
def statistics_kernel(p: statistics_parameters(traits), *, traits: BackwardTraits = DEFAULT) -> None:
    """Write lse·log2(e) and delta = sum(out·dout) of 16 rows, 4 a warp; those past the last row get infinity and 0.

    The grid is (blocks of 16 padded rows, heads, batches).
    """
    first = (pd.ctaid.x * (WARPGROUP // WARP) + pd.warpid) * WARP_ROWS
    if not traits.is_packed:
        write_statistics(p, traits, first, p.rows, 0, 0)
        return
    sequence, tile = find_sequence(pd.ctaid.x // (PADDED // BLOCK_ROWS), p.q_offsets, p.sequences, PADDED)
    start = p.q_offsets[sequence]
    rows = (p.q_offsets[sequence + 1] - start).to(u32)
    with pd.if_(tile * PADDED < rows):  # there are blocks past the last tile
        first = tile * PADDED + first % PADDED
        write_statistics(p, traits, first, rows, start.to(u32), first_statistic(start, sequence))


def write_statistics(p: Any, traits: BackwardTraits, first: Any, rows: Any, source: Any, target: Any) -> None:
    """Write the statistics of the rows of a warp, from `first` on of a sequence of `rows` rows.

    `source` and `target` are the rows of the arrays and of the statistics at which the sequence begins.
    """
    outer, totals = pd.ctaid.z * pd.nctaid.y + pd.ctaid.y, []
    for i in range(WARP_ROWS):
        total = pd.var(f32, 0.0)
        row = (pd.min(first + i, rows - 1) + source).to(pd.s64)
        for column in range(0, traits.head, 2 * WARP):
            out, dout = (
                array
                + (offset(strides, pd.ctaid.z, pd.ctaid.y) + row * strides[2] + (pd.laneid * 2 + column).to(pd.s64))
                for array, strides in ((p.out, p.out_strides), (p.dout, p.dout_strides))
            )
            for j in range(2):
                total += out[j].to(f32) * dout[j].to(f32)
        totals.append(total)
    for total in totals:
        for distance in (1, 2, 4, 8, 16):
            total += pd.ptx.shfl.sync.bfly.b32(total, distance, 31, 0xFFFFFFFF)
    if traits.adds_dq:
        zero = pd.var(f32, 0.0)
        begin = (outer * p.padded + target + first).to(s64) * traits.head + (pd.laneid * VECTOR).to(s64)
        for step in range(0, WARP_ROWS * traits.head, WARP * VECTOR):
            pd.ptx.st.global_.v4.f32(p.sums + (begin + step), [zero] * VECTOR)
    row, delta = first + pd.laneid, pd.var(f32, 0.0)
    with pd.if_(pd.laneid < WARP_ROWS):  # a lane writes those of one row
        exponent = pd.var(f32, math.inf)
        with pd.if_(row < rows):
            value = p.lse[outer * p.rows + source + row]
            exponent.set(pd.select(value == -math.inf, math.inf, value * LOG2_E))
            for i, total in enumerate(totals):
                delta.set(pd.select(pd.laneid == i, total, delta))
        at = outer * p.padded + target + row
        p.lse2[at], p.delta[at] = exponent, delta
