"""PTX arithmetic on numpy arrays over lanes: formats, rounding modes, flushing, saturation, fma.

`decode` converts the bits of any floating type to f32 or f64 values; `encode` rounds values once into the bits of a
type. To avoid double rounding (f64 to f32 after an f64 sum), sums are first rounded to odd: the last bit records that
the sum was inexact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Call these functions
with numpy's floating-point warnings off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..types import Type, bf16, e4m3, e5m2, f16, f32, f64, lanes, tf32

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Format:
    """A floating format: precision in bits (hidden bit included), minimum normal exponent, largest number."""

    precision: int
    emin: int
    largest: float


E2M1, E2M3, E3M2 = (Type(name, 8, "f") for name in ("e2m1", "e2m3", "e3m2"))
"""Floats of 4 and 6 bits, in bytes of their own."""
E2M1_PAIR = Type("e2m1x2", 4, "f")
"""Floats of 4 bits, two in a byte."""

FORMATS = {
    f16: Format(11, -14, 65504.0),
    bf16: Format(8, -126, float.fromhex("0x1.fep127")),
    tf32: Format(11, -126, float.fromhex("0x1.ffcp127")),
    f32: Format(24, -126, float(np.finfo(np.float32).max)),
    f64: Format(53, -1022, float(np.finfo(np.float64).max)),
    e4m3: Format(4, -6, 448.0),
    e5m2: Format(3, -14, 57344.0),
    E2M1: Format(2, 0, 6.0),
    E2M3: Format(4, 0, 7.5),
    E3M2: Format(3, -2, 28.0),
}

NAN: dict[np.dtype, Any] = {
    np.dtype(np.float32): np.uint32(0x7FFFFFFF).view(np.float32),
    np.dtype(np.float16): np.uint16(0x7FFF).view(np.float16),
}
"""The canonical NaN of a format; f64 keeps the bits of its NaNs."""

TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda x: np.trunc(x + np.copysign(0.5, x)),
}
"""The functions that round to an integral value, by rounding mode."""


def decode(raw: Array, type: Type) -> Array:
    """Decode the bits of a floating type to f32 (f64 for f64); packed types give the elements of all lanes in order."""
    element, count = lanes(type)
    if count > 1:
        raw = np.ascontiguousarray(raw).view(element.dtype)
    if element is bf16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if element is tf32:
        return raw.view(np.float32)
    if element is e5m2:
        return (raw.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    if element is e4m3:
        return _E4M3[raw]
    return raw.astype(np.float32) if element is f16 else raw


def encode(values: Array, type: Type, rnd: str = "rn") -> Array:
    """Round values (f32 or f64) once to the bits of a floating type; NaN becomes the canonical NaN."""
    element, count = lanes(type)
    raw = _ENCODERS[element](values, rnd)
    return raw.view(type.dtype) if count > 1 else raw


def canonical(x: Array) -> Array:
    """Replace each NaN by the canonical NaN of f32 and f16."""
    nan = x != x
    return np.where(nan, NAN[x.dtype], x) if x.dtype in NAN and nan.any() else x


def flush(x: Array, type: Type, rnd: str = "rz") -> Array:
    """Replace the values that are subnormal in a type by zeros of the same sign.

    For values that are still to be rounded, tininess is detected after rounding: a value is subnormal if it is below
    the least normal number once rounded to the precision of the type.
    """
    form, size = FORMATS[lanes(type)[0]], np.abs(x)
    if rnd == "rn":
        return x * (size >= math.ldexp(1 - 0.5 ** (form.precision + 1), form.emin))
    normal = size >= math.ldexp(1, form.emin)
    if rnd in ("rm", "rp"):
        normal |= (size > math.ldexp(1 - 0.5**form.precision, form.emin)) & ((x > 0) == (rnd == "rp"))
    return x * normal


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes 0."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def minimum(a: Array, b: Array) -> Array:
    """Return the lesser value: a NaN operand is ignored, and -0 is less than +0.

    `np.fmin` decides neither for zeros nor for signaling NaNs: its scalar and vector code differ.
    """
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, -(-a - b), np.where((a < b) | np.isnan(b), a, b))


def maximum(a: Array, b: Array) -> Array:
    """Return the greater value: a NaN operand is ignored, and -0 is less than +0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, np.where((a > b) | np.isnan(b), a, b))


