"""An operand's tiles on their way to the tensor cores: global memory, a ring in shared memory, registers.

Which thread moves what is said by tiled copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import ptxdsl as pd
from ptxdsl import b8, b16, b32, f32, f64, ptr, s32, s64
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tile import CHUNK_BYTES, WARP_TILE, OperandTile
from ptxdsl.layout import (
    Layout,
    composition,
    in_bytes,
    make_tiled_copy_a,
    make_tiled_copy_b,
    slice_,
)
from ptxdsl.layout.swizzle import AnyLayout

EVEN_BYTES, ODD_BYTES = 0x6420, 0x7531  # of two registers, for prmt
SIGN_AND_EXPONENT = 0xFF800000  # of an f32
HALF_TF32 = 2.0**-11  # of 1.0: half the distance to the next tf32


class Places:
    """Where a thread finds its part of a tile in shared memory: few registers, and distances known while tracing.

    `partition` is (threads, …) → byte; coordinates that lie equally far apart for all threads share a register.
    """

    def __init__(self, memory: Any, partition: Any, thread: Any) -> None:
        self._memory, self._partition, self._thread = memory.bitcast(b8), partition, thread
        self._all = np.arange(partition[0].size)
        self._offsets: list[np.ndarray] = []
        self.bases: list[Any] = []

    def find(self, *coordinate: Any) -> tuple[int, int]:
        """(number of the base, bytes behind it)."""
        offsets = self._partition(self._all, *coordinate)
        for number, known in enumerate(self._offsets):
            distance = offsets - known
            if (distance == distance[0]).all():
                return number, int(distance[0])
        mine = slice_(self._partition, self._thread, *[None] * (self._partition.rank - 1))
        self._offsets.append(offsets)
        self.bases.append(self._memory + mine(*coordinate))
        return len(self.bases) - 1, 0


class Source(NamedTuple):
    """An operand in global memory: its rows are `stride` elements apart, `extent` long along mn.

    Chunks of copies divide its rows, so that each of them lies inside or outside as a whole.
    """

    pointer: Any
    stride: Any
    extent: Any


class Copies:
    """A thread's share of the copies that bring one tile after another to shared memory: always to the same places.

    Copies of 4 bytes and more are asynchronous. Narrower ones go through registers: `fetch` of a loader begins them,
    `deposit` ends them.
    """

    def __init__(self, tile: OperandTile, memory: Any, threads: int) -> None:
        """`memory` is the tile's place in the first stage."""
        copy = tile.copy(threads)
        self.tile, self.idle = tile, copy.threads < threads
        thread = pd.min(pd.tid.x, copy.threads - 1) if self.idle else pd.tid.x
        self.active = pd.tid.x < copy.threads
        partition = in_bytes(copy.partition_d(tile.layout, "shared"), tile.type.bytes)
        self.places = Places(memory, partition, thread)
        self.copies = [self.places.find(0, i, j) for j in range(partition[3].size) for i in range(partition[2].size)]
        self.apart = tile.rows // len(self.copies)
        self.mn, self.k = (c(0, 0, 0) for c in copy.get_slice(thread).coordinates((tile.mn, tile.k), "target"))
        self.fetched = [pd.var(b16) for _ in self.copies] if tile.copy_bytes < 4 else []

    def bring(self, number: int, target: Any, source: Any, outside: Any) -> None:
        """Begins one copy; where its chunk lies outside of the operand, of zeros, without a look at the source."""
        if self.fetched:
            self._read(self.fetched[number], source, outside)
        else:
            self._copy(target, source, outside)

    def deposit(self, stage: Any) -> None:
        """Writes what `fetch` has left in registers."""
        bases = [base + stage for base in self.places.bases] if self.fetched else []
        guard = self.active if self.idle else None
        for (base, distance), value in zip(self.copies, self.fetched, strict=False):
            pd.ptx(f"st.shared.b{8 * self.tile.copy_bytes}", bases[base] + distance, value, guard=guard)

    def _copy(self, target: Any, source: Any, outside: Any) -> None:
        width, guard = self.tile.copy_bytes, self.active if self.idle else None
        cache = "cg.shared.global.L2::128B" if width == CHUNK_BYTES else "ca.shared.global"
        pd.ptx(f"cp.async.{cache}", target, source, width, outside, guard=guard)

    def _read(self, value: Any, source: Any, outside: Any) -> None:
        value.set(0)
        pd.ptx(f"ld.global.b{8 * self.tile.copy_bytes}", source, out=value, guard=~outside)


