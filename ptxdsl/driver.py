"""The CUDA driver: GPUs, their contexts, and driver errors as LaunchError.

Importing this module loads neither cuda-python nor the driver; the first call does. No context is created until one is
requested.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxdsl.errors import LaunchError

NO_BINDINGS = "the Python package cuda-python is not installed"
_INSTALL = (
    "pip install cuda-python, which has wheels for Linux and Windows; numpy arrays run on the emulator without it"
)


class Late:
    """A module that is imported at the first access to one of its attributes: importing cuda-python takes 60 ms."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


class CudaModule(Late):
    """A module of cuda-python. Raises LaunchError at the first access if the package is not installed."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except ModuleNotFoundError as missing:
            raise LaunchError(NO_BINDINGS, help=_INSTALL) from missing


cuda: Any = CudaModule("cuda.bindings.driver")
pathfinder: Any = CudaModule("cuda.pathfinder")

# Kernel faults, which the driver reports from a later call.
_FAULTS = frozenset({
    "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_INVALID_PC", "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_ASSERT",
})  # fmt: skip
_HELP = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "assemble the kernel for the architecture of this GPU",
    "CUDA_ERROR_INVALID_PTX": "the PTX version is newer than the driver: update the driver, or install ptxdsl[asm] "
    "to assemble",
    "CUDA_ERROR_OUT_OF_MEMORY": "free device memory, or use smaller arrays",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "use fewer threads per block, fewer registers or less shared memory",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": "all blocks of a cooperative grid must be resident at the same "
    "time: launch fewer blocks",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "run the kernel once before the capture to load it",
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "run the kernel once before the capture to load it",
}
_FAULT_HELP = (
    "an earlier kernel on this GPU failed, and the process must be restarted; run that kernel on the emulator "
    "(numpy arrays) to find the Python line and the thread"
)
# CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE: a thread works with no context or another
ELSEWHERE = (201, 400)


def call(doing: str, function: Any, *arguments: Any) -> Any:
    """Call a driver function and return its result: a tuple if it has several, None if it has none.

    Raises LaunchError that begins with `doing`, the operation in progress.
    """
    status, *results = function(*arguments)
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise failure(doing, status)
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)


def failure(doing: str, status: Any) -> LaunchError:
    """Return the error for a driver status, such as `loading saxpy: CUDA_ERROR_…: explanation`."""
    name = getattr(status, "name", None) or f"driver status {int(status)}"
    answer, text = cuda.cuGetErrorString(status)
    is_known = answer == cuda.CUresult.CUDA_SUCCESS and text
    explanation = text.decode() if is_known else "the driver gives no explanation"
    help = _FAULT_HELP if name in _FAULTS else _HELP.get(name)
    return LaunchError(f"{doing}: {name}: {explanation}", help=help)


@cache
def why_no_gpu() -> str | None:
    """Return None if kernels can be launched, else the reason why not. Computed once per process."""
    try:
        (status,) = cuda.cuInit(0)
    except LaunchError as missing:
        return missing.message
    except pathfinder.DynamicLibNotFoundError:
        return "the CUDA driver (libcuda) is not installed"
    except (RuntimeError, OSError) as broken:
        return f"the CUDA driver cannot be loaded ({str(broken).splitlines()[0]})"
    if status != cuda.CUresult.CUDA_SUCCESS:
        return f"the CUDA driver cannot be initialised ({status.name})"
    if device_count() == 0:
        return "the CUDA driver finds no GPU"
    return None


def require_gpu() -> None:
    """Raise LaunchError with the reason if there is no GPU."""
    if reason := why_no_gpu():
        help = _INSTALL if reason == NO_BINDINGS else "pass numpy arrays, which run on the emulator"
        raise LaunchError(f"no GPU to launch on: {reason}", help=help)


@cache
def device_count() -> int:
    return int(call("counting the GPUs", cuda.cuDeviceGetCount))


@dataclass(frozen=True, slots=True)
class Device:
    """The properties of a GPU that a launch needs. `shared_bytes` is the largest shared memory of a block, in bytes."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int
    threads_per_block: int

    @property
    def arch(self) -> str:
        """The target with all instructions of this GPU: `sm_90a` for an H200, `sm_80` for an A100."""
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if self.capability >= (9, 0) else "")

    def __str__(self) -> str:
        return f"cuda:{self.ordinal} ({self.name}, {self.arch})"


