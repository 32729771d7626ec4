"""Kernels that take tokens to experts and back, against numpy."""

import numpy as np
import pytest

from ptxdsl import f16, f32
from ptxdsl.kernels.reorder import routing

THREADS = routing.THREADS


@pytest.mark.parametrize(
    "entries, experts, warps", [(1, 1, 32), (96, 8, 32), (700, 300, 16), (4200, 5, 4)], ids=lambda n: str(n)
)
def test_entries_are_numbered_in_the_order_of_their_experts(rng, entries, experts, warps):
    chosen = rng.integers(0, experts, entries)
    rank, ends = np.full(entries, -1, np.int32), np.full(experts, -1, np.int32)
    routing.sort_kernel[1, 32 * warps](chosen, rank, ends, entries, experts=experts, warps=warps)
    assert np.array_equal(np.argsort(rank), np.argsort(chosen, kind="stable"))
    assert np.array_equal(ends, np.bincount(chosen, minlength=experts).cumsum())


@pytest.mark.parametrize(
    "dtype, type, access, width", [(np.float32, f32, 16, 544), (np.float16, f16, 16, 40), (np.float16, f16, 2, 137)]
)
def test_tokens_become_rows_and_rows_tokens(rng, dtype, type, access, width):
    tokens, chosen = 3, 2
    constants = {"type": type, "chosen": chosen, "access": access}
    rank = rng.permutation(tokens * chosen).astype(np.int32).reshape(tokens, chosen)
    weights = rng.random((tokens, chosen), np.float32)
    x = rng.standard_normal((tokens, width), np.float32).astype(dtype)
    rows = rng.standard_normal((tokens * chosen, width), np.float32).astype(dtype)
    picked, close = rows[rank].astype(float), {"atol": 1e-2 if dtype is np.float16 else 1e-5}

    out = np.zeros_like(x)
    routing.combine_kernel[tokens, THREADS](rows, rank, weights, out, width, **constants)
    assert np.allclose(out, (picked * weights[..., None]).sum(1), **close)
    routing.gather_kernel[tokens, THREADS](rows, rank, out, width, **constants)
    assert np.allclose(out, picked.sum(1), **close)

    of_rows, of_weights = np.zeros_like(rows), np.zeros_like(weights)
    routing.spread_kernel[tokens, THREADS](x, rank, of_rows, width, **constants)
    assert np.array_equal(of_rows[rank], np.broadcast_to(x[:, None], picked.shape))
    routing.combine_backward_kernel[tokens, THREADS](x, rows, rank, weights, of_rows, of_weights, width, **constants)
    assert np.allclose(of_rows[rank], x[:, None].astype(float) * weights[..., None], **close)
    assert np.allclose(of_weights, (x[:, None].astype(float) * picked).sum(-1), atol=1e-3)
