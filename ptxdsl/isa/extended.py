"""Arithmetic with carry (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

The carry or borrow, CC.CF, is 0 or 1 in every lane; it passes from one instruction to a later one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numerics import Array, high_half
from .spec import Form, Op, Opcode

WIDE = {"u64": ("4.3", 20), "s64": ("4.3", 20)}
TYPES = "u32 s32 u64 s64"


def chain(i: Opcode, m: Any, operation: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """a + b or a - b with the carry that `addc`, `subc` and `madc` take in and that `.cc` hands on."""
    a, b = (x.view(f"u{x.dtype.itemsize}") for x in (a, b))
    once = operation(a, b)
    carry = m.carry.astype(a.dtype) if i.form.name.endswith("c") else a.dtype.type(0)
    result = operation(once, carry)
    if i.cc:
        wrapped = (once < a) | (result < once) if operation is np.add else (once > a) | (result > once)
        m.carry = wrapped.astype(np.uint8)
    return result.view(i.type.dtype)


class AddCarry(Op):
    """d = a + b, with addc also + CC.CF; .cc writes the carry to CC.CF."""

    forms = (
        Form("add.cc.type d=type, a:type, b:type", type=TYPES, ptx="1.2", needs=WIDE),
        Form("addc{.cc}.type d=type, a:type, b:type", type=TYPES, ptx="1.2", needs=WIDE),
    )

    def execute(self, i: Opcode, m: Any, a: Any, b: Any) -> Any:
        return chain(i, m, np.add, a, b)


class SubBorrow(Op):
    """d = a - b, with subc also - CC.CF; .cc writes the borrow to CC.CF."""

    forms = (
        Form("sub.cc.type d=type, a:type, b:type", type=TYPES, ptx="1.3", needs=WIDE),
        Form("subc{.cc}.type d=type, a:type, b:type", type=TYPES, ptx="1.3", needs=WIDE),
    )

    def execute(self, i: Opcode, m: Any, a: Any, b: Any) -> Any:
        return chain(i, m, np.subtract, a, b)


class MadCarry(Op):
    """d = the low or the high half of a * b, plus c, with madc also + CC.CF; .cc writes the carry to CC.CF."""

    forms = (
        Form("mad.half.cc.type d=type, a:type, b:type, c:type", half="lo hi", type=TYPES, ptx="3.0", sm=20, needs=WIDE),
        Form("madc.half{.cc}.type d=type, a:type, b:type, c:type", half="lo hi", type=TYPES, ptx="3.0", sm=20),
    )

    def execute(self, i: Opcode, m: Any, a: Any, b: Any, c: Any) -> Any:
        return chain(i, m, np.add, c, a * b if i.half == "lo" else high_half(a, b))
