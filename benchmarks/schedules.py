"""TFLOP/s of gemm() by schedule against cuBLAS through torch, in one run, at shapes where the schedule matters.

f16, A row-major, B column-major, f32 accumulation. Shapes: whole waves of tiles; long K with few tiles; a little more
than a whole wave of tiles; many small products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import common
import torch

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.heuristic import LARGE, MEDIUM
from ptxdsl.schedule import (
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)

SHAPES = [(4096, 4096, 4096), (2048, 2048, 16384), (1536, 1536, 4096), (1024, 1024, 4096), (512, 512, 16384)]
BATCHES = [(64, 512, 512, 512), (1024, 128, 128, 128)]
Run = Callable[[], Any]


def schedules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Tiles and schedules for gemm(). A block of LARGE is alone on a multiprocessor, those of MEDIUM are two."""
    for tiles, config, occupancy in (("128x256x64", LARGE, 1), ("128x128x32", MEDIUM, 2)):
        found: list[tuple[str, dict[str, Any]]] = [
            ("rows of 8", {}),
            ("identity 8", {"schedule": IdentityThreadblockSwizzle(8)}),
            ("horizontal", {"schedule": HorizontalThreadblockSwizzle()}),
            ("hilbert 3", {"schedule": HilbertThreadblockSwizzle(3)}),
            ("persistent", {"schedule": PersistentScheduler(max_swizzle=8)}),
            ("stream-k", {"schedule": StreamKThreadblockSwizzle(132, occupancy)}),
            ("stream-k, a slot each", {"schedule": StreamKThreadblockSwizzle(132 * occupancy)}),
            ("split-k 2", {"split_k": 2}),
            ("split-k 4", {"split_k": 4}),
            ("split-k 8", {"split_k": 8}),
            ("split-k 4 serial", {"split_k": 4, "reduction": "serial"}),
        ]
        yield from ((f"{name}, {tiles}", {"config": config, **how}) for name, how in found)


def batched(config: GemmConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "batched", {}
    yield "batched, 128x128x32", {"config": config}
    yield "batched persistent, 128x128x32", {"config": config, "schedule": PersistentScheduler()}


def measure(shape: tuple[int, ...], rounds: int) -> list[dict[str, object]]:
    *batch, m, n, k = shape
    a = torch.randn(*batch, m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(*batch, n, k, device="cuda", dtype=torch.float16).transpose(-1, -2)
    out = torch.empty(*batch, m, n, device="cuda", dtype=torch.float16)
    runs: dict[str, Run] = {
        "cuBLAS": (lambda: torch.bmm(a, b, out=out)) if batch else (lambda: torch.mm(a, b, out=out))
    }
    for name, how in batched(MEDIUM) if batch else schedules():
        runs[name] = lambda how=how: gemm(a, b, out=out, **how)
    if batch:
        lists = [list(matrices) for matrices in (a, b, out)]
        runs["list of matrices"] = lambda: gemm(lists[0], lists[1], out=lists[2])
    else:
        runs["as gemm() chooses"] = lambda: gemm(a, b, out=out)
    times = common.gpu_medians(runs, rounds)
    operations = 2 * m * n * k * (batch[0] if batch else 1)
    return [
        {
            "shape": "x".join(map(str, shape)),
            "schedule": name,
            "us": 1000 * ms,
            "TFLOP/s": 1e-9 * operations / ms,
            "of cuBLAS": times["cuBLAS"] / ms,
        }
        for name, ms in times.items()
    ]


def main() -> None:
    options = common.parser(__doc__ or "")
    options.add_argument("--shape", action="append", help="MxNxK or BATCHxMxNxK, may be repeated (default: a list)")
    chosen = options.parse_args()
    shapes = [tuple(map(int, s.split("x"))) for s in chosen.shape] if chosen.shape else [*SHAPES, *BATCHES]
    common.report([row for shape in shapes for row in measure(shape, chosen.rounds)], chosen.json)


if __name__ == "__main__":
    main()
