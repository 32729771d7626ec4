"""What a function reads beside its arguments: globals, closure cells, and what lies in them, as a key.

A kernel is traced once, and what it and its helpers read of Python then is in its text. Two keys are equal only where
a kernel would be traced alike: 2 and 2.0, 0.0 and -0.0, 1 and True differ, nested too. A launch has no time to compute
a key: it asks a guard, one function written for these names, which compares objects by identity.
"""

from __future__ import annotations

import builtins
import operator
import os
import sys
from array import array
from collections import ChainMap, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ptxdsl.errors import bytecode

Key: TypeAlias = tuple[Any, ...]  # hashable
# Whether all is as it was; may be False where the key is still the same. Raises NameError where a variable is gone.
Guard: TypeAlias = Callable[[], bool]

MOST_CODES = 1024
MOST_ITEMS = 16  # of a list that are compared one by one
_PLAIN = (int, str, bytes, bool, complex, type(None), type(...))
_OURS = "ptxdsl"
_OUR_VALUES = ("ptxdsl.types", "ptxdsl.trace", "ptxdsl.layout")  # modules of whose types values do not change
_STEADY = {_OURS, "builtins", "math", "cmath", "operator", "_operator", "numpy"}  # modules that are not written to
_UNSTEADY = {"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__"}
_READ_GLOBALS = (globals, eval, exec)
_OF_NUMPY = (np.ufunc, type(np.where))
_GLOBAL, _CELL = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_METHODS = (staticmethod, classmethod)
_Environment = type(os.environ)


class UnsteadyError(Exception):
    """A function reads what may change without a trace in its variables."""


class Traceable:
    """Base of what stands for functions of the user's that are traced where it is called."""

    @property
    def traced(self) -> tuple[object, ...]:
        """The function, and what else is read where it is traced."""
        raise NotImplementedError


class Read(NamedTuple):
    """A global or free variable that code names, and the attributes that it reads of it: `settings.tile.m`."""

    is_cell: bool
    name: str
    attributes: tuple[str, ...]


_IMPORTED_OS = Read(False, "__import__", ("os",))


@dataclass(eq=False, slots=True)
class Captures:
    """What a function reads: the key, the objects that it knows by their addresses, and the quick check.

    `make_guard` writes that; None where nothing can change.
    """

    key: Key
    alive: Sequence[object]
    make_guard: Callable[[], Guard | None] | None
    _guard: Guard | None = None

    @property
    def guard(self) -> Guard | None:
        """The quick check for all that was read; written when it is first asked for."""
        if self.make_guard is not None:
            self._guard, self.make_guard = self.make_guard(), None
        return self._guard

    def hold(self) -> bool:
        """Whether all is as it was, as far as the quick check can tell."""
        try:
            return self.guard is None or self.guard()
        except (NameError, AttributeError, LookupError, TypeError):  # a variable is gone, or something else
            return False


NOTHING = Captures((), (), None)
_dataclasses: dict[int, tuple[Any, Key]] = {}  # keys of constants by their addresses


def captures(functions: Iterable[object], kernel: object = None) -> Captures:
    """What a kernel's function and its helpers read; functions and classes that it gets as values are given too. The
    defaults of the function `kernel` were taken when it was declared.

    Objects of the caller's classes are known by identity, and by the attributes that code names.
    """
    read = [each for each in functions if not is_steady(each)]
    if not read:
        return NOTHING
    keys = _Captured(kernel=kernel)
    key = tuple([keys.key(each) for each in read])
    return Captures(key, keys.alive, keys.guard)


def attributes_of(instance: object) -> FunctionType:
    """A function that reads all attributes that an object holds now, for the key of a method."""
    slots = [name for kind in type(instance).__mro__ for name in getattr(kind, "__slots__", ())]
    names = sorted({*getattr(instance, "__dict__", {}), *slots} - {"__dict__", "__weakref__"})
    read = ", ".join([f"instance.{name}" for name in names if name.isidentifier() and hasattr(instance, name)])
    scope: dict[str, Any] = {}
    exec(f"def around(instance):\n return lambda: ({read})", scope)
    reader: FunctionType = scope["around"](instance)
    return reader


def combined(parts: Sequence[Captures]) -> Captures:
    """What several functions read."""
    if not any(part.key for part in parts):
        return NOTHING

    def make_guard() -> Guard | None:
        guards = [part.guard for part in parts if part.guard is not None]
        return (lambda: all([guard() for guard in guards])) if guards else None

    return Captures(tuple(part.key for part in parts), [each for part in parts for each in part.alive], make_guard)


