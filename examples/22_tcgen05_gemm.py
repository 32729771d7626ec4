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
from ptxdsl import driver, f16, f32, ptr, u32, u64

M, N, K, STAGES = 128, 128, 64, 4
STEP = 16  # of K in one instruction
THREADS = 256  # warps 0 to 2: loads, products, tensor memory; warps 4 to 7: the epilogue
TARGETS = "sm_100a", "sm_103a"
ATOM_BYTES = 1024  # eight rows of 128 bytes, which are swizzled together
DESCRIPTOR = ATOM_BYTES // 16 << 32 | 1 << 46 | 2 << 61  # stride between atoms, version, 128-byte swizzle
INSTRUCTION = 1 << 4 | N // 8 << 17 | M // 16 << 24  # f32 accumulators of f16 factors, N and M
COLUMNS = 32  # of tensor memory that the epilogue loads at once
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


def multiply(arrays, ring, accumulators, memory, tiles, steps):
    for _ in tiles_of(tiles):
        target = pd.ptx.mov.b32(memory + accumulators.acquire().index * N)
        pd.ptx.tcgen05.fence__after_thread_sync()  # the epilogue has loaded these accumulators
        for step in pd.range(steps):
            slot = ring.wait()
            first = [pd.cast(array.address(slot.index, 0, 0).value, u64) >> 4 | DESCRIPTOR for array in arrays]
            for k in range(0, K, STEP):
                operands = [descriptor + k * f16.bytes // 16 for descriptor in first]
                adds = (step > 0) | pd.cast(k > 0, pd.pred)
                pd.ptx.tcgen05.mma.cta_group__1.kind__f16(target, *operands, pd.cast(INSTRUCTION, u32), adds)
            ring.release(after_mma=True)
        accumulators.commit(after_mma=True)


def store(c, m, n, accumulators, memory, tiles, columns, thread):
    for tile in tiles_of(tiles):
        source = memory + accumulators.wait().index * N + (thread // 32 << 21)  # warp w reaches lanes 32w to 32w + 31
        pd.ptx.tcgen05.fence__after_thread_sync()
        row, first = tile // columns * M + thread, tile % columns * N
        for column in range(0, N, COLUMNS):
            values = pd.ptx.tcgen05.ld.sync.aligned._32x32b.x32.b32(source + column)
            pd.ptx.tcgen05.wait__ld.sync.aligned()
            for i in range(0, COLUMNS, 4):
                with pd.if_((row < m) & (first + (column + i) < n)):
                    pd.ptx.st.global_.v4.b32(c + (row * n + first + (column + i)), values[i : i + 4])
        pd.ptx.tcgen05.fence__before_thread_sync()
        accumulators.release()


@pd.kernel(arch="sm_100a", reqntid=THREADS)
def gemm(a: A, b: B, c: ptr[f32], m: u32, n: u32, tiles: u32, columns: u32, steps: u32):
    """c = a @ b.T: a is m x k, b is n x k, c is m x n; n is a multiple of 4, and k of 8."""
    arrays = a.shared(STAGES), b.shared(STAGES)
    ring = pd.Ring(STAGES, stage_bytes=a.bytes + b.bytes, consumers=1)
    accumulators = pd.Ring(2, producers=1, consumers=128)
    where = pd.shared(u32, 1)
    with pd.warp(2):
        pd.ptx.tcgen05.alloc.cta_group__1.sync.aligned.shared__cta.b32(where.address(0), 2 * N)
        pd.ptx.tcgen05.relinquish_alloc_permit.cta_group__1.sync.aligned()
    pd.ptx.bar.sync(0)
    memory = where[0]
    with pd.warp(0), pd.elect():
        load(a, b, arrays, ring, tiles, columns, steps)
    with pd.warp(1), pd.elect():
        multiply(arrays, ring, accumulators, memory, tiles, steps)
    with pd.warpgroup(1) as epilogue:
        store(c, m, n, accumulators, memory, tiles, columns, epilogue.thread)
    pd.ptx.bar.sync(0)
    with pd.warp(2):
        pd.ptx.tcgen05.dealloc.cta_group__1.sync.aligned.b32(pd.ptx.mov.b32(memory), 2 * N)


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
