"""Accesses to memory and what orders them, as observers see them: bounds, initialised bytes, races, counters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from ...errors import Location
from ...isa.step import Ordering, OrderingEvent
from ...notes import KernelNotes
from ..run.residents import Residents
from .phase_counts import PhaseCounts
from .regions import Allocation, Region, Table

READS, WRITES, UPDATES = "reads", "writes", "updates"
WRITE_FIRST = "write it first, for example with zeros"


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """An instruction that makes accesses, as findings name it.

    `number` is its position in the function, and `loops_to` the last position of the loops that start at or before it.
    """

    name: str
    location: Location | None
    number: int = 0
    loops_to: int = -1

    def shares_loop(self, other: Origin) -> bool:
        """True if a loop contains both instructions."""
        first, second = sorted((self, other), key=lambda origin: origin.number)
        return first.loops_to >= second.number


class Requester(Protocol):
    """Lanes that run an instruction which makes accesses."""

    residents: Residents
    alive: np.ndarray
    carried: np.ndarray | None

    @property
    def origin(self) -> Origin:
        """The instruction that runs."""

    @property
    def collective(self) -> bool:
        """Whether the lanes of a warp run it together."""

    @property
    def name(self) -> str: ...

    @property
    def lanes_now(self) -> np.ndarray: ...

    @property
    def notes(self) -> KernelNotes:
        """What Python says of the kernel."""

    @property
    def phases(self) -> PhaseCounts:
        """The counts of arrivals and waits at mbarriers."""

    @property
    def shared_table(self) -> Table:
        """The allocations in the shared memory of a block."""

    def shared_word(self, slot: int, offset: int) -> int:
        """Return the 64-bit word at an offset of the shared memory of the block in a slot."""

    def lanes_of(self, shape: tuple[int, ...]) -> np.ndarray:
        """The lane of each access of an array of them."""

    def of_lanes(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Values of an array over all lanes, for accesses of a shape."""

    def only(self, which: np.ndarray) -> AbstractContextManager[None]:
        """Narrows the current lanes to those of a mask of the shape of an access."""

    def note_unwritten(self, which: np.ndarray, text: str) -> None:
        """Lanes of a mask read what nobody wrote, as the text says."""

    def whole_warps(self, flags: np.ndarray) -> np.ndarray:
        """All lanes of warps of which one is flagged."""

    def refuse_carried(self, which: np.ndarray) -> None:
        """Reports lanes of a mask that write what nobody wrote to where it is a result."""

    def finding(
        self,
        kind: str,
        message: str,
        which: np.ndarray,
        others: Sequence[Location] = (),
        help: str = "",
        strict: bool = False,
    ) -> int:
        """Report what the lanes of a mask did; `others` are the locations of the other instructions involved.

        A `strict` finding is not an error, unless the launch is strict. Returns the number of the finding.
        """

    def note_race(self, which: np.ndarray, number: int) -> None:
        """Lanes of a mask read what another thread writes, unordered; `number` is that of the finding."""


@dataclass(eq=False, slots=True)
class Access:
    """What lanes do to memory in one step: they read, write or update `size` bytes at each address.

    `address` are addresses in `space`, int64, (lanes,), (warps, …) or with the instructions of a batch in front.
    `flat` are the places of the bytes in the data of `region`, `allowed` says which accesses may be made (None: all);
    both stand once the bounds were looked at, and `holder`, the allocation if all are to one. `items` are what a store
    will write. An `asynchronous` access is only issued now. `unwritten` marks stores of values that nobody wrote.
    `slots` says whose shared memory it is, where that may be of another block of the cluster. `mbarrier` are the
    addresses, (lanes,), of the mbarriers at which copies into shared memory complete.
    """

    kind: str
    space: str
    address: np.ndarray
    size: int
    ordering: Ordering
    region: Region
    by: Requester
    items: np.ndarray | None = None
    asynchronous: bool = False
    flat: np.ndarray = None  # type: ignore[assignment]
    allowed: np.ndarray | None = None
    unwritten: np.ndarray | None = None
    slots: np.ndarray | None = None
    holder: Allocation | None = None
    elements: int = 1
    mbarrier: np.ndarray | None = None

    @property
    def unit(self) -> int:
        """The bytes of an element: a vector access is a set of accesses to its elements."""
        return self.size // self.elements

    @property
    def lanes(self) -> np.ndarray:
        return self.by.lanes_of(self.address.shape)

    @property
    def tells_what_was_there(self) -> bool:
        """Whether the threads learn what they update: `atom` gives them the value, `red` does not."""
        return self.kind == UPDATES and self.by.name.startswith("atom.")


