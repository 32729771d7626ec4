"""Queues of tiles: a block that is free takes the next one, by a counter in global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.tiles.schedule import TileAfterTile
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

COUNTERS = 2  # tiles taken after the first of each block, and blocks that have finished
HELD = 4  # tiles in flight from the producer to the consumers
ROW_WORDS = 5  # that the consumers of groups of rows need of a tile, as `row_words` returns them
EVERY_LANE = 0xFFFFFFFF
WARP = 32
STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"


class TileQueue:
    """The numbers of a block's tiles, in the order in which it takes them; the first is the number of the block.
    `counters` are COUNTERS u32, 0 before and after a launch.

    One warp takes them: `take` and `broadcast` run in one of its lanes, `taken` in all. It locates the tiles and passes
    their coordinates to the other warps, which have no time for that between two tiles: `words` of each tile, and a
    last one that is 0 but after the last tile. Up to `held` tiles are ahead."""

    def __init__(self, counters: PointerValue, holders: int, words: int = ROW_WORDS, held: int = HELD) -> None:
        self.counters, self.words = counters, words + 1
        self.ring = pd.Ring(held, producers=1, consumers=holders)
        self.numbers = pd.shared(u32, held * self.words, name="queue")
        self.number: Var = pd.var(u32, 0)

    def take(self) -> Scalar:
        """Take the number of the next tile. The atomic is in flight while loads are issued."""
        taken: Scalar = pd.ptx.atom.relaxed.gpu.global_.add.u32(self.counters, 1)
        return taken

    def announce(self, *values: Index) -> None:
        """Pass the words of a tile to the other warps, by the lane that took it, before it issues loads."""
        self._pass(*values, 0)

    def _pass(self, *values: Index) -> None:
        first = self.ring.acquire().index * self.words
        for word, value in enumerate(values):
            self.numbers[first + word] = value
        self.ring.commit()

    def broadcast(self, taken: Scalar) -> None:
        """Pass the number of the next tile to the other lanes."""
        self.number.set(taken + pd.nctaid.x)

    def taken(self) -> Scalar:
        """Return the number that one lane passed on, in all lanes of its warp."""
        number: Scalar = pd.ptx.redux.sync.max.u32(self.number, EVERY_LANE)  # the other lanes have 0
        return number

    def receive(self) -> list[Scalar]:
        """Return the words of the next tile, in a warp that reads the queue."""
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
        self._pass(*[0] * (self.words - 1), 1)
        self.ring.drain()
        ended = pd.ptx.atom.acq_rel.gpu.global_.add.u32(self.counters + 1, 1)
        with pd.if_(ended == pd.nctaid.x - 1):
            self.counters[0] = 0
            self.counters[1] = 0


def row_words(work: WorkTile) -> Sequence[Index]:
    """Return the words of a tile of groups of rows: its group, the first row of the group, the rows of the group, the
    row and column of the tile. If rows are shared evenly, the rows are those of the tile."""
    return work.item[0], work.product.a.row, work.product.m, *work.tile


class TileQueueWalk(TileAfterTile):
    """The walk over the tiles of a queue, in warps that read it. `locate` makes a WorkTile of the words of the queue;
    `stored` adds what only the epilogue needs."""

    ahead = True

    def __init__(
        self,
        queue: TileQueue,
        locate: Callable[..., WorkTile],
        stored: Callable[[WorkTile], WorkTile] = lambda work: work,
    ) -> None:
        self.queue, self.locate, self.stored = queue, locate, stored
        self.values = [pd.var(u32, 0) for _ in range(queue.words)]

    def seek(self) -> None:
        self.advance()

    def advance(self) -> None:
        for value, word in zip(self.values, self.queue.receive(), strict=True):
            value.set(word)

    def has_tile(self) -> Scalar:
        return self.values[-1] == 0

    def work(self) -> WorkTile:
        return self.locate(*(value.value for value in self.values[:-1]))

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        yield OutputTile(self.stored(work), accumulators)
