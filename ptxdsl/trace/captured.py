"""Compute a key for the Python state that a function reads: globals, closure cells, and their contents.

A kernel is traced once, so the Python state it and its helpers read is baked into its text. Two keys are equal only if
the traces would be equal: 2 and 2.0, 0.0 and -0.0, 1 and True differ, also when nested. A launch is too short to
compute a key; it calls a guard, a function generated for these names that compares objects by identity.
"""

from __future__ import annotations

import builtins
import functools
import operator
import os
import sys
from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, partial
from numbers import Number
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ptxdsl.trace.holders import (
    MAPPINGS,
    PLAIN,
    PROPERTIES,
    SEQUENCES,
    VIEWS,
    Environment,
    attributes_in,
    data_in,
    descriptors_of,
    function_of,
    holds,
    is_data,
    is_mutable,
    is_namespace,
    is_ours,
    is_steady,
    items_of,
    kinds_of,
    leads_to,
    methods_of,
    objects_in,
    objects_without_path,
    root_of,
)
from ptxdsl.trace.reads import Read, read_of_object, reads

Key: TypeAlias = tuple[Any, ...]  # hashable
# True if nothing changed; may be False though the key is equal. Raises NameError for a deleted variable.
Guard: TypeAlias = Callable[[], bool]

MOST_CODES = 1024
_READ_GLOBALS = (globals, eval, exec)
_Cached = functools._lru_cache_wrapper


class UnsteadyError(Exception):
    """A function reads state whose changes its variables do not show."""


class Traceable:  # no ABC: isinstance is many times slower with one
    """Base class of objects that call user functions while tracing."""

    @property
    @abstractmethod
    def traced(self) -> tuple[object, ...]:
        """The function, and other objects read when it is traced."""


_IMPORTED_OS = Read(False, "__import__", ("os",))


@dataclass(eq=False, slots=True)
class Captures:
    """The state that functions read: its key, the objects that the key identifies by address, and a guard.

    `make_guard` creates the guard; None if nothing can change.
    """

    key: Key
    alive: Sequence[object]
    make_guard: Callable[[], Guard | None] | None
    _guard: Guard | None = None

    @property
    def guard(self) -> Guard | None:
        """The guard for all state that was read, created on first use."""
        if self.make_guard is not None:
            self._guard, self.make_guard = self.make_guard(), None
        return self._guard

    def hold(self) -> bool:
        """True if the guard detects no change."""
        try:
            return self.guard is None or self.guard()
        except (NameError, AttributeError, LookupError, TypeError):  # a variable was deleted, for example
            return False


NOTHING = Captures((), (), None)
_dataclasses: dict[int, tuple[Any, Key]] = {}  # keys of constants by address


def captures(functions: Iterable[object], kernel: object = None) -> Captures:
    """Return the state that a kernel's function and its helpers read, including functions and classes passed as values.

    The defaults of the function `kernel` were evaluated at its declaration and are excluded. Instances of user classes
    are identified by address and by the attributes that the code names.
    """
    read = [each for each in functions if not is_steady(each)]
    if not read:
        return NOTHING
    keys = _Captured(kernel=kernel)
    key = tuple([keys.key(each) for each in read])
    return Captures(key, keys.alive, keys.guard)


def attributes_of(instance: object) -> FunctionType:
    """Return a function that reads all current attributes of an object, for the key of a method."""
    slots = [name for kind in type(instance).__mro__ for name in getattr(kind, "__slots__", ())]
    names = sorted({*getattr(instance, "__dict__", {}), *slots} - {"__dict__", "__weakref__"})
    read = ", ".join([f"instance.{name}" for name in names if name.isidentifier() and hasattr(instance, name)])
    scope: dict[str, Any] = {}
    exec(f"def around(instance):\n return lambda: ({read})", scope)
    reader: FunctionType = scope["around"](instance)
    return reader


def combined(parts: Sequence[Captures]) -> Captures:
    """Merge the captures of several functions."""
    if not any(part.key for part in parts):
        return NOTHING

    def make_guard() -> Guard | None:
        guards = [part.guard for part in parts if part.guard is not None]
        return (lambda: all([guard() for guard in guards])) if guards else None

    return Captures(tuple(part.key for part in parts), [each for part in parts for each in part.alive], make_guard)


def constant_key(value: object) -> Key:
    """Return the key of a hashable constant."""
    return _Constants().key(value)


