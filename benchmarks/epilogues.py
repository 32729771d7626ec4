"""Time the epilogues and the addend of gemm() against the plain product, and those of cuBLAS against its own.

bfloat16, A row-major, B column-major. cuBLAS has a bias with gelu, and an addend in place.
"""

from __future__ import annotations

import functools

import common
import torch
from protocols import Run

from ptxdsl.kernels.epilogue import add_gelu, add_gelu_tanh, gelu, gelu_tanh, per_column, relu
from ptxdsl.kernels.gemm import gemm

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (6144, 4096, 4096)]


@functools.lru_cache(maxsize=1)
def matrices(m: int, n: int, k: int) -> list[torch.Tensor]:
    """Make A, B, an addend, a bias and an output."""
    options = {"device": "cuda", "dtype": torch.bfloat16}
    a, b, c = torch.randn(m, k, **options), torch.randn(n, k, **options).T, torch.randn(m, n, **options)
    return [a, b, c, torch.randn(n, **options), torch.empty(m, n, **options)]


def by_torch(*shape: int) -> dict[str, Run]:
    a, b, c, bias, out = matrices(*shape)
    return {
        "cuBLAS": lambda: torch.mm(a, b, out=out),
        "cuBLAS, gelu_tanh of a bias": lambda: torch._addmm_activation(bias, a, b, use_gelu=True, out=out),
        "cuBLAS, residual in place": lambda: c.addmm_(a, b, beta=1e-3),  # so that C does not grow
    }


def by_us(*shape: int) -> dict[str, Run]:
    a, b, c, bias, out = matrices(*shape)
    product = functools.partial(gemm, a, b, out=out)
    return {
        "product": product,
        "gelu": functools.partial(product, epilogue=gelu),
        "gelu_tanh": functools.partial(product, epilogue=gelu_tanh),
        "relu": functools.partial(product, epilogue=relu),
        "gelu of a bias": functools.partial(product, epilogue=add_gelu, operands=(per_column(bias),)),
        "gelu_tanh of a bias": functools.partial(product, epilogue=add_gelu_tanh, operands=(per_column(bias),)),
        "residual": functools.partial(gemm, a, b, c, out=out, beta=1.0),
        "residual in place": functools.partial(gemm, a, b, c, out=c, beta=1e-3),
    }


BENCHMARK = common.Benchmark(
    others=lambda case: by_torch(*case),
    ours=lambda case: by_us(*case),
    label=lambda case: {"shape": "x".join(map(str, case))},
    operations=lambda case: 2.0 * case[0] * case[1] * case[2],
)

if __name__ == "__main__":
    common.main(BENCHMARK, SHAPES, common.gpu_parser(__doc__ or "").parse_args())
