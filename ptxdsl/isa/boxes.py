"""Boxes of tensors: which bytes of global memory they are, and in which order they lie in shared memory."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from .step import Pieces
from .tensor_map import TensorMapDescription

CHUNK = 16  # bytes that keep together under a swizzle
_ROW = 128  # bytes of a row of the swizzle pattern


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Shared addresses (bytes) where the bytes of these addresses lie under a swizzle of 0, 32, 64 or 128 bytes.

    Of a span of `swizzle` bytes, chunks of 16 change places by the number of the 128-byte row, from the address itself.
    """
    chunks = np.uint64(max(1, swizzle // CHUNK) - 1)
    row: np.ndarray = address // np.uint64(_ROW) & chunks
    return address ^ row * np.uint64(CHUNK)


def chunk_addresses(description: TensorMapDescription, start: np.ndarray) -> np.ndarray:
    """(chunks, lanes): where the chunks of a box lie in shared memory that begins at `start` (lanes,)."""
    offsets = np.arange(0, description.box_bytes, CHUNK, dtype=np.uint64)
    return swizzled(start + offsets[:, np.newaxis], description.swizzle)


def box_pieces(description: TensorMapDescription, coordinates: Sequence[np.ndarray]) -> Pieces:
    """The bytes of boxes of a tensor, one for each lane, that begin at these coordinates, s32, innermost first.

    In shared memory the innermost dimension varies fastest; element strides skip elements along the others.
    """
    d, size = description, description.type.bytes
    first = [c.astype(np.int64) for c in coordinates]
    unit = _unit(d, first[0])
    each = unit // size
    extents = (d.box_shape[0] // each, *d.box_shape[1:])
    steps = (each, *d.element_strides[1:])
    strides = (size, *d.strides)
    count = int(np.prod(extents))
    address = np.full((count, len(first[0])), d.address, np.int64)
    inside = np.ones(address.shape, bool)
    number = np.arange(count)
    for extent, step, stride, start, limit in zip(extents, steps, strides, first, d.dims, strict=True):
        number, along = np.divmod(number, extent)
        index = start + (along * step)[:, np.newaxis]
        address += index * stride
        inside &= (index >= 0) & (index < limit)
    return Pieces("global", address.view(np.uint64), unit, None if inside.all() else inside, fill(d) * each)


def _unit(d: TensorMapDescription, start: np.ndarray) -> int:
    """The bytes, 16 at most, that lie side by side in the tensor wherever a box begins, all in it or all outside."""
    size = d.type.bytes
    offsets = int(np.bitwise_or.reduce(start * size)) | d.dims[0] * size | CHUNK
    return max(size, offsets & -offsets)


def fill(description: TensorMapDescription) -> bytes:
    """The bytes of an element outside of the tensor."""
    size = description.type.bytes
    if description.fill == "zeros":
        return bytes(size)
    pattern = {"f16": 0x7FFF, "bf16": 0x7FFF, "f64": 0x7FFF_FFFF_FFFF_FFFF, "e4m3": 0x7F, "e5m2": 0x7F}
    return struct.pack("<Q", pattern.get(str(description.type), 0x7FFF_FFFF))[:size]
