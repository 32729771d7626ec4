"""Knowledge that blocks of a cluster exchange at the cluster barrier, and the lifetime of their shared memory.

Shared memory of another block exists from the start to the exit of that block. An access by another block must be
ordered after the start, and the exit after the access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...memory.access import ClusterArrival
from ...run.residents import WARP, Residents
from .clocks import Clocks, Message, joined
from .shadow import Cells, Shadow, SharedShadow
from .stamps import LANDED, STAMP

STARTED = STAMP.type(1)  # less than the stamp of any access: all that is known of a warp is that it runs


class ClusterClocks:
    """For each resident cluster, the knowledge that arrived in the current phase (`coming`) and in the last one
    (`complete`), (clusters, warps of a cluster); `letters` hold knowledge of lanes, of proxies and of other clusters.
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._fill(clocks.residents)

    def _fill(self, residents: Residents) -> None:
        self.coming, self.complete = np.zeros((2, len(residents.peers), self.clocks.width), STAMP)
        self.letters: dict[int, Message] = {}
        self.complete_letters: dict[int, Message] = {}

    def move(self, old: Residents, slots: np.ndarray) -> None:
        """Renumber the slots of `old`; -1 stands for slots that are gone."""
        coming, complete, letters, complete_letters = self.coming, self.complete, self.letters, self.complete_letters
        kept = np.flatnonzero(slots >= 0)
        source, destination = old.cluster_of[kept], self.clocks.residents.cluster_of[slots[kept]]
        self._fill(self.clocks.residents)
        self.coming[destination], self.complete[destination] = coming[source], complete[source]
        number = dict(zip(source.tolist(), destination.tolist(), strict=True))
        self.letters = {number[n]: message for n, message in letters.items() if n in number}
        self.complete_letters = {number[n]: message for n, message in complete_letters.items() if n in number}

    def _cluster(self, row: int) -> int:
        return int(self._clusters(np.array([row]))[0])

    def _clusters(self, rows: np.ndarray) -> np.ndarray:
        r = self.clocks.residents
        return r.cluster_of[rows % r.slots]

    def arrive(self, event: ClusterArrival, now: int, alive: np.ndarray, fences: np.ndarray) -> None:
        """Record arrivals of lanes: with all that they know or, if relaxed, with what they knew at their last fence,
        a snapshot in `fences` (lanes,).
        """
        clocks, lanes = self.clocks, event.lanes
        rows, counts = np.unique(lanes // WARP, return_counts=True)
        np.maximum.at(self.coming, (self._clusters(rows), clocks.column[rows]), STARTED)
        if not event.releases:
            self._arrive_relaxed(lanes, fences)
            return
        whole = counts == alive.reshape(-1, WARP)[rows].sum(1)
        self._arrive_whole(rows[whole], now)
        for lane in lanes[np.isin(lanes // WARP, rows[~whole])].tolist():
            self._post(self._cluster(lane // WARP), clocks.tell(lane, now))

    def _arrive_whole(self, rows: np.ndarray, now: int) -> None:
        """Record releasing arrivals of all lanes of warps."""
        clocks = self.clocks
        known = clocks.seen[rows]
        known[np.arange(len(rows)), clocks.column[rows]] = now
        np.maximum.at(self.coming, self._clusters(rows), known)
        for row in rows.tolist() if clocks.proxies is not None else ():
            assert clocks.proxies is not None
            fences = {int(clocks.block[row]): clocks.proxies[row].copy()}
            self._post(self._cluster(row), Message(clocks.blank().warps, proxies=fences))
        for row in rows.tolist() if clocks.far else ():
            if (message := clocks.far.get(int(clocks.warp[row]))) is not None:
                self._post(self._cluster(row), message)
        row_of = dict(zip(clocks.warp[rows].tolist(), rows.tolist(), strict=True)) if clocks.near else {}
        for thread, message in clocks.near.items():  # what single lanes of these warps have learned
            if (row := row_of.get(thread // WARP)) is not None:
                self._post(self._cluster(row), message)

    def _arrive_relaxed(self, lanes: np.ndarray, fences: np.ndarray) -> None:
        """Record relaxed arrivals: what each lane fenced is released, though other lanes of its warp did not fence."""
        fenced: dict[tuple[int, int], list[int]] = {}
        for lane, then in zip(lanes.tolist(), fences[lanes].tolist(), strict=True):
            if then is not None:
                fenced.setdefault((lane // WARP, id(then)), []).append(lane)
        for (row, _), together in fenced.items():
            self._post(self._cluster(row), self.clocks.recall(together, fences[together[0]]))

    def _post(self, cluster: int, message: Message) -> None:
        self.letters[cluster] = message.joined(self.letters.get(cluster))

    def end_phase(self, done: np.ndarray) -> None:
        """Complete the phase of the cluster barriers in a mask (clusters,)."""
        self.complete[done], self.coming[done] = self.coming[done], 0
        for cluster in np.flatnonzero(done).tolist():
            self.complete_letters.pop(cluster, None)
            if cluster in self.letters:
                self.complete_letters[cluster] = self.letters.pop(cluster)

    def wait(self, lanes: np.ndarray, alive: np.ndarray) -> None:
        """Give waiting lanes the knowledge of all lanes that arrived."""
        clocks = self.clocks
        rows, counts = np.unique(lanes // WARP, return_counts=True)
        whole = counts == alive.reshape(-1, WARP)[rows].sum(1)
        clocks.learn(rows[whole], self.complete[self._clusters(rows[whole])])
        for row, together in zip(rows.tolist(), whole.tolist(), strict=True):
            cluster = int(self._clusters(np.array([row]))[0])
            letter = self.complete_letters.get(cluster)
            if together and letter is not None:
                clocks.teach(np.array([row]), [letter])
            elif not together:
                first = int(clocks.cluster[row]) * clocks.width
                message = clocks.blank()
                message.warps[first : first + clocks.width] = self.complete[cluster]
                clocks.hear(lanes[lanes // WARP == row], message.joined(letter), alive)


def unstarted(clocks: Clocks, lanes: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Return which lanes know nothing of the blocks in these slots, not even that they have started."""
    r = clocks.residents
    rows, first = lanes // WARP, r.rank[slots] * r.warps
    columns = first[:, np.newaxis] + np.arange(r.warps)
    strange: np.ndarray = (clocks.seen[rows[:, np.newaxis], columns] == 0).all(1) & (r.slot[lanes] != slots)
    if strange.any() and (clocks.near or clocks.far):
        for n in np.flatnonzero(strange):
            low = int(r.ordinals[slots[n]]) * r.warps
            known = clocks.tell(int(lanes[n]), 0)
            threads = any(low <= thread // WARP < low + r.warps for thread in known.threads)
            strange[n] = not threads and not known.warps[low : low + r.warps].any()
    return strange


def strangers(
    clocks: Clocks, shadow: SharedShadow, slot: int, wrote: Callable[[int], bool]
) -> Iterator[tuple[int, int, int]]:
    """Yield (offset, stamp, warp) of accesses by other blocks to a slot's shared memory that no thread there knows of.

    `wrote` says of a stamp whether that access was a plain write.
    """
    remote = shadow.remote
    yield from _unknown(clocks, shadow.writes, shadow, slot, wrote, shadow.stride)
    if remote is not None:
        for readers in remote.readers:
            yield from _unknown(clocks, readers, remote, slot, wrote, shadow.stride)


def _unknown(
    clocks: Clocks, cells: Cells, shadow: Shadow, slot: int, wrote: Callable[[int], bool], stride: int
) -> Iterator[tuple[int, int, int]]:
    r, grain = clocks.residents, shadow.grain
    each = stride // grain
    part = slice(slot * each, (slot + 1) * each)
    stamps, warps = cells.stamp.data[part], cells.warp.data[part]
    rows = np.arange(r.warps) * r.slots + slot
    known = clocks.seen[rows].max(0)
    foreign = np.flatnonzero((stamps != 0) & (warps < LANDED) & (warps // r.warps != r.ordinals[slot]))
    late = foreign[stamps[foreign] > known[warps[foreign] % clocks.width]]
    if not late.size:
        return
    first = int(r.ordinals[slot]) * r.warps
    messages = [m for warp, m in clocks.far.items() if first <= warp < first + r.warps]
    messages += [m for thread, m in clocks.near.items() if first <= thread // WARP < first + r.warps]
    if messages:
        message, (distinct, index) = joined(messages), np.unique(stamps[late], return_inverse=True)
        done = np.array([not wrote(stamp) for stamp in distinct.tolist()])[index]
        unknown = ~message.knows(warps[late], stamps[late], False, clocks.crowds)
        late = late[unknown & ~(done & message.knows(warps[late], stamps[late], True, clocks.crowds))]
    yield from ((int(n) * grain, int(stamps[n]), int(warps[n])) for n in late[:1])
