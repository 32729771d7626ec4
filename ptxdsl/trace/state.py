"""What lists, dictionaries, sets, arrays, objects and iterators of Python hold, as the functions that run reach them.

Traced values are leaves: what a `pd.var` holds is the kernel's business, which of them a list holds is Python's.
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
from ptxdsl.trace.captured import Traceable
from ptxdsl.trace.instruction import Source

MOST = 2000  # holders that are looked at: the nearest ones
MOST_BYTES = 1 << 20  # of an array
_MADE_BY_CLASS = 1 << 9  # of a type's flags
_OURS, _OUR_KERNELS = "ptxdsl", "ptxdsl.kernels"
_NUMBERS_AND_TEXTS = {int, float, bool, str, type(None)}
Path: TypeAlias = tuple[object, ...]  # number of the scope, a name in it, and the keys that lead on from there


class Kind(ABC):
    """How holders of a kind are copied, compared, restored and named. `items` of a copy are what they lead to."""

    @abstractmethod
    def copy(self, holder: Any) -> object:
        """What the holder holds now."""

    @abstractmethod
    def same(self, holder: Any, copy: Any) -> bool:
        """Whether the holder still holds what was copied."""

    def restore(self, holder: Any, copy: Any) -> None:  # noqa: B027 — some holders cannot be written
        """Makes the holder hold what was copied, where that can be done."""

    def items(self, copy: Any) -> Iterable[tuple[object, object]]:
        return ()

    def mapped(self, copy: Any, function: Callable[[object], object]) -> Any:
        """A copy with other values in it."""
        return copy

    def named(self, holder: str, key: object) -> str:
        """How a message calls an item."""
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
    """Objects that hold things in several ways: a list of a class with attributes, slots beside a `__dict__`."""

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
    """Arrays of bytes, and of the library's `array`."""

    def copy(self, holder: Any) -> object:
        return holder[:]

    def same(self, holder: Any, copy: Any) -> bool:
        return bool(holder == copy)

    def restore(self, holder: Any, copy: Any) -> None:
        holder[:] = copy


class Numbers(Kind):
    """Arrays of numpy; None for those that are large, or cannot be written."""

    def copy(self, holder: Any) -> object:
        return holder.copy() if holder.flags.writeable and holder.nbytes <= MOST_BYTES else None

    def same(self, holder: Any, copy: Any) -> bool:
        return copy is None or (holder.shape == copy.shape and holder.tobytes() == copy.tobytes())

    def restore(self, holder: Any, copy: Any) -> None:
        holder[...] = copy


class ClosureCells(Entries):
    """The names that a function shares with the one it is defined in, and those of its module that it binds."""

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
    """Classes of the user's: what they hold besides functions."""

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
    """The names of its module that a function which runs binds by `global`; the holder is the module's names."""

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
    """Iterators and generators: where they are, as far as that can be seen. They cannot be put back."""

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
    except (OSError, ValueError):  # a pipe, a file that is closed
        return -1


def _position_in(generator: GeneratorType[Any, Any, Any], depth: int) -> tuple[object, ...]:
    frame = generator.gi_frame
    if frame is None or generator.gi_running:
        return (frame is None,)
    values = list(frame.f_locals.values())
    return frame.f_lasti, *(v if isinstance(v, int | str) else id(v) for v in values), *_positions(values, depth)


