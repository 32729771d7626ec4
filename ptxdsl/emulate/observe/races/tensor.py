"""The order of operations on tensor memory (PTX ISA, "Memory Consistency Model for 5th generation of TensorCore
operations").

Asynchronous tcgen05 operations of one thread are ordered only as pipelined pairs, or by waiting for completion. Between
threads, `tcgen05.fence::before_thread_sync`, a synchronisation and `tcgen05.fence::after_thread_sync` order them, and
`tcgen05.commit` contains the first of these fences. The clocks of the race detector know which synchronisations a
thread has seen; here the fences are added. Loads and stores of a warp count as those of one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from ....isa.step import ASYNC
from ....layout.tensor_memory import TensorRegion
from ...memory.access import READS, Origin, Requester
from ...memory.regions import CHUNK
from ...run.residents import WARP
from .clocks import Message
from .detector import Races
from .shadow import WarpReads
from .stamps import ASYNC_LANE, SEVERAL, STAMP, TICK
from .telling import Told

_KEPT = 64  # fences of a warp, or commits to an mbarrier, that others may not have seen yet


class OperationKind(Enum):
    """The kinds of operations, by how they complete."""

    LOAD = "wait::ld"
    STORE = "wait::st"
    MULTIPLY = "mma"
    COPY = "cp"
    SHIFT = "shift"
    DEALLOCATE = "dealloc"

    @property
    def by_wait(self) -> bool:
        """True if tcgen05.wait completes it, and not tcgen05.commit."""
        return self in (OperationKind.LOAD, OperationKind.STORE)


PIPELINED = {
    (OperationKind.COPY, OperationKind.MULTIPLY),
    (OperationKind.SHIFT, OperationKind.MULTIPLY),
    (OperationKind.MULTIPLY, OperationKind.SHIFT),
}
"""The pairs that execute in the order of their issue, besides products of one accumulator, and shifts before narrow
copies."""


@dataclass(eq=False, slots=True)
class Operation:
    """An operation of a warp of the grid; of a thread, if a commit completes it.

    `accumulator` identifies products that are pipelined with each other. `done` is the stamp of the wait that completed
    it. `is_racy` marks those that are reported.
    """

    kind: OperationKind
    origin: Origin
    warp: int
    thread: int
    issued: int
    accumulator: object = None
    is_narrow_copy: bool = False
    done: int = 0
    is_racy: bool = False

    def pipelined_with(self, later: Operation) -> bool:
        """True if a later operation executes after this one without waiting for it."""
        if self.kind is later.kind is OperationKind.MULTIPLY:
            return self.accumulator == later.accumulator
        if self.kind is OperationKind.SHIFT and later.is_narrow_copy:
            return True
        return (self.kind, later.kind) in PIPELINED


class RegionAccess(NamedTuple):
    """An access of an operation to a region."""

    region: TensorRegion
    writes: bool
    operation: Operation


class Footprint(NamedTuple):
    """The regions of the tensor memory of the block in a slot that an operation reads, and those that it writes."""

    slot: int
    reads: Sequence[TensorRegion]
    writes: Sequence[TensorRegion]


class TensorConflict(NamedTuple):
    """An access that lacks an order after an earlier one, by the number of its lane; `block` has the tensor memory."""

    number: int
    access: RegionAccess
    other: RegionAccess
    lack: Lack
    block: int


class Token(NamedTuple):
    """A fence before a synchronisation, by lanes of a warp, or the arrival of a commit: its stamps on the clocks."""

    time: int
    warp: int
    stamps: tuple[int, ...]


class Lack(Enum):
    """What is missing between two operations."""

    WAIT = auto()
    COMMIT = auto()
    PHASE = auto()
    BEFORE = auto()
    AFTER = auto()
    SYNC = auto()

    @property
    def is_strict(self) -> bool:
        """True if the threads have synchronised, and only a fence is missing."""
        return self in (Lack.BEFORE, Lack.AFTER)


class TensorOrder:
    """Checks operations against earlier ones on the same cells.

    `accesses` are by block. `landings` are the commits of each thread that have arrived: the stamp of the commit, the
    number of the mbarrier (`Proxies.landing`), and the stamp of the arrival. `tokens` are by their source: a warp, or
    the number of an mbarrier. `heard` has, by warp and source, the time of the latest token that the warp knew of at
    its last fence after a synchronisation.
    """

    def __init__(self, races: Races) -> None:
        self.races, self.newest = races, 0
        self.accesses: dict[int, list[RegionAccess]] = {}
        self.tokens: dict[int, dict[int, deque[Token]]] = {}  # by cluster, then by source
        self.heard: dict[tuple[int, int], int] = {}
        self.landings: dict[int, deque[tuple[int, int, int]]] = {}

    def _now(self) -> int:
        """Return a new stamp; forget everything if the clock was restarted."""
        now = self.races.tick()
        if now < self.newest:
            for kept in (self.accesses, self.tokens, self.heard, self.landings):
                kept.clear()
        self.newest = now
        return now

    # Operations

    def issue(
        self,
        x: Requester,
        kind: OperationKind,
        lanes: np.ndarray,
        footprints: Sequence[Sequence[Footprint]],
        accumulators: Sequence[object] = (),
        is_narrow_copy: bool = False,
    ) -> list[Operation]:
        """Check and record operations, one for each lane (the first of a warp, for a collective)."""
        now, clocks = self._now(), self.races.clocks
        operations: list[Operation] = []
        late: list[TensorConflict] = []
        for n, (lane, touched) in enumerate(zip(lanes.tolist(), footprints, strict=True)):
            accumulator, warp = accumulators[n] if accumulators else None, int(clocks.warp[lane // WARP])
            thread = warp * WARP + lane % WARP
            operation = Operation(kind, x.origin, warp, thread, now, accumulator, is_narrow_copy)
            operations.append(operation)
            for footprint in touched:
                late += self._record(n, lane, operation, footprint)
        if late:
            self._report(x, lanes, late)
        return operations

    def _record(self, n: int, lane: int, operation: Operation, footprint: Footprint) -> Iterator[TensorConflict]:
        """Record the accesses of an operation to one block's tensor memory, and yield those that lack an order."""
        block = int(self.races.clocks.residents.ordinals[footprint.slot])
        both = ((footprint.reads, False), (footprint.writes, True))
        accesses = [RegionAccess(region, is_write, operation) for regions, is_write in both for region in regions]
        earlier = self.accesses.setdefault(block, [])
        for access in accesses:
            for other in earlier:
                if not (access.writes or other.writes) or not access.region.meets(other.region):
                    continue
                lack = self._lack(other.operation, operation, lane)
                if lack is not None:
                    operation.is_racy = True
                    yield TensorConflict(n, access, other, lack, block)
        earlier[:] = [other for other in earlier if not _superseded(other, accesses)]
        earlier += accesses

    def deallocate(self, x: Requester, lane: int, slot: int, columns: TensorRegion) -> None:
        """Check that all operations on columns are complete."""
        clocks = self.races.clocks
        block, warp = int(clocks.residents.ordinals[slot]), int(clocks.warp[lane // WARP])
        operation = Operation(OperationKind.DEALLOCATE, x.origin, warp, warp * WARP, self._now())
        access, late = RegionAccess(columns, True, operation), []
        others = [other for other in self.accesses.get(block, []) if columns.meets(other.region)]
        done: dict[int, int] = {}  # by warp, the stamp of its last wait
        for other in others:
            done[other.operation.warp] = max(done.get(other.operation.warp, 0), other.operation.done)
        asked = [(lane, 0, 0, _any_lane(each, stamp)) for each, stamp in done.items() if each != warp]
        known = {warp, *(token.warp for (*_, token), follows in zip(asked, self._known(asked), strict=True) if follows)}
        for other in others:
            if (lack := self._lack_of_end(other.operation, lane, known)) is not None:
                late.append(TensorConflict(0, access, other, lack, block))
        if late:
            self._report(x, np.array([lane]), late)

    def forget(self, slot: int, columns: TensorRegion) -> None:
        """Forget the operations on columns that are deallocated."""
        block = int(self.races.clocks.residents.ordinals[slot])
        self.accesses[block] = [other for other in self.accesses.get(block, []) if not columns.meets(other.region)]

    def end_block(self, block: int) -> None:
        """Forget a block that has ended."""
        self.accesses.pop(block, None)

    def complete(self, operations: Iterable[Operation]) -> None:
        """Note that a tcgen05.wait of their warps has completed operations."""
        now = self._now()
        for operation in operations:
            operation.done = operation.done or now

    # Fences and commits

    def before(self, lanes: np.ndarray) -> None:
        """Note a fence before a synchronisation."""
        now, clocks = self._now(), self.races.clocks
        rows = lanes // WARP
        for row in np.unique(rows).tolist():
            warp, cluster = int(clocks.warp[row]), int(clocks.cluster[row])
            stamps = tuple((now + lanes[rows == row] % WARP).tolist())
            self._add(cluster, warp, Token(now, warp, stamps))

    def _add(self, cluster: int, source: int, token: Token) -> None:
        self.tokens.setdefault(cluster, {}).setdefault(source, deque(maxlen=_KEPT)).append(token)

    def after(self, lanes: np.ndarray) -> None:
        """Note a fence after a synchronisation: the lanes' warps may rely on what they know now."""
        self._now()
        clocks = self.races.clocks
        rows, first = np.unique(lanes // WARP, return_index=True)
        asked: list[tuple[int, int, int, Token]] = []
        for row, lane in zip(rows.tolist(), lanes[first].tolist(), strict=True):
            warp = int(clocks.warp[row])
            for source, tokens in self.tokens.get(int(clocks.cluster[row]), {}).items():
                known = self.heard.get((warp, source), 0)
                asked += [(lane, warp, source, token) for token in tokens if token.time > known]
        for (_, warp, source, token), known in zip(asked, self._known(asked), strict=True):
            if known:
                self.heard[warp, source] = max(self.heard.get((warp, source), 0), token.time)

    def _known(self, asked: Sequence[tuple[int, int, int, Token]]) -> list[bool]:
        """Return which tokens the lanes know of: a token of several lanes by any of these."""
        if not asked:
            return []
        counts = [len(token.stamps) for *_, token in asked]
        lanes = np.repeat([lane for lane, *_ in asked], counts)
        warps = np.repeat(np.array([token.warp for *_, token in asked], STAMP), counts)
        stamps = np.array([stamp for *_, token in asked for stamp in token.stamps], STAMP)
        known = self.knows(lanes, warps, stamps)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        result: list[bool] = np.logical_or.reduceat(known, starts).tolist()
        return result

    def knows(self, lanes: np.ndarray, warps: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        """Return whether lanes know of events of warps, (events,): all three arrays have one entry for each.

        Execution is ordered whatever the scopes of the synchronisation, as reads are.
        """
        clocks = self.races.clocks
        rows = lanes // WARP
        late = stamps > clocks.limits(rows, warps)
        late &= (warps != clocks.warp[rows]) | (stamps % TICK != lanes % WARP)
        which = np.flatnonzero(late)
        if which.size:
            late[which] = clocks.unordered(lanes[which], warps[which], stamps[which], True)
        return ~late

    def commit(self, lanes: np.ndarray) -> tuple[int, list[Message]]:
        """Return the time of a commit, and what its lanes know: that comes before what they commit, and so before the
        arrival.

        What the lanes did themselves is left out: a commit covers tcgen05 operations alone.
        """
        now, clocks = self._now(), self.races.clocks
        messages = []
        for lane, thread in zip(lanes.tolist(), clocks.threads(lanes), strict=True):
            message = clocks.tell(lane, now)
            message.threads.pop(thread, None)
            messages.append(message)
        return now, messages

    def land(
        self,
        lanes: np.ndarray,
        mbarriers: np.ndarray,
        phases: np.ndarray,
        committed: int,
        known: Sequence[Message],
    ) -> None:
        """Note the arrival of the commits of lanes, at the stamp `committed`, at offsets in shared memory, (arrivals,).

        `phases` are the mbarriers whose phases complete; `known` is what the lanes knew when they committed.
        """
        now, races = self._now(), self.races
        clocks, stride = races.clocks, races.shared.stride
        numbers = races.proxies.landing(mbarriers // stride, mbarriers % stride).tolist()
        threads = clocks.threads(lanes)
        columns = lanes.tolist(), threads, mbarriers.tolist(), numbers, known
        for lane, thread, address, number, before in zip(*columns, strict=True):
            row = lane // WARP
            message = races.proxies.message(number, now, [int(clocks.warp[row])]).joined(before)
            races.locations.land("shared", address, address // stride, message)
            self._add(int(clocks.cluster[row]), number, Token(now, number, (now | SEVERAL,)))
            self.landings.setdefault(thread, deque(maxlen=_KEPT)).append((committed, number, now))
        races.locations.complete("shared", phases, np.ones(len(phases), bool))

    def read_shared(self, origin: Origin, lanes: np.ndarray, chunks: np.ndarray) -> None:
        """Record reads of shared memory by operations that are complete: those who waited for their commit know of
        them. `chunks` and `lanes` have one entry for each read of 16 bytes.
        """
        races = self.races
        now = races.note(Told(origin, READS, ASYNC))
        races.checks.has_async_reads = True
        shadow, rows = races.shared, lanes // WARP
        shadow.newest_read = now | SEVERAL
        if shadow.pages is not None:
            shadow.pages.note_async_reads(chunks, races.clocks.column[rows], now | ASYNC_LANE)
        if races.residents.cluster_blocks > 1:
            remote = races.residents.slot[lanes] != chunks // shadow.stride
            if remote.any():
                stamps = np.full(int(remote.sum()), now | ASYNC_LANE, STAMP)
                reads = WarpReads(stamps, races.clocks.warp[rows[remote]])
                shadow.read_remotely(chunks[remote], CHUNK, reads, races.crowds)
                chunks, rows = chunks[~remote], rows[~remote]
        words, warps = shadow.words(chunks, CHUNK), races.clocks.warp_in_block[rows]
        shadow.readers.put(shadow.latest_reads_of(words), np.uint32(now | SEVERAL))
        shadow.readers.put(shadow.reads_of(words, words.each(warps)), np.uint32(now | ASYNC_LANE))

    # Questions

    def _landings(self, operation: Operation) -> list[tuple[int, int]]:
        """Return the arrivals that completed an operation: the number of the mbarrier and the stamp of each."""
        landings = []
        for committed, number, stamp in reversed(self.landings.get(operation.thread, ())):
            if committed <= operation.issued:
                break
            landings.append((number, stamp))
        return landings[::-1]

    def _lack(self, earlier: Operation, later: Operation, lane: int) -> Lack | None:
        """Return what is missing for an earlier operation to precede a later one of a lane, or None."""
        same = earlier.warp == later.warp
        if earlier.kind.by_wait:
            if not earlier.done:
                return Lack.WAIT
            return None if same else self._lack_of_token(earlier.warp, earlier.done, later.warp, lane)
        pipelined = earlier.pipelined_with(later)
        if pipelined and same:
            return None
        landings = self._landings(earlier)
        if any(self.heard.get((later.warp, number), 0) >= stamp for number, stamp in landings):
            return None
        if pipelined:
            return self._lack_of_token(earlier.warp, earlier.issued, later.warp, lane)
        if not landings:
            return Lack.COMMIT
        return Lack.AFTER if self._have_landed(landings, lane) else Lack.PHASE

    def _have_landed(self, landings: Sequence[tuple[int, int]], lane: int) -> bool:
        """True if a lane knows of one of these arrivals."""
        numbers = np.array([number for number, _ in landings], STAMP)
        stamps = np.array([stamp | SEVERAL for _, stamp in landings], STAMP)
        return bool(self.knows(np.full(len(numbers), lane), numbers, stamps).any())

    def _lack_of_token(self, warp: int, since: int, listener: int, lane: int) -> Lack | None:
        """Return what is missing for a warp to rely on what another did up to a stamp."""
        if self.heard.get((listener, warp), 0) > since:
            return None
        tokens = self.tokens.get(warp // self.races.clocks.width, {}).get(warp, ())
        later = [token for token in tokens if token.time > since]
        if later:
            return Lack.AFTER if any(self._known([(lane, 0, 0, token) for token in later])) else Lack.SYNC
        return Lack.BEFORE if self._follows(warp, since, lane) else Lack.SYNC

    def _follows(self, warp: int, since: int, lane: int) -> bool:
        """True if a lane knows of what a warp did at a stamp."""
        return self._known([(lane, 0, 0, _any_lane(warp, since))])[0]

    def _lack_of_end(self, operation: Operation, lane: int, known: set[int]) -> Lack | None:
        """Return what is missing for an operation to be complete before columns are deallocated.

        The lane knows of all waits of the warps `known`.
        """
        if not operation.kind.by_wait:
            if not (landings := self._landings(operation)):
                return Lack.COMMIT
            return None if self._have_landed(landings, lane) else Lack.PHASE
        if not operation.done:
            return Lack.WAIT
        if operation.warp in known:
            return None
        return None if self._follows(operation.warp, operation.done, lane) else Lack.SYNC

    # Reports

    def _report(self, x: Requester, lanes: np.ndarray, late: Sequence[TensorConflict]) -> None:
        """Report the first conflict, an error if there is one, for all lanes that have any."""
        _, access, other, lack, block = min(late, key=lambda conflict: conflict.lack.is_strict)
        operation, r = access.operation, self.races.clocks.residents
        each, wrong = x.lanes_now.reshape(-1), lanes[[conflict.number for conflict in late]]
        which = np.isin(each // WARP, wrong // WARP).reshape(-1, WARP) if x.collective else np.isin(each, wrong)
        first, end = max(access.region.first, other.region.first), min(access.region.end, other.region.end)
        earlier, origin = other.operation, other.operation.origin
        verb = "deallocates" if operation.kind is OperationKind.DEALLOCATE else "writes" if access.writes else "reads"
        here, whose = operation.warp // r.warps, earlier.warp // r.warps
        who = "the same warp" if earlier.warp == operation.warp else f"warp {earlier.warp % r.warps}"
        who += f" of block {r.numbered(whose, 0).block_text}" * (whose != here)
        where = f" of block {r.numbered(block, 0).block_text}" * (block != here)
        message = (
            f"{x.name} {verb} {columns_text(first, end)} of tensor memory{where}, which {origin.name} of {who} "
            f"{_did(other, lack)}; {_reason(earlier, lack)}"
        )
        others = [origin.location] if origin.location is not None else []
        x.finding("race", message, which, others, _help(earlier, lack, x.name), lack.is_strict)


def _any_lane(warp: int, since: int) -> Token:
    """Return a token that is known if anything is known of what a warp did at a stamp."""
    return Token(since, warp, tuple(range(since, since + WARP)))


def _superseded(other: RegionAccess, accesses: Sequence[RegionAccess]) -> bool:
    """True if whatever must follow an earlier access must follow one of the new ones too."""
    for access in accesses:
        if access.region.covers(other.region):
            later, earlier = access.operation, other.operation
            alike = later.warp == earlier.warp and later.kind is earlier.kind
            if access.writes or (alike and not other.writes):
                return True
    return False


def columns_text(first: int, end: int) -> str:
    """Return columns as text: "column 3", "columns 0 to 31"."""
    return f"column {first}" if end == first + 1 else f"columns {first} to {end - 1}"


def _did(other: RegionAccess, lack: Lack) -> str:
    if lack in (Lack.WAIT, Lack.COMMIT, Lack.PHASE):
        return "may still write" if other.writes else "may still read"
    return "wrote" if other.writes else "read"


def _reason(earlier: Operation, lack: Lack) -> str:
    return {
        Lack.WAIT: f"its warp has not executed tcgen05.{earlier.kind.value}",
        Lack.COMMIT: "no tcgen05.commit that covers it has arrived",
        Lack.PHASE: "these threads have not waited for the tcgen05.commit that covers it",
        Lack.BEFORE: "no tcgen05.fence::before_thread_sync follows it",
        Lack.AFTER: "no tcgen05.fence::after_thread_sync follows their synchronisation",
        Lack.SYNC: "nothing orders the two",
    }[lack]


def _help(earlier: Operation, lack: Lack, name: str) -> str:
    short = name.partition(".cta_group")[0].partition(".sync")[0]
    return {
        Lack.WAIT: f"execute tcgen05.{earlier.kind.value}.sync.aligned after it, before the threads synchronise",
        Lack.COMMIT: "execute tcgen05.commit after it, and wait for the phase of its mbarrier (mbarrier.try_wait)",
        Lack.PHASE: "wait for the phase of the mbarrier of that tcgen05.commit (mbarrier.try_wait)",
        Lack.BEFORE: "execute tcgen05.fence::before_thread_sync in its threads, before they synchronise with these",
        Lack.AFTER: f"execute tcgen05.fence::after_thread_sync between the synchronisation and {short}",
        Lack.SYNC: "synchronise the threads, for example by an mbarrier or bar.sync",
    }[lack]
