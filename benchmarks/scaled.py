"""Time scaled_gemm (8-bit floats with scales) against torch._scaled_mm.

a and b are N(0,1) rounded to float8_e4m3fn; out is bfloat16. torch has no 128-block scales here. "fast" is torch's
use_fast_accum: the tensor cores accumulate over all of K, as ptxdsl does with tensor and row scales.

`--few` times products of few rows by CUDA graphs: launches that rotate through copies of the operands, and single
launches after a flush of the L2 cache. `--count` adds the configurations with the best estimates.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any

import common
import torch
import variants
from protocols import Run

from ptxdsl.errors import Error
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.scaled import scaled_gemm
from ptxdsl.types import bf16, e4m3

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 16384)]
BLOCK = 128
KINDS = "tensors", "rows", "blocks"
FEW = [(4096, 7168), (7168, 2048), (24576, 1536), (7168, 16384), (4096, 4096)]  # N and K of models during decoding
FEW_SHAPES = [(m, n, k) for n, k in FEW for m in (1, 16, 64, 128)]
SECONDS = 0.15  # of the turns of a product of few rows
Arrays = dict[str, Any]
Launch = Callable[[Arrays], torch.Tensor]


@functools.lru_cache(maxsize=1)
def operands(m: int, n: int, k: int) -> Arrays:
    """Return the operands of a case, shared by all contenders."""
    return new_operands(m, n, k)


def new_operands(m: int, n: int, k: int) -> Arrays:
    """Make A, B, out and the scales of each kind."""
    a, b = (torch.randn(lines, k, device="cuda").to(torch.float8_e4m3fn) for lines in (m, n))
    shapes = {
        "tensors": ((), ()),
        "rows": ((m, 1), (1, n)),
        "blocks": ((m, k // BLOCK), (k // BLOCK, n // BLOCK)),
    }
    scales = {kind: [torch.rand(shape, device="cuda") + 0.5 for shape in pair] for kind, pair in shapes.items()}
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return {"a": a, "b": b.t(), "out": out, **scales}


def by_torch(m: int, n: int, k: int) -> dict[str, Run]:
    known = operands(m, n, k)
    runs: dict[str, Run] = {}
    for kind, fast in (("tensors", True), ("tensors", False), ("rows", True), ("rows", False)):
        name = f"torch, {kind}{', fast' * fast}"
        runs[name] = functools.partial(
            torch._scaled_mm, known["a"], known["b"], *known[kind], out_dtype=torch.bfloat16, use_fast_accum=fast
        )
    return runs


def whole(scale: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Expand scales to one per element of a matrix."""
    for axis, extent in enumerate(shape):
        if scale.ndim == len(shape) and 1 < scale.shape[axis] < extent:
            scale = scale.repeat_interleave(BLOCK, axis)
    return scale


def by_us(m: int, n: int, k: int) -> dict[str, Run]:
    """Return the contenders for all kinds of scales; their products are checked."""
    known, runs = operands(m, n, k), {}
    a, b = known["a"], known["b"]
    for kind in KINDS:
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        scale_a, scale_b = known[kind]
        runs[kind] = functools.partial(scaled_gemm, a, b, scale_a, scale_b, out=out)
        runs[kind]()
        exact = (a.float() * whole(scale_a, a.shape)) @ (b.float() * whole(scale_b, b.shape))
        assert (out - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    return runs


def of_torch(kind: str, arrays: Arrays) -> torch.Tensor:
    """Return a launch of torch."""
    return torch._scaled_mm(arrays["a"], arrays["b"], *arrays[kind], out_dtype=torch.bfloat16, use_fast_accum=True)


def of_ours(kind: str, config: GemmConfig | None, arrays: Arrays) -> torch.Tensor:
    """Return a launch of ptxdsl."""
    out: torch.Tensor = scaled_gemm(arrays["a"], arrays["b"], *arrays[kind], out=arrays["out"], config=config)
    return out


def few_contenders(m: int, n: int, k: int, count: int) -> dict[str, Launch]:
    """Return launches by name: torch, the chosen configuration, and further candidates for each kind of scales."""
    facts = ProductFacts(m, n, k, 1, Operands(e4m3, bf16))
    known: dict[str, Launch] = {f"torch, {kind}": functools.partial(of_torch, kind) for kind in KINDS[:2]}
    for kind in KINDS:
        known[kind] = functools.partial(of_ours, kind, None)
        ranked = ranked_products(facts._replace(block_scales=kind == "blocks"), rates_of(0))
        for _, config in ranked[:count]:
            known[f"{kind}, {TuningCandidate(config).label}"] = functools.partial(of_ours, kind, config)
    return known


def is_right(name: str, launch: Launch, arrays: Arrays) -> bool:
    """True if a product agrees with torch in float32."""
    kind = next(kind for kind in KINDS if kind in name.split(", "))
    scale_a, scale_b = arrays[kind]
    exact = (arrays["a"].float() * whole(scale_a, arrays["a"].shape)) @ (
        arrays["b"].float() * whole(scale_b, arrays["b"].shape)
    )
    arrays["out"].fill_(float("nan"))
    return bool((launch(arrays) - exact).abs().max() <= 2e-2 * exact.abs().max())


def few_rows(cases: Sequence[tuple[int, int, int]], count: int) -> Iterator[common.Row]:
    """Yield a row for each contender of each product."""
    for m, n, k in cases:
        size = (m + n) * k + 2 * m * n
        copies = max(2, min(variants.MOST_COPIES["product"], ceil(variants.ROTATED_BYTES / size)))
        arrays = [new_operands(m, n, k) for _ in range(copies)]
        known = few_contenders(m, n, k, count)
        for name, launch in list(known.items()):
            try:
                assert is_right(name, launch, arrays[0]), f"{name} of {m}x{n}x{k}: a wrong product"
            except (Error, RuntimeError) as refusal:
                print(f"{name} of {m}x{n}x{k}: {str(refusal).splitlines()[0]}", flush=True)
                del known[name]
        rotated = {name: rotating(launch, arrays) for name, launch in known.items()}
        stream = torch.cuda.Stream()
        single = {
            name: variants.graph_of((launch, contextlib.nullcontext), (arrays[0],), 1, stream)
            for name, launch in known.items()
        }
        times, rest = variants.medians(rotated, copies, SECONDS), variants.at_rest(single)
        for name in known:
            yield {
                "shape": f"{m}x{n}x{k}", "contender": name, "us, rotated": times[name], "us, rest": rest[name],
                "GB/s, rotated": 1e-3 * size / times[name],
            }  # fmt: skip


def rotating(launch: Launch, arrays: Sequence[Arrays]) -> torch.cuda.CUDAGraph:
    """Launch once for each copy of the operands."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        launch(arrays[0])
    stream.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for each in arrays:
            launch(each)
    return graph


BENCHMARK = common.Benchmark(
    others=lambda case: by_torch(*case),
    ours=lambda case: by_us(*case),
    label=lambda case: {"shape": "x".join(map(str, case))},
    operations=lambda case: 2.0 * case[0] * case[1] * case[2],
)

if __name__ == "__main__":
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--few", action="store_true", help="products of few rows, instead of large ones")
    options.add_argument("--count", type=int, default=0, help="of the best estimates that are timed, of few rows")
    options.add_argument("--shape", action="append", help="MxNxK, may be repeated (default: a list)")
    chosen = options.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape or ()]
    if chosen.few:
        rows = few_rows(shapes or FEW_SHAPES, chosen.count)
        common.report(rows, chosen.json or common.RESULTS / "scaled_few_rows.json")
    else:
        common.main(BENCHMARK, shapes or SHAPES, chosen)
