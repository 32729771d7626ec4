"""Running a kernel where its arrays are: on the emulator with numpy's, on the GPU where they live there.

A launch on a GPU is remembered by all that decides about it: the settings, the constants, the types of the arguments,
and what the kernel read of Python when it was traced. The next such launch asks for no more than that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ptxdsl import config
from ptxdsl.driver import Late
from ptxdsl.errors import LaunchError, here, of_user
from ptxdsl.runtime.shape import WrittenShape
from ptxdsl.runtime.variant import DEFAULT_ARCH, Runnable, Variant
from ptxdsl.trace.builder import peek
from ptxdsl.trace.captured import Captures, Guard, constant_key
from ptxdsl.trace.parameters import Parameters
from ptxdsl.tracers import untraceable

if TYPE_CHECKING:
    from ptxdsl import arrays, driver
    from ptxdsl.arrays import Array
    from ptxdsl.runtime import emulation
    from ptxdsl.runtime import launch as launching
    from ptxdsl.runtime.launch import Compiled
else:
    arrays = Late("ptxdsl.arrays")
    driver = Late("ptxdsl.driver")
    emulation = Late("ptxdsl.runtime.emulation")
    launching = Late("ptxdsl.runtime.launch")


MOST_REMEMBERED = 1024  # ways to launch a kernel
_NO_ARRAYS = (int, float, bytes, type(None))
# What the quick way meets where something is not as it was: the careful way says what does not fit.
_MISFITS = (
    struct.error, OverflowError, TypeError, RuntimeError, AttributeError, ValueError, NameError, LookupError,
)  # fmt: skip


@dataclass(slots=True)
class KeptLaunch:
    """A launch that was made on a GPU, and can be made again.

    `guard` is the quick check that what the kernel read, `captures`, is as it was. `constants` are kept alive, since
    they are known by their addresses. `shared_bytes` are those of a launch that does not say how many, None where each
    must.
    """

    device: int
    variant: Variant
    handle: Compiled
    captures: Captures
    guard: Guard | None
    constants: tuple[Any, ...]
    flattener: Callable[..., tuple[Any, ...]] | None
    shared_bytes: int | None


UNTRACEABLE = untraceable(
    'torch cannot look into a launch of ptxdsl; make an operator of the kernel, `f = ptxdsl.torch.op("my::f", kernel, '
    "grid=…, block=…, out={…})`, and call f(…); without fullgraph=True the launch runs between two graphs"
)


class Launchable(Runnable, Protocol):
    """A kernel that remembers its launches: the last one on each GPU, by what decides about them."""

    handles: dict[Any, list[KeptLaunch]]


class Launch:
    """`kernel[grid, block]`, to be called with the arguments."""

    __slots__ = ("block", "grid", "kernel", "shared_bytes")

    def __init__(
        self,
        kernel: Launchable,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared_bytes: int | None = None,
    ) -> None:
        self.kernel, self.grid, self.block, self.shared_bytes = kernel, grid, block, shared_bytes

    @UNTRACEABLE
    def __call__(
        self,
        *arguments: object,
        stream: object = None,
        cluster: int | tuple[int, ...] | None = None,
        cooperative: bool = False,
        dependent: bool = False,
        overlap: bool = False,
        **constants: object,
    ) -> None:
        """Runs the kernel: on the emulator with numpy arrays, which it waits for, else on the GPU of the arrays.

        `stream` is a torch or CuPy stream, a `__cuda_stream__` object or a handle; the current one without it. An array
        that the kernel writes may share a part of its memory with another argument only with `overlap`. A `dependent`
        kernel may begin while the one before it on the stream still runs: it waits for what that writes by
        `pd.ptx.griddepcontrol.wait()`, and that one lets it begin by `griddepcontrol.launch_dependents`.
        The emulator, where kernels run one after another, finds accesses that lack the wait. Where the setting
        PTXDSL_DEPENDENT_LAUNCH is off, it begins when that one has ended, as any other.
        Raises LaunchError where an argument does not fit, EmulationError where the emulated kernel goes wrong; nothing
        is written then.
        """
        dependent = dependent and config.allows_dependent_launches()
        key = _key(arguments, constants) if constants else (*config.deciding(), *map(type, arguments))
        known = self.kernel.handles.get(key)
        if known is None and constants:
            known = _equal_launches(self.kernel, arguments, constants)
        if known is not None and not overlap:
            last = known[0]
            try:
                if last.guard is None or last.guard():
                    flat = arguments if last.flattener is None else last.flattener(*arguments)
                    shared_bytes = last.shared_bytes
                    if self.shared_bytes is not None or shared_bytes is None:
                        shared_bytes = last.variant.shared_bytes(self.shared_bytes)
                    shape = self.grid, self.block, shared_bytes, cluster, cooperative, dependent
                    if last.handle.last(flat, shape, stream, None):
                        return
            except _MISFITS:
                pass
        asked = WrittenShape(self.grid, self.block, self.shared_bytes, cluster, cooperative, dependent)
        try:
            if known is None or overlap or not _again(known, arguments, stream, asked):
                _run(self.kernel, arguments, stream, asked, overlap, constants)
        except Exception as error:
            raise of_user(error)  # noqa: B904


def _key(arguments: Sequence[object], constants: dict[str, object]) -> tuple[Any, ...]:
    """What decides about a launch; constants by their addresses, since equal ones may be other constants."""
    return (*config.deciding(), *constants, *map(id, constants.values()), *map(type, arguments))


def _exact_key(arguments: Sequence[object], constants: dict[str, object]) -> tuple[Any, ...]:
    """The same with constants by what is in them, for those that are computed anew for each launch."""
    return (*config.deciding(), *constants, *map(constant_key, constants.values()), *map(type, arguments))


def _equal_launches(
    kernel: Launchable, arguments: Sequence[object], constants: dict[str, object]
) -> list[KeptLaunch] | None:
    """The launches with constants that are the same, though other objects."""
    try:
        return kernel.handles.get(_exact_key(arguments, constants))
    except TypeError:  # a constant is not hashable, which is refused by its name
        return None


def _again(known: list[KeptLaunch], arguments: tuple[object, ...], stream: object, asked: WrittenShape) -> bool:
    """Launches as before where the GPU or the types within groups differ from those of the last launch."""
    if not known[0].captures.hold():
        return False
    device = gpu_among(arguments)
    for n, each in enumerate(known):
        if each.device == device and each.captures.hold():
            known.insert(0, known.pop(n))
            flat = each.variant.signature.flat(arguments)
            shape = asked._replace(shared_bytes=each.variant.shared_bytes(asked.shared_bytes))
            each.handle.launch(shape, flat, stream, device)
            return True
    return False


def _run(
    kernel: Launchable,
    arguments: tuple[Any, ...],
    stream: Any,
    asked: WrittenShape,
    overlap: bool,
    constants: dict[str, Any],
) -> None:
    """Finds out where the arrays are, and runs the kernel there."""
    if peek() is not None:
        raise LaunchError(
            "a kernel is launched while another one is traced",
            at=here().location,
            help="device code that kernels share is a plain Python function, without @pd.kernel",
        )
    settings = config.current()
    device = gpu_among(arguments)
    variant = kernel.variant(_asked_target(device), constants)
    shape = asked._replace(shared_bytes=variant.shared_bytes(asked.shared_bytes))
    if settings.device == "emulator" or (device is None and settings.device != "cuda"):
        emulation.run(variant, shape, arguments, overlap)
        return
    handle = variant.compiled(driver.device(device or 0).arch)
    if device is None:
        handle.launch_on_copies(arguments=arguments, overlap=overlap, **shape._asdict())
        return
    handle.launch(shape, variant.signature.flat(arguments), stream, device, overlap)
    captures = variant.captures
    remembered = KeptLaunch(
        device, variant, handle, captures, captures.guard, tuple(constants.values()), variant.flattener,
        variant.dynamic_bytes,
    )  # fmt: skip
    for key in {_key(arguments, constants), _exact_key(arguments, constants)}:
        _remember(kernel, key, remembered)


def _remember(kernel: Launchable, key: tuple[object, ...], remembered: KeptLaunch) -> None:
    if key not in kernel.handles and len(kernel.handles) >= MOST_REMEMBERED:
        del kernel.handles[next(iter(kernel.handles))]
    others = [each for each in kernel.handles.get(key, ()) if each.device != remembered.device]
    kernel.handles[key] = [remembered, *others]


def target(device: int | None) -> str:
    """What a kernel is made for whose arrays are on a GPU, or in host memory where that is None."""
    return _asked_target(device) or DEFAULT_ARCH


def usual_target() -> str | None:
    """The target of a kernel before there are arrays: as asked for, else the first GPU; None where there is neither."""
    on_gpu = config.current().device != "emulator" and not driver.why_no_gpu()
    return _asked_target(0 if on_gpu else None)


def _asked_target(device: int | None) -> str | None:
    """The same; None where neither a GPU nor a setting decides."""
    settings = config.current()
    if device is None and settings.device != "cuda":
        return settings.arch
    return settings.arch or str(driver.device(device or 0).arch)


def gpu_among(arguments: Sequence[object]) -> int | None:
    """The GPU that an argument is on; None if all are in host memory or no arrays."""
    for value in _flat(arguments):
        if isinstance(value, _NO_ARRAYS):
            continue
        try:
            array: Array | None = arrays.describe(arrays.unwrapped(value))
        except BufferError:  # the check of the arguments says why, by name
            continue
        if array is not None and array.device != arrays.HOST:
            return launching.gpu_of(array) or 0
    return None


def _flat(arguments: Sequence[object]) -> Iterator[Any]:
    for value in arguments:
        if isinstance(value, Parameters):
            yield from value.flat
        else:
            yield value
