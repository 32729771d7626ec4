"""Per-block hardware limits of each target, so that the emulator refuses the launches that a GPU would refuse.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from functools import cache

# The limit of a block, from each compute capability on.
SHARED_KIB = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 120: 99}
MOST_SHARED_BYTES = max(SHARED_KIB.values()) * 1024
STATIC_SHARED_BYTES = 48 * 1024  # static shared memory per kernel
BLOCK_REGISTERS = 65536
WARP_REGISTERS = 256  # the allocation granularity of a warp
WARPS_AT_A_TIME = 4  # warps are allocated in groups, one per SM sub-partition
CLUSTERS_SINCE = 90


def capability_of(arch: str) -> int:
    """Return the number of a target: 90 for sm_90a."""
    return int(arch.removeprefix("sm_").rstrip("af"))


@cache
def shared_bytes(arch: str) -> int:
    """Return the shared memory limit of a block on a target, static plus dynamic."""
    return SHARED_KIB[max((known for known in SHARED_KIB if known <= capability_of(arch)), default=80)] * 1024


def most_threads(registers: int) -> int:
    """Return the most threads that a block can have at this many registers per thread."""
    of_warp = -(-max(1, registers) * 32 // WARP_REGISTERS) * WARP_REGISTERS
    return BLOCK_REGISTERS // of_warp // WARPS_AT_A_TIME * WARPS_AT_A_TIME * 32
