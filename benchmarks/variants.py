"""Time many sm_90a configurations of GEMM, grouped GEMM and convolution against the chosen one and cuBLAS.

Contenders are interleaved. Each is a CUDA graph of launches that rotate through copies of the operands, more than the
L2 cache holds unless they are tiny, so operands come from DRAM and the host is never the limit. Results are medians.
Every configuration is compared with torch first, in parallel processes. The result file has one line a problem and
keeps the lines of kinds that this run does not measure; `fit.py` fits the rates of the estimate to it.

Products "by protocols", tall products and batches are timed twice, both by graphs: one launch after a flush of the L2
cache (rest), and back-to-back launches with warm caches (held). `us` is their geometric mean; both times are kept for
the chosen configuration and for cuBLAS.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import random as random_module
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import common
import numpy as np
import torch
from protocols import FLUSHED_BYTES
from warpgroup_cases import BATCHES, BY_PROTOCOLS, PROBLEMS, PROTOCOLS, TALL, Problem, candidates, lined

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.errors import Error
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.call.products.copies import CopiedOperands
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad
from ptxdsl.kernels.epilogue import gelu
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS

ROTATED_BYTES, MOST_COPIES = 192 << 20, {"product": 48}
COPIES = 12  # at most, of other kinds than those
MOST_ERROR = 0.01  # of the largest element
LEAST_TURNS, MOST_TURNS = 7, 40
REST_ROUNDS, HELD_ROUNDS, HELD_SECONDS = 9, 3, 0.006  # of products by protocols
MOST_LAUNCHES, GRAPH_US = 60, 2000  # of a graph of launches back to back, and how long these shall take
NOTHING = b".version 7.8 .target sm_90 .address_size 64 .visible .entry nothing() { ret; }\0"
CLUSTER_BYTES, CLUSTER_THREADS = 200 << 10, 384  # of a block that is alone on a multiprocessor
PROCESSES = 12  # that assemble and check
Launch = Callable[..., object]
PRODUCTS = (BY_PROTOCOLS, TALL)  # kinds of products that --problem takes
Tensors = list[torch.Tensor]


class Wanted(NamedTuple):
    """The number of configurations to time, those with the best estimates first."""

    count: int


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def product_arrays(m: int, n: int, k: int, epilogue: str = "none") -> tuple[torch.Tensor, ...]:
    """A, B, out, and C where there is one."""
    arrays = random(m, k), random(n, k).T, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return (*arrays, random(m, n)) if epilogue == "residual" else arrays


def batched_arrays(batches: int, m: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    out = torch.empty(batches, m, n, device="cuda", dtype=torch.bfloat16)
    return random(batches, m, k), random(batches, n, k).transpose(1, 2), out


def byte_arrays(m: int, n: int, k: int, inputs: str) -> tuple[torch.Tensor, ...]:
    if inputs == "s8":
        a, b = (torch.randint(-8, 8, shape, device="cuda", dtype=torch.int8) for shape in ((m, k), (n, k)))
        return a, b.T, torch.empty(m, n, device="cuda", dtype=torch.int32)
    a, b = (random(*shape, dtype=torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    return a, b.T, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def list_arrays(*sizes: tuple[int, int, int]) -> tuple[Tensors, ...]:
    out = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for m, n, _ in sizes]
    return [random(m, k) for m, _, k in sizes], [random(n, k).T for _, n, k in sizes], out


def ends_of(groups: int, rows: int) -> torch.Tensor:
    """Return the ends of groups, over which rows are spread at random."""
    numbers = np.random.default_rng(3)
    ends = numbers.multinomial(rows, numbers.dirichlet(np.full(groups, 4.0))).cumsum()
    return torch.tensor(ends, device="cuda", dtype=torch.int32)


def ragged_arrays(groups: int, rows: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    out = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
    return random(rows, k), random(groups, n, k).transpose(1, 2), out, ends_of(groups, rows)


def masked_arrays(groups: int, rows: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    """Three quarters of the rows count, on average."""
    counts = torch.tensor(
        np.random.default_rng(3).integers(rows // 2, rows + 1, groups), device="cuda", dtype=torch.int32
    )
    out = torch.empty(groups, rows, n, device="cuda", dtype=torch.bfloat16)
    return random(groups, rows, k), random(groups, n, k).transpose(1, 2), out, counts


def along_k_arrays(groups: int, rows: int, m: int, n: int) -> tuple[torch.Tensor, ...]:
    ends = torch.tensor(
        [rows // groups * (i + 1) - 17 * (i + 1 < groups) for i in range(groups)], device="cuda", dtype=torch.int32
    )
    return random(rows, m), random(rows, n), torch.empty(groups, m, n, device="cuda", dtype=torch.bfloat16), ends


def images_of(images: int, side: int, channels: int, filters: int, width: int, stride: int) -> tuple[torch.Tensor, ...]:
    """Images, filters and outputs in f16, channels last."""
    over = (side + 2 * (width // 2) - width) // stride + 1
    shapes = (images, side, side, channels), (filters, width, width, channels), (images, over, over, filters)
    x, w, y = (random(*shape, dtype=torch.float16) for shape in shapes)
    return x, w / (channels * width * width) ** 0.5, y


def conv_arrays(*layer: int) -> tuple[torch.Tensor, ...]:
    return images_of(*layer)


def dgrad_arrays(*layer: int) -> tuple[torch.Tensor, ...]:
    x, w, dy = images_of(*layer)
    return dy, w, x


def wgrad_arrays(*layer: int) -> tuple[torch.Tensor, ...]:
    x, w, dy = images_of(*layer)
    return dy, x, w


def first(tensor: torch.Tensor) -> torch.Tensor:
    """Channels first, as torch has images."""
    return tensor.permute(0, 3, 1, 2)


def last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.permute(0, 2, 3, 1)


def product_by_torch(problem: Problem, a: torch.Tensor, b: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    exact = torch.matmul(a, b).float() if a.dtype is torch.bfloat16 else a.float() @ b.float()
    if problem[3:] == ("gelu",):
        return torch.nn.functional.gelu(exact, approximate="tanh")
    return exact + others[1].float() if problem[3:] == ("residual",) else exact


def list_by_torch(_: Problem, a: Tensors, b: Tensors, __: Tensors) -> Tensors:
    return [x @ y for x, y in zip(a, b, strict=True)]


def ragged_by_torch(_: Problem, a: torch.Tensor, b: torch.Tensor, __: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return torch.cat([a[start:end] @ b[i] for i, (start, end) in enumerate(itertools.pairwise([0, *ends.tolist()]))])


def masked_by_torch(_: Problem, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, counts: torch.Tensor) -> Tensors:
    return [a[i, :count] @ b[i] for i, count in enumerate(counts.tolist())]


def along_k_by_torch(
    _: Problem, a: torch.Tensor, b: torch.Tensor, __: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    return torch.stack([a[start:end].T @ b[start:end] for start, end in itertools.pairwise([0, *ends.tolist()])])


def conv_by_torch(problem: Problem, x: torch.Tensor, w: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return last(torch.nn.functional.conv2d(first(x), first(w), None, problem[5], problem[4] // 2))


def dgrad_by_torch(problem: Problem, dy: torch.Tensor, w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return last(torch.nn.grad.conv2d_input(first(x).shape, first(w), first(dy), problem[5], problem[4] // 2))


def wgrad_by_torch(problem: Problem, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return last(torch.nn.grad.conv2d_weight(first(x), first(w).shape, first(dy), problem[5], problem[4] // 2))


def gemm_by_us(
    problem: Problem, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, *c: torch.Tensor, **how: Any
) -> object:
    if problem[3:] == ("gelu",):
        how["epilogue"] = gelu
    return gemm(a, b, *c, out=out, beta=1.0 if c else 0.0, **how)


OURS: dict[str, Launch] = {
    **dict.fromkeys(("product", *PROTOCOLS, "large", "bytes"), gemm_by_us),
    "list": lambda _, a, b, out, **how: grouped_gemm(a, b, out=out, **how),
    "ragged": lambda _, a, b, out, ends, **how: grouped_gemm_ragged(a, b, ends, out=out, **how),
    "masked": lambda _, a, b, out, counts, **how: grouped_gemm_masked(a, b, counts, out=out, **how),
    "along k": lambda _, a, b, out, ends, **how: grouped_gemm_ragged_k(a, b, ends, out=out, **how),
    "conv": lambda p, x, w, out, **how: conv2d(x, w, pad=p[4] // 2, stride=p[5], out=out, **how),
    "dgrad": lambda p, dy, w, out, **how: conv2d_dgrad(dy, w, (p[1], p[1]), pad=p[4] // 2, out=out, **how),
    "wgrad": lambda p, dy, x, out, **how: conv2d_wgrad(dy, x, (p[4], p[4]), pad=p[4] // 2, stride=p[5], out=out, **how),
}
ARRAYS: dict[str, Callable[..., tuple[Any, ...]]] = {
    **dict.fromkeys(("product", BY_PROTOCOLS, TALL, "large"), product_arrays), BATCHES: batched_arrays,
    "bytes": byte_arrays, "list": list_arrays,
    "ragged": ragged_arrays, "masked": masked_arrays, "along k": along_k_arrays, "conv": conv_arrays,
    "dgrad": dgrad_arrays, "wgrad": wgrad_arrays,
}  # fmt: skip
EXACT: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("product", *PROTOCOLS, "large", "bytes"), product_by_torch), "list": list_by_torch,
    "ragged": ragged_by_torch, "masked": masked_by_torch, "along k": along_k_by_torch, "conv": conv_by_torch,
    "dgrad": dgrad_by_torch, "wgrad": wgrad_by_torch,
}  # fmt: skip


def size_of(arrays: Any) -> int:
    """Bytes of tensors, in lists too."""
    if isinstance(arrays, torch.Tensor):
        return arrays.numel() * arrays.element_size()
    return sum(map(size_of, arrays))


def flat(result: Any) -> Tensors:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def error(kind: str, problem: Problem, launch: Launch, arrays: tuple[Any, ...], exact: Tensors) -> float:
    """The largest difference to torch, of its largest element."""
    out = flat(arrays[2])
    for tensor in out:
        tensor.fill_(float("nan") if tensor.is_floating_point() else -1)
    launch(*arrays)
    if kind == "masked":
        out = [out[0][i, : len(rows)] for i, rows in enumerate(exact)]
    most = max(float(each.abs().max()) for each in exact if each.numel())
    parts = (
        (x.float() - y.float()).abs().max().nan_to_num(float("inf"))
        for x, y in zip(out, exact, strict=True)
        if y.numel()
    )
    return max(map(float, parts)) / most


@contextlib.contextmanager
def lines_copied(copies: tuple[bool, bool], config: GemmConfig) -> Iterator[None]:
    """Within, gemm() copies the lines of A and of B, or of one, and takes a configuration for the product of these."""
    CALLS.clear()
    chosen = lambda selection: (config, CopiedOperands(*copies, 0.0))  # noqa: E731
    with mock.patch.object(GemmPlanner, "chosen", chosen):
        yield
    CALLS.clear()


def contenders(kind: str, problem: Problem, wanted: Wanted) -> dict[str, tuple[Launch, Any]]:
    """Launches by name, and within what each is to be made: those of configurations, what is chosen, and cuBLAS."""
    ours, here = partial(OURS[kind], problem), contextlib.nullcontext
    rates = rates_of(0)
    configs = candidates(kind, problem, rates, wanted.count)
    known: dict[str, tuple[Launch, Any]] = {
        name: (partial(ours, config=config), here) for name, config in configs.items()
    }
    for name, copies, config in lined(kind, problem, rates):
        known[name] = ours, partial(lines_copied, copies, config)
    known["chosen"] = ours, here
    if kind in ("product", *PROTOCOLS) or (kind == "large" and problem[3] == "none"):
        known["cublas"] = lambda a, b, out: torch.matmul(a, b, out=out), here
    if kind == "ragged":
        known["torch"] = lambda a, b, out, ends: torch._grouped_mm(a, b, ends), here
    return known


def refused(kind: str, problem: Problem, wanted: Wanted) -> dict[str, str]:
    """Runs each contender once, which leaves machine code in the cache; returns what failed, and how."""
    failures = {}
    try:
        torch.manual_seed(0)
        arrays = ARRAYS[kind](*problem)
        exact = flat(EXACT[kind](problem, *arrays))
        for name, (launch, within) in contenders(kind, problem, wanted).items():
            try:
                with within():
                    off = error(kind, problem, launch, arrays, exact) if name != "torch" else 0.0
                if off > MOST_ERROR:
                    failures[name] = f"differs by {off:.3g}"
            except (Error, TypeError, RuntimeError) as refusal:
                failures[name] = str(refusal).splitlines()[0][:160]
    except Exception as broken:  # one problem must not end the others
        failures[""] = repr(broken)[:200]
    torch.cuda.empty_cache()
    return failures


def graphs_of(
    kind: str, problem: Problem, wanted: Wanted, failures: dict[str, str]
) -> tuple[dict[str, torch.cuda.CUDAGraph], int, Any]:
    """A graph for each contender that did not fail, how many launches it has, and the operands to keep."""
    size = size_of(ARRAYS[kind](*problem))
    copies = max(2, min(MOST_COPIES.get(kind, COPIES), ceil(ROTATED_BYTES / size)))
    operands, stream, graphs = [ARRAYS[kind](*problem) for _ in range(copies)], torch.cuda.Stream(), {}
    for name, (launch, within) in contenders(kind, problem, wanted).items():
        if name in failures:
            continue
        with within():
            with torch.cuda.stream(stream):
                launch(*operands[0])
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for each in operands:
                    launch(*each)
        graphs[name] = graph
    return graphs, copies, operands


def medians(graphs: dict[str, torch.cuda.CUDAGraph], launches: int, seconds: float) -> dict[str, float]:
    """Microseconds of a launch, of graphs in turn for so long."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    start, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or (time.perf_counter() - start < seconds and turns < MOST_TURNS):
        events = {}
        for name, graph in list(graphs.items())[:: 1 if turns % 2 else -1]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            events[name] = begin, end
        torch.cuda.synchronize()
        for name, (begin, end) in events.items():
            times[name].append(1000 * begin.elapsed_time(end) / launches)
        turns += 1
    return {name: round(statistics.median(each[1:]), 3) for name, each in times.items()}


