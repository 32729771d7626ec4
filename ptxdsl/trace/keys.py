"""Keys of Python values: two keys are equal only if the traces of a kernel that reads the values would be equal.

2 and 2.0, 0.0 and -0.0, 1 and True have different keys, also when nested.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from numbers import Number
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from ptxdsl.trace.contents import PLAIN, elements_of, is_steady
from ptxdsl.trace.reads import MOST_CODES

Key: TypeAlias = tuple[Any, ...]  # hashable


class Traceable:  # no ABC: isinstance is many times slower with one
    """Base class of objects that call user functions while tracing."""

    @property
    @abstractmethod
    def traced(self) -> tuple[object, ...]:
        """The function, and other objects read when it is traced."""


def plain_key(value: Any) -> Key | None:
    """Return the key of a number or text; None for other values."""
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()  # distinguishes 0.0 from -0.0
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind is range:
        return kind, value.start, value.stop, value.step  # ranges with equal elements compare equal
    return (kind, value.tobytes()) if isinstance(value, np.generic) else None


class _Itself:
    """Wraps an unhashable object so that it equals only itself."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


def constant_key(value: Any) -> Key:
    """Return the key of a constant, compared by content if Python compares its type so, else by identity."""
    plain = plain_key(value)
    kind: Any = type(value)
    if plain is not None:
        return plain
    if isinstance(value, tuple | list):
        return kind, *map(constant_key, value)
    if kind in (partial, FunctionType) or is_steady(value):
        return _itself(value)
    if isinstance(value, Number):
        return kind, value, repr(value)  # Decimal("0") and Decimal("-0") are equal
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(constant_key, value))
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        return _dataclass_key(value)
    held = elements_of(value)
    return _itself(value) if held is None else (kind, *held.parts, *map(constant_key, held.parts.values()))


def _itself(value: Any) -> Key:
    kind = type(value)
    return kind, (_Itself(value) if kind.__hash__ is None else value)


def _dataclass_key(value: Any) -> Key:
    kind: Any = type(value)
    known, key = _dataclasses.get(id(value), (None, ()))
    if known is not value:
        key = kind, *[constant_key(getattr(value, name)) for name in _field_names(kind)]
        if len(_dataclasses) >= MOST_CODES:
            _dataclasses.clear()
        _dataclasses[id(value)] = value, key
    return key


_dataclasses: dict[int, tuple[Any, Key]] = {}  # keys of constants by address


@lru_cache(maxsize=MOST_CODES)
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the field names of a dataclass."""
    return tuple([field.name for field in fields(kind)])


def stateful(values: Mapping[str, object]) -> dict[str, object]:
    """Return the constants whose key does not show what a trace reads of them: functions, objects that are hashed by
    address, and dataclasses with a field that may change."""
    held = {name: value.func if isinstance(value, partial) else value for name, value in values.items()}
    return {name: value for name, value in held.items() if _may_change(value)}


def _may_change(value: Any) -> bool:
    kind: Any = type(value)
    if is_dataclass(kind):
        return any(type(getattr(value, each.name)).__hash__ is None for each in fields(kind))
    return isinstance(value, FunctionType | Traceable) or kind.__hash__ is object.__hash__
