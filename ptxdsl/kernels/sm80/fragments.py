"""Fragments of an operand: from a stage of the ring to registers, by tiled copies."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import b32, f32, f64
from ptxdsl.kernels.product.operands import Major, Side
from ptxdsl.kernels.product.product import Index
from ptxdsl.kernels.product.words import round_to_tf32
from ptxdsl.kernels.sm80.tile import WARP_TILE, Addresses
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.layout import Layout, composition, in_bytes, make_tiled_copy_a, make_tiled_copy_b
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

EVEN_BYTES, ODD_BYTES = 0x6420, 0x7531  # of two registers, for prmt


class Fragments:
    """The fragments of a warp for one operand, 16 of mn and one k step of the instruction at a time."""

    def __init__(self, traits: WarpTraits, operand: Side, memory: PointerValue) -> None:
        """`memory` is the tile in the first stage."""
        tile = self.tile = traits.a if operand is Side.A else traits.b
        self.operand, self.held = operand, f64 if tile.type is f64 else b32
        if tile.by_pairs:
            self._address_pairs(traits, memory)
            return
        trans = "" if tile.major is Major.K else ".trans"
        atom = f"ldmatrix.x4{trans}" if tile.by_matrices else f"ld.shared.{tile.type.bytes}"
        copy = (make_tiled_copy_a if operand is Side.A else make_tiled_copy_b)(atom, traits.mma)
        partition = copy.partition_s(by_warps(tile.layout, traits, operand), "shared")
        partition = in_bytes(partition, tile.type.bytes)
        self.load_group = self._load_matrices if tile.by_matrices else self._load_elements
        self.mnemonic = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16"
        _, values, groups, steps = (mode.size for mode in partition)
        self.registers = copy.values * tile.type.bits // self.held.bits
        self.addresses = Addresses(memory, partition, pd.tid.x)
        instructions = values // partition[1][0].size
        self.loads = [
            [[self.addresses.of((0, i), group, step) for i in range(instructions)] for group in range(groups)]
            for step in range(steps)
        ]

    def _address_pairs(self, traits: WarpTraits, memory: PointerValue) -> None:
        self.load_group, self.registers = self._load_pairs, 4
        partition = rows_of_pairs(traits, self.operand)
        self.addresses = Addresses(memory, partition, pd.tid.x)
        groups, steps = partition[1].size, partition[2].size
        self.loads = [[[self.addresses.of(group, step)] for group in range(groups)] for step in range(steps)]

    def variables(self) -> list[list[Var]]:
        """Return registers for the fragments of one k step."""
        return [[pd.var(self.held) for _ in range(self.registers)] for _ in self.loads[0]]

    def load(self, into: list[list[Var]], slot: Index, step: int) -> None:
        """Load the fragments of one k step from a slot of the ring."""
        bases: dict[int, PointerValue] = {}
        for group, registers in zip(self.loads[step], into, strict=True):
            for base, _ in group:
                if base not in bases:
                    bases[base] = self.addresses.bases[base] + slot
            self.load_group([bases[base] + distance for base, distance in group], registers)
            if self.tile.type is f32:
                for register in registers:
                    round_to_tf32(register, out=register)

    def _load_matrices(self, addresses: list[PointerValue], registers: list[Var]) -> None:
        pd.ptx(self.mnemonic, *addresses, out=registers)

    def _load_elements(self, addresses: list[PointerValue], registers: list[Var]) -> None:
        """Load one element at a time."""
        for address, register in zip(addresses, registers, strict=True):
            pd.ptx(f"ld.shared.{self.held}", address, out=register)

    def _load_pairs(self, addresses: list[PointerValue], registers: list[Var]) -> None:
        """Load 32 of k: for each half, four bytes of the even mn and four of the odd one."""
        words = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(*addresses)
        halves = [words[:2], words[2:]]
        even, odd = ([pd.ptx.prmt.b32(*half, bytes) for half in halves] for bytes in (EVEN_BYTES, ODD_BYTES))
        ordered = (even[0], odd[0], even[1], odd[1]) if self.operand is Side.A else (*even, *odd)
        for register, value in zip(registers, ordered, strict=True):
            register.set(value)


def rows_of_pairs(traits: WarpTraits, operand: Side) -> AnyLayout:
    """Return the layout (thread, 16 of mn, k step) → byte of the row that a thread addresses for ldmatrix.

    Rows are contiguous along mn, one for each of 32 k. Matrices hold every second pair of k, so that a thread gets four
    neighbours along k from two of them.
    """
    tile = traits.a if operand is Side.A else traits.b
    dimension = 0 if operand is Side.A else 1
    extent, row = traits.tiling.warp[dimension], tile.mn
    warps = (extent, 0) if operand is Side.A else (0, extent)
    depth = traits.mma.atom.shape[2]
    lanes = Layout(
        ((2, 4, 2, 2, *traits.tiling.warps, traits.tiling.slices), extent // WARP_TILE, tile.k // traits.k_step),
        ((row, 4 * row, 2 * row, 16 * row, *warps, depth * row), WARP_TILE, traits.k_step * row),
    )
    swizzled: AnyLayout = composition(tile.swizzle, lanes)
    return swizzled


def by_warps(layout: AnyLayout, traits: WarpTraits, operand: Side) -> AnyLayout:
    """Return a tile's layout with the rows of each warp contiguous. A tiled MMA assigns one atom in M, or in N, to each
    warp in turn."""
    dimension = 0 if operand is Side.A else 1
    atom, extent, warps = (
        traits.mma.atom.shape[dimension],
        traits.tiling.warp[dimension],
        traits.tiling.warps[dimension],
    )
    turns = Layout((atom, warps, extent // atom), (1, extent, atom))
    by_turns: AnyLayout = composition(layout, (turns, Layout(traits.tile[2])))
    return by_turns
