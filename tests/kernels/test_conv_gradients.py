"""The gradients of a convolution against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.candidates.facts import ProductFacts, ProductKind
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad, wgrad_kernel
from ptxdsl.kernels.epilogue import relu
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle
from tests.kernels.test_conv import both, hold, poisoned, sides, values
from tests.machines import MACHINES, machine

ARCH = "sm_90a"
TURNED = Operands(a_major="mn", b_major="mn")
every_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", ARCH)


def tiles(m, n, **more):
    return GemmConfig(tile=(m, n, 64), stages=3, atom="wgmma", **{"schedule": Strips(), **more})


def plain(dy, x, window, pad=0, stride=1, dilation=1):
    """The gradient in float64, one place of the window after another."""
    x, (_, rows, columns, filters) = np.pad(x.astype(np.float64), ((0, 0), *sides(pad), (0, 0))), dy.shape
    (down, right), (apart_h, apart_w) = both(stride), both(dilation)
    out = np.zeros((filters, *window, x.shape[3]))
    for i, j in np.ndindex(*window):
        seen = x[:, i * apart_h :: down, j * apart_w :: right][:, :rows, :columns]
        out[:, i, j] = np.einsum("npqk,npqc->kc", dy.astype(np.float64), seen)
    return out


def outputs(extent, window, pad, stride, dilation):
    return (extent + sum(pad) - (window - 1) * dilation - 1) // stride + 1


def check(where, rng, image, filters, window, *, inputs="f16", config=None, **moves):
    """The gradient of `filters` filters of (N, H, W, C) images."""
    known = {"pad": 0, "stride": 1, "dilation": 1, **moves}
    each = zip(image[1:3], window, sides(known["pad"]), both(known["stride"]), both(known["dilation"]), strict=True)
    x = values(rng, image, inputs)
    dy = values(rng, (image[0], *(outputs(*axis) for axis in each), filters), inputs)
    expected, scale = plain(dy, x, window, **known), plain(np.abs(dy), np.abs(x), window, **known)
    out = where.array(poisoned(expected.shape, inputs))
    assert conv2d_wgrad(where.array(dy), where.array(x), window, out=out, config=config, **moves) is out
    hold(where.values(out), expected, scale, dy[..., 0].size, inputs)


CASES = {
    "3x3": ((2, 7, 9, 64), 40, (3, 3), {"pad": 1}),
    "1x1": ((3, 7, 9, 128), 136, (1, 1), {}),
    "1x1, every second pixel": ((3, 7, 8, 64), 24, (1, 1), {"stride": 2}),
    "dilated": ((1, 8, 7, 192), 16, (3, 3), {"pad": 2, "dilation": 2}),
    "one side": ((1, 6, 8, 64), 8, (3, 2), {"pad": ((2, 0), (0, 1))}),
    "both ways": ((2, 9, 14, 64), 8, (2, 4), {"pad": (1, 2), "stride": (2, 3), "dilation": (3, 2)}),
    "padding alone": ((1, 1, 1, 64), 8, (1, 1), {"pad": 3, "stride": 3}),
    "bfloat16": ((2, 7, 9, 64), 72, (3, 3), {"pad": 1, "inputs": "bf16"}),
}


@every_machine
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_all_kinds(name, case, rng):
    image, filters, window, moves = CASES[case]
    check(machine(name), rng, image, filters, window, **moves)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("tile", [(64, 64), (128, 96)], ids=str)
def test_tiles_end_amid_the_window(name, tile, rng):
    check(machine(name), rng, (2, 7, 8, 64), 136, (3, 3), pad=1, config=tiles(*tile))


@every_machine
@pytest.mark.parametrize("reduction", ["cluster", "scatter"])
def test_blocks_share_the_pixels(name, reduction, rng):
    """Slices begin amid an image; the last one has nothing to add."""
    config = tiles(64, 64, schedule=IdentityThreadblockSwizzle(1), split_k=5, reduction=reduction)
    check(machine(name), rng, (3, 8, 9, 64), 72, (3, 2), config=config)


@every_machine
def test_out_is_made_and_images_may_be_channels_of_larger_ones(name, rng):
    where, whole, dy = machine(name), values(rng, (2, 5, 6, 80), "f16"), values(rng, (2, 5, 6, 8), "f16")
    whole[..., :8] = whole[..., 72:] = np.nan
    out = conv2d_wgrad(where.array(dy), where.array(whole)[..., 8:72], (1, 1))
    x = whole[..., 8:72]
    hold(where.values(out), plain(dy, x, (1, 1)), plain(np.abs(dy), np.abs(x), (1, 1)), 60, "f16")


OF_IMAGES = {
    "3x3": ((2, 7, 9, 40), 64, (3, 3), {"pad": 1}),
    "one pixel": ((2, 5, 7, 24), 144, (1, 1), {}),
    "dilated": ((1, 9, 8, 136), 80, (3, 2), {"pad": (2, 1), "dilation": 2}),
    "padding on one side": ((2, 6, 5, 16), 16, (2, 3), {"pad": ((1, 0), (0, 2))}),
    "no last line": ((2, 6, 7, 8), 32, (3, 3), {"pad": 1, "behind": 1}),
    "bfloat16": ((2, 6, 7, 64), 64, (3, 3), {"pad": 1, "inputs": "bf16"}),
}


def check_of_images(where, rng, image, filters, window, *, pad=0, dilation=1, behind=0, inputs="f16", config=None):
    """The gradient of (N, H, W, C) images, of which the last lines and columns of the output have none."""
    each = zip(image[1:3], window, sides(pad), (1, 1), both(dilation), strict=True)
    pixels = [outputs(*axis) - behind for axis in each]
    dy, w = values(rng, (image[0], *pixels, filters), inputs), values(rng, (filters, *window, image[3]), inputs)

    def plain(dy, w):
        whole = np.zeros((image[0], *(n + sum(side) for n, side in zip(image[1:3], sides(pad), strict=True)), image[3]))
        for i, j in np.ndindex(*window):
            down, right = (place * apart for place, apart in zip((i, j), both(dilation), strict=True))
            seen = whole[:, down : down + pixels[0], right : right + pixels[1]]
            seen += np.einsum("npqk,kc->npqc", dy.astype(np.float64), w[:, i, j].astype(np.float64))
        (above, _), (left, _) = sides(pad)
        return whole[:, above : above + image[1], left : left + image[2]]

    out = where.array(poisoned(image, inputs))
    known = {"pad": pad, "dilation": dilation, "out": out, "config": config}
    assert conv2d_dgrad(where.array(dy), where.array(w), image[1:3], **known) is out
    hold(where.values(out), plain(dy, w), plain(np.abs(dy), np.abs(w)), w[..., 0].size, inputs)


@every_machine
@pytest.mark.parametrize("case", OF_IMAGES)
def test_gradients_of_images(name, case, rng):
    image, filters, window, moves = OF_IMAGES[case]
    check_of_images(machine(name), rng, image, filters, window, **moves)


@every_machine
@pytest.mark.parametrize("window", [(3, 3), (1, 1)])
@pytest.mark.parametrize(
    "config",
    [tiles(128, 96), tiles(96, 64, swap_ab=True), tiles(48, 128, swap_ab=True, pingpong=True)],
    ids=["whole", "swapped", "in turns"],
)
def test_tiles_of_gradients_of_images(name, config, window, rng):
    check_of_images(machine(name), rng, (2, 7, 8, 104), 80, window, pad=window[0] // 2, config=config)


def test_few_tiles_are_shared_by_all_multiprocessors():
    facts = ProductFacts(64, 576, 100352, 1, TURNED, kind=ProductKind.WGRAD, moved_bytes=26_000_000)
    few = choose_product(facts, rates_of())
    assert few.reduction == "scatter" and 100 < few.split_k * -(-64 // few.tile[0]) * -(-576 // few.tile[1]) <= 132
    many = facts._replace(m=512, n=4608, k=1568, moved_bytes=8_000_000)
    assert choose_product(many, rates_of()).split_k == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "config", [tiles(128, 256), tiles(128, 128, schedule=IdentityThreadblockSwizzle(1), split_k=3)]
)
def test_kernels_spill_nothing(config):
    try:
        resources = wgrad_kernel.resources(ARCH, traits=config.traits(TURNED, ARCH))
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


def zeros(*shape, dtype=np.float16):
    return np.zeros(shape, dtype)


REFUSED = {
    "the window": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), 3),
        "window is 3",
        "it takes (R, S), two ints of 1 or more",
    ),
    "types": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64, dtype=np.float32), (1, 1)),
        "`dy` is float16 and `x` is float32",
        "conv2d_wgrad takes two arrays of one type, float16 or bfloat16; convert them before",
    ),
    "few channels": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 48), (1, 1)),
        "`x` has the shape (1, 4, 4, 48) and `dy` (1, 4, 4, 8); conv2d_wgrad takes images with a multiple of 64 channels, "
        "and gradients that are not empty",
        "pad the channels of the images",
    ),
    "another output": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (3, 3)),
        "`dy` has the shape (1, 4, 4, 8); the output has (1, 2, 2, 8)",
        "pass `dy` of that shape",
    ),
    "another result": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (1, 1), out=zeros(8, 1, 1, 32)),
        "`out` is float16 of the shape (8, 1, 1, 32); the gradient is float16 of (8, 1, 1, 64)",
        "pass `out` of that type and shape",
    ),
    "lines that tensor copies cannot address": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 7), zeros(1, 4, 4, 64), (1, 1)),
        "`dy` has 7 filters of 2 bytes, and a pixel stride of 14 bytes; TMA takes multiples of 16 bytes",
        "pad the filters",
    ),
    "another atom": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (1, 1), config=GemmConfig()),
        'GemmConfig: atom is ""; conv2d_wgrad runs on wgmma only',
        'pass atom="wgmma"',
    ),
    "an epilogue": (
        lambda: conv2d_wgrad(
            zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (1, 1), config=GemmConfig((64, 64, 64), atom="wgmma", epilogue=relu)
        ),
        "GemmConfig: it has an epilogue; conv2d_wgrad writes the gradient itself",
        "leave epilogue out, and apply the function to the result",
    ),
    "swapped tiles of one row of tiles": (
        lambda: conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (1, 1), config=tiles(64, 64, swap_ab=True)),
        "`config` has swap_ab=True, and `out` is float16, which needs TMA stores; M must have several tiles, "
        "and tile is (64, 64, 64), with an M of 8",
        "leave swap_ab out, or give the config schedule=PersistentScheduler()",
    ),
    "swapped tiles, and an output with gaps": (
        lambda: conv2d_dgrad(
            zeros(1, 4, 4, 16), zeros(16, 3, 3, 8), (4, 4), pad=1, out=zeros(1, 4, 4, 12)[..., :8],
            config=tiles(64, 64, swap_ab=True),
        ),
        "`config` has swap_ab=True, and `out` is float16, which needs TMA stores; its rows have a length of "
        "16 bytes and a stride of 24 bytes, and TMA stores multiples of 16 bytes",
        "leave swap_ab out, or give the config schedule=PersistentScheduler()",
    ),
    "the size": (lambda: conv2d_dgrad(zeros(1, 4, 4, 16), zeros(16, 1, 1, 8), 4), "size is 4", "it takes (H, W), two ints of 1 or more"),
    "types of filters": (
        lambda: conv2d_dgrad(zeros(1, 4, 4, 16), zeros(16, 1, 1, 8, dtype=np.float32), (4, 4)),
        "`dy` is float16 and `w` is float32",
        "conv2d_dgrad takes two arrays of one type, float16 or bfloat16; convert them before",
    ),
    "few filters": (
        lambda: conv2d_dgrad(zeros(1, 4, 4, 8), zeros(8, 1, 1, 8), (4, 4)),
        "`dy` has the shape (1, 4, 4, 8) and `w` (8, 1, 1, 8); conv2d_dgrad takes (N, P, Q, K) and (K, R, S, C) that are "
        "not empty, with K a multiple of 16 and C of 8",
        "pad the filters or the channels",
    ),
    "more pixels than windows": (
        lambda: conv2d_dgrad(zeros(1, 5, 5, 16), zeros(16, 3, 3, 8), (4, 4)),
        "`dy` has 5x5 pixels; with windows of 3x3, a pad of ((0, 0), (0, 0)) and a dilation of (1, 1), images of 4x4 have "
        "fewer output pixels",
        "crop `dy` to the pixels of the output",
    ),
    "another type of out": (
        lambda: conv2d_dgrad(zeros(1, 4, 4, 16), zeros(16, 1, 1, 8), (4, 4), out=zeros(1, 4, 4, 8, dtype=np.float32)),
        "`out` is float32; the gradient is float16",
        "pass `out` of that type",
    ),
    "another atom of images": (
        lambda: conv2d_dgrad(zeros(1, 4, 4, 16), zeros(16, 1, 1, 8), (4, 4), config=GemmConfig()),
        'GemmConfig: atom is ""; conv2d_dgrad runs on wgmma only',
        'pass atom="wgmma"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    call, message, help = REFUSED[case]
    with pytest.raises(pd.LaunchError) as refusal:
        call()
    assert (refusal.value.message, refusal.value.help) == (message, help)


def test_another_gpu_is_refused(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    with pytest.raises(pd.LaunchError) as refusal:
        conv2d_wgrad(zeros(1, 4, 4, 8), zeros(1, 4, 4, 64), (1, 1))
    assert refusal.value.message == "conv2d_wgrad is for sm_90a; the kernel is for sm_80"
    assert refusal.value.help == "on the emulator, set PTXDSL_ARCH=sm_90a"
