"""The Python state that a kernel reads: its key, and a guard that detects changes before each launch.

A kernel is traced once, so the Python state that it and its helpers read is compiled into its text. The walk from its
function follows variables, and the attributes whose names the code has. A launch is too short for such a walk; it calls
a guard, a function generated for these objects that compares their contents by identity.
"""

from __future__ import annotations

import builtins
import os
import sys
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ptxdsl.errors import Location, TraceError, bytecode
from ptxdsl.trace.contents import (
    ALWAYS_READ,
    MOST_CODES,
    AttributeNames,
    Key,
    ObjectContents,
    Traceable,
    contents,
    is_data,
    is_library,
    is_steady,
    plain_key,
)
from ptxdsl.trace.instruction import article

# True if nothing changed; may be False though the key is equal. Raises NameError for a deleted variable.
Guard: TypeAlias = Callable[[], bool]

_READ_GLOBALS = (globals, eval, exec)
_OF_ENVIRONMENT = ("os", "environ", "getenv")
_BY_NAME = {"getattr", "hasattr", "vars", "dir", "__dict__", "globals", "eval", "exec", "attrgetter", "methodcaller"}


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
        except (NameError, AttributeError, LookupError, TypeError, ValueError):  # a variable was deleted, for example
            return False


NOTHING = Captures((), (), None)


def combined(parts: Sequence[Captures]) -> Captures:
    """Merge the captures of several functions."""
    if not any(part.key for part in parts):
        return NOTHING

    def make_guard() -> Guard | None:
        guards = [part.guard for part in parts if part.guard is not None]
        return (lambda: all([guard() for guard in guards])) if guards else None

    return Captures(tuple(part.key for part in parts), [each for part in parts for each in part.alive], make_guard)


def captures(
    functions: Iterable[object], kernel: Any = None, constants: Mapping[str, object] = MappingProxyType({})
) -> Captures:
    """Return the state that functions and their helpers read, and that of constants of the kernel, by name.

    The defaults of the function `kernel` were evaluated at its declaration and are excluded. Instances of user classes
    are identified by address and by the attributes that the code names. Raises TraceError for an object that is read
    and whose contents cannot be compared.
    """
    named = [(getattr(each, "__name__", "an annotation"), each) for each in functions]
    read = [(n, each) for n, each in (*named, *constants.items()) if not is_steady(each) or isinstance(each, Traceable)]
    if not read:
        return NOTHING
    names: frozenset[str] = frozenset()
    while True:
        walk = _Captured(names, kernel)
        key = tuple([walk.key(each, name) for name, each in read])
        if walk.collected <= names:
            return Captures(key, walk.alive, walk.guard)
        names |= walk.collected


