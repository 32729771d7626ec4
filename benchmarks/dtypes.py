"""Time gemm() with f64, tf32, s8, e4m3 and bf16 operands, and with fused epilogues, against cuBLAS through torch.

The reference of an epilogue is what a torch user writes (addmm, then the activation, then the residual), and addmm
alone.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import common
import torch
import torch.nn.functional as functional
from protocols import Run

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_gelu, per_column, relu
from ptxdsl.kernels.gemm import gemm

DTYPES = {
    "f64": torch.float64,
    "tf32": torch.float32,
    "s8": torch.int8,
    "e4m3": torch.float8_e4m3fn,
    "bf16": torch.bfloat16,
}
OUTPUTS = {"s8": torch.int32, "e4m3": torch.bfloat16}
SIZES = (4096, 8192)
PRODUCT, GELU, RESIDUAL = "product", "gelu(a@b + bias)", "relu(a@b + bias) + residual"


def scaled_mm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Multiply 8-bit floats with scales of 1."""
    one = torch.ones((), device="cuda")
    return torch._scaled_mm(a, b, one, one, out_dtype=out.dtype, out=out, use_fast_accum=True)


def copied_mm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Copy the matrices to K-major order and multiply: cuBLAS takes only K-major 8-bit floats, so torch users copy
    them.
    """
    return scaled_mm(a.contiguous(), b.T.contiguous().T, out)


PRODUCTS = {"s8": torch._int_mm, "e4m3": scaled_mm}
WGMMA = GemmConfig(atom="wgmma")


class Case(NamedTuple):
    function: str
    size: int  # M = N = K
    dtype: str
    layout: str = "tn"  # BLAS letters of A and B: t is a row-major A or B, n a column-major one


class Matrices(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor
    bias: torch.Tensor
    residual: torch.Tensor
    out: torch.Tensor


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Return N(0,1) values, or random values of all of int8."""
    if dtype is torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


@functools.lru_cache(maxsize=1)
def matrices(case: Case) -> Matrices:
    dtype, size = DTYPES[case.dtype], case.size
    a, b = (values(dtype, size, size) if letter == "t" else values(dtype, size, size).T for letter in case.layout)
    output = OUTPUTS.get(case.dtype, dtype)
    bias, residual = values(dtype, size), values(dtype, size, size)
    return Matrices(a, b, bias, residual, torch.empty(size, size, device="cuda", dtype=output))


def by_torch(case: Case) -> dict[str, Run]:
    """Return the product by cuBLAS; an epilogue as torch users write it, and with addmm alone."""
    torch.backends.cuda.matmul.allow_tf32 = True
    a, b, bias, residual, out = matrices(case)
    if case.function == PRODUCT:
        multiply = copied_mm if case.dtype == "e4m3" and case.layout != "tn" else PRODUCTS.get(case.dtype, torch.mm)
        return {"cublas": functools.partial(multiply, a, b, out=out)}
    fused = {
        GELU: lambda: functional.gelu(torch.addmm(bias, a, b), approximate="tanh"),
        RESIDUAL: lambda: torch.relu(torch.addmm(bias, a, b)) + residual,
    }
    return {"torch": fused[case.function], "addmm": lambda: torch.addmm(bias, a, b, out=out)}


def add_relu_add(x: object, bias: object, residual: object) -> object:
    return relu(x + bias) + residual


def by_us(case: tuple[str, int, str, str]) -> dict[str, Run]:
    function = case[0]
    a, b, bias, residual, out = matrices(Case(*case))
    alone = {"ptxdsl" if function == PRODUCT else "ptxdsl, product alone": lambda: gemm(a, b, out=out)}
    if case[2] == "tf32" and torch.cuda.get_device_capability()[0] == 9:
        alone["ptxdsl, wgmma"] = lambda: gemm(a, b, out=out, config=WGMMA)
    fused = {
        GELU: lambda: gemm(a, b, out=out, epilogue=add_gelu, operands=(per_column(bias),)),
        RESIDUAL: lambda: gemm(a, b, out=out, epilogue=add_relu_add, operands=(per_column(bias), residual)),
    }
    return ({} if function == PRODUCT else {"ptxdsl": fused[function]}) | alone


def label(case: Case) -> common.Row:
    return {"what": case.function, "dtype": case.dtype, "size": f"{case.size}^3", "layout": case.layout}


def operations(case: Case) -> float:
    return 2.0 * case.size**3


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--size", type=int, action="append", help="M = N = K, may be repeated (default: 4096, 8192)")
    options.add_argument("--dtype", choices=DTYPES, action="append", help="may be repeated (default: all)")
    chosen = options.parse_args()
    sizes = chosen.size or SIZES
    cases = [Case(PRODUCT, size, dtype) for dtype in DTYPES for size in sizes]
    cases += [Case(PRODUCT, sizes[0], dtype, layout) for dtype in DTYPES for layout in ("tt", "nn", "nt")]
    cases += [Case(function, size, "bf16") for function in (GELU, RESIDUAL) for size in sizes]
    cases = [case for case in cases if case.dtype in (chosen.dtype or DTYPES)]
    common.main(common.Benchmark(by_torch, by_us, label, operations), cases, chosen)


if __name__ == "__main__":
    main()
