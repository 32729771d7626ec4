"""Time grouped GEMM against cuBLAS (in a loop, on streams, in batches) and torch._grouped_mm.

All contenders run through their public call in one run. At rest the GPU waits until the host has launched everything,
so a loop of launches is timed as the GPU sees it; held, a loop of small launches shows the host. Host times of calls
have their own rows. `integers` are numbers from -5 to 5, as in example 24 of CUTLASS; they draw less power than N(0,1).
`reading` is the rate of a product that takes as long as torch.amax over the bytes of its matrices.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import common
import numpy as np
import torch
from protocols import Run
from shapes import GROUPED

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.schedule import GroupedProblemVisitor, PersistentScheduler

WAIT_CYCLES = 3_000_000  # the GPU waits while the host enqueues a loop
STREAMS = 8
Sizes = list[tuple[int, int, int]]
Lists = tuple[list[torch.Tensor], ...]

BOUND_BY_MEMORY = {"64 small"}
RAGGED = [(8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (8, 4096, 14336, 4096), (256, 4112, 512, 7168)]
GATHERED = [(8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (256, 4112, 512, 7168), (8, 4096, 14336, 4096)]
FEW_ROWS = 32  # of a group on average
ALONG_K = [(4, 8192, 7168, 2048), (8, 16384, 4096, 2048)]  # groups, rows, M, N
VISITED = (8192, 8192, 4096)
SCHEDULES: dict[str, dict[str, Any]] = {
    "device": {},
    "device sorted": {"sort": True},
    "host": {"schedule": "host"},
    "host sorted": {"schedule": "host", "sort": True},
    "balance k": {"schedule": "host", "balance": "k"},
}


def host_us(run: Run, repeats: int = 50) -> float:
    """Return the median microseconds until a call returns."""
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


def make(sizes: Sizes, orders: tuple[str, str, str], data: str) -> Lists:
    """Make lists of a, b and out; problems of one size are contiguous, so that cuBLAS can take them as a batch."""
    stacks: dict[tuple[int, int, int], list[torch.Tensor]] = {}
    for m, n, k in dict.fromkeys(sizes):
        count, shapes = sizes.count((m, n, k)), ((m, k), (k, n), (m, n))
        stacks[m, n, k] = [
            in_order(values(data, count, *shape), order) for shape, order in zip(shapes, orders, strict=True)
        ]
    numbers = [sizes[:i].count(size) for i, size in enumerate(sizes)]
    return tuple([stacks[size][n][i] for size, i in zip(sizes, numbers, strict=True)] for n in range(3))


def batches(sizes: Sizes, lists: Lists) -> list[tuple[torch.Tensor, ...]]:
    """Return the same memory as one 3-D tensor for each size."""
    stacks = []
    for size in dict.fromkeys(sizes):
        first, count = sizes.index(size), sizes.count(size)
        stacks.append(tuple(stacked(tensors[first], count) for tensors in lists))
    return stacks


def stacked(first: torch.Tensor, count: int) -> torch.Tensor:
    return first.as_strided((count, *first.shape), (first.numel(), *first.stride()))


class OnStreams:
    """The loop, with its launches distributed over several streams."""

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


def batched(stacks: list[tuple[torch.Tensor, ...]]) -> None:
    for x, y, z in stacks:
        torch.bmm(x, y, out=z)


def check(a: list[torch.Tensor], b: list[torch.Tensor], out: list[torch.Tensor]) -> None:
    for x, y, z in zip(a, b, out, strict=True):
        exact = x.float() @ y.float()
        assert (z.float() - exact).abs().max() <= 2e-3 * exact.abs().max() + 1e-2, "a wrong product"


@functools.lru_cache(maxsize=1)
def lists_of(name: str, orders: tuple[str, str, str], data: str) -> Lists:
    return make(GROUPED[name], orders, data)


def set_by_cublas(name: str, orders: tuple[str, str, str], data: str) -> dict[str, Run]:
    """Return the contenders of cuBLAS: a loop, streams, batches for repeated sizes, and a copy of the same bytes as a
    memory bound.
    """
    sizes, lists = GROUPED[name], lists_of(name, orders, data)
    on_streams, stacks = OnStreams(), batches(sizes, lists)
    runs: dict[str, Run] = {"cuBLAS loop": lambda: loop(*lists), "cuBLAS on streams": lambda: on_streams(*lists)}
    if len(stacks) < len(sizes):
        runs["cuBLAS batched"] = lambda: batched(stacks)
    if name in BOUND_BY_MEMORY:
        memory = torch.zeros(sum(m * k + k * n + m * n for m, n, k in sizes), dtype=torch.float16, device="cuda")
        runs["reading"] = lambda: memory.view(torch.float32).amax()
    return runs


def set_by_us(name: str, orders: tuple[str, str, str], data: str) -> dict[str, Run]:
    """Return all schedules of ptxdsl; their products are checked."""
    a, b, out = lists_of(name, orders, data)
    runs: dict[str, Run] = {}
    for schedule, options in SCHEDULES.items():
        runs[schedule] = functools.partial(grouped_gemm, a, b, out=out, **options)
        for z in out:
            z.fill_(float("nan"))
        runs[schedule]()
        check(a, b, out)
    return runs


def set_label(name: str, orders: tuple[str, str, str], data: str) -> common.Row:
    return {"set": name, "orders": "".join(order[0] for order in orders), "data": data}


def set_operations(name: str, *_: object) -> float:
    return 2.0 * sum(m * n * k for m, n, k in GROUPED[name])


@functools.lru_cache(maxsize=1)
def ragged(groups: int, rows: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Return A and B in bf16 and the ends of the groups, with rows spread over the groups at random."""
    generator = np.random.default_rng(3)
    ends = generator.multinomial(rows, generator.dirichlet(np.full(groups, 4.0))).cumsum()
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    return a, torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(1, 2), ends


