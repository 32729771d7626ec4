"""Time gemm() against cuBLAS (through torch) and, if Triton is installed, a persistent Triton kernel that uses TMA.

Every library runs through its public call, all in one run. Tensor cores compute float32 as tf32: cuBLAS truncates the
operands, gemm() rounds them; `ptxdsl, wgmma` truncates too.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import common
import torch
from protocols import Run
from shapes import SHAPES

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm

try:
    import triton_gemm
except ImportError:  # Triton, or a version of it with tensor descriptors, is not installed
    triton_gemm = None  # type: ignore[assignment]

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}
WGMMA = GemmConfig(atom="wgmma")


class Case(NamedTuple):
    m: int
    n: int
    k: int
    dtype: str
    layout: str  # BLAS letters of A and B


def matrix(rows: int, columns: int, major: str, dtype: torch.dtype) -> torch.Tensor:
    """Return an N(0,1) matrix, row-major or column-major."""
    if major == "row":
        return torch.randn(rows, columns, device="cuda", dtype=dtype)
    return torch.randn(columns, rows, device="cuda", dtype=dtype).T


@functools.lru_cache(maxsize=1)
def matrices(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make A, B and out."""
    dtype = DTYPES[case.dtype]
    a = matrix(case.m, case.k, "row" if case.layout[0] == "t" else "column", dtype)
    b = matrix(case.k, case.n, "column" if case.layout[1] == "n" else "row", dtype)
    return a, b, torch.empty(case.m, case.n, device="cuda", dtype=dtype)


def others(case: Case) -> dict[str, Run]:
    """Return cuBLAS, and Triton if its kernel supports the matrices."""
    torch.backends.cuda.matmul.allow_tf32 = True
    a, b, out = matrices(case)
    runs: dict[str, Run] = {"cublas": lambda: torch.mm(a, b, out=out)}
    if triton_gemm and a.element_size() == 2 and triton_gemm.takes(a, b):
        runs["triton"] = triton_gemm.tuned(a, b, out)
    return runs


def ptxdsl(case: tuple[Any, ...]) -> dict[str, Run]:
    a, b, out = matrices(Case(*case))
    runs: dict[str, Run] = {"ptxdsl": lambda: gemm(a, b, out=out)}
    if a.dtype == torch.float32 and torch.cuda.get_device_capability()[0] == 9:
        runs["ptxdsl, wgmma"] = lambda: gemm(a, b, out=out, config=WGMMA)
    return runs


def label(case: Case) -> common.Row:
    return {"shape": f"{case.m}x{case.n}x{case.k}", "dtype": case.dtype, "layout": case.layout}


def operations(case: Case) -> float:
    return 2.0 * case.m * case.n * case.k


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--dtype", choices=DTYPES, default="f16")
    letters = ["tn", "nn", "nt", "tt"]
    options.add_argument(
        "--layout", choices=letters, action="append", help="BLAS letters, may be repeated (default tn)"
    )
    options.add_argument("--shapes", choices=SHAPES, action="append", help="may be repeated (default: all)")
    options.add_argument("--shape", action="append", default=[], help="MxNxK instead, may be repeated")
    chosen = options.parse_args()
    sets = chosen.shapes or ([] if chosen.shape else SHAPES)
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape] + [s for name in sets for s in SHAPES[name]]
    cases = [Case(*shape, chosen.dtype, layout) for layout in chosen.layout or ["tn"] for shape in shapes]
    common.main(common.Benchmark(others, ptxdsl, label, operations), cases, chosen)


if __name__ == "__main__":
    main()
