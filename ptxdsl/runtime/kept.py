"""What kernels of the package were traced to, kept on disk beside the cubins: another process need not trace them.

To trace a large kernel takes longer than to load its machine code. All that its trace reads is the package, Python and
the constants it is made for; so its text is kept under all of these, for kernels of the package alone, with constants
of plain values and classes of the package. What somebody else wrote may read anything: it is traced in each process.
An entry is used where this process has the package that made it: the same files, which nobody has written since they
were imported, and nothing else in their modules than what they say (`imported`).
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
    """A value that another process may not have."""


# The modules by which a kernel of the package is traced, checked and printed
_TRACING = tuple(
    f"ptxdsl.{name}"
    for name in (
        "errors", "ir", "isa", "kernel", "kernels", "layout", "lower", "runtime.limits", "runtime.shape", "schedule",
        "trace", "types", "verify",
    )
)  # fmt: skip
_BESIDE = "ptxdsl.kernels.call", "ptxdsl.kernels.choose"  # they decide what is traced, and no trace reads them


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """What a kernel was traced to for a target: its text, the dynamic shared memory of a launch in bytes, the pointers
    through which it may write, the bytes of its shared arrays as Python wrote them; and the stamps of the files that
    did it."""

    kernel: str
    arch: str
    dynamic_bytes: int | None
    written: list[str]
    extents: dict[str, int]
    files: dict[str, str]
    text: str

    @property
    def is_of_this_package(self) -> bool:
        """Whether this process would trace it alike."""
        return all(imported.file_stamp(path) == known for path, known in self.files.items()) and _is_unchanged()


def _tracing_modules() -> list[str]:
    """The names of the loaded modules that a trace may read."""
    return [name for name in imported.noted() if name.startswith(_TRACING) and not name.startswith(_BESIDE)]


def _is_unchanged() -> bool:
    """Whether nobody has written into modules that a trace may read."""
    return sys.modules["ptxdsl"]._is_whole() and imported.are_unchanged(_tracing_modules())


def name_of(function: Callable[..., Any], kernel: object, *said: object, constants: Mapping[str, object]) -> str | None:
    """The name of the entry of a kernel, by its function, settings and constants; None where nothing can be kept."""
    if not _is_named(function.__module__, function.__qualname__, kernel):
        return None
    try:
        plan = described((*said, *constants, *constants.values()))
    except NotPlainError:
        return None
    versions = sys.version, platform.machine(), str(sys.flags.optimize), np.__version__
    return cache.key((_FORMAT, imported.ROOT, *versions, function.__module__, function.__qualname__, plan))


def described(value: Any) -> str:
    """A value and its type as text: 1, True and 1.0 differ, and 0.0 and -0.0. Raises NotPlainError for what is neither
    plain nor the package's."""
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
    """A function or class of the package by its name. Raises NotPlainError for others."""
    if not _is_named(value.__module__, value.__qualname__, value):
        raise NotPlainError
    return f"{value.__module__}:{value.__qualname__}"


def _is_named(module: str, name: str, value: object) -> bool:
    """Whether a name of the package is that of a value."""
    return module.startswith("ptxdsl.") and getattr(sys.modules.get(module), name, None) is value


def load(folder: Path | None, name: str) -> KeptTrace | None:
    """What is kept under a name, if this process would trace it alike."""
    trace = read(cache.load(folder, name))
    return trace if trace is not None and trace.is_of_this_package else None


def keep(folder: Path | None, name: str, variant: Variant) -> None:
    """Keeps what a kernel was traced to just now, in the stead of what other files made of it; not where the package is
    not what its files say."""
    files = imported.file_stamps(_tracing_modules()) if _is_unchanged() else None
    if files is not None:
        written = sorted(variant.written)
        extents = variant.extents
        trace = KeptTrace(variant.name, variant.arch, variant.dynamic_bytes, written, extents, files, variant.text)
        cache.store(folder, name, packed(trace))


def packed(trace: KeptTrace) -> bytes:
    """The bytes of an entry: a line of JSON, then the text."""
    facts = asdict(trace)
    text: str = facts.pop("text")
    return json.dumps({"trace": facts}).encode() + b"\n" + text.encode()


def read(content: bytes | None) -> KeptTrace | None:
    """A trace; None where the bytes are something else."""
    line, _, text = (content or b"").partition(b"\n")
    try:
        return KeptTrace(**json.loads(line)["trace"], text=text.decode())
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
