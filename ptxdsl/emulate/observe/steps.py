"""The executed steps of some threads, for `report.trace(thread)`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import ir
from ..report import ExecutedStep, Finding, Thread
from ..run.decode import Decoded
from ..run.frames import Frame
from ..run.machine import Machine
from ..run.view import MachineView, decoded
from ..threads import StepTraces, Threads


class StepRecorder:
    """Records the steps of threads and the registers that they write. `wanted` is None for all threads."""

    def __init__(self, launch: Threads, wanted: Sequence[Thread] | None) -> None:
        self.launch, self.threads = launch, None if wanted is None else tuple(dict.fromkeys(wanted))
        self.steps: dict[Thread, list[ExecutedStep]] = {}
        self._pending: list[tuple[Thread, Frame, int, bool]] = []
        self._last: dict[Thread, tuple[Frame, int]] = {}

    def attach(self, machine: Machine) -> None:
        self.machine, self.view = machine, MachineView(machine)
        machine.report.traces = StepTraces(self.launch, self.steps, self.threads)

    def before(self, step: Decoded, lanes: np.ndarray) -> None:
        self._finish_pending()
        x = self.machine.processor
        count = len(step.batch.steps) if step.batch is not None else 1
        for thread, lane in self._among(lanes):
            runs = self._runs(step, x.frame, lane)
            if self._last.get(thread) == (x.frame, x.pc - 1) and step.collective:
                self._forget(thread, count)  # it waited for other threads and runs again
            self._last[thread] = x.frame, x.pc - 1
            self._pending += [(thread, x.frame, x.pc - 1 + number, runs) for number in range(count)]

    def on_finding(self, finding: Finding) -> None:
        """Do nothing: findings are in the report."""

    def ended(self) -> None:
        self._finish_pending()

    def _among(self, lanes: np.ndarray) -> list[tuple[Thread, int]]:
        if self.threads is None:
            return [(self.view.thread(int(lane)), int(lane)) for lane in lanes]
        known = [(thread, self.view.lane(thread)) for thread in self.threads]
        present = set(lanes.tolist())
        return [(thread, lane) for thread, lane in known if lane is not None and lane in present]

    def _runs(self, step: Decoded, frame: Frame, lane: int) -> bool:
        """True if the guard of a step holds for a lane."""
        if step.guard is None:
            return True
        register = frame.registers[step.guard.slot]
        return register is not None and bool(register[lane]) != step.guard.negated

    def _forget(self, thread: Thread, count: int) -> None:
        del self.steps[thread][-count:]

    def _finish_pending(self) -> None:
        """Record the registers that the last steps have written."""
        pending, self._pending = self._pending, []
        for thread, frame, pc, runs in pending:
            step = frame.code.steps[pc]
            results = self._results(thread, frame, step) if runs else ()
            self.steps.setdefault(thread, []).append(ExecutedStep(step.location, str(step.instruction), results, runs))

    def _results(self, thread: Thread, frame: Frame, step: Decoded) -> tuple[tuple[str, object], ...]:
        lane = self.view.lane(thread)
        if lane is None or step.op.late:  # the results of wgmma appear after the wait
            return ()
        registers: list[ir.Register] = frame.code.slots.registers
        written = [slot for slot in step.outputs if self.view.written(frame, slot, lane)]
        return tuple(
            (registers[slot].name, _one(decoded(self.view.raw(frame, slot, lane), registers[slot].type)))
            for slot in written
        )


def _one(values: tuple[object, ...]) -> object:
    return values[0] if len(values) == 1 else values
