"""A sum: each thread adds its elements, each warp adds its threads, and each warp adds its sum to one total.

    python examples/02_reduce.py [--device cuda]

New here: a variable (`pd.var`), a loop in the kernel (`pd.range`), and instructions by name (`pd.ptx`): a warp shuffle
and an atomic addition.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

BLOCKS, THREADS = 4, 128
ALL_LANES = 0xFFFFFFFF


@pd.kernel
def total(x: ptr[f32], result: ptr[f32], n: u32):
    """Add the n elements of x to result[0]."""
    mine = pd.var(f32, 0.0)
    for i in pd.range(pd.ctaid.x * pd.ntid.x + pd.tid.x, n, pd.nctaid.x * pd.ntid.x):
        mine += x[i]
    for distance in (16, 8, 4, 2, 1):  # unrolled while tracing: the PTX has five shuffles
        mine += pd.ptx.shfl.sync.bfly.b32(mine, distance, 31, ALL_LANES)
    with pd.if_(pd.laneid == 0):
        pd.ptx.red.global_.add.f32(result, mine)


def example_total(rng):
    return BLOCKS, THREADS, rng.standard_normal(1000, np.float32), np.zeros(1, np.float32), 1000


def main():
    for n in (0, 1, 10_007):
        x = np.random.default_rng(2).standard_normal(n, np.float32)
        result = to_device(np.zeros(1, np.float32))
        total[BLOCKS, THREADS](to_device(x), result, n)
        check(f"sum of {n} elements", result, x.sum(dtype=np.float64), tolerance=1e-7 * n)


if __name__ == "__main__":
    main()
