"""Visitors of grouped problems in a kernel, which find the next tile of a persistent block, and its problem.

    visitor = DeviceVisitor(problems, tiles_of)
    with pd.while_(visitor.next_tile):
        work = visitor.work()
        …
        visitor.advance()

`schedule.GroupedProblemVisitor` gives the same tiles on the host, block by block; `seat` may number the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import ptxdsl as pd
from ptxdsl import s32, u32
from ptxdsl.kernels.product.product import Index
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

WARP = 32
DISTANCES = 1, 2, 4, 8, 16  # between lanes, in the steps of a prefix sum
EVERY_LANE = 0xFFFFFFFF
ENDS, COUNTERS = 2, 256  # counters of `seat`: two for all blocks, and in total with one a multiprocessor


Succeeding: TypeAlias = Callable[[], Scalar]
"""The number of a block's next tile."""


def seat(counters: PointerValue) -> Scalar:
    """Return a number for this block: the lowest for the first block of each multiprocessor, the highest for the
    others.

    A GPU may give a multiprocessor its second block before another has its first. If the longest tiles have the lowest
    numbers, two of them would then share a multiprocessor, at half the speed. Takes COUNTERS u32, all 0. On a GPU with
    more multiprocessors than that, numbers are still unique.
    """
    seats = pd.dynamic_shared(u32, 1)
    with pd.if_(pd.tid.x == 0):
        number = pd.var(u32, 0)
        neighbours = _count(counters + (ENDS + pd.special("%smid") % (COUNTERS - ENDS)))
        with pd.if_(neighbours == 0):
            number.set(_count(counters))
        with pd.else_():
            number.set(pd.nctaid.x - 1 - _count(counters + 1))
        seats[0] = number
    pd.ptx.bar.sync(0)
    return seats[0]


def _count(counter: PointerValue) -> Scalar:
    """Return how many came before this thread."""
    return pd.ptx.atom.relaxed.gpu.global_.add.u32(counter, 1)


class Visitor(Protocol):
    """Finds the tiles of a block, one after another."""

    def next_tile(self) -> Scalar:
        """Return whether this block has a tile left. For the condition of a loop."""

    def work(self) -> Sequence[Scalar]:
        """Return the words from which the kernel locates the tile."""

    def advance(self) -> None:
        """Advance to the next tile."""


class DeviceVisitor:
    """Each warp finds its problem by itself: a prefix sum over the tiles of 32 problems, one a lane, and a vote."""

    def __init__(
        self,
        problems: Scalar,
        tiles_of: Callable[[Scalar], tuple[Scalar, Scalar]],
        block: Scalar = pd.ctaid.x,
        succeeding: Succeeding | None = None,
    ) -> None:
        """`tiles_of(problem)` returns the number of tiles along m and n, each a u32, for a different problem in each
        lane.

        It is not called for problems past the last one. `block` is the number of this block and of its first tile.
        Without `succeeding`, the next tile of a block is as many tiles further as there are blocks.
        """
        self.problems, self.tiles_of, self.succeeding = problems, tiles_of, succeeding
        self.index = pd.var(u32, block)
        self.following = pd.var(u32, 0)  # the first problem after the window of 32
        self.last = pd.var(u32, 0)  # the end of the tiles of the window, among all tiles
        self.end = pd.var(u32, 0)  # the end of those of this lane's problem
        self.count = pd.var(u32, 0)

    def next_tile(self) -> Scalar:
        """Return whether this block has a tile left. For the condition of a loop."""
        with pd.while_(lambda: (self.index >= self.last) & (self.following < self.problems)):
            self._next_window()
        return self.index < self.last

    def _next_window(self) -> None:
        self._measure(self.following + pd.laneid)
        self.end.set(self.last + prefix_sum(self.count))
        self.last.set(from_lane(self.end, WARP - 1))
        self.following += WARP

    def _measure(self, problem: Scalar) -> None:
        """Set the number of tiles of this lane's problem."""
        self.count.set(0)
        with pd.if_(problem < self.problems):
            down, across = self.tiles_of(problem)
            self.count.set(down * across)

    def work(self) -> Sequence[Scalar]:
        """Return the problem of this round, and the number of the tile in it."""
        before = pd.ptx.popc.b32(pd.ptx.vote.sync.ballot.b32(self.end <= self.index, EVERY_LANE)).to(u32)
        return self.following - WARP + before, self.index - from_lane(self.end - self.count, before)

    def advance(self) -> None:
        if self.succeeding:
            self.index.set(self.succeeding())
        else:
            self.index += pd.nctaid.x


def prefix_sum(value: Scalar) -> Scalar:
    """Return the sum of this lane's u32 and those of all lanes before it."""
    total = pd.var(u32, value)
    for distance in DISTANCES:
        before = from_before(total, distance)
        total += pd.select(pd.laneid >= distance, before, 0)
    return total


def prefix_max(value: Scalar) -> Scalar:
    """Return the largest of this lane's u32 and those of all lanes before it."""
    largest = pd.var(u32, value)
    for distance in DISTANCES:
        largest.set(pd.max(largest, from_before(largest, distance)))
    return largest


def from_before(value: Scalar, distance: int) -> Scalar:
    """Return the u32 of the lane `distance` before this one, or its own if there is none."""
    return pd.ptx.shfl.sync.up.b32(value, distance, 0, EVERY_LANE)


def from_lane(value: Scalar, lane: Index) -> Scalar:
    """Return the u32 of another lane."""
    return pd.ptx.shfl.sync.idx.b32(value, lane, WARP - 1, EVERY_LANE)


class TableVisitor:
    """Tiles that the host has assigned; the block loads its entries to shared memory, `threads` at a time."""

    def __init__(self, row: PointerValue, count: Scalar, words: int, threads: int) -> None:
        """`row` points at the `count` entries of this block, of `words` s32 each."""
        self.row, self.count, self.words, self.threads = row, count, words, threads
        self.number = pd.var(u32, 0)
        self.held = pd.dynamic_shared(s32, threads * words)

    def next_tile(self) -> Scalar:
        """Return whether this block has an entry left. For the condition of a loop in which all threads take part."""
        with pd.if_((self.number % self.threads == 0) & (self.number < self.count)):
            self._refill()
        return self.number < self.count

    def _refill(self) -> None:
        pd.ptx.bar.sync(0)  # all have read the entries before these
        entry = self.number + pd.tid.x
        with pd.if_(entry < self.count):
            for word in range(self.words):
                self.held[pd.tid.x * self.words + word] = self.row[entry * self.words + word]
        pd.ptx.bar.sync(0)

    def work(self) -> Sequence[Scalar]:
        """Return the words of the current entry, as u32."""
        first = self.number % self.threads * self.words
        return [self.held[first + word].bitcast(u32) for word in range(self.words)]

    def advance(self) -> None:
        self.number += 1
