"""Addresses in shared memory that a thread needs again and again, in few registers."""

from __future__ import annotations

import numpy as np

from ptxdsl import b8
from ptxdsl.layout import slice_
from ptxdsl.layout.number import Coordinate
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue


class Addresses:
    """The addresses of a thread's part of a tile in shared memory: few base registers, and constant distances from
    them.

    `partition` is (threads, …) → byte; coordinates that are equally far apart for all threads share a register.
    """

    def __init__(self, memory: PointerValue, partition: AnyLayout, thread: Scalar) -> None:
        self._memory, self._partition, self._thread = memory.bitcast(b8), partition, thread
        self._all = np.arange(partition[0].size)
        self._offsets: list[np.ndarray] = []
        self.bases: list[PointerValue] = []

    def of(self, *coordinate: Coordinate) -> tuple[int, int]:
        """Return (number of the base, bytes after it)."""
        offsets = self._partition(self._all, *coordinate)
        for number, known in enumerate(self._offsets):
            distance = offsets - known
            if (distance == distance[0]).all():
                return number, int(distance[0])
        part = slice_(self._partition, self._thread, *[None] * (self._partition.rank - 1))
        self._offsets.append(offsets)
        self.bases.append(self._memory + part(*coordinate))
        return len(self.bases) - 1, 0
