"""Launch plans: made with the arrays of a call, and kept for arrays of the same layout."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias, cast

from ptxdsl import config as settings
from ptxdsl.arrays import HOST, Library, Strided, library_of, strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.memory import ALIGNMENT, CALLS, KnownCall, placement_of
from ptxdsl.kernels.call.launching.quick import written
from ptxdsl.kernels.call.launching.replay import ArrayLaunch, KernelLaunch
from ptxdsl.kernels.call.launching.residency import prepared, stream_of
from ptxdsl.kernels.call.launching.workspace import is_kept
from ptxdsl.kernels.call.matrix import ArrayArgument, MappedMatrix, maker
from ptxdsl.runtime.dispatch import target
from ptxdsl.runtime.launch import Compiled, gpu_of
from ptxdsl.runtime.tensor_maps import MappedAs
from ptxdsl.trace.parameters import Definition, Parameters, assembled

MOST_WRITTEN = 6  # functions for one launch
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
        arguments = (_wrapped(v) if isinstance(v, ArrayArgument) else v for v in self.arguments)
        return cast(Parameters, assembled(cast(Definition, type(self.parameters)), arguments))

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
        dependent = emulated and self.kernel.variant(target(None), dict(self.constants)).waits_for_others
        self.kernel[self.grid, self.threads](self.group, dependent=dependent, **self.constants)

    def launch(self, device: int, stream: int) -> None:
        """Launch on the GPU of the arrays."""
        for plan in self.before:
            plan.launch(device, stream)
        handle = self._handle(device)
        handle([address_of(v) if isinstance(v, ArrayArgument) else v for v in self.arguments], stream=stream)

    def _span(self) -> slice:
        """Return the slice of the numbers in the arguments."""
        names = [leaf.path for leaf in cast(Definition, type(self.parameters)).leaves_]
        first = names.index(self.numbers[0]) if self.numbers else 0
        return slice(first, first + len(self.numbers))

    def for_others(self, arrays: Sequence[object], device: int, library: Library) -> ArrayLaunch:
        """Return this launch for any arrays with the layout of `arrays`, the first of which is the output."""
        plans = *self.before, self
        by_array = {_position(v.owner, arrays): v for plan in plans for v in plan.array_arguments.values()}
        written = {_position(v.owner, arrays) for v in self._written(device)}
        pairs = [pair for pair in combinations(by_array, 2) if written & {*pair}]
        out = by_array[0]
        return ArrayLaunch(
            launches=tuple(plan._for_others(arrays, device) for plan in plans),
            apart=tuple((*pair, *_overlaps(*(by_array[n] for n in pair))) for pair in pairs),
            current_stream=library.current_stream(device),
            stream=self.stream,
            make=maker(library.name, out.array.shape, out.owner.dtype),
            address=library.address,
            alignment=out.array.pointer % ALIGNMENT,
        )

    def carry_out(self, key: Hashable, arrays: Sequence[Any], out: Any, factors: tuple[float, ...] = ()) -> None:
        """Launch with the arrays of a call, output first, or with `out` if the call has none. The launch is kept under
        the key of the call if all arrays are on a GPU and from a library that reports their layout."""
        array_arguments = [argument for each in (*self.before, self) for argument in each.array_arguments.values()]
        device, stream = stream_of(*(argument.array for argument in array_arguments))
        if device is None or settings.current().device == "emulator":
            self.run()
            return
        _check_located(array_arguments, device)
        library, placement = library_of(type(out)), placement_of(arrays, factors)
        if library and placement and is_kept(device, self.stream):
            (layout, addresses), actual = placement, (out, *arrays[1:])
            launch = replace(self.for_others(actual, device, library), known=factors)
            if launch.launch([library.address(out), *addresses[1:]], actual, factors) is not None:
                call = CALLS.known(key)
                writer = LaunchWriter(call, library)
                writer(launch, addresses, arrays)
                call.keep(layout, replace(launch, rewrite=writer))
                return
        self.launch(device, stream)

    def _handle(self, device: int) -> partial[None]:
        return prepared(self.kernel, self.grid, self.threads, device, **self.constants)

    def _written(self, device: int) -> list[ArrayArgument]:
        """Return the arrays that the kernel writes."""
        signature = cast(Compiled, self._handle(device).func).signature
        return [argument for n, argument in self.array_arguments.items() if signature.names[n] in signature.written]

    def _for_others(self, arrays: Sequence[object], device: int) -> KernelLaunch:
        """Return the launch of this kernel alone."""
        handle, array_arguments = self._handle(device), self.array_arguments
        position = {n: _position(v.owner, arrays) for n, v in array_arguments.items()}
        return KernelLaunch(
            checked=handle,
            unchecked=cast(Compiled, handle.func).unchecked(*handle.args, **handle.keywords),
            arguments=tuple(0 if isinstance(v, ArrayArgument) else v for v in self.arguments),
            numbers=self._span(),
            positions=tuple((n, p) for n, p in position.items() if not isinstance(array_arguments[n], MappedMatrix)),
            maps=tuple(
                (n, p, v.encoder()) for n, p in position.items() if isinstance(v := array_arguments[n], MappedMatrix)
            ),
        )


class LaunchWriter:
    """Generate the launch function of a call for its first arrays, and again for arrays of the same layout that differ
    in something else that the library compares, such as `requires_grad`."""

    def __init__(self, call: KnownCall, library: Library) -> None:
        self._call, self._library, self._left = call, library, MOST_WRITTEN

    def __call__(self, launch: ArrayLaunch, addresses: Sequence[int], arrays: Sequence[object]) -> None:
        if self._left:
            self._left -= 1
            quick = written(launch, addresses, arrays, self._library)
            if quick:
                self._call.keep_quick(quick)


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


def _wrapped(argument: ArrayArgument) -> Strided:
    """Return the array in the form that its parameter takes."""
    return MappedAs(argument.lines, argument.kind) if isinstance(argument, MappedMatrix) else strided(argument.owner)


def address_of(argument: ArrayArgument) -> int | bytes:
    """Return the parameter on a GPU: an address, or an encoded tensor map."""
    return argument.encoder()(argument.array.pointer) if isinstance(argument, MappedMatrix) else argument.array.pointer


def _overlaps(one: ArrayArgument, other: ArrayArgument) -> tuple[int, int]:
    """Return the bounds between which the difference of two addresses means that the arrays overlap."""
    (low, high), (other_low, other_high) = _reach(one), _reach(other)
    return other_low - high, other_high - low


def _reach(argument: ArrayArgument) -> tuple[int, int]:
    first, last = argument.array.span
    return first - argument.array.pointer, last - argument.array.pointer


def _position(owner: object, arrays: Sequence[object]) -> int:
    return next(n for n, array in enumerate(arrays) if array is owner)
