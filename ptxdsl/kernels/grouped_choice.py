"""Which tiles grouped problems take: what they should cost on persistent blocks. The constants are those of an H200."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.heuristic import MULTIPROCESSORS, OF_ODD_HALVES, candidates
from ptxdsl.schedule import blocks_per_multiprocessor
from ptxdsl.types import Type

# TFLOP/s of 16-bit types where every multiprocessor has work. Warps that share the K of a tile have large parts of it.
RATES = {
    GemmConfig(tile=(128, 256, 64), stages=3): 500.0,
    GemmConfig(tile=(256, 128, 64), stages=3): 495.0,
    GemmConfig(tile=(64, 128, 64), warp=(64, 64, 32), stages=4): 385.0,
    GemmConfig(tile=(128, 64, 64), warp=(64, 64, 32), stages=4): 385.0,
    GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=4): 300.0,
    GemmConfig(tile=(16, 64, 128), warp=(16, 16), stages=3): 150.0,
    GemmConfig(tile=(64, 16, 128), warp=(16, 16), stages=3): 150.0,
}
HALF_RATE = 6000  # elements of a tile at which other kernels reach half of what large tiles would
MOST_RATE = 590.0
BETWEEN_TILES = 3e-6  # seconds in which a multiprocessor with one block waits for memory
OWN_REGISTERS = 40  # of a thread, beside those that a configuration counts


def choose_tiles(
    sizes: tuple[Any, Any, Any], inputs: Type, width: int, along_k: bool, balanced: bool = False, average: bool = False
) -> GemmConfig:
    """The tiles for problems whose M, N and K are arrays. With `average`, each M is that of many problems.

    `balanced` says that long tiles are cut. Operands are copied `width` bytes at a time, and lie `along_k` or not.
    """
    found = of_halves(width) if inputs.bits == 16 else candidates(inputs, width, along_k)
    return min(found, key=lambda config: seconds(config, sizes, balanced, average))


def of_halves(width: int) -> tuple[GemmConfig, ...]:
    """Those of 16-bit types whose registers are enough for copies of `width` bytes."""
    return tuple(RATES) if width > 4 else OF_ODD_HALVES


def seconds(config: GemmConfig, sizes: tuple[Any, Any, Any], balanced: bool, average: bool) -> float:
    """What the problems should take: all tiles at the rate of the GPU, and half of the longest one alone at the end."""
    m, n, k = sizes
    tile_m, tile_n, _ = config.tile
    down = np.maximum(1, m / tile_m + 0.5) if average else -(-m // tile_m)
    tiles, of_tile = down * -(-n // tile_n), 2e-12 * tile_m * tile_n * k
    resident = _resident(config)
    rate = RATES.get(config, MOST_RATE * tile_m * tile_n / (tile_m * tile_n + HALF_RATE))
    slots = resident * MULTIPROCESSORS
    last = 0.0 if balanced else float(of_tile.max()) * slots / rate / 2
    return float((tiles * of_tile).sum()) / rate + last + float(tiles.sum()) / slots * BETWEEN_TILES / resident


@cache
def _resident(config: GemmConfig) -> int:
    registers = min(255, config.registers + OWN_REGISTERS)
    return max(1, blocks_per_multiprocessor(config.threads, registers, config.shared_bytes))
