"""`python -m tests.mutants [--at FILE:LINE] [--kind KIND] [--part K/N] [--jobs N] [--rows FILE] [--seconds S] [--write FILE] [SUBJECT …]`

Print what became of each mutant. With `--at`, of those that come from Python lines that begin so: `--at tile_queue.py:48`,
`--at store.py`. With `--part`, of every N-th mutant of each kernel from the K-th on.

With `--rows`, verdicts are kept in a file, and those that it has are not sought again; begin with an empty one when the
emulator has changed. With `--seconds`, the search stops after that time, and a run with the same file resumes it. Files of
several parts are merged by `cat`; a run of all parts on them tries the mutants that were missed together with others, which
no part does, and is quick otherwise. With `--write docs/mutants.md`, the tables of that page are those of this run.

The exit code is 1 if a mutant was missed, and 3 if the time was too short.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..tiers import part as part_of
from .cores import Cores, OutOfTime
from .mutate import ORDERING, Mutant
from .reasons import explained
from .rows import Rows, mend
from .subjects import LONGEST, SUBJECTS
from .table import table, with_tables
from .trial import FINDING, MISSED, PAUSED, SEEDS, Launch, Trial, Verdict, is_late, launches

COPIES = 2  # of one Python line


class Accused(Exception):
    """An intact kernel has findings, or another number under some schedule."""


@dataclass
class Judged:
    """Verdicts on the mutants of a kernel or subject; not complete if the time was too short for some."""

    verdicts: list[Verdict]
    is_complete: bool


class Search:
    """What becomes of the mutants of some subjects that come from certain Python lines."""

    def __init__(self, at: str, kind: str, part: tuple[int, int], cores: Cores, rows: Path | None) -> None:
        self.at, self.kind, self.part, self.cores, self.rows = at, kind, part, cores, rows

    def subject(self, name: str) -> Judged:
        if self.cores.is_over:
            return Judged([], False)
        with self.cores.free:
            begun = time.monotonic()
            kernels = launches(SUBJECTS[name])
        results = dict(self.cores.apart(lambda n: self._kernel(name, kernels[n]), range(len(kernels))))
        judged = [results[n] for n in range(len(kernels))]
        verdicts = [explained(name, verdict) for one in judged for verdict in one.verdicts]
        print(f"{name}: {len(verdicts)} mutants, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        return Judged(verdicts, all(one.is_complete for one in judged))

    def _kernel(self, name: str, problems: Sequence[Launch]) -> Judged:
        trial = Trial(problems, COPIES)
        mutants = trial.mutants()
        number, count = self.part
        chosen = [n for n, mutant in enumerate(mutants) if self._asked(mutant) and n % count == number - 1]
        rows = Rows(self.rows, name, problems[0].text, mutants)
        try:
            if unknown := [n for n in chosen if n not in rows.known]:
                self._run_intact(name, trial)
                self._judge(name, trial, mutants, unknown, rows)
            if count == 1:
                self._try_with_others(name, trial, chosen, rows)
        except OutOfTime:
            known = [rows.verdict(n) for n in chosen if n in rows.known]
            return Judged(known, False)
        return Judged([rows.verdict(n) for n in chosen], True)

    def _judge(self, name: str, trial: Trial, mutants: Sequence[Mutant], unknown: Sequence[int], rows: Rows) -> None:
        """Keep the verdicts on mutants. Those that take many schedules are tried under several of them at a time."""
        late = []
        for n, (verdict, seconds) in self._each(lambda n: trial.under_each_schedule(mutants[n]), unknown):
            if is_late(explained(name, verdict)):
                late.append(n)
            else:
                rows.keep(n, verdict, seconds)
        tried: dict[int, list[tuple[Verdict, float]]] = {n: [] for n in late}
        tasks = [(n, [seed]) for n in late for seed in (*PAUSED, *SEEDS)]
        for task, result in self._each(
            lambda task: trial.late(mutants[tasks[task][0]], tasks[task][1]), range(len(tasks))
        ):
            n = tasks[task][0]
            tried[n].append(result)
            if len(tried[n]) == len(PAUSED) + len(SEEDS):
                shown = [verdict for verdict, _ in tried[n] if verdict.verdict == FINDING]
                rows.keep(n, [*shown, tried[n][0][0]][0], sum(seconds for _, seconds in tried[n]))

    def _try_with_others(self, name: str, trial: Trial, chosen: Sequence[int], rows: Rows) -> None:
        """Keep the verdicts on mutants that were missed, each together with others that are quiet."""
        quiet = trial.removed([rows.verdict(n) for n in chosen])
        missed = [n for n in rows.missed(chosen) if explained(name, rows.verdict(n)).verdict == MISSED]
        for n, (verdict, seconds) in self._each(lambda n: trial.doubled(rows.verdict(n), quiet), missed):
            rows.keep(n, verdict, seconds, pairs=True)

    def _run_intact(self, name: str, trial: Trial) -> None:
        """Run the intact kernel, with which all mutants are compared. Raises Accused."""
        trial.intact = [outcome for _, outcome in sorted(self.cores.each(trial.intact_run, range(len(trial.runs))))]
        if wrong := trial.accused:
            raise Accused(f"{name}: the intact kernel is accused: {wrong}")

    def _asked(self, mutant: Mutant) -> bool:
        return mutant.source.startswith(self.at) and self.kind in ("", mutant.kind)

    def _each(
        self, judge: Callable[[int], Verdict], numbers: Sequence[int]
    ) -> Iterator[tuple[int, tuple[Verdict, float]]]:
        """Yield each number with the verdict on it, and the seconds that it took."""

        def timed(number: int) -> tuple[Verdict, float]:
            begun = time.monotonic()
            return judge(number), time.monotonic() - begun

        return self.cores.each(timed, numbers)


def main(
    names: Sequence[str],
    at: str = "",
    kind: str = "",
    part: tuple[int, int] = (1, 1),
    jobs: int = 1,
    rows: Path | None = None,
    page: Path | None = None,
    seconds: float = float("inf"),
) -> int:
    mend(rows)
    names, cores = list(names or SUBJECTS), Cores(jobs, seconds)
    search, last = Search(at, kind, part, cores, rows), len(LONGEST)
    order = sorted(range(len(names)), key=lambda n: LONGEST.index(names[n]) if names[n] in LONGEST else last)
    try:
        results = dict(cores.apart(lambda n: search.subject(names[n]), order))
    except Accused as accused:
        print(accused)
        return 1
    verdicts = {name: results[n].verdicts for n, name in enumerate(names)}
    if not all(judged.is_complete for judged in results.values()):
        print(f"stopped after {seconds:g} s with {sum(map(len, verdicts.values()))} mutants judged; ", end="")
        print(f"run again with --rows {rows}" if rows else "keep verdicts with --rows FILE to resume")
        return 3
    for name, told in verdicts.items():
        for verdict in told:
            print(f"{name}: {verdict.mutant}: {verdict.verdict}: {verdict.reason}")
    print(table(verdicts))
    if page is not None:
        page.write_text(with_tables(page.read_text(), verdicts))
    return int(any(v.verdict == MISSED for told in verdicts.values() for v in told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.mutants", description="what became of each mutant")
    parser.add_argument("--at", metavar="FILE:LINE", default="", help="those that come from Python lines that begin so")
    parser.add_argument("--kind", choices=sorted({*ORDERING, "bound", "swizzle"}), default="", help="those of a kind")
    parser.add_argument(
        "--part", metavar="K/N", type=part_of, default=(1, 1), help="the K-th of N parts of each kernel"
    )
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="processes (default: cores)")
    parser.add_argument("--rows", metavar="FILE", type=Path, help="verdicts are kept here, and not sought again")
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=float("inf"), help="stop after S seconds (default: never)"
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="a page whose tables become those of this run")
    parser.add_argument("subjects", metavar="SUBJECT", nargs="*", help="kernels (default: all)")
    arguments = parser.parse_args()
    sys.exit(
        main(
            arguments.subjects,
            arguments.at,
            arguments.kind,
            arguments.part,
            arguments.jobs,
            arguments.rows,
            arguments.write,
            arguments.seconds,
        )
    )
