"""Proof that running lanes make no progress: the complete state of the machine recurs."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from .core import Core
from .flow import Flow
from .frames import Frame
from .scheduler import Group

_LOOKS = 64


class Circles:
    """Records the state of all lanes from time to time and checks if it recurs.

    A recurrence counts once all lanes that could run have run in between. Memory is compared by the number of its
    changes. A loop that reads a clock or counts its iterations never recurs.
    """

    def __init__(self) -> None:
        self._glance, self._noted = b"", b""
        self._looks, self._window = 0, _LOOKS
        self._owed: np.ndarray | None = None

    def ran(self, group: Group) -> None:
        """Note that lanes had their turn."""
        if self._owed is not None:
            self._owed[group.lanes] = False

    def closed(self, machine: Core, x: Flow) -> bool:
        """Return True if the recorded state has recurred; each recorded state is compared for twice as long as the
        last.
        """
        if self._owed is None:
            self._note(machine, x)
        elif not self._owed.any():
            self._looks += 1
            if _glance(machine) == self._glance and _state(machine, x.alive) == self._noted:
                return True
            if self._looks == self._window:
                self._owed, self._window = None, 2 * self._window
                x.rounds = -self._window
        return False

    def _note(self, machine: Core, x: Flow) -> None:
        self._glance, self._noted, self._looks = _glance(machine), _state(machine, x.alive), 0
        self._owed = np.zeros(machine.residents.lanes, bool)
        for group in machine.scheduler.ready.values():
            self._owed[group.lanes] = True


def _glance(machine: Core) -> bytes:
    """Return a part of the state that is cheap to compare: the registers of one lane of each group that could run."""
    some = [np.array([machine.memory.version, machine.memory.local]).tobytes()]
    for group in sorted(machine.scheduler.ready.values(), key=_position):
        some += [register[group.lanes[0]].tobytes() for register in group.frame.registers if register is not None]
    return b"".join(some)


def _state(machine: Core, alive: np.ndarray) -> bytes:
    """Return all state that lanes can observe; registers of lanes that have exited are arbitrary."""
    memory, barriers, scheduler = machine.memory, machine.barriers, machine.scheduler
    digest = blake2b(f"{memory.version} {memory.local}".encode())
    clusters = machine.cluster_barriers
    for array in (barriers.came, barriers.expected, barriers.votes, clusters.arrived, clusters.passing):
        digest.update(array.tobytes())
    for register in _registers(machine.entry):
        digest.update(register[alive].tobytes())
    waiting = [*(entry.group for entry in barriers.waiting), *(entry.group for entry in clusters.waiting)]
    for number, groups in enumerate((scheduler.ready.values(), [*scheduler.waiting(), *waiting])):
        for group in sorted(groups, key=_position):
            digest.update(f"{number} {_position(group)}".encode())
            digest.update(group.lanes.tobytes())
    return digest.digest()


def _position(group: Group) -> tuple[tuple[int, ...], int, int]:
    return group.frame.path, group.pc, int(group.lanes[0])


def _registers(frame: Frame) -> Iterator[np.ndarray]:
    yield from (array for array in frame.registers if array is not None)
    for callee in frame.callees.values():
        yield from _registers(callee)
