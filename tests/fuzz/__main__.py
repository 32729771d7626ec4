"""Run random PTX programs: `python -m tests.fuzz --seed S --count N [--gpu]`.

Without --gpu, each program is emulated under three schedules, which must give the same bits and no finding, and must print
as it was parsed; with --assemble, it must also assemble. With --gpu, it also runs on the first GPU, and all its memory is
compared. A failure is reduced to a few lines, and printed with the command that runs it again.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from time import monotonic

from . import generate
from .machines import SCHEDULES, Gpu, Outcome, pool, prepare
from .program import SLOT_BYTES, TOTAL, Program, lines
from .reduction import Reducer

WAVE = 8
"""Programs in flight for each process."""


class Fuzzer:
    """Runs programs in a pool of processes, and on a GPU if there is one here."""

    def __init__(self, jobs: int, gpu: Gpu | None = None, assembles: bool = False) -> None:
        self.jobs, self.gpu, self.workers = jobs, gpu, pool(jobs)
        self.assembles = assembles or gpu is not None
        self.schedules = SCHEDULES[:1] if gpu else SCHEDULES

    def outcomes(self, programs: Sequence[Program | int]) -> list[Outcome]:
        """Return the outcome of each program or seed."""
        waves = (programs[start : start + WAVE * self.jobs] for start in range(0, len(programs), WAVE * self.jobs))
        return [outcome for wave in waves for outcome in self._wave(wave)]

    def _wave(self, programs: Sequence[Program | int]) -> list[Outcome]:
        started = [self.workers.submit(prepare, p, self.assembles, self.schedules) for p in programs]
        found: list[Outcome] = []
        for future in started:
            try:
                prepared = future.result()
            except BrokenProcessPool:  # a process crashed: halve the rest until the program is alone
                self.workers = pool(self.jobs)
                rest = programs[len(found) :]
                if len(rest) == 1:
                    return [*found, Outcome("crash", "the process of the emulator and the assembler died")]
                middle = len(rest) // 2
                return [*found, *self._wave(rest[:middle]), *self._wave(rest[middle:])]
            found.append(self.gpu.compare(prepared) if self.gpu and not prepared.outcome.kind else prepared.outcome)
        return found

    def reduce(self, failing: Program, outcome: Outcome, seconds: float) -> tuple[Program, Outcome]:
        """Return a smaller program that fails in the same way, and its outcome."""

        def fails(candidates: Sequence[Program]) -> list[bool]:
            return [o.kind == outcome.kind and same(o, outcome) for o in self.outcomes(candidates)]

        thread = outcome.differences[0][1] % TOTAL if outcome.differences else 0
        small = Reducer(fails, self.jobs, seconds).reduce(failing, thread)
        return small, self.outcomes([small])[0]


def same(found: Outcome, wanted: Outcome) -> bool:
    """True if two failures of a kind without differences have the same first line."""
    return bool(found.differences) or found.details.split("\n")[0][:40] == wanted.details.split("\n")[0][:40]


def report(seed: int, small: Program, outcome: Outcome, options: str) -> str:
    """Return the text of a failure."""
    words = [
        f"  {place(array, position)}: expected {expected:#018x}, found {found:#018x}"
        for array, position, expected, found in outcome.differences[:4]
    ]
    command = f"python -m tests.fuzz --seed {seed} --count 1{options}"
    return "\n".join(
        [f"== {outcome.kind}: {command}", *([outcome.details] if outcome.details else []), *words, small.text]
    )


def place(array: int, position: int) -> str:
    """Return the name of a word of the arrays."""
    if array == 1:
        space, word = divmod(position, TOTAL * SLOT_BYTES // 8)
        return f"{('global', 'shared', 'local')[space]} slot of thread {word // (SLOT_BYTES // 8)}"
    if array == 3:
        return f"outputs[{position // TOTAL}] of thread {position % TOTAL}"
    return f"{('inputs', '', 'sums')[array]}[{position}]"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program (default: 0)")
    parser.add_argument("--count", type=int, default=100, help="the number of programs (default: 100)")
    parser.add_argument("--gpu", action="store_true", help="compare with the first GPU")
    parser.add_argument("--assemble", action="store_true", help="assemble each program as well")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--reduce", type=int, default=5, metavar="N", help="failures that are reduced (default: 5)")
    parser.add_argument("--reduce-seconds", type=float, default=60, help="the time for each of them (default: 60)")
    chosen = parser.parse_args(arguments)
    gpu = Gpu() if chosen.gpu else None
    if gpu and (reason := gpu.why_not()):
        gpu.close()
        parser.error(f"no GPU to compare with: {reason}")
    fuzzer = Fuzzer(chosen.jobs, gpu, chosen.assemble)
    try:
        return run(fuzzer, chosen)
    finally:
        fuzzer.workers.shutdown()
        if gpu:
            gpu.close()


def run(fuzzer: Fuzzer, chosen: argparse.Namespace) -> int:
    """Run the programs, print a summary and the reduced failures, and return the exit status."""
    start = monotonic()
    seeds = range(chosen.seed, chosen.seed + chosen.count)
    outcomes = dict(zip(seeds, fuzzer.outcomes(seeds), strict=True))
    failing = {seed: outcome for seed, outcome in outcomes.items() if outcome.kind}
    counts = Counter(outcome.kind for outcome in failing.values())
    kinds = ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "no failure"
    print(f"{len(seeds)} programs in {monotonic() - start:.1f} s: {kinds}", flush=True)
    options = " --gpu" * chosen.gpu + " --assemble" * chosen.assemble
    reduced: dict[int, set[str]] = {}
    for seed, outcome in failing.items():
        text = generate.program(seed).text
        like = next((other for other, names in reduced.items() if all(name in text for name in names)), None)
        if like is not None:
            print(f"seed {seed}: {outcome.kind}; has the instructions of seed {like}")
        elif len(reduced) == chosen.reduce:
            print(f"seed {seed}: {outcome.kind}, not reduced {outcome.details.splitlines()[:1]}")
        else:
            small, found = fuzzer.reduce(generate.program(seed), outcome, chosen.reduce_seconds)
            reduced[seed] = set(re.findall(r"[a-z]\w*(?:\.[\w:]+)+(?= )", " ".join(lines(small.body))))
            print(report(seed, small, found, options), flush=True)
    return bool(failing)


if __name__ == "__main__":
    sys.exit(main())
