"""Time the host: import, trace and lower, parse, assemble, the choice of tiles, and the emulator on GEMMs.

With a GPU and torch, also time a call of each public function, with and without `out`. On one core:
`OPENBLAS_NUM_THREADS=1 taskset -c 2 python benchmarks/host.py`; `host.py calls` times only the calls.
"""

from __future__ import annotations

import functools
import importlib.util
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
from ptxdsl import driver
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.plan import plan_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm80 import MEDIUM
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column, relu
from ptxdsl.kernels.gemm import KERNELS, gemm, gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.lower import lower
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.types import f16

CALLS = 1000  # of a timing
WITHOUT_OUT = 12  # microseconds of a call that allocates its output
TARGETS = {
    "choose tiles, ms": 2,
    "import ptxdsl, ms": 100,
    "trace + lower of the GEMM, ms": 150,
    "emulate 128^3, checks on, ms": 20,
    "emulate 1024^3, checks off, ms": 1000,
    "emulate 1024^3, checks on, ms": 2000,
}


def milliseconds(run: Callable[[], object], rounds: int) -> float:
    """Return the median of a few runs, after one that is not counted."""
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
    lower(fresh.ir(traits=MEDIUM.traits()))


def chosen() -> Callable[[], object]:
    """Choose a configuration for a new shape."""
    number, operands, rates = itertools.count(), Operands(f16, f16), rates_of()
    return lambda: choose_product(ProductFacts(1000 + next(number), 3000, 4000, 1, operands), rates)


def assembled(text: str) -> Callable[[], object]:
    """Assemble a text that is not cached."""
    number = itertools.count()
    return lambda: pd.assemble.assemble(f"{text}\n// {os.getpid()}.{next(number)}", "sm_90")


def emulated(size: int, checks: bool) -> Callable[[], object]:
    """Emulate a GEMM of size^3 in 128x128x32 tiles, in f16."""
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    out = np.empty((size, size), np.float16)
    plan = plan_of(KERNELS, problem_of(a, b.T, None, out, 0.0), GemmOptions(MEDIUM), (1.0, 0.0))
    return lambda: pd.emulate(plan.kernel, plan.grid, plan.threads, plan.group, checks=checks, **plan.constants)


def public_calls() -> dict[str, Callable[[], object]]:
    """Return calls of the public functions with arrays that take the GPU less time than the host."""
    torch = importlib.import_module("torch")

    def half(*shape: int) -> object:
        return torch.ones(shape, dtype=torch.float16, device="cuda")

    a, b, out = half(64, 64), half(64, 64), half(64, 64)
    lists, outs = ([half(64, 64) for _ in range(8)] for _ in range(2)), [half(64, 64) for _ in range(8)]
    x, w, y = half(1, 8, 8, 32), half(32, 3, 3, 32), half(1, 8, 8, 32)
    rows, experts, written = half(64, 64), half(4, 64, 64), half(64, 64)
    ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
    batch, batches = half(4, 64, 64), half(4, 64, 64)
    a_list, b_list = lists
    bias = torch.ones(64, dtype=torch.float16, device="cuda")
    by_tensor_copies = {"config": GemmConfig(tile=(64, 128, 64), stages=4, atom=WGMMA)} if on_hopper() else {}
    calls = {
        "gemm": (gemm, (a, b), {}, out),
        "gemm by wgmma": (gemm, (a, b), by_tensor_copies, out),
        "gemm with relu": (gemm, (a, b), {"epilogue": relu}, out),
        "gemm with a lambda": (gemm, (a, b), {"epilogue": lambda x: x * 2.0}, out),
        "gemm with a bias and relu": (gemm, (a, b), {"epilogue": add_relu, "operands": (per_column(bias),)}, out),
        "gemm by a schedule": (gemm, (a, b), {"schedule": GroupedRowsThreadblockSwizzle(4)}, out),
        "gemm with split_k": (gemm, (a, b), {"split_k": 2}, out),
        "gemm of batches": (gemm, (batch, experts), {}, batches),
        "gemm of lists of 8": (gemm, (a_list, b_list), {}, outs),
        "conv2d": (conv2d, (x, w), {"pad": 1}, y),
        "conv2d with a bias and relu": (
            conv2d,
            (x, w),
            {"pad": 1, "epilogue": add_relu, "operands": (per_column(bias[:32]),)},
            y,
        ),
        "grouped_gemm of 8": (grouped_gemm, (a_list, b_list), {}, outs),
        "grouped_gemm_ragged": (grouped_gemm_ragged, (rows, experts, ends), {}, written),
        "grouped_gemm_masked": (grouped_gemm_masked, (batch, experts, ends), {}, batches),
    }
    runs: dict[str, Callable[[], object]] = {}
    for name, (function, inputs, options, output) in calls.items():
        runs[f"{name}, out given, us"] = functools.partial(function, *inputs, **options, out=output)
        runs[f"{name}, us"] = functools.partial(function, *inputs, **options)
    runs["gemm, out as c, us"] = functools.partial(gemm, a, b, out, beta=0.5, out=out)
    return runs | {"torch mm, out given, us": functools.partial(torch.mm, a, b, out=out),
                   "torch mm, us": functools.partial(torch.mm, a, b),
                   "torch new_empty, us": functools.partial(a.new_empty, (64, 64), dtype=torch.float16)}  # fmt: skip


def microseconds(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return medians over interleaved rounds of the mean of many calls; the queue of the GPU is empty before each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            driver.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                run()
            times[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def on_hopper() -> bool:
    """True if the GPU has wgmma."""
    return driver.device_arch(0) == ARCH


def has_torch_on_a_gpu() -> bool:
    return driver.why_no_gpu() is None and importlib.util.find_spec("torch") is not None


def on_the_host(rounds: int) -> dict[str, float]:
    """Return the measurements that need no GPU; their names give the unit."""
    text = gemm_kernel.ptx(traits=MEDIUM.traits())
    long = text + "".join(text[text.index(".visible") :].replace("gemm_kernel", f"gemm_{i}") for i in range(20))
    few = max(3, rounds // 3)
    rows = {
        "start python, ms": milliseconds(started, rounds),
        "import ptxdsl, ms": milliseconds(imported, rounds),
        "trace + lower of the GEMM, ms": milliseconds(traced, few),
        "parse, MB/s": len(long) / 1e3 / milliseconds(lambda: pd.parse(long), 3),
        "assemble the GEMM, ms": milliseconds(assembled(text), 3),
        "choose tiles, ms": milliseconds(chosen(), 20),
    }
    for size in (128, 256, 512, 1024):
        for checks in (True, False):
            name = f"emulate {size}^3, checks {'on' if checks else 'off'}, ms"
            rows[name] = milliseconds(emulated(size, checks), 3 if size > 512 else few)
    return rows


def main() -> None:
    parser = common.parser(__doc__ or "")
    parser.add_argument("part", nargs="?", choices=["calls"], help="the calls of public functions alone (default: all)")
    options = parser.parse_args()
    os.environ["PTXDSL_CACHE_DIR"] = "off"
    rows = {} if options.part == "calls" else on_the_host(options.rounds)
    if has_torch_on_a_gpu():
        calls = microseconds(public_calls(), options.rounds)
        TARGETS.update((name, WITHOUT_OUT) for name in calls if "torch" not in name and " of " not in name)
        rows |= calls
    common.report([{"what": k, "measured": v, "target": TARGETS.get(k, "")} for k, v in rows.items()], options.json)


if __name__ == "__main__":
    main()
