"""attention_backward() against the gradients of softmax in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.attention import attention, attention_varlen
from ptxdsl.kernels.attention_backward import attention_backward, dkv_kernel, dq_kernel
from ptxdsl.kernels.flash.backward import ADDING_TILE, KEY_TILES, QUERY_TILES, BackwardTraits
from ptxdsl.types import bf16
from tests.kernels.spills import check_no_spill
from tests.kernels.test_attention import F16, TOLERANCE, reference
from tests.machines import BF16, MACHINES, machine


def gradients(dout, q, k, v, *, scale=None, softcap=0.0, **options):
    """Return the gradients (dq, dk, dv) in float64."""
    dout, q, k, v = (x.astype(np.float64) for x in (dout, q, k, v))
    (b, h, _, d), (_, kv_heads, n, _) = q.shape, k.shape
    scale, group = scale or 1 / math.sqrt(d), h // kv_heads
    options |= {"scale": scale, "softcap": softcap}
    keys, values = (np.repeat(x, group, 1) for x in (k, v))
    out, _ = reference(q, k, v, **options)
    identity = np.broadcast_to(np.eye(n), (b, kv_heads, n, n))
    weights, _ = reference(q, k, identity, **options)  # attention to unit vectors
    shifted = weights * (dout @ values.swapaxes(-1, -2) - (dout * out).sum(-1, keepdims=True))
    if softcap:
        shifted *= 1 - np.tanh(scale / softcap * (q @ keys.swapaxes(-1, -2))) ** 2
    by_key = (scale * shifted.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dout)
    return scale * shifted @ keys, *(x.reshape(b, kv_heads, group, n, d).sum(2) for x in by_key)


CASES = {
    "plain": ((1, 2, 100, 64), 1, 150, {}),
    "causal": ((2, 1, 200, 64), 1, 200, {"causal": True}),
    "window": ((1, 1, 200, 128), 1, 130, {"window": (30, 20), "scale": 0.2}),
    "queries without keys": ((1, 2, 140, 64), 2, 65, {"causal": True}),
    "one query": ((1, 3, 1, 128), 1, 63, {"dtype": F16}),
    "one key": ((1, 2, 65, 64), 2, 1, {}),
    "cap": ((1, 2, 70, 64), 1, 130, {"softcap": 2.0, "scale": 0.5}),
    "cap and mask": ((1, 1, 100, 128), 1, 100, {"softcap": 1.0, "causal": True}),
    "long": ((1, 1, 65, 64), 1, 1000, {"dtype": F16}),
    "atomic additions": ((1, 2, 130, 128), 1, 140, {"causal": True, "deterministic": False}),
    "atomic additions, f16": ((2, 1, 63, 128), 1, 200, {"dtype": F16, "deterministic": False}),
}


def compare(where, results, wanted, dtype, **options):
    """Compare gradients with those in float64. tanh.approx has an error of 2^-11, which `softcap` multiplies."""
    tolerance = 4 * TOLERANCE[dtype] + 2.0**-8 * options.get("softcap", 0.0)
    for x, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(where.values(x), expected, rtol=tolerance, atol=tolerance)


def check(where, rng, shape, heads, n, dtype=BF16, deterministic=True, **options):
    """Compute the gradients and compare them. If they are deterministic, compute them again with the same bits."""
    kv = (shape[0], heads, n, shape[3])
    dout, q, k, v = (rng.normal(size=size).astype(dtype) for size in (shape, shape, kv, kv))
    operands = [where.array(x) for x in (q, k, v)]
    out, lse = attention(*operands, return_lse=True, **options)

    def differentiated():
        return attention_backward(where.array(dout), *operands, out, lse, deterministic=deterministic, **options)

    results = differentiated()
    compare(where, results, gradients(dout, q, k, v, **options), dtype, **options)
    for x, y in zip(results, differentiated() if deterministic else results, strict=True):
        np.testing.assert_array_equal(where.values(x), where.values(y))


HEAVY = ("causal", "window", "atomic additions", "long")


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", [pytest.param(x, marks=[pytest.mark.exhaustive] * (x in HEAVY)) for x in CASES])
def test_gradients(name, case, rng):
    shape, heads, n, options = CASES[case]
    check(machine(name), rng, shape, heads, n, **options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_random_calls(name, rng):
    d, group, m, n = rng.choice([64, 128]), rng.integers(1, 4), rng.integers(1, 400), rng.integers(1, 400)
    window = None if rng.random() < 0.5 else tuple(int(side) for side in rng.integers(0, 300, 2))
    options = {"causal": bool(rng.random() < 0.5), "window": window, "softcap": float(rng.choice([0.0, 3.0]))}
    check(machine(name), rng, (1, 2 * group, m, d), 2, n, dtype=rng.choice([BF16, F16]), **options)


PACKED = {  # queries and keys of each sequence
    "no queries, no keys, one of each": ([0, 70, 130, 1], [30, 70, 250, 0], {}),
    "causal": ([130, 1], [140, 65], {"causal": True}),
    "window and cap": ([1, 63, 130], [1, 200, 65], {"window": (70, 10), "softcap": 2.0}),
    "atomic additions": ([100, 0, 66], [65, 1, 200], {"deterministic": False, "d": 128}),
    "more than 32 sequences": ([130, 65, *[2] * 33], [140, 1, *[3] * 33], {"causal": True}),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", list(PACKED)[:-1])
def test_packed_sequences(name, case, rng):
    check_packed(name, case, rng)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_many_packed_sequences(name, rng):
    check_packed(name, "more than 32 sequences", rng)


def check_packed(name, case, rng):
    """Compare the gradients with those of each sequence by itself; rows outside of the sequences are large."""
    (q_lengths, k_lengths, options), where = PACKED[case], machine(name)
    options = dict(options)
    deterministic, d = options.pop("deterministic", True), options.pop("d", 64)
    q_offsets, k_offsets = (np.cumsum([3, *lengths]).astype(np.int32) for lengths in (q_lengths, k_lengths))
    dout, q, k, v = (
        rng.normal(size=(o[-1] + 5, h, d)).astype(BF16)
        for o, h in ((q_offsets, 2), (q_offsets, 2), (k_offsets, 1), (k_offsets, 1))
    )
    for x in (dout, q, k, v):
        x[:3] = x[-5:] = 1000
    arrays = [where.array(x) for x in (q, k, v)]
    offsets = [where.array(x) for x in (q_offsets, k_offsets)]
    out, lse = attention_varlen(*arrays, *offsets, return_lse=True, **options)
    named = {"q_offsets": offsets[0], "k_offsets": offsets[1], "deterministic": deterministic}
    dq, dk, dv = attention_backward(where.array(dout), *arrays, out, lse, **named, **options)
    assert (dq.shape, dk.shape, dv.shape) == (q.shape, k.shape, v.shape)
    for (a, b), (c, d) in zip(pairwise(q_offsets), pairwise(k_offsets), strict=True):
        of_one = (x.swapaxes(0, 1)[None] for x in (dout[a:b], q[a:b], k[c:d], v[c:d]))
        results = [x.swapaxes(0, 1)[None] for x in (dq[a:b], dk[c:d], dv[c:d])]
        compare(where, results, gradients(*of_one, **options), BF16, **options)


@pytest.mark.cases(1)
@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize(
    "kernel, config, head, adds_dq",
    [(dq_kernel, QUERY_TILES[64], 64, False), (dq_kernel, QUERY_TILES[128], 128, False),
     (dkv_kernel, KEY_TILES[64], 64, False), (dkv_kernel, KEY_TILES[128], 128, False),
     (dkv_kernel, ADDING_TILE, 128, True)],
)  # fmt: skip
def test_all_stays_in_registers(kernel, config, head, adds_dq, capped):
    traits = BackwardTraits(bf16, head, head, config, (True, True), capped, is_packed=True, adds_dq=adds_dq)
    check_no_spill(kernel, traits)
    assert kernel.cubin("sm_90a", traits=traits).warnings == ()


def given(d=64):
    q = np.ones((1, 2, 8, d), BF16)
    return {"dout": q, "q": q, "k": q, "v": q, "out": q, "lse": np.zeros((1, 2, 8), np.float32)}


def packed():
    q, offsets = np.ones((8, 2, 64), BF16), np.array([0, 3, 8], np.int32)
    return {
        "dout": q, "q": q, "k": q, "v": q, "out": q, "lse": np.zeros((2, 8), np.float32), "q_offsets": offsets,
        "k_offsets": offsets,
    }  # fmt: skip


REFUSED = {
    "head dimension": (
        given(96),
        "attention_backward has no kernel for a head dimension of 96 with values of 96",
        "D is 64 or 128, for q, k and v alike",
    ),
    "lse": (
        given() | {"lse": np.zeros((1, 2, 9), np.float32)},
        "`lse` is a numpy array of f32 with shape (1, 2, 9); it is a contiguous float32 array with shape (1, 2, 8)",
        "pass the second result of attention(…, return_lse=True)",
    ),
    "dout": (
        given() | {"dout": np.zeros((1, 2, 7, 64), BF16)},
        "`dout` is a numpy array of bf16 with shape (1, 2, 7, 64); the output has the shape (1, 2, 8, 64) and elements of "
        "bfloat16",
        "pass an array like the output",
    ),
    "deterministic": (given() | {"deterministic": 1}, "`deterministic` is 1", "pass True or False"),
    "softcap": (given() | {"softcap": -1.0}, "`softcap` is -1.0", "pass a finite number that is not negative"),
    "lse of dense arrays": (
        packed() | {"lse": np.zeros((1, 2, 8), np.float32)},
        "`lse` has the shape (1, 2, 8); it is (H, M)",
        "pass what `attention` returned",
    ),
    "falling offsets": (
        packed() | {"k_offsets": np.array([0, 9, 8], np.int32)},
        "`k_offsets[1]` is 9, after 0; `k` has 8 rows",
        "pass offsets that never fall, from 0 to 8",
    ),
    "dense arrays with offsets": (
        given() | {name: packed()[name] for name in ("q_offsets", "k_offsets")},
        "`q` has the shape (1, 2, 8, 64); q is (M, H, D), k (N, Hkv, D) and v (N, Hkv, Dv), with the rows of all sequences "
        "one after another",
        "reshape it, or permute its axes",
    ),
    "one kind of offsets": (
        packed() | {"k_offsets": None},
        "`k_offsets` is None",
        "packed sequences have both `q_offsets` and `k_offsets`",
    ),
}  # fmt: skip


@pytest.mark.cases(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    arguments, message, help = REFUSED[case]
    with pytest.raises(pd.LaunchError) as error:
        attention_backward(**arguments)
    assert (error.value.message, error.value.help) == (message, help)


def test_arguments_of_other_libraries_are_named():
    with pytest.raises(pd.CallError) as error:
        attention_backward(**given(), cu_seqlens_q=np.zeros(2, np.int32))
    assert error.value.help == "pass `q_offsets`"
