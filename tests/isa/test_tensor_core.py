"""How tensor cores add up, against single instructions m64nNkK of wgmma on an H200 (driver 580, sm_90a)."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.isa.matrix import values
from ptxdsl.isa.tensor_core import NARROW, OF_WGMMA, WIDE, Accumulation, accumulate, toward_zero
from ptxdsl.types import TYPES, bf16, e4m3, f16

from .warp_cases import CASES as WARP_CASES
from .warp_cases import recorded

CASES = json.loads(gzip.decompress((Path(__file__).parent / "vectors" / "wgmma_h200.json.gz").read_bytes()))
FLOATS = [name for name in CASES if not name.startswith("s32")]


@pytest.fixture(autouse=True)
def without_warnings():
    """As the emulator calls it."""
    with np.errstate(all="ignore"):
        yield


def sums(name, how=None):
    """(computed, measured) of 256 outputs, as bits; a row of A and of B for each."""
    case, (result, type, _) = CASES[name], name.split(".")
    element = TYPES[type]
    a, b = (
        values(np.frombuffer(bytes.fromhex(case[o]), np.uint8).reshape(256, 1, -1).copy(), element) for o in ("a", "b")
    )
    c, d = (np.frombuffer(bytes.fromhex(case[o]), TYPES[result].dtype).reshape(256, 1, 1) for o in ("c", "d"))
    computed = accumulate(a, b, c, (element, element), how or OF_WGMMA[element])
    return computed.reshape(-1), d.reshape(-1)


@pytest.mark.parametrize("name", FLOATS)
def test_sums_are_those_of_an_h200(name):
    computed, measured = sums(name)
    np.testing.assert_array_equal(computed.view(f"u{computed.itemsize}"), measured.view(f"u{measured.itemsize}"))


@pytest.mark.parametrize("name", [name for name in FLOATS if name.startswith("f32")])
def test_a_bit_more_or_less_is_another_sum(name):
    how = OF_WGMMA[TYPES[name.split(".")[1]]]
    for fraction in (how.fraction - 1, how.fraction + 1):
        computed, measured = sums(name, Accumulation(fraction, how.kept))
        assert (computed != measured).any()


def test_fp8_sums_lose_the_bits_behind_a_carry():
    computed, measured = sums("f32.e4m3.e4m3", Accumulation(NARROW.fraction))
    assert (computed != measured).any()


def test_what_is_too_small_beside_the_largest_is_dropped():
    a, b = np.array([[[1.0, 2.0**-13]]]), np.array([[[1.0, 2.0**-13]]])  # a product of 2**-26
    one = accumulate(a, b, np.zeros((1, 1, 1), np.float32), (f16, f16), WIDE)
    assert one.item() == 1.0
    small = accumulate(a, b, np.full((1, 1, 1), -1, np.float32), (f16, f16), WIDE)
    assert small.item() == 0.0  # 1 - 1 + 2**-26, of which the last is not there


@pytest.mark.parametrize("type", [np.float16, np.float32])
def test_a_sum_too_small_for_its_type_is_positive_zero(type):
    a, b = np.array([[[-(2.0**-133)]]]), np.array([[[2.0**-30]]])
    one = accumulate(a, b, np.zeros((1, 1, 1), type), (bf16, bf16), WIDE)
    assert one.item() == 0 and not np.signbit(one).any()


def test_mma_of_8_bit_floats_aligns_them_as_f16():
    """The subnormal 2**-9 of e4m3 is a normal number of f16: 2**-18 is not too small beside 2**-9 * 57344."""
    text = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 inputs, .param .u64 outputs)
{
.reg .b32 %a, %b, %t; .reg .f32 %d<4>; .reg .b64 %in, %out, %at;
ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs]; mov.u32 %t, %tid.x;
mul.wide.u32 %at, %t, 8; add.u64 %in, %in, %at; mul.wide.u32 %at, %t, 16; add.u64 %out, %out, %at;
ld.global.v2.b32 {%a, %b}, [%in];
mov.f32 %d0, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32 {%d0, %d1, %d2, %d3}, {%a, %a}, {%b}, {%d0, %d0, %d0, %d0};
st.global.v4.f32 [%out], {%d0, %d1, %d2, %d3};
ret;
}"""
    inputs, outputs = np.zeros((8, 4, 2), np.uint32), np.zeros((32, 4), np.float32)
    inputs[:, 0] = 0x8101, 0x7B7B  # k of 0 and 1: 2**-9 and -2**-9, by 57344
    inputs[:, 1] = 0x01, 0x18  # k of 4: 2**-9 by 2**-9
    with config.using(numerics="h200"):
        pd.emulate(pd.parse(text)["k"], 1, 32, inputs, outputs)
    assert (outputs == 2.0**-18).all()


def test_infinities_and_nan_are_those_of_ieee():
    a, b = (
        np.array([[[np.inf, 1.0]], [[np.inf, 1.0]], [[np.nan, 1.0]]]),
        np.array([[[1.0, 1.0]], [[0.0, 1.0]], [[1, 1]]]),
    )
    result = accumulate(a, b, np.zeros((3, 1, 1), np.float32), (e4m3, e4m3), NARROW).reshape(-1)
    assert result[0] == np.inf
    assert (result[1:].view(np.uint32) == 0x7FFFFFFF).all()


def test_toward_zero_ends_at_infinity():
    wide = np.array([1 + 2.0**-24, -1 - 2.0**-24, 2.0**128 - 2.0**103, 2.0**128, -(2.0**200), 2.0**-150])
    largest = float(np.finfo(np.float32).max)
    assert toward_zero(wide).tolist() == [1.0, -1.0, largest, np.inf, -np.inf, 0.0]


@pytest.mark.parametrize("case", [c for c in WARP_CASES if c.name.startswith("mma")], ids=lambda case: case.name)
def test_mma_gives_what_an_h200_gave(case):
    """The special values too: of all cases, bit for bit."""
    inputs, outputs = case.memory(), np.zeros(case.output_bytes, np.uint8)
    with config.using(numerics="h200"):
        pd.parse(case.ptx())["k"][1, 32](inputs, outputs, np.zeros(1024, np.uint8))
    np.testing.assert_array_equal(outputs, np.frombuffer(recorded()[case.name], np.uint8))
