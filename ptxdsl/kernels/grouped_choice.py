"""The configuration of grouped problems: as given, or with the tiles that should cost least on persistent blocks.

The constants are those of an H200.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.config import GemmConfig, Schedule, usual_atom
from ptxdsl.kernels.given import USUAL, check_config
from ptxdsl.kernels.heuristic import MULTIPROCESSORS, OF_ODD_HALVES, candidates
from ptxdsl.kernels.scheduled import specialise
from ptxdsl.schedule import blocks_per_multiprocessor

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
OF_ONE_PRODUCT = "schedule", "split_k", "reduction"

Sizes = tuple[Any, Any, Any]
"""M, N and K of all problems: arrays, or one number for all."""


def configured(
    given: GemmConfig | None, sizes: Sizes, arch: str, from_arrays: dict[str, Any], schedule: Schedule, **model: bool
) -> GemmConfig:
    """The kernel: `given` or chosen tiles, and what follows from the arrays; `model` is for `choose_tiles`.

    Raises LaunchError for what contradicts the arrays, what groups do not have, and what the GPU has not enough of.
    """
    if given is None:
        return choose_tiles(sizes, arch, {**from_arrays, "schedule": schedule}, **model)
    check_config(given, from_arrays)
    _check_schedule(given)
    made = _made(given, arch, {**from_arrays, "schedule": schedule})
    made.check(arch)
    return made


def _check_schedule(config: GemmConfig) -> None:
    for field in OF_ONE_PRODUCT:
        value = getattr(config, field)
        if value != getattr(USUAL, field):
            raise LaunchError(
                f"`config` says that {field} is {value!r}; tiles of grouped products are dealt to persistent blocks",
                help=f"leave {field} out of the GemmConfig; "
                'grouped_gemm(…, schedule="host", balance="k") shares a long K',
            )


def _made(config: GemmConfig, arch: str, fields: dict[str, Any]) -> GemmConfig:
    return specialise(config, atom=config.atom or usual_atom(fields["inputs"], arch), **fields)


def choose_tiles(
    sizes: Sizes, arch: str, fields: dict[str, Any], *, balanced: bool = False, average: bool = False
) -> GemmConfig:
    """The configuration with these fields whose tiles fit a GPU and should cost least there.

    `balanced` says that long tiles are cut. With `average`, each M is that of many problems.
    """
    inputs, width = fields["inputs"], min(fields["a_bytes"], fields["b_bytes"])
    along_k = fields["a_major"] == fields["b_major"] == "k"
    found = of_halves(width) if inputs.bits == 16 else candidates(inputs, width, along_k)
    fitting = [(config, made) for config in found if (made := _made(config, arch, fields)).fits(arch)]
    return min(fitting, key=lambda pair: seconds(pair[0], sizes, balanced, average))[1]


def of_halves(width: int) -> tuple[GemmConfig, ...]:
    """Those of 16-bit types whose registers are enough for copies of `width` bytes."""
    return tuple(RATES) if width > 4 else OF_ODD_HALVES


def seconds(config: GemmConfig, sizes: Sizes, balanced: bool, average: bool) -> float:
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
