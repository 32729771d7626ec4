"""The contents and keys of Python objects, as far as a trace may read and a guard can compare them.

A trace reads two kinds of objects: those that cannot change, and those whose contents are compared before each launch.
`contents` returns the latter's parts. Objects of other types, such as iterators and files, are refused where they are
read. Two keys are equal only if the traces of a kernel that reads the values would be equal: 2 and 2.0, 0.0 and -0.0,
1 and True have different keys, also when nested.
"""

from __future__ import annotations

import copy
import functools
import pickle
import struct
import sys
from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache, partial
from inspect import unwrap
from numbers import Number
from operator import attrgetter, itemgetter, methodcaller
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import numpy as np

from ptxdsl import cached

MOST_CODES = 1024
MOST_EXPRESSIONS = 16  # parts of an object that are compared one by one
PLAIN = (int, str, bytes, bool, type(None), type(...))  # equal values are interchangeable
OURS = "ptxdsl"
_STEADY = {OURS, "builtins", "math", "cmath", "operator", "_operator", "numpy"}  # packages that users do not modify
_UNSTEADY = {"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__"}
_OF_NUMPY = (np.ufunc, type(np.where))
_GENERATED = "<string>"  # the file of code that `dataclass` generates
_MADE_BY_CLASS = 1 << 9  # type flag: created by a class statement
_POINTER_BYTES = struct.calcsize("P")
_RANDOM = {("_random", "Random"), ("numpy", "Generator"), ("numpy", "RandomState"), ("numpy", "BitGenerator")}
_CACHED = functools._lru_cache_wrapper
# The parts of objects of these types, by the expressions that follow the object.
LINKS: dict[type, tuple[str, ...]] = {
    MethodType: (".__self__", ".__func__"),
    MethodWrapperType: (".__self__",),
    partial: (".func", ".args", ".keywords"),
    property: (".fget",),
    cached_property: (".func",),
    cached.cached_property: (".func",),  # the same class since Python 3.12
    staticmethod: (".__func__",),
    classmethod: (".__func__",),
    _CACHED: (".__wrapped__",),
    CellType: (".cell_contents",),
    ContextVar: (".get(None)",),
    ref: ("()",),
}


@dataclass(frozen=True, slots=True)
class AttributeNames:
    """The attributes that code may read: those that it names, or all if it also reads attributes in other ways."""

    known: frozenset[str]
    are_open: bool

    def __contains__(self, name: str) -> bool:
        return name.isidentifier() and (self.are_open or name in self.known)


_ALL = AttributeNames(frozenset(), True)


class ObjectContents(NamedTuple):
    """The parts of an object by the expression that leads to each from the object, such as `.tile` or `[0]`.

    A guard compares each part by identity, and by value the expressions in `equal`, in which `{}` stands for the
    object. With `items`, it instead compares what that function returns for the object.
    """

    parts: dict[str, object]
    equal: dict[str, object] = {}  # noqa: RUF012 — never written
    items: Callable[[Any], Sequence[object]] | None = None
    is_fixed: bool = False  # the parts cannot be replaced


def contents(value: Any, names: AttributeNames) -> ObjectContents | None:
    """Return what a guard compares of an object; None if its type hides what it holds."""
    kind = type(value)
    if isinstance(value, ModuleType):
        return _of_module(value, names)
    if isinstance(value, type):
        return _of_class(value, names)
    if value is __import__:  # what it returns is any module
        return None
    if kind is BuiltinFunctionType:
        is_bound = not isinstance(value.__self__, ModuleType | type | None)
        return ObjectContents({".__self__": value.__self__} if is_bound else {}, is_fixed=True)
    if kind in LINKS:
        parts = {each: _evaluated(value, each) for each in LINKS[kind]}
        return ObjectContents(parts, is_fixed=kind not in (CellType, ContextVar, ref))
    held = elements_of(value)
    if held is not None:
        if not kind.__dictoffset__ or is_library(kind):
            return held
        attributes = _attributes(value, names)  # of an instance of the user's subclass
        return ObjectContents(attributes.parts | held.parts, attributes.equal | held.equal, held.items)
    if is_library(kind):
        return ObjectContents({}) if is_immutable(value) else _of_attributes(value, _ALL)
    return _of_attributes(value, names) or (ObjectContents({}) if is_immutable(value) else None)


