"""wgmma: the products of a stage of the ring, added to the accumulators of a warpgroup."""

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
from ptxdsl.kernels.product.operands import Side
from ptxdsl.kernels.sm90.first_factor import first_factor
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import INPUTS, TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.layout.shared_operand import shared_operand
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.ring import Slot
from ptxdsl.types import Type

UNIT = 16  # bytes: addresses in descriptors count these
PAIR = 2  # products whose first factor is loaded together, while the previous pair is in flight


class StageMma:
    """The tensor cores of a warpgroup, which multiplies 64 rows of the tile of A by the tile of B. If A and B are
    swapped, it multiplies 64 columns of B by the tile of A. In ping-pong it multiplies all rows of a tile, 64 at a
    time."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        """`number` is the index of the consumer warpgroup."""
        self.layout, self.row_blocks, atom = traits.accumulators, traits.tiling.row_blocks, traits.atom
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

    def _find_first(self, atom: str, tile: AnyLayout, memory: PointerValue, row_block: Any) -> None:
        """Locate the first factor; `row_block` is the first 64-row block of this warpgroup."""
        self.a = shared_operand(atom, "a", tile)
        self.first_a = self.a.descriptor(memory.value.to(u64), row_block)

    def narrowed(self, columns: int) -> StageMma:
        """Return an MMA of `columns` columns of B."""
        other, atom = copy(self), sub(r"n\d+", f"n{columns}", str(self.b.atom))
        other.b, other.mnemonic = shared_operand(atom, "b", self.b_tile), self._mnemonic(atom)
        rows, _ = self.layout.warp
        other.layout = replace(self.layout, tile=(self.layout.tile[0], columns), warp=(rows, columns))
        return other

    def of_rows(self, rows: int) -> StageMma:
        """Return an MMA of the first `rows` rows of a tile whose A and B are swapped."""
        other, (_, columns) = copy(self), self.layout.warp
        other.mnemonic = sub(r"n\d+", f"n{rows}", self.mnemonic)
        other.layout = replace(self.layout, rows=gcd(rows, self.layout.rows), warp=(rows, columns))
        return other

    def begin(self, slot: Slot) -> TileAccumulators:
        """Start the first products of a tile and return their accumulators."""
        accumulators = TileAccumulators(self.layout, self.layout.groups * self.row_blocks)
        self.multiply(accumulators, slot, accumulate=False)
        return accumulators

    def multiply(self, accumulators: TileAccumulators, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
        """Issue the wgmmas of one slot of the ring, as one group. Without `accumulate` the first of them overwrites the
        registers. A `narrowed` MMA multiplies one `part` of the columns."""
        behind = (slot.index * self.stage_units).to(u64)
        a, b = self.first_a + behind, self.first_b + behind
        pd.ptx.wgmma.fence.sync.aligned()
        for step, (number, row_block) in self._products(accumulators):
            operands = self.a.advanced(a, number, step), self.b.advanced(b, part, step)
            pd.ptx(self.mnemonic, *operands, step > 0 or accumulate, *self.flags, out=row_block.registers)
        pd.ptx.wgmma.commit_group.sync.aligned()

    def _products(self, accumulators: TileAccumulators) -> Iterator[tuple[int, tuple[int, TileAccumulators]]]:
        """Yield the products of a stage: the step along K, and the number and accumulators of a 64-row block."""
        return product(range(self.steps), enumerate(accumulators.row_blocks(self.row_blocks)))

    def _flags(self, inputs: Type) -> tuple[int, ...]:
        """Return the immediate operands of the instruction: signs of floats, and transposes of 16-bit types."""
        signs = (1, 1) if inputs.is_float else ()
        return (*signs, int(self.a.transposed), int(self.b.transposed)) if inputs in TURNED else signs

    def wait(self, under_way: int) -> None:
        """Wait until at most `under_way` groups are in flight."""
        pd.ptx.wgmma.wait_group.sync.aligned(under_way)

    def _mnemonic(self, atom: str) -> str:
        """Return the instruction of an atom for the types of its operands."""
        _, shape, accumulators, _ = atom.split(".")
        return ".".join(("wgmma.mma_async.sync.aligned", shape, accumulators, *self.types))


class RegisterMma(StageMma):
    """An MMA whose first factor comes from registers, which are free when their product has ended.

    Products are issued in pairs, each a group that reuses the registers of the pair before the last: one pair is loaded
    while another is in flight. Single products would wait for their own loads, which take longer than narrow products.
    """

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        self.first_factor = first_factor(traits)
        super().__init__(traits, memory, number)

    def _find_first(self, atom: str, tile: AnyLayout, memory: PointerValue, row_block: Any) -> None:
        self.first_factor.find(memory, row_block)

    def multiply(self, accumulators: TileAccumulators, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
        behind = slot.index * self.stage_units
        b = self.first_b + behind.to(u64)
        products = list(self._products(accumulators))
        for first in range(0, len(products), PAIR):
            pair = products[first:][:PAIR]
            if accumulate or first > PAIR:  # the first two pairs of a tile wait for nothing
                super().wait(1)
            loaded = [self.first_factor.load(behind * UNIT, number, step) for step, (number, _) in pair]
            pd.ptx.wgmma.fence.sync.aligned()
            for a, (step, (_, row_block)) in zip(loaded, pair, strict=True):
                operands = a, self.b.advanced(b, part, step)
                pd.ptx(self.mnemonic, *operands, step > 0 or accumulate, *self.flags, out=row_block.registers)
            pd.ptx.wgmma.commit_group.sync.aligned()

    def wait(self, under_way: int) -> None:
        """Wait until at most `under_way` stages are in flight; the second pair of a stage has already waited for the
        stage before."""
        if not under_way:
            super().wait(0)


def warpgroup_mma(traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> StageMma:
    """Return the tensor cores of the consumer warpgroup `number`."""
    if traits.operands.rounded is not Side.NONE and not traits.from_registers:
        raise LaunchError(f"`{traits.operands.rounded}` is rounded, and is not the first factor of {traits.atom}")
    return (RegisterMma if traits.from_registers else StageMma)(traits, memory, number)
