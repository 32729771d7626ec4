"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import ir
from ..types import TYPES, Type, lanes, s32
from .form import Form, Values
from .numerics import Array, bit_length, clamp, elements, high_half, shift_left, shift_right, widen
from .opcode import Op, Opcode
from .operand import OperandList, Problem

INTEGERS = "u16 u32 u64 s16 s32 s64"
SIGNED = "s16 s32 s64"
HALVES = "lo hi"


class Pairs(Op):
    """Base of instructions that operate on each 16-bit half."""

    def run(self, i: Opcode, *inputs: Array) -> Array:
        half, _ = lanes(i.type)
        result = super().run(i, *(elements(x, half.dtype) for x in inputs))
        assert isinstance(result, np.ndarray)
        return result.view(np.uint32)


class AddInteger(Op):
    """Add two values: d = a + b, modulo 2^n; .sat clamps to the range of s32."""

    forms = (
        Form("add.type d=type, a:type, b:type", type="u16 u32 u64 s16 s64"),
        Form("add{.sat}.type d=type, a:type, b:type", type="s32"),
    )

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return clamp(widen(a) + b, s32) if i.sat else a + b


class AddPairs(Pairs, AddInteger):
    """Add packed 16-bit halves: d = a + b, modulo 2^16 in each half."""

    forms = (Form("add.type d=type, a:type, b:type", type="u16x2 s16x2", ptx="8.0", sm=90),)


class SubInteger(Op):
    """Subtract one value from another: d = a - b, modulo 2^n; .sat clamps to the range of s32."""

    forms = (
        Form("sub.type d=type, a:type, b:type", type="u16 u32 u64 s16 s64"),
        Form("sub{.sat}.type d=type, a:type, b:type", type="s32"),
    )

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return clamp(widen(a) - b, s32) if i.sat else a - b