def relu(x: Array) -> Array:
    """Replace negative numbers and -0 by 0; NaN is kept."""
    return np.where(x <= 0, x.dtype.type(0), x)


def finite(x: Array, type: Type) -> Array:
    """Clamp to the finite range of a type; NaN is kept."""
    largest = FORMATS[lanes(type)[0]].largest
    return np.clip(x, -largest, largest)


def round_to(x: Array, type: Type, rnd: str) -> Array:
    """Round f64 values to a narrower format, still stored as f64; overflow gives the largest number or infinity."""
    form = FORMATS[type]
    x = x.astype(np.float64, copy=False)
    unit = np.maximum(np.frexp(x)[1] - form.precision, form.emin - form.precision + 1)
    rounded = np.ldexp(TO_INTEGER[rnd](np.ldexp(x, -unit)), unit)
    limit = np.where(TO_INTEGER[rnd](np.copysign(0.75, x)) == 0, form.largest, np.inf)
    over = (np.abs(rounded) > form.largest) & np.isfinite(x)
    return np.where(over, np.copysign(limit, x), rounded)


def step(nearest: Array, error: Array, rnd: str) -> Array:
    """Adjust f64 results rounded to nearest to the neighbour that the rounding mode selects; `error` is exact -
    nearest.
    """
    if rnd == "rz":
        move, towards = error * np.copysign(1, nearest) < 0, 0.0
    else:
        move, towards = (error < 0, -np.inf) if rnd == "rm" else (error > 0, np.inf)
    return np.where(move, np.nextafter(nearest, towards), nearest)


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x + y rounded to nearest and the exact rounding error (Knuth)."""
    s = x + y
    rest = s - x
    return s, (x - (s - rest)) + (y - rest)


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x * y in f64 rounded to nearest and the exact rounding error (Dekker); exponents must not be extreme."""
    p = x * y
    x1, y1 = x * 134217729.0, y * 134217729.0
    x1, y1 = x1 - (x1 - x), y1 - (y1 - y)
    x2, y2 = x - x1, y - y1
    return p, ((x1 * y1 - p) + x1 * y2 + x2 * y1) + x2 * y2


