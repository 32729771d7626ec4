"""Kernels as callables: `k[grid, block](…)` launches one, `k.ptx()` and similar methods show its code."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import linecache
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn, overload

from ptxdsl import config, ir
from ptxdsl.driver import Late
from ptxdsl.errors import Error, LaunchError, called_elsewhere, names_here, public
from ptxdsl.lower import lower
from ptxdsl.notebook import collapsed, preformatted
from ptxdsl.runtime.dispatch import KeptLaunch, Launch, usual_target
from ptxdsl.runtime.variant import DEFAULT_ARCH, Variant
from ptxdsl.trace import Traced, trace
from ptxdsl.trace.builder import is_name, refuse
from ptxdsl.trace.captured import Captures, captures
from ptxdsl.trace.contents import constant_key, stateful
from ptxdsl.trace.misfits import TargetRefusal
from ptxdsl.trace.signature import REQUIRED, KernelSignature, signature
from ptxdsl.verify import check_blocks, check_operands

if TYPE_CHECKING:
    import ptxdsl.assemble as assembling
    import ptxdsl.parse as parsing
    from ptxdsl.assemble import Cubin, Resources
    from ptxdsl.runtime import kept as keeping
    from ptxdsl.runtime import shape as shapes
    from ptxdsl.runtime import values
    from ptxdsl.runtime import variables as module_variables
    from ptxdsl.runtime.kept import KeptTrace
    from ptxdsl.runtime.launch import Compiled
    from ptxdsl.runtime.variables import ModuleMemory, ModuleVariable
    from ptxdsl.trace import named as naming
    from ptxdsl.trace.named import PythonNames
else:
    assembling = Late("ptxdsl.assemble")
    keeping = Late("ptxdsl.runtime.kept")
    parsing = Late("ptxdsl.parse")
    module_variables = Late("ptxdsl.runtime.variables")
    shapes = Late("ptxdsl.runtime.shape")
    values = Late("ptxdsl.runtime.values")
    naming = Late("ptxdsl.trace.named")


MOST_VARIANTS = 1024  # variants kept per kernel
THREADS = "it is `reqntid=` here, the threads of a block: @pd.kernel(reqntid=128), launched as k[grid, 128](…)"
RESERVED = ("stream", "cluster", "cooperative", "dependent", "overlap", "arch", "annotate", "shared_bytes", "checks")


@dataclass(frozen=True, slots=True)
class Options:
    """Launch properties declared by a kernel and printed as directives: exact or maximum block size, blocks per SM,
    cluster.

    `reqntid` and `cluster` may be functions of some of the kernel's constants, by name. `arch` is the default target.
    """

    reqntid: int | tuple[int, ...] | Callable[..., int | tuple[int, ...]] | None = None
    max_threads: int | tuple[int, ...] | None = None
    min_blocks: int | None = None
    cluster: int | tuple[int, ...] | Callable[..., int | tuple[int, ...] | None] | None = None
    arch: str | None = None

    def directives(self, constants: Mapping[str, object]) -> tuple[ir.Directive, ...]:
        promises = (
            ("reqntid", _extents(self.reqntid, constants)),
            ("maxntid", self.max_threads),
            ("minnctapersm", self.min_blocks),
            ("reqnctapercluster", _extents(self.cluster, constants)),
        )
        return tuple(
            ir.Directive(name, value if isinstance(value, tuple) else (value,))
            for name, value in promises
            if value is not None
        )


def _extents(
    promise: int | tuple[int, ...] | Callable[..., int | tuple[int, ...] | None] | None, constants: Mapping[str, object]
) -> int | tuple[int, ...] | None:
    """Return the declared extents for these constants."""
    if not callable(promise):
        return promise
    return promise(**{name: constants[name] for name in inspect.signature(promise).parameters})


def _keep_lines(function: Callable[..., Any]) -> None:
    """Read the user's file now, so that messages show its lines as they were imported, even if it is edited later."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    if not file.startswith(os.path.dirname(__file__)):
        linecache.checkcache(file)
        linecache.getlines(file)


