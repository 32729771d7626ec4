"""Queues of tiles: whichever block is free takes the next one, by a counter in global memory."""

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

COUNTERS = 2  # tiles that were taken behind the first of each block, and blocks that take no more
HELD = 4  # numbers on their way from who copies to who multiplies
EVERY_LANE = 0xFFFFFFFF
WARP = 32
STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"
ENDED = 2  # what is told instead of whether a tile is halved, behind the last one


class TileQueue:
    """The numbers of a block's tiles, in the order in which it takes them; its first is its own number. `counters` are
    COUNTERS u32, 0 before a launch and after it.

    One warp takes them: `take` and `tell` in one of its lanes, then `taken` in all. It works out where tiles of groups
    of rows are, and those that multiply are told all about each, since that would stand between one tile's products and
    those of the next.
    """

    words = 6  # that are passed on of a tile
    held = HELD  # tiles that are told ahead

    def __init__(self, counters: PointerValue, holders: int) -> None:
        self.counters = counters
        self.ring = pd.Ring(self.held, producers=1, consumers=holders)
        self.numbers = pd.shared(u32, self.held * self.words, name="queue")
        self.number: Var = pd.var(u32, 0)

    def take(self) -> Scalar:
        """The number of the next tile: the answer is on its way while copies begin."""
        taken: Scalar = pd.ptx.atom.relaxed.gpu.global_.add.u32(self.counters, 1)
        return taken

    def announce(self, work: WorkTile) -> None:
        """By that lane, before it copies."""
        halved = 0 if work.halved is None else pd.select(work.halved, pd.cast(1, u32), 0)
        self._pass_on(work.item[0], work.product.a.row, work.product.m, *work.tile, halved)

    def tell(self, taken: Scalar) -> None:
        """Passes it on to the other lanes."""
        self.number.set(taken + pd.nctaid.x)

    def taken(self) -> Scalar:
        """The number that one lane has told, in all lanes of its warp."""
        number: Scalar = pd.ptx.redux.sync.max.u32(self.number, EVERY_LANE)  # the others have 0
        return number

    def told(self) -> list[Scalar]:
        """Of the next tile, for a warp that multiplies: its group, the group's first row among all, the rows of the
        group, the tile's row and column there, and whether it is halved: 1, 0, or ENDED behind the last one. Of a tile
        that has a share of its group, the rows are those of the tile."""
        first = self.ring.wait().index * self.words
        values = [self.numbers[first + word] for word in range(self.words)]
        pd.ptx.bar.warp.sync(EVERY_LANE)  # one lane may be behind, which stores or copies: the others wait for it here
        self.ring.release()
        return values

    def reader(self) -> TileQueue:
        """The same for warps of another role that are told as well."""
        other = copy(self)
        other.ring = self.ring.reader()
        return other

    def close(self) -> None:
        """By the lane that took them, when there are no more: the last block leaves the counters as they were."""
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
    """A ring whose stages come by st.async, and by no bulk copy, which would go through another proxy than readers."""

    def _fence_reads(self) -> None:
        """There is no other proxy."""


class ClusterTileQueue(TileQueue):
    """The same of blocks of a cluster, which take neighbouring tiles together: the first of them takes their number,
    and stores it to all."""

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

    def tell(self, taken: Scalar) -> None:
        slot = self.passed.acquire()
        with pd.if_(self.rank == 0):
            number, sent = taken + pd.nctaid.x // self.blocks, self.sent.address(slot.index)
            for rank in range(self.blocks):
                pd.ptx(STORE, _in_block(sent, rank), number, _in_block(slot.full, rank))
        self.passed.commit()

    def taken(self) -> Scalar:
        """The number that the first block has told."""
        number: Scalar = self.sent[self.passed.wait().index]
        self.passed.release()
        return number

    def close(self) -> None:
        self.passed.drain()
        super().close()


class ProblemTileQueue(TileQueue):
    """The same of tiles of a list of problems, which a warp of its own finds while others copy and multiply the one
    before: those that copy are told as well."""

    words, held = 8, 1

    def announce(self, work: WorkTile, version: Index = 0) -> None:
        """With the version of the maps of its problem. The one behind it is taken when all know of this one."""
        product = work.product
        self._pass_on(work.item[0], version, product.a.row, product.m, *work.tile, work.iterations, 0)
        self.ring.acquire()


class ClusterProblemTileQueue(ProblemTileQueue, ClusterTileQueue):
    """The same of blocks of a cluster."""


def _in_block(pointer: PointerValue, rank: int) -> PointerValue:
    """The same place in the shared memory of a block of the cluster."""
    return pd.pointer(pd.ptx.mapa.shared__cluster.u32(pointer, rank), pointer.element, "shared::cluster")


class TileQueueWalk(TileAfterTile):
    """The tiles that a warp is told; `locate` makes a WorkTile of what it hears."""

    ahead = True

    def __init__(self, queue: TileQueue, locate: Callable[..., WorkTile]) -> None:
        self.queue, self.locate = queue, locate
        self.values = [pd.var(u32, 0) for _ in range(queue.words)]

    def seek(self) -> None:
        self.advance()

    def advance(self) -> None:
        for value, word in zip(self.values, self.queue.told(), strict=True):
            value.set(word)

    def has_tile(self) -> Scalar:
        return self.values[-1] != ENDED

    def work(self) -> WorkTile:
        values = [value.value for value in self.values]
        return self.locate(*values)._replace(item=(values[0], values[3], values[1]))
