"""From the ring to the accumulators of a tile: products of a warpgroup, one k step of the instruction behind the
other."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import product
from math import gcd
from re import sub
from typing import Any

import ptxdsl as pd
from ptxdsl import u64
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.sm90.first_factor import first_factor
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import INPUTS, TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.layout.shared_operand import shared_operand
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.ring import Slot
from ptxdsl.types import Type

UNIT = 16  # bytes that a descriptor counts
PAIR = 2  # products whose first factor is loaded together, while those of the pair before are under way


class StageMma:
    """The tensor cores of a warpgroup, which multiplies 64 rows of the tile of A by the tile of B; of the transpose, 64
    columns of B by the tile of A. In ping-pong it multiplies all rows of a tile, 64 after 64."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        """`number` is that of the warpgroup among those that multiply."""
        self.layout, self.pieces, atom = traits.accumulators, traits.tiling.pieces, traits.atom
        tiles = (traits.a.layout, memory.a), (traits.b.layout, memory.b)
        (a, first_a), (b, first_b) = tiles[::-1] if traits.tiling.swap_ab else tiles
        types = traits.operands.input_types[:: -1 if traits.tiling.swap_ab else 1]
        self.b, self.stage_units = shared_operand(atom, "b", b), traits.stage_bytes // UNIT
        self.steps = traits.tile[2] // self.b.atom.shape[2]
        self.rows_apart = traits.tiling.rows_apart
        self._find_first(atom, a, first_a, 0 if traits.tiling.pingpong else pd.cast(number, u64))
        self.first_b = self.b.descriptor(first_b.value.to(u64))
        self.types = [INPUTS[type].split(".")[1] for type in types]
        self.mnemonic, self.b_tile = self._mnemonic(atom), b
        self.flags = self._flags(traits.operands.inputs)
        self.accumulators: TileAccumulators | None = None
        self.multiplied = self.pieces

    def _find_first(self, atom: str, tile: AnyLayout, memory: PointerValue, piece: Any) -> None:
        """Where the first factor lies of whose pieces, of 64 rows each, this is the first."""
        self.a = shared_operand(atom, "a", tile)
        self.first_a = self.a.descriptor(memory.value.to(u64), piece)

    def into(self, accumulators: TileAccumulators, pieces: int | None = None) -> StageMma:
        """The same, where the accumulators of a tile are these registers; of its first `pieces` alone."""
        other = copy(self)
        other.accumulators, other.multiplied = accumulators, pieces or self.pieces
        return other

    def narrowed(self, columns: int) -> StageMma:
        """The same that multiplies so many columns of B at a time."""
        other, atom = copy(self), sub(r"n\d+", f"n{columns}", str(self.b.atom))
        other.b, other.mnemonic = shared_operand(atom, "b", self.b_tile), self._mnemonic(atom)
        rows, _ = self.layout.warp
        other.layout = replace(self.layout, tile=(self.layout.tile[0], columns), warp=(rows, columns))
        return other

    def of_rows(self, rows: int) -> StageMma:
        """The same of the first rows of a tile whose A and B are swapped, so many."""
        other, (_, columns) = copy(self), self.layout.warp
        other.mnemonic = sub(r"n\d+", f"n{rows}", self.mnemonic)
        other.layout = replace(self.layout, rows=gcd(rows, self.layout.rows), warp=(rows, columns))
        return other

    def begin(self, slot: Slot) -> TileAccumulators:
        """Begins the first products of a tile. Returns their accumulators: those of pieces that lie alike."""
        accumulators = self.accumulators or TileAccumulators(self.layout, self.layout.groups * self.pieces)
        self.multiply(accumulators, slot, accumulate=False)
        return accumulators

    def multiply(self, accumulators: TileAccumulators, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
        """Begins to multiply the tiles in a slot of the ring: one group of wgmma. The first product of a tile does not
        `accumulate`: what the registers held before does not count. Of `narrowed` products these are those of a `part`
        of the columns."""
        behind = (slot.index * self.stage_units).to(u64)
        a, b = self.first_a + behind, self.first_b + behind
        pd.ptx.wgmma.fence.sync.aligned()
        for step, (number, piece) in self._products(accumulators):
            operands = self.a.advanced(a, number, step), self.b.advanced(b, part, step)
            pd.ptx(self.mnemonic, *operands, step > 0 or accumulate, *self.flags, out=piece.registers)
        pd.ptx.wgmma.commit_group.sync.aligned()

    def _products(self, accumulators: TileAccumulators) -> Iterator[tuple[int, tuple[int, TileAccumulators]]]:
        """Of a stage: the step along K, and the number and the accumulators of a piece."""
        return product(range(self.steps), enumerate(accumulators.pieces(self.pieces)[: self.multiplied]))

    def _flags(self, inputs: Type) -> tuple[int, ...]:
        """What the instruction says of its operands: no float is negated, and those of 16 bits may be transposed."""
        signs = (1, 1) if inputs.is_float else ()
        return (*signs, int(self.a.transposed), int(self.b.transposed)) if inputs in TURNED else signs

    def wait(self, under_way: int) -> None:
        """Until so many groups are under way at most."""
        pd.ptx.wgmma.wait_group.sync.aligned(under_way)

    def _mnemonic(self, atom: str) -> str:
        """Of the instruction that an atom is of, by the types of its operands."""
        _, shape, accumulators, _ = atom.split(".")
        return ".".join(("wgmma.mma_async.sync.aligned", shape, accumulators, *self.types))


class RegisterMma(StageMma):
    """The same where the first factor comes from registers, which are free when their product has ended. Products go in
    pairs, each a group that takes the registers of the pair before the last one: one pair is loaded while another one
    is under way. One by one each would wait for its own load, longer than narrow products take."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        self.first_factor = first_factor(traits)
        super().__init__(traits, memory, number)

    def _find_first(self, atom: str, tile: AnyLayout, memory: PointerValue, piece: Any) -> None:
        self.first_factor.find(memory, piece)

    def multiply(self, accumulators: TileAccumulators, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
        behind = slot.index * self.stage_units
        b = self.first_b + behind.to(u64)
        products = list(self._products(accumulators))
        for first in range(0, len(products), PAIR):
            pair = products[first:][:PAIR]
            if accumulate or first > PAIR:  # the first two pairs of a tile have nothing before them
                super().wait(1)
            loaded = [self.first_factor.load(behind * UNIT, number, step) for step, (number, _) in pair]
            pd.ptx.wgmma.fence.sync.aligned()
            for a, (step, (_, piece)) in zip(loaded, pair, strict=True):
                operands = a, self.b.advanced(b, part, step)
                pd.ptx(self.mnemonic, *operands, step > 0 or accumulate, *self.flags, out=piece.registers)
            pd.ptx.wgmma.commit_group.sync.aligned()

    def wait(self, under_way: int) -> None:
        """Until so many stages are under way at most: the second pair of one has waited for those before it."""
        if not under_way:
            super().wait(0)


def warpgroup_mma(traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> StageMma:
    """The tensor cores of the warpgroup of that number, for such traits."""
    if traits.operands.rounded != "none" and not traits.from_registers:
        raise LaunchError(f"`{traits.operands.rounded}` is rounded, and is not the first factor of {traits.atom}")
    return (RegisterMma if traits.from_registers else StageMma)(traits, memory, number)