def _positions(values: Iterable[object], depth: int) -> Iterator[object]:
    for value in values if depth else ():
        if isinstance(value, int | float | str):  # of accumulate the sum so far, of tee an index
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
    """Of itertools.cycle the position in the list that it repeats, of tee that in what is kept; not on Python 3.14."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return iterator.__reduce__()  # type: ignore[no-any-return]
        except TypeError:
            return gc.get_referents(iterator)


_HIDING: tuple[type, ...] = (itertools.cycle, type(itertools.tee(())[0]))  # what they are at is no object


class DrawnNumbers(Kind):
    """Random generators: how far they are."""

    def copy(self, holder: Any) -> object:
        return drawn.position(holder)

    def same(self, holder: Any, copy: Any) -> bool:
        return drawn.same(drawn.position(holder), copy)

    def restore(self, holder: Any, copy: Any) -> None:
        drawn.put_back(holder, copy)


class Through(Kind):
    """What does not change itself, and leads to what does."""

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
_CONTAINERS = (ChainMap, UserDict, UserList)  # of the library, written in Python
_kinds: dict[type, Kind | None] = {}


def _kind(of: type) -> Kind | None:
    """How objects of a type are looked at; None for leaves."""
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
    """Whether a class belongs to a library that keeps no state of the user's."""
    module = of.__module__
    top = module.partition(".")[0]
    if issubclass(of, _CONTAINERS) or module == "queue":
        return False
    if module == "builtins":  # as are classes of a text that is executed without a module's name
        return not of.__flags__ & _MADE_BY_CLASS
    return top in sys.stdlib_module_names or top == "numpy" or (top == _OURS and not module.startswith(_OUR_KERNELS))


def _is_frozen(of: type) -> bool:
    """Whether a class of shipped kernels has the fields that it is made with, and what follows from them."""
    is_ours = of.__module__.startswith(_OUR_KERNELS) and is_dataclass(of)
    return is_ours and bool(of.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _slots(of: type) -> Iterable[str]:
    slots = of.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _is_foreign(holder: Any, kind: Kind) -> bool:
    """Whether a function, a class or a module belongs to a library that keeps no state of the user's."""
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
    """A holder, what it held, and from which other one, by which key, it was reached; from a scope, by a name."""

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
        """What a message calls it."""
        if isinstance(self.parent, int):
            return str(self.key)
        return self.parent.kind.named(self.parent.name, self.key)

    def differences(self) -> list[tuple[str, object, object]]:
        """(name, old, new) of the items that are others now; of the holder itself where it has more or fewer."""
        old, new = dict(self.kind.items(self.copy)), dict(self.kind.items(self.kind.copy(self.holder)))
        both = [(self.kind.named(self.name, key), old[key], new[key]) for key in old.keys() & new.keys()]
        others = [(name, a, b) for name, a, b in both if a is not b]
        return sorted(others, key=lambda difference: difference[0]) or [(self.name, self.copy, self.holder)]


def outside(function: Callable[..., Any], names: Mapping[str, object]) -> Snapshot:
    """What a function that is traced may find of state that outlives a trace: by these names, those of its module, and
    in libraries that it may import."""
    values = {**drawn.modules(), function.__name__: function, **names}
    return Snapshot([Names(function.__code__, 0, values, function.__globals__)])


class Snapshot:
    """What all that is reached from some scopes holds. `scopes` have the outermost first."""

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
        """Breadth first; `pending` grows."""
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
        """The holders that hold something else now."""
        return [record for record in self.records if not record.kind.same(record.holder, record.copy)]

    def restore(self) -> None:
        """Makes all holders hold what they did."""
        for record in self.changed():
            record.kind.restore(record.holder, record.copy)

    def paths(self) -> Iterator[tuple[Path, object]]:
        """All that was reached, by its path."""
        for number, scope in enumerate(self.scopes):
            for name, value in scope.values.items():
                yield (number, name), value
        for record in self.records:
            for key, value in record.kind.items(record.copy):
                yield (*record.path, key), value


def _has_leaves_alone(copy: Any) -> bool:
    """Whether a list or tuple leads nowhere; such as one of registers, of which kernels have many."""
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
    """What a function may reach by the names of its module."""
    return ((name, names[name]) for name in _module_names(code, "LOAD") if name in names)


# By the identity of code, which is kept alive.
_names: dict[tuple[int, str], tuple[CodeType, list[str]]] = {}


def _module_names(code: CodeType, verb: str) -> list[str]:
    """The names of its module that a function reads ("LOAD") or binds ("STORE")."""
    known = _names.get((id(code), verb))
    if known is None:
        opcode = f"{verb}_GLOBAL"
        names = list(dict.fromkeys(str(i.argval) for i in bytecode(code) if i.opname == opcode))
        known = _names[id(code), verb] = code, names
    return known[1]
