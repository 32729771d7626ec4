"""Example launches of `ptxdsl.kernels.gemm` for `ptxdsl check`, `debug` and `profile`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl.kernels.call.launching.launches import recorded_launch
from ptxdsl.kernels.gemm import gemm


def example_gemm_kernel(rng: np.random.Generator) -> tuple[Any, ...]:
    """A float16 product of sizes that are multiples of no tile."""
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 96), (96, 72)))
    return recorded_launch(lambda: gemm(a, b))
