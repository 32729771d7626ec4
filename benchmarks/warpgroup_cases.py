"""The problems that the rates of the sm_90a path are measured on and fitted to, and configurations by name.

| kind | problem |
|---|---|
| product | M, N, K in bf16: few rows, and squares |
| product by protocols | M, N, K: few rows and medium sizes, at rest and held |
| tall | M, N, K: many rows, few columns, at rest and held |
| batches | batches, M, N, K, at rest and held |
| large | M, N, K, and an epilogue: "none", "gelu" or "residual" |
| large by protocols | the same, at rest and held; measured by `large_tiles.py`, in longer turns |
| bytes | M, N, K, and an 8-bit type |
| list | (M, N, K) of each product of a list, in bf16 |
| ragged | groups, total rows, N, K |
| masked | groups, rows of each matrix, N, K |
| along k | groups, total rows, M, N: the weight gradient of ragged groups |
| conv | images, image size, channels, filters, window size, stride, in f16 |
| conv at rest | the same, one launch after a flush of the L2 cache; measured by `conv.py --tiles` |
| dgrad, wgrad | the same as conv; dgrad with a stride of 1 |

Needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ptxdsl.kernels.call.convolutions.problem import (
    Convolution,
    convolution_problem,
    dgrad_problem,
    wgrad_problem,
    window,
)
from ptxdsl.kernels.call.convolutions.windows import window_facts
from ptxdsl.kernels.candidates.facts import Facts, GroupFacts, ListFacts, ProductFacts
from ptxdsl.kernels.choose.products import (
    Ranked,
    ranked_convolutions,
    ranked_groups,
    ranked_groups_by_warps,
    ranked_products,
)
from ptxdsl.kernels.choose.rates import Rates
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import TYPES, bf16, s32

SECTOR_BYTES = 32
FAR = 1.5  # of the best estimate: others are not measured
Problem = tuple[Any, ...]
BY_PROTOCOLS, TALL, BATCHES = "product by protocols", "tall", "batches"
PROTOCOLS = BY_PROTOCOLS, TALL, BATCHES  # kinds that are timed at rest and held
GROUPS, PINGPONG = ("list", "ragged", "masked", "along k"), ("ragged", "masked")

WEIGHTS = [(7168, 16384), (4096, 4096), (2112, 7168), (4096, 7168), (24576, 1536)]
SQUARES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096)
PRODUCTS = [
    *((m, n, k) for m in (1, 16, 32, 64, 128) for n, k in WEIGHTS),
    *((m, 7168, 16384) for m in (512, 256)),
    *((size,) * 3 for size in SQUARES),
]
MATRICES = [*WEIGHTS, (5120, 5120), (7168, 2048), (8192, 8192), (14336, 4096), (4096, 14336), (2048, 7168)]
ROWS = (1, 16, 32, 48, 64, 80, 96, 128, 136, 160, 192, 224, 240, 256, 272, 288, 320, 352, 384, 448, 512, 640)
MEDIUM = [
    *((size,) * 3 for size in (512, 768, 1024, 1536, 2048)),
    *((m, n, k) for m in (768, 1024, 1536, 2048) for n, k in ((2112, 7168), (3072, 3072), (4096, 4096), (7168, 2048))),
    *((m, 1024, 4096) for m in (512, 1024, 2048)), (1536, 1536, 7168), (768, 5120, 5120), (1024, 6144, 4096),
]  # fmt: skip
TALL_PRODUCTS = [
    *((m, n, k) for n in (8, 16, 32, 64, 128) for m, k in ((4096, 4096), (16384, 8192), (65536, 4096), (131072, 512))),
    *((m, n, k) for n in (192, 256, 320, 384, 512) for m, k in ((8192, 8192), (25088, 1024), (65536, 1536))),
    (401408, 64, 256), (401408, 256, 64), (100352, 128, 512),
]  # fmt: skip
BATCHED_PRODUCTS = [
    (8, 2048, 2048, 2048), (12, 4096, 4096, 512), (16, 1024, 1024, 1024), (64, 512, 512, 512), (1024, 128, 128, 128),
    (64, 256, 256, 64), (8, 256, 4096, 4096), (128, 64, 1024, 1024), (64, 16, 4096, 1024), (256, 1, 4096, 1024),
    (96, 1024, 1024, 64), (96, 1024, 64, 1024), (48, 2048, 2048, 128), (48, 2048, 128, 2048), (256, 128, 1024, 64),
    (256, 1024, 64, 1024), (32, 1000, 1000, 1000), (8, 3000, 3000, 3000), (100, 200, 304, 400), (20, 777, 512, 1024),
]  # fmt: skip
LARGE = [
    (16384, 4096, 7168, "none"), (16384, 4096, 1024, "none"),
    (8192, 4096, 2048, "gelu"), (6144, 4096, 4096, "gelu"), (16384, 4096, 1024, "gelu"),
    (4096, 4096, 4096, "residual"), (8192, 8192, 8192, "residual"), (6144, 4096, 4096, "residual"),
    (16384, 4096, 1024, "residual"),
    *((size, size, size, "none") for size in (4104, 5000, 6008, 8200)),
    (12296, 4104, 4104, "none"), (4104, 14344, 4104, "none"), (8200, 4096, 2056, "none"), (16392, 4104, 1032, "none"),
]  # fmt: skip
BYTES = [(4096, 4096, 4096, "s8"), (8192, 8192, 4096, "s8"), (4096, 4096, 4096, "e4m3"), (8192, 4096, 8192, "e4m3"),
         (16384, 2048, 7168, "e4m3"), (5120, 5120, 5120, "e4m3")]  # fmt: skip


def _list(seed: int, count: int, most: tuple[int, int, int], is_one_weight: bool = False) -> Problem:
    """Return this many products of up to `most`, multiples of 64 along N and K, with one N and K if requested."""
    numbers = np.random.default_rng(seed)
    extents = [(8 * numbers.integers(1, most[0] // 8 + 1), *(64 * numbers.integers(1, e // 64 + 1) for e in most[1:]))
               for _ in range(count)]  # fmt: skip
    return tuple((int(m), *(most[1:] if is_one_weight else (int(n), int(k)))) for m, n, k in extents)


LISTS: list[Problem] = [
    tuple((m, 4096, 7168) for m in (512, 640, 896, 1024, 1152, 1280, 1536, 1664)),
    tuple((16 * (1 + i % 8), 1408, 2048) for i in range(64)),
    _list(1, 32, (1024, 1024, 1024)), _list(2, 16, (512, 2048, 1024), True), _list(3, 32, (1024, 4096, 1024), True),
    _list(4, 128, (128, 512, 512)), _list(5, 4, (4096, 4096, 4096)), _list(6, 24, (3072, 3072, 1024)),
    _list(7, 8, (256, 8192, 4096), True), _list(8, 48, (512, 1536, 4096), True), _list(9, 100, (64, 2048, 2048), True),
]  # fmt: skip
RAGGED = [
    (8, 8192, 4096, 7168), (64, 8192, 1408, 2048), (8, 4096, 14336, 4096), (256, 4112, 512, 7168),
    (8, 4096, 7168, 2048), (8, 1024, 4096, 7168), (16, 16384, 2048, 4096), (32, 4096, 3584, 2560),
    (64, 65536, 1408, 2048), (128, 8192, 1024, 4096), (4, 512, 8192, 4096), (8, 32768, 4096, 2048),
    (32, 24576, 2048, 768), (16, 2048, 1536, 6144),
    (64, 1028, 512, 7168), (128, 2056, 512, 7168), (512, 8224, 512, 7168), (256, 8192, 512, 7168),
    (256, 2048, 512, 7168), (128, 2048, 1408, 2048), (32, 512, 4096, 4096), (8, 128, 4096, 7168),
]  # fmt: skip
MASKED = [
    (8, 1024, 4096, 7168), (16, 512, 3072, 4096), (32, 128, 4096, 2048), (64, 64, 1408, 2048), (4, 4096, 4096, 4096),
    (128, 32, 512, 7168), (8, 256, 8192, 2048), (48, 384, 1536, 2048),
]  # fmt: skip
ALONG_K = [(4, 8192, 7168, 2048), (8, 16384, 4096, 2048), (16, 8192, 1024, 4096), (8, 32768, 1024, 1024),
           (64, 16384, 512, 1024), (32, 8192, 1408, 2048)]  # fmt: skip
LAYERS = [  # pixels along a side, channels, filters, pixels along a window's side, stride
    (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1), (56, 256, 512, 1, 2), (28, 128, 128, 3, 1),
    (28, 512, 128, 1, 1), (14, 256, 256, 3, 1), (14, 1024, 256, 1, 1), (7, 512, 512, 3, 1), (7, 512, 2048, 1, 1),
    (56, 128, 128, 3, 2), (112, 64, 128, 3, 1), (28, 256, 512, 3, 1), (14, 512, 512, 3, 1), (28, 320, 640, 3, 1),
    (32, 1280, 640, 1, 1),
]  # fmt: skip
CONVOLUTIONS = [(batch, *layer) for batch in (1, 32, 128) for layer in LAYERS if batch != 128 or layer[0] != 112]
PROBLEMS: dict[str, list[Problem]] = {
    "product": PRODUCTS,
    BY_PROTOCOLS: [*((m, *matrix) for m in ROWS for matrix in MATRICES), *MEDIUM],
    TALL: TALL_PRODUCTS,
    BATCHES: BATCHED_PRODUCTS,
    "large": LARGE,
    "bytes": BYTES,
    "list": LISTS,
    "ragged": RAGGED,
    "masked": MASKED,
    "along k": ALONG_K,
    "conv": CONVOLUTIONS,
    "dgrad": [problem for problem in CONVOLUTIONS if problem[0] > 1 and problem[5] == 1],
    "wgrad": [problem for problem in CONVOLUTIONS if problem[0] > 1],
}


def large_facts(
    m: int, n: int, k: int, epilogue: str = "none", copies: tuple[bool, bool] = (False, False)
) -> ProductFacts:
    """Return the facts of a row-major A and a column-major B in bf16; the `copies` have rows of whole sectors."""
    operands = Operands(bf16, bf16, c="separate" if epilogue == "residual" else "none")
    is_split = 2 * k % SECTOR_BYTES != 0
    split_lines = is_split and not copies[0], is_split and not copies[1]
    return ProductFacts(m, n, k, 1, operands, epilogue == "gelu", split_lines)


def batched_facts(batches: int, m: int, n: int, k: int) -> ProductFacts:
    """Return the facts of row-major As and column-major Bs in bf16."""
    known = large_facts(m, n, k)
    operands = replace(known.operands, batches="strided", out_boxes=True)
    return known._replace(batches=batches, operands=operands)


def bytes_facts(m: int, n: int, k: int, inputs: str) -> ProductFacts:
    return ProductFacts(m, n, k, 1, Operands(TYPES[inputs], s32 if inputs == "s8" else bf16))


def list_facts(*sizes: tuple[int, int, int]) -> ListFacts:
    m, n, k = (np.array(extents) for extents in zip(*sizes, strict=True))
    return ListFacts((m, n, k), Operands(bf16, bf16))


def ragged_facts(groups: int, rows: int, n: int, k: int) -> GroupFacts:
    return GroupFacts(rows / groups, n, k, groups, replace(Operands(bf16, bf16), batches="strided", out_boxes=True))


def masked_facts(groups: int, rows: int, n: int, k: int) -> GroupFacts:
    return ragged_facts(groups, groups * rows, n, k)


def along_k_facts(groups: int, rows: int, m: int, n: int) -> ListFacts:
    """A is row-major, and so is B: rows of both are added up."""
    operands = Operands(bf16, bf16, a_major="mn", b_major="mn", batches="strided", out_boxes=True)
    sizes = np.full(groups, m), np.full(groups, n), np.full(groups, rows // groups)
    return ListFacts(sizes, operands)


def conv_facts(images: int, side: int, channels: int, filters: int, width: int, stride: int) -> ProductFacts:
    problem = convolution(images, side, channels, filters, width, stride)
    return window_facts(problem)


@cache
def convolution(images: int, side: int, channels: int, filters: int, width: int, stride: int) -> Convolution:
    """Return a convolution of arrays that take no memory and are never written."""
    x, w = (
        np.empty(shape, np.float16) for shape in ((images, side, side, channels), (filters, width, width, channels))
    )
    return convolution_problem(x, w, None, window(width // 2, stride, 1))


def dgrad_facts(images: int, side: int, channels: int, filters: int, width: int, _: int) -> ProductFacts:
    dy, w = (
        np.empty(shape, np.float16) for shape in ((images, side, side, filters), (filters, width, width, channels))
    )
    problem = dgrad_problem(dy, w, (side, side), None, window(width // 2, 1, 1))
    return window_facts(problem)


def wgrad_facts(images: int, side: int, channels: int, filters: int, width: int, stride: int) -> ProductFacts:
    out = (side + 2 * (width // 2) - width) // stride + 1
    dy, x = (np.empty(shape, np.float16) for shape in ((images, out, out, filters), (images, side, side, channels)))
    return window_facts(wgrad_problem(dy, x, (width, width), None, window(width // 2, stride, 1)))


FACTS: dict[str, Callable[..., Any]] = {
    "product": large_facts,
    BY_PROTOCOLS: large_facts,
    TALL: large_facts,
    BATCHES: batched_facts,
    "large": large_facts,
    "large by protocols": large_facts,
    "bytes": bytes_facts,
    "list": list_facts,
    "ragged": ragged_facts,
    "masked": masked_facts,
    "along k": along_k_facts,
    "conv": conv_facts,
    "conv at rest": conv_facts,
    "dgrad": dgrad_facts,
    "wgrad": wgrad_facts,
}


def candidates(kind: str, problem: Problem, rates: Rates, count: int) -> dict[str, GemmConfig]:
    """Return the configurations to time for a problem, by label: all candidates, or about `count` if they are many."""
    facts = FACTS[kind](*problem)
    ranked = (
        ranked_groups(facts, rates, kind in PINGPONG) if kind in GROUPS else some(ranked_products(facts, rates), count)
    )
    return {config.label: config for config in [*(config for _, config in ranked), *by_warps(kind, problem, rates)]}


def some(ranked: Ranked, count: int) -> Ranked:
    """Return the best candidates, and some that are not much slower; none if `count` is 0."""
    if not count:
        return []
    others = [each for each in ranked[count:] if each[0] < FAR * ranked[0][0]]
    step = max(1, 3 * len(others) // count)
    return [*ranked[:count], *others[step // 2 :: step]]


def by_warps(kind: str, problem: Problem, rates: Rates) -> list[GemmConfig]:
    """Return the best configuration of the sm_80 path, of groups and convolutions."""
    facts: Facts = FACTS[kind](*problem)
    if kind == "conv":
        ranked = ranked_convolutions(facts, rates, is_wide=True)
    elif kind in GROUPS:
        operands = replace(facts.operands, batches="none", out_boxes=False)
        ranked = ranked_groups_by_warps(facts, ARCH, operands, AHEAD, rates)
    else:
        return []
    return [ranked[0][1]]


def lined(kind: str, problem: Problem, rates: Rates) -> Iterator[tuple[str, tuple[bool, bool], GemmConfig]]:
    """Yield configurations of a large product with unaligned rows after copies of operands: a name, the operands that
    are copied, and the best tiles then."""
    if kind != "large" or not any(large_facts(*problem).split_lines):
        return
    for copies, letters in (((True, True), "ab"), ((False, True), "b"), ((True, False), "a")):
        ranked = ranked_products(large_facts(*problem, copies=copies), rates)
        for _, config in ranked[: 3 if all(copies) else 2]:
            yield f"copied-{letters} {config.label}", copies, config
