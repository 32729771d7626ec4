"""Stream-K: blocks that share tiles leave their parts in a workspace, and the one that ends a tile adds them up.

A block walks its tiles from the last one back, so that what it leaves to others is done first: the part that begins a
tile belongs to a block whose first piece of work that is. Only blocks with higher numbers wait for it. Parts are added
in the order of K, so that results never change from run to run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.block import Ahead, Product, ProductBlock
from ptxdsl.kernels.mainloop import Accumulators
from ptxdsl.kernels.split_k import Sums, announce, flatten, wait_for
from ptxdsl.kernels.tile import WARP_TILE
from ptxdsl.schedule import StreamKNumbers, StreamKPlan


def compute_stream_k(block: ProductBlock, given: tuple[Any, ...]) -> None:
    """`given` is the workspace, semaphores that are 0 before and after, and the numbers of the plan."""
    workspace, semaphores, *numbers = given
    StreamK(block, StreamKNumbers(*numbers), Sums(block.config, workspace), semaphores).run()


class Part(NamedTuple):
    """A tile, by its number and its (row, column), and the K-iterations of it that a block does."""

    tile: Any
    place: tuple[Any, Any]
    begin: Any
    end: Any


class StreamK:
    """The work of one block.

    A stream-K block has a slot of the workspace and a semaphore for the part of a tile that it does not end; where
    other blocks do the reduction, a second one, `sk_blocks` further, for the part that ends a tile.
    """

    def __init__(self, block: ProductBlock, plan: StreamKNumbers, sums: Sums, semaphores: Any) -> None:
        self.block, self.plan, self.sums, self.semaphores = block, plan, sums, semaphores
        self.number = plan.mapped(pd.ctaid.x)
        self.product: Product = block.of(pd.ctaid.z)
        self.reduces_apart = plan.active_blocks > plan.first_reduction_block
        self.share = plan.share(self.number)
        self.tile: Any = pd.var(u32, self.share.tile)
        self.left: Any = pd.var(u32, self.share.count)

    def run(self) -> None:
        plan = self.plan
        if self.block.goes_ahead and self.block.config.goes_on:
            self._run_ahead(self.block.ahead())
        else:
            self._run()
        with pd.if_((self.number >= plan.first_reduction_block) & (self.number < plan.active_blocks)):
            self._reduce()

    def _run(self) -> None:
        self._seek()
        with pd.while_(lambda: self.left > 0):
            part = self._part()
            self._end(part, self.block.multiply(self.product, part.place, (part.begin, part.end)))
            self._advance()
            pd.ptx.bar.sync(0)

    def _run_ahead(self, ahead: Ahead) -> None:
        self._seek()
        self._start(ahead)
        with pd.while_(lambda: self.left > 0):
            begin, end = self.plan.part(self.share, self.tile)
            accumulators = ahead.multiply(end - begin)
            part = self._part()
            self._advance()
            self._start(ahead)
            self._end(part, accumulators)

    def _start(self, ahead: Ahead) -> None:
        """Begins the copies of the part that comes next."""
        with pd.if_(self.left > 0):
            part = self._part()
            ahead.start(self.product, part.place, (part.begin, part.end))

    def _part(self) -> Part:
        begin, end = self.plan.part(self.share, self.tile)
        return Part(self.tile + 0, self.plan.tile_offset(self.tile), begin, end)

    def _seek(self) -> None:
        """Goes on to a tile that there is."""
        with pd.while_(lambda: (self.left > 0) & ~self.plan.has(self.share, self.tile)):
            self._step()

    def _advance(self) -> None:
        self._step()
        self._seek()

    def _step(self) -> None:
        self.tile.set(self.plan.following(self.share, self.tile))
        self.left -= 1

    def _end(self, part: Part, accumulators: Accumulators) -> None:
        """What becomes of the sums of a part."""
        begins, ends = part.begin == 0, part.end == self.plan.iterations
        with pd.if_(~ends | (self.reduces_apart & ~begins)):
            slot = self.number + pd.select(ends, self.plan.sk_blocks, 0)
            self.sums.store(flatten(accumulators), slot)
            announce(self.semaphores + slot, 1)
        with pd.else_():
            with pd.if_(~begins):
                self._add_peers(flatten(accumulators), part.tile)
            self.block.write(self.product, part.place, accumulators)

    def _add_peers(self, values: list[Any], tile: Any) -> None:
        """The parts that blocks before this one have left, when they have."""
        first = self.plan.block_of(tile * self.plan.iterations)
        for peer in pd.range(first, self.number):
            wait_for(self.semaphores + peer, 1)
            with pd.if_(pd.tid.x == 0):
                (self.semaphores + peer).store(0)
        self.sums.add_all(values, (first, self.number, 1))

    def _reduce(self) -> None:
        """One fragment of a tile: 16 rows of each warp, and those `fragments` further."""
        tile, fragment = self.plan.reduction(self.number)
        first, last = self.plan.peers(tile)
        for peer in pd.range(first, last + 1):
            wait_for(self.semaphores + self._slot(peer, last), 1)
        config = self.block.config
        for group in pd.range(fragment, config.warp[0] // WARP_TILE, self.plan.fragments):
            rows = Accumulators(config, groups=1)
            values = flatten(rows)
            for peer in pd.range(first, last + 1):
                self.sums.add(values, self._slot(peer, last), group)
            self.block.write(self.product, self.plan.tile_offset(tile), rows, group * WARP_TILE)
        self._clear(tile, first, last)

    def _slot(self, peer: Any, last: Any) -> Any:
        """Where a peer of a tile has left its part."""
        return peer + pd.select(peer == last, self.plan.sk_blocks, 0)

    def _clear(self, tile: Any, first: Any, last: Any) -> None:
        """The last of a tile's reduction blocks sets the semaphores back."""
        done = self.semaphores + (self.plan.sk_blocks * 2 + tile)
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            count = pd.ptx.atom.acq_rel.gpu.global_.add.u32(done, 1)
            with pd.if_(count == self.plan.fragments - 1):
                done.store(0)
                for peer in pd.range(first, last + 1):
                    (self.semaphores + self._slot(peer, last)).store(0)


def slots_of(plan: StreamKPlan) -> int:
    """Room for tiles that the workspace has."""
    return plan.sk_blocks * (2 if plan.reduction_blocks else 1)


def semaphores_of(plan: StreamKPlan) -> int:
    return slots_of(plan) + (plan.sk_tiles if plan.reduction_blocks else 0)