class AnyKernel(ABC):
    """Base class of traced and parsed kernels."""

    name: str

    def __init__(self) -> None:
        self.handles: dict[Any, list[KeptLaunch]] = {}

    @abstractmethod
    def variant(self, arch: str | None, constants: dict[str, object]) -> Variant:
        """Return the kernel for a target and constants, created on first use."""

    def __getitem__(self, shape: object) -> Launch:
        """Return a launch: `kernel[grid, block]` or `kernel[grid, block, shared_bytes]`.

        `grid` (blocks) and `block` (threads) are ints or tuples of one to three ints; `shared_bytes` is the dynamic
        shared memory.
        """
        if type(shape) is not tuple or not 2 <= len(shape) <= 3:
            _misuse(self, f"is indexed by {shape!r}")
        return Launch(self, *shape)

    def __call__(self, *arguments: object, **constants: object) -> None:
        _misuse(self, "is called without a grid and a block")

    @public
    def ptx(self, arch: str | None = None, *, annotate: bool = False, **constants: object) -> str:
        """Return the PTX text for `arch`; by default PTXDSL_ARCH, then the kernel's own target, then sm_80.

        `annotate` adds the Python lines as comments. `constants` are the kernel's keyword-only constants.
        """
        variant = self.variant(arch, constants)
        return lower(variant.module, lineinfo=False, annotate=True) if annotate else variant.text

    @public
    def ir(self, arch: str | None = None, **constants: object) -> ir.PtxModule:
        """Return the program as an `ir.PtxModule`."""
        return self.variant(arch, constants).module

    @public
    def cubin(self, arch: str | None = None, **constants: object) -> Cubin:
        """Assemble the kernel: `.image` is the machine code in bytes, with registers, spills and warnings."""
        return self.variant(arch, constants).cubin

    @public
    def sass(self, arch: str | None = None, **constants: object) -> str:
        """Return the disassembled machine code."""
        return self.cubin(arch, **constants).sass()

    @public
    def resources(self, arch: str | None = None, **constants: object) -> Resources:
        """Return the assembler's report of registers, spills, stack and shared memory."""
        return self.cubin(arch, **constants).kernels[self.name]

    @public
    def compiled(self, arch: str | None = None, **constants: object) -> Compiled:
        """Return a handle that launches within a few microseconds: `handle(grid, block, arguments, stream=…)`."""
        variant = self.variant(arch, constants)
        return variant.compiled(variant.arch)


def _html(signature: str, doc: str, variants: Mapping[Any, Variant]) -> str:
    """Return a kernel for notebooks."""
    latest = list(variants.values())[-1:]
    listing = "".join(collapsed(f"PTX for {variant.arch}", variant.text) for variant in latest)
    return preformatted(f"{signature}\n\n{doc}".rstrip()) + listing


def _behind_the_block(kernel: str, *names: str) -> str | None:
    """Return the help line for dynamic shared memory passed by keyword."""
    if not {"shared_bytes", "shared", "smem"} & set(names):
        return None
    return f"the bytes of dynamic shared memory follow the block: `{kernel}[grid, block, bytes](…)`"


def _misuse(kernel: AnyKernel, misuse: str) -> NoReturn:
    example = f"`{kernel.name}[grid, block](…)`, for example `{kernel.name}[(8,), (128,)](…)`"
    refuse(f"kernel `{kernel.name}` {misuse}", f"write {example}", LaunchError)


