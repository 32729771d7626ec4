"""The order in which consumer warpgroups use the tensor cores, so that one multiplies while another runs its epilogue.

Ping-pong: warpgroups compute alternate tiles of a block. One starts to multiply when all products of the other's tile
have been issued, so that ring slots are read in order; they also alternate in the memory for staged output.

Staggered: warpgroups share each tile, and end it one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, IN_TURN, WARP, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.epilogue import Epilogue
from ptxdsl.kernels.tiles.schedule import StartLoads, Walk

PRODUCTS_BARRIER, STAGING_BARRIER = 11, 13  # the first of two each; of three for staggered warpgroups


class OrderedBarrier:
    """Turns of warpgroups, by one named barrier each: a warpgroup waits at its own barrier and arrives at that of the
    next."""

    def __init__(self, first: int, consumer: pd.warpgroup, warpgroups: int = IN_TURN) -> None:
        """`first` is the barrier of the first warpgroup; the next ones follow it."""
        self.number = first + consumer.index
        self.others = first + (consumer.index + 1) % warpgroups

    def wait(self) -> None:
        """Wait until the previous warpgroup has passed the turn on."""
        pd.ptx.bar.sync(self.number, 2 * WARPGROUP)

    def pass_on(self) -> None:
        """Pass the turn to the next warpgroup."""
        pd.ptx.bar.arrive(self.others, 2 * WARPGROUP)


class PingPongWalk(Walk):
    """Every second tile of another walk: the even ones for the first warpgroup, the odd ones for the second."""

    def __init__(
        self, traits: WarpgroupTraits, walk: Walk, ring: pd.Ring, epilogue: Epilogue, consumer: pd.warpgroup
    ) -> None:
        self.walk, self.ring, self.epilogue, self.consumer = walk, ring, epilogue, consumer
        self.products = OrderedBarrier(PRODUCTS_BARRIER, consumer)
        self.staging = OrderedBarrier(STAGING_BARRIER, consumer) if traits.stages_in_turn else None
        self.row_blocks, self.extents = traits.tiling.row_blocks, (*traits.accumulators.tile, traits.tile[2])
        self.is_swapped = traits.tiling.swap_ab
        self.number = pd.var(u32, 0)  # of the tile in the block

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        for work in self.walk.tiles(start):
            with pd.if_(self._has_turn()):
                self._wait(self.products)
                yield work
            with pd.else_():
                self.ring.skip(work.iterations)
                self.walk.skip(work)
            self.number += 1

    def along_k(self, iterations: Index) -> Iterator[object]:
        yield from super().along_k(iterations)
        self.products.pass_on()

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        if self.staging:
            self._wait(self.staging)
        warp = pd.warpid % (WARPGROUP // WARP)
        for output in self.walk.complete(work, accumulators):
            (row, column), row_blocks = output.work.tile, output.accumulators.row_blocks(self.row_blocks)
            for number, row_block in enumerate(row_blocks):
                at = (
                    (row, column * len(row_blocks) + number)
                    if self.is_swapped
                    else (row * len(row_blocks) + number, column)
                )
                work = output.work._replace(tile=at, extents=self.extents)
                yield OutputTile(work, row_block, warp=warp, row_block=number, is_last=output.is_last)
        if self.staging:
            self.epilogue.finish()
            self.staging.pass_on()

    def _has_turn(self) -> pd.Value:
        return (self.number & 1) == self.consumer.index

    def _wait(self, turn: OrderedBarrier) -> None:
        """Wait for a turn; the first tile needs none."""
        with pd.if_(self.number > 0):
            turn.wait()


class SkippingWalk(Walk):
    """Another walk without the tiles in which all rows of the warpgroup are out of bounds: the other one then has the
    tensor cores to itself and takes half the time."""

    def __init__(self, walk: Walk, ring: pd.Ring, consumer: pd.warpgroup) -> None:
        self.walk, self.ring, self.consumer = walk, ring, consumer

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        for work in self.walk.tiles(start):
            with pd.if_(work.product.m > work.first[0] + self.consumer.index * GROUP_ROWS):
                yield work
            with pd.else_():
                self._pass(work.iterations)
                self.walk.skip(work)

    def _pass(self, iterations: Index) -> None:
        """Release ring slots without reading them.

        One thread releases for its warpgroup. Without products there is nothing at which warps meet: a warp that still
        waited for a slot could miss it if another one released it and it was refilled.
        """
        for _ in pd.range(iterations, unroll=1):
            self.ring.wait()
            self.consumer.warpgroup_barrier()
            self.ring.release()

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        return self.walk.complete(work, accumulators)


class StaggeredWalk(Walk):
    """Another walk, whose tiles the warpgroups of a block share and end one after the other: the last `stagger`
    iterations belong to one warpgroup at a time. The first stores its rows while the next multiplies, and begins the
    next tile while the last stores."""

    def __init__(self, traits: WarpgroupTraits, walk: Walk, consumer: pd.warpgroup) -> None:
        self.walk, self.stagger = walk, traits.tiling.stagger
        self.turn = OrderedBarrier(PRODUCTS_BARRIER, consumer, traits.tiling.consumers)
        self.follows = pd.var(u32, consumer.index)  # 0 for the first warpgroup in the first tile

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        return self.walk.tiles(start)

    def along_k(self, iterations: Index) -> Iterator[object]:
        last = pd.min(iterations, self.stagger)
        yield from pd.range(iterations - last, unroll=1)
        with pd.if_(self.follows != 0):
            self.turn.wait()
        self.follows.set(1)
        yield from self.walk.along_k(last)
        self.turn.pass_on()

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        return self.walk.complete(work, accumulators)

    def leftovers(self) -> Iterator[OutputTile]:
        return self.walk.leftovers()


def consumer_walk(
    traits: WarpgroupTraits, walk: Walk, ring: pd.Ring, epilogue: Epilogue, consumer: pd.warpgroup
) -> Walk:
    """Return the walk of a consumer warpgroup through the tiles of its block: all of them, every second one, or those
    in which it has rows."""
    if traits.tiling.pingpong:
        return PingPongWalk(traits, walk, ring, epilogue, consumer)
    if traits.tiling.stagger:
        return StaggeredWalk(traits, walk, consumer)
    return SkippingWalk(walk, ring, consumer) if traits.skips_rows else walk
