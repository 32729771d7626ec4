"""A TMA load of a box of a matrix to shared memory, a change in place, and a TMA store.

    python examples/09_tma_copy.py                  # on the emulator
    python examples/09_tma_copy.py --device cuda    # on an H100 or H200

y = 2 x, in boxes of 32 x 64 elements. One thread issues each copy; an mbarrier signals to all threads that its bytes
have arrived. The box is swizzled, so that a column of it is spread over all banks; `tile[i, j]` applies the swizzle.
Out-of-bounds elements are loaded as zeros and not stored, so any shape works whose rows are multiples of 16 bytes. New
here: a tensor map as a parameter, an mbarrier that expects bytes, the proxy fence between the threads' writes and the
TMA store.
"""

from typing import Annotated

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import b64, f16

ROWS, COLUMNS = BOX = 32, 64
Map = Annotated[pd.MappedTensor, pd.TensorMap(f16, BOX, swizzle=128)]


@pd.kernel(arch="sm_90a", reqntid=COLUMNS)
def double(x: Map, y: Map):
    tile, full = x.shared(), pd.shared(b64, 1)
    corner = pd.ctaid.y * ROWS, pd.ctaid.x * COLUMNS
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)

    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
        x.load(tile, corner, full)
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass

    for row in pd.range(ROWS):
        tile[row, pd.tid.x] = tile[row, pd.tid.x] * 2

    pd.ptx.fence.proxy.async_.shared__cta()  # each thread makes its writes visible to TMA
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        y.store(corner, tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


def example_double(rng):
    x = rng.standard_normal((40, 72)).astype(np.float16)
    return (2, 2), COLUMNS, x, np.zeros_like(x)


def main():
    rng = np.random.default_rng(9)
    x = rng.standard_normal((70, 200)).astype(np.float16)
    y = to_device(np.zeros_like(x))
    double[(-(-200 // COLUMNS), -(-70 // ROWS)), COLUMNS](to_device(x), y)
    check("a matrix of 70 x 200 through swizzled boxes and back", y, 2.0 * x)


if __name__ == "__main__":
    main()
