"""`python -m tests.mutants [--at FILE:LINE] [--kind KIND] [--jobs N] [--rows FILE] [SUBJECT …]`: what became of each mutant.

With `--at`, those that come from Python lines that begin so: `--at turns.py:48`, `--at store.py`. With `--rows`, verdicts are
kept in a file, and those that it has are not sought again: begin with an empty one when the emulator has changed. The exit
code is 1 if one was missed for no reason.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .cores import Cores
from .mutate import ORDERING, Mutant
from .reasons import explained
from .rows import Rows
from .subjects import SUBJECTS
from .table import table
from .trial import MISSED, Launch, Trial, Verdict, launches

COPIES = 2  # of one Python line


class Accused(Exception):
    """An intact kernel has findings, or another number under some schedule."""


class Search:
    """What becomes of the mutants of some subjects that come from certain Python lines."""

    def __init__(self, at: str, kind: str, cores: Cores, rows: Path | None) -> None:
        self.at, self.kind, self.cores, self.rows = at, kind, cores, rows

    def subject(self, name: str) -> list[Verdict]:
        with self.cores.free:
            kernels = launches(SUBJECTS[name])
        return [explained(name, verdict) for problems in kernels for verdict in self._kernel(name, problems)]

    def _kernel(self, name: str, problems: Sequence[Launch]) -> list[Verdict]:
        trial = Trial(problems, COPIES)
        mutants = trial.mutants()
        chosen = [n for n, mutant in enumerate(mutants) if self._asked(mutant)]
        rows = Rows(self.rows, name, problems[0].text, mutants)
        if unknown := [n for n in chosen if n not in rows.known]:
            with self.cores.free:
                if wrong := trial.accused:
                    raise Accused(f"{name}: the intact kernel is accused: {wrong}")
            for n, verdict in self._each(lambda n: trial.verdict(mutants[n]), unknown):
                rows.keep(n, verdict)
        quiet = trial.removed([rows.verdict(n) for n in chosen])
        missed = [n for n in rows.missed(chosen) if explained(name, rows.verdict(n)).verdict == MISSED]
        for n, verdict in self._each(lambda n: trial.doubled(rows.verdict(n), quiet), missed):
            rows.keep(n, verdict, pairs=True)
        return [rows.verdict(n) for n in chosen]

    def _asked(self, mutant: Mutant) -> bool:
        return mutant.source.startswith(self.at) and self.kind in ("", mutant.kind)

    def _each(self, judge: Callable[[int], Verdict], numbers: Sequence[int]) -> Iterator[tuple[int, Verdict]]:
        def on_a_core(number: int) -> Verdict:
            with self.cores.free:
                return judge(number)

        return self.cores.each(on_a_core, numbers)


def main(names: Sequence[str], at: str = "", kind: str = "", jobs: int = 1, rows: Path | None = None) -> int:
    names, cores = list(names or SUBJECTS), Cores(jobs)
    search = Search(at, kind, cores, rows)
    try:
        results = dict(cores.each(lambda n: search.subject(names[n]), range(len(names))))
    except Accused as accused:
        print(accused)
        return 1
    verdicts = {name: results[n] for n, name in enumerate(names)}
    for name, told in verdicts.items():
        for verdict in told:
            print(f"{name}: {verdict.mutant}: {verdict.verdict}: {verdict.reason}")
    print(table(verdicts))
    return int(any(v.verdict == MISSED for told in verdicts.values() for v in told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.mutants", description="what became of each mutant")
    parser.add_argument("--at", metavar="FILE:LINE", default="", help="those that come from Python lines that begin so")
    parser.add_argument("--kind", choices=sorted({*ORDERING, "bound", "swizzle"}), default="", help="those of a kind")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="processes (default: cores)")
    parser.add_argument("--rows", metavar="FILE", type=Path, help="verdicts are kept here, and not sought again")
    parser.add_argument("subjects", metavar="SUBJECT", nargs="*", help="kernels (default: all)")
    arguments = parser.parse_args()
    sys.exit(main(arguments.subjects, arguments.at, arguments.kind, arguments.jobs, arguments.rows))
