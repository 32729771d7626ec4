"""Clusters for batches whose rows alternate in one matrix, for an A whose rows are not aligned to L2 lines.

Each row begins `step` elements further on in its L2 line, so that the rows of a batch, every eighth row, begin at the
same offset. Their tiles are loaded by whole L2 lines if K begins that many elements earlier: the zeros that TMA returns
there do not count. Blocks of a cluster share columns of B, and therefore the start of K. If two have rows of different
batches, these begin whole sectors apart, since batches with even numbers come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Index, Tile, WorkTile
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips, GroupedSerpentine
from ptxdsl.kernels.tiles.persistent import PersistentWalk
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, Walk
from ptxdsl.schedule import Serpentine
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.schedule.problems import GemmShape
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import Type

CLASSES = 8  # of rows, by their offset in an L2 line, in units of 16 bytes


@dataclass(frozen=True)
class InterleavedStrips(ClusterStrips):
    """ClusterStrips of batches with one B, as if their tiles were stacked along M. A row of A begins `step` elements
    after that of the previous batch, modulo an L2 line. A single product is cut into such batches if its rows of A
    allow it."""

    joins_batches = True
    step: int = 0

    def general(self) -> InterleavedStrips:
        return replace(self, width=0, step=0)

    def fields(self) -> dict[str, Type]:
        return dict.fromkeys(("width", "step", "even_first"), u32)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        (m, n, k), batches = problem.shape, problem.batches or 1
        rows = ceil_div(m, tile[0]) * tile[0] * batches
        below = super().plan(ProblemShape(GemmShape(rows, n, k)), tile, resident)
        return replace(below, numbers={**below.numbers, "step": self.step, "even_first": int(batches == CLASSES)})

    def walk(self, context: KernelContext) -> Walk:
        return InterleavedWalk(context, self.blocks)


def even_first(number: Index) -> Index:
    """Return the class at this position: even ones first, then odd ones."""
    half = CLASSES // 2
    return number % half * 2 + number // half


class InterleavedWalk(PersistentWalk):
    """The walk over the tiles of all batches, stacked along M."""

    def __init__(self, context: KernelContext, blocks: tuple[int, int]) -> None:
        (tiles_m, tiles_n), count = context.products.tiles, context.products.count
        rows = tiles_m if count is None else tiles_m * count
        groups = ceil_div(rows, blocks[0]), ceil_div(tiles_n, blocks[1])
        super().__init__(context, GroupedSerpentine(Serpentine(groups, context.fields.width), blocks))
        self.items = self.raster.items
        self.step, self.tiles_m, self.rows = context.fields.step, tiles_m, blocks[0]
        self.even_first = context.fields.even_first == 1
        self.last = None if count is None else count - 1

    def _located(self) -> tuple[Index, Tile]:
        """Return the tile; those that the last clusters have in excess are below the last batch, where nothing is
        stored."""
        row, column = self.raster.tile(self.item)
        number = 0 if self.last is None else pd.min(row // self.tiles_m, self.last)
        return self._batch(number), (row - number * self.tiles_m, column)

    def _batch(self, number: Index) -> Index:
        """Return the batch at a position in the stack."""
        return 0 if self.last is None else pd.select(self.even_first, even_first(number), number)

    def located_by(self, who: Scalar) -> Self:
        """Return this walk: its tiles are located on demand."""
        return self

    def work(self) -> WorkTile:
        row, _ = self.raster.tile(self.item)
        batch, tile = self._located()
        work = self.products.work(tile, batch)
        first = row // self.rows * self.rows // self.tiles_m  # the number of the batch of the cluster's first block
        lead = (self._batch(first) * self.step) % work.extents[2]
        return work._replace(lead=lead, end=ceil_div(work.product.k + lead, work.extents[2]))
