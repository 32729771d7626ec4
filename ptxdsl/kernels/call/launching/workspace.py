"""Workspaces: device memory for split-K accumulators, semaphores that are 0 between launches, and tables.

Each stream has one workspace, which grows; launches on a stream run one after another. The workspaces of the first
streams are permanent, since a captured graph or a kept launch may use them at any time, and so are those of captured
streams. Of other streams only the latest are kept, and their launches are not cached. Graphs captured on one stream
share its workspace and must not be replayed at the same time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.types import Type, u32

LEAST_BYTES = 1 << 20
NO_K = "no K"  # a use of memory that nobody writes to: zeros that stand for matrices with nothing in them
MOST_STREAMS = 64  # that are kept for good, and as many others


class Blocks(dict[str, tuple[int, int]]):
    """The buffers of a stream by use: address and bytes. `table` describes the buffer for tables, see `upload`."""

    table: Any = None


_KEPT: dict[tuple[int, int], Blocks] = {}  # by (GPU, stream)
_PASSING: OrderedDict[tuple[int, int], Blocks] = OrderedDict()


def workspace(device: int | None, stream: int, type: Type, elements: int, semaphores: int) -> tuple[Any, Any]:
    """Return memory for `elements` and as many semaphores as asked for: numpy arrays if `device` is None, else
    addresses.

    Raises LaunchError if the GPU is out of memory.
    """
    if device is None:
        return np.empty(elements, type.dtype), np.zeros(semaphores, u32.dtype)
    sums = memory(device, stream, "sums", elements * type.bytes)
    return sums, memory(device, stream, "semaphores", semaphores * u32.bytes)


def room(device: int | None, stream: int, use: str, bytes: int) -> Any:
    """Return the memory of a stream for a use: an address, or a numpy array if `device` is None."""
    return np.zeros(bytes, np.uint8) if device is None else memory(device, stream, use, bytes)


def memory(device: int, stream: int, use: str, bytes: int, least: int = LEAST_BYTES) -> int:
    """Return the address of a stream's memory for a use. New memory is zero for the work of the stream."""
    blocks = blocks_of(device, stream)
    address, size = blocks.get(use, (0, 0))
    if bytes > size:
        size = max(least, 1 << (bytes - 1).bit_length())
        with driver.on(device), while_captured():
            address = _cleared(size, stream)
        blocks[use] = address, size
    return address


def is_kept(device: int | None, stream: int | None) -> bool:
    """Return True if a launch may be cached: it has no workspace, or a permanent one."""
    return stream is None or (device, stream) in _KEPT


def blocks_of(device: int, stream: int) -> Blocks:
    """Return the buffers of a stream."""
    key = device, stream
    if key in _KEPT:
        return _KEPT[key]
    if len(_KEPT) < MOST_STREAMS or _is_captured(device, stream):
        return _KEPT.setdefault(key, _PASSING.pop(key, Blocks()))
    blocks = _PASSING.setdefault(key, Blocks())
    _PASSING.move_to_end(key)
    if len(_PASSING) > MOST_STREAMS:
        (of_device, _), forgotten = _PASSING.popitem(last=False)
        with driver.on(of_device), while_captured():
            for address, _ in forgotten.values():
                call("freeing a workspace", driver.cuda.cuMemFree, address)  # which waits for the kernels that use it
    return blocks


def _is_captured(device: int, stream: int) -> bool:
    """Return True if the stream is being captured into a graph."""
    with driver.on(device):
        return bool(call("asking whether a stream is captured", driver.cuda.cuStreamIsCapturing, stream))


def _cleared(bytes: int, stream: int) -> int:
    """Allocate memory that is zero for all later work of a stream. A captured stream would clear it only when the graph
    runs, so for such a stream it is zero on return."""
    doing = f"allocating {bytes} bytes of workspace"
    is_captured = call(doing, driver.cuda.cuStreamIsCapturing, stream)
    address = int(call(doing, driver.cuda.cuMemAlloc, bytes))
    if is_captured:
        _clear_aside(doing, address, bytes)
    else:
        call(doing, driver.cuda.cuMemsetD8Async, address, 0, bytes, stream)
    return address


def _clear_aside(doing: str, address: int, bytes: int) -> None:
    """Clear memory on a stream that does not synchronise with others."""
    aside = call(doing, driver.cuda.cuStreamCreate, driver.cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
    call(doing, driver.cuda.cuMemsetD8Async, address, 0, bytes, aside)
    call(doing, driver.cuda.cuStreamSynchronize, aside)
    call(doing, driver.cuda.cuStreamDestroy, aside)


@contextmanager
def while_captured() -> Iterator[None]:
    """Allow calls that are illegal during stream capture, such as allocations."""
    relaxed = driver.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("allowing an allocation", driver.cuda.cuThreadExchangeStreamCaptureMode, relaxed)
    try:
        yield
    finally:
        call("ending it", driver.cuda.cuThreadExchangeStreamCaptureMode, before)