def measured(kind: str, problem: Problem, wanted: Wanted, seconds: float, failures: dict[str, str]) -> dict[str, Any]:
    """A line of the result file: microseconds by name."""
    if kind in PROTOCOLS:
        return by_protocols(kind, problem, wanted, failures)
    graphs, launches, operands = graphs_of(kind, problem, wanted, failures)
    times = medians(graphs, launches, seconds)
    del graphs, operands
    return {"us": times}


def by_protocols(kind: str, problem: Problem, wanted: Wanted, failures: dict[str, str]) -> dict[str, Any]:
    """Return the row of the result file with both protocols."""
    known = {name: each for name, each in contenders(kind, problem, wanted).items() if name not in failures}
    rest, held = rest_and_held(known, ARRAYS[kind](*problem))
    us = {name: round(statistics.geometric_mean((rest[name], held[name])), 2) for name in known}
    told = [name for name in ("chosen", "cublas") if name in known]
    both = {name: [round(times[name], 2) for times in (rest, held)] for name in told}
    return {"us": us, "rest, held": both}


def rest_and_held(known: dict[str, tuple[Launch, Any]], operands: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Microseconds of a launch of each contender, by both protocols."""
    stream = torch.cuda.Stream()
    rest = at_rest({name: graph_of(each, operands, 1, stream) for name, each in known.items()})
    launches = {name: max(4, min(MOST_LAUNCHES, int(GRAPH_US / us))) for name, us in rest.items()}
    graphs = {name: graph_of(each, operands, launches[name], stream) for name, each in known.items()}
    return rest, back_to_back(graphs, launches, rest)


def graph_of(contender: tuple[Launch, Any], operands: Any, launches: int, stream: Any) -> torch.cuda.CUDAGraph:
    """Capture a graph of this many back-to-back launches."""
    launch, within = contender
    with within():
        with torch.cuda.stream(stream):
            launch(*operands)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                launch(*operands)
    return graph


def at_rest(graphs: dict[str, torch.cuda.CUDAGraph]) -> dict[str, float]:
    """Return the microseconds of single launches, each after a flush of the L2 cache, in random order in a round."""
    flushed, times = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda"), {name: [] for name in graphs}
    for _ in range(REST_ROUNDS + 1):
        events = {}
        for name in random_order(graphs):
            flushed.zero_()
            events[name] = replayed(graphs[name], 1)
        torch.cuda.synchronize()
        for name, (begin, end) in events.items():
            times[name].append(1000 * begin.elapsed_time(end))
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def back_to_back(
    graphs: dict[str, torch.cuda.CUDAGraph], launches: dict[str, int], rest: dict[str, float]
) -> dict[str, float]:
    """Microseconds of a launch among those of some milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(HELD_ROUNDS + 1):
        events = {}
        for name in random_order(graphs):
            count = max(1, int(1e6 * HELD_SECONDS / rest[name] / launches[name]))
            graphs[name].replay()
            events[name] = count, *replayed(graphs[name], count)
        torch.cuda.synchronize()
        for name, (count, begin, end) in events.items():
            times[name].append(1000 * begin.elapsed_time(end) / count / launches[name])
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def random_order(graphs: dict[str, torch.cuda.CUDAGraph]) -> list[str]:
    return random_module.sample(list(graphs), len(graphs))


def replayed(graph: torch.cuda.CUDAGraph, count: int) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    """Events around so many replays."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        graph.replay()
    end.record()
    return begin, end


def report(kind: str, problem: Problem, row: dict[str, Any], failures: dict[str, str]) -> None:
    """One line."""
    times = row["us"]
    chosen = times.get("chosen", float("nan"))
    ours = {name: us for name, us in times.items() if name not in ("chosen", "cublas", "torch")} or {"chosen": chosen}
    best = sorted(ours, key=ours.__getitem__)[:3]
    library = "".join(f" {name} {times[name]:.2f}" for name in ("cublas", "torch") if name in times)
    told, more = "  ".join(f"{name} {ours[name]:.2f}" for name in best), 100 * (chosen / ours[best[0]] - 1)
    both = row.get("rest, held", {})
    parts = [f"{theirs / ours:.2f}" for ours, theirs in zip(*both.values(), strict=True)] if len(both) == 2 else []
    of_cublas = f" of cuBLAS {'/'.join(parts)}" if parts else ""
    print(f"{kind} {str(problem)[:60]}:{library} chosen {chosen:.2f} ({more:+.1f} %){of_cublas}  {told}")
    for name, how in failures.items():
        print(f"    {name}: {how}")
    sys.stdout.flush()


def cluster_parts() -> list[float]:
    """The parts of the GPU that clusters of 1 to 8 blocks fill, of which a multiprocessor holds one each."""
    module = call("loading", driver.cuda.cuModuleLoadData, NOTHING)
    function = call("finding", driver.cuda.cuModuleGetFunction, module, b"nothing")
    most = driver.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    call("allowing", driver.cuda.cuFuncSetAttribute, function, most, CLUSTER_BYTES)
    multiprocessors, parts = driver.device(0).multiprocessors, []
    for blocks in range(1, MOST_BLOCKS + 1):
        config, cluster = driver.cuda.CUlaunchConfig(), driver.cuda.CUlaunchAttribute()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks * multiprocessors, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = CLUSTER_THREADS, 1, 1
        config.sharedMemBytes = CLUSTER_BYTES
        cluster.id = driver.cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        extents = cluster.value.clusterDim
        extents.x, extents.y, extents.z = blocks, 1, 1
        config.attrs, config.numAttrs = [cluster], 1
        count = call("asking for clusters", driver.cuda.cuOccupancyMaxActiveClusters, function, config)
        parts.append(round(blocks * int(count) / multiprocessors, 3))
    return parts


def write(path: Path, rows: Sequence[dict[str, Any]], kinds: Sequence[str]) -> None:
    """A file with a line for each problem, with those of other kinds that were there."""
    earlier = json.loads(path.read_text()) if path.exists() else {"environment": {}, "rows": []}
    others = [row for row in earlier["rows"] if row["kind"] not in kinds]
    environments = {kind: each for kind, each in earlier["environment"].items() if kind not in kinds}
    environments |= dict.fromkeys(kinds, common.environment())
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in [*others, *rows])
    head = f'{{"environment": {json.dumps(environments, indent=1)},\n"in_clusters": {json.dumps(cluster_parts())},\n'
    path.write_text(f'{head}"rows": [\n{lines}\n]}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=PROBLEMS, default=[*PROBLEMS], help="default: all")
    parser.add_argument(
        "--count", type=int, default=9, help="configurations to time, best estimates first; 0: the chosen one"
    )
    parser.add_argument("--problem", action="append", default=[], help="MxNxK, products only; may be repeated")
    parser.add_argument("--seconds", type=float, default=0.12, help="time for the turns of one problem")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no new problem starts")
    parser.add_argument("--json", type=Path, default=common.RESULTS / "warpgroups.json")
    chosen = parser.parse_args()
    named = [tuple(map(int, each.split("x"))) for each in chosen.problem]
    problems = [(kind, problem) for kind in chosen.kinds for problem in named or PROBLEMS[kind]]
    if named and not {*chosen.kinds} <= {*PRODUCTS}:
        parser.error(f"--problem is for products: --kinds {' or '.join(map(repr, PRODUCTS))}")
    wanted = Wanted(chosen.count)
    start, rows = time.perf_counter(), []
    # The kinds in turn, that no process has all that takes long
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        failures = list(pool.map(refused, *zip(*problems, strict=True), itertools.repeat(wanted)))
    print(f"assembled and checked in {time.perf_counter() - start:.1f} s", flush=True)
    for (kind, problem), failed in zip(problems, failures, strict=True):
        if time.perf_counter() - start > chosen.budget:
            print(f"{kind} {problem}: no time")
            continue
        try:
            row = measured(kind, problem, wanted, chosen.seconds, failed)
        except (Error, RuntimeError) as broken:
            print(f"{kind} {problem}: {str(broken).splitlines()[0][:200]}", flush=True)
            continue
        rows.append({"kind": kind, "problem": problem, **row})
        report(kind, problem, rows[-1], failed)
        if len(rows) % 20 == 0:
            write(chosen.json, rows, chosen.kinds)
    write(chosen.json, rows, chosen.kinds)
    print(f"{len(rows)} problems, {sum(len(row['us']) for row in rows)} times, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
