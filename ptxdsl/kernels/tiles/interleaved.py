"""Clusters for batches whose rows take turns in one matrix, of an A whose lines begin in the midst of L2 lines.

Row after row lies `step` elements further on, so that the rows of a batch, every eighth one, begin at the same part of
an L2 line. Their tiles come by whole L2 lines where K begins as many elements before the first: the zeros that tensor
copies bring from there count nothing. Blocks of a cluster share columns of B, and therefore where K begins. Where two
have rows of different batches, these begin whole sectors apart, since batches of even numbers come first.
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

CLASSES = 8  # of rows, by the multiple of 16 bytes of an L2 line at which they begin


@dataclass(frozen=True)
class InterleavedStrips(ClusterStrips):
    """ClusterStrips of batches that have one B, as if their tiles of M lay below each other. A row of A begins `step`
    elements behind that of the batch before, modulo an L2 line. A single product of which the rows of A can be taken so
    is cut into such batches."""

    step: int = 0

    @property
    def joins_batches(self) -> bool:
        return True

    def interleaved(self, step: int) -> InterleavedStrips:
        return replace(self, step=step)

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
    """Which of the CLASSES comes at this number, where those of even numbers come first, then those of odd ones."""
    half = CLASSES // 2
    return number % half * 2 + number // half


class InterleavedWalk(PersistentWalk):
    """Through the tiles of all batches, by the rows of which they are below each other."""

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
        """Tiles that the last clusters have more lie below the rows of the last batch, where nothing is stored."""
        row, column = self.raster.tile(self.item)
        number = 0 if self.last is None else pd.min(row // self.tiles_m, self.last)
        return self._batch(number), (row - number * self.tiles_m, column)

    def _batch(self, number: Index) -> Index:
        """The one whose tiles are below those of so many others."""
        return 0 if self.last is None else pd.select(self.even_first, even_first(number), number)

    def located_by(self, who: Scalar) -> Self:
        """All of it is found when it is asked for."""
        return self

    def work(self) -> WorkTile:
        row, _ = self.raster.tile(self.item)
        batch, tile = self._located()
        work = self.products.work(tile, batch)
        first = row // self.rows * self.rows // self.tiles_m  # the number of the batch of the cluster's first block
        lead = (self._batch(first) * self.step) % work.extents[2]
        return work._replace(lead=lead, end=ceil_div(work.product.k + lead, work.extents[2]))
