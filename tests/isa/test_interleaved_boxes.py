"""Boxes and columns of images with interleaved channels: what an H200 (driver 580) put into shared memory."""

import zlib

import numpy as np
import pytest

from ptxdsl.isa.boxes import box_pieces, chunk_addresses
from ptxdsl.isa.tensor_map import PixelBox, TensorMapDescription
from ptxdsl.types import u16

BOXES = [
    ((8, 10, 6), (16, 160), (8, 4, 2), (1, 1, 1), 16, 0, (0, 2, 1), 0x1C7AEF1A),
    ((32, 10, 6), (64, 640), (8, 4, 2), (1, 1, 1), 16, 0, (1, 2, 1), 0xA42A6539),
    ((32, 10, 6), (48, 1008), (16, 4, 2), (1, 1, 1), 16, 0, (8, 2, 1), 0x4D8EE5D0),
    ((32, 10, 6, 4), (208, 2080, 12480), (32, 3, 2, 2), (1, 1, 1, 1), 16, 0, (0, 1, 1, 1), 0xF6B34DED),
    ((8, 5, 4, 3, 4), (16, 80, 320, 960), (8, 3, 2, 2, 2), (1, 1, 1, 1, 1), 16, 0, (0, 1, 1, 0, 1), 0x1D0AFABF),
    ((24, 5, 4, 3, 4), (112, 560, 2240, 6720), (16, 3, 2, 2, 2), (1, 1, 1, 1, 1), 16, 0, (8, 1, 1, 0, 1), 0x5B0CB707),
    ((8, 10, 6), (48, 1008), (8, 4, 2), (1, 1, 1), 16, 0, (0, 8, 5), 0x86A13DAD),
    ((8, 10, 6), (48, 1008), (8, 4, 2), (1, 1, 1), 16, 0, (0, -2, -1), 0x0D968558),
    ((32, 10, 6), (48, 1008), (32, 4, 2), (1, 1, 1), 16, 0, (16, 2, 1), 0x0C0515CA),
    ((32, 10, 6), (48, 1008), (32, 4, 2), (1, 1, 1), 16, 0, (-8, 2, 1), 0x460EECD2),
    ((32, 10, 6), (48, 1008), (32, 4, 2), (1, 1, 1), 16, 32, (0, 2, 1), 0xDE79EA29),
    ((32, 10, 6), (48, 1008), (32, 4, 2), (1, 1, 1), 16, 64, (0, 2, 1), 0xF451185C),
    ((32, 10, 6), (48, 1008), (32, 8, 4), (1, 1, 1), 16, 128, (0, 1, 1), 0x6D27AA98),
    ((32, 10, 6), (48, 1008), (16, 4, 4), (1, 2, 2), 16, 0, (0, 2, 1), 0x6AD525C9),
    ((32, 10, 6), (48, 1008), (32, 4, 2), (2, 1, 1), 16, 0, (0, 2, 1), 0x69009D2B),
    ((16, 10, 6), (32, 320), (16, 4, 2), (1, 1, 1), 32, 32, (0, 2, 1), 0x58DF17DB),
    ((8, 10, 6), (32, 320), (8, 4, 2), (1, 1, 1), 32, 32, (0, 2, 1), 0x6B2C9948),
    ((48, 10, 6), (96, 2016), (32, 4, 2), (1, 1, 1), 32, 32, (16, 2, 1), 0x51143DD9),
    ((48, 10, 6, 4), (224, 2240, 13440), (32, 3, 2, 2), (1, 1, 1, 1), 32, 32, (16, 1, 1, 1), 0xE4699A0C),
]
"""Dimensions and strides of 16-bit elements whose values are their numbers, box, element strides, interleave, swizzle,
where the box begins, all innermost first, and the CRC-32 of what came."""

