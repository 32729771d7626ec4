"""Arrays of numpy, torch, CuPy, JAX and others, described for a launch: address, shape, strides, type, device.

Nothing is copied and nothing waits. Sources: the DLPack specification and the CUDA array interface, versions 2 and 3.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ptxdsl import types
from ptxdsl.tracers import is_recording, why_late
from ptxdsl.types import Type

HOST = -1


@dataclass(frozen=True, slots=True)
class Array:
    """An array as a launch sees it.

    `strides` count elements. `device` is a GPU number, HOST, or None for a GPU that the array does not name. `type` is
    None for element types that PTX lacks; `dtype` still names them. `stream` is the owning library's stream, if known.
    `owner` keeps the memory alive. `name` is the argument's name in messages.
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
        """True if the elements are in row-major order without gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != expected:
                return self.size == 0
            expected *= extent
        return True

    @property
    def span(self) -> tuple[int, int]:
        """Return the addresses of the first byte and past the last byte; equal for an empty array."""
        if self.size == 0:
            return self.pointer, self.pointer
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        first = self.pointer + self.itemsize * sum(r for r in reach if r < 0)
        last = self.pointer + self.itemsize * sum(r for r in reach if r > 0)
        return first, last + self.itemsize

    def view(self, pointer: int | None = None) -> np.ndarray:
        """Return a numpy array over the raw elements in host memory, or at another address.

        Elements are unsigned integers, or void if no integer has their width. No memory is read.
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
    """An array whose strides the kernel receives in other arguments, so that it need not be contiguous."""

    __slots__ = ("array",)

    def __init__(self, array: object) -> None:
        self.array = array


def strided(array: object) -> Strided:
    """Pass an array with any strides to a kernel's pointer: the kernel must read the strides from other arguments."""
    return Strided(array)


class AddressTable(np.ndarray):
    """A table of 64-bit numbers for a kernel; `holders` lists the addresses in it as (index, name, Array).

    A GPU reads the addresses as they are. The emulator replaces them by addresses in its own memory. The caller keeps
    the arrays alive and ensures that they do not share memory that the kernel writes.
    """

    holders: Sequence[tuple[int, str, Array]] = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """The bytes of a struct that a kernel takes by value; `holders` lists its addresses as (offset, name, Array).

    `maps` are the offsets of its tensor maps, in the encoding of the emulator.
    """

    content: bytes
    holders: tuple[tuple[int, str, Array], ...] = ()
    maps: tuple[int, ...] = ()

    def filled(self, addresses: Sequence[bytes]) -> bytes:
        """Return the bytes with these addresses inserted."""
        content = bytearray(self.content)
        for (offset, _, _), address in zip(self.holders, addresses, strict=True):
            content[offset : offset + len(address)] = address
        return bytes(content)


def unwrapped(argument: object) -> Any:
    """Return the array inside of `strided(…)`, or the argument itself."""
    return argument.array if isinstance(argument, Strided) else argument


def is_masked(value: object) -> bool:
    """True for a numpy masked array. Does not import numpy.ma, which takes 10 ms."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


class Library(ABC):
    """Direct access to the arrays of one library without a protocol object, which would be too slow for a launch.

    The strings are Python expressions about an array `{0}`, from which launch records generate functions: `unlike` is
    true if its type is not `{dtype}` or it is not on the GPU `device`, `gaps` if it is not contiguous; `pointer` is its
    address, `steps` its strides with their unit in bytes.
    """

    name: str
    unlike: str
    gaps: str
    pointer: str
    steps: str

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return the address of the first element. Raises RuntimeError if the array has no memory."""

    def addresses(self, arrays: Sequence[Any]) -> list[int]:
        """Return the addresses of several arrays."""
        return [*map(self.address, arrays)]

    @abstractmethod
    def layout(self, array: Any) -> Any:
        """Return the type, GPU, shape and strides of an array, to compare."""

    @abstractmethod
    def device(self, array: Any) -> int | str:
        """Return the GPU number, HOST, or the name of another kind of device."""

    def strides(self, array: Any) -> tuple[int, ...]:
        """Return the strides in elements."""
        return tuple(array.strides)

    def alike(self, arrays: Sequence[Any]) -> Callable[..., bool]:
        """Return a function that is true for arrays with the same types, GPUs, shapes and strides as these. It may be
        false if one array is passed twice."""
        layouts = [*map(self.layout, arrays)]
        return lambda *others: [*map(self.layout, others)] == layouts

    @abstractmethod
    def current_stream(self, device: int) -> Callable[[], int]:
        """Return a function that returns the handle of the library's current stream.

        The function raises TypeError while the library records operations and would miss a launch.
        """


