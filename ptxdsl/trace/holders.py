"""Access to the contents of Python objects, and classification of objects that cannot change."""

from __future__ import annotations

import os
import sys
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from dataclasses import is_dataclass
from functools import cached_property, partial
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np

MOST_ITEMS = 16  # elements compared one by one
MOST_OBJECTS = 64  # elements searched for further state
PLAIN = (int, str, bytes, bool, type(None), type(...))  # equal values are interchangeable
OURS = "ptxdsl"
_OUR_VALUES = ("ptxdsl.types", "ptxdsl.trace", "ptxdsl.layout")  # modules whose types are immutable
_STEADY = {OURS, "builtins", "math", "cmath", "operator", "_operator", "numpy"}  # modules that users do not modify
_UNSTEADY = {"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__"}
_OF_NUMPY = (np.ufunc, type(np.where))
_METHODS = (staticmethod, classmethod)
PROPERTIES = (property, cached_property)
MAPPINGS = (dict, ChainMap, MappingProxyType, UserDict)
SEQUENCES = (list, deque, set, UserList)
VIEWS = (KeysView, ValuesView, ItemsView)  # of dicts
Environment = type(os.environ)


def _classes(value: object) -> tuple[type, ...]:
    """Return the classes in which attributes of an object or class are looked up; for a class also its metaclass."""
    kind: type = type(value)
    return (*value.__mro__, *kind.__mro__) if isinstance(value, type) else kind.__mro__


def _has(value: object, attribute: str) -> bool:
    """True if a module, class or object stores an attribute itself, so that reading it runs no code."""
    kinds = _classes(value)
    inherited = next((vars(kind)[attribute] for kind in kinds if attribute in vars(kind)), None)
    if isinstance(inherited, property) or (
        hasattr(type(inherited), "__get__") and not isinstance(inherited, (FunctionType, *_METHODS))
    ):
        return type(inherited).__name__ == "member_descriptor" and hasattr(value, attribute)
    return inherited is not None or attribute in getattr(value, "__dict__", {})


def holds(value: object, attribute: str) -> bool:
    """True if an object stores an attribute itself that is not a method."""
    return _has(value, attribute) and not isinstance(getattr(value, attribute), MethodType)


def kinds_of(value: object) -> list[type]:
    """Return the user's classes that define the attributes of an object or class."""
    return [kind for kind in _classes(value) if not is_steady(kind)]


def attributes_in(value: object) -> dict[str, Any]:
    """Return the named members of a module, class or object, except modules and classes."""
    names = dict.fromkeys([*getattr(value, "__dict__", ()), *(name for kind in kinds_of(value) for name in vars(kind))])
    named = [name for name in names if name.isidentifier() and not name.startswith("__") and holds(value, name)]
    held = {name: getattr(value, name) for name in named}
    return {name: part for name, part in held.items() if not isinstance(part, ModuleType | type)}


def leads_to(value: Any) -> dict[str, object]:
    """Return the objects behind bound methods, weak references and partial calls, by access path."""
    if isinstance(value, MethodType):
        return {".__self__": value.__self__}
    if isinstance(value, ref):
        return {"()": value()}
    if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | type | None):
        return {".__self__": value.__self__}
    if isinstance(value, partial):
        arguments = {f".args[{n}]": part for n, part in enumerate(value.args)}
        return {".func": value.func} | arguments | {f".keywords[{n!r}]": part for n, part in value.keywords.items()}
    return {}


def objects_in(value: object) -> dict[str, object]:
    """Return the elements of a list, tuple or dict that may hold state themselves, by access path."""
    if not isinstance(value, list | tuple | dict) or len(value) > MOST_OBJECTS or is_data(value):
        return {}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {f"[{at!r}]": part for at, part in items if type(at) in (int, str) and not is_data(part)}


def objects_without_path(value: object) -> list[object]:
    """Return such elements that no expression reaches: those of a set or deque, and dict values under other keys."""
    if isinstance(value, dict):
        parts = [part for at, part in value.items() if type(at) not in (int, str)]
    else:
        parts = list(value) if isinstance(value, set | frozenset | deque) else []
    return [part for part in parts if not is_data(part)] if len(parts) <= MOST_OBJECTS else []


