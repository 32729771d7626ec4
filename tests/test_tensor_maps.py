"""Tensor maps as parameters: what one can be, which arrays it takes, what the driver is asked, and what a kernel sees."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, driver, f16, f32, s32, u32
from ptxdsl.assemble import Cubin, Resources
from ptxdsl.isa.tensor_map import PixelBox, TensorMapDescription
from ptxdsl.runtime.arguments import Signature
from ptxdsl.runtime.launch import load
from ptxdsl.runtime.tensor_maps import MappedAs, address_encoder, for_driver
from ptxdsl.runtime.tensor_maps import description as description_of
from ptxdsl.verify.effects import written

from .fake_driver import FakeCuda, installed
from .tracing import emitted, refusal

BAD_MAPS = {
    "no type": (
        lambda: pd.TensorMap("bf16", (64, 64)),
        "pd.TensorMap takes the type of the elements first; found 'bf16'", "for example bf16",
    ),
    "no such elements": (
        lambda: pd.TensorMap(pd.b128, (64, 64)),
        "a tensor map cannot have elements of type b128",
        "it takes u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, tf32, b8, s8, e4m3, e5m2, b16, s16, b32, b64",
    ),
    "too many axes": (
        lambda: pd.TensorMap(f16, (1, 1, 1, 1, 1, 8)),
        "the box of a tensor map is (1, 1, 1, 1, 1, 8); it is a tuple of 1 to 5 positive ints",
        "one for each axis of the array, outermost first, such as (128, 64)",
    ),
    "no ints": (
        lambda: pd.TensorMap(f16, (64.0, 64)),
        "the box of a tensor map is (64.0, 64); it is a tuple of 1 to 5 positive ints",
        "one for each axis of the array, outermost first, such as (128, 64)",
    ),
    "over 256": (
        lambda: pd.TensorMap(f16, (257, 64)),
        "a box of (257, 64) has 257 elements along an axis; the maximum is 256",
        "copy several boxes one after the other: pd.TensorMap.tiled makes a map of a tile of them",
    ),
    "not whole chunks": (
        lambda: pd.TensorMap(f16, (64, 12)),
        "the last axis of a box of (64, 12) has 24 bytes of f16, which is not a multiple of 16",
        "give it a multiple of 8 elements",
    ),
    "over the swizzle": (
        lambda: pd.TensorMap(f16, (128, 128), swizzle=128),
        "the last axis of a box of (128, 128) has 256 bytes of f16; swizzle=128 takes no more than 128",
        "make it 64 elements, and copy several boxes: pd.TensorMap.tiled makes a map of a tile of them",
    ),
    "innermost first": (
        lambda: pd.TensorMap(bf16, (64, 128), swizzle=128),
        "the last axis of a box of (64, 128) has 256 bytes of bf16; swizzle=128 takes no more than 128",
        "a box is written as the array's axes, outermost first: (128, 64)?",
    ),
    "no such swizzle": (
        lambda: pd.TensorMap(f16, (64, 64), swizzle=96),
        "the swizzle of a tensor map is 96", "it is 128, 64 or 32 bytes, or None",
    ),
    "no such fill": (
        lambda: pd.TensorMap(f16, (64, 64), fill="ones"),
        "the fill of a tensor map is 'ones'", 'it is "zeros" or "nan"',
    ),
    "NaN of integers": (
        lambda: pd.TensorMap(s32, (8, 8), fill="nan"),
        'a tensor map of s32 has fill="nan", and s32 has no NaN', 'fill with "zeros"',
    ),
    "a corner that is a number": (
        lambda: pd.TensorMap.im2col(f16, 64, 64, -1, -1),
        "a corner of the pixel box is -1; it is a tuple of 1 to 3 ints",
        "one for each axis of an image: (-1, -1) for a padding of 1",
    ),
    "corners of other images": (
        lambda: pd.TensorMap.im2col(f16, 64, 64, (-1, -1), (-1,)),
        "the corners of the pixel box are (-1, -1) and (-1,)", "give both for each axis of an image",
    ),
    "a corner far away": (
        lambda: pd.TensorMap.im2col(f16, 64, 64, (0, 0, -17), (0, 0, 0)),
        "a corner of the pixel box is -17; with 5 axes it is from -16 to 15", "it is a padding, or the padding minus the filter",
    ),
    "too many pixels": (
        lambda: pd.TensorMap.im2col(f16, 1025, 64, (0,), (0,)),
        "a column of 1025 pixels; the maximum is 1024", "copy several columns one after the other",
    ),
    "too many channels": (
        lambda: pd.TensorMap.im2col(f16, 64, 128, (0,), (0,), swizzle=128),
        "the last axis of a box of (64, 128) has 256 bytes of f16; swizzle=128 takes no more than 128",
        "make it 64 elements, and copy several boxes",
    ),
    "strides of other images": (
        lambda: pd.TensorMap.im2col(f16, 64, 64, (0, 0), (0, 0), (2,)),
        "the strides of the filter are (2,); they are 2 ints of 1 to 8", "one for each axis of an image",
    ),
    "no such interleave": (
        lambda: pd.TensorMap(f16, (1, 1, 8, 8), interleave=64),
        "the interleave of a tensor map is 64", "it is 16 or 32 bytes of channels, or None",
    ),
    "slices of 32 bytes without their swizzle": (
        lambda: pd.TensorMap(f16, (1, 1, 8, 16), interleave=32),
        "interleave=32 with swizzle=None", "slices of 32 bytes go with swizzle=32",
    ),
    "channels that are no slice": (
        lambda: pd.TensorMap(f16, (1, 1, 8, 16), interleave=16),
        "a box of (1, 1, 8, 16) has 16 channels of f16; interleave=16 brings slices of 8",
        "make the last axis 8, and copy the slices one by one",
    ),
    "pixels that are no slice": (
        lambda: pd.TensorMap.im2col(f32, 64, 8, (0,), (0,), interleave=16),
        "a column of (64, 8) has 8 channels of f32; interleave=16 brings slices of 4",
        "make the last axis 4, and copy the slices one by one",
    ),
    "a matrix with slices": (
        lambda: pd.TensorMap(f16, (64, 8, 8), interleave=16),
        "a box of (64, 8, 8) has no slices", "its axes are (n, slices, …, w, channels of a slice)",
    ),
    "several slices": (
        lambda: pd.TensorMap(f16, (1, 2, 8, 8), interleave=16),
        "a box of (1, 2, 8, 8) has 2 slices of channels", "one copy loads 1: copy them one by one",
    ),
    "a narrow box of slices": (
        lambda: pd.TensorMap(f16, (1, 1, 12, 8), interleave=16),
        "a box of (1, 1, 12, 8) is 12 wide", "the driver takes multiples of 8 for f16",
    ),
    "a tile that is a number": (
        lambda: pd.TensorMap.tiled(f16, 64),
        "a tile of a tensor map is 64; it is a tuple of 1 to 5 ints",
        "one for each axis of the array, outermost first, such as (128, 256)",
    ),
    "a tile of parts of boxes": (
        lambda: pd.TensorMap.tiled(f16, (64, 96), swizzle=128),
        "the last axis of a tile of (64, 96) has 192 bytes of f16, which is not a multiple of swizzle=128",
        "give it a multiple of 64 elements",
    ),
    "a tile of half chunks": (
        lambda: pd.TensorMap.tiled(f16, (64, 12)),
        "the last axis of a box of (64, 12) has 24 bytes of f16, which is not a multiple of 16",
        "give it a multiple of 8 elements",
    ),
    "no such promotion": (
        lambda: pd.TensorMap(f16, (8, 8), l2_promotion=96),
        "the l2_promotion of a tensor map is 96", "it is 0, 64, 128 or 256 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MAPS)
def test_a_map_that_cannot_be_is_refused_where_it_is_written(case):
    make, message, help = BAD_MAPS[case]
    with pytest.raises(pd.TraceError) as refused:
        make()
    assert (refused.value.message, refused.value.help) == (message, help)
    assert refused.value.at.file == __file__


def test_a_map_says_its_bytes_and_how_a_box_must_be_aligned():
    boxes = [pd.TensorMap(f16, (32, 64), swizzle=s) for s in (None, 128)] + [pd.TensorMap(f32, (16, 8), swizzle=32)]
    assert [(m.bytes, m.alignment) for m in boxes] == [(4096, 128), (4096, 1024), (512, 256)]
    assert str(boxes[1]) == "TensorMap(f16, (32, 64), swizzle=128)"
    assert pd.TensorMap(f16, 64) == pd.TensorMap(f16, (64,))


@pytest.mark.parametrize("columns", [16, 32, 64, 128])
def test_a_tile_as_wide_as_its_swizzle_or_narrower_is_one_box(columns):
    tiled = pd.TensorMap.tiled(f16, (64, columns), swizzle=128)
    assert tiled.box == (64, min(columns, 64))


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("element", [pd.u8, bf16, f32, pd.f64], ids=str)
def test_a_swizzled_box_moves_chunks_of_16_bytes_by_the_bits_above_128(element, swizzle):
    map = pd.TensorMap(element, (16, swizzle // element.bytes), swizzle=swizzle)
    for row, column in itertools.product(range(16), range(map.box[1])):
        byte = row * swizzle + column * element.bytes
        moved = byte ^ (byte >> 7 & swizzle // 16 - 1) << 4
        assert map.layout(row, column) * element.bytes == moved


def test_several_boxes_lie_one_behind_the_other():
    map = pd.TensorMap(f16, (32, 64), swizzle=128)
    assert map.boxes_layout(4).shape == (4, 32, 64)
    assert map.boxes_layout(4)(2, 5, 8) == 2 * 2048 + map.layout(5, 8)


def described(map, array):
    """What a launch with an array hands over: the description, with the array's address."""
    ((value),) = Signature("k", [("a", map)], {"a"}).check([array], -1)
    return TensorMapDescription.decode(value.filled([value.holders[0][2].pointer.to_bytes(8, "little")]))


