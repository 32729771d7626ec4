"""Orders that follow the tiled shape: what they cover, and that neighbours in time are neighbours in place."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.schedule import GroupedRowsThreadblockSwizzle, HilbertThreadblockSwizzle
from ptxdsl.schedule.raster import hilbert

RASTERS = [
    *(GroupedRowsThreadblockSwizzle(rows) for rows in (1, 3, 8)),
    *(HilbertThreadblockSwizzle(order) for order in (0, 1, 2, 3)),
]


@given(st.sampled_from(RASTERS), st.integers(0, 25), st.integers(0, 25), st.integers(1, 3))
def test_no_tile_is_missed_or_done_twice(raster, rows, columns, slices):
    coverage = raster.coverage((rows, columns, 1), (1, 1, 1), slices)
    assert not coverage.missing and not coverage.repeated
    assert len(coverage.tiles) == rows * columns * slices
    if isinstance(raster, GroupedRowsThreadblockSwizzle):
        assert not coverage.no_op_blocks


@given(st.sampled_from(RASTERS), st.integers(1, 25), st.integers(1, 25), st.integers(0, 2**20))
def test_arrays_give_what_ints_give(raster, rows, columns, block):
    mapped = raster.map((rows, columns, 1), (1, 1, 1))
    block %= len(mapped.offsets)
    assert raster.tile_offset(block, tiled_shape=mapped.tiled) == tuple(mapped.offsets[block])


def test_the_rows_of_a_strip_come_first_and_the_last_strip_is_lower():
    order = GroupedRowsThreadblockSwizzle(2).map((3, 2, 1), (1, 1, 1)).order
    assert order[:, :2].tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]]


@pytest.mark.parametrize("order", range(6))
def test_the_curve_of_hilbert_visits_every_cell_by_single_steps(order):
    cells = [hilbert(step, order) for step in range(4**order)]
    assert len(set(cells)) == 4**order
    assert cells[0] == (0, 0) and cells[-1] == (2**order - 1, 0)
    for (x, y), (u, v) in pairwise(cells):
        assert abs(x - u) + abs(y - v) == 1


def test_the_squares_of_a_strip_join_up():
    order = HilbertThreadblockSwizzle(2).map((4, 16, 1), (1, 1, 1)).order
    steps = abs(order[1:, :2] - order[:-1, :2]).sum(axis=1)
    assert (steps == 1).all()


def test_the_next_strip_goes_back():
    order = HilbertThreadblockSwizzle(2).map((8, 16, 1), (1, 1, 1)).order
    assert order[:64, 0].max() == 3 and order[64:, 0].min() == 4
    assert (order[63, 1], order[64, 1]) == (15, 15)
    assert order[-1, 1] == 0
