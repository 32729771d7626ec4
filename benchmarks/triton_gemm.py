"""A Triton GEMM to compare with: persistent programs, tensor descriptors (TMA), the fastest of a few configurations.

Following Triton's tutorial on persistent matmul, the loop over tiles is flattened, so loads of the next tile overlap
the store of the previous one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

GROUP, ROUNDS, WORD_BYTES = 8, 3, 16


class Config(NamedTuple):
    """A tile of M, N and K, the stages of its ring, and its warps."""

    tile: tuple[int, int, int]
    stages: int
    warps: int


CONFIGS = (
    Config((128, 256, 64), 3, 8),
    Config((128, 256, 64), 4, 8),
    Config((128, 128, 64), 4, 4),
    Config((128, 128, 64), 4, 8),
)


@triton.jit
def persistent_kernel(
    a, b, out, m, n, k,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Compute out = a @ b.T by tiles of M×N, in groups of ROWS tiles down; a is m×k, b n×k."""
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = ROWS * tiles_n
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        group = tile // in_group
        rows = min(tiles_m - group * ROWS, ROWS)
        row = (group * ROWS + tile % rows) * M
        column = (tile % in_group) // rows * N
        sums = tl.zeros((M, N), dtype=tl.float32)
        for step in range(tl.cdiv(k, K)):
            x, y = a.load([row, step * K]), b.load([column, step * K])
            sums = tl.dot(x, y.T, sums)
        out.store([row, column], sums.to(out.dtype))


def takes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if the kernel supports the matrices: contiguous along K, 16 bits, rows that TMA can address."""
    return all(
        x.element_size() == 2 and x.stride(-1) == 1 and x.stride(0) * x.element_size() % WORD_BYTES == 0
        for x in (a, b.T)
    )


def launch_of(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, config: Config) -> Callable[[], Any]:
    """Return a launch of one configuration, whose descriptors are made once."""
    (m, k), n = a.shape, b.shape[1]
    tile_m, tile_n, tile_k = config.tile
    maps = (
        TensorDescriptor.from_tensor(a, [tile_m, tile_k]),
        TensorDescriptor.from_tensor(b.T, [tile_n, tile_k]),
        TensorDescriptor.from_tensor(out, [tile_m, tile_n]),
    )
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(programs, triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)),)
    return functools.partial(
        persistent_kernel[grid], *maps, m, n, k, M=tile_m, N=tile_n, K=tile_k, ROWS=GROUP, PROGRAMS=programs,
        num_stages=config.stages, num_warps=config.warps,
    )  # fmt: skip


def milliseconds(launch: Callable[[], Any]) -> float:
    """Return the mean milliseconds of ROUNDS launches after a first one."""
    launch()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(ROUNDS):
        launch()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / ROUNDS


def tuned(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Callable[[], Any]:
    """Return the fastest launch of the configurations that fit the GPU."""
    timed = []
    for config in CONFIGS:
        launch = launch_of(a, b, out, config)
        try:
            timed.append((milliseconds(launch), launch))
        except triton.runtime.errors.OutOfResources:
            continue
    return min(timed, key=lambda each: each[0])[1]
