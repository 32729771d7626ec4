"""Snapshots of the Python objects that running functions can reach: containers, arrays, objects and iterators.

Traced values are leaves: which values a list holds is Python state, while the contents of a `pd.var` are kernel state.
"""

from __future__ import annotations

import gc
import itertools
import pickle
import random
import warnings
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from io import IOBase
from operator import is_, itemgetter, length_hint
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, TypeAlias

import numpy as np

from ptxdsl.errors import Names, bytecode
from ptxdsl.trace.captured import names_read
from ptxdsl.trace.contents import LINKS, Traceable, is_library, is_library_name, is_random, slots_of
from ptxdsl.trace.instruction import Source

MOST = 2000  # maximum number of holders, nearest first
MOST_BYTES = 1 << 20  # maximum size of a copied array
_OUR_KERNELS = "ptxdsl.kernels"
_NUMBERS_AND_TEXTS = {int, float, bool, str, type(None)}
Path: TypeAlias = tuple[object, ...]  # scope number, name in it, and the keys from there
Parts: TypeAlias = dict[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """How to read and restore what a kind of holders holds.

    `read` returns the parts by their keys. They are compared by identity; an opaque holder has one part, of the key "",
    which is compared by value. `text` formats the name of a part from the holder's name and the key. Holders without
    `write` cannot be restored.
    """

    read: Callable[[Any], Parts]
    write: Callable[[Any, Parts], None] | None = None
    text: str = "{0}.{1}"
    is_opaque: bool = False

    def same(self, now: Parts, before: Parts) -> bool:
        """True if two readings have the same objects, under the same keys in the same order, or equal contents."""
        if self.is_opaque:
            return bool(_plain(now[""]) == _plain(before[""]))
        alike = len(now) == len(before) and all(map(is_, now.values(), before.values()))
        return alike and list(now) == list(before)

    def named(self, holder: str, key: object) -> str:
        """Return the text of a part in messages."""
        return holder if key == "" else self.text.format(holder, key)


def _plain(contents: Any) -> Any:
    return contents.tobytes() if isinstance(contents, np.ndarray) else contents


def _opaque(read: Callable[[Any], Any], write: Callable[[Any, Any], None] | None = None) -> Kind:
    """Return the kind of holders whose contents are one value."""
    put = None if write is None else lambda holder, parts: write(holder, parts[""])
    return Kind(lambda holder: {"": read(holder)}, put, is_opaque=True)


def _refill(holder: Any, items: Any) -> None:
    """Restore a list, deque, dict or set."""
    holder.clear()
    (holder.extend if isinstance(holder, list | deque) else holder.update)(items)


def _attributes_of(holder: Any) -> Parts:
    """Return the attributes of an object, in its `__slots__` and its `__dict__`."""
    slots = {name: getattr(holder, name) for name in slots_of(type(holder)) if hasattr(holder, name)}
    return slots | getattr(holder, "__dict__", {})


def _set_attributes(holder: Any, parts: Parts) -> None:
    held, slots = getattr(holder, "__dict__", {}), slots_of(type(holder))
    _refill(held, {name: value for name, value in parts.items() if name not in slots})
    for name in slots:
        if name in parts:
            object.__setattr__(holder, name, parts[name])
        elif hasattr(holder, name):
            object.__delattr__(holder, name)


def _shared_with(function: Any) -> Parts:
    """Return the closure cells of a function, and the module globals that it assigns."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    bound = {name: function.__globals__.get(name) for name in _module_names(function.__code__, "STORE")}
    return {name: cell.cell_contents for name, cell in cells if cell != CellType()} | bound  # not an empty one


def _set_shared(function: Any, parts: Parts) -> None:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in parts:
            cell.cell_contents = parts[name]
    for name in _module_names(function.__code__, "STORE"):
        function.__globals__[name] = parts[name]


def _members_of(cls: Any) -> Parts:
    """Return the members of a class other than functions."""
    members = vars(cls).items()
    return {name: value for name, value in members if not name.startswith("__") and not hasattr(value, "__get__")}


def _named(read: Callable[[Any], Parts], put: Any, drop: Any, text: str) -> Kind:
    """Return the kind of holders whose parts are restored one by one, by `put` or `drop`."""

    def write(holder: Any, before: Parts) -> None:
        for name in read(holder).keys() - before.keys():
            drop(holder, name)
        for name, value in before.items():
            put(holder, name, value)

    return Kind(read, write, text)


def _globals_kind(names: list[str], text: str = "{1}") -> Kind:
    """Return the kind of a module's namespace: the globals of these names."""
    held: Callable[[Any], Parts] = lambda holder: {name: holder[name] for name in names if name in holder}  # noqa: E731
    return _named(held, dict.__setitem__, dict.__delitem__, text)


def _fixed(*names: str) -> Kind:
    """Return the kind of objects whose parts are these attributes, which are not replaced."""
    return Kind(lambda holder: {name: getattr(holder, name) for name in names})


def _array_copy(holder: Any) -> Any:
    """Return a copy of an array; None for a large or read-only one."""
    return holder.copy() if holder.flags.writeable and holder.nbytes <= MOST_BYTES else None


def _position(iterator: Any) -> object:
    """Return how far an iterator is, as far as it tells; the iterators that it goes through tell theirs."""
    if isinstance(iterator, GeneratorType):
        return iterator.gi_frame.f_lasti if iterator.gi_frame is not None else None
    if isinstance(iterator, IOBase):
        return _read_so_far(iterator)
    return length_hint(iterator, -1), repr(iterator) if isinstance(iterator, itertools.count) else ""


def _read_so_far(file: IOBase) -> int:
    try:
        return file.tell()
    except (OSError, ValueError):  # a pipe or a closed file
        return -1


def _gone_through(iterator: Any) -> Parts:
    """Return what an iterator holds: others that it goes through, its running total, the variables of a generator."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame if not iterator.gi_running else None
        return dict(frame.f_locals) if frame is not None else {}
    if isinstance(iterator, _HIDING):
        with warnings.catch_warnings(), suppress(TypeError):  # Python 3.14 has no `__reduce__` of these
            warnings.simplefilter("ignore")
            return dict(enumerate(_flat(iterator.__reduce__())))
    return dict(enumerate(_flat(gc.get_referents(iterator))))


def _flat(reduced: Any) -> Iterator[object]:
    for each in reduced:
        yield from _flat(each) if isinstance(each, tuple) else (each,)


_HIDING: tuple[type, ...] = (itertools.cycle, type(itertools.tee(())[0]))  # their position is not an object


_ELEMENTS = Kind(lambda held: dict(enumerate(held)), lambda held, parts: _refill(held, parts.values()), "{0}[{1}]")
_ENTRIES = Kind(dict, _refill, "{0}[{1!r}]")
_ATTRIBUTES = Kind(_attributes_of, _set_attributes)
_SET = _opaque(frozenset, _refill)
_BYTES = _opaque(lambda held: held[:], lambda held, copy: held.__setitem__(slice(None), copy))
_NUMBERS = _opaque(_array_copy, lambda held, copy: None if copy is None else held.__setitem__(..., copy))
_SHARED = Kind(_shared_with, _set_shared, "{1}")
_DEFAULTS = _fixed("__dict__", "__defaults__", "__kwdefaults__")
_METHOD = Kind(lambda method: {"": method.__self__, "__func__": getattr(method, "__func__", None)})
_CLASS = _named(_members_of, setattr, delattr, "{0}.{1}")
_ITERATED = _opaque(_position), Kind(_gone_through, text="{0}")
_DRAWN = _opaque(pickle.dumps)  # the state of a random generator
# The state behind the functions of `random` or `np.random`.
_MODULE = _opaque(lambda module: pickle.dumps(random.getstate() if module is random else np.random.get_state()))
ADVANCING = (*_ITERATED, _DRAWN, _MODULE)  # what they give next is not to be had again
_STANDARD: list[tuple[Any, tuple[Kind, ...]]] = [
    ((list, deque), (_ELEMENTS,)), (dict, (_ENTRIES,)), (set, (_SET,)),
    (tuple, (Kind(_ELEMENTS.read, text="{0}[{1}]"),)),
    (np.ndarray, (_NUMBERS,)), (FunctionType, (_DEFAULTS, _SHARED)), ((bytearray, array), (_BYTES,)),
    ((MethodType, BuiltinMethodType, MethodWrapperType), (_METHOD,)),
    *((of, (_fixed(*[link[1:] for link in links]),)) for of, links in LINKS.items() if not links[0].endswith(")")),
    (memoryview, (Kind(lambda view: {"": view.obj}),)), (SimpleNamespace, (_ATTRIBUTES,)),
    (Traceable, (Kind(lambda traceable: dict(enumerate(traceable.traced))),)), (type, (_CLASS,)),
    (ModuleType, (_MODULE,)), (Source, ()),
]  # fmt: skip
_CONTAINERS = (ChainMap, UserDict, UserList)  # containers of the standard library written in Python
_kinds: dict[type, tuple[Kind, ...]] = {}


def _kinds_of(of: type) -> tuple[Kind, ...]:
    """Return the kinds of objects of a type; none for leaves."""
    for types, kinds in _STANDARD:
        if issubclass(of, types):
            is_container = kinds in ((_ELEMENTS,), (_ENTRIES,), (_SET,))
            return (*kinds, _ATTRIBUTES) if is_container and of.__dictoffset__ and not _is_foreign_type(of) else kinds
    if is_random(of) and of is not random.SystemRandom:
        return (_DRAWN,)
    if _is_foreign_type(of):
        return _ITERATED if hasattr(of, "__next__") else ()
    is_of_kernels = of.__module__.startswith(_OUR_KERNELS) and is_dataclass(of)
    if is_of_kernels and of.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return (_fixed(*[each.name for each in fields(of)]),)
    return (_ATTRIBUTES,)


def _is_foreign_type(of: type) -> bool:
    """True if a class belongs to a library that keeps no user state."""
    is_container = issubclass(of, _CONTAINERS) or of.__module__ == "queue"
    return is_library(of) and not is_container and not of.__module__.startswith(_OUR_KERNELS)


def _is_foreign(holder: Any) -> bool:
    """True if a function, class or module belongs to a library that keeps no user state."""
    if isinstance(holder, ModuleType):
        return holder not in (random, np, np.random)
    if isinstance(holder, FunctionType):
        return is_library_name(holder.__module__)
    return isinstance(holder, type) and is_library(holder)


@dataclass(slots=True)
class Record:
    """A holder with a copy of its contents, and the holder and key (or scope and name) through which it was reached."""

    holder: Any
    kind: Kind
    copy: Parts
    parent: Record | int
    key: Any
    number: int = 0  # of the kind, for holders of several kinds

    @property
    def path(self) -> Path:
        above = (self.parent,) if isinstance(self.parent, int) else self.parent.path
        return *above, self.key, self.number

    @property
    def is_changed(self) -> bool:
        """True if the holder's contents differ from the copy."""
        return not self.kind.same(self.kind.read(self.holder), self.copy)

    def restore(self, copy: Parts) -> None:
        """Restore the holder's contents from a copy, if they can be written."""
        if self.kind.write is not None:
            self.kind.write(self.holder, copy)

    @property
    def name(self) -> str:
        """The holder's name in messages."""
        if isinstance(self.parent, int):
            return str(self.key)
        return self.parent.kind.named(self.parent.name, self.key)

    def differences(self) -> list[tuple[str, object, object]]:
        """Return (name, old, new) of the changed items; of the holder itself if its length changed."""
        whole = self.name, self.copy, self.holder
        if self.kind.is_opaque:
            return [whole]
        old, new = self.copy, self.kind.read(self.holder)
        both = [(self.kind.named(self.name, key), old[key], new[key]) for key in old.keys() & new.keys()]
        return sorted((each for each in both if each[1] is not each[2]), key=itemgetter(0)) or [whole]


_Pending: TypeAlias = tuple[object, Record | int, object]  # a holder, and where it was reached


def outside(function: Callable[..., Any], names: Mapping[str, object]) -> Snapshot:
    """Return a snapshot of the state outside of a trace that a function can reach: by the given names and those of its
    module."""
    return Snapshot([Names(function.__code__, 0, {function.__name__: function, **names}, function.__globals__)])


class Snapshot:
    """The contents of all objects reached from some scopes, the outermost first."""

    def __init__(self, scopes: list[Names]) -> None:
        self.scopes = scopes
        self.records: list[Record] = []
        pending: list[_Pending] = []
        for number, scope in enumerate(scopes):
            self._reach(scope.code, [*scope.values.items(), *_of_module(scope.code, scope.globals)], number, pending)
            if names := _module_names(scope.code, "STORE"):
                kind = _globals_kind(names)
                self.records.append(Record(scope.globals, kind, kind.read(scope.globals), number, "global"))
        self._walk(pending)

    def _walk(self, pending: list[_Pending]) -> None:
        """Visit holders breadth first; `pending` grows."""
        seen: set[int] = set()
        for holder, parent, key in pending:
            if id(holder) in seen or len(self.records) >= MOST or _is_foreign(holder):
                continue
            seen.add(id(holder))
            for number, kind in enumerate(_kinds[type(holder)]):
                record = Record(holder, kind, kind.read(holder), parent, key, number)
                self.records.append(record)
                is_of_leaves = not any(_kinds.get(of, True) for of in set(map(type, record.copy.values())))
                if not is_of_leaves and not kind.is_opaque:  # unlike the many lists of registers
                    _queue(record.copy.items(), record, pending)
                if kind in (_ATTRIBUTES, _CLASS):
                    _queue([("", type(holder))], record, pending)
                if isinstance(holder, type):
                    _queue([("", base) for base in holder.__mro__[1:]], record, pending)
                    _queue([each for each in vars(holder).items() if hasattr(each[1], "__get__")], record, pending)
            if isinstance(holder, FunctionType):
                self._reach(holder.__code__, list(_of_module(holder.__code__, holder.__globals__)), record, pending)

    def _reach(
        self, code: CodeType, held: list[tuple[str, Any]], parent: Record | int, pending: list[_Pending]
    ) -> None:
        """Queue what a function names, and of the user's modules the attributes that it names; `held` grows."""
        _queue(held, parent, pending)
        modules: set[int] = set()
        for name, module in held:
            if isinstance(module, ModuleType) and id(module) not in modules and not is_library(module):
                modules.add(id(module))
                kind = _globals_kind(sorted(names_read(code)), f"{name}.{{1}}")
                record = Record(vars(module), kind, kind.read(vars(module)), parent, name)
                self.records.append(record)
                _queue(record.copy.items(), record, pending)
                held += [(f"{name}.{key}", value) for key, value in record.copy.items()]

    def changed(self) -> list[Record]:
        """Return the records of the holders that changed."""
        return [record for record in self.records if record.is_changed]

    def restore(self) -> None:
        """Restore the contents of all holders."""
        for record in self.changed():
            record.restore(record.copy)

    def paths(self) -> Iterator[tuple[Path, object]]:
        """Yield every object that was reached, with its path."""
        for number, scope in enumerate(self.scopes):
            for name, value in scope.values.items():
                yield (number, name), value
        for record in self.records:
            for key, value in () if record.kind.is_opaque else record.copy.items():
                yield (*record.path, key), value


def _queue(items: Iterable[tuple[object, object]], parent: Record | int, pending: list[_Pending]) -> None:
    for key, value in items:
        of = type(value)
        if of is tuple and _NUMBERS_AND_TEXTS.issuperset(map(type, value)):  # type: ignore[call-overload]
            continue
        if of not in _kinds:
            _kinds[of] = _kinds_of(of)
        if _kinds[of]:
            pending.append((value, parent, key))


def _of_module(code: CodeType, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the module globals that a function may reach."""
    return ((name, names[name]) for name in _module_names(code, "LOAD") if name in names)


# Keyed by the id of code objects, which are kept alive.
_names: dict[tuple[int, str], tuple[CodeType, list[str]]] = {}


def _module_names(code: CodeType, verb: str) -> list[str]:
    """Return the module globals that a function reads ("LOAD") or assigns ("STORE")."""
    known = _names.get((id(code), verb))
    if known is None:
        opcode = f"{verb}_GLOBAL"
        names = list(dict.fromkeys(str(i.argval) for i in bytecode(code) if i.opname == opcode))
        known = _names[id(code), verb] = code, names
    return known[1]
