"""The version of nvJitLink by its file, noted on disk: to load the library and ask takes longer than to load a cubin.

A note is of a file as it was when a process had loaded it. Where a process has another nvJitLink loaded already, the
cubin of the noted one is as good: both are installed, and each cubin is kept under the version that made it.
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
    """The version of the assembler that `assemblers.choose` would take; None where only loading it tells."""
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
    """Notes the version of an assembler that has just been loaded from the file that a wheel has brought."""
    name = _name() if isinstance(assembler, assemblers.NvJitLink) else None
    if name and assemblers.pathfinder.load_nvidia_dynamic_lib("nvJitLink").abs_path == library():
        cache.store(folder, name, json.dumps({"assembler": assembler.version()}).encode() + b"\n")


def read(content: bytes | None) -> str | None:
    """The version in a note; None where the bytes are something else."""
    try:
        known = json.loads(content or b"")["assembler"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return known if isinstance(known, str) else None


@once
def library() -> str | None:
    """The library that a wheel has brought; None where there is none, or several."""
    namespace = importlib.util.find_spec("nvidia")
    folders = namespace.submodule_search_locations if namespace else None
    paths = [path for folder in folders or () for path in _libraries(folder)]
    return paths[0] if len(paths) == 1 else None


def _libraries(folder: str) -> Iterator[str]:
    """Those of wheels in a folder `nvidia`: in its `nvjitlink`, or beside all else of a release, in `cu13`."""
    for name in os.listdir(folder):
        inside = f"{folder}/{name}/lib"
        if (name == "nvjitlink" or (name.startswith("cu") and name[2:].isdecimal())) and os.path.isdir(inside):
            yield from (f"{inside}/{file}" for file in os.listdir(inside) if file.startswith(_LIBRARY))


def _name() -> str | None:
    """The name of the note for that file as it is now."""
    path = library()
    try:
        status = os.stat(path) if path else None
    except OSError:
        return None
    if status is None:
        return None
    facts = path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    return cache.key((_FORMAT, *map(str, facts)))
