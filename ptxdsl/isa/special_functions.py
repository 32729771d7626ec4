"""Approximate functions as the special function units of an H200 compute them, bit for bit.

A unit evaluates a quadratic, c0 + c1 x + c2 x², in fixed point. The high bits of the argument select a row of
coefficients; the next 17 bits are x, below 1. Partial products of x² below 2^-15 are dropped. The sum is truncated,
never rounded. ptxas emits the surrounding steps (scaling of subnormals, range reduction of angles) as separate
instructions, and these functions do the same.

Derived from the results of an H200 (driver 580, sm_90a) for every mantissa; docs/special-functions.md explains how.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..types import f32
from .numerics import Array, canonical, flush

MANTISSA, HIDDEN = 23, 1 << 23
X_BITS = 17
CUT = 15  # fraction bits of x²
UNIT = 17  # extra bits of a sum below the last bit of a result
QUARTERS = 2  # extra bits of c0 below the last bit of a result
BIAS = 127
TURNS = np.float32(0.15915494)  # 1 / 2π
LEAST_NORMAL = np.float32(2.0**-126)
NAN = np.uint32(0x7FFFFFFF).view(np.float32)


class Coefficients(NamedTuple):
    """The coefficients of one function: a constant added to each sum, and for each row c0 (in quarters), c1, and twice
    c2.
    """

    bias: int
    rows: Array


@cache
def coefficients(name: str) -> Coefficients:
    """Load one of the tables of `special_functions_h200.json`."""
    table = json.loads(Path(__file__).with_name("special_functions_h200.json").read_text())[name]
    return Coefficients(table["bias"], np.array(table["rows"], np.int64))


@cache
def squares() -> Array:
    """Return x² of every 17-bit x, in units of 2^-15, without the smaller partial products."""
    x, dropped = np.arange(1 << X_BITS), 2 * X_BITS - CUT
    total = np.zeros(len(x), np.int64)
    bits = [x >> n & 1 for n in range(X_BITS)]
    for high in range(X_BITS):
        if 2 * high >= dropped:
            total += bits[high] << 2 * high
        for low in range(max(0, dropped - high - 1), high):
            total += (bits[high] & bits[low]) << high + low + 1
    return total >> dropped


def interpolated(name: str, index: Array, x: Array) -> Array:
    """Return sums for rows of a table, in units of 2^-17 of a result's last bit; `x` has 17 bits."""
    table = coefficients(name)
    c0, c1, c2 = table.rows[index].T
    return (c0 << UNIT - QUARTERS) + table.bias + c1 * x + (c2 * squares()[x] << UNIT - CUT - 1)


def of_fraction(name: str, fraction: Array) -> Array:
    """Return sums for fractions of 23 bits, whose first 6 bits select the row."""
    return interpolated(name, fraction >> X_BITS, fraction & ((1 << X_BITS) - 1))


def cut_off(magnitude: Array, scale: int) -> Array:
    """Return integers times 2^-scale as f32, rounded toward zero."""
    exact = magnitude.astype(np.float64)
    near = exact.astype(np.float32)
    cut = np.where(near > exact, np.nextafter(near, np.float32(0)), near)
    return np.ldexp(cut, -scale)


def _parts(x: Array) -> tuple[Array, Array]:
    """Return the exponents and fractions of normal f32 numbers."""
    bits = x.view(np.int32).astype(np.int64)
    return (bits >> MANTISSA & 0xFF) - BIAS, bits & (HIDDEN - 1)


def _scaled(sums: Array, exponent: Array) -> Array:
    """Return results whose last bit has weight 2^(exponent - 23); results below the normal range are zero."""
    result = np.ldexp((sums >> UNIT).astype(np.float64), np.clip(exponent, -300, 300).astype(np.int32) - MANTISSA)
    return np.where(result < LEAST_NORMAL, 0, result).astype(np.float32)


def flushed(x: Array) -> Array:
    """Replace subnormal numbers by zeros of the same sign."""
    return np.where(np.abs(x) < LEAST_NORMAL, np.copysign(np.float32(0), x), x)


def rcp_unit(x: Array) -> Array:
    """Return 1 / x."""
    x = flushed(x)
    exponent, fraction = _parts(x)
    sums = interpolated("rcp", fraction >> 16, (fraction & 0xFFFF) << 1)
    result = np.where(fraction == 0, np.ldexp(1.0, -exponent), np.ldexp((sums >> UNIT) * 2.0**-24, -exponent))
    result = np.where(np.abs(result) < LEAST_NORMAL, 0, result)
    result = np.where(x == 0, np.inf, np.where(np.isinf(x), 0, result))
    return np.where(np.isnan(x), NAN, np.copysign(result, x)).astype(np.float32)


