"""Small and skinny products by many configurations of the sm_90a path, beside cuBLAS and what gemm() chooses.

Contenders take turns: each is a CUDA graph of launches that go through copies of A and B, more than the L2 cache holds
where they are not tiny, so that a launch finds its operands in DRAM and no host is waited for. Medians of the turns.
Each configuration is held against cuBLAS before it is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path

import common
import torch

from ptxdsl.errors import Error
from ptxdsl.kernels.choose.rates import DEFAULT, known
from ptxdsl.kernels.choose.warpgroup_products import estimate, options
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16

WEIGHTS = [(7168, 16384), (4096, 4096), (2112, 7168), (4096, 7168), (24576, 1536)]
SHAPES = [(m, n, k) for m in (1, 16, 32, 64, 128) for n, k in WEIGHTS]
SHAPES += [(512, 7168, 16384), (256, 7168, 16384), *((n, n, n) for n in (256, 512, 768, 1024, 1536, 2048, 3072, 4096))]
ROTATED_BYTES, MOST_COPIES = 192 << 20, 48
MULTIPROCESSORS = 132
FAR = 1.5  # of the best estimate: others are not measured
Contender = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


def variants(m: int, n: int, k: int, count: int) -> Iterator[tuple[str, GemmConfig]]:
    """Configurations by name: tile, stages, and how blocks share K. Most are those that should be best, and the others
    are taken from all."""
    facts = ProductFacts(m, n, k, 1, Operands(bf16, bf16))
    rates = known()[DEFAULT]
    timed = sorted(
        (estimate(option, facts, rates.warpgroups, MULTIPROCESSORS), option)
        for option in options(facts, MULTIPROCESSORS)
    )
    others = [option for time, option in timed[count:] if time < FAR * timed[0][0]]
    step = max(1, 3 * len(others) // count)
    for option in [option for _, option in timed[:count]] + others[step // 2 :: step]:
        tile, way = "x".join(map(str, option.tile)), f" {option.way} {option.slices}" if option.way else ""
        yield f"{'swap ' * option.swap_ab}{tile}/{option.stages}{way}", option.config(64)


class Copies:
    """A, B and out of a shape, several times."""

    def __init__(self, m: int, n: int, k: int) -> None:
        count = max(2, min(MOST_COPIES, ceil(ROTATED_BYTES / (2 * (m * k + n * k + m * n)))))
        a = torch.randn(m, k, device="cuda").to(torch.bfloat16)
        b = torch.randn(n, k, device="cuda").to(torch.bfloat16)
        self.operands = [
            (a.clone(), b.clone().T, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)) for _ in range(count)
        ]
        self.expected = torch.mm(a, b.T).float()

    def error(self, contender: Contender) -> float:
        """The largest difference to cuBLAS, of its largest element."""
        a, b, out = self.operands[0]
        out.fill_(float("nan"))
        contender(a, b, out)
        difference = (out.float() - self.expected).abs().max() / self.expected.abs().max()
        return float(difference.nan_to_num(float("inf")))

    def graph(self, contender: Contender, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        """One launch for each copy."""
        with torch.cuda.stream(stream):
            contender(*self.operands[0])
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for operands in self.operands:
                contender(*operands)
        return graph


def medians(graphs: dict[str, torch.cuda.CUDAGraph], launches: int, seconds: float) -> dict[str, float]:
    """Microseconds of a launch, of graphs in turn for so long."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    start, turns = time.perf_counter(), 0
    while turns < 5 or (time.perf_counter() - start < seconds and turns < 40):
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
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def measured(shape: tuple[int, int, int], count: int, seconds: float) -> tuple[dict[str, float], list[str]]:
    """Times by name, and what failed."""
    copies, stream, graphs, failures = Copies(*shape), torch.cuda.Stream(), {}, []
    contenders: dict[str, Contender] = {
        "cublas": lambda a, b, out: torch.mm(a, b, out=out),
        "chosen": lambda a, b, out: gemm(a, b, out=out),
    }
    for name, config in variants(*shape, count):
        contenders[name] = lambda a, b, out, config=config: gemm(a, b, out=out, config=config)
    for name, contender in contenders.items():
        try:
            error = copies.error(contender)
            if error > 0.01:
                failures.append(f"{name}: differs by {error:.3g}")
            else:
                graphs[name] = copies.graph(contender, stream)
        except (Error, TypeError) as refusal:
            failures.append(f"{name}: {str(refusal).splitlines()[0][:160]}")
    return medians(graphs, len(copies.operands), seconds), failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", action="append", default=[], help="MxNxK, may be repeated (default: all)")
    parser.add_argument("--count", type=int, default=9, help="of the best estimates that are measured")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds")
    parser.add_argument("--best", type=int, default=3, help="how many variants are printed")
    parser.add_argument("--json", type=Path, default=common.RESULTS / "variants.json")
    chosen = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape] or SHAPES
    rows, start = [], time.perf_counter()
    for number, shape in enumerate(shapes):
        left = chosen.budget - (time.perf_counter() - start)
        if left < 1:
            break
        share = min(0.6, left / (len(shapes) - number) / 2)
        times, failures = measured(shape, chosen.count, share)  # type: ignore[arg-type]
        best = sorted((name for name in times if name not in ("cublas", "chosen")), key=times.__getitem__)
        rows.append({"shape": shape, "us": times, "failures": failures})
        ours = "  ".join(f"{name} {times['cublas'] / times[name]:.3f}" for name in ["chosen", *best[: chosen.best]])
        print(f"{'x'.join(map(str, shape)):>16} cublas {times['cublas']:7.2f} us  {ours}", flush=True)
        for failure in failures[:2]:
            print("   ", failure, flush=True)
        chosen.json.write_text(json.dumps({"environment": common.environment(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
