"""Floats of 4, 6 and 8 bits that only tensor cores of Blackwell read, and the scale factors of their blocks.

PTX ISA, "Alternate Floating Point Data Formats". In a byte of its own, an e2m1 is in bits 2 to 5, an e3m2 or e2m3 in
bits 0 to 5; the other bits are padding, which is ignored.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np


class NarrowFormat(NamedTuple):
    """A format without infinities: bits of exponent and mantissa, the NaN (None: it has none), and its low bit in a
    byte.
    """

    exponent: int
    mantissa: int
    nan: int | None = None
    shift: int = 0
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.signed + self.exponent + self.mantissa


FORMATS = {
    "e2m1": NarrowFormat(2, 1, shift=2),
    "e2m3": NarrowFormat(2, 3),
    "e3m2": NarrowFormat(3, 2),
    "e4m3": NarrowFormat(4, 3, nan=0x7F),
    "ue4m3": NarrowFormat(4, 3, nan=0x7F, signed=False),
}


@cache
def values(name: str) -> np.ndarray:
    """Return the value (f64) of every bit pattern of a format."""
    bias_of_ue8m0 = 127
    if name == "ue8m0":
        return np.append(np.ldexp(1.0, np.arange(255) - bias_of_ue8m0), np.nan)
    form = FORMATS[name]
    pattern = np.arange(1 << form.bits)
    size = pattern & (1 << form.exponent + form.mantissa) - 1
    exponent, mantissa = size >> form.mantissa, size & (1 << form.mantissa) - 1
    normal = exponent > 0
    bias = (1 << form.exponent - 1) - 1
    numbers = np.ldexp(mantissa + (normal << form.mantissa), np.maximum(exponent, 1) - bias - form.mantissa)
    numbers[size == form.nan] = np.nan
    return np.where(pattern > size, -numbers, numbers)


@cache
def of_bytes(name: str, per_byte: int = 1) -> np.ndarray:
    """Return the value of every byte, (256,) f64; (256, 2) for bytes that hold two elements, the low bits first."""
    form, byte = FORMATS[name], np.arange(256)
    if per_byte == 2:
        return np.stack([values(name)[byte & 15], values(name)[byte >> 4]], axis=1)
    return values(name)[byte >> form.shift & (1 << form.bits) - 1]


def scales_of_bytes(name: str) -> np.ndarray:
    """Return the scale factor of every byte; the high bit of a ue4m3 is padding."""
    return np.resize(values(name), 256)
