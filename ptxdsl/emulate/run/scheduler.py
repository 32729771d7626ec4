"""The scheduler: groups of lanes at one step, by (epoch, step), least first.

Lanes that meet at one step merge. A group that has looped often while others were ready is moved to the next epoch, so
that none starves. A group whose last iteration changed neither memory nor its registers is parked until memory changes;
when only such groups are left, none can ever continue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from .decode import Decoded
from .frames import Frame
from .residents import WARP

TURNS_PER_EPOCH = 32
PATIENCE = 64
ROUNDS_BEFORE_OTHERS = 1024  # iterations of loops that change memory, which may wait for a block that has not started

Position: TypeAlias = tuple[Frame, int]


@dataclass(slots=True)
class Loop:
    """A group's last arrival at the start of a loop: the state of memory, and its registers once they were saved."""

    position: Position
    version: tuple[int, int]
    idle: int = 0
    parked: bool = False
    saved: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Group:
    """Lanes (ascending) at step `pc` of a frame. `turns` counts iterations of loops.

    `circles` is True if it was parked in a loop that changed nothing.
    """

    frame: Frame
    pc: int
    lanes: np.ndarray
    turns: int = 0
    loop: Loop | None = None
    version: int = -1
    circles: bool = False

    @property
    def position(self) -> Position:
        return self.frame, self.pc

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        return self.turns // TURNS_PER_EPOCH, (*self.frame.path, self.pc)


class Schedule(Protocol):
    """A policy that chooses the next group; without `merges`, warps run alone even if others are at the same step."""

    merges: bool

    def choose(self, groups: Collection[Group]) -> tuple[Group, int | None]:
        """Return the next group, and the warp of it that runs alone (None: all of them)."""

    def turn(self) -> int | None:
        """Return the number of steps that a group runs before others get their turn; None for no limit."""

    def landing(self, count: int) -> int | None:
        """Return the number of the bulk copy, of `count`, that lands now; None for none."""

    def looks(self) -> bool:
        """Return True if groups parked on memory check it now, although others can run."""

    def gives_up(self, is_retried: bool) -> bool:
        """True if a wait of limited time ends before what it waits for; `is_retried` if a loop may wait again."""


class Scheduler:
    """The groups that are not running: ready, parked until memory changes, or held for other lanes of a warp."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.ready: dict[Position, Group] = {}
        self.parked: dict[Position, Group] = {}
        self.held: dict[Position, Group] = {}
        self.impatient: set[tuple[int, int]] = set()  # steps and first lanes of the waits that gave up last time
        self.weary = False  # a group has looped often, and memory did not change

    def add(self, group: Group) -> None:
        """Add a group that may run; it merges with those at the same step."""
        for others in (self.ready, self.held):
            if group.position in others:
                group = _merged(group, others.pop(group.position))
        self.ready[group.position] = group

    def park(self, group: Group, version: int) -> None:
        """Park a group until memory has another version."""
        group.version = version
        if group.position in self.parked:
            other = self.parked.pop(group.position)
            group = _merged(group, other)
            group.version = min(version, other.version)
        self.parked[group.position] = group

    def gives_up(self, step: Decoded, lane: int) -> bool:
        """True if a wait of lanes from `lane` on ends before what it waits for; never twice in a row."""
        key = id(step), lane
        if key in self.impatient:
            self.impatient.remove(key)
        elif self.schedule.gives_up(step.origin.loops_to >= step.origin.number):
            self.impatient.add(key)
        return key in self.impatient

    def hold(self, group: Group) -> None:
        """Hold a group until the other lanes of its warps arrive."""
        if group.position in self.held:
            group = _merged(group, self.held.pop(group.position))
        self.held[group.position] = group

    def take(self) -> Group | None:
        """Return the group to run next."""
        if not self.ready:
            return None
        if len(self.ready) == 1 and self.schedule.merges:
            group = self.ready.popitem()[1]
        else:
            group, warp = self.schedule.choose(self.ready.values())
            del self.ready[group.position]
            if warp is not None:
                group = self._alone(group, warp)
        if group.position in self.held:  # others may have arrived there since
            group = _merged(group, self.held.pop(group.position))
        return group

    def _alone(self, group: Group, warp: int) -> Group:
        """Return a warp of a group, and leave the others."""
        first, end = np.searchsorted(group.lanes, [warp * WARP, (warp + 1) * WARP])
        if end - first == len(group.lanes):
            return group
        others = np.concatenate((group.lanes[:first], group.lanes[end:]))
        self.ready[group.position] = Group(group.frame, group.pc, others, group.turns)
        return Group(group.frame, group.pc, group.lanes[first:end], group.turns)

    def wake(self, state: tuple[int, int]) -> bool:
        """Make ready the groups that were parked when memory was in another state; return True if there was any."""
        changed = [group for group in self.parked.values() if group.version != state[0]]
        for group in changed:
            del self.parked[group.position]
            if group.loop is not None:
                group.loop.version = state
            self.add(group)
        return bool(changed)

    def withdraw(self, group: Group, lanes: np.ndarray) -> Group:
        """Return lanes of a held group, as they continue after the instruction at which they were held."""
        left = group.lanes[np.isin(group.lanes, lanes, invert=True)]
        if left.size:
            group.lanes = left
        else:
            del self.held[group.position]
        return Group(group.frame, group.pc + 1, lanes, group.turns)

    def recheck(self) -> None:
        """Resume the groups that waited for lanes which have exited."""
        held, self.held = self.held, {}
        for group in held.values():
            self.add(group)

    def stops(self, frame: Frame) -> frozenset[int]:
        """Return the steps of a frame at which other lanes would merge."""
        where = (self.ready, self.held) if self.schedule.merges else (self.held,)
        return frozenset(pc for others in where for f, pc in others if f is frame)

    def waiting(self) -> Iterator[Group]:
        yield from self.parked.values()
        yield from self.held.values()

    def everyone(self) -> Iterator[Group]:
        yield from self.ready.values()
        yield from self.waiting()


def _merged(one: Group, other: Group) -> Group:
    lanes = np.concatenate((one.lanes, other.lanes))
    lanes.sort(kind="stable")  # two ascending runs: a merge
    return Group(one.frame, one.pc, lanes, max(one.turns, other.turns), circles=one.circles or other.circles)
