"""`python -m tests.mutants [SUBJECT …]`: what became of each mutant; exit code 1 if one was missed for no reason."""

import sys

from .reasons import explained
from .subjects import SUBJECTS
from .table import table
from .trial import MISSED, Trial, Verdict, launches

COPIES = 2  # of one Python line


def main(names: list[str]) -> int:
    results: dict[str, list[Verdict]] = {}
    for name in names or SUBJECTS:
        verdicts = results.setdefault(name, [])
        for problems in launches(SUBJECTS[name]):
            trial = Trial(problems, COPIES)
            if trial.accused:
                print(f"{name}: the intact kernel is accused: {trial.accused}")
                return 1
            verdicts += [explained(name, verdict) for verdict in trial.verdicts(trial.mutants())]
        for verdict in verdicts:
            print(f"{name}: {verdict.mutant}: {verdict.verdict}: {verdict.reason}", flush=True)
    print(table(results))
    return int(any(v.verdict == MISSED for verdicts in results.values() for v in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