def test_an_array_is_described_innermost_first():
    array = np.zeros((5, 70, 96), np.float16)[:, 3:, :72]
    map = pd.TensorMap(f16, (2, 32, 64), swizzle=128, fill="nan", l2_promotion=256)
    assert described(map, array) == TensorMapDescription(
        address=array.ctypes.data, type=f16, dims=(72, 67, 5), strides=(192, 192 * 70), box=(64, 32, 2),
        element_strides=(1, 1, 1), swizzle=128, fill="nan", l2_promotion=256,
    )  # fmt: skip


def test_images_are_described_innermost_first():
    images = np.zeros((5, 9, 14, 64), np.float16)
    map = pd.TensorMap.im2col(f16, 128, 32, (-1, -2), (-3, 0), (1, 2), swizzle=64)
    assert described(map, images) == TensorMapDescription(
        address=images.ctypes.data, type=f16, dims=(64, 14, 9, 5), strides=(128, 1792, 16128), box=(),
        element_strides=(1, 2, 1, 1), swizzle=64, l2_promotion=128, pixel_box=PixelBox((-2, -1), (0, -3), 32, 128),
    )  # fmt: skip
    assert map.bytes == described(map, images).box_bytes == 128 * 32 * 2


def test_images_that_are_less_than_the_filter_are_refused():
    map = pd.TensorMap.im2col(f16, 64, 64, (0, 0), (-2, -2))
    with pytest.raises(pd.LaunchError) as refused:
        Signature("k", [("a", map)]).check([np.zeros((4, 9, 2, 64), np.float16)], -1)
    assert refused.value.message == (
        "`a` expects TensorMap.im2col(f16, 64, 64, (0, 0), (-2, -2)); the images are (9, 2): "
        "the pixel box is empty along dimension 1: from 0 to -1"
    )
    assert refused.value.help == "pass larger images"


