"""What an instruction's meaning may ask of the machine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, Self, TypeAlias

import numpy as np

from .. import ir
from ..types import Type


class Awaited(Enum):
    """What lanes wait for at an instruction, beside other lanes: where nobody can go on, it is told what that lacks."""

    NOTHING = auto()
    PHASE = auto()  # of the mbarrier at the address that is its first input
    REGISTERS = auto()  # that others give back, as many as its first input says


@dataclass(frozen=True, slots=True)
class Ordering:
    """How an access is ordered among those of other threads (PTX ISA, "Memory Consistency Model").

    `sem` is "weak", "relaxed", "volatile", "acquire", "release" or "acq_rel"; `scope` "cta", "cluster", "gpu" or "sys",
    "" for weak accesses, which no scope makes visible. `proxy` is the way to memory: "generic", "async", "tensormap"
    for the tensor map of a copy, or "mbarrier" for an mbarrier object: a weak store initialises it, a weak load
    invalidates it, and `PhaseArrival` and `PhaseWait` tell what it orders. An access that is not `coherent` may see the
    contents of memory when the kernel began, whatever orders it.
    """

    sem: str = "weak"
    scope: str = ""
    proxy: str = "generic"
    coherent: bool = True


WEAK = Ordering()
NON_COHERENT = Ordering(coherent=False)
ASYNC = Ordering(proxy="async")
TENSOR_MAP = Ordering(proxy="tensormap")
INITIALISATION = Ordering(proxy="mbarrier")
RELAXED = Ordering("relaxed", "gpu")


@dataclass(frozen=True, slots=True)
class Fence:
    """Lanes order their accesses before it and after it: `sem` is "sc", "acq_rel", "acquire" or "release".

    `proxy` names the proxy whose accesses are ordered with generic ones, in the state space `space` ("" for all). It is
    "" for a fence of threads, "mbarrier" for one of the mbarriers that the lanes initialised, after which all proxies
    see them, and "grid" for a wait for earlier grids.
    """

    sem: str
    scope: str
    proxy: str = ""
    space: str = ""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TensorMapAcquire(Fence):
    """Copies by the tensor maps at generic addresses, (lanes,), see behind it what was released of them."""

    address: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseArrival:
    """Arrival of lanes at the mbarriers at these addresses, before it is counted; with `asynchronous`, completion of
    the bytes of an asynchronous operation, which every wait for the phase acquires.
    """

    space: str
    address: np.ndarray
    ordering: Ordering
    asynchronous: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PhaseCompletion:
    """The phases of the mbarriers at these addresses are complete, where `complete`."""

    space: str
    address: np.ndarray
    complete: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseWait:
    """Lanes know, where `complete`, that the phases of the mbarriers at these addresses are complete."""

    space: str
    address: np.ndarray
    complete: np.ndarray
    ordering: Ordering


Update: TypeAlias = Callable[..., np.ndarray]

OrderingEvent: TypeAlias = Fence | PhaseArrival | PhaseCompletion | PhaseWait
"""What instructions tell of order beside their accesses."""


class LateInputs(Protocol):
    """What a product that is carried out late takes beside registers, for each of its warps.

    `chunks` are the addresses of 16 bytes that it reads of shared memory, (n, warps, 1).
    `accumulates` says of which warps the product is added to what the registers of the sums hold. `described` are the
    operands in the order of their chunks: "A" or "B", how many chunks, and by which descriptors, (warps,). The first
    `warp_chunks` of each warp are rows of A for its sums alone; all others are for its warpgroup.
    """

    @property
    def warp_chunks(self) -> int: ...

    @property
    def described(self) -> tuple[tuple[str, int, np.ndarray], ...]: ...

    @property
    def accumulates(self) -> np.ndarray: ...

    @property
    def chunks(self) -> np.ndarray: ...

    def part(self, which: np.ndarray) -> Self:
        """That of some of the warps."""


@dataclass(frozen=True, eq=False, slots=True)
class Pieces:
    """The other side of bulk copies, one for each lane: items of `unit` bytes, 16 or a power of two below.

    `address` (items, lanes) are addresses in `space`, in the order in which the bytes lie in shared memory. Where
    `inside`, of the same shape, is false (None: nowhere), a load reads `fill`, and a store leaves the bytes out.
    Copies by tensor maps may read them, at the generic addresses `maps` (lanes,), as long as they read their source.
    `swizzle` is the bytes of the span in which chunks change places in shared memory, 0 for lines as they are; None
    where bytes may come or go that lie by another swizzle already.
    """

    space: str
    address: np.ndarray
    unit: int
    inside: np.ndarray | None = None
    fill: bytes = b""
    maps: np.ndarray | None = None
    swizzle: int | None = None


class AsyncReading(Protocol):
    """Bytes of shared memory that the async proxy reads: begun by `Step.begin_reading`, until `Step.end_reading`."""

    lanes: np.ndarray


class Step(Protocol):
    """What an instruction's meaning may ask of the machine while it runs for some lanes.

    `shape` is (lanes,), or (warps, 32) for a collective; arrays in and out have it as their last axes. A batch of k
    consecutive instructions (`Op.batchable`) has shape (k, lanes) or (k, warps, 32). Inputs must not be written to.

    Addresses are uint64 arrays of byte addresses in their space: "global", "shared", "local", "param", "const" or
    "generic", with or without a suffix such as "::cta". Their shape is `shape`; of a collective the last axis may be
    shorter, for the first lanes of each warp (the row addresses of ldmatrix). An element of more than 64 bits has one
    more, last axis of uint64 words, least significant first. Every access goes through `load`, `store`, `atomic` and
    `copy_async`, and every fence and arrival through `order`, so that bounds, alignment, initialisation, races and
    banks are checked there and nowhere else; a lane whose access is refused reads poison, and its writes are dropped.

    A collective runs when all lanes of its operand named `membermask` that have not ended are there; within a warp
    the active lanes of one call are those of one mask. Without such an operand it needs all 32 lanes of the warp, or,
    with `Op.whole_warp` False, those that have not ended.
    """

    shape: tuple[int, ...]
    carry: np.ndarray  # the condition code CC.CF of each lane, uint8; may be assigned
    active: np.ndarray  # bool (warps, 32); lanes of a collective that take part
    numerics: str  # how matrix products are added up: "rounded" once, or as on an "h200"

    def load(
        self, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Ordering = WEAK
    ) -> np.ndarray:
        """`count` consecutive elements at each address: `address.shape` for one, (count, *address.shape) for more.

        The access is checked as one of count * type.bytes bytes. Elements have `type.dtype`.
        """

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Ordering = WEAK) -> None:
        """Elements to each address; `values` as `load` returns them: one more leading axis for several elements."""

    def atomic(
        self,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: np.ndarray,
        scan: np.ufunc | None = None,
        ordering: Ordering = RELAXED,
    ) -> np.ndarray:
        """memory = update(memory, *inputs) one lane after another; returns what each lane found.

        `update` works on arrays of any one shape, elementwise. `scan` is an associative ufunc that does the same as
        `update` on the one input, where numpy has one: it makes many lanes at one address fast.
        """

    def order(self, event: OrderingEvent) -> None:
        """Tells what the lanes order beside their accesses: a fence, an arrival at an mbarrier, the end of a wait."""

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        """Generic addresses of addresses in a space (cvta)."""

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        """Addresses in a space of generic addresses (cvta.to)."""

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        """bool: whether generic addresses lie in a space's window (isspacep)."""

    def special(self, name: str) -> np.ndarray:
        """A special register, such as "%tid.x"."""

    def together(self) -> np.ndarray:
        """uint32: the lanes of each lane's warp that run this instruction now (activemask)."""

    def copy_async(self, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray) -> None:
        """Queues a copy from global to shared; bytes past `source_bytes` become zero. Takes effect at its wait."""

    def commit_group(self) -> None:
        """Closes the lanes' group of queued copies."""

    def wait_group(self, pending: int) -> None:
        """Completes all but the newest `pending` groups of each lane."""

    def wait_all(self) -> None:
        """Completes all queued copies of the lanes, those in no group too."""

    def after_copies(self, action: Callable[[Step], object]) -> None:
        """Runs `action` for these lanes when all copies that they have queued so far are complete."""

    def multiply_late(self, inputs: LateInputs) -> None:
        """Queues a warpgroup's product; its registers (of an instruction with `Op.late`) are in use until the wait.

        Instead of their values the instruction has had None.
        """

    def warpgroups(self) -> np.ndarray:
        """(warpgroups, 4): the warps of `shape` that are in each, in order; (warps, 1) where some are not whole."""

    def fence_products(self) -> None:
        """What the warps did with registers so far comes before the products that they queue from now on."""

    def commit_products(self) -> None:
        """Closes the warps' group of queued products."""

    def wait_products(self, pending: int) -> None:
        """Carries out all but the newest `pending` groups of products of each warp."""

    def change_registers(self, count: int, more: bool) -> None:
        """Each thread has `count` registers now; with `more`, once others have given enough of them back."""

    def store_async(self, address: np.ndarray, action: Callable[[Step], object]) -> None:
        """Runs `action` for these lanes, which writes to addresses in shared::cluster, as late as may be."""

    def begin_reading(self, address: np.ndarray, described: Sequence[tuple[str, int, np.ndarray]] = ()) -> AsyncReading:
        """The async proxy reads, from now on, 16 bytes of shared memory at each address, (n, *shape).

        What the lanes do not know of, or have not fenced from the generic proxy, is reported now; what writes to these
        bytes before `end_reading` is reported when it does. Of a collective the last axis may be 1, for whole warps.
        An instruction that reads at once, as the products of wgmma do until their group is waited for, begins when it
        is issued and ends at the wait. `described` are operands that lie as descriptors say (`LateInputs`).
        """

    def end_reading(self, reading: AsyncReading) -> np.ndarray:
        """Ends it for all its lanes: the bytes as they are now, uint8 (n, *shape, 16). May run for other lanes."""

    def load_bulk(self, space: str, destination: np.ndarray, source: Pieces, mbarrier: np.ndarray) -> None:
        """Queues copies to shared memory, 16 bytes to each address (n, lanes), and completes all bytes at mbarriers.

        They take effect when a thread waits for the mbarrier and none can run.
        """

    def store_bulk(
        self, source: np.ndarray, destination: Pieces, type: Type | None = None, update: Update | None = None
    ) -> None:
        """Queues copies from shared memory, 16 bytes from each address (n, lanes), in the lanes' open bulk groups.

        With `update` each element of `type` at the destination becomes update(element, element of the source).
        """

    def commit_bulk_group(self) -> None:
        """Closes the lanes' bulk group."""

    def wait_bulk_group(self, pending: int, read: bool) -> None:
        """Completes all but the newest `pending` bulk groups of each lane; with `read` only their reading."""

    def share_effects(self) -> None:
        """Each lane of a warp counts as having done what this collective did so far, and not its share of it."""

    def only(self, which: np.ndarray) -> AbstractContextManager[None]:
        """Narrows the lanes to those of a mask of `shape`, for what is asked of the machine in the meantime."""

    def suspend(self, ready: np.ndarray) -> None:
        """Let lanes where `ready` is false run this instruction again when memory has changed, without an output.

        The schedule may let the limited time of the wait end first: then they get their output.
        """

    def reads_result(self) -> bool:
        """True if some instruction of the function reads what this one writes."""

    def barrier(self, index: np.ndarray, threads: np.ndarray | None, arrive: bool = False) -> None:
        """CTA barrier `index`, for `threads` threads (None: all of the CTA); `arrive` does not wait."""

    def barrier_reduce(
        self, index: np.ndarray, threads: np.ndarray | None, values: np.ndarray, how: str
    ) -> np.ndarray | None:
        """As `barrier`; "popc", "and" or "or" of all values, None until all have come."""

    def cluster_arrive(self, releases: bool) -> None:
        """The lanes arrive at the barrier of their cluster; `releases` what they did before."""

    def cluster_wait(self) -> None:
        """Waits for all threads of the cluster that have not ended, and acquires what they released."""

    def jump(self, target: ir.Label) -> None:
        """The lanes go on at a label."""

    def jump_each(self, index: np.ndarray, targets: ir.Label) -> None:
        """Each lane goes on at the label with that index in a list (.branchtargets)."""

    def call(
        self,
        function: ir.Function | ir.Symbol | np.ndarray,
        arguments: Sequence[ir.Operand],
        results: Sequence[ir.Operand],
    ) -> None:
        """The lanes go on in a device function: an ir.Function, an ir.Symbol, or an array of function addresses."""

    def leave(self) -> None:
        """The lanes return from their function; from a kernel, they end."""

    def exit(self) -> None:
        """The lanes end."""

    def abort(self) -> None:
        """The kernel ends, as after an error on a GPU."""

    def sleep(self, nanoseconds: np.ndarray) -> None:
        """Lets time pass: other lanes run first."""

    def fail(
        self,
        kind: str,
        message: str,
        where: np.ndarray | None = None,
        help: str = "",
        mbarrier: np.ndarray | None = None,
        strict: bool = False,
    ) -> None:
        """Report a finding at this instruction for the lanes where `where` holds (None: all that take part).

        `help` says how to fix it, unless the objects at the addresses `mbarrier` in shared memory are those of a ring.
        A `strict` finding is not an error in parsed PTX, unless PTXDSL_STRICT is on.
        """
