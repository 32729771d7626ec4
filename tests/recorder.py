"""Records what the threads of an emulated launch do, as the operations of `tests.memory_model`.

A `Recorder` is a watcher of `ptxdsl.emulate.emulate`; it subscribes to the accesses and ordering events that the race detector
sees, and looks at nothing that the detector derives from them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxdsl.emulate.memory import access as events
from ptxdsl.emulate.memory.access import READS, WRITES, Access, Observer, Requester
from ptxdsl.emulate.memory.distributed import owners
from ptxdsl.emulate.memory.spaces import WINDOW
from ptxdsl.emulate.run.machine import Machine
from ptxdsl.emulate.run.residents import Residents
from ptxdsl.isa.step import BULK_REDUCTION, Fence, PhaseArrival, PhaseCompletion, PhaseWait
from tests import memory_model as model
from tests.memory_model import Operation, Place, Thread

MBARRIER_BYTES = 8
SPACES = {"": ("global", "shared"), "global": ("global",), "shared": ("shared",)}


class Recorder(Observer):
    """`operations` are those of all threads in the order in which they ran."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._writers: dict[tuple[int, int], Operation] = {}
        self._instances: dict[object, int] = {}
        self._pending: dict[tuple[Thread, int], list[Operation]] = {}
        self._arrivals: dict[Place, list[list[Operation]]] = {}
        self._arriving: list[Operation] = []
        self._stores: dict[events.RemoteIssue, dict[Thread, list[Operation]]] = {}
        self._landing: events.RemoteIssue | None = None

    # As a watcher

    def attach(self, machine: Machine) -> None:
        self.memory = machine.memory
        machine.memory.subscribe(self)

    def before(self, step: object, lanes: np.ndarray) -> None: ...

    def on_finding(self, finding: object) -> None: ...

    def ended(self) -> None: ...

    # As an observer

    def settle(self, residents: Residents) -> None:
        self.residents = residents

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        self.residents = residents

    def access(self, access: Access) -> None:
        if access.ordering.proxy == "mbarrier" and access.ordering.sem != "weak":
            return  # the phase events tell of it
        if access.asynchronous:
            if access.ordering.sem == "weak" or access.ordering == BULK_REDUCTION:
                self._issue(access)
            return
        if access.ordering.proxy == "async":
            self._store(access)
            return
        kind = {READS: model.READ, WRITES: model.WRITE}.get(access.kind)
        kind = kind or (model.ATOM if access.by.name.startswith("atom.") else model.RED)
        for thread, place in self._accesses(access):
            self._memory(access.by, thread, kind, place, access.ordering)

    def order(self, event: object, by: Requester) -> None:
        for kind, handle in {
            Fence: self._fence, PhaseArrival: self._arrive, PhaseCompletion: self._complete, PhaseWait: self._wait,
            events.BarrierArrival: self._come, events.BarrierCompletion: self._part, events.Convergence: self._converge,
            events.ClusterArrival: self._cluster, events.ClusterCompletion: self._end_cluster,
            events.ClusterWait: self._cluster, events.BulkLanding: self._land, events.ReadingEnd: self._end_reading,
            events.Landing: self._end_copy, events.RemoteIssue: self._send, events.RemoteLanding: self._receive,
        }.items():  # fmt: skip
            if isinstance(event, kind):
                handle(event, by)

    # Threads and places

    def _thread(self, lane: int) -> Thread:
        block = int(self.residents.ordinals[self.residents.slot[lane]])
        return Thread(block, block // self.residents.cluster_blocks, int(self.residents.thread[lane]))

    def _place(self, splits_k: bool, flat: int, size: int) -> Place:
        if not splits_k:
            return Place(-1, flat, size)
        slot, offset = divmod(flat, self.memory.spaces["shared"].stride)
        return Place(int(self.residents.ordinals[slot]), offset, size)

    def _accesses(self, access: Access) -> Iterator[tuple[Thread, Place]]:
        splits_k = access.region is self.memory.spaces["shared"]
        if splits_k or access.region is self.memory.spaces["global"]:
            for lane, flat in zip(access.lanes.reshape(-1).tolist(), access.flat.reshape(-1).tolist(), strict=True):
                yield self._thread(lane), self._place(splits_k, flat, access.size)

    def _line(self, by: Requester) -> int:
        return by.origin.location.line if by.origin.location is not None else 0

    def _add(self, by: Requester, thread: Thread, kind: str, **facts: object) -> Operation:
        operation = Operation(thread, kind, self._line(by), **facts)  # type: ignore[arg-type]
        self.operations.append(operation)
        return operation

    # Accesses

    def _memory(self, by: Requester, thread: Thread, kind: str, place: Place, ordering: object) -> None:
        octets = [(place.block, place.start + n) for n in range(place.bytes)]
        sources = {self._writers[octet] for octet in octets if octet in self._writers}
        facts = {"sem": ordering.sem, "scope": ordering.scope, "is_mbarrier": False}
        operation = Operation(thread, kind, self._line(by), place, **facts, reads_from=sources)
        if kind == model.WRITE:
            operation.reads_from = set()
        if kind == model.READ and self._repeats(operation):
            return
        if self._landing is not None:
            issued = self._stores[self._landing][thread]
            operation.issued = issued[0]
            issued.append(operation)
        self.operations.append(operation)
        if kind != model.READ:
            self._writers |= dict.fromkeys(octets, operation)

    def _repeats(self, operation: Operation) -> bool:
        """True for a read in a spin loop that sees what the one before saw."""
        last = next((o for o in reversed(self.operations) if o.thread == operation.thread), None)
        return last is not None and (last.line, last.reads_from) == (operation.line, operation.reads_from)

    def _issue(self, access: Access) -> None:
        """A bulk copy is issued: its accesses come later."""
        kind = {READS: model.READ, WRITES: model.WRITE}.get(access.kind, model.RED)
        extents: dict[Thread, list[Place]] = {}
        for thread, place in self._accesses(access):
            extents.setdefault(thread, []).append(place)
        for thread, places in extents.items():
            key = thread, self._line(access.by)
            if key not in self._pending:
                self._pending[key] = [self._add(access.by, thread, model.ISSUE)]
            start, end = min(p.start for p in places), max(p.start + p.bytes for p in places)
            place = Place(places[0].block, start, end - start)
            self._pending[key].append(
                self._add(
                    access.by,
                    thread,
                    kind,
                    place=place,
                    sem=access.ordering.sem,
                    scope=access.ordering.scope,
                    proxy=access.ordering.proxy,
                    issued=self._pending[key][0],
                )
            )

    def _send(self, event: events.RemoteIssue, by: Requester) -> None:
        """Threads issue stores to other blocks."""
        threads = map(self._thread, by.lanes_now.tolist())
        self._stores[event] = {thread: [self._add(by, thread, model.ISSUE)] for thread in threads}

    def _receive(self, event: events.RemoteLanding, by: Requester) -> None:
        self._landing = None if event.ends else event.stores

    def _finish(self, key: tuple[Thread, int], completion: Operation, reads_only: bool = False) -> None:
        for operation in self._pending[key][1:]:
            if operation.completed is None and (operation.kind == model.READ or not reads_only):
                operation.completed = completion
                if operation.kind != model.READ and operation.place is not None:
                    place = operation.place
                    self._writers |= {(place.block, place.start + n): operation for n in range(place.bytes)}

    def _land(self, event: events.BulkLanding, by: Requester) -> None:
        """Copies complete their bytes at mbarriers."""
        line = event.origin.location.line if event.origin.location is not None else 0
        for lane, mbarrier in zip(event.lanes.tolist(), event.mbarrier.tolist(), strict=True):
            key = self._thread(lane), line
            place = self._place(True, mbarrier, MBARRIER_BYTES)
            done = Operation(key[0], model.RED, line, place, "release", "cluster", is_mbarrier=True)
            done.issued, done.completed = self._pending[key][0], done
            self.operations.append(done)
            self._finish(key, done)
            self._phases(place)[-1].append(done)
        for flat in event.phases.tolist():
            self._phases(self._place(True, flat, MBARRIER_BYTES)).append([])

    def _end_reading(self, event: events.ReadingEnd, by: Requester) -> None:
        self._see_end({self._thread(lane) for lane in event.lanes.tolist()}, event.origin, reads_only=True)

    def _end_copy(self, event: events.Landing, by: Requester) -> None:
        self._see_end({self._thread(lane) for lane in event.lanes.tolist()}, event.origin)

    def _store(self, access: Access) -> None:
        self._see_end({thread for thread, _ in self._accesses(access)}, access.by.origin)

    def _see_end(self, threads: set[Thread], origin: events.Origin, reads_only: bool = False) -> None:
        """Threads have waited for their bulk groups."""
        line = origin.location.line if origin.location is not None else 0
        for thread in threads:
            completion = Operation(thread, model.COMPLETION, line)
            self.operations.append(completion)
            self._finish((thread, line), completion, reads_only)

    # Fences and barriers

    def _fence(self, event: Fence, by: Requester) -> None:
        for lane in by.lanes_now.tolist():
            if event.proxy == "async":
                space = by.name.removeprefix("fence.proxy.async").lstrip(".").partition("::")[0]
                self._add(by, self._thread(lane), model.PROXY_FENCE, fences=SPACES[space])
            elif not event.proxy:
                self._add(by, self._thread(lane), model.FENCE, sem=event.sem, scope=event.scope)

    def _meet(self, by: Requester, lanes: np.ndarray, key: object, waits: bool, kind: str = model.BARRIER) -> None:
        for lane in lanes[by.alive[lanes]].tolist():
            block = int(self.residents.ordinals[self.residents.slot[lane]])
            where = (block, key)
            meeting = (where, self._instances.setdefault(where, 0))
            self._add(by, self._thread(lane), kind, meeting=meeting, waits=waits)

    def _come(self, event: events.BarrierArrival, by: Requester) -> None:
        lanes, waits = by.lanes_now, ".arrive" not in by.name
        if event.slot is None:
            self._meet(by, lanes, "all", waits)
            for where in self._instances:
                self._instances[where] += where[1] == "all"  # type: ignore[index]
            return
        for slot, warp, barrier in zip(event.slot, event.warp, event.barrier, strict=True):
            here = (self.residents.slot[lanes] == slot) & (self.residents.warp[lanes] == warp)
            self._meet(by, lanes[here], int(barrier), waits)

    def _part(self, event: events.BarrierCompletion, by: Requester) -> None:
        for slot, barrier in np.argwhere(event.done).tolist():
            where = int(self.residents.ordinals[slot]), barrier
            self._instances[where] = self._instances.get(where, 0) + 1

    def _converge(self, event: events.Convergence, by: Requester) -> None:
        """Of the collectives of a warp, bar.warp.sync alone orders memory."""
        if not by.name.startswith("bar.warp.sync"):
            return
        rows = np.arange(self.residents.lanes // 32) if event.rows is None else event.rows
        for row, active in zip(rows.tolist(), event.active, strict=True):
            lanes = row * 32 + np.flatnonzero(active)
            key = "warp", int(self.residents.warp[lanes[0]])
            self._meet(by, lanes, key, True)
            self._instances[int(self.residents.ordinals[self.residents.slot[lanes[0]]]), key] += 1

    def _cluster(self, event: events.ClusterArrival | events.ClusterWait, by: Requester) -> None:
        is_wait = isinstance(event, events.ClusterWait)
        for lane in event.lanes.tolist():
            thread = self._thread(lane)
            phase = self._instances.setdefault(thread.cluster, 0)
            sem = "acquire" if is_wait else "release" if event.releases else "relaxed"
            kind = model.CLUSTER_WAIT if is_wait else model.CLUSTER_ARRIVE
            self._add(by, thread, kind, sem=sem, meeting=("cluster", thread.cluster, phase - is_wait))

    def _end_cluster(self, event: events.ClusterCompletion, by: Requester) -> None:
        for number in np.flatnonzero(event.done).tolist():
            slot = int(self.residents.peers[number].max())
            cluster = int(self.residents.ordinals[slot]) // self.residents.cluster_blocks
            self._instances[cluster] = self._instances.get(cluster, 0) + 1

    # mbarriers

    def _phases(self, place: Place) -> list[list[Operation]]:
        """The arrivals in each phase of an mbarrier; the last phase is the current one."""
        return self._arrivals.setdefault(place, [[]])

    def _objects(self, event: PhaseArrival | PhaseCompletion | PhaseWait, by: Requester) -> list[tuple[int, Place]]:
        address = event.address.view(np.int64) & WINDOW
        lanes = by.lanes_of(address.shape).reshape(-1)
        offsets, _, slots = owners(self.residents, lanes, address.reshape(-1))
        ordinals = self.residents.ordinals[slots].tolist()
        places = [
            Place(ordinal, offset, MBARRIER_BYTES) for ordinal, offset in zip(ordinals, offsets.tolist(), strict=True)
        ]
        return list(zip(lanes.tolist(), places, strict=True))

    def _arrive(self, event: PhaseArrival, by: Requester) -> None:
        self._arriving = []
        for lane, place in self._objects(event, by):
            arrival = self._add(
                by, self._thread(lane), model.ATOM, place=place, sem=event.ordering.sem, scope=event.ordering.scope,
                is_mbarrier=True,
            )  # fmt: skip
            if self._landing is not None:
                issued = self._stores[self._landing][arrival.thread]
                for operation in (*issued[1:], arrival):
                    operation.completed = arrival
                arrival.issued, arrival.releases = issued[0], self._landing.releases
            self._phases(place)[-1].append(arrival)
            self._arriving.append(arrival)

    def _complete(self, event: PhaseCompletion, by: Requester) -> None:
        """Of lanes that arrive at once, those after the one that completes the phase arrive in the next."""
        arriving = {(o.thread, o.place): o for o in self._arriving}
        for (lane, place), done in zip(self._objects(event, by), event.complete.reshape(-1).tolist(), strict=True):
            arrival, phases = arriving.get((self._thread(lane), place)), self._phases(place)
            if arrival is not None and arrival not in phases[-1]:
                phases[-2].remove(arrival)
                phases[-1].append(arrival)
            if done:
                phases.append([])
        self._arriving = []

    def _wait(self, event: PhaseWait, by: Requester) -> None:
        for (lane, place), done in zip(self._objects(event, by), event.complete.reshape(-1).tolist(), strict=True):
            arrivals = {o for phase in self._phases(place)[:-1] for o in phase} if done else set()
            wait = Operation(
                self._thread(lane), model.READ, self._line(by), place, event.ordering.sem, event.ordering.scope,
                reads_from=arrivals, is_mbarrier=True,
            )  # fmt: skip
            if not self._repeats(wait):
                self.operations.append(wait)
