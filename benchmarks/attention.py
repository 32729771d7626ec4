"""Time attention() against cuDNN, which torch calls for scaled_dot_product_attention, on 16,384 queries in total.

A case is (D, Dv, heads, key heads, length, causal); the batch is 16,384 / length. FLOPs count all scores, or half of
them where causal. `--backward` times the gradients (dq, dk, dv), whose FLOPs count five products. `--decode` times
attention_decode() of 64 queries to pages of 64 keys against a copy of as many bytes, and `--mla`
attention_decode_mla() of 128 queries against a copy of the pages, which writes them too; their TFLOP/s are TB/s.
`--fp8` times attention_fp8() against bf16 by cuDNN.
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
from ptxdsl.kernels.attention_backward import attention_backward
from ptxdsl.kernels.attention_decode import attention_decode
from ptxdsl.kernels.attention_fp8 import attention_fp8
from ptxdsl.kernels.attention_mla import attention_decode_mla

QUERIES, PAGE = 16384, 64
SEQUENCES = {"decode": 64, "mla": 128}
WAIT_CYCLES = 1_000_000  # 0.5 ms, in which the host launches
HEADS = {64: 32, 128: 16, 256: 8}  # 2,048 columns in total
LENGTHS = (1024, 2048, 4096, 8192, 16384)
BF16 = {"device": "cuda", "dtype": torch.bfloat16}


class Case(NamedTuple):
    d: int
    dv: int
    heads: int
    kv_heads: int
    length: int
    causal: bool
    what: str = "forward"


FORWARD = [
    *(Case(d, d, heads, heads, QUERIES, causal) for causal in (False, True) for d, heads in HEADS.items()),
    *(Case(d, d, heads, heads, length, True) for d, heads in HEADS.items() for length in LENGTHS[:-1]),
    *(Case(128, 128, 64, 8, QUERIES, causal) for causal in (False, True)),
    Case(192, 128, 16, 16, 8192, True),
]
BACKWARD = [
    *(Case(d, d, HEADS[d], HEADS[d], QUERIES, causal, "backward") for causal in (False, True) for d in (64, 128)),
    Case(128, 128, 16, 16, 4096, True, "backward"),
]
DECODE = [Case(d, d, 64, 8, 8192, False, "decode") for d in (64, 128)]
MLA = [Case(576, 512, heads, 1, length, False, "mla") for heads in (16, 128) for length in (4096, 8192)]
FP8 = [Case(128, 128, 16, 16, QUERIES, causal, "fp8") for causal in (False, True)]


@functools.lru_cache(maxsize=1)
def arrays(case: Case) -> tuple[torch.Tensor, ...]:
    if sequences := SEQUENCES.get(case.what):
        pages = sequences * case.length // PAGE
        table = torch.randperm(pages, device="cuda").int().view(sequences, -1)
        cached = [torch.randn(pages, PAGE, case.kv_heads, case.d, **BF16) for _ in range(1 + (case.what == "decode"))]
        lengths = torch.full((sequences,), case.length, device="cuda", dtype=torch.int32)
        return torch.randn(sequences, case.heads, case.d, **BF16), *cached, table, lengths
    extents = ((case.heads, case.d), (case.kv_heads, case.d), (case.kv_heads, case.dv))
    return tuple(torch.randn(QUERIES // case.length, heads, case.length, d, **BF16) for heads, d in extents)


@functools.lru_cache(maxsize=1)
def gradient(case: Case) -> torch.Tensor:
    """Return the gradient of the output."""
    return torch.randn(QUERIES // case.length, case.heads, case.length, case.dv, **BF16)


def by_torch(case: Case) -> dict[str, Run]:
    if case.what in SEQUENCES:
        pages = arrays(case)[1]
        copied = torch.empty_like(pages)
        return {"copy": lambda: copied.copy_(pages)}
    q, k, v = (array.requires_grad_(case.what == "backward") for array in arrays(case))

    def run() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=case.causal, enable_gqa=case.heads != case.kv_heads)

    if case.what != "backward":
        return {"cudnn": run}
    out = run()
    return {"cudnn": lambda: torch.autograd.grad(out, (q, k, v), gradient(case), retain_graph=True)}


def by_us(case: tuple[int, int, int, int, int, bool, str]) -> dict[str, Run]:
    """Results of attention and of its gradients are compared with those of cuDNN."""
    case = Case(*case)
    if case.what in SEQUENCES:
        decode = attention_decode if case.what == "decode" else attention_decode_mla
        return {"ptxdsl": functools.partial(decode, *arrays(case))}
    expected = by_torch(case)["cudnn"]()
    q, k, v = (array.detach() for array in arrays(case))
    if case.what == "backward":
        out, lse = attention(q, k, v, causal=case.causal, return_lse=True)
        run = functools.partial(attention_backward, gradient(case), q, k, v, out, lse, causal=case.causal)
    elif case.what == "fp8":
        scales = [array.abs().amax((2, 3)).float() / 448 for array in (q, k, v)]
        of_8_bits = [
            (array / scale[:, :, None, None]).to(torch.float8_e4m3fn)
            for array, scale in zip((q, k, v), scales, strict=True)
        ]
        run = functools.partial(attention_fp8, *of_8_bits, *scales, causal=case.causal)
        assert (run().float() - expected).norm() < 0.1 * expected.float().norm()  # e4m3 has 4 bits
        return {"ptxdsl": run}
    else:
        run = functools.partial(attention, q, k, v, causal=case.causal, out=torch.full_like(expected, float("nan")))
    torch.testing.assert_close(run(), expected, rtol=3e-2, atol=3e-2)
    return {"ptxdsl": run}


def label(case: Case) -> common.Row:
    d = f"{case.d}" if case.d == case.dv else f"{case.d}/{case.dv}"
    heads = f"{case.heads}" if case.heads == case.kv_heads else f"{case.heads}/{case.kv_heads}"
    return {"what": case.what, "D": d, "heads": heads, "length": case.length, "causal": case.causal}


def operations(case: Case) -> float:
    if case.what in SEQUENCES:
        columns = case.d + case.dv * (case.what == "decode")  # MLA's values are columns of its keys
        return 2.0 * SEQUENCES[case.what] * case.length * case.kv_heads * columns  # bytes
    scores = QUERIES * case.length * case.heads * (0.5 if case.causal else 1.0)
    return scores * (10.0 * case.d if case.what == "backward" else 2.0 * (case.d + case.dv))


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--only", type=int, metavar="D", help="cases of this D alone")
    options.add_argument("--backward", action="store_true", help="the gradients")
    options.add_argument("--decode", action="store_true", help="one query a sequence, keys in pages")
    options.add_argument("--mla", action="store_true", help="one query a sequence, latent keys in pages")
    options.add_argument("--fp8", action="store_true", help="8-bit q, k and v")
    chosen = options.parse_args()
    asked = [*BACKWARD * chosen.backward, *DECODE * chosen.decode, *MLA * chosen.mla, *FP8 * chosen.fp8] or FORWARD
    cases = [case for case in asked if chosen.only in (None, case.d)]
    common.main(common.Benchmark(by_torch, by_us, label, operations, WAIT_CYCLES), cases, chosen)


if __name__ == "__main__":
    main()
