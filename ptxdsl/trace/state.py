"""Snapshots of the Python objects that running functions can reach: containers, arrays, objects and iterators.

Traced values are leaves: which values a list holds is Python state, while the contents of a `pd.var` are kernel state.
"""

from __future__ import annotations

import gc
import itertools
import sys
import warnings
from abc import ABC, abstractmethod
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from io import IOBase
from operator import is_, length_hint
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
from ptxdsl.trace import drawn
from ptxdsl.trace.instruction import Source
from ptxdsl.trace.keys import Traceable

MOST = 2000  # maximum number of holders, nearest first
MOST_BYTES = 1 << 20  # maximum size of a copied array
_MADE_BY_CLASS = 1 << 9  # type flag: created by a class statement
_OURS, _OUR_KERNELS = "ptxdsl", "ptxdsl.kernels"
_NUMBERS_AND_TEXTS = {int, float, bool, str, type(None)}
Path: TypeAlias = tuple[object, ...]  # scope number, name in it, and the keys from there


class Kind(ABC):
    """How to copy, compare, restore and name holders of a kind. `items` yields what a copy leads to."""

    @abstractmethod
    def copy(self, holder: Any) -> object:
        """Return a copy of the holder's contents."""

    @abstractmethod
    def same(self, holder: Any, copy: Any) -> bool:
        """True if the holder's contents still equal the copy."""

    def restore(self, holder: Any, copy: Any) -> None:  # noqa: B027 — some holders cannot be written
        """Restore the holder's contents from the copy, if possible."""

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        return ()

    def mapped(self, copy: Any, function: Callable[[object], object]) -> Any:
        """Return a copy with `function` applied to its values."""
        return copy

    def named(self, holder: str, key: object) -> str:
        """Return the text of an item in messages."""
        return holder


class Elements(Kind):
    """Lists and deques."""

    def copy(self, holder: Any) -> object:
        return tuple(holder)

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        return enumerate(copy)

    def same(self, holder: Any, copy: Any) -> bool:
        return len(holder) == len(copy) and all(map(is_, holder, copy))

    def restore(self, holder: Any, copy: Any) -> None:
        holder.clear()
        holder.extend(copy)

    def mapped(self, copy: Any, function: Callable[[object], object]) -> Any:
        return tuple(map(function, copy))

    def named(self, holder: str, key: object) -> str:
        return f"{holder}[{key}]"


class Entries(Kind):
    """Dictionaries."""

    def copy(self, holder: Any) -> object:
        return dict(holder)

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        return copy.items()  # type: ignore[no-any-return]

    def same(self, holder: Any, copy: Any) -> bool:
        alike = len(holder) == len(copy) and all(map(is_, holder, copy))
        return alike and all(map(is_, holder.values(), copy.values()))

    def restore(self, holder: Any, copy: Any) -> None:
        holder.clear()
        holder.update(copy)

    def mapped(self, copy: Any, function: Callable[[object], object]) -> Any:
        return {key: function(value) for key, value in copy.items()}

    def named(self, holder: str, key: object) -> str:
        return f"{holder}[{key!r}]"