def constant_key(value: object) -> Key:
    """What tells the value of a constant, which is hashable, from others."""
    return _Constants().key(value)


class Keys:
    """Computes keys; `alive` are the objects in them that are known by their address."""

    def __init__(self) -> None:
        self.alive: list[object] = []
        self.functions: list[FunctionType] = []  # in the order in which their keys were begun

    def unknown(self, value: object) -> Key:
        """The key of an object of which nothing is known."""
        raise UnsteadyError

    def key(self, value: Any) -> Key:
        """What tells a value from others."""
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is float:
            return kind, value.hex()  # which tells the zeros apart
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
        """The key of what is neither plain nor ours: numbers of numpy, tuples and frozen dataclasses by their parts."""
        if isinstance(value, np.generic):
            return type(value), value.tobytes()
        if isinstance(value, tuple):
            return type(value), *map(self.key, value)
        return self.unknown(value)

    def known(self, value: object) -> Key:
        """The address of an object that stays alive with the key."""
        self.alive.append(value)
        return (id(value),)

    def function(self, function: FunctionType) -> Key:
        """The code of a function and what it reads; of one that was met before, its number."""
        if function in self.functions:
            return "again", self.functions.index(function)
        self.functions.append(function)
        self.alive.append(function.__code__)
        attached = vars(function), function.__defaults__, function.__kwdefaults__
        return id(function.__code__), *self.read(function), *map(self.key, attached)

    def read(self, function: FunctionType) -> Iterator[Key]:
        """The keys of the variables that a function names."""
        if any(read.name == "__import__" for read in reads(function.__code__)):
            self.unknown(builtins.__import__)
        for read in _variables(function):
            yield self.key(_value(function, read))


@lru_cache(maxsize=MOST_CODES)
def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass."""
    return tuple([field.name for field in fields(kind)])


class _Itself:
    """Stands for an object that cannot be hashed: it is equal to no other one."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


class _Constants(Keys):
    """Constants of kernels are hashable, and known by what is in them."""

    def key(self, value: object) -> Key:
        return (value,) if type(value) is partial else super().key(value)

    def known(self, value: object) -> Key:
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
    """What a kernel captures, with a quick check that it is the same."""

    def __init__(self, within: frozenset[int] = frozenset(), kernel: object = None) -> None:
        """`within` are the addresses of objects whose contents are looked at: what leads back to them ends there."""
        super().__init__()
        self.within, self.kernel = within, kernel
        self.scopes: dict[Hashable, _Scope] = {}
        self.handed_on: set[int] = set()
        self.contents: list[_Content] = []
        self.classes: list[type] = []

    def unknown(self, value: object) -> Key:
        if isinstance(value, np.ndarray):
            return type(value), str(value.dtype), value.shape, value.tobytes()
        if isinstance(value, type) and value not in self.classes:
            self.classes.append(value)
            return *self.known(value), *map(self.key, _methods(value))
        if isinstance(value, MethodType):
            return *self.known(value.__self__), *self.key(value.__func__)
        if isinstance(value, dict | ChainMap | _Environment):  # of a class of its own
            return type(value), *[self.key(item) for pair in value.items() for item in pair]
        return self.known(value)

    def function(self, function: FunctionType) -> Key:
        key = super().function(function)
        scope = self.scope(function)
        for defaults in ("__defaults__", "__kwdefaults__"):
            if function is not self.kernel and key[0] != "again" and (value := getattr(function, defaults)):
                self.watched(value, scope, f"{scope.name_of(function)}.{defaults}")
        return key

    def scope(self, function: FunctionType) -> _Scope:
        return self.scopes.setdefault(_scope(function), _Scope(function))

    def read(self, function: FunctionType) -> Iterator[Key]:
        scope = self.scope(function)
        for read in reads(function.__code__):
            if not read.name.isidentifier():  # what pytest puts into functions with `assert`
                continue
            value = _value(function, read)
            path = read.name
            yield self.watched(value, scope, path)
            if read == _IMPORTED_OS:
                yield self.watched(os.environ, scope, scope.name_of(os.environ))
            if any(value is reader for reader in _READ_GLOBALS):
                for name, part in _held(function.__globals__).items():
                    yield self.watched(part, scope, name)
            for attribute in read.attributes:
                if is_steady(value) or not _has(value, attribute):
                    break
                value = getattr(value, attribute)
                if isinstance(value, MethodType):  # a new object each time
                    yield self.key(value.__func__)
                    break
                path += f".{attribute}"
                yield self.watched(value, scope, path)
            else:
                yield from self.attributes(value, scope, path)

    def attributes(self, value: object, scope: _Scope, path: str) -> Iterator[Key]:
        """The keys of all numbers, texts and containers of a module, a class or an object that code binds or hands on:
        it may read each of them, in a way that its names do not tell."""
        if id(value) in self.handed_on or not _is_namespace(value, _root(scope.function.__module__)):
            return
        self.handed_on.add(id(value))
        held = {name: part for name, part in vars(value).items() if name.isidentifier() and _has(value, name)}
        for name, part in held.items():
            if not name.startswith("__") and not isinstance(part, ModuleType | type):
                if _is_data(part):
                    yield self.watched(part, scope, f"{path}.{name}")
                yield from self.attributes(part, scope, f"{path}.{name}")

    def watched(self, value: object, scope: _Scope, path: str) -> Key:
        """The key of a variable; what may change while it is the same object is compared by what is in it as well."""
        scope.values[path] = value
        items = _items(value)
        if items is not None:
            scope.values.update({f"{path}{item}": part for item, part in items.items()})
        elif _is_mutable(value) and id(value) not in self.within:
            key = _Captured(self.within | {id(value)}).key(value)
            self.contents.append(_Content(value, _parts(value), key))
        return self.key(value)

    def guard(self) -> Guard | None:
        """The quick check for all that was read; None where nothing can change."""
        check: Guard | None = partial(_same_contents, tuple(self.contents)) if self.contents else None
        for scope in self.scopes.values():
            if scope.values:
                check = _comparison(scope, check)
        return check


