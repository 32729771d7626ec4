"""Launch kernels on the emulator, with arguments checked as for a GPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ptxdsl import config, ir
from ptxdsl.arrays import HOST, Array, Struct
from ptxdsl.driver import Late
from ptxdsl.errors import CallError, Error, here, meant, public
from ptxdsl.isa.cluster_size import clusters_of
from ptxdsl.runtime import limits
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.variant import Variant

if TYPE_CHECKING:
    import numpy as np

    import ptxdsl.emulate as emulator
    from ptxdsl.emulate import Report, Stream
    from ptxdsl.emulate import threads as naming
    from ptxdsl.emulate.observe import steps as recording
    from ptxdsl.emulate.run.machine import MachineWatcher
    from ptxdsl.emulate.threads import ThreadName
    from ptxdsl.runtime import shape as shapes
    from ptxdsl.runtime import values as checking
    from ptxdsl.runtime.shape import Shape
    from ptxdsl.runtime.values import Kind, Value
else:
    emulator = Late("ptxdsl.emulate")
    naming = Late("ptxdsl.emulate.threads")
    recording = Late("ptxdsl.emulate.observe.steps")
    shapes = Late("ptxdsl.runtime.shape")
    checking = Late("ptxdsl.runtime.values")


MOST_REGISTERS = 255  # per thread
_LAUNCHES = threading.local()


def run(variant: Variant, shape: tuple[Any, ...], arguments: Sequence[Any], overlap: bool) -> None:
    """Run a kernel. Raises LaunchError for an argument that does not fit, EmulationError for an error in the kernel."""
    started = emulator.now()
    checked = _in_clusters(variant, shapes.launch_shape(*shape))
    filled = _checked(variant, checked, arguments, overlap)
    emulator.run(
        variant.function, variant.read, checked.grid, checked.block, filled, checked.shared_bytes,
        config.current().checks, variables=_variables(variant), cluster=checked.cluster, stream=_stream(),
        dependent=checked.dependent, notes=lambda: variant.notes,
        extents=variant.extents, strict=_is_strict(variant), started=started,
    )  # fmt: skip


def _is_strict(variant: Variant) -> bool:
    """True if strict findings are errors: for a kernel that was traced, and for any with PTXDSL_STRICT=1."""
    return variant.parsed is None or config.current().strict


def _stream() -> Stream:
    """Return the emulated stream of this Python thread, which runs launches one after another."""
    if not hasattr(_LAUNCHES, "stream"):
        _LAUNCHES.stream = emulator.Stream()
    stream: Stream = _LAUNCHES.stream
    return stream


@dataclass(frozen=True)
class EmulatorCall:
    """A checked launch on the emulator: kernel, shape, arguments, options, and the seconds that the checks took."""

    variant: Variant
    shape: Shape
    arguments: Sequence[Array | Struct | bytes]
    checks: bool
    traffic: bool
    settings: Mapping[str, str]
    seconds: float

    def run(self, watchers: Sequence[MachineWatcher] = ()) -> Report:
        """Run the launch; watchers see each step."""
        variant, shape = self.variant, self.shape
        with config.using(**self.settings):
            return emulator.emulate(
                variant.function, variant.read, shape.grid, shape.block, self.arguments, shape.shared_bytes,
                self.checks, variables=_variables(variant), traffic=self.traffic, cluster=shape.cluster,
                watchers=watchers, stream=_stream(), dependent=shape.dependent, notes=lambda: variant.notes,
                extents=variant.extents, strict=_is_strict(variant), started=emulator.now() - self.seconds,
            )  # fmt: skip


class EmulatorOptions(TypedDict, total=False):
    """The options of `pd.emulate` and `pd.debug`, besides the kernel, its shape and its arguments."""

    shared_bytes: int | None
    checks: bool
    overlap: bool
    schedule: str | None
    max_steps: int | None
    max_seconds: float | None
    traffic: bool
    cluster: int | tuple[int, ...] | None
    dependent: bool


def emulator_call(
    called: str,
    kernel: object,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: Sequence[object],
    constants: Mapping[str, object],
    **options: Unpack[EmulatorOptions],
) -> EmulatorCall:
    """Check the arguments of `pd.emulate` or a similar function, whose name is `called`, and return the launch.

    Raises LaunchError for an argument that does not fit.
    """
    if not hasattr(kernel, "variant"):
        help = (
            "decorate the function with @pd.kernel, or pass a kernel of a parsed module, pd.parse(text)[name]; "
            f"then grid and block: {called}(kernel, grid, block, …)"
        )
        if hasattr(getattr(kernel, "kernel", None), "variant"):
            help = f"pass the kernel that it launches: {called}(launcher.kernel, grid, block, …), with its constants"
        refuse(f"the first argument of {called} must be a kernel, got {kernel!r}", help)
    _check_names(called, kernel, constants, [*options, "trace"])
    variant, said = kernel.variant(config.current().arch, dict(constants)), options.get
    started = emulator.now()  # after the kernel was traced: a limit of seconds covers what is done at each launch
    shared_bytes = variant.shared_bytes(said("shared_bytes"))
    dependent = options.get("dependent", False) and config.allows_dependent_launches()
    shape = _in_clusters(variant, shapes.launch_shape(grid, block, shared_bytes, said("cluster"), dependent=dependent))
    filled = _checked(variant, shape, arguments, options.get("overlap", False))
    limits = {"schedule": said("schedule"), "steps": said("max_steps"), "seconds": said("max_seconds")}
    settings = {name: str(value) for name, value in limits.items() if value is not None}
    with config.using(**settings):  # refuses invalid settings before anything runs
        checks, traffic = options.get("checks", True), options.get("traffic", False)
        return EmulatorCall(variant, shape, filled, checks, traffic, settings, emulator.now() - started)


@public
def emulate(
    kernel: object,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: object,
    shared_bytes: int | None = None,
    checks: bool = True,
    overlap: bool = False,
    schedule: str | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    traffic: bool = False,
    trace: bool | ThreadName | list[ThreadName] = False,
    cluster: int | tuple[int, ...] | None = None,
    dependent: bool = False,
    **constants: object,
) -> Report:
    """Run a kernel on the emulator and return a report of its errors instead of raising them.

    The arrays are numpy arrays, and are written only if there are no errors: `report.errors` has the findings of degree
    "error". A finding of degree "strict" breaks a rule of the manual that shipped kernels break as well; it is an error
    in a kernel that was traced from Python, and with PTXDSL_STRICT=1. `checks=False` reports only accesses outside of
    arrays, misaligned accesses, and what stops a kernel, such as a deadlock, and runs the launch to its end.
    `schedule` is "lockstep", "skewed", "random" or "random:SEED". After `max_steps` steps or `max_seconds` from the
    call on the kernel is stopped, which is a finding of kind 'limit'. The defaults are the settings PTXDSL_SCHEDULE,
    PTXDSL_STEPS and PTXDSL_SECONDS.
    `traffic` fills `report.bank_conflicts`, `report.global_sectors` and `report.counters`. `trace` records the steps of
    threads for `report.trace(thread)`: pass a thread number of block 0, ((block), (thread)), a list of these, or True
    for all threads. `cluster` is the cluster shape in blocks, as in a launch. A `dependent` kernel may overlap the
    previous launch if that launch allows it and PTXDSL_DEPENDENT_LAUNCH is not off. Raises LaunchError for arguments
    that do not fit.
    """
    call = emulator_call(
        "pd.emulate", kernel, grid, block, arguments, shared_bytes=shared_bytes, checks=checks, overlap=overlap,
        schedule=schedule, max_steps=max_steps, max_seconds=max_seconds, traffic=traffic, cluster=cluster,
        dependent=dependent, constants=constants,
    )  # fmt: skip
    if trace is False:
        return call.run()
    threads = naming.Threads(call.shape.grid, call.shape.block)
    return call.run([recording.StepRecorder(threads, threads.all_of(trace, "trace"))])


def _check_names(called: str, kernel: object, constants: Mapping[str, object], options: Sequence[str]) -> None:
    """Refuse a keyword that is not a constant of the kernel but resembles an option."""
    known = getattr(getattr(kernel, "signature", None), "constants", {})
    for name in constants:
        near = meant(name, options, cutoff=0.75) if name not in known else None
        if near:
            raise CallError(f"{called} takes no `{name}`", at=here().location, help=near)


def _in_clusters(variant: Variant, shape: Shape) -> Shape:
    """Return the shape with the clusters that the kernel runs in."""
    checked: Shape = shapes.in_clusters(shape, variant.name, clusters_of(variant.function))
    return checked


def _variables(variant: Variant) -> dict[ir.Variable, bytes | np.ndarray] | None:
    """Return the contents of the module variables between launches."""
    return variant.memory.contents if variant.memory else None


def _checked(
    variant: Variant, shape: Shape, arguments: Sequence[object], overlap: bool
) -> list[Array | Struct | bytes]:
    """Check the launch against the target, and return the arguments in the form that the emulator takes.

    Raises LaunchError for a launch that the target cannot run.
    """
    _check_block(variant, shape)
    _check_memory(variant, shape)
    _check_registers(variant, shape)
    signature = variant.signature
    values = signature.check(signature.flat(arguments), HOST, may_overlap=overlap)
    return [_filled(*each) for each in zip(signature.names, signature.kinds, values, strict=True)]


def _filled(name: str, kind: Kind, value: Value) -> Array | Struct | bytes:
    """Convert a checked value for the emulator: arrays get their names, numbers become bytes."""
    if isinstance(value, Array):
        return replace(value, name=name)
    return value if isinstance(value, Struct) else checking.packed(kind, value)


def _check_block(variant: Variant, shape: Shape) -> None:
    """Refuse a block that violates the kernel's .reqntid or .maxntid."""
    promised = variant.function.bounds
    exact = promised.get("reqntid")
    if exact and tuple([*exact, 1, 1][:3]) != shape.block:
        refuse(
            f"{variant.name} is compiled for blocks of {tuple(exact)} threads, but the launch has {shape.block}",
            "launch it with that block, or trace it with another `reqntid`",
        )
    most = math.prod(promised.get("maxntid", [shape.threads]))
    if shape.threads > most:
        refuse(
            f"{variant.name} is compiled for at most {most} threads per block, but the launch has {shape.threads}",
            "launch smaller blocks, or trace it with a larger `max_threads`",
        )


