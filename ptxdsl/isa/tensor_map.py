"""Tensor maps: a tensor in global memory, and the box that one instruction copies.

A tensor map is 128 bytes that the driver encodes (CUDA driver API, "cuTensorMapEncodeTiled", and
"cuTensorMapEncodeIm2col" for im2col); NVIDIA does not document their layout. The emulator stores a
`TensorMapDescription` in a layout of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ..types import TYPES, Type

MAP_BYTES = 128
MAP_ALIGNMENT = 64
MOST_DIMENSIONS = 5
MOST_IN_BOX = 256  # elements of a box along a dimension
MOST_PIXELS = 1024  # of a column
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # bits of a pixel box corner, by tensor rank
OFFSET_BITS = {3: 16, 4: 8, 5: 5}  # bits of an im2col offset, by tensor rank
MOST_ELEMENTS = 1 << 32  # maximum extent of a tensor
MOST_STRIDE = 1 << 40  # exclusive bound of strides in bytes
MOST_ELEMENT_STRIDE = 8
SWIZZLES = (0, 32, 64, 128)
INTERLEAVES = (0, 16, 32)
FILLS = ("zeros", "nan")
PROMOTIONS = (0, 64, 128, 256)
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "tf32")  # the driver's names
ALIASES = {
    "b8": "u8", "s8": "u8", "e4m3": "u8", "e5m2": "u8", "b16": "u16", "s16": "u16", "b32": "u32", "b64": "u64",
}  # fmt: skip
"""Types that the driver does not support, and the types used to copy their bits."""

FIELD_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "tf32", "tf32")
"""Types by their number in tensormap.replace; those that flush subnormals follow the others."""

_MAGIC = b"ptxdsl\0\1"
_LAYOUT = struct.Struct("<8s Q 5I 4Q 5I 5H 6B")
_PIXEL_LAYOUT = struct.Struct("<2H 3h 3h")  # the im2col part, zeros for a tiled map
_TYPES = (*ELEMENTS, *ALIASES)


@dataclass(frozen=True, slots=True)
class PixelBox:
    """The pixels that an im2col copy loads: `channels` of each of `pixels`, which run through the images of a batch.

    Along width, height and depth (in this order) the corner of the filter moves from `lower` to extent - 1 + `upper`.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int

    def problems(self, dims: tuple[int, ...], interleaved: bool = False) -> Iterator[str]:
        """Yield, as sentences, the reasons why the driver would refuse it for a tensor of these extents."""
        rank, first = len(dims), 0 if interleaved else 1
        if rank not in CORNER_BITS:
            yield f"im2col takes a tensor of 3 to {MOST_DIMENSIONS} dimensions; this one has {rank}"
            return
        for name, corner in (("lower", self.lower), ("upper", self.upper)):
            if len(corner) != rank - 2:
                yield f"`{name}` has {len(corner)} numbers; im2col of a tensor of {rank} dimensions takes {rank - 2}"
                return
            limit = 1 << (CORNER_BITS[rank] - 1)
            for n in corner:
                if not -limit <= n < limit:
                    yield f"`{name}` has {n}; with {rank} dimensions the range is {-limit} to {limit - 1}"
        for d, (extent, low, high) in enumerate(zip(dims[first:], self.lower, self.upper, strict=False), first):
            if extent + high - low < 1:
                yield f"the pixel box is empty along dimension {d}: from {low} to {extent - 1 + high}"
        if not 1 <= self.channels <= MOST_IN_BOX:
            yield f"a pixel has {self.channels} channels; the range is 1 to {MOST_IN_BOX}"
        if not 1 <= self.pixels <= MOST_PIXELS:
            yield f"a column has {self.pixels} pixels; the range is 1 to {MOST_PIXELS}"


