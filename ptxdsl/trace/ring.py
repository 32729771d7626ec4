"""A ring of pipeline stages in shared memory, synchronised by a full and an empty mbarrier per stage."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

from ptxdsl.errors import Site, TraceError, called_elsewhere, public, public_class
from ptxdsl.isa.cluster_size import clusters_of
from ptxdsl.isa.mbarrier import MOST as MOST_BYTES
from ptxdsl.notes import RingNote
from ptxdsl.trace import control
from ptxdsl.trace.arrays import shared
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.instruction import Scalar, emit, shown
from ptxdsl.trace.memory import PointerValue, pointer
from ptxdsl.trace.operators import operate, select, steps
from ptxdsl.trace.roles import SINK, WARP, WARPGROUP, Role, thread_of
from ptxdsl.trace.source import target_of
from ptxdsl.trace.value import Var, special, tid, var
from ptxdsl.types import b64, pred, u32

COMMIT_PAIR = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
PAIR = 0b11  # the multicast mask of both blocks
ARRIVALS = {"thread": 1, "warp": WARP, "warpgroup": WARPGROUP}
"""How many threads one arrival stands for, by who arrives."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One stage of a ring in one pass: its index, and its mbarriers. Bulk copies into it complete at `full`."""

    index: Scalar
    full: PointerValue
    empty: PointerValue


@dataclass(slots=True)
class RingUses:
    """The calls of a ring and its readers so far: acquisitions, infinitely many in a loop, waits and releases."""

    site: Site
    acquires: float = 0
    waits: bool = False
    releases: bool = False


class Position:
    """The position of a role in the ring: the stage index, and the parity of the phase to wait for."""

    def __init__(self, stages: int, parity: int) -> None:
        self.stages = stages
        self.index: Var = var(u32, 0)
        self.parity: Var = var(u32, parity)

    def advance(self) -> None:
        """Advance to the next stage; wrapping around flips the parity."""
        with steps():
            self.index += 1
            wraps: Any = self.index == self.stages
            self.index.set(select(wraps, 0, self.index))
            self.parity.set(select(wraps, self.parity ^ 1, self.parity))

    def skip(self, count: Any) -> None:
        """Advance by `count` stages."""
        with steps():
            behind: Any = self.index + count
            rounds = behind // self.stages
            self.index.set(behind - rounds * self.stages)
            self.parity.set((self.parity + rounds) & 1)


