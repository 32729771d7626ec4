"""Partly constant offsets: evaluate a layout with as few operations as possible.

A coordinate is an int, which is folded, or any object with the operators + * // % & ^ >> <<, such as a traced register
or a numpy array. Such a value is assumed to be within its mode, which the kernel must guarantee; ints are exact for any
value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, NamedTuple

from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.shape import kind_of, refusal

UNKNOWN = -1  # any bit of the value may be set


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """`value + constant`; `value` is None for a constant offset, and can only set the bits in `bits`."""

    constant: int = 0
    value: Any = None
    bits: int = 0

    def __add__(self, other: Index) -> Index:
        constant = self.constant + other.constant
        if self.value is None or other.value is None:
            value, bits = (other.value, other.bits) if self.value is None else (self.value, self.bits)
            return Index(constant, value, bits)
        return Index(constant, self.value + other.value, sum_bits(self.bits, other.bits))

    def __xor__(self, other: Index) -> Index:
        """XOR two offsets; a constant must not share bits with the value of its own offset."""
        constant, bits = self.constant ^ other.constant, self.bits | other.bits
        if self.value is None or other.value is None:
            value = other.value if self.value is None else self.value
        else:
            value = self.value ^ other.value if self.bits & other.bits else self.value + other.value
        crossing = constant & bits
        return Index(constant & ~bits, value ^ crossing if crossing else value, bits)

    @property
    def reach(self) -> int:
        """The bits that the offset may set, including the constant."""
        return sum_bits(self.bits, self.constant)

    def times(self, factor: int) -> Index:
        """Multiply the offset by `factor` > 0."""
        value = None if self.value is None else multiply(self.value, factor)
        return Index(self.constant * factor, value, times_bits(self.bits, factor))

    def get(self) -> Any:
        """Return the offset: an int, or the value plus the constant."""
        if self.value is None:
            return self.constant
        return self.value + self.constant if self.constant else self.value

    def merged(self) -> Index:
        """Return the same offset with the constant added to the value."""
        return Index(0, self.get(), sum_bits(self.bits, self.constant)) if self.constant else self


def check_operators(value: Any, subject: str) -> None:
    """Raise LayoutError unless `value` is an int or has integer operators; `subject` names it in the message."""
    kind = getattr(getattr(value, "dtype", None), "kind", "i")
    if isinstance(value, int) or (hasattr(type(value), "__rshift__") and kind in "iu"):
        return
    raise refusal(
        f"{subject} must be an int or a traced value; found {kind_of(value)}",
        "use ints, or slice_(layout, …) to keep modes open"
        if value is None
        else "use an int, a register of integers, or an array of ints",
    )


def as_index(offset: Number) -> Index:
    if isinstance(offset, Index):
        return offset
    check_operators(offset, "an offset")
    return Index(offset) if isinstance(offset, int) else Index(0, offset, UNKNOWN)


def sum_bits(a: int, b: int) -> int:
    """Return the bits that x + y may set, for x within `a` and y within `b`; carries only move upwards."""
    if a & b == 0:
        return a | b
    if a < 0 or b < 0:
        return UNKNOWN
    lowest = min(a & -a, b & -b)
    return ((1 << (a + b).bit_length()) - 1) & -lowest


def times_bits(bits: int, factor: int) -> int:
    """Return the bits that x * factor may set, for x within `bits`."""
    if bits < 0 or factor < 0:
        return UNKNOWN
    if is_power_of_two(factor):
        return bits * factor
    lowest = (bits & -bits) * (factor & -factor)
    return ((1 << (bits * factor).bit_length()) - 1) & -lowest


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def multiply(x: Number, factor: int) -> Computed:
    if isinstance(x, int) or not is_power_of_two(factor):
        return x * factor
    return x << (factor.bit_length() - 1) if factor > 1 else x


def divide(x: Number, divisor: int) -> Computed:
    if isinstance(x, int) or not is_power_of_two(divisor):
        return x // divisor
    return x >> (divisor.bit_length() - 1) if divisor > 1 else x


def remainder(x: Number, divisor: int) -> Computed:
    return x & (divisor - 1) if is_power_of_two(divisor) else x % divisor


class Digit(NamedTuple):
    """The contribution of one mode to the offset of a linear coordinate x: ((x // weight) % size) * stride.

    `top` marks the most significant digit, which needs no remainder.
    """

    weight: int
    size: int
    stride: int
    top: bool

    @property
    def maskable(self) -> bool:
        return is_power_of_two(self.size) and is_power_of_two(self.weight)

    @property
    def bits(self) -> int:
        """The bits that this digit may set in the offset."""
        return times_bits((1 << (self.size - 1).bit_length()) - 1, self.stride)

    def of(self, x: Number) -> Computed:
        digit = divide(x, self.weight)
        return multiply(digit if self.top else remainder(digit, self.size), self.stride)


Form = Callable[[Any, tuple[Digit, ...]], Any]


def evaluate(x: Number, digits: tuple[Digit, ...]) -> Index:
    """Return the sum of `digits` for one linear coordinate."""
    if isinstance(x, int):
        return Index(sum(digit.of(x) for digit in digits))
    if not digits:
        return Index()
    bits = 0
    for digit in digits:
        bits = sum_bits(bits, digit.bits)
    return Index(0, _cheapest(digits)(x, digits), bits)


def _apart(x: Number, digits: tuple[Digit, ...]) -> Computed:
    """Evaluate each digit separately."""
    return _sum(digit.of(x) for digit in digits)


def _masked(x: Number, digits: tuple[Digit, ...], keep_top: bool = False) -> Computed:
    """Extract digits that are shifted by the same distance with one mask; `keep_top` excludes the top digit."""
    groups: dict[tuple[int, int], int] = {}
    rest = []
    for digit in digits:
        if digit.maskable and not (keep_top and digit.top):
            common = gcd(digit.stride, digit.weight)
            distance = digit.stride // common, digit.weight // common
            groups[distance] = groups.get(distance, 0) | (digit.size - 1) * digit.weight
        else:
            rest.append(digit.of(x))
    moved = [multiply(divide(x & mask, down), up) for (up, down), mask in groups.items()]
    return _sum([*moved, *rest])


def _masked_below_top(x: Number, digits: tuple[Digit, ...]) -> Computed:
    return _masked(x, digits, keep_top=True)


def _cumulative(x: Number, digits: tuple[Digit, ...]) -> Computed:
    """Compute x * stride and correct it at each carry; this needs no remainder and suits a padded pitch."""
    terms, below = [], 0
    for digit in digits:
        step = digit.stride - below
        if step:
            terms.append(multiply(divide(x, digit.weight), step))
        below = digit.stride * digit.size
    return _sum(terms)


def _sum(terms: Any) -> Any:
    first, *others = terms
    for term in others:
        first = first + term
    return first


class _Counter:
    """A stand-in for a coordinate that counts the operations applied to it."""

    def __init__(self) -> None:
        self.operations = 0

    def _count(self, _: object) -> _Counter:
        self.operations += 1
        return self

    __add__ = __mul__ = __floordiv__ = __mod__ = __and__ = __rshift__ = __lshift__ = _count


@cache
def _cheapest(digits: tuple[Digit, ...]) -> Form:
    """Return the form with the fewest operations."""

    def cost(form: Form) -> int:
        counter = _Counter()
        form(counter, digits)
        return counter.operations

    forms: list[Form] = [_apart, _masked, _masked_below_top]
    if _covers(digits):
        forms.append(_cumulative)
    return min(forms, key=cost)


def _covers(digits: tuple[Digit, ...]) -> bool:
    """True if the digits cover all of x from the lowest up, and no correction between them is negative."""
    weight, below = 1, 0
    for digit in digits:
        if digit.weight != weight or digit.stride < below:
            return False
        weight, below = weight * digit.size, digit.stride * digit.size
    return digits[-1].top
