"""Load compiled kernels on a GPU, check arguments and launch. Launches do not wait, and graphs can capture them.

A launch uses the stream that the caller passes, else the current stream of the arrays' library (torch, CuPy, or the
stream of the CUDA array interface), else stream 0 of the arrays' GPU. The arrays must stay alive until the kernel has
run; torch and CuPy ensure this on their own streams.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, Unpack

from ptxdsl import config, driver
from ptxdsl.arrays import HOST, Array, Library, Struct, library_of, unwrapped
from ptxdsl.assemble import Cubin
from ptxdsl.driver import call
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.runtime.arguments import Parameter, Signature
from ptxdsl.runtime.copies import copied, copy_back, moved
from ptxdsl.runtime.loaded import Image, Loaded
from ptxdsl.runtime.record import KernelRecord, Launcher, never
from ptxdsl.runtime.shape import Shape, ShapeOptions, launch_shape, refuse
from ptxdsl.runtime.streams import current_stream, stream_handle
from ptxdsl.runtime.tensor_maps import MappedAs, for_driver
from ptxdsl.runtime.values import Value
from ptxdsl.trace.parameters import Parameters

MOST_LAUNCHERS = 64  # per kernel, one for each combination of argument types and GPU
# Exceptions of the fast path: a number that does not fit its parameter, an extent that is not an int, a tensor without
# memory, an argument that is not an array, or the wrong number of arguments.
_MISFITS = (struct.error, OverflowError, TypeError, RuntimeError, AttributeError, ValueError)


class Compiled:
    """A kernel of a cubin, ready to launch on every GPU that the cubin supports; made by `load`.

    `handle(grid, block, arguments)` checks the arguments and launches. The first launch on a GPU loads the cubin there.
    If all arrays come from torch, or all from CuPy, later launches with the same types cost a few microseconds.
    """

    def __init__(
        self,
        cubin: Cubin,
        name: str,
        parameters: Sequence[Parameter],
        written: Collection[str] | None = None,
        image: Image | None = None,
    ) -> None:
        self.cubin, self.image = cubin, image or Image(cubin)
        self.signature = Signature(name, parameters, written)
        self._loaded: dict[int, Loaded] = {}
        self._quick: dict[tuple[Any, ...], Launcher] = {}
        self.last: Launcher = never  # launches arguments like those of the last launch; returns False for others

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.signature.written if self.signature.knows_written else None
        return Compiled, (self.cubin, self.signature.kernel, self.signature.parameters, known)

    def __call__(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: Sequence[object],
        *,
        shared_bytes: int = 0,
        cluster: int | tuple[int, ...] | None = None,
        cooperative: bool = False,
        dependent: bool = False,
        stream: object = None,
        device: int | None = None,
    ) -> None:
        """Launch on the GPU of the arrays, or on `device` if there are only addresses and numbers.

        `arguments` are the launch arguments, or one argument per PTX parameter, which is faster for kernels with
        groups. `grid` counts blocks. `stream` is a torch or CuPy stream, a `__cuda_stream__` object or a handle as an
        int. `dependent` takes effect unless the setting PTXDSL_DEPENDENT_LAUNCH is off. Raises LaunchError, with
        nothing launched, for an argument that does not fit or a launch that the GPU does not support.
        """
        dependent = dependent and config.allows_dependent_launches()
        shape = grid, block, shared_bytes, cluster, cooperative, dependent
        try:
            if self.last(arguments, shape, stream, device):
                return
        except _MISFITS:
            pass  # the full check reports what does not fit
        if any(isinstance(argument, Parameters) for argument in arguments):
            arguments = self.signature.flat(arguments)
        self.launch(shape, arguments, stream, device)

    def launch(
        self,
        shape: tuple[object, ...],
        arguments: Sequence[object],
        stream: object,
        device: int | None,
        overlap: bool = False,
    ) -> None:
        """Launch arguments whose types differ from the last launch: use a cached launcher, else the full check.

        `shape` is (grid, block, shared_bytes, cluster, cooperative, dependent); `arguments` has one entry per PTX
        parameter.
        """
        if overlap:
            self._launch_carefully(shape, arguments, stream, device, overlap)
            return
        types = device, *map(type, arguments)
        for (known, *_), quick in list(self._quick.items()):
            with suppress(*_MISFITS):
                if known == types and quick(arguments, shape, stream, device):
                    self.last = quick
                    return
        self._launch_carefully(shape, arguments, stream, device)

    def _launch_carefully(
        self,
        shape: tuple[Any, ...],
        arguments: Sequence[Any],
        stream: object,
        device: int | None,
        overlap: bool = False,
    ) -> None:
        """Check everything, launch, and generate a fast launcher for such arguments."""
        checked = launch_shape(*shape)
        handle = None if stream is None else stream_handle(stream)
        values = self.signature.check(arguments, device, handle or 0, driver.gpu_at, overlap)
        arrays = [array for _, array, _ in self.signature.arrays(values)]
        ordinal = next((a.device for a in arrays if a.device is not None), device or 0)
        libraries = list(dict.fromkeys(library_of(type(array.owner)) for array in arrays))
        if handle is None:
            handle = current_stream(libraries, arrays, ordinal)
        self.on(ordinal).launch(checked, _parameters(values), handle)
        is_plain = self.signature.is_plain and not any(isinstance(argument, MappedAs) for argument in arguments)
        if not overlap and is_plain and len(libraries) < 2 and None not in libraries:
            numbers = [n for n, value in enumerate(values) if isinstance(value, Array | Struct)]
            self._learn(arguments, numbers, libraries[0] if libraries else None, ordinal, device)

    def _learn(
        self, arguments: Sequence[object], arrays: list[int], library: Library | None, ordinal: int, device: int | None
    ) -> None:
        """Generate the function that launches such arguments quickly."""
        types = device, *map(type, arguments)
        key = types, ordinal, *(unwrapped(arguments[n]).dtype for n in arrays)
        if key not in self._quick:
            devices = (None if arrays or not ordinal else ordinal), ordinal
            record = KernelRecord(self.signature, arguments, arrays, library, self.on(ordinal).scope(), devices)
            if len(self._quick) >= MOST_LAUNCHERS:
                del self._quick[next(iter(self._quick))]
            self._quick[key] = record.compiled()
        self.last = self._quick[key]

    def on(self, device: int) -> Loaded:
        """Return the kernel in the primary context of a GPU; load it if necessary."""
        if device not in self._loaded:
            self._loaded[device] = Loaded(self.image, self.signature, device)
        return self._loaded[device]

    def unchecked(
        self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *, device: int, **options: Unpack[ShapeOptions]
    ) -> Callable[[Sequence[int | float | bytes], int], None]:
        """Return a launcher of this shape that takes values already checked by another launch, and a stream."""
        return partial(self.on(device).launch, launch_shape(grid, block, **options))

    def parts(
        self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *, device: int, **options: Unpack[ShapeOptions]
    ) -> dict[str, Any]:
        """Return the names that a launch record of this shape uses; `config_of` returns the configuration for a
        stream."""
        scope = self.on(device).scope()
        shape = launch_shape(grid, block, **options)
        return {"config_of": lru_cache(maxsize=64)(partial(scope.pop("configs"), shape)), **scope}

    def occupancy(self, block: int | tuple[int, ...], *, shared_bytes: int = 0, device: int = 0) -> int:
        """Return the number of blocks of this shape that fit on one multiprocessor."""
        return self.on(device).occupancy(launch_shape(1, block, shared_bytes))

    def launch_on_copies(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: Sequence[object],
        *,
        device: int = 0,
        overlap: bool = False,
        **options: Unpack[ShapeOptions],
    ) -> None:
        """Launch with numpy arrays: copy them to a GPU, wait for the kernel, copy back the arrays that it writes.

        For tests and for PTXDSL_DEVICE=cuda. Raises LaunchError like a launch, and also if the kernel itself fails or
        `written` is unknown; the arrays are then unchanged.
        """
        if not self.signature.knows_written:
            refuse(
                f"cannot copy back the results of {self.signature.kernel}: the arrays that it writes are unknown",
                "name them when loading the kernel: load(cubin, name, parameters, written={'y'})",
            )
        shape = launch_shape(grid, block, **options)
        with self.on_copies(shape, arguments, device=device, overlap=overlap) as (launch, copies):
            launch()
            call(f"running {self.signature.kernel}", driver.cuda.cuCtxSynchronize)
            for copy, array, is_written in copies:
                if copy is not None and is_written:
                    copy_back(copy, array)

    @contextmanager
    def on_copies(
        self, shape: Shape, arguments: Sequence[object], *, device: int = 0, overlap: bool = False
    ) -> Iterator[tuple[Callable[[], None], Sequence[tuple[int | None, Array, bool]]]]:
        """Yield a function that launches the kernel on copies of numpy arrays, and the copies: the address, None for an
        empty array, the numpy array, and True if the kernel writes it.

        The GPU's context is current in the body of the `with`. The numpy arrays do not change.
        """
        signature = self.signature
        values = signature.check(signature.flat(arguments), HOST, may_overlap=overlap)
        arrays = [*signature.arrays(values)]
        with driver.on(device), copied([array for _, array, _ in arrays]) as copies:
            launch = partial(self.on(device).launch, shape, _parameters(moved(values, copies)), 0)
            yield launch, [(copy, *each[1:]) for copy, each in zip(copies, arrays, strict=True)]


def load(
    cubin: Cubin,
    name: str,
    parameters: Sequence[Parameter],
    written: Collection[str] | None = None,
    image: Image | None = None,
) -> Compiled:
    """Return a handle that launches one kernel of a cubin; no GPU is needed yet.

    `parameters` are names and types, or classes of groups, in the kernel's order. `written` names the pointers that it
    writes through, () for a kernel that writes none. Kernels with the same `image` of the cubin share its variables.
    Raises LaunchError for a kernel that the cubin does not have.
    """
    if cubin.kernels and name not in cubin.kernels:
        refuse(f"the cubin has no kernel `{name}`", f"its kernels are {', '.join(cubin.kernels)}")
    return Compiled(cubin, name, parameters, written, image)


def gpu_of(array: Array) -> int | None:
    """Return the GPU of an array in GPU memory; None for an empty array that does not record it."""
    return driver.gpu_at(array.pointer) if array.device is None else array.device


def _parameters(values: Iterable[Value]) -> list[int | float | bytes]:
    """Convert checked values to driver parameters: arrays to their addresses, and structs to their bytes."""
    return [
        _content(value) if isinstance(value, Struct) else value.pointer if isinstance(value, Array) else value
        for value in values
    ]


def _content(value: Struct) -> bytes:
    """Return the bytes of a struct, with its tensor maps encoded by the driver."""
    content = value.filled([array.pointer.to_bytes(8, "little") for _, _, array in value.holders])
    for offset in value.maps:
        end = offset + MAP_BYTES
        content = content[:offset] + for_driver(content[offset:end]) + content[end:]
    return content
