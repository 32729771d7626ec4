"""Operators on traced values mean what they mean on Python numbers, within the width of the type."""

from __future__ import annotations

import operator
import re

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b8, b16, bf16, e4m3, e4m3x2, f16, f32, f64, pred, ptr, s8, s16, s32, s64, u8, u16, u32, u64
from ptxdsl.trace.literal import encode, limits
from ptxdsl.trace.operators import wrapped
from tests.tracing import emitted, mnemonics, source_kernel

INTEGERS = [u16, s16, u32, s32, u64, s64]
WIDE = [u32, s32, u64, s64]
FLOATS = [f16, f32, f64]
LANES = 64


def binary_kernel(function, type, result):
    @pd.kernel
    def k(x: ptr[type], y: ptr[type], out: ptr[result]):
        i = pd.tid.x
        made = function(x[i], y[i])
        out[i] = made.to(result) if made.type is not result else made

    return k


def unary_kernel(function, type, result):
    @pd.kernel
    def k(x: ptr[type], out: ptr[result]):
        i = pd.tid.x
        made = function(x[i])
        out[i] = made.to(result) if made.type is not result else made

    return k


def computed(function, type, *inputs, result=None):
    """What the emulator gives for an operator on arrays of LANES elements."""
    result = result or type
    out = np.zeros(LANES, result.dtype)
    maker = binary_kernel if len(inputs) == 2 else unary_kernel
    maker(function, type, result)[1, LANES](*inputs, out)
    return out


def integers(rng, type):
    """Integers of a type: its corners, small ones and any."""
    low, high = limits(type)
    corners = [low, low + 1, max(low, -3), 0, 1, 2, 3, 7, high - 1, high]
    some = rng.integers(low, high, LANES - len(corners), dtype=type.dtype, endpoint=True)
    small = rng.integers(max(low, -20), 20, LANES, dtype=type.dtype)
    values = np.concatenate(
        [np.array(corners, type.dtype), np.where(rng.random(len(some)) < 0.5, some, small[: len(some)])]
    )
    return rng.permutation(values)


def floats(rng, type):
    values = rng.standard_normal(LANES).astype(type.dtype)
    values[:6] = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
    return rng.permutation(values)


def expected(function, type, *inputs):
    """The same operator on Python ints, cut to the type."""
    return np.array([wrapped(int(function(*map(int, v))), type) for v in zip(*inputs, strict=True)], type.dtype)


@pytest.mark.cases(16)
@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "and_", "or_", "xor"])
def test_integers_combine_as_python_ints_cut_to_the_type(name, type, rng):
    function = getattr(operator, name)
    x, y = integers(rng, type), integers(rng, type)
    assert np.array_equal(computed(function, type, x, y), expected(function, type, x, y))


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_division_rounds_down_like_pythons(name, type, rng):
    function = getattr(operator, name)
    x, y = integers(rng, type), integers(rng, type)
    y[y == 0] = 1
    assert np.array_equal(computed(function, type, x, y), expected(function, type, x, y))