@public_class
@called_elsewhere(
    num_stages="it is the first argument: pd.Ring(4, …)",
    depth="it is the first argument: pd.Ring(4, …)",
    bytes="it is `stage_bytes=` here",
    tx_count="it is `stage_bytes=` here",
)
class Ring:
    """A ring buffer of stages in shared memory between a producer role and a consumer role.

        tiles = a.shared(4)
        ring = pd.Ring(4, stage_bytes=a.bytes, consumers=128)
        with pd.warp(4), pd.elect():
            for k in pd.range(n):
                slot = ring.acquire()                      # empty; expects `stage_bytes`
                a.load(tiles.address(slot.index, 0, 0), (0, k * 64), slot.full)
                ring.commit()
        with pd.warpgroup(0):
            for k in pd.range(n):
                slot = ring.wait()                         # full
                ...                                        # read tiles[slot.index, …]
                ring.release()                             # may be refilled

    The producer may run up to `stages` stages ahead. Give either `stage_bytes`, if one thread fills a stage by bulk
    copies of that many bytes in total, or `producers`, the number of threads that write a stage and call `commit`.
    `consumers` is the number of threads that read each stage. `each` says who arrives at a release: "thread" (every
    thread), "warp" or "warpgroup" (one lane for all). Use "warpgroup" only for stages read by `wgmma` alone, and
    release after waiting for the wgmma group.

    With `stage_bytes`, a release includes `fence.proxy.async`, so that bulk copies do not overtake reads by threads;
    with `each="warpgroup"` it does not.

    With `cluster`, the number of blocks in a cluster, every block fills a part of each stage in all blocks: copies use
    `multicast=ring.mask`, and `stage_bytes` counts the bytes that arrive in one block. A stage is empty when the
    consumers of all blocks have released it. The producer must call `drain` before its block ends.

    With `tensor_memory=True` the stages are matrices in tensor memory, such as accumulators: waits and arrivals include
    the fences of tcgen05. Products fill a stage by `commit(after_mma=True)`.

    With `pair=True` the two blocks of a CTA pair share the ring: both load their parts of a stage, or read
    accumulators, and a thread of the even block multiplies. Loads complete at the even block's mbarrier, and `acquire`
    expects the bytes of both. `after_mma=True` arrives in both blocks, `release` of threads in the even block.
    `stage_bytes` and `consumers` count those of one block.

    Create rings at the beginning of the kernel, in all threads and before the roles: the constructor initialises the
    mbarriers and synchronises the block. The ring tracks stage index and phase, separately for producer and consumer.

    Raises TraceError for invalid counts, inside of roles, branches and loops, for a `cluster` that differs from the
    kernel's, and at the kernel's end if stages are filled again that no role releases.
    """

    writers = 0  # threads that write to a stage in addition to bulk copies, in derived classes

    def __init__(
        self,
        stages: int,
        *,
        stage_bytes: int | None = None,
        producers: int | None = None,
        consumers: int,
        each: str = "thread",
        cluster: int = 1,
        tensor_memory: bool = False,
        pair: bool = False,
    ) -> None:
        builder = current("pd.Ring")
        builder.check_kernel("pd.Ring", "make the ring in the kernel")
        check_beginning(builder, "pd.Ring", "make it before, at the beginning of the kernel")
        _check(stages, stage_bytes, producers, consumers, each)
        _check_counts(builder, producers=producers, consumers=consumers)
        _check_cluster(builder, cluster, stage_bytes)
        self.stages, self.stage_bytes, self.each, self.cluster = stages, stage_bytes, each, cluster
        self.tensor_memory, self.pair = tensor_memory, pair
        if pair:
            check_pair(builder, "pd.Ring(…, pair=True)")
            if each != "thread":
                refuse(f"pd.Ring takes each={each!r} and pair=True", "each thread arrives in the even block")
        self._uses = RingUses(builder.site())
        builder.memory.setdefault(RingUses, []).append((self, self._uses))
        self._mbarriers = shared(b64, 2 * stages, name="mbarriers")
        fillers = (producers or 1) + self.writers
        readers = consumers // ARRIVALS[each] * cluster * (2 if pair and stage_bytes is None else 1)
        target, variable = target_of(builder.site()), str(self._mbarriers.address().base)
        sides = fillers, readers, builder.site().location, ARRIVALS[each], cluster
        note = RingNote(target.text if target else "", variable, stages, stage_bytes, *sides)
        builder.memory.setdefault(RingNote, []).append(note)
        self._written, self._read = Position(stages, 1), Position(stages, 0)
        self._held: Var = var(u32, 0)
        self._arrives = None if each == "thread" else _leads(builder, ARRIVALS[each], cluster)
        self._initialise(fillers, readers)

    @property
    def mask(self) -> int:
        """The multicast mask of all blocks of the cluster."""
        return (1 << self.cluster) - 1

    @public
    def acquire(self, expected_bytes: int | Scalar | None = None, *, leads: Any = None) -> Slot:
        """Wait until the next stage to fill is empty; expect `expected_bytes`, by default the stage's bytes. Returns
        its slot.

        If several threads fill a stage by bulk copies, all of them acquire it, and `leads` (a predicate or bool) holds
        for the one thread that expects the bytes of all.
        """
        looped = any(region.again for region in current("pd.Ring").regions)
        self._uses.acquires += math.inf if looped else 1
        slot = self._slot(self._written.index)
        self._wait_empty(slot)
        self._fence_tensor_memory("after")
        expected = self.stage_bytes if expected_bytes is None else expected_bytes
        if self.pair and expected is not None:
            with steps():
                leads, expected = special("%cluster_ctarank") == 0, expected * 2
        if expected is not None and leads is not False:
            guard = None if leads is True else leads
            emit("mbarrier.arrive.expect_tx.shared::cta.b64", (slot.full, expected), out=SINK, guard=guard)
        if self.pair and expected is not None:
            return replace(slot, full=_of_block(slot.full, 0))
        return slot

    @public
    def commit(self, *, after_mma: bool = False) -> None:
        """Advance past the acquired stage; without `stage_bytes`, arrive at its full mbarrier.

        With `after_mma`, the arrival follows the tcgen05 operations that this thread has issued (tcgen05.commit).
        """
        if after_mma:
            self._commit_mma(self._slot(self._written.index).full)
        elif self.stage_bytes is None:
            self._fence_tensor_memory("before")
            emit("mbarrier.arrive.shared::cta.b64", (self._slot(self._written.index).full,), out=SINK)
        self._written.advance()

    @public
    def wait(self) -> Slot:
        """Wait until the next stage to read is full; return its slot."""
        self._uses.waits = True
        slot = self._slot(self._read.index)
        _wait(slot.full, self._read.parity, ".acquire.cluster" if self.pair else "")
        self._fence_tensor_memory("after")
        self._read.advance()
        return slot

    @public
    def release(self, slot: Slot | None = None, *, after_mma: bool = False) -> None:
        """Release a slot after reading it, by default the first one waited for and not yet released.

        Slots are released in the order of `wait`. Several may be held, for example while wgmmas that read them are in
        flight. With `after_mma`, the arrival follows the tcgen05 operations that this thread has issued
        (tcgen05.commit).
        """
        if slot is not None and not isinstance(slot, Slot):
            refuse(f"`release` takes the slot that `wait` returned; found {shown(slot)}", "write `ring.release(slot)`")
        self._uses.releases = True
        empty = self._slot(self._held).empty if slot is None else slot.empty
        if after_mma:
            self._commit_mma(empty)
        else:
            self._arrive_empty(empty)
        with steps():
            self._held += 1
            self._held.set(select(self._held == self.stages, 0, self._held))

    def _commit_mma(self, mbarrier: PointerValue) -> None:
        """Let an mbarrier track the tcgen05 operations that this thread has issued."""
        if self.cluster > 1:
            refuse(
                f"`after_mma` releases stages of one block; this ring has cluster={self.cluster}",
                "execute tcgen05.commit with .multicast::cluster on `slot.empty`",
            )
        if self.pair:
            emit(COMMIT_PAIR, (mbarrier, PAIR))
            return
        emit("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", (mbarrier,))

    def _arrive_empty(self, empty: PointerValue) -> None:
        """Arrive at an empty mbarrier, for the threads of `each`, in all blocks of the cluster."""
        self._fence_reads()
        self._fence_tensor_memory("before")
        if self.each == "warp":
            emit("bar.warp.sync", (0xFFFFFFFF,))
        if self.pair:
            _arrive_remotely(empty, 0, self._arrives, ".release.cluster")
        elif self.cluster == 1:
            emit("mbarrier.arrive.shared::cta.b64", (empty,), out=SINK, guard=self._arrives)
        elif self._arrives is None:
            for rank in range(self.cluster):
                _arrive_remotely(empty, rank, None, self._ordered("release"))
        else:  # the first threads of the warp or warpgroup arrive, each at another block
            with steps():
                rank = thread_of(current("pd.Ring")) & ARRIVALS[self.each] - 1
                _arrive_remotely(empty, rank % self.cluster, self._arrives, self._ordered("release"))

    def _fence_tensor_memory(self, when: str) -> None:
        """Order the thread's tcgen05 instructions before an arrival, or after a wait, if the stages are their data."""
        if self.tensor_memory:
            emit(f"tcgen05.fence::{when}_thread_sync")

    def reader(self) -> Self:
        """Return this ring with separate read positions, for a second consumer role.

        A variable written in two roles is never assigned to a uniform register by ptxas.
        """
        other = copy(self)
        other._read, other._held = Position(self.stages, 0), var(u32, 0)
        return other

    def _fence_reads(self) -> None:
        """Emit a proxy fence, without which bulk copies may overtake the threads' reads of the stage."""
        if self.stage_bytes is not None and self.each != "warpgroup":
            emit("fence.proxy.async.shared::cta")

    def skip(self, count: Any) -> None:
        """Advance by `count` slots (an int or u32) that other threads read and release, without waiting."""
        self._read.skip(count)
        with steps():
            self._held.set(self._read.index)

    def drain(self) -> None:
        """On the producer side, wait until all committed stages have been released. The ring can be used afterwards."""
        for _ in control.range(self.stages):
            self._wait_empty(self._slot(self._written.index))
            self._written.advance()
        with steps():
            self._written.parity.set(self._written.parity ^ 1)

    def _wait_empty(self, slot: Slot) -> None:
        """Wait until the consumers, of all blocks of the cluster, have released a slot."""
        _wait(slot.empty, self._written.parity, self._ordered("acquire"))

    def _ordered(self, how: str) -> str:
        """Return the memory ordering of arrivals at other blocks.

        After the thread has waited for its wgmmas, their reads need no further ordering; an ordered arrival makes ptxas
        insert a GPU-wide fence.
        """
        local = self.cluster == 1 and not self.pair
        return "" if local or self.each == "warpgroup" else f".{how}.cluster"

    def _slot(self, index: Var) -> Slot:
        """Return the slot of a stage. The empty mbarriers follow the full ones."""
        with steps():
            number = index.value
            full = self._mbarriers.address(number)
            return Slot(number, full, full + self.stages)

    def _initialise(self, fillers: int, readers: int) -> None:
        """Initialise the mbarriers in one thread, then synchronise the block or cluster."""
        with control.if_(_is_first(current("pd.Ring"))):
            for stage in range(self.stages):
                for number, count in (stage, fillers), (self.stages + stage, readers):
                    emit("mbarrier.init.shared::cta.b64", (self._mbarriers.address(number), count))
            emit("fence.mbarrier_init.release.cluster")
        synchronise(2 if self.pair else self.cluster)


