"""A launch that can be stopped: it runs in a thread of its own, which waits at each stop."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.debug.inspection import Inspection, SharedContent, Value
from ptxdsl.debug.lines import CodeLines, Line, innermost, outermost
from ptxdsl.driver import Late
from ptxdsl.emulate.report import Finding, Report, Thread
from ptxdsl.emulate.run.core import Abort
from ptxdsl.emulate.run.decode import Decoded, decode
from ptxdsl.emulate.run.machine import Machine
from ptxdsl.emulate.threads import ThreadName, Threads
from ptxdsl.errors import Error, Location, public
from ptxdsl.kernel import Kernel
from ptxdsl.trace.named import PythonNames

if TYPE_CHECKING:
    from ptxdsl.runtime import emulation
    from ptxdsl.runtime.emulation import EmulatorCall
else:
    emulation = Late("ptxdsl.runtime.emulation")

FIRST = Thread((0, 0, 0), (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason and place of a stop.

    `reason` is 'start', 'line', 'step', 'finding', 'ended' (the stepped thread has ended), 'interrupt' or 'end' (the
    launch has ended). `thread` is the thread in focus, `location` and `instruction` its next instruction, and `finding`
    the finding, if it is the reason. `count` threads are at the same instruction.
    """

    reason: str
    thread: Thread
    location: Location | None = None
    instruction: str = ""
    count: int = 0
    finding: Finding | None = None

    @property
    def is_end(self) -> bool:
        return self.reason == "end"

    def __str__(self) -> str:
        if self.finding is not None:
            return str(self.finding)
        if self.is_end:
            return "the launch has ended"
        if self.reason == "ended":
            return f"{self.thread} has ended"
        others = f" and {self.count - 1} more" * (self.count > 1)
        excerpt = self.location.excerpt() if self.location is not None else "  (no line)"
        return f"{excerpt}\n  {self.instruction}\n  {self.thread}{others}"


@dataclass(frozen=True, slots=True)
class LineBreak:
    """A breakpoint at a line, for every thread or for one."""

    number: int
    line: Line
    steps: frozenset[int]
    thread: Thread | None = None

    def __str__(self) -> str:
        who = f", {self.thread}" if self.thread is not None else ""
        return f"{self.number}: {os.path.basename(self.line[0])}:{self.line[1]}{who}"


Goal = Callable[[Decoded, np.ndarray], bool]
"""A predicate: True if the launch has reached the end of a step."""


