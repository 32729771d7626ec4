"""Tensor map parameters: the boxes of an array that TMA copies, and their layout in shared memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import floordiv
from typing import TYPE_CHECKING, Any

from ptxdsl.driver import Late
from ptxdsl.errors import called_elsewhere, public_class
from ptxdsl.isa.tensor_map import (
    ALIASES,
    CORNER_BITS,
    ELEMENTS,
    FILLS,
    INTERLEAVES,
    MOST_DIMENSIONS,
    MOST_ELEMENT_STRIDE,
    MOST_IN_BOX,
    MOST_PIXELS,
    PROMOTIONS,
    SWIZZLES,
    PixelBox,
)
from ptxdsl.trace.builder import refuse
from ptxdsl.types import FixedArray, Type

if TYPE_CHECKING:
    from ptxdsl.layout.tma_copy import TmaCopy

descriptors: Any = Late("ptxdsl.layout.descriptors")
layouts: Any = Late("ptxdsl.layout.layout")
swizzles: Any = Late("ptxdsl.layout.swizzle")
tma_copies: Any = Late("ptxdsl.layout.tma_copy")
BOX_ALIGNMENT = 128  # bytes: alignment of an unswizzled box in shared memory
CHUNK_BYTES = 16  # bytes that a swizzle moves as a unit
LEAST_INTERLEAVED = 4  # axes of a box: images, slices, width, channels.
ROWS_OF_SWIZZLE = 8  # a swizzle repeats after this many rows of its size


@public_class
@called_elsewhere(
    dtype="it is the first argument: pd.TensorMap(bf16, (128, 64))",
    type="it is the first argument: pd.TensorMap(bf16, (128, 64))",
    shape="a map has `box=`, the shape of one copy; the array's shape is known at launch",
    tile="it is `box=` here, the shape of one copy; pd.TensorMap.tiled makes a map for tiles of several boxes",
)
@dataclass(frozen=True, slots=True, init=False)  # a generated __init__ would hide the user's line
class TensorMap:
    """A kernel parameter for an array that TMA copies in boxes: `a: pd.TensorMap(bf16, (128, 64), swizzle=128)`.

    A launch takes a numpy or CUDA array of `element` with the rank of `box`, 1 to 5. Its last axis has stride 1; the
    other strides are multiples of 16 bytes. The tensor map is encoded at the launch.

    `box` lists extents of at most 256 elements in the order of the array's axes, outermost first: the box (128, 64) is
    `array[i : i + 128, j : j + 64]`. (The driver and `pd.ptx.cp.async_.bulk.tensor` use the reverse order.) The last
    extent is a multiple of 16 bytes and at most `swizzle` bytes: 128, 64 or 32; None leaves rows contiguous. Rows
    narrower than the swizzle are padded to it in shared memory. `fill` is the value of out-of-bounds elements, "zeros"
    or "nan". `l2_promotion` is the L2 fetch size in bytes: 64, 128, 256, or 0 for the requested size.

    `interleave` (16 or 32 bytes) is for images in the layout (n, slices, …, w, channels of a slice): a box has one
    slice, and copies take no coordinate for the last axis.

    `pd.TensorMap.tiled` covers a tile by several boxes, `pd.TensorMap.of` takes the boxes of a tiled copy, and
    `pd.TensorMap.im2col` copies columns of pixels. In the kernel, `a` is a `MappedTensor`. Raises TraceError for a box
    that the hardware does not support.

        @pd.kernel(reqntid=128, arch="sm_90a")
        def copy(a: pd.TensorMap(bf16, (128, 64), swizzle=128), b: ptr[bf16]):
            tile = a.shared()
    """

    element: Type
    box: tuple[int, ...]
    swizzle: int | None
    fill: str
    l2_promotion: int
    pixel_box: PixelBox | None
    steps: tuple[int, ...]
    copy: TmaCopy | None
    interleave: int | None

    def __init__(
        self,
        element: Type,
        box: int | tuple[int, ...],
        swizzle: int | None = None,
        *,
        fill: str = "zeros",
        l2_promotion: int = 128,
        interleave: int | None = None,
    ) -> None:
        shape = (box,) if isinstance(box, int) else box
        self._set(element, shape, swizzle, fill, l2_promotion, None, (), None, interleave)

    @classmethod
    def tiled(
        cls,
        element: Type,
        tile: tuple[int, ...],
        swizzle: int | None = None,
        *,
        fill: str = "zeros",
        l2_promotion: int = 128,
    ) -> TensorMap:
        """Create a parameter whose tile is copied as the smallest number of boxes.

        A tile of (128, 256) bf16 with swizzle=128 has four boxes of (128, 64), which follow one another in shared
        memory. `layout`, `bytes` and `shared` describe the whole tile; `load`, `store` and `reduce` emit one
        instruction per box. The last extent of a box has `swizzle` bytes, the others up to 256 elements.

        Raises TraceError if the tile is not a whole number of boxes.

            a: pd.TensorMap.tiled(bf16, (128, 256))
        """
        _check_tile(element, tile, swizzle)
        most = [MOST_IN_BOX] * (len(tile) - 1) + [swizzle // element.bytes if swizzle else MOST_IN_BOX]
        box = tuple(
            max(part for part in range(1, least + 1) if extent % part == 0)
            for extent, least in zip(tile, map(min, tile, most), strict=True)
        )
        rows = _rows_of_boxes(element, box, tuple(map(floordiv, tile, box)), swizzle)
        copy = tma_copies.TmaCopy(tma_copies.tma_atom("cp.async.bulk.tensor.shared.global"), rows, element.bits)
        return cls._create(element, box, swizzle, fill, l2_promotion, None, (), copy, None)

    @classmethod
    def of(cls, element: Type, copy: TmaCopy, *, fill: str = "zeros", l2_promotion: int = 128) -> TensorMap:
        """Create a parameter for the tiles of a TMA copy made by `layout.make_tiled_copy`.

        Box and swizzle follow from the layout of the tile in shared memory; the array's axes are `copy.order`, the
        modes of that layout. Raises TraceError if `copy` is not a TMA copy of this element width.

            load = pd.layout.make_tiled_copy("cp.async.bulk.tensor.shared.global", tile, bits=16)
            a: pd.TensorMap.of(f16, load)
        """
        if not isinstance(copy, tma_copies.TmaCopy) or copy.bits != element.bits:
            bits = f" of {copy.bits} bits" if isinstance(copy, tma_copies.TmaCopy) else ""
            refuse(
                f"pd.TensorMap.of takes {element} and a tiled copy by TMA; found {copy!r}{bits}",
                f'make it by make_tiled_copy("cp.async.bulk.tensor.shared.global", layout, bits={element.bits})',
            )
        return cls._create(element, copy.box, copy.swizzle or None, fill, l2_promotion, None, (), copy, None)

    @classmethod
    def im2col(
        cls,
        element: Type,
        pixels: int,
        channels: int,
        lower: tuple[int, ...],
        upper: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        swizzle: int | None = None,
        *,
        fill: str = "zeros",
        l2_promotion: int = 128,
        interleave: int | None = None,
    ) -> TensorMap:
        """Create a parameter for images, (n, h, w, c) or with one spatial axis less or more, copied in columns of
        pixels.

        A copy loads `channels` channels of `pixels` pixels as `(pixels, channels)`: the pixels that one filter element
        sees as the filter moves over the images. Along each spatial axis, the filter's corner moves from `lower` to
        extent - 1 + `upper` in steps of `strides` (default 1). A convolution with padding p and a filter of r elements
        with dilation d has lower = -p and upper = p - (r - 1) d. Axes are in the order of the array, outermost first.
        With `interleave`, as for `TensorMap`, `channels` are those of a slice. Raises TraceError for a map that the
        hardware does not support.

            x: pd.TensorMap.im2col(f16, 128, 64, lower=(-1, -1), upper=(-1, -1))
        """
        _check_corners(lower, upper)
        steps = (1,) * len(lower) if strides is None else tuple(strides)
        box = PixelBox(lower[::-1], upper[::-1], channels, pixels)
        return cls._create(element, (pixels, channels), swizzle, fill, l2_promotion, box, steps, None, interleave)

    @classmethod
    def _create(cls, *values: object) -> TensorMap:
        kind: TensorMap = object.__new__(cls)
        kind._set(*values)
        return kind

    def _set(self, *values: object) -> None:
        for field, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, field, value)
        for message, help in self._problems():
            refuse(message, help)

    def __str__(self) -> str:
        swizzle = f", swizzle={self.swizzle}" if self.swizzle else ""
        slices = f", interleave={self.interleave}" if self.interleave else ""
        if self.pixel_box is not None:
            corners = f"{self.pixel_box.lower[::-1]}, {self.pixel_box.upper[::-1]}"
            return f"TensorMap.im2col({self.element}, {self.box[0]}, {self.box[1]}, {corners}{swizzle}{slices})"
        if self.copy is not None:
            return f"TensorMap.tiled({self.element}, {self.tile}{swizzle})"
        return f"TensorMap({self.element}, {self.box}{swizzle}{slices})"

    __repr__ = __str__
    __iter__ = None

    def __getitem__(self, count: int) -> FixedArray:
        return FixedArray(self, count)

    @property
    def rank(self) -> int:
        """The rank of the tensor map, and the number of coordinates of a copy."""
        if self.pixel_box is not None:
            return len(self.pixel_box.lower) + 2
        return len(self.box) - (1 if self.interleave else 0)

    @property
    def axes(self) -> int:
        """The number of the array's axes, including the channels of a slice."""
        return self.rank + (1 if self.interleave else 0)

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents that one `load` copies, a box or a whole tile, in the order of the array's axes."""
        return self.box if self.copy is None else tuple(self.copy.tile[mode] for mode in self.copy.order)

    @property
    def bytes(self) -> int:
        """The bytes of a tile, which a copy completes at its mbarrier even if the tile is partly out of bounds."""
        return math.prod(self.tile) * self.element.bytes

    @property
    def alignment(self) -> int:
        """The required alignment of a box in shared memory, in bytes."""
        return max(BOX_ALIGNMENT, ROWS_OF_SWIZZLE * (self.swizzle or 0))

    @property
    def layout(self) -> Any:
        """The layout of a box or tile in shared memory, in elements."""
        return self.boxes_layout(None)

    def boxes_layout(self, count: int | None) -> Any:
        """Return the layout of `count` consecutive boxes or tiles, indexed by its first mode."""
        whole = self.copy.layout if self.copy is not None else _rows_of_boxes(
            self.element, self.box, (), self.swizzle, is_padded=not self.interleave
        )  # fmt: skip
        if count is None:
            return whole
        padded = (self.swizzle or 0) // self.element.bytes if not self.interleave else 0  # rows narrower than this
        return swizzles.stacked(whole, count, math.prod(self.tile) // self.box[-1] * max(self.box[-1], padded))

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield (message, help) for each unsupported property."""
        element: object = self.element
        if not isinstance(element, Type):
            yield f"pd.TensorMap takes the type of the elements first; found {element!r}", "for example bf16"
        if str(self.element) not in (*ELEMENTS, *ALIASES):
            known = ", ".join(dict.fromkeys([*ELEMENTS, *ALIASES]))
            yield f"a tensor map cannot have elements of type {self.element}", f"it takes {known}"
        is_box = isinstance(self.box, tuple) and all(type(n) is int and n > 0 for n in self.box)
        if not is_box or not 1 <= len(self.box) <= MOST_DIMENSIONS + bool(self.interleave):
            message = f"the box of a tensor map is {self.box!r}; it is a tuple of 1 to {MOST_DIMENSIONS} positive ints"
            yield message, "one for each axis of the array, outermost first, such as (128, 64)"
        yield from self._mode_problems()
        yield from self._interleave_problems() if self.interleave is not None else ()
        yield from self._extent_problems()

    def _interleave_problems(self) -> Iterator[tuple[str, str]]:
        """Yield (message, help) for unsupported interleaved images."""
        if self.interleave not in INTERLEAVES[1:]:
            yield f"the interleave of a tensor map is {self.interleave!r}", "it is 16 or 32 bytes of channels, or None"
            return
        if self.interleave == 32 and self.swizzle != 32:
            yield f"interleave=32 with swizzle={self.swizzle}", "slices of 32 bytes go with swizzle=32"
        channels = self.interleave // self.element.bytes
        if self.box[-1] != channels:
            subject = "a box" if self.pixel_box is None else "a column"
            yield (
                f"{subject} of {self.box} has {self.box[-1]} channels of {self.element}; interleave={self.interleave} "
                f"brings slices of {channels}",
                f"make the last axis {channels}, and copy the slices one by one",
            )
        if self.pixel_box is None and len(self.box) < LEAST_INTERLEAVED:
            yield f"a box of {self.box} has no slices", "its axes are (n, slices, …, w, channels of a slice)"
        elif self.pixel_box is None and self.box[1] != 1:
            yield f"a box of {self.box} has {self.box[1]} slices of channels", "one copy loads 1: copy them one by one"
        elif self.pixel_box is None and self.box[-2] * self.element.bytes % CHUNK_BYTES:
            least = CHUNK_BYTES // self.element.bytes
            yield (
                f"a box of {self.box} is {self.box[-2]} wide",
                f"the driver takes multiples of {least} for {self.element}",
            )

    def _mode_problems(self) -> Iterator[tuple[str, str]]:
        for name, known, help in (
            ("swizzle", (None, *SWIZZLES[1:]), "it is 128, 64 or 32 bytes, or None"),
            ("fill", FILLS, 'it is "zeros" or "nan"'),
            ("l2_promotion", PROMOTIONS, "it is 0, 64, 128 or 256 bytes"),
        ):
            if getattr(self, name) not in known:
                yield f"the {name} of a tensor map is {getattr(self, name)!r}", help
        if self.fill == "nan" and not self.element.is_float:
            yield f'a tensor map of {self.element} has fill="nan", and {self.element} has no NaN', 'fill with "zeros"'

    def _extent_problems(self) -> Iterator[tuple[str, str]]:
        yield from self._pixel_problems()
        tiled = ": pd.TensorMap.tiled makes a map of a tile of them" * (self.pixel_box is None)
        for extent in self.box if self.pixel_box is None else self.box[1:]:
            if extent > MOST_IN_BOX:
                yield (
                    f"a box of {self.box} has {extent} elements along an axis; the maximum is {MOST_IN_BOX}",
                    f"copy several boxes one after the other{tiled}",
                )
        inner = self.box[-1] * self.element.bytes
        if inner % CHUNK_BYTES:
            yield (
                f"the last axis of a box of {self.box} has {inner} bytes of {self.element}, "
                f"which is not a multiple of {CHUNK_BYTES}",
                f"give it a multiple of {CHUNK_BYTES // self.element.bytes} elements",
            )
        if self.swizzle and inner > self.swizzle and not self.interleave:
            fits = self.swizzle // self.element.bytes
            turned = len(self.box) > 1 and self.box[0] <= fits and self.pixel_box is None
            help = f"make it {fits} elements, and copy several boxes{tiled}"
            yield (
                f"the last axis of a box of {self.box} has {inner} bytes of {self.element}; "
                f"swizzle={self.swizzle} takes no more than {self.swizzle}",
                f"a box is written as the array's axes, outermost first: {self.box[::-1]}?" if turned else help,
            )

    def _pixel_problems(self) -> Iterator[tuple[str, str]]:
        """Yield (message, help) for unsupported columns of pixels."""
        if (box := self.pixel_box) is None:
            return
        if box.pixels > MOST_PIXELS:
            yield (
                f"a column of {box.pixels} pixels; the maximum is {MOST_PIXELS}",
                "copy several columns one after the other",
            )
        limit = 1 << (CORNER_BITS[self.rank] - 1)
        beyond = [n for n in (*box.lower, *box.upper) if not -limit <= n < limit]
        if beyond:
            message = (
                f"a corner of the pixel box is {beyond[0]}; with {self.rank} axes it is from {-limit} to {limit - 1}"
            )
            yield message, "it is a padding, or the padding minus the filter"
        if len(self.steps) != self.rank - 2 or not all(
            type(n) is int and 1 <= n <= MOST_ELEMENT_STRIDE for n in self.steps
        ):
            yield (
                f"the strides of the filter are {self.steps!r}; "
                f"they are {self.rank - 2} ints of 1 to {MOST_ELEMENT_STRIDE}",
                "one for each axis of an image",
            )


def _rows_of_boxes(
    element: Type, box: tuple[int, ...], boxes: tuple[int, ...], swizzle: int | None, is_padded: bool = True
) -> Any:
    """Return the layout of a box, or of a tile with this many boxes along each axis, the first axis fastest.

    Rows narrower than the swizzle are padded to it if `is_padded`; slices are not.
    """
    line = max(box[-1], (swizzle or 0) // element.bytes) if is_padded else box[-1]
    strides = [math.prod(box[axis + 1 : -1]) * line for axis in range(len(box) - 1)] + [1]
    shape: list[Any] = list(box)
    modes: list[Any] = list(strides)
    apart = math.prod(box[:-1]) * line
    for axis, count in enumerate(boxes):
        if count > 1:
            shape[axis], modes[axis] = (shape[axis], count), (modes[axis], apart)
        apart *= count
    rows = layouts.Layout(tuple(shape), tuple(modes))
    if not swizzle:
        return rows
    return swizzles.ComposedLayout(descriptors.element_swizzle(swizzle, element.bits), 0, rows)


def _check_tile(element: Type, tile: tuple[int, ...], swizzle: int | None) -> None:
    """Raise TraceError if the tile is not a whole number of boxes."""
    if not isinstance(tile, tuple) or not 1 <= len(tile) <= MOST_DIMENSIONS or not all(type(n) is int for n in tile):
        refuse(
            f"a tile of a tensor map is {tile!r}; it is a tuple of 1 to {MOST_DIMENSIONS} ints",
            "one for each axis of the array, outermost first, such as (128, 256)",
        )
    inner = tile[-1] * element.bytes
    if swizzle and inner > swizzle and inner % swizzle:
        refuse(
            f"the last axis of a tile of {tile} has {inner} bytes of {element}, which is not a multiple of "
            f"swizzle={swizzle}",
            f"give it a multiple of {swizzle // element.bytes} elements",
        )


def _check_corners(lower: tuple[int, ...], upper: tuple[int, ...]) -> None:
    """Raise TraceError unless the corners have one, two or three axes each."""
    for corner in (lower, upper):
        if not isinstance(corner, tuple) or not 1 <= len(corner) <= 3 or not all(type(n) is int for n in corner):
            refuse(
                f"a corner of the pixel box is {corner!r}; it is a tuple of 1 to 3 ints",
                "one for each axis of an image: (-1, -1) for a padding of 1",
            )
    if len(lower) != len(upper):
        refuse(
            f"the corners of the pixel box are {lower!r} and {upper!r}",
            "give both for each axis of an image",
        )