@dataclass(eq=False, slots=True)
class _Scope:
    """Globals and cells of functions, with what was read there by the text that leads to it, and other names in it."""

    function: FunctionType
    values: dict[str, object] = field(default_factory=dict)
    named: dict[str, object] = field(default_factory=dict)

    def name_of(self, value: object) -> str:
        name = f"_captured_of_{id(value)}"
        self.named[name] = value
        return name


class _Content(NamedTuple):
    """What may change and stay the same object; `parts` are known where none of them can change itself."""

    value: object
    parts: list[object] | None
    key: Key

    def is_same(self) -> bool:
        """Whether it holds what it held: the same parts, or equal ones."""
        known, parts = self.parts, None if self.parts is None else _parts(self.value)
        if parts and known and len(parts) == len(known) and all(map(operator.is_, parts, known)):
            return True
        return _Captured(frozenset({id(self.value)})).key(self.value) == self.key


def _parts(value: object) -> list[object] | None:
    """The parts of a list or dict of what does not change; None for others."""
    value = getattr(value, "_data", value) if isinstance(value, _Environment) else value  # a dict, as the system has it
    parts = value if type(value) is list else [*value, *value.values()] if type(value) is dict else None
    return None if parts is None or any(map(_is_mutable, parts)) else list(parts)


def _same_contents(contents: tuple[_Content, ...]) -> bool:
    return all(content.is_same() for content in contents)


