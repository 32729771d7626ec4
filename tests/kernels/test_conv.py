"""conv2d() against a plain numpy convolution in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f16, f32, f64, s8, s32
from ptxdsl.kernels.call.convolutions.conv import plan_of
from ptxdsl.kernels.call.convolutions.problem import convolution_problem, window
from ptxdsl.kernels.candidates.facts import ProductFacts, ProductKind
from ptxdsl.kernels.candidates.sm80 import CUBE as SMALL
from ptxdsl.kernels.candidates.sm80 import DEEP, NARROW, TALL, of_convolutions
from ptxdsl.kernels.choose.products import ranked_convolutions
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d, conv2d_kernel
from ptxdsl.kernels.epilogue import add, add_relu, gelu, per_column, per_row, relu
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.schedule import (
    Conv2dProblem,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKIdentityThreadblockSwizzle,
    StreamKThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
)
from tests.machines import MACHINES, NAMES, machine

DTYPES = {
    **NAMES,
    "f64": np.dtype(np.float64),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "s32": np.dtype(np.int32),
}
ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8}
TF32 = np.uint32(0xFFFFE000)  # the bits that tensor cores keep of an f32


def values(rng, shape, dtype):
    """N(0,1), or small integers; what is multiplied as tf32 is made of tf32."""
    if DTYPES[dtype].kind in "iu":
        return rng.integers(0 if dtype == "u8" else -9, 9, shape).astype(DTYPES[dtype])
    drawn = rng.standard_normal(shape)
    if dtype != "f32":
        return drawn.astype(DTYPES[dtype])
    drawn = drawn.astype(np.float32)
    drawn.view(np.uint32)[...] &= TF32
    return drawn


def poisoned(shape, dtype):
    """An output that no result equals."""
    return np.full(shape, -(2**31) if dtype == "s32" else np.nan).astype(DTYPES[dtype])


def sides(pad):
    """((above, below), (left, right))."""
    pair = pad if isinstance(pad, tuple) else (pad, pad)
    return tuple(side if isinstance(side, tuple) else (side, side) for side in pair)


def both(value):
    return value if isinstance(value, tuple) else (value, value)


def plain(x, w, pad=0, stride=1, dilation=1):
    """The convolution in float64, one place of the window after another."""
    x, w = np.pad(x.astype(np.float64), ((0, 0), *sides(pad), (0, 0))), w.astype(np.float64)
    (n, height, width, _), (k, r, s, _) = x.shape, w.shape
    (down, right), (apart_h, apart_w) = both(stride), both(dilation)
    rows, columns = (height - (r - 1) * apart_h - 1) // down + 1, (width - (s - 1) * apart_w - 1) // right + 1
    out = np.zeros((n, rows, columns, k))
    for i, j in np.ndindex(r, s):
        seen = x[:, i * apart_h :: down, j * apart_w :: right][:, :rows, :columns]
        out += np.einsum("npqc,kc->npqk", seen, w[:, i, j])
    return out


def hold(found, expected, scale, products, output):
    """Every element within the rounding of its sum."""
    allowed = (products / 16 + 2) * 2.0**-22 * scale + ROUNDING.get(output, 0.0) * np.abs(expected) + 1e-7
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= allowed), np.nanmax(np.abs(found - expected) - allowed)


def check(where, rng, image, filters, *, inputs="f16", output=None, config=None, split_k=None, **moves):
    """Convolves (N, H, W, C) images with (K, R, S) filters."""
    output = output or inputs
    x, w = values(rng, image, inputs), values(rng, (*filters, image[3]), inputs)
    expected, scale = plain(x, w, **moves), plain(np.abs(x), np.abs(w), **moves)
    out = where.array(poisoned(expected.shape, output))
    result = conv2d(where.array(x), where.array(w), out=out, config=config, split_k=split_k, **moves)
    assert result is out
    hold(where.values(result), expected, scale, w[0].size if len(w) else 0, output)


CASES = {
    "1x1": ((2, 7, 9, 64), (24, 1, 1), {}),
    "3x3": ((2, 7, 9, 64), (40, 3, 3), {"pad": 1}),
    "stem": ((1, 21, 19, 3), (24, 7, 7), {"pad": 3, "stride": 2}),
    "dilated": ((1, 12, 11, 16), (16, 3, 3), {"pad": 2, "dilation": 2}),
    "one side": ((1, 6, 8, 8), (8, 3, 2), {"pad": ((2, 0), (0, 1))}),
    "both ways": ((2, 9, 14, 16), (8, 2, 4), {"pad": (1, 2), "stride": (2, 3), "dilation": (3, 2)}),
    "padding alone": ((1, 1, 1, 8), (8, 1, 1), {"pad": 3, "stride": 3}),
    "one channel": ((2, 9, 8, 1), (9, 3, 3), {}),
    "one filter": ((2, 5, 6, 32), (1, 3, 3), {"pad": 1}),
    "odd channels": ((1, 7, 5, 33), (17, 3, 3), {"pad": 1}),
    "pairs of channels": ((1, 7, 5, 6), (18, 3, 3), {"pad": 1}),
    "fours of channels": ((1, 7, 5, 12), (20, 3, 3), {"pad": 1}),
    "window of the image": ((3, 5, 4, 24), (10, 5, 4), {}),
    "no images": ((0, 5, 5, 8), (8, 3, 3), {}),
    "no filters": ((1, 5, 5, 8), (0, 3, 3), {}),
    "no channels": ((1, 5, 5, 0), (8, 3, 3), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_convolutions_of_all_kinds(name, case, rng):
    image, filters, moves = CASES[case]
    check(machine(name), rng, image, filters, **moves)


def any_convolution(rng):
    """Sizes, and moves of a window that has a place."""
    window, dilation, stride = rng.integers(1, 5, 2), rng.integers(1, 4, 2), rng.integers(1, 4, 2)
    pad = rng.integers(0, 4, (2, 2))
    spans = (window - 1) * dilation + 1
    image = np.maximum(spans - pad.sum(1), 1) + rng.integers(0, 9, 2)
    channels = int(rng.choice([1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 31, 32, 40, 64, 72]))
    shape = int(rng.integers(1, 4)), *map(int, image), channels
    moves = {
        "pad": tuple(map(tuple, pad.tolist())),
        "stride": tuple(stride.tolist()),
        "dilation": tuple(dilation.tolist()),
    }
    return shape, (int(rng.integers(1, 70)), *map(int, window)), moves


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("part", range(8))
def test_any_sizes(name, part, rng):
    for _ in range(1 if name == "emulator" else 12):
        image, filters, moves = any_convolution(rng)
        check(machine(name), rng, image, filters, **moves)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("config", [DEEP, TALL, NARROW, SMALL], ids=["deep", "tall", "narrow", "small"])
@pytest.mark.parametrize("channels", [16, 20, 5])
def test_all_tiles(name, config, channels, rng):
    check(machine(name), rng, (2, 13, 14, channels), (70, 3, 3), pad=1, config=config)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "inputs, output", [("bf16", "bf16"), ("bf16", "f32"), ("f16", "f32"), ("f32", "f32"), ("f32", "f16"), ("f64", "f64"), ("s8", "s32"), ("u8", "f32")]
)  # fmt: skip
@pytest.mark.parametrize("channels", [16, 3])
def test_all_types(name, inputs, output, channels, rng):
    check(machine(name), rng, (2, 9, 8, channels), (20, 3, 3), pad=1, inputs=inputs, output=output)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("reduction", ["serial", "parallel", "scatter"])
@pytest.mark.parametrize("split_k, channels", [(2, 32), (3, 5), (40, 8)])
def test_blocks_share_a_sum(name, reduction, split_k, channels, rng):
    config = GemmConfig(tile=(64, 64, 32), warp=(32, 32), reduction=reduction)
    for _ in range(2):
        check(machine(name), rng, (2, 9, 8, channels), (20, 3, 3), pad=1, config=config, split_k=split_k)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "schedule, split_k",
    [
        (IdentityThreadblockSwizzle(4), 1),
        (HorizontalThreadblockSwizzle(), 2),
        (SplitKIdentityThreadblockSwizzle(8), 2),
        (PersistentScheduler(), 1),
        (StreamKThreadblockSwizzle(multiprocessors=7), 1),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_schedules(name, schedule, split_k, rng):
    """Blocks compute several tiles, and parts of tiles."""
    config = GemmConfig(tile=(64, 64, 32), warp=(32, 32), schedule=schedule)
    for image in ((2, 12, 13, 8), (1, 21, 20, 16)):
        check(machine(name), rng, image, (200, 3, 3), pad=1, config=config, split_k=split_k)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_resident_blocks_compute_many_tiles(name, rng):
    """More tiles than blocks: what a block knows of its rows is found anew for each."""
    config = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=12, schedule=PersistentScheduler())  # two of them fit
    image = (1, 100, 101, 1) if name == "emulator" else (12, 100, 101, 8)
    check(machine(name), rng, image, (70, 1, 2), config=config)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_warps_share_the_k_of_a_tile(name, rng):
    config = GemmConfig(tile=(64, 64, 64), warp=(32, 64, 32), stages=3)
    check(machine(name), rng, (2, 9, 8, 24), (70, 3, 3), pad=1, config=config)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("split_k", [None, 3])
@pytest.mark.parametrize("case", ["relu", "bias", "residual", "pixels", "gelu"])
def test_bias_and_relu_in_the_epilogue(name, case, split_k, rng):
    where = machine(name)
    x, w = values(rng, (2, 9, 8, 16), "f16"), values(rng, (20, 3, 3, 16), "f16")
    bias, residual = values(rng, (20,), "f32"), values(rng, (2, 9, 8, 20), "f16")
    sums, scale = plain(x, w, 1), plain(np.abs(x), np.abs(w), 1) + 10
    pixels, out = np.arange(144, dtype=np.float32), where.array(poisoned((2, 9, 8, 20), "f16"))
    epilogue, operands, expected = {
        "relu": (relu, (), np.maximum(sums, 0)),
        "bias": (add_relu, (per_column(where.array(bias)),), np.maximum(sums + bias, 0)),
        "residual": (add, (where.array(residual),), sums + residual),
        "pixels": (add, (per_row(where.array(pixels)),), sums + pixels.reshape(2, 9, 8, 1)),
        "gelu": (gelu, (), None),
    }[case]
    conv2d(where.array(x), where.array(w), pad=1, out=out, epilogue=epilogue, operands=operands, split_k=split_k)
    if expected is None:
        assert np.isfinite(where.values(out)).all()
    else:
        hold(where.values(out), expected, scale, 144, "f16")


@pytest.mark.parametrize("name", MACHINES)
def test_it_adds_to_what_out_holds(name, rng):
    where = machine(name)
    x, w, before = (
        values(rng, (2, 9, 8, 16), "f16"),
        values(rng, (20, 3, 3, 16), "f16"),
        values(rng, (2, 9, 8, 20), "f16"),
    )
    out = where.array(before.copy())
    conv2d(where.array(x), where.array(w), pad=1, out=out, epilogue=add, operands=(out,))
    hold(where.values(out), plain(x, w, 1) + before, plain(np.abs(x), np.abs(w), 1) + 10, 144, "f16")


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("first, channels", [(0, 8), (8, 16), (4, 8), (3, 5), (1, 8)])
def test_some_channels_of_larger_arrays(name, first, channels, rng):
    """Groups are convolutions of some channels; what lies beside them stays as it is."""
    where = machine(name)
    x, out = values(rng, (2, 8, 7, 24), "f16"), poisoned((2, 6, 5, 48), "f16")
    w = values(rng, (9, 3, 3, channels), "f16")
    images, whole, part = where.array(x), where.array(out), slice(first, first + channels)
    conv2d(images[..., part], where.array(w), out=whole[..., 20:29])
    found, x = where.values(whole), x[..., part]
    hold(found[..., 20:29], plain(x, w), plain(np.abs(x), np.abs(w)), w[0].size, "f16")
    assert np.isnan(found[..., :20]).all() and np.isnan(found[..., 29:]).all()


@pytest.mark.parametrize("name", MACHINES)
def test_a_part_of_each_image(name, rng):
    where = machine(name)
    x, w = values(rng, (4, 12, 13, 8), "f16"), values(rng, (16, 3, 3, 8), "f16")
    part = slice(None, None, 2), slice(2, 11), slice(1, 12, 2)
    out = where.array(poisoned((2, 9, 6, 16), "f16"))
    conv2d(where.array(x)[part], where.array(w), pad=1, out=out)
    hold(where.values(out), plain(x[part], w, 1), plain(np.abs(x[part]), np.abs(w), 1), 72, "f16")


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("channels, gap", [(12, 4), (3, 5), (16, 1), (8, 8)])
def test_filters_may_lie_apart(name, channels, gap, rng):
    """What lies between them is not read."""
    where, size = machine(name), 9 * channels
    whole = np.full((10, size + gap), np.nan, np.float16)
    whole[:, :size] = values(rng, (10, size), "f16")
    strides = [2 * n for n in (size + gap, 3 * channels, channels, 1)]
    w = np.lib.stride_tricks.as_strided(whole, (10, 3, 3, channels), strides)
    x, out = values(rng, (2, 6, 5, channels), "f16"), where.array(poisoned((2, 6, 5, 10), "f16"))
    given = w if name == "emulator" else where.array(whole).as_strided(w.shape, [n // 2 for n in strides])
    conv2d(where.array(x), given, pad=1, out=out)
    hold(where.values(out), plain(x, w, 1), plain(np.abs(x), np.abs(w), 1), size, "f16")


@pytest.mark.exhaustive
@pytest.mark.parametrize("inputs, channels, split_k", [("f16", 8, 1), ("f16", 3, 1), ("f64", 2, 1), ("s8", 16, 2)])
def test_images_and_filters_may_be_read_only(inputs, channels, split_k, rng):
    image, w = values(rng, (1, 1, 1, channels), inputs), values(rng, (5, 3, 3, channels), inputs)
    w.flags.writeable = False
    x = np.broadcast_to(image, (2, 6, 5, channels))
    assert not x.flags.writeable
    out = conv2d(x, w, pad=1, split_k=split_k)
    hold(out.astype(np.float64), plain(x, w, 1), plain(np.abs(x), np.abs(w), 1), w[0].size, inputs)


@pytest.mark.gpu
def test_tensors_in_channels_last_order_are_taken_as_they_lie(rng):
    where = machine("gpu")
    x, w = values(rng, (2, 9, 8, 16), "f16"), values(rng, (20, 3, 3, 16), "f16")
    images, filters = (where.array(v).permute(0, 3, 1, 2) for v in (x, w))
    assert images.is_contiguous(memory_format=where.torch.channels_last)
    found = conv2d(images.permute(0, 2, 3, 1), filters.permute(0, 2, 3, 1), pad=1)
    hold(where.values(found), plain(x, w, 1), plain(np.abs(x), np.abs(w), 1), 144, "f16")


@pytest.mark.gpu
def test_a_planned_launch_is_the_same_as_the_first(rng):
    where = machine("gpu")
    for split_k in (None, 2):
        for pad in (0, 1, 0, 1):
            check(where, rng, (2, 9, 8, 16), (20, 3, 3), pad=pad, split_k=split_k)


@pytest.mark.gpu
def test_layers_of_many_waves(rng):
    where = machine("gpu")
    check(where, rng, (5, 57, 56, 64), (64, 3, 3), pad=1)
    check(where, rng, (3, 29, 31, 256), (130, 1, 1), stride=2)
    check(where, rng, (2, 7, 7, 512), (512, 3, 3), pad=1)


def test_without_out_one_is_made(rng):
    x, w = values(rng, (2, 5, 6, 8), "f16"), values(rng, (4, 3, 3, 8), "f16")
    out = conv2d(x, w)
    assert (out.shape, out.dtype) == ((2, 3, 4, 4), np.float16)
    hold(out.astype(np.float64), plain(x, w), plain(np.abs(x), np.abs(w)), 72, "f16")


def test_the_moves_of_a_window_may_be_integers_of_numpy(rng):
    check(machine("emulator"), rng, (1, 6, 7, 8), (8, 3, 3), pad=(np.int64(1), np.int8(2)), stride=np.int32(2))


@pytest.mark.parametrize("schedule", [IdentityThreadblockSwizzle(8), HorizontalThreadblockSwizzle()])
@pytest.mark.parametrize("split_k", [1, 3])
def test_the_grid_is_the_one_that_the_schedule_gives_a_convolution(schedule, split_k, rng):
    x, w = values(rng, (2, 30, 31, 8), "f16"), values(rng, (300, 3, 2, 8), "f16")
    problem = convolution_problem(x, w, None, window((1, 0), (1, 2), 1))
    assert problem.sizes == Conv2dProblem(2, 30, 31, 8, 300, 3, 2, pad=((1, 1), (0, 0)), stride=(1, 2))
    config = replace(SMALL, schedule=schedule, split_k=split_k)
    tiled = schedule.tiled_shape(problem.sizes, config.tile, split_k, op="fprop")
    assert plan_of(conv2d_kernel, problem, config.traits()).grid == schedule.grid_shape(tiled)


def test_one_kernel_serves_all_sizes(rng):
    check(machine("emulator"), rng, (1, 9, 8, 16), (24, 3, 3), pad=1, config=SMALL)
    kernels = set(conv2d_kernel._variants)
    check(machine("emulator"), rng, (2, 6, 5, 40), (8, 1, 2), stride=3, dilation=2, config=SMALL)
    assert set(conv2d_kernel._variants) == kernels


KERNELS = [
    (config, inputs, output, copy_bytes)
    for inputs, output, widths in ((f16, f16, (16, 8, 4, 2)), (f32, f32, (16, 4)), (s8, s32, (16, 1)), (f64, f64, (16, 8)))
    for copy_bytes in widths
    for config in of_convolutions(inputs, copy_bytes == 16)
]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "config, inputs, output, copy_bytes",
    KERNELS,
    ids=lambda v: "x".join(map(str, v.tile)) if isinstance(v, GemmConfig) else str(v),
)
def test_kernels_that_are_chosen_spill_nothing(config, inputs, output, copy_bytes):
    operands = Operands(inputs, output, a_bytes=copy_bytes, b_bytes=copy_bytes)
    for arch in ("sm_80", "sm_86", "sm_120"):
        config.traits(operands).check(arch)
    for split_k in (1, 2):
        resources = conv2d_kernel.resources(arch="sm_90", traits=replace(config, split_k=split_k).traits(operands))
        assert resources.spill_store_bytes == resources.spill_load_bytes == 0


def test_the_loop_copies_asynchronously_and_divides_nothing():
    text = conv2d_kernel.ptx(traits=DEEP.traits())
    assert "cp.async.cg.shared.global" in text
    loop = text[text.index("cp.async.wait_group") : text.rindex("cp.async.wait_all")]
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in loop
    assert "div." not in loop and "rem." not in loop


def test_long_sums_of_few_tiles_are_cut():
    def slices(*shape, split_k=None):
        facts = ProductFacts(*shape, 1, Operands(), kind=ProductKind.CONV)
        return ranked_convolutions(facts, rates_of(), True, split_k)[0][1].split_k

    assert slices(1568, 512, 4608) > 1
    assert slices(100352, 256, 2304) == 1
    assert slices(100352, 256, 2304, split_k=3) == 3
    assert slices(1, 1, 4 * 64) == 1


IMAGES, FILTERS = (2, 5, 6, 8), (4, 3, 3, 8)
REFUSALS = [
    (lambda x, w: conv2d([1], w), "`x` is of type list, not an array\n"
     "  help: pass numpy arrays, or CUDA arrays of torch, CuPy or JAX"),
    (lambda x, w: conv2d(x[0], w), "`x` has the shape (5, 6, 8); images have four dimensions, (N, H, W, C)\n"
     "  help: one image of (H, W, C) is x[None]"),
    (lambda x, w: conv2d(x, w[0]), "`w` has the shape (3, 3, 8); filters have four dimensions, (K, R, S, C)\n"
     "  help: one filter of (R, S, C) is w[None]"),
    (lambda x, w: conv2d(x, w.astype(np.float32)), "`x` is float16 and `w` is float32\n"
     "  help: conv2d takes images and filters of one type, float16, bfloat16, float32, float64, int8 or uint8, "
     "on sm_90a also float8_e4m3fn or float8_e5m2; convert them before"),
    (lambda x, w: conv2d(x.astype(np.int16), w.astype(np.int16)), "`x` is int16 and `w` is int16\n"
     "  help: conv2d takes images and filters of one type, float16, bfloat16, float32, float64, int8 or uint8, "
     "on sm_90a also float8_e4m3fn or float8_e5m2; convert them before"),
    (lambda x, w: conv2d(x, w[..., :4]), "`x` has 8 channels and `w` takes 4\n"
     "  help: conv2d has no groups: call it once for each of the 2 groups, with the channels x[..., i : i + 4], the "
     "filters and the channels of out of the group"),
    (lambda x, w: conv2d(x.transpose(0, 3, 1, 2), w), "`x` has 6 channels and `w` takes 8\n"
     "  help: the second extent of `x` is 8, as in (N, C, H, W): channels must be contiguous: pass "
     "x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1) of a torch tensor x, or "
     "np.ascontiguousarray(x.transpose(0, 2, 3, 1)) of another array"),
    (lambda x, w: conv2d(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2)), "`x` has 6 channels and `w` takes 3\n"
     "  help: the second extents are 8, as in images (N, C, H, W) and filters (K, C, R, S): pass "
     ".permute(0, 2, 3, 1).contiguous() of both"),
    (lambda x, w: conv2d(x > 0, w > 0), "`x` has elements of type bool, which the kernels neither multiply nor add\n"
     "  help: convert it to uint8, or to the type of the other arrays"),
    (lambda x, w: conv2d(x, w, epilogue=add, operands=(np.ones((2, 3, 4, 4), bool),)),
     "`operands[0]` has elements of type bool, which the kernels neither multiply nor add\n"
     "  help: convert it to float16, bfloat16, float32, float64 or int32"),
    (lambda x, w: conv2d(x, w, out=np.ones((2, 3, 4, 4), bool)),
     "`out` has elements of type bool, which the kernels neither multiply nor add\n"
     "  help: pass one of float16, bfloat16 or float32"),
    (lambda x, w: conv2d(x, w, split_k=2, reduction="x"),
     "GemmConfig: reduction is 'x'; it takes \"serial\", \"parallel\", \"scatter\" or \"cluster\""),
    (lambda x, w: conv2d(x, w.transpose(0, 3, 1, 2)), "`x` has 8 channels and `w` takes 3\n"
     "  help: for filters of torch, (K, C, R, S), pass w.permute(0, 2, 3, 1)"),
    (lambda x, w: conv2d(np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1), w),
     "`x` has the shape (2, 5, 6, 8) and strides of (240, 6, 1, 30) elements: not (N, H, W, C)\n"
     "  help: channels must be contiguous: pass x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1) of a "
     "torch tensor x, or np.ascontiguousarray(x.transpose(0, 2, 3, 1)) of another array"),
    (lambda x, w: conv2d(x[:, ::-1], w),
     "`x` has the shape (2, 5, 6, 8) and strides of (240, -48, 8, 1) elements: not (N, H, W, C)\n"
     "  help: it runs backwards: make a copy of it"),
    (lambda x, w: conv2d(x, np.ascontiguousarray(w.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)),
     "`w` has the shape (4, 3, 3, 8) and strides of (72, 3, 1, 9) elements: not (K, R, S, C)\n"
     "  help: each filter must be contiguous, channels last: for a torch filter (K, C, R, S), pass "
     "w.permute(0, 2, 3, 1).contiguous()"),
    (lambda x, w: conv2d(x[..., :4], w[..., :4]),
     "`w` has the shape (4, 3, 3, 4) and strides of (72, 24, 8, 1) elements: not (K, R, S, C)\n"
     "  help: each filter must be contiguous, channels last: for a torch filter (K, C, R, S), pass "
     "w.permute(0, 2, 3, 1).contiguous()"),
    (lambda x, w: conv2d(x, w[:, :0]), "`w` has the shape (4, 0, 3, 8)\n"
     "  help: R and S must be 1 or more"),
    (lambda x, w: conv2d(x[:, :2], w), "the window spans 3x3 pixels, more than the padded images, which have 2x6\n"
     "  help: pad more, or dilate less; out would have no pixels"),
    (lambda x, w: conv2d(x, w, pad=(0, (1, 0)), dilation=4),
     "the window spans 9x9 pixels, more than the padded images, which have 5x7\n"
     "  help: pad more, or dilate less; out would have no pixels"),
    *((lambda x, w, pad=pad: conv2d(x, w, pad=pad), f"pad is {pad!r}\n"
       "  help: it takes 0 pixels or more: one number, or (for height, for width), each a number or (before, after)")
      for pad in (-1, (1, -1), ((0, 1), (0, -2)), (1, 1, 1), "same", 0.5, True, None)),
    *((lambda x, w, given=given: conv2d(x, w, **given), f"{next(iter(given))} is {next(iter(given.values()))!r}\n"
       "  help: it takes 1 pixel to 2**31 - 1: one number, or (for height, for width)")
      for given in ({"stride": 0}, {"stride": (1, -1)}, {"stride": 1.0}, {"dilation": 0}, {"dilation": (1, 2, 3)})),
    (lambda x, w: conv2d(x, w, out=np.zeros((2, 3, 4, 5), np.float16)),
     "`out` has the shape (2, 3, 4, 5); this convolution gives (2, 3, 4, 4)\n  help: pass `out` of that shape"),
    (lambda x, w: conv2d(x, w, out=np.zeros((24, 4), np.float16)),
     "`out` has the shape (24, 4); an output has four dimensions, (N, P, Q, K)\n"
     "  help: pass `out` of the shape (2, 3, 4, 4)"),
    (lambda x, w: conv2d(x, w, out=np.zeros((2, 3, 4, 4), np.int32)),
     "`out` is int32; for float16 images conv2d writes float16, bfloat16 or float32\n  help: pass one of these, and convert it afterwards"),
    (lambda x, w: conv2d(x, w, out=np.zeros((2, 6, 4, 4), np.float16)[:, ::2]),
     "`out` has the shape (2, 3, 4, 4) and strides of (96, 32, 4, 1) elements: not (N, P, Q, K)\n"
     "  help: pass an array with one stride between pixels and contiguous channels: a contiguous array, or a range of its "
     "channels"),
    (lambda x, w: conv2d(x, w, operands=[x]), "operands are given, and no epilogue that takes them\n"
     "  help: pass the function, such as epilogue=add_relu"),
    (lambda x, w: conv2d(x, w, epilogue=add, operands=[x]),
     "`operands[0]` has the shape (2, 5, 6, 8); the output has (2, 3, 4, 4)\n"
     "  help: pass `operands[0]` of that shape"),
    (lambda x, w: conv2d(x, w, split_k=0), "GemmConfig: split_k is 0; it takes 1 or more blocks a tile"),
    (lambda x, w: conv2d(x, w, schedule=StridedDgradHorizontalThreadblockSwizzle()),
     "GemmConfig: schedule is StridedDgradHorizontalThreadblockSwizzle(); it takes a threadblock swizzle of GEMM, a "
     "PersistentScheduler or a StreamKThreadblockSwizzle of ptxdsl.schedule"),
    (lambda x, w: conv2d(x, np.ones((8, 1, 1, 8), np.float16), out=x), "`out` is written and shares memory with `x`\n"
     "  help: give the output memory of its own: its elements are written while others still read"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", REFUSALS)
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(pd.LaunchError) as refused:
        call(np.ones(IMAGES, np.float16), np.ones(FILTERS, np.float16))
    assert refused.value.message + (f"\n  help: {refused.value.help}" if refused.value.help else "") == text


@pytest.mark.parametrize(
    "image, moves, text",
    [
        ((2**11, 2**10, 2**10, 1), {}, "there are 2147483648 pixels in out; conv2d supports up to 2147483647"),
        ((1, 1, 1, 2**31), {}, "there are 2147483648 products per output element; conv2d supports up to 2147483647"),
        (
            (1, 4, 4, 1),
            {"pad": (2**29, 0), "stride": 2**30},
            "there are 1073741828 rows in a padded image; conv2d supports up to 1073741823",
        ),
        (
            (1, 4, 4, 1),
            {"pad": (0, 2**29), "stride": 2**30},
            "there are 1073741828 pixels in a padded row; conv2d supports up to 1073741823",
        ),
    ],
)
def test_more_than_is_counted_is_refused(image, moves, text):
    x, w = (np.broadcast_to(np.float16(0), shape) for shape in (image, (1, 1, 1, image[3])))
    x, w = (np.lib.stride_tricks.as_strided(v, v.shape, (0, 0, 0, 2)) for v in (x, w))
    with pytest.raises(pd.LaunchError) as refused:
        conv2d(x, w, out=np.zeros((1, 1, 1, 1), np.float16), **moves)
    assert (refused.value.message, refused.value.help) == (text, "compute it in parts")


def test_nothing_is_written_when_a_call_is_refused():
    out = poisoned((2, 3, 4, 4), "f16")
    with pytest.raises(pd.LaunchError):
        conv2d(np.ones(IMAGES, np.float16), np.ones(FILTERS, np.float16), out=out, stride=0)
    assert np.isnan(out).all()
