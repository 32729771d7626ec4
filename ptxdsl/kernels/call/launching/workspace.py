"""Memory that kernels need beside their arrays: sums of split-K, semaphores that are 0 between launches, tables.

On a GPU one stream has one workspace, which grows: launches on a stream follow each other. The workspaces of the first
streams are kept for good, as a captured graph or a launch that is remembered may use them at any time; so are those of
streams that are captured. Of all other streams the last ones are kept, and their launches are not remembered. Graphs
that were captured on one stream share its workspace, so that they are not to be replayed at the same time.
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
    """Of a stream, by their use: address and bytes. `table` is what `upload` says of that for tables."""

    table: Any = None


_KEPT: dict[tuple[int, int], Blocks] = {}  # by (GPU, stream)
_PASSING: OrderedDict[tuple[int, int], Blocks] = OrderedDict()


def workspace(device: int | None, stream: int, type: Type, elements: int, semaphores: int) -> tuple[Any, Any]:
    """(memory for `elements`, as many semaphores): numpy arrays where `device` is None, else addresses.

    Raises LaunchError where the GPU has no memory left.
    """
    if device is None:
        return np.empty(elements, type.dtype), np.zeros(semaphores, u32.dtype)
    sums = memory(device, stream, "sums", elements * type.bytes)
    return sums, memory(device, stream, "semaphores", semaphores * u32.bytes)


def room(device: int | None, stream: int, use: str, bytes: int) -> Any:
    """Memory of a stream for a use, as an address; a numpy array where `device` is None."""
    return np.zeros(bytes, np.uint8) if device is None else memory(device, stream, use, bytes)


def memory(device: int, stream: int, use: str, bytes: int, least: int = LEAST_BYTES) -> int:
    """The address of a stream's memory for a use. To work of the stream it is all 0 when it is new."""
    blocks = blocks_of(device, stream)
    address, size = blocks.get(use, (0, 0))
    if bytes > size:
        size = max(least, 1 << (bytes - 1).bit_length())
        with driver.on(device), while_captured():
            address = _cleared(size, stream)
        blocks[use] = address, size
    return address


def is_kept(device: int | None, stream: int | None) -> bool:
    """Whether a launch may be remembered: it has no workspace, or that of a stream whose workspace stays."""
    return stream is None or (device, stream) in _KEPT


def blocks_of(device: int, stream: int) -> Blocks:
    """The memory of a stream."""
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
    """Whether what is launched on a stream becomes part of a graph."""
    with driver.on(device):
        return bool(call("asking whether a stream is captured", driver.cuda.cuStreamIsCapturing, stream))


def _cleared(bytes: int, stream: int) -> int:
    """New memory, all 0 for what a stream does from now on. A stream that is captured would clear it when the graph
    runs, maybe after others have used it: then it is all 0 when this returns."""
    doing = f"allocating {bytes} bytes of workspace"
    is_captured = call(doing, driver.cuda.cuStreamIsCapturing, stream)
    address = int(call(doing, driver.cuda.cuMemAlloc, bytes))
    if is_captured:
        _clear_aside(doing, address, bytes)
    else:
        call(doing, driver.cuda.cuMemsetD8Async, address, 0, bytes, stream)
    return address


def _clear_aside(doing: str, address: int, bytes: int) -> None:
    """Clears memory on a stream that waits for no other, nor others for it."""
    aside = call(doing, driver.cuda.cuStreamCreate, driver.cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
    call(doing, driver.cuda.cuMemsetD8Async, address, 0, bytes, aside)
    call(doing, driver.cuda.cuStreamSynchronize, aside)
    call(doing, driver.cuda.cuStreamDestroy, aside)


@contextmanager
def while_captured() -> Iterator[None]:
    """Allows what is no work of a captured stream, such as to allocate, while a graph is captured."""
    relaxed = driver.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("allowing an allocation", driver.cuda.cuThreadExchangeStreamCaptureMode, relaxed)
    try:
        yield
    finally:
        call("ending it", driver.cuda.cuThreadExchangeStreamCaptureMode, before)
