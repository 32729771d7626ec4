"""Memory that kernels need beside their arrays: sums of split-K, and semaphores that are 0 between launches.

On a GPU one stream has one workspace, which grows and is kept: launches on a stream follow each other, and a captured
graph may still use the old one. Graphs that were captured on one stream share its workspace, so that they are not to be
replayed at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.types import Type, u32

LEAST_BYTES = 1 << 20
_OWNED: dict[tuple[int, int, str], tuple[int, int]] = {}  # (GPU, stream, use): address, bytes


def workspace(device: int | None, stream: int, type: Type, elements: int, semaphores: int) -> tuple[Any, Any]:
    """(memory for `elements`, as many semaphores): numpy arrays where `device` is None, else addresses.

    Raises LaunchError where the GPU has no memory left.
    """
    if device is None:
        return np.empty(elements, type.dtype), np.zeros(semaphores, u32.dtype)
    sums = _memory(device, stream, "sums", elements * type.bytes)
    return sums, _memory(device, stream, "semaphores", semaphores * u32.bytes)


def _memory(device: int, stream: int, use: str, bytes: int) -> int:
    address, owned = _OWNED.get((device, stream, use), (0, 0))
    if bytes > owned:
        owned = max(LEAST_BYTES, 1 << (bytes - 1).bit_length())
        with driver.on(device), while_captured():
            address = _cleared(owned)
        _OWNED[device, stream, use] = address, owned
    return address


def _cleared(bytes: int) -> int:
    """New memory, all 0, when this returns. It is cleared on a stream that waits for no other, nor others for it."""
    doing = f"allocating {bytes} bytes of workspace"
    address = int(call(doing, driver.cuda.cuMemAlloc, bytes))
    aside = call(doing, driver.cuda.cuStreamCreate, driver.cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
    call(doing, driver.cuda.cuMemsetD8Async, address, 0, bytes, aside)
    call(doing, driver.cuda.cuStreamSynchronize, aside)
    call(doing, driver.cuda.cuStreamDestroy, aside)
    return address


@contextmanager
def while_captured() -> Iterator[None]:
    """Allows what is no work of a captured stream, such as to allocate, while a graph is captured."""
    relaxed = driver.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("allowing an allocation", driver.cuda.cuThreadExchangeStreamCaptureMode, relaxed)
    try:
        yield
    finally:
        call("ending it", driver.cuda.cuThreadExchangeStreamCaptureMode, before)
