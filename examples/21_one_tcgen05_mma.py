"""One tcgen05.mma of Blackwell: D = A @ B with a 128x64 D in tensor memory, 16 of K at a time.

    python examples/21_one_tcgen05_mma.py [--device cuda]

One thread issues the products of a whole block. A and B are in shared memory: 64-bit descriptors give their layout, and
a 32-bit instruction descriptor gives types and shape. D is in tensor memory, 128 lanes of up to 512 columns, which a
warp allocates and frees. The commit of the products arrives at an mbarrier; then each warp loads its quarter of the
lanes. Needs a B200 or GB300, or no GPU at all.

New here: tensor memory, tcgen05, and the fences between its instructions and the threads.
"""

import sys

import numpy as np
from arrays import ON_GPU, check, to_device

import ptxdsl as pd
from ptxdsl import driver, f16, f32, ptr, u32, u64
from ptxdsl.layout import mma_atom, shared_operand, tile_layout

M, N, K = 128, 64, 64
STEP = 16  # of K in one instruction
THREADS = 128
TARGETS = "sm_100a", "sm_103a"

MMA = mma_atom(f"tcgen05.m{M}n{N}k{STEP}.f32.f16")
A = shared_operand(MMA, "a", tile_layout(M, K, f16.bits))  # rows of 128 bytes, swizzled
B = shared_operand(MMA, "b", tile_layout(N, K, f16.bits))


def fill(tile, source, tile_rows, rows, columns):
    """Copy source, rows x columns, into a tile in shared memory, and zero the rest."""
    for step in range(0, tile_rows * K, THREADS):
        at = pd.tid.x + step
        row, column = at // K, at % K
        value = pd.var(f16, 0.0)
        with pd.if_((row < rows) & (column < columns)):
            value.set(source[row * columns + column])
        tile[row, column] = value


@pd.kernel(reqntid=THREADS, arch="sm_100a")
def one_mma(a: ptr[f16], b: ptr[f16], d: ptr[f32], m: u32, n: u32, k: u32):
    """Multiply a, row-major m x k, by b, column-major k x n; column-major k x n is row-major n x k."""
    tile_a = pd.shared(f16, A.layout, align=A.alignment_bytes)
    tile_b = pd.shared(f16, B.layout, align=B.alignment_bytes)
    where, done = pd.shared(u32, 1), pd.shared(u64, 1)
    warp = pd.tid.x // 32

    with pd.if_(warp == 0):
        pd.ptx.tcgen05.alloc.cta_group__1.sync.aligned.shared__cta.b32(where.address(0), N)
        pd.ptx.tcgen05.relinquish_alloc_permit.cta_group__1.sync.aligned()
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(done.address(0), 1)
    fill(tile_a, a, M, m, k)
    fill(tile_b, b, N, n, k)
    pd.ptx.fence.proxy.async_.shared__cta()  # make the threads' writes visible to the async proxy, which mma uses
    pd.ptx.bar.sync(0)
    sums = pd.ptx.ld.shared.b32(where.address(0))

    with pd.if_(pd.tid.x == 0):
        first_a, first_b = A.descriptor(tile_a.address().value.to(u64)), B.descriptor(tile_b.address().value.to(u64))
        for step in range(K // STEP):
            operands = A.advanced(first_a, 0, step), B.advanced(first_b, 0, step)
            pd.ptx.tcgen05.mma.cta_group__1.kind__f16(sums, *operands, MMA.descriptor(), step > 0)
        pd.ptx.tcgen05.commit.cta_group__1.mbarrier__arrive__one.shared__cluster.b64(done.address(0))
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(done.address(0), 0)):
        pass
    pd.ptx.tcgen05.fence__after_thread_sync()  # the loads come after the wait

    # Warp w reaches lanes 32w to 32w + 31 of tensor memory, which are rows of D.
    row = pd.ptx.tcgen05.ld.sync.aligned._32x32b.x64.b32(sums.bitcast(u32) + (warp << 21))
    pd.ptx.tcgen05.wait__ld.sync.aligned()
    for column, value in enumerate(row):
        with pd.if_((pd.tid.x < m) & (column < n)):
            d[pd.tid.x * n + column] = value.bitcast(f32)
    pd.ptx.bar.sync(0)  # all warps have loaded
    with pd.if_(warp == 0):
        pd.ptx.tcgen05.dealloc.cta_group__1.sync.aligned.b32(sums, N)


def example_one_mma(rng):
    a, b = (rng.standard_normal((rows, 39)).astype(np.float16) for rows in (100, 57))
    return 1, THREADS, a, b, np.zeros((100, 57), np.float32), 100, 57, 39


def main():
    if ON_GPU and driver.device_arch() not in TARGETS:
        sys.exit(f"--device cuda: the GPU is {driver.device_arch()}; tcgen05 needs one of {', '.join(TARGETS)}")
    for m, n, k in ((128, 64, 64), (100, 57, 39), (1, 1, 1)):
        rng = np.random.default_rng(21)
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((n, k)).astype(np.float16)
        d = to_device(np.full((m, n), np.nan, np.float32))
        one_mma[1, THREADS](to_device(a), to_device(b), d, m, n, k)
        check(f"{m} x {n} x {k}", d, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-4)


if __name__ == "__main__":
    main()
