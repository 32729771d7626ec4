"""Columns of pixels (im2col) by tensor maps, against numpy: padding, strides, dilation, tails, several images."""

from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest

from ptxdsl.arrays import Struct, describe
from ptxdsl.isa.tensor_map import PixelBox, TensorMapDescription
from tests.emulate import test_tensor_copies as tiles
from tests.emulate.support import clean

hopper = tiles.hopper
LOAD = tiles.LOAD.replace("global.mbarrier", "global.im2col.mbarrier").replace(
    "}}], [%r3];", "}}], [%r3], {{{offsets}}};"
)
STORE = tiles.STORE.replace("{operation}.bulk_group", "{operation}.im2col_no_offs.bulk_group")


def mapping(images, pixel_box, steps=None, **options):
    """The description of images (n, …, c) with a pixel box, and the parameter that it makes."""
    array = describe(images)
    steps = (1, *(steps or (1,) * (images.ndim - 2))[::-1], 1)
    description = TensorMapDescription(
        0, array.type, images.shape[::-1], tuple(images.strides[-2::-1]), (), steps, pixel_box=pixel_box, **options
    )
    assert not list(description.problems())
    return description, Struct(description.encode(), ((8, "images", array),))


def loaded(images, pixel_box, at, offsets=None, steps=None, shared_at=0, **options):
    """Shared memory, (pixels, channels), after the copy of a column that begins at `at`; axes are numpy's."""
    description, parameter = mapping(images, pixel_box, steps, **options)
    y = np.zeros(description.box_bytes, np.uint8)
    report = tiles.launched(text_of(LOAD, description, offsets, shared_at), parameter, y, at)
    return (
        tiles.unswizzled(clean(report) and y, description.swizzle, shared_at)
        .view(images.dtype)
        .reshape(pixel_box.pixels, pixel_box.channels)
    )


def text_of(body, description, offsets=None, shared_at=0):
    """A kernel; `offsets` along depth, height and width."""
    numbers = list(reversed(offsets or (0,) * (description.rank - 2)))
    moves = " ".join(f"mov.b16 %h{n + 1}, {offset};" for n, offset in enumerate(numbers))
    names = ", ".join(f"%h{n + 1}" for n in range(len(numbers)))
    return tiles.kernel(body, description, shared_at, tiles.MAP + moves, offsets=names, op="cp", operation="")


def column(images, pixel_box, at, offsets=None, steps=None, fill=0):
    """What the column holds: the filter's corner goes through the boxes of the images, innermost axis first."""
    *begin, channel = at
    spatial = images.ndim - 2
    offsets, steps = offsets or (0,) * spatial, steps or (1,) * spatial
    lower, upper = pixel_box.lower[::-1], pixel_box.upper[::-1]
    axes = [
        range(low, n + high, step) for low, high, n, step in zip(lower, upper, images.shape[1:-1], steps, strict=True)
    ]
    corners = product(range(begin[0], images.shape[0] + pixel_box.pixels), *axes)
    result = np.full((pixel_box.pixels, pixel_box.channels), fill, images.dtype)
    from_there = islice((c for c in corners if c >= tuple(begin)), pixel_box.pixels)
    for row, (image, *corner) in zip(result, from_there, strict=True):
        pixel = np.add(corner, offsets)
        if image < images.shape[0] and (pixel >= 0).all() and (pixel < images.shape[1:-1]).all():
            values = images[(image, *pixel)][channel : channel + pixel_box.channels]
            row[: len(values)] = values
    return result


def images(*shape, dtype="f2"):
    return (np.arange(np.prod(shape)) % 2039 + 1).astype(dtype).reshape(shape)


