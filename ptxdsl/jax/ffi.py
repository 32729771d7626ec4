"""XLA's foreign function interface in Python: one handler for all calls, which gets a frame of buffers from XLA.

The frame layout follows `xla/ffi/api/c_api.h` with major version 0, where fields are only added at the end. Buffers
become numpy arrays on a CPU and DeviceBuffers on a GPU, where the call runs on XLA's stream.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

import jax
import numpy as np

from ptxdsl import driver
from ptxdsl.arrays import XLA, DeviceBuffer
from ptxdsl.cached import cached_property
from ptxdsl.errors import Error, LaunchError

TARGET = "ptxdsl_call"
MAJOR, METADATA, EXECUTE = 0, 1, 3  # the API version, an extension, and a stage
INVALID_ARGUMENT, INTERNAL = 3, 13  # error codes
_BEGIN = (("struct_size", c_size_t), ("extension", c_void_p))  # of every struct


class _Version(Structure):
    _fields_ = (*_BEGIN, ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    _fields_ = (("struct_size", c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _Extension(Structure):
    _fields_ = (
        ("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata)),
    )  # fmt: skip


class _Buffer(Structure):
    _fields_ = (*_BEGIN, ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))


class _Buffers(Structure):
    """Arguments or results."""

    _fields_ = (*_BEGIN, ("size", c_int64), ("types", c_void_p), ("buffers", POINTER(POINTER(_Buffer))))


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", POINTER(c_int64)))


class _Attributes(Structure):
    _fields_ = (
        *_BEGIN, ("size", c_int64), ("types", c_void_p), ("names", c_void_p), ("values", POINTER(POINTER(_Scalar))),
    )  # fmt: skip


class _ErrorArguments(Structure):
    _fields_ = (*_BEGIN, ("message", c_char_p), ("code", c_int))


class _StreamArguments(Structure):
    _fields_ = (*_BEGIN, ("context", c_void_p), ("stream", c_void_p))


class _DeviceArguments(Structure):
    _fields_ = (*_BEGIN, ("context", c_void_p), ("ordinal", c_int32))


_MakeError = ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))
_GetStream = ctypes.CFUNCTYPE(c_void_p, POINTER(_StreamArguments))
_GetDevice = ctypes.CFUNCTYPE(c_void_p, POINTER(_DeviceArguments))


class _Api(Structure):
    _fields_ = (
        *_BEGIN, ("version", _Version), ("internal", c_void_p), ("make_error", _MakeError),
        ("between", c_void_p * 3), ("get_stream", _GetStream), ("after", c_void_p * 12), ("get_device", _GetDevice),
    )  # fmt: skip


class _Frame(Structure):
    _fields_ = (
        ("struct_size", c_size_t), ("extension", POINTER(_Extension)), ("api", POINTER(_Api)), ("context", c_void_p),
        ("stage", c_int), ("arguments", _Buffers), ("results", _Buffers), ("attributes", _Attributes),
    )  # fmt: skip


@dataclass(frozen=True)
class XlaCall:
    """A call from XLA: `launch` takes the inputs, then the outputs, with the given shapes and types."""

    launch: Callable[..., None]
    inputs: Sequence[jax.ShapeDtypeStruct]
    outputs: Sequence[jax.ShapeDtypeStruct]
    context: Context = field(default_factory=copy_context)  # settings of `config.using`, for XLA's threads

    @cached_property
    def kinds(self) -> list[tuple[tuple[int, ...], np.dtype]]:
        """The shape and type of each input and output."""
        return [(like.shape, np.dtype(like.dtype)) for like in (*self.inputs, *self.outputs)]

    def run(self, arrays: Sequence[object]) -> None:
        self.context.copy().run(self.launch, *arrays)


CALLS: list[XlaCall] = []  # compiled programs refer to them by position
_growing = threading.Lock()


def numbered(call: XlaCall) -> int:
    """Register a call and return its number in compiled programs."""
    with _growing:
        CALLS.append(call)
        return len(CALLS) - 1


class _Request:
    """A request of XLA: its frame, read as 8-byte words, since ctypes fields take ten times as long."""

    __slots__ = ("address", "words")

    def __init__(self, address: int) -> None:
        self.address, self.words = address, _FrameWords.from_address(address)

    @property
    def frame(self) -> _Frame:
        return _Frame.from_address(self.address)

    @property
    def is_question(self) -> bool:
        """True if XLA asks for the version of the API."""
        extension = self.words[_EXTENSION]
        return bool(extension) and _Extension.from_address(extension).type == METADATA

    @property
    def is_call(self) -> bool:
        return self.words[_STAGE] & 0xFFFFFFFF == EXECUTE

    def addresses(self, buffers: int) -> list[int]:
        """Return the addresses of the buffers, arguments or results; 0 for a buffer without memory."""
        count, pointers = self.words[buffers + _COUNT], self.words[buffers + _POINTERS]
        return [_Word.from_address(buffer + _DATA).value for buffer in _words(count).from_address(pointers)]

    @property
    def call(self) -> XlaCall:
        """The requested call. Raises LaunchError for a call of another process."""
        scalar = _Word.from_address(self.words[_ATTRIBUTES + _VALUES]).value
        number = _Word.from_address(_Word.from_address(scalar + _VALUE).value).value
        if not 0 <= number < len(CALLS):
            raise LaunchError(
                f"the program was compiled in another process, which has the kernel of call {number}",
                help="trace and compile it in this process: kernels are not part of a serialized program",
            )
        return CALLS[number]


_Word = c_int64
_FrameWords = c_int64 * (ctypes.sizeof(_Frame) // 8)
_EXTENSION, _API, _CONTEXT, _STAGE, _ARGUMENTS, _RESULTS, _ATTRIBUTES = (
    getattr(_Frame, name).offset // 8
    for name in ("extension", "api", "context", "stage", "arguments", "results", "attributes")
)
_COUNT, _POINTERS, _VALUES = _Buffers.size.offset // 8, _Buffers.buffers.offset // 8, _Attributes.values.offset // 8
_DATA, _VALUE = _Buffer.data.offset, _Scalar.value.offset


@cache
def _words(count: int) -> type[ctypes.Array[c_int64]]:
    return c_int64 * count


def _host_array(address: int, like: jax.ShapeDtypeStruct, is_output: bool) -> np.ndarray:
    dtype, size = np.dtype(like.dtype), prod(like.shape)
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address) if size else b""
    array = np.frombuffer(memory, dtype).reshape(like.shape)
    array.flags.writeable = is_output
    return array


def _run_on_host(request: _Request, call: XlaCall) -> None:
    inputs = zip(request.addresses(_ARGUMENTS), call.inputs, strict=True)
    outputs = zip(request.addresses(_RESULTS), call.outputs, strict=True)
    arrays = [_host_array(*each, is_output=False) for each in inputs]
    call.run(arrays + [_host_array(*each, is_output=True) for each in outputs])


def _run_on_gpu(request: _Request, call: XlaCall) -> None:
    get_stream, get_device = _functions(request.words[_API])
    context = request.words[_CONTEXT]
    stream = _StreamArguments(_STREAM_SIZE, None, context, None)
    ordinal = _DeviceArguments(_DEVICE_SIZE, None, context, 0)
    if get_stream(stream) or (driver.device_count() > 1 and get_device(ordinal)):
        raise LaunchError("XLA returned no stream or no GPU for the call")
    addresses = request.addresses(_ARGUMENTS) + request.addresses(_RESULTS)
    device = ordinal.ordinal
    arrays = [DeviceBuffer(a, *kind, device) for a, kind in zip(addresses, call.kinds, strict=True)]
    XLA.stream.handle = stream.stream or 0
    with driver.on(device):
        call.run(arrays)


_STREAM_SIZE, _DEVICE_SIZE = ctypes.sizeof(_StreamArguments), ctypes.sizeof(_DeviceArguments)


@cache
def _functions(api: int) -> tuple[Callable[..., int | None], Callable[..., int | None]]:
    """Return XLA's functions for the stream and the GPU of a call; the API table never moves."""
    offered = _Api.from_address(api)
    if offered.struct_size < ctypes.sizeof(_Api):
        raise LaunchError("this jaxlib cannot report the GPU of a call", help="install a newer jaxlib")
    return offered.get_stream, offered.get_device


def _handler(run: Callable[[_Request, XlaCall], None]) -> Any:
    """Return the function that XLA calls, with a frame to run or a request for the API version."""

    def handle(address: int) -> int | None:
        request = _Request(address)
        try:
            if request.is_question:
                _describe(request.frame)
            elif request.is_call:
                run(request, request.call)
        except Exception as error:
            code, text = (INVALID_ARGUMENT, str(error)) if isinstance(error, Error) else (INTERNAL, repr(error))
            arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text.encode(), code)
            message: int | None = request.frame.api.contents.make_error(arguments)
            return message
        return None

    return ctypes.CFUNCTYPE(c_void_p, c_void_p)(handle)


def _describe(frame: _Frame) -> None:
    """Report XLA's own version, since the fields used here exist in every version with this major number."""
    known, ours = frame.api.contents.version, frame.extension.contents.metadata.contents
    ours.version.major, ours.version.minor, ours.traits = MAJOR, known.minor, 0


HANDLERS = {"cpu": _handler(_run_on_host), "CUDA": _handler(_run_on_gpu)}  # must live as long as XLA
for _platform, _function in HANDLERS.items():
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_function), platform=_platform)
