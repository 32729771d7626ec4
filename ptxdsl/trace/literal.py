"""Python numbers as PTX constants, and conversions between types."""

from __future__ import annotations

import math
import operator
import struct
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias, TypeGuard

import numpy as np

from ptxdsl import ir
from ptxdsl.types import Type, b16, b32, bf16, f16, f32, f64, lanes, pred, tf32, u32

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


FLOATS = (f16, bf16, f32, f64, tf32)


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion instruction: its mnemonic, result type, and constant second operands."""

    mnemonic: str
    type: Type
    constants: tuple[int, ...] = ()


def conversions(source: Type, target: Type, sm: int) -> list[Conversion]:
    """Return the instructions that convert `source` to `target`; empty if the bits stay the same.

    Integers are truncated or extended by the source's sign; floats convert to integers toward zero, everything else
    rounds to nearest. Raises ValueError with the reason if no conversion exists.
    """
    if target is pred:
        raise ValueError("predicates are made by comparisons: `x != 0`")
    if target.kind not in "usf" or target.bits < 8:
        raise ValueError(f"values of type {target} are made by .bitcast, or by pd.pack of their elements")
    if source is pred:
        raise ValueError("predicates become integers and floats of 16 bits and more")
    if source.kind not in "usf":
        raise ValueError("bits have no numeric value; interpret them by .bitcast first")
    if source.is_integer and target.is_integer:
        return [] if source.bits == target.bits else [_cvt(target, source)]
    if source is bf16 and target is not bf16:
        return [*_from_bf16(sm), *(conversions(f32, target, sm) if target is not f32 else [])]
    if target is bf16 and source not in (f32, f64):
        return [*conversions(source, f32, sm), _cvt(bf16, f32, ".rn")]
    return [_direct(source, target)]


def _cvt(target: Type, source: Type, rounding: str = "") -> Conversion:
    return Conversion(f"cvt{rounding}.{target}.{source}", target)


def _direct(source: Type, target: Type) -> Conversion:
    if (source not in FLOATS and source.is_float) or (target not in FLOATS and target.is_float):
        raise ValueError("8-bit floats are converted in pairs: write pd.ptx.cvt with the x2 type")
    if tf32 in (source, target):
        if source is f32:
            return _cvt(tf32, f32, ".rna")
        if target is f32:
            return Conversion("mov.b32", f32)
        raise ValueError("tf32 is converted from and to f32 alone")
    if source is f64 and target is bf16:
        raise ValueError("it would round twice; write .to(f32).to(bf16) to have that")
    if source.is_float and target.is_integer:
        return _cvt(target, source, ".rzi")
    widening = source.is_float and source.bits < target.bits
    return _cvt(target, source, "" if widening else ".rn")


def _from_bf16(sm: int) -> list[Conversion]:
    """Convert bf16, the upper half of an f32: cvt.f32.bf16 requires sm_90."""
    if sm >= 90:
        return [_cvt(f32, bf16)]
    return [
        Conversion("mov.b16", b16),
        Conversion("cvt.u32.u16", u32),
        Conversion("shl.b32", b32, (16,)),
        Conversion("mov.b32", f32),
    ]
