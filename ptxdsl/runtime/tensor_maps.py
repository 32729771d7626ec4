"""Describe and check an array as a tensor map parameter, and encode it with the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from ptxdsl import driver
from ptxdsl.arrays import HOST, Array, Strided, Struct, describe
from ptxdsl.errors import public
from ptxdsl.isa.tensor_map import ALIASES, MAP_BYTES, MOST_ELEMENTS, MOST_STRIDE, TensorMapDescription
from ptxdsl.runtime.shape import refuse
from ptxdsl.trace.parameters import brief
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Type

UNIT = 16  # bytes; addresses and strides are multiples of it
ADDRESS_OFFSET = 8  # of the address in the encoded description
_DATA_TYPES = {
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64", "f16": "FLOAT16",
    "f32": "FLOAT32", "f64": "FLOAT64", "bf16": "BFLOAT16", "tf32": "TFLOAT32",
}  # fmt: skip
_FILLS = {"zeros": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


class MappedAs(Strided):
    """An array as a tensor map, for a parameter of 128 bytes, a field of a struct, or a tensor map parameter.

    Its `map` has the boxes of the parameter, if that has any. One kernel thus takes images of any padding and stride,
    since it depends only on the boxes.
    """

    __slots__ = ("map",)

    def __init__(self, array: object, map: TensorMap) -> None:
        super().__init__(array)
        self.map = map


@public
def tensor_map(
    array: object,
    box: int | tuple[int, ...] | TensorMap,
    swizzle: int | None = None,
    *,
    element: Type | None = None,
    fill: str = "zeros",
    l2_promotion: int = 128,
    interleave: int | None = None,
) -> MappedAs:
    """Return an array as a tensor map, to be passed to a kernel of parsed PTX.

    A `CUtensorMap` parameter is 128 bytes in PTX, `.param .align 64 .b8 p[128]`, which take the result. A struct that
    contains one has a field `pd.TensorMap(…)` in its `pd.Parameters` class, which takes the result or the array. The
    map is encoded at the launch: by the driver for a GPU, in the emulator's format for numpy arrays.

    `box`, `swizzle`, `fill`, `l2_promotion` and `interleave` are those of `pd.TensorMap`: `box` is in the order of the
    array's axes, outermost first, the reverse of the order of `cuTensorMapEncodeTiled`. A `box` may be a TensorMap, for
    example `pd.TensorMap.im2col(…)`. `element` is the type of the elements if it is not that of the array: `tf32` for
    float32, an 8-bit float for uint8. Raises TraceError for a box that the hardware does not support, and LaunchError
    for something that is not an array; the launch raises LaunchError for an array that TMA cannot address.

        kernel[grid, block](pd.tensor_map(a, (128, 64), swizzle=128), pd.tensor_map(b, (128, 64), swizzle=128), c)
    """
    if isinstance(box, TensorMap):
        return MappedAs(array, box)
    described = describe(array)
    if described is None:
        refuse(f"pd.tensor_map takes an array; found {brief(array)}", "pass a numpy or a CUDA array")
    kind = element or described.type
    if kind is None:
        refuse(f"PTX has no type for elements of {described.dtype}", "pass `element=`, the type that the kernel reads")
    return MappedAs(array, TensorMap(kind, box, swizzle, fill=fill, l2_promotion=l2_promotion, interleave=interleave))


def map_of(name: str, kind: TensorMap, argument: object) -> TensorMap:
    """Return the map that encodes an argument. Raises LaunchError if its boxes differ from the parameter's."""
    if not isinstance(argument, MappedAs):
        return kind
    known, other = _boxes(kind), _boxes(argument.map)
    if known != other:
        _refuse(
            name, kind, f"the array is mapped as {argument.map}", "map it with the same element type, box and swizzle"
        )
    return argument.map


def _boxes(kind: TensorMap) -> tuple[object, ...]:
    """Return the properties of a map that a kernel depends on."""
    return kind.element, kind.rank, kind.box, kind.copy, kind.swizzle, kind.interleave, kind.pixel_box is None


def mapped_array(name: str, kind: TensorMap, array: Array) -> Struct:
    """Return the parameter: a description of the array, whose address is filled in later.

    Raises LaunchError for an array that TMA cannot address.
    """
    _check_extents(name, kind, array)
    strides = _byte_strides(array.shape, array.strides, array.itemsize, _unit(kind))
    _check_last_axis(name, kind, array, strides)
    _check_strides(name, kind, strides)
    _check_images(name, kind, array.shape)
    _check_address(name, kind, array)
    return Struct(description(kind, 0, array.shape, strides).encode(), ((ADDRESS_OFFSET, name, array),), maps=(0,))


