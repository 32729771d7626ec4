"""`pd.link`: join kernels and PTX modules into one program, for the emulator and as one cubin.

Modules are joined as PTX text. The emulator thus runs the same text as the assembler, every assembler accepts it, and
functions of other modules can be inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from ptxdsl import config, ir
from ptxdsl.driver import Late
from ptxdsl.errors import Error, LaunchError, LinkError, UnknownAttribute, public
from ptxdsl.kernel import AnyKernel, Kernel, Module, ParsedKernel, parse
from ptxdsl.linking.join import LinkedModule, join
from ptxdsl.lower import lower
from ptxdsl.runtime.variant import DEFAULT_ARCH, Variant
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.captured import combined
from ptxdsl.trace.functions import DeviceFunction, ExternFunction, module_of

if TYPE_CHECKING:
    import ptxdsl.assemble as assembling
    import ptxdsl.parse as parsing
    from ptxdsl.assemble import Cubin
    from ptxdsl.runtime import variables as module_variables
    from ptxdsl.runtime.arguments import Parameter
    from ptxdsl.runtime.variables import ModuleMemory, ModuleVariable
else:
    assembling = Late("ptxdsl.assemble")
    module_variables = Late("ptxdsl.runtime.variables")
    parsing = Late("ptxdsl.parse")

Linkable: TypeAlias = "Kernel | ParsedKernel | Module | DeviceFunction[Any] | str | bytes"
_NUMBER = re.compile(r"sm_(\d+)([af]?)")
_ARGUMENTS = {  # names that other libraries use
    **dict.fromkeys(("arch", "target"), 'set the target on the kernels: @pd.kernel(arch="sm_90a"), or PTXDSL_ARCH'),
    **dict.fromkeys(
        ("modules", "parts", "ptx", "files"), "pass the parts as positional arguments: `pd.link(kernel, module)`"
    ),
}


@public
def link(*parts: Linkable, **constants: object) -> LinkedProgram:
    """Join kernels and PTX modules into one program.

    A part is a kernel, a module from `pd.parse`, PTX text, or a `pd.function` that other parts call. Declarations
    (`pd.extern`, `.extern`) are resolved by the definitions of other parts, and kernels share variables. `constants`
    are those of the traced kernels, by name. Raises LinkError for a name that is undefined, defined twice, or declared
    differently from its definition.

    Example: `pd.link(kernel, pd.parse(text))["kernel"][grid, block](…)`
    """
    if not parts:
        help = "pass kernels and the modules that define what they call"
        refuse("pd.link needs at least one part", help, LinkError)
    sources = [_source(part, number) for number, part in enumerate(parts, start=1)]
    program = LinkedProgram(sources, constants)
    program.joined(None)
    return program


@dataclass(frozen=True, slots=True)
class TextSource:
    """PTX text as a part of a link, and its target."""

    text: str
    target: str


Source: TypeAlias = "Kernel | DeviceFunction[Any] | TextSource"


def _source(part: object, number: int) -> Source:
    if isinstance(part, Kernel | DeviceFunction):
        return part
    module = parse(part, file=f"<module {number}>") if isinstance(part, str | bytes) else part
    if isinstance(module, ParsedKernel):
        return TextSource(lower(module.module), module.module.target[0])
    if isinstance(module, Module):
        return TextSource(module.ptx(), module.ir.target[0])
    help = "pass kernels, modules from pd.parse, PTX text or functions made with pd.function"
    if isinstance(part, list | tuple):
        help = "pass the parts one by one: `pd.link(*parts)`"
    elif isinstance(part, FunctionType):
        help = f"decorate it: @pd.kernel or @pd.function above `def {part.__name__}`"
    elif isinstance(part, PurePath):
        help = f"read it: {part.name!r} holds PTX as text, path.read_text()"
    elif isinstance(part, ExternFunction):
        help = f"give pd.link the module that defines `{part.name}`; the kernel that calls it knows the declaration"
    refuse(f"pd.link takes kernels and PTX; found {part!r}", help, LinkError)


@dataclass(eq=False, slots=True)
class Joined:
    """The program for a target, and the variants and parameters that it was made of."""

    variants: list[Variant | None]
    text: str
    read: ir.PtxModule
    parameters: dict[str, tuple[Sequence[Parameter], int | None]]


class LinkedProgram:
    """The result of `pd.link`: `program[name]` is a kernel or a variable; one cubin, and one program on the emulator.

    If a kernel is traced again because Python values that it reads have changed, the variables are initialised again,
    too.
    """

    def __init__(self, sources: Sequence[Source], constants: Mapping[str, object]) -> None:
        self._sources, self._constants = sources, dict(constants)
        self._joined: dict[str, Joined] = {}
        self._memory: ModuleMemory = module_variables.ModuleMemory(self._assembled)
        self._kernels: dict[str, LinkedKernel] = {}
        self._check_constants()

    def _check_constants(self) -> None:
        known = [name for kernel in self.traced for name in kernel.signature.constants]
        for name in self._constants:
            if name not in known:
                help = f"their constants are {', '.join(known)}" if known else "they have no constants"
                if name in _ARGUMENTS:
                    help = _ARGUMENTS[name]
                refuse(f"no kernel of the link has a constant `{name}`", help, LinkError)

    def __reduce__(self) -> Any:
        return LinkedProgram, (self._sources, self._constants)

    def __repr__(self) -> str:
        return f"<linked program with {', '.join(self.kernels)}>"

    def joined(self, arch: str | None) -> Joined:
        """Return the program for a target; join it again if a kernel among its parts has changed."""
        arch = arch or self._default_arch()
        variants = [self._variant(source, arch) for source in self._sources]
        known = self._joined.get(arch)
        if known is not None and all(a is b for a, b in zip(known.variants, variants, strict=True)):
            return known
        if known is not None:
            self._joined.clear()
            self._memory = module_variables.ModuleMemory(self._assembled)
        self._joined[arch] = program = self._join(arch, variants)
        return program

    def _default_arch(self) -> str:
        """Return the default target: the setting, else the highest target of a part."""
        if asked := config.current().arch:
            return asked
        named = [source.target for source in self._sources if isinstance(source, TextSource)]
        named += [kernel.options.arch or DEFAULT_ARCH for kernel in self.traced]
        return max([DEFAULT_ARCH, *filter(config.ARCHITECTURES.__contains__, named)], key=_rank)

    def _variant(self, source: Source, arch: str) -> Variant | None:
        if not isinstance(source, Kernel):
            return None
        known = source.signature.constants
        return source.variant(arch, {name: v for name, v in self._constants.items() if name in known})

    def _join(self, arch: str, variants: list[Variant | None]) -> Joined:
        parts: list[LinkedModule] = []
        parameters: dict[str, tuple[Sequence[Parameter], int | None]] = {}
        for number, (source, variant) in enumerate(zip(self._sources, variants, strict=True), start=1):
            if variant is not None:
                parts.append(LinkedModule(f"kernel `{variant.name}`", parsing.parse(variant.text)))
                parameters[variant.name] = variant.parameters, variant.dynamic_bytes
                self._check_externs(variant)
            elif isinstance(source, DeviceFunction):
                text = lower(module_of(source, arch))
                parts.append(LinkedModule(f"function `{source.name}`", parsing.parse(text)))
            elif isinstance(source, TextSource):
                parts.append(LinkedModule(f"module {number}", parsing.parse(source.text, file=f"<module {number}>")))
        text = lower(join(parts, arch))
        read = parsing.parse(text)
        for kernel in read.kernels:
            parameters.setdefault(kernel.name, (ParsedKernel(read, kernel, self._memory).parameters, 0))
        return Joined(variants, text, read, parameters)

    def _check_externs(self, variant: Variant) -> None:
        """Refuse a kernel that declares a function of the link with other types, since PTX does not separate f32 from
        u32.
        """
        functions = {source.name: source for source in self._sources if isinstance(source, DeviceFunction)}
        for extern in variant.notes.externs:
            if extern.name not in functions:
                continue
            defined = functions[extern.name].interface({})[0].note(extern.location)
            if defined != extern:
                refuse(
                    f"kernel `{variant.name}` declares `{extern.name}` as {extern.words} ({extern.location}), but "
                    f"the function is {defined.words}",
                    f"write `{defined.declaration}`",
                    LinkError,
                )

    def variant(self, name: str, arch: str | None) -> Variant:
        """Return a kernel of the program for a target."""
        joined = self.joined(arch)
        parameters, dynamic_bytes = joined.parameters[name]
        variant = Variant(
            name, arch or self._default_arch(), joined.read, joined.text, parameters, dynamic_bytes,
            parsed=joined.read, memory=self._memory,
        )  # fmt: skip
        variant.captures = combined([part.captures for part in joined.variants if part is not None])
        return variant

    def _assembled(self, arch: str) -> Cubin:
        return assembling.assemble(self.joined(arch).text, arch)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self.joined(None).parameters)

    @property
    def traced(self) -> tuple[Kernel, ...]:
        """The parts made by `pd.kernel`."""
        return tuple(source for source in self._sources if isinstance(source, Kernel))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables in .global and .const."""
        return tuple(variable.name for variable in self._shared())

    def _shared(self) -> list[ir.Variable]:
        known = self.joined(None).read.globals
        return [v for v in known if v.space in ("global", "const") and v.linkage != "extern"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def kernel(self, name: str) -> LinkedKernel:
        """Return a kernel by its name."""
        return self._kernels.setdefault(name, LinkedKernel(self, name))

    def __call__(self, *arguments: object, **constants: object) -> NoReturn:
        message = "a linked program cannot be called, since it is not a kernel"
        refuse(message, self._as_launched(), LinkError)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name not in self.kernels:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        message = f"the linked program has no attribute `{name}`"
        refuse(message, self._as_launched(name), UnknownAttribute)

    def _as_launched(self, name: str | None = None) -> str:
        return f'take the kernel first: `program["{name or next(iter(self.kernels), "kernel")}"][grid, block](…)`'

    def __getitem__(self, name: object) -> Any:
        """Return a kernel, to launch, or a variable, to read and write."""
        if not isinstance(name, str):
            message = f"the index of a linked program must be a name, got {name!r}"
            refuse(message, self._as_launched(), LinkError)
        if name in self.kernels:
            return self.kernel(name)
        for variable in self._shared():
            if variable.name == name:
                shared: ModuleVariable = module_variables.ModuleVariable(self._memory, variable)
                return shared
        variables = f"; its variables are {', '.join(self.variables)}" if self.variables else ""
        message = f"the linked program has no kernel or variable `{name}`"
        refuse(message, f"it has {', '.join(self.kernels) or 'no kernels'}{variables}", Error)

    @public
    def ptx(self, arch: str | None = None) -> str:
        """Return the PTX text of the whole program."""
        return self.joined(arch).text

    @public
    def cubin(self, arch: str | None = None) -> Cubin:
        """Return the machine code of all kernels."""
        return self._memory.image(arch or self._default_arch()).cubin


def _rank(arch: str) -> tuple[int, str]:
    match = _NUMBER.fullmatch(arch)
    return (int(match[1]), match[2]) if match else (0, "")


class LinkedKernel(AnyKernel):
    """A kernel of a linked program, launched and emulated like any other."""

    def __init__(self, program: LinkedProgram, name: str) -> None:
        super().__init__()
        self.program, self.name = program, name
        self._variants: dict[str, tuple[Joined, Variant]] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name} of a linked program>"

    def __reduce__(self) -> Any:
        return LinkedKernel, (self.program, self.name)

    def variant(self, arch: str | None, constants: dict[str, object]) -> Variant:
        if constants:
            message = (
                f"kernel `{self.name}` is linked, so its constants are fixed, but the launch sets "
                f"{', '.join(constants)}"
            )
            help = "pass them to pd.link: `pd.link(…, tile=64)`"
            refuse(message, help, LaunchError)
        joined = self.program.joined(arch)
        known = self._variants.get(arch or "")
        if known is None or known[0] is not joined:
            known = self._variants[arch or ""] = joined, self.program.variant(self.name, arch)
        return known[1]
