"""Rows of A that an index names, gathered from global memory to the ring by warps of their own, while TMA loads B."""

from __future__ import annotations

from functools import partial
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, u32
from ptxdsl.kernels.product.product import WorkTile
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.loads import TensorView, TileLoads, TmaLoads
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import GATHERING_WARPS, WARP
from ptxdsl.kernels.sm90.traits import SHARE_ROWS, WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import Walk, loaded_elsewhere
from ptxdsl.kernels.tiles.visitor import EVERY_LANE
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.ring import Slot

CHUNK_BYTES = 16
CHUNKS = LINE_BYTES // CHUNK_BYTES  # of a row of a box
LINES = WARP // CHUNKS  # rows that a warp loads at a time
TOGETHER = GATHERING_WARPS * LINES  # rows that all warps load at a time
OF_A_LINE = (WARP - CHUNKS) << 8 | CHUNKS - 1  # for shfl: the source is a lane of the same eight
NOWHERE = 0xFFFFFFFF  # stands for no row


class GatheredRing(pd.Ring):
    """A ring that gathering warps fill as well, whose arrivals follow their cp.async. They write through another proxy
    than wgmma reads: a thread that waits for a stage fences what it has observed."""

    writers = GATHERING_WARPS * WARP

    def wait(self) -> Slot:
        slot = super().wait()
        pd.ptx.fence.proxy.async_.shared__cta()
        return slot


class ColumnCopies(TmaLoads):
    """The TMA loads of B alone."""

    def of(self, work: WorkTile) -> TileLoads:
        return TileLoads(work, partial(self.fetch, work), self.b.bytes)

    def _load_a(self, view: TensorView, boxes: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        """Do nothing: other warps gather A."""


class GatheredRows:
    """The loads of the rows of A of a work tile, by one of the gathering warps. Eight lanes load a row of the tile; an
    invalid index stands for zeros."""

    def __init__(self, p: Any, traits: WarpgroupTraits, memory: SharedTiles, warp: Scalar | int) -> None:
        boxes, lane, each = traits.a, pd.laneid, CHUNK_BYTES // traits.operands.inputs.bytes
        self.p, self.depth, self.each, self.is_whole = p, traits.tile[2], each, traits.operands.a_bytes == CHUNK_BYTES
        self.line, self.column = warp * LINES + lane // CHUNKS, lane % CHUNKS * each
        self.target = memory.a + boxes.layout(self.line, self.column)
        self.type, self.stage, self.rows = traits.operands.inputs, memory.stage, traits.tile[0]
        self.box_rows, self.apart = SHARE_ROWS if traits.shares_rows else self.rows, TOGETHER * boxes.line
        self.numbers = [pd.var(u32, NOWHERE) for _ in range(0, self.rows, TOGETHER * CHUNKS)]
        self.left = pd.var(u32, 0)

    def seek(self, work: WorkTile) -> None:
        """Read the indices of the rows of a work tile."""
        first = work.first[0]
        self.left.set(work.product.m - first)
        begin = work.product.a.line(first)
        for count, number in enumerate(self.numbers):
            line = (count * CHUNKS + pd.laneid % CHUNKS) * TOGETHER + self.line
            named = self.p.index[pd.min(begin + line, self.p.rows - 1)].bitcast(u32)
            number.set(pd.select((line < self.left) & (named < self.p.a_rows), named, NOWHERE))

    def fetch(self, iteration: Scalar, slot: Slot) -> None:
        """Start the loads of the rows of an iteration along K to a slot of the ring."""
        k = iteration * self.depth + self.column
        source, row_bytes = (self.p.a.pointer + k).bitcast(b8), (self.p.a.stride * self.type.bytes).to(u32)
        target, left = self.target + slot.index * self.stage, self._left(k)
        for first in range(0, self.rows, self.box_rows):
            with pd.if_(self.left > first):
                for line in range(first, min(first + self.box_rows, self.rows), TOGETHER):
                    self._fetch(line // TOGETHER, target, source, row_bytes, left)

    def _left(self, k: Scalar) -> Scalar:
        """Return what part of a chunk at k is before the end of its row: a predicate if it is all or nothing, else
        bytes."""
        if self.is_whole:
            return k < self.p.k
        return pd.min(self.p.k - pd.min(k, self.p.k), self.each) * self.type.bytes

    def _fetch(self, turn: int, target: Any, source: Any, row_bytes: Scalar, left: Scalar) -> None:
        """Load this lane's part of the rows that all gathering warps load in one turn."""
        named = pd.ptx.shfl.sync.idx.b32(self.numbers[turn // CHUNKS], turn % CHUNKS, OF_A_LINE, EVERY_LANE)
        exists = named != NOWHERE
        row = (source + pd.ptx.mul.wide.u32(pd.select(exists, named, 0), row_bytes)).bitcast(self.type)
        amount = ~(exists & left) if self.is_whole else pd.select(exists, left, 0)  # a predicate for zeros, or bytes
        pd.ptx.cp.async_.cg.shared.global_.L2__128B(target + turn * self.apart, row, CHUNK_BYTES, amount)


def gather_tiles(ring: pd.Ring, rows: GatheredRows, walk: Walk) -> None:
    """Gather the rows of A of all work tiles into the ring, as `gemm.load_tiles` does for the others."""
    for work in walk.tiles(loaded_elsewhere):
        rows.seek(work)
        for iteration in pd.range(work.begin, work.end, unroll=1):
            slot = ring.acquire(leads=False)
            rows.fetch(iteration, slot)
            pd.ptx.cp.async_.mbarrier.arrive.noinc.shared__cta.b64(slot.full)
            ring.commit()
        walk.skip(work)
