"""TFLOP/s of scaled_gemm_ragged, groups of rows of 8-bit floats, against torch._scaled_grouped_mm, which has scales of
rows and columns alone. A and B are N(0,1) rounded to float8_e4m3fn, B is
column-major as weights of (N, K) are, rows are spread over the groups at random, out is bfloat16."""

from __future__ import annotations

import functools
from typing import Any

import common
import numpy as np
import torch
from protocols import Run

from ptxdsl.kernels.scaled import scaled_gemm_ragged

SHAPES = [(8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (8, 4096, 14336, 4096), (256, 4112, 512, 7168)]
BLOCK = 128


@functools.lru_cache(maxsize=1)
def operands(groups: int, rows: int, n: int, k: int) -> dict[str, Any]:
    """A, B, where groups end, and scales of each kind."""
    generator = np.random.default_rng(3)
    ends = generator.multinomial(rows, generator.dirichlet(np.full(groups, 4.0))).cumsum()
    a = torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.stack([torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn) for _ in range(groups)])
    shapes = {
        "rows": ((rows, 1), (groups, 1, n)),
        "blocks": ((rows, -(-k // BLOCK)), (groups, -(-k // BLOCK), -(-n // BLOCK))),
    }
    scales = {kind: [torch.rand(shape, device="cuda") + 0.5 for shape in pair] for kind, pair in shapes.items()}
    return {"a": a, "b": b.transpose(1, 2), "ends": torch.tensor(ends, device="cuda", dtype=torch.int32), **scales}


def by_torch(*shape: int) -> dict[str, Run]:
    known = operands(*shape)
    of_rows, of_columns = known["rows"]
    product = functools.partial(
        torch._scaled_grouped_mm, known["a"], known["b"], of_rows[:, 0], of_columns[:, 0], known["ends"]
    )
    return {
        f"torch, rows{', fast' * fast}": functools.partial(product, out_dtype=torch.bfloat16, use_fast_accum=fast)
        for fast in (True, False)
    }


def by_us(groups: int, rows: int, n: int, k: int) -> dict[str, Run]:
    """Both kinds of scales, their products checked."""
    known, runs = operands(groups, rows, n, k), {}
    a, b, ends = known["a"], known["b"], known["ends"]
    for kind in ("rows", "blocks"):
        out = torch.full((rows, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        runs[kind] = functools.partial(scaled_gemm_ragged, a, b, ends, *known[kind], out=out)
        runs[kind]()
        of_a, of_b = known[kind]
        begin = 0
        for group, end in enumerate(ends.tolist()):
            scaled_a = a[begin:end].float() * spread(of_a[begin:end], 1, k)
            scaled_b = b[group].float() * spread(spread(of_b[group], 0, k), 1, n)
            exact, product = scaled_a @ scaled_b, out[begin:end].float()
            assert end == begin or (product - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
            begin = end
    return runs


def spread(scale: torch.Tensor, axis: int, extent: int) -> torch.Tensor:
    """Scales of blocks along an axis, one for each element; one of all, or one of each, stays."""
    if scale.shape[axis] in (1, extent):
        return scale
    return scale.repeat_interleave(BLOCK, axis).narrow(axis, 0, extent)


BENCHMARK = common.Benchmark(
    others=lambda case: by_torch(*case),
    ours=lambda case: by_us(*case),
    label=lambda case: {"set": f"{case[0]} groups, {'x'.join(map(str, case[1:]))}"},
    operations=lambda case: 2.0 * case[1] * case[2] * case[3],
)

if __name__ == "__main__":
    common.main(BENCHMARK, SHAPES, common.gpu_parser(__doc__ or "").parse_args())
