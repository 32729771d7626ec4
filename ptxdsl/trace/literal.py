"""Python numbers as PTX constants."""

from __future__ import annotations

import math
import operator
import struct
from typing import SupportsIndex, TypeAlias, TypeGuard

import numpy as np

from ptxdsl import ir
from ptxdsl.types import Type, bf16, f16, f32, f64, lanes

PythonNumber: TypeAlias = "float | np.floating | SupportsIndex"
"""A number that is known while tracing: of Python, of numpy, or what stands for an int."""
_FORMATS = {f16: "<e", f32: "<f", f64: "<d"}


def is_number(value: object) -> TypeGuard[PythonNumber]:
    """True for a Python or numpy number (including bool), or an object with `__index__`."""
    if isinstance(value, int | float | np.floating):
        return True
    return hasattr(type(value), "__index__") and not hasattr(value, "traced") and not isinstance(value, np.ndarray)


def plain(number: PythonNumber) -> int | float:
    """Return the Python number of a numpy scalar, bool or enum."""
    return float(number) if isinstance(number, float | np.floating) else operator.index(number)


def encode(number: int | float, type: Type) -> ir.Immediate:
    """Return the constant of a type; f16 and bf16 (packed ones in all lanes) as their bits. Raises ValueError if the
    number does not fit."""
    element, count = lanes(type)
    if element.is_float:
        bits = _float_bits(number, element)
        if type in (f32, f64):
            return ir.Immediate(bits, type)
        return ir.Immediate(sum(bits << (element.bits * lane) for lane in range(count)))
    if isinstance(number, float):
        raise ValueError(f"{number!r} is a float, and {type} is not")
    low, high = limits(element)
    if not low <= number <= high or count > 1:
        raise ValueError(f"{number} does not fit {type}")
    return ir.Immediate(number)


def limits(type: Type) -> tuple[int, int]:
    """Return the smallest and largest integer of a type; untyped bits hold signed and unsigned ones."""
    low = 0 if type.kind == "u" else -(1 << (type.bits - 1))
    high = (1 << (type.bits - 1)) - 1 if type.is_signed else (1 << type.bits) - 1
    return low, high


def _float_bits(number: int | float, type: Type) -> int:
    if isinstance(number, int) and float(number) != number:
        raise ValueError(f"{number} has no exact {type}")
    bits = _bf16_bits(float(number)) if type is bf16 else _packed(float(number), type)
    if isinstance(number, int) and decode(bits, type) != number:
        raise ValueError(f"{number} has no exact {type}")
    return bits


def _packed(number: float, type: Type) -> int:
    if type not in _FORMATS:
        raise ValueError(f"{type} has no constants")
    try:
        return int.from_bytes(struct.pack(_FORMATS[type], number), "little")
    except OverflowError:
        raise ValueError(f"{number!r} does not fit {type}") from None


def _bf16_bits(number: float) -> int:
    """Return the upper half of the f32, rounded to nearest even."""
    wide = _packed(number, f32)
    if math.isnan(number):
        return (wide >> 16) | 0x40
    rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and not math.isinf(number):
        raise ValueError(f"{number!r} does not fit bf16")
    return rounded


def decode(bits: int, type: Type) -> float:
    """Return the number that the bits of an f16, bf16, f32 or f64 encode."""
    if type is bf16:
        bits, type = bits << 16, f32
    return float(struct.unpack(_FORMATS[type], bits.to_bytes(type.bytes, "little"))[0])
