"""The modules of this package as they were when they were imported, and whether they are so still.

What a file of the package says is what runs, unless it was written since, or somebody has put another function, class
or number into its module, or into a class or table of it. Python sets a module as an attribute of its package as soon
as it has been imported: nobody else has had it before.
"""

from __future__ import annotations

import operator
import os
import sys
import time
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

LOADED_NS = time.time_ns()  # since 1970
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of the package
_CLOCK_NS = 2 * 10**9  # by which the clock of files may be behind that of processes
_OF_PYTHON = "__slotnames__"  # which copy() adds to a class
_Space = tuple[Mapping[Any, object], dict[Any, object]]
_noted: dict[str, tuple[ModuleType, list[_Space]]] = {}
"""Each module, with its names, those of its classes and what is in its tables, and what these were."""


class Watched(ModuleType):
    """A package whose modules are noted when they have been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        is_module = self.note(name, value)
        super().__setattr__(name, value)
        if is_module and self.__name__ in _noted:
            _noted[self.__name__][1][0][1].setdefault(name, value)

    def note(self, name: str, value: object) -> bool:
        """Notes what is set as an attribute, if it is the module of that name. Says whether it is."""
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            _note(value)
            return True
        return False


def watch(package: ModuleType, kind: type[Watched]) -> None:
    """Makes a package one of a kind that notes its modules, and notes those that it has already."""
    package.__class__ = kind
    for name in list(sys.modules):
        if name.startswith(f"{package.__name__}."):
            _note(sys.modules[name])


def _note(module: ModuleType) -> None:
    """Notes a module, and those that came with it."""
    name = module.__name__
    if name in _noted and _noted[name][0] is module:
        return
    _noted[name] = module, [(space, dict(space)) for space in _spaces_of(module)]
    if hasattr(module, "__path__"):
        for inner, each in list(sys.modules.items()):
            if inner.startswith(f"{name}."):
                _note(each)
        if not isinstance(module, Watched):
            module.__class__ = Watched


def _spaces_of(module: ModuleType) -> list[Mapping[Any, object]]:
    """The names of a module and of its classes, and its tables: dicts with the names of constants."""
    spaces: list[Mapping[Any, object]] = [vars(module)]
    classes: set[type] = set()
    for space in spaces:
        for name, value in space.items():
            if isinstance(value, type):
                if value.__module__ == module.__name__ and value not in classes:
                    classes.add(value)
                    spaces.append(vars(value))
            elif type(value) is dict and isinstance(name, str) and name.isupper():
                spaces.append(value)
    return spaces


def noted() -> list[str]:
    """The names of the modules that were imported."""
    return list(_noted)


def are_unchanged(names: Iterable[str]) -> bool:
    """Whether modules, by their names, their classes and tables hold what they held when they were imported."""
    same = operator.is_
    for name in names:
        module, spaces = _noted.get(name, (None, ()))
        if module is not sys.modules[name]:
            return False
        for now, before in spaces:
            if len(now) != len(before) or not all(map(same, now.values(), before.values())):
                held, was = _parts(now), _parts(before)
                if held.keys() != was.keys() or not all(held[each] is was[each] for each in was):
                    return False
    return True


def _parts(space: Mapping[Any, object]) -> dict[Any, object]:
    """What is in a namespace but the modules of a package, which come one by one."""
    return {name: part for name, part in space.items() if name != _OF_PYTHON and not isinstance(part, ModuleType)}


def file_stamps(names: Iterable[str]) -> dict[str, str] | None:
    """The stamps of the files of modules, by their paths within the package; None where one has none."""
    stamps: dict[str, str] = {}
    for name in names:
        path = os.path.relpath(getattr(sys.modules[name], "__file__", None) or ROOT, ROOT)
        known = file_stamp(path)
        if known is None:
            return None
        stamps[path] = known
    return stamps


def file_stamp(path: str) -> str | None:
    """What tells one version of a file of the package from others; None where there is none, or where it was written
    after the package was loaded, so that this process may run another version."""
    try:
        status = os.stat(f"{ROOT}{os.sep}{path}")
    except OSError:
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) > LOADED_NS - _CLOCK_NS:
        return None
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
