"""Rows that an index names, one behind the other in a workspace, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.call.groups.gathered import copied_rows
from ptxdsl.kernels.call.matrix import array_argument, matrix


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
@pytest.mark.parametrize("rows, length", [(1, 8), (9, 1040), (20, 133), (3, 1)])
def test_rows_are_copied_and_numbers_that_are_none_of_one_are_zeros(dtype, rows, length, rng):
    source = rng.integers(-100, 100, (7, 1200)).astype(dtype)[:, :length]
    index = rng.integers(-1, 8, rows).astype(np.int32)
    copy, launch = copied_rows(matrix("a", source), array_argument("rows", index, 1, "", "", "int32"), None, 0)
    launch.run()
    assert copy.is_mappable and copy.shape == (rows, length)
    exists = (index >= 0) & (index < 7)
    assert (copy.owner == np.where(exists[:, None], source[index.clip(0, 6)], 0)).all()
