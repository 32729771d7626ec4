"""Conversion between types, and permutation of bytes (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import ir
from ..types import bf16, f16, f32, f64
from . import numerics
from .form import Form, Values
from .numerics import Array
from .opcode import Op, Opcode
from .operand import OperandCheck, OperandList, Problem

BYTES, WORDS = "u8 s8", "u16 s16 u32 s32 u64 s64"
INTEGERS = f"{BYTES} {WORDS}"
MODES, TO_WHOLE = "rn rz rm rp", "rni rzi rmi rpi"
FTZ = {"ftz": ("1.4", 10)}
BF16: dict[str, Any] = {"ptx": "7.8", "sm": 90}
SATFINITE: dict[str, Any] = {"satfinite": ("8.1", 80)}


def _loses(i: Values) -> bool:
    """True if .sat is allowed: the destination cannot represent the whole range of the source."""
    to, source = np.iinfo(i.dtype.dtype), np.iinfo(i.type.dtype)
    return not i.sat or to.min > source.min or to.max < source.max


def _flushed(i: Values) -> bool:
    """True unless .ftz is used without f32 as source or destination."""
    return not i.ftz or f32 in (i.type, i.dtype)


EXACT = OperandCheck((ir.SpecialRegister,))


class Convert(Op):
    """Base of the conversions; registers may be wider than the types, except in conversions from and to bf16."""

    relaxed = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        if bf16 in (i.values.get("dtype"), i.values.get("type")):
            for declared, value in zip(i.operands, operands, strict=True):
                if isinstance(value, ir.Register):
                    yield from EXACT.problems(declared, value)


class CvtInteger(Convert):
    """Convert between integer types: truncate or extend; .sat clamps to the range of d."""

    reads = (ir.SpecialRegister,)
    forms = (Form("cvt{.sat}.dtype.type d=dtype, a:type", dtype=INTEGERS, type=INTEGERS, when=_loses),)

    def run(self, i: Opcode, a: Array) -> Array:
        return numerics.clamp(a, i.dtype) if i.sat else a.astype(i.dtype.dtype)


class CvtToInteger(Convert):
    """Convert a float to an integer: round, then clamp to the range of d; NaN gives 0 (or the high bit in 64 bits)."""

    forms = (
        Form(
            "cvt.rnd{.ftz}{.sat}.dtype.type d=dtype, a:type",
            rnd=TO_WHOLE, dtype=INTEGERS, type="f16 f32 f64", when=_flushed,
            needs={**FTZ, "ftz u64": ("1.5", 10), "ftz s64": ("1.5", 10)},
        ),
        Form("cvt.rnd.dtype.type d=dtype, a:type", rnd=TO_WHOLE, dtype=WORDS, type="bf16", **BF16),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array) -> Array:
        return numerics.to_integer(source(i, a), i.dtype.dtype, i.rnd[:2])


class CvtFromInteger(Convert):
    """Convert an integer to a float, rounded; .sat clamps to [0, 1]."""

    forms = (
        Form(
            "cvt.rnd{.ftz}{.sat}.dtype.type d=dtype, a:type",
            rnd=MODES, dtype="f16 f32 f64", type=INTEGERS, when=_flushed,
            needs={**FTZ, "ftz u8": ("1.5", 10), "ftz s8": ("1.5", 10)},
        ),
        Form("cvt.rnd.dtype.type d=dtype, a:type", rnd=MODES, dtype="bf16", type=WORDS, **BF16),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array) -> Array:
        return numerics.from_integer(np.clip(a, 0, 1) if i.sat else a, i.dtype, i.rnd)


def source(i: Opcode, a: Array) -> Array:
    """Return the values to convert. .ftz flushes f32 inputs, except in conversions to f16."""
    values = numerics.decode(a, i.type)
    return numerics.flush(values, f32) if i.values.get("ftz") and i.type is f32 and i.dtype is not f16 else values


class CvtFloat(Convert):
    """Convert between floating-point types, rounded; .rni, .rzi, .rmi, .rpi round to an integral value.

    .sat clamps to [0, 1], .relu clamps negative results to 0, .satfinite clamps to the largest finite value.
    """

    forms = (
        Form("cvt{.whole}{.ftz}{.sat}.dtype.type d=dtype, a:type", whole=TO_WHOLE, dtype="f32", type="f32", needs=FTZ),
        Form("cvt{.whole}{.sat}.dtype.type d=dtype, a:type", whole=TO_WHOLE, dtype="f16", type="f16"),
        Form("cvt{.whole}{.sat}.dtype.type d=dtype, a:type", whole=TO_WHOLE, dtype="f64", type="f64"),
        Form("cvt{.whole}.dtype.type d=dtype, a:type", whole=TO_WHOLE, dtype="bf16", type="bf16", **BF16),
        Form("cvt.rnd{.ftz}{.sat}.dtype.type d=dtype, a:type", rnd=MODES, dtype="f16", type="f32", needs=FTZ),
        Form("cvt.rnd{.ftz}{.sat}.dtype.type d=dtype, a:type", rnd=MODES, dtype="f32", type="f64", needs=FTZ),
        Form("cvt.rnd{.sat}.dtype.type d=dtype, a:type", rnd=MODES, dtype="f16", type="f64"),
        Form("cvt{.ftz}{.sat}.dtype.type d=dtype, a:type", dtype="f32", type="f16", needs=FTZ),
        Form("cvt{.ftz}{.sat}.dtype.type d=dtype, a:type", dtype="f64", type="f32", needs={"ftz": ("1.5", 10)}),
        Form("cvt{.sat}.dtype.type d=dtype, a:type", dtype="f64", type="f16"),
        Form(
            "cvt{.rnd}{.ftz}.dtype.type d=dtype, a:type",
            rnd=MODES, dtype="f32", type="bf16", ptx="7.1", sm=80, needs={"ftz": ("7.8", 90)},
        ),
        Form("cvt{.rnd}.dtype.type d=dtype, a:type", rnd=MODES, dtype="bf16", type="f16", **BF16),
        Form("cvt{.rnd}.dtype.type d=dtype, a:type", rnd=MODES, dtype="f16 f64", type="bf16", **BF16),
        Form("cvt.rnd.dtype.type d=dtype, a:type", rnd=MODES, dtype="bf16", type="f64", **BF16),
        Form("cvt.rnd{.ftz}.dtype.type d=dtype, a:type", rnd=MODES, dtype="bf16", type="f32", ptx="7.0", sm=80),
        Form(
            "cvt.rnd{.relu}{.satfinite}.dtype.type d=dtype, a:type",
            rnd="rn rz", dtype="f16 bf16", type="f32", needs={
                "relu": ("7.0", 80), "bf16": ("7.0", 80),
                "satfinite f16": ("8.1", 70), "satfinite bf16": ("8.1", 80),
            },
            when=lambda i: i.relu or i.satfinite,
        ),
        Form(
            "cvt.rnd{.satfinite}.dtype.type d=dtype, a:type",
            rnd="rna", dtype="tf32", type="f32", ptx="7.0", sm=80, needs=SATFINITE,
        ),
        Form(
            "cvt.rnd{.satfinite}{.relu}.dtype.type d=dtype, a:type",
            rnd="rn rz", dtype="tf32", type="f32", ptx="7.8", sm=90, needs={"satfinite": ("8.6", 100)},
        ),
        Form(
            "cvt.rn.satfinite{.relu}.dtype.type d=dtype, a:type",
            dtype="e4m3x2 e5m2x2", type="f16x2", ptx="8.1", sm=89,
        ),
        Form("cvt.rn{.relu}.dtype.type d=dtype, a:type", dtype="f16x2", type="e4m3x2 e5m2x2", ptx="8.1", sm=89),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array) -> Array:
        if i.dtype is i.type and i.type in (f32, f64) and not (i.whole or i.ftz or i.sat):
            return a
        values = source(i, a)
        if i.whole:
            values = numerics.TO_INTEGER[i.whole[:2]](values)
        return destination(i, values)


def destination(i: Opcode, values: Array) -> Array:
    """Return the bits of d: values clamped by .sat, .relu or .satfinite, then rounded."""
    chosen = i.values.get
    if chosen("sat"):
        values = numerics.saturate(values)
    if chosen("relu"):
        values = numerics.relu(values)
    if chosen("satfinite"):
        values = numerics.finite(values, i.dtype)
    rnd = chosen("rnd") or "rn"
    if chosen("ftz") and i.dtype is f32:
        values = numerics.flush(values, f32, rnd)
    return numerics.encode(values, i.dtype, rnd)


class CvtPair(Convert):
    """Convert two f32 values to a narrower type and pack them: d = {a, b}, b in the low half."""

    forms = (
        Form(
            "cvt.rnd{.relu}{.satfinite}.dtype.f32 d=dtype, a:f32, b:f32",
            rnd="rn rz", dtype="f16x2 bf16x2", ptx="7.0", sm=80, needs=SATFINITE,
        ),
        Form(
            "cvt.rnd.satfinite{.relu}.dtype.f32 d=dtype, a:f32, b:f32",
            rnd="rn", dtype="e4m3x2 e5m2x2", ptx="8.1", sm=89,
        ),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return destination(i, np.stack([b, a], axis=-1))[..., 0]


class CvtPack(Convert):
    """Clamp a and b to a narrower integer type and pack them with c: d = {c, a, b}, b in the lowest bits."""

    forms = (
        Form("cvt.pack.sat.dtype.s32 d=b32, a:s32, b:s32", dtype="u16 s16", ptx="6.5", sm=72),
        Form("cvt.pack.sat.dtype.s32.b32 d=b32, a:s32, b:s32, c:b32", dtype="u8 s8", ptx="6.5", sm=72),
        Form("cvt.pack.sat.dtype.s32.b32 d=b32, a:s32, b:s32, c:b32", dtype=("u4", "s4", "u2", "s2"), ptx="6.5", sm=75),
    )

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Array:
        kind, bits = str(i.dtype)[0], int(str(i.dtype)[1:])
        low, high = (0, (1 << bits) - 1) if kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        a, b = (np.clip(x, low, high).view(np.uint32) & ((1 << bits) - 1) for x in (a, b))
        packed = a << bits | b
        return packed if c is None else c << 2 * bits | packed


CONTROLS: dict[str | None, Callable[[Array, int], Array]] = {
    None: lambda c, k: c >> 4 * k,
    "f4e": lambda c, k: (c & 3) + k,
    "b4e": lambda c, k: (c & 3) - k,
    "rc8": lambda c, k: c & 3,
    "ecl": lambda c, k: np.maximum(c & 3, k),
    "ecr": lambda c, k: np.minimum(c & 3, k),
    "rc16": lambda c, k: (c & 1) * 2 + (k & 1),
}
"""For each mode, the index in the 8 bytes of {b, a} of each byte of d."""


class Prmt(Op):
    """Permute bytes: d = four bytes selected from the eight bytes of {b, a}.

    Each of the low four hexadecimal digits of c selects one byte; if its top bit is set, the sign of that byte is
    replicated instead. The modes use fixed patterns, shifted by the low two bits of c: consecutive bytes forwards or
    backwards (.f4e, .b4e), one byte or half replicated (.rc8, .rc16), or bytes clamped at the left or right edge (.ecl,
    .ecr).
    """

    forms = (Form("prmt.b32{.mode} d=b32, a:b32, b:b32, c:b32", mode="f4e b4e rc8 ecl ecr rc16", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        both = b.astype(np.uint64) << 32 | a
        d = np.zeros(both.shape, np.uint32)
        for k in range(4):
            control = CONTROLS[i.mode](c, k)
            byte = (both >> ((control & 7) * 8).astype(np.uint64) & 0xFF).astype(np.uint32)
            if i.mode is None:
                byte = np.where(control & 8, (byte >> 7) * 0xFF, byte)
            d |= byte.astype(np.uint32) << 8 * k
        return d
