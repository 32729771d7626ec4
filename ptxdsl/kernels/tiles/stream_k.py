"""Stream-K: blocks that share tiles leave partial accumulators in a workspace, and the block that ends a tile adds them
up.

A block walks its tiles from the last one back, so that its contribution to other blocks comes first: a block begins
with the end of its range, which is the beginning of a tile that a later block ends. Only blocks with higher numbers
wait for it. Parts are added in the order of K, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, TileAccumulators
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.product import Index, OutputTile, WorkTile
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, TileAfterTile, TileSchedule, Walk
from ptxdsl.kernels.tiles.split_k import PartialSums, SumSlots, announce, wait_for
from ptxdsl.schedule import StreamKNumbers, StreamKPlan, StreamKThreadblockSwizzle
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import Type

WIDE_BYTES = 16  # of a load: narrower loads leave no registers to run ahead
ANY = StreamKThreadblockSwizzle()  # a kernel serves any plan


@dataclass(frozen=True)
class StreamK(TileSchedule):
    """Whole tiles for most blocks, and the rest shared evenly; `slices` > 1 cuts each tile into as many parts."""

    swizzle: StreamKThreadblockSwizzle
    slices: int = 1
    shares = True

    def general(self) -> StreamK:
        return StreamK(ANY)

    def is_ahead(self, operands: Operands) -> bool:
        return operands.narrowest == WIDE_BYTES

    def fields(self) -> dict[str, Type]:
        return dict.fromkeys(StreamKNumbers._fields, u32)

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        batches = 1 if problem.batches is None else problem.batches
        plan = self.swizzle.plan(problem.shape, tile, self.slices, batches=batches)
        numbers = plan.numbers._asdict()
        if not plan.sk_blocks:
            return Plan(plan.grid, numbers)
        self._check_resident(plan, resident())
        slots = plan.sk_blocks * (2 if plan.reduction_blocks else 1)
        semaphores = slots + (plan.sk_tiles if plan.reduction_blocks else 0)
        return Plan(plan.grid, numbers, slots * tile[0] * tile[1], semaphores)

    def walk(self, context: KernelContext) -> Walk:
        return StreamKWalk(context)

    def _check_resident(self, plan: StreamKPlan, resident: int) -> None:
        """Raise ScheduleError unless all blocks that share tiles can run at the same time: they wait for each other's
        parts."""
        if plan.sk_blocks > resident:
            raise ScheduleError(
                f"{self.swizzle.name}: {plan.sk_blocks} blocks would wait for each other's parts, and {resident} of "
                "this kernel can be resident on the GPU",
                help="make it for this GPU: StreamKThreadblockSwizzle(multiprocessors=…, occupancy=…); fewer registers "
                "or less shared memory a block let more of them run at the same time",
            )


class StreamKWalk(TileAfterTile):
    """The tiles of one block, from its last one back.

    A stream-K block has a slot of the workspace and a semaphore for the part of a tile that it does not end. If
    separate blocks do the reduction, it has a second slot, `sk_blocks` further, for the part that ends a tile.
    """

    def __init__(self, context: KernelContext) -> None:
        fields = context.fields
        self.plan = plan = StreamKNumbers(**{name: getattr(fields, name) for name in StreamKNumbers._fields})
        self.ahead, self.products, self.layout = context.ahead, context.products, context.layout
        self.memory, self.semaphores = fields.sums, fields.semaphores
        self.number = plan.mapped(pd.ctaid.x)
        self.product = self.products.of(pd.ctaid.z)
        self.reduces_apart = plan.active_blocks > plan.first_reduction_block
        self.share = plan.share(self.number)
        self.tile = pd.var(u32, self.share.tile)
        self.left = pd.var(u32, self.share.count)

    def has_tile(self) -> Scalar:
        return self.left > 0

    def work(self) -> WorkTile:
        begin, end = self.plan.part(self.share, self.tile)
        tile = self.tile + 0
        return WorkTile(self.product, self.plan.tile_offset(self.tile), begin, end, self.products.extents, tile)

    def kept(self, work: WorkTile) -> WorkTile:
        """Return the tile located again, so that the loop need not keep it in registers."""
        return self.work()

    def seek(self) -> None:
        with pd.while_(lambda: self.has_tile() & ~self.plan.has(self.share, self.tile)):
            self._step()

    def advance(self) -> None:
        self._step()
        self.seek()

    def _step(self) -> None:
        self.tile.set(self.plan.following(self.share, self.tile))
        self.left -= 1

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """Yield the tile in the block that ends it, with the parts of the others; all others store their parts."""
        begins, ends, partial = (
            work.begin == 0,
            work.end == self.plan.iterations,
            PartialSums(accumulators.layout, self.memory),
        )
        with pd.if_(~ends | (self.reduces_apart & ~begins)):
            slot = self.number + pd.select(ends, self.plan.sk_blocks, 0)
            partial.store(accumulators, slot)
            announce(accumulators.layout, self.semaphores + slot, 1)
        with pd.else_():
            with pd.if_(~begins):  # type: ignore[arg-type]  # a register: no block begins each of its tiles
                self._add_peers(accumulators, partial, work.item)
            yield OutputTile(work, accumulators)

    def _add_peers(self, accumulators: TileAccumulators, partial: PartialSums, tile: Index) -> None:
        """Add the parts of the blocks before this one, when they are stored."""
        first = self.plan.block_of(tile * self.plan.iterations)
        for peer in pd.range(first, self.number):
            wait_for(self.layout, self.semaphores + peer, 1)
            with pd.if_(pd.tid.x == 0):
                (self.semaphores + peer).store(0)
        partial.add_all(accumulators, SumSlots(first, self.number - first, 1))

    def leftovers(self) -> Iterator[OutputTile]:
        """Yield the output tiles of a reduction block."""
        plan = self.plan
        with pd.if_((self.number >= plan.first_reduction_block) & (self.number < plan.active_blocks)):
            yield from self._reduced(self.layout)

    def _reduced(self, layout: AccumulatorLayout) -> Iterator[OutputTile]:
        """Yield one fragment of a tile: a group of each warp's accumulators, and those `fragments` further."""
        plan, partial = self.plan, PartialSums(layout, self.memory)
        tile, fragment = plan.reduction(self.number)
        first, last = plan.peers(tile)
        for peer in pd.range(first, last + 1):
            wait_for(layout, self.semaphores + self._slot(peer, last), 1)
        for group in pd.range(fragment, layout.groups, plan.fragments):
            rows = TileAccumulators(layout, groups=1)
            for peer in pd.range(first, last + 1):
                partial.add(rows, self._slot(peer, last), group)
            work = WorkTile(self.product, plan.tile_offset(tile), 0, plan.iterations, self.products.extents)
            yield OutputTile(work, rows, group)
        self._clear(tile, first, last)

    def _slot(self, peer: Scalar, last: Scalar) -> Scalar:
        """Return the slot of a peer's part of a tile."""
        return peer + pd.select(peer == last, self.plan.sk_blocks, 0)

    def _clear(self, tile: Index, first: Index, last: Scalar) -> None:
        """Reset the semaphores, in the last of a tile's reduction blocks."""
        done = self.semaphores + (self.plan.sk_blocks * 2 + tile)
        self.layout.meet()
        with pd.if_(pd.tid.x == 0):
            count = pd.ptx.atom.acq_rel.gpu.global_.add.u32(done, 1)
            with pd.if_(count == self.plan.fragments - 1):
                done.store(0)
                for peer in pd.range(first, last + 1):
                    (self.semaphores + self._slot(peer, last)).store(0)
