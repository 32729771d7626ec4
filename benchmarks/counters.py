"""What the GPU counts while gemm() and cuBLAS multiply, one launch each behind a flush of its caches, by ncu: cycles,
the share of them in which the tensor pipe is busy, instructions, and the bytes that pass the L2 cache and DRAM."""

from __future__ import annotations

import argparse
import csv
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import common

SHAPES = ["8192x8192x8192", "4096x4096x4096", "2048x2048x2048", "5000x5000x5000"]
METRICS = {
    "cycles": "sm__cycles_elapsed.max",
    "tensor pipe, %": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "tensor pipe, % of cycles with a block": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "L2 bytes": "lts__t_bytes.sum",
    "DRAM bytes": "dram__bytes.sum",
}
COLUMNS = ("Kernel Name", "Metric Name", "Metric Value")  # columns of ncu's table


def launch(shape: str, dtype: str) -> None:
    """One launch of each contender that ncu looks at, behind one that it does not."""
    import gemm
    import torch

    case = gemm.Case(*map(int, shape.split("x")), dtype, "tn")
    runs = gemm.others(case) | gemm.ptxdsl(case)
    for is_counted in (False, True):
        torch.cuda.synchronize()
        if is_counted:
            torch.cuda.profiler.start()
        for run in (runs["cublas"], runs["ptxdsl"]):
            run()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def counted(shape: str, dtype: str) -> Iterator[common.Row]:
    """A row for each kernel that the contenders launch."""
    ncu = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off"]
    child = [sys.executable, __file__, "--child", "--shape", shape, "--dtype", dtype]
    command = [*ncu, "--metrics", ",".join(METRICS.values()), *child]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or not lines:
        sys.exit(f"ncu failed:\n{done.stdout}{done.stderr}")
    names = {metric: name for name, metric in METRICS.items()}
    kernels: dict[str, common.Row] = {}
    for row in csv.DictReader(lines):
        kernel, metric, value = (row[column] for column in COLUMNS)
        known = kernels.setdefault(row["ID"], {"shape": shape, "dtype": dtype, "kernel": kernel.split("(")[0][:40]})
        known[names[metric]] = float(value.replace(",", ""))
    yield from kernels.values()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shape", action="append", help=f"MxNxK, may be repeated (default: {', '.join(SHAPES)})")
    options.add_argument("--dtype", choices=["f16", "bf16"], default="bf16")
    options.add_argument("--json", type=pathlib.Path, help="the result file (default benchmarks/results/counters.json)")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    shapes = chosen.shape or SHAPES
    if chosen.child:
        launch(shapes[0], chosen.dtype)
        return
    common.report((row for shape in shapes for row in counted(shape, chosen.dtype)), chosen.json)


if __name__ == "__main__":
    main()
