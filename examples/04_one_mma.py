"""One warp and one tensor core instruction: D = A @ B with a 16x8 D, a 16x16 A and a 16x8 B.

    python examples/04_one_mma.py [--device cuda]

mma.sync takes its operands from the registers of all 32 lanes, in an order that no load from memory produces; ldmatrix
loads 8x8 matrices from shared memory in exactly that order. Smaller matrices are padded with zeros.

New here: ldmatrix, mma.sync, and the fragments: the elements of a matrix that each lane holds.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f16, f32, ptr, u32

M, N, K = 16, 8, 16
WARP = 32


def fill(tile, source, rows, columns):
    """Copy source, rows x columns, into a tile in shared memory, and zero the rest."""
    elements = tile.shape[0] * tile.shape[1]
    for step in range(0, elements, WARP):
        at = pd.laneid + step
        row, column = at // tile.shape[1], at % tile.shape[1]
        value = pd.var(f16, 0.0)
        with pd.if_((row < rows) & (column < columns)):
            value.set(source[row * columns + column])
        tile[row, column] = value


@pd.kernel
def one_mma(a: ptr[f16], b: ptr[f16], d: ptr[f32], m: u32, n: u32, k: u32):
    """Multiply a, row-major m x k, by b, column-major k x n; column-major k x n is row-major n x k."""
    tile_a, tile_b = pd.shared(f16, (M, K)), pd.shared(f16, (N, K))
    fill(tile_a, a, m, k)
    fill(tile_b, b, n, k)
    pd.ptx.bar.warp.sync(0xFFFFFFFF)

    # Each lane passes the address of a row of 8 elements to ldmatrix; matrix i uses those of lanes 8i to 8i + 7.
    lane = pd.laneid
    fragment_a = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(tile_a.address(lane % 16, lane // 16 * 8))
    fragment_b = pd.ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16(tile_b.address(lane % 8, lane // 8 % 2 * 8))
    zeros = [pd.cast(0.0, f32)] * 4
    acc = pd.ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32(fragment_a, fragment_b, zeros)

    # Lane 4g + t holds columns 2t and 2t + 1 of row g, then of row g + 8.
    for i, value in enumerate(acc):
        row, column = lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2
        with pd.if_((row < m) & (column < n)):
            d[row * n + column] = value


def example_one_mma(rng):
    a, b = (rng.standard_normal((rows, 9)).astype(np.float16) for rows in (13, 7))
    return 1, WARP, a, b, np.zeros((13, 7), np.float32), 13, 7, 9


def main():
    for m, n, k in ((16, 8, 16), (13, 7, 9), (1, 1, 1)):
        rng = np.random.default_rng(4)
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((n, k)).astype(np.float16)
        d = to_device(np.full((m, n), np.nan, np.float32))
        one_mma[1, WARP](to_device(a), to_device(b), d, m, n, k)
        check(f"{m} x {n} x {k}", d, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-5)


if __name__ == "__main__":
    main()