def function_of(member: object) -> FunctionType | None:
    """Return the function of a method, property or similar descriptor; None for other members."""
    for name in ("fget", "__func__", "func"):
        member = getattr(member, name, None) or member
    return member if isinstance(member, FunctionType) else None


def methods_of(value: object, package: str | None = None) -> Iterator[FunctionType]:
    """Yield the functions of a class, its bases and metaclass, or of an object's class, except library classes.

    With `package`, only classes of that package are included.
    """
    for kind in kinds_of(value):
        if package in (None, root_of(kind.__module__)):
            for member in vars(kind).values():
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    yield function


def descriptors_of(value: object) -> dict[type, dict[str, object]]:
    """Return user-defined descriptors (`__get__`) by holding class and name."""
    held = {kind: vars(kind).items() for kind in kinds_of(value)}
    return {kind: {n: each for n, each in items if _is_descriptor(each)} for kind, items in held.items()}


def _is_descriptor(member: object) -> bool:
    return not is_steady(type(member)) and isinstance(getattr(type(member), "__get__", None), FunctionType)


def items_of(value: object) -> dict[str, Any] | None:
    """Return the parts of a short list or dict of immutable values by access path; None for other objects."""
    if type(value) is list:
        items = {f"[{n}]": part for n, part in enumerate(value)}
    elif type(value) is dict and all(type(name) in (str, int) for name in value):
        items = {f"[{name!r}]": part for name, part in value.items()}
    else:
        return None
    if len(items) > MOST_ITEMS or any(map(is_mutable, items.values())):
        return None
    return items | {".__len__()": len(items)}


def is_mutable(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(is_mutable, value))
    is_container = isinstance(value, (*MAPPINGS, *SEQUENCES, *VIEWS, Environment))
    return is_container or isinstance(value, bytearray | np.ndarray | array | memoryview | partial)


def is_data(value: Any, deep: int = 4) -> bool:
    """True for a number, string or array, or a shallow container of these."""
    if isinstance(value, dict | ChainMap | list | tuple | set | frozenset | deque):
        parts = [*value, *value.values()] if isinstance(value, dict | ChainMap) else value
        return deep > 0 and all([is_data(part, deep - 1) for part in parts])
    return type(value) in (*PLAIN, float, complex) or isinstance(value, np.generic) or is_mutable(value)


def data_in(names: dict[str, Any]) -> dict[str, Any]:
    """Return the data among the variables of a module."""
    return {name: value for name, value in names.items() if not name.startswith("__") and is_data(value)}


def is_namespace(value: object, package: str) -> bool:
    """True for a module, class or object of the user's package, used for its attributes."""
    if isinstance(value, ModuleType):
        installed = "site-packages" in str(getattr(value, "__file__", ""))
        return not (installed or is_steady(value) or root_of(value.__name__) in sys.stdlib_module_names)
    if isinstance(value, type):
        return root_of(value.__module__) == package != OURS
    kind = type(value)
    known = kind is SimpleNamespace or is_dataclass(kind) or root_of(kind.__module__) == package
    is_open = hasattr(value, "__dict__") or hasattr(kind, "__slots__")
    return known and is_open and root_of(kind.__module__) != OURS


def is_ours(function: FunctionType) -> bool:
    """True for a function of this package, whose modules do not change."""
    return root_of(function.__globals__.get("__name__")) == OURS and not function.__closure__


def is_steady(value: Any) -> bool:
    """True if an object cannot change its meaning while it is the same object."""
    kind = type(value)
    if kind is FunctionType:
        return is_ours(value)
    if isinstance(value, ModuleType):
        return root_of(value.__name__) in _STEADY
    if isinstance(value, type):
        return root_of(value.__module__) in _STEADY
    if kind is BuiltinFunctionType:
        owner = value.__self__
        return value.__name__ not in _UNSTEADY and (
            owner is None or (isinstance(owner, ModuleType) and is_steady(owner))
        )
    return kind.__module__.startswith(_OUR_VALUES) or kind in _OF_NUMPY


def root_of(module: object) -> str:
    return str(module).partition(".")[0]
