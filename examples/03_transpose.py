"""A matrix transposed through shared memory, so that global reads and writes are both coalesced.

    python examples/03_transpose.py [--device cuda]

A tile is written row by row and read column by column. The 32 elements of a column are in one bank of shared memory,
which makes the read a 32-way bank conflict; a swizzle spreads them over all 32 banks.

New here: `pd.shared` with a layout, a swizzle, a barrier, and a constant (`swizzled`): each value of it makes another
kernel.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.layout import Layout, Swizzle, bank_wavefronts, composition, make_tiled_copy

TILE = 32
ROWS = 8  # of threads; each thread moves TILE / ROWS elements

PLAIN = Layout((TILE, TILE), (TILE, 1))
SWIZZLED = composition(Swizzle(5, 0, 5), PLAIN)  # column ^ row
A_COLUMN = make_tiled_copy("ld.shared.4", Layout((TILE, 1)), bits=32)  # what a warp reads in one load


@pd.kernel
def transpose(source: ptr[f32], target: ptr[f32], rows: u32, columns: u32, *, swizzled: bool = True):
    tile = pd.shared(f32, SWIZZLED if swizzled else PLAIN)
    first_row, first_column = pd.ctaid.y * TILE, pd.ctaid.x * TILE
    for step in range(0, TILE, ROWS):
        y, x = pd.tid.y + step, pd.tid.x
        row, column = first_row + y, first_column + x
        with pd.if_((row < rows) & (column < columns)):
            tile[y, x] = source[row * columns + column]
    pd.ptx.bar.sync(0)
    for step in range(0, TILE, ROWS):
        y, x = pd.tid.y + step, pd.tid.x
        row, column = first_row + x, first_column + y
        with pd.if_((row < rows) & (column < columns)):
            target[column * rows + row] = tile[x, y]


def example_transpose(rng):
    source, target = rng.standard_normal((50, 45), np.float32), np.zeros((45, 50), np.float32)
    for swizzled in (True, False):
        yield (2, 2), (TILE, ROWS), source, target, 50, 45, {"swizzled": swizzled}


def main():
    rows, columns = 100, 45
    source = np.random.default_rng(3).standard_normal((rows, columns), np.float32)
    grid = -(-columns // TILE), -(-rows // TILE)
    for swizzled in (False, True):
        target = to_device(np.zeros((columns, rows), np.float32))
        transpose[grid, (TILE, ROWS)](to_device(source), target, rows, columns, swizzled=swizzled)
        check(f"{rows} x {columns} transposed, swizzled={swizzled}", target, source.T)
        print(f"    a column in {bank_wavefronts(A_COLUMN, SWIZZLED if swizzled else PLAIN).worst} wavefronts")


if __name__ == "__main__":
    main()
