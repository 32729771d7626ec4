"""The arguments of a launch, checked before anything runs: the same rules on the emulator and on a GPU.

An argument that does not fit is refused by its name, with what was found, what was expected and how to mend it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from . import types
from .arrays import HOST, Array, Strided, describe, unwrapped
from .errors import LaunchError, caller
from .types import Pointer, Type

GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMITS = (1024, 1024, 64)
THREADS_PER_BLOCK = 1024
CLUSTER_BLOCKS = 16
_ADDRESS_LIMIT = 1 << 64
_SHOWN_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Bytes:
    """A kernel parameter that is a struct by value (`.param .align 8 .b8 p[24]`), given as its bytes."""

    size: int
    align: int = 1

    def __str__(self) -> str:
        return f"a struct of {self.size} bytes"


Kind: TypeAlias = Type | Pointer | Bytes
Value: TypeAlias = Array | int | float | bytes


class Shape(NamedTuple):
    """Extents in x, y, z of a launch; a grid counts blocks also where these come in clusters."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return math.prod(self.block)


def launch_shape(
    grid: object, block: object, shared_bytes: object = 0, cluster: object = None, cooperative: bool = False
) -> Shape:
    """The shape of a launch from what a user writes: ints or tuples of one to three ints.

    Raises LaunchError for an extent that is zero or too large, and for a grid that its clusters do not divide.
    """
    shape = Shape(
        _extents("grid", grid, GRID_LIMITS),
        _extents("block", block, BLOCK_LIMITS),
        _byte_count(shared_bytes),
        None if cluster is None else _extents("cluster", cluster, (CLUSTER_BLOCKS,) * 3),
        bool(cooperative),
    )
    if shape.threads > THREADS_PER_BLOCK:
        refuse(
            f"a block of {shape.block} has {shape.threads} threads; {THREADS_PER_BLOCK} is the most",
            "use a smaller block and a larger grid",
        )
    if shape.cluster:
        _check_cluster(shape.grid, shape.cluster)
    return shape