COLUMNS = [
    ((8, 7, 6, 3), (16, 112, 672), PixelBox((-1, -1), (-1, -1), 8, 16), 16, 0, (0, 0, 0, 0), (1, 1), 0x9BF55BC9),
    ((32, 7, 6, 3), (112, 784, 4704), PixelBox((-1, -1), (-1, -1), 32, 16), 16, 0, (0, 0, 0, 0), (1, 1), 0xFECA9E28),
    ((32, 7, 6, 3), (112, 784, 4704), PixelBox((-1, -1), (-1, -1), 16, 16), 16, 0, (8, 0, 0, 0), (1, 1), 0xBF947836),
    ((32, 7, 6, 3), (224, 1568, 9408), PixelBox((-1, -1), (-1, -1), 32, 16), 32, 32, (0, 0, 0, 0), (1, 1), 0x43C36C88),
]
"""The same of columns: dimensions, strides, pixel box, interleave, swizzle, corner, offsets, CRC-32."""


def shared(description, at, offsets=()):
    """What lies in shared memory from an address that is a multiple of 1024."""
    pieces = box_pieces(description, [np.array([n], np.int32) for n in at], [np.array([n], np.uint16) for n in offsets])
    first = pieces.address.view(np.int64)[:, 0] // 2
    numbers = (first[:, np.newaxis] + np.arange(pieces.unit // 2)).astype("<u2")
    if pieces.inside is not None:
        numbers[~pieces.inside[:, 0]] = 0
    chunks = numbers.reshape(-1, 8)
    memory = np.zeros_like(chunks)
    memory[chunk_addresses(description, np.zeros(1, np.uint64))[:, 0].astype(int) // 16] = chunks
    return zlib.crc32(memory.tobytes())


@pytest.mark.parametrize("case", BOXES, ids=str)
def test_boxes_are_those_of_an_h200(case):
    dims, strides, box, steps, interleave, swizzle, at, crc = case
    description = TensorMapDescription(0, u16, dims, strides, box, steps, swizzle, interleave)
    assert not list(description.problems())
    assert shared(description, at) == crc


@pytest.mark.parametrize("case", COLUMNS, ids=str)
def test_columns_are_those_of_an_h200(case):
    dims, strides, box, interleave, swizzle, at, offsets, crc = case
    description = TensorMapDescription(0, u16, dims, strides, (), (1,) * len(dims), swizzle, interleave, pixel_box=box)
    assert not list(description.problems())
    assert shared(description, at, offsets) == crc


@pytest.mark.parametrize("width", [4, 12])
def test_a_width_that_the_driver_refuses(width):
    description = TensorMapDescription(0, u16, (width, 10, 6), (64, 640), (width, 4, 2), (1, 1, 1), 0, 16)
    bytes = 2 * width
    assert list(description.problems()) == [
        f"the innermost dimension of the box has {bytes} bytes, not a multiple of 16"
    ]


NARROW = {
    (64, 128): {0: 0, 8: 5, 9: 4, 10: 7, 11: 6, 16: 10, 19: 9, 24: 15, 27: 12, 36: 16, 39: 19},
    (32, 128): {0: 0, 1: 1, 8: 3, 9: 2, 18: 4, 19: 5, 26: 7, 27: 6, 36: 8, 37: 9},
    (32, 64): {0: 0, 4: 2, 8: 5, 9: 4, 12: 7, 18: 8, 26: 13, 31: 14, 32: 16},
    (16, 32): {0: 0, 2: 1, 6: 3, 9: 4, 15: 7, 16: 8, 25: 12, 31: 15},
    (16, 128): {0: 0, 9: 1, 18: 2, 27: 3, 36: 4},
}
"""Of lines of so many bytes under a wider swizzle: which 16 bytes of the box lie at which of shared memory, on an H200."""


@pytest.mark.parametrize("line, swizzle", NARROW)
def test_narrow_lines_lie_one_span_of_the_swizzle_apart(line, swizzle):
    box = TensorMapDescription(0, u16, (64, 32), (128,), (line // 2, 16), (1, 1), swizzle)
    places = chunk_addresses(box, np.array([1024], np.uint64))[:, 0]
    assert box.box_bytes == 16 * line
    assert {place: chunk for place, chunk in NARROW[line, swizzle].items() if places[chunk] == 1024 + 16 * place} == (
        NARROW[line, swizzle]
    )
