"""Tables for kernels that are worked out on the host: one asynchronous copy, in the order of the stream.

The driver has copied pageable memory to memory of its own when an asynchronous copy to a GPU returns (CUDA driver API,
"API synchronization behavior"): the table can be forgotten then. A stream has one place for tables, which the next copy
on the same stream overwrites after the kernels before it. A graph that captures the copy reads the table whenever it is
replayed: it owns a copy of its own, which is freed with it. The table of the last launch is there yet, unless such a
graph may have been replayed since.
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
    """Bytes on the host, which nobody changes, and where they are. Of those that a kernel changes each launch takes a
    copy."""

    content: np.ndarray
    address: int
    bytes: int
    is_changed: bool = False

    @staticmethod
    def of(*parts: np.ndarray, is_changed: bool = False) -> HostTable:
        """A copy of arrays, one behind the other."""
        content = np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])
        return HostTable(content, content.ctypes.data, content.nbytes, is_changed)


class UploadedTable(NamedTuple):
    """What the memory of a stream holds at an address: a table, or None where others may have come there since."""

    table: HostTable | None
    address: int


def upload(device: int, stream: int, table: HostTable) -> int:
    """The address of a copy of a table on a GPU, for the next launch on `stream`."""
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
    """Whether a stream is not captured, as far as the context says in which the thread works."""
    status, capturing = driver.cuda.cuStreamIsCapturing(stream)
    return not status and not capturing


def _owned_by_graph(table: np.ndarray, stream: int) -> int:
    """The address of a copy of a table on the host, which the graph that a stream is captured into frees."""
    doing, cuda = "keeping a table for a graph", driver.cuda
    _, _, graph, *_ = call(doing, cuda.cuStreamGetCaptureInfo, stream)
    address: int = _ALLOCATE(table.nbytes)
    ctypes.memmove(address, table.ctypes.data, table.nbytes)
    flags = cuda.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    owned = call(doing, cuda.cuUserObjectCreate, address, cuda.CUhostFn(_FREE), 1, int(flags))
    move = cuda.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE
    call(doing, cuda.cuGraphRetainUserObject, graph, owned, 1, int(move))
    return address
