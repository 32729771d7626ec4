"""Arithmetic shared by ints, numpy arrays and traced registers.

A traced register is any object with Python's operators whose comparisons have a method `select(a, b)`. Registers are
unsigned, so no intermediate result may be negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import numpy as np

from ptxdsl.layout.number import Computed, Number


def is_int(value: object) -> TypeGuard[int]:
    """True if `value` is an integer constant; a bool is not a size."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def all_ints(values: Iterable[object]) -> bool:
    return all(map(is_int, values))


def where(condition: Computed, a: Number, b: Number) -> Computed:
    """Return `a` where the condition holds, otherwise `b`. If traced, at least one of them has a type."""
    if isinstance(condition, bool | np.bool_):
        return a if condition else b
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)  # type: ignore[call-overload]  # arrays, or ints beside them
    return condition.select(a, b)


def minimum(a: Number, b: Number) -> Computed:
    return where(a < b, a, b)


def maximum(a: Number, b: Number) -> Computed:
    return where(a < b, b, a)


def ceil_div(value: Number, divisor: Number) -> Computed:
    return (value + (divisor - 1)) // divisor


def ceil_shift(value: Number, bits: Number) -> Computed:
    """Return ceil(value / 2**bits) for a value of 1 or more; `value` may be 0 if `bits` is 0."""
    return ((value - 1) >> bits) + 1


def low_bits(value: Number, bits: Number) -> Computed:
    """Return value % 2**bits."""
    return value & ((1 << bits) - 1) if is_int(bits) else value - ((value >> bits) << bits)


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: 1 tile, 2 tiles."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def constant_like(value: Number, number: Number) -> Computed:
    """Return `number` as the same kind as `value`; a traced one has the type of `value` and takes no instruction."""
    return value * 0 + number
