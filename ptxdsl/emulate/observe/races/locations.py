"""Memory through which threads synchronize: flags and counters, and mbarriers.

A release pattern leaves a message in the mailbox of its location, which an acquire pattern that reads from it receives
(PTX ISA, "Release and Acquire Patterns", "Memory synchronization"). A release pattern is a release, or a release or a
fence of the same thread followed by a strong write; an acquire pattern is an acquire, or a strong read followed by a
fence. Atomic operations in between pass messages on. Accesses of another size are not morally strong and pass nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from ....isa.step import Fence, Ordering, PhaseArrival, PhaseWait
from ...memory.access import READS, UPDATES, WRITES, Access, RemoteIssue, RemoteLanding
from ...run.residents import WARP, Residents
from .clocks import Clocks, Message, PastKnowledge
from .mailboxes import BLOCK, DEVICE, REACH, Mailbox
from .proxies import Proxies
from .stamps import LATEST, STAMP

_ACQUIRES = "acquire", "acq_rel"
_GRAIN = 4  # bytes; flags are not smaller
Key: TypeAlias = tuple[str, int]  # space and place
Boxes: TypeAlias = dict[Key, Mailbox]
Heard: TypeAlias = tuple[Message | None, Message | None, Message | None]  # by the reach of the fence that follows


@dataclass(slots=True)
class JointArrival:
    """Lanes of a warp that arrive together at an mbarrier of the block `home`, with what they know. `landed` is the
    knowledge of the stores whose completion is the arrival.
    """

    key: Key
    lanes: list[int]
    home: int
    event: PhaseArrival
    now: int
    message: Message
    landed: Message | None = None

    def split(self, clocks: Clocks) -> Iterator[JointArrival]:
        """Yield one arrival for each lane."""
        for lane in self.lanes:
            message = self.message if self.landed else clocks.tell(lane, self.now)
            yield JointArrival(self.key, [lane], self.home, self.event, self.now, message, self.landed)


class Locations:
    """The mailboxes of flags and counters and of complete phases of mbarriers, and those of current phases (`arrived`).

    `fences` hold, by reach, the knowledge of each lane at its last fence; `released` that at the last release of each
    thread at a location, with its reach. `heard` is what threads read but did not acquire yet. `latest` has the
    serial of the message that each lane read last, without and with acquiring it: spinning threads read it again.
    """

    def __init__(self, clocks: Clocks, proxies: Proxies, lanes: int, boxes: Boxes) -> None:
        self.clocks, self.proxies = clocks, proxies
        self.boxes = boxes
        self.arrived: Boxes = {}
        self.arriving: list[JointArrival] = []  # of one instruction, not counted yet
        self.heard: dict[int, Heard] = {}
        self.released: dict[tuple[Key, int, int], tuple[PastKnowledge, int]] = {}  # by place, size and thread
        self.latest = [np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)]
        self.fences = [np.full(lanes, None, object) for _ in range(DEVICE + 1)]
        self.any_fenced = False
        self.stores: dict[RemoteIssue, PastKnowledge] = {}  # with the knowledge at their issue
        self.landing: RemoteIssue | None = None  # the stores to other blocks that are carried out now
        self.landings: dict[int, int] = {}  # by lane, the number of the mbarrier where they complete

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Move lanes to their places among other residents."""
        self._count()
        for kept in (self.fences, self.latest):
            for number, old in enumerate(kept):
                kept[number] = np.full(residents.lanes, None if old.dtype == object else 0, old.dtype)
                kept[number][destination] = old[source]

    def relocate(self, slots: np.ndarray, stride: int) -> None:
        """Renumber slots of shared memory; -1 stands for slots that are gone."""

        def moved(key: Key) -> Key | None:
            space, flat = key
            if space != "shared":
                return key
            slot = int(slots[flat // stride])
            return (space, slot * stride + flat % stride) if slot >= 0 else None

        for boxes in (self.boxes, self.arrived):
            kept = {new: box for key, box in boxes.items() if (new := moved(key)) is not None}
            boxes.clear()
            boxes |= kept
        self.released = {
            (new, size, thread): release
            for (key, size, thread), release in self.released.items()
            if (new := moved(key)) is not None
        }

    def _block(self, lane: int) -> int:
        return int(self.clocks.block[lane // WARP])

    def _cluster(self, block: int) -> int:
        return block // self.clocks.residents.cluster_blocks

    def _thread(self, lane: int) -> int:
        return int(self.clocks.warp[lane // WARP]) * WARP + lane % WARP

    def _leave(self, boxes: Boxes, key: Key, block: int, message: Message, reach: int, size: int = 0) -> None:
        """Leave a message of a thread of a block in the mailbox of a location."""
        if key not in boxes:
            boxes[key] = Mailbox(size)
        boxes[key].leave(message, reach, block, self._cluster(block))

    # Accesses

    def receive(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray) -> None:
        """Let lanes read messages, before their accesses are checked: an acquire follows what it acquires."""
        if not self.boxes or access.kind == WRITES or not self._passes(access):
            return
        flat, lanes = self._elements(access, flat, lanes)
        addresses = [address for where, address in self.boxes if where == space]
        for address in addresses if len(addresses) < flat.size else np.unique(flat).tolist():
            readers = lanes[flat == address]
            if readers.size:
                self._read_or_drop(access, (space, address), readers)

    def send(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """Let lanes write messages, one after another, or overwrite those that are there."""
        if access.kind == READS:
            return
        if access.ordering.sem == "weak" and self.boxes:
            self._drop(space, flat, access.size)
        if not self._passes(access):
            return
        flat, lanes = self._elements(access, flat, lanes)
        if access.ordering.sem in ("release", "acq_rel") or self.any_fenced or self.released:
            self._write(access, space, flat, lanes, now)
        elif access.kind == WRITES and self.boxes:
            self._drop(space, flat, access.unit)

    def _passes(self, access: Access) -> bool:
        """Return True for strong accesses; those to mbarriers are ordered by `PhaseArrival` and `PhaseWait`."""
        return access.ordering.sem != "weak" and access.ordering.proxy != "mbarrier"

    def _elements(self, access: Access, flat: np.ndarray, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the places and lanes of the elements of vectors, which are accesses each."""
        if access.elements == 1:
            return flat, lanes
        flat = (flat[:, np.newaxis] + np.arange(access.elements) * access.unit).reshape(-1)
        return flat, np.repeat(lanes, access.elements)

    def _drop(self, space: str, flat: np.ndarray, size: int) -> None:
        """Remove the mailboxes of bytes that are overwritten."""
        keys = [key for key in self.boxes if key[0] == space]
        if not keys:
            return
        if size > _GRAIN:
            flat = (flat[:, np.newaxis] + np.arange(0, size, _GRAIN)).reshape(-1)
        if len(self.boxes) < flat.size:
            addresses = set(flat.tolist())
            for key in [key for key in keys if key[1] in addresses]:
                del self.boxes[key]
            return
        for address in flat.tolist():
            self.boxes.pop((space, address), None)

    def _read_or_drop(self, access: Access, key: Key, lanes: np.ndarray) -> None:
        """Let lanes read or update a location; a `red` gives its thread nothing and forms no acquire pattern."""
        box = self.boxes.get(key)
        if box is None:
            return
        reach = REACH[access.ordering.scope]
        if box.size == access.unit and (access.kind == READS or access.tells_what_was_there):
            self._read(box, lanes, access.ordering, access.by.alive)
        if access.kind == READS:
            return
        if box.size == access.unit and all(self._observes(box, reach, block) for block in self._blocks(lanes)):
            box.writer = reach, self._block(lanes[-1])
        else:
            del self.boxes[key]

    def _blocks(self, lanes: np.ndarray) -> list[int]:
        blocks: list[int] = np.unique(self.clocks.block[lanes // WARP]).tolist()
        return blocks

    def _observes(self, box: Mailbox, reach: int, block: int) -> bool:
        return box.is_observed(reach, block, self.clocks.residents.cluster_blocks)

    def _read(self, box: Mailbox, lanes: np.ndarray, ordering: Ordering, alive: np.ndarray) -> None:
        """Let lanes read a mailbox: if they acquire they know its messages at once, else after a fence, and after a
        wider fence those of threads that the read itself does not reach."""
        reach, acquires = REACH[ordering.scope], ordering.sem in _ACQUIRES
        if acquires and reach == DEVICE and box.is_device_wide:
            self._acquire([box.device], np.zeros(len(lanes), np.int64), lanes, alive)
            return
        farthest = reach if box.writer is None else DEVICE
        for block in self._blocks(lanes):
            if not self._observes(box, reach, block):
                continue
            here, cluster = lanes[self.clocks.block[lanes // WARP] == block], self._cluster(block)
            near, middle, wide = (box.receive(min(each, farthest), block, cluster) for each in range(DEVICE + 1))
            acquired = (near, middle, wide)[reach]
            if acquires:
                self._acquire([acquired], np.zeros(len(here), np.int64), here, alive)
            if not acquires or wide is not acquired:
                self._hear((near, middle, wide), here)

    def _acquire(
        self, messages: Sequence[Message | None], number: np.ndarray, lanes: np.ndarray, alive: np.ndarray
    ) -> None:
        """Acquire, in each lane, the message that `number` (lanes,) selects for it."""
        serials = np.array([0 if message is None else message.serial for message in messages])
        fresh = np.flatnonzero(self._unread(serials[number], lanes, True))
        if fresh.size:
            present = [message for message in messages if message is not None]
            number = np.cumsum(serials > 0)[number[fresh]] - 1
            self.clocks.hear_each(lanes[fresh], present, number, alive)

    def _unread(self, serials: np.ndarray | int, lanes: np.ndarray, acquires: bool) -> np.ndarray:
        """Return True for lanes that did not read messages, 0 for none, last time, and note that they have."""
        latest = self.latest[acquires]
        fresh: np.ndarray = (serials != 0) & (latest[lanes] != serials)
        latest[lanes] = np.where(fresh, serials, latest[lanes])
        return fresh

    def _hear(self, messages: Heard, lanes: np.ndarray) -> None:
        """Keep messages for the next fences of lanes, by the reach of such a fence."""
        wide = messages[DEVICE]
        threads = self.clocks.threads(lanes[self._unread(0 if wide is None else wide.serial, lanes, False)])
        joint: dict[int, Heard] = {}  # most heard the same
        for thread in threads:
            known = self.heard.get(thread)
            if id(known) not in joint:
                joint[id(known)] = messages if known is None else _joined(messages, known)
            self.heard[thread] = joint[id(known)]

    def _write(self, access: Access, space: str, flat: np.ndarray, lanes: np.ndarray, now: int) -> None:
        """Let lanes write or update locations, one after another: a strong write after a release or a fence of its
        thread releases what that did."""
        reach, releases = REACH[access.ordering.scope], access.ordering.sem in ("release", "acq_rel")
        then = self.clocks.snapshot(lanes, now) if releases else None
        for address, lane in zip(flat.tolist(), lanes.tolist(), strict=True):
            key, block = (space, address), self._block(lane)
            if access.kind == UPDATES:
                self._read_or_drop(access, key, np.array([lane]))
            else:
                self.boxes.pop(key, None)
            self._leave_earlier(key, lane, reach if releases else -1, access.unit)
            if then is not None:
                self._leave(self.boxes, key, block, self.clocks.tell(lane, now), reach, access.unit)
                self.released[key, access.unit, self._thread(lane)] = then, reach
            if key in self.boxes:
                self.boxes[key].writer = reach, block

    def _leave_earlier(self, key: Key, lane: int, nearer: int, size: int) -> None:
        """Leave what the last release at a location and the fences of a lane make known, now that it writes there, to
        threads beyond those of the reach `nearer`."""
        release = self.released.get((key, size, self._thread(lane)))
        for then, reach in (*self._fenced(lane, DEVICE), *([release] if release else [])):
            if reach > nearer:
                self._leave(self.boxes, key, self._block(lane), self.clocks.recall([lane], then), reach, size)

    def _fenced(self, lane: int, reach: int) -> Iterator[tuple[PastKnowledge, int]]:
        """Yield the fences of a lane that precede a strong write, and how far they reach, at most `reach`."""
        farther = 0
        for each in range(reach, BLOCK - 1, -1):
            then = self.fences[each][lane]
            if then is not None and then.now > farther:  # a later fence than those that reach farther
                yield then, each
                farther = then.now

    # Fences

    def fence(self, fence: Fence, lanes: np.ndarray, now: int, alive: np.ndarray) -> None:
        """Let lanes order their accesses before a fence and those after it. A fence releases what it acquires."""
        if fence.proxy:
            return
        if fence.sem != "release" and self.heard:
            self._take_in(lanes, REACH[fence.scope], alive)
        if fence.sem != "acquire":
            self.any_fenced = True
            then = self.clocks.snapshot(lanes, now)
            for reach in range(REACH[fence.scope] + 1):
                self.fences[reach][lanes] = then

    def _take_in(self, lanes: np.ndarray, reach: int, alive: np.ndarray) -> None:
        """Let lanes acquire, at the reach of a fence, what they read before it."""
        learned: dict[int, tuple[Message, list[int]]] = {}
        for lane in lanes.tolist():
            thread = self._thread(lane)
            heard = self.heard.get(thread)
            if heard is not None and (message := heard[reach]) is not None:
                learned.setdefault(id(message), (message, []))[1].append(lane)
            if heard is not None and reach == DEVICE:
                del self.heard[thread]
        for message, listeners in learned.values():
            self.clocks.hear(np.array(listeners), message, alive)

    # mbarriers

    def send_stores(self, event: RemoteIssue | RemoteLanding, lanes: np.ndarray, stride: int, now: int) -> int:
        """Let lanes issue stores to other blocks, or carry them out: what they do in between is not released.

        Return the stamp of the issue of those that are carried out from now on, LATEST if there are none.
        """
        if isinstance(event, RemoteIssue):
            self.stores[event] = self.clocks.snapshot(lanes, now)
            return LATEST
        self.landing = None if event.ends else event.stores
        if event.ends:
            self.stores.pop(event.stores, None)
            return LATEST
        mbarriers = event.stores.mbarriers
        numbers = self.proxies.landing(mbarriers // stride, mbarriers % stride)
        self.landings = dict(zip(lanes.tolist(), numbers.tolist(), strict=True))
        return self.stores.setdefault(event.stores, self.clocks.snapshot(lanes, now)).now

    def landings_of(self, lanes: np.ndarray) -> np.ndarray:
        """Return the numbers of the mbarriers where the stores of lanes complete that are carried out now."""
        return np.array([self.landings[lane] for lane in lanes.tolist()], STAMP)

    def _completion(self, key: Key, lanes: list[int], home: int, event: PhaseArrival, now: int) -> JointArrival:
        """Return the completion of stores: it makes known the stores, and what their lanes knew at the issue."""
        assert self.landing is not None
        landed = self.proxies.message(self.landings[lanes[0]], now)
        message = landed.joined(self.clocks.recall(lanes, self.stores[self.landing]) if self.landing.releases else None)
        return JointArrival(key, lanes, home, event, now, message, landed)

    def arrive(
        self, event: PhaseArrival, space: str, flat: np.ndarray, lanes: np.ndarray, homes: np.ndarray, now: int
    ) -> None:
        """Let lanes arrive at mbarriers of the blocks `homes`: what they know goes to the waits for this phase."""
        self._count()
        columns = flat.tolist(), (lanes // WARP).tolist(), homes.tolist()
        for (address, _, home), entries in groupby(zip(*columns, lanes.tolist(), strict=True), key=itemgetter(0, 1, 2)):
            members = [lane for *_, lane in entries]
            key = space, address
            if event.ordering.sem == "relaxed":
                self._arrive_relaxed(event, key, members, home)
            elif event.asynchronous:
                self.arriving.append(self._completion(key, members, home, event, now))
            else:
                message = self.clocks.tell_together(members, now)
                self.arriving.append(JointArrival(key, members, home, event, now, message))

    def _arrive_relaxed(self, event: PhaseArrival, key: Key, lanes: list[int], home: int) -> None:
        """Let lanes arrive that release only what they fenced before."""
        for lane in lanes if self.any_fenced else ():
            for then, reach in self._fenced(lane, REACH[event.ordering.scope]):
                message = self.clocks.recall([lane], then)
                self._leave_arrival(JointArrival(key, [lane], home, event, then.now, message), reach)

    def _count(self) -> None:
        """Add arrivals that are not counted yet to the current phases."""
        for arrival in self.arriving:
            self._leave_arrival(arrival, REACH[arrival.event.ordering.scope])
        self.arriving.clear()

    def _leave_arrival(self, arrival: JointArrival, reach: int) -> None:
        """Leave what lanes know at an mbarrier: from another block, waits of block scope learn only of reads."""
        block, home, message = self._block(arrival.lanes[0]), arrival.home, arrival.message
        self._leave(self.arrived, arrival.key, block, message, reach)
        if arrival.landed is not None:
            self._leave(self.arrived, arrival.key, home, arrival.landed, BLOCK)
        elif block != home:
            self._leave(self.arrived, arrival.key, home, message.of_reads(), BLOCK)

    def land(self, space: str, address: int, slot: int, message: Message) -> None:
        """Let copies complete bytes at an mbarrier: every wait for the phase learns that they landed."""
        self._count()
        self._leave(self.arrived, (space, address), self._block(slot * WARP), message, BLOCK)

    def complete(self, space: str, flat: np.ndarray, done: np.ndarray) -> None:
        """Complete phases of mbarriers, where `done`. Of lanes that arrive together, those after the one that completes
        a phase belong to the next."""
        arriving = self.arriving
        if [arrival.key for arrival in arriving for _ in arrival.lanes] == [(space, each) for each in flat.tolist()]:
            self.arriving, first = [], 0
            for arrival in arriving:
                *before, last = done[first : first + len(arrival.lanes)].tolist()
                first += len(arrival.lanes)
                each = zip(arrival.split(self.clocks), [*before, last], strict=True)
                for part, ends in each if any(before) else [(arrival, last)]:
                    self._leave_arrival(part, REACH[part.event.ordering.scope])
                    if ends:
                        self._end_phase(part.key)
            return
        self._count()
        for address in set(flat[done].tolist()):
            self._end_phase((space, address))

    def _end_phase(self, key: Key) -> None:
        arrived = self.arrived.pop(key, None)
        if arrived is not None:
            self.boxes.setdefault(key, Mailbox()).add(arrived)

    def wait(self, event: PhaseWait, space: str, flat: np.ndarray, lanes: np.ndarray, alive: np.ndarray) -> None:
        """Let lanes see that phases are complete."""
        addresses, number = np.unique(flat, return_inverse=True)
        boxes = [self.boxes.get((space, address)) for address in addresses.tolist()]
        if event.ordering.sem not in _ACQUIRES:
            for n, box in enumerate(boxes):
                if box is not None:
                    self._read(box, lanes[number == n], event.ordering, alive)
            return
        reach, blocks = REACH[event.ordering.scope], self.clocks.block[lanes // WARP]
        pairs, number = np.unique(number * (int(blocks.max()) + 1) + blocks, return_inverse=True)
        messages = []
        for pair in pairs.tolist():
            n, block = divmod(pair, int(blocks.max()) + 1)
            box = boxes[n]
            messages.append(None if box is None else box.receive(reach, block, self._cluster(block)))
        self._acquire(messages, number, lanes, alive)


def _joined(messages: Heard, known: Heard) -> Heard:
    """Join what a thread reads to what it heard before."""
    near, middle, wide = (old if new is None else new.joined(old) for new, old in zip(messages, known, strict=True))
    return near, middle, wide
