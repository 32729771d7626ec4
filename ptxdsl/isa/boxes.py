"""Boxes of tensors: their bytes in global memory, and their order in shared memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

import numpy as np

from .step import Pieces
from .tensor_map import PixelBox, TensorMapDescription

CHUNK = 16  # bytes that a swizzle keeps contiguous
_ROW = 128  # bytes of a row of the swizzle pattern


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Apply a swizzle of 0, 32, 64 or 128 bytes to shared memory addresses.

    Within a span of `swizzle` bytes, 16-byte chunks are permuted by the number of the 128-byte row, taken from the
    address.
    """
    chunks = np.uint64(max(1, swizzle // CHUNK) - 1)
    row: np.ndarray = address // np.uint64(_ROW) & chunks
    return address ^ row * np.uint64(CHUNK)


def chunk_addresses(description: TensorMapDescription, start: np.ndarray) -> np.ndarray:
    """Return the shared memory addresses of the chunks of a box, (chunks, lanes), for a box at `start` (lanes,).

    Rows narrower than the swizzle span are stored one span apart, as on an H200.
    """
    d, offsets = description, np.arange(0, description.box_bytes, CHUNK, dtype=np.uint64)
    if not d.interleave and d.inner_bytes < d.swizzle:
        line, inside = np.divmod(offsets, np.uint64(d.inner_bytes))
        offsets = line * np.uint64(d.swizzle) + inside
    return swizzled(start + offsets[:, np.newaxis], description.swizzle)


def known_swizzle(description: TensorMapDescription) -> int | None:
    """Return the swizzle of boxes in shared memory.

    None if it is unknown: a map without swizzle may copy tiles that are already swizzled in global memory. A tensor
    whose rows extend beyond the box is a plain matrix, so its swizzle of 0 is known.
    """
    d = description
    is_matrix = d.rank > 1 and not d.interleave and d.pixel_box is None and d.dims[0] > d.box_shape[0]
    return d.swizzle if d.swizzle or is_matrix else None


def box_pieces(
    description: TensorMapDescription, coordinates: Sequence[np.ndarray], offsets: Sequence[np.ndarray] = ()
) -> Pieces:
    """Return the bytes of one box per lane; `coordinates` are the first corners, s32, innermost dimension first.

    More coordinates than dimensions are the column and the four rows of tile::gather4 and tile::scatter4. In shared
    memory the innermost dimension varies fastest. For im2col maps, `offsets`, u16, lead from the corner of the filter
    to one of its elements, along width, height and depth; without them the offsets are zero.
    """
    d, size = description, description.type.bytes
    first = [c.astype(np.int64) for c in coordinates]
    unit = CHUNK if d.interleave else _unit(d, first[0])
    each, strides, limits = unit // size, (size, *d.strides), d.dims
    if d.interleave:
        strides, limits = (size, d.interleave, *d.strides), (d.interleave // size, *d.dims)
    indices = _tile(d, first, each) if d.pixel_box is None else _pixels(d, d.pixel_box, first, offsets, each)
    address, inside = np.full(1, d.address, np.int64), np.ones(1, bool)
    for index, stride, limit in zip(indices, strides, limits, strict=True):
        address = address + index * stride
        inside = inside & (index >= 0) & (index < limit)
    return Pieces("global", address.view(np.uint64), unit, None if inside.all() else inside, fill(d) * each)


def _tile(d: TensorMapDescription, first: Sequence[np.ndarray], each: int) -> Iterator[np.ndarray]:
    """Yield, for each dimension, the indices (items, lanes) of items of `each` elements; apply element strides."""
    if len(first) > d.rank:
        row, along = np.divmod(np.arange(math.prod(d.box) // each), d.box[0] // each)
        yield first[0] + (along * each)[:, np.newaxis]
        yield np.stack(first[1:])[row]
        return
    extents = (d.box_shape[0] // each, *d.box_shape[1:])
    steps = (each, *d.element_strides[d.first_axis :])
    number = np.arange(math.prod(extents))
    for extent, step, start in zip(extents, steps, _starts(d, first), strict=True):
        number, along = np.divmod(number, extent)
        yield start + (along * step)[:, np.newaxis]


def _pixels(
    d: TensorMapDescription, box: PixelBox, first: Sequence[np.ndarray], offsets: Sequence[np.ndarray], each: int
) -> Iterator[np.ndarray]:
    """Yield the indices for im2col: the corner of the filter moves through the box, then to the next row and image."""
    chunks, (channel, *others) = d.box_shape[0] // each, _starts(d, first)
    pixel, chunk = np.divmod(np.arange(box.pixels * chunks), chunks)
    yield channel + (chunk * each)[:, np.newaxis]
    ahead, lasts, steps = pixel[:, np.newaxis], last_corners(d, box), d.element_strides[d.first_axis :]
    for n, (start, low, last, step) in enumerate(zip(others, box.lower, lasts, steps, strict=False)):
        count = (last - low) // step + 1
        passed = count - ((last - start) // step + 1)
        rounds, number = np.divmod(passed + ahead, count)
        corner = np.where(rounds > 0, low + number * step, start + ahead * step)
        yield corner + (offsets[n].astype(np.int64) if len(offsets) else 0)
        ahead = rounds
    if d.interleave:
        yield first[-2] + 0 * ahead
    yield first[-1] + ahead


def _starts(d: TensorMapDescription, first: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return the coordinates; with interleaved channels, prefixed by the start within a slice of channels."""
    return [np.zeros_like(first[0]), *first] if d.interleave else first


def last_corners(d: TensorMapDescription, box: PixelBox) -> tuple[int, ...]:
    """Return the last position of the filter's corner along width, height and depth."""
    return tuple(extent - 1 + high for extent, high in zip(d.dims[d.first_axis :], box.upper, strict=False))


def _unit(d: TensorMapDescription, start: np.ndarray) -> int:
    """Return the largest unit, up to 16 bytes, that is contiguous in the tensor and entirely inside or outside."""
    size = d.type.bytes
    offsets = int(np.bitwise_or.reduce(start * size)) | d.dims[0] * size | CHUNK
    return max(size, offsets & -offsets)


def fill(description: TensorMapDescription) -> bytes:
    """Return the bytes of an element outside the tensor."""
    size = description.type.bytes
    if description.fill == "zeros":
        return bytes(size)
    pattern = {"f16": 0x7FFF, "bf16": 0x7FFF, "f64": 0x7FFF_FFFF_FFFF_FFFF, "e4m3": 0x7F, "e5m2": 0x7F}
    return struct.pack("<Q", pattern.get(str(description.type), 0x7FFF_FFFF))[:size]
