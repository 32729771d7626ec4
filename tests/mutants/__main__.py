"""`python -m tests.mutants [--at FILE:LINE] [SUBJECT …]`: what became of each mutant.

With `--at`, those that come from Python lines that begin so: `--at turns.py:48`, `--at store.py`. The exit code is 1 if
one was missed for no reason.
"""

import argparse
import sys

from .reasons import explained
from .subjects import SUBJECTS
from .table import table
from .trial import MISSED, Trial, Verdict, launches

COPIES = 2  # of one Python line


def main(names: list[str], at: str) -> int:
    results: dict[str, list[Verdict]] = {}
    for name in names or SUBJECTS:
        verdicts = results.setdefault(name, [])
        for problems in launches(SUBJECTS[name]):
            trial = Trial(problems, COPIES)
            if trial.accused:
                print(f"{name}: the intact kernel is accused: {trial.accused}")
                return 1
            chosen = [mutant for mutant in trial.mutants() if mutant.source.startswith(at)]
            verdicts += [explained(name, verdict) for verdict in trial.verdicts(chosen)]
        for verdict in verdicts:
            print(f"{name}: {verdict.mutant}: {verdict.verdict}: {verdict.reason}", flush=True)
    print(table(results))
    return int(any(v.verdict == MISSED for verdicts in results.values() for v in verdicts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.mutants", description="what became of each mutant")
    parser.add_argument("--at", metavar="FILE:LINE", default="", help="those that come from Python lines that begin so")
    parser.add_argument("subjects", metavar="SUBJECT", nargs="*", help="kernels (default: all)")
    arguments = parser.parse_args()
    sys.exit(main(arguments.subjects, arguments.at))
