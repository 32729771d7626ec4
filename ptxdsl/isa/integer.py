"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import Form, Op, Opcode

INTEGERS = "u16 u32 u64 s16 s32 s64"


class AddInteger(Op):
    """d = a + b, modulo 2^n; with .sat clamped to the range of s32."""

    forms = (
        Form("add.type d=type, a:type, b:type", type=INTEGERS),
        Form("add{.sat}.s32 d=s32, a:s32, b:s32"),
        Form("add.type d=type, a:type, b:type", type="u16x2 s16x2", ptx="8.0", sm=90),
    )

    def run(self, i: Opcode, a: Any, b: Any) -> Any:
        return a + b


class MulWide(Op):
    """d = a * b, with twice the bits of a and b."""

    forms = (Form("mul.wide.type d=wide(type), a:type, b:type", type="u16 u32 s16 s32"),)

    def run(self, i: Opcode, a: Any, b: Any) -> Any:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return a.astype(wide) * b.astype(wide)
