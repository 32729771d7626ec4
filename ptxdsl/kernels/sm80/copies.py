"""cp.async loads of operand tiles from global memory to the ring; tiled copies assign them to threads."""

from __future__ import annotations

from typing import Any, Protocol

import ptxdsl as pd
from ptxdsl import b8, b16, ptr, s32, s64, u32
from ptxdsl.kernels.product.operands import Major, Side
from ptxdsl.kernels.product.product import Index, ScatteredView, View, WorkTile
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.tile import CHUNK_BYTES, Addresses, OperandTile
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.layout import in_bytes
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

NOWHERE = 0x7FFFFFFF  # more than any K: past the end of every row


class OperandCopies(Protocol):
    """The loads of one operand."""

    is_quick: bool

    def seek(self, matrix: Any, mn: tuple[Index, Index], k: tuple[Index, Index]) -> None: ...

    def fetch(self, slot: Index) -> None: ...

    def deposit(self, slot: Index) -> None: ...


class Copies:
    """The loads of both operands, tile after tile along the K of a work tile."""

    def __init__(self, a: OperandCopies, b: OperandCopies) -> None:
        self.a, self.b = a, b

    @property
    def is_quick(self) -> bool:
        """True if each thread locates other tiles by itself, so that their loads can start while a tile is stored."""
        return self.a.is_quick and self.b.is_quick

    def seek(self, work: WorkTile) -> None:
        """Go to the first tile along the K of a work tile."""
        (first_m, first_n), k = work.first, work.k_extent
        self.a.seek(work.product.a, (first_m, work.product.m), k)
        self.b.seek(work.product.b, (first_n, work.product.n), k)

    def fetch(self, slot: Index, part: int = 0, parts: int = 1) -> None:
        """Start the loads of the next tile of each operand to a slot of the ring, or of one of `parts`."""
        for operand in (self.a, self.b)[part::parts]:
            operand.fetch(slot)

    def deposit(self, slot: Index) -> None:
        """Write to the slot what `fetch` has left in registers."""
        self.a.deposit(slot)
        self.b.deposit(slot)


class TileCopies:
    """The share of a thread in loads of one tile after another to shared memory, always to the same addresses.

    Loads of 4 bytes and more are asynchronous. Narrower ones go through registers: `fetch` starts them, `deposit` ends
    them.
    """

    def __init__(self, tile: OperandTile, memory: PointerValue, threads: int) -> None:
        """`memory` is the tile in the first stage."""
        copy = tile.copy(threads)
        self.tile, self.has_idle = tile, copy.threads < threads
        thread = pd.min(pd.tid.x, copy.threads - 1) if self.has_idle else pd.tid.x
        self.active = pd.tid.x < copy.threads
        partition = in_bytes(copy.partition_d(tile.layout, "shared"), tile.type.bytes)
        self.addresses = Addresses(memory, partition, thread)
        self.copies = [self.addresses.of(0, i, j) for j in range(partition[3].size) for i in range(partition[2].size)]
        self.apart = tile.rows // len(self.copies)
        self.mn, self.k = (c(0, 0, 0) for c in copy.get_slice(thread).coordinates((tile.mn, tile.k), "target"))
        self.fetched = [pd.var(b16) for _ in self.copies] if tile.copy_bytes < 4 else []

    def bring(self, number: int, target: PointerValue, source: PointerValue, outside: Scalar) -> None:
        """Start one load; of zeros, without reading the source, if its chunk is out of bounds."""
        if self.fetched:
            self._read(self.fetched[number], source, outside)
        else:
            self._copy(target, source, outside)

    def deposit(self, slot: Index) -> None:
        """Write to the slot what `fetch` has left in registers."""
        bases = [base + slot for base in self.addresses.bases] if self.fetched else []
        guard = self.active if self.has_idle else None
        for (base, distance), value in zip(self.copies, self.fetched, strict=False):
            pd.ptx(f"st.shared.b{8 * self.tile.copy_bytes}", bases[base] + distance, value, guard=guard)

    def _copy(self, target: PointerValue, source: PointerValue, outside: Scalar) -> None:
        width, guard = self.tile.copy_bytes, self.active if self.has_idle else None
        cache = "cg.shared.global.L2::128B" if width == CHUNK_BYTES else "ca.shared.global"
        pd.ptx(f"cp.async.{cache}", target, source, width, outside, guard=guard)

    def _read(self, value: Var, source: PointerValue, outside: Scalar) -> None:
        value.set(0)
        pd.ptx(f"ld.global.b{8 * self.tile.copy_bytes}", source, out=value, guard=~outside)