def description(
    kind: TensorMap, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> TensorMapDescription:
    """Return the description of an array's tensor map; strides are in bytes. Slice channels are not a dimension."""
    last = -2 if kind.interleave else -1
    steps = (*kind.steps[::-1], 1, 1) if kind.interleave else (1, *kind.steps[::-1], 1)
    return TensorMapDescription(
        address=address,
        type=kind.element,
        dims=tuple(shape[last::-1]),
        strides=tuple(strides[last - 1 :: -1]),
        box=kind.box[last::-1] if kind.pixel_box is None else (),
        element_strides=(1,) * kind.rank if kind.pixel_box is None else steps,
        swizzle=kind.swizzle or 0,
        interleave=kind.interleave or 0,
        fill=kind.fill,
        l2_promotion=kind.l2_promotion,
        pixel_box=kind.pixel_box,
    )


def _unit(kind: TensorMap) -> int:
    """Return the bytes that addresses and strides of arrays in GPU memory must be multiples of."""
    return kind.interleave or UNIT


def _byte_strides(shape: tuple[int, ...], strides: tuple[int, ...], step: int, unit: int) -> tuple[int, ...]:
    """Convert strides in units of `step` bytes to bytes.

    An axis of one element is never stepped over, so it gets a stride that is valid in a map.
    """
    return tuple(unit if extent == 1 else stride * step for extent, stride in zip(shape, strides, strict=True))


def _check_extents(name: str, kind: TensorMap, array: Array) -> None:
    if len(array.shape) != kind.axes:
        axes = "1 axis" if kind.axes == 1 else f"{kind.axes} axes"
        refuse(f"`{name}` expects {kind}, got {array}", f"pass an array of {axes}")
    if array.size == 0 or max(array.shape) > MOST_ELEMENTS:
        refuse(f"`{name}` expects {kind}, got {array}: each axis of a tensor map has 1 to 2^32 elements")


def _check_last_axis(name: str, kind: TensorMap, array: Array, strides: tuple[int, ...]) -> None:
    """Refuse an array whose rows, or whose channels of a slice, are not contiguous; strides are in bytes."""
    if array.shape[-1] != 1 and array.strides[-1] != 1:
        _refuse(
            name, kind, f"it has shape {array.shape} and strides {array.strides}: the stride of "
            "the last axis must be 1",
            "pass a row-major array, such as the transpose of a column-major one, or a copy",
        )  # fmt: skip
    if kind.interleave and not _has_slices(kind, array.shape, strides):
        _refuse(
            name, kind, f"it has shape {array.shape} and strides {array.strides}: the last axis must be the "
            f"{kind.box[-1]} channels of a slice, and the slices of an image row must be contiguous",
            "pass a row-major array (n, slices, …, w, channels of a slice)",
        )  # fmt: skip


def _check_strides(name: str, kind: TensorMap, strides: tuple[int, ...]) -> None:
    unit = _unit(kind)
    for axis, stride in enumerate(strides[:-1]):
        help = f"pad the rows to a multiple of {unit} bytes, or copy with cp.async"
        if stride < 0:
            help = "TMA copies no reversed axis: pass a copy, or the array without [::-1] and "
            help += f"count axis {axis} backwards"
        elif stride >= MOST_STRIDE:
            help = "pass a smaller array, or a copy of the part"
        if stride % unit or not 0 <= stride < MOST_STRIDE:
            _refuse(
                name, kind, f"the stride of axis {axis} is {stride} bytes; TMA needs a multiple of {unit}, at least "
                "0 and less than 2^40",
                help,
            )  # fmt: skip


def _check_images(name: str, kind: TensorMap, shape: tuple[int, ...]) -> None:
    """Refuse images smaller than the window of an im2col map. The channels of a slice are not a dimension."""
    if kind.pixel_box is None:
        return
    dims, images = shape[::-1], shape[1:-1]
    if kind.interleave:
        dims, images = dims[1:], shape[2:-1]
    if problem := next(kind.pixel_box.problems(dims, bool(kind.interleave)), None):
        _refuse(name, kind, f"the images are {images}: {problem}", "pass larger images")


def _check_address(name: str, kind: TensorMap, array: Array) -> None:
    # The address of a numpy array does not determine that of its copy on a GPU or in the emulator.
    unit = UNIT if array.device == HOST else _unit(kind)
    if array.pointer % unit:
        _refuse(
            name, kind, f"it starts at {array.pointer:#x}; TMA needs an address that is a multiple of {unit} bytes",
            "pass a copy, or start the slice at another element",
        )  # fmt: skip


def _has_slices(kind: TensorMap, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """True if the last axis is the channels of a slice, and the slices of the axis before it are contiguous."""
    return shape[-1] == kind.box[-1] and (shape[-2] == 1 or strides[-2] == kind.interleave)


def _refuse(name: str, kind: TensorMap, why: str, help: str | None = None) -> NoReturn:
    refuse(f"`{name}` expects {kind}; {why}", help)


@lru_cache(maxsize=1024)
def for_driver(content: bytes) -> bytes:
    """Encode a description with the driver and return the bytes of the tensor map."""
    described = TensorMapDescription.decode(content)
    return encoder(described)(described.address)


def quick_map(kind: TensorMap, itemsize: int) -> Any:
    """Return a cached function (address, shape, strides, bytes per stride unit) -> encoded tensor map.

    The function raises ValueError for an array that TMA cannot address.
    """

    @lru_cache(maxsize=64)
    def of_shape(shape: tuple[int, ...], strides: tuple[int, ...], unit: int) -> Callable[[int], bytes]:
        return address_encoder(kind, itemsize, shape, strides, unit)

    @lru_cache(maxsize=1024)
    def encoded(address: int, shape: tuple[int, ...], strides: tuple[int, ...], unit: int) -> bytes:
        return of_shape(shape, strides, unit)(address)

    return encoded


def address_encoder(
    kind: TensorMap, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], unit: int
) -> Callable[[int], bytes]:
    """Return a function from an address to the tensor map, for arrays of one layout; strides count `unit` bytes.

    Both raise ValueError: this one for a bad shape or stride, the returned one for a bad address.
    """
    least = _unit(kind)
    bytes_of = _byte_strides(shape, strides, unit, least)
    if len(shape) != kind.axes or (shape[-1] != 1 and bytes_of[-1] != itemsize):
        raise ValueError
    if kind.interleave and not _has_slices(kind, shape, bytes_of):
        raise ValueError
    described = description(kind, 0, tuple(shape), bytes_of)
    if any(described.problems()):
        raise ValueError
    encode = encoder(described)

    def encoded(address: int) -> bytes:
        if address % least:
            raise ValueError
        return encode(address)

    return encoded


def encoder(d: TensorMapDescription) -> Callable[[int], bytes]:
    """Return a function that encodes a description for an array at a given address, as 128 bytes.

    Everything except the address is converted to driver types once, since that takes ten times as long as the encoding.
    """
    cuda = driver.cuda
    wide = [cuda.cuuint64_t(n) for n in d.dims], [cuda.cuuint64_t(n) for n in d.strides or (UNIT,)]
    encode, box = cuda.cuTensorMapEncodeTiled, [[cuda.cuuint32_t(n) for n in d.box]]
    if (p := d.pixel_box) is not None:
        encode = cuda.cuTensorMapEncodeIm2col
        box = [list(p.lower), list(p.upper), cuda.cuuint32_t(p.channels), cuda.cuuint32_t(p.pixels)]
    kind = _DATA_TYPES[ALIASES.get(str(d.type), str(d.type))]
    swizzle = f"{d.swizzle}B" if d.swizzle else "NONE"
    interleave = f"{d.interleave}B" if d.interleave else "NONE"
    promotion = f"L2_{d.l2_promotion}B" if d.l2_promotion else "NONE"
    first = getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"), d.rank
    rest = (
        *wide, *box, [cuda.cuuint32_t(n) for n in d.element_strides],
        getattr(cuda.CUtensorMapInterleave, f"CU_TENSOR_MAP_INTERLEAVE_{interleave}"),
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        getattr(cuda.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[d.fill]}"),
    )  # fmt: skip

    def encoded(address: int) -> bytes:
        status, map = encode(*first, address, *rest)
        if status in driver.ELSEWHERE:
            with driver.on(driver.gpu_at(address) or 0):
                status, map = encode(*first, address, *rest)
        if status:
            raise driver.failure("encoding a tensor map", status)
        return ctypes.string_at(map.getPtr(), MAP_BYTES)

    return encoded
