"""Kernels as callables: `k[grid, block](…)` runs one, `k.ptx()` and its like show what becomes of it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxdsl.trace.builder import is_name

from . import config, ir
from .calls import DEFAULT_ARCH, Launch, Variant, arguments, assembling, parsing
from .errors import Error, LaunchError, TraceError, here, names_here
from .lower import lower
from .trace import REQUIRED, Signature, signature, trace
from .verify import check_operands

if TYPE_CHECKING:
    from .assemble import Cubin, Resources
    from .launch import Compiled

MOST_VARIANTS = 1024  # of a kernel, that are remembered
RESERVED = ("stream", "cluster", "cooperative", "arch", "annotate", "shared_bytes", "checks")


@dataclass(frozen=True, slots=True)
class Options:
    """Promises about launches, printed as directives: threads of a block (exact or at most), blocks an SM holds."""

    reqntid: int | tuple[int, ...] | None = None
    max_threads: int | tuple[int, ...] | None = None
    min_blocks: int | None = None

    def directives(self) -> tuple[ir.Directive, ...]:
        given = (("reqntid", self.reqntid), ("maxntid", self.max_threads), ("minnctapersm", self.min_blocks))
        return tuple(
            ir.Directive(name, value if isinstance(value, tuple) else (value,))
            for name, value in given
            if value is not None
        )


class AnyKernel:
    """What traced and parsed kernels have in common."""

    name: str

    def __init__(self) -> None:
        self.handles: dict[Any, tuple[Variant, Compiled]] = {}

    def variant(self, arch: str | None, constants: dict[str, Any]) -> Variant:
        """The kernel for a target and constants, made when first asked for."""
        raise NotImplementedError

    def __getitem__(self, shape: Any) -> Launch:
        """`kernel[grid, block]` or `kernel[grid, block, shared_bytes]`: ints, or tuples of one to three ints."""
        if type(shape) is not tuple or not 2 <= len(shape) <= 3:
            raise _misuse(self, f"is indexed by {shape!r}")
        return Launch(self, *shape)

    def __call__(self, *given: Any, **constants: Any) -> None:
        raise _misuse(self, "is called without a grid and a block")

    def ptx(self, arch: str | None = None, *, annotate: bool = False, **constants: Any) -> str:
        """The PTX text for `arch`, else for PTXDSL_ARCH, else sm_80. `annotate` shows Python lines as comments."""
        variant = self.variant(arch, constants)
        return lower(variant.module, lineinfo=False, annotate=True) if annotate else variant.text

    def ir(self, arch: str | None = None, **constants: Any) -> ir.Module:
        """The program as objects."""
        return self.variant(arch, constants).module

    def cubin(self, arch: str | None = None, **constants: Any) -> Cubin:
        """Machine code: `.image` in bytes; registers, spills and warnings beside it."""
        return self.variant(arch, constants).cubin

    def sass(self, arch: str | None = None, **constants: Any) -> str:
        """The machine instructions as text."""
        return self.cubin(arch, **constants).sass()

    def resources(self, arch: str | None = None, **constants: Any) -> Resources:
        """Registers, spills, stack and shared memory, as the assembler says."""
        return self.cubin(arch, **constants).kernels[self.name]

    def compiled(self, arch: str | None = None, **constants: Any) -> Compiled:
        """A handle that launches in a few microseconds: `handle(grid, block, arguments, stream=…)`."""
        variant = self.variant(arch, constants)
        return variant.compiled(variant.arch)


def _misuse(kernel: AnyKernel, what: str) -> LaunchError:
    return LaunchError(
        f"kernel `{kernel.name}` {what}",
        at=here().location,
        help=f"write `{kernel.name}[grid, block](…)`, for example `{kernel.name}[(8,), (128,)](…)`",
    )


class Kernel(AnyKernel):
    """A Python function that is traced once for each target and set of constants."""

    def __init__(self, function: Callable[..., Any], found: Signature, options: Options) -> None:
        super().__init__()
        functools.update_wrapper(self, function)
        self.name, self.signature, self.options = function.__name__, found, options
        self._variants: dict[Any, Variant] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.__qualname__}>"  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return _find, (self.__module__, self.__qualname__)  # type: ignore[attr-defined]

    def variant(self, arch: str | None, constants: dict[str, Any]) -> Variant:
        settings = config.current()
        values = self._constants(constants)
        key = (arch or settings.arch or DEFAULT_ARCH, settings.lineinfo, *values.values())
        if key not in self._variants:
            if len(self._variants) >= MOST_VARIANTS:
                del self._variants[next(iter(self._variants))]  # the oldest; constants may be new at each call
            self._variants[key] = self._trace(key[0], settings.lineinfo, values)
        return self._variants[key]

    def _trace(self, arch: str, lineinfo: bool, values: dict[str, Any]) -> Variant:
        assembling.check_arch(arch)
        traced = trace(self.signature, values, arch=arch, directives=self.options.directives())
        parameters = [(p.name, p.type) for p in self.signature.parameters(values)]
        text = lower(traced.module, lineinfo=lineinfo)
        return Variant(self.name, arch, traced.module, text, parameters, traced.dynamic_bytes)

    def _constants(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The constants by name, defaults filled in, in the order of the signature."""
        known = self.signature.constants
        for unknown in given:
            if unknown not in known:
                raise self._unknown(unknown)
        values = {name: given.get(name, default) for name, default in known.items()}
        for name, value in values.items():
            self._check_constant(name, value)
        return values

    def _unknown(self, name: str) -> TraceError:
        """What is wrong with a name that is no constant."""
        constants, names = ", ".join(self.signature.constants), self.signature.names
        if name in names:
            message = f"`{name}` is a parameter of kernel `{self.name}`, which takes constants alone by name"
            help = f"give parameters in their order, at the launch: `{self.name}[grid, block]({', '.join(names)})`"
        else:
            message = f"kernel `{self.name}` has no constant `{name}`"
            help = f"it takes {constants}" if constants else "it has none: it is launched with its parameters alone"
        return TraceError(message, at=here().location, help=help)

    def _check_constant(self, name: str, value: Any) -> None:
        if value is REQUIRED:
            raise TraceError(
                f"kernel `{self.name}` needs its constant `{name}`",
                at=here().location,
                help=f"pass it by name: `{name}=…`",
            )
        try:
            hash(value)
        except TypeError:
            raise TraceError(
                f"constant `{name}` of kernel `{self.name}` is a {type(value).__name__}, which is not hashable",
                at=here().location,
                help="pass a tuple or a frozen dataclass: a kernel is traced once for each value",
            ) from None


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
    Python values that the kernel is traced for. `*rest: types`, with a constant `types` that is a tuple of types,
    stands for as many parameters. `reqntid` promises the exact block, `max_threads` its largest size,
    `min_blocks` how many blocks shall fit a multiprocessor.
    """
    names = names_here()
    scope = names.values if names else {}

    def make(function: Callable[..., Any]) -> Kernel:
        if not hasattr(function, "__code__"):
            raise TraceError(f"pd.kernel decorates a function; found {function!r}", at=here().location)
        if not is_name(function.__name__):
            raise TraceError(
                f"PTX cannot call a kernel `{function.__name__}`",
                at=here().location,
                help="give the function a name of letters, digits and underscores",
            )
        found = signature(function, scope)
        for name in (*found.names, *found.constants):
            if name in RESERVED:
                raise TraceError(
                    f"kernel `{function.__name__}` has a parameter `{name}`, which launches use for themselves",
                    at=here().location,
                    help="give it another name",
                )
        return Kernel(function, found, Options(reqntid, max_threads, min_blocks))

    return make if function is None else make(function)


class ParsedKernel(AnyKernel):
    """A kernel of a module that was read from PTX."""

    def __init__(self, module: ir.Module, function: ir.Function) -> None:
        super().__init__()
        self.name, self.module, self.function = function.name, module, function
        self._variants: dict[Any, Variant] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name} of a PTX module>"

    def __reduce__(self) -> Any:
        return _parsed, (lower(self.module), self.name)

    def variant(self, arch: str | None, constants: dict[str, Any]) -> Variant:
        if constants:
            raise LaunchError(
                f"kernel `{self.name}` is PTX and has no constants; {', '.join(constants)} given", at=here().location
            )
        own = self.module.target[0]
        arch = arch or config.current().arch or (own if own in config.ARCHITECTURES else DEFAULT_ARCH)
        if arch not in self._variants:
            self._variants[arch] = self._variant(arch)
        return self._variants[arch]

    def _variant(self, arch: str) -> Variant:
        check_operands(f for f in self.module.functions if f.kind == "func" or f is self.function)
        parameters = [(p.name, _kind(p)) for p in self.function.parameters]
        text = lower(self.module)
        return Variant(self.name, arch, self.module, text, parameters, 0, parsed=self.module)


def _kind(parameter: ir.Variable | ir.Register) -> Any:
    """What is given at a launch: a number or an array for a scalar, bytes for a struct."""
    is_struct = isinstance(parameter, ir.Variable) and parameter.shape
    return arguments.Bytes(parameter.bytes) if is_struct else parameter.type  # type: ignore[union-attr]


def _parsed(text: str, name: str) -> ParsedKernel:
    return parse(text)[name]


class Module:
    """A PTX module: `module[name]` is a kernel, `module.ptx()` prints it again."""

    def __init__(self, program: ir.Module) -> None:
        self.ir = program
        self._kernels = {function.name: ParsedKernel(program, function) for function in program.kernels}

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._kernels)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __getitem__(self, name: str) -> ParsedKernel:
        if name not in self._kernels:
            raise Error(
                f"the module has no kernel `{name}`",
                at=here().location,
                help=f"it has {', '.join(self._kernels) or 'none'}",
            )
        return self._kernels[name]

    def __repr__(self) -> str:
        return f"<PTX module with {', '.join(self._kernels) or 'no kernels'}>"

    def ptx(self) -> str:
        """The text, printed anew."""
        return lower(self.ir)


def parse(text: str, *, file: str = "<ptx>") -> Module:
    """Reads a PTX module. Raises ParseError with line, column and what was expected."""
    return Module(parsing.parse(text, file=file))
