"""attention_fp8() against softmax in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.attention import attention_kernel
from ptxdsl.kernels.attention_fp8 import attention_fp8
from ptxdsl.kernels.flash.traits import SCALED_CONFIGS, AttentionTraits
from ptxdsl.types import bf16, e4m3
from tests.kernels.spills import check_no_spill
from tests.kernels.test_attention import reference
from tests.machines import BF16, MACHINES, machine

E4M3, D = np.dtype(ml_dtypes.float8_e4m3fn), 128
ROUNDING = 2.0**-4  # the largest relative error of a weight in e4m3


def quantised(rng, *shape):
    """Return random numbers of N(0,1), with their scales of one a head, as e4m3."""
    values = rng.normal(size=shape)
    scales = (np.abs(values).max((2, 3), initial=1e-9) / 448).astype(np.float32)
    return (values / scales[:, :, None, None]).astype(E4M3), scales


def check(where, rng, q_shape, kv_heads, n, dtype=BF16, **options):
    """Compute attention of quantised arrays into a poisoned output, and compare it with that in float64."""
    batch = q_shape[0]
    (q, scale_q), (k, scale_k), (v, scale_v) = (
        quantised(rng, *s) for s in (q_shape, (batch, kv_heads, n, D), (batch, kv_heads, n, D))
    )
    out = where.array(np.full(q_shape, np.nan, dtype))
    given = map(where.array, (q, k, v, scale_q, scale_k, scale_v))
    result = attention_fp8(*given, out=out, return_lse=True, **options)
    assert result[0] is out
    found, lse = map(where.values, result)
    exact = [x.astype(np.float64) * s[:, :, None, None] for x, s in ((q, scale_q), (k, scale_k), (v, scale_v))]
    wanted, sums = reference(*exact, **options)
    np.testing.assert_allclose(
        lse, sums, rtol=1e-3, atol=5e-3
    )  # tensor cores add 8-bit products with fewer bits than float32 has
    within, _ = reference(*exact[:2], np.abs(exact[2]), **options)  # the weights times the absolute values
    error = np.abs(found - wanted)
    assert (error <= ROUNDING * within + 2.0**-8 * np.abs(wanted) + 1e-6).all()
    assert np.sqrt((error**2).mean()) <= ROUNDING / 2 * np.sqrt((within**2).mean())


CASES = {
    "one query": ((1, 1, 1, D), 1, 63, {}),
    "one key": ((1, 2, 65, D), 1, 1, {}),
    "causal": ((1, 1, 200, D), 1, 200, {"causal": True}),
    "groups of heads": ((2, 4, 70, D), 2, 129, {"dtype": np.float16, "scale": 0.2}),
    "window": ((1, 1, 140, D), 1, 400, {"window": (130, 20)}),
    "long": ((1, 1, 64, D), 1, 1000, {}),
    "maxima that grow by more than 2**4": ((1, 1, 64, D), 1, 600, {"scale": 0.5}),
    "no keys": ((1, 1, 20, D), 1, 0, {}),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_attention(name, case, rng):
    shape, heads, n, options = CASES[case]
    check(machine(name), rng, shape, heads, n, **options)


@pytest.mark.parametrize("bounds", [(False, False), (True, True)])
def test_all_stays_in_registers(bounds):
    traits = AttentionTraits(e4m3, config=SCALED_CONFIGS[D, D], is_bounded=bounds, out=bf16)
    check_no_spill(attention_kernel, traits)
    assert attention_kernel.cubin("sm_90a", traits=traits).warnings == ()


def arrays():
    return {
        "q": np.ones((1, 2, 8, D), E4M3), "k": np.ones((1, 2, 32, D), E4M3),
        "v": np.ones((1, 2, 32, D), E4M3),
        **{f"scale_{name}": np.ones((1, 2), np.float32) for name in "qkv"},
    }  # fmt: skip


REFUSED = {
    "type": (
        {"k": np.ones((1, 2, 32, D), BF16)},
        "`q`, `k` and `v` have elements of float8_e4m3fn, bfloat16 and float8_e4m3fn",
        "convert all three to float8_e4m3fn",
    ),
    "columns of q": (
        {"q": np.ones((1, 2, 8, 64), E4M3)},
        "`q` has the shape (1, 2, 8, 64), `k` (1, 2, 32, 128) and `v` (1, 2, 32, 128)",
        "q is (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)",
    ),
    "head dimension": (
        {name: np.ones((1, 2, 8, 64), E4M3) for name in "qkv"},
        "`q` has the shape (1, 2, 8, 64), `k` (1, 2, 8, 64) and `v` (1, 2, 8, 64): a head dimension of 64 with values of 64",
        "D is 128; pad with zeros",
    ),
    "heads": (
        {"q": np.ones((1, 3, 8, D), E4M3)},
        "`q` has the shape (1, 3, 8, 128), `k` (1, 2, 32, 128) and `v` (1, 2, 32, 128): 3 query heads do not divide among "
        "2 key heads",
        "H is a multiple of Hkv",
    ),
    "scale": (
        {"scale_k": np.ones((2, 2), np.float32)},
        "`scale_k` is a numpy array of f32 with shape (2, 2); it has one scale a head",
        "pass a contiguous float32 array of (1, 2)",
    ),
    "out": (
        {"out": np.ones((1, 2, 8, D), np.float32)},
        "`out` is a numpy array of f32 with shape (1, 2, 8, 128); the output has the shape (1, 2, 8, 128) and elements of "
        "bfloat16 or float16",
        "pass an array like this",
    ),
}  # fmt: skip


@pytest.mark.cases(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    changes, message, help = REFUSED[case]
    with pytest.raises(pd.LaunchError) as error:
        attention_fp8(**(arrays() | changes))
    assert (error.value.message, error.value.help) == (message, help)
