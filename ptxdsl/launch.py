"""Compiled kernels on a GPU: load, check the arguments, launch. Nothing waits, and graphs can capture it.

A launch goes to the stream that the caller names; else to the stream on which the arrays' library works now (torch's
or CuPy's current stream, or that of the CUDA array interface); else to stream 0 of the arrays' GPU. The arrays must
live until the kernel has run, which torch and CuPy see to on their own streams.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from . import driver
from .arguments import Kind, Shape, Signature, Value, launch_shape, refuse
from .arrays import HOST, Array, Library, library_of, unwrapped
from .assemble import Cubin
from .driver import call
from .quick import Launcher, launcher, never

_DEFAULT_DYNAMIC_BYTES = 48 * 1024  # more must be asked for, kernel by kernel
_PORTABLE_CLUSTER_BLOCKS = 8
_ELSEWHERE = (201, 400)  # CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE
# What a number that its parameter cannot hold, an extent that is no int, a tensor without memory, an argument that is
# no array or another number of arguments raises on the quick way.
_MISFITS = (struct.error, OverflowError, TypeError, RuntimeError, AttributeError, ValueError)


class Compiled:
    """A kernel of a cubin, ready to launch on every GPU that the cubin runs on; made by `load`.

    `handle(grid, block, arguments)` checks the arguments and launches. The first launch on a GPU loads the cubin there.
    Where all arrays are torch's, or all CuPy's, a launch after the first with the same types costs a few microseconds.
    """

    def __init__(
        self, cubin: Cubin, name: str, parameters: Sequence[tuple[str, Kind]], written: Collection[str] = frozenset()
    ) -> None:
        self.cubin = cubin
        self.signature = Signature(name, parameters, written)
        self._loaded: dict[int, _Loaded] = {}
        self._quick: dict[tuple[Any, ...], Launcher] = {}
        self._last: Launcher = never

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self.cubin, self.signature.kernel, self.signature.parameters, self.signature.written)

    def __call__(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: Sequence[Any],
        *,
        shared_bytes: int = 0,
        cluster: int | tuple[int, ...] | None = None,
        cooperative: bool = False,
        stream: object = None,
        device: int | None = None,
    ) -> None:
        """Launch on the GPU of the arrays, or on `device` where there are only addresses and numbers.

        `grid` counts blocks; `stream` is a torch or CuPy stream, a `__cuda_stream__` object or a handle as an int.
        Raises LaunchError, with nothing launched, for an argument that does not fit or a launch that the GPU cannot do.
        """
        shape = grid, block, shared_bytes, cluster, cooperative
        try:
            if self._last(arguments, shape, stream, device):
                return
        except _MISFITS:
            pass  # the careful way says what does not fit
        self._launch_otherwise(shape, arguments, stream, device)

    def _launch_otherwise(
        self, shape: tuple[Any, ...], arguments: Sequence[Any], stream: object, device: int | None
    ) -> None:
        """Launch where the last arguments were of other types: quickly if these are known too, else carefully."""
        types = device, *map(type, arguments)
        for (known, *_), quick in list(self._quick.items()):
            with suppress(*_MISFITS):
                if known == types and quick is not self._last and quick(arguments, shape, stream, device):
                    self._last = quick
                    return
        self._launch_carefully(shape, arguments, stream, device)

    def _launch_carefully(
        self, shape: tuple[Any, ...], arguments: Sequence[Any], stream: object, device: int | None
    ) -> None:
        """Check everything, launch, and learn how to launch such arguments quickly."""
        checked = launch_shape(*shape)
        handle = None if stream is None else stream_handle(stream)
        values = self.signature.check(arguments, device, handle or 0, _gpu_of)
        arrays = {n: value for n, value in enumerate(values) if isinstance(value, Array)}
        ordinal = next((a.device for a in arrays.values() if a.device is not None), device or 0)
        libraries = list(dict.fromkeys(library_of(type(unwrapped(arguments[n]))) for n in arrays))
        if handle is None:
            handle = _current_stream(libraries, arrays.values(), ordinal)
        self.on(ordinal).launch(checked, [_address(value) for value in values], handle)
        if self.signature.is_plain and len(libraries) < 2 and None not in libraries:
            self._learn(arguments, list(arrays), libraries[0] if libraries else None, ordinal, device)

    def _learn(
        self, arguments: Sequence[Any], arrays: list[int], library: Library | None, ordinal: int, device: int | None
    ) -> None:
        """Write the function that launches such arguments quickly."""
        types = device, *map(type, arguments)
        key = types, ordinal, *(unwrapped(arguments[n]).dtype for n in arrays)
        if key not in self._quick:
            scope = self.on(ordinal).scope(library, None if arrays or not ordinal else ordinal)
            self._quick[key] = launcher(self.signature, arguments, arrays, library, scope)
        self._last = self._quick[key]

    def on(self, device: int) -> _Loaded:
        """The kernel in the primary context of a GPU, loaded if it is not yet."""
        if device not in self._loaded:
            self._loaded[device] = _Loaded(self.cubin, self.signature, device)
        return self._loaded[device]

    def occupancy(self, block: int | tuple[int, ...], *, shared_bytes: int = 0, device: int = 0) -> int:
        """How many blocks of this shape one multiprocessor holds at a time."""
        return self.on(device).occupancy(launch_shape(1, block, shared_bytes))

    def launch_on_copies(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: Sequence[Any],
        *,
        shared_bytes: int = 0,
        cluster: int | tuple[int, ...] | None = None,
        cooperative: bool = False,
        device: int = 0,
    ) -> None:
        """Launch with numpy arrays: copy them to a GPU, wait for the kernel, copy back those that it writes.

        For tests and for PTXDSL_DEVICE=cuda. Raises LaunchError as a launch does, also where the kernel itself fails
        or where `written` is not known; then no array has changed.
        """
        signature = self.signature
        if not signature.written:
            refuse(
                f"it is not known which arrays {signature.kernel} writes, so none can be copied back",
                "name them when it is loaded: load(cubin, name, parameters, written={'y'})",
            )
        shape = launch_shape(grid, block, shared_bytes, cluster, cooperative)
        values = signature.check(arguments, HOST)
        with driver.on(device), _copies(values) as copies:
            given = [_address(v) if copy is None else copy for copy, v in zip(copies, values, strict=True)]
            self.on(device).launch(shape, given, 0)
            call(f"running {signature.kernel}", driver.cuda.cuCtxSynchronize)
            for name, copy, value in zip(signature.names, copies, values, strict=True):
                if copy is not None and isinstance(value, Array) and name in signature.written:
                    _copy_back(copy, value)


def load(
    cubin: Cubin, name: str, parameters: Sequence[tuple[str, Kind]], written: Collection[str] = frozenset()
) -> Compiled:
    """A handle that launches one kernel of a cubin; needs no GPU yet.

    `parameters` are names and types in the kernel's order; `written` names the pointers through which it writes.
    Raises LaunchError for a kernel that the cubin does not have.
    """
    if cubin.kernels and name not in cubin.kernels:
        refuse(f"the cubin has no kernel `{name}`", f"it has {', '.join(cubin.kernels)}")
    return Compiled(cubin, name, parameters, written)


class _Loaded:
    """One kernel in the primary context of one GPU. It is never unloaded, since launches may still be under way."""

    def __init__(self, cubin: Cubin, signature: Signature, device: int) -> None:
        self._name = signature.kernel
        self._device = driver.device(device)
        if not runs_on(cubin.arch, self._device.capability):
            refuse(
                f"`{self._name}` is assembled for {cubin.arch}; {self._device} cannot run that",
                f"assemble it for {self._device.arch}",
            )
        with driver.on(device):
            module = call(f"loading {self._name} on {self._device}", driver.cuda.cuModuleLoadData, cubin.image)
            self._function = call(
                f"loading {self._name} on {self._device}",
                driver.cuda.cuModuleGetFunction, module, self._name.encode(),
            )  # fmt: skip
            # Asking for an attribute loads the code now, so that a first launch can be captured.
            self._max_threads = self._attribute("MAX_THREADS_PER_BLOCK")
        resources = cubin.kernels.get(self._name)
        self._static_bytes = resources.shared_bytes if resources else self._attribute("SHARED_SIZE_BYTES")
        self._dynamic_bytes = _DEFAULT_DYNAMIC_BYTES - self._static_bytes
        layout, offsets = signature.slots()
        self._slots = _Slots(layout.size, offsets)
        self._pack_into = layout.pack_into
        self._config = lru_cache(maxsize=1024)(self._make_config)
        self._launch = driver.cuda.cuLaunchKernelEx

    def launch(self, shape: tuple[Any, ...], values: Sequence[Any], stream: int) -> None:
        """Launch with one number, address or bytes a parameter. Raises struct.error for a number that does not fit."""
        config = self._config(shape, stream)
        buffer, addresses = self._slots.memory
        self._pack_into(buffer, 0, *values)
        (status,) = self._launch(config, self._function, addresses, 0)
        if status:
            self._again(status, config, addresses)

    def _again(self, status: Any, config: Any, addresses: int) -> None:
        """Where a thread works with another context or with none, the driver launched nothing: change to ours."""
        if status in _ELSEWHERE:
            with driver.on(self._device.ordinal):
                (status,) = self._launch(config, self._function, addresses, 0)
        if status:
            raise driver.failure(f"launching {self._name} on {self._device}", status)

    def scope(self, library: Library | None, asked: int | None) -> dict[str, Any]:
        """What a launcher for arrays of a library uses; it launches where this GPU or, as `asked`, any is asked for."""
        device = self._device.ordinal
        return {
            "device": device,
            "devices": (asked, device),
            "current_stream": library.current_stream(device) if library else int,  # int() is stream 0
            "handle_of": stream_handle,
            "configs": self._config,
            "slots": self._slots,
            "pack_into": self._pack_into,
            "run": self._launch,
            "function": self._function,
            "again": self._again,
        }

    def occupancy(self, shape: Shape) -> int:
        self._allow(shape)
        query = driver.cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor
        with driver.on(self._device.ordinal):
            found = call("asking for the occupancy", query, self._function, shape.threads, shape.shared_bytes)
        return int(found)

    def _make_config(self, given: tuple[Any, ...], stream: int) -> Any:
        """The launch's configuration for the driver; it is never changed again, so threads can share it."""
        shape = given if isinstance(given, Shape) else launch_shape(*given)
        self._allow(shape)
        config = driver.cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.shared_bytes
        config.hStream = driver.cuda.CUstream(stream)
        config.attrs = _launch_attributes(shape)
        config.numAttrs = len(config.attrs)
        return config

    def _allow(self, shape: Shape) -> None:
        """Refuse what this GPU cannot do, and ask the driver for what it does only when asked."""
        if shape.threads > self._max_threads:
            refuse(
                f"a block of {shape.block} has {shape.threads} threads; {self._name} can have {self._max_threads}",
                "its registers or its .maxntid allow no more",
            )
        if shape.cluster and self._device.capability < (9, 0):
            refuse(f"{self._device} has no clusters", "launch without `cluster`; they came with sm_90")
        self._allow_shared_memory(shape.shared_bytes)
        if shape.cluster and shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > _PORTABLE_CLUSTER_BLOCKS:
            self._set_attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)

    def _allow_shared_memory(self, dynamic_bytes: int) -> None:
        most = self._device.shared_bytes - self._static_bytes
        if dynamic_bytes > most:
            static = f" beside its {self._static_bytes} static ones" * bool(self._static_bytes)
            refuse(
                f"{self._name} is given {dynamic_bytes} bytes of dynamic shared memory; "
                f"a block on {self._device} can have {most}{static}",
                "use a smaller tile or fewer stages",
            )
        if dynamic_bytes > self._dynamic_bytes:
            self._set_attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic_bytes)
            self._dynamic_bytes = dynamic_bytes

    def _attribute(self, name: str) -> int:
        attribute = getattr(driver.cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(call(f"asking for {name}", driver.cuda.cuFuncGetAttribute, attribute, self._function))

    def _set_attribute(self, name: str, value: int) -> None:
        attribute = getattr(driver.cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        with driver.on(self._device.ordinal):
            call(f"setting {name}", driver.cuda.cuFuncSetAttribute, self._function, attribute, value)


def _launch_attributes(shape: Shape) -> list[Any]:
    attributes = []
    if shape.cluster:
        cluster = driver.cuda.CUlaunchAttribute()
        cluster.id = driver.cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        extents = cluster.value.clusterDim
        extents.x, extents.y, extents.z = shape.cluster
        attributes.append(cluster)
    if shape.cooperative:
        cooperative = driver.cuda.CUlaunchAttribute()
        cooperative.id = driver.cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        attributes.append(cooperative)
    return attributes


class _Slots(threading.local):
    """Memory from which the driver reads the parameters; each thread has its own, since a launch lets go of the GIL."""

    def __init__(self, size: int, offsets: Sequence[int]) -> None:
        buffer = ctypes.create_string_buffer(max(size, 1))
        start = ctypes.addressof(buffer)
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(*(start + offset for offset in offsets))
        self.memory = buffer, ctypes.addressof(self._pointers)


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether machine code for `arch` runs on a GPU of this compute capability.

    Code for sm_80 runs on 8.0 and later 8.x; code for sm_90a on 9.0 alone; code for sm_100f on 10.0 and later 10.x.
    """
    number = arch.removeprefix("sm_").rstrip("af")
    major, minor = int(number[:-1]), int(number[-1])
    if arch.endswith("a"):
        return (major, minor) == capability
    return major == capability[0] and minor <= capability[1]


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: of an int, a `__cuda_stream__` object, a torch, CuPy or driver stream."""
    if type(stream) is int:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):  # torch, CuPy
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if isinstance(stream, driver.cuda.CUstream):
        return int(stream)
    refuse(f"stream is {stream!r}", "pass a torch or CuPy stream, a `__cuda_stream__` object, or a handle as an int")


def _current_stream(libraries: Collection[Library | None], arrays: Collection[Array], device: int) -> int:
    """The stream on which the libraries of the arrays work now: torch's or CuPy's, else one that an array names."""
    known = next(filter(None, libraries), None)
    if known:
        return known.current_stream(device)()
    return next((array.stream for array in arrays if array.stream is not None), 0)


def _gpu_of(address: int) -> int | None:
    """The GPU that holds an address; None for the null address of an empty array."""
    ordinal = driver.cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    query = driver.cuda.cuPointerGetAttribute
    return int(call("asking where an array is", query, ordinal, address)) if address else None


def _address(value: Value) -> int | float | bytes:
    return value.pointer if isinstance(value, Array) else value


@contextmanager
def _copies(values: Sequence[Value]) -> Iterator[list[int | None]]:
    """Addresses of copies of the arrays in the current context; None for what is no array, or an empty one."""
    owned: list[int] = []
    try:
        yield [_copy(value, owned) if isinstance(value, Array) and value.size else None for value in values]
    finally:
        for memory in owned:
            driver.cuda.cuMemFree(memory)  # after a fault every call fails, and the first failure is on its way up


def _copy(array: Array, owned: list[int]) -> int:
    """The address of the first element in new device memory, which is added to `owned`."""
    start, end = array.span
    memory = int(call(f"allocating {end - start} bytes", driver.cuda.cuMemAlloc, end - start))
    owned.append(memory)
    call("copying to the GPU", driver.cuda.cuMemcpyHtoD, memory, start, end - start)
    return memory + array.pointer - start


def _copy_back(address: int, array: Array) -> None:
    """Only the elements, since the gaps between them may belong to another array."""
    start, end = array.span
    content = ctypes.create_string_buffer(end - start)
    call("copying from the GPU", driver.cuda.cuMemcpyDtoH, content, address - (array.pointer - start), end - start)
    array.view()[...] = array.view(ctypes.addressof(content) + array.pointer - start)
