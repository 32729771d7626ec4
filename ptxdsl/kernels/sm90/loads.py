"""TMA loads of the tiles of A and B, from global memory to the ring."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl.kernels.product.operands import Side
from ptxdsl.kernels.product.product import WorkTile
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.traits import SHARE_ROWS, WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_strips import shared_copies
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.ring import Slot


class TensorView(NamedTuple):
    """A matrix in global memory, or one of a batch: its tensor map, its plane in the tensor, and its first row
    there."""

    map: Any
    batch: Any = 0
    row: Any = None

    def line(self, row: Any) -> Any:
        """Return the tensor coordinate of a row of the matrix."""
        return row if self.row is None else self.row + row


class GroupRows(NamedTuple):
    """The rows of a group in the output: the first element, the elements between rows, and the tensor that contains
    them."""

    pointer: Any
    stride: Any
    tensor: TensorView


class TileLoads(NamedTuple):
    """The loads of a work tile: `fetch` starts those of one iteration along K. They bring `bytes`, or a whole stage if
    None."""

    work: WorkTile
    fetch: Callable[[Any, Slot], None]
    bytes: Any = None


class TmaLoads:
    """The loads of both operands, iteration after iteration along K; for one thread."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles) -> None:
        self.a, self.b, self.memory, self.depth = traits.a, traits.b, memory, traits.tile[2]
        self.shares = shared_copies(traits.schedule.multicast)
        self.policies = _policies(traits.streamed)

    def of(self, work: WorkTile) -> TileLoads:
        """Return the loads of a work tile."""
        return TileLoads(work, partial(self.fetch, work))

    def fetch(self, work: WorkTile, iteration: Any, slot: Slot) -> None:
        """Start the loads of an iteration along K to a slot of the ring."""
        self._fetch(work, None, iteration, slot)

    def _fetch(self, work: WorkTile, boxes: Any, iteration: Any, slot: Slot) -> None:
        (first_m, first_n), k = work.first, iteration * self.depth
        if not isinstance(work.lead, int):
            k = k - work.lead
        behind = slot.index * self.memory.stage
        a, b = self.memory.a + behind, self.memory.b + behind
        row, (_, shares) = work.product.a.line(first_m), self.shares
        self._load_a(work.product.a, boxes, a, (row, k), slot)
        policy = self.policies.get(Side.B)
        self.b.load(work.product.b, b, first_n, k, slot.full, rank=shares.part, to=shares.mask, policy=policy)

    def _load_a(self, view: TensorView, boxes: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        """Load the tile of A at (row, k), or the first `boxes` boxes of it."""
        (shares, _), policy = self.shares, self.policies.get(Side.A)
        self.a.load(view, a, *corner, slot.full, rank=shares.part, to=shares.mask, policy=policy)


class ShareLoads(TmaLoads):
    """Loads of tiles with shares of the rows of groups. A is loaded in boxes of SHARE_ROWS rows; boxes past
    the last row of the share are left out. Blocks of a cluster that share a tile load its boxes in turn."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles) -> None:
        super().__init__(traits, memory)
        self.boxes = traits.tile[0] // SHARE_ROWS
        self.box, self.box_bytes = self.a.line * SHARE_ROWS, self.a.bytes // self.boxes

    def of(self, work: WorkTile) -> TileLoads:
        boxes = pd.min(ceil_div(work.product.m - work.first[0], SHARE_ROWS), self.boxes)
        expected = boxes * self.box_bytes + self.b.bytes
        return TileLoads(work, partial(self._fetch, work, boxes), expected)

    def _load_a(self, view: TensorView, boxes: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        (row, k), (shares, _), policy = corner, self.shares, self.policies.get(Side.A)
        for number in range(0, self.boxes, self.a.parts):
            box = number if shares.part is None else shares.part + number
            with pd.if_(boxes > box):
                at = (*((view.batch,) if self.a.is_batched else ()), row + box * SHARE_ROWS, k)
                view.map.load(a + box * self.box, at, slot.full, multicast=shares.mask, policy=policy)


def _policies(streamed: Side) -> dict[Side, Any]:
    """Return the L2 cache policy of the streamed operand."""
    return {} if streamed is Side.NONE else {streamed: pd.ptx.createpolicy.fractional.L2__evict_first.b64()}


def group_loads(traits: WarpgroupTraits, memory: SharedTiles) -> TmaLoads:
    """Return the loads of a kernel of groups or lists."""
    return (ShareLoads if traits.shares_rows else TmaLoads)(traits, memory)
