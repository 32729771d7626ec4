"""Comparison and selection (PTX ISA, "Comparison and Selection Instructions", also of half precision)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import f16, f32, lanes
from . import numerics
from .form import Form, Values
from .numerics import Array
from .opcode import Op, Opcode, Results

Comparison = Callable[[Array, Array], Array]

ORDERED: dict[str, Comparison] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}
"""False where a or b is NaN."""

UNORDERED: dict[str, Comparison] = {
    "equ": lambda a, b: ~ORDERED["ne"](a, b),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
"""True where a or b is NaN."""

UNSIGNED: dict[str, Comparison] = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
FLOATS: dict[str, Callable[..., Any]] = ORDERED | UNORDERED
INTEGERS: dict[str, Callable[..., Any]] = {
    **{name: ORDERED[name] for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": np.not_equal,
    **UNSIGNED,
}
COMPARISONS = FLOATS | UNSIGNED
BOOLEANS: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}

PLAIN = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
FTZ = {"ftz": ("1.4", 10)}


def comparable(i: Values) -> bool:
    """True if the type supports the comparison: bits only eq and ne, signed no lo, ls, hi, hs; only floats may be
    unordered or have .ftz.
    """
    kind = i.type.kind
    if i.ftz and i.type not in (f32, f16):
        return False
    if kind == "f":
        return i.cmp in FLOATS
    return i.cmp in ("eq", "ne") if kind == "b" else i.cmp in INTEGERS and (kind == "u" or i.cmp not in UNSIGNED)


def compare(i: Opcode, a: Array, b: Array, c: Array | None = None) -> tuple[Array, Array]:
    """Return the comparison of a and b and its complement, both combined with c; packed types give all elements in
    order.
    """
    type_ = i.type
    if type_.kind in "fx":
        a, b = numerics.decode(a, type_), numerics.decode(b, type_)
        if i.ftz:
            a, b = numerics.flush(a, type_), numerics.flush(b, type_)
        result = FLOATS[i.cmp](a, b)
    else:
        result = INTEGERS[i.cmp](a, b)
    if c is None:
        return result, ~result
    c = np.repeat(c, 2, axis=-1) if type_.kind == "x" else c
    return BOOLEANS[i.bool](result, c), BOOLEANS[i.bool](~result, c)


def _setp(syntax: str, destinations: str, **slots: Any) -> tuple[Form, Form]:
    """Return the forms of setp with and without a Boolean operation."""
    name, rest = syntax[: len("setp.cmp")], syntax[len("setp.cmp") :]
    plain = Form(f"{name}{rest} {destinations}, a:type, b:type", **slots)
    return plain, Form(f"{name}.bool{rest} {destinations}, a:type, b:type, {{!}}c:pred", bool="and or xor", **slots)


def _setp_of_halves(destinations: str, f16: str, bf16: str) -> tuple[Form, ...]:
    """Return the forms of setp on f16 and bf16, scalar and packed; bf16 has no .ftz."""
    return (
        *_setp("setp.cmp{.ftz}.type", destinations, cmp=FLOATS, type=f16, ptx="4.2", sm=53),
        *_setp("setp.cmp.type", destinations, cmp=FLOATS, type=bf16, ptx="7.8", sm=90),
    )


class Setp(Op):
    """Compare two values: p = a cmp b, q = !p, each optionally combined with c."""

    forms = _setp("setp.cmp{.ftz}.type", "p=pred{|q=pred}", cmp=COMPARISONS, type=PLAIN, needs=FTZ, when=comparable)

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Results:
        return compare(i, a, b, c)


class SetpHalf(Op):
    """Compare two half-precision values: p = a cmp b, q = !p, each optionally combined with c."""

    forms = _setp_of_halves("p=pred", "f16", "bf16")

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Array:
        return compare(i, a, b, c)[0]


class SetpPair(Op):
    """Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c."""

    forms = _setp_of_halves("p=pred{|q=pred}", "f16x2", "bf16x2")

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Results:
        result, _ = compare(i, a, b, c)
        return result[..., 0::2], result[..., 1::2]


def _set(syntax: str, **slots: Any) -> tuple[Form, Form]:
    """Return the forms of set with and without a Boolean operation."""
    name, rest = syntax[: len("set.cmp")], syntax[len("set.cmp") :]
    plain = Form(f"{name}{rest} d=dtype, a:type, b:type", **slots)
    return plain, Form(f"{name}.bool{rest} d=dtype, a:type, b:type, {{!}}c:pred", bool="and or xor", **slots)


class Set(Op):
    """Compare and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."""

    forms = _set(
        "set.cmp{.ftz}.dtype.type",
        cmp=COMPARISONS, dtype="u32 s32 f32", type=PLAIN, needs=FTZ, when=comparable,
    )  # fmt: skip

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Results:
        result, _ = compare(i, a, b, c)
        element, _ = lanes(i.dtype)
        if element.kind == "f":
            return numerics.encode(result.astype(np.float32), i.dtype)
        width = 16 if lanes(i.type)[1] == 2 else element.bits
        return (-result.astype(f"i{width // 8}")).view(i.dtype.dtype)

    def ignores_guard(self, i: Opcode) -> bool:
        """It compares under the guard, and then converts what the destination holds to its type, in all lanes."""
        return i.type.kind != "x" and (i.type.bits < 32 or i.dtype.bits < 32 or bool(i.dtype.is_float))


class Selp(Op):
    """Select by predicate: d = c ? a : b."""

    selects = True
    forms = (Form("selp.type d=type, a:type, b:type, {!}c:pred", type=PLAIN),)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        return np.where(c, a, b)


class Slct(Op):
    """Select by sign: d = (c >= 0) ? a : b."""

    forms = (
        Form("slct.type.ctype d=type, a:type, b:type, c:ctype", type=PLAIN, ctype="s32"),
        Form("slct{.ftz}.type.ctype d=type, a:type, b:type, c:ctype", type=PLAIN, ctype="f32", needs=FTZ),
    )

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        return np.where((numerics.flush(c, f32) if i.ftz else c) >= 0, a, b)


class SetHalf(Set):
    """Compare halves and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."""

    forms = (
        *_set(
            "set.cmp{.ftz}.dtype.type",
            cmp=COMPARISONS, dtype="f16", type=PLAIN + " f16", ptx="4.2", sm=53, when=comparable,
        ),
        *_set("set.cmp{.ftz}.dtype.type", cmp=FLOATS, dtype="f16x2", type="f16x2", ptx="4.2", sm=53),
        *_set("set.cmp{.ftz}.dtype.type", cmp=FLOATS, dtype="u16 s16 u32 s32", type="f16", ptx="6.5", sm=53),
        *_set("set.cmp{.ftz}.dtype.type", cmp=FLOATS, dtype="u32 s32", type="f16x2", ptx="6.5", sm=53),
        *_set(
            "set.cmp.dtype.type",
            cmp=COMPARISONS, dtype="bf16", type=PLAIN + " f16 bf16", ptx="7.8", sm=90, when=comparable,
        ),
        *_set("set.cmp.dtype.type", cmp=FLOATS, dtype="bf16x2", type="bf16x2", ptx="7.8", sm=90),
        *_set("set.cmp.dtype.type", cmp=FLOATS, dtype="u16 s16 u32 s32", type="bf16", ptx="7.8", sm=90),
        *_set("set.cmp.dtype.type", cmp=FLOATS, dtype="u32 s32", type="bf16x2", ptx="7.8", sm=90),
    )  # fmt: skip