def rsqrt_unit(x: Array) -> Array:
    """Return 1 / the square root of x."""
    x = flushed(x)
    exponent, fraction = _parts(x)
    odd = exponent & 1
    sums = np.where(odd, of_fraction("rsqrt2", fraction), of_fraction("rsqrt1", fraction)) >> UNIT
    sums = np.where((fraction == 0) & (odd == 0), 1 << 24, sums)
    result = np.ldexp(sums * 2.0**-24, -(exponent >> 1))
    result = np.where(x == 0, np.copysign(np.inf, x), np.where(x == np.inf, 0, result))
    return np.where(np.isnan(x) | (x < 0), NAN, result).astype(np.float32)


def sqrt_unit(x: Array) -> Array:
    """Return the square root of x."""
    x = flushed(x)
    exponent, fraction = _parts(x)
    sums = np.where(exponent & 1, of_fraction("sqrt2", fraction), of_fraction("sqrt1", fraction)) >> UNIT
    result = np.ldexp(sums * 2.0**-23, exponent >> 1)
    result = np.where(x == 0, x, np.where(x == np.inf, np.inf, result))
    return np.where(np.isnan(x) | (x < 0), NAN, result).astype(np.float32)


def lg2_unit(x: Array) -> Array:
    """Return the base-2 logarithm of x: exponent and table in one sum with 36 fraction bits."""
    x = flushed(x)
    exponent, fraction = _parts(x)
    total = (exponent << 36) + (of_fraction("lg2", fraction) >> UNIT - 12)
    result = np.copysign(cut_off(np.where(total < 0, ~total, total), 36), total)
    result = np.where(x == 1, 0, np.where(x == 0, -np.inf, np.where(x == np.inf, np.inf, result)))
    return np.where(np.isnan(x) | (x < 0), NAN, result).astype(np.float32)


def ex2_unit(x: Array) -> Array:
    """Return 2 to the power x; 23 fraction bits of x are used, and a negative x uses the complement."""
    known = np.where(np.isnan(x), np.float32(0), np.clip(x, -1000, 1000)).astype(np.float64)
    whole = np.floor(np.abs(known) * HIDDEN).astype(np.int64)
    fixed = np.where(known >= 0, whole, np.where(whole & (HIDDEN - 1) == 0, -whole, ~whole))
    with np.errstate(over="ignore"):
        result = _scaled(of_fraction("ex2", fixed & (HIDDEN - 1)), fixed >> MANTISSA)
    return np.where(np.isnan(x), NAN, result)


def _sine(turns: Array, quarters: int) -> Array:
    """Return the sine of angles in turns, advanced by `quarters` of a turn; the table covers one quarter."""
    known = np.where(np.isfinite(turns), turns, np.float32(0))
    phase = np.floor(np.abs(known).astype(np.float64) * 2.0**25).astype(np.int64)
    quarter, fraction = (phase >> MANTISSA) + quarters, phase & (HIDDEN - 1)
    fraction = np.where(quarter & 1, HIDDEN - 1 - fraction, fraction)
    result = cut_off(of_fraction("sin", fraction), UNIT + 24)
    negative = (quarter & 2 != 0) ^ (np.signbit(known) & (quarters == 0))
    return np.where(np.isfinite(turns), np.where(negative, -result, result), NAN)


def _turns(x: Array) -> Array:
    """Return x / 2π in f32, truncated."""
    exact = x.astype(np.float64) * np.float64(TURNS)
    near = exact.astype(np.float32)
    return np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)


def rcp(x: Array, ftz: bool) -> Array:
    """rcp.approx.f32: without .ftz, arguments are scaled before and after if they or their reciprocal are subnormal."""
    if ftz:
        return rcp_unit(x)
    size = np.abs(x)
    scale = np.where(size > 2.0**126, 0.25, np.where(size < LEAST_NORMAL, 2.0**24, 1)).astype(np.float32)
    return scale * rcp_unit(x * scale)


def divided(a: Array, b: Array, full: bool, ftz: bool) -> Array:
    """div.approx.f32 and div.full.f32: a times the reciprocal of b; .full scales both if b is very large."""
    scale = np.where(_subnormal(b, ftz), 2.0**24, np.where((np.abs(b) > 2.0**126) & full, 0.25, 1)).astype(np.float32)
    if not ftz:
        return canonical((a * scale) * rcp_unit(b * scale))
    quotient = flushed(flushed(a) * scale).astype(np.float64) * rcp_unit(flushed(b) * scale)
    return canonical(flush(quotient, f32, "rn").astype(np.float32))


def rsqrt(x: Array, ftz: bool) -> Array:
    """rsqrt.approx.f32: without .ftz, subnormal arguments are scaled."""
    small = _subnormal(x, ftz)
    return rsqrt_unit(_times(x, small, 2.0**24)) * _times(np.ones_like(x), small, 2.0**12)


def sqrt(x: Array, ftz: bool) -> Array:
    """sqrt.approx.f32: without .ftz, subnormal arguments are scaled."""
    small = _subnormal(x, ftz)
    return sqrt_unit(_times(x, small, 2.0**24)) * _times(np.ones_like(x), small, 2.0**-12)


