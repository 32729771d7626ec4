"""What every benchmark shares: fair timing on one GPU, and a result file that says where its numbers come from.

Contenders are timed in turn within one run (A B C A B C …), each after the L2 cache was flushed, on N(0,1) data;
a figure is the median over the rounds. The GPU rests before: after some 50 ms of full load its power limit lowers the
clock, and a shape would be measured at what the one before it has left.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

REST = 0.5  # seconds without load before contenders are timed
RESULTS = pathlib.Path(__file__).parent / "results"


def gpu_medians(
    contenders: dict[str, Callable[[], object]], rounds: int = 15, wait_cycles: int = 0
) -> dict[str, float]:
    """Median milliseconds of each contender on torch's current CUDA device.

    The GPU waits `wait_cycles` before each, in which the host may prepare many launches.
    """
    import torch

    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    torch.cuda.synchronize()
    time.sleep(REST)
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            flush.zero_()
            if wait_cycles:
                torch.cuda._sleep(wait_cycles)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}


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


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks take."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--rounds", type=int, default=15, help="timed rounds of each contender (default 15)")
    made.add_argument("--json", type=pathlib.Path, help="write the result here (default benchmarks/results/NAME.json)")
    return made


def report(rows: list[dict[str, object]], path: pathlib.Path | None = None) -> None:
    """Prints rows as a table and writes them, with the environment, as JSON."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    path = path or RESULTS / f"{pathlib.Path(sys.argv[0]).stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1) + "\n")
    print(f"written to {path}")


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
