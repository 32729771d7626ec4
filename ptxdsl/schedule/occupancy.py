"""Occupancy: the number of resident thread blocks, computed without the driver.

Source: CUDA C++ Programming Guide, "Compute Capabilities".
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.number import Extents
from ptxdsl.schedule.problems import Problems, sizes

WARP, QUARTERS = 32, 4  # threads of a warp; sub-partitions of a multiprocessor, each with its own registers
REGISTERS, REGISTER_UNIT = 65536, 256
RESERVED_SHARED, SHARED_UNIT = 1024, 128  # bytes reserved per block; allocation granularity in bytes
KIB = 1024


class Limits(NamedTuple):
    """The limits of one multiprocessor."""

    warps: int
    blocks: int
    shared_bytes: int


LIMITS = {
    80: Limits(64, 32, 164 * KIB),
    86: Limits(48, 16, 100 * KIB),
    89: Limits(48, 24, 100 * KIB),
    90: Limits(64, 32, 228 * KIB),
    100: Limits(64, 32, 228 * KIB),
}


def blocks_per_multiprocessor(threads: int, registers: int, shared_bytes: int = 0, arch: str = "sm_90") -> int:
    """Return the number of blocks that fit on a multiprocessor, given threads per block, registers per thread and
    shared memory per block.
    """
    names = ("threads", "registers", "shared_bytes")
    threads, registers, shared_bytes = sizes((threads, registers, shared_bytes), "a block", names)
    limits = limits_of(arch)
    warps = max(1, -(-threads // WARP))
    of_warp = max(1, -(-registers * WARP // REGISTER_UNIT)) * REGISTER_UNIT
    resident_warps = min(limits.warps, REGISTERS // QUARTERS // of_warp * QUARTERS)
    shared = -(-(shared_bytes + RESERVED_SHARED) // SHARED_UNIT) * SHARED_UNIT
    return min(limits.blocks, resident_warps // warps, limits.shared_bytes // shared)


@cache
def limits_of(arch: str) -> Limits:
    """Return the limits of a multiprocessor of a target. Raises ScheduleError for an unknown target."""
    number = arch.removeprefix("sm_")
    number = number[:-1] if number.endswith(("a", "f")) else number
    if not arch.startswith("sm_") or not number.isdecimal() or int(number) not in LIMITS:
        known = ", ".join(f"sm_{number}" for number in LIMITS)
        raise ScheduleError(f"the limits of {arch} are unknown", help=f"use one of {known}, or query the driver")
    return LIMITS[int(number)]


def sufficient_blocks(problems: Problems, tile: Extents, resident: int) -> int:
    """Return the number of persistent blocks for a group of problems (M, N, K): one per tile, up to the number of
    resident blocks.
    """
    shapes = np.array([sizes(problem, "a problem", ("M", "N", "K")) for problem in problems], np.int64).reshape(-1, 3)
    tile_m, tile_n, _ = sizes(tile, "the tile", ("M", "N", "K"), least=1)
    tiles = int((-(-shapes[:, 0] // tile_m) * -(-shapes[:, 1] // tile_n)).sum())
    return min(tiles, resident) or resident
