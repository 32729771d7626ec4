"""A view of a stopped machine: positions of threads, registers and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...isa.numerics import decode as floats_of
from ...types import Type, bits, lanes
from ..report import Index, Thread
from .decode import Decoded
from .frames import Frame
from .machine import Machine
from .residents import WARP

Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of a lane: the step that it runs, waits at or will run, in a frame."""

    frame: Frame
    pc: int
    waits: bool = False

    @property
    def step(self) -> Decoded:
        return self.frame.code.steps[self.pc]


class MachineView:
    """Looks at a machine between two steps, or while one makes a finding. Changes nothing that a thread can see."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    # Threads

    def lane(self, thread: Thread) -> int | None:
        """Return the lane of a thread; None if its block is not running."""
        r = self.machine.residents
        slots = np.flatnonzero(r.blocks == _number(thread.block, r.grid))
        if not slots.size:
            return None
        number = _number(thread.thread, r.block)
        return (number // WARP * r.slots + int(slots[0])) * WARP + number % WARP

    def thread(self, lane: int) -> Thread:
        return self.machine.residents.name(lane)

    def is_alive(self, lane: int) -> bool:
        return bool(self.machine.processor.alive[lane])

    def has_started(self, thread: Thread) -> bool:
        """Return True if the block of a thread is running or has ended."""
        number = _number(thread.block, self.machine.launch.grid)
        r = self.machine.residents
        if self.machine.cluster == (1, 1, 1):
            return number < self.machine.blocks
        return number in r.blocks or self.machine.blocks >= self.machine.total

    def standing(self, lane: int) -> Standing | None:
        """Return the position of a lane; None once it has exited."""
        for frame, pc, group, waits in self.groups():
            if _holds(group, lane):
                return Standing(frame, pc, waits)
        return None

    def groups(self) -> Iterator[tuple[Frame, int, np.ndarray, bool]]:
        """Yield lanes at one position: their frame, the step, the lanes, and True if they wait for others."""
        machine = self.machine
        x, scheduler = machine.processor, machine.scheduler
        if x.group is not None:
            yield x.frame, x.pc - 1, x.group.lanes, False
        for group in scheduler.ready.values():
            yield group.frame, group.pc, group.lanes, False
        for group in scheduler.waiting():
            yield group.frame, group.pc, group.lanes, True
        behind = [entry.group for entry in machine.barriers.waiting]
        for group in (*behind, *(entry.group for entry in machine.cluster_barriers.waiting)):
            yield group.frame, group.pc - 1, group.lanes, True

    # Registers

    def in_flight(self, frame: Frame, slot: int, lane: int) -> Decoded | None:
        """Return the wgmma in flight that will write a register of a lane; None if there is none."""
        return self.machine.products.in_flight(frame, slot, lane // WARP)

    def written(self, frame: Frame, slot: int, lane: int) -> bool:
        """True if a lane has written a register."""
        self._settle(frame, slot)
        if frame.registers[slot] is None:
            return False
        undefined = frame.undefined.get(slot)
        return undefined is None or not undefined[lane]

    def raw(self, frame: Frame, slot: int, lane: int) -> bytes:
        """Return the bytes of a register of a lane."""
        self._settle(frame, slot)
        array = frame.registers[slot]
        assert array is not None
        return array[lane].tobytes()

    def _settle(self, frame: Frame, slot: int) -> None:
        """Write accumulators of completed products to their registers, which otherwise wait for the next use."""
        with np.errstate(all="ignore"):
            self.machine.products.settle(self.machine.processor, frame, (slot,))
            if self.machine.tensor is not None:
                self.machine.tensor.deliver(self.machine.processor, frame, (slot,))

    # Memory

    def bytes_of(self, space: str, offset: int, count: int, slot: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return bytes of a space from an offset, in the copy of the block in `slot`, and the mask of initialised
        bytes.
        """
        region = self.machine.memory.spaces[space]
        data, _, fresh = region.rows()
        row = slot if region.owners > 1 else 0
        return data[row, offset : offset + count].copy(), fresh[row, offset : offset + count] == 0


def decoded(raw: bytes, type: Type) -> tuple[Number, ...]:
    """Decode bytes to one value, or to the elements of a packed type. Floats are exact; bits are integers."""
    element, count = lanes(type)
    if element.kind == "p":
        return (raw[0] != 0,)
    if type.bits > 64:
        return (int.from_bytes(raw, "little"),)
    items = np.frombuffer(raw[: max(1, element.bytes) * count], bits(max(8, element.bits)).dtype)
    if element.is_float and element.name in ("f16", "f32", "f64"):
        return tuple(n.item() for n in items.view(element.dtype))
    if element.is_float:
        return tuple(float(n) for n in floats_of(items, element))
    return tuple(n.item() for n in items.view(element.dtype))


def _holds(group: np.ndarray, lane: int) -> bool:
    index = int(np.searchsorted(group, lane))
    return index < len(group) and int(group[index]) == lane


def _number(index: Index, extents: Index) -> int:
    return index[0] + extents[0] * (index[1] + extents[1] * index[2])
