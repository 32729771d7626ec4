"""The tables of `docs/mutants.md`."""

from collections import Counter
from collections.abc import Mapping, Sequence

from .trial import DOUBLED, FINDING, MISSED, NOT_REACHED, NUMBER, SAME, Verdict

HEAD = (
    "| kernel | mutants | finding | another number | equivalent | not reached | missed |\n|---|--:|--:|--:|--:|--:|--:|"
)
REASONS = "| equivalent because | mutants |\n|---|--:|"


def table(results: Mapping[str, Sequence[Verdict]]) -> str:
    """A row for each subject, a row of totals, the reasons of what is equivalent, and what was missed."""
    missed = [f"- {name}: {v.mutant}" for name, vs in results.items() for v in vs if v.verdict == MISSED]
    return "\n".join([_tables(results), "", "Missed:", "", *(missed or ["- none"])])


def with_tables(page: str, results: Mapping[str, Sequence[Verdict]]) -> str:
    """A page that has both tables, with those of these results."""
    before, _, rest = page.partition(HEAD)
    _, _, reasons = rest.partition(REASONS)
    _, _, behind = reasons.partition("\n\n")
    return f"{before}{_tables(results)}\n\n{behind}"


def _tables(results: Mapping[str, Sequence[Verdict]]) -> str:
    total = Counter(v.verdict for verdicts in results.values() for v in verdicts)
    rows = [_row(name, Counter(v.verdict for v in verdicts)) for name, verdicts in results.items()]
    reasons = Counter(v.reason for vs in results.values() for v in vs if v.verdict in (SAME, DOUBLED))
    told = [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    return "\n".join([HEAD, *rows, _row("all", total), "", REASONS, *told])


def _row(name: str, counts: Counter[str]) -> str:
    columns = (FINDING, NUMBER, (SAME, DOUBLED), NOT_REACHED, MISSED)
    numbers = [sum(counts[v] for v in (c if isinstance(c, tuple) else (c,))) for c in columns]
    return f"| {name} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |"
