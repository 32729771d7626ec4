"""Launches of persistent kernels: as many blocks as are resident at the same time, on tables that lie on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from ptxdsl import arrays, config, driver
from ptxdsl.kernel import Kernel
from ptxdsl.schedule import blocks_per_multiprocessor

EMULATED = 132  # multiprocessors, as of an H200
REGISTERS = 255


def place_of(owner: object, found: arrays.Array) -> tuple[int | None, int]:
    """The GPU of an array, None for host memory, and the stream on which its library works."""
    if found.device == arrays.HOST:
        return None, 0
    library, device = arrays.library_of(type(owner)), found.device or 0
    return device, library.current_stream(device)() if library else found.stream or 0


@lru_cache(maxsize=1024)
def resident_blocks(kernel: Kernel, threads: int, device: int | None, **constants: Any) -> int:
    """How many blocks a GPU holds at the same time, as the driver says; by arithmetic for the emulator."""
    if device is None:
        shared_bytes = kernel.variant(None, constants).shared_bytes(None)
        return EMULATED * max(1, blocks_per_multiprocessor(threads, REGISTERS, shared_bytes))
    found = driver.device(device)
    variant = kernel.variant(config.current().arch or found.arch, constants)
    handle = variant.compiled(found.arch)
    return found.multiprocessors * handle.occupancy(threads, shared_bytes=variant.shared_bytes(None), device=device)


def launch(
    kernel: Kernel,
    grid: int | tuple[int, ...],
    threads: int,
    arguments: tuple[Any, ...],
    device: int,
    stream: int,
    **constants: Any,
) -> None:
    """Launches on a GPU, whatever the arguments: addresses do not say where they are."""
    prepared(kernel, grid, threads, device, **constants)(arguments, stream=stream)


def prepared(
    kernel: Kernel, grid: int | tuple[int, ...], threads: int, device: int, **constants: Any
) -> Callable[..., None]:
    """What makes such launches, given the arguments in one sequence and `stream`."""
    arch = driver.device(device).arch
    variant = kernel.variant(config.current().arch or arch, constants)
    shared_bytes = variant.shared_bytes(None)
    return partial(variant.compiled(arch), grid, threads, shared_bytes=shared_bytes, device=device)
