"""Runs groups of lanes, instruction by instruction; what `isa.step.Step` promises to an instruction is here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .calls import Calls
from .decode import Batch, Step
from .flow import Abort, Flow
from .frames import Frame, Index, as_index
from .meetings import Meeting, meetings, shaped
from .requests import Requests
from .residents import WARP, Residents
from .scheduler import Group


class Processor(Requests, Flow):
    """The machine while it runs one group.

    `index` says for which lanes the current instruction runs: None for all lanes of the machine. `dense` means that no
    other lane is alive, so that whole arrays may be computed though some of their lanes have ended. `partial` means
    that a guard left lanes of the group out. `kept` marks those of the current lanes whose results count.
    """

    def __init__(self, machine: Any) -> None:
        self.machine, self.memory, self.copies = machine, machine.memory, machine.copies
        self.scheduler, self.barriers, self.checks = machine.scheduler, machine.barriers, machine.checks
        self.calls = Calls(machine, self)
        self.carries = np.zeros(machine.residents.lanes, np.uint8)
        self.alive = machine.residents.exists.copy()
        self._settle_in(machine.residents)
        self.shape: tuple[int, ...] = ()
        self.group: Group | None = None
        self.batch: Batch | None = None
        self.departed: list[np.ndarray] = []
        self.kept: np.ndarray | None = None

    def _settle_in(self, residents: Residents) -> None:
        self.residents = residents
        self.living = int(self.alive.sum())
        self.constants: dict[tuple[int, np.dtype], np.ndarray] = {}
        self.everybody = np.ones((residents.lanes // WARP, WARP), bool)

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Lanes move to their places among other residents."""
        carries, alive = np.zeros(residents.lanes, np.uint8), np.zeros(residents.lanes, bool)
        carries[destination], alive[destination] = self.carries[source], self.alive[source]
        self.carries, self.alive = carries, alive
        self._settle_in(residents)

    def begin(self, started: np.ndarray) -> None:
        """Lanes of new blocks are alive."""
        self.alive |= started
        self.living = int(self.alive.sum())

    # Running

    def run(self, group: Group) -> None:
        """Runs a group until it waits, ends, splits or meets others."""
        self._enter(group)
        while self.group is group:
            self.step = step = self.steps[self.pc]
            self.pc += 1
            self.machine.clock += 1
            if self.machine.clock > self.machine.last_step:
                raise Abort
            if step.guard is None:
                self.index, self.partial = self.group_index, False
                self._perform(step)
            elif self._select(step):
                self._perform(step)
            if self.pc in self.stops and self.group is group:
                self.yield_to_others()

    def _enter(self, group: Group) -> None:
        self.group = group
        self.whole = len(group.lanes) == self.residents.lanes
        self.dense = len(group.lanes) == self.living
        self.group_index: Index = None if self.whole else as_index(group.lanes)
        self.stand(group.frame, group.pc)

    def stand(self, frame: Frame, pc: int) -> None:
        """The running group goes on at a step of a frame."""
        self.frame, self.pc, self.steps = frame, pc, frame.code.steps
        self.stops = self.scheduler.stops(frame)
        self.memory.spaces["local"].table = frame.table
        if self.dense:
            frame.owned.clear()

    def yield_to_others(self) -> None:
        """The running group becomes one of those that are ready."""
        assert self.group is not None
        self.group.frame, self.group.pc = self.frame, self.pc
        self.scheduler.add(self.group)
        self.group = None

    def _perform(self, step: Step) -> None:
        if step.refusal is not None:
            raise step.refusal
        if step.collective:
            self._meet(step)
        elif step.effect:
            self._effect(step)
        else:
            self._compute(step)

    def _select(self, step: Step) -> bool:
        """Narrows the instruction to the lanes whose guard holds; whether there are any."""
        assert self.group is not None
        self.index, self.partial = self.group_index, False
        chosen = step.guard.read(self)
        self._refuse_undefined((step.guard.slot,))
        if chosen.all():
            return True
        lanes = self.group.lanes[chosen]
        self.index, self.partial = as_index(lanes), True
        return bool(lanes.size)

    # Computing

    def _compute(self, step: Step) -> None:
        """An instruction that reads and writes registers only."""
        self.machine.report.instructions += self.width
        if self.dense and not self.partial:
            self.index = None
        self.shape = (self.width,)
        inputs = [reader.read(self) for reader in step.reads]
        tainted = self._tainted(step.inputs) if self.frame.undefined else None
        self.deliver(step, step.op.run(step.opcode, *inputs))
        if tainted is not None:
            self._taint(step.outputs, tainted)

    def deliver(self, step: Step, result: Any) -> None:
        """Writes an instruction's results."""
        if len(step.writes) == 1:
            result = (result,)
        elif not step.writes:
            return
        for writer, value in zip(step.writes, result, strict=True):
            if writer is not None:
                writer.put(self, value)

    def deliver_late(self, frame: Frame, step: Step, lanes: np.ndarray, result: np.ndarray) -> None:
        """Writes the result of an instruction at which lanes have waited."""
        now = self.frame, self.index, self.shape, self.kept
        self.frame, self.index, self.shape, self.kept = frame, lanes, (len(lanes),), None
        self.deliver(step, result)
        self.frame, self.index, self.shape, self.kept = now

    def put(self, slot: int, value: np.ndarray) -> None:
        """Writes a register for the current lanes."""
        index = self.index
        if len(self.shape) > 1:
            value = value.reshape(-1, *value.shape[len(self.shape) :])
        elif value.ndim == 0 or len(value) != self.width_of(index):
            value = np.broadcast_to(value, (self.width_of(index),))
        if self.kept is not None:
            value, index = value[self.kept], as_index(self.lanes_of(index)[self.kept])
        self.frame.put(slot, value, index, not self.dense or self.partial or self.kept is not None)

    def _tainted(self, slots: Sequence[int]) -> np.ndarray | None:
        """The lanes in which one of the registers was never written; None if there are none."""
        flags = [self.frame.undefined[slot] for slot in slots if slot in self.frame.undefined]
        if not flags:
            return None
        found = flags[0] if len(flags) == 1 else np.logical_or.reduce(flags)
        return found if found[self.lanes_of(self.index)].any() else None

    def _taint(self, slots: Sequence[int], tainted: np.ndarray) -> None:
        """What is computed from registers that were never written counts as never written."""
        lanes = self.lanes_of(self.index)
        for slot in slots:
            flags = self.frame.undefined.get(slot)
            flags = np.zeros(self.residents.lanes, bool) if flags is None else flags.copy()
            flags[lanes] = tainted[lanes]
            self.frame.undefined[slot] = flags

    def _refuse_undefined(self, slots: Sequence[int], active: np.ndarray | None = None) -> None:
        """Reports registers that were never written and now decide something in the (active) lanes."""
        if not self.frame.undefined or not self.checks:
            return
        for slot in slots:
            flags = self.frame.undefined.get(slot)
            if flags is None:
                continue
            bad = flags[self.lanes_of(self.index)]
            if active is not None:
                bad = bad.reshape(active.shape) & active
            if not bad.any():
                continue
            register = self.frame.code.slots.registers[slot]
            self.finding("uninitialized", f"{self.name} uses register {register}, which was never written", bad)
            self.frame.undefined.pop(slot)

    # Effects

    def _effect(self, step: Step) -> None:
        """An instruction that touches the machine."""
        self.shape = (self.width,)
        self.machine.report.instructions += self.width
        inputs = [reader.read(self) for reader in step.reads]
        self._refuse_undefined(step.inputs)
        result = step.op.execute(step.opcode, self, *inputs)
        if result is not None:
            self.deliver(step, result)
        self.kept = None
        if self.departed:
            self._settle()

    def _meet(self, step: Step) -> None:
        """An instruction that lanes of a warp run together: those run whose warps are complete."""
        for meeting in meetings(self, step):
            self.shape, self.index, self.active = (meeting.warps, WARP), meeting.index, meeting.active
            self.kept = meeting.kept
            self.machine.report.instructions += meeting.count * (len(step.batch.steps) if step.batch else 1)
            if step.batch is not None:
                self._run_batch(step.batch)
            else:
                self._run_meeting(step, meeting)
            self.kept = None
        if step.batch is not None:
            self.pc += len(step.batch.steps) - 1
        if self.departed:
            self._settle()

    def _run_meeting(self, step: Step, meeting: Meeting) -> None:
        inputs = [shaped(reader.read(self), meeting.warps) for reader in step.reads]
        self._refuse_undefined(step.inputs, self.active)
        result = step.op.execute(step.opcode, self, *inputs)
        if result is not None:
            self.deliver(step, result)

    def _run_batch(self, batch: Batch) -> None:
        first = batch.steps[0]
        warps = self.shape[0]
        self.batch, self.shape = batch, (len(batch.steps), warps, WARP)
        values = [batch.stack(self, n, warps) for n in range(len(batch.reads))]
        self._refuse_undefined([slot for step in batch.steps for slot in step.inputs], self.active)
        results = first.op.execute_batch(first.opcode, self, values, batch.index)
        self.shape, self.batch = (warps, WARP), None
        if results is None:
            return
        for number, step in enumerate(batch.steps):
            several = isinstance(results, tuple)
            own = [r[..., number, :, :] for r in results] if several else results[..., number, :, :]
            self.deliver(step, own)

    def _settle(self) -> None:
        """Some lanes left: the others of the group, if there are any, become ready where it stands."""
        assert self.group is not None
        stay = np.zeros(self.residents.lanes, bool)
        stay[self.group.lanes] = True
        for lanes in self.departed:
            stay[lanes] = False
        self.departed = []
        rest = np.flatnonzero(stay)
        if rest.size:
            self.scheduler.add(Group(self.frame, self.pc, rest, self.group.turns))
        self.group = None

    # Lanes

    @property
    def width(self) -> int:
        """How many lanes the current instruction runs for."""
        return self.width_of(self.index)

    def width_of(self, index: Index) -> int:
        if index is None:
            return self.residents.lanes
        return index.stop - index.start if isinstance(index, slice) else len(index)

    def lanes_of(self, index: Index) -> np.ndarray:
        return self.residents.all if index is None else self.residents.all[index]

    @property
    def lanes_now(self) -> np.ndarray:
        """The lanes for which the current instruction runs."""
        return self.lanes_of(self.index)

    def of_lanes(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Values of an array over all lanes, for accesses of a shape."""
        own = values if self.index is None else values[self.index]
        if len(self.shape) > 1:
            own = own.reshape(-1, WARP)[:, : shape[-1]]
        return own

    @contextmanager
    def only(self, which: np.ndarray) -> Iterator[None]:
        """Narrows the current lanes to those of a mask of the shape of an access."""
        index, shape = self.index, self.shape
        self.index = np.broadcast_to(self.of_lanes(self.residents.all, which.shape), which.shape)[which]
        self.shape = (len(self.index),)
        try:
            yield
        finally:
            self.index, self.shape = index, shape

    def living_warps(self) -> np.ndarray:
        """How many warps of each slot have a lane that has not ended."""
        return self.alive.reshape(self.residents.warps, self.residents.slots, WARP).any(-1).sum(0)
