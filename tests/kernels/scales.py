"""Scaled products of values that come out exact: small integers, and scales that are powers of 2."""

import numpy as np

from ptxdsl.kernels.scaled import scaled_gemm
from tests.machines import NAMES

SCALINGS = "tensors", "rows", "blocks"


def values(rng, *shape, dtype="e4m3"):
    """Small integers, in rows that begin at multiples of 16 bytes."""
    *more, length = shape
    return rng.integers(-2, 3, (*more, length + -length % 16)).astype(NAMES[dtype])[..., :length]


def powers(rng, *shape):
    return np.array(np.exp2(rng.integers(-2, 3, shape)), np.float32)


def scales_of(rng, scaling, rows, n, k, groups=()):
    """Of a (rows, k) and b (*groups, k, n)."""
    blocks = -(-k // 128), -(-n // 128)
    shapes = {
        "tensors": ((1,), ()),
        "rows": ((rows, 1), (*groups, 1, n)),
        "blocks": ((rows, blocks[0]), (*groups, *blocks)),
    }
    return [powers(rng, *shape) for shape in shapes[scaling]]


def whole(scale, k, n=None):
    """A scale for each element: of a where n is None, else of b."""
    if scale.size == 1:
        return scale.reshape(1, 1)
    if n is None:
        return scale if scale.shape[1] == 1 else scale.repeat(128, axis=1)[:, :k]
    return scale if scale.shape == (1, n) else scale.repeat(128, axis=0)[:k].repeat(128, axis=1)[:, :n]


def reference(a, b, scale_a, scale_b):
    """What `scaled_gemm` computes."""
    k, n = b.shape
    return (a.astype(np.float64) * whole(scale_a, k)) @ (b.astype(np.float64) * whole(scale_b, k, n))


def check(where, rng, scaling, m, n, k, *, dtype="e4m3", output="f32", **options):
    a, b = values(rng, m, k, dtype=dtype), values(rng, n, k, dtype=dtype).T
    scales = scales_of(rng, scaling, m, n, k)
    out = np.full((m, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, *scales, out)]
    assert scaled_gemm(*given[:4], out=given[4], **options) is given[4]
    exact = reference(a, b, *scales)
    assert (where.values(given[4]) == exact.astype(NAMES[output]).astype(np.float64)).all()
