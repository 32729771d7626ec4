"""Run a kernel where its arrays are: on the emulator for numpy arrays, on the GPU for GPU arrays.

Each GPU launch is cached under everything that determines it: the settings, the constants, the argument types, and the
Python values that the kernel read while it was traced. The next launch with the same key checks only these.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ptxdsl import config
from ptxdsl.driver import Late
from ptxdsl.errors import of_user
from ptxdsl.runtime.shape import WrittenShape, refuse
from ptxdsl.runtime.variant import DEFAULT_ARCH, Runnable, Variant
from ptxdsl.trace.builder import peek
from ptxdsl.trace.captured import Captures, Guard
from ptxdsl.trace.contents import constant_key
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


MOST_REMEMBERED = 1024  # cached launches per kernel
_NO_ARRAYS = (int, float, bytes, type(None))
# Exceptions of the fast path when something has changed; the full check then reports what does not fit.
_MISFITS = (
    struct.error, OverflowError, TypeError, RuntimeError, AttributeError, ValueError, NameError, LookupError,
)  # fmt: skip


@dataclass(slots=True)
class KeptLaunch:
    """A GPU launch that can be repeated.

    `guard` is a quick check that the values the kernel read (`captures`) are unchanged. `constants` are kept alive,
    since they are compared by address. `shared_bytes` is the default dynamic shared memory, or None if every launch
    must pass it.
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
    'torch cannot trace through a ptxdsl launch; make the kernel an operator, `f = ptxdsl.torch.op("my::f", kernel, '
    "grid=…, block=…, out={…})`, and call f(…); without fullgraph=True the launch runs between two graphs"
)


class Launchable(Runnable, Protocol):
    """A kernel that caches its launches, the latest per GPU, by launch key."""

    handles: dict[Any, list[KeptLaunch]]


class Launch:
    """The result of `kernel[grid, block]`; call it with the arguments to launch."""

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
        """Run the kernel: on the emulator for numpy arrays, and wait for it; on the GPU of the arrays otherwise.

        `stream` is a torch or CuPy stream, a `__cuda_stream__` object or a handle; the default is the current stream.
        An array that the kernel writes may partly overlap another argument only with `overlap`. A `dependent` kernel
        may start while the previous kernel on the stream still runs: it waits for that kernel's writes with
        `pd.ptx.griddepcontrol.wait()`, and that kernel lets it start with `griddepcontrol.launch_dependents`. The
        emulator runs kernels one after another and reports accesses that lack the wait. With the setting
        PTXDSL_DEPENDENT_LAUNCH off, a dependent kernel starts after the previous one has ended, like any other. Raises
        LaunchError if an argument does not fit and EmulationError if the emulated kernel has an error; no array is
        written in either case.
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
    """The launch key, with constants by address, since equal constants may be different objects."""
    return (*config.deciding(), *constants, *map(id, constants.values()), *map(type, arguments))


def _exact_key(arguments: Sequence[object], constants: dict[str, object]) -> tuple[Any, ...]:
    """The launch key with constants by value, for constants that are computed again for each launch."""
    return (*config.deciding(), *constants, *map(constant_key, constants.values()), *map(type, arguments))


def _equal_launches(
    kernel: Launchable, arguments: Sequence[object], constants: dict[str, object]
) -> list[KeptLaunch] | None:
    """Return the cached launches whose constants are equal but other objects."""
    try:
        return kernel.handles.get(_exact_key(arguments, constants))
    except TypeError:  # the constant is not hashable; the full check reports it by name
        return None


def _again(known: list[KeptLaunch], arguments: tuple[object, ...], stream: object, asked: WrittenShape) -> bool:
    """Repeat a cached launch whose GPU or group field types differ from the last launch; return False if none fits."""
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
    """Find the GPU of the arrays, and run the kernel there or on the emulator."""
    if peek() is not None:
        refuse(
            "a kernel was launched while another kernel is being traced",
            "to share device code between kernels, write a plain Python function, without @pd.kernel",
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
    """Return the target for arrays on a GPU, or in host memory if `device` is None."""
    return _asked_target(device) or DEFAULT_ARCH


def usual_target() -> str | None:
    """Return the target before any arrays are known: the setting, else that of the first GPU, else None."""
    on_gpu = config.current().device != "emulator" and not driver.why_no_gpu()
    return _asked_target(0 if on_gpu else None)


def _asked_target(device: int | None) -> str | None:
    """Return the target from the setting or the GPU; None if neither determines one."""
    settings = config.current()
    if device is None and settings.device != "cuda":
        return settings.arch
    return settings.arch or str(driver.device(device or 0).arch)


def gpu_among(arguments: Sequence[object]) -> int | None:
    """Return the GPU of the first argument on a GPU; None if all arrays are in host memory or there are no arrays."""
    for value in _flat(arguments):
        if isinstance(value, _NO_ARRAYS):
            continue
        try:
            array: Array | None = arrays.describe(arrays.unwrapped(value))
        except BufferError:  # the argument check reports the reason by name
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
