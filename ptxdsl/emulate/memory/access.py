"""Accesses to memory and the events that order them, for observers: bounds, initialisation, races, counters."""

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
    """An instruction that makes accesses, as named in findings.

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
    """The lanes of an instruction that makes accesses."""

    residents: Residents
    alive: np.ndarray
    carried: np.ndarray | None

    @property
    def origin(self) -> Origin:
        """The current instruction."""

    @property
    def collective(self) -> bool:
        """True if the lanes of a warp run it together."""

    @property
    def name(self) -> str: ...

    @property
    def lanes_now(self) -> np.ndarray: ...

    @property
    def notes(self) -> KernelNotes:
        """The Python facts about the kernel."""

    @property
    def phases(self) -> PhaseCounts:
        """The counts of arrivals and waits at mbarriers."""

    @property
    def shared_table(self) -> Table:
        """The allocations in the shared memory of a block."""

    def shared_word(self, slot: int, offset: int) -> int:
        """Return the 64-bit word at an offset of the shared memory of the block in a slot."""

    def lanes_of(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the lane of each access in an array of accesses."""

    def of_lanes(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Expand values per lane to the shape of accesses."""

    def only(self, which: np.ndarray) -> AbstractContextManager[None]:
        """Narrow the current lanes to those of a mask of the shape of an access."""

    def note_unwritten(self, which: np.ndarray, text: str) -> None:
        """Record that lanes of a mask read uninitialised bytes; `text` is the message."""

    def whole_warps(self, flags: np.ndarray) -> np.ndarray:
        """Return all lanes of warps with a flagged lane."""

    def refuse_carried(self, which: np.ndarray) -> None:
        """Report lanes of a mask that write uninitialised values to results."""

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
        """Record that lanes of a mask read what another thread writes, unordered; `number` is the number of the
        finding.
        """


@dataclass(eq=False, slots=True)
class Access:
    """An access of lanes in one step: a read, write or update of `size` bytes at each address.

    `address` are addresses in `space`, int64, (lanes,), (warps, …) or with the instructions of a batch in front. `flat`
    are the offsets of the bytes in the data of `region`, `allowed` the flags of valid accesses (None: all); both are
    set by the bounds check, and so is `holder`, the allocation if all accesses are to one. `items` are the values of a
    store. An `asynchronous` access is only issued now. `unwritten` marks stores of uninitialised values. `slots` are
    the blocks that own the shared memory, if it may be in another block of the cluster. `mbarrier` are the addresses,
    (lanes,), of the mbarriers at which copies into shared memory complete. `misuses` marks accesses to mbarrier objects
    that are no operations on these.
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
    misuses: bool = False

    @property
    def unit(self) -> int:
        """The bytes of an element: a vector access is a set of accesses to its elements."""
        return self.size // self.elements

    @property
    def lanes(self) -> np.ndarray:
        return self.by.lanes_of(self.address.shape)

    @property
    def tells_what_was_there(self) -> bool:
        """True if the threads receive the old value: `atom` returns it, `red` does not."""
        return self.kind == UPDATES and self.by.name.startswith("atom.")


@dataclass(frozen=True, eq=False, slots=True)
class Convergence:
    """The convergence of lanes at a collective: `active`, bool (warps, 32), of the warps `rows` (None: all)."""

    rows: np.ndarray | None
    active: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class BarrierArrival:
    """The arrival of warps at barriers of their blocks; None for all warps of all blocks at one barrier, which
    completes it.
    """

    slot: np.ndarray | None
    warp: np.ndarray | None
    barrier: np.ndarray | None


@dataclass(frozen=True, eq=False, slots=True)
class BarrierCompletion:
    """The completion of barriers of blocks, `done` (slots, barriers): the waiting warps continue."""

    done: np.ndarray
    slot: np.ndarray
    warp: np.ndarray
    barrier: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class ClusterArrival:
    """The arrival of lanes at the barriers of their clusters, with or without release."""

    lanes: np.ndarray
    releases: bool


@dataclass(frozen=True, eq=False, slots=True)
class ClusterCompletion:
    """The completion of the barriers of resident clusters, `done` (clusters,)."""

    done: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class ClusterWait:
    """The end of the wait of lanes for the barriers of their clusters, with acquire."""

    lanes: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class BlockExit:
    """The end of all threads of the blocks in these slots: their shared memory is gone."""

    slots: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class CopyStart:
    """Asynchronous copies are issued, with a serial number; those before `oldest` have ended. Bulk loads are numbered
    separately."""

    serial: int
    oldest: int
    is_bulk: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class RemoteIssue:
    """Stores to other blocks are issued; they complete at the offsets `mbarriers` of shared memory, (lanes,). If it
    `releases`, their completion tells what their threads did before.
    """

    mbarriers: np.ndarray
    releases: bool


@dataclass(frozen=True, eq=False, slots=True)
class RemoteLanding:
    """Stores to other blocks are carried out from now on, until the landing `ends`."""

    stores: RemoteIssue
    ends: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Landing:
    """The end of an asynchronous copy: `bytes` at each global offset are read and written to shared memory.

    `used` of these bytes are read (None: all); the others become zero. Without `source` all become zero. `serial` is
    the number of its start.
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
    """The end of the async proxy's read of 16 bytes at each offset of shared memory, (chunks, …), for lanes or their
    warps.
    """

    lanes: np.ndarray
    chunks: np.ndarray
    whole_warps: bool
    origin: Origin


@dataclass(frozen=True, eq=False, slots=True)
class BulkLanding:
    """The end of bulk copies of lanes: 16 bytes at each offset of shared memory, (chunks, lanes), are written.

    Their bytes are completed at `mbarrier`, (lanes,); `phases` are the mbarriers whose phases complete. `sources` are
    the items of `unit` bytes that were read, (items,), for the copies `readers`, indices into `lanes`. `serial` is the
    number of their start.
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
    """The end of a product of a warpgroup, as seen by its warps: `rows`, (warpgroups, warps of each), are their
    numbers.

    The product needed all of them, so each then knows what the others did before it.
    """

    rows: np.ndarray


BarrierEvent: TypeAlias = BarrierArrival | BarrierCompletion
ClusterEvent: TypeAlias = ClusterArrival | ClusterCompletion | ClusterWait | BlockExit
AsyncEvent: TypeAlias = CopyStart | RemoteIssue | RemoteLanding | Landing | ReadingEnd | BulkLanding | ProductsEnd
Event: TypeAlias = OrderingEvent | Convergence | BarrierEvent | ClusterEvent | AsyncEvent


class Observer:
    """An observer of every access before it is made, and of every event that orders accesses."""

    def access(self, access: Access) -> None:
        """Check an access before lanes make it, and report errors."""

    def order(self, event: Event, by: Requester) -> None:
        """Handle an event that orders accesses."""

    def settle(self, residents: Residents) -> None:
        """Handle the start of blocks after all earlier blocks have ended."""

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Handle the start of blocks next to others, whose lanes and slots are renumbered; -1 for those that have
        ended.
        """


def bytes_text(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"
