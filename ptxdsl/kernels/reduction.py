"""A reduce-scatter for split K: blocks that share the K of an output tile add up a share of the tile each.

A block leaves its sums in global memory, waits until all blocks of the tile have done so, adds up the pieces that are
its share and writes them. It waits only for blocks that run, so that they need not all be resident: where one of them
begins after another one has left its sums, the last one adds up everything. Parts are added in the order of K, whoever
adds them: results never change from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptxdsl as pd
from ptxdsl import u32, u64
from ptxdsl.kernels.block import ProductBlock
from ptxdsl.kernels.config import WARP
from ptxdsl.kernels.mainloop import Accumulators, holders
from ptxdsl.kernels.split_k import Sums, flatten
from ptxdsl.kernels.tile import WARP_TILE
from ptxdsl.schedule import slice_of_k

# A tile's semaphore counts in 16 bits each the blocks that need it no more, that have left their sums, that have begun,
# and that began after another one had left its sums
DONE, LEFT, BEGUN, LATE = 1, 1 << 16, 1 << 32, 1 << 48
COUNT = 0xFFFF  # the bits of one of them
# Shares of a tile: all of its pieces, or none. Any other number says that its block takes each so-many-th piece
EVERYTHING, NOTHING = 1, 0


class Meeting:
    """The `blocks` of one tile. Their semaphore, of 64 bits, is 0 before and after; one thread of each block counts."""

    def __init__(self, semaphore: Any, blocks: Any) -> None:
        self.semaphore, self.blocks = semaphore, blocks
        self.is_counter = pd.tid.x == 0
        self.found: Any = pd.var(u64, 0)  # what that thread has seen of the semaphore

    def begin(self) -> None:
        """From now on others may wait for this block."""
        with pd.if_(self.is_counter):
            self._count(BEGUN)
            with pd.if_(left(self.found) > 0):
                self._count(LATE)

    def _count(self, what: int, order: str = "relaxed") -> None:
        """Counts this block; `found` is then what was counted before it."""
        pd.ptx(f"atom.{order}.gpu.global.add.u64", self.semaphore, what, out=self.found)

    def share(self, place: Any) -> Any:
        """The share of this block, for all its threads, when all of them have left their sums: each `blocks`-th piece
        if all blocks of the tile run, else EVERYTHING for the last one and NOTHING for the others.

        `place` is free shared memory, through which the counting thread tells the others."""
        pd.ptx.bar.sync(0)
        with pd.if_(self.is_counter):
            self._count(LEFT, "acq_rel")
            self.found += LEFT
            alone = pd.select(left(self.found) == self.blocks, EVERYTHING, pd.cast(NOTHING, u32))
            with (
                pd.if_(begun(self.found) == self.blocks),
                pd.while_(lambda: left(self.found) != self.blocks),
            ):
                pd.ptx.ld.acquire.gpu.global_.u64(self.semaphore, out=self.found)
            place.store(pd.select(begun(self.found) == self.blocks, self.blocks, alone))
        pd.ptx.bar.sync(0)
        share = place.load()
        with pd.if_(self.is_counter):
            self._count(DONE)
        pd.ptx.bar.sync(0)
        return share

    def end(self) -> None:
        """The last block sets the semaphore back."""
        with pd.if_(self.is_counter & (self.found.to(u32) & COUNT == self.blocks - 1)):
            self.semaphore.store(0)


def left(found: Any) -> Any:
    """How many blocks have left their sums."""
    return (found >> 16).to(u32) & COUNT


def begun(found: Any) -> Any:
    """How many blocks have begun, if none came late; else, with the count of those above it, more than there are."""
    return (found >> 32).to(u32)


def compute_share(block: ProductBlock, memory: tuple[Any, Any], work: Callable[[], tuple[Any, Any, Any]]) -> None:
    """A slice of the K of a tile, and a share of the tile.

    `memory` is the workspace, with room for the sums of each tile of each slice, and two semaphores for each tile;
    `work` gives (tile, slice, slices): it is asked twice, so that the loop need not keep them in registers.
    """
    config, (workspace, semaphores) = block.config, memory
    tile, slice, slices = work()
    begin, end = slice_of_k(slice, slices, block.product.k, config.tile[2])
    loaders = block.loaders_of(block.product, tile, (begin, end))
    block.mainloop.start(loaders)
    Meeting(_semaphore(block, semaphores, tile), slices).begin()
    accumulators = block.mainloop.go_on(loaders, end - begin)
    tile, slice, slices = work()
    number, tiles = block.number(tile), block.tiles[0] * block.tiles[1]
    Sums(config, workspace).store(flatten(accumulators), slice * tiles + number)
    meeting = Meeting(_semaphore(block, semaphores, tile), slices)
    share = meeting.share(block.staging.bitcast(u32))
    Pieces(block, workspace, tile, slices).reduce(pd.select(share == EVERYTHING, 0, slice), share)
    meeting.end()


def _semaphore(block: ProductBlock, semaphores: Any, tile: tuple[Any, Any]) -> Any:
    return semaphores.bitcast(u64) + block.number(tile)


class Pieces:
    """What blocks share out of a tile: 16 rows of a warp's part of it each. Any warp may add up any of them."""

    def __init__(self, block: ProductBlock, workspace: Any, tile: tuple[Any, Any], slices: Any) -> None:
        self.block, self.workspace, self.tile, self.slices = block, workspace, tile, slices
        config = block.config
        self.warps = config.warps[0] * config.warps[1]
        self.count = self.warps * config.warp[0] // WARP_TILE

    def reduce(self, first: Any, step: Any) -> None:
        """Adds up and writes each `step`-th piece from the `first` on; none if `step` is 0."""
        with holders(self.block.config), pd.if_(step > 0):
            for piece in pd.range(first + step * pd.warpid, self.count, step * self.warps):
                self._reduce(piece // self.warps, piece % self.warps)

    def _reduce(self, group: Any, warp: Any) -> None:
        """The `group`-th 16 rows of a warp."""
        config, number, tiles = self.block.config, self.block.number(self.tile), self.block.tiles
        rows = Accumulators(config, groups=1)
        sums = Sums(config, self.workspace, warp * WARP + pd.laneid)
        apart = tiles[0] * tiles[1]
        sums.add_all(flatten(rows), (number, number + self.slices * apart, apart), group)
        self.block.write(self.block.product, self.tile, rows, group * WARP_TILE, warp)