def test_an_array_may_be_mapped_with_other_corners_than_the_kernel_knows():
    known, other = (pd.TensorMap.im2col(f16, 64, 64, *corners) for corners in (((0, 0), (0, 0)), ((-1, -2), (1, 2))))
    images = np.zeros((4, 9, 2, 64), np.float16)
    (struct,) = Signature("k", [("a", known)]).check([MappedAs(images, other)], -1)
    assert TensorMapDescription.decode(struct.content).pixel_box.lower == (-2, -1)


def test_an_array_that_is_mapped_with_another_box_is_refused():
    known, other = (pd.TensorMap.im2col(f16, pixels, 64, (0, 0), (0, 0)) for pixels in (64, 32))
    with pytest.raises(pd.LaunchError) as refused:
        Signature("k", [("a", known)]).check([MappedAs(np.zeros((4, 9, 2, 64), np.float16), other)], -1)
    assert refused.value.message == (
        "`a` expects TensorMap.im2col(f16, 64, 64, (0, 0), (0, 0)); "
        "the array is mapped as TensorMap.im2col(f16, 32, 64, (0, 0), (0, 0))"
    )
    assert refused.value.help == "map it with the same element type, box and swizzle"


def test_what_is_described_is_what_the_driver_takes():
    for shape, box in (((40,), (16,)), ((1, 64), (1, 16)), ((3, 1, 64), (1, 1, 16))):
        assert not [*described(pd.TensorMap(f16, box), np.zeros(shape, np.float16)).problems()]


