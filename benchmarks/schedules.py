"""Time the schedules of gemm() against cuBLAS at shapes where the schedule matters.

f16, A row-major, B column-major, float32 accumulation. Shapes: whole waves of tiles; few tiles with a long K; slightly
more than a whole wave; many small products.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import common
import torch
from protocols import Run

from ptxdsl.kernels.candidates.sm80 import LARGE, MEDIUM
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.schedule import (
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)

SHAPES = [(4096, 4096, 4096), (2048, 2048, 16384), (1536, 1536, 4096), (1024, 1024, 4096), (512, 512, 16384)]
BATCHES = [(8, 2048, 2048, 2048), (16, 1024, 1024, 1024), (64, 512, 512, 512), (1024, 128, 128, 128)]
BATCHES += [(64, 16, 4096, 1024), (256, 128, 1024, 64), (256, 1024, 64, 1024), (32, 1000, 1000, 1000)]
WGMMA = [GemmConfig((128, n, 64), stages=stages, atom="wgmma") for n, stages in ((256, 4), (128, 6))]
Options = dict[str, Any]  # of gemm()


def by_warpgroups() -> bool:
    """True if the GPU has wgmma, whose tiles are then timed instead of those of mma.sync."""
    return torch.cuda.get_device_capability()[0] == 9


def schedules() -> Iterator[tuple[str, Options]]:
    """Return tiles and schedules for gemm(). Two MEDIUM blocks share a multiprocessor, others use one each."""
    tiles: list[tuple[GemmConfig, int]] = [(LARGE, 1), (MEDIUM, 2)]
    if by_warpgroups():
        tiles = [(config, 1) for config in WGMMA]
    for config, occupancy in tiles:
        by_name: list[tuple[str, Options]] = [
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
        if by_warpgroups():
            by_name.append(("split-k 4, in a cluster", {"split_k": 4, "reduction": "cluster"}))
        size = "x".join(map(str, config.tile))
        yield from ((f"{name}, {size}", {"config": config, **options}) for name, options in by_name)


def batched() -> Iterator[tuple[str, Options]]:
    yield "as gemm() chooses", {}
    config = WGMMA[1] if by_warpgroups() else MEDIUM
    size = "x".join(map(str, config.tile))
    yield f"batched, {size}", {"config": config}
    yield f"batched persistent, {size}", {"config": config, "schedule": PersistentScheduler()}


@functools.lru_cache(maxsize=1)
def matrices(*shape: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make A, B and out of (M, N, K) or (batch, M, N, K)."""
    *batch, m, n, k = shape
    a = torch.randn(*batch, m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(*batch, n, k, device="cuda", dtype=torch.float16).transpose(-1, -2)
    return a, b, torch.empty(*batch, m, n, device="cuda", dtype=torch.float16)


def cublas(shape: tuple[int, ...]) -> dict[str, Run]:
    a, b, out = matrices(*shape)
    return {"cuBLAS": lambda: torch.matmul(a, b, out=out)}


def ptxdsl(shape: tuple[int, ...]) -> dict[str, Run]:
    a, b, out = matrices(*shape)
    ways: dict[str, Options] = dict(batched() if a.ndim == 3 else schedules())
    runs: dict[str, Run] = {name: functools.partial(gemm, a, b, out=out, **options) for name, options in ways.items()}
    if a.ndim == 2:
        return runs | {"as gemm() chooses": lambda: gemm(a, b, out=out)}
    lists = [list(stack) for stack in (a, b, out)]
    return runs | {"list of matrices": lambda: gemm(lists[0], lists[1], out=lists[2])}


def label(shape: tuple[int, ...]) -> common.Row:
    return {"shape": "x".join(map(str, shape))}


def operations(shape: tuple[int, ...]) -> float:
    return 2.0 * math.prod(shape)


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--shape", action="append", help="MxNxK or BATCHxMxNxK, may be repeated (default: a list)")
    chosen = options.parse_args()
    shapes = [tuple(map(int, s.split("x"))) for s in chosen.shape] if chosen.shape else [*SHAPES, *BATCHES]
    common.main(common.Benchmark(cublas, ptxdsl, label, operations), shapes, chosen)


if __name__ == "__main__":
    main()
