"""Check if a kernel with given constants can be launched on a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxdsl.errors import Error
from ptxdsl.kernel import Kernel
from ptxdsl.runtime import limits
from ptxdsl.runtime.shape import THREADS_PER_BLOCK, launch_shape

FAMILIES = ("sm_80", "sm_90a", "sm_100a", "sm_120a")  # a configuration that fits none of these never fits


def why_not(kernel: Kernel, constants: Mapping[str, Any], block: object, arch: str, assembles: bool) -> str:
    """Return the reason why a kernel with these constants does not fit a target, or an empty string if it fits.

    With `assembles`, the kernel is assembled and its registers are checked, too.
    """
    try:
        threads = launch_shape(1, block).threads
        variant = kernel.variant(arch, dict(constants))
        if (shared := variant.static_bytes + (variant.dynamic_bytes or 0)) > limits.shared_bytes(arch):
            return f"it needs {shared} bytes of shared memory, but a block on {arch} has {limits.shared_bytes(arch)}"
        if not assembles:
            return ""
        resources = variant.cubin.kernels.get(variant.name)
    except Error as error:
        return error.message
    if resources is not None and threads > min(THREADS_PER_BLOCK, limits.most_threads(resources.registers)):
        return f"{threads} threads with {resources.registers} registers each exceed the register file of {arch}"
    return ""


def refused(kernel: Kernel, constants: Mapping[str, Any], arch: str) -> Error | None:
    """Return the error of tracing the kernel with these constants; None if it can be traced."""
    try:
        kernel.variant(arch, dict(constants))
    except Error as error:
        return error
    return None


def never_fits(kernel: Kernel, constants: Mapping[str, Any], block: object) -> bool:
    """True if the kernel fits no target."""
    return all(why_not(kernel, constants, block, arch, assembles=False) for arch in FAMILIES)
