"""Find the Python variables that a function reads, from its bytecode: globals, cells, and attributes of `self`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

from ptxdsl.errors import bytecode

MOST_CODES = 1024
_GLOBAL, _CELL = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


class Read(NamedTuple):
    """A global or free variable that code names, and the attributes it reads: `settings.tile.m`."""

    is_cell: bool
    name: str
    attributes: tuple[str, ...]


@lru_cache(maxsize=MOST_CODES)
def reads(code: CodeType) -> tuple[Read, ...]:
    """Return the outer variables that a function or its inner functions name, each with its attributes."""
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


@lru_cache(maxsize=MOST_CODES)
def read_of_object(code: CodeType) -> frozenset[str] | None:
    """Return the attributes of `self` that a method reads; None if it may read any, since it passes `self` on."""
    if not code.co_argcount or "__class__" in code.co_freevars or code.co_varnames[0] in code.co_cellvars:
        return None
    itself, names = code.co_varnames[0], set()
    for instruction, following in pairwise(bytecode(code)):
        loaded = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith("LOAD_FAST") and itself in loaded:
            if itself in loaded[:-1] or following.opname not in (*_ATTRIBUTE, "STORE_ATTR"):
                return None
            names.add(str(following.argval))
    return frozenset(names)