class Keys:
    """Computes keys. `alive` holds the objects that the key identifies by address."""

    def __init__(self) -> None:
        self.alive: list[object] = []
        self.functions: list[FunctionType] = []  # in visiting order

    def unknown(self, value: object) -> Key:
        """Return the key of an object of an unknown class."""
        raise UnsteadyError

    def key(self, value: Any) -> Key:
        """Return a key that distinguishes a value from all others."""
        kind = type(value)
        if kind in PLAIN:
            return kind, value
        if kind is float:
            return kind, value.hex()  # distinguishes 0.0 from -0.0
        if kind in (list, tuple):
            return kind, *map(self.key, value)
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](self, value)
        if kind is FunctionType and not is_ours(value):
            return self.function(value)
        if isinstance(value, Traceable):
            return *self.known(value), *map(self.key, value.traced)
        if is_steady(value):
            return self.known(value)
        return self.other(value)

    def other(self, value: object) -> Key:
        """Return the key of a numpy number, tuple, frozen dataclass or other object, by its parts where possible."""
        if isinstance(value, np.generic):
            return type(value), value.tobytes()
        if isinstance(value, tuple):
            return type(value), *map(self.key, value)
        return self.unknown(value)

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
        return id(function.__code__), *self.read(function), *map(self.key, attached)

    def read(self, function: FunctionType) -> Iterator[Key]:
        """Yield the keys of the variables that a function names."""
        if any(read.name == "__import__" for read in reads(function.__code__)):
            self.unknown(builtins.__import__)
        for read in _variables(function):
            yield self.key(_value(function, read))


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


