"""A Hopper GEMM: one warpgroup loads tiles by TMA, two multiply them by wgmma, and a ring of mbarriers connects them.

    python examples/12_warp_specialised_gemm.py                  # on the emulator
    python examples/12_warp_specialised_gemm.py --device cuda    # and its speed, on an H100 or H200

c = a @ b.T for a of (m, k) and b of (n, k), in bf16 with f32 accumulators. Persistent blocks compute 128 x 256 tiles.

New here: roles with their own register counts, tiled TMA copies that are derived from the layout of a tile,
pd.WarpgroupMma, which multiplies tiles, and an epilogue through shared memory: stmatrix, an async proxy fence, a TMA
store.
"""

from typing import Annotated

import ml_dtypes
import numpy as np
from arrays import ON_GPU, check, seconds, to_device

import ptxdsl as pd
from ptxdsl import bf16, u32
from ptxdsl.layout import make_tiled_copy, tile_layout

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
        mma = pd.WarpgroupMma(ATOM, tiles_a, tiles_b, first_row=consumer.index * ROWS)
        accumulators = mma.accumulators()
        leader = consumer.thread % WARPGROUP == 0
        for tile in pd.range(pd.ctaid.x, tiles, pd.nctaid.x):
            for k in pd.range(steps):
                slot = ring.wait()
                mma(accumulators, slot, slot, accumulate=k > 0)
                mma.wait(0)
                ring.release()
            row, column = tile % tiles_m * M + consumer.index * ROWS, tile // tiles_m * N
            store(c, tiles_c, row, column, accumulators, consumer, leader)
        with pd.if_(leader):
            pd.ptx.cp.async_.bulk.wait_group(0)


def store(c, tiles_c, row, column, accumulators, consumer, leader):
    """Store a warpgroup's accumulators: as bf16 to shared memory, from where one thread issues the TMA stores."""
    with pd.if_(leader):
        pd.ptx.cp.async_.bulk.wait_group.read(0)  # the boxes of the previous tile have been read
    consumer.warpgroup_barrier()
    lane, warp = pd.laneid, consumer.thread % WARPGROUP // 32
    for n, words in zip(range(0, N, 16), accumulators.as_a(bf16), strict=True):  # 16 columns
        target = tiles_c.address(consumer.index, warp * 16 + lane % 16, (n % COLUMNS + lane // 16 * 8, n // COLUMNS))
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(target, words)  # a lane: the address of a row of 8 elements
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
