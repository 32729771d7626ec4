"""Visitors of groups of rows whose sizes only the GPU knows: the next tile, and its group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


class CountsVisitor(DeviceVisitor):
    """Finds groups by their numbers of rows, s32. Its work is (group, tile, 0): each group is a matrix of its own."""

    def __init__(
        self,
        sizes: PointerValue,
        groups: Scalar,
        rows: Scalar,
        tile: tuple[int, Scalar],
        succeeding: Succeeding | None = None,
    ) -> None:
        """`tile` is (rows of a tile, tiles along N)."""
        self.sizes, self.most, self.tile = sizes, rows.to(s32), tile
        super().__init__(groups, lambda group: self.tiles(self.size(group)), succeeding=succeeding)

    def size(self, group: Scalar) -> Scalar:
        """Return the size of a group, clamped to the rows that exist."""
        return pd.min(pd.max(self.sizes[group], 0), self.most).to(u32)

    def tiles(self, rows: Scalar) -> tuple[Scalar, Scalar]:
        """Return the number of tiles along M and N of a group of this many rows."""
        return ceil_div(rows, self.tile[0]), self.tile[1]

    def work(self) -> Sequence[Scalar]:
        number, tile = super().work()
        return number, tile, self.first_row(number % WARP)

    def first_row(self, lane: Scalar) -> Scalar:
        """Return the first row of the group of a lane."""
        return pd.cast(0, u32)


class OffsetsVisitor(CountsVisitor):
    """Finds groups by their end offsets, s32. Its work is (group, tile, first row); its size is the end of the group.

    An offset below an earlier one counts as that one, so that no row belongs to two groups. A group with rows then has
    the largest offset so far, and ends there: only the maximum must be kept.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.first = pd.var(u32, 0)  # first row of this lane's group
        self.reached = pd.var(u32, 0)  # the end of all groups up to the window's last

    def _measure(self, problem: Scalar) -> None:
        last = pd.min(problem, self.problems - 1)  # lanes past it have groups without rows
        end = pd.var(u32, pd.max(self.size(last), self.reached))
        with pd.if_(pd.ptx.vote.sync.any.pred(end < from_before(end, 1), EVERY_LANE)):
            end.set(prefix_max(end))
        self.first.set(pd.select(pd.laneid > 0, from_before(end, 1), self.reached))
        self.reached.set(from_lane(end, WARP - 1))
        down, across = self.tiles(end - self.first)
        self.count.set(down * across)

    def first_row(self, lane: Scalar) -> Scalar:
        return from_lane(self.first, lane)


VISITORS = {"ragged": OffsetsVisitor, "masked": CountsVisitor}


def check_sizes(sizes: PointerValue, groups: Scalar, rows: Scalar, form: str, unit: int = 1) -> None:
    """Trap at invalid sizes, before any block has written. If groups begin at multiples of a `unit`, only the end of
    the last row may be another number."""
    for first in pd.range(pd.cast(0, u32), groups, WARP):
        group = first + pd.laneid
        wrong = pd.var(u32, 0)
        with pd.if_(group < groups):
            size, least = sizes[group], pd.var(s32, 0)
            if form == "ragged":
                with pd.if_(group > 0):
                    least.set(sizes[group - 1])
            is_wrong = (size < least) | (size > rows.to(s32))
            if unit > 1:
                is_wrong = is_wrong | ((size % unit != 0) & (size != rows.to(s32)))
            wrong.set(pd.select(is_wrong, pd.cast(1, u32), 0))
        with pd.if_(pd.ptx.vote.sync.any.pred(wrong > 0, EVERY_LANE)):
            pd.ptx.trap()
