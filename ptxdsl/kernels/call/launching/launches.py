"""Launch plans: one or several kernels with everything that they take, made from the arrays of a call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from ptxdsl import config as settings
from ptxdsl.arrays import HOST, strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.memory import CALLS, common_library
from ptxdsl.kernels.call.launching.record import CallRecord, KernelLaunch, LazyLaunch
from ptxdsl.kernels.call.launching.residency import prepared, stream_of
from ptxdsl.kernels.call.launching.workspace import is_kept
from ptxdsl.kernels.call.matrix import ArrayArgument, MappedMatrix
from ptxdsl.runtime.launch import Compiled, gpu_of
from ptxdsl.runtime.tensor_maps import MappedAs
from ptxdsl.trace.parameters import Definition, Parameters, assembled

_RECORDED: ContextVar[list[LaunchPlan] | None] = ContextVar("_RECORDED", default=None)
Argument: TypeAlias = "ArrayArgument | int | float | Any"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A launch with everything that it takes: arrays, numbers, and the constants of the kernel.

    `numbers` are the names of adjacent parameters that may differ in the next launch. A launch with a workspace is
    bound to `stream`. The launches of `before` run first: they write what this one reads.
    """

    kernel: Kernel
    grid: int | tuple[int, ...]
    threads: int
    parameters: Parameters
    constants: Mapping[str, Any]
    numbers: tuple[str, ...] = ()
    stream: int | None = None
    before: tuple[LaunchPlan, ...] = ()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments, one for each PTX parameter."""
        return tuple(self.parameters.flat)

    @property
    def array_arguments(self) -> dict[int, ArrayArgument]:
        """The arguments that are arrays, by position."""
        return {n: argument for n, argument in enumerate(self.arguments) if isinstance(argument, ArrayArgument)}

    @property
    def group(self) -> Parameters:
        """The parameters with the arrays themselves, as a user of the kernel would pass them."""
        arguments = (
            MappedAs(each.mapped_view, each.kind) if isinstance(each, MappedMatrix)
            else strided(each.owner) if isinstance(each, ArrayArgument)
            else each
            for each in self.arguments
        )  # fmt: skip
        return cast(Parameters, assembled(cast(Definition, type(self.parameters)), arguments))

    def carry_out(self, key: Hashable, arrays: Sequence[Any], out: Any, factors: tuple[float, ...] = ()) -> None:
        """Launch. The launch is kept under the key of the call if all arrays are on a GPU and from a library that
        reports their layout. `arrays` and `out` are those of `CallRecord`."""
        array_arguments = [argument for each in (*self.before, self) for argument in each.array_arguments.values()]
        device, stream = stream_of(*(argument.array for argument in array_arguments))
        if device is None or settings.current().device == "emulator":
            self.run()
            return
        _check_located(array_arguments, device)
        self.launch(device, stream)
        library = common_library(arrays)
        if library and is_kept(device, self.stream):
            launches = [plan._prepared(device) for plan in (*self.before, self)]
            CALLS.keep(key, LazyLaunch(CallRecord(launches, arrays, out, factors, self.stream, library)))

    def run(self) -> None:
        """Launch through the kernel's own call, which picks the emulator or copies numpy arrays to a GPU."""
        recorded = _RECORDED.get()
        if recorded is not None:
            recorded.append(self)
            return
        for plan in self.before:
            plan.run()
        emulated = settings.current().device != "cuda" and all(
            a.array.device == HOST for a in self.array_arguments.values()
        )
        dependent = emulated and self.kernel.variant(None, dict(self.constants)).waits_for_others
        self.kernel[self.grid, self.threads](self.group, dependent=dependent, **self.constants)

    def launch(self, device: int, stream: int) -> None:
        """Launch on the GPU of the arrays."""
        for plan in self.before:
            plan.launch(device, stream)
        self._handle(device)(
            [address_of(v) if isinstance(v, ArrayArgument) else v for v in self.arguments], stream=stream
        )

    def _handle(self, device: int) -> partial[None]:
        return prepared(self.kernel, self.grid, self.threads, device, **self.constants)

    def _prepared(self, device: int) -> KernelLaunch:
        """Return what launch code takes of this kernel."""
        handle = self._handle(device)
        compiled = cast(Compiled, handle.func)
        names, written = compiled.signature.names, compiled.signature.written
        paths = [leaf.path for leaf in cast(Definition, type(self.parameters)).leaves_]
        first = paths.index(self.numbers[0]) if self.numbers else 0
        return KernelLaunch(
            compiled.parts(*handle.args, **handle.keywords),
            self.arguments,
            slice(first, first + len(self.numbers)),
            [argument for n, argument in self.array_arguments.items() if names[n] in written],
        )


def recorded_plan(call: Callable[[], object]) -> LaunchPlan:
    """Return the last launch that a library call with numpy arrays makes, without running it."""
    plans: list[LaunchPlan] = []
    token = _RECORDED.set(plans)
    try:
        call()
    finally:
        _RECORDED.reset(token)
    return plans[-1]


def recorded_launch(call: Callable[[], object]) -> tuple[Any, ...]:
    """Return the last launch of a library call as an example of `ptxdsl check`: grid, block, parameters, constants."""
    plan = recorded_plan(call)
    return plan.grid, plan.threads, plan.group, dict(plan.constants)


def _check_located(array_arguments: Iterable[ArrayArgument], device: int) -> None:
    """Raise LaunchError for an array that does not name its GPU and is on another one."""
    for argument in array_arguments:
        actual = gpu_of(argument.array)
        if actual not in (None, device):
            raise LaunchError(
                f"`{argument.name}` is on cuda:{actual}; other arrays are on cuda:{device}",
                help="move it to that GPU",
            )


def address_of(argument: ArrayArgument) -> int | bytes:
    """Return the parameter on a GPU: an address, or an encoded tensor map."""
    return argument.encoder()(argument.array.pointer) if isinstance(argument, MappedMatrix) else argument.array.pointer
