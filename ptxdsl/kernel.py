"""Kernels as callables: `k[grid, block](…)` runs on the emulator or the GPU, `k.ptx()` shows what was traced."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import config, errors, ir
from .assemble import Cubin, Resources, assemble, check_arch
from .errors import TraceError
from .lower import lower
from .trace import REQUIRED, Signature, Traced, signature, trace

DEFAULT_ARCH = "sm_80"


@dataclass(frozen=True, slots=True)
class Options:
    """Promises about launches, printed as directives: threads of a block (exact or at most), blocks an SM holds."""

    reqntid: tuple[int, ...] | None = None
    max_threads: tuple[int, ...] | None = None
    min_blocks: int | None = None

    def directives(self) -> tuple[ir.Directive, ...]:
        given = (("reqntid", self.reqntid), ("maxntid", self.max_threads), ("minnctapersm", self.min_blocks))
        return tuple(ir.Directive(name, _extents(value)) for name, value in given if value is not None)


def _extents(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


class Kernel:
    """A kernel: a Python function that is traced once for each architecture and set of constants."""

    def __init__(self, function: Callable[..., Any], found: Signature, options: Options) -> None:
        functools.update_wrapper(self, function)
        self.function, self.signature, self.options = function, found, options
        self._traced: dict[Any, Traced] = {}
        self._texts: dict[Any, str] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.function.__qualname__}>"

    def __reduce__(self) -> Any:
        return _find, (self.function.__module__, self.function.__qualname__)

    def traced(self, arch: str | None = None, **constants: Any) -> Traced:
        """The ir for an architecture and constants, traced when first asked for."""
        arch = _arch(arch)
        values = self._constants(constants)
        key = arch, *values.values()
        if key not in self._traced:
            directives = self.options.directives()
            self._traced[key] = trace(self.signature, values, arch=arch, directives=directives)
        return self._traced[key]

    def ir(self, arch: str | None = None, **constants: Any) -> ir.Module:
        """The traced module."""
        return self.traced(arch, **constants).module

    def ptx(self, arch: str | None = None, *, annotate: bool = False, **constants: Any) -> str:
        """The PTX text. `arch` is PTXDSL_ARCH or sm_80 without it; `annotate` shows Python lines as comments."""
        settings = config.current()
        return lower(self.ir(arch, **constants), lineinfo=settings.lineinfo and not annotate, annotate=annotate)

    def cubin(self, arch: str | None = None, **constants: Any) -> Cubin:
        """The kernel assembled: `.image` in bytes, registers, spills and warnings beside it."""
        return assemble(self.ptx(arch, **constants), _arch(arch))

    def sass(self, arch: str | None = None, **constants: Any) -> str:
        """The machine instructions as text."""
        return self.cubin(arch, **constants).sass()

    def resources(self, arch: str | None = None, **constants: Any) -> Resources:
        """Registers, spills, stack and shared memory, as the assembler says."""
        return self.cubin(arch, **constants).kernels[self.function.__name__]

    def _constants(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The constants by name, defaults filled in, in the order of the signature."""
        name, known = self.function.__name__, self.signature.constants
        for unknown in given.keys() - known.keys():
            raise TraceError(f"kernel `{name}` has no constant `{unknown}`", at=errors.here().location,
                             help=f"it takes {', '.join(known) or 'none'}")  # fmt: skip
        values = {key: given.get(key, default) for key, default in known.items()}
        for key, value in values.items():
            if value is REQUIRED:
                raise TraceError(f"constant `{key}` of kernel `{name}` is not given", at=errors.here().location,
                                 help=f"pass it by name: `{key}=…`")  # fmt: skip
            _check_hashable(name, key, value)
        return values


def _check_hashable(name: str, key: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise TraceError(
            f"constant `{key}` of kernel `{name}` is a {type(value).__name__}, which is not hashable",
            at=errors.here().location,
            help="pass a tuple or a frozen dataclass: a kernel is traced once for each value",
        ) from None


def _arch(arch: str | None) -> str:
    chosen = arch or config.current().arch or DEFAULT_ARCH
    check_arch(chosen)
    return chosen


def _find(module: str, qualname: str) -> Any:
    """The kernel of that name, where a pickled one is loaded."""
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    reqntid: int | tuple[int, ...] | None = None,
    max_threads: int | tuple[int, ...] | None = None,
    min_blocks: int | None = None,
) -> Any:
    """Makes a kernel of a function: `@pd.kernel`, or `@pd.kernel(max_threads=256, min_blocks=2)`.

    Parameters are annotated with what they take (`ptr[f32]`, `u32`); keyword-only parameters are constants: hashable
    Python values that the kernel is traced for. `reqntid` promises the exact block, `max_threads` its largest size,
    `min_blocks` how many blocks shall fit a multiprocessor.
    """
    names = errors.names_here()
    scope = names.values if names else {}

    def make(function: Callable[..., Any]) -> Kernel:
        if not callable(function) or not hasattr(function, "__code__"):
            raise TraceError(f"pd.kernel takes a function; found {function!r}", at=errors.here().location)
        return Kernel(function, signature(function, scope), Options(reqntid, max_threads, min_blocks))

    return make if function is None else make(function)
