"""Record the package's modules at import, and detect later changes.

The code that runs is the code in the package's files unless a file was written since, or a function, class or number
was replaced in a module, in one of its classes or in one of its tables. Python sets a module as an attribute of its
package as soon as the import ends, so the record is made before other code can change the module.
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
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the package directory
_CLOCK_NS = 2 * 10**9  # file timestamps may lag the process clock by this much
_OF_PYTHON = "__slotnames__"  # copy() adds this name to a class
_Space = tuple[Mapping[Any, object], dict[Any, object]]
_noted: dict[str, tuple[ModuleType, list[_Space]]] = {}
"""For each module: its namespaces (of the module, its classes and its tables), and a copy of each at import."""


class Watched(ModuleType):
    """A package that records its modules when they are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        is_module = self.note(name, value)
        super().__setattr__(name, value)
        if is_module and self.__name__ in _noted:
            _noted[self.__name__][1][0][1].setdefault(name, value)

    def note(self, name: str, value: object) -> bool:
        """Record a value set as an attribute if it is the submodule of that name. Return True if it is."""
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            _note(value)
            return True
        return False


def watch(package: ModuleType, kind: type[Watched]) -> None:
    """Turn a package into a `kind` that records its modules, and record those already imported."""
    package.__class__ = kind
    for name in list(sys.modules):
        if name.startswith(f"{package.__name__}."):
            _note(sys.modules[name])


def _note(module: ModuleType) -> None:
    """Record a module, and the submodules imported with it."""
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
    """Return the namespaces of a module and of its classes, and its tables: dicts with upper-case names."""
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
    """Return the names of the recorded modules."""
    return list(_noted)


def are_unchanged(names: Iterable[str]) -> bool:
    """True if the modules, their classes and their tables hold the same objects as at import."""
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
    """Return a namespace without submodules, which are recorded separately."""
    return {name: part for name, part in space.items() if name != _OF_PYTHON and not isinstance(part, ModuleType)}


def file_stamps(names: Iterable[str]) -> dict[str, str] | None:
    """Return the stamps of the modules' files by path within the package; None if a file has no stamp."""
    stamps: dict[str, str] = {}
    for name in names:
        path = os.path.relpath(getattr(sys.modules[name], "__file__", None) or ROOT, ROOT)
        known = file_stamp(path)
        if known is None:
            return None
        stamps[path] = known
    return stamps


def file_stamp(path: str) -> str | None:
    """Return a stamp that identifies the version of a file of the package.

    None if the file does not exist or was written after the package was loaded: this process may run another version.
    """
    try:
        status = os.stat(f"{ROOT}{os.sep}{path}")
    except OSError:
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) > LOADED_NS - _CLOCK_NS:
        return None
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
