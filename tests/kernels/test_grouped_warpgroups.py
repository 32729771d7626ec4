"""Lists of products on the sm_90a path against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import grouped as call
from ptxdsl.kernels.call.groups.group import problem_group
from ptxdsl.kernels.call.paths.select import trials_of_class
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import KERNELS, grouped_gemm, warpgroup_grouped_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import f32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_grouped import check
from tests.kernels.test_ragged_warpgroups import LOW, SQUARE
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SIZES = [(1, 8, 8), (0, 16, 24), (65, 72, 136), (64, 0, 8), (3, 136, 72)]
EVERY_ORDER = [("row", "column", "row"), ("column", "row", "row"), ("row", "row", "column"), ("column",) * 3]


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has tiles of several problems."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 2)


def padded(sizes, unit=8):
    """Sizes whose lines tensor copies can address, whatever the orders."""
    return [tuple(-(-extent // unit) * unit for extent in size) for size in sizes]


@every_machine
@pytest.mark.parametrize("orders", EVERY_ORDER, ids="-".join)
def test_problems_of_all_sizes_in_all_orders(name, orders, rng):
    sizes = SIZES if orders == ("row", "column", "row") else padded(SIZES)
    check(machine(name), rng, sizes, orders=orders, config=SQUARE if orders[0] == "row" else LOW)


SHARES = GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma", swap_ab=True)
STAGGERED = replace(SHARES, tile=(64, 128, 64), stages=3, stagger=2)
IN_SHARES = [(1, 8, 8), (0, 16, 24), (200, 136, 136), (64, 0, 8), (130, 72, 72)]


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "config, orders", [(SHARES, EVERY_ORDER[0]), (STAGGERED, ("column",) * 3)], ids=["shares", "staggered"]
)
def test_problems_in_even_shares(name, config, orders, rng):
    """Of a column-major list the transposes are computed, and N is in shares."""
    check(machine(name), rng, IN_SHARES if orders[0] == "row" else padded(IN_SHARES), orders=orders, config=config)


@pytest.mark.exhaustive
@every_machine
def test_shares_whose_outputs_are_not_stored_in_boxes(name, rng):
    check(machine(name), rng, IN_SHARES, output="f32", beta=2.0, config=SHARES)


def test_the_tile_of_few_rows_does_not_spill():
    rows = [np.zeros((height, 2048), np.float16) for height in (20, 80, 140)] * 20
    group = problem_group(rows, [np.zeros((1408, 2048), np.float16).T] * len(rows), None, None, (1.0, 0.0))
    for chosen in (None, GemmConfig(tile=(64, 256, 64), atom="wgmma")):
        check_no_spill(warpgroup_grouped_kernel, call.traits_of(group.row_major, chosen))


@every_machine
@pytest.mark.parametrize("in_place", [False, True])
def test_alpha_beta_and_c(name, in_place, rng):
    check(machine(name), rng, SIZES[2:], alpha=-0.5, beta=2.0, inputs="bf16", in_place=in_place, config=LOW)


@pytest.mark.exhaustive
@every_machine
def test_lines_that_are_padded(name, rng):
    check(machine(name), rng, padded(SIZES[2:]), padding=(8, 16, 3), output="f32", config=LOW)


@every_machine
def test_an_epilogue(name, rng):
    where, config = machine(name), GemmConfig((64, 64, 64), stages=2, atom="wgmma", epilogue=lambda x: pd.max(x, 0))
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 64), (64, 72)))
    (out,) = grouped_gemm([where.array(a)], [where.array(b)], config=config)
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    assert np.allclose(where.values(out), exact, rtol=2e-3, atol=2e-2)


@every_machine
def test_more_problems_than_versions_of_maps(name, rng):
    """A block of two has more of them than stages: versions are written again."""
    check(machine(name), rng, [(8, 8, 8 * (1 + n % 3)) for n in range(10 if name == "emulator" else 70)], config=LOW)


@pytest.mark.exhaustive
@every_machine
def test_integers(name, rng):
    where, config = machine(name), GemmConfig((64, 64, 128), stages=2, atom="wgmma")
    a = [rng.integers(-3, 4, (m, 48)).astype(np.int8) for m in (5, 70)]
    b = [rng.integers(-3, 4, (n, 48)).astype(np.int8).T for n in (9, 66)]
    results = grouped_gemm([where.array(x) for x in a], [where.array(x) for x in b], config=config)
    for x, y, z in zip(a, b, results, strict=True):
        assert (where.values(z) == x.astype(np.int64) @ y.astype(np.int64)).all()


def ones(*shape):
    return np.ones(shape, np.float16)


class TestChoice:
    def chosen(self, sizes, schedule="device", config=None):
        a, b = [ones(m, k) for m, _, k in sizes], [ones(n, k).T for _, n, k in sizes]
        return call.traits_of(problem_group(a, b, None, None, (1.0, 0.0)).row_major, config, schedule)

    def test_large_problems_go_by_warpgroups(self):
        assert isinstance(self.chosen([(2048, 2048, 512), (1024, 4096, 256)]), WarpgroupTraits)

    @pytest.mark.parametrize("n", [4096, 1152])
    def test_large_ones_have_even_shares(self, n):
        traits = self.chosen([(m, n, 256) for m in (1024, 1280, 1536, 1664, 2048, 2048)])
        assert traits.shares_rows and traits.tiling.stagger

    def test_few_rows_have_none(self):
        assert not self.chosen([(128, 2048, 512)] * 40).shares_rows

    def test_shares_are_among_what_is_tuned(self):
        a, b = [ones(1024, 64)] * 8, [ones(4096, 64).T] * 8
        known = trials_of_class(call.request_of(problem_group(a, b, None, None, (1.0, 0.0)).row_major))
        assert [each.config.stagger for _, each in known if each.config.swap_ab] == [3]

    def test_of_fp8_only_wgmma_is_tuned(self):
        a, b = [np.ones((64, 64), NAMES["e4m3"])] * 2, [np.ones((64, 64), NAMES["e4m3"]).T] * 2
        known = trials_of_class(call.request_of(problem_group(a, b, None, None, (1.0, 0.0)).row_major))
        assert {each.config.atom for _, each in known} == {"wgmma"}

    @pytest.mark.parametrize("sizes", [[(64, 64, 64)], [(1024, 1024, 513)], [(1024, 1024, 512), (8, 8, 0)]])
    def test_small_ones_and_lines_that_no_tensor_copy_can_address_go_another_way(self, sizes):
        assert not isinstance(self.chosen(sizes), WarpgroupTraits)

    @pytest.mark.parametrize("dtype, n, beta, boxes", [
        (np.float16, 72, 0.0, True), (np.float16, 70, 0.0, False), (np.float32, 72, 0.0, False), (np.float16, 72, 1.0, False),
    ])  # fmt: skip
    def test_outputs_of_16_bits_are_stored_in_boxes(self, dtype, n, beta, boxes):
        a, b, out = [ones(9, 64)] * 2, [ones(64, n)] * 2, [np.zeros((9, n), dtype) for _ in range(2)]
        config = GemmConfig((64, 64, 64), stages=2, atom="wgmma")
        b = [np.asfortranarray(x) for x in b]
        traits = call.traits_of(problem_group(a, b, out if beta else None, out, (1.0, beta)).row_major, config)
        assert traits.operands.out_boxes == boxes

    def test_tables_of_the_host_go_another_way(self):
        assert not isinstance(self.chosen([(1024, 1024, 512)], "host"), WarpgroupTraits)


def test_the_longest_k_is_dealt_first():
    a, b = [ones(8, k) for k in (64, 128, 64, 256)], [ones(k, 8) for k in (64, 128, 64, 256)]
    group = problem_group(a, b, None, None, (1.0, 0.0))
    plan = call.list_plan(KERNELS, group, call.traits_of(group, LOW), (None, a, b, None))
    assert plan.table.order.tolist() == [3, 1, 0, 2]


REFUSED = {
    "lines": (
        lambda: grouped_gemm([ones(4, 64), ones(4, 65)], [ones(64, 8), ones(65, 8)], config=LOW),
        "`a[1]` has a leading dimension of 130 bytes and the address",
        "pad its leading dimension, or leave atom out: then they are loaded without TMA",
    ),
    "no K": (
        lambda: grouped_gemm([ones(4, 64), ones(4, 0)], [ones(64, 8), ones(0, 8)], config=LOW),
        'atom is "wgmma", and problem 1 has nothing to multiply: its K or alpha is 0',
        "leave atom out",
    ),
    "not along K": (
        lambda: grouped_gemm(
            [np.ones((4, 128), np.int8)],
            [np.ones((128, 16), np.int8)],
            config=GemmConfig((64, 64, 128), stages=2, atom="wgmma"),
        ),
        "matrices of `b` are not K-major, as wgmma needs int8 operands to be",
        "pass row-major `a` and column-major `b`, or leave atom out",
    ),
    "schedule": (
        lambda: grouped_gemm([ones(4, 64)], [ones(64, 8)], config=LOW, schedule="host"),
        'atom is "wgmma", whose tiles are assigned dynamically',
        'pass schedule="device", without balance, or leave atom out',
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    run, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        run()
    assert caught.value.message.startswith(message)
    assert caught.value.help == help


@pytest.mark.exhaustive
@pytest.mark.parametrize("facts", [{"out_boxes": True}, {"c": "separate"}, {"c": "separate", "output": f32}], ids=str)
@pytest.mark.parametrize("tile", [(128, 256), (64, 128)])
def test_kernels_spill_nothing(facts, tile):
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 64), 3), Operands(**facts), AHEAD)
    check_no_spill(warpgroup_grouped_kernel, traits)


@pytest.mark.exhaustive
def test_kernels_of_shares_spill_nothing():
    tiling = WarpgroupTiling((256, 128, 64), 4, swap_ab=True, stagger=3)
    traits = WarpgroupTraits(tiling, Operands(out_boxes=True), AHEAD)
    check_no_spill(warpgroup_grouped_kernel, traits)
