"""From a naive GEMM to a pipelined one in four steps, and the effect of each.

    python examples/05_gemm_steps.py                  # thread instructions and bank conflicts, on the emulator
    python examples/05_gemm_steps.py --device cuda    # and times, on the GPU

 1. naive      each thread computes one element with fused multiply-adds, straight from global memory
 2. cp.async   a block computes a 64x64 tile on the tensor cores; tiles of A and B are copied to shared memory
 3. swizzled   the 16-byte chunks of each row are permuted, so that ldmatrix has no bank conflicts
 4. pipelined  a ring of tiles: the next tiles are in flight while the current one is multiplied

A is m x k, B is k x n; A's rows and B's columns are contiguous. New here: cp.async and its groups, a ring of stages,
and pd.WarpMma, which issues the ldmatrix and mma.sync of a tile. `ptxdsl/kernels/gemm.py` continues from there.
"""

from dataclasses import dataclass

import numpy as np
from arrays import ON_GPU, check, seconds, to_device

import ptxdsl as pd
from ptxdsl import f16, f32, ptr, u32
from ptxdsl.layout import Layout, Swizzle, bank_wavefronts, composition

TILE, DEPTH = 64, 32  # of a block: TILE x TILE elements of the result, DEPTH of k at a time
WARP_TILE = 32  # four warps compute 32 x 32 elements each
THREADS = 128
CHUNK = 8  # f16 elements in 16 bytes: one cp.async, one row of an 8x8 matrix
SWIZZLE = Swizzle(2, 3, 3)  # chunk ^ row / 2: a row has four chunks


@pd.kernel
def naive(a: ptr[f16], b: ptr[f16], out: ptr[f32], m: u32, n: u32, k: u32):
    row = pd.ctaid.y * pd.ntid.y + pd.tid.y
    column = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_((row < m) & (column < n)):
        total = pd.var(f32, 0.0)
        for i in pd.range(k):
            total.set(pd.fma(a[row * k + i].to(f32), b[column * k + i].to(f32), total))
        out[row * n + column] = total


@dataclass(frozen=True)
class Step:
    """The parameters of the tensor core kernel."""

    swizzled: bool
    stages: int

    @property
    def ring(self):
        """The layout of `stages` consecutive tiles of TILE x DEPTH elements."""
        plain = Layout((self.stages, TILE, DEPTH), (TILE * DEPTH, DEPTH, 1))
        return composition(SWIZZLE, plain) if self.swizzled else plain


def copy_tile(tiles, stage, source, first, rows, start, k):
    """Start the copies of a TILE x DEPTH tile, 16 bytes each, zero-filled out of bounds; k is a multiple of 8."""
    for i in range(0, TILE * DEPTH // CHUNK, THREADS):
        chunk = pd.tid.x + i
        row, column = chunk // (DEPTH // CHUNK), chunk % (DEPTH // CHUNK) * CHUNK
        inside = (first + row < rows) & (start + column < k)
        place = (first + row) * k + (start + column)
        bytes = pd.select(inside, pd.cast(16, u32), 0)
        pd.ptx.cp.async_.cg.shared.global_(tiles.address(stage, row, column), source + place, 16, bytes)


def store(out, accumulators, first_row, first_column, m, n):
    for register, (row, column) in zip(accumulators.registers, accumulators.coordinates(), strict=True):
        row, column = row + first_row, column + first_column
        with pd.if_((row < m) & (column < n)):
            out[row * n + column] = register


@pd.kernel
def tensor_cores(a: ptr[f16], b: ptr[f16], out: ptr[f32], m: u32, n: u32, k: u32, *, step: Step):
    tiles_a, tiles_b = pd.shared(f16, step.ring), pd.shared(f16, step.ring)
    first_row, first_column = pd.ctaid.y * TILE, pd.ctaid.x * TILE
    first = {"first_row": pd.warpid // 2 * WARP_TILE, "first_column": pd.warpid % 2 * WARP_TILE}
    mma = pd.WarpMma("mma.m16n8k16.f32.f16", tiles_a, tiles_b, rows=WARP_TILE, columns=WARP_TILE, **first)
    accumulators = mma.accumulators()

    def start_copies(tile, stage):
        copy_tile(tiles_a, stage, a, first_row, m, tile * DEPTH, k)
        copy_tile(tiles_b, stage, b, first_column, n, tile * DEPTH, k)
        pd.ptx.cp.async_.commit_group()

    tiles, ahead = (k + (DEPTH - 1)) // DEPTH, step.stages - 1
    for tile in range(ahead):
        start_copies(tile, tile)
    for tile in pd.range(tiles):
        if ahead == 0:
            start_copies(tile, 0)
        pd.ptx.cp.async_.wait_group(max(ahead - 1, 0))  # this thread's copies of the tile have arrived
        pd.ptx.bar.sync(0)  # all threads' copies have, and nobody reads the previous tile any more
        if ahead > 0:
            start_copies(tile + ahead, (tile + ahead) % step.stages)
        mma(accumulators, tile % step.stages, tile % step.stages)
        if ahead == 0:
            pd.ptx.bar.sync(0)  # all threads have read this tile before the next copies overwrite it
    store(out, accumulators, first_row, first_column, m, n)


STEPS = {"naive": None, "cp.async": Step(False, 1), "swizzled": Step(True, 1), "pipelined": Step(True, 4)}


def launch(step, arrays, sizes):
    m, n, _ = sizes
    if step is None:
        naive[(-(-n // 32), -(-m // 8)), (32, 8)](*arrays, *sizes)
    else:
        tensor_cores[(-(-n // TILE), -(-m // TILE)), THREADS](*arrays, *sizes, step=step)


def matrices(m, n, k):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    return a, b, np.full((m, n), np.nan, np.float32)


def gain(step):
    """Return the ldmatrix wavefronts on the emulator, or the speed on the GPU."""
    if ON_GPU:
        sizes = 4096, 4096, 4096
        arrays = [to_device(x) for x in matrices(*sizes)]
        rate = 2e-12 * np.prod(sizes, dtype=float) / seconds(lambda: launch(step, arrays, sizes))
        return f"{rate:6.1f} TFLOP/s at 4096 x 4096 x 4096"
    if step is None:
        return "no shared memory"
    tile = Layout((TILE, DEPTH), (DEPTH, 1))
    return str(bank_wavefronts("ldmatrix.x4", composition(SWIZZLE, tile) if step.swizzled else tile))


def example_naive(rng):
    return (2, 9), (32, 8), *matrices(70, 40, 16), 70, 40, 16


def example_tensor_cores(rng):
    for step in (STEPS["pipelined"], STEPS["swizzled"], STEPS["cp.async"]):
        yield (1, 2), THREADS, *matrices(100, 60, 72), 100, 60, 72, {"step": step}


def main():
    sizes = m, n, k = 100, 72, 200  # not multiples of a tile
    a, b, out = matrices(m, n, k)
    expected = a.astype(np.float64) @ b.T.astype(np.float64)
    for name, step in STEPS.items():
        result = to_device(out.copy())
        launch(step, (to_device(a), to_device(b), result), sizes)
        check(f"{name:9} {m} x {n} x {k}", result, expected, tolerance=1e-3)
        print(f"    {gain(step)}")


if __name__ == "__main__":
    main()
