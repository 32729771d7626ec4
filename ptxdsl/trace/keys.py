"""Keys of Python values: two keys are equal only if the traces of a kernel that reads the values would be equal.

2 and 2.0, 0.0 and -0.0, 1 and True have different keys, also when nested.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from numbers import Number
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from ptxdsl.trace.contents import PLAIN, elements_of, is_ours, is_steady
from ptxdsl.trace.reads import MOST_CODES, reads, value_of

Key: TypeAlias = tuple[Any, ...]  # hashable
_CONTAINERS = (set, frozenset, dict, deque, bytearray, array, memoryview)


class UnsteadyError(Exception):
    """A function reads state whose changes its variables do not show."""


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


class Keys:
    """Computes keys of functions that read numbers, texts, other functions, and containers of these.

    `alive` holds the objects that the key identifies by address.
    """

    def __init__(self) -> None:
        self.alive: list[object] = []
        self.functions: list[FunctionType] = []  # in visiting order

    def unknown(self, value: object) -> Key:
        """Return the key of an object of an unknown class."""
        raise UnsteadyError

    def key(self, value: Any) -> Key:
        """Return a key that distinguishes a value from all others."""
        plain = plain_key(value)
        if plain is not None:
            return plain
        kind = type(value)
        if kind in (list, tuple):
            return kind, *map(self.key, value)
        held = elements_of(value) if kind in _CONTAINERS else None
        if held is not None:
            parts = map(self.key, held.parts.values())
            return (kind, frozenset(parts)) if kind in (set, frozenset) else (kind, *held.parts, *parts)
        if kind is partial:
            return kind, *map(self.key, (value.func, value.args, value.keywords, vars(value)))
        if kind is FunctionType and not is_ours(value):
            return self.function(value)
        if isinstance(value, Traceable):
            return *self.known(value), *map(self.key, value.traced)
        if is_steady(value):
            return self.known(value)
        return self.other(value)

    def other(self, value: object) -> Key:
        """Return the key of a tuple, frozen dataclass or other object, by its parts where possible."""
        return (type(value), *map(self.key, value)) if isinstance(value, tuple) else self.unknown(value)

    def known(self, value: object) -> Key:
        """Return the address of an object, and keep it alive with the key."""
        self.alive.append(value)
        return (id(value),)

    def function(self, function: FunctionType) -> Key:
        """Return the key of a function's code and the state it reads; a number if it was visited before."""
        if function in self.functions:
            return "again", self.functions.index(function)
        self.functions.append(function)
        self.alive.append(function.__code__)
        attached = vars(function), function.__defaults__, function.__kwdefaults__
        read = reads(function.__code__)
        if any(each.kind == "module" for each in read):
            self.unknown(function)
        return id(function.__code__), *[self.key(value_of(function, each)) for each in read], *map(self.key, attached)


@lru_cache(maxsize=MOST_CODES)
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the field names of a dataclass."""
    return tuple([field.name for field in fields(kind)])


class _Itself:
    """Wraps an unhashable object so that it equals only itself."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


class _Constants(Keys):
    """Keys of kernel constants, which are hashable and compared by content."""

    def key(self, value: object) -> Key:
        return (value,) if type(value) is partial else super().key(value)

    def known(self, value: object) -> Key:
        if isinstance(value, Number):  # Decimal("0") and Decimal("-0") are equal
            return type(value), value, repr(value)
        return type(value), (_Itself(value) if type(value).__hash__ is None else value)

    def other(self, value: object) -> Key:
        if not is_dataclass(value) or isinstance(value, type) or type(value).__eq__ is object.__eq__:
            return super().other(value)
        known, key = _dataclasses.get(id(value), (None, ()))
        if known is not value:
            key = self.known(value)[:1] + tuple([self.key(getattr(value, name)) for name in _field_names(type(value))])
            if len(_dataclasses) >= MOST_CODES:
                _dataclasses.clear()
            _dataclasses[id(value)] = value, key
        return key

    def unknown(self, value: object) -> Key:
        return self.known(value)

    def function(self, function: FunctionType) -> Key:
        return (function,)


def constant_key(value: object) -> Key:
    """Return the key of a hashable constant."""
    return _Constants().key(value)


_dataclasses: dict[int, tuple[Any, Key]] = {}  # keys of constants by address


def stateful(values: Mapping[str, object]) -> dict[str, object]:
    """Return the constants whose key does not show what a trace reads of them: functions, objects that are hashed by
    address, and dataclasses with a field that may change."""
    held = {name: value.func if isinstance(value, partial) else value for name, value in values.items()}
    return {name: value for name, value in held.items() if _may_change(value)}


def _may_change(value: Any) -> bool:
    if is_dataclass(value) and not isinstance(value, type):
        return any(type(getattr(value, field.name)).__hash__ is None for field in fields(value))
    kind: Any = type(value)
    return isinstance(value, FunctionType | Traceable) or kind.__hash__ is object.__hash__
