"""The racecheck of compute-sanitizer on a sample of the mutants, beside what the emulator says of them.

    python -m tests.mutants.racecheck run hazards.json        # where there is a GPU: what racecheck reports
    python -m tests.mutants.racecheck compare hazards.json    # anywhere: the table of docs/mutants.md

Racecheck sees accesses of the threads of a block to shared memory. The sample is of mutants that cannot hang, and whose
addresses are those of the intact kernel: barriers and waits that are gone or elsewhere.
"""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from ptxdsl import assemble, config, driver
from ptxdsl.runtime import dispatch
from ptxdsl.runtime.launch import load
from ptxdsl.runtime.variant import Variant

from .mutate import Kernel, Mutant
from .reasons import explained
from .subjects import SUBJECTS
from .trial import FINDING, Trial, launches

SAMPLE = (
    "02_reduce", "03_transpose", "05_gemm_steps, cp.async", "05_gemm_steps, swizzled", "05_gemm_steps, pipelined",
    "gemm", "gemm, odd sizes", "conv2d",
)  # fmt: skip
ARCH, COPIES = "sm_80", 2
SECONDS = 35
HEAD = "| kernel | mutants | both | emulator only | racecheck only | neither |\n|---|--:|--:|--:|--:|--:|"


@dataclass(frozen=True)
class Call:
    """A launch as the emulator is asked for it."""

    variant: Variant
    shape: tuple
    arguments: Sequence


@dataclass
class Agreement:
    """How the two judge the mutants of a kernel; `both`, `emulator`, `racecheck` and `neither` accuse."""

    verdicts: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)

    def add(self, mutant: Mutant, emulator: bool, racecheck: bool) -> None:
        who = {(True, True): "both", (True, False): "emulator", (False, True): "racecheck"}.get(
            (emulator, racecheck), "neither"
        )
        self.verdicts[who] += 1
        if emulator != racecheck:
            self.details.append(f"{who} only: {mutant}")


def calls(run: Callable[[], object]) -> list[Call]:
    """All launches that a function makes."""
    caught: list[Call] = []
    real = dispatch.emulation.run

    def spy(variant: Variant, shape: tuple, arguments: Sequence, overlap: bool) -> None:
        caught.append(Call(variant, shape, arguments))
        real(variant, shape, arguments, overlap)

    with patch.object(dispatch.emulation, "run", spy):
        run()
    return caught


def sample(text: str) -> list[Mutant]:
    """The mutants of a kernel's text that are launched."""
    return [m for m in Kernel(text).mutants(COPIES) if m.kind in ("barrier", "wait")]


def renamed(text: str, old: str, new: str) -> str:
    """The text with another name of its kernel."""
    return re.sub(rf"(\.entry\s+){re.escape(old)}\b", rf"\g<1>{new}", text)


def texts(number: int, text: str, kernel: str) -> Iterator[tuple[str, str]]:
    """(name, text) of the intact kernel and of its mutants."""
    yield f"s{number}_intact", renamed(text, kernel, f"s{number}_intact")
    for n, mutant in enumerate(sample(text)):
        yield f"s{number}_m{n}", renamed(Kernel(text).with_lines(mutant.changed), kernel, f"s{number}_m{n}")


def launch_all(seconds: float) -> None:
    """Launches the sample on GPU 0, and says which kernels ran."""
    end, arch = time.monotonic() + seconds, str(driver.device(0).arch)
    for number, subject in enumerate(SAMPLE):
        with config.using(arch=ARCH, checks="off"):
            problems = calls(SUBJECTS[subject])
        first = problems[0].variant
        for name, text in texts(number, first.text, first.name):
            if time.monotonic() > end:
                return
            handle = load(assemble.assemble(text, arch), name, first.parameters, first.written)
            for problem in problems:
                grid, block, shared_bytes, *_ = problem.shape
                handle.launch_on_copies(grid, block, problem.arguments, shared_bytes=shared_bytes)
            print(f"launched {name}", flush=True)


def hazards(output: str) -> dict[str, int]:
    """How many races racecheck reports, by the names of the kernels that ran: it reports when a kernel has ended."""
    counts, races = {}, 0
    for line in output.splitlines():
        races += "Race reported" in line
        if line.startswith("launched "):
            counts[line.split()[1]], races = races, 0
    return counts


def run(path: Path) -> None:
    """Runs the sample under racecheck, and writes what it reports."""
    command = ["compute-sanitizer", "--tool", "racecheck", "--racecheck-report", "analysis", "--print-limit", "100000"]
    child = [sys.executable, "-m", "tests.mutants.racecheck", "launch", str(SECONDS)]
    log = path.with_suffix(".log")
    with log.open("w") as stream, suppress(subprocess.TimeoutExpired):
        subprocess.run([*command, *child], stdout=stream, stderr=subprocess.STDOUT, timeout=SECONDS + 12)
    counts = hazards(log.read_text())
    path.write_text(json.dumps(counts, indent=1))
    print(f"{len(counts)} kernels ran, of {sum(map(bool, counts.values()))} racecheck reports races")


def compared(counts: Mapping[str, int]) -> tuple[dict[str, Agreement], list[str]]:
    """How emulator and racecheck judge the mutants that ran, by subject; and which intact kernels racecheck accuses."""
    agreements: dict[str, Agreement] = {}
    accused = []
    for number, subject in enumerate(SAMPLE):
        with config.using(arch=ARCH):
            (problems,) = launches(SUBJECTS[subject])
            trial = Trial(problems, COPIES)
        if counts.get(f"s{number}_intact"):
            accused.append(subject)
        agreement = agreements[subject] = Agreement()
        for n, mutant in enumerate(sample(problems[0].text)):
            if f"s{number}_m{n}" in counts:
                verdict = explained(subject, trial.verdict(mutant))
                agreement.add(mutant, verdict.verdict == FINDING, bool(counts[f"s{number}_m{n}"]))
    return agreements, accused


def table(agreements: Mapping[str, Agreement], accused: Sequence[str]) -> str:
    rows = [_row(subject, agreement.verdicts) for subject, agreement in agreements.items()]
    total = sum((agreement.verdicts for agreement in agreements.values()), Counter())
    details = [f"- {subject}: {detail}" for subject, a in agreements.items() for detail in a.details]
    intact = f"Intact kernels that racecheck accuses: {', '.join(accused) or 'none'}."
    return "\n".join([HEAD, *rows, _row("all", total), "", intact, "", *details])


def _row(name: str, counts: Counter[str]) -> str:
    numbers = [counts[who] for who in ("both", "emulator", "racecheck", "neither")]
    return f"| {name} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |"


def main(task: str, argument: str) -> None:
    if task == "launch":
        launch_all(float(argument))
    elif task == "run":
        run(Path(argument))
    else:
        print(table(*compared(json.loads(Path(argument).read_text()))))


if __name__ == "__main__":
    main(*sys.argv[1:])