def synchronise(cluster: int) -> None:
    """Synchronise the block, or all blocks of a cluster."""
    if cluster == 1:
        emit("bar.sync", (0,))
        return
    emit("barrier.cluster.arrive.release.aligned")
    emit("barrier.cluster.wait.acquire.aligned")


def _of_block(mbarrier: PointerValue, rank: Any) -> PointerValue:
    """Return the mbarrier at the same offset in the block of a given rank."""
    with steps():
        return pointer(operate("mapa.shared::cluster.u32", mbarrier, rank), b64, "shared::cluster")


def _arrive_remotely(empty: PointerValue, rank: Any, guard: Any, ordering: str) -> None:
    """Arrive at the mbarrier at the same offset in the block of a given rank."""
    emit(f"mbarrier.arrive{ordering}.shared::cluster.b64", (_of_block(empty, rank),), guard=guard)


def _wait(mbarrier: PointerValue, parity: Var, ordering: str = "") -> None:
    """Wait until the phase of a parity is complete."""
    builder = current("pd.Ring")
    again = builder.function.label("$wait")
    builder.append(again)
    complete = operate(f"mbarrier.try_wait.parity{ordering}.shared::cta.b64", mbarrier, parity, type=pred)
    control.branch(again, unless=complete)


def _is_first(builder: Builder) -> Any:
    """Return a predicate: the thread is the first of its block."""
    axes = [axis for axis, extent in zip("xyz", (*(builder.block or (2, 2, 2)), 1, 1), strict=False) if extent > 1]
    with steps():
        together: Any = getattr(tid, axes[0] if axes else "x")
        for axis in axes[1:]:
            together = together | getattr(tid, axis)
        return together == 0


