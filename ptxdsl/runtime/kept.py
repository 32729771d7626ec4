"""Cache the traced text of the package's own kernels on disk, next to the cubins, so that other processes need not
trace them.

Tracing a large kernel takes longer than loading its machine code. The trace of a kernel in this package reads only the
package, Python and the constants, so these form the key of its text. Constants must be plain values or classes of the
package. A user's kernel may read anything, so it is traced in each process. An entry is used only if this process runs
the package that made it: the same files, not written since they were imported, and no changed objects in their modules
(`imported`).
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from ptxdsl.assemble import cache
from ptxdsl.runtime import imported
from ptxdsl.runtime.variant import Variant

_FORMAT = "trace 2"  # of an entry; part of its name
_SAID = (bool, int, str, bytes, type(None))


class NotPlainError(Exception):
    """Raised for a value that another process may not have."""


# The modules that trace, check and print a kernel of the package.
_TRACING = tuple(
    f"ptxdsl.{name}"
    for name in (
        "errors", "ir", "isa", "kernel", "kernels", "layout", "lower", "runtime.limits", "runtime.shape", "schedule",
        "trace", "types", "verify",
    )
)  # fmt: skip
# They choose the kernel to trace; no trace reads them.
_BESIDE = tuple(f"ptxdsl.kernels.{room}" for room in ("call", "choose", "candidates"))


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """The traced kernel for a target: its text, the dynamic shared memory of a launch in bytes, the pointers that it
    may write through, the sizes of its shared arrays as declared in Python, and the stamps of the files that produced
    it.
    """

    kernel: str
    arch: str
    dynamic_bytes: int | None
    written: list[str]
    extents: dict[str, int]
    files: dict[str, str]
    text: str

    @property
    def is_of_this_package(self) -> bool:
        """True if this process would produce the same trace."""
        return all(imported.file_stamp(path) == known for path, known in self.files.items()) and _is_unchanged()


def _tracing_modules() -> list[str]:
    """Return the names of the loaded modules that a trace may read."""
    return [name for name in imported.noted() if name.startswith(_TRACING) and not name.startswith(_BESIDE)]


def _is_unchanged() -> bool:
    """True if no module that a trace may read has been modified."""
    return sys.modules["ptxdsl"]._is_whole() and imported.are_unchanged(_tracing_modules())


def name_of(function: Callable[..., Any], kernel: object, *said: object, constants: Mapping[str, object]) -> str | None:
    """Return the entry name of a kernel, by its function, settings and constants; None if it cannot be cached."""
    if not _is_named(function.__module__, function.__qualname__, kernel):
        return None
    try:
        plan = described((*said, *constants, *constants.values()))
    except NotPlainError:
        return None
    versions = sys.version, platform.machine(), str(sys.flags.optimize), np.__version__
    return cache.key((_FORMAT, imported.ROOT, *versions, function.__module__, function.__qualname__, plan))


def described(value: Any) -> str:
    """Describe a value and its type as text; 1, True and 1.0 differ, and so do 0.0 and -0.0.

    Raises NotPlainError for a value that is neither plain nor defined in the package.
    """
    kind = type(value)
    if kind in _SAID:
        return f"{kind.__name__} {value!r}"
    if kind is float:
        return f"float {value.hex()}"
    if kind is tuple:
        return f"({', '.join(map(described, value))})"
    if kind is FunctionType or isinstance(value, type):
        return _called(value)
    if isinstance(value, Enum):
        return f"{_called(kind)}.{value.name}"
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        held = [f"{field.name}={described(getattr(value, field.name))}" for field in fields(kind)]
        return f"{_called(kind)}({', '.join(held)})"
    raise NotPlainError


def _called(value: Any) -> str:
    """Return the qualified name of a function or class of the package. Raises NotPlainError for others."""
    if not _is_named(value.__module__, value.__qualname__, value):
        raise NotPlainError
    return f"{value.__module__}:{value.__qualname__}"


def _is_named(module: str, name: str, value: object) -> bool:
    """True if the package binds this name to the value."""
    return module.startswith("ptxdsl.") and getattr(sys.modules.get(module), name, None) is value


def load(folder: Path | None, name: str) -> KeptTrace | None:
    """Load an entry if this process would produce the same trace."""
    trace = read(cache.load(folder, name))
    return trace if trace is not None and trace.is_of_this_package else None


def keep(folder: Path | None, name: str, variant: Variant) -> None:
    """Store the trace of a kernel, replacing an entry of other files; do nothing if the package was modified."""
    files = imported.file_stamps(_tracing_modules()) if _is_unchanged() else None
    if files is not None:
        written = sorted(variant.written)
        extents = variant.extents
        trace = KeptTrace(variant.name, variant.arch, variant.dynamic_bytes, written, extents, files, variant.text)
        cache.store(folder, name, packed(trace))


def packed(trace: KeptTrace) -> bytes:
    """Encode an entry: a line of JSON, then the text."""
    facts = asdict(trace)
    text: str = facts.pop("text")
    return json.dumps({"trace": facts}).encode() + b"\n" + text.encode()


def read(content: bytes | None) -> KeptTrace | None:
    """Decode a trace; None if the bytes are not one."""
    line, _, text = (content or b"").partition(b"\n")
    try:
        return KeptTrace(**json.loads(line)["trace"], text=text.decode())
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
