"""The interface of a tile schedule: it plans a launch on the host, and walks over the tiles of a block in the kernel.

A new schedule is a class with `plan` and `walk`, passed as schedule=; `fields` are the parameters of its kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

import ptxdsl as pd
from ptxdsl import ptr, u32
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, TileAccumulators
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.product import Index, OutputTile, Products, WorkTile
from ptxdsl.schedule.problems import GemmShape
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Type

Extents = tuple[int, int, int]
StartLoads: TypeAlias = Callable[[WorkTile], None]
"""Begins the copies of a tile, to a ring that is free."""


def loaded_elsewhere(work: WorkTile) -> None:
    """Do nothing: other warps issue the loads."""


class ProblemShape(NamedTuple):
    """The (M, N, K) of a product, and the number of batches, or None for a single product."""

    shape: GemmShape
    batches: int | None = None


@dataclass(frozen=True)
class Plan:
    """A launch: the grid; `numbers`, the values of the schedule's fields; and the workspace in which blocks meet: room
    for `sums`, and 32-bit semaphores, which are 0 before and after."""

    grid: tuple[int, int, int]
    numbers: Mapping[str, int] = field(default_factory=dict)
    sums: int = 0
    semaphores: int = 0


class TileSchedule(ABC):
    """The assignment of tiles to blocks: a hashable value that kernels are specialised for."""

    has_one_tile = False  # a block computes at most one tile, so that the ring is free after the products
    ahead = False  # the loads of the next tile start before a tile is stored, which needs memory outside of the ring
    shares = False  # blocks meet: the kernel then has the fields `sums` and `semaphores`, pointers to memory
    streamed = False  # A is loaded with evict_first, because each of its lines is loaded once
    has_groups = False  # tiles are of many products, which end within tiles

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """The shape of a cluster of blocks, or None."""
        return None

    @property
    def multicast(self) -> tuple[int, int]:
        """The blocks of a cluster along M and N that compute neighbouring tiles and share loads of A and B."""
        return 1, 1

    @property
    def has_whole_tiles(self) -> bool:
        """True if a block that stores a tile has multiplied all of it."""
        return not self.shares and (self.cluster is None or self.multicast != (1, 1))

    def exchanged(self, layout: AccumulatorLayout) -> int:
        """Return the bytes of shared memory to which other blocks of a cluster write accumulators."""
        return 0

    def general(self) -> TileSchedule:
        """Return the schedule that the kernel is specialised for: without the numbers that are parameters of a
        launch."""
        return self

    def is_ahead(self, operands: Operands) -> bool:
        """Return `ahead`, or what follows from the operands."""
        return self.ahead

    def fields(self) -> Mapping[str, Type]:
        """Return the names and types of the parameters of the kernel."""
        return {}

    def parameters(self, sum: Type) -> Callable[..., pd.Parameters]:
        """Return the fields as a group of parameters."""
        memory = {"sums": ptr[sum], "semaphores": ptr[u32]} if self.shares else {}
        return pd.Parameters.of(type(self).__name__, **memory, **self.fields())

    @abstractmethod
    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        """Return the launch for a problem cut into tiles of these extents; `resident` returns the number of resident
        blocks.

        Raises ScheduleError if there is none, or blocks would wait for others that cannot run.
        """

    @abstractmethod
    def walk(self, context: KernelContext) -> Walk:
        """Return the walk over the tiles of this block, in a kernel."""


class ExchangeMemory(NamedTuple):
    """Shared memory to which other blocks of a cluster write accumulators: at any time or, if it is in the ring, only
    after this block has read its operands."""

    memory: PointerValue
    is_in_ring: bool


@dataclass(frozen=True)
class KernelContext:
    """The parts of a kernel that a walk may use: its products, the fields of the schedule, the layout of accumulators,
    `scratch`, shared memory that is free when the accumulators of a tile are complete, `ahead`, true if loads run ahead
    of the epilogue, and `exchange`, the memory to which blocks of a cluster write accumulators."""

    products: Products
    fields: Any
    layout: AccumulatorLayout
    scratch: PointerValue
    ahead: bool = False
    exchange: ExchangeMemory | None = None


class Walk(ABC):
    """The tiles of one block. The kernel multiplies each tile and stores the output tiles of `complete`."""

    def located_by(self, who: Scalar) -> Self:
        """Return this walk with its first tile located in advance, in the threads that will need it, while other
        threads set up."""
        return self

    @abstractmethod
    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        """Yield the tiles of this block, each with its loads started by `start`: a loop of the kernel, or a single
        round."""

    def along_k(self, iterations: Index) -> Iterator[object]:
        """Iterate over K in a loop of the kernel. Warpgroups that alternate at the tensor cores wait for their turn
        here, and pass it on after the last wgmma."""
        yield from pd.range(iterations, unroll=1)

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """Yield what can be stored when the accumulators of a tile are complete: the tile, if no other block shares
        it."""
        yield OutputTile(work, accumulators)

    def skip(self, work: WorkTile) -> None:  # noqa: B027 — most walks have nothing to do for it
        """Advance past a tile that others multiply and store."""

    def leftovers(self) -> Iterator[OutputTile]:
        """Yield what must be stored at the end, of tiles that other blocks have multiplied."""
        return iter(())


class TileAfterTile(Walk):
    """A block that computes tile after tile. If it runs `ahead`, the loads of the next tile start before one is
    stored."""

    ahead = False
    start: StartLoads = staticmethod(loaded_elsewhere)

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        if start is not self.start:  # a role that changes an outer object is traced again
            self.start = start
        self.seek()
        if self.ahead:
            self._start_next()
        with pd.while_(self.has_tile):
            work = self.work()
            if not self.ahead:
                start(work)
            yield work

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        work = self.kept(work)
        if self.ahead:
            self.advance()
            self._start_next()
        yield from self.finish(work, accumulators)
        if not self.ahead:
            pd.ptx.bar.sync(0)  # the next loads overwrite the staged output
            self.advance()

    def skip(self, work: WorkTile) -> None:
        self.advance()

    def _start_next(self) -> None:
        if self.start is loaded_elsewhere:
            return
        with pd.if_(self.has_tile()):
            self.start(self.work())

    def seek(self) -> None:
        """Advance to the first tile, if there is one."""

    @abstractmethod
    def has_tile(self) -> Scalar:
        """Return whether this block has a tile left. For the condition of a loop in which all threads take part."""

    @abstractmethod
    def work(self) -> WorkTile:
        """Return the current tile."""

    def kept(self, work: WorkTile) -> WorkTile:
        """Return the tile as it is needed after the walk has advanced."""
        return work

    @abstractmethod
    def advance(self) -> None:
        """Advance to the next tile, if there is one."""

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """Yield what can be stored, as `Walk.complete` does."""
        yield OutputTile(work, accumulators)
