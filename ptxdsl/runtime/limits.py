"""Per-block hardware limits of each target, and the check of launches against them on a GPU and on the emulator.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ptxdsl.runtime.shape import Shape, refuse

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


class LaunchLimits(NamedTuple):
    """The limits of a kernel's launches on a GPU, or on an emulated target; `where` names it in messages."""

    kernel: str
    where: object
    capability: int  # 90 for sm_90a
    shared_bytes: int  # of a block, static plus dynamic
    static_bytes: int
    is_emulated: bool = False

    def check(self, shape: Shape) -> None:
        """Refuse dependent launches, clusters and shared memory that the GPU does not support."""
        if self.capability < CLUSTERS_SINCE and (shape.dependent or shape.cluster):
            option, kind = ("dependent", "dependent launches") if shape.dependent else ("cluster", "clusters")
            other = "; PTXDSL_ARCH selects the GPU to emulate" * self.is_emulated
            refuse(
                f"{self.where} does not support {kind}", f"launch without `{option}`, which needs sm_90 or later{other}"
            )
        most = self.shared_bytes - self.static_bytes
        if shape.shared_bytes > most:
            static = f" in addition to {self.static_bytes} static bytes" * bool(self.static_bytes)
            is_elsewhere = self.is_emulated and shape.shared_bytes + self.static_bytes <= MOST_SHARED_BYTES
            refuse(
                f"{self.kernel} requests {shape.shared_bytes} bytes of dynamic shared memory; a block on {self.where} "
                f"can have {most}{static}",
                "use a smaller tile or fewer stages" + ", or set PTXDSL_ARCH to emulate another GPU" * is_elsewhere,
            )


def check_threads(kernel: str, shape: Shape, most: int) -> None:
    """Refuse a block with more threads than the kernel's registers allow."""
    if shape.threads > most:
        refuse(
            f"a block of {shape.block} has {shape.threads} threads; {kernel} can have at most {most}",
            "use a smaller block; its registers or its .maxntid allow no more",
        )


def most_threads(registers: int) -> int:
    """Return the most threads that a block can have at this many registers per thread."""
    of_warp = -(-max(1, registers) * 32 // WARP_REGISTERS) * WARP_REGISTERS
    return BLOCK_REGISTERS // of_warp // WARPS_AT_A_TIME * WARPS_AT_A_TIME * 32