def _comparison(scope: _Scope, further: Guard | None) -> Guard:
    """A function with the globals and cells of another one: whether these names still mean these objects.

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
    """Functions with the same globals and cells can be checked together."""
    return id(function.__globals__), tuple(map(id, function.__closure__ or ()))


def _has(value: object, attribute: str) -> bool:
    """Whether a module, a class or an object holds an attribute itself, so that no code runs where it is read."""
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    inherited = next((vars(kind)[attribute] for kind in kinds if attribute in vars(kind)), None)
    if isinstance(inherited, property) or (
        hasattr(type(inherited), "__get__") and not isinstance(inherited, (FunctionType, *_METHODS))
    ):
        return type(inherited).__name__ == "member_descriptor" and hasattr(value, attribute)
    return inherited is not None or attribute in getattr(value, "__dict__", {})


def _methods(value: type) -> Iterator[FunctionType]:
    """The functions of a class and of its bases, but for those of libraries."""
    for kind in value.__mro__:
        if not is_steady(kind):
            for member in vars(kind).values():
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    yield function


def _items(value: object) -> dict[str, Any] | None:
    """The parts of a short list or dict of what does not change, by the text that leads to each; None for others."""
    if type(value) is list:
        items = {f"[{n}]": part for n, part in enumerate(value)}
    elif type(value) is dict and all(type(name) in (str, int) for name in value):
        items = {f"[{name!r}]": part for name, part in value.items()}
    else:
        return None
    if len(items) > MOST_ITEMS or any(map(_is_mutable, items.values())):
        return None
    return items | {".__len__()": len(items)}


def _is_mutable(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_mutable, value))
    return isinstance(
        value, list | dict | set | deque | bytearray | np.ndarray | array | memoryview | ChainMap | _Environment
    )


def _is_data(value: Any, deep: int = 4) -> bool:
    """Whether a value is a number, a text or an array, or consists of such alone, not too deeply."""
    if isinstance(value, dict | ChainMap | list | tuple | set | frozenset | deque):
        parts = [*value, *value.values()] if isinstance(value, dict | ChainMap) else value
        return deep > 0 and all([_is_data(part, deep - 1) for part in parts])
    return type(value) in (*_PLAIN, float) or isinstance(value, np.generic) or _is_mutable(value)


def _held(names: dict[str, Any]) -> dict[str, Any]:
    """The data among the variables of a module."""
    return {name: value for name, value in names.items() if not name.startswith("__") and _is_data(value)}


def _is_namespace(value: object, package: str) -> bool:
    """Whether an object is there for its attributes: a module, a class or an object of the caller's."""
    if isinstance(value, ModuleType):
        installed = "site-packages" in str(getattr(value, "__file__", ""))
        return not (installed or is_steady(value) or _root(value.__name__) in sys.stdlib_module_names)
    if isinstance(value, type):
        return _root(value.__module__) == package != _OURS
    kind = type(value)
    known = kind is SimpleNamespace or is_dataclass(kind) or _root(kind.__module__) == package
    return known and hasattr(value, "__dict__") and _root(kind.__module__) != _OURS


def _value(function: FunctionType, read: Read) -> Any:
    """What a variable means now; None for one that is not set."""
    if read.is_cell:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return _content(cells[read.name])
    return function.__globals__.get(read.name, getattr(builtins, read.name, None))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is set later
        return None


@lru_cache(maxsize=MOST_CODES)
def reads(code: CodeType) -> tuple[Read, ...]:
    """The variables around a function that it, or a function in it, names, each with the attributes behind it."""
    return tuple(dict.fromkeys(_reads(code, code.co_freevars)))


def _reads(code: CodeType, free: Sequence[str]) -> Iterator[Read]:
    listing = bytecode(code)
    for n, instruction in enumerate(listing):
        name = str(instruction.argval)
        if instruction.opname == "IMPORT_NAME":
            yield Read(False, "__import__", (name,))
        elif instruction.opname in _GLOBAL:
            yield Read(False, name, _attributes(listing[n + 1 :]))
        elif instruction.opname in _CELL and name in free and name != "__class__":
            yield Read(True, name, _attributes(listing[n + 1 :]))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _reads(constant, [name for name in free if name in constant.co_freevars])


def _attributes(listing: Sequence[Any]) -> tuple[str, ...]:
    names = []
    for instruction in listing:
        if instruction.opname not in _ATTRIBUTE:
            break
        names.append(str(instruction.argval))
    return tuple(names)


def _variables(function: FunctionType) -> Iterator[Read]:
    """The variables that a function names, each once, without the attributes."""
    return iter(dict.fromkeys(read._replace(attributes=()) for read in reads(function.__code__)))


def is_ours(function: FunctionType) -> bool:
    """Whether a function is part of this package, whose modules do not change."""
    return _root(function.__globals__.get("__name__")) == _OURS and not function.__closure__


def _root(module: object) -> str:
    return str(module).partition(".")[0]


def is_steady(value: Any) -> bool:
    """Whether an object means the same as long as it is the same."""
    kind = type(value)
    if kind is FunctionType:
        return is_ours(value)
    if isinstance(value, ModuleType):
        return _root(value.__name__) in _STEADY
    if isinstance(value, type):
        return _root(value.__module__) in _STEADY
    if kind is BuiltinFunctionType:
        owner = value.__self__
        return value.__name__ not in _UNSTEADY and (
            owner is None or (isinstance(owner, ModuleType) and is_steady(owner))
        )
    return kind.__module__.startswith(_OUR_VALUES) or kind in _OF_NUMPY


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


def _bytes_key(keys: Keys, value: bytearray) -> Key:
    return bytearray, bytes(value)


_CONTAINERS: dict[type, Callable[[Keys, Any], Key]] = {
    dict: _mapping_key, set: _set_key, frozenset: _set_key, partial: _partial_key, deque: _deque_key,
    bytearray: _bytes_key, array: _buffer_key, memoryview: _buffer_key,
}  # fmt: skip
