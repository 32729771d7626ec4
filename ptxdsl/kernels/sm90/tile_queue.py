"""Queues of tiles: a block that is free takes the next one, by a counter in global memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.tiles.schedule import TileAfterTile
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

COUNTERS = 2  # tiles taken after the first of each block, and blocks that have finished
HELD = 4  # tiles in flight from the producer to the consumers
EVERY_LANE = 0xFFFFFFFF
WARP = 32
STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"
ENDED = 2  # passed on instead of the flag of a halved tile, after the last one


class TileQueue:
    """The numbers of a block's tiles, in the order in which it takes them; the first is the number of the block.
    `counters` are COUNTERS u32, 0 before and after a launch.

    One warp takes them: `take` and `broadcast` run in one of its lanes, `taken` in all. It locates the tiles of groups
    of rows and passes their coordinates to the consumers, which have no time for that between two tiles."""

    words = 6  # passed on for each tile
    held = HELD  # tiles that are passed on ahead

    def __init__(self, counters: PointerValue, holders: int) -> None:
        self.counters = counters
        self.ring = pd.Ring(self.held, producers=1, consumers=holders)
        self.numbers = pd.shared(u32, self.held * self.words, name="queue")
        self.number: Var = pd.var(u32, 0)

    def take(self) -> Scalar:
        """Take the number of the next tile. The atomic is in flight while loads are issued."""
        taken: Scalar = pd.ptx.atom.relaxed.gpu.global_.add.u32(self.counters, 1)
        return taken

    def announce(self, work: WorkTile) -> None:
        """Pass the coordinates of a tile to the other warps, by the lane that took it, before it issues loads."""
        halved = 0 if work.halved is None else pd.select(work.halved, pd.cast(1, u32), 0)
        self._pass_on(work.item[0], work.product.a.row, work.product.m, *work.tile, halved)

    def broadcast(self, taken: Scalar) -> None:
        """Pass the number of the next tile to the other lanes."""
        self.number.set(taken + pd.nctaid.x)

    def taken(self) -> Scalar:
        """Return the number that one lane passed on, in all lanes of its warp."""
        number: Scalar = pd.ptx.redux.sync.max.u32(self.number, EVERY_LANE)  # the other lanes have 0
        return number

    def receive(self) -> list[Scalar]:
        """Return the coordinates of the next tile, in a consumer warp: its group, the first row of the group, the rows
        of the group, the row and column of the tile, and 1 if it is halved, 0 if not, ENDED after the last one. If rows
        are shared evenly, the rows are those of the tile."""
        first = self.ring.wait().index * self.words
        values = [self.numbers[first + word] for word in range(self.words)]
        pd.ptx.bar.warp.sync(EVERY_LANE)  # wait for the lane that stores or loads
        self.ring.release()
        return values

    def reader(self) -> TileQueue:
        """Return the queue for the warps of another role."""
        other = copy(self)
        other.ring = self.ring.reader()
        return other

    def close(self) -> None:
        """End the queue, by the lane that took the tiles. The last block resets the counters."""
        self._pass_on(*[0] * (self.words - 1), ENDED)
        self.ring.drain()
        ended = pd.ptx.atom.acq_rel.gpu.global_.add.u32(self.counters + 1, 1)
        with pd.if_(ended == pd.nctaid.x - 1):
            self.counters[0] = 0
            self.counters[1] = 0

    def _pass_on(self, *values: Index) -> None:
        first = self.ring.acquire().index * self.words
        for word, value in enumerate(values):
            self.numbers[first + word] = value
        self.ring.commit()


class StoredRing(pd.Ring):
    """A ring whose stages are written by st.async and not by bulk copies, which would use another proxy than the
    readers."""

    def _fence_reads(self) -> None:
        """Do nothing: reads and writes use the same proxy."""


class ClusterTileQueue(TileQueue):
    """A queue of a cluster, whose blocks take neighbouring tiles together. The first block takes a number and stores it
    to all."""

    def __init__(self, counters: PointerValue, holders: int, blocks: int) -> None:
        super().__init__(counters, holders)
        self.blocks, self.rank = blocks, pd.ctaid.x % blocks
        self.passed = StoredRing(HELD, stage_bytes=u32.bytes, consumers=WARP, each="warp", cluster=blocks)
        self.sent = pd.shared(u32, HELD, name="sent")

    def take(self) -> Scalar:
        taken = pd.var(u32, 0)
        with pd.if_(self.rank == 0):
            taken.set(super().take())
        return taken

    def broadcast(self, taken: Scalar) -> None:
        slot = self.passed.acquire()
        with pd.if_(self.rank == 0):
            number, sent = taken + pd.nctaid.x // self.blocks, self.sent.address(slot.index)
            for rank in range(self.blocks):
                pd.ptx(STORE, _in_block(sent, rank), number, _in_block(slot.full, rank))
        self.passed.commit()

    def taken(self) -> Scalar:
        """Return the number that the first block passed on."""
        number: Scalar = self.sent[self.passed.wait().index]
        self.passed.release()
        return number

    def close(self) -> None:
        self.passed.drain()
        super().close()


class ProblemTileQueue(TileQueue):
    """A queue of the tiles of a list of problems. A warp of its own locates them while others load and multiply the
    previous one; the producer is a reader as well."""

    words, held = 8, 1

    def announce(self, work: WorkTile, version: Index = 0) -> None:
        """Pass a tile on with the version of the maps of its problem. The next tile is located when all readers have
        this one."""
        product = work.product
        self._pass_on(work.item[0], version, product.a.row, product.m, *work.tile, work.iterations, 0)
        self.ring.acquire()


class ClusterProblemTileQueue(ProblemTileQueue, ClusterTileQueue):
    """A queue of the tiles of a list of problems, for the blocks of a cluster."""


def _in_block(pointer: PointerValue, rank: int) -> PointerValue:
    """Return the same address in the shared memory of a block of the cluster."""
    return pd.pointer(pd.ptx.mapa.shared__cluster.u32(pointer, rank), pointer.element, "shared::cluster")


class TileQueueWalk(TileAfterTile):
    """The walk over the tiles of a queue, in warps that read it. `locate` makes a WorkTile of the words of the
    queue."""

    ahead = True

    def __init__(self, queue: TileQueue, locate: Callable[..., WorkTile]) -> None:
        self.queue, self.locate = queue, locate
        self.values = [pd.var(u32, 0) for _ in range(queue.words)]

    def seek(self) -> None:
        self.advance()

    def advance(self) -> None:
        for value, word in zip(self.values, self.queue.receive(), strict=True):
            value.set(word)

    def has_tile(self) -> Scalar:
        return self.values[-1] != ENDED

    def work(self) -> WorkTile:
        values = [value.value for value in self.values]
        return self.locate(*values)._replace(item=(values[0], values[3], values[1]))