@cache
def device(ordinal: int) -> Device:
    """Return the GPU with this ordinal. Raises LaunchError if it does not exist."""
    require_gpu()
    if not 0 <= ordinal < device_count():
        raise LaunchError(
            f"GPU cuda:{ordinal} does not exist; this machine has {device_count()}",
            help=f"use cuda:0 … cuda:{device_count() - 1}",
        )
    handle = call(f"asking for cuda:{ordinal}", cuda.cuDeviceGet, ordinal)
    name = call(f"asking for cuda:{ordinal}", cuda.cuDeviceGetName, 256, handle)
    return Device(
        ordinal=ordinal,
        name=name.partition(b"\0")[0].decode(),
        capability=(
            _attribute(handle, "COMPUTE_CAPABILITY_MAJOR"),
            _attribute(handle, "COMPUTE_CAPABILITY_MINOR"),
        ),
        multiprocessors=_attribute(handle, "MULTIPROCESSOR_COUNT"),
        shared_bytes=_attribute(handle, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        threads_per_block=_attribute(handle, "MAX_THREADS_PER_BLOCK"),
    )


def _attribute(handle: object, name: str) -> int:
    attribute = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call(f"asking for {name}", cuda.cuDeviceGetAttribute, attribute, handle))


def clock_khz(ordinal: int) -> int:
    """Return the maximal multiprocessor clock in kHz."""
    return _attribute(call(f"asking for cuda:{ordinal}", cuda.cuDeviceGet, ordinal), "CLOCK_RATE")


def memory_bandwidth(ordinal: int) -> float:
    """Return the peak memory bandwidth in bytes per microsecond: two transfers per clock over the whole bus."""
    handle = call(f"asking for cuda:{ordinal}", cuda.cuDeviceGet, ordinal)
    return _attribute(handle, "MEMORY_CLOCK_RATE") * _attribute(handle, "GLOBAL_MEMORY_BUS_WIDTH") / 4000


def device_arch(ordinal: int = 0) -> str:
    """Return the target with all instructions of a GPU, such as `sm_90a`."""
    return device(ordinal).arch


@cache
def primary_context(ordinal: int) -> Any:
    """Return the primary context of a GPU, which the CUDA runtime, torch, CuPy and JAX share; retained until exit."""
    return call(f"opening cuda:{ordinal}", cuda.cuDevicePrimaryCtxRetain, device(ordinal).ordinal)


class on:
    """Make the primary context of a GPU current for the body of a `with`, then restore the previous context.

    As a class it takes a third of the time of a generator.
    """

    __slots__ = ("_ordinal",)

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    def __enter__(self) -> None:
        call(f"opening cuda:{self._ordinal}", cuda.cuCtxPushCurrent, primary_context(self._ordinal))

    def __exit__(self, *_: object) -> None:
        cuda.cuCtxPopCurrent()  # after a fault every call fails, and the first failure is already being raised


def gpu_at(address: int) -> int | None:
    """Return the GPU that holds an address; None for the null address of an empty array."""
    ordinal = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return (
        int(call("querying the device of an array", cuda.cuPointerGetAttribute, ordinal, address)) if address else None
    )


def synchronize(ordinal: int = 0) -> None:
    """Wait for all work on a GPU. Raises LaunchError if a kernel failed."""
    with on(ordinal):
        call(f"waiting for cuda:{ordinal}", cuda.cuCtxSynchronize)
