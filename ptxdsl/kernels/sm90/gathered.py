"""Rows of A that an index names, on their way from global memory to the ring: warps beside the one whose tensor copies
bring B gather them by cp.async, 16 bytes a lane.

Tensor copies bring rows one by one too, each as a box of its own, at a rate of about one in eleven cycles: too few for
tensor cores, which multiply one in four to eight.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, u32
from ptxdsl.kernels.product.product import Work
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.copies import TensorCopies, TensorView, WorkCopies
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import GATHERING_WARPS, WARP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import Walk, started_elsewhere
from ptxdsl.kernels.tiles.visitor import EVERY_LANE
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.ring import Position, Slot
from ptxdsl.trace.value import Var

CHUNK_BYTES = 16
CHUNKS = LINE_BYTES // CHUNK_BYTES  # of a line
LINES = WARP // CHUNKS  # that a warp brings at a time
TOGETHER = GATHERING_WARPS * LINES  # lines that all of them bring
OF_A_LINE = (WARP - CHUNKS) << 8 | CHUNKS - 1  # of a shuffle: from a lane of the same eight, by its number there
NOWHERE = 0xFFFFFFFF  # the number of no row
AT_A_TIME, AHEAD = 4, 2  # turns whose copies begin together; stages to which copies are under way meanwhile


class GatheredRing(pd.Ring):
    """A ring that threads of gathering warps fill as well."""

    writers = GATHERING_WARPS * WARP

    def full(self, stage: Var) -> PointerValue:
        """Where they arrive."""
        return self._slot(stage).full


class LateArrivals:
    """The arrivals of a gathering warp at the stages of a ring. Its copies write through another proxy than wgmma reads
    by: it waits for them, fences them, and only then arrives, while those to the next stages are under way. Who reads
    could fence them too, but would wait for its products each time."""

    def __init__(self, ring: GatheredRing) -> None:
        self.ring, self.ahead = ring, min(AHEAD, ring.stages - 2)
        self.stage, self.under_way = Position(ring.stages, 0), pd.var(u32, 0)

    def begun(self) -> None:
        """All copies of this warp to the next stage have begun."""
        pd.ptx.cp.async_.commit_group()
        self.under_way += 1
        with pd.if_(self.under_way > self.ahead):
            self._arrive(self.ahead)

    def finish(self) -> None:
        """Waits for all of them."""
        for left in reversed(range(self.ahead)):
            with pd.if_(self.under_way > left):
                self._arrive(left)

    def _arrive(self, left: int) -> None:
        """At the first stage that this thread has not arrived at; copies to as many others may be under way."""
        pd.ptx.cp.async_.wait_group(left)
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.mbarrier.arrive.shared__cta.b64(self.ring.full(self.stage.index))
        self.stage.advance()
        self.under_way -= 1


class ColumnCopies(TensorCopies):
    """The tensor copies of B alone."""

    def of(self, work: Work) -> WorkCopies:
        return WorkCopies(work, partial(self.fetch, work), self.b.bytes)

    def _load_a(self, view: TensorView, pieces: Any, a: Any, corner: tuple[Any, Any], slot: Slot) -> None:
        """Others gather them."""


class GatheredRows:
    """The copies of the rows of A of some work, by the warp of a number among those that gather. Eight lanes bring a
    line, and each of them keeps the numbers of the rows of some turns. A number that is none of a row stands for
    zeros."""

    def __init__(self, p: Any, traits: WarpgroupTraits, memory: SharedTiles, warp: Scalar | int) -> None:
        boxes, lane, each = traits.a, pd.laneid, CHUNK_BYTES // traits.operands.inputs.bytes
        self.p, self.depth, self.each, self.is_whole = p, traits.tile[2], each, traits.operands.a_bytes == CHUNK_BYTES
        self.line, self.column = warp * LINES + lane // CHUNKS, lane % CHUNKS * each
        self.target = memory.a + boxes.layout(self.line, self.column)
        self.type, self.stage, self.rows = traits.operands.inputs, memory.stage, traits.tile[0]
        self.piece, self.apart = traits.piece or self.rows, TOGETHER * boxes.line
        self.numbers = [pd.var(u32, NOWHERE) for _ in range(0, self.rows, TOGETHER * CHUNKS)]
        self.left = pd.var(u32, 0)

    def seek(self, work: Work) -> None:
        """Asks for the numbers of the rows of some work."""
        first = work.first[0]
        self.left.set(work.product.m - first)
        begin = work.product.a.line(first)
        for count, number in enumerate(self.numbers):
            line = (count * CHUNKS + pd.laneid % CHUNKS) * TOGETHER + self.line
            named = self.p.index[pd.min(begin + line, self.p.rows - 1)].bitcast(u32)
            number.set(pd.select((line < self.left) & (named < self.p.a_rows), named, NOWHERE))

    def fetch(self, iteration: Scalar, slot: Slot) -> None:
        """Begins to copy the rows of an iteration along K to a slot of the ring."""
        k = iteration * self.depth + self.column
        source, row_bytes = (self.p.a.pointer + k).bitcast(b8), (self.p.a.stride * self.type.bytes).to(u32)
        target, left = self.target + slot.index * self.stage, self._left(k)
        for piece in range(0, self.rows, self.piece):
            with pd.if_(self.left > piece):
                turns = range(piece // TOGETHER, min(piece + self.piece, self.rows) // TOGETHER)
                for first in turns[::AT_A_TIME]:
                    self._fetch(range(first, min(first + AT_A_TIME, turns.stop)), target, source, row_bytes, left)

    def _left(self, k: Scalar) -> Scalar:
        """How much of a chunk that begins at k is before the end of rows: all or nothing, a predicate, or bytes."""
        if self.is_whole:
            return k < self.p.k
        return pd.min(self.p.k - pd.min(k, self.p.k), self.each) * self.type.bytes

    def _fetch(self, turns: range, target: Any, source: Any, row_bytes: Scalar, left: Scalar) -> None:
        """Of the lines that all warps bring at some turns, those of this lane: it asks for all of their numbers before
        it uses the first, since each takes as long as it takes to begin several copies."""
        named = [
            pd.ptx.shfl.sync.idx.b32(self.numbers[turn // CHUNKS], turn % CHUNKS, OF_A_LINE, EVERY_LANE)
            for turn in turns
        ]
        exist = [number != NOWHERE for number in named]
        numbers = [pd.select(exists, number, 0) for exists, number in zip(exist, named, strict=True)]
        rows = [(source + pd.ptx.mul.wide.u32(number, row_bytes)).bitcast(self.type) for number in numbers]
        for turn, exists, row in zip(turns, exist, rows, strict=True):
            amount = ~(exists & left) if self.is_whole else pd.select(exists, left, 0)  # whether it is zeros, or bytes
            pd.ptx.cp.async_.cg.shared.global_.L2__128B(target + turn * self.apart, row, CHUNK_BYTES, amount)


def gather_tiles(ring: GatheredRing, rows: GatheredRows, walk: Walk) -> None:
    """As `gemm.copy_tiles`, of the rows of A."""
    arrivals = LateArrivals(ring)
    for work in walk.tiles(started_elsewhere):
        rows.seek(work)
        for iteration in pd.range(work.begin, work.end, unroll=1):
            rows.fetch(iteration, ring.acquire(leads=False))
            ring.commit()
            arrivals.begun()
        arrivals.finish()
        walk.skip(work)
