"""Conversions against exact fractions, and their clamping, flushing and packing by hand."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from ptxdsl.isa import lookup, numerics
from ptxdsl.types import TYPES

from .compute import bits, compute
from .refusals import refusal
from .test_floating import INF, MODES, NAN, rounded

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]


def limits(type_: str) -> tuple[int, int]:
    width = int(type_[1:])
    return (0, (1 << width) - 1) if type_[0] == "u" else (-(1 << width - 1), (1 << width - 1) - 1)


def whole(exact: Fraction, mode: str) -> int:
    """A fraction rounded to a whole number."""
    return {"rni": round, "rzi": int, "rmi": math.floor, "rpi": math.ceil}[mode](exact)


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("given", ["f16", "f32", "f64"])
def test_floats_round_to_whole_numbers_and_clamp(given, mode, to):
    low, high = limits(to)
    numbers = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 2.51, -2.51, float(low), float(high), 2.0 * high, -1.0, 60000.0, -6.1e4]
    dtype = TYPES[given].dtype
    numbers = [float(dtype.type(n)) for n in numbers if abs(n) <= numerics.FORMATS[TYPES[given]].largest]
    expected = [max(low, min(high, whole(Fraction(n), mode))) for n in numbers]
    assert compute(f"cvt.{mode}.{to}.{given}", numbers).tolist() == expected
    assert compute(f"cvt.{mode}.{to}.{given}", [INF, -INF]).tolist() == [high, low]


def test_nan_converts_to_zero_or_to_the_high_bit():
    assert compute("cvt.rni.s32.f32", [NAN]).tolist() == [0]
    assert compute("cvt.rzi.u8.f16", [NAN]).tolist() == [0]
    assert bits(compute("cvt.rni.s64.f32", [NAN])) == bits(compute("cvt.rni.u64.f16", [NAN])) == [f"{1 << 63:x}"]
    assert bits(compute("cvt.rni.u32.f64", [NAN])) == bits(compute("cvt.rni.s32.f64", [NAN])) == ["80000000"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", ["f16", "f32", "f64", "bf16"])
@pytest.mark.parametrize("given", ["s32", "u64", "s64"])
def test_integers_are_rounded_once(given, to, mode):
    low, high = limits(given)
    rng = random.Random(given + to)
    edges = [1, 3, (1 << 24) + 1, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1, high, low]
    numbers = [n for n in edges if low <= n <= high]
    numbers += [rng.randrange(low, high) >> rng.randrange(0, 63) for _ in range(40)]
    numbers = [n for n in numbers if n]
    found = numerics.decode(compute(f"cvt.{mode}.{to}.{given}", numbers), TYPES[to]).tolist()
    assert found == [rounded(Fraction(n), to, mode) for n in numbers]


NARROWINGS = [("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f64", "bf16"), ("f32", "bf16")]


@pytest.mark.parametrize("given, to", NARROWINGS)
@pytest.mark.parametrize("mode", MODES)
def test_floats_are_rounded_once(given, to, mode):
    precision, emin = numerics.FORMATS[TYPES[to]].precision, numerics.FORMATS[TYPES[to]].emin
    half, largest = 2.0**-precision, numerics.FORMATS[TYPES[to]].largest
    little = 2.0**-23 if given == "f32" else 2.0**-50
    numbers = [1 + half, 1 + 3 * half, 1 + half + little, 1 + half - little / 2, 2.0**emin * (1 - half / 4)]
    numbers += [2.0 ** (emin - precision), 2.0 ** (emin - precision) * (1 + little), largest * (1 + half / 2), 0.1]
    numbers = [float(TYPES[given].dtype.type(s * n)) for n in numbers for s in (1, -1)]
    found = numerics.decode(compute(f"cvt.{mode}.{to}.{given}", numbers), TYPES[to]).tolist()
    for number, result in zip(numbers, found, strict=True):
        expected = rounded(Fraction(number), to, mode)
        assert (result, math.copysign(1, result)) == (expected, math.copysign(1, expected)), number


def test_integers_are_cut_off_extended_or_clamped():
    assert compute("cvt.u8.s32", [-1, 256, 300]).tolist() == [255, 0, 44]
    assert compute("cvt.s64.s8", [-1, 127]).tolist() == [-1, 127]
    assert compute("cvt.u64.s8", [-1]).tolist() == [2**64 - 1]
    assert compute("cvt.sat.u8.s32", [-1, 256, 5]).tolist() == [0, 255, 5]
    assert compute("cvt.sat.s8.u64", [2**64 - 1, 5]).tolist() == [127, 5]
    assert compute("cvt.sat.s64.u64", [2**64 - 1]).tolist() == [2**63 - 1]


def test_saturation_is_only_for_types_that_lose_numbers():
    assert not lookup("cvt.sat.s32.s16") and not lookup("cvt.sat.u32.u32")
    assert lookup("cvt.sat.u32.s16") and lookup("cvt.sat.s32.u32")


def test_the_order_of_types_says_which_is_which():
    assert not lookup("cvt.f16.f32") and lookup("cvt.f32.f16")
    (narrow,) = lookup("cvt.rn.f16.bf16")
    assert [str(operand.type) for operand in narrow.operands] == ["f16", "bf16"]


def test_whole_numbers_in_floats():
    x = [0.5, 1.5, -0.5, -1.5]
    assert bits(compute("cvt.rni.f32.f32", x)) == ["0", "40000000", "80000000", "c0000000"]
    assert compute("cvt.rpi.f64.f64", x).tolist() == [1.0, 2.0, -0.0, -1.0]
    assert compute("cvt.rmi.sat.f16.f16", [-0.5, 1.5, 0.5, NAN]).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_floats_clamp_and_flush():
    assert bits(compute("cvt.rn.sat.f16.f32", [-1.0, 0.5, 2.0, NAN])) == ["0", "3800", "3c00", "0"]
    assert bits(compute("cvt.rn.relu.f16.f32", [-1.0, 0.5, NAN])) == ["0", "3800", "7fff"]
    assert bits(compute("cvt.rn.satfinite.f16.f32", [1e6, -INF, 65519.0, NAN])) == ["7bff", "fbff", "7bff", "7fff"]
    assert bits(compute("cvt.rn.satfinite.bf16.f32", [3.4e38, INF])) == ["7f7f", "7f7f"]
    assert bits(compute("cvt.rn.ftz.f32.f64", [1e-40, -1e-40, 1.0])) == ["0", "80000000", "3f800000"]
    assert bits(compute("cvt.ftz.f64.f32", [1e-40])) == ["0"]
    assert compute("cvt.ftz.rpi.f32.f32", [1e-40]).tolist() == [0.0]
    assert bits(compute("cvt.f32.f32", [1e-40])) == bits(np.float32([1e-40]))


def test_pairs_put_the_first_operand_into_the_high_half():
    assert bits(compute("cvt.rn.f16x2.f32", [1.0], [2.0])) == ["3c004000"]
    assert bits(compute("cvt.rz.bf16x2.f32", [1.0 + 2.0**-8], [-2.0])) == ["3f80c000"]
    assert bits(compute("cvt.rn.relu.bf16x2.f32", [-1.0], [2.0])) == ["4000"]
    a, b = [448.0, 1000.0, NAN], [1.0, -0.0, -INF]
    assert bits(compute("cvt.rn.satfinite.e4m3x2.f32", a, b)) == ["7e38", "7e80", "7ffe"]
    assert bits(compute("cvt.rn.satfinite.relu.e5m2x2.f32", [-1.0], [1e9])) == ["7b"]


def test_tf32_keeps_ten_bits_of_fraction():
    x = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-12]
    assert bits(compute("cvt.rna.tf32.f32", x)) == ["3f802000", "3f804000", "bf802000", "3f800000"]
    assert bits(compute("cvt.rn.tf32.f32", x)) == ["3f800000", "3f804000", "bf800000", "3f800000"]
    assert bits(compute("cvt.rz.tf32.f32", x)) == ["3f800000", "3f802000", "bf800000", "3f800000"]


@pytest.mark.parametrize("type_, bias, fraction", [("e4m3", 7, 3), ("e5m2", 15, 2)])
def test_every_8_bit_float(type_, bias, fraction):
    """Each of the 256 numbers by its definition, and back again; numbers between two go to the nearer or even one."""
    codes = np.arange(256, dtype=np.uint8)
    values = numerics.decode(codes, TYPES[type_])
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        exponent, rest = code >> fraction & (1 << 7 - fraction) - 1, code & (1 << fraction) - 1
        scale = 2.0 ** (max(exponent, 1) - bias - fraction)
        size = scale * (rest + (exponent > 0) * (1 << fraction))
        if math.isfinite(value):
            assert value == (-size if code & 0x80 else size)
    assert np.isnan(values).sum() == (2 if type_ == "e4m3" else 6)
    finite = np.isfinite(values)
    assert (numerics.encode(values[finite], TYPES[type_]) == codes[finite]).all()
    steps = np.unique(np.abs(values[finite]))
    middles = (steps[:-1] + steps[1:]) / 2
    even = numerics.encode(middles, TYPES[type_])
    assert (even % 2 == 0).all()
    assert (numerics.encode(np.nextafter(middles, 1e9), TYPES[type_]) == np.arange(1, len(steps))).all()
    assert (numerics.encode(np.nextafter(middles, 0), TYPES[type_]) == np.arange(len(steps) - 1)).all()


def test_8_bit_floats_unpack_to_f16():
    assert bits(compute("cvt.rn.f16x2.e4m3x2", [0x387E])) == ["3c005f00"]
    assert bits(compute("cvt.rn.relu.f16x2.e5m2x2", [0x3CBC])) == ["3c000000"]
    assert bits(compute("cvt.rn.satfinite.e4m3x2.f16x2", [0x3C005F00])) == ["387e"]


def test_pack_clamps_and_joins():
    assert bits(compute("cvt.pack.sat.u16.s32", [70000], [-5])) == ["ffff0000"]
    assert bits(compute("cvt.pack.sat.s16.s32", [-40000], [5])) == ["80000005"]
    assert bits(compute("cvt.pack.sat.u8.s32.b32", [300], [-5], [0x1234])) == ["1234ff00"]
    assert bits(compute("cvt.pack.sat.s4.s32.b32", [-9], [9], [0xABCDEF])) == ["abcdef87"]
    assert bits(compute("cvt.pack.sat.u2.s32.b32", [2], [9], [0x1])) == ["1b"]


@pytest.mark.parametrize("instruction, message", [
    (
        "cvt.rz.bf16.u16 %h1, %r0;",
        "cvt.rz.bf16.u16: `a` is a b32 register; this form takes a 16-bit integer register",
    ),
    (
        "cvt.rzi.u32.bf16 %d0, %h1;",
        "cvt.rzi.u32.bf16: `d` is a b64 register; this form takes a 32-bit integer register",
    ),
    ("cvt.rz.f16.u16 %h1, %r0;", ""),
    ("cvt.rzi.u32.f16 %d0, %h1;", ""),
])  # fmt: skip
def test_only_conversions_without_bf16_take_wider_registers(instruction, message):
    assert refusal(instruction) == message
