"""Arrays of numpy, torch, CuPy, JAX and others as what a kernel sees: an address, a shape, strides, a type, a device.

Nothing is copied and nothing waits. Sources: the DLPack specification and the CUDA array interface, versions 2 and 3.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import methodcaller
from typing import Any, Protocol

import numpy as np

from ptxdsl import types
from ptxdsl.tracers import is_recording, why_late
from ptxdsl.types import Type

HOST = -1


@dataclass(frozen=True, slots=True)
class Array:
    """An array as a kernel sees it.

    `strides` count elements. `device` is the number of a GPU, HOST, or None for a GPU that the array does not name.
    `type` is None for element types that PTX lacks; `dtype` is then still its name. `stream` is the stream on which the
    library that owns the array works, where it says so. `owner` keeps the memory alive. `name` is what messages call it
    where it is an argument.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: Type | None
    dtype: str
    itemsize: int
    device: int | None
    library: str
    readonly: bool = False
    stream: int | None = None
    owner: object = field(default=None, repr=False, compare=False)
    name: str = field(default="", compare=False)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in row-major order with no gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != expected:
                return self.size == 0
            expected *= extent
        return True

    @property
    def span(self) -> tuple[int, int]:
        """The addresses of the first byte and behind the last byte; both the same for an array of no elements."""
        if self.size == 0:
            return self.pointer, self.pointer
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        first = self.pointer + self.itemsize * sum(r for r in reach if r < 0)
        last = self.pointer + self.itemsize * sum(r for r in reach if r > 0)
        return first, last + self.itemsize

    def view(self, pointer: int | None = None) -> np.ndarray:
        """The bytes of each element in host memory as a numpy array of the same shape; at another address if given.

        Elements are unsigned integers, or void where these have no such width. No memory is read.
        """
        kind = f"<u{self.itemsize}" if self.itemsize in (1, 2, 4, 8) else f"|V{self.itemsize}"
        strides = tuple(stride * self.itemsize for stride in self.strides)
        address = self.pointer if pointer is None else pointer
        return np.asarray(_AtAddress(address, self.shape, strides, kind, self.readonly, self.owner))

    def __str__(self) -> str:
        return f"a {self.library} array of {self.type or self.dtype} with shape {self.shape}"


class _AtAddress:
    """Memory that numpy views without owning it."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: str, readonly: bool, owner: object
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "data": (address, readonly), "shape": shape, "strides": strides, "typestr": kind,
        }  # fmt: skip


class Strided:
    """An array whose strides the kernel is told by other arguments, so that it need not be contiguous."""

    __slots__ = ("array",)

    def __init__(self, array: object) -> None:
        self.array = array


def strided(array: object) -> Strided:
    """Pass an array with any strides to a kernel's pointer: the kernel must read the strides from other arguments."""
    return Strided(array)


class AddressTable(np.ndarray):
    """Numbers for a kernel, 64 bits each, some of which are addresses: `holders` are (index, name, Array) of these.

    A GPU finds the arrays there as they are. The emulator gives arrays addresses of its own, and writes these into the
    table. The caller keeps the arrays alive, and sees to it that they do not share memory that the kernel writes.
    """

    holders: Sequence[tuple[int, str, Array]] = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """The bytes of a struct that a kernel takes by value; `holders` are (offset, name, Array) of addresses in it."""

    content: bytes
    holders: tuple[tuple[int, str, Array], ...] = ()

    def filled(self, addresses: Sequence[bytes]) -> bytes:
        """The bytes with those of an address for each holder."""
        content = bytearray(self.content)
        for (offset, _, _), address in zip(self.holders, addresses, strict=True):
            content[offset : offset + len(address)] = address
        return bytes(content)


def unwrapped(argument: object) -> Any:
    """The array that `strided` was given, or the argument itself."""
    return argument.array if isinstance(argument, Strided) else argument


