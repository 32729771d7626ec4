"""Time scaled grouped GEMM of 8-bit floats, with row and column scales and with 128-block scales.

Ragged rows run against torch._scaled_grouped_mm, which has row and column scales; masked rows and groups along K
against a loop of torch._scaled_mm. A and B are N(0,1) rounded to float8_e4m3fn, B is column-major, rows are spread over
the groups at random, out is bfloat16.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import common
import numpy as np
import torch
from protocols import Run

from ptxdsl.kernels.scaled import scaled_gemm_masked, scaled_gemm_ragged, scaled_gemm_ragged_k

RAGGED, MASKED, ALONG_K = "ragged", "masked", "along K"
FORMS = (RAGGED, MASKED, ALONG_K)
BLOCK = 128


class Case(NamedTuple):
    """A case. `rows` is the total of all groups; for masked groups, the rows of each matrix, of which three quarters
    count on average; along K, it is M.
    """

    form: str
    groups: int
    rows: int
    n: int
    k: int


SHAPES = [
    *(Case(RAGGED, *shape) for shape in ((8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (8, 4096, 14336, 4096))),
    Case(RAGGED, 256, 4112, 512, 7168),
    *(Case(MASKED, *shape) for shape in ((8, 1024, 4096, 7168), (32, 128, 4096, 7168), (64, 256, 1408, 2048))),
    *(Case(ALONG_K, *shape) for shape in ((4, 7168, 2048, 8192), (8, 4096, 2048, 16384), (32, 2048, 1408, 8192))),
]


class Groups(NamedTuple):
    """A, B, the ends or row counts of groups, and the scales of each kind.

    The groups whose products are checked begin and end at `parts` of the rows, or of K.
    """

    a: torch.Tensor
    b: torch.Tensor
    told: torch.Tensor
    rows: tuple[torch.Tensor, torch.Tensor]
    blocks: tuple[torch.Tensor, torch.Tensor]
    parts: list[tuple[int, int]]


def floats(*shape: int) -> torch.Tensor:
    """Return 8-bit floats."""
    return torch.stack([torch.randn(shape[1:], device="cuda").to(torch.float8_e4m3fn) for _ in range(shape[0])])


def scales(*shape: int) -> torch.Tensor:
    return torch.rand(shape, device="cuda") + 0.5


def blocks_of(extent: int) -> int:
    return -(-extent // BLOCK)


def shares(groups: int, total: int) -> np.ndarray:
    """Split a total into random shares of the groups."""
    generator = np.random.default_rng(3)
    return generator.multinomial(total, generator.dirichlet(np.full(groups, 4.0)))


@functools.lru_cache(maxsize=1)
def operands(case: Case) -> Groups:
    form, groups, rows, n, k = case
    if form == MASKED:
        counts = np.random.default_rng(3).integers(rows // 2, rows + 1, groups)
        of_rows = scales(groups, rows, 1), scales(groups, 1, n)
        of_blocks = scales(groups, rows, blocks_of(k)), scales(groups, blocks_of(k), blocks_of(n))
        a, told, parts = floats(groups, rows, k), counts, [(0, int(count)) for count in counts]
    elif form == RAGGED:
        told = shares(groups, rows).cumsum()
        of_rows = scales(rows, 1), scales(groups, 1, n)
        of_blocks = scales(rows, blocks_of(k)), scales(groups, blocks_of(k), blocks_of(n))
        a, parts = floats(1, rows, k)[0], list(itertools.pairwise([0, *told.tolist()]))
    else:
        told = shares(groups, k // BLOCK).cumsum() * BLOCK
        of_rows = scales(groups, rows, 1), scales(groups, 1, n)
        of_blocks = scales(rows, blocks_of(k)), scales(blocks_of(k), n)
        a, parts = floats(1, rows, k)[0], list(itertools.pairwise([0, *told.tolist()]))
    b = floats(1, n, k)[0].T if form == ALONG_K else floats(groups, n, k).transpose(1, 2)
    return Groups(a, b, torch.tensor(told, device="cuda", dtype=torch.int32), of_rows, of_blocks, parts)


def by_torch(case: Case) -> dict[str, Run]:
    known = operands(case)
    of_rows, of_columns = known.rows
    if case.form != RAGGED:
        return {
            f"loop of torch._scaled_mm, rows{', fast' * fast}": functools.partial(loop, case, known, fast)
            for fast in (True, False)
        }
    product = functools.partial(
        torch._scaled_grouped_mm, known.a, known.b, of_rows[:, 0], of_columns[:, 0], known.told,
        out_dtype=torch.bfloat16,
    )  # fmt: skip
    return {f"torch, rows{', fast' * fast}": functools.partial(product, use_fast_accum=fast) for fast in (True, False)}


def loop(case: Case, known: Groups, fast: bool) -> None:
    """Multiply each group by itself, with its rows or its part of K."""
    for group, (begin, end) in enumerate(known.parts):
        a, b = (known.a[:, begin:end], known.b[begin:end]) if case.form == ALONG_K else (None, known.b[group])
        scale_a, scale_b = known.rows[0][group], known.rows[1][group]
        if a is None:
            a, scale_a = known.a[group, :end], scale_a[:end]
        if end > begin:
            torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)


OURS: dict[str, Callable[..., Any]] = {
    RAGGED: scaled_gemm_ragged,
    MASKED: scaled_gemm_masked,
    ALONG_K: scaled_gemm_ragged_k,
}


def by_us(case: tuple[str, int, int, int, int]) -> dict[str, Run]:
    """Return the contenders for both kinds of scales; their products are checked."""
    case, runs = Case(*case), {}
    known = operands(case)
    for kind in ("rows", "blocks"):
        shape = (case.rows, case.n) if case.form == RAGGED else (case.groups, case.rows, case.n)
        out = torch.full(shape, float("nan"), device="cuda", dtype=torch.bfloat16)
        pair = getattr(known, kind)
        runs[kind] = functools.partial(OURS[case.form], known.a, known.b, known.told, *pair, out=out)
        runs[kind]()
        for product, exact in products(case, known, pair, out):
            assert not exact.numel() or (product - exact).abs().max() <= 2e-2 * exact.abs().max(), "a wrong product"
    return runs


def products(
    case: Case, known: Groups, pair: tuple[torch.Tensor, torch.Tensor], out: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the computed and the exact product of each group."""
    a, (of_a, of_b) = known.a, pair
    for group, (begin, end) in enumerate(known.parts):
        if case.form == ALONG_K:
            rows, columns = (of_a[group], of_b[group]) if of_a.ndim == 3 else (of_a, of_b)
            scaled_a, scaled_b = a.float() * spread(rows, 1, case.k), known.b.float() * spread(columns, 0, case.k)
            yield out[group].float(), scaled_a[:, begin:end] @ scaled_b[begin:end]
            continue
        whole, rows, result = (a, of_a, out) if case.form == RAGGED else (a[group], of_a[group], out[group])
        scaled_a = whole[begin:end].float() * spread(rows[begin:end], 1, case.k)
        scaled_b = known.b[group].float() * spread(spread(of_b[group], 0, case.k), 1, case.n)
        yield result[begin:end].float(), scaled_a @ scaled_b


def spread(scale: torch.Tensor, axis: int, extent: int) -> torch.Tensor:
    """Expand scales of blocks along an axis to one per element; a single scale or one per element stays unchanged."""
    if scale.shape[axis] in (1, extent):
        return scale
    return scale.repeat_interleave(BLOCK, axis).narrow(axis, 0, extent)


def operations(case: Case) -> float:
    """Return the operations of the rows that count."""
    rows = sum(end - begin for begin, end in operands(case).parts)
    return 2.0 * case.n * (case.rows * rows if case.form == ALONG_K else rows * case.k)


BENCHMARK = common.Benchmark(
    others=by_torch,
    ours=by_us,
    label=lambda case: {"set": f"{case.groups} {case.form}, {'x'.join(map(str, case[2:]))}"},
    operations=operations,
)

if __name__ == "__main__":
    parser = common.gpu_parser(__doc__ or "")
    parser.add_argument("--form", choices=FORMS, action="append", help="may be repeated (default: all)")
    chosen = parser.parse_args()
    common.main(BENCHMARK, [case for case in SHAPES if case.form in (chosen.form or FORMS)], chosen)
