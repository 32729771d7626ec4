"""What a schedule of tiles is: it plans a launch on the host, and in the kernel it walks through the tiles of a block.

A new one is a class with `plan` and `walk`; what its kernel must be told are its `fields`. It is passed as schedule=.
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
    """Copies are the work of other warps."""


class ProblemShape(NamedTuple):
    """What is computed: the (M, N, K) of a product, and how many of it; no batches are None."""

    shape: GemmShape
    batches: int | None = None


@dataclass(frozen=True)
class Plan:
    """A launch: the grid; `numbers`, the fields of the schedule in the kernel; and the memory in which blocks meet:
    room for `accumulators`, and semaphores of 32 bits, which are 0 before and after."""

    grid: tuple[int, int, int]
    numbers: Mapping[str, int] = field(default_factory=dict)
    sums: int = 0
    semaphores: int = 0


class TileSchedule(ABC):
    """Which tiles a block computes, and how blocks share one: a hashable value, for which a kernel is made."""

    has_one_tile = False  # whether a block computes one tile at most, so that its ring is free behind the products
    knows_last = False  # whether its walk tells which tile of a block is the last one
    shares = (
        False  # whether blocks meet: the kernel then has the fields `accumulators` and `semaphores`, pointers to memory
    )

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """How many blocks along each axis are a cluster, where some are."""
        return None

    @property
    def multicast(self) -> tuple[int, int]:
        """How many blocks of a cluster, along M and N, take neighbouring tiles and share what is copied of A and B."""
        return 1, 1

    @property
    def joins_batches(self) -> bool:
        """Whether blocks that share copies of one B may have tiles of different batches."""
        return False

    @property
    def streams_a(self) -> bool:
        """Whether tensor copies of A are the first to leave the L2 cache: where they bring each line once."""
        return False

    @property
    def has_whole_tiles(self) -> bool:
        """Whether a block that stores a tile has multiplied all of it."""
        return not self.shares and (self.cluster is None or self.multicast != (1, 1))

    def interleaved(self, step: int) -> TileSchedule | None:
        """The same for a product whose rows of A are taken as batches in turn, each row `step` elements further on in
        its L2 line than the one before; None where products are taken as they are."""
        return None

    def exchanged(self, layout: AccumulatorLayout) -> int:
        """Bytes of shared memory to which other blocks of a cluster bring accumulators."""
        return 0

    def general(self) -> TileSchedule:
        """The schedule that the kernel is made for: without the numbers that a launch tells it."""
        return self

    def is_ahead(self, operands: Operands) -> bool:
        """Whether the copies of the next tile begin before one is stored, which takes memory beside the ring."""
        return False

    def fields(self) -> Mapping[str, Type]:
        """What the kernel is told: names and types."""
        return {}

    def parameters(self, sum: Type) -> Callable[..., pd.Parameters]:
        """The fields as a group of parameters."""
        memory = {"sums": ptr[sum], "semaphores": ptr[u32]} if self.shares else {}
        return pd.Parameters.of(type(self).__name__, **memory, **self.fields())

    @abstractmethod
    def plan(self, problem: ProblemShape, tile: Extents, resident: Callable[[], int]) -> Plan:
        """The launch for a problem that is cut into such tiles, of a kernel of which so many blocks can be resident.

        Raises ScheduleError for one that cannot be made, or whose blocks would wait for others that cannot run.
        """

    @abstractmethod
    def walk(self, context: KernelContext) -> Walk:
        """What this block does, in a kernel."""


class ExchangeMemory(NamedTuple):
    """Shared memory to which other blocks of a cluster bring accumulators: at any time, but where it lies in the ring
    only when this block has read that to the end."""

    memory: PointerValue
    is_in_ring: bool


@dataclass(frozen=True)
class KernelContext:
    """What a walk may use in a kernel: its products, the fields of its schedule, the layout of accumulators, whether it
    goes `ahead`, and `scratch`, a pointer to shared memory that is free when the accumulators of a tile are complete;
    `exchange` is where other blocks of a cluster may bring accumulators."""

    products: Products
    fields: Any
    layout: AccumulatorLayout
    scratch: PointerValue
    ahead: bool = False
    exchange: ExchangeMemory | None = None


class Walk(ABC):
    """What one block does. The kernel multiplies each tile, and stores what `complete` makes of its accumulators."""

    def located_by(self, who: Scalar) -> Self:
        """This walk, whose first tile is found already, where that can be done, in those threads that will ask for it:
        beside what other threads do to begin."""
        return self

    @abstractmethod
    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        """The tiles of this block, each with its copies begun: a loop of the kernel, or a single round."""

    def along_k(self, iterations: Index) -> Iterator[object]:
        """So many iterations along K of a tile: a loop of the kernel. Of warpgroups that take turns at the tensor
        cores, each has its own here, which it passes on behind the last product that it begins."""
        yield from pd.range(iterations, unroll=1)

    def complete(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """What can be stored when the accumulators of a tile are there: the tile, where no other block has a part in
        it."""
        yield OutputTile(work, accumulators)

    def skip(self, work: WorkTile) -> None:  # noqa: B027 — most walks have nothing to do for it
        """Goes on behind a tile that others multiply and store."""

    def leftovers(self) -> Iterator[OutputTile]:
        """What is to be stored at the end, of tiles that others have multiplied."""
        return iter(())


class TileAfterTile(Walk):
    """A block that takes tile after tile. Where it goes `ahead`, the copies of the next one are under way while one is
    stored: this is done here alone."""

    ahead = False
    start: StartLoads = staticmethod(loaded_elsewhere)

    def tiles(self, start: StartLoads) -> Iterator[WorkTile]:
        if start is not self.start:  # in a role: a kernel that changes what it reaches from outside is traced again
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
            pd.ptx.bar.sync(0)  # the next copies overwrite the staged output
            self.advance()

    def skip(self, work: WorkTile) -> None:
        self.advance()

    def _start_next(self) -> None:
        if self.start is loaded_elsewhere:
            return
        with pd.if_(self.has_tile()):
            self.start(self.work())

    def seek(self) -> None:
        """Goes to the first tile, where there is one."""

    @abstractmethod
    def has_tile(self) -> Scalar:
        """Whether there is a tile left for this block. For the condition of a loop, in which all threads meet."""

    @abstractmethod
    def work(self) -> WorkTile:
        """The tile at which the walk is."""

    def kept(self, work: WorkTile) -> WorkTile:
        """The tile, as it is needed when the walk has gone on."""
        return work

    @abstractmethod
    def advance(self) -> None:
        """Goes on to the next tile, where there is one."""

    def finish(self, work: WorkTile, accumulators: TileAccumulators) -> Iterator[OutputTile]:
        """What can be stored; as `complete` of a Walk."""
        yield OutputTile(work, accumulators)
