"""Attention in one kernel: o = softmax(q @ k.T / 8) @ v, causal, by TMA and wgmma; the scores never leave registers.

    python examples/15_flash_attention.py                  # on the emulator
    python examples/15_flash_attention.py --device cuda    # and its speed, on an H100 or H200

q, k, v and o are (heads, length, 64), of any length, in bf16. One thread loads 128 keys, then their values, for three
warpgroups of 64 queries each. New here: pd.WarpgroupMma, which multiplies tiles; its accumulators, whose rows and
columns are known, as the A of another product; boxes of three-dimensional arrays. `ptxdsl.kernels.attention` is faster.
"""

import math
from typing import Annotated

import ml_dtypes
import numpy as np
from arrays import ON_GPU, check, seconds, to_device

import ptxdsl as pd
from ptxdsl import bf16, f32, ptr, u32

HEAD, KEYS, QUERIES, STAGES, ROWS = 64, 128, 192, 4, 64
SCALE = math.log2(math.e) / math.sqrt(HEAD)
Queries = Annotated[pd.MappedTensor, pd.TensorMap(bf16, (1, QUERIES, HEAD), swizzle=128)]
# Rows past the end of a head are loaded as zeros.
Tile = Annotated[pd.MappedTensor, pd.TensorMap(bf16, (1, KEYS, HEAD), swizzle=128)]


@pd.kernel(arch="sm_90a", reqntid=512)
def attention(q: Queries, k: Tile, v: Tile, o: ptr[bf16], length: u32):
    queries, tiles = q.shared(), k.shared(STAGES)
    begun = pd.Ring(1, stage_bytes=q.bytes, consumers=384, each="warpgroup")
    ring = pd.Ring(STAGES, stage_bytes=k.bytes, consumers=384, each="warpgroup")
    head, first = pd.ctaid.x, (pd.nctaid.y - 1 - pd.ctaid.y) * QUERIES  # those that see most keys begin
    rounds = (pd.min(first + QUERIES, length) + (KEYS - 1)) // KEYS

    with pd.warpgroup(0, registers=32), pd.warp(0), pd.elect():
        q.load(queries, (head, first, 0), begun.acquire().full)
        begun.commit()
        for i in pd.range(rounds):
            for array in (k, v):
                slot = ring.acquire()
                array.load(tiles.address(slot.index, 0, 0, 0), (head, i * KEYS, 0), slot.full)
                ring.commit()

    with pd.warpgroup(1, 2, 3, registers=160) as consumer:
        row = consumer.index * ROWS
        qk = pd.WarpgroupMma("wgmma.m64n128k16.f32.bf16", queries, tiles, first_row=row)
        pv = pd.WarpgroupMma("wgmma.m64n64k16.f32.bf16.rs", b=tiles, b_transposed=True, first_row=row)
        scores, output = qk.accumulators(), pv.accumulators()
        maxima, totals = ([pd.var(f32, start) for _ in scores.rows()] for start in (-math.inf, 0.0))
        begun.wait()
        for i in pd.range(rounds):
            qk(scores, 0, ring.wait(), accumulate=False)
            qk.wait(0)
            ring.release()
            with pd.if_((i + 1) * KEYS > first):  # a query does not see later keys
                mask(scores, first, i * KEYS)
            weigh(scores, output, maxima, totals)
            pv(output, scores.as_a(bf16), ring.wait())
            pv.wait(0)
            ring.release()
        store(o + head * length * HEAD, first, length, output, totals)


def mask(scores, first_query, first_key):
    for row in scores.rows():
        query, key = row.index + first_query, row.first_column + first_key
        for offset, score in zip(row.offsets, row.registers, strict=True):
            score.set(pd.select(key + offset > query, -math.inf, score))


def weigh(scores, output, maxima, totals):
    """Scores become weights, 2 ** (scaled score - maximum); where the maximum grows, output and totals shrink."""
    for row, values, maximum, total in zip(scores.rows(), output.rows(), maxima, totals, strict=True):
        before = maximum.value
        maximum.set(row.reduce(pd.max, pd.max(before, *row.registers)))
        factor = pd.ptx.ex2.approx.f32((before - maximum) * SCALE)
        for value in (total, *values.registers):
            value *= factor
        for score in row.registers:
            score.set(pd.ptx.ex2.approx.f32(pd.fma(score, SCALE, maximum * -SCALE)))
            total += score


def store(o, first, length, output, totals):
    for row, total in zip(output.rows(), totals, strict=True):
        whole, at = row.reduce(lambda a, b: a + b, total.value), row.index + first
        with pd.if_(at < length):
            for offset, low, high in zip(row.offsets[::2], row.registers[::2], row.registers[1::2], strict=True):
                pair = pd.ptx.cvt.rn.bf16x2.f32(high / whole, low / whole)
                pd.ptx.st.global_.b32(o + at * HEAD + row.first_column + offset, pair)


def example_attention(rng):
    q, k, v, o = rng.normal(size=(4, 1, 200, HEAD)).astype(ml_dtypes.bfloat16)
    return (1, 2), 512, q, k, v, o, 200


def main():
    heads, length = (32, 8192) if ON_GPU else (2, 200)
    q, k, v, o = np.random.default_rng(15).normal(size=(4, heads, length, HEAD)).astype(ml_dtypes.bfloat16)
    arrays, grid = [to_device(x) for x in (q, k, v, o)], (heads, -(-length // QUERIES))
    attention[grid, 512](*arrays, length)
    q, k, v = (x[-1].astype(np.float64) for x in (q, k, v))
    weights = np.tri(length) * np.exp(q @ k.T / math.sqrt(HEAD))
    expected = weights @ v / weights.sum(1, keepdims=True)
    check(f"the last of {heads} heads of {length} x {HEAD}", arrays[3][-1], expected, tolerance=0.03)
    if ON_GPU:
        time = seconds(lambda: attention[grid, 512](*arrays, length))
        print(f"    {2e-12 * heads * length**2 * HEAD / time:.0f} TFLOP/s of {heads} heads of {length} x {HEAD}")


if __name__ == "__main__":
    main()
