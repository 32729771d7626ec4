"""Whole kernels of one warp on the emulator, against what an H200 stored."""

import numpy as np
import pytest

from ptxdsl.emulate import emulate
from ptxdsl.parse import parse

from .warp_cases import CASES, recorded


@pytest.mark.parametrize("case", [c for c in CASES if "on special" not in c.name], ids=lambda case: case.name)
def test_the_emulator_computes_what_an_h200_computes(case):
    module = parse(case.ptx())
    outputs, scratch = np.zeros(case.output_bytes, np.uint8), np.zeros(1024, np.uint8)
    inputs = case.memory() if case.inputs else np.zeros(1, np.uint8)
    report = emulate(module.kernels[0], module, (1, 1, 1), (32, 1, 1), [inputs, outputs, scratch])
    assert report.findings == []
    words = f"u{min(4, len(outputs) // 32)}"
    np.testing.assert_array_equal(outputs.view(words), np.frombuffer(recorded()[case.name], words))