class MatrixCopies(TileCopies):
    """Loads of a matrix in global memory. Its rows are multiples of a chunk: each chunk is in or out of bounds as a
    whole."""

    is_quick = True

    def __init__(self, traits: WarpTraits, operand: Side, memory: SharedMemory) -> None:
        tile, address = (traits.a, memory.a) if operand is Side.A else (traits.b, memory.b)
        super().__init__(tile, address, traits.threads)
        self.source = pd.var(ptr[b8])
        self.between = pd.var(s64)  # bytes from one load of this thread to the next
        self.step: Var | int = self.tile.k * self.tile.type.bytes if self.tile.major is Major.K else pd.var(s64)
        self.mn_left = pd.var(s32)
        self.k_left = pd.var(s32)

    def seek(self, matrix: View, mn: tuple[Index, Index], k: tuple[Index, Index]) -> None:
        """Go to the tile at mn[0] and k[0]. The matrix ends at mn[1]; loads along K end at k[1]."""
        row, column = mn[0] + self.mn, k[0] + self.k
        if self.tile.major is not Major.K:
            row, column = column, row
        begin = matrix.pointer + (pd.cast(row, s64) * matrix.stride + pd.cast(column, s64))
        self.source.set(begin.bitcast(b8))
        row_bytes = matrix.stride * self.tile.type.bytes
        self.between.set(row_bytes * self.apart)
        if isinstance(self.step, Var):
            self.step.set(row_bytes * self.tile.k)
        self.mn_left.set((mn[1] - mn[0] - self.mn).to(s32))
        self.k_left.set((k[1] - k[0] - self.k).to(s32))

    def fetch(self, slot: Index) -> None:
        """Start the loads of the next tile to a slot of the ring, with zeros out of bounds."""
        along, across = (self.k_left, self.mn_left) if self.tile.major is Major.K else (self.mn_left, self.k_left)
        left = pd.select(along > 0, across, 0)
        source: PointerValue
        source, bases = self.source, [base + slot for base in self.addresses.bases]
        for number, (base, distance) in enumerate(self.copies):
            self.bring(number, bases[base] + distance, source, left <= number * self.apart)
            source = source + self.between
        self.source += self.step
        self.k_left -= self.tile.k


def matrix_copies(traits: WarpTraits, memory: SharedMemory) -> Copies:
    """Return the loads of two matrices."""
    return Copies(MatrixCopies(traits, Side.A, memory), MatrixCopies(traits, Side.B, memory))


class IndexedCopies(TileCopies):
    """Loads of K-major rows of A that an index names: a thread keeps the address of each of its rows. An invalid index
    stands for a row of zeros."""

    is_quick = True

    def __init__(self, traits: WarpTraits, memory: SharedMemory) -> None:
        super().__init__(traits.a, memory.a, traits.threads)
        self.step = self.tile.k * self.tile.type.bytes
        self.sources = [pd.var(ptr[b8]) for _ in self.copies]
        self.ends = [pd.var(s32) for _ in self.copies]  # the K that must be left: 0 for a row that exists
        self.k_left = pd.var(s32)

    def seek(self, matrix: ScatteredView, mn: tuple[Index, Index], k: tuple[Index, Index]) -> None:
        """Go to the tile at mn[0] and k[0]. Rows end at mn[1], and loads along K at k[1]."""
        column = k[0] + self.k
        for number, (source, end) in enumerate(zip(self.sources, self.ends, strict=True)):
            row = mn[0] + self.mn + number * self.apart
            named = matrix.numbers[pd.min(row, matrix.last)].bitcast(u32)
            exists = (row < mn[1]) & (named < matrix.rows)
            element = pd.select(exists, named, 0).to(s64) * matrix.stride + pd.cast(column, s64)
            source.set((matrix.pointer + element).bitcast(b8))
            end.set(pd.select(exists, pd.cast(0, s32), NOWHERE))
        self.k_left.set((k[1] - k[0] - self.k).to(s32))

    def fetch(self, slot: Index) -> None:
        """Start the loads of the next tile to a slot of the ring."""
        bases = [base + slot for base in self.addresses.bases]
        for number, (base, distance) in enumerate(self.copies):
            source = self.sources[number]
            self.bring(number, bases[base] + distance, source, self.k_left <= self.ends[number])
            source += self.step
        self.k_left -= self.tile.k
