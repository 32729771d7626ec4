"""Arrays that are parts of larger ones, whose other bytes no kernel may write, nor take for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.machines import NAMES
from tests.random_calls.drawing import Draw

LINE = 512  # bytes: where allocators of GPUs begin arrays, and what lies around ours
SUBJECT_ELEMENTS = 24_000_000  # of one array at most


@dataclass(eq=False)
class View:
    """`array` lies in `base`, bytes that begin at a multiple of LINE; `type` is the name of its elements."""

    base: np.ndarray
    array: np.ndarray
    type: str

    @property
    def offset_bytes(self) -> int:
        return self.array.ctypes.data - self.base.ctypes.data

    @property
    def beside(self) -> np.ndarray:
        """Which bytes of the base belong to no element."""
        inside = np.zeros(self.base.size, bool)
        if self.array.size:
            cells = np.lib.stride_tricks.as_strided(
                inside[self.offset_bytes :], (*self.array.shape, self.array.itemsize), (*self.array.strides, 1)
            )
            cells[...] = True
        return ~inside

    def __str__(self) -> str:
        each = self.array.itemsize
        strides = tuple(stride // each for stride in self.array.strides)
        return f"{self.type}{self.array.shape} strides {strides} offset {(self.offset_bytes - LINE) // each}"


def aligned_bytes(count: int) -> np.ndarray:
    whole = np.empty(count + LINE, np.uint8)
    return whole[-whole.ctypes.data % LINE :][:count]


def view(draw: Draw, shape: Sequence[int], strides: Sequence[int], type: str, offset: int, poison: str) -> View:
    """With strides in elements, `offset` elements behind the margin. The poison of what is read is "nan", where every
    float is none, of what is written "noise"."""
    each = NAMES[type].itemsize
    span = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1 if all(shape) else 0
    assert span < SUBJECT_ELEMENTS
    size = LINE + -(-(offset + span) * each // LINE) * LINE + LINE
    base = aligned_bytes(size)
    base[...] = 0xFF if poison == "nan" else draw.numpy.integers(0, 256, size, dtype=np.uint8)
    bytes_apart = [stride * each for stride in strides]
    return View(base, np.ndarray(shape, NAMES[type], base.data, LINE + offset * each, bytes_apart), type)


def matrix(
    draw: Draw,
    shape: Sequence[int],
    type: str,
    order: str = "",
    poison: str = "nan",
    kind: str = "",
    shared: bool = False,
) -> View:
    """A matrix, or a batch of matrices, row- or column-major, whose lines lie somehow; `shared` batches are one."""
    order = order or draw.one_of("row", "column")
    kind = kind or draw.weighted({"whole words": 5, "any": 3, "dense": 2})
    *batches, rows, columns = shape
    lines, length = (rows, columns) if order == "row" else (columns, rows)
    word = max(1, 16 // NAMES[type].itemsize)
    if kind == "dense":
        apart, offset = length, draw.one_of(0, 0, word, draw.to(31))
    elif kind == "any":
        apart, offset = length + draw.to(9), draw.to(2 * word)
    else:
        apart, offset = (
            -(-length // word) * word + word * draw.one_of(0, 0, 1, draw.to(9)),
            word * draw.one_of(0, 0, 1, 3),
        )
    apart = max(1, apart)
    plane = max(1, apart * lines) + (draw.one_of(0, word * draw.to(3)) if kind != "any" else draw.to(9))
    in_plane = (apart, 1) if order == "row" else (1, apart)
    if batches and not shared and lines and kind != "dense" and draw.chance(0.15):  # rows of batches take turns
        plane, apart = apart, apart * max(1, batches[0])
        in_plane = (apart, 1) if order == "row" else (1, apart)
    strides = (*([0 if shared else plane] if batches else []), *in_plane)
    return view(draw, shape, strides, type, offset, poison)


def vector(draw: Draw, shape: Sequence[int], type: str, poison: str = "nan") -> View:
    """Without gaps, or lines without gaps."""
    *lines, length = shape
    apart = [max(1, length + draw.one_of(0, draw.to(5)))] if lines else []
    return view(draw, shape, (*apart, 1), type, draw.one_of(0, 0, draw.to(17)), poison)
