"""The schedules: in lockstep, one warp as far as it can run, or at random.

The results of a correct kernel are the same under each. Lockstep is fast, because lanes that meet run together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from .residents import WARP
from .scheduler import TURNS_PER_EPOCH, Group

LONGEST_TURN = 64  # the steps of a random turn
LOOKS = 16  # on average one in this many random turns wakes the parked groups first


class Lockstep:
    """Runs the group with the least step, with all its lanes."""

    merges = True

    def turn(self) -> int | None:
        """Return the number of steps that a group runs before others get their turn; None for no limit."""
        return None

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        """Return the next group, and the warp of it that runs alone (None: all of them)."""
        return min(groups, key=lambda group: group.order), None

    def landing(self, count: int) -> int | None:
        """Return the number of the bulk copy, of `count`, that lands now; None if copies land only when no thread can
        run.
        """
        return None

    def looks(self) -> bool:
        """Return True if groups parked on memory check it now, although others can run."""
        return False

    def gives_up(self, is_retried: bool) -> bool:
        """True if a wait of limited time ends before what it waits for; `is_retried` if a loop may wait again."""
        return not is_retried


class Skewed(Lockstep):
    """Runs the last warp that can run, as far as it can; in a loop without progress, others get turns too.

    `turns` counts those of each warp since all that could run had theirs: warps that wait at one step share a group.
    """

    merges = False

    def __init__(self) -> None:
        self.turns: Counter[int] = Counter()

    def gives_up(self, is_retried: bool) -> bool:
        return True

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        group = min(groups, key=lambda g: (g.order[0], -int(g.lanes[-1]) // WARP, g.order[1]))
        warp = int(group.lanes[-1]) // WARP
        if self.turns[warp] >= TURNS_PER_EPOCH:
            group, warp = self._other(groups, group.order[0])
        self.turns[warp] += 1
        return group, warp

    def _other(self, groups: Collection[Group], epoch: int) -> tuple[Group, int]:
        """Return the last warp among those with the fewest turns, and its group."""
        ready = [(group, int(warp)) for group in groups if group.order[0] == epoch for warp in _warps(group)]
        group, warp = min(ready, key=lambda one: (self.turns[one[1]], -one[1], one[0].order[1]))
        if self.turns[warp] >= TURNS_PER_EPOCH:
            self.turns.clear()
        return group, warp


class Random(Lockstep):
    """Runs any warp for some steps; bulk copies land at any time, and waiting threads see a change at once or late.

    A seed reproduces the order.
    """

    merges = False

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.limits = np.random.default_rng(seed + 1)

    def turn(self) -> int | None:
        return int(self.rng.integers(1, LONGEST_TURN))

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        epoch = min(group.order[0] for group in groups)
        ready = sorted((g for g in groups if g.order[0] == epoch), key=lambda g: (g.order, int(g.lanes[0])))
        group = ready[self.rng.integers(len(ready))]
        return group, int(group.lanes[self.rng.integers(len(group.lanes))]) // WARP

    def landing(self, count: int) -> int | None:
        number = int(self.rng.integers(2 * count))
        return number if number < count else None

    def looks(self) -> bool:
        return int(self.rng.integers(LOOKS)) == 0

    def gives_up(self, is_retried: bool) -> bool:
        return not is_retried or int(self.limits.integers(2)) == 0


def _warps(group: Group) -> np.ndarray:
    return np.unique(group.lanes // WARP)


def schedule(name: str) -> Lockstep:
    """Return the schedule of a name: lockstep, skewed, random, or random:SEED."""
    kind, _, seed = name.partition(":")
    if kind == "random":
        return Random(int(seed or 0))
    return Skewed() if kind == "skewed" else Lockstep()
