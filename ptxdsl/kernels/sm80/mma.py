"""mma.sync: fragments are loaded one k step ahead, and multiplied to the accumulators of a tile."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.operands import Side
from ptxdsl.kernels.product.product import Index
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.kernels.sm80.fragments import Fragments
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.tile import WARP_TILE
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.trace.value import Var

ATOMS_N = 2  # of B that ldmatrix.x4 loads


class FragmentMma:
    """The tensor cores of a block. Fragments of one k step are multiplied while those of the next are loaded, in two
    sets of registers."""

    def __init__(self, traits: WarpTraits, memory: SharedMemory) -> None:
        self.traits, self.memory, self.layout = traits, memory, traits.accumulators
        self.operands = Fragments(traits, Side.A, memory.a), Fragments(traits, Side.B, memory.b)
        self.steps = traits.tile[2] // traits.k_step
        self.buffers = [[operand.variables() for operand in self.operands] for _ in range(2)]
        m, n, k = traits.mma.atom.shape
        self.atoms_m, self.each = WARP_TILE // m, m * n // self.layout.lanes
        _, _, sum, inputs = traits.mma.atom.name.split(".")
        self.mnemonic = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{sum}.{inputs}.{inputs}.{sum}"

    def load(self, slot: Index, step: int) -> None:
        """Load the fragments of a k step from a slot of the ring."""
        for operand, registers in zip(self.operands, self.buffers[step % 2], strict=True):
            operand.load(registers, slot, step)

    def multiply(self, accumulators: TileAccumulators, step: int) -> None:
        """Add the product of a k step whose fragments were loaded; neighbours in the order share a fragment."""
        a, b = self.buffers[step % 2]
        columns = list(enumerate(_atoms(b, ATOMS_N)))
        for i, left in enumerate(_atoms(a, self.atoms_m)):
            for j, right in columns if i % 2 == 0 else reversed(columns):
                atom = self._atom(accumulators, i, j)
                pd.ptx(self.mnemonic, left, right, atom, out=atom)

    def _atom(self, accumulators: TileAccumulators, i: int, j: int) -> list[Var]:
        """Return the registers of the atom that is i-th along m and j-th along n."""
        group, within = divmod(i, self.atoms_m)
        return accumulators.groups[group][(j * self.atoms_m + within) * self.each :][: self.each]

    def gather(self, accumulators: TileAccumulators) -> None:
        """Add up the accumulators of warps that share the K of a tile, through the ring, which is free before and
        after."""
        if self.traits.tiling.slices == 1:
            return
        layout, slices = self.layout, self.traits.tiling.slices
        slice, thread = pd.tid.x // layout.holders, pd.tid.x % layout.holders
        first, elements = self.memory.a.bitcast(layout.type) + thread * layout.word, layout.tile[0] * layout.tile[1]
        with pd.if_(slice > 0):
            left = first + (slice - 1) * elements
            for number, word in accumulators.words():
                write_words(left + number * layout.holders, word)
        pd.ptx.bar.sync(0)
        with layout.holding():
            for other in range(slices - 1):
                for number, word in accumulators.words():
                    address = first + (other * elements + number * layout.holders)
                    for register, value in zip(word, read_words(address, layout.word, layout.type), strict=True):
                        register += value
        pd.ptx.bar.sync(0)


def _atoms(groups: list[list[Var]], count: int) -> list[list[Var]]:
    """Return each group's registers, divided into its `count` atoms."""
    return [group[i * len(group) // count : (i + 1) * len(group) // count] for group in groups for i in range(count)]
