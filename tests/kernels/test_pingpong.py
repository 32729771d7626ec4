"""Ping-pong on the sm_90a path: warpgroups that take turns at the tensor cores, each with tiles of its own."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, gelu, per_column, relu
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import grouped_gemm_ragged
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import (
    GroupedRowsThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)
from ptxdsl.types import bf16, f16, f32, s8, s32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_warpgroups import ORDERS, hopper, run
from tests.machines import MACHINES, machine
from tests.mutants.subjects import whole
from tests.mutants.trial import SCHEDULES as SCHEDULES_OF_MUTANTS
from tests.mutants.trial import launches

__all__ = ["hopper"]  # fixtures for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)
TURN = re.compile(r"\s*bar\.(sync|arrive) %\w+, 256;")
SIZES = [7, 64, 65, 127, 129, 200]


def turns(m, n, stages=3, schedule=Strips(), **more):  # noqa: B008
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", pingpong=True, schedule=schedule, **more)


@pytest.fixture
def blocks(monkeypatch):
    """A GPU of so few blocks."""
    return lambda count: monkeypatch.setattr(scheduled, "resident_blocks", lambda kernel, traits, device: count)


LOW, TALL, WIDE = turns(64, 64), turns(128, 48), turns(128, 192)
CONFIGS = {"low": LOW, "tall": TALL, "wide": WIDE}


@every_machine
@pytest.mark.parametrize(("config", "orders"), [*zip([*CONFIGS] * 2, ORDERS[::2], strict=False)], ids=str)
def test_all_layouts_at_sizes_around_the_tiles(name, config, orders, rng):
    for _ in range(1 if name == "emulator" else 12):
        m, n, k = (int(size) for size in rng.choice(SIZES, 3))
        run(name, rng, m, n, k, orders, config=CONFIGS[config])


@every_machine
@pytest.mark.parametrize(("inputs", "output"), [("bf16", "bf16"), ("f16", "f32")])
@pytest.mark.parametrize("factors", [(1.0, 0.0), (-0.75, 1.5)], ids=["alone", "with c"])
def test_types(name, inputs, output, factors, rng):
    alpha, beta = factors
    run(name, rng, 150, 104, 72, inputs=inputs, output=output, alpha=alpha, beta=beta, config=TALL)


@every_machine
@pytest.mark.parametrize(("inputs", "output", "depth"), [("f4", "f4", 32), ("i1", "i4", 128)])
def test_types_that_lie_along_k(name, inputs, output, depth):
    a, b = whole(260, 144, dtype=inputs), whole(104, 144, seed=1, dtype=inputs).T
    where, config = machine(name), replace(TALL, tile=(128, 48, depth))
    result = gemm(where.array(a), where.array(b), out=where.array(np.zeros((260, 104), output)), config=config)
    assert np.array_equal(where.values(result), a.astype(np.float64) @ b.astype(np.float64))


@every_machine
@pytest.mark.parametrize("tiles", [1, 2, 3, 4])
def test_every_number_of_tiles_of_a_block(name, tiles, rng, blocks):
    """The last turn is that of either warpgroup; a block of one tile has none."""
    blocks(1)
    run(name, rng, 64 * tiles, 64, 136, config=LOW)


@every_machine
@pytest.mark.parametrize("k", [8, 130, 328])
def test_products_that_leave_the_ring_anywhere(name, k, rng, blocks):
    blocks(1)
    run(name, rng, 130, 136, k, config=LOW)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("in_place", [False, True])
def test_c_in_boxes(name, in_place, rng, blocks):
    blocks(1)
    run(name, rng, 200, 136, 72, beta=2.0, in_place=in_place, config=turns(128, 96))


SCHEDULES = {
    "strips": Strips(2),
    "clusters": PersistentScheduler(max_swizzle=2),
    "one tile": GroupedRowsThreadblockSwizzle(2),
}


@every_machine
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(name, schedule, rng, blocks):
    blocks(2)
    run(name, rng, 200, 136, 72, config=turns(64, 64, schedule=SCHEDULES[schedule]))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("schedule", "pingpong"), [("strips", True), ("clusters", False)])
def test_batches(name, schedule, pingpong, rng, blocks):
    blocks(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 150, 96), (3, 96, 136)))
    where, out = machine(name), np.full((3, 150, 136), np.nan, np.float16)
    config = replace(turns(64, 64, schedule=SCHEDULES[schedule]), pingpong=pingpong)
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=config))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("epilogue", ["boxes", "operands"])
def test_epilogues(name, epilogue, rng, blocks):
    blocks(1)
    a, b, bias = (rng.standard_normal(shape).astype(np.float16) for shape in ((200, 64), (64, 136), (136,)))
    where, out = machine(name), np.full((200, 136), np.nan, np.float16)
    beside = {"operands": [per_column(where.array(bias))]} if epilogue == "operands" else {}
    function = add_relu if epilogue == "operands" else relu
    result = where.values(
        gemm(where.array(a), where.array(b), out=where.array(out), config=TALL, epilogue=function, **beside)
    )
    expected = a.astype(np.float64) @ b.astype(np.float64) + (bias.astype(np.float64) if beside else 0)
    assert np.allclose(result, np.maximum(expected, 0), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
def test_convolutions(name, blocks):
    blocks(1)
    x, w = whole(2, 9, 9, 16), whole(24, 3, 3, 16, seed=1)
    where, out = machine(name), np.zeros((2, 9, 9, 24), np.float16)
    result = conv2d(where.array(x), where.array(w), pad=1, out=where.array(out), config=LOW)
    assert np.array_equal(where.values(result), conv2d(x, w, pad=1))


ASSEMBLED = {
    "boxes": ((128, 192), 5, Operands(output=bf16, out_boxes=True)),
    "boxes of c": ((128, 192), 4, Operands(output=f16, out_boxes=True, c="separate")),
    "many sums": ((128, 208), 5, Operands(output=f16, out_boxes=True)),
    "rows": ((64, 256), 4, Operands(output=f32)),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ASSEMBLED)
def test_no_spills(case):
    tile, stages, operands = ASSEMBLED[case]
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 64), stages, pingpong=True), operands, Strips(), gelu)
    assert traits.fits("sm_90a")
    check_no_spill(warpgroup_gemm_kernel, traits)


def launch_of(beta):
    """A small product of one block, whose five tiles are of two warpgroups in turn; the ring goes round many times."""
    a, b = whole(320, 264), whole(264, 64, seed=1)
    c = whole(320, 64, seed=2) if beta else None
    ((launch,),) = launches(lambda: gemm(a, b, c, beta=beta, config=LOW))
    return launch


def shows(launch, text, intact):
    """Whether a changed text of a kernel is accused, or gives other numbers, under one of the schedules."""
    return any(launch.run(text, schedule) != intact for schedule in SCHEDULES_OF_MUTANTS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("beta", [0.0, 1.0], ids=["alone", "with c"])
def test_each_barrier_of_a_turn_is_missed(beta, blocks):
    blocks(1)
    launch = launch_of(beta)
    lines = launch.text.splitlines()
    intact = launch.run(launch.text, "lockstep")
    orders = [n for n, line in enumerate(lines) if TURN.match(line)]
    unseen = [lines[n] for n in orders if not shows(launch, "\n".join(lines[:n] + lines[n + 1 :]), intact)]
    assert not intact.finding
    assert unseen == []


REFUSED = {
    "no bool": (lambda: GemmConfig(tile=(64, 64, 64), atom="wgmma", pingpong=1), "GemmConfig: pingpong is 1; it takes True or False"),
    "another path": (lambda: GemmConfig(pingpong=True), "GemmConfig: pingpong is True; only warpgroups that multiply take turns at the tensor cores"),
    "swapped and tall": (
        lambda: turns(224, 128, swap_ab=True),
        "GemmConfig: tile is (224, 128, 64), and pingpong is True: one warpgroup holds the sums of a tile, of which 26624 "
        "fit its registers; with 128 columns M is 208 at most",
    ),
    "wide": (
        lambda: turns(128, 224),
        "GemmConfig: tile is (128, 224, 64), and pingpong is True: one warpgroup holds the sums of a tile, of which 26624 "
        "fit its registers; with 128 rows N is 208 at most",
    ),
    "split K": (
        lambda: turns(64, 64, schedule=GroupedRowsThreadblockSwizzle(2), split_k=2),
        "GemmConfig: pingpong is True, and blocks share the K of tiles; warpgroups take turns at whole ones",
    ),
    "stream-K": (
        lambda: turns(64, 64, schedule=StreamKThreadblockSwizzle()),
        "GemmConfig: pingpong is True, and blocks share the K of tiles; warpgroups take turns at whole ones",
    ),
    "cluster": (
        lambda: turns(64, 64, schedule=GroupedRowsThreadblockSwizzle(2), split_k=2, reduction="cluster"),
        "GemmConfig: pingpong is True, and blocks share the K of tiles; warpgroups take turns at whole ones",
    ),
    "groups": (
        lambda: grouped_gemm(
            [np.zeros((64, 64), np.float16)], [np.zeros((64, 64), np.float16)],
            config=GemmConfig(tile=(64, 64, 64), atom="wgmma", pingpong=True),
        ),
        "`config` says that pingpong is True; tiles of groups are dealt while a kernel runs, to all warpgroups",
    ),
    "groups of rows": (
        lambda: grouped_gemm_ragged(
            np.zeros((64, 64), np.float16), np.zeros((1, 64, 64), np.float16), np.zeros(1, np.int32),
            config=GemmConfig(tile=(64, 64, 64), atom="wgmma", pingpong=True, swap_ab=True),
        ),
        "`config` says that pingpong and swap_ab are True; of groups, warpgroups take turns at rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message == message


class TestChoice:
    def ranked(self, m, n, k, **operands):
        facts = ProductFacts(m, n, k, 1, Operands(**{"inputs": bf16, "output": bf16, **operands}))
        return [config for _, config in ranked_products(facts, rates_of())]

    def test_ping_pong_is_for_more_tiles_than_multiprocessors(self):
        assert any(config.pingpong for config in self.ranked(4096, 4096, 4096))
        assert not any(config.pingpong for config in self.ranked(512, 512, 4096))

    @pytest.mark.parametrize(
        "operands",
        [{"output": f32}, {"out_bytes": 8}, {"c": "separate", "c_major": "column"}, {"inputs": s8, "output": s32}],
        ids=str,
    )
    def test_ping_pong_is_for_outputs_that_tma_stores(self, operands):
        assert not any(config.pingpong for config in self.ranked(8192, 8192, 8192, **operands))

    @pytest.mark.parametrize("majors", [{"b_major": "mn"}, {"a_major": "mn", "b_major": "mn"}], ids=str)
    def test_boxes_along_n_are_whole_rows(self, majors):
        assert all(
            config.tile[1] % 64 == 0 for config in self.ranked(8192, 8192, 8192, **majors) if config.tile[1] > 32
        )
