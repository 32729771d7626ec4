"""Accumulation in the tensor cores of an H200, bit for bit.

An instruction multiplies exactly, aligns its products and the accumulator to the largest exponent among them, drops
bits more than a fixed number of places below it, and adds the rest exactly. The exponent of a product is the sum of the
exponents of its factors, which is one less than the exponent of its value if the product of the mantissas is 2 or more.
A subnormal factor has the minimum exponent of its type. The sum is truncated to f32, or rounded to the nearest f16. A
sum that is zero, or too small for its type, is +0.

Derived by fitting the number of bits to results of an H200 (sm_90) for values that cancel, spread over many binades or
are subnormal: 1,048,576 outputs of wgmma for each type and 16,384 of each mma.sync, all of which match in every bit.
`tests/isa/vectors/wgmma_h200.json.gz` is a sample of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..types import Type, bf16, e4m3, e5m2, f16, f32, tf32
from .numerics import FORMATS, NAN, Array

NOTHING = -(1 << 14)  # the exponent of a zero; the sum of two still fits 16 bits
OUTPUTS = 1 << 15  # per batch, small enough to stay in the cache
TERMS = 8  # products below 4 * 2**25, whose sum fits 32 bits


@dataclass(frozen=True, slots=True)
class Accumulation:
    """`fraction` bits below the largest exponent count; an f32 sum keeps its first `kept` bits (None: all)."""

    fraction: int
    kept: int | None = None


WIDE, NARROW = Accumulation(25), Accumulation(13, kept=13)
OF_WGMMA = {f16: WIDE, bf16: WIDE, tf32: WIDE, e4m3: NARROW, e5m2: NARROW}
"""The accumulation of wgmma, by the type of its factors."""
OF_BLOCKS = Accumulation(35)
"""The accumulation of pairs of 4-bit floats with block scales, as MMA-Sim (arXiv 2511.10909) models a B200."""
BLOCK = 16  # of neighbours along K whose products are summed exactly, before their scale factors
SCALE_EMIN = {"ue8m0": -127, "ue4m3": -6}
IN_F32 = (f16, e4m3, e5m2)  # types whose products are exact in f32, even when scaled so that one unit of the sum is 1


class AppliedScales(NamedTuple):
    """Scale factors of a type, for blocks along k: of a (batch, m, blocks), and of b (batch, n, blocks)."""

    type: str
    a: Array
    b: Array

    def exponents(self) -> tuple[Array, Array]:
        """Return the exponents of the factors."""
        of_a, of_b = (np.maximum(np.frexp(x)[1] - 1, SCALE_EMIN[self.type]) for x in (self.a, self.b))
        return of_a, of_b

    def applied(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return a and b multiplied by their factors."""
        left, right = (x * f.repeat(x.shape[2] // f.shape[2], axis=2) for x, f in ((a, self.a), (b, self.b)))
        return left, right

    def part(self, which: slice) -> AppliedScales:
        return AppliedScales(self.type, self.a[which], self.b[which])


def exponents(values: Array, type: Type) -> Array:
    """Return the exponents (int16) of values of a type, given as f64; NOTHING for zeros."""
    _, above = np.frexp(values)
    return np.where(values == 0, NOTHING, np.maximum(above - 1, FORMATS[type].emin)).astype(np.int16)


def accumulate(
    a: Array, b: Array, c: Array, types: tuple[Type, Type], how: Accumulation, scales: AppliedScales | None = None
) -> Array:
    """Return the sums a (batch, m, k) @ bᵀ (batch, n, k) + c (batch, m, n) of one instruction, in the type of c (f32 or
    f16).

    a and b are f64 values of the two `types`, which `scales` multiply. If an input is infinite or NaN, the result is
    the IEEE 754 sum.
    """
    sums = np.empty(c.shape, c.dtype)
    step = max(1, OUTPUTS // (c.shape[1] * c.shape[2]))
    for first in range(0, len(c), step):
        part = slice(first, first + step)
        scaled = None if scales is None else scales.part(part)
        sums[part] = _accumulate(a[part], b[part], c[part], types, how, scaled)
    return sums


def _accumulate(
    a: Array, b: Array, c: Array, types: tuple[Type, Type], how: Accumulation, scales: AppliedScales | None
) -> Array:
    wide = c.astype(np.float64)
    if scales is not None and how is OF_BLOCKS:
        total = _sum_of_blocks(a, b, wide, scales)
    else:
        of_a, of_b = exponents(a, types[0]), exponents(b, types[1])
        if scales is not None:  # powers of two
            of_a, of_b = (x.astype(np.int32) + each for x, each in zip((of_a, of_b), scales.exponents(), strict=True))
            (a, b), types, scales = scales.applied(a, b), (f32, f32), None
        largest = _largest(of_a, of_b, exponents(wide, f32).astype(of_a.dtype))
        scale = np.ldexp(1.0, how.fraction - largest)
        total = (_whole_products(a, b, scale, types) + np.trunc(wide * scale)) / scale
    if scales is not None:
        a, b = scales.applied(a, b)
    if c.dtype == np.float16:
        result = total.astype(np.float16)
    else:
        result = toward_zero(total if how.kept is None else _cut(total, how.kept))
    result += result.dtype.type(0)  # no zero is negative
    if not (np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(wide).all()):
        exact = a @ b.transpose(0, 2, 1) + wide
        special = ~np.isfinite(exact)
        result[special] = exact[special].astype(c.dtype)
        result[result != result] = NAN[result.dtype]
    return result


def _sum_of_blocks(a: Array, b: Array, c: Array, scales: AppliedScales) -> Array:
    """Return the sums of blocks and c, aligned to the largest exponent, that of c or of the factors of a block."""
    count = a.shape[2] // BLOCK
    of_a, of_b = (x.repeat(count // x.shape[2], axis=2) for x in scales.exponents())
    by_a, by_b = (x.repeat(count // x.shape[2], axis=2) for x in (scales.a, scales.b))
    largest = exponents(c, f32).astype(np.int32)
    for left, right in _along_k(of_a, of_b):
        np.maximum(largest, left + right, out=largest)
    scale = np.ldexp(1.0, OF_BLOCKS.fraction - largest)
    total = np.trunc(c * scale)
    for n, (left, right) in enumerate(_along_k(by_a, by_b)):
        block = slice(n * BLOCK, (n + 1) * BLOCK)
        total += np.trunc(a[..., block] @ b[..., block].transpose(0, 2, 1) * left * right * scale)
    result: Array = total / scale
    return result


def _largest(a: Array, b: Array, c: Array) -> Array:
    """Return the largest exponent of a product or c, for each sum; arbitrary for a sum of zeros."""
    largest = c.copy()
    for left, right in _along_k(a, b):
        np.maximum(largest, left + right, out=largest)
    return np.where(largest <= NOTHING // 2, 0, largest)


def _whole_products(a: Array, b: Array, scale: Array, types: tuple[Type, Type]) -> Array:
    """Return the sum of all products times `scale`, each truncated to an integer, as f64."""
    narrow = types[0] in IN_F32 and types[1] in IN_F32
    work, whole = (np.float32, np.int32) if narrow else (np.float64, np.int64)
    scale, product, cut = scale.astype(work), np.empty(scale.shape, work), np.empty(scale.shape, whole)
    total = np.zeros(scale.shape)
    part: Array = np.zeros(scale.shape, whole)
    for number, (left, right) in enumerate(_along_k(a.astype(work), b.astype(work)), start=1):
        np.multiply(left, right, out=product)
        np.multiply(product, scale, out=product)
        np.copyto(cut, product, casting="unsafe")  # toward zero
        part += cut
        if number % TERMS == 0 or number == a.shape[2]:
            total += part
            part[...] = 0
    return total


def _along_k(a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    """Yield, for each k, the columns (batch, m, 1) of a and (batch, 1, n) of b."""
    left, right = (np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in (a, b))
    return zip(left[..., np.newaxis], right[:, :, np.newaxis, :], strict=True)


def _cut(values: Array, bits: int) -> Array:
    """Truncate numbers to `bits` fraction bits."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.trunc(np.ldexp(fraction, bits + 1)), exponent - bits - 1)


def toward_zero(values: Array) -> Array:
    """Convert f64 to f32, rounded toward zero; overflow gives infinity."""
    near = values.astype(np.float32)
    above = np.abs(near.astype(np.float64)) > np.abs(values)
    cut = np.where(above, np.nextafter(near, np.float32(0)), near)
    return np.where(np.abs(values) >= 2.0**128, np.copysign(np.float32(np.inf), near), cut)