def test_the_stride_of_an_axis_of_one_element_does_not_matter():
    array = np.lib.stride_tricks.as_strided(np.zeros(64, np.float16), (1, 64), (6, 2))
    assert described(pd.TensorMap(f16, (1, 64)), array).strides == (16,)


MAP = pd.TensorMap(f16, (32, 64), swizzle=128)
EXPECTS = "`a` expects TensorMap(f16, (32, 64), swizzle=128)"
half = np.zeros((64, 128), np.float16)
BAD_ARRAYS = {
    "rank": (half[0], ", got a numpy array of f16 with shape (128,)", "pass an array of 2 axes"),
    "empty": (half[:0], ", got a numpy array of f16 with shape (0, 128): each axis of a tensor map has 1 to 2^32 elements", None),
    "column-major": (
        half.T, "; it has shape (128, 64) and strides (1, 128): the stride of the last axis must be 1",
        "pass a row-major array, such as the transpose of a column-major one, or a copy",
    ),
    "stride": (
        np.zeros((64, 100), np.float16),
        "; the stride of axis 0 is 200 bytes; TMA needs a multiple of 16, at least 0 and less than 2^40",
        "pad the rows to a multiple of 16 bytes, or copy with cp.async",
    ),
    "backwards": (
        half[::-1],
        "; the stride of axis 0 is -256 bytes; TMA needs a multiple of 16, at least 0 and less than 2^40",
        "TMA copies no reversed axis: pass a copy, or the array without [::-1] and count axis 0 backwards",
    ),
    "base": (
        half[:, 4:], f"; it starts at {half.ctypes.data + 8:#x}; TMA needs an address that is a multiple of 16 bytes",
        "pass a copy, or start the slice at another element",
    ),
    "number": (7, ", got 7", "pass an array"),
    "None": (None, ", got None", "pass an array"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_an_array_that_tma_cannot_address_is_refused(case):
    array, why, help = BAD_ARRAYS[case]
    with pytest.raises(pd.LaunchError) as refused:
        Signature("k", [("a", MAP)]).check([array], -1)
    assert (refused.value.message, refused.value.help) == (EXPECTS + why, help)


SLICED = pd.TensorMap(f16, (1, 1, 8, 8), interleave=16)
BAD_SLICES = {
    "another rank": (half, ", got a numpy array of f16 with shape (64, 128)", "pass an array of 4 axes"),
    "channels of two slices": (
        np.zeros((2, 3, 9, 16), np.float16),
        "; it has shape (2, 3, 9, 16) and strides (432, 144, 16, 1): the last axis must be the 8 channels of a slice, "
        "and the slices of an image row must be contiguous", "pass a row-major array (n, slices, …, w, channels of a slice)",
    ),
    "slices apart": (
        np.zeros((2, 3, 9, 16), np.float16)[..., :8],
        "; it has shape (2, 3, 9, 8) and strides (432, 144, 16, 1): the last axis must be the 8 channels of a slice, "
        "and the slices of an image row must be contiguous", "pass a row-major array (n, slices, …, w, channels of a slice)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SLICES)
def test_images_whose_channels_lie_otherwise_are_refused(case):
    array, why, help = BAD_SLICES[case]
    with pytest.raises(pd.LaunchError) as refused:
        Signature("k", [("a", SLICED)]).check([array], -1)
    name = "`a` expects TensorMap(f16, (1, 1, 8, 8), interleave=16)"
    assert (refused.value.message, refused.value.help) == (name + why, help)


def test_a_map_of_interleaved_channels_says_where_slices_lie():
    images = np.zeros((2, 3, 5, 7, 8), np.float16)
    map = pd.TensorMap(f16, (1, 1, 4, 8, 8), swizzle=64, interleave=16)
    assert described(map, images) == TensorMapDescription(
        address=images.ctypes.data, type=f16, dims=(7, 5, 3, 2), strides=(7 * 16, 35 * 16, 105 * 16), box=(8, 4, 1, 1),
        element_strides=(1,) * 4, swizzle=64, interleave=16, l2_promotion=128,
    )  # fmt: skip
    assert map.bytes == described(map, images).box_bytes == 4 * 8 * 16
    assert str(map) == "TensorMap(f16, (1, 1, 4, 8, 8), swizzle=64, interleave=16)"


def test_the_driver_is_asked_for_interleaved_channels(gpu):
    image = pd.TensorMap.im2col(f16, 32, 8, (-1,), (-1,), interleave=16)
    assert not [*described(image, np.zeros((2, 3, 9, 8), np.float16)).problems()]
    with driver.on(0):
        for_driver(described(image, np.zeros((2, 3, 9, 8), np.float16)).encode())
    assert gpu.maps[-1][-1][1] == "INTERLEAVE_16B"


def test_an_array_of_another_type_is_refused():
    with pytest.raises(pd.LaunchError) as refused:
        Signature("k", [("a", MAP)]).check([half.astype(np.float32)], -1)
    assert refused.value.message == EXPECTS + ", got a numpy array of f32 with shape (64, 128)"
    assert refused.value.help == "convert it to float16 first"


def test_an_array_that_is_written_by_its_map_must_be_writable_and_alone():
    signature = Signature("k", [("a", MAP), ("b", MAP)], {"b"})
    with pytest.raises(pd.LaunchError, match="`b`, which k writes, shares memory with `a`"):
        signature.check([half, half[32:]], -1)
    frozen = half.copy()
    frozen.flags.writeable = False
    with pytest.raises(pd.LaunchError, match="`b` is read-only, but k writes it"):
        signature.check([half, frozen], -1)


class Tensor:
    """Answers as a torch tensor of f16 does."""

    __module__ = "torch"
    dtype, itemsize, device = "torch.float16", 2, SimpleNamespace(type="cuda")
    addresses = itertools.count(1 << 30, 1 << 20)

    def __init__(self, shape, strides, address=None, ordinal=0):
        self.shape, self.strides, self.address = shape, strides, address or next(self.addresses)
        self.nbytes, self.ordinal = 2 * int(np.prod(shape)), ordinal

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.ordinal

    def is_contiguous(self):
        return self.strides == (self.shape[1], 1)

    def stride(self):
        return self.strides


@pytest.fixture
def gpu(monkeypatch):
    stream = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=stream))
    with installed(FakeCuda(widths=(128, 4), gpus=2)) as fake:
        yield fake


def handle():
    return load(Cubin(b"image", "sm_90a", {"k": Resources()}), "k", [("a", MAP), ("n", u32)], ("a",))


def numbers(gpu):
    """By the number of its making, the map that each launch handed over."""
    return [int.from_bytes(launch["parameters"][0][:8], "little") for launch in gpu.launches]


def test_the_driver_encodes_the_map_once_for_an_array_and_each_launch_hands_it_over(gpu):
    launch, x, y = handle(), Tensor((64, 128), (160, 1)), Tensor((64, 128), (128, 1))
    for tensor in (x, x, x, y, x, y):
        launch(1, 128, (tensor, 4))
    modes = ["DATA_TYPE_FLOAT16", "INTERLEAVE_NONE", "SWIZZLE_128B", "L2_PROMOTION_L2_128B", "FLOAT_OOB_FILL_NONE"]
    assert gpu.maps[0] == (2, x.address, [128, 64], [320], [64, 32], [1, 1], modes)
    assert gpu.maps[-1] == (2, y.address, [128, 64], [256], [64, 32], [1, 1], modes)
    seen = numbers(gpu)
    assert [gpu.maps[n - 1][1] for n in seen] == [t.address for t in (x, x, x, y, x, y)]
    assert len(gpu.maps) == 3  # x carefully, then each of them quickly
    assert {launch["parameters"][1] for launch in gpu.launches} == {(4).to_bytes(4, "little")}


def test_arrays_that_lie_alike_differ_by_their_address_alone(gpu):
    encode = address_encoder(pd.TensorMap(f16, (32, 64), swizzle=128), 2, (64, 128), (160, 1), 2)
    assert [encode(address)[:1] for address in (1 << 20, 3 << 20)] == [b"\1", b"\2"]
    (*first, _), (*second, _) = gpu.maps
    assert first == [2, 1 << 20, [128, 64], [320], [64, 32], [1, 1]]
    assert second == [2, 3 << 20, *first[2:]]
    with pytest.raises(ValueError):
        encode((1 << 20) + 8)


@pytest.mark.parametrize("shape, strides", [((64, 128, 1), (160, 1, 1)), ((64, 128), (1, 160)), ((64, 128), (161, 1))])
def test_what_a_map_cannot_address_has_no_encoder(gpu, shape, strides):
    with pytest.raises(ValueError):
        address_encoder(pd.TensorMap(f16, (32, 64), swizzle=128), 2, shape, strides, 2)


def test_the_driver_encodes_columns_of_pixels_in_its_own_way(gpu):
    images = pd.TensorMap.im2col(f16, 64, 32, (-1, 0), (-1, -2), (2, 1))
    description = description_of(images, 1 << 20, (2, 9, 14, 64), (16128, 1792, 128, 2))
    assert for_driver(description.encode())
    modes = ["DATA_TYPE_FLOAT16", "INTERLEAVE_NONE", "SWIZZLE_NONE", "L2_PROMOTION_L2_128B", "FLOAT_OOB_FILL_NONE"]
    assert gpu.maps == [(4, 1 << 20, [64, 14, 9, 2], [128, 1792, 16128], [], [1, 1, 2, 1], modes)]
    assert gpu.pixels == ([0, -1], [-2, -1], 32, 64)


def test_an_array_that_no_longer_fits_is_refused_also_after_a_good_launch(gpu):
    launch, x = handle(), Tensor((64, 128), (128, 1))
    launch(1, 128, (x, 4))
    for tensor in (
        Tensor((64, 128), (100, 1)),
        Tensor((128, 64), (1, 128)),
        Tensor((64, 128), (128, 1), (1 << 30) + 4),
    ):
        with pytest.raises(pd.LaunchError, match="`a` expects TensorMap"):
            launch(1, 128, (tensor, 4))
    with pytest.raises(pd.LaunchError, match=r"`a` is .* on cuda:1, but this launch runs on cuda:0"):
        launch(1, 128, (Tensor((64, 128), (128, 1), ordinal=1), 4), device=0)
    assert len(gpu.launches) == 1


def test_numpy_arrays_are_copied_and_the_map_is_of_the_copy(gpu):
    array = np.arange(64 * 128, dtype=np.float16).reshape(64, 128)
    handle().launch_on_copies(1, 128, (array, 4))
    assert gpu.maps[0][1] != array.ctypes.data


def test_a_failing_driver_says_what_it_did(gpu):
    gpu.failing["cuTensorMapEncodeTiled"] = gpu.CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(pd.LaunchError, match="encoding a tensor map: CUDA_ERROR_INVALID_VALUE"):
        handle()(1, 128, (Tensor((64, 128), (128, 1)), 4))


class Matrices(pd.Parameters):
    """A map as a field of a group."""

    a: pd.TensorMap(f16, (32, 64), swizzle=128)
    n: u32


@pd.kernel
def grouped(p: Matrices):
    p.a.prefetch()


@pd.kernel
def copies(a: pd.TensorMap(f16, (32, 64), swizzle=128), b: pd.TensorMap(f16, (32, 64))):
    tile, full = a.shared(), pd.shared(pd.b64, 1)
    a.load(tile, (pd.ctaid.x, 64), full)
    b.store((0, -8), tile.address())
    b.reduce("add", (0, 0), tile.address(8, 0))


@pd.kernel
def columns(a: pd.TensorMap.im2col(f16, 64, 64, (-1, -1), (-1, -1), swizzle=128), s: u32):
    tile, full = a.shared(), pd.shared(pd.b64, 1)
    a.load(tile, (0, -1, 3, 64), full, offsets=(2, s.to(pd.u16)))
    a.load(tile, (0, -1, 3, 64), full, multicast=3)
    a.store((0, 1, 2, 0), tile)


def test_columns_of_pixels_take_offsets_to_elements_of_the_filter():
    load = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    lines = [line for line in emitted(columns, "sm_90a") if "bulk" in line]
    assert lines[0].startswith(f"{load} [dynamic_shared], [%a, {{64, 3, -1, 0}}], [full], {{%")
    assert lines[0].endswith(", 2};")
    assert lines[1:] == [
        f"{load}.multicast::cluster [dynamic_shared], [%a, {{64, 3, -1, 0}}], [full], {{0, 0}}, 3;",
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%a, {0, 2, 1, 0}], [dynamic_shared];",
    ]


IMAGES = "a: pd.TensorMap.im2col(f16, 64, 64, (0, 0), (0, 0))"


@pytest.mark.parametrize("offsets", ["(1,)", "3"])
def test_offsets_of_other_images_are_refused(offsets):
    message = refusal(f"a.load(a.shared(), (0, 0, 0, 0), pd.shared(pd.b64, 1), offsets={offsets})", IMAGES, "sm_90a")
    assert message.startswith(
        "`a` is a TensorMap.im2col(f16, 64, 64, (0, 0), (0, 0)): `offsets` has one number for each of 2 axes of an image\n"
    )
    assert message.endswith("  help: give the element of the filter times the dilation, outermost axis first")


def test_boxes_have_no_offsets():
    body = "a.load(a.shared(), (0, 0), pd.shared(pd.b64, 1), offsets=(0,))"
    message = refusal(body, "a: pd.TensorMap(f16, (32, 64))", "sm_90a")
    assert message.startswith("`a` is a TensorMap(f16, (32, 64)), whose boxes have no offsets\n")
    assert message.endswith("  help: leave `offsets` out, or use .im2col")


def test_a_method_is_one_instruction_whose_coordinates_go_innermost_first():
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    assert emitted(copies, "sm_90a") == [
        f"{load} [dynamic_shared], [%a, {{64, %ctaid_x}}], [full];",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%b, {-8, 0}], [dynamic_shared];",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%b, {0, 0}], [dynamic_shared+1024];",
    ]


