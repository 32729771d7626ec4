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
_TRACED_HELP = {
    "JAX": "make the call a function of JAX: `ptxdsl.jax.gemm`, or `ptxdsl.jax.call(launcher, out=…)`",
    "torch": _OPERATOR,
    "torch.func": _OPERATOR,
}
_MEMORY_HELP = "pass an array with memory of its own on the host or a GPU"

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
    """An array argument with a PTX element type. `name` is the name of the parameter, `array` its layout and
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
        """The pointer argument of a kernel. Workspace memory has no owner, and is passed as an address."""
        return self.array.pointer if self.owner is None else self


@dataclass(frozen=True)
class Matrix(ArrayArgument):
    """A 2-D array: `major` is "row" or "column", `stride` the number of elements between rows (or columns).

    A 3-D array is a batch of `batches` matrices, `batch_stride` elements apart. `batches` is None for a 2-D array.
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
        outer, inner = self.shape if self.major == "row" else self.shape[::-1]
        reach = 0
        for stride, count in sorted([(1, inner), (self.stride, outer), (abs(self.batch_stride), self.batches or 1)]):
            if count > 1 and stride <= reach:
                return False
            reach += (count - 1) * stride
        return True

    @property
    def transposed(self) -> Matrix:
        """The transpose, without moving data."""
        other = "row" if self.major == "column" else "column"
        return replace(self, shape=(self.shape[1], self.shape[0]), major=other)

    @property
    def without_columns(self) -> Matrix:
        """The matrix with zero columns, so that no element is read."""
        return replace(self, array=replace(self.array, shape=(0,), strides=(1,)), shape=(self.shape[0], 0))

    @property
    def along_column(self) -> Matrix:
        """The matrix; a contiguous single column is described as column-major."""
        if self.major == "column" or self.shape[1] != 1 or self.stride != 1:
            return self
        return replace(self, major="column", stride=max(1, self.shape[0]))

    def mapped(self, kind: TensorMap) -> MappedMatrix | bytes:
        """Return the kernel argument for loads of the matrix or batch by tensor map."""
        outer, inner = self.shape if self.major == "row" else self.shape[::-1]
        if kind.l2_promotion > L2_LINE_BYTES and not self.is_sector_aligned:
            kind = _with_line_promotion(kind)  # a wider promotion would fetch unused L2 lines
        planes, batch_stride = ((self.batches or 1,), (self.batch_stride,)) if kind.rank > 2 else ((), ())
        shape, strides = (*planes, outer, inner), (*batch_stride, self.stride, 1)
        return MappedMatrix(self.name, self.owner, self.array, kind, shape, strides).argument

    @property
    def is_mappable(self) -> bool:
        """True if TMA can load the matrix: rows (or columns) start at multiples of 16 bytes."""
        strided = self if self.outer_extent > 1 else replace(self, stride=0)  # the stride of a single row is unused
        return bool(self.array.size) and self.batch_stride >= 0 and strided.widest() == WIDEST_ACCESS

    @property
    def is_storable(self) -> bool:
        """True if TMA can store the matrix: rows (or columns) start and end at multiples of 16 bytes."""
        return self.is_mappable and not self.inner_extent * self.type.bytes % WIDEST_ACCESS

    @property
    def is_sector_aligned(self) -> bool:
        """True if rows (or columns) start at multiples of a 32-byte L2 sector."""
        return self.outer_extent == 1 or not (self.array.pointer | self.stride * self.type.bytes) % SECTOR_BYTES

    @property
    def outer_extent(self) -> int:
        """The number of rows of a row-major matrix, or of columns of a column-major one."""
        return self.shape[0] if self.major == "row" else self.shape[1]

    @property
    def inner_extent(self) -> int:
        """The number of contiguous elements: the length of a row, or of a column of a column-major matrix."""
        return self.shape[1] if self.major == "row" else self.shape[0]

    def widest(self, *extents: int, most: int = 16) -> int:
        """Return the widest access in bytes, up to `most`, that is aligned in every row and divides `extents`
        elements."""
        steps = self.stride, self.batch_stride, *extents
        common = gcd(most, self.array.pointer, *(n * self.type.bytes for n in steps))
        return common & -common