@pytest.mark.parametrize(("shape", "box", "at", "offsets"), [
    ((3, 20, 16), PixelBox((0,), (0,), 16, 24), (0, 0, 0), (0,)),
    ((3, 20, 16), PixelBox((-1,), (-1,), 8, 64), (1, 17, 8), (2,)),
    ((2, 7, 9, 16), PixelBox((-1, -1), (-1, -1), 16, 64), (0, -1, -1, 0), (0, 0)),
    ((2, 7, 9, 16), PixelBox((-1, -1), (-1, -1), 16, 64), (0, 3, 5, 0), (2, 1)),
    ((2, 7, 9, 16), PixelBox((-2, 0), (1, -3), 8, 40), (1, 2, -2, 8), (1, 3)),
    ((2, 3, 4, 5, 8), PixelBox((-1, 0, -1), (0, -1, 0), 8, 100), (0, 1, 2, 3, 0), (1, 0, 1)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_columns_of_images_with_padding(shape, box, at, offsets, dtype):
    array = images(*shape, dtype=dtype)
    assert (loaded(array, box, at, offsets) == column(array, box, at, offsets)).all()


@pytest.mark.parametrize("steps", [(2, 2), (3, 1), (1, 3)])
@pytest.mark.parametrize("offsets", [(0, 0), (2, 1)])
def test_strides_of_a_convolution(steps, offsets):
    array, box = images(3, 9, 10, 8), PixelBox((-1, -1), (-1, -1), 8, 32)
    at = (0, -1 + steps[0], -1 + 2 * steps[1], 0)
    assert (loaded(array, box, at, offsets, steps) == column(array, box, at, offsets, steps)).all()


@pytest.mark.parametrize("offsets", [(0, 0), (3, 0), (0, 6), (6, 3)])
def test_a_dilated_filter_has_offsets_that_are_multiples_of_it(offsets):
    array, box = images(2, 12, 11, 16), PixelBox((-3, -3), (-3, -3), 16, 48)
    assert (loaded(array, box, (0, 2, 1, 0), offsets) == column(array, box, (0, 2, 1, 0), offsets)).all()


@pytest.mark.parametrize("fill", ["zeros", "nan"])
def test_pixels_behind_the_last_image_are_filled(fill):
    array, box = images(2, 5, 5, 16, dtype="f4"), PixelBox((0, 0), (0, 0), 16, 40)
    expected = column(array, box, (1, 2, 3, 8), fill=np.nan if fill == "nan" else 0)
    assert np.isnan(expected).any() == (fill == "nan")
    np.testing.assert_array_equal(loaded(array, box, (1, 2, 3, 8), fill=fill), expected)


@pytest.mark.parametrize(("swizzle", "channels"), [(32, 16), (64, 32), (128, 64)])
def test_columns_are_swizzled_as_boxes_are(swizzle, channels):
    array, box = images(2, 5, 6, 72), PixelBox((-1, -1), (-1, -1), channels, 24)
    image = loaded(array, box, (0, 1, 1, 8), (1, 2), shared_at=128, swizzle=swizzle)
    assert (image == column(array, box, (0, 1, 1, 8), (1, 2))).all()


def test_a_convolution_is_a_product_with_columns():
    """A 3 by 3 filter, stride 2, padding 1: the sum over its elements of column times weights is the convolution."""
    array, box = images(2, 6, 7, 8, dtype="f4") % 13, PixelBox((-1, -1), (-1, -1), 8, 24)
    weights = (np.arange(9 * 8) % 5).astype("f4").reshape(3, 3, 8)
    sums = sum(
        loaded(array, box, (0, -1, -1, 0), (r, s), (2, 2)) @ weights[r, s] for r, s in product(range(3), repeat=2)
    )
    padded = np.pad(array, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    assert (sums == np.einsum("npqcrs,rsc->npq", windows, weights).reshape(-1)).all()


@pytest.mark.parametrize(("lower", "upper"), [((0, 0), (0, 0)), ((1, 0), (-1, -2))])
def test_columns_are_stored_without_offsets(lower, upper):
    array, box = images(2, 5, 6, 16), PixelBox(lower, upper, 16, 28)
    at = (0, 1, 2, 0)
    values = images(28, 16) + 3000
    expected, number = array.copy(), column(np.arange(array.size).astype("f8").reshape(array.shape), box, at, fill=-1)
    inside = number >= 0
    expected.reshape(-1)[number[inside].astype(int)] = values[inside]
    description, parameter = mapping(array, box)
    clean(tiles.launched(text_of(STORE, description), parameter, values.view(np.uint8).reshape(-1).copy(), at))
    assert (array == expected).all()


def refused(body=LOAD, at=(0, 0, 0, 0), change=lambda text: text, offsets=None, **changes):
    """The message of the one finding of a copy."""
    box = replace(PixelBox((-1, -1), (-1, -1), 16, 24), **changes)
    array = images(2, 5, 6, 16)
    description, parameter = mapping(array, box)
    text = change(text_of(body, description, offsets)).replace("AGAIN:", "bra END; AGAIN:")
    return tiles.launched(text, parameter, np.zeros(description.box_bytes, np.uint8), at).findings[0]


@pytest.mark.parametrize(("options", "message"), [
    ({"at": (0, -2, 0, 0)}, "the copy begins at -2 along dimension 2; the pixel box goes from -1 to 3"),
    ({"at": (0, 0, 5, 0)}, "the copy begins at 5 along dimension 1; the pixel box goes from -1 to 4"),
    ({"offsets": (0, 256)}, "`offsets` has 256; with 4 dimensions the maximum is 255"),
    ({"body": STORE}, "the pixel box extends outside the tensor along dimension 1; stores must stay inside"),
    ({"change": lambda text: text.replace(".im2col", "").replace(", {%h1, %h2}", "")},
     "the tensor map is an im2col map, but the instruction copies tiles: write .im2col"),
])  # fmt: skip
def test_what_no_column_can_be(options, message):
    finding = refused(**options)
    assert finding.kind == "tensor-map"
    assert finding.message == message


def test_a_map_of_boxes_has_no_pixels():
    description, parameter = tiles.mapping(images(2, 5, 6, 16), (1, 2, 2, 16))
    text = text_of(LOAD, description).replace("AGAIN:", "bra END; AGAIN:")
    finding = tiles.launched(text, parameter, np.zeros(512, np.uint8), (0, 0, 0, 0)).findings[0]
    assert finding.message == ("the tensor map is tiled, but .im2col takes an im2col map (cuTensorMapEncodeIm2col)")
