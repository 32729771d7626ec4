"""The Python names of a kernel's registers and arrays, for debuggers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType

from ptxdsl import ir
from ptxdsl.errors import local_names
from ptxdsl.notes import SharedArray
from ptxdsl.trace import trace
from ptxdsl.trace.builder import peek
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.signature import KernelSignature
from ptxdsl.trace.value import Special

DEEPEST = 3  # nesting depth of lists


@dataclass(frozen=True)
class PythonNames:
    """PTX register names by Python name (`total`, `sums[0][1]`, `slot.index`), and arrays in shared memory."""

    registers: dict[str, list[str]] = field(default_factory=dict)
    arrays: dict[str, SharedArray] = field(default_factory=dict)

    def add(self, name: str, value: object, depth: int = 0) -> None:
        """Record a name and its value; for lists, tuples and plain objects also their contents."""
        if isinstance(value, PointerValue):
            value = value.base
        if isinstance(value, Scalar):
            register = _register(value)
            if isinstance(register, ir.Register):
                known = self.registers.setdefault(name, [])
                known += [register.name] * (register.name not in known)
        elif isinstance(value, ArrayView):
            pointer = value.pointer
            if value.space == "shared" and isinstance(pointer.base, ir.Variable):
                held = SharedArray(name, str(pointer.base), pointer.offset, value.element, value.layout)
                self.arrays[name] = held
        elif depth < DEEPEST:
            for suffix, part in _parts(value):
                self.add(name + suffix, part, depth + 1)


def _register(value: Scalar) -> object:
    """Return the register of a value; for a special register the one it was read into, if any."""
    builder = peek()
    if isinstance(value, Special):
        return builder.memory.get(value.name) if builder is not None else None
    return value.operand


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, list | tuple):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    elif not isinstance(value, type) and hasattr(value, "__dict__") and not callable(value):
        yield from ((f".{attribute}", part) for attribute, part in vars(value).items())


def python_names(
    signature: KernelSignature, constants: Mapping[str, object], arch: str, directives: tuple[ir.Directive, ...]
) -> PythonNames:
    """Trace the kernel again and return its names; the kernel's own names override those of helpers."""
    names = PythonNames()

    def collect(code: CodeType, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            names.add(name, value)

    with warnings.catch_warnings(), local_names(collect):
        warnings.simplefilter("ignore")
        trace(signature, constants, arch=arch, directives=directives)
    return names
