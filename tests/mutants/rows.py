"""Verdicts on disk, one line of JSON each: a run that was cut off goes on where it was."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .mutate import Mutant
from .trial import MISSED, Verdict


@dataclass(frozen=True)
class Row:
    """What became of a mutant. `kernel` stands for the instructions, `number` for the mutant among those of the text;
    `pairs` says that others were gone with it too, `seconds` how long a core took."""

    subject: str
    kernel: str
    number: int
    mutant: str
    verdict: str
    reason: str
    pairs: bool = False
    seconds: float = 0.0


def mend(path: Path | None) -> None:
    """Takes the last line of a file away if it was cut off, so that what is written next is a line."""
    if path is not None and path.exists():
        content = path.read_bytes()
        path.write_bytes(content[: content.rfind(b"\n") + 1])


class Rows:
    """Those of one kernel in a file, or in memory alone."""

    def __init__(self, path: Path | None, subject: str, text: str, mutants: Sequence[Mutant]) -> None:
        self.path, self.subject, self.mutants = path, subject, mutants
        self.kernel = hashlib.sha256(_without_lines(text).encode()).hexdigest()[:16]
        self.known = {row.number: row for row in self._read() if self._is_of(row)}

    def _read(self) -> Iterator[Row]:
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                yield Row(**json.loads(line))

    def _is_of(self, row: Row) -> bool:
        if (row.subject, row.kernel) != (self.subject, self.kernel) or row.number >= len(self.mutants):
            return False
        return _without_source(row.mutant) == _without_source(str(self.mutants[row.number]))

    def keep(self, number: int, verdict: Verdict, seconds: float, pairs: bool = False) -> None:
        mutant = str(self.mutants[number])
        row = Row(self.subject, self.kernel, number, mutant, verdict.verdict, verdict.reason, pairs, round(seconds, 2))
        self.known[number] = row
        if self.path is not None:
            with self.path.open("a") as file:  # processes append whole lines
                file.write(json.dumps(asdict(row)) + "\n")

    def verdict(self, number: int) -> Verdict:
        row = self.known[number]
        return Verdict(self.mutants[number], row.verdict, row.reason)

    def missed(self, numbers: Sequence[int]) -> list[int]:
        """Those that were missed, and were not tried with others gone yet."""
        return [n for n in numbers if self.known[n].verdict == MISSED and not self.known[n].pairs]


def _without_lines(text: str) -> str:
    """Return the text without the Python files, lines and functions that it came from: Python versions differ in them."""
    instructions, _, _ = text.partition("\n.section")
    return "\n".join(line for line in instructions.split("\n") if not line.lstrip().startswith((".file", ".loc")))


def _without_source(mutant: str) -> str:
    return mutant.rpartition(" (")[0]
