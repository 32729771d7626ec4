"""One thread per element: y = a * x + y.

    python examples/01_saxpy.py                  # on the emulator
    python examples/01_saxpy.py --device cuda    # on the GPU

New here: a kernel, its parameters, thread and block indices, and `pd.if_`, because the last block has more threads than
remaining elements.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

THREADS = 128


@pd.kernel
def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] + y[i]


def example_saxpy(rng):
    x, y = rng.standard_normal((2, 1000), np.float32)
    return 8, THREADS, x, y, 2.0, 1000


def main():
    n = 1000
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)
    expected = 2.0 * x + y

    blocks = -(-n // THREADS)
    x, y = to_device(x), to_device(y)
    saxpy[blocks, THREADS](x, y, 2.0, n)
    check(f"saxpy of {n} elements", y, expected)


if __name__ == "__main__":
    main()
