"""What an emulation found, and how it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ..errors import Error, Location

Index = tuple[int, int, int]
SHOWN_THREADS = 64
_HEADINGS = ("line", "instructions", "bytes", "wavefronts", "sectors")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread by its block in the grid and its place in the block, both (x, y, z)."""

    block: Index
    thread: Index

    def __str__(self) -> str:
        return f"thread {_index(self.thread)} of block {self.block_text}"

    @property
    def block_text(self) -> str:
        return _index(self.block)


def counted(count: int, noun: str) -> str:
    """'1 finding', '2 findings'."""
    return f"{count} {noun}{'s' * (count != 1)}"


def _index(index: Index) -> str:
    return "(" + ", ".join(map(str, index)) + ")"


class Degree(StrEnum):
    """The severity of a finding.

    An ERROR stops a launch, and no array is written. A STRICT finding breaks a rule of the PTX manual that shipped
    kernels break as well: it is reported, and the launch continues. Strict findings are errors in kernels that were
    traced from Python, and with PTXDSL_STRICT=1.
    """

    ERROR = "error"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class Finding:
    """An operation that a kernel must not perform.

    `kind` is 'out-of-bounds', 'misaligned', 'read-only', 'uninitialized', 'unwaited-async', 'race', 'barrier',
    'mbarrier', 'cluster', 'registers', 'tensor-map', 'swizzle', 'sparse-metadata', 'unfenced-wgmma', 'unwaited-wgmma',
    'deadlock', 'divergent-collective', 'assert', 'trap', 'call' or 'limit'.
    `locations` are the instructions involved, the reporting one first. `threads` are the first of the `count` threads
    that did it. `help` says how to fix it, unless that follows from the message. `degree` says if it is an error.
    """

    kind: str
    message: str
    locations: tuple[Location, ...] = ()
    threads: tuple[Thread, ...] = ()
    count: int = 0
    help: str = ""
    degree: Degree = Degree.ERROR

    def __str__(self) -> str:
        excerpts = dict.fromkeys(location.excerpt() for location in self.locations)  # a helper called twice: once
        strict = " (strict)" * (not self.is_error)
        lines = [f"{self.kind}{strict}: {self.message}", *excerpts]
        if self.threads and not self.says_who:
            lines.append(f"  by {self.who}")
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)

    @property
    def is_error(self) -> bool:
        return self.degree is Degree.ERROR

    @property
    def says_who(self) -> bool:
        """Whether the message itself says which threads there are: a line for those that wait for one thing."""
        return self.kind == "deadlock"

    @property
    def who(self) -> str:
        """The first thread, and how many more there are."""
        more = self.count - 1
        return f"{self.threads[0]}" + (f" and {counted(more, 'more thread')}" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the accesses of an instruction took, in wavefronts or sectors, and the least that would have done."""

    name: str
    location: Location | None
    taken: int
    ideal: int


@dataclass(slots=True)
class LineCounters:
    """What the threads did at one line of Python, or of PTX where a kernel has no other lines.

    `instructions` counts thread instructions by opcode, `bytes` those that were read and written by state space;
    wavefronts are of shared memory, sectors (32 bytes) of global memory, each with the least that would have done.
    """

    location: Location | None
    instructions: Counter[str]
    bytes: Counter[str]
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0

    def cells(self) -> tuple[str, str, str, str, str]:
        """The line, its instructions, its bytes, wavefronts and sectors as text."""
        most = self.instructions.most_common()
        return (
            str(self.location or "(no line)"),
            ", ".join(f"{count} {name}" for name, count in most),
            ", ".join(f"{count} {space}" for space, count in self.bytes.items() if count),
            _against(self.wavefronts, self.ideal_wavefronts),
            _against(self.sectors, self.ideal_sectors),
        )


def _against(taken: int, ideal: int) -> str:
    return f"{taken} ({ideal})" if taken else ""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A step of a thread: the instruction, its line, and what it left in registers. Where the guard did not hold it
    `ran` not."""

    location: Location | None
    instruction: str
    results: tuple[tuple[str, object], ...] = ()
    ran: bool = True

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {shown(value)}" for name, value in self.results)
        return f"{self.location or '(no line)'}  {self.instruction}  {values if self.ran else '(not taken)'}".rstrip()


class KeptSteps(Protocol):
    """What threads did, as far as it was kept."""

    def of(self, thread: object) -> Sequence[ExecutedStep]:
        """The steps of a thread. Raises Error for one of which none were kept."""


def shown(value: object) -> str:
    """A value of a register in few digits: floats with nine at most, true and false."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@dataclass(slots=True)
class Report:
    """The result of an emulation: findings, executed thread instructions, and what the kernel printed.

    Where traffic was counted, `bank_conflicts` has the wavefronts of each instruction that accesses shared memory,
    `global_sectors` the 32-byte sectors of each that accesses global memory, `counters` what each line did, and
    `touched_bytes` the distinct sectors of global memory that "reads" and "writes" touched, in bytes.
    """

    findings: list[Finding] = field(default_factory=list)
    instructions: int = 0
    output: str = ""
    bank_conflicts: list[Traffic] = field(default_factory=list)
    global_sectors: list[Traffic] = field(default_factory=list)
    counters: list[LineCounters] = field(default_factory=list)
    touched_bytes: dict[str, int] = field(default_factory=dict)
    traces: KeptSteps | None = field(default=None, repr=False)

    def trace(self, thread: object = 0) -> Sequence[ExecutedStep]:
        """The steps of a thread that `pd.emulate(…, trace=thread)` kept, in their order; `print(*steps, sep="\n")`
        shows them. A thread is named as there. Raises Error for one that was not kept."""
        if self.traces is None:
            raise Error("the report has no trace", help="request it: pd.emulate(…, trace=thread)")
        return self.traces.of(thread)

    @property
    def errors(self) -> Sequence[Finding]:
        """The findings of degree ERROR."""
        return [f for f in self.findings if f.is_error]

    def of_kind(self, kind: str) -> Sequence[Finding]:
        return [f for f in self.findings if f.kind == kind]

    def __str__(self) -> str:
        summary = f"{counted(self.instructions, 'thread instruction')}, {counted(len(self.findings), 'finding')}"
        return "\n".join([summary, *map(str, self.findings)])

    def table(self) -> str:
        """The counters, a line of text for each line of the kernel; what would be the least stands in brackets."""
        rows = [_HEADINGS, *(line.cells() for line in self.counters)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
