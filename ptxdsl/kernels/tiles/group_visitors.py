"""Tiles of groups of rows whose sizes only the GPU knows: which tile is next, and of which group."""

from __future__ import annotations

from collections.abc import Sequence

import ptxdsl as pd
from ptxdsl import s32, u32
from ptxdsl.kernels.tiles.visitor import (
    EVERY_LANE,
    WARP,
    DeviceVisitor,
    Succeeding,
    from_before,
    from_lane,
    prefix_max,
)
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var


class CountsVisitor(DeviceVisitor):
    """Finds groups by how many rows of each count, s32. Its work is (group, tile, 0): each is a matrix of its own."""

    def __init__(
        self,
        sizes: PointerValue,
        groups: Scalar,
        rows: Scalar,
        tile: tuple[int, Scalar],
        succeeding: Succeeding | None = None,
        halves: bool = False,
    ) -> None:
        """`tile` is (rows of a tile, tiles across). With `halves` two tiles of which a group has half of the rows at
        most may be one."""
        self.sizes, self.most, self.tile = sizes, rows.to(s32), tile
        self.paired = pd.var(u32, 0) if halves else None
        super().__init__(groups, lambda group: self._tiles(self.size(group)), succeeding=succeeding)

    def size(self, group: Scalar) -> Scalar:
        """Of a group, between 0 and the rows that there are."""
        return pd.min(pd.max(self.sizes[group], 0), self.most).to(u32)

    def whole_tiles(self, rows: Scalar) -> Scalar:
        """How many tiles of so many rows are not halved."""
        tile_m, down = self.tile[0], ceil_div(rows, self.tile[0])
        return down if self.paired is None else down - _has_half(rows, tile_m) * self.paired

    def _tiles(self, rows: Scalar) -> tuple[Scalar, Scalar]:
        down, across = ceil_div(rows, self.tile[0]), self.tile[1]
        if self.paired is None:
            return down, across
        whole = self.whole_tiles(rows)
        return whole * across + (down - whole) * ceil_div(across, 2), pd.cast(1, u32)

    def _measure(self, problem: Scalar) -> None:
        if self.paired is not None:
            rows = pd.var(u32, 0)
            with pd.if_(problem < self.problems):
                rows.set(self.size(problem))
            self._pair(self.paired, rows)
        super()._measure(problem)

    def _pair(self, paired: Var, rows: Scalar) -> None:
        """Decides, of the first window, whether halves are paired: where they are all groups, and their tiles leave few
        blocks without one in the last round. Dealt one by one, halves fill it better."""
        with pd.if_((self.following == 0) & (self.problems <= WARP)):
            (tile_m, across), blocks = self.tile, pd.nctaid.x
            down, half = ceil_div(rows, tile_m), _has_half(rows, tile_m)
            items = _in_warp((down - half) * across + half * ceil_div(across, 2))
            idle = ceil_div(items, blocks) * blocks * 2 - _in_warp((down * 2 - half) * across)
            paired.set(pd.select(idle * 5 < blocks * 4, pd.cast(1, u32), 0))

    def work(self) -> Sequence[Scalar]:
        return *super().work(), pd.cast(0, u32)


def _has_half(rows: Scalar, tile_m: int) -> Scalar:
    """1 where the last tile has half of its rows at most, else 0."""
    return ceil_div(rows, tile_m) - (rows + (tile_m // 2 - 1)) // tile_m


def _in_warp(count: Scalar) -> Scalar:
    """The sum over all lanes."""
    total: Scalar = pd.ptx.redux.sync.add.u32(count, EVERY_LANE)
    return total


class OffsetsVisitor(CountsVisitor):
    """Finds groups by where each ends, s32. Its work is (group, tile, first row); its size is where the group ends.

    An offset below one before it is taken for that one, so that no row is of two groups. A group that has rows then has
    the largest offset up to its own, and ends there: what one before it has left is all that must be kept.
    """

    def __init__(
        self,
        sizes: PointerValue,
        groups: Scalar,
        rows: Scalar,
        tile: tuple[int, Scalar],
        succeeding: Succeeding | None = None,
        halves: bool = False,
    ) -> None:
        super().__init__(sizes, groups, rows, tile, succeeding, halves)
        self.first = pd.var(u32, 0)  # row of this lane's group
        self.reached = pd.var(u32, 0)  # the end of all groups up to the window's last

    def _measure(self, problem: Scalar) -> None:
        last = pd.min(problem, self.problems - 1)  # lanes past it find groups without rows
        end = pd.var(u32, pd.max(self.size(last), self.reached))
        with pd.if_(pd.ptx.vote.sync.any.pred(end < from_before(end, 1), EVERY_LANE)):
            end.set(prefix_max(end))
        self.first.set(pd.select(pd.laneid > 0, from_before(end, 1), self.reached))
        self.reached.set(from_lane(end, WARP - 1))
        if self.paired is not None:
            self._pair(self.paired, end - self.first)
        down, across = self._tiles(end - self.first)
        self.count.set(down * across)

    def work(self) -> Sequence[Scalar]:
        group, tile, _ = super().work()
        return group, tile, from_lane(self.first, group % WARP)


VISITORS = {"ragged": OffsetsVisitor, "masked": CountsVisitor}


def check_sizes(sizes: PointerValue, groups: Scalar, rows: Scalar, form: str) -> None:
    """Stops the kernel at sizes that make no sense, before any block has written."""
    for first in pd.range(pd.cast(0, u32), groups, WARP):
        group = first + pd.laneid
        wrong = pd.var(u32, 0)
        with pd.if_(group < groups):
            size, least = sizes[group], pd.var(s32, 0)
            if form == "ragged":
                with pd.if_(group > 0):
                    least.set(sizes[group - 1])
            wrong.set(pd.select((size < least) | (size > rows.to(s32)), pd.cast(1, u32), 0))
        with pd.if_(pd.ptx.vote.sync.any.pred(wrong > 0, EVERY_LANE)):
            pd.ptx.trap()
