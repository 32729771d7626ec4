"""The type of a kernel parameter that is a tensor map: which boxes of an array bulk copies bring, and how they lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ptxdsl.driver import Late
from ptxdsl.errors import TraceError, here
from ptxdsl.isa.tensor_map import ALIASES, ELEMENTS, FILLS, MOST_DIMENSIONS, MOST_IN_BOX, PROMOTIONS, SWIZZLES
from ptxdsl.types import FixedArray, Type

layouts: Any = Late("ptxdsl.layout.layout")
swizzles: Any = Late("ptxdsl.layout.swizzle")
BOX_ALIGNMENT = 128  # bytes, of a box in shared memory that is not swizzled
CHUNK_BYTES = 16  # what a swizzle moves as a whole
ROWS_OF_SWIZZLE = 8  # after so many spans of its size a swizzle repeats
SWIZZLE_SHIFT = 3


@dataclass(frozen=True, slots=True, init=False)  # whose frame would not be the user's line
class TensorMap:
    """A kernel parameter for an array that TMA copies in boxes: `a: pd.TensorMap(bf16, (128, 64), swizzle=128)`.

    A launch takes a numpy or CUDA array of `element` with as many axes as `box`, 1 to 5, whose last axis has stride 1;
    the others may have any stride that is a multiple of 16 bytes. The tensor map is made of it at the launch.

    `box` is written as the array's axes are, outermost first: a box of (128, 64) is `array[i : i + 128, j : j + 64]`.
    (The driver, and the coordinates of `pd.ptx.cp.async_.bulk.tensor`, go the other way: innermost first.) An extent is
    at most 256. The last axis of a box has a multiple of 16 bytes, and no more than `swizzle`: 128, 64, 32, or None for
    rows that lie one behind the other as they are. `fill` is what is copied for elements outside of the array: "zeros"
    or "nan". `l2_promotion` is how many bytes L2 fetches at a time: 64, 128, 256, or 0 for what is asked.

    In the kernel `a` is a `MappedTensor`. Raises TraceError for a box that no tensor map has.
    """

    element: Type
    box: tuple[int, ...]
    swizzle: int | None
    fill: str
    l2_promotion: int

    def __init__(
        self,
        element: Type,
        box: int | tuple[int, ...],
        swizzle: int | None = None,
        *,
        fill: str = "zeros",
        l2_promotion: int = 128,
    ) -> None:
        box = (box,) if isinstance(box, int) else box
        for field, value in zip(self.__slots__, (element, box, swizzle, fill, l2_promotion), strict=True):
            object.__setattr__(self, field, value)
        for message, help in self._problems():
            raise TraceError(message, at=here().location, help=help)

    def __str__(self) -> str:
        swizzle = f", swizzle={self.swizzle}" if self.swizzle else ""
        return f"TensorMap({self.element}, {self.box}{swizzle})"

    __repr__ = __str__
    __iter__ = None

    def __getitem__(self, count: int) -> FixedArray:
        return FixedArray(self, count)

    @property
    def rank(self) -> int:
        return len(self.box)

    @property
    def bytes(self) -> int:
        """The bytes of a box, which a copy of it completes at its mbarrier, also where the box ends outside."""
        return math.prod(self.box) * self.element.bytes

    @property
    def alignment(self) -> int:
        """What the address in shared memory of a box is to be a multiple of, in bytes."""
        return max(BOX_ALIGNMENT, ROWS_OF_SWIZZLE * (self.swizzle or 0))

    @property
    def layout(self) -> Any:
        """Where each element of a box lies in shared memory, counted in elements."""
        return self.boxes_layout(None)

    def boxes_layout(self, count: int | None) -> Any:
        """The layout of `count` boxes that lie one behind the other, which are then its first mode."""
        shape = self.box if count is None else (count, *self.box)
        strides = [1]
        for extent in reversed(shape[1:]):
            strides.append(strides[-1] * extent)
        rows = layouts.Layout(tuple(shape), tuple(reversed(strides)))
        if not self.swizzle:
            return rows
        chunk = (CHUNK_BYTES // self.element.bytes).bit_length() - 1
        bits = (self.swizzle // CHUNK_BYTES).bit_length() - 1
        return swizzles.ComposedLayout(swizzles.Swizzle(bits, chunk, SWIZZLE_SHIFT), 0, rows)

    def _problems(self) -> Iterator[tuple[str, str]]:
        """What no tensor map can be, and how to mend it."""
        element: object = self.element
        if not isinstance(element, Type):
            yield f"pd.TensorMap takes the type of the elements first; found {element!r}", "for example bf16"
        if str(self.element) not in (*ELEMENTS, *ALIASES):
            known = ", ".join(dict.fromkeys([*ELEMENTS, *ALIASES]))
            yield f"a tensor map has no elements of {self.element}", f"it takes {known}"
        is_box = isinstance(self.box, tuple) and all(type(n) is int and n > 0 for n in self.box)
        if not is_box or not 1 <= len(self.box) <= MOST_DIMENSIONS:
            message = f"the box of a tensor map is {self.box!r}; it is a tuple of 1 to {MOST_DIMENSIONS} positive ints"
            yield message, "one for each axis of the array, outermost first, such as (128, 64)"
        yield from self._mode_problems()
        yield from self._extent_problems()

    def _mode_problems(self) -> Iterator[tuple[str, str]]:
        if self.swizzle not in (None, *SWIZZLES[1:]):
            yield f"the swizzle of a tensor map is {self.swizzle!r}", "it is 128, 64 or 32 bytes, or None"
        if self.fill not in FILLS:
            yield f"the fill of a tensor map is {self.fill!r}", 'it is "zeros" or "nan"'
        if self.fill == "nan" and not self.element.is_float:
            yield f'a tensor map of {self.element} has fill="nan", and {self.element} has no NaN', 'fill with "zeros"'
        if self.l2_promotion not in PROMOTIONS:
            yield f"the l2_promotion of a tensor map is {self.l2_promotion!r}", "it is 0, 64, 128 or 256 bytes"

    def _extent_problems(self) -> Iterator[tuple[str, str]]:
        for extent in self.box:
            if extent > MOST_IN_BOX:
                yield (
                    f"a box of {self.box} has {extent} elements along an axis; {MOST_IN_BOX} is the most",
                    "copy several boxes one after the other",
                )
        inner = self.box[-1] * self.element.bytes
        if inner % CHUNK_BYTES:
            yield (
                f"the last axis of a box of {self.box} has {inner} bytes of {self.element}, "
                f"which is no multiple of {CHUNK_BYTES}",
                f"give it a multiple of {CHUNK_BYTES // self.element.bytes} elements",
            )
        if self.swizzle and inner > self.swizzle:
            fits = self.swizzle // self.element.bytes
            turned = self.rank > 1 and self.box[0] <= fits
            help = f"make it {fits} elements, and copy several boxes"
            yield (
                f"the last axis of a box of {self.box} has {inner} bytes of {self.element}; "
                f"swizzle={self.swizzle} takes no more than {self.swizzle}",
                f"a box is written as the array's axes, outermost first: {self.box[::-1]}?" if turned else help,
            )
