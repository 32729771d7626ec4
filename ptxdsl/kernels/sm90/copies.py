"""Tiles of A and B on their way from global memory to the ring, by tensor copies."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.product import Work
from ptxdsl.trace.ring import Slot


class TensorView(NamedTuple):
    """A matrix in global memory, or one of a batch: its tensor map, its plane there, and which of the rows there is
    its first."""

    map: Any
    batch: Any = 0
    row: Any = None

    def line(self, row: Any) -> Any:
        """Where a row of the matrix is in the tensor."""
        return row if self.row is None else self.row + row


class GroupRows(NamedTuple):
    """The rows of a group in the output: its first element, the elements between rows, and the tensor that has them."""

    pointer: Any
    stride: Any
    tensor: TensorView


class TensorCopies:
    """The copies of both operands, tile after tile along the K of some work; for one thread."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles) -> None:
        self.a, self.b, self.memory, self.depth = traits.a, traits.b, memory, traits.tile[2]

    def fetch(self, work: Work, iteration: Any, slot: Slot) -> None:
        """Begins to copy the tiles of an iteration along K to a slot of the ring."""
        (first_m, first_n), k = work.first, iteration * self.depth
        behind = slot.index * self.memory.stage
        a, b = self.memory.a + behind, self.memory.b + behind
        self.a.load(work.product.a, a, work.product.a.line(first_m), k, slot.full)
        self.b.load(work.product.b, b, first_n, k, slot.full)
