"""Video instructions against Python's integers."""

from __future__ import annotations

import itertools

import pytest

from ptxdsl import ir
from ptxdsl.isa import lookup
from ptxdsl.types import u32

from .compute import bits, compute

WORDS = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x01FF7F80, 0x8001FFFE]
SIGNS = list(itertools.product(["u32", "s32"], repeat=3))
OPERATIONS = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def signed(number: int, width: int, type_: str) -> int:
    """The low bits of a number as a type takes them."""
    number %= 1 << width
    return number - (1 << width) if type_[0] == "s" and number >> width - 1 else number


def clamped(number: int, width: int, type_: str) -> int:
    low = -(1 << width - 1) if type_[0] == "s" else 0
    return max(low, min(low + (1 << width) - 1, number))


@pytest.mark.parametrize("dtype, atype, btype", SIGNS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_words_take_and_give_any_sign(name, dtype, atype, btype):
    a, b = map(list, zip(*itertools.product(WORDS, WORDS), strict=True))
    exact = [OPERATIONS[name](signed(x, 32, atype), signed(y, 32, btype)) for x, y in zip(a, b, strict=True)]
    found = compute(f"{name}.{dtype}.{atype}.{btype}", a, b).tolist()
    assert found == [signed(n, 32, dtype) for n in exact]
    found = compute(f"{name}.{dtype}.{atype}.{btype}.sat", a, b).tolist()
    assert found == [clamped(n, 32, dtype) for n in exact]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", OPERATIONS)
def test_halves_and_bytes(name, count):
    width = 32 // count
    for a, b, (dtype, atype, btype) in itertools.product(WORDS, WORDS, SIGNS):
        parts = [
            OPERATIONS[name](signed(a >> n * width, width, atype), signed(b >> n * width, width, btype))
            for n in range(count)
        ]
        joined = sum(clamped(p, width, dtype) % (1 << width) << n * width for n, p in enumerate(parts))
        found = compute(f"{name}{count}.{dtype}.{atype}.{btype}.sat", [a], [b], [0])
        assert bits(found) == [f"{joined:x}"], (a, b)
        total = compute(f"{name}{count}.{dtype}.{atype}.{btype}.add", [a], [b], [7])
        assert bits(total) == [f"{(7 + sum(parts)) % (1 << 32):x}"]


def test_second_operations():
    assert compute("vadd.u32.u32.u32.add", [1], [2], [3]).tolist() == [6]
    assert compute("vadd.s32.s32.s32.min", [1], [2], [-3]).tolist() == [-3]
    assert compute("vsub.s32.u32.u32.max", [1], [2], [-3]).tolist() == [-1]


def test_averages_round_up_in_the_middle():
    assert bits(compute("vavrg2.s32.s32.s32", [0x0001FFFF], [0x0002FFFE], [0])) == ["2fffe"]
    assert bits(compute("vavrg4.u32.u32.u32", [0xFF000102], [0xFE000202], [0])) == ["ff000202"]


def test_shifts_wrap_or_clamp():
    assert bits(compute("vshl.u32.u32.u32.wrap", [3], [33])) == ["6"]
    assert bits(compute("vshl.u32.u32.u32.clamp", [3], [33])) == ["0"]
    assert bits(compute("vshr.s32.s32.u32.clamp", [-8], [40])) == ["ffffffff"]
    assert bits(compute("vshr.u32.u32.u32.wrap", [0x80000000], [32])) == ["80000000"]


def test_comparisons_give_1():
    assert compute("vset.u32.s32.gt", [1, 1], [-1, 2]).tolist() == [1, 0]
    assert compute("vset.u32.u32.ne.add", [1, 1], [1, 2], [5, 5]).tolist() == [5, 6]
    assert bits(compute("vset4.u32.u32.lt", [0x01020304], [0x02020303], [0])) == ["1000000"]
    assert compute("vset2.s32.s32.ge.add", [0x00010002], [0xFFFF0003], [0]).tolist() == [1]


def test_multiply_and_add():
    assert compute("vmad.u32.u32.u32", [3], [4], [5]).tolist() == [17]
    assert compute("vmad.u32.u32.u32.po", [3], [4], [5]).tolist() == [18]
    assert compute("vmad.s32.s32.s32.shr7", [-128], [4], [0]).tolist() == [-4]
    assert compute("vmad.u32.u32.u32.shr15", [1 << 31], [1 << 4], [0]).tolist() == [1 << 20]
    assert compute("vmad.s32.s32.s32.sat", [1 << 30], [4], [0]).tolist() == [2**31 - 1]
    assert compute("vmad.u32.u32.u32.sat", [1 << 30], [8], [0]).tolist() == [2**32 - 1]


def test_simd_instructions_take_whole_registers():
    d, a, b, c = (ir.Register(name, u32) for name in "dabc")
    (problem,) = lookup("vadd2.u32.u32.u32")[0].problems([d, ir.Lane(a, "h10"), b, c])
    assert problem.message == "`a` selects .h10; this takes all of a register"
    (problem,) = lookup("vadd.u32.u32.u32")[0].problems([d, ir.Lane(a, "x"), b])
    assert problem.message == "`a` selects .x; this takes .b0, .b1, .b2, .b3, .h0, .h1 or all of a register"
    assert not list(lookup("vadd.u32.u32.u32")[0].problems([d, ir.Lane(a, "h1"), b]))
