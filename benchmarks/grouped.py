"""TFLOP/s of grouped GEMM against cuBLAS in a loop, on streams and in batches, and against torch._grouped_mm.

Everything in one run, each through its public call. The GPU waits before each run until the host has sent it off, so
that a loop of launches is measured as the GPU sees it; what calls cost the host is a row of its own. `integers` are
numbers from -5 to 5, as example 24 of CUTLASS fills its matrices: they take less power than N(0,1). `reading` is the
rate that the products would have if they took as long as torch.amax of as many bytes as their matrices have.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import torch

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged
from ptxdsl.schedule import GroupedProblemVisitor, PersistentScheduler

WAIT_CYCLES = 3_000_000  # of the GPU, while the host sends off a loop
STREAMS = 8
Sizes = list[tuple[int, int, int]]
Run = Callable[[], Any]


def mixed() -> Sizes:
    """32 problems of 128 to 1024 along each of M, N and K; one of them has a K of 16384."""
    sizes = (64 * np.random.default_rng(24).integers(2, 17, (31, 3))).tolist()
    return [*map(tuple, sizes[:20]), (1024, 1024, 16384), *map(tuple, sizes[20:])]


SETS: dict[str, Sizes] = {
    "8 large": [(m, 4096, 7168) for m in (512, 640, 896, 1024, 1152, 1280, 1536, 1664)],
    "64 small": [(16 * (1 + i % 8), 1408, 2048) for i in range(64)],
    "32 mixed": mixed(),
}
BOUND_BY_MEMORY = {"64 small"}
RAGGED = [(8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (8, 4096, 14336, 4096), (256, 4112, 512, 7168)]
SCHEDULES: dict[str, dict[str, Any]] = {
    "device": {},
    "device sorted": {"sort": True},
    "host": {"schedule": "host"},
    "host sorted": {"schedule": "host", "sort": True},
    "balance k": {"schedule": "host", "balance": "k"},
}


def host_us(run: Run, repeats: int = 50) -> float:
    """Median microseconds until a call returns."""
    run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def values(data: str, *shape: int) -> torch.Tensor:
    if data == "integers":
        return torch.randint(-5, 6, shape, device="cuda").half()
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def in_order(tensor: torch.Tensor, order: str) -> torch.Tensor:
    return tensor if order == "row" else tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def make(sizes: Sizes, orders: tuple[str, str, str], data: str) -> tuple[list[torch.Tensor], ...]:
    """Lists a, b and out; problems of one size lie one behind the other, so that cuBLAS can take them as a batch."""
    made: dict[Any, list[torch.Tensor]] = {}
    for m, n, k in dict.fromkeys(sizes):
        count, shapes = sizes.count((m, n, k)), ((m, k), (k, n), (m, n))
        made[m, n, k] = [
            in_order(values(data, count, *shape), order) for shape, order in zip(shapes, orders, strict=True)
        ]
    places = [sizes[:i].count(size) for i, size in enumerate(sizes)]
    return tuple([made[size][n][i] for size, i in zip(sizes, places, strict=True)] for n in range(3))


def batches(sizes: Sizes, lists: tuple[list[torch.Tensor], ...]) -> list[tuple[torch.Tensor, ...]]:
    """The same memory as one 3-D tensor for each size."""
    found = []
    for size in dict.fromkeys(sizes):
        first, count = sizes.index(size), sizes.count(size)
        found.append(tuple(stacked(tensors[first], count) for tensors in lists))
    return found


def stacked(first: torch.Tensor, count: int) -> torch.Tensor:
    return first.as_strided((count, *first.shape), (first.numel(), *first.stride()))


class OnStreams:
    """The loop, its launches dealt to several streams."""

    def __init__(self) -> None:
        self.streams = [torch.cuda.Stream() for _ in range(STREAMS)]

    def __call__(self, a: list[torch.Tensor], b: list[torch.Tensor], out: list[torch.Tensor]) -> None:
        current = torch.cuda.current_stream()
        for stream in self.streams:
            stream.wait_stream(current)
        for i, (x, y, z) in enumerate(zip(a, b, out, strict=True)):
            with torch.cuda.stream(self.streams[i % STREAMS]):
                torch.mm(x, y, out=z)
        for stream in self.streams:
            current.wait_stream(stream)


def loop(a: list[torch.Tensor], b: list[torch.Tensor], out: list[torch.Tensor]) -> None:
    for x, y, z in zip(a, b, out, strict=True):
        torch.mm(x, y, out=z)


def batched(found: list[tuple[torch.Tensor, ...]]) -> None:
    for x, y, z in found:
        torch.bmm(x, y, out=z)


def check(a: list[torch.Tensor], b: list[torch.Tensor], out: list[torch.Tensor]) -> None:
    for x, y, z in zip(a, b, out, strict=True):
        exact = x.float() @ y.float()
        assert (z.float() - exact).abs().max() <= 2e-3 * exact.abs().max() + 1e-2, "a wrong product"


def measure(name: str, orders: tuple[str, str, str], data: str, rounds: int) -> dict[str, object]:
    """One set of problems, by all schedules and the other ways."""
    sizes = SETS[name]
    lists = a, b, out = make(sizes, orders, data)
    runs: dict[str, Run] = {}
    for schedule, options in SCHEDULES.items():
        for z in out:
            z.fill_(float("nan"))
        grouped_gemm(a, b, out=out, **options)
        check(a, b, out)
        runs[schedule] = lambda options=options: grouped_gemm(a, b, out=out, **options)  # type: ignore[misc]
    on_streams, found = OnStreams(), batches(sizes, lists)
    runs |= {"cuBLAS loop": lambda: loop(a, b, out), "cuBLAS on streams": lambda: on_streams(a, b, out)}
    if len(found) < len(sizes):
        runs["cuBLAS batched"] = lambda: batched(found)
    if name in BOUND_BY_MEMORY:
        memory = torch.zeros(sum(m * k + k * n + m * n for m, n, k in sizes), dtype=torch.float16, device="cuda")
        runs["reading"] = lambda: memory.view(torch.float32).amax()
    work = 2e-9 * sum(m * n * k for m, n, k in sizes)
    rates = {run: work / ms for run, ms in common.gpu_medians(runs, rounds, WAIT_CYCLES).items()}
    return {"set": name, "orders": "".join(order[0] for order in orders), "data": data, **rates}


def measure_ragged(shape: tuple[int, int, int, int], rounds: int) -> dict[str, object]:
    """bf16; the rows are spread over the groups at random."""
    groups, rows, n, k = shape
    generator = np.random.default_rng(3)
    ends = generator.multinomial(rows, generator.dirichlet(np.full(groups, 4.0))).cumsum()
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    out = torch.full((rows, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    exact = torch._grouped_mm(a, b, offsets)
    grouped_gemm_ragged(a, b, offsets, out=out)
    assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    parts = [
        (slice(begin, end), i) for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)) if end > begin
    ]
    runs: dict[str, Run] = {
        "ptxdsl": lambda: grouped_gemm_ragged(a, b, offsets, out=out),
        "torch._grouped_mm": lambda: torch._grouped_mm(a, b, offsets),
        "cuBLAS loop": lambda: loop([a[s] for s, _ in parts], [b[i] for _, i in parts], [out[s] for s, _ in parts]),
    }
    rates = {run: 2e-9 * rows * n * k / ms for run, ms in common.gpu_medians(runs, rounds, WAIT_CYCLES).items()}
    return {"set": f"ragged {groups} groups, {rows}x{n}x{k}", "data": "N(0,1)", **rates}


def visitor_cost(rounds: int) -> dict[str, object]:
    """One large problem on the same tiles, by grouped_gemm and by gemm with persistent blocks: milliseconds."""
    config = GemmConfig(tile=(128, 256, 64), stages=3)
    a, b, out = make([(8192, 8192, 4096)], ("row", "column", "row"), "N(0,1)")
    persistent = PersistentScheduler(max_swizzle=8)
    runs: dict[str, Run] = {
        "persistent gemm": lambda: gemm(a[0], b[0], out=out[0], config=config, schedule=persistent),
        "gemm": lambda: gemm(a[0], b[0], out=out[0], config=config),
        "device": lambda: grouped_gemm(a, b, out=out, config=config),
        "host": lambda: grouped_gemm(a, b, out=out, config=config, schedule="host"),
    }
    return {"set": "one of 8192x8192x4096, ms", **common.gpu_medians(runs, rounds, WAIT_CYCLES)}


def host_cost(name: str) -> dict[str, object]:
    """Microseconds of the host: a call, and the table of schedule="host" for sizes that were not seen before."""
    sizes = SETS[name]
    a, b, out = make(sizes, ("row", "column", "row"), "N(0,1)")
    problems = np.array(sizes, np.int64)
    calls = {
        schedule: host_us(lambda options=options: grouped_gemm(a, b, out=out, **options))  # type: ignore[misc]
        for schedule, options in SCHEDULES.items()
    }
    table = host_us(lambda: GroupedProblemVisitor(problems, (64, 128, 64), 264, mode="host").table)
    return {"set": f"host µs, {name}", **calls, "table": table, "cuBLAS loop": host_us(lambda: loop(a, b, out))}


def main() -> None:
    options = common.parser(__doc__ or "")
    chosen = options.parse_args()
    rows = []
    for name in SETS:
        for orders in (("row", "column", "row"), ("column", "column", "column")):
            rows.append(measure(name, orders, "N(0,1)", chosen.rounds))
        rows.append(measure(name, ("column", "column", "column"), "integers", chosen.rounds))
    rows += [measure_ragged(shape, chosen.rounds) for shape in RAGGED]
    rows += [visitor_cost(chosen.rounds), host_cost("8 large"), host_cost("64 small")]
    common.report(rows, chosen.json)


if __name__ == "__main__":
    main()
