"""Comparison and selection."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from .compute import bits, compute

NAN, INF = math.nan, math.inf
NUMBERS = [NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF]
ORDERED = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def float_pairs() -> tuple[list[float], list[float]]:
    return zip(*itertools.product(NUMBERS, NUMBERS), strict=True)


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_comparisons_are_false_and_unordered_ones_true_for_nan(name, type_):
    a, b = map(list, float_pairs())
    with_nan = [math.isnan(x) or math.isnan(y) for x, y in zip(a, b, strict=True)]
    plain = [ORDERED[name](x, y) for x, y in zip(a, b, strict=True)]
    ordered, unordered = (_first(compute(f"setp.{n}.{type_}", a, b)).tolist() for n in (name, f"{name}u"))
    assert ordered == [p and not n for p, n in zip(plain, with_nan, strict=True)]
    assert unordered == [p or n for p, n in zip(plain, with_nan, strict=True)]
    assert _first(compute(f"setp.nan.{type_}", a, b)).tolist() == with_nan
    assert _first(compute(f"setp.num.{type_}", a, b)).tolist() == [not n for n in with_nan]


def _first(result):
    return result[0] if isinstance(result, tuple) else result


def test_integers_compare_by_the_sign_of_their_type():
    a, b = [0xFFFFFFFF, 1, 5], [1, 0xFFFFFFFF, 5]
    assert compute("setp.lt.s32", a, b)[0].tolist() == [True, False, False]
    assert compute("setp.lt.u32", a, b)[0].tolist() == [False, True, False]
    assert compute("setp.lo.u32", a, b)[0].tolist() == [False, True, False]
    assert compute("setp.ls.u32", a, b)[0].tolist() == [False, True, True]
    assert compute("setp.hi.u64", a, b)[0].tolist() == [True, False, False]
    assert compute("setp.hs.u16", a, b)[0].tolist() == [True, False, True]
    assert compute("setp.ne.b32", a, b)[0].tolist() == [True, True, False]


@pytest.mark.parametrize(
    "name, meaning", [("and", lambda t, c: t and c), ("or", lambda t, c: t or c), ("xor", lambda t, c: t != c)]
)
def test_setp_joins_the_comparison_and_its_complement_with_c(name, meaning):
    a, b, c = [1, 1, 2, 2], [1, 1, 1, 1], [True, False, True, False]
    p, q = compute(f"setp.eq.{name}.s32", a, b, np.array(c))
    equal = [x == y for x, y in zip(a, b, strict=True)]
    assert p.tolist() == [meaning(t, k) for t, k in zip(equal, c, strict=True)]
    assert q.tolist() == [meaning(not t, k) for t, k in zip(equal, c, strict=True)]


def test_setp_of_pairs_gives_one_predicate_a_half():
    p, q = compute("setp.lt.f16x2", [0x3C004000], [0x40003C00])
    assert (p.tolist(), q.tolist()) == ([False], [True])
    p, q = compute("setp.lt.and.bf16x2", [0x3F804000] * 2, [0x40003F80] * 2, np.array([True, False]))
    assert (p.tolist(), q.tolist()) == ([False, False], [True, False])


def test_ftz_compares_subnormal_numbers_as_zero():
    assert compute("setp.gt.f32", [1e-40], [0.0])[0].tolist() == [True]
    assert compute("setp.gt.ftz.f32", [1e-40], [0.0])[0].tolist() == [False]
    assert compute("setp.gt.ftz.f16", [6e-8], [0.0]).tolist() == [False]


def test_set_writes_ones_or_1():
    assert bits(compute("set.lt.u32.s32", [-1, 1], [0, 0])) == ["ffffffff", "0"]
    assert bits(compute("set.lt.f32.s32", [-1, 1], [0, 0])) == ["3f800000", "0"]
    assert bits(compute("set.lt.f16.f32", [-1, 1], [0, 0])) == ["3c00", "0"]
    assert bits(compute("set.lt.bf16.s32", [-1, 1], [0, 0])) == ["3f80", "0"]
    assert bits(compute("set.lt.s16.f16", [-1, 1], [0, 0])) == ["ffff", "0"]
    assert bits(compute("set.lt.u32.f16x2", [0x3C004000], [0x40003C00])) == ["ffff0000"]
    assert bits(compute("set.lt.f16x2.f16x2", [0x3C004000], [0x40003C00])) == ["3c000000"]
    assert bits(compute("set.eq.or.u32.u32", [1, 1], [2, 2], np.array([True, False]))) == ["ffffffff", "0"]


def test_selection():
    c = np.array([True, False])
    assert compute("selp.b32", [1, 2], [3, 4], c).tolist() == [1, 4]
    assert compute("selp.f64", [1.5, 2.5], [3.5, 4.5], c).tolist() == [1.5, 4.5]
    assert compute("slct.u32.s32", [1, 1, 1], [2, 2, 2], [-1, 0, 1]).tolist() == [2, 1, 1]
    assert compute("slct.u32.f32", [1] * 4, [2] * 4, [-1.0, -0.0, NAN, -1e-40]).tolist() == [2, 1, 2, 2]
    assert compute("slct.ftz.u32.f32", [1], [2], [-1e-40]).tolist() == [1]