@pd.kernel(cluster=2)
def shared_out(a: pd.TensorMap(f16, (32, 64)), policy: pd.u64):
    a.load(a.shared(), (0, 0), pd.shared(pd.b64, 1), multicast=3, policy=policy)
    a.load(a.shared(), (0, 0), pd.shared(pd.b64, 1), policy=policy)


def test_a_box_may_go_to_several_blocks_and_say_how_long_it_is_kept():
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    several, one = emitted(shared_out, "sm_90a")
    assert several.startswith(f"{load}.multicast::cluster.L2::cache_hint [dynamic_shared], [%a, {{0, 0}}], [")
    assert several.endswith("], 3, %policy;")
    assert one.startswith(f"{load}.L2::cache_hint [dynamic_shared+4096], [%a, {{0, 0}}], [")
    assert one.endswith("], %policy;")
    assert shared_out.cubin("sm_90a").warnings == ()


def test_a_map_is_passed_by_value_and_its_array_is_written_only_by_stores():
    text = copies.ptx("sm_90a")
    assert ".param .align 64 .b8 a[128]," in text
    assert "cvta.param.u64 %a," in text
    assert written(copies.ir("sm_90a").kernels[0]) == {"b"}
    assert copies.resources("sm_90a").stack_bytes == 0


def test_a_map_is_a_field_of_a_group():
    text = grouped.ptx("sm_90a")
    assert ".param .align 64 .b8 p_a[128]," in text
    assert "prefetch.tensormap [%p_a];" in text
    group = Matrices(a=half, n=4)
    values = Signature("k", [("p", Matrices)]).flat([group])
    assert values[0] is half