@dataclass(frozen=True, eq=False, slots=True)
class Convergence:
    """Lanes of warps meet at a collective: `active`, bool (warps, 32), of the warps `rows` (None: of all)."""

    rows: np.ndarray | None
    active: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class BarrierArrival:
    """Warps come to barriers of their blocks; None for all warps of all blocks to one barrier, which completes it."""

    slot: np.ndarray | None
    warp: np.ndarray | None
    barrier: np.ndarray | None


@dataclass(frozen=True, eq=False, slots=True)
class BarrierCompletion:
    """Barriers of blocks complete, `done` (slots, barriers): those warps go on that waited there."""

    done: np.ndarray
    slot: np.ndarray
    warp: np.ndarray
    barrier: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class ClusterArrival:
    """Lanes arrive at the barriers of their clusters; what they did is released, or not."""

    lanes: np.ndarray
    releases: bool


@dataclass(frozen=True, eq=False, slots=True)
class ClusterCompletion:
    """The barriers of resident clusters, `done` (clusters,), are complete."""

    done: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class ClusterWait:
    """Lanes have waited for the barriers of their clusters, and acquire."""

    lanes: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class BlockExit:
    """All threads of the blocks in these slots have ended: their shared memory is gone."""

    slots: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class CopyStart:
    """Asynchronous copies are issued, with a serial number; those before `oldest` have ended. Bulk loads are numbered
    separately."""

    serial: int
    oldest: int
    is_bulk: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Landing:
    """An asynchronous copy ends: `bytes` at each place of global memory are read and written to shared memory.

    Of these bytes `used` are read (None: all); the others become zero. Without `source` all do. `serial` is that of
    its start.
    """

    serial: int

    lanes: np.ndarray
    source: np.ndarray | None
    destination: np.ndarray
    bytes: int
    used: np.ndarray | None
    origin: Origin


@dataclass(frozen=True, eq=False, slots=True)
class ReadingEnd:
    """The async proxy has read 16 bytes at each place of shared memory, (chunks, …), for lanes, or their warps."""

    lanes: np.ndarray
    chunks: np.ndarray
    whole_warps: bool
    origin: Origin


@dataclass(frozen=True, eq=False, slots=True)
class BulkLanding:
    """Bulk copies of lanes end: 16 bytes at each place of shared memory, (chunks, lanes), are written.

    Their bytes are complete at `mbarrier`, (lanes,); `phases` are the mbarriers whose phases are complete with them.
    `sources` are items of `unit` bytes that were read, (items,), and by which of the lanes. `serial` is that of their
    start.
    """

    serial: int
    lanes: np.ndarray
    chunks: np.ndarray
    mbarrier: np.ndarray
    phases: np.ndarray
    source_space: str
    sources: np.ndarray
    readers: np.ndarray
    unit: int
    origin: Origin


@dataclass(frozen=True, eq=False, slots=True)
class ProductsEnd:
    """Warps know that a product of their warpgroup has ended: `rows`, (warpgroups, warps of each), their numbers.

    It needed all of them, so that each knows then what the others have done up to that.
    """

    rows: np.ndarray


BarrierEvent: TypeAlias = BarrierArrival | BarrierCompletion
ClusterEvent: TypeAlias = ClusterArrival | ClusterCompletion | ClusterWait | BlockExit
AsyncEvent: TypeAlias = CopyStart | Landing | ReadingEnd | BulkLanding | ProductsEnd
Event: TypeAlias = OrderingEvent | Convergence | BarrierEvent | ClusterEvent | AsyncEvent


class Observer:
    """Sees every access before it is made, and every event that orders accesses."""

    def access(self, access: Access) -> None:
        """Lanes are about to make an access; reports what is wrong with it."""

    def order(self, event: Event, by: Requester) -> None:
        """Something orders accesses."""

    def settle(self, residents: Residents) -> None:
        """Blocks start; all that ran before have ended."""

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Blocks start beside others, whose lanes and slots have other numbers now; -1 for those that are gone."""


def bytes_text(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"