def _evaluated(value: object, expression: str) -> object:
    """Return the part of an object at an expression; None for an empty cell."""
    try:
        return eval(f"value{expression}", {"value": value})
    except ValueError:
        return None


def elements_of(value: Any) -> ObjectContents | None:
    """Return the elements of a container, the data of a buffer, or the state of a random generator."""
    if isinstance(value, list | deque | tuple):
        parts = {f"[{n}]": part for n, part in enumerate(value)}
        items = None if len(value) <= MOST_EXPRESSIONS else list
        return ObjectContents(parts, {"len({})": len(value)}, items, isinstance(value, tuple))
    if isinstance(value, dict | MappingProxyType):
        parts = {f"[{key!r}]": part for key, part in value.items()}
        is_short = len(value) <= MOST_EXPRESSIONS and all(type(key) in (int, str) for key in value)
        return ObjectContents(parts, {"[*{}]": list(value)}, None if is_short else lambda held: [*held, *held.values()])
    if isinstance(value, set | frozenset | KeysView | ValuesView | ItemsView):
        parts = {f"[{n}]": part for n, part in enumerate(value)}
        return ObjectContents(parts, {}, list, isinstance(value, frozenset))
    if isinstance(value, bytearray | array | memoryview | np.ndarray):
        return ObjectContents({"": _data(value)}, {}, lambda buffer: (_data(buffer),))
    if is_random(type(value)):
        return ObjectContents({"": pickle.dumps(value)}, {}, lambda generator: (pickle.dumps(generator),))
    return None


def is_random(kind: type) -> bool:
    """True for a type of random generators that have a state."""
    return not _RANDOM.isdisjoint((root_of(base.__module__), base.__name__) for base in kind.__mro__)


def _data(buffer: Any) -> bytes:
    """Return the elements of a buffer, with their type and shape, as bytes."""
    elements = np.asarray(buffer)
    return f"{elements.dtype.str} {elements.shape} ".encode() + elements.tobytes()


def _of_attributes(value: Any, names: AttributeNames) -> ObjectContents | None:
    """Return the attributes of an object; None if its type, written in C, holds more than these."""
    kind = type(value)
    pointers = len(slots_of(kind)) + bool(kind.__dictoffset__) + bool(kind.__weakrefoffset__)
    is_whole = kind.__basicsize__ <= object.__basicsize__ + _POINTER_BYTES * pointers and not kind.__itemsize__
    return _attributes(value, names) if is_whole else None


def slots_of(kind: type) -> list[str]:
    """Return the names in the `__slots__` of a class and its bases."""
    if kind not in _slots:
        members = [member for base in kind.__mro__ for member in vars(base).items()]
        _slots[kind] = [name for name, member in members if type(member) is MemberDescriptorType and name != "__dict__"]
    return _slots[kind]


_slots: dict[type, list[str]] = {}


def _attributes(value: Any, names: AttributeNames) -> ObjectContents:
    """Return the class of an object, its shown attributes, and how many it has if code may find a new one."""
    kind = type(value)
    parts: dict[str, object] = {".__class__": kind}
    equal: dict[str, object] = {}
    for name in [name for name in slots_of(kind) if name in names]:
        if hasattr(value, name):
            parts[f".{name}"] = getattr(value, name)
        else:
            equal[f"hasattr({{}}, {name!r})"] = False
    held = getattr(value, "__dict__", {})
    parts |= {_step(kind, name): part for name, part in held.items() if name in names}
    in_classes = {name for base in kind.__mro__ if not is_library(base) for name in vars(base)}
    if hasattr(value, "__dict__") and (names.are_open or names.known & in_classes - held.keys()):
        equal["len({}.__dict__)"] = len(held)
    is_frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return ObjectContents(parts, {} if is_frozen else equal, is_fixed=is_frozen)


def _step(kind: type, name: str) -> str:
    """Return the expression for a name in the `__dict__` of an instance of a class, past a property of that name."""
    member = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return f".__dict__[{name!r}]" if hasattr(type(member), "__set__") else f".{name}"