@dataclass(frozen=True, slots=True)
class TensorMapDescription:
    """A tensor in global memory and the box that one instruction copies.

    `address` is the address of element (0, …); `dims` are the extents in elements, innermost first, of 1 to 5
    dimensions; `strides` are in bytes, for all dimensions except the innermost, which is contiguous. `box` is the
    extent that is copied; along dimension d only every `element_strides[d]`-th element is. `swizzle` is the span in
    bytes within which 16-byte chunks are permuted in shared memory, 0 for none. `fill` is the value of elements outside
    the tensor, "zeros" or "nan". `l2_promotion` is the number of bytes that the L2 cache fetches, 0 for the default. An
    im2col map has a `pixel_box` and no `box`.

    With an `interleave` of 16 or 32 bytes, channels are stored in slices of that size, contiguous along the innermost
    dimension. The dimensions are then width, height and depth if any, slices of channels, and images, innermost first.
    A copy loads one slice of channels, regardless of the box.
    """

    address: int
    type: Type
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zeros"
    l2_promotion: int = 0
    pixel_box: PixelBox | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def first_axis(self) -> int:
        """The dimension that is the image width: after the channels, or the first if channels are interleaved."""
        return 0 if self.interleave else 1

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The number of elements that one instruction copies along each dimension, prefixed by the elements of a slice
        if channels are interleaved; for im2col, channels and pixels.
        """
        slice_elements = self.interleave // self.type.bytes
        if self.pixel_box is not None:
            return slice_elements or self.pixel_box.channels, self.pixel_box.pixels
        along = zip(self.box, self.element_strides, strict=True)
        extents = tuple(n if d < self.first_axis else -(-n // step) for d, (n, step) in enumerate(along))
        return (slice_elements, *extents[:-2], 1, extents[-1]) if self.interleave else extents

    @property
    def inner_bytes(self) -> int:
        """The bytes of the innermost dimension of a box, contiguous in shared memory."""
        return self.interleave or self.box_shape[0] * self.type.bytes

    @property
    def box_bytes(self) -> int:
        """The bytes that one copy writes to shared memory and completes at its mbarrier."""
        count = self.type.bytes
        for extent in self.box_shape:
            count *= extent
        return count

    def problems(self) -> Iterator[str]:
        """Yield, as sentences, the reasons why the driver would refuse the map."""
        if str(self.type) not in _TYPES:
            yield f"a tensor map has no element type {self.type}; it takes {', '.join(ELEMENTS)} and types of 8 bits"
            return
        if not 1 <= self.rank <= MOST_DIMENSIONS:
            yield f"a tensor map has 1 to {MOST_DIMENSIONS} dimensions, this one {self.rank}"
            return
        lengths = {"strides": self.rank - 1, "element_strides": self.rank}
        lengths["box"] = self.rank if self.pixel_box is None else 0
        wrong = [name for name, length in lengths.items() if len(getattr(self, name)) != length]
        for name in wrong:
            count, length = len(getattr(self, name)), lengths[name]
            yield f"`{name}` has {count} numbers; a tensor of {self.rank} dimensions takes {length}"
        if not wrong:
            yield from self._mode_problems()
            yield from self._tensor_problems()
            yield from self._box_problems()

    def _mode_problems(self) -> Iterator[str]:
        choices = {"swizzle": SWIZZLES, "interleave": INTERLEAVES, "fill": FILLS, "l2_promotion": PROMOTIONS}
        for name, allowed in choices.items():
            if (value := getattr(self, name)) not in allowed:
                yield f"`{name}` is {value!r}; it is one of {', '.join(map(repr, allowed))}"
        if self.interleave and self.rank < 3:
            yield f"`interleave` requires 3 dimensions or more; the tensor has {self.rank}"
        if self.interleave == 32 and self.swizzle != 32:
            yield f"`interleave` of 32 bytes requires a `swizzle` of 32, not {self.swizzle}"
        if self.fill == "nan" and not self.type.is_float:
            yield f"`fill` is 'nan', and {self.type} has no NaN"

    def _tensor_problems(self) -> Iterator[str]:
        unit = 32 if self.interleave == 32 else 16
        if self.address % unit:
            yield f"the tensor begins at {self.address:#x}, not a multiple of {unit} bytes"
        for d, extent in enumerate(self.dims):
            if not 1 <= extent <= MOST_ELEMENTS:
                yield f"dimension {d} has {extent} elements; a tensor map takes 1 to 2^32"
        for d, stride in enumerate(self.strides, 1):
            if stride % unit:
                yield f"the stride of dimension {d} is {stride} bytes, not a multiple of {unit}"
            elif not 0 <= stride < MOST_STRIDE:
                yield f"the stride of dimension {d} is {stride} bytes; a tensor map takes less than 2^40"

    def _box_problems(self) -> Iterator[str]:
        if self.pixel_box is not None:
            yield from self.pixel_box.problems(self.dims, bool(self.interleave))
        for d, extent in enumerate(self.box):
            if not 1 <= extent <= MOST_IN_BOX:
                yield f"the box has {extent} elements along dimension {d}; the range is 1 to {MOST_IN_BOX}"
        for d, step in enumerate(self.element_strides):
            if not 1 <= step <= MOST_ELEMENT_STRIDE:
                yield f"the element stride of dimension {d} is {step}; the range is 1 to {MOST_ELEMENT_STRIDE}"
        inner = self.inner_bytes
        if self.interleave and self.box:
            inner = self.box[0] * self.type.bytes  # the driver checks the width too
        if inner % 16:
            yield f"the innermost dimension of the box has {inner} bytes, not a multiple of 16"
        if self.swizzle in SWIZZLES[1:] and inner > self.swizzle and not self.interleave:
            limit = f"a swizzle of {self.swizzle} limits it to {self.swizzle}"
            yield f"the innermost dimension of the box has {inner} bytes; {limit}"

    def encode(self) -> bytes:
        """Return the emulator's 128-byte encoding.

        Raise struct.error for values that a tensor map cannot hold.
        """
        modes = (
            _TYPES.index(str(self.type)), self.rank, SWIZZLES.index(self.swizzle), INTERLEAVES.index(self.interleave),
            FILLS.index(self.fill), PROMOTIONS.index(self.l2_promotion),
        )  # fmt: skip
        last = [extent - 1 for extent in self.dims]
        numbers = (*_padded(last, 5), *_padded(self.strides, 4), *_padded(self.box, 5))
        packed = _LAYOUT.pack(_MAGIC, self.address, *numbers, *_padded(self.element_strides, 5), *modes)
        pixels = b""
        if (p := self.pixel_box) is not None:
            pixels = _PIXEL_LAYOUT.pack(p.channels, p.pixels, *_padded(p.lower, 3), *_padded(p.upper, 3))
        return (packed + pixels).ljust(MAP_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> TensorMapDescription:
        """Invert `encode`; raise ValueError for bytes that are not a tensor map."""
        if len(data) < MAP_BYTES or data[: len(_MAGIC)] != _MAGIC:
            raise ValueError("not a tensor map")
        _, address, *numbers = _LAYOUT.unpack_from(data)
        limits = (len(_TYPES), MOST_DIMENSIONS + 1, len(SWIZZLES), len(INTERLEAVES), len(FILLS), len(PROMOTIONS))
        modes = numbers[19:]
        if any(mode >= limit for mode, limit in zip(modes, limits, strict=True)):
            raise ValueError("not a tensor map")
        type_index, rank, swizzle, interleave, fill, promotion = modes
        channels, pixels, *corners = _PIXEL_LAYOUT.unpack_from(data, _LAYOUT.size)
        pixel_box = None
        if channels:
            pixel_box = PixelBox(tuple(corners[: rank - 2]), tuple(corners[3 : rank + 1]), channels, pixels)
        return cls(
            address, TYPES[_TYPES[type_index]], tuple(n + 1 for n in numbers[:rank]), tuple(numbers[5 : 4 + rank]),
            () if pixel_box else tuple(numbers[9 : 9 + rank]), tuple(numbers[14 : 14 + rank]), SWIZZLES[swizzle],
            INTERLEAVES[interleave], FILLS[fill], PROMOTIONS[promotion], pixel_box,
        )  # fmt: skip


BLANK = TensorMapDescription(0, TYPES["u8"], (1,) * 5, (16,) * 4, (1,) * 5, (1,) * 5)
"""The value of 128 zero bytes for tensormap.replace. It has the largest rank, so fields may be set before the rank."""


def _padded(numbers: tuple[int, ...] | list[int], count: int) -> list[int]:
    return [*numbers, *[0] * (count - len(numbers))]


@lru_cache(maxsize=1024)
def decoded(data: bytes) -> TensorMapDescription | None:
    """Decode 128 bytes; None if they are not a tensor map."""
    try:
        return TensorMapDescription.decode(data)
    except ValueError:
        return None


def replaced(d: TensorMapDescription, field: str, index: int, value: int) -> TensorMapDescription:
    """Return a description with one field changed, by the field names and encoding of tensormap.replace."""
    match field:
        case "global_address":
            return replace(d, address=value)
        case "rank":
            return _of_rank(d, value + 1)
        case "box_dim":
            return replace(d, box=_changed(d.box, index, value))
        case "global_dim":
            return replace(d, dims=_changed(d.dims, index, value or MOST_ELEMENTS))
        case "global_stride":
            return replace(d, strides=_changed(d.strides, index, value))
        case "element_stride":
            return replace(d, element_strides=_changed(d.element_strides, index, value))
        case "elemtype":
            return replace(d, type=TYPES[FIELD_ELEMENTS[value]])
        case "interleave_layout":
            return replace(d, interleave=INTERLEAVES[value])
        case "swizzle_mode":
            return replace(d, swizzle=SWIZZLES[value])
        case "fill_mode":
            return replace(d, fill=FILLS[value])
    return d


def _changed(numbers: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return tuple(value if n == index else number for n, number in enumerate(numbers))


def _of_rank(d: TensorMapDescription, rank: int) -> TensorMapDescription:
    """Return a description of another rank; added dimensions have extent 1."""
    ones = (1,) * rank
    dims, box, steps = ((*numbers, *ones)[:rank] for numbers in (d.dims, d.box, d.element_strides))
    strides = (*d.strides, *(16,) * rank)[: rank - 1]
    return replace(d, dims=dims, strides=strides, box=box, element_strides=steps)