@pytest.mark.cases(8)
@pytest.mark.parametrize("type", WIDE, ids=str)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, 100])
def test_division_by_constants_rounds_down(divisor, type, rng):
    x = integers(rng, type)
    for function in (lambda v: v // divisor, lambda v: v % divisor, lambda v: divmod(v, divisor)[1]):
        assert np.array_equal(computed(function, type, x), expected(function, type, x))


@pytest.mark.parametrize("type", [s16, s32, s64], ids=str)
@pytest.mark.parametrize("divisor", [-1, -3, -8])
def test_division_by_negative_constants_rounds_down(divisor, type, rng):
    x = integers(rng, type)
    for function in (lambda v: v // divisor, lambda v: v % divisor):
        assert np.array_equal(computed(function, type, x), expected(function, type, x))


@pytest.mark.parametrize("type", WIDE, ids=str)
def test_a_number_may_stand_on_the_left(type, rng):
    x = integers(rng, type)
    x[x == 0] = 5
    for function in (lambda v: 7 - v, lambda v: 3 + v, lambda v: 5 * v, lambda v: 100 // v, lambda v: 100 % v,
                     lambda v: 12 & v, lambda v: 12 | v, lambda v: 12 ^ v):  # fmt: skip
        assert np.array_equal(computed(function, type, x), expected(function, type, x))


@pytest.mark.cases(8)
@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("amount", [0, 1, 5, 15])
def test_shifts_keep_the_sign_of_signed_values(amount, type, rng):
    x = integers(rng, type)
    for function in (lambda v: v >> amount, lambda v: v << amount):
        assert np.array_equal(computed(function, type, x), expected(function, type, x))


@pytest.mark.parametrize("type", WIDE, ids=str)
def test_shifts_by_registers(type, rng):
    x = integers(rng, type)
    lanes = np.arange(LANES) % type.bits
    for function in (lambda v, n: v >> n, lambda v, n: v << n):
        got = computed(lambda v, function=function: function(v, pd.tid.x % type.bits), type, x)
        assert np.array_equal(got, expected(function, type, x, lanes))


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_signs_and_complements(type, rng):
    x = integers(rng, type)
    for function in (operator.neg, operator.invert, operator.pos, abs):
        assert np.array_equal(computed(function, type, x), expected(function, type, x))


@pytest.mark.cases(14)
@pytest.mark.parametrize("type", INTEGERS + FLOATS, ids=str)
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_are_those_of_python(name, type, rng):
    function = getattr(operator, name)
    x, y = (floats(rng, type), floats(rng, type)) if type.is_float else (integers(rng, type), integers(rng, type))
    y[::3] = x[::3]
    assert np.array_equal(computed(function, type, x, y, result=u32), function(x, y))
    half = lambda v: function(v, 2), lambda v: function(2, v)
    for compare in half:
        assert np.array_equal(computed(compare, type, x, result=u32), compare(x))


@pytest.mark.cases(6)
@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_floats_round_to_nearest(name, type, rng):
    function = getattr(operator, name)
    x, y = floats(rng, type), floats(rng, type)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(computed(function, type, x, y), function(x, y), equal_nan=True)
        assert np.array_equal(
            computed(lambda v: function(v, 0.5), type, x), function(x, type.dtype.type(0.5)), equal_nan=True
        )
        assert np.array_equal(
            computed(lambda v: function(3, v), type, x), function(type.dtype.type(3), x), equal_nan=True
        )


@pytest.mark.parametrize("type", [f32, f64], ids=str)
def test_float_division_rounds_to_nearest(type, rng):
    x, y = floats(rng, type), floats(rng, type)
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.array_equal(computed(operator.truediv, type, x, y), x / y, equal_nan=True)


def test_a_bf16_constant_is_rounded_to_nearest_even():
    numbers = [1 + n / 256 for n in range(8)]  # every other one is half way between two values
    expected = np.array(numbers, ml_dtypes.bfloat16).view(np.uint16)
    assert [encode(number, bf16).value for number in numbers] == expected.tolist()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_bf16_rounds_once_on_every_target(name, arch, rng, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", arch)
    function = getattr(operator, name)
    x, y = (rng.standard_normal(LANES).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros(LANES, ml_dtypes.bfloat16)
    binary_kernel(function, bf16, bf16)[1, LANES](x, y, out)
    wanted = function(x.astype(np.float64), y.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("type", [f16, f32, f64], ids=str)
def test_negation_and_magnitude_of_floats(type, rng):
    x = floats(rng, type)
    assert np.array_equal(computed(operator.neg, type, x), -x, equal_nan=True)
    assert np.array_equal(computed(abs, type, x), abs(x), equal_nan=True)


@pytest.mark.cases(5)
@pytest.mark.parametrize("type", INTEGERS + FLOATS, ids=str)
def test_min_max_and_select(type, rng):
    make = floats if type.is_float else integers
    x, y = make(rng, type), make(rng, type)
    x, y = (np.nan_to_num(v, nan=0.5) if type.is_float else v for v in (x, y))
    assert np.array_equal(computed(pd.min, type, x, y), np.minimum(x, y))
    assert np.array_equal(computed(pd.max, type, x, y), np.maximum(x, y))
    assert np.array_equal(computed(lambda v: pd.max(3, v), type, x), np.maximum(x, 3))
    assert np.array_equal(computed(lambda a, b: pd.select(a < b, a, b), type, x, y), np.where(x < y, x, y))
    assert np.array_equal(computed(lambda a: pd.select(a < 1, a, 2), type, x), np.where(x < 1, x, 2))


def test_fma_rounds_once_and_wraps_integers(rng):
    x, y = floats(rng, f32), floats(rng, f32)
    with np.errstate(invalid="ignore"):
        wanted = (x.astype(np.float64) * y.astype(np.float64) + 1.0).astype(np.float32)
    assert np.array_equal(computed(lambda a, b: pd.fma(a, b, 1.0), f32, x, y), wanted, equal_nan=True)
    i, j = integers(rng, u32), integers(rng, u32)
    assert np.array_equal(computed(lambda a, b: pd.fma(a, b, a), u32, i, j), i * j + i)


def test_predicates_combine(rng):
    x, y = integers(rng, s32), integers(rng, s32)
    a, b = x > 0, y > 0
    cases = {
        "and": (lambda p, q: p & q, a & b), "or": (lambda p, q: p | q, a | b), "xor": (lambda p, q: p ^ q, a ^ b),
        "not": (lambda p, q: ~p & ~q, ~a & ~b), "twice": (lambda p, q: ~~p, a),
        "select": (lambda p, q: pd.select(p, q, ~q), np.where(a, b, ~b)),
    }  # fmt: skip
    for name, (function, wanted) in cases.items():
        got = computed(lambda v, w, function=function: function(v > 0, w > 0), s32, x, y, result=u32)
        assert np.array_equal(got, wanted), name


@pytest.mark.cases(20)
@pytest.mark.parametrize("source", INTEGERS + FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS + FLOATS, ids=str)
def test_conversions(source, target, rng):
    if source.is_float:
        x = (rng.standard_normal(LANES) * 100).astype(source.dtype)
        x = abs(x) if not target.is_signed and not target.is_float else x
    else:
        x = rng.integers(max(limits(source)[0], -1000), 1000, LANES, dtype=source.dtype)
    got = computed(lambda v: v.to(target), source, x, result=target)
    assert np.array_equal(got, x.astype(target.dtype))


@pytest.mark.cases(5)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("type", [f32, f64, f16, s32], ids=str)
def test_bf16_converts_from_and_to(type, arch, rng, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", arch)
    x = rng.integers(-60, 60, LANES).astype(ml_dtypes.bfloat16)
    out = np.zeros(LANES, type.dtype)
    unary_kernel(lambda v: v.to(type), bf16, type)[1, LANES](x, out)
    assert np.array_equal(out, x.astype(np.float64))
    if type is not f64:
        back = np.zeros(LANES, ml_dtypes.bfloat16)
        unary_kernel(lambda v: v.to(bf16), type, bf16)[1, LANES](out, back)
        assert np.array_equal(back, x)


@pytest.mark.parametrize("source, target", [(f32, u32), (f16, u16), (s32, f32), (f64, u64), (u64, s64), (bf16, u16)])
def test_bitcast_keeps_the_bits(source, target, rng):
    x = rng.integers(0, 1 << 15, LANES).astype(f"u{source.bytes}").view(source.dtype)
    got = computed(lambda v: v.bitcast(target), source, x, result=target)
    assert np.array_equal(got, x.view(target.dtype), equal_nan=True)


@pytest.mark.parametrize("source", [u16, s16], ids=str)
@pytest.mark.parametrize("target", [b16, e4m3x2], ids=str)
def test_a_bitcast_value_is_an_operand_of_its_new_type(source, target):
    """An instruction that takes untyped registers only gets a copy in one: `cvt` of a packed type is such."""

    @pd.kernel(arch="sm_90a")
    def k(x: ptr[source], out: ptr[u32]):
        out[pd.tid.x] = pd.ptx("cvt.rn.f16x2.e4m3x2", x[pd.tid.x].bitcast(target)).bitcast(u32)

    assert re.search(r"mov\.b16 (%bs\d), %\w+;\n    cvt\.rn\.f16x2\.e4m3x2 %h0, \1;", k.ptx())
    x = np.array([1.5, -2, 0.25, 448], ml_dtypes.float8_e4m3fn)
    out = np.zeros(2, np.uint32)
    k[1, 2](x.view(source.dtype), out)
    assert np.array_equal(out.view(np.float16), x.astype(np.float16))


def test_packing_puts_the_first_value_lowest(rng):
    x = rng.integers(0, 1 << 16, LANES, dtype=np.uint16)
    out = np.zeros(LANES, np.uint32)

    @pd.kernel
    def k(x: ptr[u16], out: ptr[u32]):
        i = pd.tid.x
        low, high = pd.unpack(pd.pack(x[i], x[0]), u16)
        out[i] = pd.pack(high, low).bitcast(u32)

    k[1, LANES](x, out)
    assert np.array_equal(out, x[0].astype(np.uint32) | (x.astype(np.uint32) << 16))


@pytest.mark.cases(4)
@pytest.mark.parametrize("element", [s8, u8, b8, e4m3], ids=str)
@pytest.mark.parametrize("word", [u32, u64], ids=str)
def test_bytes_are_packed_and_unpacked(word, element, rng):
    """By shifts: registers have 16 bits at least, and no assembler takes these as four parts of a word."""

    @pd.kernel
    def k(x: ptr[word], out: ptr[word], first: ptr[f32]):
        parts = pd.unpack(x[pd.tid.x], element)
        out[pd.tid.x] = pd.pack(*reversed(parts)).bitcast(word)
        number = parts[0] if element in (s8, u8) else parts[0].bitcast(u8)
        first[pd.tid.x] = number.to(f32)

    x = rng.integers(0, 1 << word.bits, LANES, dtype=word.dtype)
    out, first = np.zeros_like(x), np.zeros(LANES, np.float32)
    k[1, LANES](x, out, first)
    bytes = x.view(np.uint8).reshape(LANES, -1)
    assert np.array_equal(out.view(np.uint8).reshape(LANES, -1), bytes[:, ::-1])
    assert np.array_equal(first, bytes[:, 0].view(np.int8 if element is s8 else np.uint8))
    assert k.cubin().image[:4] == b"\x7fELF"


def test_a_value_is_packed_alone_without_braces():
    """At which nvJitLink 13.0 crashes."""

    @pd.kernel
    def k(x: ptr[u32], out: ptr[u32]):
        out[0] = pd.pack(x[0]).bitcast(u32)

    assert re.search(r"mov\.b32 %\w+, %\w+;", k.ptx())
    out = np.zeros(1, np.uint32)
    k[1, 1](np.array([7], np.uint32), out)
    assert out[0] == 7


def one_value(function, type=u32):
    @pd.kernel
    def k(n: type):
        function(n)

    return k


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v + 0, lambda v: 0 + v, lambda v: v - 0, lambda v: v * 1, lambda v: 1 * v, lambda v: v * 0,
        lambda v: v // 1, lambda v: v % 1, lambda v: v & 0, lambda v: v & 0xFFFFFFFF, lambda v: v | 0,
        lambda v: v ^ 0, lambda v: v << 0, lambda v: v >> 0, lambda v: v.to(u32), lambda v: v.to(s32),
        lambda v: v.bitcast(s32), lambda v: (v * 0 + 3) * 4 - 1, lambda v: +v, lambda v: abs(v),
        lambda v: v | 0xFFFFFFFF,
    ],
)  # fmt: skip
def test_what_changes_nothing_emits_nothing(function):
    assert emitted(one_value(function)) == []


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda v: v // 8, ["shr.u32"]),
        (lambda v: v % 8, ["and.b32"]),
        (lambda v: v * 8, ["mul.lo.u32"]),
        (lambda v: v + -3, ["sub.u32"]),
        (lambda v: v - -3, ["add.u32"]),
        (lambda v: v // 3, ["div.u32"]),
        (lambda v: v % 3, ["rem.u32"]),
        (lambda v: -v, ["neg.s32"]),
        (lambda v: v.to(s32) >> 1, ["shr.s32"]),
        (lambda v: v.to(s32) // 4, ["shr.s32"]),
        (lambda v: v.to(s32) % 4, ["and.b32"]),
        (lambda v: v.to(u64), ["cvt.u64.u32"]),
        (lambda v: v.to(f32), ["cvt.rn.f32.u32"]),
        (lambda v: v.to(f32).to(s32), ["cvt.rn.f32.u32", "cvt.rzi.s32.f32"]),
        (lambda v: (v > 3).to(u32), ["setp.gt.u32", "selp.u32"]),
        (lambda v: v < 3, ["setp.lt.u32"]),
        (lambda v: ~(v > 3), ["setp.gt.u32"]),
        (lambda v: v.to(f16) + 1.5, ["cvt.rn.f16.u32", "mov.b16", "add.rn.f16"]),
        (lambda v: v.to(f32) * 1.0, ["cvt.rn.f32.u32"]),
        (lambda v: v.bitcast(f32), ["mov.b32"]),
    ],
)
def test_operators_emit_the_fewest_instructions(function, wanted):
    assert mnemonics(one_value(function)) == wanted


def test_the_type_of_a_result_is_that_of_its_operands():
    seen = {}

    @pd.kernel
    def k(a: s32, b: u64, c: f16):
        seen.update(
            sum=a + 1,
            shift=a >> 3,
            complement=~b,
            compare=a < 3,
            half=c * 2,
            negative=-b,
            zero=a * 0,
            both=(a < 1) & (a > 0),
        )

    k.ptx()
    assert {name: value.type for name, value in seen.items()} == {
        "sum": s32, "shift": s32, "complement": u64, "compare": pred, "half": f16, "negative": u64, "zero": s32,
        "both": pred,
    }  # fmt: skip


def test_numpy_scalars_are_numbers():
    @pd.kernel
    def k(out: ptr[f32], n: u32):
        out[0] = np.float32(1.5) * out[1] + np.float64(0.25)
        out[n + np.int64(2)] = np.float16(2)

    out = np.ones(4, np.float32)
    k[1, 1](out, 1)
    assert out.tolist() == [1.75, 1.0, 1.0, 2.0]


NUMPY = {
    "np.int32(3) + a": "3 + a", "np.int32(3) - a": "3 - a", "a - np.int32(3)": "a - 3", "np.int32(3) * a": "3 * a",
    "np.int32(8) // a": "8 // a", "np.int32(8) % a": "8 % a", "np.int32(8) & a": "8 & a", "np.int32(8) | a": "8 | a",
    "np.int32(8) ^ a": "8 ^ a", "np.int32(3) < a": "3 < a", "np.int32(3) <= a": "3 <= a", "np.int32(3) > a": "3 > a",
    "np.int32(3) >= a": "3 >= a", "np.int32(3) == a": "3 == a", "np.int32(3) != a": "3 != a",
    "np.add(a, 3)": "a + 3", "np.subtract(a, b)": "a - b", "np.less(a, b)": "a < b", "(np.int64(2) + x)[0]": "x[2]",
}  # fmt: skip


@pytest.mark.parametrize("numpys, ours", NUMPY.items())
def test_operators_of_numpy_on_traced_values_are_ours(numpys, ours):
    head = "x: ptr[f32], a: s32, b: s32"
    used = "r = {}\npd.ptx.mov.b64(r.value) if isinstance(r, type(x)) else r"
    texts = [emitted(source_kernel(used.format(text), head)) for text in (numpys, ours)]
    assert texts[0] == texts[1]
    assert texts[0] or "x" in ours


def test_the_extreme_of_several_values_and_numbers(rng):
    x, y = floats(rng, f32), floats(rng, f32)
    x, y = np.nan_to_num(x, nan=0.5), np.nan_to_num(y, nan=0.5)
    assert np.array_equal(
        computed(lambda a, b: pd.max(1.0, a, b, -a), f32, x, y), np.maximum.reduce([x * 0 + 1, x, y, -x])
    )
    assert np.array_equal(computed(lambda a, b: pd.min(a, 0.25, b), f32, x, y), np.minimum.reduce([x * 0 + 0.25, x, y]))


def test_constants_on_the_left_and_of_another_type():
    @pd.kernel
    def k(x: ptr[u32], n: u32):
        x[pd.cast(3, u32).to(s32)] = pd.select(pd.cast(3, u32) < n, n, 0)

    assert emitted(k) == [
        "setp.gt.u32 %p0, %n, 3;", "selp.u32 %r0, %n, 0, %p0;", "st.global.u32 [%x+12], %r0;",
    ]  # fmt: skip


def test_tf32_is_converted_from_and_to_f32():
    @pd.kernel
    def k(x: ptr[f32]):
        x[1] = x[0].to(pd.tf32).to(f32)

    assert mnemonics(k) == ["ld.global.f32", "cvt.rna.tf32.f32", "mov.b32", "st.global.f32"]
