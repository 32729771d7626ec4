"""The version of nvJitLink by its file, cached on disk: loading the library takes longer than loading a cubin.

A note describes the file that a process had loaded. If another nvJitLink is loaded in a later process, the cubin of the
noted version is still valid: both are installed, and each cubin is stored under the version that made it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from functools import cache as once
from pathlib import Path

from ptxdsl.assemble import assemblers, cache

_FORMAT = "assembler 1"  # of a note; part of its name
_LIBRARY = "libnvJitLink.so."


def version(folder: Path | None, name: str | None, whole_program: bool) -> str | None:
    """Return the version of the assembler that `assemblers.choose` would return; None if unknown before loading it."""
    for candidate in assemblers.candidates(name, whole_program):
        if isinstance(candidate, assemblers.NvJitLink):
            name_of_note = _name()
            return read(cache.load(folder, name_of_note)) if name_of_note else None
        if not isinstance(candidate, assemblers.Ptxas):
            return None
        if candidate.why_not() is None:
            return candidate.version()
    return None


def note(folder: Path | None, assembler: assemblers.Assembler) -> None:
    """Store the version of an assembler that was loaded from the file of a wheel."""
    name = _name() if isinstance(assembler, assemblers.NvJitLink) else None
    if name and assemblers.pathfinder.load_nvidia_dynamic_lib("nvJitLink").abs_path == library():
        cache.store(folder, name, json.dumps({"assembler": assembler.version()}).encode() + b"\n")


def read(content: bytes | None) -> str | None:
    """Return the version in a note; None for invalid content."""
    try:
        known = json.loads(content or b"")["assembler"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return known if isinstance(known, str) else None


@once
def library() -> str | None:
    """Return the nvJitLink library of the installed wheel; None if there is no wheel, or several."""
    namespace = importlib.util.find_spec("nvidia")
    folders = namespace.submodule_search_locations if namespace else None
    paths = [path for folder in folders or () for path in _libraries(folder)]
    return paths[0] if len(paths) == 1 else None


def _libraries(folder: str) -> Iterator[str]:
    """Yield the libraries of wheels in a folder `nvidia`: in `nvjitlink`, or in a release folder (`cu13`)."""
    for name in os.listdir(folder):
        inside = f"{folder}/{name}/lib"
        if (name == "nvjitlink" or (name.startswith("cu") and name[2:].isdecimal())) and os.path.isdir(inside):
            yield from (f"{inside}/{file}" for file in os.listdir(inside) if file.startswith(_LIBRARY))


def _name() -> str | None:
    """Return the name of the note for the present state of the library file."""
    path = library()
    try:
        status = os.stat(path) if path else None
    except OSError:
        return None
    if status is None:
        return None
    facts = path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    return cache.key((_FORMAT, *map(str, facts)))
