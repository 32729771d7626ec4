"""Arithmetic with carry (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

The carry CC.CF is 0 or 1 in each lane and passes from one instruction to a later one. As in hardware, a - b is computed
as a + ~b + 1, so that CC.CF is 0 if a subtraction borrows.
"""

from __future__ import annotations

import numpy as np

from .form import Form
from .numerics import Array, high_half
from .opcode import Op, Opcode
from .step import Step

WIDE = {"cc u64": ("4.3", 20), "cc s64": ("4.3", 20)}
TYPES = "u32 s32 u64 s64"


def chain(i: Opcode, m: Step, a: Array, b: Array, carry: int = 0) -> Array:
    """Return a + b + carry; addc, subc and madc read the carry from CC.CF, and .cc writes it."""
    a, b = (x.view(f"u{x.dtype.itemsize}") for x in (a, b))
    first = a + b
    total = first + (m.carry.astype(a.dtype) if i.form.name in ("addc", "subc", "madc") else a.dtype.type(carry))
    if i.cc:
        m.carry = ((first < a) | (total < first)).astype(np.uint8)
    return total.view(i.type.dtype)


class AddCarry(Op):
    """Add two values with carry: d = a + b, plus CC.CF for addc; .cc writes the carry to CC.CF."""

    forms = (
        Form("add.cc.type d=type, a:type, b:type", type=TYPES, ptx="1.2", needs=WIDE),
        Form("addc{.cc}.type d=type, a:type, b:type", type=TYPES, ptx="1.2", needs=WIDE),
    )

    def execute(self, i: Opcode, m: Step, a: Array, b: Array) -> Array:
        return chain(i, m, a, b)


class SubBorrow(Op):
    """Subtract with borrow: d = a - b, minus the borrow for subc; .cc writes the inverted borrow to CC.CF."""

    forms = (
        Form("sub.cc.type d=type, a:type, b:type", type=TYPES, ptx="1.3", needs=WIDE),
        Form("subc{.cc}.type d=type, a:type, b:type", type=TYPES, ptx="1.3", needs=WIDE),
    )

    def execute(self, i: Opcode, m: Step, a: Array, b: Array) -> Array:
        return chain(i, m, a, ~b, carry=1)


class MadCarry(Op):
    """Multiply-add with carry: d = half of a * b, plus c, plus CC.CF for madc; .cc writes the carry to CC.CF."""

    forms = (
        Form("mad.half.cc.type d=type, a:type, b:type, c:type", half="lo hi", type=TYPES, ptx="3.0", sm=20, needs=WIDE),
        Form(
            "madc.half{.cc}.type d=type, a:type, b:type, c:type",
            half="lo hi", type=TYPES, ptx="3.0", sm=20, needs=WIDE,
        ),
    )  # fmt: skip

    def execute(self, i: Opcode, m: Step, a: Array, b: Array, c: Array) -> Array:
        return chain(i, m, c, a * b if i.half == "lo" else high_half(a, b))
