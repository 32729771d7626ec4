"""The sm_90a path of conv2d() against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.kernels.call.convolutions.conv import convolution_plan
from ptxdsl.kernels.call.convolutions.problem import convolution_problem, window
from ptxdsl.kernels.call.convolutions.windows import window_facts
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import CONVOLUTIONS, conv2d, conv2d_kernel, warpgroup_conv2d_kernel
from ptxdsl.kernels.epilogue import add_relu, per_column, relu
from ptxdsl.kernels.gemm import warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Extra, Operands
from ptxdsl.kernels.reorder.packed import packing_kernel
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import Conv2dProblem, HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle
from ptxdsl.types import f16, f32
from tests.kernels.test_conv import check, hold, plain, poisoned, values
from tests.kernels.test_schedules import few_blocks
from tests.machines import MACHINES, NAMES, machine

__all__ = ["few_blocks"]  # a fixture for all tests here
ARCH = "sm_90a"
every_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", ARCH)


def tiles(m, n, k=64, stages=3, **more):
    return GemmConfig(tile=(m, n, k), stages=stages, atom="wgmma", **{"schedule": Strips(), **more})


LOW, SQUARE = tiles(64, 64), tiles(128, 128)
CASES = {
    "3x3": ((2, 7, 9, 64), (40, 3, 3), {"pad": 1}),
    "1x1": ((2, 7, 9, 72), (24, 1, 1), {}),
    "1x1, every second pixel": ((3, 7, 8, 64), (24, 1, 1), {"stride": 2}),
    "1x1, padded": ((1, 4, 5, 16), (20, 1, 1), {"pad": 1}),
    "few channels": ((1, 21, 19, 8), (24, 7, 7), {"pad": 3, "stride": 2}),
    "dilated": ((1, 12, 11, 16), (16, 3, 3), {"pad": 2, "dilation": 2}),
    "one side": ((1, 6, 8, 8), (8, 3, 2), {"pad": ((2, 0), (0, 1))}),
    "both ways": ((2, 9, 14, 72), (8, 2, 4), {"pad": (1, 2), "stride": (2, 3), "dilation": (3, 2)}),
    "padding alone": ((1, 1, 1, 8), (8, 1, 1), {"pad": 3, "stride": 3}),
    "window of the image": ((70, 5, 4, 24), (10, 5, 4), {}),
    "pixels behind the last window": ((2, 10, 11, 8), (8, 3, 3), {"stride": (4, 3)}),
    "no images": ((0, 5, 5, 8), (8, 3, 3), {}),
    "no filters": ((1, 5, 5, 8), (0, 3, 3), {}),
}


@every_machine
@pytest.mark.parametrize("case", CASES)
def test_convolutions_of_all_kinds(name, case, rng):
    image, filters, moves = CASES[case]
    check(machine(name), rng, image, filters, config=LOW, **moves)


def any_convolution(rng):
    """Sizes, and moves of a window that has a place."""
    window, dilation, stride = rng.integers(1, 5, 2), rng.integers(1, 4, 2), rng.integers(1, 4, 2)
    pad = rng.integers(0, 4, (2, 2))
    image = np.maximum((window - 1) * dilation + 1 - pad.sum(1), 1) + rng.integers(0, 9, 2)
    shape = int(rng.integers(1, 4)), *map(int, image), 8 * int(rng.integers(1, 12))
    moves = {
        "pad": tuple(map(tuple, pad.tolist())),
        "stride": tuple(stride.tolist()),
        "dilation": tuple(dilation.tolist()),
    }
    return shape, (int(rng.integers(1, 140)), *map(int, window)), moves


@every_machine
def test_any_sizes(name, rng):
    for _ in range(6 if name == "emulator" else 100):
        image, filters, moves = any_convolution(rng)
        check(machine(name), rng, image, filters, config=LOW, **moves)


@every_machine
@pytest.mark.parametrize("tile", [(64, 16), (128, 96), (128, 256)], ids=str)
def test_all_tiles(name, tile, rng):
    check(machine(name), rng, (2, 9, 8, 72), (136, 3, 2), pad=1, config=tiles(*tile))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("tile", [(16, 64), (48, 128), (128, 64), (192, 128)], ids=str)
@pytest.mark.parametrize("output", ["f16", "f32"])
def test_tiles_that_are_swapped(name, tile, output, rng):
    """Outputs of 16 bits are stored in boxes."""
    how = {"output": output, "config": tiles(*tile, swap_ab=True)}
    check(machine(name), rng, (2, 7, 6, 64), (136, 3, 3), pad=1, **how)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("tile", [(64, 64), (80, 128)], ids=str)
@pytest.mark.parametrize(("window", "output"), [(3, "f16"), (3, "f32"), (1, "f16")])
def test_tiles_that_are_swapped_in_turns(name, tile, window, output, rng, monkeypatch):
    monkeypatch.setattr(scheduled, "resident_blocks", lambda kernel, traits, device: 2)
    how = {"output": output, "config": tiles(*tile, swap_ab=True, pingpong=True)}
    check(machine(name), rng, (3, 7, 9, 64), (136, window, window), pad=window // 2, **how)


@every_machine
@pytest.mark.parametrize(
    ("inputs", "output", "depth"),
    [("f16", "f32", 64), ("bf16", "bf16", 64), ("bf16", "f16", 64), ("f32", "f32", 32), ("s8", "s32", 128), ("u8", "f32", 128)],
)  # fmt: skip
@pytest.mark.parametrize("window", [1, 3])
def test_all_types(name, inputs, output, depth, window, rng):
    """Windows of one pixel are a product, of which int32 outputs are scaled by integers alone."""
    how = {"inputs": inputs, "output": output, "config": tiles(64, 64, depth), "pad": window // 2}
    check(machine(name), rng, (2, 9, 8, 48), (24, window, window), **how)


@every_machine
@pytest.mark.parametrize("inputs", ["e4m3", "e5m2"])
@pytest.mark.parametrize(("window", "channels"), [(1, 48), (3, 48), (3, 16)])
def test_8_bit_floats(name, inputs, window, channels, rng):
    """Small integers, whose sums are exact; images of few channels are packed."""
    where, moves = machine(name), {"pad": window // 2, "stride": 2}
    shapes = (2, 9, 8, channels), (24, window, window, channels)
    x, w = (rng.integers(-3, 4, shape).astype(NAMES[inputs]) for shape in shapes)
    out = where.array(poisoned((2, 5, 4, 24), "f32"))
    conv2d(where.array(x), where.array(w), out=out, **moves)
    assert (where.values(out) == plain(x, w, **moves)).all()


@every_machine
@pytest.mark.parametrize("reduction", ["cluster", "scatter", "parallel", "serial"])
@pytest.mark.parametrize(("split_k", "channels"), [(2, 72), (5, 16)])
def test_blocks_share_a_sum(name, reduction, split_k, channels, rng):
    """A slice begins amid the window, and amid its channels; one may have nothing to add."""
    config = tiles(64, 64, schedule=IdentityThreadblockSwizzle(1), reduction=reduction)
    check(machine(name), rng, (2, 7, 8, channels), (72, 3, 3), pad=1, config=config, split_k=split_k)


@every_machine
def test_blocks_that_take_a_single_tile(name, rng):
    check(
        machine(name), rng, (2, 12, 13, 72), (136, 3, 3), pad=1, config=tiles(64, 64, schedule=HorizontalThreadblockSwizzle())
    )  # fmt: skip


@every_machine
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("epilogue", ["function", "bias", "bias and residual"])
def test_epilogues(name, epilogue, window, rng):
    where, moves = machine(name), {"pad": window // 2}
    x, w, bias = (values(rng, shape, "f16") for shape in ((2, 7, 9, 64), (72, window, window, 64), (72,)))
    beside = values(rng, (2, 7, 9, 72), "f16")
    expected = plain(x, w, **moves)
    how = {
        "function": lambda: ({"epilogue": relu}, expected),
        "bias": lambda: ({"epilogue": add_relu, "operands": [per_column(where.array(bias))]}, expected + bias),
        "bias and residual": lambda: (
            {"epilogue": added, "operands": [per_column(where.array(bias)), where.array(beside)]},
            expected + bias + beside,
        ),
    }
    options, expected = how[epilogue]()
    result = where.values(conv2d(where.array(x), where.array(w), config=SQUARE, **moves, **options))
    hold(result, np.maximum(expected, 0), plain(np.abs(x), np.abs(w), **moves) + 8, 64 * window**2, "f16")


def added(value, bias, beside):
    return pd.max(value + bias + beside, 0.0)


@every_machine
@pytest.mark.parametrize("window", [1, 3])
def test_images_may_be_channels_of_larger_ones(name, window, rng):
    """And so may the output. Nothing is read or written between."""
    where = machine(name)
    whole, w = values(rng, (2, 9, 8, 80), "f16"), values(rng, (24, window, window, 64), "f16")
    whole[..., :8] = whole[..., 72:] = np.nan
    all_out = where.array(poisoned((2, 9, 8, 40), "f16"))
    out = all_out[..., 8:32]
    conv2d(where.array(whole)[..., 8:72], where.array(w), pad=window // 2, out=out, config=LOW)
    x = whole[..., 8:72]
    moves = {"pad": window // 2}
    hold(where.values(out), plain(x, w, **moves), plain(np.abs(x), np.abs(w), **moves), w[0].size, "f16")
    assert np.isnan(where.values(all_out)[..., [*range(8), *range(32, 40)]]).all()


@every_machine
def test_every_second_line(name, rng):
    where, w = machine(name), values(rng, (24, 3, 3, 8), "f16")
    x = values(rng, (2, 14, 8, 8), "f16")[:, ::2]
    out = conv2d(where.array(x), where.array(w), pad=1, config=LOW)
    hold(where.values(out), plain(x, w, 1), plain(np.abs(x), np.abs(w), 1), w[0].size, "f16")


@every_machine
@pytest.mark.parametrize(
    ("channels", "inputs", "output", "moves"),
    [
        (3, "f16", "f16", {"pad": 3, "stride": 2}),
        (4, "bf16", "bf16", {"pad": ((2, 3), (0, 1)), "stride": (2, 1)}),
        (8, "f16", "f32", {"pad": 1, "stride": (3, 2)}),
        (2, "f16", "f16", {"pad": 1, "stride": (4, 3)}),
        (1, "f16", "f16", {"pad": 2, "dilation": (2, 1)}),
        (3, "f32", "f32", {"pad": 1}),
        (3, "s8", "s32", {"pad": 3, "stride": 4}),
        (12, "u8", "s32", {"pad": 1, "stride": 2}),
    ],
)
def test_images_of_few_channels_are_packed(name, channels, inputs, output, moves, rng):
    """Into lines of windows, several of them where strides allow; a window of more columns takes several boxes."""
    config = tiles(64, 64, {"f32": 32, "s8": 128, "u8": 128}.get(inputs, 64))
    how = {"inputs": inputs, "output": output, "config": config, **moves}
    check(machine(name), rng, (2, 13, 11, channels), (24, 5, 7), **how)
    if channels == 4:
        check(machine(name), rng, (1, 9, 20, channels), (70, 3, 17), **how | {"pad": 9})


@every_machine
def test_packed_images_may_lie_apart(name, rng):
    """Images are channels of larger ones, filters lie apart, and each launch packs anew."""
    where = machine(name)
    for _ in range(2):
        whole, w = values(rng, (2, 9, 8, 5), "f16"), values(rng, (10, 30), "f16")
        whole[..., 3:] = w[:, 27:] = np.nan
        x, filters = whole[..., :3], w[:, :27].reshape(10, 3, 3, 3)
        apart = np.lib.stride_tricks.as_strided(w, (10, 3, 3, 3), [2 * n for n in (30, 9, 3, 1)])
        given = apart if name == "emulator" else where.array(w).as_strided((10, 3, 3, 3), (30, 9, 3, 1))
        out = conv2d(where.array(whole)[..., :3], given, pad=1, config=LOW)
        hold(where.values(out), plain(x, filters, 1), plain(np.abs(x), np.abs(filters), 1), 27, "f16")


def test_one_kernel_serves_all_sizes_paddings_and_strides(rng):
    check(machine("emulator"), rng, (1, 9, 8, 16), (24, 3, 3), pad=1, config=LOW)
    kernels = set(warpgroup_conv2d_kernel._variants)
    check(machine("emulator"), rng, (2, 6, 5, 40), (8, 1, 2), stride=3, dilation=2, config=LOW)
    assert set(warpgroup_conv2d_kernel._variants) == kernels


def test_windows_of_one_pixel_are_a_product(rng):
    kernels = set(warpgroup_conv2d_kernel._variants)
    products = set(warpgroup_gemm_kernel._variants)
    config = tiles(64, 32, stages=5)
    check(machine("emulator"), rng, (2, 5, 7, 64), (24, 1, 1), config=config)
    assert set(warpgroup_conv2d_kernel._variants) == kernels
    assert set(warpgroup_gemm_kernel._variants) > products


@pytest.mark.exhaustive
@pytest.mark.parametrize("tile", [(128, 256), (128, 192), (64, 256)], ids=str)
@pytest.mark.parametrize(("output", "boxes"), [(f16, True), (f32, False)], ids=str)
def test_kernels_spill_nothing(tile, output, boxes):
    check_no_spill(WarpgroupTraits(WarpgroupTiling((*tile, 64), 3), Operands(output=output, out_boxes=boxes), Strips()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("tile", [(192, 128), (256, 64)], ids=str)
def test_kernels_in_turns_with_a_bias_spill_nothing(tile):
    operands = Operands(out_boxes=True, extras=(Extra(f32, "n"),))
    tiling = WarpgroupTiling((*tile, 64), 3, swap_ab=True, pingpong=True)
    check_no_spill(WarpgroupTraits(tiling, operands, Strips(), add_relu))


def check_no_spill(traits):
    try:
        resources = warpgroup_conv2d_kernel.resources(ARCH, traits=traits)
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


TILES = {
    "3x3, few filters": ((128, 56, 56, 64), (64, 3, 3), {"pad": 1}, (256, 64), True, True),
    "3x3, of which tiles fill one round": ((128, 7, 7, 512), (512, 3, 3), {"pad": 1}, (192, 128), True, False),
    "1x1, of which lower tiles do": ((32, 14, 14, 1024), (256, 1, 1), {}, (96, 128), True, False),
    "3x3, of which tiles nearly fill one": ((32, 28, 28, 128), (128, 3, 3), {"pad": 1}, (192, 128), True, False),
    "1x1, many filters": ((32, 56, 56, 64), (256, 1, 1), {}, (128, 256), False, False),
}


def test_the_copying_thread_divides_by_tiles_not_by_lines():
    text = warpgroup_conv2d_kernel.ptx(ARCH, traits=LOW.traits())
    load = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    loop = text[text[: text.index(load)].rindex("mbarrier.try_wait") : text.index(load)]
    assert "div." not in loop and "rem." not in loop


def chosen(image, filters, dtype=np.float16, **moves):
    """The launch of a call without a configuration."""
    return convolution_plan(CONVOLUTIONS, problem_of(image, filters, dtype, **moves), GemmOptions())


def problem_of(image, filters, dtype=np.float16, **moves):
    x, w = np.empty(image, dtype), np.empty((*filters, image[3]), dtype)
    out = np.empty(plain_shape(image, filters, **moves), dtype)
    return convolution_problem(x, w, out, window(moves.get("pad", 0), moves.get("stride", 1), moves.get("dilation", 1)))


def ranked(image, filters, **moves):
    """The configurations of the sm_90a path that are chosen from."""
    problem = problem_of(image, filters, **moves)
    return [config for _, config in ranked_products(window_facts(problem), rates_of())]


def plain_shape(image, filters, pad=0, stride=1, dilation=1):
    sizes = Conv2dProblem(
        *image, *filters, pad=((pad, pad), (pad, pad)), stride=(stride, stride), dilation=(dilation, dilation)
    )
    return sizes.N, sizes.P, sizes.Q, sizes.K


class TestChoice:
    """Of calls that do not choose."""

    @pytest.mark.parametrize("batch", [32, 128])
    def test_windows(self, batch):
        plan = chosen((batch, 28, 28, 128), (128, 3, 3), pad=1)
        assert plan.kernel is warpgroup_conv2d_kernel and not plan.before

    @pytest.mark.parametrize("layer", TILES)
    def test_tiles_that_were_best_on_a_gpu(self, layer):
        image, filters, moves, *expected = TILES[layer]
        tiling = chosen(image, filters, **moves).constants["traits"].tiling
        assert [tiling.tile[:2], tiling.swap_ab, tiling.pingpong] == expected

    @pytest.mark.exhaustive
    def test_warpgroups_take_turns_at_several_tiles_of_a_block(self):
        assert chosen((128, 14, 14, 256), (256, 3, 3), pad=1).constants["traits"].tiling.pingpong
        assert not chosen((8, 28, 28, 128), (128, 3, 3), pad=1).constants["traits"].tiling.pingpong

    def test_turns_swapped_and_streamed_tiles_are_for_outputs_in_boxes(self):
        """A matrix is added to sums that lie in shared memory as f32."""
        addend = np.zeros((128, 28, 28, 128), np.float16)
        arrays = (np.empty(shape, np.float16) for shape in ((128, 28, 28, 128), (128, 3, 3, 128), (128, 28, 28, 128)))
        plan = convolution_plan(
            CONVOLUTIONS, convolution_problem(*arrays, window(1, 1, 1), add_relu, (addend,)), GemmOptions()
        )
        tiling = plan.constants["traits"].tiling
        assert not tiling.pingpong and not tiling.swap_ab

    def test_a_cluster_may_read_images_of_many_channels_once(self):
        schedules = [config.schedule for config in ranked((128, 14, 14, 1024), (256, 1, 1))]
        clusters = [schedule for schedule in schedules if isinstance(schedule, ClusterStrips)]
        assert [(each.streamed, each.multicast) for each in clusters] == [(True, (1, 2))]
        assert not any(
            isinstance(config.schedule, ClusterStrips) for config in ranked((128, 14, 14, 256), (256, 3, 3), pad=1)
        )

    def test_few_filters_of_one_pixel_may_take_two_blocks_a_multiprocessor(self):
        assert {3, 8} <= {config.stages for config in ranked((32, 56, 56, 256), (64, 1, 1))}
        assert chosen((32, 56, 56, 256), (64, 1, 1)).constants["traits"].tiling.tile[:2] == (128, 64)

    def test_tiles_fill_rounds(self):
        tiling = chosen((32, 7, 7, 512), (2048, 1, 1)).constants["traits"].tiling
        assert tiling.tile[:2] == (64, 208) and tiling.pingpong

    def test_strides(self):
        assert chosen((32, 56, 56, 256), (512, 1, 1), stride=2).kernel is warpgroup_conv2d_kernel

    @pytest.mark.parametrize("channels, filters", [(64, 256), (256, 64)])
    @pytest.mark.parametrize("batch", [32, 128])
    def test_windows_of_one_pixel(self, batch, channels, filters):
        assert chosen((batch, 56, 56, channels), (filters, 1, 1)).kernel is warpgroup_gemm_kernel

    @pytest.mark.parametrize("channels", [3, 4, 8])
    def test_the_first_layer(self, channels):
        plan = chosen((128, 224, 224, channels), (64, 7, 7), pad=3, stride=2)
        assert plan.kernel is warpgroup_conv2d_kernel
        assert [before.kernel for before in plan.before] == [packing_kernel]

    def test_images_that_tensor_copies_cannot_bring(self):
        assert chosen((32, 56, 56, 60), (64, 3, 3), pad=1).kernel is conv2d_kernel
        assert chosen((32, 56, 56, 64), (64, 3, 3), pad=9, stride=9).kernel is conv2d_kernel

    def test_wgmma_has_no_float64(self):
        assert chosen((4, 28, 28, 128), (128, 3, 3), np.float64, pad=1).kernel is conv2d_kernel

    def test_other_gpus(self, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
        assert chosen((32, 28, 28, 128), (128, 3, 3), pad=1).kernel is conv2d_kernel

    @pytest.mark.parametrize(
        "image, filters", [((1, 7, 9, 72), (40, 3, 3)), ((1, 12, 13, 3), (24, 3, 3)), ((1, 5, 6, 8), (9, 1, 1))]
    )
    def test_is_right(self, image, filters, rng):
        check(machine("emulator"), rng, image, filters, pad=1)


IMAGES, FILTERS = (2, 5, 6, 16), (4, 3, 3, 16)
OTHERWISE = "leave atom out: then images are loaded without TMA"


def of_channels(count, x, w, **moves):
    return conv2d(
        np.zeros((*x.shape[:3], count), x.dtype), np.zeros((*w.shape[:3], count), w.dtype), config=LOW, **moves
    )


SWAPPED = "`config` has swap_ab=True, and `out` is float16, which needs TMA stores"
BY_THREADS = "leave swap_ab out, or give the config schedule=PersistentScheduler()"
REFUSALS = {
    "channels": (
        partial(of_channels, 12),
        'atom is "wgmma"; `x` has 12 channels of 2 bytes, strides of [720, 144, 24] bytes between images, rows '
        "and pixels, and the address 0x; TMA takes multiples of 16 bytes, not 0",
        f"pad the channels of both, or {OTHERWISE}",
    ),
    "one image for all": (
        lambda x, w: conv2d(np.broadcast_to(x[:1], x.shape), w, config=LOW),
        'atom is "wgmma"; `x` has 16 channels of 2 bytes, strides of [0, 192, 32] bytes between images, rows '
        "and pixels, and the address 0x; TMA takes multiples of 16 bytes, not 0",
        f"pad the channels of both, or {OTHERWISE}",
    ),
    "filters": (
        lambda x, w: conv2d(
            x, np.lib.stride_tricks.as_strided(np.zeros((4, 148), w.dtype), w.shape, (296, 96, 32, 2)), config=LOW
        ),
        'atom is "wgmma"; `w` has a filter stride of 296 bytes and the address 0x; TMA takes multiples of 16 bytes',
        f"pass a contiguous copy, or {OTHERWISE}",
    ),
    "no channels": (
        partial(of_channels, 0),
        'atom is "wgmma"; `x` has the shape (2, 5, 6, 0): there is nothing to multiply',
        OTHERWISE,
    ),
    "stride": (
        lambda x, w: conv2d(x, w, pad=9, stride=(1, 9), config=LOW),
        'atom is "wgmma"; stride is (1, 9); im2col loads take 1 to 8',
        OTHERWISE,
    ),
    "dilation": (
        lambda x, w: conv2d(x, w, pad=(128, 1), dilation=(128, 1), config=LOW),
        'atom is "wgmma"; windows reach over (256, 2) pixels, with corners at (-128, -1) from the first pixel of an '
        "image and (-128, -1) from the last; im2col loads reach up to 255, with corners from -128 to 127",
        OTHERWISE,
    ),
    "8-bit floats": (
        lambda x, w: conv2d(*(np.zeros((*v.shape[:3], 24), NAMES["e4m3"]) for v in (x, w))),
        "`x` is float8_e4m3fn, which takes wgmma; `x` has 24 channels of 1 bytes, strides of [720, 144, 24] "
        "bytes between images, rows and pixels, and the address 0x; TMA takes multiples of 16 bytes, not 0",
        "pad the channels of both",
    ),
    "swapped tiles, and lines that tensor copies cannot store": (
        lambda x, w: conv2d(x, w, pad=1, config=tiles(64, 64, swap_ab=True)),
        f"{SWAPPED}; its rows have a length of 8 bytes and a stride of 8 bytes, and TMA stores multiples of 16 bytes",
        BY_THREADS,
    ),
    "swapped tiles of 8 rows": (
        lambda x, w: conv2d(x, w, pad=1, config=tiles(8, 64, swap_ab=True, schedule=IdentityThreadblockSwizzle(1))),
        f"{SWAPPED}; the M of the tile must be a multiple of 16, and tile is (8, 64, 64)",
        BY_THREADS,
    ),
    "swapped tiles, and something beside each element": (
        lambda x, w: conv2d(
            x,
            w,
            pad=1,
            epilogue=add_relu,
            operands=(np.zeros((*IMAGES[:3], FILTERS[0]), np.float16),),
            config=tiles(64, 64, swap_ab=True, pingpong=True),
        ),
        f"{SWAPPED}; the epilogue may have no matrix operand",
        BY_THREADS,
    ),
    "depth": (
        lambda x, w: conv2d(x, w, config=tiles(64, 64, 32)),
        "GemmConfig: tile is (64, 64, 32); with wgmma its K is 64, 128 bytes of a line",
        None,
    ),
    "doubles": (
        lambda x, w: conv2d(x.astype(np.float64), w.astype(np.float64), config=LOW),
        "GemmConfig: the tiles are those of wgmma, which this path has for f16, bf16, f32, s8, u8, e4m3 or e5m2 "
        "inputs; they are f64",
        None,
    ),
}


@pytest.mark.parametrize("which", REFUSALS)
def test_refusals(which):
    run, message, help = REFUSALS[which]
    with pytest.raises(pd.LaunchError) as refused:
        run(np.zeros(IMAGES, np.float16), np.zeros(FILTERS, np.float16))
    text = re.sub("0x[0-9a-f]+", "0x", refused.value.message)
    assert (text, refused.value.help) == (message, help)


def test_other_gpus_are_refused(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    with pytest.raises(pd.LaunchError, match="which takes sm_90a; the kernel is for sm_80"):
        conv2d(np.zeros(IMAGES, np.float16), np.zeros(FILTERS, np.float16), config=LOW)
    with pytest.raises(pd.LaunchError) as refused:
        conv2d(np.zeros(IMAGES, NAMES["e5m2"]), np.zeros(FILTERS, NAMES["e5m2"]))
    assert refused.value.message == "`x` is float8_e5m2, which conv2d multiplies on sm_90a; the kernel is for sm_80"
    assert refused.value.help == ("convert it to float16 before; on the emulator, set PTXDSL_ARCH=sm_90a")


@pytest.mark.parametrize(("channels", "is_staggered"), [(64, False), (256, False), (1024, True)])
def test_tiles_end_one_warpgroup_after_the_other_where_the_next_has_iterations_to_hide_that(channels, is_staggered):
    """Windows of one pixel, 56², batch 128: with one iteration, of 64 channels, that took 83 µs and not 74."""
    known = ranked((8, 56, 56, channels), (256, 1, 1))
    shared = [each for each in known if each.tile[:2] == (128, 256) and each.split_k == 1 and not each.swap_ab]
    assert [each.stagger > 0 for each in shared] == [is_staggered]


@pytest.mark.parametrize("size", [(2, 9, 8, 16), (8, 28, 28, 64)])
def test_a_split_of_k_goes_by_mma_sync(size, rng):
    """Unless a configuration asks for wgmma, and whatever would be chosen without the split."""
    x, w = (rng.integers(-2, 3, shape).astype(np.float16) for shape in (size, (24, 3, 3, size[3])))
    with config.using(arch="sm_90a", checks=False):
        split, whole = conv2d(x, w, pad=1, split_k=2), conv2d(x, w, pad=1)
    assert (split == whole).all()
