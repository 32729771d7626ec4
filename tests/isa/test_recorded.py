"""Whole kernels of one warp, against what an H200 stored."""

import numpy as np
import pytest

import ptxdsl as pd

from ..machines import MACHINES, machine
from .warp_cases import CASES, recorded


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", [c for c in CASES if "on special" not in c.name], ids=lambda case: case.name)
def test_it_computes_what_an_h200_computed(name, case):
    on = machine(name)
    inputs = case.memory() if case.inputs else np.zeros(1, np.uint8)
    inputs, outputs, scratch = map(on.array, (inputs, np.zeros(case.output_bytes, np.uint8), np.zeros(1024, np.uint8)))
    pd.parse(case.ptx())["k"][1, 32](inputs, outputs, scratch)
    words = f"u{min(4, case.output_bytes // 32)}"
    got = on.values(outputs).astype(np.uint8).view(words)
    np.testing.assert_array_equal(got, np.frombuffer(recorded()[case.name], words))