def _of_class(cls: type, names: AttributeNames) -> ObjectContents:
    """Return the shown members of a class, those that Python calls by itself, its bases and its metaclass."""
    if is_library(cls):
        return ObjectContents({})
    bases = {f".__mro__[{n}]": base for n, base in enumerate(cls.__mro__[1:], 1)} | {".__class__": type(cls)}
    parts = {
        f".{name}" if type(member) is FunctionType or not hasattr(member, "__get__") else f".__dict__[{name!r}]": member
        for name, member in vars(cls).items()
        if type(member) is not MemberDescriptorType and (name in names or _is_called_by_python(name, member))
    }
    inherited = {name for base in cls.__mro__[1:] if not is_library(base) for name in vars(base)}
    can_hide = names.are_open or names.known & inherited - vars(cls).keys()
    return ObjectContents(parts | bases, {"len({}.__dict__)": len(vars(cls))} if can_hide else {})


def _is_called_by_python(name: str, member: object) -> bool:
    """True for a method such as `__getitem__`, except those that `dataclass` generates."""
    if not isinstance(member, FunctionType):
        return name.startswith("__") and isinstance(member, classmethod | staticmethod | property)
    return name.startswith("__") and _GENERATED not in (
        member.__code__.co_filename,
        unwrap(member).__code__.co_filename,
    )


def _of_module(module: ModuleType, names: AttributeNames) -> ObjectContents:
    """Return the named variables of a module; of a user's module all data if code may read any attribute."""
    held = {name: part for name, part in vars(module).items() if name in names}
    if is_library(module):
        return ObjectContents({f".{name}": part for name, part in held.items() if name in names.known})
    parts = {f".{name}": part for name, part in held.items() if name in names.known or is_data(part)}
    return ObjectContents(parts, {"len({}.__dict__)": len(vars(module))})


def is_data(value: Any, deep: int = 4) -> bool:
    """True for a number, a text, or a buffer or shallow container of these."""
    held = elements_of(value)
    if held is None:
        return isinstance(value, (*PLAIN[:-2], float, complex, np.generic))
    return deep > 0 and all([is_data(part, deep - 1) for part in held.parts.values()])


def is_immutable(value: object) -> bool:
    """True if Python's `copy` does not copy an object, or copies it to an equal one with the same hash."""
    kind = type(value)
    if kind not in _immutable:
        try:
            other = copy.copy(value)
            is_value = kind.__hash__ not in (None, object.__hash__) and (other == value) is True
            _immutable[kind] = other is value or (is_value and hash(other) == hash(value))
        except Exception:  # whatever the type raises
            _immutable[kind] = False
    return _immutable[kind]


_immutable: dict[type, bool] = dict.fromkeys((attrgetter, itemgetter, methodcaller, struct.Struct), True)


def is_library(value: Any) -> bool:
    """True for a module, class or function of Python, numpy or this package, whose state users do not write.

    A function with closure cells is none, since it may wrap one of the user's.
    """
    return is_library_name(_root(value)) and not getattr(value, "__closure__", None)


@lru_cache(maxsize=1024)
def is_library_name(module: str | None) -> bool:
    """True for the name of a module of Python, numpy or this package."""
    root = root_of(module)
    return root in _STEADY or root in sys.stdlib_module_names


def _root(value: Any) -> str:
    """Return the package of a module, class or function; empty for one that `exec` made without a module name."""
    if isinstance(value, ModuleType):
        return root_of(value.__name__)
    root = root_of(value.__module__)
    is_made = isinstance(value, FunctionType) or value.__flags__ & _MADE_BY_CLASS
    return "" if root == "__main__" or (root == "builtins" and is_made) else root


def is_steady(value: Any) -> bool:
    """True if an object cannot change its meaning while it is the same object."""
    kind = type(value)
    if kind is FunctionType:
        return is_ours(value)
    if isinstance(value, ModuleType | type):
        return _root(value) in _STEADY
    if kind is BuiltinFunctionType:
        owner = value.__self__
        is_of_module = isinstance(owner, ModuleType) and is_steady(owner)
        return value.__name__ not in _UNSTEADY and (owner is None or is_of_module)
    return root_of(kind.__module__) == OURS or kind in _OF_NUMPY


def is_ours(function: FunctionType) -> bool:
    """True for a function of this package, whose modules do not change."""
    return root_of(function.__globals__.get("__name__")) == OURS and not function.__closure__


@lru_cache(maxsize=1024)
def root_of(module: object) -> str:
    return str(module).partition(".")[0]


ALWAYS_READ = frozenset(each for expressions in LINKS.values() for each in expressions)


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