def _leads(builder: Builder, threads: int, count: int) -> Any:
    """Return a predicate: the thread is one of the first `count` of its warp or warpgroup."""
    with steps():
        number: Any = thread_of(builder) & threads - 1
        return number == 0 if count == 1 else number < count


def check_beginning(builder: Builder, words: str, help: str) -> None:
    """Refuse inside of roles, branches and loops what all threads of the block reach."""
    if len(builder.regions) > 1:
        inside = "a role" if builder.memory.get(Role) else "a branch or a loop"
        refuse(f"{words} is inside {inside}, {builder.region.words}: all threads of the block reach it", help)


def _check_counts(builder: Builder, **counts: int | None) -> None:
    """Refuse more producers or consumers than a block has threads."""
    threads = math.prod(builder.block) if builder.block else math.inf
    for name, count in counts.items():
        if count is not None and count > threads:
            calls = "release" if name == "consumers" else "commit"
            refuse(
                f"pd.Ring takes {name}={count}; a block of this kernel has {threads} threads",
                f"count the threads of a block that call `{calls}()`",
            )


def check_rings(builder: Builder) -> None:
    """Refuse, at the kernel's end, a ring whose stages are filled again and never released."""
    for ring, uses in builder.memory.get(RingUses, ()):
        if uses.waits and not uses.releases and uses.acquires > ring.stages:
            target = target_of(uses.site)
            name = f"`{target.text}`" if target else "this ring"
            raise TraceError(
                f"no role releases the stages of {name}: after {ring.stages} of them the producer would wait forever",
                at=uses.site.location,
                help="call `release()` after the last read of each stage, in all threads that `consumers=` counts",
            )


