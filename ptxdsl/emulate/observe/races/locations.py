"""Memory through which threads tell each other what they did: flags and counters, and mbarriers.

A release leaves a message at its address; what reads it and acquires learns it. Messages have a scope: those of `.cta`
reach threads of the same block only, those of `.cluster` threads of the same cluster. A fence stands between a message
and accesses that do not order by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from ....isa.step import Fence, Ordering, PhaseArrival, PhaseWait
from ...memory.access import READS, UPDATES, Access
from ...run.residents import WARP, Residents
from .clocks import Clocks, Message, joined

WIDE = ("gpu", "sys")  # scopes that reach all blocks
REACH = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 2}  # of a scope: the block, its cluster, all blocks
SCOPES = ("cta", "cluster", "gpu")  # by reach


@dataclass(eq=False, slots=True)
class Mailbox:
    """The messages at one address: for threads of block `block`, of cluster `cluster`, and for all."""

    block: int
    cluster: int
    near: Message | None = None
    middle: Message | None = None
    wide: Message | None = None
    totals: dict[int, Message | None] = field(default_factory=dict)

    def leave(self, message: Message, scope: str, block: int, cluster: int) -> None:
        """Adds a message to those that are there."""
        self.totals.clear()
        if scope in WIDE:
            self.wide = message.joined(self.wide)
            return
        if cluster != self.cluster:
            self.cluster, self.middle, self.block, self.near = cluster, None, block, None
        if scope == "cluster":
            self.middle = message.joined(self.middle)
            return
        if block != self.block:
            self.block, self.near = block, None
        self.near = message.joined(self.near)

    def for_threads(self, distance: int) -> Message | None:
        """What threads read: those of the block (0), others of the cluster (1), all others (2)."""
        if distance not in self.totals:
            messages = [m for m in (self.near, self.middle, self.wide)[distance:] if m is not None]
            self.totals[distance] = joined(messages) if messages else None
        return self.totals[distance]


Boxes: TypeAlias = dict[tuple[str, int], Mailbox]


@dataclass(slots=True)
class JointArrival:
    """Lanes of a warp that arrive at an mbarrier at once, and what they tell those who see the phase complete: all that
    they know, or of reads alone."""

    key: tuple[str, int]
    lanes: list[int]
    is_whole: bool
    now: int
    message: Message

    def split(self, clocks: Clocks) -> Iterator[JointArrival]:
        """One of each lane."""
        for lane in self.lanes:
            yield arrival_of(clocks, self.key, [lane], self.is_whole, self.now)


def arrival_of(clocks: Clocks, key: tuple[str, int], lanes: list[int], is_whole: bool, now: int) -> JointArrival:
    message = clocks.tell_together(lanes, now)
    return JointArrival(key, lanes, is_whole, now, message if is_whole else message.of_reads())


class Locations:
    """Mailboxes by space and place, and what lanes fenced or have yet to fence.

    `latest` has the serial of the message that each lane read last, by whether it acquired it: spinning threads read it
    again.
    """

    def __init__(self, clocks: Clocks, lanes: int, boxes: Boxes) -> None:
        self.clocks = clocks
        self.boxes = boxes
        self.arrived: Boxes = {}
        self.arriving: list[JointArrival] = []  # of one instruction, not counted yet
        self.heard: dict[int, Message] = {}
        self.latest = [np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)]
        self.fenced = [np.zeros(lanes, np.int64) for _ in range(3)]  # by reach
        self.any_fenced = False

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Lanes go to their places among other residents."""
        self._count()
        for kept in (self.fenced, self.latest):
            for number, old in enumerate(kept):
                kept[number] = np.zeros(residents.lanes, np.int64)
                kept[number][destination] = old[source]

    def relocate(self, slots: np.ndarray, stride: int) -> None:
        """Slots of shared memory have other numbers, -1 for those that are gone."""
        for boxes in (self.boxes, self.arrived):
            kept = {key: box for key, box in boxes.items() if key[0] != "shared"}
            for (space, flat), box in boxes.items():
                if space == "shared" and slots[flat // stride] >= 0:
                    kept[space, int(slots[flat // stride]) * stride + flat % stride] = box
            boxes.clear()
            boxes |= kept

    def _block(self, lane: int) -> int:
        return int(self.clocks.block[lane // WARP])

    def _box(self, boxes: Boxes, key: tuple[str, int], lane: int) -> Mailbox:
        """The mailbox at an address, made where a lane leaves its first message."""
        if key not in boxes:
            boxes[key] = Mailbox(self._block(lane), int(self.clocks.cluster[lane // WARP]))
        return boxes[key]

    def _leave(self, boxes: Boxes, key: tuple[str, int], lane: int, message: Message, scope: str) -> None:
        block, cluster = self._block(lane), int(self.clocks.cluster[lane // WARP])
        box = self._box(boxes, key, lane)
        box.leave(message, scope, block, cluster)
        if scope in WIDE and self.clocks.residents.cluster_blocks > 1:  # for those who read at the scope of the cluster
            box.leave(message, "cluster", block, cluster)

    def _thread(self, lane: int) -> int:
        return int(self.clocks.warp[lane // WARP]) * WARP + lane % WARP

    # Accesses

    def access(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """Lanes read or write flags, one after another."""
        sem = access.ordering.sem
        if sem == "weak":
            if self.boxes and access.kind != READS:
                self._drop(space, flat)
            return
        if access.ordering.proxy == "mbarrier" and not (self.any_fenced and access.kind != READS):
            return
        if access.kind != READS and (sem in ("release", "acq_rel") or self.any_fenced):
            self._exchange(access, space, flat, lanes, now)
        elif self.boxes:
            if access.kind == READS or access.kind == UPDATES:
                self._receive(access, space, flat, lanes)
            else:
                self._drop(space, flat)

    def _drop(self, space: str, flat: np.ndarray) -> None:
        if len(self.boxes) < flat.size:
            addresses = set(flat.tolist())
            for key in [key for key in self.boxes if key[0] == space and key[1] in addresses]:
                del self.boxes[key]
            return
        for address in flat.tolist():
            self.boxes.pop((space, address), None)

    def _receive(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray) -> None:
        """Lanes read messages."""
        addresses = [address for where, address in self.boxes if where == space]
        for address in addresses if len(addresses) < flat.size else np.unique(flat).tolist():
            readers = lanes[flat == address]
            if readers.size:
                self._read(self.boxes.get((space, address)), readers, access.ordering, access.by.alive)

    def _read(self, box: Mailbox | None, lanes: np.ndarray, ordering: Ordering, alive: np.ndarray) -> None:
        """Lanes read the messages of a mailbox: they know them at once, or behind a fence."""
        if box is None:
            return
        if box.near is None and box.middle is None:
            distance = np.full(len(lanes), 2)
        else:
            beyond = self.clocks.cluster[lanes // WARP] != box.cluster
            distance = np.where(beyond, 2, self.clocks.block[lanes // WARP] != box.block)
        for each in np.unique(distance[distance <= REACH[ordering.scope]]).tolist():
            self._learn(box.for_threads(each), lanes[distance == each], ordering, alive)

    def _learn(self, message: Message | None, lanes: np.ndarray, ordering: Ordering, alive: np.ndarray) -> None:
        """Lanes read a message."""
        if message is None:
            return
        acquires = ordering.sem in ("acquire", "acq_rel")
        latest = self.latest[acquires]
        lanes = lanes[latest[lanes] != message.serial]
        if not lanes.size:
            return
        latest[lanes] = message.serial
        if acquires:
            self.clocks.hear(lanes, message, alive)
            return
        threads = self.clocks.threads(lanes)
        heard = {id(known): known for known in map(self.heard.get, threads)}  # most heard the same
        joint = {key: message.joined(known) for key, known in heard.items()}
        for thread in threads:
            self.heard[thread] = joint[id(self.heard.get(thread))]

    def _exchange(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """Lanes write, one after another, what others may read; an update reads first what is there."""
        releases = access.ordering.sem in ("release", "acq_rel")
        if access.ordering.proxy == "mbarrier" and access.kind == UPDATES and not releases:
            self._exchange_counts(access, space, flat, lanes, now)
            return
        sends = np.ones(len(lanes), bool) if releases else self.fenced[0][lanes] > 0
        for address, lane, send in zip(flat.tolist(), lanes.tolist(), sends.tolist(), strict=True):
            key = space, address
            if access.kind == UPDATES:
                self._read(self.boxes.get(key), np.array([lane]), access.ordering, access.by.alive)
            else:
                self.boxes.pop(key, None)
            if releases:
                self._leave(self.boxes, key, lane, self.clocks.tell(lane, now, None), access.ordering.scope)
            elif send:
                self._leave_behind_fences(key, [lane], now, REACH[access.ordering.scope])

    def _exchange_counts(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """The same at mbarriers, whose states do not tell lanes of each other: those of a warp exchange at once."""
        senders = self.fenced[0][lanes] > 0
        for address in np.unique(flat).tolist():
            key, here = (space, address), flat == address
            self._read(self.boxes.get(key), lanes[here], access.ordering, access.by.alive)
            limits = zip(*(each[lanes[here & senders]].tolist() for each in self.fenced), strict=True)
            by_fence: dict[tuple[int, ...], list[int]] = {}
            for lane, limit in zip(lanes[here & senders].tolist(), limits, strict=True):
                by_fence.setdefault((lane // WARP, *limit), []).append(lane)
            for members in by_fence.values():
                self._leave_behind_fences(key, members, now, REACH[access.ordering.scope])

    def _leave_behind_fences(self, key: tuple[str, int], lanes: list[int], now: int, reach: int) -> None:
        """Lanes of a warp write what orders nothing by itself: a fence before it does, which all had, as far as both
        reach."""
        farther = 0
        for each in range(reach, -1, -1):
            limit = int(self.fenced[each][lanes[0]])
            if limit > farther:  # a later fence than those that reach farther
                message = self.clocks.tell_together(lanes, now).until(limit)
                self._leave(self.boxes, key, lanes[0], message, SCOPES[each])
                farther = limit

    # Fences

    def fence(self, fence: Fence, lanes: np.ndarray, now: int, alive: np.ndarray) -> None:
        """Lanes order their accesses before a fence and those behind it."""
        if fence.proxy:
            return
        if fence.sem != "acquire":
            self.any_fenced = True
            for reach in range(REACH[fence.scope] + 1):
                self.fenced[reach][lanes] = now
        if fence.sem != "release" and self.heard:
            self._take_in(lanes, REACH[fence.scope], alive)

    def _take_in(self, lanes: np.ndarray, reach: int, alive: np.ndarray) -> None:
        """Lanes know now what they heard before; behind a fence that reaches less than all, only of those within."""
        learned: dict[int, tuple[Message, list[int]]] = {}
        for lane in lanes.tolist():
            message = self.heard.pop(self._thread(lane), None)
            if message is not None:
                learned.setdefault(id(message), (message, []))[1].append(lane)
        for message, listeners in learned.values():
            if reach == REACH["gpu"]:
                self.clocks.hear(np.array(listeners), message, alive)
                continue
            for lane in listeners:
                part = message.within(*self.clocks.nearby(lane, reach))
                self.clocks.hear(np.array([lane]), part, alive)
                self.heard[self._thread(lane)] = message

    # mbarriers

    def arrive(
        self, event: PhaseArrival, space: str, flat: np.ndarray, lanes: np.ndarray, near: np.ndarray, now: int
    ) -> None:
        """Lanes arrive at mbarriers: what they know goes to those who see the phase complete.

        Where an mbarrier is not `near`, but of another block, and the scope not the cluster, that is what they read.
        """
        self._count()
        if event.ordering.sem == "relaxed":
            return
        whole = near | (event.ordering.scope != "cta")
        columns = flat.tolist(), (lanes // WARP).tolist(), whole.tolist()
        for (address, _, is_whole), entries in groupby(
            zip(*columns, lanes.tolist(), strict=True), key=itemgetter(0, 1, 2)
        ):
            members = [lane for *_, lane in entries]
            self.arriving.append(arrival_of(self.clocks, (space, address), members, is_whole, now))

    def _count(self) -> None:
        """Who arrived belongs to the phase that is under way."""
        for arrival in self.arriving:
            self._leave_arrival(arrival)
        self.arriving.clear()

    def _leave_arrival(self, arrival: JointArrival) -> None:
        self._leave(self.arrived, arrival.key, arrival.lanes[0], arrival.message, "gpu")

    def land(self, space: str, address: int, slot: int, message: Message) -> None:
        """Copies complete bytes at an mbarrier: that they landed goes to those who see the phase complete."""
        self._count()
        self._leave(self.arrived, (space, address), slot * WARP, message, "gpu")

    def complete(self, space: str, flat: np.ndarray, done: np.ndarray) -> None:
        """Phases of mbarriers are complete, where `done`. Of lanes that arrive at once, those behind the one with which
        a phase is complete belong to the next."""
        arriving = self.arriving
        if [arrival.key for arrival in arriving for _ in arrival.lanes] == [(space, each) for each in flat.tolist()]:
            self.arriving, first = [], 0
            for arrival in arriving:
                *before, last = done[first : first + len(arrival.lanes)].tolist()
                first += len(arrival.lanes)
                each = zip(arrival.split(self.clocks), [*before, last], strict=True)
                for part, ends in each if any(before) else [(arrival, last)]:
                    self._leave_arrival(part)
                    if ends:
                        self._end_phase(part.key)
            return
        self._count()
        for address in set(flat[done].tolist()):
            self._end_phase((space, address))

    def _end_phase(self, key: tuple[str, int]) -> None:
        arrived = self.arrived.pop(key, None)
        if arrived is not None and arrived.wide is not None:
            box = self.boxes.setdefault(key, Mailbox(arrived.block, arrived.cluster))
            box.leave(arrived.wide, "gpu", arrived.block, arrived.cluster)

    def wait(self, event: PhaseWait, space: str, flat: np.ndarray, lanes: np.ndarray, alive: np.ndarray) -> None:
        """Lanes see that phases are complete."""
        ordering = Ordering(event.ordering.sem, "gpu")
        for address in np.unique(flat).tolist():
            self._read(self.boxes.get((space, address)), lanes[flat == address], ordering, alive)
