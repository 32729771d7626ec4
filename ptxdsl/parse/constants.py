"""PTX constants: literals and constant expressions (PTX ISA, "Constants")."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TypeGuard

from ptxdsl.ir import Immediate
from ptxdsl.parse.syntax import SourceText, shortened
from ptxdsl.types import Type, f32, f64

_SIGN = {f32: 1 << 31, f64: 1 << 63}
MASK = (1 << 64) - 1


class Unsigned(int):
    """An integer of type .u64; a plain `int` is an .s64 (PTX ISA, "Integer Constant Expressions")."""


@lru_cache(maxsize=65536)
def number(text: str) -> int | Immediate:
    """Parse a number without sign: an int, or a floating constant as its bits.

    Raises ValueError for other text, OverflowError if the number does not fit 64 bits.
    """
    prefix = text[:2].lower()
    if prefix in ("0f", "0d"):
        return Immediate(int(text[2:], 16), f32 if prefix == "0f" else f64)
    if _is_decimal(text):
        return _decimal(text)
    return _integer(text.rstrip("U"), prefix)


def _is_decimal(text: str) -> bool:
    return text[:2].lower() not in ("0x", "0b") and ("." in text or "e" in text.lower())


def _integer(text: str, prefix: str) -> int:
    base = {"0x": 16, "0b": 2}.get(prefix, 8 if text.startswith("0") else 10)
    digits = (text[2:] if base in (16, 2) else text).lstrip("0")
    if len(digits) > 64 or (value := int(digits or "0", base)) > MASK:
        raise OverflowError
    return value


def _decimal(text: str) -> Immediate:
    value = float(text)
    vanishes = value == 0 and any(digit in "123456789" for digit in text.lower().partition("e")[0])
    if math.isinf(value) or vanishes:
        raise OverflowError
    return Immediate.float(value, f64)


def read(source: SourceText, text: str, position: int) -> int | Immediate:
    """Parse the number at `position`. Raises ParseError if the text is not a number, or is too large."""
    try:
        return number(text)
    except OverflowError:
        message, help = f"`{shortened(text)}` does not fit 64 bits", "write a smaller constant"
        if _is_decimal(text):
            message, help = (
                f"`{shortened(text)}` is outside the range of f64",
                "write its bits as 0d followed by 16 hexadecimal digits",
            )
    except ValueError:
        message, help = f"`{shortened(text)}` is not an octal number", "drop the leading 0 of a decimal number"
    raise source.error(position, len(text), message, help)


def whole(source: SourceText, text: str, position: int) -> int:
    """Parse the integer at `position`."""
    value = read(source, text, position)
    assert isinstance(value, int)  # the grammar accepts nothing else here
    return value


def negative(constant: Immediate) -> Immediate:
    """Return a floating constant with its sign inverted."""
    assert constant.type is not None
    return Immediate(constant.value ^ _SIGN[constant.type], constant.type)


def is_double(operand: object) -> TypeGuard[Immediate]:
    """True if the operand is a 64-bit floating constant, as decimals are."""
    return isinstance(operand, Immediate) and operand.type is f64


def signed(value: int, type: Type) -> Immediate:
    """Return a constant of an integer type, modulo its width."""
    value &= (1 << type.bits) - 1
    return Immediate(value - (1 << type.bits) if value >> type.bits - 1 and type.is_signed else value)


def value(constant: Immediate) -> float:
    """Return the value of a 64-bit floating constant."""
    (number,) = struct.unpack("<d", constant.value.to_bytes(8, "little"))
    return float(number)


def described(value: object) -> str:
    """Format a value for a message: a decimal is shown as such."""
    if not is_double(value):
        return str(value)
    (number,) = struct.unpack("<d", value.value.to_bytes(8, "little"))
    return repr(number)


def as_f32(constant: Immediate) -> Immediate:
    """Convert a decimal, which is a double, where PTX expects an f32."""
    wide = value(constant)
    try:
        return Immediate.float(wide, f32)
    except OverflowError:
        return Immediate(0x7F800000 | (0x80000000 if wide < 0 else 0), f32)


def combine(sign: str, a: int | Immediate, b: int | Immediate) -> int | Immediate | None:
    """Apply an operator to two integers, or two decimals; None if the operator is not defined for them."""
    if isinstance(a, int) and isinstance(b, int):
        return _combined(sign, a, b)
    if isinstance(a, int) or isinstance(b, int) or not a.type is b.type is f64:
        return None
    if sign in FLOATING:
        return Immediate.float(FLOATING[sign](value(a), value(b)), f64)
    return int(BINARY[sign](value(a), value(b))) if sign in _COMPARISONS else None  # type: ignore[arg-type]


def literal(text: str, value: int) -> int:
    """Return an integer with its type in an expression."""
    return Unsigned(value) if text.endswith("U") or value >> 63 else value


def _combined(sign: str, a: int, b: int) -> int:
    is_unsigned = isinstance(a, Unsigned) or (sign not in _SHIFTS and isinstance(b, Unsigned)) or sign == "%"
    if is_unsigned and sign not in _SHIFTS:
        a, b = a & MASK, b & MASK
    return typed(BINARY[sign](a, b), is_unsigned and sign not in _TRUTHS)


def before(sign: str, value: int) -> int:
    """Apply a unary operator to an integer."""
    return typed(UNARY[sign](value), sign == "~" or (isinstance(value, Unsigned) and sign != "!"))


def typed(value: int, is_unsigned: bool) -> int:
    """Wrap a value to 64 bits, as .u64 or .s64."""
    value &= MASK
    return Unsigned(value) if is_unsigned else value - (value >> 63 << 64)


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": lambda a: int(not a),
}  # fmt: skip

_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {"<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b),
     ">": lambda a, b: int(a > b), ">=": lambda a, b: int(a >= b)},
    {"<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divide, "%": lambda a, b: a - b * _divide(a, b)},
)  # fmt: skip
BINARY = {name: apply for level in _LEVELS for name, apply in level.items()}
_COMPARISONS = {name for level in _LEVELS[5:7] for name in level}
_TRUTHS, _SHIFTS = _COMPARISONS | {"||", "&&"}, ("<<", ">>")
FLOATING: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
STANDING = {name: rank for rank, level in enumerate(_LEVELS) for name in level}
"""Operator precedence."""