def _check_cluster(builder: Builder, cluster: Any, stage_bytes: Any) -> None:
    if type(cluster) is not int or cluster < 1:
        refuse(f"pd.Ring takes cluster={cluster!r}", "it is the number of blocks in a cluster, such as 2")
    if cluster == 1:
        return
    if stage_bytes is None:
        refuse(
            "pd.Ring has producers that write, and cluster=: only bulk copies fill stages of other blocks",
            "give `stage_bytes` of the copies that fill a stage",
        )
    check_extents(builder, f"pd.Ring takes cluster={cluster}", cluster)


def check_pair(builder: Builder, words: str) -> None:
    """Refuse a CTA pair in a kernel whose clusters are not two blocks."""
    check_extents(builder, f"`{words}` is for a CTA pair", 2)


def check_extents(builder: Builder, wants: str, blocks: int) -> None:
    """Refuse what needs a cluster of this many blocks in a kernel with other clusters."""
    extents = clusters_of(builder.function).required
    if extents is None or math.prod(extents) != blocks:
        declares = "does not declare its cluster size" if extents is None else f"has clusters of {extents}"
        refuse(f"{wants}; the kernel {declares}", f"write @pd.kernel(cluster={blocks})")


def _check(stages: Any, stage_bytes: Any, producers: Any, consumers: Any, each: Any) -> None:
    if type(stages) is not int or stages < 1:
        refuse(f"pd.Ring has {stages!r} stages", "it takes an int that is known while tracing, such as 4")
    if each not in ARRIVALS:
        refuse(f"pd.Ring takes each={each!r}", 'it is "thread", "warp" or "warpgroup"')
    if type(consumers) is not int or consumers < 1 or consumers % ARRIVALS[each]:
        multiple = f", a multiple of {ARRIVALS[each]}" * (each != "thread")
        refuse(
            f"pd.Ring has {consumers!r} consumers{f', and one of each {each} arrives' * (each != 'thread')}",
            f"it is the number of threads that read each stage{multiple}",
        )
    if (stage_bytes is None) == (producers is None):
        both = "both stage_bytes and" if producers is not None else "neither stage_bytes nor"
        refuse(
            f"pd.Ring has {both} producers",
            "give `stage_bytes` of bulk copies that fill a stage, or `producers`, the number of threads that write it",
        )
    if stage_bytes is not None and (type(stage_bytes) is not int or not 0 < stage_bytes <= MOST_BYTES):
        refuse(f"pd.Ring has stages of {stage_bytes!r} bytes; an mbarrier counts up to {MOST_BYTES}")
    if producers is not None and (type(producers) is not int or producers < 1):
        refuse(f"pd.Ring has {producers!r} producers", "it is the number of threads that commit each stage")
