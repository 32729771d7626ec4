"""Times of what runs without a GPU: import, trace + lower, parse, assemble, and the emulator on GEMMs.

On one core: `OPENBLAS_NUM_THREADS=1 taskset -c 2 python benchmarks/host.py`.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import common
import numpy as np

import ptxdsl as pd
from ptxdsl.arrays import strided
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.kernels.heuristic import MEDIUM
from ptxdsl.lower import lower

TARGETS = {
    "import ptxdsl, ms": 100,
    "trace + lower of the GEMM, ms": 150,
    "emulate 128^3, checks on, ms": 20,
    "emulate 1024^3, checks off, ms": 1000,
    "emulate 1024^3, checks on, ms": 2000,
}


def milliseconds(run: Callable[[], object], rounds: int) -> float:
    """Median of a few runs, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def imported() -> None:
    subprocess.run([sys.executable, "-c", "import ptxdsl"], check=True)


def started() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def traced() -> None:
    fresh = pd.kernel(gemm_kernel.__wrapped__)
    lower(fresh.ir(config=MEDIUM))


def assembled(text: str) -> Callable[[], object]:
    """The assembler on a text that no cache has."""
    number = itertools.count()
    return lambda: pd.assemble.assemble(f"{text}\n// {os.getpid()}.{next(number)}", "sm_90")


def emulated(size: int, checks: bool) -> Callable[[], object]:
    """A GEMM of size^3 in 128x128x32 tiles, in f16."""
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    out = np.empty((size, size), np.float16)
    arguments = a, strided(b.T), out[:0], out, size, size, size, size, size, 0, size, 1.0, 0.0
    grid, block = MEDIUM.grid(size, size), MEDIUM.threads
    return lambda: pd.emulate(gemm_kernel, grid, block, *arguments, checks=checks, config=MEDIUM)


def main() -> None:
    options = common.parser(__doc__ or "").parse_args()
    os.environ["PTXDSL_CACHE_DIR"] = "off"
    text = gemm_kernel.ptx(config=MEDIUM)
    long = text + "".join(text[text.index(".visible") :].replace("gemm_kernel", f"gemm_{i}") for i in range(20))
    rounds = max(3, options.rounds // 3)
    rows = {
        "start python, ms": milliseconds(started, options.rounds),
        "import ptxdsl, ms": milliseconds(imported, options.rounds),
        "trace + lower of the GEMM, ms": milliseconds(traced, rounds),
        "parse, MB/s": len(long) / 1e3 / milliseconds(lambda: pd.parse(long), 3),
        "assemble the GEMM, ms": milliseconds(assembled(text), 3),
    }
    for size in (128, 256, 512, 1024):
        for checks in (True, False):
            name = f"emulate {size}^3, checks {'on' if checks else 'off'}, ms"
            rows[name] = milliseconds(emulated(size, checks), 3 if size > 512 else rounds)
    common.report([{"what": k, "measured": v, "target": TARGETS.get(k, "")} for k, v in rows.items()], options.json)


if __name__ == "__main__":
    main()
