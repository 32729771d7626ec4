"""Speed of gemm() with f64, tf32, s8 and bf16 operands, and with fused epilogues, against cuBLAS through torch.

An epilogue is held against what torch users write: the product and the bias in one call (addmm), then the activation,
then the residual; and against addmm alone.
"""

from __future__ import annotations

from collections.abc import Callable

import common
import torch
import torch.nn.functional as functional

from ptxdsl.kernels.epilogue import add_gelu, per_column, relu
from ptxdsl.kernels.gemm import gemm

DTYPES = {"f64": torch.float64, "tf32": torch.float32, "s8": torch.int8, "bf16": torch.bfloat16}
SIZES = (4096, 8192)
Contenders = dict[str, Callable[[], object]]


def matrix(size: int, dtype: torch.dtype, major: str) -> torch.Tensor:
    """N(0,1), or all values of int8."""
    if dtype is torch.int8:
        made = torch.randint(-128, 128, (size, size), device="cuda", dtype=dtype)
    else:
        made = torch.randn(size, size, device="cuda", dtype=dtype)
    return made if major == "row" else made.T


def matrices(size: int, dtype: torch.dtype, layout: str = "tn") -> tuple[torch.Tensor, torch.Tensor]:
    """A and B, by BLAS letters: t is a row-major A or B, n a column-major one."""
    a, b = (matrix(size, dtype, "row" if letter == "t" else "column") for letter in layout)
    return a, b


def products(size: int, name: str, layout: str = "tn") -> Contenders:
    """The product alone."""
    a, b = matrices(size, DTYPES[name], layout)
    out = torch.empty(size, size, device="cuda", dtype=torch.int32 if name == "s8" else DTYPES[name])
    library = (lambda: torch._int_mm(a, b, out=out)) if name == "s8" else (lambda: torch.mm(a, b, out=out))
    return {"cublas": library, "ptxdsl": lambda: gemm(a, b, out=out)}


def bias_gelu(size: int) -> Contenders:
    """gelu(a@b + bias), by the approximation with tanh."""
    a, b = matrices(size, torch.bfloat16)
    bias, out = torch.randn(size, device="cuda", dtype=torch.bfloat16), torch.empty_like(a)
    operands = (per_column(bias),)
    return {
        "torch": lambda: functional.gelu(torch.addmm(bias, a, b), approximate="tanh"),
        "addmm": lambda: torch.addmm(bias, a, b, out=out),
        "ptxdsl": lambda: gemm(a, b, out=out, epilogue=add_gelu, operands=operands),
        "ptxdsl alone": lambda: gemm(a, b, out=out),
    }


def add_relu_add(x: object, bias: object, residual: object) -> object:
    return relu(x + bias) + residual


def bias_relu_residual(size: int) -> Contenders:
    """relu(a@b + bias) + residual."""
    a, b = matrices(size, torch.bfloat16)
    bias, out = torch.randn(size, device="cuda", dtype=torch.bfloat16), torch.empty_like(a)
    residual = torch.randn_like(out)
    operands = (per_column(bias), residual)
    return {
        "torch": lambda: torch.relu(torch.addmm(bias, a, b)) + residual,
        "addmm": lambda: torch.addmm(bias, a, b, out=out),
        "ptxdsl": lambda: gemm(a, b, out=out, epilogue=add_relu_add, operands=operands),
        "ptxdsl alone": lambda: gemm(a, b, out=out),
    }


def measure(what: str, size: int, contenders: Contenders, rounds: int, layout: str = "tn") -> dict[str, object]:
    """A row of the table; `ratio` is against the first contender."""
    times = common.gpu_medians(contenders, rounds)
    first = next(iter(times))
    return {
        "what": what,
        "size": f"{size}^3",
        "layout": layout,
        **{f"{name} us": 1000 * ms for name, ms in times.items()},
        **{f"{name} TFLOP/s": 2e-9 * size**3 / ms for name, ms in times.items()},
        "ratio": times[first] / times["ptxdsl"],
    }


def main() -> None:
    options = common.parser(__doc__ or "")
    options.add_argument("--size", type=int, action="append", help="M = N = K, may be repeated (default: 4096, 8192)")
    chosen = options.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    sizes = chosen.size or SIZES
    rows = [measure(name, size, products(size, name), chosen.rounds) for name in DTYPES for size in sizes]
    rows += [
        measure(name, sizes[0], products(sizes[0], name, layout), chosen.rounds, layout)
        for name in DTYPES
        for layout in ("tt", "nn", "nt")
    ]
    fused = {"bias + gelu": bias_gelu, "bias + relu + residual": bias_relu_residual}
    rows += [measure(what, size, made(size), chosen.rounds) for what, made in fused.items() for size in sizes]
    common.report(rows, chosen.json)


if __name__ == "__main__":
    main()
