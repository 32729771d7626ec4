"""Host-side work of a grouped kernel: the table of problems, and the assignment of tiles to blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ptxdsl.kernels.call.groups.group import ProblemGroup
from ptxdsl.kernels.tiles.visitor import COUNTERS
from ptxdsl.schedule import GroupedProblemVisitor

STRIP = 8  # rows of tiles that blocks go down first, for what L2 still holds
ROW = 12  # numbers that describe a problem
SHARES = 3  # where the tiles stand that it has along M, for the sm_90a path
ADDRESSES = 4, 6, 8, 10  # where those of A, B, C or out in its place, and out stand; behind each, its stride
NO_TABLE = np.zeros(1, np.int32)
ENTRY, PART = 2, 8  # s32 of an entry of the host's table: of a tile, of a part of a tile


class Deal(NamedTuple):
    """An assignment of tiles to blocks. `order` is the order of the problems in their table, None for that of the call.
    `table` is the `schedule` argument of the kernel, with `slots` partial tiles. `shares` are the tiles of each problem
    along M, if the table has them."""

    blocks: int
    total: int
    order: np.ndarray | None
    table: np.ndarray
    slots: int
    shares: np.ndarray | None = None


@lru_cache(maxsize=256)
def deal(shapes: bytes, tile: tuple[int, int, int], resident: int, mode: str, sort: bool) -> Deal:
    """Return the schedule of problems, int64 (M, N, K) each, on at most `resident` blocks."""
    problems = np.frombuffer(shapes, np.int64).reshape(-1, 3)
    if mode == "parts":
        visitor = GroupedProblemVisitor(problems, tile, resident, "host", balance="k", strip=STRIP)
        return Deal(resident, visitor.total, None, *parts_table(visitor))
    tiles = (-(-problems[:, 0] // tile[0]) * -(-problems[:, 1] // tile[1])).sum()
    visitor = GroupedProblemVisitor(problems, tile, min(resident, int(tiles)), mode, sort, strip=STRIP)
    counters = np.zeros(COUNTERS if sort else 0, np.int32)
    if mode == "host":
        return Deal(visitor.blocks, visitor.total, None, np.append(counters, visitor.table), 0)
    return Deal(visitor.blocks, visitor.total, visitor.order, np.append(counters, NO_TABLE), 0)


def describe(group: ProblemGroup) -> np.ndarray:
    """Return the table of the problems, one row each; see `problems.load_product`."""
    rows = np.zeros((len(group.shapes), ROW), np.int64)
    rows[:, :3] = group.shapes
    for column, operand in zip(ADDRESSES, group.operands, strict=True):
        rows[:, column], rows[:, column + 1] = operand.pointers, operand.strides
    return rows


def parts_table(visitor: GroupedProblemVisitor) -> tuple[np.ndarray, int]:
    """Return the int32 table of `PartsVisitor`, and the number of partial tiles.

    An entry is (problem, tile, first and last iteration, first slot of the tile's parts, number of the part, count, 0).
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
