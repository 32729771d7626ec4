"""Asynchronous copies (cp.async): queued when issued, carried out as late as the program allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import Location
from ...isa.step import WEAK
from ..memory.access import READS, WRITES, Access, CopyStart, Landing, Origin, Requester
from ..memory.spaces import Memory


@dataclass(eq=False, slots=True)
class Copy:
    """The copies in flight of one instruction: a source, a destination and a group per lane.

    `used` is the number of bytes that are read (None: all); the rest become zero. If all become zero, `source` is None
    and nothing is read. The groups are from `oldest` to `newest`.
    """

    lanes: np.ndarray
    source: np.ndarray | None
    destination: np.ndarray
    bytes: int
    used: np.ndarray | None
    group: np.ndarray
    oldest: int
    newest: int
    serial: int
    origin: Origin

    def part(self, which: np.ndarray) -> Copy:
        source = self.source[which] if self.source is not None else None
        used = self.used[which] if self.used is not None else None
        arrays = (self.lanes[which], source, self.destination[which], self.bytes, used, self.group[which])
        return Copy(*arrays, self.oldest, self.newest, self.serial, self.origin)


@dataclass(eq=False, slots=True)
class Notice:
    """An action for when the copies of some lanes up to a serial number are complete."""

    lanes: np.ndarray
    serial: int
    action: Callable[[np.ndarray], None]

    def waits_for(self, copy: Copy) -> np.ndarray | bool:
        return copy.serial <= self.serial and np.isin(copy.lanes, self.lanes)


class CopyQueue:
    """The queue. `closed` counts the groups that each lane has committed."""

    def __init__(self, memory: Memory, lanes: int) -> None:
        self.memory = memory
        self.closed = np.zeros(lanes, np.int64)
        self._bounds: tuple[int, int] | None = None
        self.queue: list[Copy] = []
        self.notices: list[Notice] = []
        self.issued = 0

    def issue(
        self,
        x: Requester,
        destination: np.ndarray,
        source: np.ndarray,
        size: int,
        used: np.ndarray,
    ) -> None:
        """Queue copies of `size` bytes, of which `used` are read."""
        least, most = int(used.min()), int(used.max())
        part = None if least == size else used.astype(np.int64)
        write = self.memory.reach(x, WRITES, "shared", destination, size, WEAK, None, True)
        origin, allowed = self._origin(x, source, size, used if least < size else None) if most else (None, None)
        if write.allowed is not None:
            allowed = write.allowed if allowed is None else allowed & write.allowed
        group, self.issued = np.array(x.of_lanes(self.closed, destination.shape)), self.issued + 1
        copy = Copy(x.lanes_now, origin, write.flat, size, part, group, *self._range, self.issued, x.origin)
        if allowed is not None and not allowed.all():
            copy = copy.part(allowed)
        write.region.launch(copy.destination, size)
        self.queue.append(copy)
        if copy.source is not None:
            self.memory.order(x, CopyStart(copy.serial, self.queue[0].serial))
        write.region.in_flight = len(self.queue)

    @property
    def _range(self) -> tuple[int, int]:
        """Return the least and the greatest number of groups that a lane has committed."""
        if self._bounds is None:
            self._bounds = int(self.closed.min()), int(self.closed.max())
        return self._bounds

    def _origin(
        self, x: Requester, source: np.ndarray, size: int, used: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the source addresses. Lanes that read nothing may have any address; others are checked for the bytes
        they read.
        """
        if used is None:
            read = self._reads(x, source, size)
            return read.flat, read.allowed
        flat, allowed = np.zeros(source.shape, np.int64), used == 0
        partly = (used > 0) & (used < size) & (source % np.uint64(size) == 0)
        for which, width in ((partly, 1), (~allowed & ~partly, size)):
            if which.any():
                with x.only(which):
                    read = self._reads(x, source[which], width)
                    flat[which], ends = read.flat, None
                    if width < size:
                        ends = self._reads(x, source[which] + (used[which] - np.uint32(1)), width).allowed
                allowed[which] = _both(read.allowed, ends)
        return flat, allowed

    def _reads(self, x: Requester, source: np.ndarray, size: int) -> Access:
        return self.memory.reach(x, READS, "global", source, size, WEAK, None, True)

    def commit(self, index: np.ndarray | slice) -> None:
        self.closed[index] += 1
        self._bounds = None

    def wait(self, x: Requester, lanes: np.ndarray, pending: int | None) -> None:
        """Complete the copies of lanes except for their newest `pending` groups; with None, all copies."""
        if not self.queue:
            return
        limit = np.full(len(self.closed), np.iinfo(np.int64).min)
        limit[lanes] = np.iinfo(np.int64).max if pending is None else self.closed[lanes] - pending
        low, high = int(limit.min()), int(limit.max())
        self._complete(x, lambda copy: _is_due(copy, low, high, limit))

    def _complete(self, x: Requester, due: Callable[[Copy], np.ndarray | bool]) -> None:
        landed, left = [], []
        for copy in self.queue:
            which = due(copy)
            if np.all(which):
                landed.append(copy)
            elif isinstance(which, bool) or not which.any():
                left.append(copy)
            else:
                landed.append(copy.part(which))
                left.append(copy.part(~which))
        self._land(x, landed, left)

    def _land(self, x: Requester, landed: list[Copy], left: list[Copy]) -> None:
        self.queue = left
        for copy in landed:
            spans = copy.source, copy.destination
            self.memory.order(x, Landing(copy.serial, copy.lanes, *spans, copy.bytes, copy.used, copy.origin))
        for copies in _alike(landed):
            self._carry_out(copies)
        self.memory.spaces["shared"].in_flight = len(left)
        if landed:
            self.memory.version += 1

    def _carry_out(self, copies: list[Copy]) -> None:
        """Copy the bytes of copies with the same size."""
        shared, size = self.memory.spaces["shared"], copies[0].bytes
        if copies[0].source is None:
            for copy in copies:
                shared.land(copy.destination, size, None)
            return
        items = self.memory.spaces["global"].read(_joined([copy.source for copy in copies]), size)
        if copies[0].used is not None:
            used = _joined([copy.used for copy in copies])
            items[used == 0] = 0
            partly = np.flatnonzero((used > 0) & (used < size))
            octets = items[partly, np.newaxis].view(np.uint8)
            octets[np.arange(size) >= used[partly, np.newaxis]] = 0
            items[partly] = octets.view(items.dtype)[:, 0]
        shared.land(_joined([copy.destination for copy in copies]), size, items)

    def notify(self, lanes: np.ndarray, action: Callable[[np.ndarray], None]) -> None:
        """Register an action for when the copies that lanes have issued so far are complete."""
        self.notices.append(Notice(lanes, self.issued, action))

    def flush(self, x: Requester) -> bool:
        """Complete the copies that notices wait for, when no thread can run. Return True if there were any."""
        if not self.notices:
            return False
        notices, self.notices = self.notices, []
        for notice in notices:
            self._complete(x, notice.waits_for)
            notice.action(notice.lanes)
        return True

    def move(self, lanes: np.ndarray, slots: np.ndarray, count: int, stride: int) -> None:
        """Renumber lanes and slots; the copies of lanes that have ended are dropped."""
        closed, remain = np.zeros(count, np.int64), lanes >= 0
        closed[lanes[remain]] = self.closed[remain]
        self.closed, self._bounds = closed, None
        for copy in self.queue:
            copy.destination = slots[copy.destination // stride] * stride + copy.destination % stride
            copy.lanes = lanes[copy.lanes]
        self.queue = [copy.part(copy.lanes >= 0) for copy in self.queue]
        for notice in self.notices:
            notice.lanes = lanes[notice.lanes]

    def locations_at(self, position: int, size: int) -> list[Location]:
        """Return the lines of the copies in flight to some bytes of shared memory."""

        def overlaps(copy: Copy) -> bool:
            first = copy.destination
            return bool(((first < position + size) & (position < first + copy.bytes)).any())

        lines = [copy.origin.location for copy in self.queue if overlaps(copy)]
        return list(dict.fromkeys(line for line in lines if line is not None))

    def locations(self) -> list[Location]:
        """Return the locations of the instructions of the copies in flight."""
        return list(dict.fromkeys(copy.origin.location for copy in self.queue if copy.origin.location is not None))


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | bool:
    """Return the accesses that both allow; None stands for all."""
    if one is None:
        return True if other is None else other
    return one if other is None else one & other


def _is_due(copy: Copy, low: int, high: int, limit: np.ndarray) -> np.ndarray | bool:
    """True for each group that precedes its limit, between `low` and `high`; compared once if the extremes decide."""
    if copy.newest < low:
        return True
    return False if copy.oldest >= high else copy.group < limit[copy.lanes]


def _alike(copies: list[Copy]) -> list[list[Copy]]:
    """Group the copies that can be carried out together."""
    kinds: dict[tuple[int, bool, bool], list[Copy]] = {}
    for copy in copies:
        kinds.setdefault((copy.bytes, copy.used is None, copy.source is None), []).append(copy)
    return list(kinds.values())


def _joined(arrays: list[np.ndarray | None]) -> np.ndarray:
    return np.concatenate([array for array in arrays if array is not None])