class _Captured:
    """One walk through the objects that functions may read, for their key and guard.

    `names` are the attributes that the code of these functions reads, as far as earlier walks have found it.
    """

    def __init__(self, names: frozenset[str], kernel: Any) -> None:
        self.names = AttributeNames(names, not names.isdisjoint(_BY_NAME))
        self.kernel, self.collected = kernel, set(names)
        self.alive: list[object] = []
        self.visited: dict[int, int] = {}
        self.scopes: dict[Hashable, _Scope] = {}
        self.holders: list[tuple[object, ObjectContents, Sequence[object]]] = []
        self.read: Read | None = None  # the innermost read of user code

    def key(self, value: object, path: str, is_read: bool = True) -> Key:
        """Return the key of an object at a path. It is refused if it is read and its type hides what it holds."""
        plain = plain_key(value)
        if plain is not None:
            return plain
        if id(value) in self.visited:
            return "again", self.visited[id(value)]
        if is_steady(value) and not isinstance(value, Traceable):
            return self.known(value)
        held = self.contents(value)
        if held is None:
            if is_read:
                self.refuse(value, path)
            return self.known(value)
        self.visited[id(value)] = len(self.visited)
        self.known(value)
        key = self.function(value, is_read) if isinstance(value, FunctionType) else ()
        self.holders.append((value, held, held.items(value) if held.items else ()))
        parts = [self.key(part, f"{path}{step}", is_read and self.is_named(step)) for step, part in held.parts.items()]
        is_value = isinstance(value, _BY_CONTENT)
        return type(value) if is_value else id(value), *key, tuple(held.parts), *parts

    def contents(self, value: object) -> ObjectContents | None:
        """Return what the guard compares of an object."""
        parts: dict[str, object]
        if isinstance(value, Traceable):
            parts = {f".traced[{n}]": each for n, each in enumerate(value.traced)}
            return ObjectContents(parts, {}, lambda traceable: traceable.traced)
        if not isinstance(value, FunctionType):
            return contents(value, self.names)
        parts = {".__code__": value.__code__} if value is not self.kernel else {}
        if is_library(value):
            return ObjectContents(parts)
        if value is not self.kernel:  # whose defaults were evaluated at its declaration
            parts |= {step: held for step in _DEFAULTS if (held := getattr(value, step[1:]))}
        attached = {f".{name}": part for name, part in vars(value).items() if name in self.names}
        equal: dict[str, object] = {"len({}.__dict__)": len(vars(value))} if attached or self.names.are_open else {}
        return ObjectContents(parts | attached, equal)

    def is_named(self, step: str) -> bool:
        """True if code names an attribute, or reads an element; False for what it might read by another way."""
        if not step.startswith(".") or step in (*ALWAYS_READ, *_DEFAULTS):
            return True
        return step.removeprefix(".__dict__[").strip(".'\"]") in self.names.known

    def known(self, value: object) -> Key:
        """Return the address of an object, and keep it alive with the key."""
        self.alive.append(value)
        return (id(value),)

    def function(self, function: FunctionType, is_read: bool) -> Key:
        """Return the key of the variables that a function names."""
        if is_library(function):
            self.collected |= {"getattr"} if is_read else set()
            return ()
        self.collected |= names_read(function.__code__)
        shared = id(function.__globals__), *map(id, function.__closure__ or ())  # by functions that one guard checks
        scope = self.scopes.setdefault(shared, _Scope(function))
        outer, keys = self.read, list[Key]()
        for self.read in reads(function.__code__):
            value = value_of(function, self.read)
            if self.read.kind != "module":
                scope.values[self.read.name] = value
            keys.append(self.key(value, self.read.name, is_read))
            if self.read.is_owner and isinstance(value, FunctionType):  # which may get an attribute later
                self.holders.append((value, ObjectContents({}, {"len({}.__dict__)": len(vars(value))}), ()))
            if self.read.name in _OF_ENVIRONMENT:
                keys.append(self.key(os.environ, "os.environ"))
            if any(value is reader for reader in _READ_GLOBALS):
                held = {name: part for name, part in function.__globals__.items() if is_data(part)}
                scope.values |= held
                keys += [self.key(part, name, False) for name, part in held.items()]
        self.read = outer
        return tuple(keys)

    def refuse(self, value: object, path: str) -> NoReturn:
        """Refuse an object whose contents no guard can compare."""
        kind = type(value)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TraceError(
            f"`{path}` is {article(name)}, whose contents cannot be compared: the kernel would not be traced again "
            "when they change",
            at=self.read.location if self.read else self.kernel and defined_at(self.kernel.__code__),
            help="read it before the launch, and pass the result as a keyword-only constant; or keep the state in "
            "numbers, strings, lists, dicts, arrays or attributes",
        )

    def guard(self) -> Guard | None:
        """Return the guard for all state that was read; None if nothing can change."""
        check: Guard | None = None
        tests = [test for holder in self.holders for test in _tests(*holder)]
        if tests:
            check = _compiled(tests, None)
        for scope in self.scopes.values():
            further = [("{0}()", (check,))] if check else []
            named = [(f"{name} is {{0}}", (value,)) for name, value in scope.values.items()]
            check = _compiled([*named, *further], scope.function) if named else check
        return check


_BY_CONTENT = (FunctionType, list, tuple, dict, set, frozenset, deque, bytearray, array, memoryview, np.ndarray)
_DEFAULTS = ".__defaults__", ".__kwdefaults__"


@dataclass(eq=False, slots=True)
class _Scope:
    """The globals and cells of a function, with the values of the variables read there."""

    function: FunctionType
    values: dict[str, object] = field(default_factory=dict)


Test: TypeAlias = tuple[str, tuple[object, ...]]  # an expression, and the objects for `{0}`, `{1}` in it


def _tests(value: object, held: ObjectContents, items: Sequence[object]) -> Iterator[Test]:
    """Yield the expressions that are true while an object holds the same; `items` is what `held.items` returned."""
    if held.is_fixed:
        return
    if held.items is not None:
        yield "{0}({1}, {2}, {3})", (_are_same, held.items, value, items)
    else:
        for step, part in held.parts.items():
            if not step.startswith(_FIXED):
                escaped = step.replace("{", "{{").replace("}", "}}")
                yield f"{{0}}{escaped} is {{1}}", (value, part)
    for expression, part in held.equal.items():
        if held.items is None or expression not in _OF_ITEMS:
            yield f"{expression.replace('{}', '{0}')} == {{1}}", (value, part)


