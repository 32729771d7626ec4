"""Offsets that are partly known: the arithmetic of a layout, with as few operations as it can do with.

A coordinate is an int, which folds, or any object with the operators + * // % & ^ >> <<: a traced register, a numpy
array. Such a value is taken to lie within its mode, as the kernel's own bounds promise; ints are exact anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, NamedTuple

from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.shape import kind_of, refusal

UNKNOWN = -1  # every bit of a value may be set


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """`value + constant`; `value` is None where all is known, and sets no bit outside of `bits`."""

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
        """The bits of both, for constants that share no bit with their own value."""
        constant, bits = self.constant ^ other.constant, self.bits | other.bits
        if self.value is None or other.value is None:
            value = other.value if self.value is None else self.value
        else:
            value = self.value ^ other.value if self.bits & other.bits else self.value + other.value
        crossing = constant & bits
        return Index(constant & ~bits, value ^ crossing if crossing else value, bits)

    @property
    def reach(self) -> int:
        """The bits that the offset may set, constant and all."""
        return sum_bits(self.bits, self.constant)

    def times(self, factor: int) -> Index:
        """The offset `factor` > 0 times."""
        value = None if self.value is None else multiply(self.value, factor)
        return Index(self.constant * factor, value, times_bits(self.bits, factor))

    def get(self) -> Any:
        """The offset itself: an int, or the value with the constant added."""
        if self.value is None:
            return self.constant
        return self.value + self.constant if self.constant else self.value

    def merged(self) -> Index:
        """The same offset with the constant inside of the value."""
        return Index(0, self.get(), sum_bits(self.bits, self.constant)) if self.constant else self


def check_operators(value: Any, subject: str) -> None:
    """Refuse what is neither an int nor a value with the operators of ints; `subject` is in the singular."""
    kind = getattr(getattr(value, "dtype", None), "kind", "i")
    if isinstance(value, int) or (hasattr(type(value), "__rshift__") and kind in "iu"):
        return
    raise refusal(
        f"{subject} is an int, or traced; found {kind_of(value)}",
        "use ints; modes that are to stay open are left to slice_(layout, …)"
        if value is None
        else "use an int, a register of integers, or an array of ints",
    )


def as_index(offset: Number) -> Index:
    if isinstance(offset, Index):
        return offset
    check_operators(offset, "an offset")
    return Index(offset) if isinstance(offset, int) else Index(0, offset, UNKNOWN)


def sum_bits(a: int, b: int) -> int:
    """The bits that x + y may set, for x within `a` and y within `b`: carries run upwards only."""
    if a & b == 0:
        return a | b
    if a < 0 or b < 0:
        return UNKNOWN
    lowest = min(a & -a, b & -b)
    return ((1 << (a + b).bit_length()) - 1) & -lowest


def times_bits(bits: int, factor: int) -> int:
    """The bits that x * factor may set, for x within `bits`."""
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
    """One mode met by a linear coordinate x: ((x // weight) % size) * stride.

    `top` where no digit of x lies above, so that the remainder need not be taken.
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
        """The bits that this digit sets in the offset."""
        return times_bits((1 << (self.size - 1).bit_length()) - 1, self.stride)

    def of(self, x: Number) -> Computed:
        digit = divide(x, self.weight)
        return multiply(digit if self.top else remainder(digit, self.size), self.stride)


Form = Callable[[Any, tuple[Digit, ...]], Any]


def evaluate(x: Number, digits: tuple[Digit, ...]) -> Index:
    """The sum of `digits` of one linear coordinate."""
    if isinstance(x, int):
        return Index(sum(digit.of(x) for digit in digits))
    if not digits:
        return Index()
    bits = 0
    for digit in digits:
        bits = sum_bits(bits, digit.bits)
    return Index(0, _cheapest(digits)(x, digits), bits)


def _apart(x: Number, digits: tuple[Digit, ...]) -> Computed:
    """Each digit for itself."""
    return _sum(digit.of(x) for digit in digits)


def _masked(x: Number, digits: tuple[Digit, ...], keep_top: bool = False) -> Computed:
    """Digits that move by the same distance are cut out with one mask; `keep_top` leaves the top digit out."""
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
    """x * stride, corrected where a digit carries: takes no remainder, and suits a padded pitch."""
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
    """Stands for a coordinate, and counts the operations that are applied to it."""

    def __init__(self) -> None:
        self.operations = 0

    def _count(self, _: object) -> _Counter:
        self.operations += 1
        return self

    __add__ = __mul__ = __floordiv__ = __mod__ = __and__ = __rshift__ = __lshift__ = _count


@cache
def _cheapest(digits: tuple[Digit, ...]) -> Form:
    """The form that applies the fewest operations."""

    def cost(form: Form) -> int:
        counter = _Counter()
        form(counter, digits)
        return counter.operations

    forms: list[Form] = [_apart, _masked, _masked_below_top]
    if _covers(digits):
        forms.append(_cumulative)
    return min(forms, key=cost)


def _covers(digits: tuple[Digit, ...]) -> bool:
    """Whether the digits are all of x, from the lowest up, and no correction between them is negative."""
    weight, below = 1, 0
    for digit in digits:
        if digit.weight != weight or digit.stride < below:
            return False
        weight, below = weight * digit.size, digit.stride * digit.size
    return digits[-1].top
