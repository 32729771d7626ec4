"""Find what a function may read from outside of it, from its bytecode: variables, and attributes by name."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ptxdsl.errors import Location, bytecode

MOST_CODES = 1024
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
