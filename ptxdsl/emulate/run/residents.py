"""The blocks that run together, and which lane of the arrays stands for which of their threads."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np

from ..report import Index, Thread

WARP = 32
WARPGROUP = 4  # warps, from a multiple of 4 on


class Residents:
    """Blocks in `slots`, with one lane for each thread, padded to whole warps.

    Lanes are ordered by warp, then slot, then place in the warp: the lanes of one warp role are a contiguous range.
    """

    def __init__(self, grid: Index, block: Index, blocks: np.ndarray) -> None:
        self.grid, self.block, self.blocks = grid, block, blocks
        self.threads = prod(block)
        self.slots = len(blocks)
        self.warps = -(-self.threads // WARP)
        self.lanes = self.warps * self.slots * WARP
        self.all = np.arange(self.lanes)
        self.lane = (self.all % WARP).astype(np.uint32)
        self.slot = self.all // WARP % self.slots
        self.warp = (self.all // (WARP * self.slots)).astype(np.uint32)
        self.thread = self.warp * np.uint32(WARP) + self.lane
        self.exists = self.thread < self.threads

    @cached_property
    def block_index(self) -> tuple[np.ndarray, ...]:
        return _split(self.blocks[self.slot], self.grid)

    @cached_property
    def thread_index(self) -> tuple[np.ndarray, ...]:
        return _split(self.thread, self.block)

    def name(self, lane: int) -> Thread:
        """The thread of a lane."""
        return Thread(
            tuple(int(axis[lane]) for axis in self.block_index),  # type: ignore[arg-type]
            tuple(int(axis[lane]) for axis in self.thread_index),  # type: ignore[arg-type]
        )

    def numbered(self, block: int, thread: int) -> Thread:
        """A thread by the numbers of its block in the grid and of itself in the block."""
        return Thread(_place(block, self.grid), _place(thread, self.block))

    def lanes_of(self, slot: int) -> np.ndarray:
        """Lanes of the threads of one block."""
        return self.all[(self.slot == slot) & self.exists]

    def moved(self, old: Residents) -> tuple[np.ndarray, np.ndarray]:
        """Where lanes and slots of `old` are found here, for blocks that are in both; -1 for the others."""
        place = {int(block): slot for slot, block in enumerate(self.blocks)}
        slots = np.array([place.get(int(block), -1) for block in old.blocks])
        slot = slots[old.slot]
        lanes = (old.warp.astype(np.int64) * self.slots + slot) * WARP + old.lane
        return np.where(slot < 0, -1, lanes), slots


def _place(number: int, extents: Index) -> Index:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def _split(index: np.ndarray, extents: Index) -> tuple[np.ndarray, ...]:
    """Linear numbers as (x, y, z), x fastest."""
    x, y, _ = extents
    return (index % x).astype(np.uint32), (index // x % y).astype(np.uint32), (index // (x * y)).astype(np.uint32)
