"""Which configuration takes the least time for a convolution, by what layers of networks took on an H200."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.heuristic import MULTIPROCESSORS
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type, f32, s8, s32

DEEP = GemmConfig(tile=(128, 128, 64), warp=(64, 64), stages=3)
TALL = GemmConfig(tile=(256, 64, 32), warp=(64, 64), stages=4)
NARROW = GemmConfig(tile=(128, 64, 32), warp=(64, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=4)
FLAT = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
SQUARE_TF32 = GemmConfig(f32, f32, tile=(128, 128, 16), warp=(64, 64), stages=4)
TALL_TF32 = GemmConfig(f32, f32, tile=(256, 64, 16), warp=(64, 64), stages=4)
DEEP_S8 = GemmConfig(s8, s32, tile=(128, 128, 128), warp=(64, 64), stages=3)
TALL_S8 = GemmConfig(s8, s32, tile=(256, 64, 64), warp=(64, 64), stages=3)
NARROW_S8 = GemmConfig(s8, s32, tile=(128, 64, 128), warp=(64, 32), stages=3)

# By the bits of an input: microseconds of a multiprocessor for a million multiply-adds, where it has blocks enough.
COST = {
    8: {DEEP_S8: 0.33, TALL_S8: 0.37, NARROW_S8: 0.45, SMALL: 0.53},
    16: {DEEP: 0.52, TALL: 0.6, NARROW: 0.69, SMALL: 0.76},
    32: {SQUARE_TF32: 1.4, TALL_TF32: 1.5, NARROW: 1.75, FLAT: 1.85},
    64: {FLAT: 4.0},
}
FOR_NARROW_COPIES = (NARROW, SMALL, FLAT)  # the others have no registers left for many copies of a thread
ALONE = 1.2  # a block by itself takes so much of the time of two
WRITE = 0.9e-4  # microseconds to write one element of out
MEET = 2e-6  # microseconds of the whole GPU to leave one sum for another block, and to read it
MOST_SLICES = 8
LEAST_ITERATIONS = 4  # of a slice: fewer are not worth a meeting


def choose(sizes: tuple[int, int, int], inputs: Type, is_wide: bool, split_k: int | None = None) -> GemmConfig:
    """The configuration and the number of slices that should take the least time for an (M, N, K).

    `is_wide` says whether images are copied in 16 bytes; `split_k` is the number of slices where it is given.
    """
    costs = candidates(inputs, is_wide)
    options = ((config, slices) for config in costs for slices in ([split_k] if split_k else _slices(sizes, config)))
    config, slices = min(options, key=lambda option: time(sizes, option[0], option[1], costs[option[0]]))
    return replace(config, split_k=slices)


def candidates(inputs: Type, is_wide: bool) -> dict[GemmConfig, float]:
    """Those that fit into the registers of a thread and into the shared memory of any GPU, with their costs."""
    costs = COST[inputs.bits]
    return costs if is_wide else {config: costs[config] for config in FOR_NARROW_COPIES if config in costs}


def _slices(sizes: tuple[int, int, int], config: GemmConfig) -> Iterator[int]:
    """No slice, or as many as give each multiprocessor four blocks at most."""
    tiles, iterations = prod(config.tiles(*sizes[:2])), ceil_div(sizes[2], config.tile[2])
    yield 1
    for slices in range(2, MOST_SLICES + 1):
        if slices * tiles <= 4 * MULTIPROCESSORS and slices * LEAST_ITERATIONS <= iterations:
            yield slices


def time(sizes: tuple[int, int, int], config: GemmConfig, slices: int, cost: float) -> float:
    """Microseconds, but for what all launches take; `cost` is that of the configuration."""
    m, n, k = sizes
    tiles, (tile_m, tile_n, tile_k) = prod(config.tiles(m, n)), config.tile
    rounds = ceil_div(tiles * slices, MULTIPROCESSORS)
    iterations = ceil_div(ceil_div(k, tile_k), slices)
    multiply = cost * 1e-6 * iterations * tile_k * max(rounds, ALONE)
    meet = MEET * tiles * slices if slices > 1 else 0.0
    took: float = tile_m * tile_n * (multiply + WRITE * rounds + meet)
    return took
