"""The machine: launches blocks, schedules their lanes, and ends when all have ended or none can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import ir
from ..errors import EmulationError, Location
from .barriers import Barriers
from .circles import Circles
from .copies import Copies
from .deadlock import report_deadlock
from .decode import Code, Step, decode
from .flow import Abort
from .frames import Frame
from .joint import meet_elsewhere
from .memory import FRAME_PARAMETERS, Memory
from .processor import Processor
from .program import Program, allocation
from .regions import Region, Table, spread
from .report import SHOWN_THREADS, Finding, Index, Report
from .residents import Residents
from .scheduler import ROUNDS_BEFORE_OTHERS, Group, Scheduler
from .special import changes, special_register

LANES = 8192
"""Lanes that run together: more make an instruction cheaper for each, until arrays leave the cache."""
MULTIPROCESSORS, THREADS_EACH, BLOCKS_EACH, SHARED_EACH = 132, 2048, 32, 228 << 10  # of an H200
LOCAL_ZONE = 16
STEPS_AFTER_FINDING = 100_000  # a kernel that went wrong may run for ever


class Found(Exception):
    """The first finding was made, and no more are wanted."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched.

    `shared` are the allocations of a block, `places` the addresses of module variables and parameters, `workspace` the
    address of memory that the driver gives to a grid.
    """

    program: Program
    grid: Index
    block: Index
    places: dict[ir.Variable, int]
    shared: Table
    shared_bytes: int
    dynamic_bytes: int
    workspace: int
    checks: bool = True
    resident: int | None = None
    only_first: bool = False


class Machine:
    """One launch. `blocks` is the number of the next block to start."""

    multiprocessors = MULTIPROCESSORS

    def __init__(self, launch: Launch, memory: Memory) -> None:
        self.launch, self.memory, self.program = launch, memory, launch.program
        self.checks, self.shared_bytes = launch.checks, launch.dynamic_bytes
        self.total_shared_bytes = sum(v.bytes for v in self.program.of_space("shared")) + launch.dynamic_bytes
        self.report = Report()
        self._found: set[tuple[str, int]] = set()
        self.clock, self.last_step = 0, float("inf")
        self.total = int(np.prod(launch.grid))
        self.blocks = 0
        self._special: dict[str, np.ndarray] = {}

    def run(self) -> Report:
        """Runs all blocks. Raises Found with `only_first`, EmulationError for what cannot be emulated."""
        try:
            while self.blocks < self.total:
                self._start(self._next(self._batch()))
                self._finish()
        except Abort:
            pass
        except EmulationError as error:
            error.at = error.at or self.processor.step.location
            raise
        except Exception as error:
            step = self.processor.step
            error.add_note(f"while `{step.instruction}` was emulated ({step.location})")
            raise
        return self.report

    # Blocks

    def _batch(self) -> int:
        """How many blocks run together at first: a fair number of lanes, but no more than a GPU would hold."""
        threads = -(-int(np.prod(self.launch.block)) // 32) * 32
        return min(self._capacity(), max(1, LANES // threads))

    def _capacity(self) -> int:
        """How many blocks an H200 holds at once, by threads and shared memory; registers are not known here.

        Later blocks start, in order, when earlier ones end, or when those that run together wait.
        """
        if self.launch.resident is not None:
            return self.launch.resident
        threads = -(-int(np.prod(self.launch.block)) // 32) * 32
        shared = self.total_shared_bytes + 1024
        each = min(BLOCKS_EACH, THREADS_EACH // threads, SHARED_EACH // shared)
        return max(1, each) * MULTIPROCESSORS

    def _next(self, count: int) -> np.ndarray:
        """Numbers of the next blocks."""
        first, self.blocks = self.blocks, min(self.total, self.blocks + count)
        return np.arange(first, self.blocks)

    def _start(self, blocks: np.ndarray) -> None:
        """New blocks at the first step of the kernel."""
        self.residents = Residents(self.launch.grid, self.launch.block, blocks)
        self._special.clear()
        self._new_spaces()
        self.circles = Circles()
        self.scheduler, self.barriers = Scheduler(), Barriers(self.residents)
        self.copies = Copies(self.memory, self.residents.lanes)
        self.processor = Processor(self)
        self.entry = self.new_frame(decode(self.program.kernel), None, -1)
        self.scheduler.add(Group(self.entry, 0, self.residents.all[self.residents.exists]))

    def _new_spaces(self) -> None:
        shared, r = self.launch.shared, self.residents
        stride = self.launch.shared_bytes
        self.memory.spaces["shared"] = Region(shared, stride, r.slots, r.slot * stride, self.checks)
        self.memory.spaces["local"] = Region(Table([]), 0, r.lanes, r.all * 0, self.checks)

    def _finish(self) -> None:
        """Runs until all lanes that were started have ended."""
        while self.processor.living:
            if self.scheduler.weary:
                self._relieve()
            group = self.scheduler.take()
            if group is not None:
                self.circles.ran(group)
                self.processor.run(group)
            elif not self._stir():
                report_deadlock(self)
                raise Abort

    def _stir(self) -> bool:
        """When nothing is ready: what waits for memory, late copies, more blocks; whether anything can go on."""
        woken = self.scheduler.wake(self.memory.state) or self.copies.flush()
        return woken or meet_elsewhere(self.processor) or self._join()

    def _relieve(self) -> None:
        """Some go round in circles: what they may wait for gets its turn, though they could run on."""
        self.scheduler.weary = False
        if self.processor.rounds < ROUNDS_BEFORE_OTHERS:
            self._stir()
            return
        woken, met = self.scheduler.wake(self.memory.state), meet_elsewhere(self.processor)
        if self._join() or woken or met:
            self.processor.rounds = 0
        elif self.circles.closed(self) and not self.copies.flush():
            for group in self.scheduler.ready.values():
                group.circles = True
            report_deadlock(self)
            raise Abort

    def _join(self) -> bool:
        """Starts more blocks beside those that wait, if a GPU would have room for them."""
        r = self.residents
        alive = self.processor.living_warps() > 0
        room = min(self._capacity() - int(alive.sum()), len(alive))
        if self.blocks >= self.total or room <= 0:
            return False
        fresh = self._next(room)
        self._move(Residents(self.launch.grid, self.launch.block, np.append(r.blocks[alive], fresh)))
        started = self.residents.exists & (self.residents.blocks[self.residents.slot] >= fresh[0])
        self.processor.begin(started)
        self.scheduler.add(Group(self.entry, 0, self.residents.all[started]))
        return True

    def _move(self, new: Residents) -> None:
        """Blocks that have not ended go on among other residents: all that is kept for lanes and slots moves."""
        lanes, slots = new.moved(self.residents)
        old_lanes, old_slots = np.flatnonzero(lanes >= 0), np.flatnonzero(slots >= 0)
        shared, local = self.memory.spaces["shared"], self.memory.spaces["local"]
        self.residents, self.circles = new, Circles()
        self._special.clear()
        self._new_spaces()
        self.memory.spaces["shared"].adopt(shared, old_slots, slots[old_slots])
        self.memory.spaces["local"] = local.like(new.lanes, new.all)
        self.memory.spaces["local"].adopt(local, old_lanes, lanes[old_lanes])
        self.entry.resize(new.lanes, old_lanes, lanes[old_lanes])
        for group in [*self.scheduler.everyone(), *(w.group for w in self.barriers.waiting)]:
            group.lanes, group.loop = np.sort(lanes[group.lanes]), None
        self.barriers.move(new, old_slots, slots[old_slots])
        self.copies.move(lanes, slots, new.lanes, self.launch.shared_bytes)
        self.processor.move(new, old_lanes, lanes[old_lanes])

    # Frames and addresses

    def new_frame(self, code: Code, parent: Frame | None, site: int) -> Frame:
        """A frame, with room for its variables in each lane's memory."""
        base = parent.end if parent else 0
        frame = Frame(code, self.residents.lanes, parent, site)
        own = [v for v in code.variables if v.space in ("local", "param") and v not in self.launch.places]
        places, frame.end = spread([(v.bytes, max(16, v.align or 1)) for v in own], LOCAL_ZONE, base)
        for variable, place in zip(own, places, strict=True):
            frame.places[variable] = place + (FRAME_PARAMETERS if variable.space == "param" else 0)
        local = self.memory.spaces["local"]
        if frame.end > local.stride:
            self.memory.spaces["local"] = local = local.widened(frame.end, self.residents.all)
        mine = [allocation(v, p, p) for v, p in zip(own, places, strict=True)]
        frame.table = Table([*(parent.table.allocations if parent else ()), *mine])
        return frame

    def address_of(self, what: ir.Variable | ir.Function | ir.Symbol) -> int:
        """Where a module variable, a kernel parameter or a function lies."""
        if isinstance(what, ir.Function):
            return self.program.code_address(what)
        if isinstance(what, ir.Variable) and what in self.launch.places:
            return self.launch.places[what]
        raise EmulationError(
            f"{what.name} is declared but not defined", help="link the module that defines it, or run on a GPU"
        )

    def special(self, name: str) -> np.ndarray:
        """A special register for all lanes."""
        if changes(name):
            return special_register(self, self.residents, name)
        if name not in self._special:
            self._special[name] = special_register(self, self.residents, name)
        return self._special[name]

    # Findings

    def find(
        self,
        kind: str,
        message: str,
        step: Step | None,
        lanes: np.ndarray,
        others: Sequence[Location] = (),
        help: str = "",
    ) -> None:
        """Adds a finding; an instruction is reported once for each kind."""
        key = kind, id(step)
        if key in self._found:
            return
        self._found.add(key)
        own = [step.location] if step is not None and step.location is not None else []
        locations = tuple(dict.fromkeys([*own, *others]))
        first = self._in_order(lanes)[:SHOWN_THREADS]
        threads = tuple(self.residents.name(int(lane)) for lane in first)
        self.report.findings.append(Finding(kind, message, locations, threads, len(lanes), help))
        if self.launch.only_first:
            raise Found
        self.last_step = min(self.last_step, self.clock + STEPS_AFTER_FINDING)

    def _in_order(self, lanes: np.ndarray) -> np.ndarray:
        """Lanes by block, then thread."""
        r = self.residents
        return lanes[np.lexsort((r.thread[lanes], r.blocks[r.slot[lanes]]))]
