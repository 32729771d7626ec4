"""One warpgroup and its instruction: D = A @ B with 64x64 matrices, 16 of K at a time.

    python examples/11_one_wgmma.py [--device cuda]

wgmma reads A and B from shared memory. 64-bit descriptors give it their layout; pd.WarpgroupMma derives them from the
layout of the tiles, and refuses a layout that no descriptor can express, with a suggestion. It also issues the fence,
the commit and the wait that the tensor cores need. The program draws the descriptor of A.
Needs an H100 or H200, or no GPU at all.

New here: wgmma, descriptors, and the fence between the writes of threads and the reads of tensor cores.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f16, f32, layout, ptr, u32

M, N, K = 64, 64, 64
WARPGROUP = 128
ATOM = "wgmma.m64n64k16.f32.f16"
TILE = layout.tile_layout(M, K, f16.bits)  # rows of 128 bytes, swizzled
A = layout.shared_operand(ATOM, "a", TILE)


def fill(tile, source, rows, columns):
    """Copy source, rows x columns, into a tile in shared memory, and zero the rest."""
    for step in range(0, M * K, WARPGROUP):
        at = pd.tid.x + step
        row, column = at // K, at % K
        value = pd.var(f16, 0.0)
        with pd.if_((row < rows) & (column < columns)):
            value.set(source[row * columns + column])
        tile[row, column] = value


@pd.kernel(reqntid=WARPGROUP, arch="sm_90a")
def one_wgmma(a: ptr[f16], b: ptr[f16], d: ptr[f32], m: u32, n: u32, k: u32):
    """Multiply a, row-major m x k, by b, column-major k x n; column-major k x n is row-major n x k."""
    tile_a, tile_b = (pd.shared(f16, TILE, align=A.alignment_bytes) for _ in range(2))
    fill(tile_a, a, m, k)
    fill(tile_b, b, n, k)
    pd.ptx.fence.proxy.async_.shared__cta()  # make the threads' writes visible to the async proxy, which wgmma uses
    pd.ptx.bar.sync(0)

    mma = pd.WarpgroupMma(ATOM, tile_a, tile_b)
    accumulators = mma.accumulators()
    mma(accumulators)  # four instructions, one for each 16 of K, committed as one group
    mma.wait(0)  # now the accumulators may be read
    for register, (row, column) in zip(accumulators.registers, accumulators.coordinates(), strict=True):
        with pd.if_((row < m) & (column < n)):
            d[row * n + column] = register


def example_one_wgmma(rng):
    a, b = (rng.standard_normal((rows, 39)).astype(np.float16) for rows in (13, 57))
    return 1, WARPGROUP, a, b, np.zeros((13, 57), np.float32), 13, 57, 39


def main():
    for m, n, k in ((64, 64, 64), (13, 57, 39), (1, 1, 1)):
        rng = np.random.default_rng(11)
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((n, k)).astype(np.float16)
        d = to_device(np.full((m, n), np.nan, np.float32))
        one_wgmma[1, WARPGROUP](to_device(a), to_device(b), d, m, n, k)
        check(f"{m} x {n} x {k}", d, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-4)
    print(layout.to_text(A, color=False))


if __name__ == "__main__":
    main()