class Loader(Copies):
    """The copies of a matrix in global memory, tile after tile along k."""

    def __init__(
        self, tile: OperandTile, memory: Any, source: Source, first: Any, k: tuple[Any, Any], threads: int
    ) -> None:
        """`memory` is the tile's place in the first stage. Tiles start at mn = `first`, and go from k[0] to k[1]."""
        super().__init__(tile, memory, threads)
        mn, depth = self.mn, self.k
        row, column = (first + mn, k[0] + depth) if tile.major == "k" else (k[0] + depth, first + mn)
        begin = source.pointer + (pd.cast(row, s64) * source.stride + pd.cast(column, s64))
        self.source: Any = pd.var(ptr[b8], begin.bitcast(b8))
        row_bytes = source.stride * tile.type.bytes
        self.between = row_bytes * self.apart
        self.step = tile.k * tile.type.bytes if tile.major == "k" else row_bytes * tile.k
        self.mn_left = (source.extent - first - mn).to(s32)
        self.k_left: Any = pd.var(s32, (k[1] - k[0] - depth).to(s32))

    def fetch(self, stage: Any) -> None:
        """Begins to copy the next tile to a stage, `stage` bytes behind the first; zeros where the operand ends."""
        along, across = (self.k_left, self.mn_left) if self.tile.major == "k" else (self.mn_left, self.k_left)
        left = pd.select(along > 0, across, 0)
        source, bases = self.source, [base + stage for base in self.places.bases]
        for number, (base, distance) in enumerate(self.copies):
            self.bring(number, bases[base] + distance, source, left <= number * self.apart)
            source = source + self.between
        self.source += self.step
        self.k_left -= self.tile.k


