"""A warp-specialised GEMM with tcgen05: TMA, MMA and epilogue warps, with two accumulators in tensor memory.

    python examples/22_tcgen05_gemm.py [--device cuda]

One thread loads tiles of A and B by TMA, one thread multiplies them, and four warps store the products. Two
accumulators in tensor memory are the stages of a ring, so one tile is stored while the next one is multiplied. A stage
of A and B is released, and accumulators are handed to the epilogue, by a commit: it arrives at an mbarrier when the
products are complete. Blocks are persistent. Needs a B200 or GB300, or no GPU at all.

New here: rings whose stages are released by products (`after_mma=`), and accumulators as stages of a ring.
"""

import sys

import numpy as np
from arrays import ON_GPU, check, to_device

import ptxdsl as pd
from ptxdsl import driver, f16, f32, ptr, u32

M, N, K, STAGES = 128, 128, 64, 4
THREADS = 256  # warps 0 and 1: loads and products; warps 4 to 7: the epilogue
TARGETS = "sm_100a", "sm_103a"
ATOM = f"tcgen05.m{M}n{N}k16.f32.f16"
COLUMNS = 32  # of the accumulators, which a thread of the epilogue loads at once
A, B = pd.TensorMap(f16, (M, K), swizzle=128), pd.TensorMap(f16, (N, K), swizzle=128)


def tiles_of(tiles):
    """The tiles of a block."""
    return pd.range(pd.ctaid.x, tiles, pd.nctaid.x)


def load(a, b, arrays, ring, tiles, columns, steps):
    for tile in tiles_of(tiles):
        for step in pd.range(steps):
            slot = ring.acquire()
            for tensor, array, first in ((a, arrays[0], tile // columns * M), (b, arrays[1], tile % columns * N)):
                tensor.load(array.address(slot.index, 0, 0), (first, step * K), slot.full)
            ring.commit()


def multiply(mma, ring, accumulators, ready, tiles, steps):
    for _ in tiles_of(tiles):
        target = accumulators[ready.acquire()]
        for step in pd.range(steps):
            slot = ring.wait()
            mma(target, slot, slot, accumulate=step > 0)
            ring.release(after_mma=True)
        ready.commit(after_mma=True)


def store(c, m, n, accumulators, ready, tiles, columns):
    for tile in tiles_of(tiles):
        source = accumulators[ready.wait()]
        for first in range(0, N, COLUMNS):
            for row in source.load(first, COLUMNS).rows():
                i, j = tile // columns * M + row.index, tile % columns * N + row.first_column
                for k in range(0, COLUMNS, 4):
                    with pd.if_((i < m) & (j + k < n)):
                        pd.ptx.st.global_.v4.f32(c + (i * n + j + k), row.registers[k : k + 4])
        ready.release()


@pd.kernel(arch="sm_100a", reqntid=THREADS)
def gemm(a: A, b: B, c: ptr[f32], m: u32, n: u32, tiles: u32, columns: u32, steps: u32):
    """c = a @ b.T: a is m x k, b is n x k, c is m x n; n is a multiple of 4, and k of 8."""
    arrays = a.shared(STAGES), b.shared(STAGES)
    ring = pd.Ring(STAGES, stage_bytes=a.bytes + b.bytes, consumers=1)
    ready = pd.Ring(2, producers=1, consumers=128, tensor_memory=True)
    with pd.tensor_memory(2 * N) as memory:
        mma = pd.TensorMemoryMma(memory, ATOM, *arrays)
        accumulators = mma.accumulators(stages=2)
        with pd.warp(0), pd.elect():
            load(a, b, arrays, ring, tiles, columns, steps)
        with pd.warp(1), pd.elect():
            multiply(mma, ring, accumulators, ready, tiles, steps)
        with pd.warpgroup(1):
            store(c, m, n, accumulators, ready, tiles, columns)


def arguments(a, b, c, blocks):
    """The grid, the block and the arguments of a launch."""
    (m, k), n = a.shape, b.shape[0]
    columns = -(-n // N)
    tiles = -(-m // M) * columns
    return min(blocks, tiles), THREADS, a, b, c, m, n, tiles, columns, -(-k // K)


def example_gemm(rng):
    a, b = (rng.standard_normal((rows, 136)).astype(np.float16) for rows in (300, 200))
    return arguments(a, b, np.zeros((300, 200), np.float32), blocks=2)


def main():
    if ON_GPU and driver.device_arch() not in TARGETS:
        sys.exit(f"--device cuda: the GPU is {driver.device_arch()}; tcgen05 needs one of {', '.join(TARGETS)}")
    for m, n, k in ((512, 256, 256), (300, 200, 136), (1, 4, 8)):
        rng = np.random.default_rng(22)
        a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
        c = to_device(np.full((m, n), np.nan, np.float32))
        grid, block, *rest = arguments(to_device(a), to_device(b), c, blocks=3)
        gemm[grid, block](*rest)
        check(f"{m} x {n} x {k}", c, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-4)


if __name__ == "__main__":
    main()
