"""Integer arithmetic against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptxdsl as pd

from .compute import compute
from .refusals import refusal

TYPES = ["u16", "u32", "u64", "s16", "s32", "s64"]


def limits(type_: str) -> tuple[int, int]:
    bits = int(type_[1:])
    return (0, (1 << bits) - 1) if type_[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def wrap(number: int, type_: str) -> int:
    """A number modulo 2^n, in the range of a type."""
    low, high = limits(type_)
    return (number - low) % (high - low + 1) + low


def samples(type_: str, count: int = 60) -> list[int]:
    """The ends and the middle of a type's range, then random numbers of all lengths."""
    low, high = limits(type_)
    rng = random.Random(type_)
    edges = [low, low + 1, 0, 1, 2, 3, high - 1, high, high // 2, high // 3]
    return edges + [wrap(rng.getrandbits(rng.randrange(1, 65)), type_) for _ in range(count)]


def pairs(type_: str) -> tuple[list[int], list[int]]:
    return zip(*[(a, b) for a in samples(type_) for b in samples(type_)], strict=True)


def truncated(a: int, b: int) -> int:
    """a / b rounded toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(
    "name, meaning",
    [
        ("add.{}", lambda a, b, n: a + b),
        ("sub.{}", lambda a, b, n: a - b),
        ("mul.lo.{}", lambda a, b, n: a * b),
        ("mul.hi.{}", lambda a, b, n: a * b >> n),
        ("min.{}", lambda a, b, n: min(a, b)),
        ("max.{}", lambda a, b, n: max(a, b)),
        ("div.{}", lambda a, b, n: truncated(a, b) if b else -1),
        ("rem.{}", lambda a, b, n: a - b * truncated(a, b) if b else -1),
    ],
)
def test_two_operands(name, meaning, type_):
    a, b = pairs(type_)
    expected = [wrap(meaning(x, y, int(type_[1:])), type_) for x, y in zip(a, b, strict=True)]
    assert compute(name.format(type_), a, b).tolist() == expected


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_mad_adds_to_a_half_of_the_product(half, type_):
    a, b = pairs(type_)
    c, n = b[::-1], int(type_[1:])
    shift = n if half == "hi" else 0
    expected = [wrap((x * y >> shift) + z, type_) for x, y, z in zip(a, b, c, strict=True)]
    assert compute(f"mad.{half}.{type_}", a, b, c).tolist() == expected


@pytest.mark.parametrize("type_", ["u16", "u32", "s16", "s32"])
def test_wide_products_are_whole(type_):
    a, b = pairs(type_)
    wide = f"{type_[0]}{2 * int(type_[1:])}"
    assert compute(f"mul.wide.{type_}", a, b).tolist() == [x * y for x, y in zip(a, b, strict=True)]
    sums = compute(f"mad.wide.{type_}", a, b, [limits(wide)[1]] * len(a)).tolist()
    assert sums == [wrap(x * y + limits(wide)[1], wide) for x, y in zip(a, b, strict=True)]


def test_saturating_forms_stop_at_the_ends_of_s32():
    a, b = pairs("s32")
    low, high = limits("s32")
    assert compute("add.sat.s32", a, b).tolist() == [max(low, min(high, x + y)) for x, y in zip(a, b, strict=True)]
    assert compute("sub.sat.s32", a, b).tolist() == [max(low, min(high, x - y)) for x, y in zip(a, b, strict=True)]
    expected = [max(low, min(high, (x * y >> 32) + x)) for x, y in zip(a, b, strict=True)]
    assert compute("mad.hi.sat.s32", a, b, a).tolist() == expected


@pytest.mark.parametrize("type_", ["u32", "s32"])
def test_24_bit_products(type_):
    a, b = pairs(type_)
    cut = [(wrap(x << 8, type_) >> 8, wrap(y << 8, type_) >> 8) for x, y in zip(a, b, strict=True)]
    assert compute(f"mul24.lo.{type_}", a, b).tolist() == [wrap(x * y, type_) for x, y in cut]
    assert compute(f"mul24.hi.{type_}", a, b).tolist() == [wrap(x * y >> 16, type_) for x, y in cut]
    assert compute(f"mad24.lo.{type_}", a, b, a).tolist() == [
        wrap(x * y + z, type_) for (x, y), z in zip(cut, a, strict=True)
    ]


def test_relu_is_at_least_zero():
    assert compute("min.relu.s32", [-5, 3, 7], [2, 4, -1]).tolist() == [0, 3, 0]
    assert compute("max.relu.s32", [-5, 3, -7], [-2, 4, -1]).tolist() == [0, 4, 0]
    assert compute("min.relu.s16x2", [0xFFFF0003], [0x00050004]).tolist() == [0x00000003]


def test_pairs_are_two_independent_halves():
    assert compute("add.u16x2", [0xFFFF0001], [0x0001FFFF]).tolist() == [0]
    assert compute("min.s16x2", [0x80000005], [0x0001FFFE]).tolist() == [0x8000FFFE]
    assert compute("max.u16x2", [0x80000005], [0x0001FFFE]).tolist() == [0x8000FFFE]


@pytest.mark.parametrize("width", [32, 64])
def test_bit_counts(width):
    numbers = [n % (1 << width) for n in samples("u64")]
    assert compute(f"popc.b{width}", numbers).tolist() == [n.bit_count() for n in numbers]
    assert compute(f"clz.b{width}", numbers).tolist() == [width - n.bit_length() for n in numbers]
    assert compute(f"brev.b{width}", numbers).tolist() == [int(f"{n:0{width}b}"[::-1], 2) for n in numbers]


@pytest.mark.parametrize("type_", ["u32", "u64", "s32", "s64"])
def test_bfind_looks_behind_the_sign(type_):
    numbers, width = samples(type_), int(type_[1:])
    places = [(n if n >= 0 else ~n).bit_length() - 1 for n in numbers]
    assert compute(f"bfind.{type_}", numbers).tolist() == [p % (1 << 32) for p in places]
    amounts = [width - 1 - p if p >= 0 else 0xFFFFFFFF for p in places]
    assert compute(f"bfind.shiftamt.{type_}", numbers).tolist() == amounts


def test_fns_counts_set_bits_from_the_base():
    mask = [0xAAAAAAAA] * 6
    found = compute("fns.b32", mask, [3, 3, 2, 2, 2, 31], [1, -1, 1, -1, 0, 1]).tolist()
    assert found == [3, 3, 3, 1, 0xFFFFFFFF, 31]
    assert compute("fns.b32", [0xAAAAAAAA] * 3, [1, 0, 31], [16, 17, -16]).tolist() == [31, 0xFFFFFFFF, 1]
    assert compute("fns.b32", [0xAAAAAAAA], [3], [0]).tolist() == [3]


@pytest.mark.parametrize("type_", ["u32", "u64", "s32", "s64"])
def test_bfe_extends_the_field(type_):
    width = int(type_[1:])
    for number in samples(type_, 5):
        for place in (0, 1, 7, width - 1, width, 200):
            for length in (0, 1, 8, width, 255):
                text = f"{number % (1 << width):0{width}b}"[::-1]
                sign = text[min(place + length - 1, width - 1)] if type_[0] == "s" and length else "0"
                field = (text + sign * 512)[place : place + length] if place < width else sign * length
                field = (field[:length] + sign * 512)[:width]
                expected = wrap(int(field[::-1], 2), type_)
                assert compute(f"bfe.{type_}", [number], [place], [length]).tolist() == [expected], (
                    number,
                    place,
                    length,
                )


@pytest.mark.parametrize("width", [32, 64])
def test_bfi_replaces_the_field_and_nothing_else(width):
    a, b = 0xDEADBEEFCAFEF00D % (1 << width), 0x0123456789ABCDEF % (1 << width)
    for place in (0, 1, 7, width - 1, width, 255):
        for length in (0, 1, 8, width, 255):
            ones = ((1 << length) - 1 << place) % (1 << width)
            expected = (b & ~ones) | (a << place & ones)
            assert compute(f"bfi.b{width}", [a], [b], [place], [length]).tolist() == [expected], (place, length)


def test_szext_and_bmsk_wrap_or_clamp():
    assert compute("szext.wrap.u32", [0xFFFFFFFF] * 3, [0, 4, 33]).tolist() == [0, 15, 1]
    assert compute("szext.clamp.s32", [0x8, 0x8, 0x80000001], [4, 5, 40]).tolist() == [-8, 8, -0x7FFFFFFF]
    assert compute("bmsk.wrap.b32", [1, 31, 33, 4], [2, 2, 31, 32]).tolist() == [6, 0x80000000, 0xFFFFFFFE, 0]
    assert compute("bmsk.clamp.b32", [1, 32, 4, 0], [2, 2, 32, 40]).tolist() == [6, 0, 0xFFFFFFF0, 0xFFFFFFFF]


def test_dot_products_of_bytes():
    a, b = [0x01FF7F80], [0x02FE807F]
    signed = [1 * 2 + -1 * -2 + 0x7F * -0x80 + -0x80 * 0x7F]
    assert compute("dp4a.s32.s32", a, b, [-5]).tolist() == [signed[0] - 5]
    mixed = 0x01 * 0x02 + 0xFF * -2 + 0x7F * -0x80 + 0x80 * 0x7F
    assert compute("dp4a.u32.s32", a, b, [0]).tolist() == [mixed]
    unsigned = 0x01 * 0x02 + 0xFF * 0xFE + 0x7F * 0x80 + 0x80 * 0x7F
    assert compute("dp4a.u32.u32", a, b, [5]).tolist() == [unsigned + 5]
    assert compute("dp2a.lo.u32.u32", a, b, [0]).tolist() == [0x7F80 * 0x7F + 0x01FF * 0x80]
    assert compute("dp2a.hi.s32.u32", a, b, [0]).tolist() == [0x7F80 * 0xFE + 0x01FF * 0x02]
    assert compute("dp2a.hi.s32.u32", a, b, [0]).dtype == np.int32


def test_a_sum_of_products_is_signed_where_a_factor_is():
    @pd.kernel
    def k(a: pd.ptr[pd.b32], b: pd.ptr[pd.b32], c: pd.ptr[pd.s32], d: pd.ptr[pd.u32]):
        c[0] = pd.ptx.dp4a.s32.s32(a[0], b[0], -10) // 2
        d[0] = pd.ptx.dp4a.u32.u32(a[0], b[0], 10) // 2
        c[1] = pd.ptx.dp2a.lo.u32.s32(a[0], b[0], -1)

    a, b = np.array([-3, 1, 2, 3], np.int8), np.array([7, 1, -2, 1], np.int8)
    c, d = np.zeros(2, np.int32), np.zeros(1, np.uint32)
    k[1, 1](a.view(np.uint32), b.view(np.uint32), c, d)
    assert c[0] == (a.astype(int) @ b.astype(int) - 10) // 2
    assert d[0] == (a.view(np.uint8).astype(int) @ b.view(np.uint8).astype(int) + 10) // 2
    assert c[1] == a.view(np.uint16)[0].astype(int) * 7 + a.view(np.uint16)[1].astype(int) * 1 - 1


def test_sad_abs_neg():
    assert compute("sad.u32", [3], [0xFFFFFFFF], [10]).tolist() == [6]
    assert compute("sad.s32", [-(2**31)], [2**31 - 1], [0]).view(np.uint32).tolist() == [0xFFFFFFFF]
    assert compute("abs.s16", [-32768, -5, 7]).tolist() == [-32768, 5, 7]
    assert compute("neg.s32", [-(2**31), -5, 7]).tolist() == [-(2**31), 5, -7]


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_chains_add_and_subtract_numbers_of_any_length(type_):
    width = int(type_[1:])
    rng = random.Random(type_)
    x, y = rng.getrandbits(4 * width), rng.getrandbits(4 * width)
    words = range(0, 4 * width, width)
    for first, rest, expected in (("add.cc", "addc.cc", x + y), ("sub.cc", "subc.cc", x - y)):
        carry, total = [0], 0
        for word in words:
            a, b = ([wrap(n >> word, type_)] for n in (x, y))
            d, carry = compute(f"{rest if word else first}.{type_}", a, b, carry=carry)
            total |= int(d[0]) % (1 << width) << word
        assert total == expected % (1 << 4 * width)
        assert carry.tolist() == [int(expected >= 0 if first == "sub.cc" else expected >> 4 * width)]


def test_chains_multiply_and_add():
    high = compute("madc.hi.u32", [0xFFFFFFFF], [0xFFFFFFFF], [1], carry=[1])
    assert high[0].tolist() == [0] and high[1].tolist() == [1]  # madc without .cc leaves the carry
    low, carry = compute("mad.lo.cc.u32", [0xFFFFFFFF], [2], [5], carry=[0])
    assert (low.tolist(), carry.tolist()) == ([3], [1])


@pytest.mark.parametrize("instruction, message", [
    ("bfe.u32 %r0, %r1, 256, 8;", "bfe.u32: `b` is 256; a bit position or width is 0 to 255"),
    ("bfe.s64 %d0, %d1, 8, -1;", "bfe.s64: `c` is -1; a bit position or width is 0 to 255"),
    ("bfi.b32 %r0, %r1, %r2, 300, 8;", "bfi.b32: `position` is 300; a bit position or width is 0 to 255"),
    ("bfi.b64 %d0, %d1, 300, 255, 255;", ""),
])  # fmt: skip
def test_constant_positions_and_widths_of_fields_are_bytes(instruction, message):
    assert refusal(instruction) == message