_FIXED = ".__mro__", ".__class__"
_OF_ITEMS = "len({})", "[*{}]"


def _are_same(items: Callable[[Any], Sequence[object]], value: object, known: Sequence[object]) -> bool:
    """True if an object holds the same parts as before, or equal data."""
    now = items(value)
    if len(now) != len(known) or all(map(is_, now, known)):
        return len(now) == len(known)
    return all(a is b or (type(a) in (bytes, str) and a == b) for a, b in zip(now, known, strict=True))


def _compiled(tests: Sequence[Test], function: FunctionType | None) -> Guard:
    """Compile a function that makes these tests, with the globals and cells of another function.

    Python looks up the globals of a function in a few nanoseconds.
    """
    known: dict[int, str] = {}
    values: list[object] = []
    texts = []
    for expression, objects in tests:
        for each in objects:
            if id(each) not in known:
                known[id(each)] = f"_captured_{len(known)}"
                values.append(each)
        texts.append(expression.format(*[known[id(each)] for each in objects]))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) if function else {}
    text = (
        f"def around({', '.join(cells)}):\n def check({', '.join(known.values())}): return {' and '.join(texts)}\n"
        " return check"
    )
    around = next(c for c in compile(text, "<captured>", "exec").co_consts if isinstance(c, CodeType))
    code = next(c for c in around.co_consts if isinstance(c, CodeType))
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, function.__globals__ if function else {}, "check", tuple(values), closure)


_GLOBAL, _CELL = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")


class Read(NamedTuple):
    """A global, free variable or imported module that code names, with the first line that does.

    `is_owner` is True if code reads an attribute of it.
    """

    kind: str  # "global", "cell" or "module"
    name: str
    location: Location
    is_owner: bool


@lru_cache(maxsize=MOST_CODES)
def reads(code: CodeType) -> tuple[Read, ...]:
    """Return the outer variables that a function or its inner functions name, and the modules that they import."""
    first: dict[tuple[str, str], Read] = {}
    for read in _reads(code, code.co_freevars):
        known = first.setdefault(read[:2], read)
        first[read[:2]] = known._replace(is_owner=known.is_owner or read.is_owner)
    return tuple(first.values())


def _reads(code: CodeType, free: Sequence[str]) -> Iterator[Read]:
    listing = bytecode(code)
    for n, instruction in enumerate(listing):
        name = str(instruction.argval)
        if instruction.opname == "IMPORT_NAME":
            kind = "module"
        elif instruction.opname in _GLOBAL and name.isidentifier():  # pytest inserts other names for `assert`
            kind = "global"
        elif instruction.opname in _CELL and name in free and name != "__class__":
            kind = "cell"
        else:
            continue
        yield Read(kind, name, _location(code, instruction), listing[n + 1].opname in _ATTRIBUTES)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _reads(constant, [name for name in free if name in constant.co_freevars])


def _location(code: CodeType, instruction: Any) -> Location:
    line, _, *columns = instruction.positions or (code.co_firstlineno, None, None, None)
    is_known = None not in columns
    return Location(code.co_filename, line or 0, tuple(columns) if is_known else (0, 0), code.co_name)


def defined_at(code: CodeType) -> Location:
    """Return the location of a function's definition."""
    return Location(code.co_filename, code.co_firstlineno, function=code.co_name)


@lru_cache(maxsize=MOST_CODES)
def names_read(code: CodeType) -> frozenset[str]:
    """Return the attributes and global variables that a function or its inner functions read, of whatever object."""
    inner = [names_read(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    named = (i for i in bytecode(code) if i.opname in _ATTRIBUTES or i.opname in _GLOBAL)
    return frozenset(str(i.argval[-1] if isinstance(i.argval, tuple) else i.argval) for i in named).union(*inner)


def value_of(function: FunctionType, read: Read) -> Any:
    """Return the current value of a variable or imported module; None if it is unset."""
    if read.kind == "module":
        return sys.modules.get(read.name.partition(".")[0])
    if read.kind == "global":
        return function.__globals__.get(read.name, getattr(builtins, read.name, None))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    try:
        return cells[read.name].cell_contents
    except ValueError:  # not assigned yet
        return None
