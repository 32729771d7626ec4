"""One warpgroup and its instruction: D = A @ B with 64x64 matrices, 16 of K at a time.

    python examples/11_one_wgmma.py [--device cuda]

wgmma reads A and B from shared memory. 64-bit descriptors give it their layout; they are derived from the layout of the
tiles, and a layout that no descriptor can express is refused, with a suggestion. The program draws the descriptor of A.
Needs an H100 or H200, or no GPU at all.

New here: wgmma, descriptors, and the fences and waits between threads, shared memory and tensor cores.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f16, f32, layout, ptr, u32, u64

M, N, K = 64, 64, 64
STEP = 16  # of K in one instruction
WARPGROUP = 128
ATOM = f"wgmma.m{M}n{N}k{STEP}.f32.f16"

TILE = layout.tile_layout(M, K, f16.bits)  # rows of 128 bytes, swizzled
A, B = layout.shared_operand(ATOM, "a", TILE), layout.shared_operand(ATOM, "b", TILE)


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
    tile_a = pd.shared(f16, TILE, align=A.alignment_bytes)
    tile_b = pd.shared(f16, TILE, align=B.alignment_bytes)
    fill(tile_a, a, m, k)
    fill(tile_b, b, n, k)
    pd.ptx.fence.proxy.async_.shared__cta()  # make the threads' writes visible to the async proxy, which wgmma uses
    pd.ptx.bar.sync(0)

    acc = [pd.var(f32, 0.0) for _ in range(M * N // WARPGROUP)]
    first_a, first_b = (o.descriptor(pd.cast(t.address().value, u64)) for o, t in ((A, tile_a), (B, tile_b)))
    pd.ptx.wgmma.fence.sync.aligned()  # the accumulators were written by other instructions
    for step in range(K // STEP):
        of_a, of_b = A.advanced(first_a, k_step=step), B.advanced(first_b, k_step=step)
        pd.ptx.wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16(of_a, of_b, 1, 1, 1, 0, 0, out=acc)
    pd.ptx.wgmma.commit_group.sync.aligned()
    pd.ptx.wgmma.wait_group.sync.aligned(0)  # now the accumulators may be read

    # Lane 4g + t of warp w holds columns 2t and 2t + 1 of every 8, of row 16w + g and then of row 16w + g + 8.
    warp, lane = pd.tid.x // 32, pd.tid.x % 32
    for i, value in enumerate(acc):
        row, column = warp * 16 + lane // 4 + i // 2 % 2 * 8, i // 4 * 8 + lane % 4 * 2 + i % 2
        with pd.if_((row < m) & (column < n)):
            d[row * n + column] = value


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