class Kernel(AnyKernel):
    """A Python function that is traced once per target and set of constants."""

    def __init__(self, function: Callable[..., Any], signature: KernelSignature, options: Options) -> None:
        super().__init__()
        functools.update_wrapper(self, function)
        self.name, self.signature, self.options = function.__name__, signature, options
        _keep_lines(function)
        self._variants: dict[Any, Variant] = {}
        self._bound: dict[int, tuple[weakref.ref[Any], Kernel]] = {}  # by object id
        self._read: Captures | None = None
        self._asked: dict[Any, tuple[Variant, tuple[Any, ...]]] = {}  # by the ids of constants, which are kept alive

    def __repr__(self) -> str:
        return f"<kernel {self.__qualname__}>"  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        """Return the signature, the docstring, and the PTX of the latest variant. Displaying traces nothing."""
        shown = f"@pd.kernel\ndef {self.name}{inspect.signature(self.signature.function)}"
        return _html(shown, inspect.getdoc(self.signature.function) or "", self._variants)

    def __reduce__(self) -> Any:
        if isinstance(self.signature.function, MethodType):
            return getattr, (self.signature.function.__self__, self.name)
        return _find, (self.__module__, self.__qualname__)  # type: ignore[attr-defined]

    def __get__(self, instance: object, owner: type | None = None) -> Kernel:
        """Return the kernel bound to an object if it is a method, else the kernel itself."""
        if instance is None or not self.signature.is_method:
            return self
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        bound = Kernel(self.signature.function, self.signature.bound(instance), self.options)
        with contextlib.suppress(TypeError):  # objects without weak references are bound at each access
            self._bound[id(instance)] = weakref.ref(instance, lambda _: self._bound.pop(id(instance), None)), bound
        return bound

    def variant(self, arch: str | None, constants: dict[str, object]) -> Variant:
        settings = config.current()
        arch, lineinfo = arch or settings.arch or self.options.arch or DEFAULT_ARCH, settings.lineinfo
        asked = arch, lineinfo, *constants, *map(id, constants.values())
        known = self._asked.get(asked)
        if known is None or not known[0].captures.hold():
            if len(self._asked) >= MOST_VARIANTS:
                self._asked.clear()
            known = self._asked[asked] = self._exact(arch, lineinfo, constants), tuple(constants.values())
        return known[0]

    def _exact(self, arch: str, lineinfo: bool, constants: dict[str, Any]) -> Variant:
        """Return the variant for these constants and the Python state that the kernel reads now."""
        if self.signature.is_method:
            refuse(
                f"kernel `{self.name}` is a method, and has no object",
                f"take it from an object of its class: `o.{self.name}[grid, block](…)`",
            )
        values = self._constants(constants)
        read = self._captures(stateful(values))
        key = arch, lineinfo, *map(constant_key, values.values()), read.key
        if key not in self._variants:
            if len(self._variants) >= MOST_VARIANTS:
                del self._variants[next(iter(self._variants))]  # evict the oldest: constants may differ at each call
            self._variants[key] = self._new_variant(arch, lineinfo, values, read)
        variant = self._variants[key]
        variant.captures = read
        return variant

    def _captures(self, constants: Mapping[str, object]) -> Captures:
        """Return the Python state that the kernel and these constants read now."""
        function = self.signature.function
        if constants:
            return captures([function, *self.signature.captured], function, constants)
        if self._read is None or not self._read.hold():
            self._read = captures([function, *self.signature.captured], function)
        return self._read

    def _new_variant(self, arch: str, lineinfo: bool, values: dict[str, object], read: Captures) -> Variant:
        """Create a variant from the disk cache if the kernel is cached there, else by tracing."""
        assembling.check_arch(arch)
        folder, function = config.current().cache_dir, self.signature.function
        name = None
        if folder is not None and not read.key:
            promises = tuple((each.name, each.arguments) for each in self.options.directives(values))
            name = keeping.name_of(function, self, arch, lineinfo, promises, constants=values)
        known = keeping.load(folder, name) if name else None
        if known is not None:
            return self._as_kept(arch, values, known)
        traced = self._traced(arch, values)
        text = lower(traced.module, lineinfo=lineinfo)
        parameters = [(p.name, p.type) for p in traced.parameters]
        variant = Variant(self.name, arch, lambda: traced, text, parameters, traced.dynamic_bytes)
        if name and not traced.warned:
            keeping.keep(folder, name, variant)
        return variant

    def _as_kept(self, arch: str, values: dict[str, object], known: KeptTrace) -> Variant:
        parameters = [(p.name, p.type) for p in self.signature.parameters(values)]
        return Variant(
            self.name, arch, functools.partial(self._traced, arch, values), known.text, parameters, known.dynamic_bytes,
            kept_written=frozenset(known.written), kept_extents=known.extents,
        )  # fmt: skip

    def _traced(self, arch: str, values: dict[str, object]) -> Traced:
        try:
            traced = trace(self.signature, values, arch=arch, directives=self.options.directives(values))
        except TargetRefusal as refusal:
            if self.options.arch not in (None, arch):
                refusal.help = (
                    f"`{self.name}` is made for {self.options.arch}: leave out another target, of `arch=` or "
                    "PTXDSL_ARCH, or run it on such a GPU"
                )
            raise
        check_blocks(traced.module)
        return traced

    def python_names(self, arch: str, constants: Mapping[str, object]) -> PythonNames:
        """Return the Python names of a variant's registers and arrays, for debuggers."""
        values = self._constants(constants)
        known: PythonNames = naming.python_names(self.signature, values, arch, self.options.directives(values))
        return known

    def _constants(self, chosen: Mapping[str, object]) -> dict[str, Any]:
        """Return all constants in the order of the signature, with defaults filled in."""
        known = self.signature.constants
        for unknown in chosen:
            if unknown not in known:
                self._refuse_unknown(unknown)
        values = {name: chosen.get(name, default) for name, default in known.items()}
        for name, value in values.items():
            self._check_constant(name, value)
        return values

    def _refuse_unknown(self, name: str) -> NoReturn:
        """Refuse a keyword that is not a constant."""
        constants, names = ", ".join(self.signature.constants), self.signature.names
        if name in names:
            message = f"`{name}` is a parameter of kernel `{self.name}`, which takes constants alone by name"
            help = f"give parameters in their order, at the launch: `{self.name}[grid, block]({', '.join(names)})`"
        else:
            message = f"kernel `{self.name}` has no constant `{name}`"
            help = f"it takes {constants}" if constants else "it has none: it is launched with its parameters alone"
            help = _behind_the_block(self.name, name) or help
        refuse(message, help)

    def _check_constant(self, name: str, value: object) -> None:
        if value is REQUIRED:
            refuse(f"kernel `{self.name}` needs its constant `{name}`", f"pass it by name: `{name}=…`")
        try:
            hash(value)
        except TypeError:
            refuse(
                f"constant `{name}` of kernel `{self.name}` is a {type(value).__name__}, which is not hashable",
                "pass a tuple or a frozen dataclass: a kernel is traced once for each value",
            )


