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
from dataclasses import replace
from math import ceil
from pathlib import Path

import common
import torch

from ptxdsl.errors import Error
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.operands import Operands
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from ptxdsl.types import bf16

WEIGHTS = [(7168, 16384), (4096, 4096), (2112, 7168), (4096, 7168), (24576, 1536)]
SHAPES = [(m, n, k) for m in (1, 16, 32, 64, 128) for n, k in WEIGHTS]
SHAPES += [(512, 7168, 16384), (256, 7168, 16384), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024)]
ROTATED_BYTES, MOST_COPIES = 192 << 20, 48
IN_COLUMNS, PERSISTENT = IdentityThreadblockSwizzle(1), Strips()
MULTIPROCESSORS = 132
MOST_STAGES = {False: 8, True: 16}
MOST_BLOCKS = 2  # of a multiprocessor
Contender = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


def deepest(tile: tuple[int, int], swap: bool, most: int, **how: object) -> GemmConfig | None:
    """The configuration with as many stages as fit, up to `most`."""
    for stages in range(most, 1, -1):
        config = GemmConfig(tile=(*tile, 64), stages=stages, atom="wgmma", swap_ab=swap, **how)
        if config.traits(Operands(bf16, bf16), "sm_90a").fits("sm_90a"):
            return config
    return None


def tiles_for(m: int, n: int) -> Iterator[tuple[tuple[int, int], bool]]:
    """Tiles that suit so many rows, and whether A and B are swapped."""
    if m <= 128:
        rows = 8 if m <= 8 else 16 * ceil(m / 16)
        yield from (((rows, 64), True), ((rows, 128), True))
    if 64 <= m <= 128 and n > 4096:
        yield from (((m, 192), False), ((m, 256), False))
    if m == 64:
        yield (64, 64), False
    if m == 128:
        yield from (((128, 48), False), ((128, 64), False), ((64, 128), True))
    if m >= 256:
        yield from (((64, 128), False), ((128, 64), False), ((128, 128), False))
    if m >= 256 and n <= 1024:
        yield from (((64, 64), False), ((64, 32), False), ((32, 64), True), ((64, 96), False))
    if m >= 256 and n > 4096:
        yield from (((128, 112), False), ((128, 224), False), ((128, 256), False))


def shares(tiles: int, k: int, families: set[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """How blocks may share the K of so many tiles."""
    yield "", {"schedule": IN_COLUMNS}
    if tiles > MULTIPROCESSORS:
        yield " persistent", {"schedule": PERSISTENT}
    for slices in range(2, 9):
        if tiles * slices <= MOST_BLOCKS * MULTIPROCESSORS and ceil(k / 64) >= 2 * slices:
            for way in ("cluster", "scatter", "parallel"):
                few = tiles * slices <= MULTIPROCESSORS
                if way in families and (slices <= 4 if way == "cluster" else slices in (2, 4) and few):
                    yield f" {way} {slices}", {"schedule": IN_COLUMNS, "split_k": slices, "reduction": way}
    if "stream" in families and tiles % MULTIPROCESSORS and k >= 1024:
        yield " stream", {"schedule": StreamKThreadblockSwizzle(MULTIPROCESSORS)}


def variants(m: int, n: int, k: int, families: set[str]) -> Iterator[tuple[str, GemmConfig]]:
    """Configurations by name: tile, stages, and how blocks share it."""
    for tile, swap in tiles_for(m, n):
        tiles = ceil(m / tile[0]) * ceil(n / tile[1])
        for name, how in shares(tiles, k, families):
            blocks = tiles * int(how.get("split_k", 1))  # type: ignore[call-overload]
            deep = deepest(tile, swap, MOST_STAGES[swap], **how)
            if deep is None:
                continue
            depths = {deep.stages} if blocks <= MULTIPROCESSORS or ("cluster" not in name and name) else set()
            if m <= 128 and ("cluster" in name or not name):
                depths |= {max(3, (deep.stages - 1) // 2)} | ({10} if blocks <= MULTIPROCESSORS and m <= 64 else set())
            for stages in sorted(depths):
                if stages <= deep.stages:
                    yield f"{'swap ' * swap}{tile[0]}x{tile[1]}/{stages}{name}", replace(deep, stages=stages)


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


def measured(shape: tuple[int, int, int], families: set[str], seconds: float) -> tuple[dict[str, float], list[str]]:
    """Times by name, and what failed."""
    copies, stream, graphs, failures = Copies(*shape), torch.cuda.Stream(), {}, []
    contenders: dict[str, Contender] = {
        "cublas": lambda a, b, out: torch.mm(a, b, out=out),
        "chosen": lambda a, b, out: gemm(a, b, out=out),
    }
    for name, config in variants(*shape, families):
        contenders[name] = lambda a, b, out, config=config: gemm(a, b, out=out, config=config)
    for name, contender in contenders.items():
        try:
            error = copies.error(contender)
            if error > 0.01:
                failures.append(f"{name}: differs by {error:.3g}")
            else:
                graphs[name] = copies.graph(contender, stream)
        except Error as refusal:
            failures.append(f"{name}: {str(refusal).splitlines()[0][:160]}")
    return medians(graphs, len(copies.operands), seconds), failures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shape", action="append", default=[], help="MxNxK, may be repeated (default: all)")
    options.add_argument("--families", default="cluster,scatter,parallel,stream", help="ways to share K")
    options.add_argument("--budget", type=float, default=40.0, help="seconds")
    options.add_argument("--best", type=int, default=3, help="how many variants are printed")
    options.add_argument("--json", type=Path, default=common.RESULTS / "variants.json")
    chosen = options.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape] or SHAPES
    rows, start = [], time.perf_counter()
    for number, shape in enumerate(shapes):
        left = chosen.budget - (time.perf_counter() - start)
        if left < 1:
            break
        share = min(0.6, left / (len(shapes) - number) / 2)
        times, failures = measured(shape, set(chosen.families.split(",")), share)  # type: ignore[arg-type]
        best = sorted((name for name in times if name not in ("cublas", "chosen")), key=times.__getitem__)
        rows.append({"shape": shape, "us": times, "failures": failures})
        ours = "  ".join(f"{name} {times['cublas'] / times[name]:.3f}" for name in ["chosen", *best[: chosen.best]])
        print(f"{'x'.join(map(str, shape)):>16} cublas {times['cublas']:7.2f} us  {ours}", flush=True)
        for failure in failures[:2]:
            print("   ", failure, flush=True)
        chosen.json.write_text(json.dumps({"environment": common.environment(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
