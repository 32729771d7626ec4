"""Pixels with zeros between them, on the emulator and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.arrays import type_of
from ptxdsl.kernels.reorder.dilated import dilate_grid, dilate_kernel
from ptxdsl.kernels.reorder.rows import THREADS
from tests.machines import MACHINES, machine


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    ("pixels", "size", "stride", "dtype"),
    [
        ((2, 3, 4, 16), (6, 8), (2, 2), np.float16),
        ((1, 2, 3, 8), (3, 5), (2, 2), np.float16),
        ((2, 2, 1, 12), (7, 5), (3, 1), np.float32),
        ((1, 3, 40, 264), (3, 119), (1, 3), np.float16),
        ((3, 1, 1, 2), (1, 1), (2, 2), np.float64),
    ],
)
def test_pixels_come_to_multiples_of_the_stride(name, pixels, size, stride, dtype, rng):
    """Among zeros, also behind the last one; lines may be longer than a block."""
    where, source = machine(name), rng.standard_normal(pixels).astype(dtype)
    n, p, q, channels = pixels
    expected = np.zeros((n, *size, channels), dtype)
    expected[:, : p * stride[0] : stride[0], : q * stride[1] : stride[1]] = source
    out, words = where.array(np.full_like(expected, np.nan)), channels * source.itemsize // 16
    how = {"type": type_of(source.dtype), "down": stride[0], "right": stride[1]}
    grid = dilate_grid(n * size[0], size[1], words)
    dilate_kernel[grid, THREADS](where.array(source), out, p, q, *size, words, **how)
    assert np.array_equal(where.values(out), expected)
