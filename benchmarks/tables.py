"""Print a result file as a Markdown table: a row for each case, a column for each contender, rest / held in a cell.

python benchmarks/tables.py gemm.json --value TFLOP/s
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

from protocols import PROTOCOLS

VALUES = ("us", "TFLOP/s", "ratio", "now/before")
NOT_LABELS = {
    "contender",
    "rounds",
    "slices",
    "turns",
    "MHz, held",
    "W, held",
    *(f"{value}, {protocol}" for value in VALUES for protocol in PROTOCOLS),
}
Row = dict[str, Any]


def table(rows: list[Row], value: str) -> str:
    """Return a Markdown table."""
    measured = [row for row in rows if any(f"{value}, {protocol}" in row for protocol in PROTOCOLS)]
    contenders = list(dict.fromkeys(row["contender"] for row in measured))
    cells: dict[str, dict[str, str]] = {}
    for row in measured:
        cells.setdefault(label(row), {})[row["contender"]] = cell(row, value)
    lines = [["", *contenders], ["---"] * (1 + len(contenders))]
    lines += [[case, *(by_name.get(name, "") for name in contenders)] for case, by_name in cells.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def label(row: Row) -> str:
    return ", ".join(str(text) for key, text in row.items() if key not in NOT_LABELS)


def cell(row: Row, value: str) -> str:
    """Format three digits; – for a protocol that was not run."""
    figures = [row.get(f"{value}, {protocol}") for protocol in PROTOCOLS]
    return "" if figures == [None, None] else " / ".join("–" if f is None else digits(f) for f in figures)


def digits(figure: float) -> str:
    """Format three significant digits, without an exponent."""
    return f"{figure:.0f}" if figure >= 100 else f"{figure:#.3g}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("results", type=pathlib.Path, nargs="+")
    options.add_argument("--value", choices=VALUES, default="TFLOP/s")
    chosen = options.parse_args()
    for path in chosen.results:
        result = json.loads(path.read_text())
        print("{command}: {gpu}, driver {driver}, {date}\n".format(**result["environment"]))
        print(table(result["rows"], chosen.value))


if __name__ == "__main__":
    main()
