"""TFLOP/s of scaled_gemm, 8-bit floats with scales, against torch._scaled_mm (cuBLAS, and CUTLASS for scales of rows).

a and b are N(0,1) rounded to float8_e4m3fn, out is bfloat16. torch takes no scales of blocks of 128 here; "fast" is its
use_fast_accum, which as ours of tensors and rows leaves sums to the tensor cores along all of K.
"""

from __future__ import annotations

import functools
from typing import Any

import common
import torch
from protocols import Run

from ptxdsl.kernels.scaled import scaled_gemm

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 16384)]
BLOCK = 128


@functools.lru_cache(maxsize=1)
def operands(m: int, n: int, k: int) -> dict[str, Any]:
    """A, B and scales of each kind."""
    a, b = (torch.randn(lines, k, device="cuda").to(torch.float8_e4m3fn) for lines in (m, n))
    shapes = {
        "tensors": ((), ()),
        "rows": ((m, 1), (1, n)),
        "blocks": ((m, k // BLOCK), (k // BLOCK, n // BLOCK)),
    }
    scales = {kind: [torch.rand(shape, device="cuda") + 0.5 for shape in pair] for kind, pair in shapes.items()}
    return {"a": a, "b": b.t(), **scales}


def by_torch(m: int, n: int, k: int) -> dict[str, Run]:
    known = operands(m, n, k)
    runs: dict[str, Run] = {}
    for kind, fast in (("tensors", True), ("tensors", False), ("rows", True), ("rows", False)):
        name = f"torch, {kind}{', fast' * fast}"
        runs[name] = functools.partial(
            torch._scaled_mm, known["a"], known["b"], *known[kind], out_dtype=torch.bfloat16, use_fast_accum=fast
        )
    return runs


def whole(scale: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A scale for each element of a matrix."""
    for axis, extent in enumerate(shape):
        if scale.ndim == len(shape) and 1 < scale.shape[axis] < extent:
            scale = scale.repeat_interleave(BLOCK, axis)
    return scale


def by_us(m: int, n: int, k: int) -> dict[str, Run]:
    """All kinds of scales, their products checked."""
    known, runs = operands(m, n, k), {}
    a, b = known["a"], known["b"]
    for kind in ("tensors", "rows", "blocks"):
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        scale_a, scale_b = known[kind]
        runs[kind] = functools.partial(scaled_gemm, a, b, scale_a, scale_b, out=out)
        runs[kind]()
        exact = (a.float() * whole(scale_a, a.shape)) @ (b.float() * whole(scale_b, b.shape))
        assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    return runs


BENCHMARK = common.Benchmark(
    others=lambda case: by_torch(*case),
    ours=lambda case: by_us(*case),
    label=lambda case: {"shape": "x".join(map(str, case))},
    operations=lambda case: 2.0 * case[0] * case[1] * case[2],
)

if __name__ == "__main__":
    common.main(BENCHMARK, SHAPES, common.gpu_parser(__doc__ or "").parse_args())
