"""Tiles of A and B on their way from global memory to the ring, by tensor copies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl.kernels.product.product import WorkTile
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_strips import shared_copies
from ptxdsl.schedule.arithmetic import ceil_div
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


class TileLoads(NamedTuple):
    """The copies of some work: `fetch` begins those of an iteration along K, to a slot of the ring. They bring so many
    `bytes`, or those of a stage."""

    work: WorkTile
    fetch: Callable[[Any, Slot], None]
    bytes: Any = None


class TmaLoads:
    """The copies of both operands, tile after tile along the K of some work; for one thread."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles) -> None:
        self.a, self.b, self.memory, self.depth = traits.a, traits.b, memory, traits.tile[2]
        self.shares = shared_copies(traits.schedule.multicast)
        self.policies = _policies(traits.streamed)

    def of(self, work: WorkTile) -> TileLoads:
        """Those of some work."""
        return TileLoads(work, partial(self.fetch, work))

    def fetch(self, work: WorkTile, iteration: Any, slot: Slot) -> None:
        """Begins to copy the tiles of an iteration along K to a slot of the ring."""
        self._fetch(work, None, iteration, slot)

    def _fetch(self, work: WorkTile, pieces: Any, iteration: Any, slot: Slot) -> None:
        (first_m, first_n), k = work.first, iteration * self.depth
        if not isinstance(work.lead, int):
            k = k - work.lead
        behind = slot.index * self.memory.stage
        a, b = self.memory.a + behind, self.memory.b + behind
        row, (_, shares) = work.product.a.line(first_m), self.shares
        self._load_a(work.product.a, pieces, a, (row, k), slot)
        policy = self.policies.get("b")
        self.b.load(work.product.b, b, first_n, k, slot.full, rank=shares.part, to=shares.mask, policy=policy)

    def _load_a(self, view: TensorView, pieces: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        """Copies a tile of A that begins at (row, k), or so many pieces of it."""
        (shares, _), policy = self.shares, self.policies.get("a")
        self.a.load(view, a, *corner, slot.full, rank=shares.part, to=shares.mask, policy=policy)


class RowBlockLoads(TmaLoads):
    """The same where a tile of A comes in pieces of so many rows, no more than there are before the last row: zeros
    for rows behind it take a tensor copy twice as long as lines of memory. Blocks of a cluster that share a tile bring
    every second piece, or whatever their number is."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, rows: int) -> None:
        super().__init__(traits, memory)
        self.rows, self.pieces = rows, traits.tile[0] // rows
        self.piece, self.piece_bytes = self.a.line * rows, self.a.bytes // self.pieces

    def of(self, work: WorkTile) -> TileLoads:
        pieces = pd.min(ceil_div(work.product.m - work.first[0], self.rows), self.pieces)
        expected = pieces * self.piece_bytes + self.b.bytes
        return TileLoads(work, partial(self._fetch, work, pieces), expected)

    def _load_a(self, view: TensorView, pieces: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        (row, k), (shares, _), policy = corner, self.shares, self.policies.get("a")
        for number in range(0, self.pieces, self.a.parts):
            piece = number if shares.part is None else shares.part + number
            with pd.if_(pieces > piece):
                at = (*((view.batch,) if self.a.is_batched else ()), row + piece * self.rows, k)
                view.map.load(a + piece * self.piece, at, slot.full, multicast=shares.mask, policy=policy)


def _policies(streamed: str) -> dict[str, Any]:
    """The policy for the L2 cache of an operand that is streamed."""
    return {} if streamed == "none" else {streamed: pd.ptx.createpolicy.fractional.L2__evict_first.b64()}


def tma_loads(traits: WarpgroupTraits, memory: SharedTiles, piece: int) -> TmaLoads:
    """Those of a kernel that takes A in pieces of so many rows, or tile by tile where that is 0."""
    return RowBlockLoads(traits, memory, piece) if piece else TmaLoads(traits, memory)
