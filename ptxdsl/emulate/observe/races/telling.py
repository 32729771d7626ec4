"""The messages of races: both accesses, the reason that nothing orders them, and the fix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....isa.step import BULK_REDUCTION, INITIALISATION, WEAK, Ordering
from ...memory.access import READS, UPDATES, WRITES, Access, Origin, Requester
from ...memory.regions import Region
from ...run.residents import WARP, Residents
from ..mistakes import line_of, of_ended_block, of_other_blocks, of_refilled_stage
from .stamps import ASYNC_LANE, LANDED, LANDINGS, SEVERAL

_PAST = {READS: "read", WRITES: "written", UPDATES: "updated"}


@dataclass(frozen=True, slots=True)
class Told:
    """An earlier access: the instruction, what it did, to elements of `unit` bytes, and whether as the end of a copy.

    `grid` is the name of the previous grid, if that made it.
    """

    origin: Origin
    kind: str
    ordering: Ordering = WEAK
    asynchronous: bool = False
    grid: str = ""
    unit: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    """An access of a lane at an address, and an earlier one by a lane of a warp of the grid; whether others conflict
    with that instruction as another warp of their block carried it out."""

    access: Access
    address: int
    lane: int
    earlier: Told
    warp: int
    earlier_lane: int
    residents: Residents
    leaves_warps: bool = False

    @property
    def landed(self) -> bool:
        """True if the earlier access is that of a bulk copy, which no thread made."""
        return self.warp >= int(LANDED)

    @property
    def earlier_block(self) -> int:
        """The block of the thread that made the earlier access, or of the mbarrier where the copy completes."""
        return (self.warp - int(LANDED)) // LANDINGS if self.landed else self.warp // self.residents.warps

    @property
    def same_block(self) -> bool:
        return self.earlier_block == self._block

    @property
    def same_cluster(self) -> bool:
        return self.earlier_block // self.residents.cluster_blocks == self._block // self.residents.cluster_blocks

    @property
    def _block(self) -> int:
        return int(self.residents.ordinals[self.residents.slot[self.lane]])

    @property
    def same_warp(self) -> bool:
        return (
            self.same_block
            and not self.landed
            and self.warp % self.residents.warps == int(self.residents.warp[self.lane])
        )

    @property
    def same_step(self) -> bool:
        return self.earlier.origin is self.access.by.origin

    @property
    def who(self) -> str:
        """The thread that made the earlier access, as text, or the block whose copy did."""
        if self.landed:
            return f"block {self.residents.numbered(self.earlier_block, 0).block_text}"
        return _thread(self.residents, self.warp, self.earlier_lane)


def _thread(residents: Residents, warp: int, lane: int) -> str:
    """Return a thread as text, by its warp of the grid and its lane, or several threads of that warp."""
    ordinal, number = divmod(warp, residents.warps)
    if lane == ASYNC_LANE:
        return f"the async proxy for warp {number} of block {residents.numbered(ordinal, 0).block_text}"
    if lane >= WARP:
        return f"threads of warp {number} of block {residents.numbered(ordinal, 0).block_text}"
    return str(residents.numbered(ordinal, number * WARP + lane))


def tell(conflict: Conflict, which: np.ndarray) -> None:
    """Reports a race of the accesses of a mask."""
    access, earlier = conflict.access, conflict.earlier
    holder = access.region.table.before(conflict.address)
    where = holder.at(conflict.address) if holder else f"address {conflict.address:#x}"
    if earlier.grid:
        _tell_of_grid(conflict, where, which)
        return
    if access.slots is not None:
        where += f" of block {_owner(conflict, which)}"
    did = "filled" if earlier.asynchronous and earlier.kind == WRITES else _PAST[earlier.kind]
    by = "" if conflict.landed and conflict.same_cluster else f" by {conflict.who}"
    both = f"{access.by.name} {access.kind} {where}, {did}{by} with {earlier.origin.name}"
    others = [earlier.origin.location] if earlier.origin.location is not None else []
    addresses = access.address[which]
    crowd = access.kind != READS and addresses.size > 1 and bool((addresses == addresses[0]).all())
    number = access.by.finding("race", f"{both}; {_reason(conflict)}", which, others, _mend(conflict, crowd))
    if access.kind == READS and not access.asynchronous:
        access.by.note_race(which, number)


def _tell_of_grid(conflict: Conflict, where: str, which: np.ndarray) -> None:
    """Reports accesses to what the grid before may not have written or read yet."""
    access, earlier = conflict.access, conflict.earlier
    message = (
        f"{access.by.name} {access.kind} {where}, {_PAST[earlier.kind]} by `{earlier.grid}`, the previous kernel, "
        "which may still be running: this one is launched as its dependent"
    )
    line = line_of(access.by.origin.location)
    help = f"add griddepcontrol.wait before {line}, in these threads or before a barrier that they wait at"
    access.by.finding("race", message, which, help=help)


def tell_unstarted(access: Access, which: np.ndarray, address: int, slot: int) -> None:
    """Reports accesses to shared memory of a block that may not have started yet; the first of them is at `address`."""
    holder = access.region.table.before(address)
    residents = access.by.residents
    block = residents.numbered(int(residents.ordinals[slot]), 0).block_text
    where = holder.at(address) if holder else "shared memory"
    message = f"{access.by.name} {access.kind} {where} of block {block}, which may not have started"
    help = of_other_blocks(access, "add a barrier.cluster.arrive and .wait before the first access")
    access.by.finding("cluster", message, which, help=help)


def tell_early_exit(
    by: Requester, residents: Residents, slot: int, shared: Region, offset: int, earlier: Told | None, warp: int
) -> None:
    """Reports a block that ends though an access by a warp of another block to its shared memory may come later."""
    assert earlier is not None
    names = [a.at(offset + a.delta) for a in shared.table.allocations if a.offset <= offset < a.offset + a.bytes]
    block = residents.numbered(int(residents.ordinals[slot]), 0).block_text
    others = [earlier.origin.location] if earlier.origin.location is not None else []
    message = (
        f"block {block} ends, and nothing orders its end after the access of {_thread(residents, warp, SEVERAL)} to "
        f"its {names[0] if names else 'shared memory'} with {earlier.origin.name}"
    )
    help = of_ended_block(by, shared.table, offset)
    by.finding("cluster", message, np.ones(by.lanes_now.shape, bool), others, help)


def _owner(conflict: Conflict, which: np.ndarray) -> str:
    """Return the block in whose shared memory the bytes are."""
    access, r = conflict.access, conflict.residents
    assert access.slots is not None
    alike = which & (access.address == conflict.address) & (access.lanes == conflict.lane)
    slot = int(access.slots[alike].flat[0]) if alike.any() else int(r.slot[conflict.lane])
    return r.numbered(int(r.ordinals[slot]), 0).block_text


def tell_of_fence(conflict: Conflict, which: np.ndarray, strict: bool, fenced_space: str) -> None:
    """Report that the async proxy reads or writes what the generic proxy wrote, or writes what it read, with no fence
    between them, or one that orders only the memory of another space."""
    access, earlier = conflict.access, conflict.earlier
    holder = access.region.table.before(conflict.address)
    where = holder.at(conflict.address) if holder else f"address {conflict.address:#x}"
    proxy = "async" if earlier.ordering.proxy == "async" else "generic"
    why = (
        f"the proxy fence between them is for {fenced_space} memory"
        if fenced_space
        else "no proxy fence separates the two"
    )
    message = (
        f"{access.by.name} {access.kind} {where} through the async proxy, {_PAST[earlier.kind]} by {conflict.who} "
        f"with {earlier.origin.name} through the {proxy} proxy; {why}"
    )
    others = [earlier.origin.location] if earlier.origin.location is not None else []
    access.by.finding("race", message, which, others, _fence_help(conflict, fenced_space), strict)


def _fence_help(conflict: Conflict, fenced_space: str) -> str:
    """Return the proxy fence that would order an access after an earlier one."""
    access, earlier = conflict.access, conflict.earlier
    between, line = _between(earlier.origin, access.by.origin), line_of(access.by.origin.location)
    did = "read" if earlier.kind == READS else "wrote"
    if earlier.ordering == INITIALISATION:
        return f"add a `fence.mbarrier_init.release.cluster` {between}, in the thread that initialised it"
    if fenced_space:
        return "use `fence.proxy.async` without a state space, which orders shared and global memory"
    if not conflict.same_block:
        return (
            f"add a `fence.proxy.async` in the threads that {did}, after {line_of(earlier.origin.location)} and before "
            f"they release the data, or in this thread, after it acquires the data and before {line}"
        )
    return (
        f"add a `fence.proxy.async` {between}, in the threads that {did}, before the barrier that the other threads "
        "wait at"
    )


def tell_overtaken(
    by: Requester, copy: Origin, where: str, earlier: Told, writer: tuple[Residents, int, int], same: bool,
    which: np.ndarray,
) -> None:  # fmt: skip
    """Reports, where copies are waited for, that others or the `same` thread wrote what they were to read."""
    did = f"{_PAST[earlier.kind]} by {_thread(*writer)} with {earlier.origin.name}"
    message = f"{copy.name} reads {where}, {did} while the copy was in flight"
    others = [location for location in (copy.location, earlier.origin.location) if location is not None]
    behind = "" if same else ", and put a barrier between the two"
    help = f"wait for the copy before {line_of(earlier.origin.location)}{behind}"
    by.finding("unwaited-async" if same else "race", message, which, others, help)


def tell_of_map(conflict: Conflict, which: np.ndarray, released: bool) -> None:
    """Reports a copy by a tensor map that the generic proxy wrote, where the tensor map proxy need not see that."""
    access, earlier = conflict.access, conflict.earlier
    holder = access.region.table.before(conflict.address)
    where = holder.at(conflict.address) if holder else f"at {conflict.address:#x}"
    missing = "acquire separates the two" if released else "release follows the write"
    message = (
        f"{access.by.name} reads the tensor map {where}, {_PAST[earlier.kind]} by {conflict.who} "
        f"with {earlier.origin.name}; no tensor map proxy {missing}"
    )
    acquire = f"`fence.proxy.tensormap::generic.acquire.gpu [map], 128` before {line_of(access.by.origin.location)}"
    release = (
        f"after {line_of(earlier.origin.location)}, add a `fence.proxy.tensormap::generic.release.gpu` in the thread "
        "that wrote, or a `tensormap.cp_fenceproxy` from shared memory; then, after a barrier, a "
    )
    others = [earlier.origin.location] if earlier.origin.location is not None else []
    access.by.finding("race", message, which, others, f"add a {acquire}" if released else release + acquire)


def _reason(conflict: Conflict) -> str:
    if conflict.landed and conflict.same_cluster:
        return "the thread has not waited on the mbarrier where the copy completes"
    if conflict.earlier_lane == ASYNC_LANE:
        return "these threads have not waited for the tcgen05.commit that covers it"
    if _differ(conflict):
        sizes = f"{conflict.access.unit} and {conflict.earlier.unit} bytes"
        return f"the two access {sizes}, so that neither is atomic to the other"
    if _is_mixed(conflict):
        return "one of the two goes through the async proxy, so that neither is atomic to the other"
    narrow = _narrow(conflict)
    if narrow:
        return f"{narrow} scope does not include threads of the other block"
    if conflict.same_warp:
        return "nothing orders the two: lanes of a warp run independently between barriers"
    if conflict.same_block:
        return "no barrier orders the two"
    if conflict.same_cluster:
        return "nothing orders the two: the blocks of a cluster run concurrently"
    return "nothing orders the two: blocks run in any order"


def _differ(conflict: Conflict) -> bool:
    """True if two strong accesses have elements of different sizes."""
    access, earlier = conflict.access, conflict.earlier
    strong = all(ordering.sem != "weak" for ordering in (access.ordering, earlier.ordering))
    return strong and access.unit != earlier.unit


def _is_mixed(conflict: Conflict) -> bool:
    """True if one of two strong accesses is a bulk reduction."""
    orderings = conflict.access.ordering, conflict.earlier.ordering
    return all(o.sem != "weak" for o in orderings) and len({o == BULK_REDUCTION for o in orderings}) == 2


def _narrow(conflict: Conflict) -> str:
    """Return the scope, of two strong accesses, that does not include the other block; "" for none."""
    orderings = conflict.access.ordering, conflict.earlier.ordering
    if conflict.same_block or any(ordering.sem == "weak" for ordering in orderings):
        return ""
    narrow = ("cta",) if conflict.same_cluster else ("cta", "cluster")
    return next((f".{o.scope}" for o in orderings if o.scope in narrow), "")


def _mend(conflict: Conflict, crowd: bool) -> str:
    """Return a fix that orders the two; in a `crowd` many threads write the same bytes."""
    access, earlier = conflict.access, conflict.earlier
    first, second = line_of(earlier.origin.location), line_of(access.by.origin.location)
    if conflict.landed and conflict.same_cluster:
        return f"wait with mbarrier.try_wait for the phase that the copy completes, before {second}"
    if conflict.earlier_lane == ASYNC_LANE:
        return f"wait for the phase of the mbarrier of that tcgen05.commit (mbarrier.try_wait), before {second}"
    if _differ(conflict):
        return "access it with the same size everywhere, or order the two by a barrier"
    if _is_mixed(conflict):
        return (
            "update it by cp.reduce.async.bulk alone, or by red alone; or order the two: wait for the copy, then a "
            "`fence.proxy.async` and a barrier"
        )
    if _narrow(conflict):
        return f"use {'.cluster' if conflict.same_cluster else '.gpu'} scope in both"
    if (access.ordering.sem == "weak") != (earlier.ordering.sem == "weak") and earlier.ordering != INITIALISATION:
        weak, line = (access.by.origin, second) if access.ordering.sem == "weak" else (earlier.origin, first)
        if conflict.same_block and not conflict.same_step:
            return f"{_meeting(conflict)}; or, for a flag or a counter, make {weak.name} ({line}) .relaxed or .volatile"
        return f"{weak.name} ({line}) is weak: a flag or a counter needs .relaxed, .acquire, .release or .volatile"
    if conflict.same_step or crowd:
        return "let one thread do it, give each thread its own element, or use an atomic operation (atom, red)"
    if conflict.same_block:
        return _meeting(conflict)
    if conflict.same_cluster:
        between = _between(earlier.origin, access.by.origin)
        return of_other_blocks(
            access,
            f"add a `barrier.cluster.arrive` and a `barrier.cluster.wait` {between}, or an mbarrier with "
            "`mbarrier.arrive.release.cluster` and `mbarrier.try_wait.acquire.cluster`",
        )
    return (
        f"after {first}, release at .gpu scope (st.release, or fence.acq_rel and an atomic in one thread); before "
        f"{second}, acquire it (ld.acquire, or an atomic and fence.acq_rel in one thread); join both to the other "
        "threads of their blocks with bar.sync; or split the kernel into two launches"
    )


def _meeting(conflict: Conflict) -> str:
    """Return the barrier that would order two accesses of one block."""
    earlier = conflict.earlier
    between = _between(earlier.origin, conflict.access.by.origin)
    if conflict.same_warp and not conflict.leaves_warps:
        return f"add a `bar.warp.sync` {between}"
    if roles := _between_roles(conflict, between):
        return roles
    also = ", since some of these threads also race with another warp" if conflict.same_warp else ""
    return f"add a `bar.sync` {between}" + (", after the wait for the copy" if earlier.asynchronous else also)


def _between_roles(conflict: Conflict, between: str) -> str:
    """Return what orders accesses of roles, whose threads share no barrier of the block; "" for others."""
    access, earlier, notes = conflict.access, conflict.earlier, conflict.access.by.notes
    location, earlier_location = access.by.origin.location, earlier.origin.location
    role = notes.role(int(conflict.residents.warp[conflict.lane]), location)
    earlier_role = notes.role(conflict.warp % conflict.residents.warps, earlier_location)
    if role is None or earlier_role is None:
        return ""
    if role.warps == earlier_role.warps:
        return f"use the role's own barrier {between}: `with {role.words} as role:` has `role.barrier()`"
    first, second = line_of(earlier_location), line_of(location)
    why = f"{earlier_role.words} and {role.words} share no `bar.sync`"
    ring = notes.rings[0].called if len(notes.rings) == 1 else "ring"
    if earlier.kind == READS and access.asynchronous:
        reader = conflict.warp, conflict.earlier_lane
        return of_refilled_stage(access, conflict.lane, reader, earlier_location) or (
            f"{why}; use an mbarrier: the threads that read arrive at it after {first}, its mbarrier.init counts all "
            f"of them, and mbarrier.try_wait comes before {second}"
        )
    if notes.rings and earlier.kind == READS:
        return f"{why}; call `{ring}.release()` after {first}, and `{ring}.acquire()` before {second}"
    if notes.rings and access.kind == READS:
        return f"{why}; call `{ring}.commit()` after {first}, and `{ring}.wait()` before {second}"
    return f"{why}; use an mbarrier, with mbarrier.arrive after {first} and mbarrier.try_wait before {second}"


def _between(earlier: Origin, later: Origin) -> str:
    """Return the lines between which something is missing; in a loop the later line may come first."""
    first, second = earlier.location, later.location
    if first is None or second is None:
        return "between the two"
    again = earlier.shares_loop(later) and first.file == second.file
    if first.file == second.file and first.line == second.line:
        return (
            f"between one iteration of {line_of(first)} and the next"
            if again
            else f"between the two accesses in {line_of(first)}"
        )
    if again and first.line > second.line:
        return f"between {line_of(first)} and {line_of(second)} of the next iteration"
    return f"between {line_of(first)} and {line_of(second)}"
