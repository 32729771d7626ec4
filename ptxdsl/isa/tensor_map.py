"""What a tensor map says: where a tensor lies in global memory, and the box of it that one instruction copies.

A tensor map is 128 bytes that the driver encodes (CUDA driver API, "cuTensorMapEncodeTiled", and for columns of pixels
of images "cuTensorMapEncodeIm2col"); their meaning is NVIDIA's secret. On the emulator they hold a
`TensorMapDescription`, in a layout of ours.
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
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # of a number of a pixel box's corners, by the dimensions of the tensor
OFFSET_BITS = {3: 16, 4: 8, 5: 5}  # of an offset of im2col copies
MOST_ELEMENTS = 1 << 32  # of a tensor along a dimension
MOST_STRIDE = 1 << 40  # bytes; strides are less
MOST_ELEMENT_STRIDE = 8
SWIZZLES = (0, 32, 64, 128)
INTERLEAVES = (0, 16, 32)
FILLS = ("zeros", "nan")
PROMOTIONS = (0, 64, 128, 256)
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "tf32")  # the driver's names
ALIASES = {
    "b8": "u8", "s8": "u8", "e4m3": "u8", "e5m2": "u8", "b16": "u16", "s16": "u16", "b32": "u32", "b64": "u64",
}  # fmt: skip
"""Types that the driver does not know, and those under which their bits are copied."""

FIELD_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "tf32", "tf32")
"""Types by their numbers in tensormap.replace, where those that flush subnormals stand behind the others."""

_MAGIC = b"ptxdsl\0\1"
_LAYOUT = struct.Struct("<8s Q 5I 4Q 5I 5H 6B")
_PIXEL_LAYOUT = struct.Struct("<2H 3h 3h")  # behind that, zeros for a map of tiles
_TYPES = (*ELEMENTS, *ALIASES)


@dataclass(frozen=True, slots=True)
class PixelBox:
    """What an im2col copy brings: `channels` of each of `pixels`, which run through the images of a batch.

    Along width, height and depth (in this order) the corner of a filter stands at `lower` first and at extent - 1 +
    `upper` last.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int

    def problems(self, dims: tuple[int, ...], interleaved: bool = False) -> Iterator[str]:
        """What the driver would refuse for a tensor of these extents, each a sentence."""
        rank, first = len(dims), 0 if interleaved else 1
        if rank not in CORNER_BITS:
            yield f"im2col takes a tensor of 3 to {MOST_DIMENSIONS} dimensions, this one has {rank}"
            return
        for name, corner in (("lower", self.lower), ("upper", self.upper)):
            if len(corner) != rank - 2:
                yield f"`{name}` has {len(corner)} numbers; im2col of a tensor of {rank} dimensions takes {rank - 2}"
                return
            limit = 1 << (CORNER_BITS[rank] - 1)
            for n in corner:
                if not -limit <= n < limit:
                    yield f"`{name}` has {n}; with {rank} dimensions it is from {-limit} to {limit - 1}"
        for d, (extent, low, high) in enumerate(zip(dims[first:], self.lower, self.upper, strict=False), first):
            if extent + high - low < 1:
                yield f"the pixel box is empty along dimension {d}: from {low} to {extent - 1 + high}"
        if not 1 <= self.channels <= MOST_IN_BOX:
            yield f"a pixel has {self.channels} channels; it can have 1 to {MOST_IN_BOX}"
        if not 1 <= self.pixels <= MOST_PIXELS:
            yield f"a column has {self.pixels} pixels; it can have 1 to {MOST_PIXELS}"


