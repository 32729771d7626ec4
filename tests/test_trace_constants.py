"""Constants with a type: each means in an instruction what a register of its type would; numbers at the ends of types."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b16, b32, b64, bf16x2, f16, f16x2, f32, f64, ptr, s32, s64, u32
from tests.tracing import emitted

# (instruction, type of its result, type of the constant, the constant, the other operand): as bits of a register.
BITS = {
    "b32 as f32": ("add.f32", f32, b32, 0x3F800000),
    "b64 as f64": ("add.f64", f64, b64, 0x3FF0000000000000),
    "b32 as f16x2": ("add.f16x2", f16x2, b32, 0x3C00),
    "b32 as bf16x2": ("fma.rn.bf16x2", bf16x2, b32, 0x3F803F80),
    "b16 as f16": ("add.f16", f16, b16, 0x3C00),
    "f32 as b32": ("xor.b32", b32, f32, 1.5),
    "f64 as b64": ("xor.b64", b64, f64, -2.5),
    "f16x2 as b32": ("xor.b32", b32, f16x2, 1.5),
    "f16 as b16": ("xor.b16", b16, f16, -0.25),
    "s32 as u32": ("add.u32", u32, s32, -1),
}


@pytest.mark.parametrize("text, type, given, number", BITS.values(), ids=BITS)
def test_a_typed_constant_is_read_as_a_register_of_its_type_is(text, type, given, number):
    bits = pd.types.bits(type.bits)

    @pd.kernel
    def k(x: ptr[bits]):
        operand = x[0] if type.kind == "b" else x[0].bitcast(type)
        constant = pd.cast(number, given)
        held = pd.var(given, constant)
        for at, other in enumerate((constant, held)):
            operands = (operand, other) if "fma" not in text else (operand, other, operand)
            result = pd.ptx(text, *operands)
            x[1 + at] = result if type.kind == "b" else result.bitcast(bits)

    x = np.array([7 << type.bits - 8, 0, 0], f"u{type.bits // 8}")
    k[1, 1](x)
    assert x[1] == x[2] != x[0]


def test_a_raw_one_is_added_as_one():
    @pd.kernel
    def k(x: ptr[f32]):
        x[0] = pd.ptx.add.f32(x[0], pd.cast(0x3F800000, b32))

    x = np.array([2.5], np.float32)
    k[1, 1](x)
    assert x[0] == 3.5


def test_a_packed_constant_multiplies_and_adds_in_all_lanes():
    @pd.kernel
    def k(x: ptr[b32]):
        v = x[0].bitcast(f16x2)
        x[1] = pd.fma(v, v, pd.cast(1.5, f16x2)).bitcast(b32)
        x[2] = (v * pd.cast(2.0, f16x2) - pd.cast(0.5, f16x2)).bitcast(b32)
        x[3] = pd.select(x[0] == 0, v, pd.cast(0.25, f16x2)).bitcast(b32)
        x[4] = pd.cast(0.75, f16x2).bitcast(b32)

    x = np.array([3, -0.5] + [0] * 8, np.float16)
    k[1, 1](x.view(np.uint32))
    assert x[2:].tolist() == [10.5, 1.75, 5.5, -1.5, 0.25, 0.25, 0.75, 0.75]


def test_stores_take_the_low_bits_of_a_constant_as_of_a_register():
    @pd.kernel
    def k(x: ptr[u32]):
        pd.ptx.st.global_.u8(x, pd.cast(0x1FF, u32))
        pd.ptx.st.global_.b32(x + 1, pd.cast(1.5, f32))
        pd.ptx.st.global_.b16(x + 2, pd.cast(1.5, f16))

    x = np.zeros(3, np.uint32)
    k[1, 1](x)
    assert x.tolist() == [0xFF, 0x3FC00000, 0x3E00]


def test_the_bits_of_a_constant_float_are_an_integer():
    @pd.kernel
    def k(x: ptr[u32]):
        x[0] = pd.cast(1.5, f32).bitcast(u32) + 1

    x = np.zeros(1, np.uint32)
    k[1, 1](x)
    assert x[0] == 0x3FC00001


@pytest.mark.parametrize("type", [s32, s64], ids=str)
def test_the_least_number_of_a_type_is_added_and_subtracted(type):
    low = -(1 << type.bits - 1)

    @pd.kernel
    def k(x: ptr[type], a: type):
        v = pd.var(type, a)
        v -= low
        x[0], x[1], x[2], x[3] = a - low, a + low, low - a, v

    x = np.zeros(4, type.dtype)
    k[1, 1](x, -7)
    assert x.tolist() == [-7 - low, -7 - low, low + 7, -7 - low]


@pytest.mark.parametrize("unroll", [None, 2, 3])
@pytest.mark.parametrize("type", [s32, s64], ids=str)
def test_a_loop_goes_down_to_the_least_number_of_its_type(type, unroll):
    low = -(1 << type.bits - 1)

    @pd.kernel
    def k(x: ptr[type], a: type):
        count, last = pd.var(type, 0), pd.var(type, 0)
        for i in pd.range(a, low, -2, unroll=unroll):
            count += 1
            last.set(i)
        x[0], x[1] = count, last

    for start in (low, low + 1, low + 6, low + 7):
        x = np.zeros(2, type.dtype)
        k[1, 1](x, start)
        rounds = range(start, low, -2)
        assert x.tolist() == [len(rounds), rounds[-1] if rounds else 0]


def test_arithmetic_of_constants_alone_is_that_of_python():
    @pd.kernel
    def k(x: ptr[s32]):
        a = pd.cast(-7, s32)
        results = (a % 8, a % 3, a // 2, a // 3, a % pd.cast(-3, s32), a // pd.cast(-2, s32), a & 6, a - 1)
        for i, result in enumerate(results):
            x[i] = result

    x = np.zeros(8, np.int32)
    k[1, 1](x)
    assert x.tolist() == [-7 % 8, -7 % 3, -7 // 2, -7 // 3, -7 % -3, -7 // -2, -7 & 6, -8]
    assert all(text.startswith("st.global.s32") for text in emitted(k))


def test_value_keeps_what_a_variable_held():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        m = pd.var(f32, x[0])
        for i in pd.range(n):
            old = m.value
            m.set(pd.max(m, x[i]))
            x[i] = m - old
        kept = x[0].value
        x[0] = kept

    x = np.array([1, 5, 2, 9], np.float32)
    k[1, 1](x, 4)
    assert x.tolist() == [0, 4, 0, 4]
    assert emitted(k).count("mov.f32 %old, %m;") == 1


def test_a_variable_may_have_names_that_do_not_hide_a_write():
    class State:
        def __init__(self):
            self.sum = pd.var(f32, 0)

    @pd.kernel
    def k(x: ptr[f32]):
        state = State()
        total = state.sum
        total += 1.0
        low, high = pd.var(f32, 1), pd.var(f32, 2)
        for v in (low, high):
            v += 1.0
        before = low
        x[0] = before
        low += 1.0
        low, high = high, low
        low += 10.0
        x[1], x[2], x[3] = state.sum, low, high

    x = np.zeros(4, np.float32)
    k[1, 1](x)
    assert x.tolist() == [2, 1, 13, 3]
