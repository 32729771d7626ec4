"""Time attention() against cuDNN, which torch calls for scaled_dot_product_attention, on 16,384 queries in total.

Each case is (D, Dv, heads, key heads, length, causal); the batch is 16,384 / length. FLOPs count all scores, or half of
them where causal.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import common
import torch
from protocols import Run
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ptxdsl.kernels.attention import attention

QUERIES = 16384
WAIT_CYCLES = 1_000_000  # 0.5 ms, in which the host launches
HEADS = {64: 32, 128: 16, 256: 8}  # 2,048 columns in total
LENGTHS = (1024, 2048, 4096, 8192, 16384)


class Case(NamedTuple):
    d: int
    dv: int
    heads: int
    kv_heads: int
    length: int
    causal: bool


CASES = [
    *(Case(d, d, heads, heads, QUERIES, causal) for causal in (False, True) for d, heads in HEADS.items()),
    *(Case(d, d, heads, heads, length, True) for d, heads in HEADS.items() for length in LENGTHS[:-1]),
    *(Case(128, 128, 64, 8, QUERIES, causal) for causal in (False, True)),
    Case(192, 128, 16, 16, 8192, True),
]


@functools.lru_cache(maxsize=1)
def arrays(case: Case) -> tuple[torch.Tensor, ...]:
    batch = QUERIES // case.length
    extents = ((case.heads, case.d), (case.kv_heads, case.d), (case.kv_heads, case.dv))
    return tuple(torch.randn(batch, heads, case.length, d, device="cuda", dtype=torch.bfloat16) for heads, d in extents)


def by_torch(case: Case) -> dict[str, Run]:
    q, k, v = arrays(case)

    def run() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=case.causal, enable_gqa=case.heads != case.kv_heads)

    return {"cudnn": run}


def by_us(case: tuple[int, int, int, int, int, bool]) -> dict[str, Run]:
    """Results are compared with that of cuDNN."""
    case = Case(*case)
    expected = by_torch(case)["cudnn"]()
    out = torch.full_like(expected, float("nan"))
    run = functools.partial(attention, *arrays(case), causal=case.causal, out=out)
    run()
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
    return {"ptxdsl": run}


def label(case: Case) -> common.Row:
    d = f"{case.d}" if case.d == case.dv else f"{case.d}/{case.dv}"
    heads = f"{case.heads}" if case.heads == case.kv_heads else f"{case.heads}/{case.kv_heads}"
    return {"D": d, "heads": heads, "length": case.length, "causal": case.causal}


def operations(case: Case) -> float:
    scores = QUERIES * case.length * case.heads
    return 2.0 * scores * (case.d + case.dv) * (0.5 if case.causal else 1.0)


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--only", type=int, metavar="D", help="cases of this D alone")
    chosen = options.parse_args()
    cases = [case for case in CASES if chosen.only in (None, case.d)]
    common.main(common.Benchmark(by_torch, by_us, label, operations, WAIT_CYCLES), cases, chosen)


if __name__ == "__main__":
    main()
