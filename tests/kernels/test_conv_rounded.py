"""conv2d() of float32 on the sm_90a path: pixels are rounded to tf32 in registers, filters in a copy, as mma.sync gets
them.

Pixels or filters lie between two tf32, the others are small integers: sums of the rounded ones are exact.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.convolutions import conv as calls
from ptxdsl.kernels.call.convolutions.problem import convolution_problem, window
from ptxdsl.kernels.call.paths.select import trials
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.products import copies
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.conv import CONVOLUTIONS, conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.reorder.rows import rows_kernel
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from tests.kernels.placed import placed
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_rounded_tf32 import between, cut, hopper, integers, rounded
from tests.machines import machine

__all__ = ["hopper"]  # a fixture for all tests here
# Images, filters, and how windows move
CASES = {
    "3x3": ((2, 9, 7, 8), (24, 3, 3), {"pad": 1}),
    "stride, more channels than a line": ((1, 9, 8, 36), (20, 3, 3), {"pad": 1, "stride": 2}),
    "1x1": ((2, 5, 6, 16), (40, 1, 1), {}),
    "1x1, stride": ((2, 8, 8, 12), (68, 1, 1), {"stride": 2}),
    "dilation, pads of each side": ((1, 8, 9, 20), (8, 2, 3), {"pad": ((0, 1), (2, 1)), "dilation": 2}),
    "many pixels, of several tiles": ((3, 14, 14, 36), (132, 3, 3), {"pad": 1}),
}


@pytest.fixture
def by_wgmma(monkeypatch):
    """Where the other path is said to take forever."""
    monkeypatch.setattr(WarpPath, "ranked", lambda *_: [(inf, GemmConfig())])


def drawn(rng, case):
    """Two pairs: one whose pixels lie between two tf32, and one whose filters do."""
    images, (filters, *extents), _ = CASES[case]
    for left, right in ((between, integers), (integers, between)):
        yield left(rng, *images), right(rng, filters, *extents, images[-1])


def convolved(x, w, pad=0, stride=1, dilation=1):
    """In float64."""
    moves = window(pad, stride, dilation)
    (_, r, s, _), (down, right), (apart_h, apart_w) = w.shape, moves.stride, moves.dilation
    padded = np.pad(x.astype(np.float64), ((0, 0), *moves.pad, (0, 0)))
    p, q = ((extent - (n - 1) * apart - 1) // step + 1 for extent, n, apart, step in
            zip(padded.shape[1:3], (r, s), moves.dilation, moves.stride, strict=True))  # fmt: skip
    total = 0
    for i in range(r):
        for j in range(s):
            seen = padded[:, i * apart_h :: down, j * apart_w :: right][:, :p, :q]
            total = total + seen @ w[:, i, j].astype(np.float64).T
    return total


@every_machine
@pytest.mark.parametrize("case", CASES)
def test_windows(name, case, by_wgmma, rng):
    where, how = machine(name), CASES[case][2]
    for x, w in drawn(rng, case):
        expected = convolved(rounded(x), rounded(w), **how)
        out = where.array(np.full(expected.shape, np.nan, np.float32))
        assert np.array_equal(where.values(conv2d(where.array(x), where.array(w), out=out, **how)), expected)


@every_machine
@pytest.mark.parametrize("case", ["3x3", "1x1"])
@pytest.mark.parametrize("output", [np.float32, np.float16])
def test_an_epilogue(name, case, output, by_wgmma, rng):
    where, how = machine(name), CASES[case][2]
    for x, w in drawn(rng, case):
        bias = integers(rng, w.shape[0])
        expected = np.maximum(convolved(rounded(x), rounded(w), **how) + bias, 0)
        out = where.array(np.zeros(expected.shape, output))
        fused = {"epilogue": add_relu, "operands": [per_column(where.array(bias))]}
        result = where.values(conv2d(where.array(x), where.array(w), out=out, **how, **fused))
        assert np.array_equal(result, expected.astype(output).astype(np.float64))


@every_machine
def test_slices_of_an_image_and_of_filters(name, by_wgmma, rng):
    """Some channels of larger arrays, whose filters are copied without the others."""
    where = machine(name)
    x, w = between(rng, 2, 6, 7, 24), integers(rng, 16, 3, 3, 8)
    room = where.array(x)
    expected = convolved(rounded(x[..., 8:16]), w, pad=1)
    assert np.array_equal(where.values(conv2d(room[..., 8:16], where.array(w), pad=1)), expected)


@every_machine
@pytest.mark.parametrize("case", ["3x3", "1x1"])
def test_who_chooses_wgmma_gets_numbers_cut_off(name, case, rng):
    where, how = machine(name), CASES[case][2]
    config = GemmConfig((64, 64, 32), stages=3, atom="wgmma")
    for x, w in drawn(rng, case):
        result = where.values(conv2d(where.array(x), where.array(w), config=config, **how))
        assert np.array_equal(result, convolved(cut(x), cut(w), **how))


class TestChoice:
    def problem(self, images, filters, **moves):
        x, w = placed(images, np.float32), placed((*filters, images[-1]), np.float32)
        how = {"pad": 0, "stride": 1, "dilation": 1, **moves}
        return convolution_problem(x, w, None, window(**how), None, ())

    def plan(self, *shapes, choice=GemmOptions(), **moves):  # noqa: B008
        return calls.convolution_plan(CONVOLUTIONS, self.problem(*shapes, **moves), choice)

    @pytest.mark.parametrize(("images", "filters", "moves"), [
        ((32, 56, 56, 64), (64, 3, 3), {"pad": 1}), ((32, 56, 56, 64), (256, 1, 1), {}),
        ((128, 28, 28, 512), (128, 1, 1), {}), ((32, 14, 14, 256), (256, 3, 3), {"pad": 1}),
        ((32, 56, 56, 256), (64, 1, 1), {}), ((32, 56, 56, 256), (512, 1, 1), {"stride": 2}), ((32, 7, 7, 512), (512, 3, 3), {"pad": 1}),
    ], ids=str)  # fmt: skip
    def test_layers_of_a_network_round_pixels_in_registers(self, images, filters, moves):
        plan = self.plan(images, filters, **moves)
        traits = plan.constants["traits"]
        assert isinstance(traits, WarpgroupTraits) and traits.from_registers and not traits.tiling.swap_ab
        assert [each.kernel for each in plan.before] == [rows_kernel]
        assert plan.before[0].constants["rounded"] and plan.stream == plan.before[0].stream

    def test_one_warpgroup_alone_has_no_narrow_tiles(self):
        """Whose products would end before those are loaded that follow."""
        traits = self.plan((128, 7, 7, 512), (512, 3, 3), pad=1).constants["traits"]
        assert traits.tile[0] > 64 or traits.tile[1] == 256

    @pytest.mark.parametrize(("images", "filters"), [
        ((32, 224, 224, 3), (64, 7, 7)), ((32, 64, 64, 4), (64, 3, 3)), ((1, 4, 4, 8), (8, 1, 1)),
    ], ids=["packed", "a word a pixel", "small"])  # fmt: skip
    def test_images_that_are_packed_and_small_ones_go_by_mma_sync(self, images, filters):
        plan = self.plan(images, filters)
        assert plan.before == () and not isinstance(plan.constants["traits"], WarpgroupTraits)

    def test_nor_do_other_gpus_round_so(self, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_90")
        assert self.plan((32, 56, 56, 64), (64, 3, 3)).before == ()

    def test_all_that_is_tuned_rounds(self):
        problem = self.problem((32, 28, 28, 128), (128, 3, 3), pad=1)
        timed = [each for _, each in trials(calls.request_of(problem, GemmOptions()))]
        assert {(each.config.atom == WGMMA, each.copied) for each in timed} == {(False, ""), (True, "b")}
        for copied in ("", "b"):
            candidate = next(each for each in timed if each.copied == copied)
            choice = GemmOptions(candidate.config)
            plan = (
                calls.warpgroup_plan(CONVOLUTIONS, *calls.round_filters(problem), choice)
                if copied
                else calls.convolution_plan(CONVOLUTIONS, problem, choice)
            )
            assert plan.constants["traits"].tile == candidate.config.tile
            assert [each.kernel for each in plan.before] == [rows_kernel] * len(copied)
            assert not copied or plan.constants["traits"].operands.rounded == "a"

    def test_filters_that_no_map_takes_are_copied_so_too(self, by_wgmma):
        """Their lines begin at no multiple of 16 bytes, those of the copy do."""
        x, room = placed((2, 8, 8, 8), np.float32), placed((16 * 9 * 8 + 1,), np.float32)
        problem = convolution_problem(x, room[1:].reshape(16, 3, 3, 8), None, window(1, 1, 1), None, ())
        plan = calls.convolution_plan(CONVOLUTIONS, problem, GemmOptions())
        assert [each.kernel for each in plan.before] in ([rows_kernel], [])


def test_without_memory_for_the_copy_mma_sync_does(by_wgmma, monkeypatch, rng):
    """On a GPU whose memory others have."""

    def refused(*_):
        raise pd.LaunchError("allocating 4096 bytes of workspace: CUDA_ERROR_OUT_OF_MEMORY: out of memory")

    monkeypatch.setattr(copies, "room_for_copy", refused)
    for x, w in drawn(rng, "3x3"):
        assert np.array_equal(conv2d(x, w, pad=1), convolved(rounded(x), rounded(w), pad=1))


@pytest.mark.gpu
def test_a_call_that_is_repeated_copies_its_own_filters(by_wgmma, rng):
    torch = pytest.importorskip("torch")
    for _ in range(3):
        x, w = between(rng, 2, 9, 7, 8), integers(rng, 24, 3, 3, 8)
        result = conv2d(torch.from_numpy(x).cuda(), torch.from_numpy(w).cuda(), pad=1)
        assert np.array_equal(result.double().cpu().numpy(), convolved(rounded(x), w, pad=1))
