"""A GEMM by CTA pairs: two blocks of a cluster multiply together, and clusters take over tiles of others.

    python examples/23_cta_pairs.py [--device cuda]

The kernel of example 22 by `cta_group::2`: one thread of the even block multiplies for both. Each block holds half of
the rows of A and of D, and half of B, so B is loaded once for twice as many rows. The loads of both blocks complete at
mbarriers of the even block, and the commit of a product arrives in both. There is a cluster for each tile; those that
run cancel others before they start, and compute their tiles. Needs a B200 or GB300, or no GPU at all.

New here: `pair=True`, an atom with M = 256, and cluster launch control (`pd.ClusterLaunchControl`).
"""

import sys

import numpy as np
from arrays import ON_GPU, check, to_device

import ptxdsl as pd
from ptxdsl import driver, f16, f32, ptr, u32

M, N, K, STAGES = 256, 128, 64, 4  # of a pair
THREADS = 256  # warps 0 to 2: loads, products, requests; warps 4 to 7: the epilogue
TARGETS = "sm_100a", "sm_103a"
ATOM = f"tcgen05.m{M}n{N}k16.f32.f16"
COLUMNS = 32  # of the accumulators, which a thread of the epilogue loads at once
A, B = pd.TensorMap(f16, (M // 2, K), swizzle=128), pd.TensorMap(f16, (N // 2, K), swizzle=128)


def load(a, b, arrays, ring, tiles, rank, columns, steps):
    for tile in tiles:
        pair = tile.x // 2
        corners = pair // columns * M + rank * (M // 2), pair % columns * N + rank * (N // 2)
        for step in pd.range(steps):
            slot = ring.acquire()
            for tensor, array, first in zip((a, b), arrays, corners, strict=True):
                tensor.load(array.address(slot.index, 0, 0), (first, step * K), slot.full)
            ring.commit()


def multiply(mma, ring, accumulators, ready, tiles, rank, steps):
    for _ in tiles:
        with pd.if_(rank == 0):
            target = accumulators[ready.acquire()]
            for step in pd.range(steps):
                slot = ring.wait()
                mma(target, slot, slot, accumulate=step > 0)
                ring.release(after_mma=True)
            ready.commit(after_mma=True)


def store(c, m, n, accumulators, ready, tiles, rank, columns):
    for tile in tiles:
        source, pair = accumulators[ready.wait()], tile.x // 2
        for first in range(0, N, COLUMNS):
            for row in source.load(first, COLUMNS).rows():
                i, j = pair // columns * M + rank * (M // 2) + row.index, pair % columns * N + row.first_column
                for k in range(0, COLUMNS, 4):
                    with pd.if_((i < m) & (j + k < n)):
                        pd.ptx.st.global_.v4.f32(c + (i * n + j + k), row.registers[k : k + 4])
        ready.release()


@pd.kernel(arch="sm_100a", reqntid=THREADS, cluster=2)
def gemm(a: A, b: B, c: ptr[f32], m: u32, n: u32, columns: u32, steps: u32):
    """c = a @ b.T: a is m x k, b is n x k, c is m x n; n is a multiple of 4, and k of 8."""
    arrays, rank = (a.shared(STAGES), b.shared(STAGES)), pd.special("%cluster_ctarank")
    ring = pd.Ring(STAGES, stage_bytes=a.bytes + b.bytes, consumers=1, pair=True)
    ready = pd.Ring(2, producers=1, consumers=128, tensor_memory=True, pair=True)
    tiles = pd.ClusterLaunchControl(readers=2 + 128)
    with pd.tensor_memory(2 * N, pair=True) as memory:
        mma = pd.TensorMemoryMma(memory, ATOM, *arrays)
        accumulators = mma.accumulators(stages=2)
        with pd.warp(0), pd.elect():
            load(a, b, arrays, ring, tiles, rank, columns, steps)
        with pd.warp(1), pd.elect():
            multiply(mma, ring, accumulators, ready, tiles, rank, steps)
        with pd.warp(2), pd.elect():
            tiles.request()
        with pd.warpgroup(1):
            store(c, m, n, accumulators, ready, tiles, rank, columns)


def arguments(a, b, c):
    """The grid, the block and the arguments of a launch: a cluster for each tile."""
    (m, k), n = a.shape, b.shape[0]
    columns = -(-n // N)
    return 2 * -(-m // M) * columns, THREADS, a, b, c, m, n, columns, -(-k // K)


def example_gemm(rng):
    a, b = (rng.standard_normal((rows, 136)).astype(np.float16) for rows in (600, 200))
    return arguments(a, b, np.zeros((600, 200), np.float32))


def main():
    if ON_GPU and driver.device_arch() not in TARGETS:
        sys.exit(f"--device cuda: the GPU is {driver.device_arch()}; tcgen05 needs one of {', '.join(TARGETS)}")
    for m, n, k in ((1024, 256, 256), (600, 200, 136), (1, 4, 8)):
        rng = np.random.default_rng(23)
        a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
        c = to_device(np.full((m, n), np.nan, np.float32))
        grid, block, *rest = arguments(to_device(a), to_device(b), c)
        gemm[grid, block](*rest)
        check(f"{m} x {n} x {k}", c, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-4)


if __name__ == "__main__":
    main()
