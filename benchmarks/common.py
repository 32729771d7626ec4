"""The command line, the run over all cases, and the result file that every benchmark shares.

`protocols.py` times contenders; `against.py` adds another version of ptxdsl as a contender.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import json
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import protocols
from against import Case, Make, Server, Tree, serve
from protocols import Budget, Contender, Extent, Gpu, Local, Times

import ptxdsl

RESULTS = pathlib.Path(__file__).parent / "results"
ROOT = pathlib.Path(__file__).resolve().parent.parent
START = time.perf_counter()
BEFORE = "before "
Row = dict[str, object]


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--rounds", type=int, default=11, help="timed rounds of each contender (default 11)")
    options.add_argument("--json", type=pathlib.Path, help="the result file (default NAME.json in the current folder)")
    return options


def against_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of a benchmark that can time another checkout too."""
    options = parser(description)
    options.add_argument(
        "--against", type=pathlib.Path, metavar="DIR", help="time the ptxdsl of this checkout too, as `before`"
    )
    options.add_argument("--serve", type=int, metavar="FD", help=argparse.SUPPRESS)  # see against.py
    return options


def gpu_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of a benchmark that `main` runs."""
    options = against_parser(description)
    options.add_argument(
        "--protocol", choices=[*protocols.PROTOCOLS, "both"], default="both", help="the timing protocol (default both)"
    )
    options.add_argument(
        "--turns", type=int, default=3, help="turns of one second for each contender, held (default 3)"
    )
    options.add_argument(
        "--budget", type=float, metavar="SECONDS", help="time for the whole run; fewer rounds, then fewer cases"
    )
    return options


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: for each case, the contenders of other libraries and those of ptxdsl."""

    others: Make
    ours: Make
    label: Callable[[Case], Row]  # the first columns of its rows
    operations: Callable[[Case], float]
    wait_cycles: int = 0


def main(benchmark: Benchmark, cases: Sequence[Case], options: argparse.Namespace, more: Iterable[Row] = ()) -> None:
    """Time all cases and report them, followed by the rows in `more`."""
    gpu = protocols.TorchGpu()
    if options.serve is not None:
        serve(Server(gpu, benchmark.ours, ptxdsl.__file__, benchmark.wait_cycles), options.serve)
        return
    with versions(options.against) as children:
        report(itertools.chain(rows(gpu, benchmark, cases, options, children), more), options.json)


@contextlib.contextmanager
def versions(against: pathlib.Path | None, apart: bool = False) -> Iterator[dict[str, Tree]]:
    """Start one process for this checkout and one for `against`, and yield them by the prefix of their contenders.

    Without `against` there are no processes, unless `apart` asks for one that runs this checkout.
    """
    trees = ({"": ROOT} if against or apart else {}) | ({BEFORE: against} if against else {})
    children = {label: Tree(directory, pathlib.Path(sys.argv[0])) for label, directory in trees.items()}
    try:
        for child in children.values():  # which start side by side
            child.check_origin()
        yield children
    finally:
        for child in children.values():
            child.close()


def rows(
    gpu: Gpu,
    benchmark: Benchmark,
    cases: Sequence[Case],
    options: argparse.Namespace,
    children: dict[str, Tree],
) -> Iterator[Row]:
    """Yield a row for each contender of each case, or one row that says the time ran out."""
    budget, wanted = Budget(gpu, options.budget, START), extent(options)
    for number, case in enumerate(cases):
        share = budget.left() / (len(cases) - number)
        if share > 0 and (result := measured(gpu, benchmark, case, children, budget, wanted, share)):
            yield from rows_of(benchmark, case, *result)
        else:
            yield {**benchmark.label(case), "contender": "left out: no time"}


def measured(
    gpu: Gpu,
    benchmark: Benchmark,
    case: Case,
    children: dict[str, Tree],
    budget: Budget,
    wanted: Extent,
    share: float,
) -> tuple[Times, Extent] | None:
    """Time one case for about `share` seconds; return None if the time is up."""
    start = gpu.now()
    contenders = gathered(gpu, benchmark, case, children)
    launch_seconds = protocols.warm(gpu, contenders)
    fits = budget.extent(wanted, share - (gpu.now() - start), launch_seconds, len(contenders))
    return (protocols.timed(gpu, contenders, fits), fits) if fits else None


def rows_of(benchmark: Benchmark, case: Case, times: Times, timed: Extent) -> Iterator[Row]:
    """Yield the result of each contender: `ratio` against the first one, `now/before` against the other checkout."""
    names = list(next(iter(times.values())))
    for name in names:
        row = {**benchmark.label(case), "contender": name}
        for protocol, ms in times.items():
            row[f"us, {protocol}"] = 1000 * ms[name]
            row[f"TFLOP/s, {protocol}"] = 1e-9 * benchmark.operations(case) / ms[name]
            row[f"ratio, {protocol}"] = ms[names[0]] / ms[name]
            if BEFORE + name in ms:
                row[f"now/before, {protocol}"] = ms[BEFORE + name] / ms[name]
        yield {**row, "rounds": timed.rounds, "turns": timed.turns}


def extent(options: argparse.Namespace) -> Extent:
    return Extent(
        options.rounds if options.protocol != "held" else 0, options.turns if options.protocol != "rest" else 0
    )


def gathered(gpu: Gpu, benchmark: Benchmark, case: Case, children: dict[str, Tree]) -> dict[str, Contender]:
    """Return all contenders of a case, the versions of one contender next to each other."""
    contenders: dict[str, Contender] = {
        name: Local(gpu, run, benchmark.wait_cycles) for name, run in benchmark.others(case).items()
    }
    if not children:
        return contenders | {name: Local(gpu, run, benchmark.wait_cycles) for name, run in benchmark.ours(case).items()}
    versions = {label: child.contenders(case) for label, child in children.items()}
    for name in versions[""]:
        contenders |= {label + name: version[name] for label, version in versions.items() if name in version}
    return contenders


def environment() -> dict[str, str]:
    """Return the GPU, driver, processor, Python, date and command of this run."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        name, driver = (
            subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
        )
    except (OSError, subprocess.CalledProcessError):
        name, driver = "none", "none"
    return {
        "gpu": name,
        "driver": driver,
        "processor": platform.machine(),
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "command": "python " + " ".join([f"benchmarks/{pathlib.Path(sys.argv[0]).name}", *sys.argv[1:]]),
    }


def report(rows: Iterable[Row], path: pathlib.Path | None = None) -> None:
    """Write rows and the environment as JSON, and print the rows as a table.

    `rows` may measure as it is iterated: rows that precede an error are written.
    """
    path = path or pathlib.Path(f"{pathlib.Path(sys.argv[0]).stem}.json")
    complete: list[Row] = []
    try:
        for row in rows:
            complete.append(row)
    finally:
        _write(complete, path)


def _write(rows: list[Row], path: pathlib.Path) -> None:
    if not rows:
        print("nothing was measured")
        return
    _print_table(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1) + "\n")
    print(f"written to {path}")


def _print_table(rows: list[Row]) -> None:
    names = list(dict.fromkeys(key for row in rows for key in row))
    cells = [names, *([_cell(row.get(key, "")) for key in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for line in cells:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
