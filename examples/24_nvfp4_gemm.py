"""An nvfp4 GEMM: elements of 4 bits, and a scale of 8 bits for every 16 of them, which tcgen05.mma applies.

    python examples/24_nvfp4_gemm.py [--device cuda]

c = a @ b.T for a of (m, k) and b of (n, k) in e2m1, two elements a byte, with ue4m3 scales of (m, k / 16) and
(n, k / 16). Tensor memory takes the scales in blocks of 128 rows by 4 scales, 512 bytes: `scale_layout` says where each
one is, and the host arranges them once. TMA loads the blocks with the tiles that they scale, and the thread that
multiplies copies them from shared to tensor memory. Needs a B200 or GB300, or no GPU at all.

New here: block scales (`a_scales=`, `b_scales=`), and their layout.
"""

import sys

import ml_dtypes
import numpy as np
from arrays import ON_GPU, check, to_device

import ptxdsl as pd
from ptxdsl import driver, f32, ptr, u8, u32
from ptxdsl.layout import scale_layout

M, N, K, BLOCK = 128, 128, 256, 16  # a tile, and the elements that share a scale
ATOM = f"tcgen05.m{M}n{N}k64.f32.e2m1.block{BLOCK}.ue4m3"
STAGES, THREADS, COLUMNS = 3, 128, 32
TARGETS = "sm_100a", "sm_103a"
SCALE_ROWS, SCALES = 128, 4  # of a block of scales, 128 words
TILE = pd.TensorMap(u8, (M, K // 2), swizzle=128)
SCALE_TILE = pd.TensorMap(u32, (1, K // BLOCK // SCALES, SCALE_ROWS))


def load(maps, arrays, ring, row, column, steps):
    """Load the tiles of a and b, and their scales."""
    for step in pd.range(steps):
        slot = ring.acquire()
        for tensor, array, first in zip(maps[:2], arrays[:2], (row, column), strict=True):
            tensor.load(array.address(slot.index, 0, 0), (first * M, step * (K // 2)), slot.full)
        for tensor, array, first in zip(maps[2:], arrays[2:], (row, column), strict=True):
            block = first, step * (K // BLOCK // SCALES), 0
            tensor.load(array.address(slot.index, 0, 0, 0), block, slot.full)
        ring.commit()


@pd.kernel(arch="sm_100a", reqntid=THREADS)
def gemm(
    a: TILE, b: TILE, a_scales: SCALE_TILE, b_scales: SCALE_TILE, c: ptr[f32], alpha: f32, m: u32, n: u32, steps: u32
):
    """c = alpha * a @ b.T, one tile in each block: c is m x n, and n a multiple of 4."""
    maps = a, b, a_scales, b_scales
    arrays = [each.shared(STAGES) for each in maps]
    ring = pd.Ring(STAGES, stage_bytes=sum(each.bytes for each in maps), consumers=1)
    done = pd.Ring(1, producers=1, consumers=THREADS, tensor_memory=True)
    row, column = pd.ctaid.y, pd.ctaid.x
    with pd.tensor_memory(256) as memory:
        mma = pd.TensorMemoryMma(memory, ATOM, *arrays[:2], a_scales=arrays[2], b_scales=arrays[3])
        accumulators = mma.accumulators()
        with pd.warp(0), pd.elect():
            load(maps, arrays, ring, row, column, steps)
        with pd.warp(1), pd.elect():
            done.acquire()
            for step in pd.range(steps):
                slot = ring.wait()
                mma(accumulators, slot, slot, accumulate=step > 0)
                ring.release(after_mma=True)
            done.commit(after_mma=True)
        done.wait()
        for first in range(0, N, COLUMNS):
            for held in accumulators.load(first, COLUMNS).rows():
                i, j = row * M + held.index, column * N + held.first_column
                for k in range(0, COLUMNS, 4):
                    with pd.if_((i < m) & (j + k < n)):
                        pd.ptx.st.global_.v4.f32(c + (i * n + j + k), [x * alpha for x in held.registers[k : k + 4]])


def quantize(x):
    """Return the elements of x in e2m1, two a byte, and their scales: x is elements * scales."""
    blocks = x.reshape(len(x), -1, BLOCK)
    scales = (abs(blocks).max(axis=2) / 6).astype(ml_dtypes.float8_e4m3fn)  # 6 is the largest e2m1
    divisors = np.maximum(scales.astype(np.float32), 2.0**-9)[..., np.newaxis]
    codes = (blocks / divisors).astype(ml_dtypes.float4_e2m1fn).reshape(x.shape).view(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, scales


def arrange(scales):
    """Return scales in the order of tensor memory: (blocks of 128 rows, blocks of 4 scales, 128 words)."""
    rows, columns = (
        -(-extent // block) * block for extent, block in zip(scales.shape, (SCALE_ROWS, SCALES), strict=True)
    )
    arranged = np.zeros(rows * columns, np.uint8)
    row, column = np.indices(scales.shape)
    arranged[scale_layout(rows, columns)(row, column)] = scales.view(np.uint8)
    return arranged.view(np.uint32).reshape(rows // SCALE_ROWS, columns // SCALES, SCALE_ROWS)


def numbers(packed, scales):
    """Return the numbers of packed elements and their scales."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
    return codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * scales.astype(np.float64).repeat(BLOCK, axis=1)


def problem(m, n, k, rng):
    """Return the quantized a and b with their scales, and alpha @ a @ b.T in f64."""
    (a, a_scales), (b, b_scales) = (quantize(rng.standard_normal((rows, k), np.float32)) for rows in (m, n))
    return (a, b, arrange(a_scales), arrange(b_scales)), 0.5 * numbers(a, a_scales) @ numbers(b, b_scales).T


def arguments(operands, c, k):
    """The grid, the block and the arguments of a launch."""
    m, n = c.shape
    return (-(-n // N), -(-m // M)), THREADS, *operands, c, 0.5, m, n, -(-k // K)


def example_gemm(rng):
    return arguments(problem(200, 136, 1056, rng)[0], np.zeros((200, 136), np.float32), 1056)


def main():
    if ON_GPU and driver.device_arch() not in TARGETS:
        sys.exit(f"--device cuda: the GPU is {driver.device_arch()}; tcgen05 needs one of {', '.join(TARGETS)}")
    for m, n, k in ((256, 256, 1024), (200, 136, 544), (1, 4, 64)):
        operands, expected = problem(m, n, k, np.random.default_rng(24))
        c = to_device(np.full((m, n), np.nan, np.float32))
        grid, block, *rest = arguments([to_device(x) for x in operands], c, k)
        gemm[grid, block](*rest)
        check(f"{m} x {n} x {k}", c, expected, tolerance=1e-3)


if __name__ == "__main__":
    main()
