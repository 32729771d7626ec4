"""What every benchmark shares: its options, the run over its cases, and a result file that says whence its numbers.

`protocols.py` says how contenders are timed, `against.py` how another version of ptxdsl takes part.
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
from clocks import COLUMNS as CLOCKS
from clocks import Sample, Samples, Watch
from protocols import Budget, Contender, Extent, Gpu, Local, Times

import ptxdsl

RESULTS = pathlib.Path(__file__).parent / "results"
ROOT = pathlib.Path(__file__).resolve().parent.parent
START = time.perf_counter()
BEFORE = "before "
Row = dict[str, object]


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks take."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--rounds", type=int, default=11, help="timed rounds of each contender (default 11)")
    options.add_argument("--json", type=pathlib.Path, help="the result file (default benchmarks/results/NAME.json)")
    return options


def against_parser(description: str) -> argparse.ArgumentParser:
    """The options of benchmarks in which another checkout may take part."""
    options = parser(description)
    options.add_argument(
        "--against", type=pathlib.Path, metavar="DIR", help="another checkout, whose ptxdsl runs too, as `before`"
    )
    options.add_argument("--serve", type=int, metavar="FD", help=argparse.SUPPRESS)  # see against.py
    return options


def gpu_parser(description: str) -> argparse.ArgumentParser:
    """The options of benchmarks that `main` runs."""
    options = against_parser(description)
    options.add_argument("--protocol", choices=[*protocols.PROTOCOLS, "both"], default="both", help="default: both")
    options.add_argument("--turns", type=int, default=3, help="of a second a contender, held (default 3)")
    options.add_argument("--budget", type=float, metavar="SECONDS", help="for all; fewer rounds, then fewer cases")
    options.add_argument("--clocks", action="store_true", help="sample clock and power of each, held, by nvidia-smi")
    return options


@dataclass(frozen=True)
class Benchmark:
    """What is timed: for a case, the contenders of other libraries and those of ptxdsl."""

    others: Make
    ours: Make
    label: Callable[[Case], Row]  # the first columns of its rows
    operations: Callable[[Case], float]
    wait_cycles: int = 0


def main(benchmark: Benchmark, cases: Sequence[Case], options: argparse.Namespace, more: Iterable[Row] = ()) -> None:
    """Times all cases and reports them, with rows that are measured otherwise behind."""
    gpu = protocols.TorchGpu()
    if options.serve is not None:
        serve(Server(gpu, benchmark.ours, ptxdsl.__file__, benchmark.wait_cycles), options.serve)
        return
    with versions(options.against) as children, contextlib.closing(Samples()) as samples:
        if options.clocks:
            samples.start()
        report(itertools.chain(rows(gpu, benchmark, cases, options, children, samples.samples), more), options.json)


@contextlib.contextmanager
def versions(against: pathlib.Path | None, apart: bool = False) -> Iterator[dict[str, Tree]]:
    """This checkout and another one, each in a process of its own, by what stands before the names of its contenders;
    none without another one, unless this one is to run `apart` from this process too."""
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
    samples: Sequence[Sample] = (),
) -> Iterator[Row]:
    """A row for each contender of each case; a case that there is no time for says so."""
    budget, wanted = Budget(gpu, options.budget, START), extent(options)
    for number, case in enumerate(cases):
        share, watch = budget.left() / (len(cases) - number), Watch(samples, time.perf_counter)
        if share > 0 and (result := measured(gpu, benchmark, case, children, budget, wanted, share, watch)):
            sampled = watch.medians()
            for row in rows_of(benchmark, case, *result):
                yield row | dict(zip(CLOCKS, sampled.get(str(row["contender"]), ()), strict=False))
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
    watch: Watch | None = None,
) -> tuple[Times, Extent] | None:
    """A case, timed for about `share` seconds, and how long it was; None where the time is up."""
    start = gpu.now()
    contenders = gathered(gpu, benchmark, case, children)
    launch_seconds = protocols.warm(gpu, contenders)
    fits = budget.extent(wanted, share - (gpu.now() - start), launch_seconds, len(contenders))
    return (protocols.timed(gpu, contenders, fits, watch), fits) if fits else None


def rows_of(benchmark: Benchmark, case: Case, times: Times, timed: Extent) -> Iterator[Row]:
    """What each contender reached; `ratio` is against the first one, `now/before` against the other checkout."""
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
    """All contenders of a case; versions of one of ours stand side by side."""
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
    """GPU, driver, processor, Python and date of this run."""
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
    """Writes rows, with the environment, as JSON, and prints them as a table.

    Rows may still be to be measured: what came before an error is kept.
    """
    path = path or RESULTS / f"{pathlib.Path(sys.argv[0]).stem}.json"
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
