"""Constants of PTX: how they are written, and constant expressions (PTX ISA, "Constants")."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import lru_cache

from ptxdsl.ir import Immediate
from ptxdsl.types import f32, f64

_SIGN = {f32: 1 << 31, f64: 1 << 63}
MASK = (1 << 64) - 1


@lru_cache(maxsize=65536)
def number(text: str) -> int | Immediate:
    """A number without sign: an int, or a floating constant as its bits. ValueError if it is none."""
    body, prefix = text.rstrip("U"), text[:2].lower()
    if prefix in ("0f", "0d"):
        return Immediate(int(body[2:], 16), f32 if prefix == "0f" else f64)
    if prefix in ("0x", "0b"):
        return int(body, 0)
    if "." in body or "e" in body.lower():
        return Immediate.float(float(body), f64)
    return int(body, 8 if body.startswith("0") else 10)


def negative(constant: Immediate) -> Immediate:
    """A floating constant with its sign turned."""
    assert constant.type is not None
    return Immediate(constant.value ^ _SIGN[constant.type], constant.type)


def as_f32(constant: Immediate) -> Immediate:
    """A constant written as a decimal, which is a double, where PTX takes an f32."""
    (wide,) = struct.unpack("<d", constant.value.to_bytes(8, "little"))
    try:
        return Immediate.float(wide, f32)
    except OverflowError:
        return Immediate(0x7F800000 | (0x80000000 if wide < 0 else 0), f32)


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
STANDING = {name: rank for rank, level in enumerate(_LEVELS) for name in level}
"""How tightly an operator binds."""


def wrap(value: int) -> int:
    """A value in 64 bits: as it is if it fits s64 or u64, else modulo 2^64."""
    return value if -(1 << 63) <= value <= MASK else value & MASK
