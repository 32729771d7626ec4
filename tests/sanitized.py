"""Small products of the sm_90a path on a GPU, to be run under compute-sanitizer: python -m tests.sanitized NAME."""

from __future__ import annotations

import sys

import numpy as np

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm_ragged

from .machines import NAMES, machine

TILE = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
SHARED = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma", split_k=3, reduction="cluster")


def product(config: GemmConfig) -> float:
    """The largest error of a product whose sizes are no multiples of a tile."""
    rng, gpu = np.random.default_rng(5), machine("gpu")
    a, b = (rng.integers(-4, 5, shape).astype(NAMES["bf16"]) for shape in ((72, 400), (400, 136)))
    out = gpu.values(gemm(gpu.array(a), gpu.array(b), config=config))
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(NAMES["bf16"]).astype(np.float64)
    return float(np.abs(out - expected).max())


def ragged() -> float:
    """The same of groups of 1, 0 and 66 rows."""
    rng, gpu = np.random.default_rng(6), machine("gpu")
    a, b = (rng.integers(-4, 5, shape).astype(NAMES["f16"]) for shape in ((67, 136), (3, 136, 72)))
    ends = gpu.array(np.array([1, 1, 67], np.int32))
    out = gpu.values(grouped_gemm_ragged(gpu.array(a), gpu.array(b), ends, config=TILE))
    groups = (a[:1].astype(np.float64) @ b[0].astype(np.float64), a[1:].astype(np.float64) @ b[2].astype(np.float64))
    return float(np.abs(out - np.concatenate(groups).astype(np.float16)).max())


PRODUCTS = {"gemm": lambda: product(TILE), "cluster": lambda: product(SHARED), "ragged": ragged}

if __name__ == "__main__":
    error = PRODUCTS[sys.argv[1]]()
    sys.exit(f"an element is off by {error}" if error else 0)
