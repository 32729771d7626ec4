"""Video instructions (PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions").

Scalar instructions take words, or a byte or half of a register (`r.b0`, `r.h1`); SIMD instructions operate on the two
halves or four bytes of registers. Intermediate results have more bits than the operands, and are truncated or clamped
only at the end. A second operation compares them with c as an H200 does, in code that ptxas 13 generates: see
`Video.compared`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from .. import ir
from ..types import Type, s32
from .form import Form
from .numerics import Array, elements
from .opcode import Op, Opcode
from .operand import OperandList, Problem

TYPES = "u32 s32"
SECOND: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "min": np.minimum, "max": np.maximum}
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
SELECTORS = ("b0", "b1", "b2", "b3", "h0", "h1")


def scalar_forms(syntax: str, d: str, **slots: Any) -> tuple[Form, Form]:
    """Return the forms of a scalar instruction, without and with a secondary operation on c."""
    slots |= {"ptx": "2.0", "sm": 20}
    operands = f"d={d}, a:atype, b:btype"
    return Form(f"{syntax} {operands}", **slots), Form(f"{syntax}.then {operands}, c:{d}", then=tuple(SECOND), **slots)


def simd_forms(name: str, **slots: Any) -> Iterator[Form]:
    """Return the forms of a SIMD instruction on halves and bytes, each also with its results summed and added to c."""
    slots |= {"dtype": TYPES, "atype": TYPES, "btype": TYPES, "ptx": "3.0", "sm": 30}
    operands = "d=dtype, a:atype, b:btype, c:dtype"
    for count in (2, 4):
        yield Form(f"{name}{count}.dtype.atype.btype{{.sat}} {operands}", **slots)
        yield Form(f"{name}{count}.dtype.atype.btype.add {operands}", **slots)


def arithmetic_forms(name: str) -> tuple[Form, ...]:
    """Return the scalar and the SIMD forms of an arithmetic instruction."""
    scalar = scalar_forms(f"{name}.dtype.atype.btype{{.sat}}", "dtype", dtype=TYPES, atype=TYPES, btype=TYPES)
    return (*scalar, *simd_forms(name))


class Video(Op):
    """Base of the video instructions; `operation` works on int64, with one or more elements per lane."""

    reads = (ir.Lane,)
    operation: ClassVar[Callable[[Array, Array], Array]]
    takes_word: ClassVar[bool] = False  # the second operation takes the low word of a result, sign-extended

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if isinstance(value, ir.Immediate) and _count(i) > 1:
                message = f"`{declared.name}` is the constant {value}; the operands of {i.form.name} are registers"
                yield Problem(declared.name, message, "move it to a register first")
            if isinstance(value, ir.Lane) and (value.selector not in SELECTORS or _count(i) > 1):
                takes = f".{', .'.join(SELECTORS)} or all" if _count(i) == 1 else "all"
                yield Problem(
                    declared.name, f"`{declared.name}` selects .{value.selector}; this takes {takes} of a register"
                )

    def results(self, i: Opcode, x: Array, y: Array) -> Array:
        return type(self).operation(x, y)

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Array:
        count = _count(i)
        results = self.results(i, _split(a, i.atype, count), _split(b, i.btype, count))
        dtype = i.operands[0].type
        if i.values.get("sat"):
            results = _clamp(results, dtype, 32 // count)
        if c is not None and i.values.get("add"):
            return c + results.sum(-1).astype(c.dtype)
        if c is not None and i.values.get("then"):
            results = SECOND[i.then](*self.compared(i, results[..., 0], c))[..., np.newaxis]
        return results.astype(f"u{4 // count}").view(dtype.dtype)[..., 0]

    def compared(self, i: Opcode, results: Array, c: Array) -> tuple[Array, Array]:
        """Return the operands of the second operation in 64 bits: signed, or unsigned for an unsigned destination.

        A negative result keeps its sign, and so is larger than any c as an unsigned number.
        """
        if self.takes_word:
            results = results.astype(np.int32).astype(np.int64)
        if self.second_type(i) is s32:
            return results, c.view(np.int32).astype(np.int64)
        return results.view(np.uint64), c.view(np.uint32).astype(np.uint64)

    def second_type(self, i: Opcode) -> Type:
        """Return the type in which the second operation compares."""
        return i.operands[0].type


def _count(i: Opcode) -> int:
    """Return the number of elements per register."""
    return {"2": 2, "4": 4}.get(i.form.name[-1], 1)


def _split(x: Array, type: Type, count: int) -> Array:
    """Return the elements of registers as int64 with one more axis."""
    return elements(x, np.dtype(f"{x.dtype.kind}{4 // count}")).reshape(*x.shape, count).astype(np.int64)


def _clamp(results: Array, type: Type, bits: int) -> Array:
    signed = type is s32
    low = -(1 << bits - 1) if signed else 0
    return np.clip(results, low, low + (1 << bits) - 1)


class Vadd(Video):
    """Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."""

    forms = arithmetic_forms("vadd")
    takes_word = True
    operation = np.add


class Vsub(Video):
    """Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."""

    forms = arithmetic_forms("vsub")
    takes_word = True
    operation = np.subtract


class Vabsdiff(Video):
    """Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."""

    forms = arithmetic_forms("vabsdiff")
    operation = staticmethod(lambda a, b: np.abs(a - b))


class Vmin(Video):
    """Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."""

    forms = arithmetic_forms("vmin")
    operation = np.minimum


class Vmax(Video):
    """Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."""

    forms = arithmetic_forms("vmax")
    operation = np.maximum


class Vavrg(Video):
    """Average of halves or bytes: d = (a + b) / 2, rounded to nearest, ties up; .add adds their sum to c."""

    forms = tuple(simd_forms("vavrg"))
    operation = staticmethod(lambda a, b: a + b + (a + b >= 0) >> 1)


class Shift(Video):
    """Base of vshl and vshr: b is taken modulo 32 (.wrap) or clamped to 32 (.clamp); .sat clamps the low 34 bits."""

    def results(self, i: Opcode, x: Array, y: Array) -> Array:
        shifted = super().results(i, x, y & 31 if i.mode == "wrap" else np.minimum(y, 32))
        return shifted << 30 >> 30 if i.values.get("sat") else shifted

    def compared(self, i: Opcode, results: Array, c: Array) -> tuple[Array, Array]:
        return super().compared(i, results.astype(np.int32).astype(np.int64) if i.values.get("sat") else results, c)


def _shift_forms(name: str) -> tuple[Form, ...]:
    syntax = f"{name}.dtype.atype.btype{{.sat}}.mode"
    return scalar_forms(syntax, "dtype", dtype=TYPES, atype=TYPES, btype="u32", mode="clamp wrap")


class Vshl(Shift):
    """Shift left: d = a << b; optionally + c, or the minimum or maximum with c."""

    forms = _shift_forms("vshl")
    operation = np.left_shift


class Vshr(Shift):
    """Shift right, arithmetic for signed a: d = a >> b; optionally + c, or the minimum or maximum with c."""

    forms = _shift_forms("vshr")
    operation = np.right_shift


class Vset(Video):
    """Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."""

    forms = (
        *scalar_forms("vset.atype.btype.cmp", "u32", atype=TYPES, btype=TYPES, cmp=tuple(COMPARISONS)),
        *(
            Form(
                f"vset{count}.atype.btype.cmp{add} d=u32, a:atype, b:btype, c:u32",
                atype=TYPES, btype=TYPES, cmp=tuple(COMPARISONS), ptx="3.0", sm=30,
            )
            for count in (2, 4)
            for add in ("", ".add")
        ),
    )  # fmt: skip

    def results(self, i: Opcode, x: Array, y: Array) -> Array:
        return COMPARISONS[i.cmp](x, y).astype(np.int64)

    def second_type(self, i: Opcode) -> Type:
        return i.atype


class Vmad(Video):
    """Multiply-add: d = a * b + c (.po: + 1), shifted right by 7 or 15; .sat clamps to s32 or u32.

    Parsed PTX may negate operands: `-a` or `-b` negates the product, and `-c` subtracts c.
    """

    reads = (ir.Lane, ir.Negative)

    forms = (
        Form(
            "vmad.dtype.atype.btype{.po}{.sat}{.scale} d=dtype, a:atype, b:btype, c:dtype",
            dtype=TYPES, atype=TYPES, btype=TYPES, scale="shr7 shr15", ptx="2.0", sm=20,
        ),
    )  # fmt: skip

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        negated = [o.name for o, value in zip(i.operands, operands, strict=True) if isinstance(value, ir.Negative)]
        if negated and i.po:
            yield Problem(negated[0], f"`{negated[0]}` cannot be negated with .po", "add 1 to c and leave .po out")
        elif "c" in negated and len(negated) == 2:
            yield Problem("c", "`c` cannot be negated together with the product", "negate the result instead")

    def run(self, i: Opcode, a: Array, b: Array, c: Array | None = None) -> Array:
        assert c is not None
        product, subtracted = (a.dtype == np.int64) != (b.dtype == np.int64), c.dtype == np.int64
        signed = s32 in (i.atype, i.btype) or product or subtracted
        wide: Any = object if product or subtracted else np.int64 if signed else np.uint64  # exact
        if subtracted:
            c = (-c).astype(np.uint32)
        addend = c.view(np.int32 if signed else np.uint32).astype(wide)
        total = a.astype(wide) * b.astype(wide) + (-addend if subtracted else addend) + int(bool(i.po))
        total = total >> {"shr7": 7, "shr15": 15, None: 0}[i.scale]
        if i.sat:
            total = np.clip(total, -(1 << 31) if signed else 0, (1 << 31) - 1 if signed else (1 << 32) - 1)
        return (total & 0xFFFFFFFF).astype(np.uint32).view(i.dtype.dtype)