def test_a_map_of_a_group_is_made_at_the_launch(gpu):
    launch = load(Cubin(b"image", "sm_90a", {"k": Resources()}), "k", [("p", Matrices)], ("p.a",))
    tensors = [Tensor((64, 128), (128, 1)) for _ in range(2)]
    for tensor in (*tensors, *tensors):
        launch(1, 128, (Matrices(a=tensor, n=4),))
    assert [gpu.maps[n - 1][1] for n in numbers(gpu)] == [tensor.address for tensor in (*tensors, *tensors)]
    with pytest.raises(pd.LaunchError, match=r"`p\.a` expects TensorMap\(f16, \(32, 64\), swizzle=128\); it has shape"):
        launch(1, 128, (Matrices(a=Tensor((128, 64), (1, 128)), n=4),))


def test_coordinates_of_another_rank_are_refused():
    message = refusal("a.load(a.shared(), (0, 0, 0), pd.shared(pd.b64, 1))", "a: pd.TensorMap(f16, (32, 64))", "sm_90a")
    assert "`a` is a TensorMap(f16, (32, 64)): its array has 2 axes; coordinates for 3 given" in message
    assert "help: give the start of the box along each axis, outermost first" in message


def test_a_place_that_is_no_address_is_refused():
    message = refusal("a.store((0, 0), 64)", "a: pd.TensorMap(f16, (32, 64))", "sm_90a")
    assert "a bulk copy takes an array or a pointer in shared memory; found 64" in message


def test_bulk_copies_name_the_target_that_has_them():
    message = refusal("a.store((0, 0), a.shared())", "a: pd.TensorMap(f16, (32, 64))", "sm_80")
    assert "needs sm_90" in message
