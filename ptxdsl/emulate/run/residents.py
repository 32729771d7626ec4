"""The resident blocks, and the lane of the arrays for each of their threads.

Blocks are launched cluster by cluster; the ordinal of a block is its position in that order. Without clusters, or if a
cluster extends along x alone, it is the number of the block in the grid.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...cached import cached_property
from ..report import Index, Thread

WARP = 32
WARPGROUP = 4  # warps, from a multiple of 4 on
ONE: Index = (1, 1, 1)  # the cluster of a launch without clusters


class Residents:
    """Blocks in `slots`, with one lane for each thread, padded to whole warps.

    Lanes are ordered by warp, then slot, then lane of the warp: the lanes of one warp role are a contiguous range.
    `ordinals` has the block in each slot; `pairs` is True in a kernel for CTA pairs.
    """

    def __init__(
        self, grid: Index, block: Index, ordinals: np.ndarray, cluster: Index = ONE, pairs: bool = False
    ) -> None:
        self.grid, self.block, self.ordinals, self.cluster = grid, block, ordinals, cluster
        self.blocks = ordinals if cluster == ONE else _in_grid(ordinals, grid, cluster)
        self.cluster_blocks = prod(cluster)
        self.pairs = pairs and self.cluster_blocks % 2 == 0
        self.threads = prod(block)
        self.slots = len(ordinals)
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
        """Return the thread of a lane."""
        return Thread(
            tuple(int(axis[lane]) for axis in self.block_index),  # type: ignore[arg-type]
            tuple(int(axis[lane]) for axis in self.thread_index),  # type: ignore[arg-type]
        )

    def numbered(self, ordinal: int, thread: int) -> Thread:
        """Return a thread by the ordinal of its block and its number in the block."""
        block = int(_in_grid(np.array([ordinal]), self.grid, self.cluster)[0])
        return Thread(_coordinate(block, self.grid), _coordinate(thread, self.block))

    # Clusters

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each slot's block in its cluster."""
        return self.ordinals % self.cluster_blocks

    @cached_property
    def cluster_of(self) -> np.ndarray:
        """The number of each slot's cluster among the resident ones, from 0."""
        numbers: np.ndarray = np.unique(self.ordinals // self.cluster_blocks, return_inverse=True)[1].reshape(-1)
        return numbers

    @cached_property
    def peers(self) -> np.ndarray:
        """The slots (clusters, ranks) of the blocks of each resident cluster; -1 for those that have exited."""
        table = np.full((int(self.cluster_of.max(initial=-1)) + 1, self.cluster_blocks), -1)
        table[self.cluster_of, self.rank] = np.arange(self.slots)
        return table

    def lanes_of(self, slot: int) -> np.ndarray:
        """Return the lanes of the threads of one block."""
        return self.all[(self.slot == slot) & self.exists]

    def moved(self, old: Residents) -> tuple[np.ndarray, np.ndarray]:
        """Return the new lanes and slots of those of `old`; -1 for blocks that are no longer resident."""
        slot_of = {int(block): slot for slot, block in enumerate(self.ordinals)}
        slots = np.array([slot_of.get(int(block), -1) for block in old.ordinals])
        slot = slots[old.slot]
        lanes = (old.warp.astype(np.int64) * self.slots + slot) * WARP + old.lane
        return np.where(slot < 0, -1, lanes), slots


def _coordinate(number: int, extents: Index) -> Index:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def _in_grid(ordinals: np.ndarray, grid: Index, cluster: Index) -> np.ndarray:
    """Return the numbers in the grid of blocks that are counted cluster by cluster."""
    clusters, rank = np.divmod(ordinals, prod(cluster))
    extents = grid[0] // cluster[0], grid[1] // cluster[1], grid[2] // cluster[2]
    first, inner = _split(clusters, extents), _split(rank, cluster)
    x, y, z = (f.astype(np.int64) * c + i for f, c, i in zip(first, cluster, inner, strict=True))
    numbers: np.ndarray = x + grid[0] * (y + grid[1] * z)
    return numbers


def _split(index: np.ndarray, extents: Index) -> tuple[np.ndarray, ...]:
    """Split linear numbers into (x, y, z), x fastest."""
    x, y, _ = extents
    return (index % x).astype(np.uint32), (index // x % y).astype(np.uint32), (index // (x * y)).astype(np.uint32)
