"""A Hopper GEMM: one warpgroup loads tiles by TMA, two multiply them by wgmma, and a ring of mbarriers connects them.

    python examples/12_warp_specialised_gemm.py                  # on the emulator
    python examples/12_warp_specialised_gemm.py --device cuda    # and its speed, on an H100 or H200

c = a @ b.T for a of (m, k) and b of (n, k), in bf16 with f32 accumulators. Persistent blocks compute 128 x 256 tiles.

New here: roles with their own register counts, tiled TMA copies and descriptors that are both derived from the
layout of a tile, and an epilogue through shared memory: stmatrix, an async proxy fence, a TMA store.
"""

from typing import Annotated

import ml_dtypes
import numpy as np
from arrays import ON_GPU, check, seconds, to_device

import ptxdsl as pd
from ptxdsl import bf16, f32, u32, u64
from ptxdsl.layout import make_tiled_copy, shared_operand, tile_layout

M, N, K = 128, 256, 64
STAGES, CONSUMERS, WARPGROUP = 3, 2, 128
ROWS, COLUMNS = M // CONSUMERS, 64  # of c: the rows of a warpgroup, and the columns of a box, 128 bytes
ATOM = "wgmma.m64n256k16.f32.bf16"
LOAD_A = make_tiled_copy("cp.async.bulk.tensor.shared.global", tile_layout(M, K, bf16.bits))
LOAD_B = make_tiled_copy("cp.async.bulk.tensor.shared.global", tile_layout(N, K, bf16.bits))
STORE_C = make_tiled_copy("cp.async.bulk.tensor.global.shared", tile_layout(ROWS, N, bf16.bits))  # in four boxes


@pd.kernel(arch="sm_90a", reqntid=384)
def gemm(
    a: Annotated[pd.MappedTensor, pd.TensorMap.of(bf16, LOAD_A)],
    b: Annotated[pd.MappedTensor, pd.TensorMap.of(bf16, LOAD_B)],
    c: Annotated[pd.MappedTensor, pd.TensorMap.of(bf16, STORE_C)],
    tiles_m: u32,
    tiles: u32,
    steps: u32,
):
    tiles_a, tiles_b, tiles_c = a.shared(STAGES), b.shared(STAGES), c.shared(CONSUMERS)
    ring = pd.Ring(STAGES, stage_bytes=a.bytes + b.bytes, consumers=CONSUMERS * WARPGROUP, each="warpgroup")

    with pd.warpgroup(0, registers=40), pd.warp(0), pd.elect():
        for tile in pd.range(pd.ctaid.x, tiles, pd.nctaid.x):
            row, column = tile % tiles_m * M, tile // tiles_m * N
            for k in pd.range(steps):
                slot = ring.acquire()
                LOAD_A.copy(a, (row, k * K), tiles_a.address(slot.index, 0, 0), slot.full)
                LOAD_B.copy(b, (column, k * K), tiles_b.address(slot.index, 0, 0), slot.full)
                ring.commit()

    with pd.warpgroup(1, 2, registers=232) as consumer:
        acc = [pd.var(f32) for _ in range(N // 2)]
        leader = consumer.thread % WARPGROUP == 0
        for tile in pd.range(pd.ctaid.x, tiles, pd.nctaid.x):
            for k in pd.range(steps):
                slot = ring.wait()
                stage = tiles_a.address(slot.index, 0, 0), tiles_b.address(slot.index, 0, 0)
                multiply(stage, consumer.index, k > 0, acc)
                ring.release()
            row, column = tile % tiles_m * M + consumer.index * ROWS, tile // tiles_m * N
            store(c, tiles_c, row, column, acc, consumer, leader)
        with pd.if_(leader):
            pd.ptx.cp.async_.bulk.wait_group(0)


def multiply(stage, part, add, acc):
    """Compute acc = a @ b.T, plus acc if `add`: 64 rows of a tile of a, along the K of one stage."""
    a, b = shared_operand(ATOM, "a", LOAD_A.layout), shared_operand(ATOM, "b", LOAD_B.layout)
    first_a, first_b = (x.descriptor(tile.value.to(u64)) for x, tile in zip((a, b), stage, strict=True))
    first_a = a.advanced(first_a, part.to(u64))
    pd.ptx.wgmma.fence.sync.aligned()
    for step in range(K // 16):
        pair = a.advanced(first_a, 0, step), b.advanced(first_b, 0, step)
        adds = add if step == 0 else True
        pd.ptx.wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16(*pair, adds, 1, 1, 0, 0, out=acc)
    pd.ptx.wgmma.commit_group.sync.aligned()
    pd.ptx.wgmma.wait_group.sync.aligned(0)


def store(c, tiles_c, row, column, acc, consumer, leader):
    """Store a warpgroup's accumulators: as bf16 to shared memory, from where one thread issues the TMA stores."""
    with pd.if_(leader):
        pd.ptx.cp.async_.bulk.wait_group.read(0)  # the boxes of the previous tile have been read
    consumer.warpgroup_barrier()
    lane, warp = pd.laneid, consumer.thread % WARPGROUP // 32
    for n in range(0, N, 16):  # each lane passes the address of a row of 8 elements
        words = [pd.ptx.cvt.rn.bf16x2.f32(acc[i + 1], acc[i]) for i in range(n // 2, n // 2 + 8, 2)]
        target = tiles_c.address(consumer.index, warp * 16 + lane % 16, (n % COLUMNS + lane // 16 * 8, n // COLUMNS))
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(target, words)
    pd.ptx.fence.proxy.async_.shared__cta()
    consumer.warpgroup_barrier()
    with pd.if_(leader):
        STORE_C.copy(c, (row, column), tiles_c.address(consumer.index, 0, 0), commit=True)


def matmul(a, b, c, blocks=132):
    """Compute c = a @ b.T; k and n are multiples of 8."""
    (m, k), n = a.shape, b.shape[0]
    tiles_m, tiles_n = -(-m // M), -(-n // N)
    gemm[min(blocks, tiles_m * tiles_n), 384](a, b, c, tiles_m, tiles_m * tiles_n, -(-k // K))


def operands(m, n, k):
    """Return a, b and an empty c."""
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
    return a, b, np.zeros((m, n), ml_dtypes.bfloat16)


def example_gemm(rng):
    return 1, 384, *operands(136, 200, 136), 2, 2, 3


def main():
    a, b, c = operands(136, 264, 136)
    x, y, z = (to_device(array) for array in (a, b, c))
    matmul(x, y, z, blocks=3)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    check("a warp-specialised GEMM of 136 x 264 x 136", z, expected, tolerance=0.2)
    if ON_GPU:
        size = 4096
        x, y, z = (to_device(array) for array in operands(size, size, size))
        print(f"    {2 * size**3 / seconds(lambda: matmul(x, y, z)) / 1e12:.0f} TFLOP/s at {size} x {size} x {size}")


if __name__ == "__main__":
    main()
