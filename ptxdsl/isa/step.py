"""The interface of the machine to the semantics of instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from .. import ir
from ..layout.tensor_memory import TensorFragment, TensorRegion
from ..types import Type


class Awaited(Enum):
    """The event that lanes wait for at an instruction, in addition to other lanes; a deadlock report names it."""

    NOTHING = auto()
    PHASE = auto()  # the completion of a phase of the mbarrier whose address is the first input
    REGISTERS = auto()  # registers that other warps release; the first input is their number
    TENSOR_MEMORY = auto()  # columns of tensor memory that other warps deallocate, or the other CTA of a pair


@dataclass(frozen=True, slots=True)
class Ordering:
    """The ordering of an access relative to accesses of other threads (PTX ISA, "Memory Consistency Model").

    `sem` is "weak", "relaxed", "volatile", "acquire", "release" or "acq_rel". `scope` is "cta", "cluster", "gpu" or
    "sys", and "" for weak accesses. `proxy` is "generic", "async", "tensormap" for the tensor map of a copy, or
    "mbarrier" for an mbarrier object: a weak store initialises it, a weak load invalidates it, and `PhaseArrival` and
    `PhaseWait` describe what it orders. An access that is not `coherent` may read the value from before the kernel,
    even if a write is ordered before the access.
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
BULK_REDUCTION = Ordering("relaxed", "gpu", "async")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence between earlier and later accesses of the lanes: `sem` is "sc", "acq_rel", "acquire" or "release".

    `proxy` is the proxy whose accesses are ordered with generic ones, in the state space `space` ("" for all). It is ""
    for a fence between threads, "mbarrier" for a fence that makes initialised mbarriers visible to all proxies, and
    "grid" for a wait for prerequisite grids.
    """

    sem: str
    scope: str
    proxy: str = ""
    space: str = ""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TensorMapAcquire(Fence):
    """An acquire of the tensor maps at generic addresses, (lanes,): later copies see the released changes."""

    address: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseArrival:
    """The arrival of lanes at mbarriers, before it is counted.

    With `asynchronous`, the completion of the bytes of an asynchronous operation, which every wait for the phase
    acquires.
    """

    space: str
    address: np.ndarray
    ordering: Ordering
    asynchronous: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PhaseCompletion:
    """The completion of the phases of mbarriers, where `complete`."""

    space: str
    address: np.ndarray
    complete: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class PhaseWait:
    """The observation by lanes, where `complete`, that the phases of mbarriers are complete."""

    space: str
    address: np.ndarray
    complete: np.ndarray
    ordering: Ordering


Update: TypeAlias = Callable[..., np.ndarray]

OrderingEvent: TypeAlias = Fence | PhaseArrival | PhaseCompletion | PhaseWait
"""The ordering events of instructions, in addition to their accesses."""


class LateInputs(Protocol):
    """The inputs of an asynchronous MMA in addition to registers, for each of its warps.

    `chunks` are the addresses of the 16-byte chunks that it reads from shared memory, (n, warps, 1). `accumulates` is
    true for warps whose accumulators keep their old values as addends. `described` lists the operands in the order of
    their chunks: "A" or "B", the number of chunks, and the descriptors, (warps,). The first `warp_chunks` of each warp
    are rows of A for its own accumulators; the others belong to the whole warpgroup.
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
    """The global or remote side of bulk copies, one per lane: items of `unit` bytes, 16 or a smaller power of two.

    `address` (items, lanes) are addresses in `space`, in the order of the bytes in shared memory. Where `inside`, of
    the same shape, is false, a load reads `fill` and a store skips the item; None means that all items are inside.
    Copies by tensor maps may read the maps at the generic addresses `maps` (lanes,) while they read their source.
    `swizzle` is the swizzle span in bytes in shared memory, 0 for none, and None if the bytes may have any swizzle.
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


class TensorOperands(Protocol):
    """The operands of an asynchronous operation on tensor memory, for each lane that issues it.

    `chunks`, (n, lanes), are the addresses of the 16-byte chunks that it reads from shared memory, and `described` its
    operands that have descriptors, as in `LateInputs`. It accesses the memories of `ctas` CTAs.
    """

    @property
    def ctas(self) -> int: ...

    @property
    def chunks(self) -> np.ndarray: ...

    @property
    def described(self) -> tuple[tuple[str, int, np.ndarray], ...]: ...

    def part(self, which: np.ndarray) -> Self:
        """Select some of the lanes."""

    def reads(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the regions of a CTA's tensor memory that it reads for a lane, and does not write."""

    def writes(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the regions of a CTA's tensor memory that it writes for a lane."""


class Scan(Protocol):
    """An associative update as numpy's ufuncs have it."""

    def accumulate(self, line: np.ndarray, /, *, dtype: Any = None) -> np.ndarray:
        """Return the first value, and that after each of the following updates."""


LoadResults: TypeAlias = Callable[[np.ndarray], object]
"""The results of a load from tensor memory, from the words of its registers, (registers, warps, 32)."""


class TensorUnit(Protocol):
    """Tensor memory as tcgen05 instructions use it; `m` are the lanes that execute the instruction.

    Operands of collectives are (warps, 32). `group` is the CTA group.
    """

    def allocate(self, m: Any, group: str, space: str, address: np.ndarray, columns: np.ndarray) -> None:
        """Allocate columns for each warp and store their address, or wait until other warps deallocate enough."""

    def deallocate(self, m: Any, group: str, address: np.ndarray, columns: np.ndarray) -> None:
        """Deallocate columns."""

    def relinquish(self, m: Any, group: str) -> None:
        """End the right of the blocks of the warps to allocate."""

    def load(self, m: Any, fragment: TensorFragment, address: np.ndarray, results: LoadResults | None = None) -> None:
        """Queue a load into the registers that the instruction writes; `results` makes its results from their words."""

    def store(self, m: Any, fragment: TensorFragment, address: np.ndarray, values: np.ndarray) -> None:
        """Queue a store of registers, (registers, warps, 32)."""

    def wait(self, m: Any, loads: bool) -> None:
        """Complete the queued loads, or stores, of the warps."""

    def fence(self, m: Any, before: bool) -> None:
        """Order the lanes' operations before, or after, a synchronisation of threads."""

    def issue(self, m: Any, group: str, which: np.ndarray, operands: TensorOperands) -> None:
        """Queue the products or copies of some lanes."""

    def commit(self, m: Any, group: str, space: str, mbarrier: np.ndarray) -> None:
        """Let mbarriers track the queued operations of the lanes."""


class Step(Protocol):
    """The machine as an instruction sees it while it runs for some lanes.

    `shape` is (lanes,), or (warps, 32) for a collective; it gives the last axes of all inputs and outputs. A batch of k
    consecutive instructions (`Op.batchable`) has shape (k, lanes) or (k, warps, 32). Inputs are read-only.

    Addresses are uint64 arrays of byte addresses in a space: "global", "shared", "local", "param", "const" or
    "generic", with or without a suffix such as "::cta". Their shape is `shape`; the last axis of a collective may be
    shorter, for the first lanes of each warp (the row addresses of ldmatrix). An element of more than 64 bits has
    another last axis of uint64 words, least significant first. All accesses go through `load`, `store`, `atomic` and
    `copy_async`, and all fences and arrivals through `order`, which check bounds, alignment, initialisation, races and
    bank conflicts. A lane whose access is refused reads poison, and its writes are dropped.

    A collective runs when all lanes of its `membermask` operand that have not exited have arrived; within a warp, the
    active lanes of one call are those of one mask. Without such an operand it needs all 32 lanes of the warp, or, with
    `Op.whole_warp` False, those that have not exited.
    """

    shape: tuple[int, ...]
    carry: np.ndarray  # the condition code CC.CF of each lane, uint8; may be assigned
    active: np.ndarray  # bool (warps, 32); lanes of a collective that take part
    numerics: str  # the accumulation of matrix products: "rounded" once, or as on an "h200" or a "b200"
    pairs: bool  # whether the kernel is for CTA pairs
    target: str  # the architecture of the module

    @property
    def tensor(self) -> TensorUnit:
        """Tensor memory, for instructions with `Op.tensor_memory`."""

    def load(
        self, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Ordering = WEAK
    ) -> np.ndarray:
        """Load `count` consecutive elements per address: `address.shape` for one, (count, *address.shape) for more.

        The access is checked as one of count * type.bytes bytes. Elements have `type.dtype`.
        """

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Ordering = WEAK) -> None:
        """Store elements to each address; `values` has the shape that `load` returns."""

    def atomic(
        self,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: np.ndarray,
        scan: Scan | None = None,
        ordering: Ordering = RELAXED,
    ) -> np.ndarray:
        """Perform memory = update(memory, *inputs) for one lane after another; return the old value for each lane.

        `update` is elementwise. `scan` is an associative ufunc equivalent to `update` with one input, if there is one;
        it makes updates of one address by many lanes fast.
        """

    def order(self, event: OrderingEvent) -> None:
        """Report an ordering event of the lanes: a fence, an arrival at an mbarrier, the end of a wait."""

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        """Convert addresses in a space to generic addresses (cvta)."""

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        """Convert generic addresses to addresses in a space (cvta.to)."""

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        """Return True for generic addresses within a space's window (isspacep)."""

    def special(self, name: str) -> np.ndarray:
        """Return the value of a special register, such as "%tid.x"."""

    def together(self) -> np.ndarray:
        """Return, for each lane, the mask of lanes of its warp that execute this instruction now (activemask)."""

    def copy_async(self, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray) -> None:
        """Queue a copy from global to shared that completes at its wait; bytes past `source_bytes` become zero."""

    def commit_group(self) -> None:
        """Commit the queued copies of the lanes as a group."""

    def wait_group(self, pending: int) -> None:
        """Complete all but the newest `pending` groups of each lane."""

    def wait_all(self) -> None:
        """Complete all queued copies of the lanes, including uncommitted ones."""

    def after_copies(self, action: Callable[[Step], object]) -> None:
        """Run `action` for these lanes when all copies that they have queued so far are complete."""

    def multiply_late(self, inputs: LateInputs) -> None:
        """Queue a warpgroup's MMA, whose registers are in use until the wait.

        An instruction with `Op.late` receives None instead of the values of these registers.
        """

    def warpgroups(self) -> np.ndarray:
        """Return the warps of `shape` by warpgroup, (warpgroups, 4); (warps, 1) if a warpgroup is incomplete."""

    def fence_products(self) -> None:
        """Order the register accesses of the warps so far before the MMAs that they queue later (wgmma.fence)."""

    def commit_products(self) -> None:
        """Commit the queued MMAs of the warps as a group."""

    def wait_products(self, pending: int) -> None:
        """Execute all but the newest `pending` groups of MMAs of each warp."""

    def change_registers(self, count: int, more: bool) -> None:
        """Set the number of registers per thread; with `more`, wait until other warps have released enough."""

    def store_async(self, mbarrier: np.ndarray, action: Callable[[Step], object], releases: bool) -> None:
        """Run `action`, which stores to shared::cluster and completes at mbarriers, for these lanes as late as allowed.

        If it `releases`, the arrival in it makes known what the lanes did before they issued it.
        """

    def begin_reading(self, address: np.ndarray, described: Sequence[tuple[str, int, np.ndarray]] = ()) -> AsyncReading:
        """Begin a read of 16 bytes of shared memory at each address, (n, *shape), by the async proxy.

        Earlier writes that are not ordered before the read, or lack a proxy fence, are reported now. Writes to these
        bytes before `end_reading` are reported when they happen. The last axis of a collective may be 1, for whole
        warps. A wgmma begins to read when it is issued, and ends at the wait for its group. `described` are the
        operands that have descriptors, as in `LateInputs`.
        """

    def end_reading(self, reading: AsyncReading) -> np.ndarray:
        """End the read for all its lanes, and return the bytes, uint8 (n, *shape, 16). Other lanes may call it."""

    def load_bulk(self, space: str, destination: np.ndarray, source: Pieces, mbarrier: np.ndarray) -> None:
        """Queue copies to shared memory, 16 bytes to each address (n, lanes), that complete at mbarriers.

        They complete when a thread waits for the mbarrier and no thread can run.
        """

    def store_bulk(
        self, source: np.ndarray, destination: Pieces, type: Type | None = None, update: Update | None = None
    ) -> None:
        """Queue copies from shared memory, 16 bytes from each address (n, lanes), in the lanes' open bulk groups.

        With `update`, each element of `type` at the destination becomes update(element, source element).
        """

    def commit_bulk_group(self) -> None:
        """Commit the bulk copies of the lanes as a group."""

    def wait_bulk_group(self, pending: int, read: bool) -> None:
        """Complete all but the newest `pending` bulk groups of each lane; with `read`, only their reads."""

    def share_effects(self) -> None:
        """Each lane of a warp counts as having done what this collective did so far, and not its share of it."""

    def cancel_clusters(self) -> np.ndarray:
        """Cancel, for each lane, the launch of one cluster that has not started.

        Return the coordinates of its first block in the grid, int64 (lanes, 3); -1 where none is left. Report lanes of
        clusters that have received an answer that none is left.
        """

    def only(self, which: np.ndarray) -> AbstractContextManager[None]:
        """Restrict the lanes to a mask of `shape` in the body of the `with`."""

    def suspend(self, ready: np.ndarray) -> None:
        """Let lanes where `ready` is false run this instruction again when memory has changed, without an output.

        The schedule may let the limited time of the wait end first: then they get their output.
        """

    def reads_result(self) -> bool:
        """True if some instruction of the function reads what this one writes."""

    def barrier(self, index: np.ndarray, threads: np.ndarray | None, arrive: bool = False) -> None:
        """Arrive at CTA barrier `index` of `threads` threads (None: all of the CTA); wait unless `arrive`."""

    def barrier_reduce(
        self, index: np.ndarray, threads: np.ndarray | None, values: np.ndarray, how: str
    ) -> np.ndarray | None:
        """Arrive at a barrier and return "popc", "and" or "or" of all values; None until all have arrived."""

    def cluster_arrive(self, releases: bool) -> None:
        """Arrive at the cluster barrier; with `releases`, release the preceding accesses."""

    def cluster_wait(self) -> None:
        """Wait for all threads of the cluster that have not exited, and acquire what they released."""

    def jump(self, target: ir.Label) -> None:
        """Branch to a label."""

    def jump_each(self, index: np.ndarray, targets: ir.Label) -> None:
        """Branch, in each lane, to the label with that index in a list (.branchtargets)."""

    def call(
        self,
        function: ir.Function | ir.Symbol | np.ndarray,
        arguments: Sequence[ir.Operand],
        results: Sequence[ir.Operand],
    ) -> None:
        """Call a device function: an ir.Function, an ir.Symbol, or an array of function addresses."""

    def leave(self) -> None:
        """Return from a function; in a kernel, exit."""

    def exit(self) -> None:
        """End the lanes."""

    def abort(self) -> None:
        """Abort the kernel, as after an error on a GPU."""

    def sleep(self, nanoseconds: np.ndarray) -> None:
        """Let other lanes run first."""

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
