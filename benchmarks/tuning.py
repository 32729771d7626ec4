"""What tuning gains, and what a second process pays to take from disk what a first one made.

    python benchmarks/tuning.py gemm       # config="tune" beside the model's choice, bfloat16, out given
    python benchmarks/tuning.py autotune   # pd.autotune of a kernel: the best of its configs beside the worst
    python benchmarks/tuning.py load       # ms to load a kernel that another process compiled

Times of launches are medians of single ones, of both in turn, on a cold L2 cache after a rest.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import common

import ptxdsl as pd
from ptxdsl import driver, f32, ptr, u32
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import KERNELS, gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.runtime.timing import GpuClock, at_rest

SHAPES = ((256, 256, 4096), (512, 4096, 1024), (3000, 3000, 3000))
CONFIGS = [{"threads": threads, "each": each} for threads in (32, 128, 512) for each in (1, 4, 16)]


@pd.autotune(CONFIGS, key=["n"])
@pd.kernel
def scaled(x: ptr[f32], y: ptr[f32], n: u32, *, threads: int, each: int) -> None:
    """y = 2·x."""
    first = pd.ctaid.x * (threads * each) + pd.tid.x
    for k in range(each):
        i = first + k * threads
        with pd.if_(i < n):
            y[i] = 2 * x[i]


def products(torch: Any) -> list[common.Row]:
    """A row a shape: the first call, which tunes; a launch as the model chooses, and as tuning does."""
    rows = []
    for m, n, k in SHAPES:
        a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        start = time.perf_counter()
        gemm(a, b, out=out, config="tune")
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        runs = (
            lambda: gemm(a, b, out=out),  # noqa: B023
            lambda: gemm(a, b, out=out, config="tune"),  # noqa: B023
            lambda: torch.mm(a, b, out=out),  # noqa: B023
        )
        for run in runs:
            run()
        with driver.on(0), GpuClock() as clock:
            model, tuned, cublas = at_rest(clock, runs, rounds=21)
        rows.append(
            {"shape": f"{m}x{n}x{k}", "model, us": model, "tuned, us": tuned, "gain": model / tuned,
             "cuBLAS, us": cublas, "first call, s": seconds}
        )  # fmt: skip
    return rows


def kernels(torch: Any) -> list[common.Row]:
    """A row a config of `scaled`, with what was chosen."""
    n = 1 << 24
    x, y = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
    start = time.perf_counter()
    scaled[lambda threads, each: -(-n // (threads * each)), lambda threads: threads](x, y, n)
    torch.cuda.synchronize()
    seconds, (best,) = time.perf_counter() - start, scaled.best.values()
    plain = scaled.kernel
    runs = [lambda c=c: plain[-(-n // (c["threads"] * c["each"])), c["threads"]](x, y, n, **c) for c in CONFIGS]
    for run in runs:
        run()
    with driver.on(0), GpuClock() as clock:
        times = at_rest(clock, runs)
    return [
        {**config, "us": time, "chosen": "yes" if config == best else "", "first call, s": seconds}
        for config, time in zip(CONFIGS, times, strict=True)
    ]


def loads() -> list[common.Row]:
    """Milliseconds to machine code on the GPU in two processes, of which the first compiles. A kernel that is not
    counted wakes the driver before."""
    rows = []
    for number in range(2):
        done = subprocess.run([sys.executable, __file__, "one-load"], check=True, capture_output=True, text=True)
        names = (
            "small: trace, ms",
            "code, ms",
            "on the GPU, ms",
            "GEMM: trace, ms",
            "its code, ms",
            "it on the GPU, ms",
        )
        rows.append({"process": number + 1, **dict(zip(names, map(float, done.stdout.split()[-6:]), strict=True))})
    return rows


def one_load() -> None:
    """A small kernel and a GEMM, until each could be launched: to PTX, to machine code, and that in the driver."""
    arch, small = driver.device(0).arch, scaled.kernel
    constants = {"traits": GemmConfig().traits(Operands(pd.bf16, pd.bf16))}
    with driver.on(0):
        small.variant(arch, CONFIGS[0]).compiled(arch).on(0)
        print(*steps(small, arch, CONFIGS[1]), *steps(KERNELS.warps, arch, constants))


def steps(kernel: Any, arch: str, constants: dict[str, Any]) -> list[str]:
    times = [time.perf_counter()]
    variant = kernel.variant(arch, constants)
    for step in (lambda: variant.text, lambda: variant.compiled(arch), lambda: variant.compiled(arch).on(0)):
        step()
        times.append(time.perf_counter())
    return [f"{1e3 * (later - earlier):.2f}" for earlier, later in pairwise(times)]


if __name__ == "__main__":
    parser = common.parser(__doc__)
    parser.add_argument("what", choices=("gemm", "autotune", "load", "one-load"))
    options = parser.parse_args()
    if options.what == "one-load":
        one_load()
    elif options.what == "load":
        common.report(loads(), options.json)
    else:
        common.report(
            {"gemm": products, "autotune": kernels}[options.what](importlib.import_module("torch")), options.json
        )