class Fragments:
    """A warp's fragments of an operand, "a" or "b", 16 of mn and one k step of the instruction at a time."""

    def __init__(self, config: GemmConfig, operand: str, memory: Any) -> None:
        """`memory` is the tile's place in the first stage."""
        tile = self.tile = config.a if operand == "a" else config.b
        self.operand, self.held = operand, f64 if tile.type is f64 else b32
        if tile.by_pairs:
            self._find_pairs(config, memory)
            return
        trans = "" if tile.major == "k" else ".trans"
        atom = f"ldmatrix.x4{trans}" if tile.by_matrices else f"ld.shared.{tile.type.bytes}"
        copy = (make_tiled_copy_a if operand == "a" else make_tiled_copy_b)(atom, config.mma)
        partition = copy.partition_s(by_warps(tile.layout, config, operand), "shared")
        partition = in_bytes(partition, tile.type.bytes)
        self.load_group = self._load_matrices if tile.by_matrices else self._load_elements
        self.mnemonic = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16"
        _, values, groups, steps = (mode.size for mode in partition)
        self.registers = copy.values * tile.type.bits // self.held.bits
        self.places = Places(memory, partition, pd.tid.x)
        instructions = values // partition[1][0].size
        self.found = [
            [[self.places.find((0, i), group, step) for i in range(instructions)] for group in range(groups)]
            for step in range(steps)
        ]

    def _find_pairs(self, config: GemmConfig, memory: Any) -> None:
        self.load_group, self.registers = self._load_pairs, 4
        partition = rows_of_pairs(config, self.operand)
        self.places = Places(memory, partition, pd.tid.x)
        groups, steps = partition[1].size, partition[2].size
        self.found = [[[self.places.find(group, step)] for group in range(groups)] for step in range(steps)]

    def variables(self) -> list[list[Any]]:
        """Registers for the fragments of one k step."""
        return [[pd.var(self.held) for _ in range(self.registers)] for _ in self.found[0]]

    def load(self, into: list[list[Any]], stage: Any, k_step: int) -> None:
        """Reads the fragments of one k step from a stage, `stage` bytes behind the first."""
        bases: dict[int, Any] = {}
        for group, registers in zip(self.found[k_step], into, strict=True):
            for base, _ in group:
                if base not in bases:
                    bases[base] = self.places.bases[base] + stage
            self.load_group([bases[base] + distance for base, distance in group], registers)
            if self.tile.type is f32:
                for register in registers:
                    round_to_tf32(register)

    def _load_matrices(self, places: list[Any], registers: list[Any]) -> None:
        pd.ptx(self.mnemonic, *places, out=registers)

    def _load_elements(self, places: list[Any], registers: list[Any]) -> None:
        """One element at a time."""
        for place, register in zip(places, registers, strict=True):
            pd.ptx(f"ld.shared.{self.held}", place, out=register)

    def _load_pairs(self, places: list[Any], registers: list[Any]) -> None:
        """32 of k: for each half, four bytes of the even mn and four of the odd one that a thread gets."""
        words = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(*places)
        halves = [words[:2], words[2:]]
        even, odd = ([pd.ptx.prmt.b32(*half, bytes) for half in halves] for bytes in (EVEN_BYTES, ODD_BYTES))
        ordered = (even[0], odd[0], even[1], odd[1]) if self.operand == "a" else (*even, *odd)
        for register, value in zip(registers, ordered, strict=True):
            register.set(value)


def round_to_tf32(register: Any) -> None:
    """The nearest tf32, half-way cases away from zero: adds half of the last bit that tensor cores look at.

    cvt.rna.tf32 does the same, at a rate that would bound the whole product. Infinities and NaN stay what they are.
    """
    power = pd.ptx.and_.b32(register, SIGN_AND_EXPONENT).bitcast(f32)
    pd.ptx.fma.rn.f32(power, HALF_TF32, register.bitcast(f32), out=register)


def rows_of_pairs(config: GemmConfig, operand: str) -> AnyLayout:
    """(thread, 16 of mn, k step) → byte of the row that a thread addresses for ldmatrix.

    Rows lie along mn, one for each of 32 k. Matrices hold every second pair of k, so that a thread gets four
    neighbours along k from two of them.
    """
    tile = config.a if operand == "a" else config.b
    dimension = 0 if operand == "a" else 1
    extent, row = config.warp[dimension], tile.mn
    warps = (extent, 0) if operand == "a" else (0, extent)
    depth = config.mma.atom.shape[2]
    lanes = Layout(
        ((2, 4, 2, 2, *config.warps, config.slices), extent // WARP_TILE, tile.k // config.k_step),
        ((row, 4 * row, 2 * row, 16 * row, *warps, depth * row), WARP_TILE, config.k_step * row),
    )
    found: AnyLayout = composition(tile.swizzle, lanes)
    return found


def by_warps(layout: AnyLayout, config: GemmConfig, operand: str) -> AnyLayout:
    """A tile's layout in the order in which warps of a tiled MMA take turns along mn: each one's rows in one piece.

    A warp has one atom in M, or in N, in each turn.
    """
    dimension = 0 if operand == "a" else 1
    atom, extent, warps = config.mma.atom.shape[dimension], config.warp[dimension], config.warps[dimension]
    turns = Layout((atom, warps, extent // atom), (1, extent, atom))
    found: AnyLayout = composition(layout, (turns, Layout(config.tile[2])))
    return found
