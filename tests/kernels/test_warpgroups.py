"""The sm_90a path of gemm() against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column, relu
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Persistent, Strips
from ptxdsl.kernels.tiles.schedule import ProblemShape
from ptxdsl.schedule import HorizontalThreadblockSwizzle, PersistentScheduler
from ptxdsl.schedule.problems import GemmShape
from ptxdsl.types import bf16, f16, f32
from tests.kernels.test_gemm import check
from tests.kernels.test_schedules import few_blocks
from tests.machines import MACHINES, machine

__all__ = ["few_blocks"]  # a fixture for all tests here
ARCH = "sm_90a"
every_machine = pytest.mark.parametrize("name", MACHINES)
ORDERS = [(a, b, out) for a in ("row", "column") for b in ("row", "column") for out in ("row", "column")]
SIZES = [7, 8, 63, 64, 65, 127, 129, 200]
PERSISTENT = PersistentScheduler(max_swizzle=2)


def tiles(m, n, stages=3, **more):
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", **{"schedule": PERSISTENT, **more})


WIDE, SQUARE, LOW = tiles(128, 256, 2), tiles(128, 128), tiles(64, 64)
CONFIGS = {"wide": WIDE, "square": SQUARE, "low": LOW}


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", ARCH)


def aligned(*lengths):
    """What brings lines to a multiple of 16 bytes."""
    return tuple(-length % 8 for length in lengths)


def run(name, rng, m, n, k, orders=("row", "column", "row"), **how):
    lines = [(k, m), (n, k), (n, m)]
    padding = aligned(*(pair[order == "column"] for pair, order in zip(lines, orders, strict=True)))
    check(machine(name), rng, m, n, k, orders=orders, padding=padding, **how)


@every_machine
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("orders", ORDERS, ids="-".join)
def test_all_layouts_at_sizes_around_the_tiles(name, config, orders, rng):
    for _ in range(1 if name == "emulator" else 12):
        m, n, k = (int(size) for size in rng.choice(SIZES, 3))
        run(name, rng, m, n, k, orders, config=CONFIGS[config])


@every_machine
@pytest.mark.parametrize("inputs", ["f16", "bf16"])
@pytest.mark.parametrize("output", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("factors", [(1.0, 0.0), (-0.75, 1.5)], ids=["alone", "with c"])
def test_all_types(name, inputs, output, factors, rng):
    alpha, beta = factors
    run(name, rng, 130, 72, 136, inputs=inputs, output=output, alpha=alpha, beta=beta, config=LOW)


@every_machine
@pytest.mark.parametrize("config", [LOW, SQUARE], ids=["low", "square"])
def test_c_may_be_the_output(name, config, rng):
    run(name, rng, 300, 136, 72, beta=2.0, in_place=True, config=config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("orders", [("row", "row"), ("row", "column"), ("column", "column")], ids="-".join)
def test_c_that_lies_as_the_output_or_not(name, orders, rng):
    """In boxes, or read by the warps."""
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((264, 72), (72, 136), (264, 136)))
    c, out = (
        np.asarray(v, order="CF"[order == "column"])
        for v, order in zip((c, np.full_like(c, np.nan)), orders, strict=True)
    )
    where = machine(name)
    result = where.values(gemm(*map(where.array, (a, b, c)), out=where.array(out), beta=-1.5, config=SQUARE))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64) - 1.5 * c, rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("shape", [(3, 70, 136), (70, 136)], ids=["each its own", "one for all"])
def test_batches_with_c(name, shape, rng):
    a, b, c = (rng.standard_normal(of).astype(np.float16) for of in ((3, 70, 96), (96, 136), shape))
    where, out = machine(name), np.full((3, 70, 136), np.nan, np.float16)
    result = where.values(gemm(*map(where.array, (a, b, c)), out=where.array(out), beta=2.0, config=LOW))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64) + 2.0 * c, rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("schedule", [PERSISTENT, HorizontalThreadblockSwizzle()], ids=["persistent", "one tile"])
def test_many_tiles_and_a_ring_that_goes_round_many_times(name, schedule, rng):
    run(name, rng, 150, 200, 600, config=tiles(64, 64, schedule=schedule))


@every_machine
@pytest.mark.parametrize("columns", [16, 48, 80, 192, 224])
def test_tiles_of_any_width(name, columns, rng):
    run(name, rng, 150, 2 * columns + 8, 100, config=tiles(128, columns))


@every_machine
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("orders", ORDERS, ids="-".join)
def test_without_k(name, config, orders, rng):
    """Zeros of another memory are multiplied, of which tensor maps can be made."""
    run(name, rng, 70, 72, 0, orders, beta=-0.5, config=CONFIGS[config])


@every_machine
@pytest.mark.parametrize("inputs, output", [(np.float32, np.float32), (np.int8, np.int32)], ids=["f32", "s8"])
def test_batches_without_k(name, inputs, output):
    where, c = machine(name), np.ones((3, 9, 5), output)
    a, b = np.zeros((3, 9, 0), inputs), np.zeros((3, 0, 5), inputs)
    config = GemmConfig((64, 64, 128 // a.itemsize), stages=2, atom="wgmma")
    assert (where.values(gemm(*map(where.array, (a, b, c)), beta=2.0, config=config)) == 2).all()


@every_machine
def test_a_single_row(name, rng):
    run(name, rng, 1, 72, 127, config=LOW)


@every_machine
@pytest.mark.parametrize("shape", [(3, 96, 136), (96, 136)], ids=["each its own", "one for all"])
def test_batches(name, shape, rng):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 70, 96), shape))
    where, out = machine(name), np.full((3, 70, 136), np.nan, np.float16)
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=LOW))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("epilogue", ["function", "operands"])
def test_epilogues(name, epilogue, rng):
    a, b, bias = (rng.standard_normal(shape).astype(np.float16) for shape in ((100, 64), (64, 136), (136,)))
    where, out = machine(name), np.full((100, 136), np.nan, np.float16)
    how = (
        {"epilogue": relu}
        if epilogue == "function"
        else {"epilogue": add_relu, "operands": [per_column(where.array(bias))]}
    )
    found = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=SQUARE, **how))
    expected = a.astype(np.float64) @ b.astype(np.float64) + (bias.astype(np.float64) if epilogue == "operands" else 0)
    assert np.allclose(found, np.maximum(expected, 0), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("output", [f16, bf16, f32])
@pytest.mark.parametrize("tile", [(128, 256), (128, 192), (128, 128), (64, 256), (64, 128)])
@pytest.mark.parametrize(("boxes", "c"), [(True, "none"), (True, "separate"), (False, "none")], ids=str)
def test_kernels_that_are_chosen_spill_nothing(output, tile, boxes, c):
    if boxes and output is f32:
        pytest.skip("float32 is stored by the warps")
    operands = Operands(output=output, out_boxes=boxes, c=c)
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 64), 4), operands, Persistent(PERSISTENT))
    try:
        resources = warpgroup_gemm_kernel.resources(ARCH, traits=traits)
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


class TestChoice:
    def chosen(self, m, n, k, order="C"):
        a, b = np.zeros((m, k), np.float16, order), np.zeros((k, n), np.float16)
        return GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions()).traits()

    def test_large_products_go_by_warpgroups(self):
        traits = self.chosen(1024, 2048, 512)
        assert isinstance(traits, WarpgroupTraits)
        assert traits.operands.out_boxes

    @pytest.mark.parametrize(
        ("m", "n", "blocks"), [(4096, 4096, 128), (8192, 8192, 128), (128, 256, 1), (4224, 8192, 132)]
    )
    def test_no_more_blocks_run_than_the_rounds_of_tiles_need(self, m, n, blocks):
        problem = ProblemShape(GemmShape(m, n, 64))
        assert Strips().plan(problem, (128, 256, 64), lambda: 132).grid == (blocks, 1, 1)

    def test_lines_that_tensor_copies_cannot_address_go_another_way(self):
        assert not isinstance(self.chosen(1024, 2048, 513), WarpgroupTraits)

    def test_no_k(self):
        assert not isinstance(self.chosen(1024, 2048, 0), WarpgroupTraits)

    def test_other_gpus(self, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
        assert not isinstance(self.chosen(1024, 2048, 512), WarpgroupTraits)


A, B = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16)
REFUSED = {
    "lines": (
        lambda: gemm(np.zeros((64, 65), np.float16), np.zeros((65, 64), np.float16), config=LOW),
        "`a` has a leading dimension of 130 bytes",
        "pad its leading dimension, or leave atom out: then they are loaded without TMA",
    ),
    "groups": (
        lambda: grouped_gemm([A], [B], schedule="host", config=replace(LOW, schedule=GemmConfig().schedule)),
        'atom is "wgmma", whose tiles are assigned dynamically',
        'pass schedule="device", without balance, or leave atom out',
    ),
    "types": (
        lambda: gemm(A.astype(np.float64), B.astype(np.float64), config=LOW),
        "GemmConfig: the tiles are those of wgmma, which this path has for f16, bf16, f32, s8, u8, e4m3 or e5m2 "
        "inputs; they are f64",
        None,
    ),
    "rows": (lambda: tiles(96, 64), "GemmConfig: tile is (96, 64, 64); with wgmma its M is 64, 128 or 192", None),
    "columns": (
        lambda: tiles(64, 72),
        "GemmConfig: tile is (64, 72, 64); with wgmma its N is a multiple of 16, 256 at most",
        None,
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert caught.value.help == help
