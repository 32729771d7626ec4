"""The sixteen barriers of each block.

A barrier counts arrivals of warps, 32 threads each, and is reset when it completes. As in hardware, a warp that arrives
twice counts twice: FlashAttention-3 lets a warpgroup arrive at its own barrier and then wait there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..memory.access import BarrierCompletion
from .decode import Decoded
from .executor import Executor
from .residents import WARP, Residents
from .scheduler import Group

BARRIERS = 16
EVERYONE = -1  # a barrier without a count waits for all threads of the block that have not ended


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Warps that arrive at barriers: the slot and number of each, its barrier, and the threads expected there."""

    slot: np.ndarray
    warp: np.ndarray
    barrier: np.ndarray
    need: np.ndarray


@dataclass(slots=True)
class Waiting:
    """Lanes that wait at a barrier, the point at which they resume, and the instruction whose result they get."""

    barrier: int
    group: Group
    step: Decoded
    how: str | None


class Barriers:
    """State of the barriers: `came` counts the arrivals of each warp, (slots, barriers, warps), in the current phase;
    `expected` is the thread count, and `votes` and `voters` the reduction, (slots, barriers)."""

    def __init__(self, residents: Residents) -> None:
        self.residents = residents
        self.came = np.zeros((residents.slots, BARRIERS, residents.warps), np.int64)
        self.expected = np.zeros((residents.slots, BARRIERS), np.int64)
        self.votes = np.zeros((residents.slots, BARRIERS), np.int64)
        self.voters = np.zeros((residents.slots, BARRIERS), np.int64)
        self.waiting: list[Waiting] = []

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All state, with the slots along the first axis."""
        return self.came, self.expected, self.votes, self.voters

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.came.any()

    def suffices(self, x: Executor, come: Arrivals) -> bool:
        """Return True if these warps alone complete their barriers and no other warp has arrived there."""
        coming = np.zeros(self.expected.shape, np.int64)
        np.add.at(coming, (come.slot, come.barrier), WARP)
        alone = not self.came[come.slot, come.barrier].any()
        return alone and bool((coming[come.slot, come.barrier] == self._counts(x, come.slot, come.need)).all())

    def arrive(self, x: Executor, come: Arrivals, waits: bool) -> None:
        """Count the arrivals of warps, which wait for the barriers or only arrive, and report inconsistent ones."""
        slot, barrier = come.slot, come.barrier
        before = self.expected[slot, barrier]
        np.add.at(self.came, (slot, barrier, come.warp), 1)
        self.expected[slot, barrier] = come.need
        others = np.where(before != 0, before, self.expected[slot, barrier])
        need = self._counts(x, slot, come.need)
        self._check_counts(x, barrier, self._counts(x, slot, others), need)
        self._check_crowd(x, barrier, self.came[slot, barrier].sum(-1), need)
        if not waits:
            self._check_unattended(x, come, need)

    def _counts(self, x: Executor, slot: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Return the number of threads that each barrier waits for."""
        return np.where(need == EVERYONE, x.living_warps()[slot] * WARP, need)

    def vote(self, come: Arrivals, values: np.ndarray, active: np.ndarray) -> None:
        np.add.at(self.votes, (come.slot, come.barrier), (values & active).sum(-1))
        np.add.at(self.voters, (come.slot, come.barrier), active.sum(-1))

    def complete(self, x: Executor) -> None:
        """Reset the barriers that have all their arrivals, and resume the threads that wait there."""
        if not self.came.any():
            return
        present = self.came.sum(-1) * WARP
        need = np.where(self.expected == EVERYONE, (x.living_warps() * WARP)[:, np.newaxis], self.expected)
        done = (present > 0) & (present >= need)
        if not done.any():
            return
        released = list(self._release(x, done))
        self._tell(x, done, released)
        for counts in (self.came, self.expected, self.votes, self.voters):
            counts[done] = 0
        for group, _ in released:
            x.scheduler.add(group)

    def of(self, come: Arrivals) -> np.ndarray:
        """Return a mask (slots, barriers) of the barriers at which warps arrive."""
        which = np.zeros(self.expected.shape, bool)
        which[come.slot, come.barrier] = True
        return which

    def _tell(self, x: Executor, done: np.ndarray, released: Sequence[tuple[Group, int]]) -> None:
        """Report to observers that barriers complete and that lanes resume."""
        lanes = np.concatenate([group.lanes for group, _ in released] or [np.zeros(0, np.int64)])
        barrier = np.concatenate([np.full(len(g.lanes), b) for g, b in released] or [np.zeros(0, np.int64)])
        warps = np.unique(np.stack([self.residents.slot[lanes], self.residents.warp[lanes], barrier]), axis=1)
        x.order(BarrierCompletion(done, *warps.astype(np.int64)))

    def _release(self, x: Executor, done: np.ndarray) -> Iterator[tuple[Group, int]]:
        kept = []
        for entry in self.waiting:
            free = done[self.residents.slot[entry.group.lanes], entry.barrier]
            lanes, left = entry.group.lanes[free], entry.group.lanes[~free]
            if lanes.size:
                if entry.how is not None:
                    x.deliver_late(entry.group.frame, entry.step, lanes, self._outcome(entry, lanes))
                yield Group(entry.group.frame, entry.group.pc, lanes, entry.group.turns), entry.barrier
            if left.size:
                entry.group.lanes = left
                kept.append(entry)
        self.waiting = kept

    def _outcome(self, entry: Waiting, lanes: np.ndarray) -> np.ndarray:
        slot = self.residents.slot[lanes]
        return outcome(self.votes[slot, entry.barrier], self.voters[slot, entry.barrier], entry.how)

    def _check_unattended(self, x: Executor, come: Arrivals, need: np.ndarray) -> None:
        """Report warps whose repeated bar.arrive completes a barrier at which no thread waits.

        The two arrivals were meant for two phases; a thread that waits later waits for another phase.
        """
        came = self.came[come.slot, come.barrier]
        count = came[np.arange(len(came)), come.warp]
        unattended = (count > 1) & (came.sum(-1) * WARP >= need)
        for entry in self.waiting if unattended.any() else ():
            attended = self.residents.slot[entry.group.lanes]
            unattended &= (come.barrier != entry.barrier) | ~np.isin(come.slot, attended)
        if unattended.any():
            n = int(np.argmax(unattended))
            message = (
                f"{x.name}: warp {int(come.warp[n])} arrives again at barrier {int(come.barrier[n])} and completes it, "
                "but no thread waits there"
            )
            help = "make the warps that wait at the barrier signal back (another barrier) before this one arrives again"
            x.finding_of_warps("barrier", message, unattended, help)

    def _check_crowd(self, x: Executor, barrier: np.ndarray, warps: np.ndarray, need: np.ndarray) -> None:
        """Report more arrivals than a barrier counts: which of the warps complete it is undefined."""
        crowd = warps * WARP > need
        if crowd.any():
            n = int(np.argmax(crowd))
            message = (
                f"{x.name}: {int(warps[n]) * WARP} threads are at barrier {int(barrier[n])}, which counts "
                f"{int(need[n])}: any of them may complete it"
            )
            help = f"count all {int(warps[n]) * WARP}, or give each group of warps its own barrier (0 to 15)"
            x.finding_of_warps("barrier", message, crowd, help)

    def _check_counts(self, x: Executor, barrier: np.ndarray, others: np.ndarray, need: np.ndarray) -> None:
        """Report thread counts that differ between the arrivals at one barrier."""
        differ = others != need
        if differ.any():
            which = int(np.argmax(differ))
            message = (
                f"{x.name}: barrier {int(barrier[which])} counts {int(need[which])} threads here "
                f"and {int(others[which])} threads where others wait at it"
            )
            x.finding_of_warps("barrier", message, differ, "pass the same count wherever threads wait at it")

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Move slots to their places among other residents."""
        moved = Barriers(residents)
        for target, rows in zip(moved.tables, self.tables, strict=True):
            target[destination] = rows[source]
        self.residents, (self.came, self.expected, self.votes, self.voters) = residents, moved.tables

    def describe(self, entry: Waiting, x: Executor) -> str:
        """Describe what the barrier of the first waiting block lacks."""
        count, need = self._present(entry, x)
        return f"at barrier {entry.barrier}, where {count} of {need} threads have arrived"

    def mend(self, x: Executor) -> str:
        """Return the fix for the first barrier that threads wait at; empty if none wait."""
        if not self.waiting:
            return ""
        entry = self.waiting[0]
        count, need = self._present(entry, x)
        late = f"{need - count} more thread{'s' * (need - count > 1)}"
        wait = f"barrier {entry.barrier} waits for {late}"
        return f"{wait}: execute it in all of them, or count only the {count} that arrive"

    def _present(self, entry: Waiting, x: Executor) -> tuple[int, int]:
        """Return the number of threads that arrived at a barrier of its first block, and the number it needs."""
        slot = int(self.residents.slot[entry.group.lanes[0]])
        need = int(self.expected[slot, entry.barrier])
        return int(self.came[slot, entry.barrier].sum()) * WARP, (
            int(x.living_warps()[slot]) * WARP if need == EVERYONE else need
        )


def outcome(votes: np.ndarray, voters: np.ndarray, how: str | None) -> np.ndarray:
    """Return the result of a barrier with a reduction."""
    return {"popc": votes.astype(np.uint32), "and": votes == voters, "or": votes > 0}[str(how)]
