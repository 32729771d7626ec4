"""Tiles of groups of rows whose sizes only the GPU knows: which tile is next, and of which group."""

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

STEP = 16  # by which the largest shares differ that are tried
STORED = 12.0  # rows that a tile might have had in the time in which it is stored


class Division(NamedTuple):
    """How groups are cut into tiles. With `halves` two tiles of which a group has half of the rows at most may be one;
    with `shares` all tiles of a group have about as many rows. So many `blocks` take neighbouring tiles together."""

    halves: bool = False
    shares: bool = False
    blocks: int = 1


WHOLE = Division()


class CountsVisitor(DeviceVisitor):
    """Finds groups by how many rows of each count, s32. Its work is (group, tile, 0): each is a matrix of its own."""

    def __init__(
        self,
        sizes: PointerValue,
        groups: Scalar,
        rows: Scalar,
        tile: tuple[int, Scalar],
        succeeding: Succeeding | None = None,
        division: Division = WHOLE,
    ) -> None:
        """`tile` is (rows of a tile, tiles across)."""
        self.sizes, self.most, self.tile = sizes, rows.to(s32), tile
        self.paired = pd.var(u32, 0) if division.halves else None
        self.shares = Shares(tile, division.blocks) if division.shares else None
        block = pd.ctaid.x if division.blocks == 1 else pd.ctaid.x // division.blocks
        super().__init__(groups, lambda group: self._tiles(self.size(group)), block, succeeding)
        self._hold()

    def _hold(self) -> None:
        """Makes the registers of what is held of groups beside their sizes."""

    def size(self, group: Scalar) -> Scalar:
        """Of a group, between 0 and the rows that there are."""
        return pd.min(pd.max(self.sizes[group], 0), self.most).to(u32)

    def down(self, rows: Scalar) -> Scalar:
        """How many tiles there are of so many rows of a group."""
        return ceil_div(rows, self.shares.most if self.shares else self.tile[0])

    def whole_tiles(self, rows: Scalar) -> Scalar:
        """How many tiles of so many rows are not halved."""
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
        self._count(problem, rows)

    def _count(self, problem: Scalar, rows: Scalar) -> None:
        """Sets how many tiles this lane's group has, which has so many rows."""
        if self.paired is not None:
            self._pair(self.paired, rows)
        if self.shares:
            with pd.if_((self.following == 0) & (self.problems <= WARP)):
                self.shares.choose(rows)
        down, across = self._tiles(rows)
        self.count.set(down * across)
        if self.shares:
            self.shares.sort(problem, rows // pd.max(down, 1), self._of_lane())

    def _of_lane(self) -> list[Var]:
        """What a lane keeps of its group."""
        return [self.count]

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
        number, tile = super().work()
        lane = number % WARP
        return from_lane(self.shares.group, lane) if self.shares else number, tile, self._first(lane)

    def _first(self, lane: Scalar) -> Scalar:
        """The first row of the group that a lane has."""
        return pd.cast(0, u32)


class Shares:
    """Even shares that the tiles of a group have of its rows, and in which order groups are taken.

    Of so many rows a tile has at `most`, less than it might have where rounds of tiles come out better then: where the
    groups of a warp are all there are. The largest shares are taken first, so that the last round is a short one.
    """

    def __init__(self, tile: tuple[int, Scalar], blocks: int) -> None:
        """So many `blocks` take tiles together."""
        (self.tile_m, self.across), self.blocks = tile, blocks
        self.most: Var = pd.var(u32, self.tile_m)
        self.group: Var = pd.var(u32, 0)  # that a lane has

    def choose(self, rows: Scalar) -> None:
        """By the rounds that there are, each of which takes as long as a tile of average height."""
        takers, least = pd.nctaid.x // self.blocks, pd.var(f32, inf)
        all_rows = (_in_warp(rows) * self.across).to(f32)
        for most in range(self.tile_m, self.tile_m * 3 // 4 - 1, -STEP):
            tiles = _in_warp(ceil_div(rows, most)) * self.across
            height = all_rows * pd.ptx.rcp.approx.ftz.f32(tiles.to(f32))  # a division would be a call beside wgmma
            time = ceil_div(tiles, takers).to(f32) * (height + STORED)
            with pd.if_(time < least):
                least.set(time)
                self.most.set(most)

    def sort(self, group: Scalar, share: Scalar, values: Sequence[Var]) -> None:
        """Exchanges what lanes have of groups, so that the first ones have those with the largest shares."""
        self.group.set(group)
        key, rank, source = share * WARP + (WARP - 1 - pd.laneid), pd.var(u32, 0), pd.var(u32, 0)
        for lane in range(WARP):
            rank += pd.select(from_lane(key, lane) > key, pd.cast(1, u32), 0)
        for lane in range(WARP):
            source.set(pd.select(from_lane(rank, lane) == pd.laneid, pd.cast(lane, u32), source))
        for value in (self.group, *values):
            value.set(from_lane(value, source))


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

    def _hold(self) -> None:
        self.first = pd.var(u32, 0)  # row of this lane's group
        self.reached = pd.var(u32, 0)  # the end of all groups up to the window's last

    def _measure(self, problem: Scalar) -> None:
        last = pd.min(problem, self.problems - 1)  # lanes past it find groups without rows
        end = pd.var(u32, pd.max(self.size(last), self.reached))
        with pd.if_(pd.ptx.vote.sync.any.pred(end < from_before(end, 1), EVERY_LANE)):
            end.set(prefix_max(end))
        self.first.set(pd.select(pd.laneid > 0, from_before(end, 1), self.reached))
        self.reached.set(from_lane(end, WARP - 1))
        self._count(problem, end - self.first)

    def _of_lane(self) -> list[Var]:
        return [*super()._of_lane(), self.first]

    def _first(self, lane: Scalar) -> Scalar:
        return from_lane(self.first, lane)


VISITORS = {"ragged": OffsetsVisitor, "masked": CountsVisitor}


def check_sizes(sizes: PointerValue, groups: Scalar, rows: Scalar, form: str, unit: int = 1) -> None:
    """Stops the kernel at sizes that make no sense, before any block has written. Where groups begin at multiples of a
    `unit`, only the last row may be the end of one at another number."""
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