def _find(module: str, qualname: str) -> Any:
    """Return a kernel by module and name, for unpickling."""
    value: Any = importlib.import_module(module)
    for name in qualname.split("."):
        value = getattr(value, name)
    return value


def usual_variant(kernel: AnyKernel, constants: Mapping[str, object]) -> Variant:
    """Return the variant for the default target; the constants are a dict."""
    for name, value in kernel.signature.constants.items() if isinstance(kernel, Kernel) else ():
        if value is REQUIRED and name not in constants:
            refuse(f"kernel `{kernel.name}` needs its constant `{name}`", f"pass `constants={{'{name}': …}}`")
    return kernel.variant(usual_target(), dict(constants))


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...


@overload
def kernel(
    *,
    reqntid: int | tuple[int, ...] | Callable[..., int | tuple[int, ...]] | None = None,
    max_threads: int | tuple[int, ...] | None = None,
    min_blocks: int | None = None,
    cluster: int | tuple[int, ...] | Callable[..., int | tuple[int, ...] | None] | None = None,
    arch: str | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...


@public
@called_elsewhere(
    grid="the grid comes with the launch: k[grid, block](…)",
    block=THREADS,
    threads=THREADS,
    num_threads=THREADS,
    num_warps=THREADS,
    launch_bounds="they are `max_threads=` and `min_blocks=` here",
    target='it is `arch=` here, such as arch="sm_90a"',
)
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    reqntid: int | tuple[int, ...] | Callable[..., int | tuple[int, ...]] | None = None,
    max_threads: int | tuple[int, ...] | None = None,
    min_blocks: int | None = None,
    cluster: int | tuple[int, ...] | Callable[..., int | tuple[int, ...] | None] | None = None,
    arch: str | None = None,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Decorate a function as a kernel: `@pd.kernel`, or `@pd.kernel(max_threads=256, min_blocks=2)`.

        @pd.kernel
        def scale(x: ptr[f32], a: f32, n: u32, *, STEP: int = 1):
            i = (pd.ctaid.x * pd.ntid.x + pd.tid.x) * STEP
            with pd.if_(i < n):
                x[i] = a * x[i]

        scale[(8,), (128,)](x, 2.0, 1024, STEP=1)

    Parameters are annotated with types (`ptr[f32]`, `u32`, `pd.TensorMap(…)`, a `pd.Parameters` class). Keyword-only
    parameters are constants: hashable Python values; the kernel is traced once for each set of them.

    `reqntid` is the exact block size in threads, an int, a tuple of up to three ints, or a function of constants
    (`lambda tiles: 32 * tiles`). `max_threads` is the maximum block size, `min_blocks` the minimum number of resident
    blocks per multiprocessor, and `cluster` the number of blocks of a cluster along each axis, also as a function of
    constants. `arch` is the default target, such as "sm_90a", used without a GPU and without PTXDSL_ARCH; sm_80 without
    it.

    A method becomes a kernel of each object: the attributes of `self` that it reads are compiled in, and it is traced
    again when they change.

    Raises TraceError at the definition for parameters without a type or of a type that no kernel takes, and at the
    first launch for anything in the body that cannot be traced.
    """
    names = names_here()
    scope = names.values if names else {}

    def make(function: Callable[..., Any]) -> Kernel:
        if not hasattr(function, "__code__"):
            message = f"pd.kernel decorates a function; found {function!r}"
            refuse(message, "put it above a `def`")
        if not is_name(function.__name__):
            refuse(
                f"PTX cannot call a kernel `{function.__name__}`",
                "give the function a name of ASCII letters, digits and underscores, other than `_`",
            )
        taken = signature(function, scope)
        for name in (*taken.names, *taken.constants):
            if name in RESERVED:
                message = f"kernel `{function.__name__}` has a parameter `{name}`, which launches use for themselves"
                refuse(message, "give it another name")
        _check_cluster(function.__name__, cluster)
        return Kernel(function, taken, Options(reqntid, max_threads, min_blocks, cluster, arch))

    return make if function is None else make(function)


def _check_cluster(name: str, cluster: object) -> None:
    """Raise TraceError for a cluster size that no launch supports."""
    try:
        if cluster is not None and not callable(cluster):
            shapes.cluster_extents(cluster)
    except LaunchError as refusal:
        message = f"kernel `{name}`: {refusal.message}"
        refuse(message, refusal.help)


class ParsedKernel(AnyKernel):
    """A kernel of a module that was parsed from PTX."""

    def __init__(self, module: ir.PtxModule, function: ir.Function, memory: ModuleMemory) -> None:
        super().__init__()
        self.name, self.module, self.function, self.memory = function.name, module, function, memory
        self._variants: dict[Any, Variant] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name} of a PTX module>"

    def _repr_html_(self) -> str:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self.function.parameters)
        return _html(f".entry {self.name}({parameters})", "", self._variants)

    def __reduce__(self) -> Any:
        return _parsed, (lower(self.module), self.name)

    def variant(self, arch: str | None, constants: dict[str, object]) -> Variant:
        if constants:
            message = f"kernel `{self.name}` is PTX and has no constants; {', '.join(constants)} given"
            refuse(message, _behind_the_block(self.name, *constants), LaunchError)
        target = self.module.target[0]
        arch = arch or config.current().arch or (target if target in config.ARCHITECTURES else DEFAULT_ARCH)
        if arch not in self._variants:
            self._variants[arch] = self._variant(arch)
        return self._variants[arch]

    @property
    def parameters(self) -> list[tuple[str, Any]]:
        """The names of the parameters, with the type that a launch takes for each."""
        return [(p.name, _kind(p)) for p in self.function.parameters]

    def _variant(self, arch: str) -> Variant:
        check_operands(f for f in self.module.functions if f.kind == "func" or f is self.function)
        if self.memory.text is None:
            self.memory.text = lower(self.module)
        return Variant(
            self.name, arch, self.module, self.memory.text, self.parameters, 0, parsed=self.module, memory=self.memory
        )


def _kind(parameter: ir.Variable | ir.Register) -> Any:
    """Return the launch argument's type: a number or array for a scalar, bytes for a struct."""
    is_struct = isinstance(parameter, ir.Variable) and parameter.shape
    if is_struct:
        return values.Bytes(parameter.bytes, parameter.align or 1)  # type: ignore[union-attr]
    type = parameter.type
    return values.SignlessType(type.name, type.bits, type.kind) if type.kind == "u" else type


def _parsed(text: str, name: str) -> Any:
    return parse(text)[name]


def _assembled(program: ir.PtxModule, arch: str) -> Cubin:
    cubin: Cubin = assembling.assemble(lower(program), arch)
    return cubin


class Module:
    """A parsed PTX module: `module[name]` is a kernel or a variable, `module.ptx()` prints it."""

    def __init__(self, program: ir.PtxModule) -> None:
        self.ir = program
        self._memory: ModuleMemory = module_variables.ModuleMemory(functools.partial(_assembled, program))
        self._kernels = {function.name: ParsedKernel(program, function, self._memory) for function in program.kernels}
        self._variables: dict[str, ModuleVariable] = {
            variable.name: module_variables.ModuleVariable(self._memory, variable)
            for variable in program.globals
            if variable.space in ("global", "const") and variable.linkage != "extern"
        }

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._kernels)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables in .global and .const."""
        return tuple(self._variables)

    def __getitem__(self, name: str) -> Any:
        """Return a kernel to launch, or a variable to read and write."""
        if name in self._kernels:
            return self._kernels[name]
        if name in self._variables:
            return self._variables[name]
        variables = f"; its variables: {', '.join(self._variables)}" if self._variables else ""
        kinds = "kernel or variable" if variables else "kernel"
        help = f"it has {', '.join(self._kernels) or 'none'}{variables}"
        refuse(f"the module has no {kinds} `{name}`", help, Error)

    def __reduce__(self) -> Any:
        return Module, (self.ir,)

    def __repr__(self) -> str:
        return f"<PTX module with {', '.join(self._kernels) or 'no kernels'}>"

    def ptx(self) -> str:
        """Return the module as PTX text."""
        return lower(self.ir)


@public
def parse(text: str | bytes, *, file: str = "<ptx>", sources: Iterable[str] = ()) -> Module:
    """Parse a PTX module from a str, or from bytes as NVRTC returns them.

    Messages show lines of `file` and of `sources`, if the text names these as its source, and of no other file that
    Python does not run. Raises ParseError with line, column and the expected token.

        module = pd.parse(Path("saxpy.ptx").read_text())
        module["saxpy"][(8,), (128,)](x, y, 2.0, 1024)
    """
    return Module(parsing.parse(text, file=file, sources=sources))
