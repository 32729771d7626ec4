"""Which group runs next, and for how long: in lockstep, one warp as far as it goes, or at random.

Whatever a correct kernel computes is the same under each. Lockstep is fast: lanes that meet go on together.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from .residents import WARP
from .scheduler import Group

LONGEST_TURN = 64  # steps at random


class Lockstep:
    """The group that stands first, with all its lanes."""

    merges = True

    def turn(self) -> int | None:
        """How many steps a group runs before others get their turn; None for as many as it can."""
        return None

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        """One of the groups, and the warp of it that runs alone (None: all of them)."""
        return min(groups, key=lambda group: group.order), None


class Skewed(Lockstep):
    """The last warp that can run, as far as it goes."""

    merges = False

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        group = min(groups, key=lambda g: (g.order[0], -int(g.lanes[-1]) // WARP, g.order[1]))
        return group, int(group.lanes[-1]) // WARP


class Random(Lockstep):
    """Any warp, for some steps; the same ones again for the same seed."""

    merges = False

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def turn(self) -> int | None:
        return int(self.rng.integers(1, LONGEST_TURN))

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        epoch = min(group.order[0] for group in groups)
        ready = sorted((g for g in groups if g.order[0] == epoch), key=lambda g: (g.order, int(g.lanes[0])))
        group = ready[self.rng.integers(len(ready))]
        return group, int(group.lanes[self.rng.integers(len(group.lanes))]) // WARP


def schedule(name: str) -> Lockstep:
    """The schedule of a name: lockstep, skewed, random, or random:SEED."""
    kind, _, seed = name.partition(":")
    if kind == "random":
        return Random(int(seed or 0))
    return Skewed() if kind == "skewed" else Lockstep()
