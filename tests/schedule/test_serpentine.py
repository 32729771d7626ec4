"""Strips that are walked to and fro: each tile once, and neighbours together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.schedule import Serpentine, strip_width


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_each_tile_comes_once(m, n, width):
    raster = Serpentine((m, n), width)
    tiles = [raster.tile(item) for item in range(raster.items)]
    assert sorted(tiles) == [(row, column) for row in range(m) for column in range(n)]


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_arrays_of_items_give_what_ints_give(m, n, width):
    raster = Serpentine((m, n), width)
    rows, columns = raster.tile(np.arange(raster.items))
    assert list(zip(rows, columns, strict=True)) == [raster.tile(item) for item in range(raster.items)]


def test_a_strip_is_walked_along_n_and_the_next_one_back():
    raster = Serpentine((3, 2), 2)
    assert [raster.tile(item) for item in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 0)]


@pytest.mark.parametrize(
    ("blocks", "tiles", "width"),
    [
        (128, (32, 16), 16),
        (128, (64, 32), 16),
        (125, (40, 20), 14),
        (128, (4, 64), 4),
        (1, (1, 1), 1),
        (132, (3, 0), 3),
        (132, (128, 2), 1),  # several strips at a time
        (132, (256, 1), 1),
        (132, (64, 8), 16),
    ],
)
def test_blocks_at_work_are_about_a_square_of_the_output(blocks, tiles, width):
    assert strip_width(blocks, tiles, (128, 256, 64)) == width
