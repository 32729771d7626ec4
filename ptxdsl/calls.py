"""Running a kernel: on the emulator where its arrays are numpy's, on the GPU where they live there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from ptxdsl.trace.builder import peek

from . import config, ir
from .driver import Late
from .effects import written
from .errors import LaunchError, here

if TYPE_CHECKING:
    from .arguments import Kind, Shape, Signature
    from .arrays import Array
    from .assemble import Cubin
    from .emulate import Report
    from .launch import Compiled

arguments: Any = Late("ptxdsl.arguments")
arrays: Any = Late("ptxdsl.arrays")
assembling: Any = Late("ptxdsl.assemble")
driver: Any = Late("ptxdsl.driver")
emulator: Any = Late("ptxdsl.emulate")
launching: Any = Late("ptxdsl.launch")
parsing: Any = Late("ptxdsl.parse")

DEFAULT_ARCH = "sm_80"


@dataclass(eq=False)
class Variant:
    """A kernel for one target and one set of constants: its text, and what can be made of that when it is needed.

    `dynamic_bytes` of shared memory are needed at launch; None leaves that to the caller.
    """

    name: str
    arch: str
    module: ir.Module
    text: str
    parameters: Sequence[tuple[str, Kind]]
    dynamic_bytes: int | None = 0
    parsed: ir.Module | None = field(default=None, repr=False)
    _cubins: dict[str, Cubin] = field(default_factory=dict, repr=False)
    _compiled: dict[str, Compiled] = field(default_factory=dict, repr=False)

    @cached_property
    def read(self) -> ir.Module:
        """What the emulator runs: the module that `parse` reads from the text."""
        return self.parsed or parsing.parse(self.text)

    @property
    def function(self) -> ir.Function:
        return next(f for f in self.read.kernels if f.name == self.name)

    @property
    def cubin(self) -> Cubin:
        """The text assembled for its own target."""
        return self.assembled(self.arch)

    def assembled(self, arch: str) -> Cubin:
        """The text assembled for its own target or a later one."""
        if arch not in self._cubins:
            self._cubins[arch] = assembling.assemble(self.text, arch)
        return self._cubins[arch]

    @cached_property
    def signature(self) -> Signature:
        return arguments.Signature(self.name, self.parameters, self.written)  # type: ignore[no-any-return]

    @cached_property
    def written(self) -> frozenset[str]:
        function = next(f for f in self.module.kernels if f.name == self.name)
        return written(function)

    def compiled(self, arch: str) -> Compiled:
        """A handle that launches it on GPUs of `arch`."""
        if arch not in self._compiled:
            self._compiled[arch] = launching.load(self.assembled(arch), self.name, self.parameters, self.written)
        return self._compiled[arch]

    def shared_bytes(self, given: int | None) -> int:
        """The dynamic shared memory of a launch. Raises LaunchError where too little is given."""
        if self.dynamic_bytes is None and given is None:
            raise LaunchError(
                f"{self.name} has a shared array of unknown length, and the launch does not say how many bytes",
                at=here().location,
                help=f"launch it as {self.name}[grid, block, shared_bytes](…)",
            )
        if given is not None and self.dynamic_bytes is not None and given < self.dynamic_bytes:
            raise LaunchError(
                f"{self.name} needs {self.dynamic_bytes} bytes of dynamic shared memory; the launch gives {given}",
                at=here().location,
                help=f"launch it as {self.name}[grid, block](…), which gives what it needs",
            )
        return (self.dynamic_bytes or 0) if given is None else given


class Runnable(Protocol):
    """What a launch needs of a kernel."""

    handles: dict[Any, tuple[Variant, Compiled]]

    def variant(self, arch: str | None, constants: dict[str, Any]) -> Variant: ...


class Launch:
    """`kernel[grid, block]`, to be called with the arguments."""

    __slots__ = ("block", "grid", "kernel", "shared_bytes")

    def __init__(self, kernel: Runnable, grid: Any, block: Any, shared_bytes: int | None = None) -> None:
        self.kernel, self.grid, self.block, self.shared_bytes = kernel, grid, block, shared_bytes

    def __call__(
        self,
        *given: Any,
        stream: Any = None,
        cluster: int | tuple[int, ...] | None = None,
        cooperative: bool = False,
        **constants: Any,
    ) -> None:
        """Runs the kernel: on the emulator with numpy arrays, which it waits for, else on the GPU of the arrays.

        `stream` is a torch or CuPy stream, a `__cuda_stream__` object or a handle; the current one without it.
        Raises LaunchError where an argument does not fit, EmulationError where the emulated kernel goes wrong; nothing
        is written then.
        """
        key = (*constants.items(), *map(type, given))
        try:
            found = self.kernel.handles.get(key)
        except TypeError:  # a constant is not hashable, which the careful way refuses by name
            found = None
        if found is None:
            _run(self, given, stream, cluster, cooperative, constants)
            return
        variant, handle = found
        handle(
            self.grid, self.block, given,
            shared_bytes=variant.shared_bytes(self.shared_bytes),
            cluster=cluster, cooperative=cooperative, stream=stream,
        )  # fmt: skip

    def known(self, *given: Any, **constants: Any) -> partial[None] | None:
        """What makes such a launch, given the arguments in one sequence; None if it has not been made on a GPU."""
        found = self.kernel.handles.get((*constants.items(), *map(type, given)))
        if found is None:
            return None
        variant, handle = found
        return partial(handle, self.grid, self.block, shared_bytes=variant.shared_bytes(self.shared_bytes))


def _run(
    launch: Launch, given: tuple[Any, ...], stream: Any, cluster: Any, cooperative: bool, constants: dict[str, Any]
) -> None:
    """Finds out where the arrays are, and runs the kernel there."""
    if peek() is not None:
        raise LaunchError(
            "a kernel is launched while another one is traced",
            at=here().location,
            help="device code that kernels share is a plain Python function, without @pd.kernel",
        )
    settings = config.current()
    ordinal = _gpu(given)
    on_gpu = ordinal is not None or settings.device == "cuda"
    own = driver.device(ordinal or 0).arch if on_gpu else DEFAULT_ARCH
    variant = launch.kernel.variant(target(ordinal), constants)
    shape = launch.grid, launch.block, variant.shared_bytes(launch.shared_bytes), cluster, cooperative
    if not on_gpu or settings.device == "emulator":
        checked = arguments.launch_shape(*shape)
        emulator.run(*_host(variant, checked, given), checked.shared_bytes)
        return
    options = {"shared_bytes": shape[2], "cluster": cluster, "cooperative": cooperative}
    if ordinal is None:
        variant.compiled(own).launch_on_copies(launch.grid, launch.block, given, **options)
        return
    handle = variant.compiled(own)
    handle(launch.grid, launch.block, given, **options, stream=stream, device=ordinal)
    key = (*constants.items(), *map(type, given))
    launch.kernel.handles[key] = variant, handle


def target(ordinal: int | None) -> str:
    """What a kernel is made for whose arrays are on a GPU, or in host memory where that is None."""
    settings = config.current()
    if ordinal is None and settings.device != "cuda":
        return settings.arch or DEFAULT_ARCH
    return settings.arch or str(driver.device(ordinal or 0).arch)


def _gpu(given: Sequence[Any]) -> int | None:
    """The GPU that an argument is on; None if all are in host memory or no arrays."""
    for value in given:
        if isinstance(value, int | float | bytes | None):
            continue
        try:
            found: Array | None = arrays.describe(getattr(value, "array", value))
        except BufferError:  # the check of the arguments says why, by name
            continue
        if found is not None and found.device != arrays.HOST:
            return found.device or 0
    return None


def _host(variant: Variant, shape: Shape, given: Sequence[Any]) -> tuple[Any, ...]:
    """The first arguments of the emulator, from arguments that were checked."""
    _check_block(variant, shape)
    values = variant.signature.check(given, arrays.HOST)
    numbers: list[Any] = [0 if isinstance(v, arrays.Array) else v for v in values]
    packed = variant.signature.pack(numbers)
    filled = [v if isinstance(v, arrays.Array) else b for v, b in zip(values, packed, strict=True)]
    return variant.function, variant.read, shape.grid, shape.block, filled


def _check_block(variant: Variant, shape: Shape) -> None:
    """Holds the block against what the kernel promises of it."""
    promised = {d.name: [int(str(n)) for n in d.arguments] for d in variant.function.directives if d.arguments}
    exact = promised.get("reqntid")
    if exact and tuple([*exact, 1, 1][:3]) != shape.block:
        raise LaunchError(
            f"{variant.name} is made for blocks of {tuple(exact)} threads; the launch has {shape.block}",
            at=here().location,
            help="launch it with that block, or trace it with another `reqntid`",
        )
    most = math.prod(promised.get("maxntid", [shape.threads]))
    if shape.threads > most:
        raise LaunchError(
            f"{variant.name} is made for at most {most} threads a block; the launch has {shape.threads}",
            at=here().location,
            help="launch smaller blocks, or trace it with a larger `max_threads`",
        )


def emulate(
    kernel: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *given: Any,
    shared_bytes: int | None = None,
    checks: bool = True,
    **constants: Any,
) -> Report:
    """Runs a kernel on the emulator and reports what it did wrong; does not raise for that.

    Arrays are numpy's, and are written only if there are no findings. `checks` False leaves out reads of what was
    never written. Raises LaunchError for arguments that do not fit.
    """
    if not hasattr(kernel, "variant"):
        raise LaunchError(
            f"pd.emulate takes a kernel first; found {kernel!r}",
            at=here().location,
            help="decorate the function with @pd.kernel, or take the kernel of a module: pd.parse(text)[name]",
        )
    variant = kernel.variant(config.current().arch, constants)
    shape = arguments.launch_shape(grid, block, variant.shared_bytes(shared_bytes))
    return emulator.emulate(*_host(variant, shape, given), shape.shared_bytes, checks)  # type: ignore[no-any-return]
