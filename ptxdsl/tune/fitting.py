"""Whether a kernel with some constants can be launched on a target at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxdsl.errors import Error
from ptxdsl.kernel import Kernel
from ptxdsl.runtime import limits
from ptxdsl.runtime.shape import THREADS_PER_BLOCK, launch_shape

FAMILIES = ("sm_80", "sm_90a", "sm_100a", "sm_120a")  # what does not fit one of them never fits


def why_not(kernel: Kernel, constants: Mapping[str, Any], block: object, arch: str, assembles: bool) -> str:
    """Why a kernel with constants does not fit a target; empty where it does. With `assembles` registers count, too."""
    try:
        threads = launch_shape(1, block).threads
        variant = kernel.variant(arch, dict(constants))
        if (shared := variant.static_bytes + (variant.dynamic_bytes or 0)) > limits.shared_bytes(arch):
            return f"it needs {shared} bytes of shared memory; a block on {arch} has {limits.shared_bytes(arch)}"
        if not assembles:
            return ""
        resources = variant.cubin.kernels.get(variant.name)
    except Error as error:
        return error.message
    if resources is not None and threads > min(THREADS_PER_BLOCK, limits.most_threads(resources.registers)):
        return f"{threads} threads of {resources.registers} registers are more than a block on {arch} has"
    return ""


def refused(kernel: Kernel, constants: Mapping[str, Any], arch: str) -> Error | None:
    """What is said where the kernel cannot be traced with constants, whatever it is launched with."""
    try:
        kernel.variant(arch, dict(constants))
    except Error as error:
        return error
    return None


def never_fits(kernel: Kernel, constants: Mapping[str, Any], block: object) -> bool:
    """Whether no target takes it."""
    return all(why_not(kernel, constants, block, arch, assembles=False) for arch in FAMILIES)