def ragged_by_torch(*shape: int) -> dict[str, Run]:
    a, b, ends = ragged(*shape)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    out = torch.empty(a.shape[0], b.shape[2], device="cuda", dtype=torch.bfloat16)
    parts = [(slice(*ends), i) for i, ends in enumerate(itertools.pairwise([0, *ends])) if ends[0] < ends[1]]
    lists = [a[rows] for rows, _ in parts], [b[i] for _, i in parts], [out[rows] for rows, _ in parts]
    return {"torch._grouped_mm": lambda: torch._grouped_mm(a, b, offsets), "cuBLAS loop": lambda: loop(*lists)}


def ragged_by_us(*shape: int) -> dict[str, Run]:
    a, b, ends = ragged(*shape)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    out = torch.full((a.shape[0], b.shape[2]), float("nan"), device="cuda", dtype=torch.bfloat16)
    exact = torch._grouped_mm(a, b, offsets)
    grouped_gemm_ragged(a, b, offsets, out=out)
    assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    return {"ptxdsl": lambda: grouped_gemm_ragged(a, b, offsets, out=out)}


@functools.lru_cache(maxsize=1)
def gathered(groups: int, rows: int, n: int, k: int) -> tuple[Any, ...]:
    """Return A with half as many tokens as rows, B, the token of each row, and the ends of the groups."""
    a, b, ends = ragged(groups, rows, n, k)
    index = torch.randint(rows // 2, (rows,), device="cuda", dtype=torch.int32)
    return a[: rows // 2], b, index, torch.tensor(ends, device="cuda", dtype=torch.int32)


def gathered_by_torch(*shape: int) -> dict[str, Run]:
    a, b, index, offsets = gathered(*shape)
    return {
        "torch: index, _grouped_mm": lambda: torch._grouped_mm(a[index], b, offsets),
        "torch: index_select, ptxdsl": lambda: grouped_gemm_ragged(torch.index_select(a, 0, index), b, offsets),
    }


def gathered_by_us(*shape: int) -> dict[str, Run]:
    """Return the chosen kernel, gathered and copied-before kernels with the same tile, and the product of contiguous
    rows.
    """
    a, b, index, offsets = gathered(*shape)
    out, rows = torch.empty(shape[1], shape[2], device="cuda", dtype=torch.bfloat16), a[index]
    exact = torch._grouped_mm(rows, b, offsets)
    runs: dict[str, Run] = {
        "ptxdsl": functools.partial(grouped_gemm_ragged, a, b, offsets, rows=index, out=out),
        "rows as they lie": functools.partial(grouped_gemm_ragged, rows, b, offsets, out=out),
    }
    for name, config in tiles_of_rows(shape[1] / shape[0]).items():
        for way, copies_rows in (("gathered", False), ("copied before", True)):
            how = dataclasses.replace(config, copies_rows=copies_rows)
            runs[f"{way}, {name}"] = functools.partial(
                grouped_gemm_ragged, a, b, offsets, rows=index, out=out, config=how
            )
    for name, run in runs.items():
        out.fill_(float("nan"))
        run()
        assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), f"a wrong product: {name}"
    return runs


def tiles_of_rows(average: float) -> dict[str, GemmConfig]:
    """Return tiles for groups of this many rows."""
    tile = functools.partial(GemmConfig, atom="wgmma")
    if average < FEW_ROWS:
        few = {f"{m}x128": tile(tile=(m, 128, 64), stages=8, swap_ab=True) for m in (16, 32)}
        return {**few, "64x128": tile(tile=(64, 128, 64), stages=6)}
    return {
        "shares": tile(tile=(256, 128, 64), stages=4, swap_ab=True, stagger=3),
        "128x256": tile(tile=(128, 256, 64), stages=4),
        "128x128 in turns": tile(tile=(128, 128, 64), stages=5, pingpong=True),
    }


def gathered_label(groups: int, rows: int, n: int, k: int) -> common.Row:
    return {"set": f"gathered {groups} groups, {rows}x{n}x{k}", "data": "N(0,1)"}


def ragged_label(groups: int, rows: int, n: int, k: int) -> common.Row:
    return {"set": f"ragged {groups} groups, {rows}x{n}x{k}", "data": "N(0,1)"}


def ragged_operations(groups: int, rows: int, n: int, k: int) -> float:
    return 2.0 * rows * n * k


@functools.lru_cache(maxsize=1)
def along_k(groups: int, rows: int, m: int, n: int) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """Return A and B in bf16 and the ends of groups of about equal length."""
    a, b = (torch.randn(rows, extent, device="cuda", dtype=torch.bfloat16) for extent in (m, n))
    return a, b, [rows // groups * (i + 1) - 17 * (i + 1 < groups) for i in range(groups)]


def along_k_by_torch(*shape: int) -> dict[str, Run]:
    a, b, ends = along_k(*shape)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    out = torch.empty(len(ends), a.shape[1], b.shape[1], device="cuda", dtype=torch.bfloat16)
    parts = [slice(*pair) for pair in itertools.pairwise([0, *ends])]
    lists = [a[rows].t() for rows in parts], [b[rows] for rows in parts], [*out]
    return {"torch._grouped_mm": lambda: torch._grouped_mm(a.t(), b, offsets), "cuBLAS loop": lambda: loop(*lists)}


def along_k_by_us(*shape: int) -> dict[str, Run]:
    a, b, ends = along_k(*shape)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    out = torch.full((len(ends), a.shape[1], b.shape[1]), float("nan"), device="cuda", dtype=torch.bfloat16)
    exact = torch._grouped_mm(a.t(), b, offsets)
    grouped_gemm_ragged_k(a, b, offsets, out=out)
    assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    return {"ptxdsl": lambda: grouped_gemm_ragged_k(a, b, offsets, out=out)}


def along_k_label(groups: int, rows: int, m: int, n: int) -> common.Row:
    return {"set": f"along K {groups} groups, {m}x{n}x{rows}", "data": "N(0,1)"}


def visitor_by_us() -> dict[str, Run]:
    """Return one large problem with the same tiles, by grouped_gemm and by gemm with persistent blocks."""
    config = GemmConfig(tile=(128, 256, 64), stages=3)
    a, b, out = make([VISITED], ("row", "column", "row"), "N(0,1)")
    persistent = PersistentScheduler(max_swizzle=8)
    return {
        "persistent gemm": lambda: gemm(a[0], b[0], out=out[0], config=config, schedule=persistent),
        "gemm": lambda: gemm(a[0], b[0], out=out[0], config=config),
        "device": lambda: grouped_gemm(a, b, out=out, config=config),
        "host": lambda: grouped_gemm(a, b, out=out, config=config, schedule="host"),
    }


class Kind(NamedTuple):
    """The functions that make the arrays and contenders of a kind of case."""

    others: Callable[..., dict[str, Run]]
    ours: Callable[..., dict[str, Run]]
    label: Callable[..., common.Row]
    operations: Callable[..., float]


KINDS = {
    "set": Kind(set_by_cublas, set_by_us, set_label, set_operations),
    "ragged": Kind(ragged_by_torch, ragged_by_us, ragged_label, ragged_operations),
    "gathered": Kind(gathered_by_torch, gathered_by_us, gathered_label, ragged_operations),
    "along k": Kind(along_k_by_torch, along_k_by_us, along_k_label, ragged_operations),
    "visitor": Kind(dict, visitor_by_us, lambda: {"set": "one problem"}, lambda: 2.0 * math.prod(VISITED)),
}
BENCHMARK = common.Benchmark(
    others=lambda case: KINDS[case[0]].others(*case[1:]),
    ours=lambda case: KINDS[case[0]].ours(*case[1:]),
    label=lambda case: KINDS[case[0]].label(*case[1:]),
    operations=lambda case: KINDS[case[0]].operations(*case[1:]),
    wait_cycles=WAIT_CYCLES,
)


def host_cost(name: str) -> dict[str, object]:
    """Measure the host microseconds of a call, and of the table of schedule="host" for new sizes."""
    sizes = GROUPED[name]
    a, b, out = make(sizes, ("row", "column", "row"), "N(0,1)")
    problems = np.array(sizes, np.int64)
    calls = {
        schedule: host_us(lambda options=options: grouped_gemm(a, b, out=out, **options))  # type: ignore[misc]
        for schedule, options in SCHEDULES.items()
    }
    table = host_us(lambda: GroupedProblemVisitor(problems, (64, 128, 64), 264, mode="host").table)
    return {"set": f"host µs, {name}", **calls, "table": table, "cuBLAS loop": host_us(lambda: loop(a, b, out))}


def cases(shapes: list[str]) -> Iterator[tuple[Any, ...]]:
    """Return the cases of the named sets, of "ragged", "gathered", "along k" and "visitor"."""
    columns = ("column", "column", "column")
    for name in GROUPED:
        if name in shapes:
            yield "set", name, ("row", "column", "row"), "N(0,1)"
            yield from (("set", name, columns, data) for data in ("N(0,1)", "integers"))
    if "ragged" in shapes:
        yield from (("ragged", *shape) for shape in RAGGED)
    if "gathered" in shapes:
        yield from (("gathered", *shape) for shape in GATHERED)
    if "along k" in shapes:
        yield from (("along k", *shape) for shape in ALONG_K)
    if "visitor" in shapes:
        yield ("visitor",)


def main() -> None:
    every = [*GROUPED, "ragged", "gathered", "along k", "visitor", "host"]
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--shapes", choices=every, action="append", help="may be repeated (default: all)")
    chosen = options.parse_args()
    shapes = chosen.shapes or every
    host_rows = (host_cost(name) for name in ("8 large", "64 small") if "host" in shapes)
    common.main(BENCHMARK, list(cases(shapes)), chosen, host_rows)


if __name__ == "__main__":
    main()
