"""Matrix arguments: row- or column-major arrays of any library, with any leading dimension."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from ptxdsl import arrays
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.operands import FP8
from ptxdsl.runtime.tensor_maps import address_encoder
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.tracers import traced_by
from ptxdsl.types import Type

WIDEST_ACCESS = 16  # bytes
SECTOR_BYTES, L2_LINE_BYTES = 32, 128
BATCH_DIMENSIONS = 3  # of matrices in one array
_OPERATOR = (
    "call an operator: `gemm` of ptxdsl.torch, or one made of your call by `ptxdsl.torch.op(name, launcher, fake=…)`"
)
_WHERE_TRACED = {
    "JAX": "make the call a function of JAX: `ptxdsl.jax.gemm`, or `ptxdsl.jax.call(launcher, out=…)`",
    "torch": _OPERATOR,
    "torch.func": _OPERATOR,
}
_WITH_MEMORY = "pass an array with memory of its own on the host or a GPU"

NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "s8": "int8",
    "u8": "uint8",
    "s32": "int32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}


@dataclass(frozen=True)
class ArrayArgument:
    """An array argument with an element type that PTX has. `name` is the parameter's name, `array` its layout and
    address."""

    name: str
    owner: Any
    array: arrays.Array

    @property
    def type(self) -> Type:
        assert self.array.type is not None
        return self.array.type

    @property
    def pointer(self) -> Any:
        """The pointer argument of a kernel: this argument, or the address itself for memory of a workspace, which has
        no owner."""
        return self.array.pointer if self.owner is None else self


@dataclass(frozen=True)
class Matrix(ArrayArgument):
    """A 2-D array: `major` is "row" or "column", `stride` the number of elements between rows (or columns).

    A 3-D array has `batches` matrices, `batch_stride` elements apart; `batches` is None for a 2-D array.
    """

    shape: tuple[int, int]
    major: str
    stride: int
    batches: int | None = None
    batch_stride: int = 0

    @property
    def full_shape(self) -> tuple[int, ...]:
        return self.shape if self.batches is None else (self.batches, *self.shape)

    @property
    def is_disjoint(self) -> bool:
        """True if no two elements, in any batch, share memory."""
        if not self.array.size:
            return True
        lines, across = self.shape if self.major == "row" else self.shape[::-1]
        reach = 0
        for apart, count in sorted([(1, across), (self.stride, lines), (abs(self.batch_stride), self.batches or 1)]):
            if count > 1 and apart <= reach:
                return False
            reach += (count - 1) * apart
        return True

    @property
    def transposed(self) -> Matrix:
        """The transpose, without moving data."""
        other = "row" if self.major == "column" else "column"
        return replace(self, shape=(self.shape[1], self.shape[0]), major=other)

    @property
    def without_columns(self) -> Matrix:
        """The matrix with no columns, of which nothing is read."""
        return replace(self, array=replace(self.array, shape=(0,), strides=(1,)), shape=(self.shape[0], 0))

    @property
    def along_column(self) -> Matrix:
        """The matrix, with a contiguous single column described as column-major."""
        if self.major == "column" or self.shape[1] != 1 or self.stride != 1:
            return self
        return replace(self, major="column", stride=max(1, self.shape[0]))

    def mapped(self, kind: TensorMap) -> MappedMatrix | bytes:
        """Return the argument of a kernel that loads the matrix or batch by a tensor map."""
        lines, length = self.shape if self.major == "row" else self.shape[::-1]
        if kind.l2_promotion > L2_LINE_BYTES and not self.is_in_sectors:
            kind = _by_lines(kind)  # else the L2 cache fetches lines in vain
        planes, apart = ((self.batches or 1,), (self.batch_stride,)) if kind.rank > 2 else ((), ())
        shape, strides = (*planes, lines, length), (*apart, self.stride, 1)
        return MappedMatrix(self.name, self.owner, self.array, kind, shape, strides).argument

    @property
    def is_mappable(self) -> bool:
        """True if TMA can load it: rows (or columns) start at multiples of 16 bytes."""
        lines = self.shape[0] if self.major == "row" else self.shape[1]
        known = self if lines > 1 else replace(self, stride=0)  # a single one has no next
        return bool(self.array.size) and self.batch_stride >= 0 and known.widest() == WIDEST_ACCESS

    @property
    def is_storable(self) -> bool:
        """True if TMA can store it, in whole 16-byte units: rows must end at multiples of 16 bytes too."""
        return self.is_mappable and not self.length * self.type.bytes % WIDEST_ACCESS

    @property
    def is_in_sectors(self) -> bool:
        """True if rows (or columns) start at multiples of a 32-byte L2 sector."""
        lines = self.shape[0] if self.major == "row" else self.shape[1]
        return lines == 1 or not (self.array.pointer | self.stride * self.type.bytes) % SECTOR_BYTES

    @property
    def length(self) -> int:
        """The number of elements of a row, or of a column if it is column-major."""
        return self.shape[1] if self.major == "row" else self.shape[0]

    def widest(self, *extents: int, most: int = 16) -> int:
        """Return the widest access in bytes, up to `most`, for which every row is aligned and which divides `extents`
        elements."""
        apart = self.stride, self.batch_stride, *extents
        common = gcd(most, self.array.pointer, *(n * self.type.bytes for n in apart))
        return common & -common


def _by_lines(kind: TensorMap) -> TensorMap:
    """Return the same map, with an L2 promotion of one line."""
    if kind.copy is not None:
        return TensorMap.of(kind.element, kind.copy, l2_promotion=L2_LINE_BYTES)
    return TensorMap(kind.element, kind.box, kind.swizzle, l2_promotion=L2_LINE_BYTES)


@dataclass(frozen=True)
class MappedMatrix(ArrayArgument):
    """A matrix passed by tensor map: planes, rows and elements, the last of stride 1; or images or filters, with the
    axes of their map."""

    kind: TensorMap
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def argument(self) -> MappedMatrix | bytes:
        """The argument of a kernel: this, or the tensor map itself of memory of a workspace, whose address stays."""
        return self if self.owner is not None else self.encoder()(self.array.pointer)

    @property
    def lines(self) -> Any:
        """The array with the axes of the map."""
        if len(self.array.shape) > BATCH_DIMENSIONS:
            return self.owner.reshape(self.shape)
        major, _ = _order(self.name, self.array)
        planes = self.shape[0] if len(self.array.shape) < len(self.shape) else 1
        lies_so = major == "row" and tuple(self.array.shape[-2:]) == (self.shape[-2] * planes, self.shape[-1])
        lines = self.owner if lies_so else self.owner.swapaxes(-1, -2)
        if len(self.array.shape) == len(self.shape):
            return lines
        planes, rows, length = self.shape  # every so many rows are a plane
        return lines.reshape(rows, planes, length).swapaxes(0, 1)

    def encoder(self) -> Callable[[int], bytes]:
        """Return a function that encodes the tensor map for an array of this layout at a given address."""
        each = self.array.itemsize
        return lru_cache(maxsize=1024)(address_encoder(self.kind, each, self.shape, self.strides, each))


def array_argument(
    name: str, owner: object, dimensions: int | tuple[int, ...], rule: str, help: str, types: str = ""
) -> ArrayArgument:
    """Check that `owner` is an array with one of these numbers of dimensions, and return it; `rule` names what has
    them.

    `types` are the element types that the help text suggests, by default those that can be multiplied. Raises
    LaunchError.
    """
    allowed = (dimensions,) if isinstance(dimensions, int) else dimensions
    try:
        array = arrays.describe(owner)
    except BufferError as reason:
        help = _WHERE_TRACED.get(traced_by(owner) or "", _WITH_MEMORY)
        raise LaunchError(f"`{name}` cannot be used: {reason}", help=help) from None
    if array is None:
        raise LaunchError(
            f"`{name}` is of type {type(owner).__name__}, not an array",
            help="pass numpy arrays, or CUDA arrays of torch, CuPy or JAX",
        )
    if len(array.shape) not in allowed:
        raise LaunchError(f"`{name}` has the shape {array.shape}; {rule}", help=help)
    _check_elements(name, array, types)
    _check_memory(name, owner, array)
    return ArrayArgument(name, owner, array)


def _check_elements(name: str, array: arrays.Array, types: str) -> None:
    if array.type is None:
        raise LaunchError(
            f"`{name}` has elements of type {array.dtype}, which PTX has not",
            help=_of_types(name, types or "float16 or float32"),
        )
    if array.dtype.endswith("bool"):
        raise LaunchError(
            f"`{name}` has elements of type bool, which are not multiplied nor added here",
            help=_of_types(name, types or "uint8, or to the type of the other arrays"),
        )


def _of_types(name: str, types: str) -> str:
    return f"pass one of {types}" if is_output(name) else f"convert it to {types}"


def _check_memory(name: str, owner: object, array: arrays.Array) -> None:
    assert array.type is not None
    if arrays.is_masked(owner):
        does, bare = ("writes", f"{name}.data") if is_output(name) else ("reads", f"{name}.filled(0)")
        raise LaunchError(
            f"`{name}` is a masked array, and a kernel {does} what is under the mask",
            help=f"pass an array without a mask, such as {bare}",
        )
    if array.pointer % array.type.bytes:
        raise LaunchError(
            f"`{name}` begins at the address {array.pointer:#x}, "
            f"which is no multiple of its {array.type.bytes}-byte elements",
            help="pass one that begins at such a multiple: a GPU writes aligned elements only"
            if is_output(name)
            else "make a copy of it: a GPU reads aligned elements only",
        )


def is_output(name: str) -> bool:
    """True if an array of this name is written, so that a copy of it would not do."""
    return name.partition("[")[0] == "out"


def matrix(name: str, owner: object, vector_help: str = "reshape it", batched: bool = False, types: str = "") -> Matrix:
    """Check that `owner` is a matrix, or a batch of them if `batched`; `types` is as in `array_argument`.

    Raises LaunchError for anything else, for other dimensions and for gaps between elements.
    """
    expected = "a matrix has two dimensions, a batch of them three" if batched else "a matrix has two dimensions"
    array = array_argument(name, owner, (2, 3) if batched else 2, expected, vector_help, types).array
    major, stride = _order(name, array)
    *batches, rows, columns = array.shape
    if not batches:
        return Matrix(name, owner, array, (rows, columns), major, stride)
    apart = array.strides[0] if batches[0] > 1 else 0
    return Matrix(name, owner, array, (rows, columns), major, stride, batches[0], apart)


def _order(name: str, array: arrays.Array) -> tuple[str, int]:
    """Return "row" or "column", and the number of elements from one row (or column) to the next."""
    (rows, columns), (down, right) = array.shape[-2:], array.strides[-2:]
    if (right == 1 or columns <= 1) and (down >= columns or rows <= 1):
        return "row", max(down, columns, 1) if rows > 1 else max(columns, 1)
    if (down == 1 or rows <= 1) and (right >= rows or columns <= 1):
        return "column", max(right, rows, 1) if columns > 1 else max(rows, 1)
    if not array.size:
        return "row", max(columns, 1)
    if min(down, right) < 0:
        raise LaunchError(
            f"`{name}` has the shape {array.shape} and strides of ({down}, {right}) elements: it runs backwards",
            help="pass one whose strides are positive" if is_output(name) else "make a copy of it",
        )
    contiguous = "pass a contiguous array" if is_output(name) else "make a contiguous copy of it"
    raise LaunchError(
        f"`{name}` has the shape {array.shape} and strides of ({down}, {right}) elements: not row- nor column-major",
        help=f"one stride must be 1 and the other at least that dimension's length; {contiguous}",
    )


def check_input_types(left: ArrayArgument, right: ArrayArgument, inputs: Sequence[Type], help: str) -> None:
    """Raise LaunchError if a and b have different types, except for two fp8 types, or one that is not in `inputs`."""
    if left.type not in inputs or (left.type is not right.type and {left.type, right.type} != {*FP8}):
        raise LaunchError(
            f"`{left.name}` is {describe_type(left.type)} and `{right.name}` is {describe_type(right.type)}", help=help
        )


def empty(like: ArrayArgument, shape: tuple[int, ...], type: Type) -> Any:
    """Return a new row-major array, uninitialised, from the library and on the device of another array.

    Raises LaunchError for a library whose arrays cannot be allocated here.
    """
    library = like.array.library
    if library not in _MAKE:
        raise LaunchError(
            f"`out` is not given, and arrays of {library} are not made here", help="pass the array to write as out="
        )
    dtype = like.owner.dtype if like.type is type else type.dtype
    if library == "torch":
        dtype = getattr(importlib.import_module("torch"), describe_type(type))
    return _MAKE[library](like.owner, shape, dtype)


def maker(library: str, shape: Sequence[int], dtype: Any) -> Callable[[Any], Any]:
    """Return a function that allocates row-major arrays on the device of a given array."""
    extents = tuple(shape)
    quick = _quick_of_torch() if library == "torch" else None
    if quick is None:
        return lambda like: _MAKE[library](like, extents, dtype)  # where it is asked: XLA gives all outputs
    empty, current_device, plain = quick
    strides = arrays.row_major(extents)

    def make(like: Any) -> Any:
        if type(like) in plain and like.get_device() == current_device():
            return empty(extents, strides, dtype)
        return _of_torch(like, extents, dtype)

    return make


def list_maker(library: str, shapes: Iterable[Sequence[int]], dtype: Any) -> Callable[[Any], list[Any]]:
    """Return a function that allocates a list of row-major arrays, one of each shape."""
    every = [*map(tuple, shapes)]
    quick = _quick_of_torch() if library == "torch" else None
    if quick is None:
        return lambda like: [_MAKE[library](like, extents, dtype) for extents in every]
    empty, current_device, plain = quick
    laid_out = [(extents, arrays.row_major(extents)) for extents in every]

    def make(like: Any) -> list[Any]:
        if type(like) in plain and like.get_device() == current_device():
            return [empty(extents, strides, dtype) for extents, strides in laid_out]
        return [_of_torch(like, extents, dtype) for extents in every]

    return make


def _quick_of_torch() -> tuple[Callable[..., Any], Callable[[], int], tuple[type, ...]] | None:
    """Return the allocator of compiled graphs, which takes a third of the time on the current GPU, a function that
    returns the current GPU, and the tensor classes that it can stand for. None if torch lacks it."""
    inside: Any = sys.modules["torch"]._C
    empty = getattr(getattr(getattr(inside, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
    if empty is None or not hasattr(inside, "_cuda_getDevice"):
        return None
    return empty, inside._cuda_getDevice, (sys.modules["torch"].Tensor, sys.modules["torch"].nn.Parameter)


def _of_torch(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return like.new_empty(shape, dtype=dtype)


def _of_cupy(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    with like.device:  # cupy makes arrays on the current device
        return importlib.import_module("cupy").empty(shape, dtype)


def _of_numpy(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return np.empty(shape, dtype)


_MAKE: dict[str, Callable[[Any, tuple[int, ...], Any], Any]] = {
    "torch": _of_torch,
    "cupy": _of_cupy,
    "numpy": _of_numpy,
}


def describe_type(type: Type) -> str:
    """Return the name of a type in numpy."""
    return NAMES.get(str(type)) or str(type.dtype)


def describe_types(types: Iterable[Type]) -> str:
    """Return "a, b or c"."""
    *first, last = map(describe_type, types)
    return f"{', '.join(first)} or {last}" if first else last