class Attributes(Entries):
    """Objects with a `__dict__`."""

    def copy(self, holder: Any) -> object:
        return dict(vars(holder))

    def same(self, holder: Any, copy: Any) -> bool:
        return super().same(vars(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        super().restore(vars(holder), copy)

    def named(self, holder: str, key: object) -> str:
        return f"{holder}.{key}" if key else holder


class SlotAttributes(Attributes):
    """Objects with `__slots__`."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def copy(self, holder: Any) -> object:
        return {name: getattr(holder, name) for name in self.names if hasattr(holder, name)}

    def same(self, holder: Any, copy: Any) -> bool:
        return Entries().same(self.copy(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        for name in self.names:
            if name in copy:
                object.__setattr__(holder, name, copy[name])
            elif hasattr(holder, name):
                object.__delattr__(holder, name)


class SeveralKinds(Kind):
    """Objects with several kinds of contents: a list subclass with attributes, or slots and a `__dict__`."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def copy(self, holder: Any) -> object:
        return [kind.copy(holder) for kind in self.kinds]

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        parts = enumerate(zip(self.kinds, copy, strict=True))
        return [((n, key), value) for n, (kind, part) in parts for key, value in kind.items(part)]

    def same(self, holder: Any, copy: Any) -> bool:
        return all(kind.same(holder, part) for kind, part in zip(self.kinds, copy, strict=True))

    def restore(self, holder: Any, copy: Any) -> None:
        for kind, part in zip(self.kinds, copy, strict=True):
            kind.restore(holder, part)

    def mapped(self, copy: Any, function: Callable[[object], object]) -> Any:
        return [kind.mapped(part, function) for kind, part in zip(self.kinds, copy, strict=True)]

    def named(self, holder: str, key: Any) -> str:
        kind: Kind = self.kinds[key[0]]
        return kind.named(holder, key[1])


class Elementary(Kind):
    """Sets."""

    def copy(self, holder: Any) -> object:
        return frozenset(holder)

    def same(self, holder: Any, copy: Any) -> bool:
        return bool(holder == copy)

    def restore(self, holder: Any, copy: Any) -> None:
        holder.clear()
        holder.update(copy)


class ByteElements(Kind):
    """bytearray and array.array."""

    def copy(self, holder: Any) -> object:
        return holder[:]

    def same(self, holder: Any, copy: Any) -> bool:
        return bool(holder == copy)

    def restore(self, holder: Any, copy: Any) -> None:
        holder[:] = copy


class Numbers(Kind):
    """Numpy arrays; None for large or read-only ones."""

    def copy(self, holder: Any) -> object:
        return holder.copy() if holder.flags.writeable and holder.nbytes <= MOST_BYTES else None

    def same(self, holder: Any, copy: Any) -> bool:
        return copy is None or (holder.shape == copy.shape and holder.tobytes() == copy.tobytes())

    def restore(self, holder: Any, copy: Any) -> None:
        holder[...] = copy


class ClosureCells(Entries):
    """The closure cells of a function, and the module globals that it assigns."""

    def copy(self, holder: Any) -> dict[str, object]:
        shared = zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True)
        bound = {name: holder.__globals__.get(name) for name in _module_names(holder.__code__, "STORE")}
        attached = {name: getattr(holder, name) for name in ("__dict__", "__defaults__", "__kwdefaults__")}
        return {name: cell.cell_contents for name, cell in shared if _is_bound(cell)} | bound | attached

    def same(self, holder: Any, copy: Any) -> bool:
        now = self.copy(holder)
        return all(now.get(name) is value for name, value in copy.items() if not name.startswith("__"))

    def restore(self, holder: Any, copy: Any) -> None:
        for name, cell in zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True):
            if name in copy:
                cell.cell_contents = copy[name]
        for name in _module_names(holder.__code__, "STORE"):
            holder.__globals__[name] = copy[name]

    def named(self, holder: str, key: object) -> str:
        return f"{holder}.{key}" if str(key).startswith("__") else str(key)


