"""Runs groups of lanes, instruction by instruction; what `isa.step.Step` promises to an instruction is here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .calls import Calls
from .decode import Batch, Step
from .flow import Abort, Flow
from .frames import Frame, as_index
from .meetings import Meeting, meetings, shaped
from .requests import Requests
from .residents import WARP
from .scheduler import Group

if TYPE_CHECKING:
    from .machine import Machine


class Processor(Requests, Flow):
    """Runs one group at a time."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.calls = Calls(machine, self)

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
                self.index, self.width, self.partial = self.group_index, self.group_width, False
                self._perform(step)
            elif self._select(step):
                self._perform(step)
            if self.pc in self.stops and self.group is group:
                self.yield_to_others()

    def _enter(self, group: Group) -> None:
        self.group, self.group_width = group, len(group.lanes)
        self.whole = self.group_width == self.residents.lanes
        self.dense = self.group_width == self.living
        self.group_index = None if self.whole else as_index(group.lanes)
        self.stand(group.frame, group.pc)

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
        assert step.guard is not None
        self.index, self.width, self.partial = self.group_index, self.group_width, False
        chosen = step.guard.read(self)
        self._refuse_undefined((step.guard.slot,))
        count = int(np.count_nonzero(chosen))
        if count == self.width:
            return True
        self.index, self.width, self.partial = as_index(self.running.lanes[chosen]), count, True
        return count > 0

    # Computing

    def _compute(self, step: Step) -> None:
        """An instruction that reads and writes registers only."""
        self.machine.report.instructions += self.width
        if self.dense and not self.partial:
            self.index, self.width = None, self.residents.lanes
        self.shape = (self.width,)
        inputs = [operand.read(self) for operand in step.reads]
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
        with self.elsewhere(frame, lanes):
            self.deliver(step, result)

    def put(self, slot: int, value: np.ndarray) -> None:
        """Writes a register for the current lanes."""
        if value.shape != self.shape or len(self.shape) > 1:
            value = self._one_axis(value)
        index = self.index
        if self.kept is not None:
            value, index = value[self.kept], as_index(self.lanes_now[self.kept])
        self.frame.put(slot, value, index, not self.dense or self.partial or self.kept is not None)

    def _one_axis(self, value: np.ndarray) -> np.ndarray:
        """A result with its lanes along one axis; what is the same for all is repeated."""
        if len(self.shape) > 1:
            return value.reshape(-1, *value.shape[len(self.shape) :])
        return value if value.ndim and len(value) == self.width else np.broadcast_to(value, self.shape)

    def _tainted(self, slots: Sequence[int]) -> np.ndarray | None:
        """The lanes in which one of the registers was never written; None if there are none."""
        flags = [self.frame.undefined[slot] for slot in slots if slot in self.frame.undefined]
        if not flags:
            return None
        found = flags[0] if len(flags) == 1 else np.logical_or.reduce(flags)
        return found if found[self.lanes_now].any() else None

    def _taint(self, slots: Sequence[int], tainted: np.ndarray) -> None:
        """What is computed from registers that were never written counts as never written."""
        lanes = self.lanes_now
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
            bad = flags[self.lanes_now]
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
        inputs = [operand.read(self) for operand in step.reads]
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
            self.aim(meeting.index)
            self.shape, self.active, self.kept = (meeting.warps, WARP), meeting.active, meeting.kept
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
        inputs = [shaped(operand.read(self), meeting.warps) for operand in step.reads]
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
        group = self.running
        stay = np.zeros(self.residents.lanes, bool)
        stay[group.lanes] = True
        for lanes in self.departed:
            stay[lanes] = False
        self.departed = []
        rest = np.flatnonzero(stay)
        if rest.size:
            self.scheduler.add(Group(self.frame, self.pc, rest, group.turns))
        self.group = None
