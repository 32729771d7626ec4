"""attention() against softmax in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.attention import attention, attention_varlen
from ptxdsl.kernels.attention_decode import attention_decode
from ptxdsl.kernels.flash.traits import AttentionConfig
from tests.machines import BF16, MACHINES, machine

F16 = np.dtype(np.float16)
TOLERANCE = {BF16: 2.0**-7, F16: 2.0**-10}  # of outputs that are means of N(0,1) values, by the type of the weights


def reference(q, k, v, *, causal=False, window=None, scale=None, softcap=0.0):
    """Return attention and the log-sum-exp of (…, H, M, D) arrays in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group, (m, n) = q.shape[-3] // k.shape[-3], (q.shape[-2], k.shape[-2])
    k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    left, right = window or (None, None)
    right = 0 if causal else right
    distance = np.arange(n) - np.arange(m)[:, None] - (n - m)
    hidden = (distance > (m + n if right is None else right)) | (distance < -(m + n if left is None else left))
    scores = np.where(hidden, -np.inf, scores)
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, weights @ v / total, 0), np.where(total > 0, np.log(total) + most, -np.inf)[..., 0]


def hold(where, found, expected, dtype):
    """Compare an output and its log-sum-exp."""
    (out, lse), (wanted, wanted_lse) = map(where.values, found), expected
    np.testing.assert_allclose(out, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    np.testing.assert_allclose(lse, wanted_lse, atol=2e-3 if dtype is BF16 else 1e-4)


def check(where, rng, q_shape, kv_heads, n, dv=None, dtype=BF16, config=None, **options):
    """Compute attention of random arrays of N(0,1) into a poisoned output."""
    batch, _, _, d = q_shape
    q, k, v = (
        rng.normal(size=s).astype(dtype) for s in (q_shape, (batch, kv_heads, n, d), (batch, kv_heads, n, dv or d))
    )
    out = where.array(np.full((*q_shape[:3], dv or d), np.nan, dtype))
    result = attention(*map(where.array, (q, k, v)), out=out, return_lse=True, config=config, **options)
    assert result[0] is out
    hold(where, result, reference(q, k, v, **options), dtype)


CASES = {
    "one query": ((1, 2, 1, 64), 2, 63, {}),
    "one key": ((2, 1, 65, 64), 1, 1, {}),
    "causal": ((1, 2, 300, 64), 1, 300, {"causal": True}),
    "more queries than keys": ((1, 1, 200, 64), 1, 65, {"causal": True}),
    "more keys than queries": ((1, 1, 63, 128), 1, 500, {"causal": True}),
    "groups of heads": ((2, 6, 130, 64), 2, 129, {}),
    "one head of keys": ((1, 5, 64, 64), 1, 128, {"dtype": F16}),
    "window": ((1, 1, 300, 64), 1, 400, {"window": (100, 20)}),
    "narrow window": ((1, 1, 300, 64), 1, 300, {"window": (5, 3)}),
    "window before": ((1, 1, 140, 64), 1, 700, {"window": (130, None), "causal": True}),
    "window after": ((1, 1, 140, 64), 1, 400, {"window": (None, 40)}),
    "cap": ((1, 1, 70, 64), 1, 200, {"softcap": 2.0, "scale": 0.5}),
    "d 96": ((1, 1, 200, 96), 1, 200, {"causal": True}),
    "d 192": ((1, 2, 130, 192), 1, 140, {"dv": 128}),
    "d 256": ((1, 1, 70, 256), 1, 170, {"dtype": F16, "causal": True}),
    "three warpgroups": ((1, 1, 200, 128), 1, 200, {"config": AttentionConfig(192, 80, 2)}),
    "three stages": ((1, 1, 140, 64), 1, 600, {"config": AttentionConfig(128, 64, 3)}),
    "long": ((1, 1, 128, 64), 1, 1000, {}),
    "no keys": ((1, 1, 20, 64), 1, 0, {}),
    "no queries": ((1, 1, 0, 64), 1, 20, {}),
}  # fmt: skip


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_attention(name, case, rng):
    shape, heads, n, options = CASES[case]
    check(machine(name), rng, shape, heads, n, **options)


@pytest.mark.parametrize("name", MACHINES)
def test_random_calls(name, rng):
    d, group, m, n = rng.choice([64, 128]), rng.integers(1, 4), rng.integers(1, 400), rng.integers(1, 400)
    window = None if rng.random() < 0.5 else tuple(int(side) for side in rng.integers(0, 300, 2))
    options = {"causal": bool(rng.random() < 0.5), "window": window, "softcap": float(rng.choice([0.0, 3.0]))}
    check(machine(name), rng, (1, 2 * group, m, d), 2, n, dtype=rng.choice([BF16, F16]), **options)


@pytest.mark.parametrize("name", MACHINES)
def test_views_of_packed_projections(name, rng):
    """q, k and v are views of one (B, M, 3, H, D) array, and the output of a (B, M, H, D) one."""
    where = machine(name)
    packed = where.array(rng.normal(size=(2, 100, 3, 2, 64)).astype(BF16))
    out = where.array(np.full((2, 100, 2, 64), np.nan, BF16))
    axes = (0, 2, 1, 3)
    move = (lambda x: x.permute(axes)) if name == "gpu" else (lambda x: x.transpose(axes))
    operands = [move(packed[:, :, i]) for i in range(3)]
    _, lse = attention(*operands, causal=True, out=move(out), return_lse=True)
    hold(where, (move(out), lse), reference(*map(where.values, operands), causal=True), BF16)


@pytest.mark.parametrize("name", MACHINES)
def test_the_output_may_be_the_queries(name, rng):
    where = machine(name)
    q, k, v = (rng.normal(size=(1, 1, 200, 64)).astype(BF16) for _ in range(3))
    expected = reference(q, k, v)
    out = where.array(q)
    hold(where, attention(out, where.array(k), where.array(v), out=out, return_lse=True), expected, BF16)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(name, causal, rng):
    """Lengths of 0 and 1, more than 32 sequences, and rows of another sequence that are huge."""
    where = machine(name)
    q_lengths, k_lengths = ([0, 70, 130, 1, *[2] * 33], [30, 70, 250, 0, *[3] * 33])
    q_offsets, k_offsets = (np.cumsum([0, *lengths]).astype(np.int32) for lengths in (q_lengths, k_lengths))
    q, k, v = (
        rng.normal(size=(o[-1], h, 64)).astype(BF16) for o, h in ((q_offsets, 2), (k_offsets, 1), (k_offsets, 1))
    )
    out = where.array(np.full(q.shape, np.nan, BF16))
    arrays = map(where.array, (q, k, v, q_offsets, k_offsets))
    found, lse = map(where.values, attention_varlen(*arrays, causal=causal, out=out, return_lse=True))
    for (a, b), (c, d) in zip(pairwise(q_offsets), pairwise(k_offsets), strict=True):
        wanted = reference(*(x.swapaxes(0, 1) for x in (q[a:b], k[c:d], v[c:d])), causal=causal)
        np.testing.assert_allclose(found[a:b].swapaxes(0, 1), wanted[0], rtol=TOLERANCE[BF16], atol=TOLERANCE[BF16])
        np.testing.assert_allclose(lse[:, a:b], wanted[1], atol=2e-3)


DECODE = {  # heads, key heads, D, page, keys of each sequence
    "small pages, an empty sequence": (8, 2, 64, 16, [300, 0]),
    "pages of a tile": (8, 1, 128, 128, [129]),
    "more heads than rows of a tile": (70, 1, 64, 256, [257]),
    "wide heads": (4, 2, 256, 32, [65, 1]),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", DECODE)
def test_decoding(name, case, rng):
    """Pages in random order; entries of the table past the last page are invalid."""
    (heads, kv_heads, d, page, lengths), where = DECODE[case], machine(name)
    width = -(-max(lengths) // page)
    count = len(lengths) * width + 1
    q = rng.normal(size=(len(lengths), heads, d)).astype(BF16)
    k, v = (rng.normal(size=(count, page, kv_heads, d)).astype(BF16) for _ in range(2))
    table = rng.permutation(count)[: len(lengths) * width].reshape(-1, width).astype(np.int32)
    used = [table[i, : -(-n // page)].copy() for i, n in enumerate(lengths)]
    for row, pages in zip(table, used, strict=True):
        row[len(pages) :] = -7
    out = where.array(np.full(q.shape, np.nan, BF16))
    given = map(where.array, (q, k, v, table, np.array(lengths, np.int32)))
    result = attention_decode(*given, out=out, return_lse=True)
    assert result[0] is out
    for i, (n, pages) in enumerate(zip(lengths, used, strict=True)):
        keys, values = (x[pages].reshape(-1, kv_heads, d)[:n].swapaxes(0, 1) for x in (k, v))
        wanted, lse = reference(q[i][:, None], keys, values)
        np.testing.assert_allclose(where.values(out)[i], wanted[:, 0], rtol=TOLERANCE[BF16], atol=TOLERANCE[BF16])
        np.testing.assert_allclose(where.values(result[1])[i], lse[:, 0], atol=2e-3)


def test_an_output_of_decoding_inside_of_the_pages_is_refused():
    pages, table, lengths = np.ones((3, 64, 4, 64), BF16), np.zeros((1, 1), np.int32), np.ones(1, np.int32)
    with pytest.raises(pd.LaunchError, match="`out` shares memory with `k_pages`, which is still read"):
        attention_decode(np.ones((1, 4, 64), BF16), pages, pages, table, lengths, out=pages[:1, 0])


DECODE_REFUSED = {
    "page": (
        {"k": (3, 48, 2, 64), "v": (3, 48, 2, 64)},
        "`q` has the shape (2, 4, 64), `k_pages` (3, 48, 2, 64) and `v_pages` (3, 48, 2, 64): pages of 48 rows",
    ),
    "table": ({"table": (3, 1)}, "`page_table` is a numpy array of s32 with shape (3, 1); `q` has 2 sequences"),
    "heads": (
        {"q": (2, 5, 64)},
        "`q` has the shape (2, 5, 64), `k_pages` (3, 64, 2, 64) and `v_pages` (3, 64, 2, 64): 5 query heads do not divide "
        "among 2 key heads",
    ),
}


@pytest.mark.parametrize("case", DECODE_REFUSED)
def test_refusals_of_decoding(case):
    changes, message = DECODE_REFUSED[case]
    shapes = {"q": (2, 4, 64), "k": (3, 64, 2, 64), "v": (3, 64, 2, 64), "table": (2, 1)} | changes
    q, k, v = (np.ones(shapes[name], BF16) for name in "qkv")
    with pytest.raises(pd.LaunchError) as error:
        attention_decode(q, k, v, np.zeros(shapes["table"], np.int32), np.ones(2, np.int32))
    assert error.value.message == message


def test_lengths_beyond_the_pages_are_refused():
    q, pages, table = np.ones((2, 4, 64), BF16), np.ones((3, 16, 2, 64), BF16), np.zeros((2, 3), np.int32)
    with pytest.raises(pd.LaunchError) as error:
        attention_decode(q, pages, pages, table, np.array([48, 49], np.int32))
    assert error.value.message == "`lengths[1]` is 49; the pages of a sequence have 48 rows"
    assert error.value.help == "pass lengths of 0 to 48, or a page table with more columns"


def arrays(shape=(1, 2, 8, 64), kv=(1, 2, 8, 64), dtype=BF16):
    return np.ones(shape, dtype), np.ones(kv, dtype), np.ones(kv, dtype)


REFUSED = {
    "rank": (arrays((8, 64)), {}, "`q` has the shape (8, 64); q is (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)"),
    "type": (arrays(dtype=np.float32), {}, "`q`, `k` and `v` have elements of float32, float32 and float32"),
    "batches": (
        arrays((2, 2, 8, 64)), {},
        "`q` has the shape (2, 2, 8, 64), `k` (1, 2, 8, 64) and `v` (1, 2, 8, 64)",
    ),
    "heads": (
        arrays((1, 3, 8, 64)), {},
        "`q` has the shape (1, 3, 8, 64), `k` (1, 2, 8, 64) and `v` (1, 2, 8, 64): 3 query heads do not divide among 2 "
        "key heads",
    ),
    "head dimension": (
        arrays((1, 2, 8, 80), (1, 2, 8, 80)), {},
        "`q` has the shape (1, 2, 8, 80), `k` (1, 2, 8, 80) and `v` (1, 2, 8, 80): a head dimension of 80 with values of 80",
    ),
    "columns": (
        (np.ones((1, 2, 64, 8), BF16).swapaxes(2, 3), *arrays()[1:]), {},
        "`q` has strides of (1024, 512, 1, 8) elements and the address",
    ),
    "window": (arrays(), {"window": 5}, "`window` is 5"),
    "scale": (arrays(), {"scale": 0.0}, "`scale` is 0.0"),
    "softcap": (arrays(), {"softcap": -1.0}, "`softcap` is -1.0"),
    "config": (arrays(), {"config": AttentionConfig(64)}, "AttentionConfig(queries=64, keys=128, stages=2) has no kernel"),
    "out": (
        arrays(), {"out": np.zeros((1, 2, 9, 64), BF16)},
        "`out` is a numpy array of bf16 with shape (1, 2, 9, 64); the output has the shape (1, 2, 8, 64) and elements of "
        "bfloat16",
    ),
}  # fmt: skip


@pytest.mark.cases(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    operands, options, message = REFUSED[case]
    with pytest.raises(pd.LaunchError) as error:
        attention(*operands, **options)
    assert error.value.message.startswith(message)
    assert error.value.help


def test_an_output_inside_of_the_keys_is_refused():
    q, k, v = arrays()
    with pytest.raises(pd.LaunchError, match="`out` shares memory with `k`, which is still read"):
        attention(q, k, v, out=k)


def test_arguments_of_other_libraries_are_named():
    q, k, v = arrays()
    with pytest.raises(pd.CallError) as error:
        attention(q, k, v, is_causal=True)
    assert error.value.message == (
        "attention takes no `is_causal`; it takes q, k, v, causal, window, scale, softcap, out, return_lse and config"
    )
    assert error.value.help == "use `causal=`"


OFFSETS_REFUSED = {
    "type": (
        np.array([0, 8]), [0, 8],
        "`q_offsets` is a numpy array of s64 with shape (2,)",
        "pass a contiguous int32 array of the first row of each sequence, and the end",
    ),
    "falling": (
        [0, 5, 4, 8], [0, 8, 8, 8],
        "`q_offsets[2]` is 4, after 5; `q` has 8 rows",
        "pass offsets that never fall, from 0 to 8",
    ),
    "past the rows": (
        [0, 8], [0, 9],
        "`k_offsets[1]` is 9, after 0; `k` has 8 rows",
        "pass offsets that never fall, from 0 to 8",
    ),
    "of other sequences": (
        [0, 8], [0, 4, 8],
        "`q_offsets` has 2 elements and `k_offsets` 3",
        "both have one more than there are sequences",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OFFSETS_REFUSED)
def test_refusals_of_offsets(case):
    *offsets, message, help = OFFSETS_REFUSED[case]
    q, k, v = (np.ones((8, 1, 64), BF16) for _ in range(3))
    with pytest.raises(pd.LaunchError) as error:
        attention_varlen(q, k, v, *(np.array(x, np.int32) if isinstance(x, list) else x for x in offsets))
    assert (error.value.message, error.value.help) == (message, help)