class Members(Entries):
    """User-defined classes: members other than functions."""

    def copy(self, holder: Any) -> dict[str, object]:
        members = vars(holder).items()
        return {name: value for name, value in members if not name.startswith("__") and not hasattr(value, "__get__")}

    def same(self, holder: Any, copy: Any) -> bool:
        return super().same(self.copy(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        for name in self.copy(holder).keys() - copy.keys():
            delattr(holder, name)
        for name, value in copy.items():
            setattr(holder, name, value)

    def named(self, holder: str, key: object) -> str:
        return f"{holder}.{key}"


def _is_bound(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class BoundNames(Entries):
    """The module globals that a running function assigns by `global`; the holder is the module's namespace."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def copy(self, holder: Any) -> dict[str, object]:
        return {name: holder[name] for name in self.names if name in holder}

    def same(self, holder: Any, copy: Any) -> bool:
        return super().same(self.copy(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        for name in self.copy(holder).keys() - copy.keys():
            del holder[name]
        holder.update(copy)

    def named(self, holder: str, key: object) -> str:
        return str(key)


class IteratorPosition(Kind):
    """Iterators and generators: their position, as far as it is visible. They cannot be reset."""

    def copy(self, holder: Any) -> object:
        return _position(holder)

    def same(self, holder: Any, copy: Any) -> bool:
        return bool(_position(holder) == copy)


def _position(iterator: Any, depth: int = 4) -> tuple[object, ...]:
    if isinstance(iterator, GeneratorType):
        return _position_in(iterator, depth)
    if isinstance(iterator, IOBase):
        return type(iterator), _read_so_far(iterator)
    inner = _reduced(iterator) if isinstance(iterator, _HIDING) else gc.get_referents(iterator)
    known = repr(iterator) if isinstance(iterator, itertools.count) else ""
    return type(iterator), length_hint(iterator, -1), known, *_positions(inner, depth)


def _read_so_far(file: IOBase) -> int:
    try:
        return file.tell()
    except (OSError, ValueError):  # a pipe or a closed file
        return -1


def _position_in(generator: GeneratorType[Any, Any, Any], depth: int) -> tuple[object, ...]:
    frame = generator.gi_frame
    if frame is None or generator.gi_running:
        return (frame is None,)
    values = list(frame.f_locals.values())
    return frame.f_lasti, *(v if isinstance(v, int | str) else id(v) for v in values), *_positions(values, depth)


def _positions(values: Iterable[object], depth: int) -> Iterator[object]:
    for value in values if depth else ():
        if isinstance(value, int | float | str):  # the running total of accumulate, the index of tee
            yield value
        elif isinstance(value, MethodWrapperType):
            yield from _positions([value.__self__], depth - 1)
        elif isinstance(value, list | deque):
            yield tuple(each if isinstance(each, int | str) else id(each) for each in value)
        elif isinstance(value, tuple):
            yield from _positions(value, depth - 1)
        elif hasattr(type(value), "__next__"):
            yield _position(value, depth - 1)
        else:
            yield id(value)


def _reduced(iterator: Any) -> Iterable[object]:
    """Return the hidden position of itertools.cycle or tee by `__reduce__`, which Python 3.14 removed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return iterator.__reduce__()  # type: ignore[no-any-return]
        except TypeError:
            return gc.get_referents(iterator)


_HIDING: tuple[type, ...] = (itertools.cycle, type(itertools.tee(())[0]))  # their position is not an object


class DrawnNumbers(Kind):
    """Random generators: their state."""

    def copy(self, holder: Any) -> object:
        return drawn.position(holder)

    def same(self, holder: Any, copy: Any) -> bool:
        return drawn.same(drawn.position(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        drawn.put_back(holder, copy)


class Through(Kind):
    """Immutable objects that lead to mutable ones."""

    def __init__(self, reached: Callable[[Any], Iterable[tuple[object, object]]], text: str) -> None:
        self.reached, self.text = reached, text

    def copy(self, holder: Any) -> object:
        return holder

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        return self.reached(copy)

    def same(self, holder: Any, copy: Any) -> bool:
        return True

    def named(self, holder: str, key: object) -> str:
        return self.text.format(holder, key)


_ELEMENTS, _ENTRIES, _ATTRIBUTES, _SET, _NUMBERS = Elements(), Entries(), Attributes(), Elementary(), Numbers()
_POSITION, _CELLS, _CLASS, _BYTES = IteratorPosition(), ClosureCells(), Members(), ByteElements()
_TUPLE = Through(enumerate, "{}[{}]")
_METHOD = Through(lambda method: [("", method.__self__)], "{}")
_PARTIAL = Through(lambda call: [(name, getattr(call, name)) for name in ("func", "args", "keywords")], "{}.{}")
_VIEW = Through(lambda view: [("", view.obj)], "{}")
_TRACED = Through(lambda traceable: [("", each) for each in traceable.traced], "{}")
_MODULE = Through(drawn.generators_of, "{}{}")
_DRAWN = DrawnNumbers()
_STANDARD: list[tuple[Any, Kind | None]] = [
    ((list, deque), _ELEMENTS), (dict, _ENTRIES), (set, _SET), (tuple, _TUPLE), (np.ndarray, _NUMBERS),
    (FunctionType, _CELLS), ((MethodType, BuiltinMethodType, MethodWrapperType), _METHOD), ((bytearray, array), _BYTES),
    (memoryview, _VIEW), (SimpleNamespace, _ATTRIBUTES),
    (Traceable, _TRACED), (partial, _PARTIAL), (type, _CLASS), (ModuleType, _MODULE), (Source, None),
]  # fmt: skip
_MAYBE_FOREIGN = (_MODULE, _CELLS, _CLASS)
_CONTAINERS = (ChainMap, UserDict, UserList)  # containers of the standard library written in Python
_kinds: dict[type, Kind | None] = {}


def _kind(of: type) -> Kind | None:
    """Return the kind of objects of a type; None for leaves."""
    for types, kind in _STANDARD:
        if issubclass(of, types):
            has_attributes = kind in (_ELEMENTS, _ENTRIES, _SET) and of.__dictoffset__ and not _is_foreign_type(of)
            return SeveralKinds(kind, _ATTRIBUTES) if kind and has_attributes else kind
    if drawn.is_generator(of):
        return _DRAWN
    if _is_foreign_type(of):
        return _POSITION if hasattr(of, "__next__") else None
    if _is_frozen(of):
        names = [each.name for each in fields(of)]
        return Through(lambda frozen: [(name, getattr(frozen, name)) for name in names], "{}.{}")
    slots = tuple(name for base in of.__mro__ for name in _slots(base) if name not in ("__dict__", "__weakref__"))
    if slots and of.__dictoffset__:
        return SeveralKinds(SlotAttributes(slots), _ATTRIBUTES)
    return SlotAttributes(slots) if slots else _ATTRIBUTES if of.__dictoffset__ else None


def _is_foreign_type(of: type) -> bool:
    """True if a class belongs to a library that keeps no user state."""
    module = of.__module__
    top = module.partition(".")[0]
    if issubclass(of, _CONTAINERS) or module == "queue":
        return False
    if module == "builtins":  # classes from exec() without a module name
        return not of.__flags__ & _MADE_BY_CLASS
    return top in sys.stdlib_module_names or top == "numpy" or (top == _OURS and not module.startswith(_OUR_KERNELS))


def _is_frozen(of: type) -> bool:
    """True for a class of the shipped kernels whose fields do not change after construction."""
    is_ours = of.__module__.startswith(_OUR_KERNELS) and is_dataclass(of)
    return is_ours and bool(of.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _slots(of: type) -> Iterable[str]:
    slots = of.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _is_foreign(holder: Any, kind: Kind) -> bool:
    """True if a function, class or module belongs to a library that keeps no user state."""
    if kind is _MODULE:
        return holder.__name__ not in drawn.MODULES
    if kind is _CELLS:
        return _is_library(holder.__module__)
    return kind is _CLASS and (_is_foreign_type(holder) or holder.__module__.partition(".")[0] == _OURS)


@lru_cache(maxsize=1024)
def _is_library(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return top == _OURS or top in sys.stdlib_module_names or top == "numpy"


@dataclass(slots=True)
class Record:
    """A holder with a copy of its contents, and the holder and key (or scope and name) through which it was reached."""

    holder: Any
    kind: Kind
    copy: Any
    parent: Record | int
    key: Any

    @property
    def path(self) -> Path:
        above = (self.parent,) if isinstance(self.parent, int) else self.parent.path
        return *above, self.key

    @property
    def name(self) -> str:
        """The holder's name in messages."""
        if isinstance(self.parent, int):
            return str(self.key)
        return self.parent.kind.named(self.parent.name, self.key)

    def differences(self) -> list[tuple[str, object, object]]:
        """Return (name, old, new) of the changed items; of the holder itself if its length changed."""
        old, new = dict(self.kind.items(self.copy)), dict(self.kind.items(self.kind.copy(self.holder)))
        both = [(self.kind.named(self.name, key), old[key], new[key]) for key in old.keys() & new.keys()]
        others = [(name, a, b) for name, a, b in both if a is not b]
        return sorted(others, key=lambda difference: difference[0]) or [(self.name, self.copy, self.holder)]


def outside(function: Callable[..., Any], names: Mapping[str, object]) -> Snapshot:
    """Return a snapshot of the state outside of a trace that a function can reach: by the given names, those of its
    module, and libraries that it may import."""
    values = {**drawn.modules(), function.__name__: function, **names}
    return Snapshot([Names(function.__code__, 0, values, function.__globals__)])


class Snapshot:
    """The contents of all objects reached from some scopes, the outermost first."""

    def __init__(self, scopes: list[Names]) -> None:
        self.scopes = scopes
        self.records: list[Record] = []
        pending: list[tuple[object, Kind, Record | int, object]] = []
        for number, scope in enumerate(scopes):
            _queue(scope.values.items(), number, pending)
            _queue(_of_module(scope.code, scope.globals), number, pending)
            self._note_bound(scope, number)
        self._walk(pending)

    def _note_bound(self, scope: Names, number: int) -> None:
        names = _module_names(scope.code, "STORE")
        if names:
            kind = BoundNames(names)
            self.records.append(Record(scope.globals, kind, kind.copy(scope.globals), number, "global"))

    def _walk(self, pending: list[tuple[object, Kind, Record | int, object]]) -> None:
        """Visit holders breadth first; `pending` grows."""
        seen: set[int] = set()
        records = self.records
        for holder, kind, parent, key in pending:
            if id(holder) in seen or len(records) >= MOST or (kind in _MAYBE_FOREIGN and _is_foreign(holder, kind)):
                continue
            seen.add(id(holder))
            copy = kind.copy(holder)
            record = Record(holder, kind, copy, parent, key)
            records.append(record)
            if not _has_leaves_alone(copy):
                _queue(kind.items(copy), record, pending)
            if isinstance(kind, Attributes):
                _queue([("", type(holder))], record, pending)
            if isinstance(holder, FunctionType):
                _queue(_of_module(holder.__code__, holder.__globals__), record, pending)

    def changed(self) -> list[Record]:
        """Return the records of the holders that changed."""
        return [record for record in self.records if not record.kind.same(record.holder, record.copy)]

    def restore(self) -> None:
        """Restore the contents of all holders."""
        for record in self.changed():
            record.kind.restore(record.holder, record.copy)

    def paths(self) -> Iterator[tuple[Path, object]]:
        """Yield every object that was reached, with its path."""
        for number, scope in enumerate(self.scopes):
            for name, value in scope.values.items():
                yield (number, name), value
        for record in self.records:
            for key, value in record.kind.items(record.copy):
                yield (*record.path, key), value


def _has_leaves_alone(copy: Any) -> bool:
    """True if a list or tuple leads nowhere, such as the many lists of registers."""
    return isinstance(copy, tuple) and not any(_kinds.get(of, True) for of in set(map(type, copy)))


def _queue(
    items: Iterable[tuple[object, object]], parent: Any, pending: list[tuple[object, Kind, Record | int, object]]
) -> None:
    for key, value in items:
        of = type(value)
        if of is tuple and _NUMBERS_AND_TEXTS.issuperset(map(type, value)):  # type: ignore[call-overload]
            continue
        if of not in _kinds:
            _kinds[of] = _kind(of)
        kind = _kinds[of]
        if kind is not None:
            pending.append((value, kind, parent, key))


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
