"""The result files of benchmarks/results, and how the report reads them.

A file is the output of one run, {"environment", "rows"}, or {"runs": [...]}, a list of such runs in the order of time.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp, log
from typing import Any

from protocols import PROTOCOLS

RESULTS = pathlib.Path(__file__).parent / "results"
H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"
Row = dict[str, Any]
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Run:
    """One run of a benchmark: its environment and its rows."""

    environment: dict[str, str]
    rows: list[Row]

    @property
    def origin(self) -> str:
        """The GPU and the script, for the caption of a table; the result file has the whole command."""
        gpu = self.environment["gpu"].removeprefix("NVIDIA ").removesuffix(" 80GB HBM3")
        script = re.search(r"\w+\.py", self.environment["command"])
        return f"{gpu if gpu != 'none' else 'no GPU'}, {f'`{script[0]}`' if script else 'single launches'}"

    @property
    def day(self) -> str:
        return self.environment["date"].partition(",")[0]


def runs(name: str) -> list[Run]:
    """Read the runs of a result file, oldest first."""
    data = json.loads((RESULTS / f"{name}.json").read_text())
    return [Run(run["environment"], run["rows"]) for run in data.get("runs", [data])]


@dataclass(frozen=True)
class Pair:
    """The times of ptxdsl and of the library it is compared with, in microseconds by protocol, from one run."""

    case: str
    library: dict[str, float]
    ours: dict[str, float]
    run: Run

    def ratio(self, protocol: str) -> float | None:
        """The speed of ptxdsl relative to the library."""
        both = self.library.get(protocol), self.ours.get(protocol)
        return both[0] / both[1] if both[0] and both[1] else None


def pairs(
    name: str,
    case: Callable[[Row], str | None],
    library: tuple[str, ...] = ("cublas",),
    ours: tuple[str, ...] = ("ptxdsl",),
) -> dict[str, Pair]:
    """Return the latest pair of each case. `case` names the case of a row, or None to skip the row; the best of several
    library contenders counts."""
    found: dict[str, Pair] = {}
    for run in runs(name):
        times: dict[str, dict[str, list[dict[str, float]]]] = {}
        for row in run.rows:
            if label := case(row):
                side = "library" if row.get("contender") in library else "ours" if row.get("contender") in ours else ""
                times.setdefault(label, {}).setdefault(side, []).append(microseconds(row))
        for label, sides in times.items():
            if "library" in sides and "ours" in sides:
                found[label] = Pair(label, best(sides["library"]), best(sides["ours"]), run)
    return found


def microseconds(row: Row) -> dict[str, float]:
    """The times of a row by protocol."""
    return {protocol: row[f"us, {protocol}"] for protocol in PROTOCOLS if row.get(f"us, {protocol}")}


def best(times: list[dict[str, float]]) -> dict[str, float]:
    """The least time by protocol."""
    return {
        protocol: min(t[protocol] for t in times if protocol in t) for protocol in PROTOCOLS if protocol in times[0]
    }


def graph_pairs(name: str, kind: str, gpu: str = H200) -> dict[tuple[int, ...], Pair]:
    """Return the pairs of a file of `variants.py`, timed by CUDA graphs, by problem."""
    found = {}
    for run in runs(name):
        for row in run.rows:
            if row["kind"] == kind and run.environment["gpu"] == gpu:
                both = row["rest, held"]
                library, ours = (dict(zip(PROTOCOLS, both[key], strict=True)) for key in ("cublas", "chosen"))
                problem = tuple(row["problem"])
                found[problem] = Pair("×".join(map(str, problem)), library, ours, run)
    return found


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean."""
    logs = [log(number) for number in numbers]
    return exp(sum(logs) / len(logs))


def mean_ratio(of: Iterable[Pair], protocol: str) -> float | None:
    """Return the geometric mean of the ratios by a protocol, or None if no pair has it."""
    ratios = [ratio for pair in of if (ratio := pair.ratio(protocol))]
    return geometric_mean(ratios) if ratios else None


def extents(shape: str) -> Shape:
    """Parse MxNxK."""
    m, n, k = map(int, shape.split("x"))
    return m, n, k


def is_aligned(shape: str) -> bool:
    """True if the rows of bf16 operands start at multiples of 32 bytes."""
    return not any(extent % 16 for extent in extents(shape))


def gemm_case(dtype: str, layout: str, accept: Callable[[str], bool]) -> Callable[[Row], str | None]:
    """Return a `case` that accepts rows of gemm.py with these properties."""

    def case(row: Row) -> str | None:
        matches = (row["dtype"], row["layout"]) == (dtype, layout) and accept(row["shape"])
        return row["shape"] if matches else None

    return case
