"""Vector clocks: the accesses that each warp knows of, within its cluster and, by messages, beyond it.

A block without a cluster is a cluster of its own. Warps of the grid are numbered by the ordinals of their blocks, so
that those of a cluster come one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from math import prod
from typing import TypeVar

import numpy as np

from ...run.residents import WARP, Residents
from .crowds import Crowds
from .stamps import ASYNC_LANE, LANDED, LANDINGS, LANE_MASK, LATEST, STAMP, TICK, are_async, are_several

Key = TypeVar("Key")
Known = TypeVar("Known")


@dataclass(eq=False, slots=True)
class Message:
    """The knowledge that a release passes on: stamps by warp of the grid, and of single threads beyond that.

    `reads` is knowledge of reads alone: an arrival at an mbarrier of another block, unless it has cluster scope, comes
    after the reads of its thread, but its writes may be later. `proxies` is knowledge of the async proxy by block, rows
    of `Clocks.proxies`; `fenced` holds, by space, knowledge that a proxy fence follows. `serial` tells messages apart.
    """

    warps: np.ndarray
    threads: dict[int, int] = field(default_factory=dict)
    reads: Message | None = None
    proxies: dict[int, np.ndarray] = field(default_factory=dict)
    fenced: dict[str, Message] = field(default_factory=dict)
    serial: int = field(default_factory=count(1).__next__)

    def joined(self, other: Message | None) -> Message:
        if other is None or other is self:
            return self
        less, more = self.threads, other.threads
        if len(less) > len(more):
            less, more = more, less
        later = {} if less is more else {t: stamp for t, stamp in less.items() if stamp > more.get(t, -1)}
        reads = other.reads if self.reads is None else self.reads.joined(other.reads)
        proxies = _united(self.proxies, other.proxies, np.maximum)
        fenced = _united(self.fenced, other.fenced, Message.joined)
        return Message(np.maximum(self.warps, other.warps), more | later if later else more, reads, proxies, fenced)

    def fencing(self, spaces: Iterable[str]) -> Message:
        """Return the message with all that it makes known fenced in some spaces."""
        plain = Message(self.warps, self.threads, self.reads)
        fenced = self.fenced | {space: plain.joined(self.fenced.get(space)) for space in spaces}
        return Message(self.warps, self.threads, self.reads, self.proxies, fenced)

    def of_reads(self) -> Message:
        """Return only what it makes known of reads, and of copies that have landed."""
        reads = Message(self.warps, self.threads).joined(self.reads)
        return Message(np.zeros_like(self.warps), {}, reads, self.proxies, self.fenced)

    def knows(
        self, warps: np.ndarray, stamps: np.ndarray, reads: bool = False, crowds: Crowds | None = None
    ) -> np.ndarray:
        """Return which accesses, by warp of the grid and stamp, the message covers; with `reads` they are reads.

        `crowds` says for which lanes their stamps stand.
        """
        landed = warps >= LANDED
        if landed.any():
            covered = np.empty(len(warps), bool)
            covered[landed] = self._knows_landings(warps[landed], stamps[landed])
            covered[~landed] = self.knows(warps[~landed], stamps[~landed], reads, crowds)
            return covered
        covered = self.warps[warps] >= stamps
        covered &= ~are_async(stamps)
        if self.threads:
            crowded = ~covered & are_several(stamps)
            single = np.flatnonzero(~covered & ~crowded)
            keys = warps[single].astype(np.int64) * TICK + stamps[single] % TICK
            each, index = np.unique(keys, return_inverse=True)  # a copy reads many bytes for one thread
            known = [self.threads.get(thread_number(*divmod(key, TICK)), 0) for key in each.tolist()]
            covered[single] = np.array(known, STAMP)[index] >= stamps[single]
            if crowded.any():
                covered[crowded] = self._knows_crowds(warps[crowded], stamps[crowded], crowds)
        if reads and self.reads is not None:
            covered |= self.reads.knows(warps, stamps, crowds=crowds)
        return covered

    def _knows_crowds(self, warps: np.ndarray, stamps: np.ndarray, crowds: Crowds | None) -> np.ndarray:
        known = self.of_lanes(warps)
        return known.min(1) >= stamps if crowds is None else crowds.are_known(warps, stamps, known)

    def of_lanes(self, warps: np.ndarray, reads: bool = False) -> np.ndarray:
        """Return the stamps up to which it covers accesses, or reads, of each lane of warps, (warps, WARP)."""
        each, index = np.unique(warps, return_inverse=True)
        threads = each[:, np.newaxis].astype(np.int64) * WARP + np.arange(WARP)
        known = np.array([self.threads.get(thread, 0) for thread in threads.reshape(-1).tolist()], STAMP)
        known = np.maximum(known.reshape(-1, WARP), self.warps[each][:, np.newaxis])[index]
        return np.maximum(known, self.reads.of_lanes(warps)) if reads and self.reads is not None else known

    def _knows_landings(self, warps: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        block, number = np.divmod(warps - LANDED, STAMP.type(LANDINGS))
        covered = np.zeros(len(warps), bool)
        for each, row in self.proxies.items():
            covered |= (block == each) & (row[number] >= stamps)
        return covered


def _united(one: dict[Key, Known], other: dict[Key, Known], join: Callable[[Known, Known], Known]) -> dict[Key, Known]:
    """Return the entries of two dicts, joined where both have one. Neither changes later."""
    if not one or not other or one is other:
        return one or other
    if len(one) == len(other) == 1 and (key := next(iter(one))) in other:
        return {key: join(one[key], other[key])}
    return one | other | {key: join(one[key], other[key]) for key in one.keys() & other.keys()}


@dataclass(frozen=True, eq=False, slots=True)
class PastKnowledge:
    """The knowledge of some warps at the time `now` of a fence or a release, with the fields of `Clocks`.

    A later strong write makes known what its thread knew then, not what it learned since. The arrays have a row for
    each of `warps`, numbers in the grid, ascending.
    """

    now: int
    warps: np.ndarray
    seen: np.ndarray
    pairs: np.ndarray | None
    proxies: np.ndarray | None
    far: dict[int, Message]
    near: dict[int, Message]


def thread_number(warp: int, lane: int) -> int:
    """Return the number of a thread in messages; the async proxy of a warp has its own number."""
    return -1 - warp if lane == ASYNC_LANE else warp * WARP + lane


SPACES = "shared", "global"
FENCED_LANDINGS = slice(LANDINGS, 2 * LANDINGS)


class Clocks:
    """The knowledge of resident warps; a row for each, in the order of their lanes.

    `seen` (rows, warps of a cluster): all accesses of a warp of the same cluster up to that stamp came before; for the
    warp itself, those of all its lanes. `pairs` has the same for lanes of a warp that met without the others.
    `barriers` (rows,) are the stamps of the last barrier, of the block or the cluster, at which each warp waited.
    `far` is what warps, and `near` what single threads, learned by acquiring; both by number in the grid.
    `proxies`, once the async proxy was used: the stamps up to which a warp knows the copies that completed at each
    mbarrier of its block (`LANDINGS` columns), and that a proxy fence follows accesses: stores that completed at each
    mbarrier (`FENCED_LANDINGS`) and, in shared and in global memory, those of each thread of the block (columns
    `fenced_threads`), and of each warp of the cluster (`fenced_warps`).
    """

    def __init__(self, residents: Residents, crowds: Crowds) -> None:
        self.crowds = crowds
        self.far: dict[int, Message] = {}
        self.near: dict[int, Message] = {}
        self._fill(residents)

    def _fill(self, residents: Residents) -> None:
        r = self.residents = residents
        self.rows = r.lanes // WARP
        self.row = np.arange(self.rows)
        self.warp_in_block = self.row // r.slots
        self.block = r.ordinals[self.row % r.slots].astype(np.int64)
        self.cluster = self.block // r.cluster_blocks
        self.warp = (self.block * r.warps + self.warp_in_block).astype(STAMP)
        self.width = r.cluster_blocks * r.warps
        self.column = self.block % r.cluster_blocks * r.warps + self.warp_in_block
        self.seen = np.zeros((self.rows, self.width), STAMP)
        self.barriers = np.zeros(self.rows, STAMP)
        self.pairs: np.ndarray | None = None
        self.proxies: np.ndarray | None = None
        self._floors: np.ndarray | None = None
        self._met: np.ndarray | None = None
        self._floor = 0

    @property
    def grid_before(self) -> int:
        """The number that stands for the previous grid, after the numbers of the warps of this one."""
        return self.residents.warps * prod(self.residents.grid)

    def proxy_table(self) -> np.ndarray:
        """Return `proxies`, after creating the table if there is none."""
        if self.proxies is None:
            self.proxies = np.zeros((self.rows, self.fenced_warps(SPACES[-1]).stop), STAMP)
        return self.proxies

    def fenced_threads(self, space: str) -> slice:
        """Return the columns of `proxies` for the threads of the block, by the space that fences order."""
        threads = self.residents.warps * WARP
        first = FENCED_LANDINGS.stop + SPACES.index(space) * (threads + self.width)
        return slice(first, first + threads)

    def fenced_warps(self, space: str) -> slice:
        """Return the columns of `proxies` for the warps of the cluster."""
        first = self.fenced_threads(space).stop
        return slice(first, first + self.width)

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Move rows to their places among other residents."""
        seen, barriers, pairs, proxies = self.seen, self.barriers, self.pairs, self.proxies
        self._fill(residents)
        self.seen[destination], self.barriers[destination] = seen[source], barriers[source]
        if pairs is not None:
            self._pairs()[destination] = pairs[source]
        if proxies is not None:
            self.proxy_table()[destination] = proxies[source]

    @property
    def floors(self) -> np.ndarray:
        """The stamps up to which each warp knows all accesses of its cluster."""
        if self._floors is None:
            self._floors = self.seen.min(1)
            self._floor = int(self._floors.min())
        return self._floors

    @property
    def floor(self) -> int:
        """Every warp knows the accesses of its cluster up to this stamp."""
        return self._floor if self._floors is not None else int(self.floors.min())

    def met(self) -> np.ndarray:
        """The stamp up to which each warp knows the accesses of all its lanes, (rows,)."""
        if self._met is None:
            self._met = self.seen[self.row, self.column]
        return self._met

    # Meetings

    def converge(self, rows: np.ndarray | None, active: np.ndarray, alive: np.ndarray, now: int) -> None:
        """Order the accesses of lanes of warps that meet at a barrier."""
        index = self.row if rows is None else rows
        whole = active.all() or (active | ~alive.reshape(-1, WARP)[index]).all(1)
        if np.all(whole):
            self.meet_lanes_of(index, now)
            return
        self.meet_lanes_of(index[whole], now)
        for row, lanes in zip(index[~whole], active[~whole], strict=True):
            self._meet_partly(int(row), np.flatnonzero(lanes), now)

    def meet_lanes_of(self, rows: np.ndarray, now: int) -> None:
        """Order the accesses of all lanes of warps."""
        self.seen[rows, self.column[rows]] = now
        self._floors = self._met = None
        if self.near:
            row_of = dict(zip(self.warp[rows].tolist(), rows.tolist(), strict=True))
            heard: dict[int, list[Message]] = {}
            for thread in [thread for thread in self.near if thread // WARP in row_of]:
                heard.setdefault(row_of[thread // WARP], []).append(self.near.pop(thread))
            self.teach(np.array(list(heard), np.int64), [joined(messages) for messages in heard.values()])

    def _pairs(self) -> np.ndarray:
        if self.pairs is None:
            self.pairs = np.zeros((self.rows, WARP, WARP), STAMP)
        return self.pairs

    def _meet_partly(self, row: int, lanes: np.ndarray, now: int) -> None:
        known = self._pairs()[row]
        total = known[lanes].max(0)
        total[lanes] = now
        known[lanes] = np.maximum(known[lanes], total)
        first = int(self.warp[row]) * WARP
        shared = [self.near[first + int(lane)] for lane in lanes if first + int(lane) in self.near]
        if shared:
            message = joined(shared)
            self.near |= {first + int(lane): message for lane in lanes}

    def meet_everyone(self, now: int) -> None:
        """Order the accesses of all warps of each block, which meet at a barrier."""
        self.meet_lanes_of(self.row, now)
        self.barriers[:] = now
        if self.residents.cluster_blocks == 1:
            self.seen[:] = now
        else:
            self._meet_in_clusters()
        self._floors = self._met = None
        if self.proxies is not None:
            of_blocks = self.proxies.reshape(self.residents.warps, self.residents.slots, -1)
            of_blocks[:] = of_blocks.max(0)
        if self.far:
            for block in np.unique(self.block):
                self._share([int(row) for row in np.flatnonzero(self.block == block)])

    def meet_warpgroups(self, rows: np.ndarray, now: int) -> None:
        """Order the accesses of the warps of warpgroups, (warpgroups, warps of each)."""
        of_groups = self.seen[rows].max(1)
        for warp in rows.T:
            of_groups[np.arange(len(rows)), self.column[warp]] = now
        self.learn(rows.reshape(-1), np.repeat(of_groups, rows.shape[1], axis=0))

    def _meet_in_clusters(self) -> None:
        """Join the knowledge of all warps of each block, also of the other blocks of the cluster."""
        r = self.residents
        by_slot = self.seen.reshape(r.warps, r.slots, self.width)
        by_slot[:] = by_slot.max(0)

    def _share(self, rows: list[int]) -> None:
        messages = [self.far[w] for row in rows if (w := int(self.warp[row])) in self.far]
        if messages:
            total = joined(messages)
            self.far |= {int(self.warp[row]): total for row in rows}

    def learn(self, rows: np.ndarray, seen: np.ndarray) -> None:
        """Let warps learn what was known elsewhere in their clusters, (rows, warps of a cluster)."""
        self.seen[rows] = np.maximum(self.seen[rows], seen)
        self._floors = self._met = None

    def learn_proxies(self, rows: np.ndarray, known: np.ndarray) -> None:
        """Let warps learn what was known of the async proxy elsewhere in their blocks."""
        table = self.proxy_table()
        table[rows] = np.maximum(table[rows], known)

    # Messages

    def teach(self, rows: np.ndarray, messages: Sequence[Message]) -> None:
        """Let all lanes of each warp learn a message, (rows,)."""
        warps = self.warp[rows].tolist()
        fresh = [self.far.get(warp) is not message for warp, message in zip(warps, messages, strict=True)]
        if not all(fresh):
            rows, warps = rows[fresh], list(compress(warps, fresh))
            messages = list(compress(messages, fresh))
        if not warps:
            return
        starts, blocks = (self.cluster[rows] * self.width).tolist(), self.block[rows].tolist()
        local = np.stack(
            [message.warps[start : start + self.width] for start, message in zip(starts, messages, strict=True)]
        )
        local[np.arange(len(rows)), self.column[rows]] = 0  # of their own warp the lanes know only what they met for
        self.learn(rows, local)
        proxies = [message.proxies.get(block) for block, message in zip(blocks, messages, strict=True)]
        told = [n for n, known in enumerate(proxies) if known is not None]
        if told:
            self.learn_proxies(rows[told], np.stack([known for known in proxies if known is not None]))
        _learn(self.far, warps, messages)

    def blank(self) -> Message:
        """Return a message without knowledge."""
        return Message(np.zeros(self.grid_before + 1, STAMP))

    def tell(self, lane: int, now: int) -> Message:
        """Return what a lane knows."""
        return self.tell_together([lane], now)

    def tell_together(self, lanes: Sequence[int], now: int) -> Message:
        """Return what some lanes of a warp know, joined."""
        return self._told(lanes, self, lanes[0] // WARP, now)

    def recall(self, lanes: Sequence[int], then: PastKnowledge) -> Message:
        """Return what some lanes of a warp knew at a snapshot, joined."""
        return self._told(lanes, then, int(np.searchsorted(then.warps, self.warp[lanes[0] // WARP])), then.now)

    def snapshot(self, lanes: np.ndarray, now: int) -> PastKnowledge:
        """Return what lanes know now."""
        rows = np.unique(lanes // WARP)
        rows = rows[np.argsort(self.warp[rows])]
        warps = self.warp[rows]
        pairs, proxies = (None if table is None else table[rows] for table in (self.pairs, self.proxies))
        far = {warp: self.far[warp] for warp in warps.tolist() if warp in self.far} if self.far else {}
        near = {t: self.near[t] for t in self.threads(lanes) if t in self.near} if self.near else {}
        return PastKnowledge(now, warps, self.seen[rows], pairs, proxies, far, near)

    def _told(self, lanes: Sequence[int], known: Clocks | PastKnowledge, at: int, now: int) -> Message:
        """Return what lanes of a warp know, or knew at a snapshot, by the row `at` of its tables."""
        row, numbers = lanes[0] // WARP, [lane % WARP for lane in lanes]
        warp = int(self.warp[row])
        threads = [warp * WARP + number for number in numbers]
        message = self.blank()
        first = int(self.cluster[row]) * self.width
        message.warps[first : first + self.width] = known.seen[at]
        if known.proxies is not None:
            message.proxies[int(self.block[row])] = known.proxies[at].copy()
        if known.pairs is not None:
            of_lanes = known.pairs[at, numbers].max(0)
            better = np.flatnonzero(of_lanes > known.seen[at, self.column[row]])
            message.threads |= {warp * WARP + int(lane): int(of_lanes[lane]) for lane in better}
        message.threads |= dict.fromkeys(threads, now)  # more than they knew when they met others
        known_to_some = {id(more): more for more in map(known.near.get, threads)}
        for more in (known.far.get(warp), *known_to_some.values()):
            message = message.joined(more)
        return message

    def hear(self, lanes: np.ndarray, message: Message, alive: np.ndarray) -> None:
        """Let lanes learn a message; a warp learns it if all its lanes do that have not ended."""
        self.hear_each(lanes, [message], np.zeros(len(lanes), np.int64), alive)

    def hear_each(self, lanes: np.ndarray, messages: Sequence[Message], number: np.ndarray, alive: np.ndarray) -> None:
        """Teach each lane the message that `number` (lanes,) selects for it."""
        pairs, inverse, counts = np.unique(
            lanes // WARP * len(messages) + number, return_inverse=True, return_counts=True
        )
        rows, numbers = np.divmod(pairs, len(messages))
        whole = counts == alive.reshape(-1, WARP)[rows].sum(1)
        self.teach(rows[whole], [messages[n] for n in numbers[whole].tolist()])
        alone = ~whole[inverse]
        if not alone.any():
            return
        _learn(self.near, self.threads(lanes[alone]), [messages[n] for n in number[alone].tolist()])
        rows, numbers = rows[~whole], numbers[~whole]
        for row, block, n in zip(rows.tolist(), self.block[rows].tolist(), numbers.tolist(), strict=True):
            if (known := messages[n].proxies.get(block)) is not None:  # of the fences, the warp at once
                fences = self.proxy_table()[row, LANDINGS:]
                np.maximum(fences, known[LANDINGS:], out=fences)

    def clusters_of(self, warps: np.ndarray) -> np.ndarray:
        """Return the clusters of warps of the grid, or of the mbarriers where copies complete."""
        clusters: np.ndarray = warps // self.width
        if (landed := warps >= LANDED).any():
            clusters[landed] = (warps[landed] - LANDED) // LANDINGS // self.residents.cluster_blocks
        return clusters

    def threads(self, lanes: np.ndarray) -> list[int]:
        """Return the numbers of lanes' threads in the grid."""
        threads: list[int] = (self.warp[lanes // WARP].astype(np.int64) * WARP + lanes % WARP).tolist()
        return threads

    # Questions

    def limits(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Return the stamps up to which rows know the accesses of warps of the grid, apart from messages."""
        width = STAMP.type(self.width)
        cluster = warps // width
        number = warps - cluster * width  # several times as fast as divmod
        same = cluster == self.cluster[rows]
        if same.all():
            limits = self.seen[rows, number]
        else:
            limits = np.zeros(warps.shape, STAMP)
            limits[same] = self.seen[rows[same], number[same]]
        if self.proxies is not None and (landed := warps >= LANDED).any():
            limits[landed] = self._limits_of_landings(self.proxies, rows[landed], warps[landed])
        return limits

    def _limits_of_landings(self, proxies: np.ndarray, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        block, number = np.divmod(warps - LANDED, STAMP.type(LANDINGS))
        return np.where(block == self.block[rows], proxies[rows, number], STAMP.type(0))

    def unordered(self, lanes: np.ndarray, warps: np.ndarray, stamps: np.ndarray, reads: bool) -> np.ndarray:
        """Return which accesses, unknown to the rows of lanes, are also unknown to the lanes themselves.

        With `reads` these accesses are reads.
        """
        late = np.ones(len(lanes), bool)
        messages = list(self.messages(lanes))
        if self.pairs is None and not messages:
            return late
        if self.pairs is not None:
            lane = stamps & LANE_MASK
            same = np.flatnonzero((self.warp[lanes // WARP] == warps) & (lane < WARP))
            known = self.pairs[lanes[same] // WARP, lanes[same] % WARP]
            late[same] = np.take_along_axis(known, lane[same, np.newaxis], 1)[:, 0] < stamps[same]
        for listeners, message in messages:
            which = late & listeners
            late[which] = ~message.knows(warps[which], stamps[which], reads, self.crowds)
        crowded = np.flatnonzero(late & are_several(stamps) & (warps < LANDED))
        if crowded.size:
            heard = [(listeners[crowded], message) for listeners, message in messages]
            known = self._of_lanes(lanes[crowded], warps[crowded], heard, reads)
            late[crowded] = ~self.crowds.are_known(warps[crowded], stamps[crowded], known)
        return late

    def _of_lanes(
        self, lanes: np.ndarray, warps: np.ndarray, heard: list[tuple[np.ndarray, Message]], reads: bool
    ) -> np.ndarray:
        """Return the stamps up to which lanes know the accesses, or the reads, of each lane of warps, by all that they
        met for and heard."""
        known, rows = np.zeros((len(lanes), WARP), STAMP), lanes // WARP
        same_warp = np.flatnonzero(self.warp[rows] == warps)
        if self.pairs is not None:
            known[same_warp] = self.pairs[rows[same_warp], lanes[same_warp] % WARP]
        known[same_warp] = np.maximum(known[same_warp], self.met()[rows[same_warp], np.newaxis])
        known[same_warp, lanes[same_warp] % WARP] = LATEST
        for listeners, message in heard:
            known[listeners] = np.maximum(known[listeners], message.of_lanes(warps[listeners], reads))
        return known

    def messages(self, lanes: np.ndarray) -> Iterator[tuple[np.ndarray, Message]]:
        """Yield masks of lanes, and what these lanes have learned by acquiring."""
        if self.far:
            warps = self.warp[lanes // WARP]
            for warp in np.unique(warps):
                if int(warp) in self.far:
                    yield warps == warp, self.far[int(warp)]
        if self.near:
            threads = np.array(self.threads(lanes))
            for thread in np.unique(threads):
                if int(thread) in self.near:
                    yield threads == thread, self.near[int(thread)]


def joined(messages: list[Message]) -> Message:
    total = messages[0]
    for message in messages[1:]:
        total = total.joined(message)
    return total


def _learn(known: dict[int, Message], numbers: Sequence[int], messages: Sequence[Message]) -> None:
    """Let each of some warps or threads learn a message; most of them knew the same and hear the same."""
    joint: dict[tuple[int, int], tuple[Message | None, Message]] = {}  # with what they knew, which so stays alive
    for number, message in zip(numbers, messages, strict=True):
        before = known.get(number)
        key = id(message), id(before)
        if key not in joint:
            joint[key] = before, message.joined(before)
        known[number] = joint[key][1]
