"""The barrier of each cluster: all threads of its blocks arrive, and wait for it later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..memory.access import ClusterCompletion, ClusterWait
from .decode import Decoded
from .executor import Executor
from .residents import Residents
from .scheduler import Group


@dataclass(slots=True)
class ClusterWaiting:
    """Lanes that wait for the barrier of their cluster, the point where they resume, and the instruction."""

    group: Group
    step: Decoded


class ClusterBarriers:
    """`arrived` are the lanes that have arrived in this phase, `passing` those that have not yet waited for the
    previous one.
    """

    def __init__(self, residents: Residents) -> None:
        self.residents = residents
        self.arrived, self.passing = np.zeros((2, residents.lanes), bool)
        self.waiting: list[ClusterWaiting] = []

    def arrive(self, x: Executor, lanes: np.ndarray) -> None:
        """Count the arrivals of lanes; report lanes that arrive again without a wait in between."""
        again = self.arrived[lanes] | self.passing[lanes]
        if again.any():
            message = f"{x.name}: the thread already arrived at the cluster barrier and has not waited since"
            help = "execute barrier.cluster.wait between two arrivals of a thread"
            x.finding_elsewhere("barrier", message, x.step, lanes[again], (), help)
        self.arrived[lanes] = True
        self.complete(x)

    def wait(self, x: Executor, lanes: np.ndarray) -> np.ndarray:
        """Return the lanes that must wait; report lanes that wait without having arrived."""
        lost = ~self.arrived[lanes] & ~self.passing[lanes]
        if lost.any():
            message = f"{x.name}: the thread waits at the cluster barrier but has not arrived"
            x.finding_elsewhere("barrier", message, x.step, lanes[lost], (), "execute barrier.cluster.arrive before it")
        stays = self.arrived[lanes]
        self._pass(x, lanes[~stays])
        return stays

    def _pass(self, x: Executor, lanes: np.ndarray) -> None:
        self.passing[lanes] = False
        if lanes.size:
            x.order(ClusterWait(lanes))

    def complete(self, x: Executor) -> None:
        """Resume the lanes whose clusters have all their running threads at the barrier."""
        if not self.arrived.any():
            return
        r = self.residents
        cluster = r.cluster_of[r.slot]
        done = np.zeros(len(r.peers), bool)
        done[cluster[self.arrived & x.alive]] = True
        done[cluster[x.alive & ~self.arrived]] = False
        if not done.any():
            return
        x.order(ClusterCompletion(done))
        came = self.arrived & done[cluster]
        self.arrived &= ~came
        self.passing |= came
        for group in list(self._released(done[cluster])):
            self._pass(x, group.lanes)
            x.scheduler.add(group)

    def _released(self, done: np.ndarray) -> Iterator[Group]:
        """Return the waiting lanes whose clusters are complete; `done` is by lane."""
        waiting, self.waiting = self.waiting, []
        for entry in waiting:
            group = entry.group
            free = done[group.lanes]
            if free.any():
                yield Group(group.frame, group.pc, group.lanes[free], group.turns)
            if not free.all():
                group.lanes = group.lanes[~free]
                self.waiting.append(entry)

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Move lanes to their places among other residents."""
        moved = ClusterBarriers(residents)
        moved.arrived[destination], moved.passing[destination] = self.arrived[source], self.passing[source]
        self.residents, self.arrived, self.passing = residents, moved.arrived, moved.passing

    def describe(self, entry: ClusterWaiting, x: Executor) -> str:
        """Describe what the barrier of the first lane's cluster lacks."""
        r = self.residents
        cluster = r.cluster_of[r.slot]
        members = x.alive & (cluster == cluster[entry.group.lanes[0]])
        lacking = np.flatnonzero(members & ~self.arrived)
        blocks = np.unique(r.slot[lacking])
        names = ", ".join(r.name(int(lacking[r.slot[lacking] == slot][0])).block_text for slot in blocks[:4])
        more = f" and {len(blocks) - 4} more" * (len(blocks) > 4)
        come = f"{int((members & self.arrived).sum())} of {int(members.sum())} threads have arrived"
        return f"at the cluster barrier, where {come}; the others are in block {names}{more}"
