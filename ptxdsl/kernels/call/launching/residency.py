"""Launches of persistent kernels: the number of resident blocks, and the launch handle."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache, partial
from typing import Any

from ptxdsl import arrays, config, driver
from ptxdsl.driver import gpu_at
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.runtime.dispatch import target
from ptxdsl.runtime.streams import current_stream
from ptxdsl.schedule import blocks_per_multiprocessor

EMULATED = 132  # multiprocessors, as of an H200
REGISTERS = 255


def stream_of(*operand: arrays.Array) -> tuple[int | None, int]:
    """Return the GPU of the arrays, None for host memory, and the current stream of their library, or else the stream
    that an array names. The driver locates arrays that do not name their GPU."""
    if any(array.device == arrays.HOST for array in operand):
        return None, 0
    device = next((array.device for array in operand if array.device is not None), None)
    if device is None:
        device = next((_located(array.pointer) for array in operand if array.pointer), 0)
    libraries = [arrays.library_of(type(array.owner)) for array in operand]
    return device, current_stream(libraries, operand, device)


def _located(address: int) -> int:
    """Return the GPU of an address, 0 if the driver cannot tell; the launch is then refused with the reason."""
    if driver.why_no_gpu():
        return 0
    try:
        return gpu_at(address) or 0
    except LaunchError:
        return 0


def resident_blocks(kernel: Kernel, threads: int, device: int | None, **constants: Any) -> int:
    """Return how many blocks are resident at the same time: as the driver says, or by arithmetic for the emulator.

    Arrays in host memory, with `device` None, use the first GPU if the settings ask for a GPU.
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
    **constants: Any,
) -> partial[None]:
    """Return a function that launches, given the argument list and `stream`. A kernel with griddepcontrol.wait may
    start while the previous one runs, unless the setting `dependent_launch` is off."""
    arch = driver.device(device).arch
    variant = kernel.variant(config.current().arch or arch, constants)
    shared_bytes = variant.shared_bytes(None)
    dependent = variant.waits_for_others and config.allows_dependent_launches()
    handle = variant.compiled(arch)
    return partial(handle, grid, threads, shared_bytes=shared_bytes, dependent=dependent, device=device)
