"""Tiles of many products, one after another, which a visitor finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import OutputTile, WorkTile
from ptxdsl.kernels.tiles.schedule import Extents, KernelContext, Plan, ProblemShape, TileAfterTile, TileSchedule, Walk
from ptxdsl.kernels.tiles.split_k import PartialSums, SumSlots, sums_in_last
from ptxdsl.kernels.tiles.visitor import Visitor
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue


@dataclass(frozen=True)
class Dealt(TileSchedule):
    """Tiles of many products, dealt to persistent blocks. With `ahead`, the output is staged outside of the ring, so
    that loads of the next tile can start; partial tiles gain nothing from that, and wide staging reduces occupancy."""

    has_groups = True
    ahead: bool

    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        raise self._not_single()

    def walk(self, context: KernelContext) -> Walk:
        raise self._not_single()

    def _not_single(self) -> ScheduleError:
        """Return the error of a schedule that only kernels of many products support."""
        return ScheduleError(
            f"schedule is {self!r}, which deals the tiles of many products; this is a single one",
            help="pass a schedule of single products, such as PersistentScheduler(), or call grouped_gemm()",
        )


AHEAD, IN_TURN = Dealt(True), Dealt(False)


class Slice(NamedTuple):
    """A part of a tile's K, from the `begin`-th to before the `end`-th iteration: the `number`-th of `parts`. Partial
    accumulators are adjacent in the workspace, from `slot` on."""

    begin: Scalar
    end: Scalar
    slot: Scalar
    number: Scalar
    parts: Scalar


class VisitorWalk(TileAfterTile):
    """The walk over the tiles of a visitor. `locate` makes a WorkTile of its `work`: again after the mainloop, so that
    the coordinates need no registers in it."""

    def __init__(self, visitor: Visitor, locate: Callable[..., WorkTile], ahead: bool) -> None:
        self.visitor, self.locate, self.ahead = visitor, locate, ahead

    def has_tile(self) -> Scalar:
        return self.visitor.next_tile()

    def work(self) -> WorkTile:
        item = self.visitor.work()
        return self.locate(*item)._replace(item=item)

    def advance(self) -> None:
        self.visitor.advance()

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        yield OutputTile(self.locate(*work.item), accumulators)


class PartsWalk(VisitorWalk):
    """The walk over tiles in parts: an item is the problem, the tile, and the words of a Slice."""

    def __init__(
        self,
        visitor: Visitor,
        locate: Callable[..., WorkTile],
        ahead: bool,
        memory: tuple[PointerValue, PointerValue],
        scratch: PointerValue,
    ) -> None:
        """Parts meet in `memory`, accumulators and semaphores; `scratch` is shared memory that is free then."""
        super().__init__(visitor, locate, ahead)
        self.memory, self.scratch = memory, scratch

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """Yield the tile in the block that comes last, with the sum of all parts."""
        part = Slice(*work.item[2:])
        located = self.locate(*work.item)
        with pd.if_(self._is_complete(accumulators, part)):
            yield OutputTile(located, accumulators)

    def _is_complete(self, accumulators: TileAccumulators, part: Slice) -> Scalar:
        complete = pd.var(u32, 1)
        with pd.if_(part.parts > 1):
            complete.set(0)
            partial, semaphore = PartialSums(accumulators.layout, self.memory[0]), self.memory[1] + part.slot
            slots = SumSlots(part.slot, part.parts, 1)
            with pd.if_(sums_in_last(accumulators, partial, semaphore, self.scratch, part.number, slots)):
                complete.set(1)
        return complete == 1
