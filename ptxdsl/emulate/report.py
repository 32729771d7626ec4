"""The report of an emulation: findings, counters and traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ..errors import Error, Location
from ..notebook import collapsed, more, preformatted, table

Index = tuple[int, int, int]
SHOWN_THREADS = 64
SHOWN_FINDINGS = 20  # in a notebook
_HEADINGS = ("line", "instructions", "bytes", "wavefronts", "sectors")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, by its block in the grid and its position in the block, both (x, y, z)."""

    block: Index
    thread: Index

    def __str__(self) -> str:
        return f"thread {_index(self.thread)} of block {self.block_text}"

    @property
    def block_text(self) -> str:
        return _index(self.block)


def counted(count: int, noun: str) -> str:
    """Return '1 finding', '2 findings'."""
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
    'mbarrier', 'cluster', 'registers', 'tensor-map', 'tensor-memory', 'swizzle', 'sparse-metadata', 'unfenced-wgmma',
    'unwaited-wgmma', 'deadlock', 'divergent-collective', 'guard', 'assert', 'trap', 'call' or 'limit'.
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

    def _repr_html_(self) -> str:
        return preformatted(str(self), "#c0392b" if self.is_error else "#e67e22")

    @property
    def is_error(self) -> bool:
        return self.degree is Degree.ERROR

    @property
    def says_who(self) -> bool:
        """True if the message lists the threads itself."""
        return self.kind == "deadlock"

    @property
    def who(self) -> str:
        """The first thread, and the number of other threads."""
        more = self.count - 1
        return f"{self.threads[0]}" + (f" and {counted(more, 'more thread')}" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Traffic:
    """The wavefronts or sectors of an instruction, and the minimum for the same accesses."""

    name: str
    location: Location | None
    taken: int
    ideal: int


@dataclass(slots=True)
class LineCounters:
    """The counters of one line of Python, or of PTX if the kernel has no Python lines.

    `instructions` counts thread instructions by opcode, `bytes` counts bytes read and written by state space.
    Wavefronts are of shared memory, sectors (32 bytes) of global memory; each has its minimum for the same accesses.
    """

    location: Location | None
    instructions: Counter[str]
    bytes: Counter[str]
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the line, its instructions, its bytes, wavefronts and sectors as text."""
        most = self.instructions.most_common()
        return (
            str(self.location or "(no line)"),
            ", ".join(f"{count} {name}" for name, count in most),
            ", ".join(f"{count} {space}" for space, count in self.bytes.items() if count),
            _against(self.wavefronts, self.ideal_wavefronts),
            _against(self.sectors, self.ideal_sectors),
        )

    def _repr_html_(self) -> str:
        return LineTable([self])._repr_html_()


class LineTable(list[LineCounters]):
    """The counters of all lines: a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return table(
            ("line", "instructions", "bytes", "wavefronts (minimum)", "sectors (minimum)"),
            (line.cells() for line in self),
            "line",
        )


def _against(taken: int, ideal: int) -> str:
    return f"{taken} ({ideal})" if taken else ""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A step of a thread: the instruction, its line, and the registers that it wrote. `ran` is False if its guard was
    false.
    """

    location: Location | None
    instruction: str
    results: tuple[tuple[str, object], ...] = ()
    ran: bool = True

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {shown(value)}" for name, value in self.results)
        return f"{self.location or '(no line)'}  {self.instruction}  {values if self.ran else '(not taken)'}".rstrip()


class KeptSteps(Protocol):
    """The recorded steps of threads."""

    def of(self, thread: object) -> Sequence[ExecutedStep]:
        """Return the steps of a thread. Raises Error if they were not recorded."""


def shown(value: object) -> str:
    """Format the value of a register: floats with up to nine digits, true and false."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@dataclass(slots=True)
class Report:
    """The result of an emulation: findings, executed thread instructions, and what the kernel printed.

    With `traffic`, `bank_conflicts` has the wavefronts of each instruction that accesses shared memory,
    `global_sectors` the 32-byte sectors of each instruction that accesses global memory, `counters` the counters of
    each line, and `touched_bytes` the distinct sectors of global memory in "reads" and "writes", in bytes.
    """

    findings: list[Finding] = field(default_factory=list)
    instructions: int = 0
    output: str = ""
    bank_conflicts: list[Traffic] = field(default_factory=list)
    global_sectors: list[Traffic] = field(default_factory=list)
    counters: list[LineCounters] = field(default_factory=LineTable)
    touched_bytes: dict[str, int] = field(default_factory=dict)
    traces: KeptSteps | None = field(default=None, repr=False)

    def trace(self, thread: object = 0) -> Sequence[ExecutedStep]:
        """Return the steps of a thread that `pd.emulate(…, trace=thread)` recorded; `print(*steps, sep="\n")` prints
        them. Raises Error for a thread that was not recorded.
        """
        if self.traces is None:
            raise Error("the report has no trace", help="request it: pd.emulate(…, trace=thread)")
        return self.traces.of(thread)

    @property
    def errors(self) -> Sequence[Finding]:
        """The findings of degree ERROR."""
        return [f for f in self.findings if f.is_error]

    def of_kind(self, kind: str) -> Sequence[Finding]:
        return [f for f in self.findings if f.kind == kind]

    @property
    def summary(self) -> str:
        return f"{counted(self.instructions, 'thread instruction')}, {counted(len(self.findings), 'finding')}"

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.findings)])

    def _repr_html_(self) -> str:
        shown = "".join(finding._repr_html_() for finding in self.findings[:SHOWN_FINDINGS])
        counters = LineTable(self.counters)._repr_html_() if self.counters else ""
        findings = f"{shown}{more(len(self.findings) - SHOWN_FINDINGS, 'finding')}"
        return f"<p>{self.summary}</p>{findings}{counters}{collapsed('output', self.output)}"

    def table(self) -> str:
        """Return the counters as text, a line for each line of the kernel, with minima in brackets."""
        rows = [_HEADINGS, *(line.cells() for line in self.counters)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