def _with_line_promotion(kind: TensorMap) -> TensorMap:
    """Return the tensor map with an L2 promotion of one 128-byte line."""
    if kind.copy is not None:
        return TensorMap.of(kind.element, kind.copy, l2_promotion=L2_LINE_BYTES)
    return TensorMap(kind.element, kind.box, kind.swizzle, l2_promotion=L2_LINE_BYTES)


@dataclass(frozen=True)
class MappedMatrix(ArrayArgument):
    """An array passed by tensor map. `shape` and `strides` have the axes of the map, outermost first; the last stride
    is 1."""

    kind: TensorMap
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def argument(self) -> MappedMatrix | bytes:
        """The kernel argument. Workspace memory has a fixed address, and its tensor map is encoded at once."""
        return self if self.owner is not None else self.encoder()(self.array.pointer)

    @property
    def mapped_view(self) -> Any:
        """A view of the array with the axes of the map."""
        if len(self.array.shape) > BATCH_DIMENSIONS:
            return self.owner.reshape(self.shape)
        major, _ = _order(self.name, self.array)
        planes = self.shape[0] if len(self.array.shape) < len(self.shape) else 1
        is_row_major = major == "row" and tuple(self.array.shape[-2:]) == (self.shape[-2] * planes, self.shape[-1])
        rows = self.owner if is_row_major else self.owner.swapaxes(-1, -2)
        if len(self.array.shape) == len(self.shape):
            return rows
        planes, count, length = self.shape  # rows of the planes are interleaved
        return rows.reshape(count, planes, length).swapaxes(0, 1)

    def encoder(self) -> Callable[[int], bytes]:
        """Return a function that encodes the tensor map for an array of this layout at a given address."""
        itemsize = self.array.itemsize
        return lru_cache(maxsize=1024)(address_encoder(self.kind, itemsize, self.shape, self.strides, itemsize))


def array_argument(
    name: str, owner: object, dimensions: int | tuple[int, ...], rule: str, help: str, types: str = ""
) -> ArrayArgument:
    """Check that `owner` is an array with an allowed number of `dimensions`, and return it.

    `rule` states the dimensions in the error message. `types` are the element types that the help text suggests,
    float16 or float32 by default. Raises LaunchError for anything else.
    """
    allowed = (dimensions,) if isinstance(dimensions, int) else dimensions
    try:
        array = arrays.describe(owner)
    except BufferError as reason:
        help = _TRACED_HELP.get(traced_by(owner) or "", _MEMORY_HELP)
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
            f"`{name}` has elements of type {array.dtype}, which PTX does not have",
            help=_types_help(name, types or "float16 or float32"),
        )
    if array.dtype.endswith("bool"):
        raise LaunchError(
            f"`{name}` has elements of type bool, which the kernels neither multiply nor add",
            help=_types_help(name, types or "uint8, or to the type of the other arrays"),
        )


def _types_help(name: str, types: str) -> str:
    return f"pass one of {types}" if is_output(name) else f"convert it to {types}"


def _check_memory(name: str, owner: object, array: arrays.Array) -> None:
    assert array.type is not None
    if arrays.is_masked(owner):
        does, bare = ("writes", f"{name}.data") if is_output(name) else ("reads", f"{name}.filled(0)")
        raise LaunchError(
            f"`{name}` is a masked array, and a kernel {does} the data under the mask",
            help=f"pass an array without a mask, such as {bare}",
        )
    if array.pointer % array.type.bytes:
        raise LaunchError(
            f"`{name}` begins at the address {array.pointer:#x}, "
            f"which is not a multiple of its {array.type.bytes}-byte element size",
            help="pass an aligned array: a GPU writes aligned elements only"
            if is_output(name)
            else "make a copy of it: a GPU reads aligned elements only",
        )


def is_output(name: str) -> bool:
    """Return True if the array of this name is written, and thus cannot be replaced by a copy."""
    return name.partition("[")[0] == "out"


def matrix(name: str, owner: object, vector_help: str = "reshape it", batched: bool = False, types: str = "") -> Matrix:
    """Check that `owner` is a matrix, or a batch of matrices if `batched`, and return it. `types` is passed to
    `array_argument`.

    Raises LaunchError for other arguments, other dimensions, and matrices without a unit stride.
    """
    expected = "a matrix has two dimensions, a batch of them three" if batched else "a matrix has two dimensions"
    array = array_argument(name, owner, (2, 3) if batched else 2, expected, vector_help, types).array
    major, stride = _order(name, array)
    *batches, rows, columns = array.shape
    if not batches:
        return Matrix(name, owner, array, (rows, columns), major, stride)
    batch_stride = array.strides[0] if batches[0] > 1 else 0
    return Matrix(name, owner, array, (rows, columns), major, stride, batches[0], batch_stride)