class _Captured(Keys):
    """The state that a kernel captures, with its guard."""

    def __init__(self, within: frozenset[int] = frozenset(), kernel: object = None) -> None:
        """Start a key. `within` holds the addresses of objects being visited, so that cycles end."""
        super().__init__()
        self.within, self.kernel = within, kernel
        self.scopes: dict[Hashable, _Scope] = {}
        self.handed_on: set[int] = set()
        self.members: set[tuple[int, str]] = set()
        self.contents: list[_Content] = []
        self.classes: list[type] = []

    def unknown(self, value: object) -> Key:
        if isinstance(value, np.ndarray):
            return type(value), str(value.dtype), value.shape, value.tobytes()
        if isinstance(value, type) and value not in self.classes:
            self.classes.append(value)
            return *self.known(value), *map(self.key, methods_of(value))
        if isinstance(value, MethodType):
            return *self.known(value.__self__), *self.key(value.__func__)
        if isinstance(value, (*MAPPINGS, Environment)):  # subclasses of dict and mappings
            return type(value), *[self.key(item) for pair in value.items() for item in pair]
        if isinstance(value, (*SEQUENCES, *VIEWS)):
            return type(value), *map(self.key, value)
        if isinstance(value, _Cached):
            return *self.known(value), *self.key(value.__wrapped__)
        return self.known(value)

    def function(self, function: FunctionType) -> Key:
        key = super().function(function)
        scope = self.scope(function)
        for defaults in ("__defaults__", "__kwdefaults__"):
            if function is not self.kernel and key[0] != "again" and (value := getattr(function, defaults)):
                key += self.watched(value, scope, f"{scope.name_of(function)}.{defaults}")
        return key

    def scope(self, function: FunctionType) -> _Scope:
        return self.scopes.setdefault(_scope(function), _Scope(function))

    def read(self, function: FunctionType) -> Iterator[Key]:
        scope = self.scope(function)
        for read in reads(function.__code__):
            if not read.name.isidentifier():  # names that pytest inserts for `assert`
                continue
            value = _value(function, read)
            path = read.name
            yield self.watched(value, scope, path)
            if read == _IMPORTED_OS:
                yield self.watched(os.environ, scope, scope.name_of(os.environ))
            if any(value is reader for reader in _READ_GLOBALS):
                for name, part in data_in(function.__globals__).items():
                    yield self.watched(part, scope, name)
            if read.name == "__import__" and read.attributes:
                yield from self.imported(read.attributes, function.__code__, scope)
                continue
            for attribute in read.attributes:
                if is_steady(value) or not holds(value, attribute):
                    yield from self.member(value, attribute, scope, path)
                    break
                value = getattr(value, attribute)
                path += f".{attribute}"
                yield self.watched(value, scope, path)
            else:
                yield from self.attributes(value, scope, path)

    def imported(self, names: Sequence[str], code: CodeType, scope: _Scope) -> Iterator[Key]:
        """Yield keys for a user module imported inside a function: its data and the members that the function names."""
        module = sys.modules.get(names[0])
        if module is None or not is_namespace(module, root_of(scope.function.__module__)):
            return
        path = scope.name_of(module)
        yield from self.attributes(module, scope, path)
        for name in sorted({*code.co_names}.intersection(vars(module))):
            yield self.watched(vars(module)[name], scope, f"{path}.{name}")
            yield from self.attributes(vars(module)[name], scope, f"{path}.{name}")

    def member(self, value: Any, name: str, scope: _Scope, path: str) -> Iterator[Key]:
        """Yield keys for a method or property of an object, and for the attributes it reads."""
        if is_steady(value) or (id(value), name) in self.members:
            return
        self.members.add((id(value), name))
        holder = next((vars(kind)[name] for kind in kinds_of(value) if name in vars(kind)), None)
        function = function_of(holder)
        if function is not None:
            yield self.key(function)
        yield from self.descriptors(value, scope)
        if function is None or is_ours(function) or not is_namespace(value, root_of(scope.function.__module__)):
            yield from self.attributes(value, scope, path)
            return
        if isinstance(holder, PROPERTIES):
            scope.values[f"{path}.__class__.{name}"] = holder
        else:
            scope.values[f"{path}.{name}.__func__"] = function
        read = read_of_object(function.__code__)
        if read is None:
            yield from self.attributes(value, scope, path)
        for each in sorted(read or ()):
            if holds(value, each):
                part = getattr(value, each)
                yield self.watched(part, scope, f"{path}.{each}")
                yield from self.attributes(part, scope, f"{path}.{each}")
            else:
                yield from self.member(value, each, scope, path)

    def attributes(self, value: Any, scope: _Scope, path: str) -> Iterator[Key]:
        """Yield keys for all numbers, strings and containers of a module, class or object that code binds or passes on.

        Such code may read any of them, even if it does not name them.
        """
        if id(value) in self.handed_on:
            return
        self.handed_on.add(id(value))
        for step, part in leads_to(value).items():
            if is_mutable(part):
                yield self.watched(part, scope, f"{path}{step}")
            yield from self.attributes(part, scope, f"{path}{step}")
        if isinstance(value, ContextVar):
            yield self.watched(value.get(None), scope, f"{path}.get(None)")
        package = root_of(scope.function.__module__)
        if not is_namespace(value, package):
            return
        if not isinstance(value, ModuleType):
            yield from map(self.key, methods_of(value, package))
            yield from self.descriptors(value, scope)
        for name, part in attributes_in(value).items():
            if is_data(part) or objects_in(part):
                yield self.watched(part, scope, f"{path}.{name}")
            yield from self.attributes(part, scope, f"{path}.{name}")

    def descriptors(self, value: Any, scope: _Scope) -> Iterator[Key]:
        """Yield keys for an object's descriptors and their contents."""
        for kind, members in descriptors_of(value).items():
            for name, member in members.items():
                path = f"{scope.name_of(kind)}.__dict__[{name!r}]"
                scope.values[path] = member
                yield from self.attributes(member, scope, path)

    def watched(self, value: object, scope: _Scope, path: str) -> Key:
        """Return the key of a variable; mutable objects are also compared by content."""
        scope.values[path] = value
        if type(value) is FunctionType and not is_ours(value):
            scope.values[f"{path}.__code__"] = value.__code__
        items = items_of(value)
        if items is not None:
            scope.values.update({f"{path}{item}": part for item, part in items.items()})
        elif is_mutable(value) and id(value) not in self.within:
            key = _Captured(self.within | {id(value)}).key(value)
            self.contents.append(_Content(value, _parts(value), key))
        objects = {f"{path}{item}": part for item, part in objects_in(value).items()}
        objects |= {scope.name_of(part): part for part in objects_without_path(value)}
        return *self.key(value), *[each for at, part in objects.items() for each in self.inside(part, scope, at)]

    def inside(self, value: object, scope: _Scope, path: str) -> Iterator[Key]:
        """Yield keys for the contents of an element of a list, tuple or dict."""
        if objects_in(value) and id(value) not in self.handed_on:
            self.handed_on.add(id(value))
            yield self.watched(value, scope, path)
        yield from self.attributes(value, scope, path)

    def guard(self) -> Guard | None:
        """Return the guard for all state that was read; None if nothing can change."""
        check: Guard | None = partial(_same_contents, tuple(self.contents)) if self.contents else None
        for scope in self.scopes.values():
            if scope.values:
                check = _comparison(scope, check)
        return check


