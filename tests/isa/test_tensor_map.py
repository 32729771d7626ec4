"""Descriptions of tensor maps: there and back as bytes, and what the driver would refuse."""

from dataclasses import replace

import pytest

from ptxdsl.isa.tensor_map import MAP_BYTES, PixelBox, TensorMapDescription
from ptxdsl.types import b128, bf16, e4m3, f16, f32, s4, u8, u32

PLAIN = TensorMapDescription(0x7F0000001000, f16, (1000, 77), (2000,), (64, 32), (1, 1), swizzle=128)
DEEP = TensorMapDescription(
    1 << 40, u8, (1 << 32, 2, 3, 4, 5), (16, 32, 48, 64), (256, 1, 2, 3, 4), (1, 8, 1, 2, 3), 0, 16, "zeros", 256
)
PIXELS = TensorMapDescription(
    1 << 30,
    bf16,
    (64, 14, 9, 5),
    (128, 1792, 16128),
    (),
    (1, 2, 1, 1),
    128,
    pixel_box=PixelBox((-1, -2), (-1, 0), 64, 1024),
)


@pytest.mark.parametrize(
    "description",
    [PLAIN, DEEP, PIXELS, TensorMapDescription(16, e4m3, (5,), (), (16,), (1,), fill="nan", l2_promotion=64),
     replace(PLAIN, type=bf16, swizzle=32, box=(16, 1))],
)  # fmt: skip
def test_descriptions_survive_encoding(description):
    assert not list(description.problems())
    data = description.encode()
    assert len(data) == MAP_BYTES
    assert TensorMapDescription.decode(data) == description


@pytest.mark.parametrize(
    "data", [bytes(128), PLAIN.encode()[1:] + b"\0", PLAIN.encode()[:100], PLAIN.encode()[:85] + bytes([99] * 43)]
)
def test_other_bytes_are_no_tensor_map(data):
    with pytest.raises(ValueError, match=r"^not a tensor map$"):
        TensorMapDescription.decode(data)


def test_what_a_box_holds():
    assert PLAIN.box_bytes == 64 * 32 * 2
    assert PLAIN.inner_bytes == 128
    strided = replace(PLAIN, box=(64, 33), element_strides=(4, 2))  # the innermost dimension knows no steps
    assert strided.box_shape == (64, 17)
    assert strided.box_bytes == 64 * 17 * 2


@pytest.mark.parametrize(("changes", "problem"), [
    ({"address": 0x1008}, "the tensor begins at 0x1008, not a multiple of 16 bytes"),
    ({"strides": (2008,)}, "the stride of dimension 1 is 2008 bytes, not a multiple of 16"),
    ({"strides": (1 << 40,)}, "the stride of dimension 1 is 1099511627776 bytes; a tensor map takes less than 2^40"),
    ({"strides": ()}, "`strides` has 0 numbers; a tensor of 2 dimensions takes 1"),
    ({"box": (64,)}, "`box` has 1 numbers; a tensor of 2 dimensions takes 2"),
    ({"box": (64, 257)}, "the box has 257 elements along dimension 1; the range is 1 to 256"),
    ({"box": (64, 0)}, "the box has 0 elements along dimension 1; the range is 1 to 256"),
    ({"box": (4, 4)}, "the innermost dimension of the box has 8 bytes, not a multiple of 16"),
    ({"box": (128, 4)}, "the innermost dimension of the box has 256 bytes; a swizzle of 128 limits it to 128"),
    ({"swizzle": 32}, "the innermost dimension of the box has 128 bytes; a swizzle of 32 limits it to 32"),
    ({"swizzle": 16}, "`swizzle` is 16; it is one of 0, 32, 64, 128"),
    ({"fill": "ones"}, "`fill` is 'ones'; it is one of 'zeros', 'nan'"),
    ({"dims": (0, 77)}, "dimension 0 has 0 elements; a tensor map takes 1 to 2^32"),
    ({"dims": (8, (1 << 32) + 1)}, "dimension 1 has 4294967297 elements; a tensor map takes 1 to 2^32"),
    ({"dims": ()}, "a tensor map has 1 to 5 dimensions, this one 0"),
    ({"element_strides": (1, 9)}, "the element stride of dimension 1 is 9; the range is 1 to 8"),
    ({"interleave": 16}, "`interleave` requires 3 dimensions or more; the tensor has 2"),
    ({"type": s4}, "a tensor map has no element type s4; it takes "
     "u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, tf32 and types of 8 bits"),
    ({"type": b128}, "a tensor map has no element type b128; it takes "
     "u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, tf32 and types of 8 bits"),
    ({"type": u32, "box": (32, 32), "fill": "nan"}, "`fill` is 'nan', and u32 has no NaN"),
])  # fmt: skip
def test_what_the_driver_would_refuse(changes, problem):
    assert list(replace(PLAIN, **changes).problems()) == [problem]


@pytest.mark.parametrize(("changes", "problem"), [
    ({"lower": (-1,)}, "`lower` has 1 numbers; im2col of a tensor of 4 dimensions takes 2"),
    ({"upper": (0, 0, 0)}, "`upper` has 3 numbers; im2col of a tensor of 4 dimensions takes 2"),
    ({"upper": (0, 128)}, "`upper` has 128; with 4 dimensions the range is -128 to 127"),
    ({"upper": (-15, 0)}, "the pixel box is empty along dimension 1: from -1 to -2"),
    ({"pixels": 1025}, "a column has 1025 pixels; the range is 1 to 1024"),
    ({"channels": 0}, "a pixel has 0 channels; the range is 1 to 256"),
    ({"channels": 12}, "the innermost dimension of the box has 24 bytes, not a multiple of 16"),
    ({"channels": 128}, "the innermost dimension of the box has 256 bytes; a swizzle of 128 limits it to 128"),
])  # fmt: skip
def test_what_the_driver_would_refuse_of_pixels(changes, problem):
    assert next(replace(PIXELS, pixel_box=replace(PIXELS.pixel_box, **changes)).problems()) == problem


def test_images_have_three_dimensions_or_more():
    matrix = replace(PIXELS, dims=(64, 14), strides=(128,), element_strides=(1, 1))
    assert list(matrix.problems()) == ["im2col takes a tensor of 3 to 5 dimensions; this one has 2"]


def test_a_column_of_pixels_has_the_same_bytes_whatever_the_strides():
    assert PIXELS.box_shape == (64, 1024)
    assert PIXELS.box_bytes == 64 * 1024 * 2
    assert not list(PIXELS.problems())


def test_interleaved_channels_of_32_bytes_lie_stricter():
    images = TensorMapDescription(32, f32, (8, 7, 6), (32, 32 * 7), (8, 4, 4), (1, 1, 1), swizzle=32, interleave=32)
    assert not list(images.problems())
    assert images.inner_bytes == 32
    assert list(replace(images, address=16, strides=(32, 240), swizzle=0).problems()) == [
        "`interleave` of 32 bytes requires a `swizzle` of 32, not 0",
        "the tensor begins at 0x10, not a multiple of 32 bytes",
        "the stride of dimension 2 is 240 bytes, not a multiple of 32",
    ]