def is_masked(value: object) -> bool:
    """Whether it is a masked array of numpy, whose module is loaded where there is one: that takes 10 ms."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


class Library(Protocol):
    """How to ask the arrays of one library, without a protocol object in between: a launch has no time for that.

    The strings are Python expressions about an array `{0}`, from which `quick` writes functions: `unlike` is true where
    its type is not `{dtype}` or it is not on the GPU `device`, `gaps` where it is not contiguous; `pointer` is its
    address, `steps` its strides and the bytes that these count.
    """

    name: str
    unlike: str
    gaps: str
    pointer: str
    steps: str

    def address(self, array: object) -> int:
        """The address of its first element. Raises RuntimeError where it has none."""

    def addresses(self, arrays: Sequence[object]) -> list[int]:
        """Those of several arrays."""

    def look(self, array: object) -> tuple[Any, int]:
        """How an array lies (type, GPU, shape, strides), and its address. Raises RuntimeError where it has none."""

    def device(self, array: object) -> int | str:
        """The number of its GPU, HOST, or the name of another kind of device."""

    def strides(self, array: object) -> tuple[int, ...]:
        """Strides in elements."""

    def alike(self, arrays: Sequence[object]) -> Callable[..., bool] | None:
        """A function that is true only for as many arrays with the types, GPUs, shapes and strides of these."""

    def current_stream(self, device: int) -> Callable[[], int]:
        """A function that gives the handle of the stream on which the library works at that time.

        It raises TypeError while the library records what is done, and would miss a launch.
        """


class _Torch:
    name = "torch"
    unlike = "{0}.dtype is not {dtype} or {0}.get_device() != device"
    gaps = "not {0}.is_contiguous()"
    pointer = "{0}.data_ptr()"
    steps = "{0}.stride(), {0}.itemsize"

    address = methodcaller("data_ptr")

    def addresses(self, arrays: Sequence[Any]) -> list[int]:
        return [array.data_ptr() for array in arrays]

    def look(self, array: Any) -> tuple[Any, int]:
        return (array.dtype, array.get_device(), array.shape, array.stride()), array.data_ptr()

    def device(self, array: Any) -> int | str:
        kind = array.device.type
        return array.get_device() if kind == "cuda" else HOST if kind == "cpu" else str(kind)

    def strides(self, array: Any) -> tuple[int, ...]:
        return tuple(array.stride())

    def alike(self, arrays: Sequence[Any]) -> Callable[..., bool] | None:
        """By the guard of compiled graphs, which asks for all that in one step and keeps no tensor alive."""
        guards: Any = getattr(getattr(sys.modules["torch"]._C, "_dynamo", None), "guards", None)
        if not hasattr(guards, "TensorGuards"):
            return None
        sizes, strides = [list(a.shape) for a in arrays], [list(a.stride()) for a in arrays]
        guard = guards.TensorGuards(*arrays, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        check: Callable[..., bool] = guard.check
        return check

    def current_stream(self, device: int) -> Callable[[], int]:
        inside: Any = sys.modules["torch"]._C
        handle, modes = inside._cuda_getCurrentRawStream, getattr(inside, "_len_torch_dispatch_stack", int)

        def current() -> int:
            if modes() and is_recording():  # the quick way asks for nothing else that would tell
                raise TypeError("torch records what is done")  # which the careful way says in words
            stream: int = handle(device)
            return stream

        return current


class _Cupy:
    name = "cupy"
    unlike = "{0}.dtype != {dtype} or {0}.device.id != device"
    gaps = "not {0}.flags.c_contiguous"
    pointer = "{0}.data.ptr"
    steps = "{0}.strides, 1"

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def addresses(self, arrays: Sequence[Any]) -> list[int]:
        return [*map(self.address, arrays)]

    def look(self, array: Any) -> tuple[Any, int]:
        return (array.dtype, array.device.id, array.shape, array.strides), array.data.ptr

    def device(self, array: Any) -> int | str:
        return int(array.device.id)

    def strides(self, array: Any) -> tuple[int, ...]:
        return _in_elements(array.strides, array.itemsize)

    def alike(self, arrays: Sequence[object]) -> Callable[..., bool] | None:
        return None

    def current_stream(self, device: int) -> Callable[[], int]:
        get_current_stream = sys.modules["cupy"].cuda.get_current_stream
        return lambda: int(get_current_stream().ptr)


@dataclass(eq=False, slots=True)
class DeviceBuffer:
    """Row-major memory of a GPU that XLA hands over for one call."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    device: int

    @property
    def strides(self) -> tuple[int, ...]:
        return row_major(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class _Xla:
    name = "jax"
    unlike = "{0}.dtype != {dtype} or {0}.device != device"
    gaps = "False"
    pointer = "{0}.address"
    steps = "{0}.strides, {0}.itemsize"
    stream = threading.local()  # `.handle` is where XLA runs the call that this thread is in

    def address(self, array: Any) -> int:
        return int(array.address)

    def addresses(self, arrays: Sequence[Any]) -> list[int]:
        return [*map(self.address, arrays)]

    def look(self, array: Any) -> tuple[Any, int]:
        return (array.dtype, array.device, array.shape), array.address

    def device(self, array: Any) -> int | str:
        return int(array.device)

    def strides(self, array: Any) -> tuple[int, ...]:
        return tuple(array.strides)

    def alike(self, arrays: Sequence[object]) -> Callable[..., bool] | None:
        return None

    def current_stream(self, device: int) -> Callable[[], int]:
        return lambda: getattr(self.stream, "handle", 0)


XLA = _Xla()
_LIBRARIES: dict[tuple[str, str], Library] = {
    ("torch", "Tensor"): _Torch(), ("cupy", "ndarray"): _Cupy(), ("ptxdsl", "DeviceBuffer"): XLA,
}  # fmt: skip


_library_of: dict[type, Library | None] = {}


def library_of(kind: type) -> Library | None:
    """The library whose array class `kind` is or derives from; None for those that are asked by protocol."""
    if kind not in _library_of:
        names = [(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__]
        _library_of[kind] = next((_LIBRARIES[name] for name in names if name in _LIBRARIES), None)
    return _library_of[kind]


def describe(value: object, stream: int = 0) -> Array | None:
    """What a kernel sees of an array; None for what is no array.

    `stream` is told to the producer of a DLPack array, which makes it wait for the array's data.
    Raises BufferError for an array that has no memory, is on a device that we cannot reach, or has odd strides.
    """
    if isinstance(value, np.ndarray):
        return _from_numpy(value)
    if why := why_late(value):
        raise BufferError(why)
    if library := library_of(type(value)):
        return _from_library(library, value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, stream)
    interface = getattr(value, "__cuda_array_interface__", None)
    return _from_interface(value, interface) if interface is not None else None


@cache
def type_of(dtype: Any) -> Type | None:
    """The PTX type of a numpy, torch or CuPy dtype; None where PTX has none, or where its bytes are swapped."""
    return types.from_dtype(dtype) if getattr(dtype, "isnative", True) else None


def _in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    if any(stride % itemsize for stride in strides):
        raise BufferError(f"its strides of {strides} bytes are not multiples of its {itemsize}-byte elements")
    return tuple(stride // itemsize for stride in strides)


def _from_numpy(array: np.ndarray) -> Array:
    return Array(
        pointer=array.__array_interface__["data"][0],
        shape=array.shape,
        strides=_in_elements(array.strides, array.itemsize),
        type=type_of(array.dtype),
        dtype=str(array.dtype),
        itemsize=array.itemsize,
        device=HOST,
        library="numpy",
        readonly=not array.flags.writeable,
        owner=array,
    )


def _from_library(library: Library, array: Any) -> Array:
    device = library.device(array)
    if isinstance(device, str):
        raise BufferError(f"it is on the device `{device}`")
    try:
        pointer = library.address(array)
    except RuntimeError as reason:  # a tensor of torch with other storage
        raise BufferError(f"it has no memory ({str(reason).splitlines()[0]})") from None
    return Array(
        pointer=pointer,
        shape=tuple(array.shape),
        strides=library.strides(array),
        type=type_of(array.dtype),
        dtype=str(array.dtype).rpartition(".")[2],
        itemsize=array.itemsize,
        device=device,
        library=library.name,
        owner=array,
    )


def _from_interface(owner: object, interface: Mapping[str, Any]) -> Array:
    """The CUDA array interface does not say which GPU."""
    if interface.get("mask") is not None:
        raise BufferError("it has a mask")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    pointer, readonly = interface["data"]
    return Array(
        pointer=pointer or 0,
        shape=shape,
        strides=row_major(shape) if strides is None else _in_elements(tuple(strides), dtype.itemsize),
        type=type_of(dtype),
        dtype=str(dtype),
        itemsize=dtype.itemsize,
        device=None,
        library=type(owner).__module__.partition(".")[0],
        readonly=bool(readonly),
        stream=interface.get("stream"),
        owner=owner,
    )


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides in elements of an array whose rows lie without gaps, one behind the other."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[: len(shape)])


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    )  # fmt: skip


_DLPACK_HOST = (1,)
_DLPACK_CUDA = (2, 13)  # device memory, and memory that the driver moves
_DLPACK_TYPES = {
    **{(0, t.bits): t for t in (types.s8, types.s16, types.s32, types.s64)},
    **{(1, t.bits): t for t in (types.u8, types.u16, types.u32, types.u64)},
    **{(2, t.bits): t for t in (types.f16, types.f32, types.f64)},
    (4, 16): types.bf16, (6, 8): types.u8, (10, 8): types.e4m3, (12, 8): types.e5m2,
}  # fmt: skip
_LEGACY_STREAM = 1  # how DLPack and the CUDA array interface call stream 0
_READ_ONLY = 1

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _from_dlpack(value: Any, stream: int) -> Array:
    device_type, device = map(int, value.__dlpack_device__())
    if device_type not in _DLPACK_HOST + _DLPACK_CUDA:
        raise BufferError(f"it is on a device of DLPack type {device_type}")
    on_host = device_type in _DLPACK_HOST
    capsule = _capsule(value, None if on_host else stream or _LEGACY_STREAM)
    tensor, readonly = _tensor(capsule)
    shape = tuple(tensor.shape[: tensor.ndim])
    library = type(value).__module__.partition(".")[0]
    return Array(
        pointer=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape),
        type=_DLPACK_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None,
        dtype=f"DLPack type ({tensor.code}, {tensor.bits}, {tensor.lanes})",
        itemsize=tensor.bits * tensor.lanes // 8,
        device=HOST if on_host else device,
        library="jax" if library == "jaxlib" else library,
        readonly=readonly or library in ("jax", "jaxlib"),  # JAX arrays never change, but older capsules cannot say so
        owner=(value, capsule),
    )


def _capsule(value: Any, stream: int | None) -> object:
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        return value.__dlpack__(stream=stream)


def _tensor(capsule: object) -> tuple[_DLTensor, bool]:
    """The tensor in a capsule, and whether it may only be read."""
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        return versioned.tensor, bool(versioned.flags & _READ_ONLY)
    return _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")), False
