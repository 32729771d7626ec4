"""The processor: runs groups of lanes instruction by instruction, and implements `isa.step.Step`."""

from __future__ import annotations

import numpy as np

from ...errors import EmulationError
from ..memory.access import Convergence
from .calls import Calls
from .core import Core
from .decode import Batch, Decoded
from .flow import Flow
from .frames import as_index
from .meetings import Meeting, meetings, shaped
from .residents import WARP
from .scheduler import Group


class Processor(Flow):
    """Runs one group at a time."""

    def __init__(self, machine: Core) -> None:
        super().__init__(machine)
        self.calls = Calls(machine, self)

    # Running

    def run(self, group: Group) -> None:
        """Run a group until it waits, ends, splits or merges with others; errors name the instruction."""
        self._enter(group)
        try:
            self._advance(group)
        except EmulationError as error:
            error.at = error.at or self.step.location
            raise
        except Exception as error:
            error.add_note(f"while `{self.step.instruction}` was emulated ({self.step.location})")
            raise

    def _advance(self, group: Group) -> None:
        turn = self.scheduler.schedule.turn()
        end = self.machine.clock + turn if turn is not None else float("inf")
        while self.group is group:
            self.step = step = self.steps[self.pc]
            self.pc += 1
            self.machine.clock += 1
            if self.machine.clock > self.machine.pause:
                self.machine.look_up(step, group.lanes)
            if step.guard is None:
                self.index, self.width, self.partial = self.group_index, self.group_width, False
                self._perform(step)
            elif self._select(step):
                self._perform(step)
            if (self.pc in self.stops or self.machine.clock >= end) and self.group is group:
                self.yield_to_others()

    def _enter(self, group: Group) -> None:
        self.group, self.group_width = group, len(group.lanes)
        self.whole = self.group_width == self.residents.lanes
        self.dense = self.group_width == self.living
        self.group_index = None if self.whole else as_index(group.lanes)
        self.stand(group.frame, group.pc)

    def _perform(self, step: Decoded) -> None:
        if step.refusal is not None:
            raise step.refusal
        if step.touched:
            self.touch(step)
        if step.collective:
            self._meet(step)
        elif step.effect:
            self._effect(step)
        else:
            self._compute(step)

    def _select(self, step: Decoded) -> bool:
        """Restrict the instruction to the lanes whose guard holds; return False if there are none."""
        assert step.guard is not None
        self.index, self.width, self.partial = self.group_index, self.group_width, False
        chosen = step.guard.read(self)
        self.refuse_undefined((step.guard.slot,))
        count = int(np.count_nonzero(chosen))
        if count == self.width:
            return True
        if step.ignores_guard:
            self._report_ignored_guard(step, self.running.lanes[~chosen])
        self.index, self.width, self.partial = as_index(self.running.lanes[chosen]), count, True
        return count > 0

    def _report_ignored_guard(self, step: Decoded, lanes: np.ndarray) -> None:
        """Report lanes whose guard is false and whose destination a GPU writes all the same."""
        message = (
            f"{step.opcode.text} is guarded, and ptxas 13 writes its destination in threads whose guard is false; the "
            "emulator leaves it"
        )
        help = f"write `{step.opcode.text}` to a new register without the guard, and select with selp"
        if step.opcode.form.name == "testp":
            help = "write a new predicate without the guard, and copy it with a guarded mov.pred"
        self.machine.find("guard", message, step, lanes, help=help, strict=True)

    # Computing

    def _compute(self, step: Decoded) -> None:
        """Execute an instruction that reads and writes registers only."""
        self.count(step, self.width)
        if self.dense and not self.partial:
            self.index, self.width = None, self.residents.lanes
        self.shape = (self.width,)
        inputs = [operand.read(self) for operand in step.reads]
        tainted = self.tainted(step.inputs) if self.frame.undefined else None
        if tainted is not None and step.op.selects:
            tainted = self.selected(step, inputs, tainted)
        run = step.op.run_h200 if self.numerics == "h200" else step.op.run
        self.deliver(step, run(step.opcode, *inputs))
        if tainted is not None:
            self.taint(step.outputs, *tainted)

    # Effects

    def _effect(self, step: Decoded) -> None:
        """Execute an instruction that accesses the machine."""
        self.shape = (self.width,)
        self.count(step, self.width)
        inputs = [operand.read(self) for operand in step.reads]
        self.refuse_undefined(step.decisive)
        carried = self.carried_by(step)
        self.carried = None if carried is None else carried.lanes
        result = step.op.execute(step.opcode, self, *inputs)
        if result is not None:
            self.deliver(step, result)
            if self.unwritten is not None:
                self.hand_on(step, carried)
        self.kept = self.unwritten = None
        if self.departed:
            self._settle()

    def _meet(self, step: Decoded) -> None:
        """Execute an instruction that the lanes of a warp run together, for the warps that are complete."""
        for meeting in meetings(self, step):
            self.aim(meeting.index)
            self.shape, self.active, self.kept = (meeting.warps, WARP), meeting.active, meeting.kept
            if step.op.orders_lanes:
                self.order(Convergence(meeting.rows, meeting.active))
            for each in step.batch.steps if step.batch else (step,):
                self.count(each, meeting.count)
            if step.batch is not None:
                self._run_batch(step.batch)
            else:
                self._run_meeting(step, meeting)
            self.kept = None
        if step.batch is not None:
            self.pc += len(step.batch.steps) - 1
        if self.departed:
            self._settle()

    def _run_meeting(self, step: Decoded, meeting: Meeting) -> None:
        inputs = [shaped(operand.read(self), meeting.warps) for operand in step.reads]
        self.refuse_undefined(step.decisive, self.active)
        carried = self.carried_by(step)
        self.carried = None if carried is None else carried.lanes
        result = step.op.execute(step.opcode, self, *inputs)
        if result is not None:
            self.deliver(step, result)
            if carried is not None and step.op.exchanges:
                self.exchanged(step, inputs, carried)
            elif carried is not None or self.unwritten is not None:
                self.hand_on(step, carried)

    def _run_batch(self, batch: Batch) -> None:
        first = batch.steps[0]
        warps = self.shape[0]
        self.batch, self.shape = batch, (len(batch.steps), warps, WARP)
        values = [batch.stack(self, n, warps) for n in range(len(batch.reads))]
        self.refuse_undefined([slot for step in batch.steps for slot in step.decisive], self.active)
        carried = [self.carried_by(step) for step in batch.steps] if self.frame.undefined else []
        self.carried = None
        results = first.op.execute_batch(first.opcode, self, values, batch.index)
        self.shape, self.batch = (warps, WARP), None
        if results is None:
            return
        for number, step in enumerate(batch.steps):
            several = isinstance(results, tuple)
            results_of_one = [r[..., number, :, :] for r in results] if several else results[..., number, :, :]
            self.deliver(step, results_of_one)
        if self.unwritten is not None or any(taint is not None for taint in carried):
            unwritten = self.unwritten
            for step, taint in zip(batch.steps, carried or [None] * len(batch.steps), strict=True):
                self.unwritten = unwritten
                self.hand_on(step, taint)

    def _settle(self) -> None:
        """Make the rest of the group ready at its current step after some lanes have left."""
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
