"""Launches of persistent kernels: as many blocks as are resident at the same time, on tables that lie on the GPU."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache, partial
from typing import Any

from ptxdsl import arrays, config, driver
from ptxdsl.driver import gpu_at
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import blocks_per_multiprocessor

EMULATED = 132  # multiprocessors, as of an H200
REGISTERS = 255


def stream_of(*operand: arrays.Array) -> tuple[int | None, int]:
    """The GPU of arrays, None for host memory, and the stream on which their library works: torch's or CuPy's current
    one, else one that an array names. The driver knows the GPU of arrays that do not name theirs."""
    if any(array.device == arrays.HOST for array in operand):
        return None, 0
    device = next((array.device for array in operand if array.device is not None), None)
    if device is None:
        device = next((_located(array.pointer) for array in operand if array.pointer), 0)
    library = next(filter(None, (arrays.library_of(type(array.owner)) for array in operand)), None)
    if library:
        return device, library.current_stream(device)()
    return device, next((array.stream for array in operand if array.stream is not None), 0)


def _located(address: int) -> int:
    """0 where the driver cannot say: then the launch is refused, which says why."""
    if driver.why_no_gpu():
        return 0
    try:
        return gpu_at(address) or 0
    except LaunchError:
        return 0


def resident_blocks(kernel: Kernel, threads: int, device: int | None, **constants: Any) -> int:
    """How many blocks a GPU holds at the same time, as the driver says; by arithmetic for the emulator.

    Arrays of host memory, of which `device` is None, go to the first GPU where one is asked for.
    """
    if device is None and config.current().device == "cuda":
        device = 0
    return _resident_blocks(kernel, threads, device, config.deciding(), **constants)


@lru_cache(maxsize=1024)
def _resident_blocks(kernel: Kernel, threads: int, device: int | None, settings: Hashable, **constants: Any) -> int:
    if device is None:
        shared_bytes = kernel.variant(target(None), constants).shared_bytes(None)
        return EMULATED * max(1, blocks_per_multiprocessor(threads, REGISTERS, shared_bytes))
    gpu = driver.device(device)
    variant = kernel.variant(config.current().arch or gpu.arch, constants)
    handle = variant.compiled(gpu.arch)
    return gpu.multiprocessors * handle.occupancy(threads, shared_bytes=variant.shared_bytes(None), device=device)


def prepared(
    kernel: Kernel,
    grid: int | tuple[int, ...],
    threads: int,
    device: int,
    *,
    begins_early: bool = True,
    **constants: Any,
) -> partial[None]:
    """What makes such launches, given the arguments in one sequence and `stream`. A kernel that waits for those before
    it may begin while they run, unless `begins_early` or the setting `dependent_launch` says no: then it waits for
    nothing, as they have ended."""
    arch = driver.device(device).arch
    variant = kernel.variant(config.current().arch or arch, constants)
    shared_bytes = variant.shared_bytes(None)
    dependent = begins_early and variant.waits_for_others and config.allows_dependent_launches()
    handle = variant.compiled(arch)
    return partial(handle, grid, threads, shared_bytes=shared_bytes, dependent=dependent, device=device)
