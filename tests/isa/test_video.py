"""Video instructions against Python's integers."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import ptxdsl as pd
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


SECOND = {"add": lambda a, b: a + b, "min": min, "max": max}
RANDOM = random.Random(1)
OPERANDS = [[RANDOM.choice([*WORDS, RANDOM.getrandbits(32)]) for _ in range(3)] for _ in range(200)]


def second(name, dtype, result, saturates, c, then):
    """The second operation as ptxas 13 expands it for an H200: it compares in 64 bits, in the sign of the destination.

    Sums and differences pass their low word, sign-extended; other results keep their sign beyond 32 bits.
    """
    result = clamped(result, 32, dtype) if saturates else result
    if name in ("vadd", "vsub"):
        result = signed(result, 32, "s32")
    if then != "add" and dtype == "u32":
        result %= 1 << 64
    return signed(SECOND[then](result, signed(c, 32, dtype)), 32, dtype)


@pytest.mark.parametrize("then", SECOND)
@pytest.mark.parametrize("saturates", [False, True], ids=["wraps", "saturates"])
@pytest.mark.parametrize("dtype, atype, btype", SIGNS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_second_operations_compare_as_an_h200(name, dtype, atype, btype, saturates, then):
    a, b, c = map(list, zip(*OPERANDS, strict=True))
    results = [OPERATIONS[name](signed(x, 32, atype), signed(y, 32, btype)) for x, y in zip(a, b, strict=True)]
    found = compute(f"{name}.{dtype}.{atype}.{btype}{'.sat' * saturates}.{then}", a, b, c).tolist()
    assert found == [second(name, dtype, r, saturates, z, then) for r, z in zip(results, c, strict=True)]


@pytest.mark.parametrize(
    "name, a, b, c, measured",
    [
        ("vmin.u32.u32.s32.min", 0x3C003800, 0xBE05DE08, 0xBEE08A71, 0xBEE08A71),
        ("vmin.u32.s32.s32.max", 0x3C003800, 0xA5782AE6, 0xDD2B2A07, 0xA5782AE6),
        ("vmax.s32.u32.u32.max", 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80000000),
        ("vadd.u32.u32.u32.max", 0x258F8D5A, 0xBD16DA96, 0xFE5AC910, 0xE2A667F0),
        ("vshl.u32.u32.u32.clamp.max", 0x6AB870F2, 3, 0x7FFFFFFF, 0x55C38790),
        ("vshl.u32.u32.u32.sat.clamp.max", 0x8A71951F, 3, 0xDF6765ED, 0xDF6765ED),
        ("vshr.u32.u32.u32.sat.wrap.min", 0x96B7106B, 0x40, 0xA32B22F9, 0xA32B22F9),
        ("vset.s32.u32.lt.min", 0x06F9149F, 0x7FFFFFFF, 0xC749164B, 0xC749164B),
        ("vset.u32.s32.lt.min", 1, 2, 0xC749164B, 1),
    ],
)
def test_second_operations_of_code_for_an_h200(name, a, b, c, measured):
    assert bits(compute(name, [a], [b], [c])) == [f"{measured:x}"]


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


def multiplied(values, types, negated, mode):
    """The semantics of the manual, with Python's integers."""
    a, b, c = (signed(value, 32, type) for value, type in zip(values, (*types, "u32"), strict=True))
    product = ("a" in negated) != ("b" in negated)
    is_signed = "s32" in types or product or "c" in negated
    c = signed(c, 32, "s32" if is_signed else "u32")
    total = (-a * b if product else a * b) + (-c if "c" in negated else c)
    if mode == ".sat":
        return clamped(total, 32, "s32" if is_signed else "u32") % (1 << 32)
    return (total >> {"": 0, ".shr7": 7, ".shr15": 15}[mode]) % (1 << 32)


