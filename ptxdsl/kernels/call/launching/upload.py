"""Upload tables that the host computes for a kernel, by one asynchronous copy in stream order.

An asynchronous copy of pageable memory returns after the driver has staged the bytes (CUDA driver API, "API
synchronization behavior"), so the host table may be dropped then. Each stream has one device buffer for tables, which
the next upload overwrites. A captured graph reads its table at each replay, so it owns a host copy, which is freed with
the graph. The table of the last launch is not uploaded again unless such a graph may have been replayed since.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.kernels.call.launching.workspace import blocks_of, memory

LEAST_BYTES = 1 << 16
# A thread of the driver frees what a graph owned, maybe when Python has ended: these need no interpreter.
_ALLOCATE = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", ctypes.pythonapi))
_FREE = ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p).value


class HostTable(NamedTuple):
    """Immutable bytes on the host and their address. A table that the kernel writes is uploaded for each launch."""

    content: np.ndarray
    address: int
    bytes: int
    is_changed: bool = False

    @staticmethod
    def of(*parts: np.ndarray, is_changed: bool = False) -> HostTable:
        """Return a table of the bytes of arrays, concatenated."""
        content = np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])
        return HostTable(content, content.ctypes.data, content.nbytes, is_changed)


class UploadedTable(NamedTuple):
    """The content of a device buffer: a table, or None if something else may have been written there."""

    table: HostTable | None
    address: int


def upload(device: int, stream: int, table: HostTable) -> int:
    """Upload a table for the next launch on `stream`, and return its device address."""
    source, size = table.address, table.bytes
    address, blocks = memory(device, stream, "tables", size, LEAST_BYTES), blocks_of(device, stream)
    last = blocks.table
    if last is not None and last.table is table and last.address == address and _is_plain(stream):
        return address
    with driver.on(device):
        captured = call("asking whether a stream is captured", driver.cuda.cuStreamIsCapturing, stream)
        of_graphs = captured or last == (None, address)
        blocks.table = UploadedTable(None, address)
        source = _owned_by_graph(table.content, stream) if captured else source
        call("copying a table", driver.cuda.cuMemcpyHtoDAsync, address, source, size, stream)
    if not of_graphs:
        blocks.table = None if table.is_changed else UploadedTable(table, address)
    return address


def _is_plain(stream: int) -> bool:
    """Return True if the stream is not being captured, as far as the current context can tell."""
    status, capturing = driver.cuda.cuStreamIsCapturing(stream)
    return not status and not capturing


def _owned_by_graph(table: np.ndarray, stream: int) -> int:
    """Return the address of a host copy of the table that is freed with the graph being captured."""
    doing, cuda = "keeping a table for a graph", driver.cuda
    _, _, graph, *_ = call(doing, cuda.cuStreamGetCaptureInfo, stream)
    address: int = _ALLOCATE(table.nbytes)
    ctypes.memmove(address, table.ctypes.data, table.nbytes)
    flags = cuda.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    owned = call(doing, cuda.cuUserObjectCreate, address, cuda.CUhostFn(_FREE), 1, int(flags))
    move = cuda.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE
    call(doing, cuda.cuGraphRetainUserObject, graph, owned, 1, int(move))
    return address
