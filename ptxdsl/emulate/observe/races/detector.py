"""Detect unordered accesses to the same bytes, at least one of them a write.

Follows the memory model of PTX: two accesses race if they are of different threads, neither happens before the other,
and they are not both strong (relaxed, volatile, acquire, release, atomic) with scopes that include each other's thread.
Two stores of the same bytes are not reported: whichever comes last, memory holds the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.step import ASYNC, INITIALISATION, Fence, PhaseArrival, PhaseCompletion, PhaseWait
from ...memory.access import (
    READS,
    UPDATES,
    WRITES,
    Access,
    BarrierArrival,
    BarrierCompletion,
    BulkLanding,
    ClusterArrival,
    ClusterCompletion,
    ClusterEvent,
    ClusterWait,
    Convergence,
    CopyStart,
    Event,
    Landing,
    Observer,
    ProductsEnd,
    ReadingEnd,
    RemoteIssue,
    RemoteLanding,
    Requester,
)
from ...memory.distributed import owners
from ...memory.regions import CHUNK, Allocation, Region
from ...run.barriers import BARRIERS
from ...run.residents import WARP, Residents
from .accesses import Accesses, Accessors, allowed
from .behind import Behind
from .checks import COPIES, Checks
from .clocks import Clocks, Message
from .clusters import ClusterClocks, strangers, unstarted
from .crowds import Crowds
from .initialised import Initialised
from .journal import Journal, strength
from .locations import Boxes, Locations
from .mailboxes import CLUSTER
from .pages import ALL, NO_DOUBTS, Doubts, Knowledge
from .proxies import Proxies
from .recent import Recent, RecentAccess
from .shadow import GlobalShadow, Plane, Shadow, SharedShadow, WarpReads, Words, gather
from .sources import Sources, holders
from .stamps import LANDED, SEVERAL, STAMP, TICK, are_async, stamps_of
from .telling import Told, tell_early_exit, tell_unstarted

_WINDOW = (1 << 40) - 1


class Races(Observer):
    """The race detector. `regions` returns the current regions of shared and global memory.

    With `plain` the kernel uses no mbarriers, no async proxy and no clusters: blocks meet at barriers alone.
    """

    def __init__(self, regions: Callable[[], tuple[Region, Region]], plain: bool) -> None:
        self.regions, self.plain, self.crowds = regions, plain, Crowds()
        self.journal = Journal()
        self.arrays: dict[int, GlobalShadow] = {}
        self.boxes: Boxes = {}

    # Residents

    def settle(self, residents: Residents) -> None:
        """Start blocks: all that ran before have ended."""
        self.residents = residents
        self.clocks = Clocks(residents, self.crowds)
        self.boxes = {key: box for key, box in self.boxes.items() if key[0] == "global"}
        self.barriers = np.zeros((residents.slots, BARRIERS, self.clocks.width), STAMP)
        self.clusters = ClusterClocks(self.clocks)
        self.proxies = Proxies(self.clocks)
        self.locations = Locations(self.clocks, self.proxies, residents.lanes, self.boxes)
        self.checks = Checks(self.journal, self.clocks, self.proxies)
        self.behind = Behind(self.journal, self.clocks, self.checks)
        self.sources = Sources(self.journal, self.clocks)
        self.proxy_barriers: dict[tuple[int, int], np.ndarray] = {}
        self.messages: dict[tuple[int, int], Message] = {}
        self.shared_region, self.global_region = self.regions()
        self.shared = SharedShadow(residents.slots, self.shared_region.stride, residents.warps)
        self.initialised = Initialised(self.clocks, self.proxies, self.shared.bytes)
        self.recent = self._nothing_yet()

    def _nothing_yet(self) -> Recent | None:
        base, size = self.shared_region.base, len(self.shared_region.data)
        return Recent(base, self.clocks, size) if self.plain and base is not None else None

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Renumber the lanes and slots of blocks that continue among new ones."""
        self._settle_recent()
        old, self.residents = self.residents, residents
        self.shared_region, self.global_region = self.regions()
        old_lanes, old_slots = np.flatnonzero(lanes >= 0), np.flatnonzero(slots >= 0)
        rows = old_lanes[::WARP] // WARP
        self.clocks.move(residents, rows, lanes[old_lanes[::WARP]] // WARP)
        self.locations.move(residents, old_lanes, lanes[old_lanes])
        self.locations.relocate(slots, self.shared.stride)
        self.shared = self.shared.moved(residents.slots, old_slots, slots[old_slots])
        self.initialised.move(slots, self.shared.stride, self.shared.bytes)
        self.recent = self._nothing_yet()
        barriers, self.barriers = self.barriers, np.zeros((residents.slots, BARRIERS, self.clocks.width), STAMP)
        self.barriers[slots[old_slots]] = barriers[old_slots]
        self.messages = {(int(slots[slot]), b): m for (slot, b), m in self.messages.items()}
        self.clusters.move(old, slots)
        self.proxy_barriers = {(int(slots[slot]), b): row for (slot, b), row in self.proxy_barriers.items()}

    def tick(self) -> int:
        """Return the stamp of the current event."""
        if self.journal.is_full:
            self._begin_anew()
        return self.journal.tick()

    def _begin_anew(self) -> None:
        """Restart the clock and forget everything: the stamps are used up."""
        self.journal.clear()
        self.crowds = Crowds()
        self.arrays.clear()
        self.boxes.clear()
        self.settle(self.residents)

    def note(self, told: Told) -> int:
        """Return the stamp of the current access."""
        if self.journal.is_full:
            self._begin_anew()
        return self.journal.note(told)

    # Accesses

    def access(self, access: Access) -> None:
        if access.region is self.shared_region:
            self._in_shared(access)
        elif access.region is self.global_region and access.space != "const":
            self._in_global(access)
        self.checks.report(access)

    def _in_shared(self, access: Access) -> None:
        shadow = self.shared
        accesses = Accesses(shadow, access.size, *allowed(access))
        now = self.note(Told(access.by.origin, access.kind, access.ordering, unit=access.unit))
        if access.slots is not None:
            self._check_started(access)
        if not access.asynchronous:
            self.locations.receive(access, "shared", accesses.flat, accesses.lanes)
        if access.misuses:
            self.initialised.change(accesses.flat, accesses.lanes, None)
        doubts = self._doubts(access, accesses)
        if doubts.writers is not None:
            self._check_shared_writers(access, accesses.those(doubts.writers))
        if doubts.readers is not None:
            self._check_shared_readers(access, accesses.those(doubts.readers))
            if shadow.remote is not None:
                self._check_remote_readers(access, shadow.remote, doubts.readers)
        if doubts.fences is not None:
            self.checks.fences(access, accesses.those(doubts.fences), shadow)
        if doubts.read_fences is not None:
            self.checks.read_fences(access, accesses.those(doubts.read_fences), shadow)
        if access.asynchronous:
            if access.ordering.proxy == "async" and access.kind == UPDATES:
                self.checks.initialised(accesses.those(ALL), self.initialised.unfenced(accesses.flat, accesses.lanes))
            return
        if access.ordering == INITIALISATION:
            self.initialised.change(accesses.flat, accesses.lanes, now if access.kind == WRITES else None)
        self._record_shared(access, now, accesses, doubts is not NO_DOUBTS)
        self.locations.send(access, "shared", accesses.flat, accesses.lanes, now | SEVERAL)

    def _doubts(self, access: Access, accesses: Accesses) -> Doubts:
        """Return the accesses to check by words: those to pages with accesses that the threads do not know of."""
        shadow, writes, fences = self.shared, access.kind != READS, access.ordering in COPIES
        counts = access.asynchronous and access.kind == UPDATES and not fences  # bytes of a copy
        operates = access.ordering.proxy == "mbarrier" and access.ordering != INITIALISATION
        if (counts or operates) and self.initialised.are_known(accesses.flat, accesses.lanes):
            return NO_DOUBTS
        if shadow.pages is None and access.ordering.proxy != "generic":
            shadow.begin_pages(self.clocks)
        if access.slots is not None:
            if shadow.pages is None or self.locations.landing is not None:
                return Doubts(ALL, ALL if writes else None, ALL, ALL if writes else None)
            known = Knowledge(self.clocks, access.by.lanes_now, (accesses.flat // shadow.stride, accesses.lanes))
            return shadow.pages.doubts(known, accesses.flat, writes, fences)
        if self.recent is not None and self.recent.is_disturbed(access, accesses, self.clocks.floor):
            self._settle_recent()
        late = shadow.has_landings or shadow.newest_write > self.clocks.floor
        read = writes and bool(self.checks.has_async_reads or shadow.remote or shadow.newest_read > self.clocks.floor)
        if shadow.pages is None or not (late or read or fences):
            return Doubts(ALL if late else None, ALL if read else None)
        return shadow.pages.doubts(Knowledge(self.clocks, access.by.lanes_now), accesses.flat, writes, fences)

    def _settle_recent(self) -> None:
        """Record recent accesses by words."""
        for access in self.recent.take(self.clocks.floor) if self.recent is not None else ():
            accesses = Accesses(self.shared, access.bytes, access.flat, access.lanes, access.lanes)
            if access.kind == READS:
                self._record_all_reads(access.stamp, accesses, access.collective)
            elif access.landing:
                self._record_landing(access.stamp, access.flat, access.bytes, access.lanes)
            else:
                self._record_writes(access.stamp, None, accesses.those(ALL), access.collective)

    def _record_shared(self, access: Access, now: int, accesses: Accesses, follows_others: bool) -> None:
        """Record an access, which may follow accesses of another kind."""
        if self.recent is not None:
            if self.recent.keeps(access, now, accesses):
                return
            self._settle_recent()
        collective = access.by.collective
        if access.kind == READS and access.slots is None:
            if follows_others and strength(access.ordering):
                self.behind.reads_in_shared(access, self.shared, accesses.those(ALL))
            self._record_all_reads(now, accesses, collective)
        elif access.kind == READS:
            self._record_reads(now, self._record_remote(access, now, accesses.those(ALL)), collective)
        else:
            who = accesses.those(ALL)
            stamps, warps = self._record_writes(now, access, who, collective)
            self._check_step(access, self.shared, who, stamps, warps)

    def _record_writes(
        self, now: int, access: Access | None, who: Accessors, collective: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Record writes to shared memory, weak ones if `access` is None; return their stamps and warps."""
        shadow, words = self.shared, who.words
        shadow.newest_write = now | SEVERAL
        stamps, warps = stamps_of(collective, now, who.lanes), self.clocks.warp[who.rows]
        if self.locations.landing is not None and access is not None:
            stamps[:], warps, shadow.has_landings = now | SEVERAL, self.locations.landings_of(who.lanes), True
            self.proxies.has_stores |= access.ordering.proxy != "async"
            if shadow.pages is not None:
                shadow.pages.note_stores(words.first * shadow.grain, now | SEVERAL)
        self.behind.write(access, shadow, who)
        shadow.writes.put(words, stamps, warps)
        if shadow.pages is not None:
            shadow.pages.note_writes(self.clocks, words.first * shadow.grain, warps, now | SEVERAL)
        return stamps, warps

    def _check_step(
        self, access: Access, shadow: Shadow, who: Accessors, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        """Check recorded writes, (entries,), against those of other lanes in the same step."""
        last, writers = shadow.writes.take(who.words)
        lost = (last != stamps[:, np.newaxis]) | (writers != warps[:, np.newaxis])
        if not lost.any():
            return
        self.checks.same_step(access, who, np.flatnonzero(lost.any(1)), last, writers)
        if strength(access.ordering):
            self.behind.lose(access, shadow, who, lost, stamps, warps)

    def _record_all_reads(self, now: int, accesses: Accesses, collective: bool) -> None:
        """Record reads by threads of the block: one for each warp if all its lanes read the same bytes."""
        warps = accesses.by_warps()
        self._record_reads(now, (warps or accesses).those(ALL), collective or warps is not None)

    def _record_reads(self, now: int, who: Accessors, collective: bool) -> None:
        """Record reads of shared memory."""
        shadow, words = self.shared, who.words
        shadow.newest_read = now | SEVERAL
        if shadow.pages is not None:
            told = self.journal.told[now // TICK]
            is_generic = told is not None and told.ordering.proxy != "async"
            column = self.clocks.column[who.rows]
            shadow.pages.note_reads(words.first * shadow.grain, column, now | SEVERAL, is_generic)
        entries = shadow.reads_of(words, self.clocks.warp_in_block[who.rows])
        shadow.readers.put(shadow.latest_reads_of(words), np.uint32(now | SEVERAL))
        if collective:
            shadow.readers.put(entries, np.uint32(now | SEVERAL))
            return
        reads = self._reads(collective, now, who.lanes)
        stamps, old = reads.stamps, shadow.readers.take(entries)
        shadow.readers.put(entries, stamps)
        new = shadow.readers.take(entries)
        unknown = reads.unknown(old, self.clocks.warp[who.rows][:, np.newaxis])
        crowded = (new != stamps[:, np.newaxis]) | unknown
        if crowded.any():
            gather(shadow.readers, entries, crowded, self.crowds, (stamps, reads.warps, np.where(unknown, old, 0)))

    def _check_shared_writers(self, access: Access, who: Accessors) -> None:
        """Check an access against the last writes that some warp of the block does not know of."""
        late = self._late(who, self.shared.writes.stamp, who.words, self.shared.has_landings)
        if late is not None:
            self.checks.earlier(access, late, *self.shared.writes.take(late.words), WRITES)
            self.behind.check(access, late, self.shared)

    def _late(self, who: Accessors, plane: Plane, words: Words, landings: bool = False) -> Accessors | None:
        """Return the accesses to words with stamps that some warp of the block, or with `landings` any, may lack."""
        late = plane.take(words) > np.minimum(self.clocks.floors[who.rows], self.checks.issued)[:, np.newaxis]
        if landings:
            late |= self.shared.writes.warp.take(words) >= LANDED
        which = late.any(1)
        return who.only(which) if which.any() else None

    def _check_shared_readers(self, access: Access, everyone: Accessors) -> None:
        """Check a write against the reads of all warps of the block."""
        has_async_reads, latest = self.checks.has_async_reads, self.shared.latest_reads_of(everyone.words)
        who = everyone if has_async_reads else self._late(everyone, self.shared.readers, latest)
        if who is None:
            return
        self.behind.check(access, who, self.shared, READS)
        r = self.residents
        home = who.words.first * self.shared.grain // self.shared.stride
        for warp in range(r.warps):
            stamps = self.shared.readers.take(self.shared.reads_of(who.words, warp))
            known = np.minimum(self.clocks.seen[who.rows, r.rank[home] * r.warps + warp], self.checks.issued)
            if (stamps > known[:, np.newaxis]).any() or (has_async_reads and are_async(stamps).any()):
                number = (r.ordinals[home] * r.warps + warp).astype(STAMP)[:, np.newaxis]
                self.checks.earlier(access, who, stamps, np.broadcast_to(number, stamps.shape), READS)

    # Other blocks of the cluster

    def _record_remote(self, access: Access, now: int, who: Accessors) -> Accessors:
        """Record reads of shared memory of other blocks; return the remaining accesses."""
        flat, lanes, _ = allowed(access)
        remote = self.residents.slot[lanes] != flat // self.shared.stride
        if remote.any():
            reads = self._reads(access.by.collective, now, lanes[remote])
            if self.shared.remote is not None and strength(access.ordering):
                accesses = Accesses(self.shared.remote, access.size, *allowed(access))
                self.behind.reads_in_global(access, self.shared.remote, accesses.those(remote))
            self.shared.read_remotely(flat[remote], access.size, reads, self.crowds)
            self.shared.newest_read = now | SEVERAL
            if self.shared.pages is not None:
                column = self.clocks.column[lanes[remote] // WARP]
                self.shared.pages.note_reads(flat[remote], column, now | SEVERAL, False)
        return who.only(who.words.each(~remote))

    def _check_remote_readers(self, access: Access, remote: GlobalShadow, which: np.ndarray | slice) -> None:
        """Check some accesses of a write against the reads of other blocks."""
        who = Accesses(remote, access.size, *allowed(access)).those(which)
        for entries, stamps, warps in remote.reads_of(who.words):
            self.checks.earlier(access, who.only(entries), stamps, warps, READS)
        self.behind.check(access, who, remote, READS)

    def _check_started(self, access: Access) -> None:
        """Reports accesses to shared memory of blocks that may not have started yet."""
        flat, lanes, number = allowed(access)
        strange = unstarted(self.clocks, lanes, slots := flat // self.shared.stride)
        if not strange.any():
            return
        first = int(np.argmax(strange))
        which = np.zeros(access.address.shape, bool)
        which.reshape(-1)[number[strange]] = True
        tell_unstarted(access, which, int(access.address.reshape(-1)[number[first]]), int(slots[first]))

    def _end_blocks(self, slots: np.ndarray, by: Requester) -> None:
        """Reports blocks that end while other blocks may not be done with their shared memory."""
        for slot in slots.tolist():
            for offset, stamp, warp in strangers(self.clocks, self.shared, slot, self.journal.wrote):
                tell_early_exit(
                    by, self.residents, slot, self.shared_region, offset, self.journal.told[stamp // TICK], warp
                )
                return

    def _in_global(self, access: Access) -> None:
        if access.asynchronous and access.kind == READS and self._never_written(access.holder):
            return
        flat, lanes, number = allowed(access)
        if not flat.size:
            return
        now = self.note(Told(access.by.origin, access.kind, access.ordering, unit=access.unit))
        if not access.asynchronous:
            self.locations.receive(access, "global", flat, lanes)
        for allocation, which in self._allocations(access, number):
            part = flat[which], lanes[which], number[which]
            self._in_array(access, now, self.array(allocation), *part)
        if not access.asynchronous:
            self.locations.send(access, "global", flat, lanes, now | SEVERAL)

    def _allocations(self, access: Access, number: np.ndarray) -> list[tuple[Allocation, np.ndarray | slice]]:
        """Return the arrays that are accessed, each with the accesses to it."""
        if access.holder is not None:
            return [(access.holder, slice(None))]
        address, table = access.address.reshape(-1)[number], access.region.table
        index, _ = table.find(address, access.size)
        return [(table.allocations[n], index == n) for n in np.unique(index)]

    def _never_written(self, allocation: Allocation | None) -> bool:
        """True if no thread has written an array, so that reads of copies need no check when they are issued."""
        if allocation is None:
            return False
        shadow = self.arrays.get(id(allocation))
        return shadow is None or not shadow.written

    def array(self, allocation: Allocation) -> GlobalShadow:
        """Return the shadow of an array."""
        key = id(allocation)
        if key not in self.arrays:
            start = allocation.offset // 16 * 16
            self.arrays[key] = GlobalShadow(start, allocation.offset - start + allocation.bytes, self.crowds)
        return self.arrays[key]

    def _reads(self, collective: bool, now: int, lanes: np.ndarray) -> WarpReads:
        """Return reads by lanes, (accesses,); they may be recorded later than they were made."""
        rows, clocks = lanes // WARP, self.clocks if now == self.journal.now else None
        return WarpReads(stamps_of(collective, now, lanes), self.clocks.warp[rows], lanes, self.clocks.met(), clocks)

    def _in_array(
        self, access: Access, now: int, shadow: GlobalShadow, flat: np.ndarray, lanes: np.ndarray, number: np.ndarray
    ) -> None:
        if access.kind == READS and not shadow.written and not strength(access.ordering):
            if not access.asynchronous:
                shadow.read(flat, access.size, self._reads(access.by.collective, now, lanes))
            return
        if not shadow.written:
            shadow.settle()
            shadow.written = True
        words = shadow.words(flat, access.size)
        lanes, number = words.each(lanes), words.each(number)
        who = Accessors(words, lanes, lanes // WARP, number)
        stamps = stamps_of(access.by.collective, now, lanes)
        self.checks.earlier(access, who, *shadow.writes.take(words), WRITES)
        self.behind.check(access, who, shadow)
        if access.asynchronous:
            self.checks.fences(access, who, shadow)
        if access.kind == READS:
            if not access.asynchronous:
                if strength(access.ordering):
                    self.behind.reads_in_global(access, shadow, who)
                shadow.read(flat, access.size, self._reads(access.by.collective, now, lanes[:: words.repeats]))
            return
        for which, read, readers in shadow.reads_of(words):
            self.checks.earlier(access, who.only(which), read, readers, READS)
        self.behind.check(access, who, shadow, READS)
        if access.asynchronous:
            return
        warps = self.clocks.warp[who.rows]
        self.behind.write(access, shadow, who)
        shadow.writes.put(words, stamps, warps)
        self._check_step(access, shadow, who, stamps, warps)

    # Order

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, Convergence):
            self.clocks.converge(event.rows, event.active, by.alive, self.tick() | SEVERAL)
        elif isinstance(event, BarrierArrival):
            self._arrive(event)
        elif isinstance(event, BarrierCompletion):
            self._complete(event)
        elif isinstance(event, CopyStart):
            self.sources.start(event)
        elif isinstance(event, RemoteIssue | RemoteLanding):
            stride, now = self.shared.stride, self.tick() | SEVERAL
            self.checks.issued = STAMP.type(self.locations.send_stores(event, by.lanes_now, stride, now))
        elif isinstance(event, Landing):
            self._land(event, by)
        elif isinstance(event, BulkLanding):
            self._land_bulk(event, by)
        elif isinstance(event, ReadingEnd):
            self._end_reading(event)
        elif isinstance(event, ProductsEnd):
            self.clocks.meet_warpgroups(event.rows, self.tick() | SEVERAL)
        elif isinstance(event, Fence):
            self._fence(event, by)
        elif isinstance(event, ClusterEvent):
            self._in_cluster(event, by)
        else:
            self._phase(event, by)

    def _in_cluster(self, event: ClusterEvent, by: Requester) -> None:
        if isinstance(event, ClusterArrival):
            self.clusters.arrive(event, self.tick() | SEVERAL, by.alive, self.locations.fences[CLUSTER])
        elif isinstance(event, ClusterCompletion):
            self.clusters.end_phase(event.done)
        elif isinstance(event, ClusterWait):
            self.clusters.wait(event.lanes, by.alive)
            self.clocks.barriers[np.unique(event.lanes // WARP)] = self.journal.now | SEVERAL
        else:
            self._end_blocks(event.slots, by)

    def _fence(self, fence: Fence, by: Requester) -> None:
        now = self.tick() | SEVERAL
        if fence.proxy == "async":
            self.proxies.fence(by.lanes_now, now, fence.space)
        elif fence.proxy == "mbarrier":
            self.initialised.fence(by.lanes_now, now - SEVERAL)
        self.locations.fence(fence, by.lanes_now, now, by.alive)

    def _arrive(self, event: BarrierArrival) -> None:
        now = self.tick() | SEVERAL
        if event.slot is None or event.warp is None or event.barrier is None:
            self.clocks.meet_everyone(now)
            return
        rows = event.warp.astype(np.int64) * self.residents.slots + event.slot
        self.clocks.meet_lanes_of(rows, now)
        seen = self.clocks.seen[rows]
        np.maximum.at(self.barriers, (event.slot, event.barrier), seen)
        if self.clocks.proxies is not None:
            for row, key in zip(rows, zip(event.slot.tolist(), event.barrier.tolist(), strict=True), strict=True):
                known = self.clocks.proxies[row]
                self.proxy_barriers[key] = np.maximum(known, self.proxy_barriers.get(key, known))
        if self.clocks.far:
            warps = self.clocks.warp[rows].tolist()
            for warp, slot, barrier in zip(warps, event.slot.tolist(), event.barrier.tolist(), strict=True):
                if (message := self.clocks.far.get(warp)) is not None:
                    self.messages[slot, barrier] = message.joined(self.messages.get((slot, barrier)))

    def _complete(self, event: BarrierCompletion) -> None:
        rows = event.warp * self.residents.slots + event.slot
        now = self.tick() | SEVERAL
        self.clocks.learn(rows, self.barriers[event.slot, event.barrier])
        self.clocks.meet_lanes_of(rows, now)
        self.clocks.barriers[rows] = now
        keys = list(zip(event.slot.tolist(), event.barrier.tolist(), strict=True))
        if known := [(n, self.proxy_barriers[key]) for n, key in enumerate(keys) if key in self.proxy_barriers]:
            self.clocks.learn_proxies(rows[[n for n, _ in known]], np.stack([proxies for _, proxies in known]))
        if told := [(n, self.messages[key]) for n, key in enumerate(keys) if key in self.messages]:
            self.clocks.teach(rows[[n for n, _ in told]], [message for _, message in told])
        self.barriers[event.done] = 0
        for slot, barrier in np.argwhere(event.done).tolist():
            self.messages.pop((slot, barrier), None)
            self.proxy_barriers.pop((slot, barrier), None)

    def _land(self, event: Landing, by: Requester) -> None:
        """Record the reads and writes of copies that have ended, as those of the threads that waited for them."""
        now = self.note(Told(event.origin, WRITES, asynchronous=True))
        if self.recent is None:
            self._record_landing(now, event.destination, event.bytes, event.lanes)
        elif event.lanes.size:
            self.recent.forget(self.clocks.floor)
            self.recent.add(RecentAccess(WRITES, now, event.destination, event.bytes, event.lanes, False, landing=True))
        if event.source is None:
            return
        whole = slice(None) if event.used is None else event.used == event.bytes
        source, lanes = event.source[whole], event.lanes[whole]
        if not len(source):
            return
        for allocation, which in holders(self.global_region, source):
            shadow = self.array(allocation)
            self.sources.check(event, by, self.residents, shadow, allocation, source[which], lanes[which])
            shadow.read(source[which], event.bytes, self._reads(False, now, lanes[which]))

    def _record_landing(self, now: int, flat: np.ndarray, bytes: int, lanes: np.ndarray) -> None:
        """Record what copies of lanes wrote to shared memory."""
        shadow, words = self.shared, self.shared.words(flat, bytes)
        stamps, warps = (now + lanes % WARP).astype(STAMP), self.clocks.warp[lanes // WARP]
        shadow.writes.put(words, words.each(stamps), words.each(warps))
        shadow.newest_write = now | SEVERAL
        if shadow.pages is not None:
            shadow.pages.note_writes(self.clocks, flat, warps, now | SEVERAL)

    def _land_bulk(self, event: BulkLanding, by: Requester) -> None:
        """Record the reads and writes of bulk copies; waits for their mbarriers make them known."""
        stride = self.shared.stride
        landings = self.proxies.landing(event.mbarrier // stride, event.mbarrier % stride)
        if event.source_space == "global" and event.sources.size:
            self._read_sources(event, landings[event.readers], by)
        now = self.note(Told(event.origin, WRITES, ASYNC, asynchronous=True))
        chunks, writers = event.chunks.reshape(-1), np.broadcast_to(landings, event.chunks.shape).reshape(-1)
        words = self.shared.words(chunks, CHUNK)
        self.shared.writes.put(words, np.full(len(words.first), now | SEVERAL, STAMP), words.each(writers))
        self.shared.newest_write, self.shared.has_landings = now | SEVERAL, True
        if self.shared.pages is not None:
            self.shared.pages.note_writes(self.clocks, chunks, writers, now | SEVERAL)
        for address, number in dict(zip(event.mbarrier.tolist(), landings.tolist(), strict=True)).items():
            self.locations.land("shared", address, address // stride, self.proxies.message(number, now))
        self.locations.complete("shared", event.phases, np.ones(len(event.phases), bool))

    def _read_sources(self, event: BulkLanding, landings: np.ndarray, by: Requester) -> None:
        """Check and record what bulk copies read of global memory, under the numbers of their mbarriers."""
        stamps = np.full(event.sources.shape, self.note(Told(event.origin, READS, ASYNC)) | SEVERAL, STAMP)
        lanes = event.lanes[event.readers]
        for allocation, which in holders(self.global_region, event.sources):
            shadow, places = self.array(allocation), event.sources[which]
            self.sources.check(event, by, self.residents, shadow, allocation, places, lanes[which])
            shadow.read(places, event.unit, WarpReads(stamps[which], landings[which]))

    def _end_reading(self, event: ReadingEnd) -> None:
        """Record reads of the async proxy that have ended, as those of the threads that issued them."""
        now = self.note(Told(event.origin, READS, ASYNC))
        words = self.shared.words(event.chunks, CHUNK)
        lanes = words.each(event.lanes)
        who = Accessors(words, lanes, lanes // WARP, np.arange(len(lanes)))
        self.behind.generic_reads(self.shared, who)
        self._record_reads(now, who, event.whole_warps)

    def _phase(self, event: PhaseArrival | PhaseCompletion | PhaseWait, by: Requester) -> None:
        now = self.tick() | SEVERAL
        address = event.address.view(np.int64) & _WINDOW
        lanes = by.lanes_of(address.shape).reshape(-1)
        offset, _, slots = owners(self.residents, lanes, address.reshape(-1))
        flat = offset + np.maximum(slots, 0) * self.shared_region.stride
        if isinstance(event, PhaseArrival):
            homes = self.residents.ordinals[np.maximum(slots, 0)]
            self.locations.arrive(event, "shared", flat, lanes, homes, now + TICK)  # the count follows, known with it
            return
        done = event.complete.reshape(-1)
        if isinstance(event, PhaseCompletion):
            self.locations.complete("shared", flat, done)
        elif done.any():
            self.locations.wait(event, "shared", flat[done], lanes[done], by.alive)
