"""TFLOP/s of gemm() against cuBLAS through torch, in one run, each through its public call."""

from __future__ import annotations

import common
import torch

from ptxdsl.kernels.gemm import gemm

SQUARE = [256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192]
LARGE = [(4096, 14336, 4096), (16384, 4096, 7168)]
LONG_K = [(1024, 1024, 4096), (512, 512, 16384)]
UNALIGNED = [(4097, 4095, 4100), (8192, 8190, 8194), (4097, 4095, 4099), (1023, 1023, 1023), (333, 777, 1111)]
FEW_ROWS = [1, 16, 32, 64, 128, 256]  # against these (N, K)
WEIGHTS = [(4096, 4096), (2112, 7168), (4096, 7168), (7168, 16384), (24576, 1536)]
SHAPES = [
    *((n, n, n) for n in SQUARE),
    *LARGE,
    *LONG_K,
    *UNALIGNED,
    *((m, n, k) for n, k in WEIGHTS for m in FEW_ROWS),
]
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def matrix(rows: int, columns: int, major: str, dtype: torch.dtype) -> torch.Tensor:
    """N(0,1), row-major ("n": as BLAS says, not transposed) or column-major ("t")."""
    if major == "row":
        return torch.randn(rows, columns, device="cuda", dtype=dtype)
    return torch.randn(columns, rows, device="cuda", dtype=dtype).T


def measure(shape: tuple[int, int, int], dtype: str, layout: str, rounds: int) -> dict[str, object]:
    m, n, k = shape
    a = matrix(m, k, "row" if layout[0] == "t" else "column", DTYPES[dtype])
    b = matrix(k, n, "column" if layout[1] == "n" else "row", DTYPES[dtype])
    out = torch.empty(m, n, device="cuda", dtype=DTYPES[dtype])
    times = common.gpu_medians(
        {"cublas": lambda: torch.mm(a, b, out=out), "ptxdsl": lambda: gemm(a, b, out=out)}, rounds
    )
    rates = {name: 2e-9 * m * n * k / ms for name, ms in times.items()}
    return {
        "shape": f"{m}x{n}x{k}",
        "dtype": dtype,
        "layout": layout,
        **{f"{name} us": 1000 * ms for name, ms in times.items()},
        **{f"{name} TFLOP/s": rate for name, rate in rates.items()},
        "ratio": rates["ptxdsl"] / rates["cublas"],
    }


def main() -> None:
    options = common.parser(__doc__ or "")
    options.add_argument("--dtype", choices=DTYPES, default="f16")
    options.add_argument(
        "--layout", choices=["tn", "nn", "nt", "tt"], default="tn", help="BLAS letters of A and B: t = row-major A"
    )
    options.add_argument("--shape", action="append", help="MxNxK, may be repeated (default: a list)")
    chosen = options.parse_args()
    shapes = [tuple(map(int, s.split("x"))) for s in chosen.shape] if chosen.shape else SHAPES
    common.report([measure(s, chosen.dtype, chosen.layout, chosen.rounds) for s in shapes], chosen.json)


if __name__ == "__main__":
    main()
