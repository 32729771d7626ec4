"""From the ring to the sums of a tile: products of a warpgroup, one k step of the instruction behind the other."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import product
from math import gcd
from re import sub
from typing import Any

import ptxdsl as pd
from ptxdsl import u64
from ptxdsl.kernels.product.sums import Sums
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import INPUTS, TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.layout.shared_operand import shared_operand
from ptxdsl.trace.ring import Slot
from ptxdsl.types import Type

UNIT = 16  # bytes that a descriptor counts


class WarpgroupMma:
    """The tensor cores of a warpgroup, which multiplies 64 rows of the tile of A by the tile of B; of the transpose, 64
    columns of B by the tile of A. In ping-pong it multiplies all rows of a tile, 64 after 64."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        """`number` is that of the warpgroup among those that multiply."""
        self.layout, self.pieces, atom = traits.sums, traits.tiling.pieces, traits.atom
        tiles = (traits.a.layout, memory.a), (traits.b.layout, memory.b)
        (a, first_a), (b, first_b) = tiles[::-1] if traits.tiling.swap_ab else tiles
        types = traits.operands.input_types[:: -1 if traits.tiling.swap_ab else 1]
        self.a, self.b = shared_operand(atom, "a", a), shared_operand(atom, "b", b)
        self.stage_units = traits.stage_bytes // UNIT
        self.steps = traits.tile[2] // self.a.atom.shape[2]
        self.rows_apart = traits.tiling.rows_apart
        first_piece = 0 if traits.tiling.pingpong else pd.cast(number, u64)
        self.first_a = self.a.descriptor(first_a.value.to(u64), first_piece)
        self.first_b = self.b.descriptor(first_b.value.to(u64))
        self.types = [INPUTS[type].split(".")[1] for type in types]
        self.mnemonic, self.b_tile = self._mnemonic(atom), b
        self.flags = self._flags(traits.operands.inputs)
        self.sums: Sums | None = None
        self.multiplied = self.pieces

    def into(self, sums: Sums, pieces: int | None = None) -> WarpgroupMma:
        """The same, where the sums of a tile are these registers; of its first `pieces` alone."""
        other = copy(self)
        other.sums, other.multiplied = sums, pieces or self.pieces
        return other

    def narrowed(self, columns: int) -> WarpgroupMma:
        """The same that multiplies so many columns of B at a time."""
        other, atom = copy(self), sub(r"n\d+", f"n{columns}", str(self.b.atom))
        other.b, other.mnemonic = shared_operand(atom, "b", self.b_tile), self._mnemonic(atom)
        rows, _ = self.layout.warp
        other.layout = replace(self.layout, tile=(self.layout.tile[0], columns), warp=(rows, columns))
        return other

    def of_rows(self, rows: int) -> WarpgroupMma:
        """The same of the first rows of a tile whose A and B are swapped, so many."""
        other, (_, columns) = copy(self), self.layout.warp
        other.mnemonic = sub(r"n\d+", f"n{rows}", self.mnemonic)
        other.layout = replace(self.layout, rows=gcd(rows, self.layout.rows), warp=(rows, columns))
        return other

    def begin(self, slot: Slot) -> Sums:
        """Begins the first products of a tile. Returns their sums: those of pieces that lie alike."""
        sums = self.sums or Sums(self.layout, self.layout.groups * self.pieces)
        self.multiply(sums, slot, accumulate=False)
        return sums

    def multiply(self, sums: Sums, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
        """Begins to multiply the tiles in a slot of the ring: one group of wgmma. The first product of a tile does not
        `accumulate`: what the registers held before does not count. Of `narrowed` products these are those of a `part`
        of the columns."""
        behind = (slot.index * self.stage_units).to(u64)
        a, b = self.first_a + behind, self.first_b + behind
        pd.ptx.wgmma.fence.sync.aligned()
        for step, (number, piece) in product(range(self.steps), enumerate(sums.pieces(self.pieces)[: self.multiplied])):
            operands = self.a.advanced(a, number, step), self.b.advanced(b, part, step)
            pd.ptx(self.mnemonic, *operands, step > 0 or accumulate, *self.flags, out=piece.registers)
        pd.ptx.wgmma.commit_group.sync.aligned()

    def _flags(self, inputs: Type) -> tuple[int, ...]:
        """What the instruction says of its operands: no float is negated, and those of 16 bits may be transposed."""
        signs = (1, 1) if inputs.is_float else ()
        return (*signs, int(self.a.transposed), int(self.b.transposed)) if inputs in TURNED else signs

    def wait(self, under_way: int) -> None:
        """Until so many groups are under way at most."""
        pd.ptx.wgmma.wait_group.sync.aligned(under_way)

    def _mnemonic(self, atom: str) -> str:
        """Of the instruction that an atom is of, by the types of its operands."""
        _, shape, sums, _ = atom.split(".")
        return ".".join(("wgmma.mma_async.sync.aligned", shape, sums, *self.types))
