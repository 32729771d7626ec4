"""Proof that lanes which run on and on get nowhere: all that they can tell apart comes again."""

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
    """Notes the state of all lanes now and then, and looks whether it comes again.

    That counts once all lanes that could run have run meanwhile. Memory is compared by the number of its changes. A
    loop that reads a clock or counts its rounds never comes again.
    """

    def __init__(self) -> None:
        self._glance, self._noted = b"", b""
        self._looks, self._window = 0, _LOOKS
        self._owed: np.ndarray | None = None

    def ran(self, group: Group) -> None:
        """Lanes have their turn."""
        if self._owed is not None:
            self._owed[group.lanes] = False

    def closed(self, machine: Core, x: Flow) -> bool:
        """Whether the state that was noted has come again; from note to note it is looked for twice as long."""
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
    """A part of the state, quick to look at: of each group that could run, the registers of one lane."""
    some = [np.array([machine.memory.version, machine.memory.local]).tobytes()]
    for group in sorted(machine.scheduler.ready.values(), key=_position):
        some += [register[group.lanes[0]].tobytes() for register in group.frame.registers if register is not None]
    return b"".join(some)


def _state(machine: Core, alive: np.ndarray) -> bytes:
    """All that lanes can tell apart; registers of lanes that have ended hold anything."""
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