class Debugger:
    """A launch on the emulator that can be stopped. Use it in a `with`, or `close` it.

    It is stopped at its first instruction. `focus` is the thread that is stepped and shown; at a breakpoint, the thread
    that reached it. Arrays are written when the launch has ended without findings.
    """

    def __init__(self, call: EmulatorCall, names: Callable[[], PythonNames]) -> None:
        self.call, self.names = call, cache(names)
        self.threads = Threads(call.shape.grid, call.shape.block)
        functions = [f for f in call.variant.read.functions if f is call.variant.function or f.kind == "func"]
        self.lines = CodeLines.of(call.variant.name, [decode(f) for f in functions if f.body is not None])
        self.focus = FIRST
        self.breaks: list[LineBreak] = []
        self.stops_at_findings = True
        self.report: Report | None = None
        self._numbers = 0
        self._goal: Goal | None = lambda step, lanes: True
        self._reason = "start"
        self._interrupted = self._closed = False
        self._stops: queue.SimpleQueue[Stop | BaseException] = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[None] = queue.SimpleQueue()
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name="ptxdsl debug", daemon=True)
        self._thread.start()
        self.stop = self._wait()

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Control

    @public
    def stop_at(self, position: str | int, thread: ThreadName | None = None) -> LineBreak:
        """Stop where threads, or one of them, reach a line: 12 in the file of the kernel, or "file.py:12".

        Raises Error for a line without code.
        """
        named = None if thread is None else self.threads.named(thread, "thread")
        line = self.lines.find(position, self._file())
        self._numbers += 1
        self.breaks.append(LineBreak(self._numbers, line, self.lines.starts[line], named))
        return self.breaks[-1]

    @public
    def clear(self, number: int | None = None) -> None:
        """Remove a breakpoint, or all of them. Raises Error for an unknown number."""
        if number is not None and number not in [each.number for each in self.breaks]:
            known = ", ".join(str(each.number) for each in self.breaks)
            raise Error(f"there is no breakpoint {number}", help=f"there is {known}" if known else "there is none")
        self.breaks = [each for each in self.breaks if number not in (None, each.number)]

    @public
    def select(self, thread: ThreadName) -> Thread:
        """Select the thread that is shown and stepped."""
        self.focus = self.threads.named(thread, "thread")
        return self.focus

    @public
    def resume(self) -> Stop:
        """Run to a breakpoint, a finding or the end."""
        return self._go("line", None)

    @public
    def step(self) -> Stop:
        """Run until the thread in focus reaches another line, which may be in a function that it calls."""
        return self._step_lines(innermost)

    @public
    def next(self) -> Stop:
        """Run until the thread in focus reaches another line of the kernel itself."""
        return self._step_lines(outermost)

    @public
    def step_instruction(self) -> Stop:
        """Run until the thread in focus reaches its next instruction."""
        return self._go("step", self._in_focus)

    def interrupt(self) -> None:
        """Stop the launch at its next step. Call it from another Python thread or a signal handler."""
        self._interrupted = True

    def close(self) -> None:
        """End the launch now; its arrays stay unchanged."""
        if not self.stop.is_end:
            self._closed = True
            self._orders.put(None)
            self._thread.join()
            self.stop = Stop("end", self.focus)

    # Inspection

    @property
    def inspection(self) -> Inspection:
        """The registers and the memory of the stopped launch. Raises Error once it has ended."""
        if self.stop.is_end:
            raise Error("the launch has ended: there are no registers any more", help="start it anew, and stop earlier")
        return Inspection(self.machine, self.call.variant, self.names)

    @public
    def value(self, name: str, thread: ThreadName | None = None, type: str | None = None) -> Value:
        """Return the value of a register of a thread, by its Python name (`total`) or PTX name (`%r3`).

        Of several registers with one Python name, it is the one written last. `type` reinterprets the bits: "f16x2".
        Raises Error for an unknown name, and for a register that the thread has not written.
        """
        return self.inspection.value(name, self._named(thread), type)

    @public
    def warp(self, name: str, thread: ThreadName | None = None, type: str | None = None) -> list[Value | None]:
        """Return the values of a register in the 32 lanes of a thread's warp; None where a lane has not written it."""
        return self.inspection.warp(name, self._named(thread), type)

    @public
    def shared(self, name: str, thread: ThreadName | None = None) -> SharedContent:
        """Return an array in the shared memory of a thread's block through its layout, or a part of it:
        `shared("tile[0:8, 3]")`.

        Raises Error for an unknown array or an invalid part.
        """
        return self.inspection.shared(name, self._named(thread))

    @public
    def where(self) -> list[str]:
        """Return the state of all threads, a line of text for the threads at one instruction."""
        return self.inspection.where()

    def _named(self, thread: ThreadName | None) -> Thread:
        return self.focus if thread is None else self.threads.named(thread, "thread")

    def _file(self) -> str | None:
        return self.stop.location.chain()[-1].file if self.stop.location is not None else None

    # The two Python threads

    def _go(self, reason: str, goal: Goal | None) -> Stop:
        if self.stop.is_end:
            raise Error("the launch has ended", help="start it anew")
        self._goal, self._reason = goal, reason
        self._orders.put(None)
        self.stop = self._wait()
        return self.stop

    def _wait(self) -> Stop:
        while True:
            try:
                stop = self._stops.get()
                break
            except KeyboardInterrupt:
                self.interrupt()
        if isinstance(stop, BaseException):
            self.stop = Stop("end", self.focus)
            raise stop
        return stop

    def _run(self) -> None:
        try:
            self.report = self.call.run([self])
            self._stops.put(Stop("end", self.focus))
        except BaseException as error:  # any exception must reach the thread that waits for a stop
            self._stops.put(error)

    def _stand(self, stop: Stop) -> None:
        """Wait until the launch may continue."""
        self._interrupted = False
        self._stops.put(stop)
        self._orders.get()
        if self._closed:
            self.machine.report.findings[:] = [Finding("closed", "the launch was not run to its end")]
            raise Abort

    # Called by the machine

    def attach(self, machine: Machine) -> None:
        self.machine = machine

    def before(self, step: Decoded, lanes: np.ndarray) -> None:
        reason = self._why_here(step, lanes)
        if reason:
            at = next(iter(step.location.chain()), None) if step.location is not None else None
            self._stand(Stop(reason, self.focus, at, str(step.instruction), len(lanes)))

    def on_finding(self, finding: Finding) -> None:
        if self.stops_at_findings:
            self.focus = finding.threads[0] if finding.threads else self.focus
            at = finding.locations[0] if finding.locations else None
            self._stand(Stop("finding", self.focus, at, finding=finding))

    def ended(self) -> None:
        """Store the report."""

    def _why_here(self, step: Decoded, lanes: np.ndarray) -> str:
        if self._interrupted:
            self._look_at(lanes)
            return "interrupt"
        if self._goal is not None and self._goal(step, lanes):
            return self._reason
        lane = Inspection.lane_of(self.machine, self.focus) if self._reason == "step" else None
        if lane is not None and not self.machine.processor.alive[lane]:
            return "ended"
        for each in self.breaks:
            if id(step) in each.steps and self._comes(each, lanes):
                return "line"
        return ""

    def _comes(self, line: LineBreak, lanes: np.ndarray) -> bool:
        """True if a thread that a breakpoint is for arrives; that thread comes into focus."""
        if line.thread is None:
            if not self._has_focus(lanes):
                self._look_at(lanes)
            return True
        lane = Inspection.lane_of(self.machine, line.thread)
        if lane is None or not _holds(lanes, lane):
            return False
        self.focus = line.thread
        return True

    def _look_at(self, lanes: np.ndarray) -> None:
        self.focus = self.machine.residents.name(int(lanes[0]))

    def _has_focus(self, lanes: np.ndarray) -> bool:
        lane = Inspection.lane_of(self.machine, self.focus)
        return lane is not None and _holds(lanes, lane)

    def _in_focus(self, step: Decoded, lanes: np.ndarray) -> bool:
        return self._has_focus(lanes)

    def _step_lines(self, line_of: Callable[[Location | None], Line | None]) -> Stop:
        first = self.inspection.standing(self.focus)
        start = line_of(first.step.location) if first is not None else None

        def goal(step: Decoded, lanes: np.ndarray) -> bool:
            return self._has_focus(lanes) and line_of(step.location) != start

        return self._go("step", goal)


def _holds(lanes: np.ndarray, lane: int) -> bool:
    index = int(np.searchsorted(lanes, lane))
    return index < len(lanes) and int(lanes[index]) == lane


@public
def debug(
    kernel: object,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: object,
    shared_bytes: int | None = None,
    checks: bool = True,
    overlap: bool = False,
    schedule: str | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    cluster: int | tuple[int, ...] | None = None,
    **constants: object,
) -> Debugger:
    """Return a launch on the emulator that is stopped at its first instruction, to be stepped and inspected.

    Takes the arguments of `pd.emulate`. Raises LaunchError for arguments that do not fit.
    """
    call = emulation.emulator_call(
        "pd.debug", kernel, grid, block, arguments, shared_bytes=shared_bytes, checks=checks, overlap=overlap,
        schedule=schedule, max_steps=max_steps, max_seconds=max_seconds, cluster=cluster, constants=constants,
    )  # fmt: skip
    if not isinstance(kernel, Kernel):  # PTX has no Python names
        return Debugger(call, PythonNames)
    return Debugger(call, partial(kernel.python_names, call.variant.arch, constants))
