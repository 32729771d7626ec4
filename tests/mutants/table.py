"""The table of `docs/mutants.md`."""

from collections import Counter
from collections.abc import Mapping, Sequence

from .trial import DOUBLED, FINDING, MISSED, NOT_REACHED, NUMBER, SAME, Verdict

HEAD = (
    "| kernel | mutants | finding | another number | equivalent | not reached | missed |\n|---|--:|--:|--:|--:|--:|--:|"
)


def table(results: Mapping[str, Sequence[Verdict]]) -> str:
    """A row for each subject, a row of totals, the reasons of what is equivalent, and what was missed."""
    total = Counter(v.verdict for verdicts in results.values() for v in verdicts)
    rows = [_row(name, Counter(v.verdict for v in verdicts)) for name, verdicts in results.items()]
    reasons = Counter(v.reason for vs in results.values() for v in vs if v.verdict in (SAME, DOUBLED))
    told = [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    missed = [f"- {name}: {v.mutant}" for name, vs in results.items() for v in vs if v.verdict == MISSED]
    parts = [HEAD, *rows, _row("all", total), "", "| equivalent because | mutants |\n|---|--:|", *told]
    return "\n".join([*parts, "", "Missed:", "", *(missed or ["- none"])])


def _row(name: str, counts: Counter[str]) -> str:
    columns = (FINDING, NUMBER, (SAME, DOUBLED), NOT_REACHED, MISSED)
    numbers = [sum(counts[v] for v in (c if isinstance(c, tuple) else (c,))) for c in columns]
    return f"| {name} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |"
