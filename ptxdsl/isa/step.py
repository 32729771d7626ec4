"""The interface between the meaning of an instruction and the machine that runs it."""

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
    """The objects that lanes may wait for at an instruction, for deadlock reports."""

    NOTHING = auto()
    PHASE = auto()  # the phase of the mbarrier at the address of its first input
    REGISTERS = auto()  # registers that other warps release, as many as its first input


@dataclass(frozen=True, slots=True)
class Ordering:
    """The order of an access relative to those of other threads (PTX ISA, "Memory Consistency Model").

    `sem` is "weak", "relaxed", "volatile", "acquire", "release" or "acq_rel"; `scope` "cta", "cluster", "gpu" or "sys",
    "" for weak accesses, which no scope makes visible. `proxy` is the way to memory: "generic", "async", "tensormap"
    for the tensor map of a copy, or "mbarrier" for an mbarrier object: a weak store initialises it, a weak load
    invalidates it, and `PhaseArrival` and `PhaseWait` give what it orders. An access that is not `coherent` may see the
    contents of memory at the start of the kernel, regardless of order.
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
    """A fence of lanes between their accesses before and after it: `sem` is "sc", "acq_rel", "acquire" or "release".

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
    """An acquire of the tensor maps at generic addresses, (lanes,), by later copies."""

    address: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseArrival:
    """The arrival of lanes at the mbarriers at these addresses, before it is counted.

    With `asynchronous`, the completion of the bytes of an asynchronous operation, which every wait for the phase
    acquires.
    """

    space: str
    address: np.ndarray
    ordering: Ordering
    asynchronous: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PhaseCompletion:
    """The completion of the phases of the mbarriers at these addresses, where `complete`."""

    space: str
    address: np.ndarray
    complete: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseWait:
    """A wait in which lanes learn, where `complete`, that phases of the mbarriers at these addresses are complete."""

    space: str
    address: np.ndarray
    complete: np.ndarray
    ordering: Ordering


Update: TypeAlias = Callable[..., np.ndarray]

OrderingEvent: TypeAlias = Fence | PhaseArrival | PhaseCompletion | PhaseWait
"""What instructions tell of order beside their accesses."""