class _Torch(Library):
    name = "torch"
    unlike = "{0}.dtype is not {dtype} or {0}.get_device() != device"
    gaps = "not {0}.is_contiguous()"
    pointer = "{0}.data_ptr()"
    steps = "{0}.stride(), {0}.itemsize"

    def address(self, array: Any) -> int:
        address: int = array.data_ptr()
        return address

    def addresses(self, arrays: Sequence[Any]) -> list[int]:
        return [array.data_ptr() for array in arrays]  # without a call of Python for each

    def layout(self, array: Any) -> Any:
        return array.dtype, array.get_device(), array.shape, array.stride()

    def device(self, array: Any) -> int | str:
        kind = array.device.type
        return array.get_device() if kind == "cuda" else HOST if kind == "cpu" else str(kind)

    def strides(self, array: Any) -> tuple[int, ...]:
        return tuple(array.stride())

    def alike(self, arrays: Sequence[Any]) -> Callable[..., bool]:
        """Use the guard of compiled graphs, which checks all properties in one step and keeps no tensor alive."""
        guards: Any = getattr(getattr(sys.modules["torch"]._C, "_dynamo", None), "guards", None)
        if not hasattr(guards, "TensorGuards"):
            return super().alike(arrays)
        sizes, strides = [list(a.shape) for a in arrays], [list(a.stride()) for a in arrays]
        guard = guards.TensorGuards(*arrays, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        check: Callable[..., bool] = guard.check
        return check

    def current_stream(self, device: int) -> Callable[[], int]:
        inside: Any = sys.modules["torch"]._C
        handle, modes = inside._cuda_getCurrentRawStream, getattr(inside, "_len_torch_dispatch_stack", int)

        def current() -> int:
            if modes() and is_recording():  # the fast path makes no other check
                raise TypeError("torch records what is done")  # the slow path reports the reason
            stream: int = handle(device)
            return stream

        return current


class _Cupy(Library):
    name = "cupy"
    unlike = "{0}.dtype != {dtype} or {0}.device.id != device"
    gaps = "not {0}.flags.c_contiguous"
    pointer = "{0}.data.ptr"
    steps = "{0}.strides, 1"

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def layout(self, array: Any) -> Any:
        return array.dtype, array.device.id, array.shape, array.strides

    def device(self, array: Any) -> int | str:
        return int(array.device.id)

    def strides(self, array: Any) -> tuple[int, ...]:
        return _in_elements(array.strides, array.itemsize)

    def current_stream(self, device: int) -> Callable[[], int]:
        get_current_stream = sys.modules["cupy"].cuda.get_current_stream
        return lambda: int(get_current_stream().ptr)


@dataclass(eq=False, slots=True)
class DeviceBuffer:
    """Row-major GPU memory that XLA passes for one call."""

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


class _Xla(Library):
    name = "jax"
    unlike = "{0}.dtype != {dtype} or {0}.device != device"
    gaps = "False"
    pointer = "{0}.address"
    steps = "{0}.strides, {0}.itemsize"
    stream = threading.local()  # `.handle` is the stream of this thread's XLA call

    def address(self, array: Any) -> int:
        return int(array.address)

    def layout(self, array: Any) -> Any:
        return array.dtype, array.device, array.shape

    def device(self, array: Any) -> int | str:
        return int(array.device)

    def current_stream(self, device: int) -> Callable[[], int]:
        return lambda: getattr(self.stream, "handle", 0)


XLA = _Xla()
_LIBRARIES: dict[tuple[str, str], Library] = {
    ("torch", "Tensor"): _Torch(), ("cupy", "ndarray"): _Cupy(), ("ptxdsl", "DeviceBuffer"): XLA,
}  # fmt: skip


_library_of: dict[type, Library | None] = {}


def library_of(kind: type) -> Library | None:
    """Return the library whose array class `kind` is or derives from; None for classes accessed by protocol."""
    if kind not in _library_of:
        names = [(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__]
        _library_of[kind] = next((_LIBRARIES[name] for name in names if name in _LIBRARIES), None)
    return _library_of[kind]


def describe(value: object, stream: int = 0) -> Array | None:
    """Describe an array for a launch; None for other objects.

    `stream` is passed to the producer of a DLPack array, which orders the array's data before it. Raises BufferError
    for an array without memory, on an unsupported device, or with strides that are not whole elements.
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
    """Return the PTX type of a numpy, torch or CuPy dtype; None if PTX has none, or for swapped byte order."""
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
    except RuntimeError as reason:  # a torch tensor without dense storage
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
    """Describe an array by the CUDA array interface, which does not name the GPU."""
    if interface.get("mask") is not None:
        raise BufferError("it has a mask")
    try:
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        pointer, readonly = interface["data"]
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise BufferError(f"its __cuda_array_interface__ is malformed: {wrong}") from None
    strides = interface.get("strides")
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
    """Return the strides in elements of a contiguous row-major array."""
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
_DLPACK_CUDA = (2, 13)  # device memory and managed memory
_DLPACK_TYPES = {
    **{(0, t.bits): t for t in (types.s8, types.s16, types.s32, types.s64)},
    **{(1, t.bits): t for t in (types.u8, types.u16, types.u32, types.u64)},
    **{(2, t.bits): t for t in (types.f16, types.f32, types.f64)},
    (4, 16): types.bf16, (6, 8): types.u8, (10, 8): types.e4m3, (12, 8): types.e5m2,
}  # fmt: skip
_LEGACY_STREAM = 1  # stream 0 in DLPack and the CUDA array interface
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
        readonly=readonly or library in ("jax", "jaxlib"),  # JAX arrays are immutable, but older capsules cannot say so
        owner=(value, capsule),
    )


def _capsule(value: Any, stream: int | None) -> object:
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        return value.__dlpack__(stream=stream)


def _tensor(capsule: object) -> tuple[_DLTensor, bool]:
    """Return the tensor in a capsule, and True if it is read-only."""
    if type(capsule).__name__ != "PyCapsule":
        raise BufferError(f"its __dlpack__ returned {type(capsule).__name__}, not a capsule")
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        return versioned.tensor, bool(versioned.flags & _READ_ONLY)
    return _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")), False
