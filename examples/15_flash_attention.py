"""Attention in one kernel: o = softmax(q @ k.T / 8) @ v, causal, by TMA and wgmma; the scores never leave registers.

    python examples/15_flash_attention.py                  # on the emulator
    python examples/15_flash_attention.py --device cuda    # and its speed, on an H100 or H200

q, k, v and o are (heads, length, 64), of any length, in bf16. One thread loads 128 keys, then their values, for three
warpgroups of 64 queries each. New here: wgmma with A in registers and with a transposed B; boxes of three-dimensional
arrays.
"""

import math
from typing import Annotated

import ml_dtypes
import numpy as np
from arrays import ON_GPU, check, seconds, to_device

import ptxdsl as pd
from ptxdsl import bf16, f32, ptr, u32, u64
from ptxdsl.layout import shared_operand, tile_layout

HEAD, KEYS, QUERIES, STAGES = 64, 128, 192, 4
SCALE = math.log2(math.e) / math.sqrt(HEAD)
Q = shared_operand("wgmma.m64n128k16.f32.bf16", "a", tile_layout(QUERIES, HEAD, bf16.bits))
K = shared_operand("wgmma.m64n128k16.f32.bf16", "b", tile_layout(KEYS, HEAD, bf16.bits))
V = shared_operand("wgmma.m64n64k16.f32.bf16", "b", tile_layout(HEAD, KEYS, bf16.bits, transposed=True))
Queries = Annotated[pd.MappedTensor, pd.TensorMap(bf16, (1, QUERIES, HEAD), swizzle=128)]
# Rows past the end of a head are loaded as zeros.
Tile = Annotated[pd.MappedTensor, pd.TensorMap(bf16, (1, KEYS, HEAD), swizzle=128)]


@pd.kernel(arch="sm_90a", reqntid=512)
def attention(q: Queries, k: Tile, v: Tile, o: ptr[bf16], length: u32):
    queries, tiles = q.shared(), k.shared(STAGES)
    q_ring = pd.Ring(1, stage_bytes=q.bytes, consumers=384, each="warpgroup")
    ring = pd.Ring(STAGES, stage_bytes=k.bytes, consumers=384, each="warpgroup")
    head, first = pd.ctaid.x, (pd.nctaid.y - 1 - pd.ctaid.y) * QUERIES  # blocks with the most keys start first
    key_tiles = (pd.min(first + QUERIES, length) + (KEYS - 1)) // KEYS

    with pd.warpgroup(0, registers=32), pd.warp(0), pd.elect():
        q.load(queries, (head, first, 0), q_ring.acquire().full)
        q_ring.commit()
        for i in pd.range(key_tiles):
            for array in (k, v):
                slot = ring.acquire()
                array.load(tiles.address(slot.index, 0, 0, 0), (head, i * KEYS, 0), slot.full)
                ring.commit()

    with pd.warpgroup(1, 2, 3, registers=160) as consumer:
        row = first + consumer.thread // 32 * 16 + pd.laneid // 4  # and row + 8; columns 2t and 2t + 1 of every 8
        scores, acc = [pd.var(f32) for _ in range(KEYS // 2)], [pd.var(f32, 0) for _ in range(HEAD // 2)]
        maximum, total = ([pd.var(f32, start) for _ in range(2)] for start in (-math.inf, 0))
        q_ring.wait()
        of_q = Q.descriptor(queries.address().value.to(u64), consumer.index.to(u64))
        for i in pd.range(key_tiles):
            multiply(scores, [(Q.advanced(of_q, 0, step), 0) for step in range(HEAD // 16)], K, tiles, ring, adds=False)
            with pd.if_((i + 1) * KEYS > first):  # mask the keys after each query
                for j, score in enumerate(scores):
                    key = pd.laneid % 4 * 2 + i * KEYS + (j // 4 * 8 + j % 2)
                    score.set(pd.select(key > row + j // 2 % 2 * 8, -math.inf, score))
            softmax_tile(scores, maximum, total, acc)
            words = [pd.ptx.cvt.rn.bf16x2.f32(scores[j + 1], scores[j]) for j in range(0, KEYS // 2, 2)]
            multiply(acc, [(words[j : j + 4],) for j in range(0, len(words), 4)], V, tiles, ring, adds=True)
        store(o + head * length * HEAD, row, length, acc, total)


def multiply(out, a, b, tiles, ring, adds):
    """Compute out = a @ b, or add to out. A K step of `a` is a descriptor and its order, or registers."""
    of_b = b.descriptor(tiles.address(ring.wait().index, 0, 0, 0).value.to(u64))
    wgmma = f"wgmma.mma_async.sync.aligned.m64n{2 * len(out)}k16.f32.bf16.bf16"
    pd.ptx.wgmma.fence.sync.aligned()
    for step, (of_a, *order) in enumerate(a):
        pd.ptx(wgmma, of_a, b.advanced(of_b, 0, step), adds or step > 0, 1, 1, *order, int(b.transposed), out=out)
    pd.ptx.wgmma.commit_group.sync.aligned()
    pd.ptx.wgmma.wait_group.sync.aligned(0)
    ring.release()


def softmax_tile(scores, maximum, total, acc):
    """Replace scores by 2 ** (scaled score - row maximum); when the maximum grows, rescale acc and total."""
    for half in range(2):
        of_row = [score for j, score in enumerate(scores) if j // 2 % 2 == half]
        before, now = maximum[half].value, row_reduce(pd.max, pd.max(maximum[half], *of_row))
        maximum[half].set(now)
        correction = pd.ptx.ex2.approx.f32((before - now) * SCALE)
        for value in [total[half], *(value for j, value in enumerate(acc) if j // 2 % 2 == half)]:
            value *= correction
        for score in of_row:
            score.set(pd.ptx.ex2.approx.f32(pd.fma(score, SCALE, now * -SCALE)))
            total[half] += score


def row_reduce(combine, value):
    """Reduce over the four lanes that share a row."""
    for distance in (1, 2):
        value = combine(value, pd.ptx.shfl.sync.bfly.b32(value, distance, 31, 0xFFFFFFFF))
    return value


def store(o, row, length, acc, total):
    for half in range(2):
        row_sum, at = row_reduce(lambda a, b: a + b, total[half].value), row + half * 8
        with pd.if_(at < length):
            for j in range(2 * half, HEAD // 2, 4):
                pair = pd.ptx.cvt.rn.bf16x2.f32(acc[j + 1] / row_sum, acc[j] / row_sum)
                pd.ptx.st.global_.b32(o + at * HEAD + pd.laneid % 4 * 2 + j // 4 * 8, pair)


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
