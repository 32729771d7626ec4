"""Convert one launch argument to the value of a parameter: an array, an address, a number or the bytes of a struct.

An argument that does not fit is refused by name, with what was found, what was expected and how to fix it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ptxdsl import types
from ptxdsl.arrays import Array, Strided, Struct, describe, is_masked, unwrapped
from ptxdsl.isa.tensor_map import MAP_ALIGNMENT, MAP_BYTES
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.tensor_maps import map_of, mapped_array
from ptxdsl.trace import literal
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.tracers import traced_by
from ptxdsl.types import Pointer, Type

_ADDRESS_LIMIT = 1 << 64
_SHOWN_DIGITS = 40
_OPERATOR = "make the kernel a torch operator: `ptxdsl.torch.op(name, kernel, grid=…, block=…, out={…})`"
_WHERE_TRACED = {
    "JAX": "make the kernel a JAX function: `ptxdsl.jax.call(kernel, grid=…, block=…, out=…)`",
    "torch": _OPERATOR,
    "torch.func": _OPERATOR,
}
_DTYPES = {types.bf16: "bfloat16", types.e4m3: "float8_e4m3fn", types.e5m2: "float8_e5m2"}  # that numpy lacks
_WITH_MEMORY = "pass an array with its own memory on the host or a GPU"


@dataclass(frozen=True, slots=True)
class Bytes:
    """A kernel parameter that is a struct by value (`.param .align 8 .b8 p[24]`), given as its bytes."""

    size: int
    align: int = 1

    def __str__(self) -> str:
        return f"a struct of {self.size} bytes"


@dataclass(frozen=True, slots=True)
class SignlessType(Type):
    """An unsigned parameter of parsed PTX that also takes negative numbers, since compilers declare `int` as `.u32`."""


Kind: TypeAlias = Type | Pointer | Bytes | TensorMap
Value: TypeAlias = Array | Struct | int | float | bytes


# struct codes of parameter types; a bf16 must first be converted to its bits.
_CODES = {
    **{f"{k}{n}": code for n, code in zip((8, 16, 32, 64), "BHIQ", strict=True) for k in "ub"},
    **{f"s{n}": code for n, code in zip((8, 16, 32, 64), "bhiq", strict=True)},
    "f16": "e", "f32": "f", "f64": "d", "tf32": "f", "bf16": "H",
}  # fmt: skip


def code(kind: Kind) -> str:
    """Return the `struct` code of a parameter."""
    if isinstance(kind, Bytes):
        return f"{kind.size}s"
    if isinstance(kind, TensorMap):
        return f"{MAP_BYTES}s"
    if isinstance(kind, Pointer):
        return "Q"
    return _CODES.get(kind.name) or _CODES[types.bits(kind.bits).name]


def packed(kind: Kind, value: int | float | bytes) -> bytes:
    """Return the bytes of a non-array parameter from its checked value."""
    return struct.pack(f"={code(kind)}", value)


def with_arrays(value: Value, changed: Callable[[Array], Array]) -> Value:
    """Return a value with each of its arrays changed."""
    if isinstance(value, Struct):
        return replace(value, holders=tuple([(n, path, changed(array)) for n, path, array in value.holders]))
    return changed(value) if isinstance(value, Array) else value


def value_of(name: str, kind: Kind, argument: object, stream: int) -> Value:
    """Return the value for a parameter. Raises LaunchError for an argument that does not fit."""
    if isinstance(kind, Bytes):
        return _struct_bytes(name, kind, argument)
    if isinstance(kind, TensorMap):
        if isinstance(argument, bytes) and len(argument) == MAP_BYTES:  # already encoded by the driver
            return argument
        return mapped_array(name, map_of(name, kind, argument), _typed_array(name, kind, argument, stream))
    is_number = isinstance(argument, int | float | np.generic)
    if isinstance(kind, Pointer) or (kind.bits == 64 and not kind.is_float and not is_number):
        return _pointer(name, kind, argument, stream)
    return _scalar(name, kind, argument)


def shown(argument: object) -> str:
    """Describe an argument in an error: arrays by type and shape, numbers and strings in full, others by class."""
    if isinstance(argument, int | float | complex | str | bytes | None) and len(repr(argument)) < _SHOWN_DIGITS:
        return repr(argument)
    try:
        array = describe(argument)
    except BufferError:
        array = None
    return str(array) if array else f"a {type(argument).__name__}"


def _struct_bytes(name: str, kind: Bytes, argument: Any) -> bytes:
    try:
        content = bytes(memoryview(argument).cast("B"))
    except TypeError:
        refuse(f"`{name}` expects {kind}, got {shown(argument)}", "pass bytes, or a ctypes or numpy struct")
    if len(content) != kind.size:
        is_map = kind.size == MAP_BYTES and kind.align % MAP_ALIGNMENT == 0 and describe(argument) is not None
        help = "if it is a tensor map, pass pd.tensor_map(array, box, swizzle=…)" if is_map else None
        refuse(f"`{name}` expects {kind}, got {len(content)} bytes", help)
    return content


def _pointer(name: str, kind: Type | Pointer, argument: object, stream: int) -> Array | int:
    if argument is None:
        return 0
    if isinstance(argument, int | np.integer) and not isinstance(argument, bool):
        return _address(name, kind, int(argument))
    array = _typed_array(name, kind, argument, stream)
    if isinstance(kind, Pointer) and array.pointer % alignment(kind):
        refuse(
            f"`{name}` expects {kind}, aligned to {alignment(kind)} bytes, but it starts at {array.pointer:#x}",
            "pass a copy; a view of bytes may be unaligned",
        )
    if not isinstance(argument, Strided) and not array.contiguous:
        refuse(
            f"`{name}` has shape {array.shape} and strides {array.strides}, but a kernel pointer needs row-major, "
            "contiguous memory",
            "pass a contiguous copy, or ptxdsl.arrays.strided(array) if other arguments pass the strides to the kernel",
        )
    return array


def _typed_array(name: str, kind: Type | Pointer | TensorMap, argument: object, stream: int) -> Array:
    """Return an array in memory that a kernel can reach, of the element type of the parameter if it has one."""
    try:
        array = describe(unwrapped(argument), stream)
    except BufferError as reason:
        refuse(
            f"`{name}` cannot be used: {reason}", _WHERE_TRACED.get(traced_by(unwrapped(argument)) or "", _WITH_MEMORY)
        )
    if is_masked(unwrapped(argument)):
        refuse(
            f"`{name}` is a masked array, and a kernel would ignore the mask",
            f"pass the values, {name}.data, or fill the masked elements: {name}.filled(0)",
        )
    if array is None:
        refuse(f"`{name}` expects {kind}, got {shown(argument)}", "pass an array")
    if not isinstance(kind, Type) and array.type not in elements(kind.element):
        dtype = _DTYPES.get(kind.element) or str(kind.element.dtype)
        refuse(f"`{name}` expects {kind}, got {array}", f"convert it to {dtype} first")
    return array


def _address(name: str, kind: Type | Pointer, address: int) -> int:
    if not 0 <= address < _ADDRESS_LIMIT:
        refuse(f"`{name}` expects {kind}; {address} is not an address")
    if isinstance(kind, Pointer) and address % alignment(kind):
        refuse(
            f"`{name}` expects {kind}; the number {address} is not a valid address of {kind.element}, which must be "
            f"a multiple of {alignment(kind)}",
            "pass the array itself; a number is taken as an address",
        )
    return address


def alignment(kind: Pointer) -> int:
    """Return the alignment in bytes that instructions on the elements need."""
    return max(1, kind.element.bits // 8)


@cache
def elements(element: Type) -> Collection[Type | None]:
    """Return the array types that a pointer to `element` takes: its own, and raw bits if numpy lacks the type."""
    if element.kind == "b":
        return {t for t in types.TYPES.values() if t.bits == max(8, element.bits) and t.kind in "usfb"}
    if element.kind == "x":
        return {types.lanes(element)[0], types.TYPES[f"u{element.bits}"]}
    if element.bits < 8:
        return {types.u8, types.s8}
    if element is types.tf32:
        return {types.f32}
    if element in (types.bf16, types.e4m3, types.e5m2):
        return {element, types.TYPES[f"u{element.bits}"]}
    return {element}


def _scalar(name: str, kind: Type, argument: object) -> int | float:
    if isinstance(argument, np.generic):
        argument = _from_numpy_scalar(kind, argument)
    if isinstance(argument, int):
        return _float(name, kind, argument) if kind.is_float else _integer(name, kind, argument)
    if traced_by(argument) == "JAX":
        help = "launch numbers must be Python numbers: name it in `static_argnums` of jax.jit, or take it from a shape"
        refuse(f"`{name}` expects {kind}; it is traced by JAX and has no value yet", help)
    if isinstance(argument, float) or (kind.is_float and hasattr(argument, "__float__") and not _is_array(argument)):
        return _float(name, kind, float(argument))
    advice = f"pass its value: int({name}) or float({name})" if _is_array(argument) else "pass a Python number"
    refuse(f"`{name}` expects {kind}, got {shown(argument)}", advice)


def _is_array(argument: object) -> bool:
    try:
        return describe(argument) is not None
    except BufferError:
        return True


def _from_numpy_scalar(kind: Type, scalar: np.generic) -> Any:
    """Return the Python number, or the bits of a float for a parameter of untyped bits of the same width."""
    if kind.kind == "b" and scalar.dtype.kind == "f" and scalar.itemsize == kind.bytes:
        return int.from_bytes(scalar.tobytes(), "little")
    return scalar.item()


def _integer(name: str, kind: Type, number: int) -> int:
    any_sign = kind.kind == "b" or isinstance(kind, SignlessType)  # untyped bits may hold signed numbers
    low = -(1 << (kind.bits - 1)) if any_sign or kind.is_signed else 0
    high = (1 << (kind.bits - kind.is_signed)) - 1
    if not low <= number <= high:
        signed = f"declare a signed parameter for numbers that may be negative: `{name}: s{kind.bits}`"
        help = signed if kind.kind == "u" and number < 0 else "use a wider parameter"
        refuse(f"`{name}` expects {kind}; {number} is out of range ({low} to {high})", help)
    return number % (1 << kind.bits) if any_sign else int(number)


_FLOAT_BITS = {32: ("=f", "=I"), 64: ("=d", "=Q")}


def _float(name: str, kind: Type, number: float) -> int | float:
    """Return a float for a float parameter, or its bits for untyped 32 or 64 bits; an int must be exact."""
    bits_of = _FLOAT_BITS.get(kind.bits) if kind.kind == "b" else None
    if not (kind.is_float or bits_of):
        refuse(f"`{name}` expects an integer ({kind}), got {number!r}", f"pass int({name})")
    try:
        if bits_of:
            return int(struct.unpack(bits_of[1], struct.pack(bits_of[0], number))[0])
        value, exact = _rounded(kind, number)
    except (OverflowError, struct.error):
        refuse(f"`{name}` expects {kind}; {number!r} is out of range", "use a wider parameter")
    if isinstance(number, int) and exact != number:
        refuse(f"`{name}` expects {kind}, which cannot represent {number} exactly", f"pass float({name}) to round it")
    return value


def _rounded(kind: Type, number: float) -> tuple[int | float, float]:
    """Return a number as `struct` packs it for a float parameter, and its value after rounding."""
    if kind is types.bf16:
        try:
            bits = 0x7FFF if math.isnan(number) else literal.encode(float(number), kind).value  # as GPUs write it
        except ValueError:
            raise OverflowError from None
        return bits, literal.decode(bits, kind)
    return number, float(struct.unpack(f"={code(kind)}", struct.pack(f"={code(kind)}", number))[0])
