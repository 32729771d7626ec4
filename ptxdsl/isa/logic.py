"""Logic and shifts (PTX ISA, "Logic and Shift Instructions")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import ir
from .form import Form
from .numerics import Array, shift_left, shift_right
from .opcode import Op, Opcode, Results
from .operand import OperandList, Problem

BITS = "b16 b32 b64"


def _forms(name: str) -> tuple[Form, Form]:
    """Return the forms on bits, and on predicates, which may be negated."""
    return (
        Form(f"{name}.type d=type, a:type, b:type", type=BITS),
        Form(f"{name}.pred d=pred, {{!}}a:pred, {{!}}b:pred"),
    )


class And(Op):
    """Bitwise AND: d = a & b."""

    forms = _forms("and")

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return a & b


class Or(Op):
    """Bitwise OR: d = a | b."""

    forms = _forms("or")

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return a | b


class Xor(Op):
    """Bitwise exclusive OR: d = a ^ b."""

    forms = _forms("xor")

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return a ^ b


class BitwiseNot(Op):
    """Bitwise complement: d = ~a."""

    forms = (Form("not.type d=type, a:type", type=BITS), Form("not.pred d=pred, {!}a:pred"))

    def run(self, i: Opcode, a: Array) -> Array:
        return ~a


class Cnot(Op):
    """C-style logical negation: d = (a == 0) ? 1 : 0."""

    forms = (Form("cnot.type d=type, a:type", type=BITS),)

    def run(self, i: Opcode, a: Array) -> Array:
        return (a == 0).astype(a.dtype)


class Lop3(Op):
    """Arbitrary three-input logic: d = lut(a, b, c), bit by bit; p = d != 0, combined with q.

    Bit 4 * a + 2 * b + c of `lut` is the result for these three bits: compute `lut` by applying the function to 0xF0,
    0xCC and 0xAA.
    """

    forms = (
        Form("lop3.b32 d=b32, a:b32, b:b32, c:b32, lut:imm", ptx="4.3", sm=50),
        Form("lop3.bool.b32 d=b32|p=pred, a:b32, b:b32, c:b32, lut:imm, {!}q:pred", bool="and or", ptx="8.2", sm=70),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        lut = next(v for o, v in zip(i.operands, operands, strict=True) if o.name == "lut")
        if isinstance(lut, ir.Immediate) and not 0 <= lut.value <= 255:
            yield Problem("lut", f"`lut` is {lut.value}; a truth table of three inputs is 0 to 255")

    def run(self, i: Opcode, a: Array, b: Array, c: Array, lut: int, q: Array | None = None) -> Results:
        d = lookup_bits(lut, a, b, c)
        if q is None:
            return d
        return d, (d != 0) & q if i.bool == "and" else (d != 0) | q


def lookup_bits(table: int, *inputs: Array) -> Array:
    """Evaluate a truth table of len(inputs) inputs bitwise, splitting at the first input."""
    first, *others = inputs
    half = 1 << len(others)
    high, low = table >> half, table & ((1 << half) - 1)
    if high == low and others:
        return lookup_bits(low, *others)
    if not others:
        return {0: first ^ first, 1: ~first, 2: first, 3: ~(first ^ first)}[table]
    return (first & lookup_bits(high, *others)) | (~first & lookup_bits(low, *others))


class Shf(Op):
    """Funnel shift: d = the high half of {b, a} << c, or the low half of {b, a} >> c; .wrap or .clamp at 32."""

    forms = (Form("shf.dir.mode.b32 d=b32, a:b32, b:b32, c:u32", dir="l r", mode="clamp wrap", ptx="4.0", sm=32),)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        c = c & 31 if i.mode == "wrap" else np.minimum(c, 32)
        both = b.astype(np.uint64) << 32 | a
        return (both << c >> 32 if i.dir == "l" else both >> c).astype(np.uint32)


class Shl(Op):
    """Shift left: d = a << b; 0 if b is the full width or more."""

    forms = (Form("shl.type d=type, a:type, b:u32", type=BITS),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return shift_left(a, b)


class Shr(Op):
    """Shift right: d = a >> b, filled with the sign bit for signed types, else with zeros."""

    forms = (Form("shr.type d=type, a:type, b:u32", type="b16 b32 b64 u16 u32 u64 s16 s32 s64"),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return shift_right(a, b)
