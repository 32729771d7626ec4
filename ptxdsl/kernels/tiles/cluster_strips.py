"""Persistent clusters, whose blocks compute neighbouring tiles and share TMA loads of A and B by multicast.

Tiles in a row of blocks have the same rows of A, those in a column the same columns of B: each block loads a part of
them for all. A multiprocessor requests fewer lines from the L2 cache, which matters where a line costs two requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.product.product import Index, Tile
from ptxdsl.kernels.tiles.persistent import MOST_ITEMS, PersistentWalk
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, TileSchedule, Walk
from ptxdsl.layout.number import Computed, Number
from ptxdsl.schedule import Serpentine, strip_width
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type

MOST_BLOCKS = 8  # blocks of a portable cluster


@dataclass(frozen=True)
class ClusterStrips(TileSchedule):
    """Clusters of `blocks` along M and N, in as few waves as all resident ones would need. They take groups of tiles in
    the order of a Serpentine. Tiles out of bounds are multiplied as zeros, so that the blocks of a cluster stay in
    step. With `streamed`, A is loaded with evict_first, for clusters that span all columns of B. Raises ScheduleError
    for clusters that no GPU supports."""

    ahead = True
    blocks: tuple[int, int] = (2, 1)
    width: int = 0  # groups of a strip along M; 0 for the number that minimises reads
    streamed: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not all(type(n) is int and n in (1, 2, 4, 8) for n in self.blocks) or not 2 <= self.size <= MOST_BLOCKS:
            raise ScheduleError(
                f"blocks is {self.blocks!r}; ClusterStrips takes two powers of two, along M and N, together 2 to 8",
                help="such as ClusterStrips((2, 1)), whose two blocks share the columns of B",
            )

    @property
    def size(self) -> int:
        """The blocks of a cluster."""
        return prod(self.blocks)

    @property
    def cluster(self) -> tuple[int, int, int]:
        return self.size, 1, 1

    @property
    def multicast(self) -> tuple[int, int]:
        return self.blocks

    def general(self) -> TileSchedule:
        return replace(self, width=0)

    def fields(self) -> dict[str, Type]:
        return dict.fromkeys(("width",), u32)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        (m, n, _), (rows, columns) = problem.shape, self.blocks
        extents = tile[0] * rows, tile[1] * columns, tile[2]
        groups_m, groups_n = ceil_div(m, extents[0]), ceil_div(n, extents[1])
        groups = max(1, groups_m * groups_n * (1 if problem.batches is None else problem.batches))
        if groups * self.size > MOST_ITEMS:
            raise ScheduleError(f"{groups} groups of tiles are more than 2**31 tiles", help="take larger tiles")
        clusters = max(1, resident() // self.size)
        clusters = ceil_div(groups, ceil_div(groups, clusters))
        width = self.width or strip_width(clusters, (groups_m, groups_n), extents)
        return Plan((clusters * self.size, 1, 1), {"width": width})

    def walk(self, context: KernelContext) -> Walk:
        tiles = context.products.tiles
        groups = ceil_div(tiles[0], self.blocks[0]), ceil_div(tiles[1], self.blocks[1])
        return PersistentWalk(context, GroupedSerpentine(Serpentine(groups, context.fields.width), self.blocks))


class GroupedSerpentine(NamedTuple):
    """The groups of tiles of a problem in the order of a Serpentine; within a group, column by column."""

    groups: Serpentine
    blocks: tuple[int, int]

    @property
    def items(self) -> Computed:
        """The number of tiles, with those out of bounds."""
        return self.groups.items * prod(self.blocks)

    def tile(self, item: Number) -> Tile:
        """Return the (m, n) of a work item."""
        (rows, columns), size = self.blocks, prod(self.blocks)
        row, column = self.groups.tile(item // size)
        rank = item % size
        return row * rows + rank % rows, column * columns + rank // rows


class SharedCopies(NamedTuple):
    """The part of a tile of A or B that this block loads, and the mask of the blocks that receive it. A tile that no
    other block needs is loaded whole, without a mask."""

    part: Index | None
    mask: Index | None


ALONE = SharedCopies(None, None)


def shared_copies(blocks: tuple[int, int]) -> tuple[SharedCopies, SharedCopies]:
    """Return the parts of A, shared by a row of blocks, and of B, shared by a column; for the producer thread."""
    rows, columns = blocks
    if blocks == (1, 1):
        return ALONE, ALONE
    rank = pd.ctaid.x % (rows * columns)
    row, column = rank % rows, rank // rows
    of_row = sum(1 << rows * number for number in range(columns))
    of_column = (1 << rows) - 1
    a = SharedCopies(column, _mask(of_row, row)) if columns > 1 else ALONE
    return a, SharedCopies(row, _mask(of_column, column * rows)) if rows > 1 else ALONE


def _mask(blocks: int, first: Index) -> Index:
    return (pd.cast(blocks, u32) << first).to(pd.u16)