def _check_memory(variant: Variant, shape: Shape) -> None:
    """Refuse shared memory, clusters and dependent launches that the target does not support."""
    name, static = variant.name, variant.static_bytes
    if static > limits.STATIC_SHARED_BYTES:
        refuse(
            f"`{name}` declares {static} bytes of static shared memory; the limit is {limits.STATIC_SHARED_BYTES}",
            "declare it `.extern .shared` without a size, and pass `shared_bytes` at launch",
        )
    arch, most = variant.arch, limits.shared_bytes(variant.arch)
    limits.LaunchLimits(name, arch, limits.capability_of(arch), most, static, is_emulated=True).check(shape)


def _check_registers(variant: Variant, shape: Shape) -> None:
    """Refuse a block whose threads need more registers than a multiprocessor has; ask the assembler only if they may.

    Nothing is refused without an assembler, or if the kernel itself limits its block. A module of parsed or linked PTX
    takes long to assemble, so its kernels are checked only if they ask for a number of registers by `.maxnreg`.
    """
    bounds = variant.function.bounds
    held = sum(max(1, register.type.bits // 32) for register in variant.function.registers)
    if bounds.keys() & {"maxntid", "reqntid"} or (variant.memory is not None and "maxnreg" not in bounds):
        return
    if shape.threads <= limits.most_threads(min(held, *bounds.get("maxnreg", []), MOST_REGISTERS)):
        return
    try:
        resources = variant.alone.kernels[variant.name]
    except (Error, KeyError):  # the assembler reports it when the machine code is requested
        return
    limits.check_threads(variant.name, shape, limits.most_threads(resources.registers))