def _order(name: str, array: arrays.Array) -> tuple[str, int]:
    """Return the major order, "row" or "column", and the stride between rows (or columns) in elements."""
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
    """Raise LaunchError if a and b are of different types, except for two fp8 types, or of a type not in `inputs`."""
    if left.type not in inputs or (left.type is not right.type and {left.type, right.type} != {*FP8}):
        raise LaunchError(
            f"`{left.name}` is {describe_type(left.type)} and `{right.name}` is {describe_type(right.type)}", help=help
        )


def empty(like: ArrayArgument, shape: tuple[int, ...], type: Type) -> Any:
    """Return an uninitialised row-major array of the same library and device as `like`.

    Raises LaunchError for a library whose arrays ptxdsl cannot allocate.
    """
    library = like.array.library
    if library not in _ALLOCATORS:
        raise LaunchError(
            f"`out` is not given, and arrays of {library} cannot be allocated", help="pass the array to write as out="
        )
    dtype = like.owner.dtype if like.type is type else type.dtype
    if library == "torch":
        dtype = getattr(importlib.import_module("torch"), describe_type(type))
    return _ALLOCATORS[library](like.owner, shape, dtype)


def allocator(library: str, shape: Sequence[int], dtype: Any) -> Callable[[Any], Any]:
    """Return a function that allocates row-major arrays on the device of its argument."""
    extents = tuple(shape)
    fast = _fast_torch_allocator() if library == "torch" else None
    if fast is None:
        return lambda like: _ALLOCATORS[library](
            like, extents, dtype
        )  # looked up late: JAX has no allocator, since XLA allocates its outputs
    empty, current_device, plain = fast
    strides = arrays.row_major(extents)

    def make(like: Any) -> Any:
        if type(like) in plain and like.get_device() == current_device():
            return empty(extents, strides, dtype)
        return _empty_torch(like, extents, dtype)

    return make


def list_allocator(library: str, shapes: Iterable[Sequence[int]], dtype: Any) -> Callable[[Any], list[Any]]:
    """Return a function that allocates a list of row-major arrays, one per shape."""
    all_extents = [*map(tuple, shapes)]
    fast = _fast_torch_allocator() if library == "torch" else None
    if fast is None:
        return lambda like: [_ALLOCATORS[library](like, extents, dtype) for extents in all_extents]
    empty, current_device, plain = fast
    layouts = [(extents, arrays.row_major(extents)) for extents in all_extents]

    def make(like: Any) -> list[Any]:
        if type(like) in plain and like.get_device() == current_device():
            return [empty(extents, strides, dtype) for extents, strides in layouts]
        return [_empty_torch(like, extents, dtype) for extents in all_extents]

    return make


def _fast_torch_allocator() -> tuple[Callable[..., Any], Callable[[], int], tuple[type, ...]] | None:
    """Return the allocator of torch.compile, the function that returns the current GPU, and the supported tensor
    classes; None if torch has no such allocator. It takes a third of the time of `new_empty`, on the current GPU."""
    torch_c: Any = sys.modules["torch"]._C
    empty = getattr(getattr(getattr(torch_c, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
    if empty is None or not hasattr(torch_c, "_cuda_getDevice"):
        return None
    return empty, torch_c._cuda_getDevice, (sys.modules["torch"].Tensor, sys.modules["torch"].nn.Parameter)


def _empty_torch(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return like.new_empty(shape, dtype=dtype)


def _empty_cupy(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    with like.device:  # cupy makes arrays on the current device
        return importlib.import_module("cupy").empty(shape, dtype)


def _empty_numpy(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return np.empty(shape, dtype)


_ALLOCATORS: dict[str, Callable[[Any, tuple[int, ...], Any], Any]] = {
    "torch": _empty_torch,
    "cupy": _empty_cupy,
    "numpy": _empty_numpy,
}


def describe_type(type: Type) -> str:
    """Return the numpy name of a type."""
    return NAMES.get(str(type)) or str(type.dtype)


def describe_types(types: Iterable[Type]) -> str:
    """Return the names of types as "a, b or c"."""
    *first, last = map(describe_type, types)
    return f"{', '.join(first)} or {last}" if first else last