class MulInteger(Op):
    """Multiply two values: d = the low or high half of a * b."""

    forms = (Form("mul.half.type d=type, a:type, b:type", half=HALVES, type=INTEGERS),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return a * b if i.half == "lo" else high_half(a, b)


class MulWide(Op):
    """Multiply two values into a product of twice their width: d = a * b."""

    forms = (Form("mul.wide.type d=wide(type), a:type, b:type", type="u16 u32 s16 s32"),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return widen(a) * b


class MadInteger(Op):
    """Multiply-add: d = the low or high half of a * b, plus c; .sat clamps to the range of s32."""

    forms = (
        Form("mad.half.type d=type, a:type, b:type, c:type", half=HALVES, type=INTEGERS),
        Form("mad.half.sat.type d=type, a:type, b:type, c:type", half="hi", type="s32"),
    )

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        product = a * b if i.half == "lo" else high_half(a, b)
        return clamp(widen(product) + c, s32) if i.sat else product + c


class MadWide(Op):
    """Multiply-add into a result of twice the width of a and b: d = a * b + c."""

    forms = (Form("mad.wide.type d=wide(type), a:type, b:type, c:wide(type)", type="u16 u32 s16 s32"),)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        return widen(a) * b + c


def product24(i: Opcode, a: Array, b: Array) -> Array:
    """Return the low or high 32 bits of the 48-bit product of the low 24 bits of a and b, as 64-bit integers."""
    product = widen(a << 8 >> 8) * (b << 8 >> 8)
    return product.astype(a.dtype) if i.half == "lo" else (product >> 16).astype(a.dtype)


class Mul24(Op):
    """Multiply the low 24 bits of a and b: d = the low or high 32 bits of the 48-bit product."""

    forms = (Form("mul24.half.type d=type, a:type, b:type", half=HALVES, type="u32 s32"),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return product24(i, a, b)


class Mad24(Op):
    """Multiply-add 24-bit values: d = the low or high 32 bits of the 48-bit product, plus c."""

    forms = (
        Form("mad24.half.type d=type, a:type, b:type, c:type", half=HALVES, type="u32 s32"),
        Form("mad24.half.sat.type d=type, a:type, b:type, c:type", half="hi", type="s32"),
    )

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        product = product24(i, a, b)
        return clamp(widen(product) + c, s32) if i.sat else product + c


class Sad(Op):
    """Sum of absolute differences: d = |a - b| + c."""

    forms = (Form("sad.type d=type, a:type, b:type, c:type", type=INTEGERS),)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        return np.maximum(a, b) - np.minimum(a, b) + c


class DivInteger(Op):
    """Divide two values: d = a / b, rounded toward zero; division by zero gives all ones."""

    forms = (Form("div.type d=type, a:type, b:type", type=INTEGERS),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return np.where(b == 0, a.dtype.type(~a.dtype.type(0)), (a - np.fmod(a, b)) // b)


class Rem(Op):
    """Take the remainder of integer division: d = a % b, with the sign of a; division by zero gives all ones."""

    forms = (Form("rem.type d=type, a:type, b:type", type=INTEGERS),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return np.where(b == 0, a.dtype.type(~a.dtype.type(0)), np.fmod(a, b))


class AbsInteger(Op):
    """Take the absolute value: d = |a|; the most negative value is returned unchanged."""

    forms = (Form("abs.type d=type, a:type", type=SIGNED),)

    def run(self, i: Opcode, a: Array) -> Array:
        return np.abs(a)


class NegInteger(Op):
    """Negate: d = -a, modulo 2^n."""

    forms = (Form("neg.type d=type, a:type", type=SIGNED),)

    def run(self, i: Opcode, a: Array) -> Array:
        return -a


class MinInteger(Op):
    """Take the minimum of a and b; .relu clamps to at least 0."""

    forms = (
        Form("min.type d=type, a:type, b:type", type="u16 u32 u64 s16 s64"),
        Form("min{.relu}.type d=type, a:type, b:type", type="s32", needs={"relu": ("8.0", 90)}),
    )

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return np.maximum(np.minimum(a, b), 0) if i.relu else np.minimum(a, b)


class MinPairs(Pairs, MinInteger):
    """Take the minimum of packed 16-bit halves; .relu clamps to at least 0."""

    forms = (
        Form("min.type d=type, a:type, b:type", type="u16x2", ptx="8.0", sm=90),
        Form("min{.relu}.type d=type, a:type, b:type", type="s16x2", ptx="8.0", sm=90),
    )


class MaxInteger(Op):
    """Take the maximum of a and b; .relu clamps to at least 0."""

    forms = (
        Form("max.type d=type, a:type, b:type", type="u16 u32 u64 s16 s64"),
        Form("max{.relu}.type d=type, a:type, b:type", type="s32", needs={"relu": ("8.0", 90)}),
    )

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return np.maximum(np.maximum(a, b), 0) if i.relu else np.maximum(a, b)


class MaxPairs(Pairs, MaxInteger):
    """Take the maximum of packed 16-bit halves; .relu clamps to at least 0."""

    forms = (
        Form("max.type d=type, a:type, b:type", type="u16x2", ptx="8.0", sm=90),
        Form("max{.relu}.type d=type, a:type, b:type", type="s16x2", ptx="8.0", sm=90),
    )


class Popc(Op):
    """Population count: d = the number of one bits in a."""

    forms = (Form("popc.type d=u32, a:type", type="b32 b64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array) -> Array:
        return np.bitwise_count(a).astype(np.uint32)


class Clz(Op):
    """Count leading zeros: d = the number of zero bits above the most significant one bit of a."""

    forms = (Form("clz.type d=u32, a:type", type="b32 b64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array) -> Array:
        return (i.type.bits - bit_length(a)).astype(np.uint32)


class Bfind(Op):
    """Find the most significant non-sign bit: d = its position, or (.shiftamt) the left shift that normalises a.

    d = 0xffffffff if no bit is found.
    """

    forms = (Form("bfind{.shiftamt}.type d=u32, a:type", type="u32 u64 s32 s64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array) -> Array:
        magnitude = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
        position = bit_length(magnitude) - 1
        amount = np.where(position < 0, -1, i.type.bits - 1 - position) if i.shiftamt else position
        return amount.astype(np.uint32)


class Fns(Op):
    """Find the n-th set bit of mask, n = |offset|, upwards from base (downwards for offset < 0); else 0xffffffff.

    With offset 0, base itself if that bit is set.
    """

    forms = (Form("fns.b32 d=b32, mask:b32, base:b32, offset:s32", ptx="6.0", sm=30),)

    def run(self, i: Opcode, mask: Array, base: Array, offset: Array) -> Array:
        base, offset = base.astype(np.int64), offset.astype(np.int64)
        left, result = np.maximum(np.abs(offset), 1), np.full(np.broadcast(mask, base, offset).shape, -1)
        for distance in range(32):
            position = np.where(offset < 0, base - distance, base + distance)
            is_set = (position >= 0) & (position < 32) & (mask >> np.clip(position, 0, 31) & 1 == 1)
            left = left - (is_set & ((offset != 0) | (distance == 0)))
            result = np.where((left == 0) & (result < 0) & is_set, position, result)
        return result.astype(np.uint32)


class Brev(Op):
    """Reverse the bits of a."""

    forms = (Form("brev.type d=type, a:type", type="b32 b64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array) -> Array:
        ones = (1 << i.type.bits) - 1
        width = i.type.bits // 2
        while width:
            low = ones // ((1 << width) + 1)
            a = (a >> width & low) | (a & low) << width
            width //= 2
        return a


def _field_problems(i: Opcode, operands: OperandList) -> Iterator[Problem]:
    """Check that a constant bit position or width, the last two operands, is at most 255."""
    for declared, value in list(zip(i.operands, operands, strict=True))[-2:]:
        if isinstance(value, ir.Immediate) and not 0 <= value.value <= 255:
            yield Problem(declared.name, f"`{declared.name}` is {value}; a bit position or width is 0 to 255")


def _field(i: Opcode, x: Array) -> Array:
    """Return a bit position or width. PTX leaves values past 255 undefined; in 32-bit forms a GPU reads their low 8
    bits.
    """
    return x & 0xFF if i.type.bits == 32 else x


class Bfe(Op):
    """Extract a bit field: d = c bits of a, from bit b on, sign- or zero-extended."""

    forms = (Form("bfe.type d=type, a:type, b:u32, c:u32", type="u32 u64 s32 s64", ptx="2.0", sm=20),)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        return _field_problems(i, operands)

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        return extend(shift_right(a, _field(i, b)), _field(i, c))


def extend(a: Array, width: Array) -> Array:
    """Sign- or zero-extend the low `width` bits of a; 0 for width 0, and a itself for the full width or more."""
    bits = np.uint32(8 * a.dtype.itemsize)
    unused = bits - np.minimum(width, bits)
    return shift_right(shift_left(a, unused), unused)


class Bfi(Op):
    """Insert a bit field: d = b with `width` bits at bit `position` replaced by the low bits of a."""

    forms = (Form("bfi.type d=type, a:type, b:type, position:u32, width:u32", type="b32 b64", ptx="2.0", sm=20),)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        return _field_problems(i, operands)

    def run(self, i: Opcode, a: Array, b: Array, position: Array, width: Array) -> Array:
        ones = np.full_like(a, -1 % (1 << i.type.bits))
        position, width = _field(i, position), _field(i, width)
        field = shift_left(~shift_left(ones, width), position)
        return (b & ~field) | (shift_left(a, position) & field)


class Szext(Op):
    """Sign- or zero-extend the low b bits of a; b is taken modulo 32 (.wrap) or clamped to 32 (.clamp)."""

    forms = (Form("szext.mode.type d=type, a:type, b:u32", mode="clamp wrap", type="u32 s32", ptx="7.6", sm=70),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return extend(a, b & 31 if i.mode == "wrap" else b)


class Bmsk(Op):
    """Create a bit mask: d = b ones starting at bit a; both are taken modulo 32 (.wrap) or clamped to 32 (.clamp)."""

    forms = (Form("bmsk.mode.b32 d=b32, a:b32, b:b32", mode="clamp wrap", ptx="7.6", sm=70),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        a, b = (x & 31 if i.mode == "wrap" else np.minimum(x, 32) for x in (a, b))
        ones = np.full_like(a, 0xFFFFFFFF)
        return shift_left(ones, a) & ~shift_left(ones, a + b)


def _parts(a: Array, type: Type, bits: int) -> Array:
    """Split 32-bit integers into bytes or halves: int32 with one more axis."""
    return elements(a, TYPES[f"{type.kind}{bits}"].dtype).reshape(*a.shape, -1).astype(np.int32)


def _sum_type(i: Values) -> Type:
    """Return the accumulator type: s32 if a or b is signed, else u32."""
    return TYPES["s32" if i.atype.is_signed or i.btype.is_signed else "u32"]


class Dp4a(Op):
    """Dot product of four bytes with accumulation: d = c + dot(a, b); c and d are s32 if a or b is signed."""

    forms = (
        Form(
            "dp4a.atype.btype d=sum, a:u32, b:u32, c:sum",
            atype="u32 s32", btype="u32 s32", derived={"sum": _sum_type}, ptx="5.0", sm=61,
        ),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        products = _parts(a, i.atype, 8) * _parts(b, i.btype, 8)
        return c + products.sum(-1).astype(c.dtype)


class Dp2a(Op):
    """Dot product of two halves of a with two low or high bytes of b, plus c; c and d are s32 if a or b is signed."""

    forms = (
        Form(
            "dp2a.mode.atype.btype d=sum, a:u32, b:u32, c:sum",
            mode=HALVES, atype="u32 s32", btype="u32 s32", derived={"sum": _sum_type}, ptx="5.0", sm=61,
        ),
    )  # fmt: skip

    def run(self, i: Opcode, a: Array, b: Array, c: Array) -> Array:
        bytes_ = _parts(b, i.btype, 8)[..., slice(0, 2) if i.mode == "lo" else slice(2, 4)]
        return c + (_parts(a, i.atype, 16) * bytes_).sum(-1).astype(c.dtype)