@dataclass(eq=False, slots=True)
class _Scope:
    """The globals and cells of a function, with the values read there by access path, and further names for them."""

    function: FunctionType
    values: dict[str, object] = field(default_factory=dict)
    named: dict[str, object] = field(default_factory=dict)

    def name_of(self, value: object) -> str:
        name = f"_captured_of_{id(value)}"
        self.named[name] = value
        return name


class _Content(NamedTuple):
    """A mutable object and its contents; `parts` is set if none of the parts is mutable."""

    value: object
    parts: list[object] | None
    key: Key

    def is_same(self) -> bool:
        """True if the object holds the same or equal parts as before."""
        known, parts = self.parts, None if self.parts is None else _parts(self.value)
        if parts and known and len(parts) == len(known) and all(map(operator.is_, parts, known)):
            return True
        return _Captured(frozenset({id(self.value)})).key(self.value) == self.key


def _parts(value: object) -> list[object] | None:
    """Return the parts of a list or dict of immutable values; None for other objects."""
    value = getattr(value, "_data", value) if isinstance(value, Environment) else value  # the dict behind os.environ
    parts = value if type(value) is list else [*value, *value.values()] if type(value) is dict else None
    return None if parts is None or any(map(is_mutable, parts)) else list(parts)


def _same_contents(contents: tuple[_Content, ...]) -> bool:
    return all(content.is_same() for content in contents)


def _comparison(scope: _Scope, further: Guard | None) -> Guard:
    """Compile a function with the globals and cells of another one that checks that these paths still yield these
    objects.

    Python looks up the globals of a function in a few nanoseconds.
    """
    function, names = scope.function, {f"_captured_{n}": value for n, value in enumerate(scope.values.values())}
    tests = [f"{path} is {name}" for path, name in zip(scope.values, names, strict=True)]
    names |= scope.named
    if further is not None:
        names["_captured_further"] = further
        tests.append("_captured_further()")
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    text = (
        f"def around({', '.join(cells)}):\n def check({', '.join(names)}): return {' and '.join(tests)}\n return check"
    )
    around = next(c for c in compile(text, "<captured>", "exec").co_consts if isinstance(c, CodeType))
    code = next(c for c in around.co_consts if isinstance(c, CodeType))
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, function.__globals__, "check", tuple(names.values()), closure)


def _scope(function: FunctionType) -> Hashable:
    """Return a key for functions with the same globals and cells, which one guard checks together."""
    return id(function.__globals__), tuple(map(id, function.__closure__ or ()))


def _value(function: FunctionType, read: Read) -> Any:
    """Return the current value of a variable; None if it is unset."""
    if read.is_cell:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return _content(cells[read.name])
    return function.__globals__.get(read.name, getattr(builtins, read.name, None))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _variables(function: FunctionType) -> Iterator[Read]:
    """Yield the variables that a function names, each once and without attributes."""
    return iter(dict.fromkeys(read._replace(attributes=()) for read in reads(function.__code__)))


def _mapping_key(keys: Keys, value: dict[object, object]) -> Key:
    return dict, *[keys.key(item) for pair in value.items() for item in pair]


def _set_key(keys: Keys, value: Any) -> Key:
    return type(value), frozenset(map(keys.key, value))


def _partial_key(keys: Keys, value: Any) -> Key:
    return partial, *map(keys.key, (value.func, value.args, value.keywords, vars(value)))


def _deque_key(keys: Keys, value: deque[object]) -> Key:
    return deque, value.maxlen, *map(keys.key, value)


def _buffer_key(keys: Keys, value: Any) -> Key:
    return type(value), getattr(value, "typecode", ""), value.tobytes()


def _complex_key(keys: Keys, value: complex) -> Key:
    return complex, value.real.hex(), value.imag.hex()


def _range_key(keys: Keys, value: range) -> Key:
    return range, value.start, value.stop, value.step  # ranges with equal elements compare equal


def _bytes_key(keys: Keys, value: bytearray) -> Key:
    return bytearray, bytes(value)


_CONTAINERS: dict[type, Callable[[Keys, Any], Key]] = {
    dict: _mapping_key, set: _set_key, frozenset: _set_key, partial: _partial_key, deque: _deque_key,
    bytearray: _bytes_key, array: _buffer_key, memoryview: _buffer_key, complex: _complex_key, range: _range_key,
}  # fmt: skip
