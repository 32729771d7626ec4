"""Floating-point arithmetic against exact fractions, and by hand where zeros, infinities and NaN meet."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from ptxdsl.isa import lookup, numerics
from ptxdsl.types import TYPES

from .compute import bits, compute

FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
MODES = ["rn", "rz", "rm", "rp"]
INF, NAN = math.inf, math.nan


def rounded(exact: Fraction, type_: str, mode: str) -> float:
    """An exact number, not zero, rounded to a format; by the definition, on integers."""
    precision, emin, emax = FORMATS[type_]
    exponent = max(_exponent(exact), emin)
    unit = Fraction(2) ** (exponent - precision + 1)
    below = exact / unit // 1
    rest = exact / unit - below
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
        "rz": exact < 0 and rest > 0,
        "rm": False,
        "rp": rest > 0,
    }[mode]
    number: Fraction | float = (below + up) * unit
    largest = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** emax
    if abs(number) > largest:
        to_largest = mode == "rz" or (mode == "rm" and exact > 0) or (mode == "rp" and exact < 0)
        number = float(largest) if to_largest else INF
        return number if exact > 0 else -number
    return float(number) if number else (0.0 if exact > 0 else -0.0)


def _exponent(exact: Fraction) -> int:
    """The exponent of the first bit."""
    size = abs(exact)
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if size >= Fraction(2) ** guess else guess - 1


def samples(type_: str, count: int = 30) -> list[float]:
    """Numbers of a format whose sums, products and quotients lie on and next to the middles and ends of its range."""
    precision, emin, emax = FORMATS[type_]
    ulp = 2.0 ** (1 - precision)
    edges = [1.0, 1 + ulp, 1 - ulp / 2, 1.5, 3.0, 2.0**emin, 2.0**emin * (2 - ulp), 2.0 ** (emin - precision + 1)]
    edges += [(2 - ulp) * 2.0**emax, 2.0**emax, 2.0 ** (precision // 2) + 1, ulp / 2, ulp / 4]
    rng = random.Random(type_)
    for _ in range(count):
        edges.append((1 + rng.getrandbits(precision - 1) * ulp) * 2.0 ** rng.randrange(-precision, precision))
    return [sign * x for x in edges for sign in (1, -1)]


def encoded(numbers: list[float], type_: str) -> np.ndarray:
    return numerics.encode(np.array(numbers, np.float64), TYPES[type_])


def decoded(raw: np.ndarray, type_: str) -> list[float]:
    return numerics.decode(raw, TYPES[type_]).astype(np.float64).tolist()


def check(text: str, type_: str, mode: str, exact, *inputs: list[float]) -> None:
    """An instruction against the rounding of an exact function; exact zeros are left to other tests."""
    found = decoded(compute(text, *(encoded(x, type_) for x in inputs)), type_)
    for result, *numbers in zip(found, *inputs, strict=True):
        value = exact(*map(Fraction, numbers))
        if value:
            expected = rounded(value, type_, mode)
            assert (result, math.copysign(1, result)) == (expected, math.copysign(1, expected)), (text, numbers)


def columns(tuples) -> list[list[float]]:
    return [list(column) for column in zip(*tuples, strict=True)]


ARITHMETIC = [(type_, mode) for type_ in ("f32", "f64") for mode in MODES] + [("f16", "rn"), ("bf16", "rn")]


@pytest.mark.cases(4)
@pytest.mark.parametrize("type_, mode", ARITHMETIC)
def test_sums_differences_and_products_are_rounded_once(type_, mode):
    a, b = columns(itertools.product(samples(type_, 10), repeat=2))
    check(f"add.{mode}.{type_}", type_, mode, lambda x, y: x + y, a, b)
    check(f"sub.{mode}.{type_}", type_, mode, lambda x, y: x - y, a, b)
    check(f"mul.{mode}.{type_}", type_, mode, lambda x, y: x * y, a, b)


@pytest.mark.exhaustive
@pytest.mark.parametrize("type_, mode", ARITHMETIC)
def test_fma_is_rounded_once(type_, mode):
    numbers = samples(type_, 3)
    a, b, c = columns(itertools.product(numbers, numbers, numbers[::3]))
    check(f"fma.{mode}.{type_}", type_, mode, lambda x, y, z: x * y + z, a, b, c)


@pytest.mark.parametrize("type_", ["f32", "f16", "bf16"])
def test_fma_where_rounding_the_f64_sum_again_would_err(type_):
    """a * b lies on the middle between two numbers, and c, the least number there is, decides."""
    precision, emin, _ = FORMATS[type_]
    least = 2.0 ** (emin - precision + 1)
    a, b = 1 + 2.0 ** -(precision // 2), 1 + 2.0 ** -(precision - precision // 2)
    signs = list(itertools.product((1, -1), (1, 0, -1)))
    products, rests = [s * a for s, _ in signs], [t * least for _, t in signs]
    check(f"fma.rn.{type_}", type_, "rn", lambda x, y, z: x * y + z, products, [b] * len(signs), rests)


def test_fma_double_rounding_by_hand():
    """(1 + 2^-12)^2 - 2^-24 lies on the middle between 1 + 2^-11 and the next f32; 2^-80 more decides."""
    a, down, up = 1 + 2.0**-12, -(2.0**-80), 2.0**-80
    assert bits(compute("fma.rn.f32", [a, a, a], [a, a, a], [0, down, up])) == ["3f801000", "3f801000", "3f801001"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_quotients_reciprocals_and_roots_are_rounded_once(type_, mode):
    a, b = columns(itertools.product(samples(type_, 8), repeat=2))
    check(f"div.{mode}.{type_}", type_, mode, lambda x, y: x / y, a, b)
    check(f"rcp.{mode}.{type_}", type_, mode, lambda x: 1 / x, samples(type_))
    numbers = [abs(x) for x in samples(type_)]
    for root, x in zip(decoded(compute(f"sqrt.{mode}.{type_}", encoded(numbers, type_)), type_), numbers, strict=True):
        near = math.isqrt(Fraction(x).numerator * Fraction(x).denominator << 400)
        exact = Fraction(near, Fraction(x).denominator << 200)
        sticky = exact if exact * exact == Fraction(x) else exact + Fraction(1, Fraction(x).denominator << 210)
        assert root == rounded(sticky, type_, mode), x


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_an_exact_zero_sum_is_negative_only_when_rounded_down(type_):
    for mode in MODES:
        zeros = compute(f"add.{mode}.{type_}", [1.0, 0.0, 0.0, -0.0], [-1.0, 0.0, -0.0, -0.0])
        assert np.signbit(zeros).tolist() == [mode == "rm", False, mode == "rm", True]
        zeros = compute(f"fma.{mode}.{type_}", [1.0, 0.0, -1.0], [2.0, 3.0, 0.0], [-2.0, 0.0, -0.0])
        assert np.signbit(zeros).tolist() == [mode == "rm", False, True]


def test_a_nan_result_has_all_bits_but_the_sign():
    assert bits(compute("add.f32", [INF, NAN], [-INF, 1])) == ["7fffffff"] * 2
    assert bits(compute("mul.f16", [INF, NAN], [0, 1])) == ["7fff"] * 2
    assert bits(compute("fma.rn.bf16", [0x7F80], [0], [0])) == ["7fff"]
    assert bits(compute("sqrt.rn.f32", [-1.0])) == ["7fffffff"]


def test_fma_of_infinities():
    largest = np.finfo(np.float64).max
    sums = compute("fma.rn.f64", [largest, INF, largest], [4.0, 1.0, 4.0], [-INF, 1.0, -largest])
    assert sums.tolist() == [-INF, INF, INF]
    assert np.isnan(compute("fma.rn.f64", [INF, INF, 0.0], [0.0, 1.0, INF], [1.0, -INF, 1.0])).all()
    assert compute("fma.rn.f64", [0.0, -0.0], [largest, largest], [0.0, -0.0]).tolist() == [0.0, 0.0]


def test_saturation_clamps_to_zero_and_one_and_drops_nan():
    x = [-0.5, -0.0, 0.25, 1.5, NAN, INF, -INF]
    assert bits(compute("add.sat.f32", x, [0.0] * 7)) == ["0", "0", "3e800000", "3f800000", "0", "3f800000", "0"]
    assert bits(compute("mul.sat.f16", x, [1.0] * 7)) == ["0", "0", "3400", "3c00", "0", "3c00", "0"]


def test_relu_clamps_to_zero_and_keeps_nan():
    assert bits(compute("fma.rn.relu.f16", [-1.0, 1.0, NAN], [1.0] * 3, [0.0] * 3)) == ["0", "3c00", "7fff"]
    assert bits(compute("fma.rn.relu.bf16x2", [0xBF803F80], [0x3F803F80], [0x80000000])) == ["3f80"]


def test_flushing_takes_subnormal_inputs_and_results_for_zeros_of_their_sign():
    least, half = 2.0**-126, 2.0**-127
    assert bits(compute("add.ftz.f32", [half, -half], [0.0, -0.0])) == ["0", "80000000"]
    assert bits(compute("mul.ftz.f32", [least, -least, least], [0.5, 0.5, 1.0])) == ["0", "80000000", "800000"]
    assert bits(compute("add.ftz.f16", [2.0**-15, 2.0**-14], [0.0, 0.0])) == ["0", "400"]


def test_what_rounds_up_to_a_normal_number_is_not_flushed():
    """(1 - 2^-13) * (1 + 2^-13) * 2^-126 is just below the least normal number."""
    a, b = 1 - 2.0**-13, (1 + 2.0**-13) * 2.0**-126
    assert bits(compute("mul.rn.ftz.f32", [a], [b])) == ["800000"]
    assert bits(compute("mul.rp.ftz.f32", [a, -a], [b, b])) == ["800000", "80000000"]
    assert bits(compute("mul.rm.ftz.f32", [a, -a], [b, b])) == ["0", "80800000"]
    assert bits(compute("mul.rz.ftz.f32", [a], [b])) == ["0"]
    assert bits(compute("mul.rn.ftz.f32", [1 - 2.0**-24], [2.0**-126])) == ["0"]


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
def test_min_and_max_drop_nan_and_order_zeros(type_):
    a, b = [0.0, -0.0, NAN, 1.0, -INF], [-0.0, 0.0, 2.0, NAN, 3.0]
    low, high = compute(f"min.{type_}", a, b), compute(f"max.{type_}", a, b)
    assert low.tolist() == [0.0, 0.0, 2.0, 1.0, -INF] and np.signbit(low[:2]).all()
    assert high.tolist() == [0.0, 0.0, 2.0, 1.0, 3.0] and not np.signbit(high[:2]).any()


@pytest.mark.parametrize("lanes", [1, 3, 64])
def test_min_and_max_do_not_depend_on_the_number_of_lanes(lanes):
    raw = (0x80000000, 0, 0x7F800001, 0x3F800000)
    minus_zero, zero, signaling, one = (np.full(lanes, x, np.uint32).view(np.float32) for x in raw)
    with np.errstate(invalid="ignore"):
        for pick, sign in ((numerics.minimum, "80000000"), (numerics.maximum, "0")):
            assert bits(pick(minus_zero, zero)) == bits(pick(zero, minus_zero)) == [sign] * lanes
            assert bits(pick(signaling, one)) == bits(pick(one, signaling)) == ["3f800000"] * lanes


def test_min_and_max_with_nan_and_xorsign():
    assert bits(compute("min.NaN.f32", [1.0, NAN], [2.0, 1.0])) == ["3f800000", "7fffffff"]
    assert bits(compute("max.f32", [NAN], [NAN])) == ["7fffffff"]
    assert compute("max.xorsign.abs.f32", [-3.0, -3.0, 1.0], [2.0, -4.0, 2.0]).tolist() == [-3.0, 4.0, 2.0]
    assert bits(compute("min.bf16x2", [0x3F80C000], [0x40003F80])) == ["3f80c000"]
    assert compute("max.f32", [1.0, NAN], [5.0, 1.0], [3.0, 2.0], form=1).tolist() == [5.0, 2.0]


def test_signs_and_tests():
    assert compute("copysign.f32", [-0.0, 3.0], [2.0, -5.0]).tolist() == [-2.0, 5.0]
    assert compute("abs.f64", [-0.0, -3.0]).tolist() == [0.0, 3.0]
    assert bits(compute("neg.f16x2", [0x3C00BC00])) == ["bc003c00"]
    x = [0.0, 1.0, 1e-40, INF, NAN]
    expected = {
        "finite": [1, 1, 1, 0, 0], "infinite": [0, 0, 0, 1, 0], "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1], "normal": [1, 1, 0, 0, 0], "subnormal": [0, 0, 1, 0, 0],
    }  # fmt: skip
    for op, result in expected.items():
        assert compute(f"testp.{op}.f32", x).tolist() == [bool(r) for r in result], op


def test_fast_functions_at_their_edges():
    assert bits(compute("rcp.approx.ftz.f32", [0.0, -0.0, INF, 1e-40])) == ["7f800000", "ff800000", "0", "7f800000"]
    assert bits(compute("rsqrt.approx.f32", [0.0, -0.0, 4.0])) == ["7f800000", "ff800000", "3f000000"]
    assert bits(compute("lg2.approx.f32", [0.0, 8.0, -1.0])) == ["ff800000", "40400000", "7fffffff"]
    assert bits(compute("ex2.approx.f32", [-INF, 3.0, 128.0])) == ["0", "41000000", "7f800000"]
    assert bits(compute("tanh.approx.f32", [INF, -INF, 0.0])) == ["3f800000", "bf800000", "0"]
    assert bits(compute("div.approx.f32", [1.0, 6.0], [2.0**127, 2.0])) == ["0", "40400000"]
    assert bits(compute("div.full.f32", [1.0], [2.0**127])) == ["400000"]
    assert bits(compute("rcp.approx.ftz.f64", [3.0])) == ["3fd5555500000000"]


def test_an_f16_result_of_2_to_the_16_is_infinite_on_an_h200():
    (ex2,) = lookup("ex2.approx.f16")
    assert bits(ex2.op.run_h200(ex2, np.array([15.0, 15.99, 16.0], np.float16))) == ["7800", "7bf4", "7c00"]


def test_pairs_of_f32():
    one, two = 0x3F800000, 0x40000000
    assert bits(compute("add.f32x2", [two << 32 | one], [one << 32 | one])) == [f"{0x40400000 << 32 | two:x}"]


def test_mixed_sums_take_the_narrow_operand_as_it_is():
    assert compute("add.f32.f16", [0.5], [1.0]).tolist() == [1.5]
    assert compute("sub.rn.f32.bf16", [0x3F80], [0.25]).tolist() == [0.75]
    assert compute("fma.rn.f32.f16", [3.0], [2.0], [2.0**-30]).tolist() == [6.0]
