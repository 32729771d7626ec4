"""A ring of mbarriers: one warp keeps TMA loads in flight, four warps add up the loaded boxes.

    python examples/10_mbarrier_ring.py                  # on the emulator
    python examples/10_mbarrier_ring.py --device cuda    # on an H100 or H200

y[j] = the sum of x[i, j] over all rows i. A block computes 128 columns; boxes of 16 rows go through a ring of four
stages. The producer waits for an empty stage, the consumers for a full one; the whole block never synchronises. New
here: warp roles, the ring and its phases, and one elected lane.
"""

from typing import Annotated

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

ROWS, COLUMNS, STAGES = 16, 128, 4
Box = Annotated[pd.MappedTensor, pd.TensorMap(f32, (ROWS, COLUMNS))]


@pd.kernel(arch="sm_90a", reqntid=COLUMNS + 32)
def column_sums(x: Box, y: ptr[f32], columns: u32, boxes: u32):
    tiles = x.shared(STAGES)
    ring = pd.Ring(STAGES, stage_bytes=x.bytes, consumers=COLUMNS)
    first = pd.ctaid.x * COLUMNS

    with pd.warp(4), pd.elect():
        for i in pd.range(boxes):
            slot = ring.acquire()
            x.load(tiles.address(slot.index, 0, 0), (i * ROWS, first), slot.full)
            ring.commit()

    with pd.warp(0, 1, 2, 3) as reader:
        total = pd.var(f32, 0.0)
        for _ in pd.range(boxes):
            slot = ring.wait()
            for row in range(ROWS):  # out-of-bounds rows are loaded as zeros
                total += tiles[slot.index, row, reader.thread]
            ring.release()
        with pd.if_(first + reader.thread < columns):
            y[first + reader.thread] = total


def example_column_sums(rng):
    x = rng.standard_normal((90, 200), np.float32)
    return 2, COLUMNS + 32, x, np.zeros(200, np.float32), 200, 6


def main():
    rng = np.random.default_rng(10)
    x = rng.integers(-8, 8, (150, 300)).astype(np.float32)
    y = to_device(np.zeros(300, np.float32))
    column_sums[-(-300 // COLUMNS), COLUMNS + 32](to_device(x), y, 300, -(-150 // ROWS))
    check("sums of 150 rows through a ring of mbarriers", y, x.sum(axis=0))


if __name__ == "__main__":
    main()
