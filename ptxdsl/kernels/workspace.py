"""Memory that kernels need beside their arrays: sums of split-K, and semaphores that are 0 between launches.

On a GPU one stream has one workspace, which grows and is kept: launches on a stream follow each other, and a captured
graph may still use the old one.
"""

from __future__ import annotations

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
        with driver.on(device):
            address = int(call(f"allocating {owned} bytes of workspace", driver.cuda.cuMemAlloc, owned))
            call("clearing the workspace", driver.cuda.cuMemsetD8, address, 0, owned)
            call("clearing the workspace", driver.cuda.cuCtxSynchronize)
        _OWNED[device, stream, use] = address, owned
    return address
