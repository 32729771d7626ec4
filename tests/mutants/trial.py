"""Launches that are run again with other texts, under several schedules, and what became of each mutant."""

import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from unittest.mock import patch
from weakref import ref

import numpy as np

from ptxdsl import config
from ptxdsl.arrays import AddressTable, Array, Struct
from ptxdsl.emulate.stream import EndedArray, Stream
from ptxdsl.errors import Error
from ptxdsl.ir import PtxModule
from ptxdsl.lower import lower
from ptxdsl.parse import parse
from ptxdsl.runtime import emulation

from .mutate import ACCESS, COPY, ORDERING, SHARED_ACCESS, WAITS, Kernel, Lines, Mutant

SCHEDULES = ("lockstep", "skewed", "random:1")
SEEDS = tuple(f"random:{n}" for n in range(2, 13))  # a wait by the wrong parity hangs if it comes late enough
PAUSED = ("paused lockstep", "paused random:1")  # with a pause in front of such a wait
SCRATCH = ("p.maps",)  # memory of a block for itself, by its name: what a launch leaves there is no result
STEPS = 100_000  # of a launch; the intact ones take less than half of it
FINDING, NUMBER, SAME, NOT_REACHED, DOUBLED, MISSED = (
    "finding", "another number", "no difference", "not reached", "doubled", "missed",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a launch ended with: the first finding, or the bytes of all arrays."""

    finding: str
    contents: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and how that is known."""

    mutant: Mutant
    verdict: str
    reason: str


class Launch:
    """A launch as the emulator got it, with what its arrays held before. A kernel that waits for the one before it runs
    beside one that writes all of its arrays."""

    def __init__(self, positional: tuple, options: dict) -> None:
        function, module, self.grid, self.block, self.arguments, self.shared_bytes, *_ = positional
        self.kernel, self.cluster = function.name, options.get("cluster")
        self.text = lower(module)
        self.arrays = list(_arrays(self.arguments))
        self.before = [_bytes(array) for array in self.arrays]
        self.bytes = sum(map(len, self.before))
        self.dependent, self.owner = "griddepcontrol.wait" in self.text, np.zeros(1)

    def run(self, text: str, schedule: str) -> Outcome:
        """Runs a text of the kernel on arrays that hold what they held."""
        for array, content in zip(self.arrays, self.before, strict=True):
            ctypes.memmove(array.span[0], content, len(content))
        try:
            module = parsed(text)
            function = next(f for f in module.kernels if f.name == self.kernel)
            with config.using(schedule=schedule, steps=str(STEPS)):
                importlib.import_module("ptxdsl.emulate").run(
                    function, module, self.grid, self.block, self.arguments, self.shared_bytes,
                    cluster=self.cluster, stream=self._stream(), dependent=self.dependent,
                )  # fmt: skip
        except Error as error:
            return Outcome(str(error).partition("\n")[0])
        return Outcome("", tuple(_bytes(array) for array in self.arrays if array.name not in SCRATCH))

    def _stream(self) -> Stream:
        """In which another kernel came before."""
        stream = Stream()
        if self.dependent:
            written = [EndedArray(ref(self.owner), *array.span, True) for array in self.arrays]
            stream.last = "the kernel before", written
        return stream


@lru_cache(maxsize=8)
def parsed(text: str) -> PtxModule:
    """Parse a text, which runs on several problems under several schedules."""
    return parse(text)


def is_late(verdict: Verdict) -> bool:
    """Whether a mutant that is quiet may show under more schedules, in which others come late, or last."""
    return verdict.verdict == MISSED and verdict.mutant.kind in ("phase", "barrier", "order")


def _arrays(arguments: Sequence[object]) -> Iterator[Array]:
    """All arrays among arguments, those in structs and tables too; once each."""
    for argument in arguments:
        if isinstance(argument, Struct):
            yield from (array for *_, array in argument.holders)
        elif isinstance(argument, Array):
            yield argument
            if isinstance(argument.owner, AddressTable):
                yield from (array for *_, array in argument.owner.holders)


def _bytes(array: Array) -> bytes:
    low, high = array.span
    return ctypes.string_at(low, high - low)


def launches(run: Callable[[], object]) -> list[list[Launch]]:
    """All launches that a function makes, those of one kernel together."""
    caught: dict[str, list[Launch]] = {}
    real = importlib.import_module("ptxdsl.emulate").run

    def spy(*positional: object, **options: object) -> object:
        launch = Launch(positional, options)
        caught.setdefault(launch.text, []).append(launch)
        return real(*positional, **options)

    with patch.object(emulation.emulator, "run", spy):
        run()
    return list(caught.values())


class Trial:
    """All mutants of a kernel, each on all problems and under all schedules until something shows, small problems first."""

    def __init__(self, problems: Sequence[Launch], most: int = 1000) -> None:
        self.problems = sorted(problems, key=lambda launch: launch.bytes)
        self.most, self.kernel = most, Kernel(problems[0].text)
        self.runs = [(launch, schedule) for schedule in SCHEDULES for launch in self.problems]

    @cached_property
    def intact(self) -> list[Outcome]:
        """Of each run of the intact kernel."""
        return [self.intact_run(n) for n in range(len(self.runs))]

    def intact_run(self, number: int) -> Outcome:
        launch, schedule = self.runs[number]
        return launch.run(launch.text, schedule)

    @property
    def accused(self) -> list[str]:
        """What is wrong with the intact kernel: it must be nothing."""
        wrong = [f"{s}: {o.finding}" for (_, s), o in zip(self.runs, self.intact, strict=True) if o.finding]
        first = {id(launch): outcome for (launch, _), outcome in reversed([*zip(self.runs, self.intact, strict=True)])}
        differ = [s for (at, s), o in zip(self.runs, self.intact, strict=True) if o.contents != first[id(at)].contents]
        return wrong + [f"{schedule}: another number" for schedule in differ]

    def mutants(self) -> list[Mutant]:
        return list(self.kernel.mutants(self.most))

    def _finds(self, lines: Lines) -> bool:
        """Whether a change shows in lockstep."""
        text = self.kernel.with_lines(lines)
        return any(launch.run(text, s).finding for launch, s in self.runs if s == SCHEDULES[0])

    def verdict(self, mutant: Mutant) -> Verdict:
        verdict = self.under_each_schedule(mutant)
        return self.late(mutant, (*PAUSED, *SEEDS)) if is_late(verdict) else verdict

    def under_each_schedule(self, mutant: Mutant) -> Verdict:
        text, number = self.kernel.with_lines(mutant.changed), ""
        for (launch, schedule), intact in zip(self.runs, self.intact, strict=True):
            if mutant.kind not in ORDERING and schedule != SCHEDULES[0]:
                break  # what a thread computes from its own values is the same under each
            outcome = launch.run(text, schedule)
            if outcome.finding:
                return Verdict(mutant, FINDING, f"{outcome.finding} [{schedule}]")
            if outcome.contents != intact.contents:
                number = number or schedule
                if mutant.kind not in ORDERING:
                    break
        if number:
            return Verdict(mutant, NUMBER, f"under {number}")
        return self._quiet(mutant)

    def late(self, mutant: Mutant, schedules: Sequence[str]) -> Verdict:
        """Of what comes in time, or too early, under the schedules of all mutants: under more, where it may be late."""
        for called in schedules:
            changed, intact = mutant.changed, dict[int, tuple[str, ...]]()
            if called in PAUSED:
                changed, intact = self.kernel.slowed(mutant, changed), self.kernel.slowed(mutant, {})
            schedule, text = called.removeprefix("paused "), self.kernel.with_lines(changed)
            for launch in self.problems if changed else ():
                finding = launch.run(text, schedule).finding
                if finding and not launch.run(self.kernel.with_lines(intact), schedule).finding:
                    return Verdict(mutant, FINDING, f"{finding} [{called}]")
        return Verdict(mutant, MISSED, "")

    def _quiet(self, mutant: Mutant) -> Verdict:
        """Why a mutant makes no difference."""
        if not self._finds(mutant.reached):
            return Verdict(mutant, NOT_REACHED, "no thread comes there")
        if mutant.same is not None and not self._finds(mutant.same):
            toggle = mutant.change == "is not toggled"
            return Verdict(
                mutant, SAME, "no thread waits for that parity" if toggle else "every thread has the same value"
            )
        if mutant.kind not in ORDERING:
            return Verdict(mutant, SAME, "the changed values do not reach a result")
        if mutant.kind == "wait" and not self._finds(self.kernel.traps_at(COPY)):
            return Verdict(mutant, SAME, "no thread makes an asynchronous copy")
        if WAITS.search(mutant.instruction) and not self._finds(self.kernel.unwaited(mutant)):
            return Verdict(mutant, SAME, "the thread has nothing in flight")
        moved = mutant.change.startswith(("before", "behind"))  # a wait that is gone is not made up for by a meeting
        if mutant.kind == "barrier" or (mutant.kind == "wait" and moved):
            for watched, what in ((ACCESS, "memory"), (SHARED_ACCESS, "shared memory")):
                if not self._finds(self.kernel.until_next(mutant, watched)):
                    return Verdict(mutant, SAME, f"no thread touches {what} before its next barrier or its exit")
        return Verdict(mutant, MISSED, "")

    def verdicts(self, mutants: Sequence[Mutant]) -> list[Verdict]:
        """Of all mutants; ordering that is quiet alone is then taken away with another that is."""
        verdicts = [self.verdict(mutant) for mutant in mutants]
        gone = self.removed(verdicts)
        return [self.doubled(v, gone) if v.verdict == MISSED else v for v in verdicts]

    def removed(self, verdicts: Sequence[Verdict]) -> list[Mutant]:
        """Ordering that is gone, and nothing shows."""
        quiet = [v.mutant for v in verdicts if v.verdict in (MISSED, SAME, DOUBLED) and v.mutant.kind in ORDERING]
        return [mutant for mutant in quiet if mutant.change == "removed"]

    def doubled(self, verdict: Verdict, others: Sequence[Mutant]) -> Verdict:
        """Ordering that makes a difference where another one is gone too, or all others of that instruction are."""
        mutant = verdict.mutant
        apart = [other for other in others if other.line not in mutant.changed]
        alike = [other for other in apart if other.instruction == mutant.instruction]
        first = [[other] for other in sorted(apart, key=lambda other: other not in alike)]
        for gone in (*first[: len(alike)], alike, *first[len(alike) :]):
            lines = {line: new for other in gone for line, new in other.changed.items()}
            if lines and self._finds(mutant.changed | lines):
                places = ", ".join(dict.fromkeys(other.source for other in gone))
                return Verdict(mutant, DOUBLED, f"`{gone[0].instruction}` ({places}) has the same effect")
        return verdict