def odd_sum(x: Array, y: Array) -> Array:
    """Return x + y in f64 rounded to odd, so that the sum can be rounded once more without error."""
    s, error = two_sum(x, y)
    bits = s.view(np.int64)
    inexact = (np.abs(error) > 0) & (bits & 1 == 0)
    if inexact.any():
        bits = bits + inexact * np.where((error > 0) == (s > 0), 1, -1)
    return bits.view(np.float64)


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in f32 or f64, rounded once, to nearest."""
    if a.dtype == np.float64:
        return _fma64(*np.broadcast_arrays(a, b, c))
    product = np.multiply(a, b, dtype=np.float64)
    s = product + c
    result = s.astype(np.float32)
    # Double rounding is wrong only where the f64 sum is the midpoint of two f32 numbers.
    middle = (s.view(np.uint64) & 0x1FFFFFFF) == 0x10000000
    if middle.any() or ((np.abs(result) < 2.0**-126) & (s != 0)).any():
        return odd_sum(product, c.astype(np.float64)).astype(np.float32)
    return result


def _fma64(a: Array, b: Array, c: Array) -> Array:
    product, lost = two_product(a, b)
    high, low = two_sum(c, lost)
    s, rest = two_sum(product, high)
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, product + c)
    result = s + odd_sum(low, rest)
    result = np.where((result != 0) & np.isfinite(plain), result, plain)
    sizes = np.abs([a, b, c, product])
    hard = np.isfinite(sizes[:3]).all(0) & (((sizes > 2.0**480) | (sizes < 2.0**-480)) & (sizes > 0)).any(0)
    for lane in np.argwhere(hard):
        at = tuple(lane)
        result[at] = _to_float(Fraction(a[at]) * Fraction(b[at]) + Fraction(c[at]), plain[at])
    return result


def _to_float(exact: Fraction, zero: float) -> float:
    """Round a fraction to nearest in f64; return `zero` if it is zero."""
    try:
        return float(exact) if exact else zero
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def residual(exact: Callable[..., Any], nearest: Array, *inputs: Array) -> Array:
    """Return the sign of `exact(nearest, *inputs)` computed on fractions; 0 for lanes with an infinity, NaN or 1/0.

    This takes some microseconds per lane, so it is used only for the f64 rounding modes other than rn.
    """

    def one(nearest: float, *inputs: float) -> float:
        if not all(map(math.isfinite, inputs)) or math.isnan(nearest):
            return 0.0
        overflow = math.isinf(nearest)
        try:
            difference = exact(Fraction(0 if overflow else nearest), *map(Fraction, inputs))
        except ZeroDivisionError:
            return 0.0
        return math.copysign(1, -nearest) if overflow else float((difference > 0) - (difference < 0))

    return np.asarray(np.frompyfunc(one, 1 + len(inputs), 1)(nearest, *inputs), np.float64)


def from_integer(x: Array, type: Type, rnd: str) -> Array:
    """Round integers once to the bits of a floating type."""
    if x.dtype.itemsize < 8 or (rnd == "rn" and type in (f32, f64)):
        wanted = type.dtype if rnd == "rn" and type in (f32, f64) else np.dtype(np.float64)
        return encode(x.astype(wanted), type, rnd)
    if type is f64:
        high = (x >> 32).astype(np.float64) * 2.0**32
        return step(*two_sum(high, (x & 0xFFFFFFFF).astype(np.float64)), rnd)
    large = np.abs(x.astype(np.float64)) >= 2.0**53
    odd = ((x >> 11) | ((x & 0x7FF) != 0)).astype(np.float64) * 2048.0
    return encode(np.where(large, odd, x.astype(np.float64)), type, rnd)


def to_integer(x: Array, dtype: np.dtype, rnd: str) -> Array:
    """Round values to integers, clamped to the range of the type; NaN becomes 0, or the high bit from f64 or to 64
    bits.
    """
    whole = TO_INTEGER[rnd](x)
    info = np.iinfo(dtype)
    inside = (whole >= float(info.min)) & (whole < float(info.max + 1))
    result = np.where(inside, whole, 0).astype(dtype)
    if not inside.all():
        result = np.where(whole < info.min, info.min, np.where(inside, result, info.max))
        wide = x.dtype == np.float64 or info.bits == 64
        result = np.where(np.isnan(x), (info.min or 1 << info.bits - 1) if wide else 0, result).astype(dtype)
    return result


def elements(x: Array, dtype: np.dtype) -> Array:
    """Unpack the elements of x along a longer last axis, least significant first."""
    return np.ascontiguousarray(x).view(dtype)


def widen(x: Array) -> Array:
    """Return integers with twice the bits."""
    return x.astype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")


def clamp(x: Array, type: Type) -> Array:
    """Clamp integers to the range of a type."""
    limits, held = np.iinfo(type.dtype), np.iinfo(x.dtype)
    return np.clip(x, max(limits.min, held.min), min(limits.max, held.max)).astype(type.dtype)


def shift_left(x: Array, count: Array) -> Array:
    """Return x << count; 0 if count (u32) is the full width or more."""
    return x << _amount(x, count)


def shift_right(x: Array, count: Array) -> Array:
    """Return x >> count, arithmetic for signed types; all sign bits if count (u32) is the full width or more."""
    return x >> _amount(x, count)


def _amount(x: Array, count: Array) -> Array:
    """Return the counts in the type of x; numpy treats counts past the width, and negative ones, as the full width."""
    if x.dtype.itemsize == count.dtype.itemsize:
        return count.view(x.dtype)
    return np.minimum(count, 8 * x.dtype.itemsize).astype(x.dtype)


def high_half(a: Array, b: Array) -> Array:
    """Return the high half of the product of integers."""
    if a.dtype.itemsize < 8:
        return (widen(a) * b >> 8 * a.dtype.itemsize).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & 0xFFFFFFFF, x >> 32, y & 0xFFFFFFFF, y >> 32
    middle = x1 * y0 + (x0 * y0 >> 32)
    high = x1 * y1 + (middle >> 32) + (x0 * y1 + (middle & 0xFFFFFFFF) >> 32)
    if a.dtype.kind == "i":
        high -= np.where(a < 0, y, 0) + np.where(b < 0, x, 0)
    return high.view(a.dtype)


def bit_length(x: Array) -> Array:
    """Return the bit length of unsigned integers: 0 for 0, 1 for 1, 2 for 2 and 3, …"""
    if x.dtype.itemsize < 8:
        return np.frexp(x.astype(np.float64))[1]
    high, low = x >> np.uint64(32), x & 0xFFFFFFFF
    return np.where(high > 0, 32, 0) + bit_length(np.where(high > 0, high, low).astype(np.uint32))


def _odd32(x: Array) -> Array:
    """Return the bits of values as f32; f64 values are rounded to odd."""
    if x.dtype == np.float32:
        return x.view(np.uint32)
    nearest = x.astype(np.float32)
    bits = nearest.view(np.uint32)
    inexact = (nearest != x) & (x == x)
    return np.where(inexact, (bits - (np.abs(nearest) > np.abs(x))) | 1, bits).astype(np.uint32)


def _drop(bits: Array, count: int, rnd: str) -> Array:
    """Round f32 bits to `count` fewer bits, with the exponent range of f32."""
    if rnd == "rn":
        return bits + ((1 << count - 1) - 1) + ((bits >> count) & 1) >> count
    if rnd == "rna":
        return bits + (1 << count - 1) >> count
    away = {"rz": np.False_, "rm": bits >> 31 != 0, "rp": bits >> 31 == 0}[rnd]
    return bits + np.where(away, (1 << count) - 1, 0).astype(np.uint32) >> count


def _encode_f64(values: Array, rnd: str) -> Array:
    return values.astype(np.float64, copy=False)


def _encode_f32(values: Array, rnd: str) -> Array:
    if rnd != "rn" and values.dtype == np.float64:
        values = round_to(values, f32, rnd)
    return canonical(values.astype(np.float32, copy=False))


def _encode_f16(values: Array, rnd: str) -> Array:
    return canonical((values if rnd == "rn" else round_to(values, f16, rnd)).astype(np.float16))


def _encode_bf16(values: Array, rnd: str) -> Array:
    bits = _drop(_odd32(values), 16, rnd).astype(np.uint16)
    return np.where(values != values, np.uint16(0x7FFF), bits)


def _encode_tf32(values: Array, rnd: str) -> Array:
    bits = _drop(_odd32(values), 13, rnd) << 13
    return np.where(values != values, np.uint32(0x7FFFE000), bits)


def _encode_e5m2(values: Array, rnd: str) -> Array:
    bits = round_to(values, e5m2, rnd).astype(np.float16).view(np.uint16) >> 8
    return np.where(values != values, np.uint8(0x7F), bits.astype(np.uint8))


def _encode_e4m3(values: Array, rnd: str) -> Array:
    """Encode e4m3, which has no infinity: infinity and NaN become 0x7f. Other numbers are f16 bits scaled by 2^-8 and
    shortened.
    """
    rounded = round_to(values, e4m3, rnd)
    bits = (rounded * 2.0**-8).astype(np.float16).view(np.uint16)
    shortened = (bits >> 8 & 0x80 | bits >> 7 & 0x7F).astype(np.uint8)
    return np.where(np.isfinite(rounded), shortened, np.uint8(0x7F))


def _decoded_e4m3() -> Array:
    bits = np.arange(256, dtype=np.uint16)
    values = ((bits & 0x80) << 8 | (bits & 0x7F) << 7).view(np.float16).astype(np.float32) * np.float32(256)
    values[[0x7F, 0xFF]] = np.nan
    return values


_E4M3 = _decoded_e4m3()
_ENCODERS: dict[Type, Callable[[Array, str], Array]] = {
    f64: _encode_f64, f32: _encode_f32, f16: _encode_f16, bf16: _encode_bf16, tf32: _encode_tf32,
    e4m3: _encode_e4m3, e5m2: _encode_e5m2,
}  # fmt: skip
