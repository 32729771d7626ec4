"""Tables for kernels that are worked out on the host: one asynchronous copy, in the order of the stream.

The driver has copied pageable memory to memory of its own when an asynchronous copy to a GPU returns (CUDA driver API,
"API synchronization behavior"): the table can be forgotten then. A stream has one place for tables, which the next copy
on the same stream overwrites after the kernels before it. A graph that captures the copy reads the table whenever it is
replayed: such tables are kept.
"""

from __future__ import annotations

import numpy as np

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.kernels.call.workspace import while_captured

LEAST_BYTES = 1 << 16
_PLACES: dict[tuple[int, int], tuple[int, int]] = {}  # (GPU, stream): address, bytes
_OF_GRAPHS: list[np.ndarray] = []


def upload(device: int, stream: int, *parts: np.ndarray) -> int:
    """The address of a copy of arrays, one behind the other, on a GPU, for the next launch on `stream`."""
    table = np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])
    with driver.on(device):
        address = _place(device, stream, table.nbytes)
        if call("asking whether a stream is captured", driver.cuda.cuStreamIsCapturing, stream):
            _OF_GRAPHS.append(table)
        call("copying a table", driver.cuda.cuMemcpyHtoDAsync, address, table.ctypes.data, table.nbytes, stream)
    return address


def _place(device: int, stream: int, bytes: int) -> int:
    address, owned = _PLACES.get((device, stream), (0, 0))
    if bytes > owned:
        owned = max(LEAST_BYTES, 1 << (bytes - 1).bit_length())
        with while_captured():
            address = int(call(f"allocating {owned} bytes for tables", driver.cuda.cuMemAlloc, owned))
        _PLACES[device, stream] = address, owned
    return address