@dataclass(frozen=True, slots=True)
class TensorMapDescription:
    """A tensor in global memory and the box of it that one instruction copies.

    `address` is that of element (0, …); `dims` are the extents in elements, innermost first, of 1 to 5 dimensions;
    `strides` the bytes from one element to the next along all dimensions but the innermost, whose elements lie side by
    side. `box` is what is copied, along dimension d only every `element_strides[d]`-th element of it. `swizzle` is the
    bytes of the span in which 16-byte chunks change places in shared memory, 0 for none. `fill` is what elements
    outside of the tensor read as, "zeros" or "nan". `l2_promotion` is the bytes that the L2 cache fetches, 0 for the
    default. A map for im2col copies has a `pixel_box`, and no `box`.

    With an `interleave` of 16 or 32 bytes a tensor has slices of so many bytes of channels, side by side along the
    innermost dimension, and dimensions width, height and depth if any, slices of channels, images, innermost first. A
    copy brings one slice of channels, whatever the box says of them.
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
        """The dimension that is the width of images: behind the channels, or the first where they are interleaved."""
        return 0 if self.interleave else 1

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The elements that one instruction copies along each dimension, and before them, if channels are interleaved,
        those of a slice; of im2col, channels and pixels."""
        slice_elements = self.interleave // self.type.bytes
        if self.pixel_box is not None:
            return slice_elements or self.pixel_box.channels, self.pixel_box.pixels
        along = zip(self.box, self.element_strides, strict=True)
        extents = tuple(n if d < self.first_axis else -(-n // step) for d, (n, step) in enumerate(along))
        return (slice_elements, *extents[:-2], 1, extents[-1]) if self.interleave else extents

    @property
    def inner_bytes(self) -> int:
        """The bytes of the innermost dimension of a box, which lie side by side in shared memory."""
        return self.interleave or self.box_shape[0] * self.type.bytes

    @property
    def box_bytes(self) -> int:
        """The bytes that one copy writes to shared memory, and completes at its mbarrier."""
        count = self.type.bytes
        for extent in self.box_shape:
            count *= extent
        return count

    def problems(self) -> Iterator[str]:
        """What the driver would refuse, each a sentence."""
        if str(self.type) not in _TYPES:
            yield f"a tensor map has no elements of {self.type}; it takes {', '.join(ELEMENTS)} and types of 8 bits"
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
            yield f"`interleave` is for 3 dimensions or more, and the tensor has {self.rank}"
        if self.interleave == 32 and self.swizzle != 32:
            yield f"`interleave` of 32 bytes goes with a `swizzle` of 32, not {self.swizzle}"
        if self.fill == "nan" and not self.type.is_float:
            yield f"`fill` is 'nan', and {self.type} has no NaN"

    def _tensor_problems(self) -> Iterator[str]:
        unit = 32 if self.interleave == 32 else 16
        if self.address % unit:
            yield f"the tensor begins at {self.address:#x}, which is no multiple of {unit} bytes"
        for d, extent in enumerate(self.dims):
            if not 1 <= extent <= MOST_ELEMENTS:
                yield f"dimension {d} has {extent} elements; a tensor map takes 1 to 2^32"
        for d, stride in enumerate(self.strides, 1):
            if stride % unit:
                yield f"the stride of dimension {d} is {stride} bytes, which is no multiple of {unit}"
            elif not 0 <= stride < MOST_STRIDE:
                yield f"the stride of dimension {d} is {stride} bytes; a tensor map takes less than 2^40"

    def _box_problems(self) -> Iterator[str]:
        if self.pixel_box is not None:
            yield from self.pixel_box.problems(self.dims, bool(self.interleave))
        for d, extent in enumerate(self.box):
            if not 1 <= extent <= MOST_IN_BOX:
                yield f"the box has {extent} elements along dimension {d}; it can have 1 to {MOST_IN_BOX}"
        for d, step in enumerate(self.element_strides):
            if not 1 <= step <= MOST_ELEMENT_STRIDE:
                yield f"the element stride of dimension {d} is {step}; it can be 1 to {MOST_ELEMENT_STRIDE}"
        inner = self.inner_bytes
        if self.interleave and self.box:
            inner = self.box[0] * self.type.bytes  # which the driver asks of the width too
        if inner % 16:
            yield f"the innermost dimension of the box has {inner} bytes, which is no multiple of 16"
        if self.swizzle in SWIZZLES[1:] and inner > self.swizzle and not self.interleave:
            yield f"the innermost dimension of the box has {inner} bytes; a swizzle of {self.swizzle} takes no more"

    def encode(self) -> bytes:
        """The 128 bytes that stand for it on the emulator.

        Raises struct.error for numbers that no tensor map can hold.
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
        """The inverse of `encode`; ValueError for bytes that are no tensor map."""
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


def _padded(numbers: tuple[int, ...] | list[int], count: int) -> list[int]:
    return [*numbers, *[0] * (count - len(numbers))]


@lru_cache(maxsize=1024)
def decoded(data: bytes) -> TensorMapDescription | None:
    """What 128 bytes say, None if they are no tensor map."""
    try:
        return TensorMapDescription.decode(data)
    except ValueError:
        return None


def replaced(d: TensorMapDescription, field: str, index: int, value: int) -> TensorMapDescription:
    """A description with one field changed, as tensormap.replace names and counts them."""
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
    """More dimensions have one element each."""
    ones = (1,) * rank
    dims, box, steps = ((*numbers, *ones)[:rank] for numbers in (d.dims, d.box, d.element_strides))
    strides = (*d.strides, *(16,) * rank)[: rank - 1]
    return replace(d, dims=dims, strides=strides, box=box, element_strides=steps)
