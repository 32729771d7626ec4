"""The state of a launch: its memory, lanes, frames and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np

from ... import config, ir
from ...errors import EmulationError, Location
from ...notes import KernelNotes
from ..asynchronous.bulk import BulkCopies
from ..asynchronous.copies import CopyQueue
from ..asynchronous.products import ProductQueue
from ..asynchronous.remote import RemoteStores
from ..asynchronous.tensor_memory import TensorMemory
from ..memory.access import Requester
from ..memory.phase_counts import PhaseCounts
from ..memory.regions import Region, Table, spread
from ..memory.spaces import FRAME_PARAMETERS, Memory
from ..observe.races.beside import GridBeside
from ..observe.traffic import TrafficCounter
from ..report import SHOWN_THREADS, Degree, Finding, Index, Report
from .barriers import Barriers
from .cluster_barriers import ClusterBarriers
from .decode import Code, Decoded
from .frames import Frame
from .program import Program, allocation
from .registers import RegisterPool
from .residents import ONE, Residents
from .scheduler import Scheduler
from .schedules import schedule
from .special import changes, special_register
from .watching import Watcher

MULTIPROCESSORS = 132  # of an H200
LOCAL_ZONE = 16
STEPS_BETWEEN_LOOKS = 1024  # of the clock
_LONGER = "raise max_steps or max_seconds, or set PTXDSL_STEPS or PTXDSL_SECONDS"
STEPS_AFTER_ERROR = 100_000  # after an error a kernel may never end
WITHOUT_CHECKS = frozenset({
    "out-of-bounds", "misaligned", "read-only", "cluster", "tensor-map", "tensor-memory", "divergent-collective",
    "deadlock", "call", "assert", "trap", "limit",
})  # fmt: skip
"""The kinds of findings that a launch without checks reports: what a GPU, or the emulator, cannot carry out."""


class Abort(Exception):
    """Raised to end the kernel at once."""


class FirstFinding(Exception):
    """Raised at the first error if no others are wanted."""


@dataclass(frozen=True, slots=True)
class EmulatedLaunch:
    """The parameters of a launch.

    `shared` are the allocations of a block, `addresses` those of module variables and parameters, `workspace` the
    address of the memory that the driver gives to a grid. `cluster` is None for a launch without clusters. `watchers`
    are called before each step. `beside` is the previous grid if it may still be running. `notes` returns the facts
    about the kernel that its PTX lacks, for messages. With `strict`, strict findings are errors. A limit of seconds
    counts from `started`.
    """

    program: Program
    grid: Index
    block: Index
    addresses: dict[ir.Variable, int]
    shared: Table
    shared_bytes: int
    dynamic_bytes: int
    workspace: int
    checks: bool = True
    resident: int | None = None
    only_first: bool = False
    traffic: bool = False
    cluster: Index | None = None
    watchers: Sequence[Watcher] = ()
    beside: GridBeside | None = None
    notes: Callable[[], KernelNotes] = KernelNotes
    strict: bool = True
    started: float = field(default_factory=monotonic)


class Core:
    """The state of one launch. `clock` counts steps, and `blocks` is the ordinal of the next block to start.

    `denied` has the clusters whose request to cancel another one failed, with the number of the copy of the answer.
    """

    multiprocessors = MULTIPROCESSORS
    residents: Residents
    scheduler: Scheduler
    barriers: Barriers
    cluster_barriers: ClusterBarriers
    copies: CopyQueue
    remote: RemoteStores
    products: ProductQueue
    pool: RegisterPool
    traffic: TrafficCounter | None = None
    tensor: TensorMemory | None = None  # of kernels with tcgen05 instructions
    entry: Frame

    def __init__(self, launch: EmulatedLaunch, memory: Memory) -> None:
        self.launch, self.memory, self.program = launch, memory, launch.program
        self.bulk = BulkCopies(memory, launch.shared_bytes)
        self.checks, self.shared_bytes = launch.checks, launch.dynamic_bytes
        self.total_shared_bytes = sum(v.bytes for v in self.program.of_space("shared")) + launch.dynamic_bytes
        reserved = self.program.reserved
        self.reserved = launch.addresses[reserved] if reserved else 0
        settings = config.current()
        self.workspace, self.numerics = launch.workspace, settings.numerics
        self.cluster, self.explicit_cluster = launch.cluster or ONE, launch.cluster is not None
        self.total, self.each = int(np.prod(launch.grid)), int(np.prod(self.cluster))
        self.blocks = 0
        self.denied: dict[int, int] = {}
        self.schedule = schedule(settings.schedule)
        self.report, self.phases = Report(), PhaseCounts()
        self._reported: dict[tuple[str, Degree, int], int] = {}
        self.racy: set[int] = set()
        self.reached: set[int] = set()
        self.clock, self.last_step = 0, float("inf")
        self.most_steps, self.most_seconds = settings.steps, settings.seconds
        self.started, self.pause = launch.started, 0.0
        self._special: dict[str, np.ndarray] = {}

    def settle(self, residents: Residents) -> None:
        """Start with other residents, which have fresh shared and local memory."""
        self.residents = residents
        self._special.clear()
        stride = self.launch.shared_bytes
        spaces, r = self.memory.spaces, residents
        spaces["shared"] = Region(self.launch.shared, stride, r.slots, r.slot * stride, self.checks)
        spaces["local"] = Region(Table([]), 0, r.lanes, r.all * 0, self.checks)
        if self.program.reserved:  # the system clears its part
            spaces["shared"].clear(self.reserved, self.program.reserved.bytes)

    # Blocks

    def next_blocks(self, count: int) -> np.ndarray:
        """Return the ordinals of the next blocks."""
        first, self.blocks = self.blocks, min(self.total, self.blocks + count)
        return np.arange(first, self.blocks)

    def cancel_clusters(self, x: Requester, lanes: np.ndarray) -> np.ndarray:
        """Cancel one cluster for each lane, and return the coordinates of its first block; -1 where none is left."""
        first = np.full((len(lanes), 3), -1)
        again = np.zeros(len(lanes), bool)
        in_flight = {load.serial for load in self.bulk.loads}
        for n, lane in enumerate(lanes):
            cluster = int(self.residents.ordinals[self.residents.slot[lane]]) // self.each
            again[n] = cluster in self.denied and self.denied[cluster] not in in_flight
            if self.blocks < self.total:
                first[n] = self.residents.numbered(int(self.next_blocks(self.each)[0]), 0).block
            else:
                self.denied.setdefault(cluster, self.bulk.issued)
        if again.any():
            message = f"{x.name} is executed after an earlier request of its cluster has failed"
            x.finding("cluster", message, again, help="leave the loop when `is_canceled` is false")
        return first

    # Frames and addresses

    def new_frame(self, code: Code, parent: Frame | None, site: int) -> Frame:
        """Return a frame, with room for its variables in the memory of each lane."""
        base = parent.end if parent else 0
        frame = Frame(code, self.residents.lanes, parent, site)
        variables = [v for v in code.variables if v.space in ("local", "param") and v not in self.launch.addresses]
        offsets, frame.end = spread([(v.bytes, max(16, v.align or 1)) for v in variables], LOCAL_ZONE, base)
        for variable, offset in zip(variables, offsets, strict=True):
            frame.addresses[variable] = offset + (FRAME_PARAMETERS if variable.space == "param" else 0)
        local = self.memory.spaces["local"]
        if frame.end > local.stride:
            self.memory.spaces["local"] = local = local.widened(frame.end, self.residents.all)
        allocations = [allocation(v, p, p) for v, p in zip(variables, offsets, strict=True)]
        frame.table = Table([*(parent.table.allocations if parent else ()), *allocations])
        return frame

    def address_of(self, target: ir.Variable | ir.Function | ir.Symbol) -> int:
        """Return the address of a module variable, a kernel parameter or a function."""
        if isinstance(target, ir.Function):
            return self.program.code_address(target)
        if isinstance(target, ir.Variable) and target in self.launch.addresses:
            return self.launch.addresses[target]
        raise EmulationError(
            f"{target.name} is declared but not defined", help="link the module that defines it, or run on a GPU"
        )

    def special(self, name: str) -> np.ndarray:
        """Return a special register of all lanes."""
        if changes(name):
            return special_register(self, self.residents, name)
        if name not in self._special:
            self._special[name] = special_register(self, self.residents, name)
        return self._special[name]

    # Limits

    def look_up(self, step: Decoded, lanes: np.ndarray) -> None:
        """Call the watchers before a step, end the launch if it exceeds a limit, and set the next time to check.

        With watchers every step is checked.
        """
        for watcher in self.launch.watchers:
            watcher.before(step, lanes)
        if self.clock > self.last_step:
            raise Abort
        limit = ""
        if self.most_steps is not None and self.clock > self.most_steps:
            limit = f"{self.most_steps} steps"
        elif self.most_seconds is not None and monotonic() - self.started > self.most_seconds:
            limit = f"{self.most_seconds:g} seconds"
        if limit:
            self.find("limit", f"stopped after {limit}, at {step.opcode.text}", step, lanes, help=_LONGER)
            raise Abort
        self.pause = min(self.last_step, self.clock + STEPS_BETWEEN_LOOKS)
        if self.most_steps is not None:
            self.pause = min(self.pause, self.most_steps)
        if self.launch.watchers:
            self.pause = self.clock

    # Findings

    def find(
        self,
        kind: str,
        message: str,
        step: Decoded | None,
        lanes: np.ndarray,
        others: Sequence[Location] = (),
        help: str = "",
        strict: bool = False,
    ) -> int:
        """Add a finding, and return its number; an instruction is reported once for each kind and degree.

        A `strict` finding is not an error, unless the launch is strict.
        """
        if not self.checks and (strict or kind not in WITHOUT_CHECKS):
            return -1
        degree = Degree.STRICT if strict and not self.launch.strict else Degree.ERROR
        key = kind, degree, id(step)
        if key in self._reported:
            return self._reported[key]
        number = self._reported[key] = len(self.report.findings)
        origin = [step.location] if step is not None and step.location is not None else []
        locations = tuple(dict.fromkeys([*origin, *others]))
        first = self._in_order(lanes)[:SHOWN_THREADS]
        threads = tuple(self.residents.name(int(lane)) for lane in first)
        self.report.findings.append(Finding(kind, message, locations, threads, len(lanes), help, degree))
        for watcher in self.launch.watchers:
            watcher.on_finding(self.report.findings[-1])
        if degree is Degree.STRICT:
            return number
        if self.launch.only_first:
            raise FirstFinding
        if self.checks:
            self.last_step = min(self.last_step, self.clock + STEPS_AFTER_ERROR)
        self.pause = min(self.pause, self.last_step)
        return number

    def note_discarded(self) -> None:
        """Say in the findings of races which read a value that the value reached no output."""
        for number in self.racy - self.reached:
            finding = self.report.findings[number]
            self.report.findings[number] = replace(finding, message=f"{finding.message}; the value reaches no output")

    def _in_order(self, lanes: np.ndarray) -> np.ndarray:
        """Sort lanes by block, then thread."""
        r = self.residents
        return lanes[np.lexsort((r.thread[lanes], r.blocks[r.slot[lanes]]))]
