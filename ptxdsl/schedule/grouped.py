"""Grouped GEMM: the tiles of problems of any sizes, or of triangles of outputs, distributed to persistent blocks."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.cached import cached_property
from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import picture_html
from ptxdsl.layout.number import Computed, Extents, Number
from ptxdsl.schedule.arithmetic import counted, minimum
from ptxdsl.schedule.problems import MOST_TILES, Problems, check_block, sizes
from ptxdsl.schedule.timeline import Span, Timeline, check_rows

MODES = ("device", "host")
LEAST_ITERATIONS = 4  # K iterations of a part of a tile; shorter parts do not pay for their reduction
PARTS_OF_A_RUN = 8  # run length from which parts of equal cost are assigned faster together


class GroupedTile(NamedTuple):
    """A tile of one of the problems, and its index along m and n."""

    problem: int
    tile: int
    m: int
    n: int


class WorkColumns(NamedTuple):
    """The work of all blocks, block by block and in order, as one array per field. K is counted in iterations of the
    tile's K.
    """

    block: np.ndarray
    problem: np.ndarray
    tile: np.ndarray
    k_begin: np.ndarray
    k_end: np.ndarray


def tile_of(tile: Number, tiles_n: Number, tiles_m: Number | None = None, strip: int = 1) -> tuple[Computed, Computed]:
    """Return the (m, n) of a tile index in its problem of `tiles_m` by `tiles_n` tiles.

    Tiles are numbered row by row. If `strip` is more than 1, they are numbered in strips of `strip` rows, column by
    column inside a strip.
    """
    if strip == 1:
        row = tile // tiles_n
        return row, tile - row * tiles_n
    per_strip = tiles_n * strip
    number = tile // per_strip
    within, first = tile - number * per_strip, number * strip
    height = minimum(tiles_m - first, strip)
    column = within // height
    return first + (within - column * height), column


class GroupedProblemVisitor:
    """Distribute the tiles of `problems`, a list of (M, N, K), to `blocks` persistent blocks.

    The tiles of all problems are numbered consecutively, problem after problem; inside a problem they are numbered row
    by row, or in strips of `strip` rows (see `tile_of`). Block b computes the tiles b, b + blocks, b + 2·blocks, … .
    With mode="device" a warp finds its problem in the kernel; with mode="host" the kernel reads `table`. sort=True
    orders the problems by descending K. balance="k" balances K iterations instead: the longest tile goes to the least
    loaded block. It splits tiles that are longer than a block's fair share, and the tiles of a last partial wave.

    Problem numbers refer to the caller's list, sorted or not. Raises ScheduleError for invalid sizes.
    """

    def __init__(
        self,
        problems: Problems,
        tile: Extents,
        blocks: int,
        mode: str = "device",
        sort: bool = False,
        balance: str | None = None,
        strip: int = 1,
    ) -> None:
        (self.strip,) = sizes((strip,), "the raster of a problem", ("strip",), least=1)
        self.problems = _shapes(problems)
        self.tile = sizes(tile, "the tile", ("M", "N", "K"), least=1)
        (self.blocks,) = sizes((blocks,), "a persistent grid", ("blocks",), least=1)
        self.mode, self.balance = mode, balance
        self._check_modes()
        self.order = np.argsort(-self.problems[:, 2], kind="stable") if sort or balance else None
        shapes = self.problems if self.order is None else self.problems[self.order]
        self._tiles_m, self._tiles_n, self._iterations = -(-shapes.T // np.array([self.tile]).T)
        self._counts = self._count()
        self._ends = self._counts.cumsum()
        self._starts = self._ends - self._counts
        self._numbers = np.arange(len(shapes)) if self.order is None else self.order
        if self.total > MOST_TILES:
            raise ScheduleError(
                f"{len(shapes)} problems have {self.total} tiles, more than 2**31",
                help="take larger tiles, or compute the problems in parts",
            )

    def _check_modes(self) -> None:
        if self.mode not in MODES:
            raise ScheduleError(f"mode is {self.mode!r}", help='take "device" or "host"')
        if self.balance not in (None, "k"):
            raise ScheduleError(f"balance is {self.balance!r}", help='take "k", or leave it out')
        if self.balance and self.mode == "device":
            raise ScheduleError(
                'balance="k" cannot be computed in the kernel: it depends on the load of all blocks',
                help='use mode="host", which passes a table to the kernel',
            )

    @classmethod
    def of_sizes(
        cls, m: Sequence[int], n: Sequence[int], k: Sequence[int], tile: Extents, blocks: int, **options: Any
    ) -> GroupedProblemVisitor:
        """Create a visitor from a list of all M, one of all N and one of all K."""
        if not len(m) == len(n) == len(k):
            raise ScheduleError(
                f"lists of different length: {len(m)} sizes M, {len(n)} sizes N, {len(k)} sizes K",
                help="give each list one size for each problem",
            )
        return cls(list(zip(m, n, k, strict=True)), tile, blocks, **options)

    def _count(self) -> np.ndarray:
        """Return the number of tiles of each problem."""
        return self._tiles_m * self._tiles_n

    def _positions(self, where: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the (m, n) of tiles; `where` is the position of each tile's problem in the order."""
        return tile_of(tile, self._tiles_n[where], self._tiles_m[where], self.strip)

    @property
    def total(self) -> int:
        """The number of tiles of all problems."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def tiles(self, block: int) -> list[GroupedTile]:
        """Return the tiles that one block computes, in order; a split tile appears once for each of its parts."""
        check_block(block, self.blocks)
        if self.balance:
            where, tile = (part[self._parts[0] == block] for part in self._parts[1:3])
        else:
            number = np.arange(block, self.total, self.blocks)
            where = self._ends.searchsorted(number, side="right")
            tile = number - self._starts[where]
        columns = (self._numbers[where], tile, *self._positions(where, tile))
        return [GroupedTile(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    @property
    def work(self) -> WorkColumns:
        """The work of all blocks."""
        block, where, tile, begin, end = self._parts
        return WorkColumns(block, self._numbers[where], tile, begin, end)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, ...]:
        """The columns of `work`, with positions in the order instead of problem numbers."""
        where = np.arange(len(self._counts)).repeat(self._counts)
        tile = np.arange(self.total) - self._starts[where]
        iterations = self._iterations[where]
        parts: Parts = (where, tile, np.zeros_like(tile), iterations)
        if self.balance:
            block, parts = _balance(parts, self.blocks)
        else:
            block = np.arange(self.total) % self.blocks
        by_block = block.argsort(kind="stable")
        return (block[by_block], *(part[by_block] for part in parts))

    @property
    def load(self) -> np.ndarray:
        """The K iterations of each block."""
        work = self.work
        lengths = work.k_end - work.k_begin
        return np.bincount(work.block, weights=lengths, minlength=self.blocks).astype(np.int64)

    @cached_property
    def table(self) -> np.ndarray:
        """The table that the kernel reads with mode="host": int32 (blocks, entries, 2) or, with balance="k", (…, 4).

        An entry is (problem, index of the problem's first tile); entry i of block b describes tile b + i·blocks. With
        balance="k" it is (problem, tile, first K iteration, end of the K iterations), and unused entries have the
        problem -1.
        """
        return self._table_of_parts() if self.balance else self._table_of_rounds()

    def _table_of_rounds(self) -> np.ndarray:
        """Return the table of whole tiles; an entry is moved as one integer, with the problem in its low half and the
        first tile in its high half.
        """
        total, rounds = self.total, -(-self.total // self.blocks)
        entries = np.zeros(rounds * self.blocks, "<i8")
        entries[:total] = (self._numbers | self._starts << 32).repeat(self._counts)
        return entries.reshape(rounds, self.blocks).T.copy().view("<i4").reshape(self.blocks, rounds, 2)

    def _table_of_parts(self) -> np.ndarray:
        work = self.work
        counts = np.bincount(work.block, minlength=self.blocks)
        table = np.full((self.blocks, int(counts.max()), 4), -1, np.int32)
        position = np.arange(len(work.block)) - (counts.cumsum() - counts)[work.block]
        table[work.block, position] = np.stack(work[1:], axis=1)
        return table

    @property
    def workspace_bytes(self) -> int:
        """The size in bytes of the table that the kernel reads; 0 with mode="device"."""
        return self.table.nbytes if self.mode == "host" else 0

    def _repr_html_(self) -> str:
        return picture_html(self._svg)

    def _svg(self) -> str:
        check_rows(self.blocks, "block", self.total)  # before the spans are created
        return self.timeline().to_svg()

    def timeline(self) -> Timeline:
        """Return a timeline of the blocks over K iterations."""
        work = self.work
        rows: list[list[Span]] = [[] for _ in range(self.blocks)]
        columns = (column.tolist() for column in work)
        for block, problem, tile, begin, end in zip(*columns, strict=True):
            rows[block].append(Span(end - begin, f"{problem}.{tile}", problem))
        name = f"{counted(len(self.problems), 'problem')} on {counted(self.blocks, 'block')}"
        return Timeline(name, tuple(map(tuple, rows)))


def _shapes(problems: Problems) -> np.ndarray:
    """Return the validated problems as int64 (problems, 3)."""
    if not len(problems):
        return np.empty((0, 3), np.int64)
    try:
        shapes = np.asarray(problems)
    except ValueError:  # lists of different lengths
        shapes = np.empty(0)
    if shapes.ndim != 2 or shapes.shape[1] != 3 or shapes.dtype.kind not in "iu" or shapes.min() < 0:
        _refuse_first(problems)
    return shapes.astype(np.int64, copy=False)


def _refuse_first(problems: Problems) -> None:
    """Raise ScheduleError for the first invalid problem."""
    for number, problem in enumerate(problems):
        sizes(problem, f"problem {number}", ("M", "N", "K"))


Parts = tuple[np.ndarray, ...]
"""One array for each of (where, tile, k_begin, k_end)."""


def _balance(parts: Parts, blocks: int) -> tuple[np.ndarray, Parts]:
    """Split tiles that are longer than a block's fair share; return the block of each part, and the parts.

    The tiles of a last partial wave are split for all blocks if this saves more iterations than the reduction costs.
    """
    total = int((parts[3] - parts[2]).sum())
    parts = _cut(parts, max(LEAST_ITERATIONS, -(-total // blocks)))
    lengths = parts[3] - parts[2]
    block = _deal_longest_first(lengths, blocks)
    rest = len(block) % blocks
    if not rest:
        return block, parts
    most = max(LEAST_ITERATIONS, -(-int(lengths[-rest:].sum()) // blocks))
    small = _cut(tuple(column[-rest:] for column in parts), most)
    finer = _sorted(tuple(np.concatenate((column[:-rest], new)) for column, new in zip(parts, small, strict=True)))
    dealt = _deal_longest_first(finer[3] - finer[2], blocks)
    gain = _longest(block, lengths) - _longest(dealt, finer[3] - finer[2])
    return (dealt, finer) if gain > LEAST_ITERATIONS else (block, parts)


def _longest(block: np.ndarray, lengths: np.ndarray) -> int:
    """Return the largest load of a block."""
    return int(np.bincount(block, weights=lengths).max(initial=0))


def _cut(parts: Parts, most: int) -> Parts:
    """Split into equal parts of at most `most` iterations, and sort them longest first."""
    begin, lengths = parts[2], parts[3] - parts[2]
    count = np.maximum(1, -(-lengths // most))
    part = np.arange(count.sum()) - (count.cumsum() - count).repeat(count)
    where, tile, begin, lengths, count = (column.repeat(count) for column in (*parts[:2], begin, lengths, count))
    return _sorted((where, tile, begin + lengths * part // count, begin + lengths * (part + 1) // count))


def _sorted(parts: Parts) -> Parts:
    longest = (parts[2] - parts[3]).argsort(kind="stable")
    return tuple(column[longest] for column in parts)


def _deal_longest_first(lengths: np.ndarray, blocks: int) -> np.ndarray:
    """Return the block of each part, assigning the longest part first to the block with the smallest load.

    Ties go to the first block. A part without K iterations costs as much as one iteration.
    """
    costs = np.maximum(lengths, 1)
    ends = np.append(np.flatnonzero(np.diff(costs)) + 1, len(costs))
    if len(ends) * PARTS_OF_A_RUN > len(costs):
        return _deal_one_by_one(costs, blocks)
    loads, dealt, begin = np.zeros(blocks, np.int64), np.empty(len(costs), np.int64), 0
    for end in ends.tolist():
        if end > begin:
            dealt[begin:end] = _deal_equal(loads, int(costs[begin]), end - begin)
            begin = end
    return dealt


def _deal_one_by_one(costs: np.ndarray, blocks: int) -> np.ndarray:
    loads = [(0, block) for block in range(blocks)]
    dealt = []
    for cost in costs.tolist():
        load, block = loads[0]
        dealt.append(block)
        heapreplace(loads, (load + cost, block))
    return np.array(dealt, np.int64)


def _deal_equal(loads: np.ndarray, cost: int, count: int) -> np.ndarray:
    """Assign `count` parts of equal cost with the result of `_deal_one_by_one`, by sorting the loads."""
    blocks = len(loads)
    rounds = min(count, int(loads.max() - loads.min()) // cost + -(-count // blocks) + 1)
    starts = (loads[:, None] + cost * np.arange(rounds)) * blocks + np.arange(blocks)[:, None]
    block = np.sort(starts, axis=None)[:count] % blocks
    loads += cost * np.bincount(block, minlength=blocks)
    return block


class TriangularProblemVisitor(GroupedProblemVisitor):
    """GroupedProblemVisitor for the tiles that touch the lower (or upper) triangle of square problems.

    Tiles that are not square are grouped into squares. A group may extend past the problem; a tile with an
    out-of-bounds m or n must be skipped.
    """

    def __init__(
        self,
        problems: Problems,
        tile: Extents,
        blocks: int,
        *,
        triangle: str = "lower",
        **options: Any,
    ) -> None:
        if triangle not in ("lower", "upper"):
            raise ScheduleError(f"triangle is {triangle!r}", help='take "lower" or "upper"')
        long, short = max(tile[:2]), min(tile[:2])
        if short < 1 or long % short:
            raise ScheduleError(
                f"the tile is {tile[0]} x {tile[1]}: the longer side must be a multiple of the shorter one",
                help="use a tile such as 128 x 64",
            )
        self.triangle, self.group = triangle, long // short
        super().__init__(problems, tile, blocks, **options)
        for number, (m, n, _) in enumerate(self.problems.tolist()):
            if m != n:
                raise ScheduleError(
                    f"problem {number} is {m} x {n}, but a triangle needs a square output",
                    help=("use equal M and N for a rank-k update"),
                )

    def _count(self) -> np.ndarray:
        """Return the number of squares on and below the diagonal, times the tiles of each square."""
        squares = np.minimum(self._tiles_m, self._tiles_n)
        return squares * (squares + 1) // 2 * self.group

    def _positions(self, where: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        square, part = tile // self.group, tile % self.group
        row = _triangle_row(square)
        column = square - row * (row + 1) // 2
        if self.triangle == "upper":
            row, column = column, row
        if self.tile[0] < self.tile[1]:
            return row * self.group + part, column
        return row, column * self.group + part


def _triangle_row(number: np.ndarray) -> np.ndarray:
    """Return the row of each cell of a triangle numbered row by row; exact for numbers below 2**31."""
    row: np.ndarray = (np.sqrt(8.0 * number + 1) - 1) // 2
    return row.astype(np.int64)