def _extents(what: str, value: Any, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    given = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(given) <= 3 or not all(isinstance(v, int | np.integer) for v in given):
        refuse(f"{what} is {value!r}; it must be an int, or a tuple of one to three ints")
    x, y, z = (*map(int, given), 1, 1)[:3]
    extents = x, y, z
    if min(extents) < 1:
        help = "skip the launch if there is nothing to do" if what == "grid" else None
        refuse(f"{what} is {extents}: every extent must be at least 1", help)
    for axis, extent, limit in zip("xyz", extents, limits, strict=True):
        if extent > limit:
            refuse(f"{what} is {extents}: its {axis} extent may be at most {limit}")
    return extents


def _byte_count(value: Any) -> int:
    if not isinstance(value, int | np.integer) or value < 0:
        refuse(f"shared_bytes is {value!r}; it must be the number of bytes of dynamic shared memory, 0 or more")
    return int(value)


def _check_cluster(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> None:
    if math.prod(cluster) > CLUSTER_BLOCKS:
        refuse(f"a cluster of {cluster} has {math.prod(cluster)} blocks; {CLUSTER_BLOCKS} is the most")
    if any(extent % part for extent, part in zip(grid, cluster, strict=True)):
        refuse(
            f"a grid of {grid} blocks does not divide into clusters of {cluster}",
            "round the grid up to whole clusters, and let the blocks beyond the problem return",
        )


def refuse(message: str, help: str | None = None) -> NoReturn:
    """Raise LaunchError at the user's call."""
    raise LaunchError(message, at=caller(), help=help)


# struct codes of parameters whose Python value is their value; a bf16 has to be converted to its bits first.
_CODES = {
    **{f"{k}{n}": code for n, code in zip((8, 16, 32, 64), "BHIQ", strict=True) for k in "ub"},
    **{f"s{n}": code for n, code in zip((8, 16, 32, 64), "bhiq", strict=True)},
    "f16": "e", "f32": "f", "f64": "d", "tf32": "f", "bf16": "H",
}  # fmt: skip


class Signature:
    """The parameters of a kernel, and the check of arguments against them.

    `written` names the pointer parameters through which the kernel may write; their arrays must be writable and
    must not overlap another argument. Build it once a kernel: checking is then a few microseconds an argument.
    """

    def __init__(
        self, kernel: str, parameters: Sequence[tuple[str, Kind]], written: Collection[str] = frozenset()
    ) -> None:
        self.kernel = kernel
        self.names = tuple(name for name, _ in parameters)
        self.kinds = tuple(kind for _, kind in parameters)
        self.written = frozenset(written)
        self._codes = tuple(map(_code, self.kinds))

    @property
    def parameters(self) -> tuple[tuple[str, Kind], ...]:
        return tuple(zip(self.names, self.kinds, strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether `struct` alone turns every checked argument into its parameter."""
        return not any(isinstance(kind, Bytes) or kind is types.bf16 for kind in self.kinds)

    def slots(self) -> tuple[struct.Struct, tuple[int, ...]]:
        """How `struct` packs all parameters, each on a multiple of 8 bytes, and the offset of each."""
        sizes = [(struct.calcsize(f"={code}") + 7) // 8 * 8 for code in self._codes]
        padded = [f"{c}{size - struct.calcsize(f'={c}')}x" for c, size in zip(self._codes, sizes, strict=True)]
        return struct.Struct("=" + "".join(padded)), tuple(sum(sizes[:n]) for n in range(len(sizes)))

    def pack(self, values: Sequence[int | float | bytes]) -> list[bytes]:
        """The bytes of each parameter, from checked values in which arrays are replaced by their addresses."""
        return [struct.pack(f"={code}", value) for code, value in zip(self._codes, values, strict=True)]

    def check(
        self,
        arguments: Sequence[object],
        device: int | None = None,
        stream: int = 0,
        locate: Callable[[int], int | None] = lambda address: None,
    ) -> list[Value]:
        """One value a parameter: an Array, an address, a number or bytes that fit the parameter.

        `device` is HOST for the emulator or the number of a GPU; None is the GPU of the first array. `locate` gives
        the GPU of an address, for arrays that do not say. Raises LaunchError for the first argument that does not fit.
        """
        self._count(arguments)
        values = [self._value(*each, stream) for each in zip(self.names, self.kinds, arguments, strict=True)]
        values = [
            replace(value, device=locate(value.pointer)) if isinstance(value, Array) and value.device is None else value
            for value in values
        ]
        self._check_devices(values, device)
        self._check_written(values)
        return values

    def _count(self, arguments: Sequence[object]) -> None:
        if len(arguments) != len(self.names):
            takes = f"{len(self.names)} argument{'s' * (len(self.names) != 1)}"
            refuse(
                f"{self.kernel} takes {takes}, {len(arguments)} given",
                f"call it with ({', '.join(f'{name}: {kind}' for name, kind in self.parameters)})",
            )

    def _value(self, name: str, kind: Kind, argument: object, stream: int) -> Value:
        if isinstance(kind, Bytes):
            return _struct_bytes(name, kind, argument)
        if isinstance(kind, Pointer) or (kind.bits == 64 and not kind.is_float and not _is_number(argument)):
            return _pointer(name, kind, argument, stream)
        return _scalar(name, kind, argument)

    def _check_devices(self, values: Sequence[Value], device: int | None) -> None:
        arrays = [(name, v) for name, v in zip(self.names, values, strict=True) if isinstance(v, Array)]
        if device is None:
            device = next((a.device for _, a in arrays if a.device not in (HOST, None)), 0)
        for name, array in arrays:
            if array.device != device and (array.device is not None or device == HOST):
                refuse(f"`{name}` is {array} {_place(array.device)}; this launch runs {_runs(device)}", _move(device))
        if device == HOST:
            self._check_no_addresses(values)

    def _check_no_addresses(self, values: Sequence[Value]) -> None:
        for name, kind, value in zip(self.names, self.kinds, values, strict=True):
            if isinstance(kind, Pointer) and isinstance(value, int) and value != 0:
                refuse(
                    f"`{name}` is the address {value:#x}; the emulator has no memory there",
                    "pass the numpy array itself",
                )

    def _check_written(self, values: Sequence[Value]) -> None:
        arrays = {n: v for n, v in zip(self.names, values, strict=True) if isinstance(v, Array)}
        for name, array in arrays.items():
            if name in self.written and array.readonly:
                refuse(f"`{name}` is written by {self.kernel}, but is read-only", "pass a copy that may be written")
        for name, other in product(arrays, arrays):
            if name in self.written and name != other and overlap(arrays[name], arrays[other]):
                refuse(
                    f"`{name}` is written by {self.kernel} and shares memory with `{other}`",
                    "give the output memory of its own; threads run in no order",
                )


def _code(kind: Kind) -> str:
    if isinstance(kind, Bytes):
        return f"{kind.size}s"
    if isinstance(kind, Pointer):
        return "Q"
    return _CODES.get(kind.name) or _CODES[types.bits(kind.bits).name]


def _is_number(argument: object) -> bool:
    return isinstance(argument, int | float | np.generic)


def _place(device: int | None) -> str:
    if device is None:
        return "on a GPU"
    return "in host memory" if device == HOST else f"on cuda:{device}"


def _runs(device: int) -> str:
    return "on the emulator" if device == HOST else f"on cuda:{device}"


def _move(device: int) -> str:
    if device == HOST:
        return "pass numpy arrays only, or only arrays of one GPU"
    return f"move it to cuda:{device}; with numpy arrays only, the kernel runs on the emulator"


def _shown(argument: object) -> str:
    """An argument in an error: arrays by their type and shape, numbers and text as written, others by their class."""
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
        refuse(f"`{name}` takes {kind}; it is {_shown(argument)}", "pass bytes, or a ctypes or numpy struct")
    if len(content) != kind.size:
        refuse(f"`{name}` takes {kind}; {len(content)} were given")
    return content


def _pointer(name: str, kind: Type | Pointer, argument: object, stream: int) -> Array | int:
    if argument is None:
        return 0
    if isinstance(argument, int | np.integer) and not isinstance(argument, bool):
        return _address(name, kind, int(argument))
    try:
        array = describe(unwrapped(argument), stream)
    except BufferError as reason:
        refuse(f"`{name}` cannot be used: {reason}", "pass an array with memory of its own on the host or a GPU")
    if array is None:
        refuse(f"`{name}` takes {kind}; it is {_shown(argument)}", "pass an array")
    if isinstance(kind, Pointer):
        _check_element(name, kind, array)
        _check_alignment(name, kind, array.pointer)
    if not isinstance(argument, Strided) and not array.contiguous:
        refuse(
            f"`{name}` has shape {array.shape} and strides {array.strides}: a kernel's pointer takes row-major, "
            "contiguous memory",
            "pass a contiguous copy, or strided(array) if other arguments tell the kernel its strides",
        )
    return array


def _address(name: str, kind: Type | Pointer, address: int) -> int:
    if not 0 <= address < _ADDRESS_LIMIT:
        refuse(f"`{name}` takes {kind}; {address} is no address")
    if isinstance(kind, Pointer):
        _check_alignment(name, kind, address)
    return address


def _check_element(name: str, kind: Pointer, array: Array) -> None:
    if array.type not in _elements(kind.element):
        refuse(f"`{name}` takes {kind}; it is {array}", f"convert it to {_dtype_name(kind.element)} first")


def _check_alignment(name: str, kind: Pointer, address: int) -> None:
    width = alignment(kind)
    if address % width:
        refuse(
            f"`{name}` takes {kind}, whose elements lie at multiples of {width} bytes; it starts at {address:#x}",
            "pass a copy; slices of bytes need not be aligned",
        )


def alignment(kind: Pointer) -> int:
    """The alignment in bytes that instructions on its elements need."""
    return max(1, kind.element.bits // 8)


@cache
def _elements(element: Type) -> Collection[Type | None]:
    """The array types that a pointer to `element` takes: its own, and raw bits where numpy has no such type."""
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


def _dtype_name(element: Type) -> str:
    names = {types.bf16: "bfloat16", types.e4m3: "float8_e4m3fn", types.e5m2: "float8_e5m2"}
    return names.get(element) or str(element.dtype)


def _scalar(name: str, kind: Type, argument: Any) -> int | float:
    if isinstance(argument, np.generic):
        argument = _from_numpy_scalar(kind, argument)
    if isinstance(argument, int):
        return _float(name, kind, argument) if kind.is_float else _integer(name, kind, argument)
    if isinstance(argument, float) or (kind.is_float and hasattr(argument, "__float__") and not _is_array(argument)):
        return _float(name, kind, float(argument))
    advice = f"pass its value (int({name}) or float({name}))" if _is_array(argument) else "pass a Python number"
    refuse(f"`{name}` takes {kind}; it is {_shown(argument)}", advice)


def _is_array(argument: object) -> bool:
    try:
        return describe(argument) is not None
    except BufferError:
        return True


def _from_numpy_scalar(kind: Type, scalar: np.generic) -> Any:
    """The Python number; the bits of a float of the parameter's width where that takes untyped bits."""
    if kind.kind == "b" and scalar.dtype.kind == "f" and scalar.itemsize == kind.bytes:
        return int.from_bytes(scalar.tobytes(), "little")
    return scalar.item()


def _integer(name: str, kind: Type, number: int) -> int:
    low = -(1 << (kind.bits - 1)) if kind.kind in "sb" else 0  # bits may be meant as signed
    high = (1 << (kind.bits - kind.is_signed)) - 1
    if not low <= number <= high:
        refuse(f"`{name}` takes {kind}; {number} does not fit ({low} to {high})", "use a wider parameter")
    return number % (1 << kind.bits) if kind.kind == "b" else int(number)


_FLOAT_BITS = {32: ("=f", "=I"), 64: ("=d", "=Q")}


def _float(name: str, kind: Type, number: float) -> int | float:
    """A float for a float parameter, its bits for an untyped one of 32 or 64 bits."""
    bits_of = _FLOAT_BITS.get(kind.bits) if kind.kind == "b" else None
    if not (kind.is_float or bits_of):
        refuse(f"`{name}` takes {kind}, an integer; it is {number!r}", f"pass int({name})")
    try:
        if kind is types.bf16:
            return _bf16_bits(number)
        if bits_of:
            return int(struct.unpack(bits_of[1], struct.pack(bits_of[0], number))[0])
        struct.pack(f"={_code(kind)}", number)
        return number
    except (OverflowError, struct.error):
        refuse(f"`{name}` takes {kind}; {number!r} does not fit", "use a wider parameter")


def _bf16_bits(number: float) -> int:
    """Round to nearest, ties to even; OverflowError for a finite number beyond the largest bf16."""
    bits = int(struct.unpack("=I", struct.pack("=f", number))[0])
    if math.isnan(number):
        return 0x7FFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and not math.isinf(number):
        raise OverflowError
    return rounded


def overlap(one: Array, other: Array) -> bool:
    """Whether two arrays share a byte; interleaved views do not. Where that is too hard to tell, they do."""
    (start, end), (other_start, other_end) = one.span, other.span
    if end <= other_start or other_end <= start or start == end or other_start == other_end:
        return False
    try:
        return bool(np.shares_memory(one.view(), other.view(), max_work=10_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
