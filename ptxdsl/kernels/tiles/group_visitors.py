"""Visitors of groups of rows whose sizes only the GPU knows: the next tile, and its group."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import f32, s32, u32
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

STEP = 16  # rows between the sizes of shares that are tried
STORED = 12.0  # rows that could be multiplied while a tile is stored


class Division(NamedTuple):
    """The division of groups into tiles. With `halves`, two tiles of which a group has at most half of the rows may be
    one; with `shares`, the tiles of a group have about the same number of rows."""

    halves: bool = False
    shares: bool = False


WHOLE = Division()


class CountsVisitor(DeviceVisitor):
    """Finds groups by their numbers of rows, s32. Its work is (group, tile, 0): each group is a matrix of its own."""

    def __init__(
        self,
        sizes: PointerValue,
        groups: Scalar,
        rows: Scalar,
        tile: tuple[int, Scalar],
        succeeding: Succeeding | None = None,
        division: Division = WHOLE,
    ) -> None:
        """`tile` is (rows of a tile, tiles along N)."""
        self.sizes, self.most, self.tile = sizes, rows.to(s32), tile
        self.paired = pd.var(u32, 0) if division.halves else None
        self.share = pd.var(u32, tile[0]) if division.shares else None  # the most rows of a tile
        super().__init__(groups, lambda group: self._tiles(self.size(group)), succeeding=succeeding)
        self._hold()

    def _hold(self) -> None:
        """Allocate the registers for further properties of groups."""

    def size(self, group: Scalar) -> Scalar:
        """Return the size of a group, clamped to the rows that exist."""
        return pd.min(pd.max(self.sizes[group], 0), self.most).to(u32)

    def down(self, rows: Scalar) -> Scalar:
        """Return the number of tiles for the rows of a group."""
        return ceil_div(rows, self.tile[0] if self.share is None else self.share)

    def whole_tiles(self, rows: Scalar) -> Scalar:
        """Return the number of tiles that are not halved."""
        down = self.down(rows)
        return down if self.paired is None else down - _has_half(rows, self.tile[0]) * self.paired

    def _tiles(self, rows: Scalar) -> tuple[Scalar, Scalar]:
        down, across = self.down(rows), self.tile[1]
        if self.paired is None:
            return down, across
        whole = self.whole_tiles(rows)
        return whole * across + (down - whole) * ceil_div(across, 2), pd.cast(1, u32)

    def _measure(self, problem: Scalar) -> None:
        rows = pd.var(u32, 0)
        with pd.if_(problem < self.problems):
            rows.set(self.size(problem))
        self._count(rows)

    def _count(self, rows: Scalar) -> None:
        """Set the number of tiles of this lane's group, given its rows."""
        if self.paired is not None:
            self._pair(self.paired, rows)
        if self.share is not None:
            with pd.if_((self.following == 0) & (self.problems <= WARP)):
                choose_share(self.share, rows, *self.tile)
        down, across = self._tiles(rows)
        self.count.set(down * across)

    def _pair(self, paired: Var, rows: Scalar) -> None:
        """Decide at the first window whether halves are paired: if it has all groups, and their tiles leave few blocks
        idle in the last wave. Single halves fill it better otherwise."""
        with pd.if_((self.following == 0) & (self.problems <= WARP)):
            (tile_m, across), blocks = self.tile, pd.nctaid.x
            down, half = ceil_div(rows, tile_m), _has_half(rows, tile_m)
            items = _in_warp((down - half) * across + half * ceil_div(across, 2))
            idle = ceil_div(items, blocks) * blocks * 2 - _in_warp((down * 2 - half) * across)
            paired.set(pd.select(idle * 5 < blocks * 4, pd.cast(1, u32), 0))

    def work(self) -> Sequence[Scalar]:
        number, tile = super().work()
        return number, tile, self._first(number % WARP)

    def _first(self, lane: Scalar) -> Scalar:
        """Return the first row of the group of a lane."""
        return pd.cast(0, u32)


def choose_share(most: Var, rows: Scalar, tile_m: int, across: Scalar) -> None:
    """Set the largest share of a tile, at most `tile_m` rows, by the number of waves, each as long as a tile of average
    height; `rows` are those of this lane's group. A share is less than a tile if that makes the waves fit better."""
    blocks, least = pd.nctaid.x, pd.var(f32, inf)
    all_rows = (_in_warp(rows) * across).to(f32)
    for share in range(tile_m, tile_m * 3 // 4 - 1, -STEP):
        tiles = _in_warp(ceil_div(rows, share)) * across
        height = all_rows * pd.ptx.rcp.approx.ftz.f32(tiles.to(f32))  # a division would be a function call
        time = ceil_div(tiles, blocks).to(f32) * (height + STORED)
        with pd.if_(time < least):
            least.set(time)
            most.set(share)


def _has_half(rows: Scalar, tile_m: int) -> Scalar:
    """Return 1 if the last tile has at most half of its rows, else 0."""
    return ceil_div(rows, tile_m) - (rows + (tile_m // 2 - 1)) // tile_m


def _in_warp(count: Scalar) -> Scalar:
    """Return the sum over all lanes."""
    total: Scalar = pd.ptx.redux.sync.add.u32(count, EVERY_LANE)
    return total


class OffsetsVisitor(CountsVisitor):
    """Finds groups by their end offsets, s32. Its work is (group, tile, first row); its size is the end of the group.

    An offset below an earlier one counts as that one, so that no row belongs to two groups. A group with rows then has
    the largest offset so far, and ends there: only the maximum must be kept.
    """

    def _hold(self) -> None:
        self.first = pd.var(u32, 0)  # first row of this lane's group
        self.reached = pd.var(u32, 0)  # the end of all groups up to the window's last

    def _measure(self, problem: Scalar) -> None:
        last = pd.min(problem, self.problems - 1)  # lanes past it have groups without rows
        end = pd.var(u32, pd.max(self.size(last), self.reached))
        with pd.if_(pd.ptx.vote.sync.any.pred(end < from_before(end, 1), EVERY_LANE)):
            end.set(prefix_max(end))
        self.first.set(pd.select(pd.laneid > 0, from_before(end, 1), self.reached))
        self.reached.set(from_lane(end, WARP - 1))
        self._count(end - self.first)

    def _first(self, lane: Scalar) -> Scalar:
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