def lg2(x: Array, ftz: bool) -> Array:
    """lg2.approx.f32: without .ftz, subnormal arguments are scaled."""
    small = _subnormal(x, ftz)
    return lg2_unit(_times(x, small, 2.0**24)) - np.where(small, np.float32(24), np.float32(0))


def ex2(x: Array, ftz: bool) -> Array:
    """ex2.approx.f32: without .ftz, subnormal results are computed as squares of ex2 of half the argument."""
    small = (x < -126) & (not ftz)
    result = ex2_unit(_times(x, small, 0.5))
    return np.where(small, result * result, result)


def sin(x: Array, ftz: bool) -> Array:
    """sin.approx.f32."""
    return _sine(_turns(flushed(x) if ftz else x), 0)


def cos(x: Array, ftz: bool) -> Array:
    """cos.approx.f32."""
    return _sine(_turns(flushed(x) if ftz else x), 1)


def _subnormal(x: Array, ftz: bool) -> Array:
    return (np.abs(x) < LEAST_NORMAL) & (not ftz)


def _times(x: Array, where: Array, factor: float) -> Array:
    """Return x, multiplied by a factor where `where` is true."""
    return np.where(where, x * np.float32(factor), x)


TANH_BITS = (0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3)
"""The number of fraction bits that select a row, by exponent, for 2^-8 <= |x| < 8."""
TANH_LEAST = -8


def tanh(x: Array, ftz: bool) -> Array:
    """tanh.approx.f32: x itself for small x, 1 from 8 on; table rows for parts of each binade between."""
    exponent, fraction = _parts(np.abs(x))
    interval = np.clip(exponent - TANH_LEAST, 0, len(TANH_BITS) - 1)
    bits = np.array(TANH_BITS)[interval]
    firsts = np.cumsum([0, *(1 << n for n in TANH_BITS[:-1])])[interval]
    rest = fraction & (HIDDEN - 1 >> bits)
    behind = MANTISSA - bits - X_BITS
    narrow = np.where(behind >= 0, rest >> np.maximum(behind, 0), rest << np.maximum(-behind, 0))
    sums = interpolated("tanh", firsts + (fraction >> MANTISSA - bits), narrow)
    inside = np.minimum(cut_off(sums, UNIT + 24) * np.ldexp(np.float32(1), np.minimum(exponent, 0).astype(np.int32)), 1)
    result = np.where(exponent < TANH_LEAST, np.abs(x), np.where(exponent < 3, inside, np.float32(1)))
    return np.where(np.isnan(x), NAN, np.copysign(result, x)).astype(np.float32)


GROSS_BITS = 20  # of a fraction in the high word of an f64


def _high_parts(high: Array) -> tuple[Array, Array, Array]:
    """Split high words of f64 numbers into exponents, 23-bit fractions, and a mask of zeros and subnormals."""
    bits = high.astype(np.int64)
    raw = bits >> GROSS_BITS & 0x7FF
    return raw - 1023, (bits & (1 << GROSS_BITS) - 1) << MANTISSA - GROSS_BITS, raw == 0


def _high_word(sums: Array, exponent: Array) -> Array:
    """Return the high words of 24-bit results; exponents below the normal range give zeros."""
    fraction = (sums >> UNIT + 24 - 1 - GROSS_BITS) & (1 << GROSS_BITS) - 1
    return np.where(exponent < -1022, 0, exponent + 1023 << GROSS_BITS | fraction)


def rcp_gross(high: Array) -> Array:
    """rcp.approx.ftz.f64 on high words, u32."""
    exponent, fraction, zero = _high_parts(high)
    sums = interpolated("rcp", fraction >> 16, (fraction & 0xFFFF) << 1)
    power = fraction == 0
    result = _high_word(np.where(power, 0, sums), np.where(power, -exponent, -exponent - 1))
    result = np.where(zero, 0x7FF00000, np.where(exponent == 1024, 0, result)) | high.astype(np.int64) & 0x80000000
    return np.where((exponent == 1024) & ~power, 0x7FFFFFFF, result).astype(np.uint32)


def rsqrt_gross(high: Array) -> Array:
    """rsqrt.approx.ftz.f64 on high words, u32."""
    exponent, fraction, zero = _high_parts(high)
    odd, power = exponent & 1, (fraction == 0) & (exponent & 1 == 0)
    sums = np.where(odd, of_fraction("rsqrt2", fraction), of_fraction("rsqrt1", fraction))
    result = _high_word(np.where(power, 0, sums), np.where(power, -(exponent >> 1), -(exponent >> 1) - 1))
    negative = high >> 31 != 0
    result = np.where(zero, 0x7FF00000 | high.astype(np.int64) & 0x80000000, np.where(exponent == 1024, 0, result))
    wrong = ((exponent == 1024) & (fraction != 0)) | (negative & ~zero)
    return np.where(wrong, 0x7FFFFFFF, result).astype(np.uint32)
