"""What a GPU of each target has for a block, where no GPU can be asked: the emulator refuses what it would refuse.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from functools import cache

SHARED_KIB = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 120: 99}  # of a block, from a compute capability on
STATIC_SHARED_BYTES = 48 * 1024  # that a kernel may declare with their size
BLOCK_REGISTERS = 65536
WARP_REGISTERS = 256  # are given to a warp at a time
WARPS_AT_A_TIME = 4  # get their registers together, one on each part of a multiprocessor
CLUSTERS_SINCE = 90


def capability_of(arch: str) -> int:
    """The number of a target: 90 of sm_90a."""
    return int(arch.removeprefix("sm_").rstrip("af"))


@cache
def shared_bytes(arch: str) -> int:
    """The shared memory that a block of a target may have, static and dynamic."""
    return SHARED_KIB[max((known for known in SHARED_KIB if known <= capability_of(arch)), default=80)] * 1024


def most_threads(registers: int) -> int:
    """How many threads of so many registers a block may have."""
    of_warp = -(-max(1, registers) * 32 // WARP_REGISTERS) * WARP_REGISTERS
    return BLOCK_REGISTERS // of_warp // WARPS_AT_A_TIME * WARPS_AT_A_TIME * 32
