"""Logic, shifts and byte permutation against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptxdsl import ir
from ptxdsl.isa import lookup
from ptxdsl.types import b32

from .compute import bits, compute

WORDS = [random.Random(7).getrandbits(32) for _ in range(20)] + [0, 0xFFFFFFFF, 0x80000000, 1]
COUNTS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 65536, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("width", [16, 32, 64])
def test_bitwise(width):
    a, b = 0xF0F0A5A5C3C30FF0 % (1 << width), 0xFF00FF0012345678 % (1 << width)
    assert compute(f"and.b{width}", [a], [b]).tolist() == [a & b]
    assert compute(f"or.b{width}", [a], [b]).tolist() == [a | b]
    assert compute(f"xor.b{width}", [a], [b]).tolist() == [a ^ b]
    assert compute(f"not.b{width}", [a]).tolist() == [a ^ (1 << width) - 1]
    assert compute(f"cnot.b{width}", [a, 0]).tolist() == [0, 1]


def test_predicates():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert compute("and.pred", a, b).tolist() == [0, 0, 0, 1]
    assert compute("or.pred", a, b).tolist() == [0, 1, 1, 1]
    assert compute("xor.pred", a, b).tolist() == [0, 1, 1, 0]
    assert compute("not.pred", a).tolist() == [1, 1, 0, 0]


def test_every_truth_table():
    a, b, c = [0xF0], [0xCC], [0xAA]
    for table in range(256):
        assert compute("lop3.b32", a, b, c, table)[0] & 0xFF == table


def test_lop3_joins_its_predicate():
    q = np.array([True, False, True, False])
    a, ones = [0, 0, 1, 1], [0xFFFFFFFF] * 4
    d, p = compute("lop3.and.b32", a, ones, ones, 0x80, q)
    assert (d.tolist(), p.tolist()) == (a, [False, False, True, False])
    assert compute("lop3.or.b32", a, ones, ones, 0x80, q)[1].tolist() == [True, False, True, True]


def test_a_truth_table_has_8_bits():
    opcode = lookup("lop3.b32")[0]
    registers = [ir.Register(name, b32) for name in "dabc"]
    (problem,) = opcode.problems([*registers, ir.Immediate(256)])
    assert problem.message == "`lut` is 256; a truth table of three inputs is 0 to 255"


@pytest.mark.parametrize("width", [16, 32, 64])
def test_shifts_past_the_width_leave_zeros_or_signs(width):
    number = (1 << width - 1) | 5
    numbers = [number] * len(COUNTS)
    left = [number << min(n, width) & (1 << width) - 1 for n in COUNTS]
    assert compute(f"shl.b{width}", numbers, COUNTS).tolist() == left
    assert compute(f"shr.u{width}", numbers, COUNTS).tolist() == [number >> min(n, width) for n in COUNTS]
    assert compute(f"shr.b{width}", numbers, COUNTS).tolist() == [number >> min(n, width) for n in COUNTS]
    signed = [number - (1 << width) >> min(n, width) for n in COUNTS]
    assert compute(f"shr.s{width}", numbers, COUNTS).tolist() == signed


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(mode):
    for a, b in zip(WORDS, WORDS[::-1], strict=True):
        both = b << 32 | a
        counts = [n % 32 if mode == "wrap" else min(n, 32) for n in COUNTS]
        left = compute(f"shf.l.{mode}.b32", [a] * len(counts), [b] * len(counts), COUNTS).tolist()
        assert left == [(both << n >> 32) & 0xFFFFFFFF for n in counts]
        right = compute(f"shf.r.{mode}.b32", [a] * len(counts), [b] * len(counts), COUNTS).tolist()
        assert right == [both >> n & 0xFFFFFFFF for n in counts]


A, B = 0x33221100, 0x77665544


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("f4e", ["33221100", "44332211", "55443322", "66554433"]),
        ("b4e", ["55667700", "66770011", "77001122", "112233"]),
        ("rc8", ["0", "11111111", "22222222", "33333333"]),
        ("ecl", ["33221100", "33221111", "33222222", "33333333"]),
        ("ecr", ["0", "11111100", "22221100", "33221100"]),
        ("rc16", ["11001100", "33223322", "11001100", "33223322"]),
    ],
)
def test_prmt_modes_take_two_bits_of_the_control(mode, expected):
    assert bits(compute(f"prmt.b32.{mode}", [A] * 4, [B] * 4, [0, 1, 2, 3])) == expected
    assert bits(compute(f"prmt.b32.{mode}", [A], [B], [0xFFFFFFF5])) == expected[1:2]


def test_prmt_picks_any_bytes_and_repeats_signs():
    assert bits(compute("prmt.b32", [A], [B], [0x3210])) == [f"{A:x}"]
    assert bits(compute("prmt.b32", [A], [B], [0x7654])) == [f"{B:x}"]
    assert bits(compute("prmt.b32", [0x80FF017F], [0x44], [0xB498])) == ["ff440000"]
