"""Which group runs next, and for how long: in lockstep, one warp as far as it goes, or at random.

Whatever a correct kernel computes is the same under each. Lockstep is fast: lanes that meet go on together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from .residents import WARP
from .scheduler import TURNS_PER_EPOCH, Group

LONGEST_TURN = 64  # steps at random
LOOKS = 16  # of so many turns at random, one begins with another look of those that wait


class Lockstep:
    """The group that stands first, with all its lanes."""

    merges = True

    def turn(self) -> int | None:
        """How many steps a group runs before others get their turn; None for as many as it can."""
        return None

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        """One of the groups, and the warp of it that runs alone (None: all of them)."""
        return min(groups, key=lambda group: group.order), None

    def landing(self, count: int) -> int | None:
        """Which of `count` bulk copies lands now; None for none: they land when a thread that waits cannot go on."""
        return None

    def looks(self) -> bool:
        """Whether those that wait for memory look at it now, though others can go on."""
        return False

    def gives_up(self, is_retried: bool) -> bool:
        """True if a wait of limited time ends before what it waits for; `is_retried` if a loop may wait again."""
        return not is_retried


class Skewed(Lockstep):
    """The last warp that can run, as far as it goes; where it goes round and round, others have their turns too.

    `turns` counts those of each warp since all that could run had theirs: warps that wait in one place share a group.
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
        """The last warp of those that had the fewest turns, and its group."""
        ready = [(group, int(warp)) for group in groups if group.order[0] == epoch for warp in _warps(group)]
        group, warp = min(ready, key=lambda one: (self.turns[one[1]], -one[1], one[0].order[1]))
        if self.turns[warp] >= TURNS_PER_EPOCH:
            self.turns.clear()
        return group, warp


class Random(Lockstep):
    """Any warp, for some steps; bulk copies land at any time, and who waits may see at once what has changed, or late.
    The same ones again for the same seed."""

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
    """The schedule of a name: lockstep, skewed, random, or random:SEED."""
    kind, _, seed = name.partition(":")
    if kind == "random":
        return Random(int(seed or 0))
    return Skewed() if kind == "skewed" else Lockstep()