class LateInputs(Protocol):
    """The inputs of a late product other than registers, for each of its warps.

    `chunks` are the addresses of the 16-byte chunks that it reads in shared memory, (n, warps, 1). `accumulates` is
    true for warps whose product is added to the accumulators. `described` are the operands in the order of their
    chunks: "A" or "B", the number of chunks, and the descriptors, (warps,). The first `warp_chunks` of each warp are
    rows of A for its own accumulators; all others are for its warpgroup.
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
        """Return the inputs of some of the warps."""


@dataclass(frozen=True, eq=False, slots=True)
class Pieces:
    """The global side of bulk copies, one for each lane: items of `unit` bytes, 16 or a smaller power of two.

    `address` (items, lanes) are addresses in `space`, in the order of the bytes in shared memory. Where `inside`, of
    the same shape, is false (None: nowhere), a load reads `fill`, and a store skips the bytes. Copies by tensor maps
    may read them, at the generic addresses `maps` (lanes,), until they have read their source. `swizzle` is the span in
    bytes in which chunks are permuted in shared memory, 0 without a swizzle; None if the bytes may already be swizzled
    otherwise.
    """

    space: str
    address: np.ndarray
    unit: int
    inside: np.ndarray | None = None
    fill: bytes = b""
    maps: np.ndarray | None = None
    swizzle: int | None = None


class AsyncReading(Protocol):
    """A read of shared memory by the async proxy, from `Step.begin_reading` to `Step.end_reading`."""

    lanes: np.ndarray


class Step(Protocol):
    """The operations of the machine that an instruction's meaning may use while it runs for some lanes.

    `shape` is (lanes,), or (warps, 32) for a collective; arrays in and out have it as their last axes. A batch of k
    consecutive instructions (`Op.batchable`) has shape (k, lanes) or (k, warps, 32). Inputs must not be written to.

    Addresses are uint64 arrays of byte addresses in their space: "global", "shared", "local", "param", "const" or
    "generic", with or without a suffix such as "::cta". Their shape is `shape`; for a collective the last axis may be
    shorter, for the first lanes of each warp (the row addresses of ldmatrix). An element of more than 64 bits has one
    more, last axis of uint64 words, least significant first. Every access goes through `load`, `store`, `atomic` and
    `copy_async`, and every fence and arrival through `order`, so that bounds, alignment, initialisation, races and
    banks are checked there and nowhere else; a lane whose access is refused reads poison, and its writes are dropped.

    A collective runs when all lanes of its operand named `membermask` that have not ended are there; within a warp the
    active lanes of one call are those of one mask. Without such an operand it needs all 32 lanes of the warp, or, with
    `Op.whole_warp` False, those that have not ended.
    """

    shape: tuple[int, ...]
    carry: np.ndarray  # the condition code CC.CF of each lane, uint8; may be assigned
    active: np.ndarray  # bool (warps, 32); the lanes that take part in a collective
    numerics: str  # accumulation of matrix products: "rounded" once, or as on an "h200"

    def load(
        self, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Ordering = WEAK
    ) -> np.ndarray:
        """Load `count` consecutive elements at each address: `address.shape` for one, (count, *address.shape) for more.

        The access is checked as one of count * type.bytes bytes. Elements have `type.dtype`.
        """

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Ordering = WEAK) -> None:
        """Store elements at each address; `values` are as from `load`: one more leading axis for several elements."""

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
        """Apply memory = update(memory, *inputs), one lane after another, and return the old value of each lane.

        `update` works on arrays of any one shape, elementwise. `scan` is an associative ufunc equal to `update` on one
        input, if numpy has one: it makes many lanes at one address fast.
        """

    def order(self, event: OrderingEvent) -> None:
        """Report an ordering event of the lanes: a fence, an arrival at an mbarrier, the end of a wait."""

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        """Convert addresses in a space to generic addresses (cvta)."""

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        """Convert generic addresses to addresses in a space (cvta.to)."""

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        """Return a bool per address: True if a generic address is in a space's window (isspacep)."""

    def special(self, name: str) -> np.ndarray:
        """Return a special register, such as "%tid.x"."""

    def together(self) -> np.ndarray:
        """Return uint32 masks of the lanes of each lane's warp that run this instruction now (activemask)."""

    def copy_async(self, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray) -> None:
        """Queue a copy from global to shared; bytes past `source_bytes` become zero. Takes effect at its wait."""

    def commit_group(self) -> None:
        """Close the lanes' group of queued copies."""

    def wait_group(self, pending: int) -> None:
        """Complete all but the newest `pending` groups of each lane."""

    def wait_all(self) -> None:
        """Complete all queued copies of the lanes, including those in no group."""

    def after_copies(self, action: Callable[[Step], object]) -> None:
        """Run `action` for these lanes when all copies that they have queued so far are complete."""

    def multiply_late(self, inputs: LateInputs) -> None:
        """Queue a warpgroup's product; its registers (of an instruction with `Op.late`) are in use until the wait.

        The instruction received None instead of their values.
        """

    def warpgroups(self) -> np.ndarray:
        """Return (warpgroups, 4): the warps of `shape` in each warpgroup; (warps, 1) if some are incomplete."""

    def fence_products(self) -> None:
        """Order the warps' accesses to registers so far before the products that they queue from now on."""

    def commit_products(self) -> None:
        """Close the warps' group of queued products."""

    def wait_products(self, pending: int) -> None:
        """Carry out all but the newest `pending` groups of products of each warp."""

    def change_registers(self, count: int, more: bool) -> None:
        """Set the register count of each thread to `count`; with `more`, once other warps have released enough."""

    def store_async(self, address: np.ndarray, action: Callable[[Step], object]) -> None:
        """Run `action` for these lanes, which writes to addresses in shared::cluster, as late as possible."""

    def begin_reading(self, address: np.ndarray, described: Sequence[tuple[str, int, np.ndarray]] = ()) -> AsyncReading:
        """Begin to read 16 bytes of shared memory at each address, (n, *shape), through the async proxy.

        Writes that are not ordered before it, or not fenced from the generic proxy, are reported now; later writes to these bytes are
        reported when they happen, until `end_reading`. For a collective the last axis may be 1, for whole warps. An
        instruction that reads late, as wgmma does until its group is waited for, begins when it is issued and ends at
        the wait. `described` are operands with descriptors (`LateInputs`).
        """

    def end_reading(self, reading: AsyncReading) -> np.ndarray:
        """End the read for all its lanes; return the present bytes, uint8 (n, *shape, 16). May run for other lanes."""

    def load_bulk(self, space: str, destination: np.ndarray, source: Pieces, mbarrier: np.ndarray) -> None:
        """Queue copies to shared memory, 16 bytes to each address (n, lanes), which complete all bytes at mbarriers.

        They take effect when a thread waits for the mbarrier and none can run.
        """

    def store_bulk(
        self, source: np.ndarray, destination: Pieces, type: Type | None = None, update: Update | None = None
    ) -> None:
        """Queue copies from shared memory, 16 bytes from each address (n, lanes), in the lanes' open bulk groups.

        With `update` each element of `type` at the destination becomes update(element, element of the source).
        """

    def commit_bulk_group(self) -> None:
        """Close the lanes' bulk group."""

    def wait_bulk_group(self, pending: int, read: bool) -> None:
        """Complete all but the newest `pending` bulk groups of each lane; with `read`, only their reads."""

    def share_effects(self) -> None:
        """Attribute the effects of this collective so far to every lane of a warp, instead of to the lane with the
        share.
        """

    def only(self, which: np.ndarray) -> AbstractContextManager[None]:
        """Narrow the lanes to those of a mask of `shape` for the body of a `with`."""

    def suspend(self, ready: np.ndarray) -> None:
        """Let lanes where `ready` is false run this instruction again when memory has changed, without an output.

        The schedule may let the limited time of the wait end first: then they get their output.
        """

    def reads_result(self) -> bool:
        """True if some instruction of the function reads what this one writes."""

    def barrier(self, index: np.ndarray, threads: np.ndarray | None, arrive: bool = False) -> None:
        """Wait at CTA barrier `index`, for `threads` threads (None: all of the CTA); `arrive` does not wait."""

    def barrier_reduce(
        self, index: np.ndarray, threads: np.ndarray | None, values: np.ndarray, how: str
    ) -> np.ndarray | None:
        """Wait as `barrier` does; return "popc", "and" or "or" of all values, None until all have arrived."""

    def cluster_arrive(self, releases: bool) -> None:
        """Arrive at the barrier of the cluster; `releases` publishes the lanes' earlier writes."""

    def cluster_wait(self) -> None:
        """Wait for all threads of the cluster that have not ended, and acquire their released writes."""

    def jump(self, target: ir.Label) -> None:
        """Continue at a label."""

    def jump_each(self, index: np.ndarray, targets: ir.Label) -> None:
        """Continue each lane at the label with its index in a list (.branchtargets)."""

    def call(
        self,
        function: ir.Function | ir.Symbol | np.ndarray,
        arguments: Sequence[ir.Operand],
        results: Sequence[ir.Operand],
    ) -> None:
        """Call a device function: an ir.Function, an ir.Symbol, or an array of function addresses."""

    def leave(self) -> None:
        """Return from the function; from a kernel, end the lanes."""

    def exit(self) -> None:
        """End the lanes."""

    def abort(self) -> None:
        """End the kernel, as after an error on a GPU."""

    def sleep(self, nanoseconds: np.ndarray) -> None:
        """Let time pass: other lanes run first."""

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
