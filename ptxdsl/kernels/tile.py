"""An operand's tiles on their way to the tensor cores: global memory, a ring in shared memory, registers.

A tile has an `mn` extent (M for A, N for B) and a `k` extent, and lies in shared memory as in global memory: rows
contiguous along k, or along mn. A swizzle over the 16-byte chunks of a row lets eight rows of one chunk column, which
is what ldmatrix reads, lie in different banks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, b16, b32, ptr, s32, s64, u32
from ptxdsl.layout import Layout, Swizzle, composition
from ptxdsl.types import Type

CHUNK_BYTES = 16  # one row of an 8x8 matrix, as ldmatrix takes it
MATRICES = 16  # mn or k extent that one ldmatrix.x4 covers


@dataclass(frozen=True)
class Tile:
    """One operand's tile. `major` says along what its rows are contiguous: "k" or "mn"; `copy_bytes` is the width of a
    copy from global memory: 16, 8, 4, or 2 where rows begin at odd elements."""

    type: Type
    mn: int
    k: int
    major: str
    copy_bytes: int

    @property
    def rows(self) -> int:
        return self.mn if self.major == "k" else self.k

    @property
    def row(self) -> int:
        """Elements of a row."""
        return self.k if self.major == "k" else self.mn

    @property
    def elements(self) -> int:
        return self.mn * self.k

    @property
    def chunk(self) -> int:
        """Elements of one copy."""
        return self.copy_bytes // self.type.bytes

    @property
    def swizzle(self) -> Swizzle:
        base = (CHUNK_BYTES // self.type.bytes).bit_length() - 1
        chunks = (self.row >> base).bit_length() - 1  # log2 of the chunks of a row
        return Swizzle(min(3, chunks), base, max(3, chunks))

    @property
    def bytes(self) -> int:
        return self.elements * self.type.bytes

    def split(self, rows: tuple[int, ...], row: tuple[int, ...]) -> Any:
        """The layout of the tile, (rows, row), with its rows and each row split into smaller extents."""
        return composition(self.swizzle, Layout((rows, row), (_strides(rows, self.row), _strides(row, 1))))


def _strides(extents: tuple[int, ...], first: int) -> tuple[int, ...]:
    """Strides of consecutive modes, the first one fastest."""
    strides = [first]
    for extent in extents[:-1]:
        strides.append(strides[-1] * extent)
    return tuple(strides)


class Loader:
    """A thread's share of the copies that bring an operand's tiles, one after another along k, to shared memory."""

    def __init__(
        self, tile: Tile, memory: Any, source: Any, stride: Any, first: Any, extent: Any, k: Any, threads: int
    ) -> None:
        """`memory` is the tile's place in the first stage. `source` has rows `stride` elements apart; tiles start at
        mn = `first` of `extent`, and at k = 0 of `k`."""
        columns = tile.row // tile.chunk
        self.tile, self.apart = tile, threads // columns
        copies = tile.rows // self.apart
        row, column = pd.tid.x // columns, pd.tid.x % columns
        view = pd.view(memory, tile.split((self.apart, copies), (tile.chunk, columns)))
        self.targets = [view.address((row, copy), (0, column)).bitcast(b8) for copy in range(copies)]
        mn, depth = (row, column * tile.chunk) if tile.major == "k" else (column * tile.chunk, row)
        place = (first + mn, depth) if tile.major == "k" else (depth, first + mn)
        begin = source + (place[0].to(s64) * stride + place[1].to(s64))
        self.source: Any = pd.var(ptr[b8], begin.bitcast(b8))
        row_bytes = stride * tile.type.bytes
        self.between = row_bytes * self.apart
        self.step = tile.k * tile.type.bytes if tile.major == "k" else row_bytes * tile.k
        self.mn_left = (extent - first - mn).to(s32)
        self.k_left: Any = pd.var(s32, (k - depth).to(s32))

    def load(self, stage: Any) -> None:
        """Begins to copy the next tile into a stage, `stage` bytes behind the first; zeros where the operand ends."""
        along, across = (self.k_left, self.mn_left) if self.tile.major == "k" else (self.mn_left, self.k_left)
        inside = pd.min(pd.max(along, 0), self.tile.chunk) * self.tile.type.bytes
        source = self.source
        for copy, target in enumerate(self.targets):
            self._copy(target + stage, source, pd.select(across > copy * self.apart, inside, 0))
            source = source + self.between
        self.source += self.step
        self.k_left -= self.tile.k

    def _copy(self, target: Any, source: Any, bytes: Any) -> None:
        """Copies one chunk; `bytes` of it come from the source, the rest are zeros."""
        width = self.tile.copy_bytes
        if width == CHUNK_BYTES:
            pd.ptx("cp.async.cg.shared.global.L2::128B", target, source, width, bytes.to(u32))
        elif width >= 4:
            pd.ptx("cp.async.ca.shared.global", target, source, width, bytes.to(u32))
        else:
            value = pd.var(b16, 0)
            pd.ptx.ld.global_.b16(source, out=value, guard=bytes > 0)
            pd.ptx.st.shared.b16(target, value)


class Fragments:
    """A warp's fragments of an operand: ldmatrix.x4 brings 16 of mn and 16 of k at a time into four registers.

    `pairs_along` is "mn" where registers 0 and 1 are neighbours along mn (A of mma.m16n8k16), "k" where they are
    along k (two n8 tiles of B).
    """

    def __init__(self, tile: Tile, memory: Any, pairs_along: str, extent: int, warp: Any) -> None:
        """`memory` is the tile's place in the first stage; `warp` counts the warps along mn, `extent` apart."""
        self.tile, self.count = tile, extent // MATRICES
        lane, second, third = pd.laneid % 8, pd.laneid // 8 % 2, pd.laneid // 16
        mn_half, k_half = (second, third) if pairs_along == "mn" else (third, second)
        mn_extents, k_extents = (8, 2, self.count, tile.mn // extent), (8, 2, tile.k // MATRICES)
        if tile.major == "k":
            view = pd.view(memory, tile.split(mn_extents, k_extents))
            places = [view.address((lane, mn_half, 0, warp), (0, k_half, k)) for k in range(k_extents[2])]
        else:
            view = pd.view(memory, tile.split(k_extents, mn_extents))
            places = [view.address((lane, k_half, 0), (0, mn_half, mn, warp)) for mn in range(self.count)]
        self.bases = [place.bitcast(b8) for place in places]

    def variables(self) -> list[list[Any]]:
        """Registers for the fragments of one k step."""
        return [[pd.var(b32) for _ in range(4)] for _ in range(self.count)]

    def load(self, into: list[list[Any]], stage: Any, k_step: int) -> None:
        """Reads the fragments of 16 of k from a stage, `stage` bytes behind the first."""
        rows_apart = MATRICES * self.tile.row * self.tile.type.bytes  # the swizzle repeats after 8 rows
        if self.tile.major == "k":
            base = self.bases[k_step] + stage
            for mn, registers in enumerate(into):
                pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(base + mn * rows_apart, out=registers)
        else:
            for base, registers in zip(self.bases, into, strict=True):
                address = base + stage + k_step * rows_apart
                pd.ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(address, out=registers)
