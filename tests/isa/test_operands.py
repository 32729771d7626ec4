"""Which operands an instruction takes: registers as the assembler takes them, and every refusal word for word."""

from __future__ import annotations

import pytest

from ptxdsl import ir, types
from ptxdsl.isa import lookup
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.types import Type

from .spelled import Spelled, assembler, complaints, register

DECLARED = [t for t in types.TYPES.values() if (t.bits >= 8 or t is types.pred) and t.bits <= 64 and t.register is t]

TAKING = {
    "add.{0}": "u16 s16 u32 s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2 u16x2 s16x2",
    "and.{0}": "pred b16 b32 b64",
    "mov.{0}": "pred b16 b32 b64 u16 s16 u32 s32 u64 s64 f32 f64",
    "selp.{0}": "b16 b32 b64 u16 s16 u32 s32 u64 s64 f32 f64",
    "cvt.s32.{0}": "u8 s8 u16 s16 u32 u64 s64",
    "cvt.rzi.s32.{0}": "f16 bf16 f32 f64",
    "cvt.rn.f16x2.{0}": "e4m3x2 e5m2x2",
    "cvt.rn.satfinite.e4m3x2.{0}": "f16x2",
}
"""Instructions, and the types that they take as last operand."""


def odd(wanted: str, given: Type) -> bool:
    """ptxas takes .f16x2 registers for 32-bit integers in some instructions, and 128 bits and .f16x2 where it is lax."""
    return given is types.f16x2 and wanted in ("u8", "s8", "u16", "s16", "u32", "s32", "u16x2", "s16x2", "pred")


@pytest.mark.skipif(assembler().why_not() is not None, reason="no assembler: pip install nvidia-nvjitlink")
@pytest.mark.parametrize("pattern, wanted", [(p, w) for p, words in TAKING.items() for w in words.split()])
def test_registers_of_every_type_are_taken_or_refused_as_the_assembler_does(pattern, wanted):
    opcode = lookup(pattern.format(wanted))[0]
    spelled = []
    for given in DECLARED:
        operands = [register(o.type.register, 4 * n) for n, o in enumerate(opcode.operands)]
        last = len(operands) - (2 if pattern.startswith("selp") else 1)
        operands[last] = register(given, 50)
        spelled.append(Spelled(opcode, tuple(operands)))
    refused = complaints(spelled, (9, 0), "sm_90")
    for place, (i, given) in enumerate(zip(spelled, DECLARED, strict=True)):
        ours = next(opcode.problems(i.operands), None) is None
        assert ours == (place not in refused) or odd(wanted, given), i


A = ir.Register("a", types.u32)
F = ir.Register("f", types.f32)
H = ir.Register("h", types.b16)
D = ir.Register("d", types.u64)
P = ir.Register("p", types.pred)
TID = SPECIAL_REGISTERS["%tid.x"]


def refusal(text: str, *operands) -> tuple[str, str | None]:
    """The one problem of an instruction, and its mend."""
    (problem,) = lookup(text)[0].problems(operands)
    return problem.message, problem.help


@pytest.mark.parametrize(
    "text, operands, message",
    [
        ("add.u32", (A, A), "takes d, a, b; 2 given"),
        ("setp.eq.u32", (A,), "takes p, [q], a, b; 1 given"),
        ("add.u32", (A, A, D), "`b` is a u64 register; this form takes a 32-bit integer register"),
        ("add.u32", (A, F, A), "`a` is an f32 register; this form takes a 32-bit integer register"),
        ("add.f32", (F, F, A), "`b` is a u32 register; this form takes an f32 register"),
        ("add.u32", (A, A, P), "`b` is a predicate; this form takes a 32-bit integer register"),
        ("selp.b32", (A, A, A, A), "`c` is a u32 register; this form takes a predicate"),
        ("add.bf16x2", (A, A, ir.Register("r", types.b32)), None),
        ("cvt.rn.tf32.f32", (F, F), "`d` is an f32 register; this form takes a b32 register (tf32)"),
        ("add.u32", (ir.Immediate(1), A, A), "`d` is written, so it cannot be a constant"),
        ("add.u32", (A, A, ir.Sink()), "`b` is read, so it cannot be `_`"),
        ("add.u32", (A, A, ir.Not(A)), "`b` cannot be negated here"),
        ("add.u32", (A, A, ir.Vector((A, A))), "`b` has 2 registers; this form takes 1"),
        ("add.u32", (A, A, ir.Immediate(1 << 32)), "`b` is 4294967296, which does not fit u32"),
        ("add.u32", (A, A, ir.Immediate.float(1.0)), "`b` is a floating constant; this form takes a 32-bit integer register"),
        ("add.f16", (H, H, ir.Immediate(1)), "`b` is a constant; this form takes an f16 register"),
        ("lop3.b32", (A, A, A, A, A), "`lut` is a u32 register; it must be an integer constant"),
    ],
)  # fmt: skip
def test_refusals(text, operands, message):
    if message is None:
        problems = [p.message for p in lookup(text)[0].problems(operands)]
        assert problems == [f"`{n}` is a u32 register; this form takes a b32 register (bf16x2)" for n in "da"]
    else:
        assert refusal(text, *operands)[0] == message


def test_refusals_with_a_mend():
    assert refusal("add.f32", F, F, ir.Immediate(2)) == ("`b` is an integer constant; this form takes f32", "write 2.0")
    takes, mend = "this form takes a 32-bit integer register", "copy it to a register first, with mov"
    assert refusal("add.u32", A, A, TID) == (f"`b` is %tid.x, a special u32 register; {takes}", mend)
    table = ir.Variable("table", "shared", types.u32, (4,))
    assert refusal("add.u32", A, A, table) == (f"`b` is a variable; {takes}", mend)
    assert refusal("add.u32", A, A, ir.Offset(table, 4)) == (
        f"`b` is table+4, the address of a variable; {takes}",
        mend,
    )


def test_moves_and_conversions_read_special_registers():
    assert not list(lookup("mov.u32")[0].problems((A, TID)))
    assert not list(lookup("cvt.u64.u32")[0].problems((D, TID)))


def test_constants_wrap_as_64_bit_numbers():
    assert not list(lookup("add.u32")[0].problems((A, A, ir.Immediate(0xFFFFFFFFFFFFFFFF))))
    assert not list(lookup("add.u32")[0].problems((A, A, ir.Immediate(-1))))
    assert list(lookup("add.u32")[0].problems((A, A, ir.Immediate(0xFFFFFFFF00000000))))


@pytest.mark.parametrize("text", ["add.u33", "add.f32.u32", "shl.u32", "setp.lt.b32", "cvt.f16.f32", "add.rn.u32"])
def test_what_no_form_spells_is_unknown(text):
    assert not lookup(text)
