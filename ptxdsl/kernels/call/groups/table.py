"""Host-side work of a grouped kernel: the table of problems, and the assignment of tiles to blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ptxdsl.kernels.call.groups.group import ProblemGroup
from ptxdsl.kernels.tiles.visitor import COUNTERS
from ptxdsl.schedule import GroupedProblemVisitor

STRIP = 8  # rows of tiles in a strip, walked column by column for reuse in L2
ROW = 12  # columns of the problem table: M, N, K, tiles along M, then an address and a stride per operand
TILES_ALONG_M = 3  # column, read by the sm_90a path
ADDRESSES = 4, 6, 8, 10  # columns of the addresses of A, B, C (or out) and out; each is followed by its stride
NO_TABLE = np.zeros(1, np.int32)
ENTRY, PART = 2, 8  # int32 numbers per entry of the host table: of a tile, of a part of a tile


class TileAssignment(NamedTuple):
    """An assignment of tiles to blocks. `order` is the order of the problems in their table, None for the order of the
    call. `table` is the `schedule` argument of the kernel, with `slots` partial tiles. `tiles_along_m` has the tiles of
    each problem along M on the sm_90a path."""

    blocks: int
    total: int
    order: np.ndarray | None
    table: np.ndarray
    slots: int
    tiles_along_m: np.ndarray | None = None


@lru_cache(maxsize=256)
def assign_tiles(shapes: bytes, tile: tuple[int, int, int], resident: int, mode: str, sort: bool) -> TileAssignment:
    """Assign the tiles of problems to up to `resident` blocks. `shapes` are the bytes of an int64 array of (M, N,
    K)."""
    problems = np.frombuffer(shapes, np.int64).reshape(-1, 3)
    if mode == "parts":
        visitor = GroupedProblemVisitor(problems, tile, resident, "host", balance="k", strip=STRIP)
        return TileAssignment(resident, visitor.total, None, *parts_table(visitor))
    tiles = (-(-problems[:, 0] // tile[0]) * -(-problems[:, 1] // tile[1])).sum()
    visitor = GroupedProblemVisitor(problems, tile, min(resident, int(tiles)), mode, sort, strip=STRIP)
    counters = np.zeros(COUNTERS if sort else 0, np.int32)
    if mode == "host":
        return TileAssignment(visitor.blocks, visitor.total, None, np.append(counters, visitor.table), 0)
    return TileAssignment(visitor.blocks, visitor.total, visitor.order, np.append(counters, NO_TABLE), 0)


def problem_table(group: ProblemGroup) -> np.ndarray:
    """Return the table of the problems, one row per problem; `problems.load_product` reads it."""
    rows = np.zeros((len(group.shapes), ROW), np.int64)
    rows[:, :3] = group.shapes
    for column, operand in zip(ADDRESSES, group.operands, strict=True):
        rows[:, column], rows[:, column + 1] = operand.pointers, operand.strides
    return rows


def parts_table(visitor: GroupedProblemVisitor) -> tuple[np.ndarray, int]:
    """Return the int32 table of `PartsVisitor`, and the number of partial tiles.

    An entry is (problem, tile, first iteration, end iteration, first slot of the tile, part number, part count, 0).
    """
    block, problem, tile, begin, end = visitor.work
    by_tile = np.lexsort((begin, tile, problem))
    starts = np.flatnonzero(begin[by_tile] == 0)
    count = np.diff(np.append(starts, len(begin)))
    slots = np.where(count > 1, count, 0)
    columns = np.empty((len(begin), 3), np.int64)  # slot, number, count
    columns[by_tile, 0] = (slots.cumsum() - slots).repeat(count)
    columns[by_tile, 1] = np.arange(len(begin)) - starts.repeat(count)
    columns[by_tile, 2] = count.repeat(count)
    entries = np.zeros((len(begin), PART), np.int32)
    entries[:, :7] = np.column_stack((problem, tile, begin, end, columns))
    firsts = np.searchsorted(block, np.arange(visitor.blocks + 1)).astype(np.int32)
    return np.concatenate((firsts, entries.reshape(-1))), int(slots.sum())