@pytest.mark.parametrize("atype, btype", list(itertools.product(["u32", "s32"], repeat=2)))
def test_multiply_and_add_with_negated_operands(atype, btype):
    cases = [(n, mode) for n in ("", "a", "b", "c", "ab") for mode in ("", ".shr7", ".shr15", ".sat")]
    lines = []
    for number, (negated, mode) in enumerate(cases):
        a, b, c = (("-" if name in negated else "") + f"%{name}" for name in "abc")
        lines += [f"vmad.s32.{atype}.{btype}{mode} %d, {a}, {b}, {c};", f"st.global.u32 [%y+{4 * 64 * number}], %d;"]
    body = "\n".join(lines)
    module = pd.parse(f"""
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{{
    .reg .b32 %a, %b, %c, %d, %t; .reg .b64 %x, %y, %at;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4;
    add.u64 %x, %x, %at; add.u64 %y, %y, %at;
    ld.global.u32 %a, [%x]; ld.global.u32 %b, [%x+256]; ld.global.u32 %c, [%x+512];
    {body}
    ret;
}}
""")
    rng = random.Random(7)
    words = [[rng.choice([*WORDS, rng.getrandbits(32)]) for _ in range(64)] for _ in range(3)]
    out = np.zeros((len(cases), 64), np.uint32)
    module["k"][1, 64](np.array(words, np.uint32), out)
    for (negated, mode), row in zip(cases, out.tolist(), strict=True):
        expected = [multiplied(values, (atype, btype), negated, mode) for values in zip(*words, strict=True)]
        assert row == expected, (negated, mode)


def test_negated_halves_are_parsed_and_printed():
    text = "vmad.s32.s32.u32.shr15 %r0, -%r1.b0, %r2.h1, %r3;"
    module = pd.parse(f".version 8.6\n.target sm_90\n.address_size 64\n.entry k() {{ .reg .b32 %r<4>;\n{text} ret; }}")
    assert text in module.ptx()
    r = ir.Register("r", u32)
    assert not list(lookup("vmad.s32.s32.s32")[0].problems([r, r, ir.Negative(ir.Lane(r, "h0")), r]))
    (problem,) = lookup("vmad.s32.s32.s32.po")[0].problems([r, r, r, ir.Negative(r)])
    assert (problem.message, problem.help) == ("`c` cannot be negated with .po", "add 1 to c and leave .po out")
    (problem,) = lookup("vmad.s32.s32.s32")[0].problems([r, ir.Negative(r), r, ir.Negative(r)])
    assert problem.message == "`c` cannot be negated together with the product"
    assert problem.help == "negate the result instead"


@pytest.mark.parametrize("name", ["vadd4.u32.u32.u32", "vset4.u32.u32.lt", "vavrg2.s32.s32.s32.add"])
@pytest.mark.parametrize("position", ["a", "b", "c"])
def test_simd_instructions_take_no_constants(name, position):
    operands = {each: ir.Register(each, u32) for each in "dabc"} | {position: ir.Immediate(5)}
    (problem,) = lookup(name)[0].problems([*operands.values()])
    mnemonic = name.partition(".")[0]
    assert problem.message == f"`{position}` is the constant 5; the operands of {mnemonic} are registers"
    assert problem.help == "move it to a register first"


def test_scalar_video_instructions_take_constants():
    d, a = (ir.Register(name, u32) for name in "da")
    for name in ("vadd.u32.u32.u32.add", "vset.u32.u32.lt.add", "vmad.u32.u32.u32"):
        assert not list(lookup(name)[0].problems([d, a, ir.Immediate(5), ir.Immediate(7)]))


def test_simd_instructions_take_whole_registers():
    d, a, b, c = (ir.Register(name, u32) for name in "dabc")
    (problem,) = lookup("vadd2.u32.u32.u32")[0].problems([d, ir.Lane(a, "h10"), b, c])
    assert problem.message == "`a` selects .h10; this takes all of a register"
    (problem,) = lookup("vadd.u32.u32.u32")[0].problems([d, ir.Lane(a, "x"), b])
    assert problem.message == "`a` selects .x; this takes .b0, .b1, .b2, .b3, .h0, .h1 or all of a register"
    assert not list(lookup("vadd.u32.u32.u32")[0].problems([d, ir.Lane(a, "h1"), b]))
