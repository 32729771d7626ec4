"""A block of one tile stages it in the ring, when all warpgroups have read that to the end."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import DATA_PARALLEL
from ptxdsl.kernels.choose.products import choose_product, ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.stages import stages_of
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
)
from ptxdsl.types import bf16, f32
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import machine
from tests.mutants.subjects import whole
from tests.mutants.trial import SCHEDULES, launches

__all__ = ["hopper"]  # a fixture for all tests here
IN_COLUMNS, IN_ROWS = IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()


def config(m=128, n=64, stages=3, schedule=IN_COLUMNS, **how):
    return GemmConfig((m, n, 64), stages=stages, atom="wgmma", schedule=schedule, **how)


WAYS = {
    "shared": config(),
    "of one warpgroup": config(m=64),
    "staggered": config(stagger=2),
    "swapped": config(m=32, n=128, swap_ab=True),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@every_machine
@every_way
@pytest.mark.parametrize("k", [8, 200])
def test_sizes_around_tiles(name, way, k, rng):
    run(name, rng, 136, 72, k, config=way)


@every_machine
@pytest.mark.parametrize("output", ["f16", "f32"])
@pytest.mark.parametrize("beta", [0.0, -1.5])
def test_outputs_and_c(name, output, beta, rng):
    run(name, rng, 136, 104, 200, output=output, alpha=0.5, beta=beta, config=config())


@every_machine
def test_a_tile_that_is_staged_in_two_parts(name, rng):
    run(name, rng, 130, 264, 200, config=config(n=256, stages=2))


@every_machine
def test_rows_that_no_box_can_store(name, rng):
    """Each warp stages its own, where all of them have read A."""
    run(name, rng, 136, 71, 200, config=config())


@every_machine
@pytest.mark.parametrize("way", ["shared", "staggered"])
def test_a_function_of_vectors(name, way, rng):
    on, (m, n, k) = machine(name), (136, 104, 200)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    bias, out = rng.standard_normal(n).astype(np.float16), on.array(np.full((m, n), np.nan, np.float16))
    vectors = (per_column(on.array(bias)),)
    gemm(on.array(a), on.array(b), out=out, epilogue=add_relu, operands=vectors, config=WAYS[way])
    assert np.allclose(on.values(out), np.maximum(a.astype(float) @ b + bias, 0), rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("order", [IN_COLUMNS, BatchedIdentityThreadblockSwizzle()], ids=["in columns", "batched"])
def test_batches(name, order, rng):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 150, 136), (3, 136, 72)))
    where, out = machine(name), np.full((3, 150, 72), np.nan, np.float16)
    tiles = config(schedule=order)
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=tiles))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("way", "output", "count"),
    [
        ("shared", np.float16, 1),
        ("shared", np.float32, 1),
        ("swapped", np.float16, 1),
        ("staggered", np.float16, 0),  # its boxes lie where this warpgroup alone has read
        ("staggered", np.float32, 1),
        ("of one warpgroup", np.float32, 0),
    ],
)
def test_warpgroups_meet_before_they_write_where_others_read(way, output, count):
    """One block, whose ring is read twice."""
    m, n, k = 20 if WAYS[way].swap_ab else 100, 40, 264
    arrays = whole(m, k), whole(n, k, seed=1).T
    ((launch,),) = launches(lambda: gemm(*arrays, out=np.zeros((m, n), output), config=WAYS[way]))
    first, second = (launch.run(launch.text, schedule) for schedule in SCHEDULES[1:])
    assert not first.finding
    assert first == second
    text, meetings = re.subn(r"bar\.sync 15, 256;", "", launch.text)
    assert meetings == count
    if meetings:
        findings = [launch.run(text, schedule).finding for schedule in SCHEDULES]
        assert all(re.search("no barrier orders the two|asynchronous operation still reads", each) for each in findings)


def traits(way, **operands):
    return way.traits(Operands(bf16, operands.pop("output", bf16), **operands))


@pytest.mark.parametrize(
    ("way", "operands", "is_in_ring"),
    [
        (config(), {"out_boxes": True}, True),
        (config(), {"output": f32}, True),
        (config(stagger=2), {"out_boxes": True}, True),
        (config(stagger=2), {"output": f32}, True),
        (config(pingpong=True), {"out_boxes": True}, False),
        (config(), {"out_boxes": True, "c": "separate"}, False),  # it comes while they multiply
        (config(schedule=Strips()), {"out_boxes": True}, False),
    ],
)
def test_what_is_staged_in_the_ring_takes_no_other_memory(way, operands, is_in_ring):
    known = traits(way, **operands)
    assert (known.shared_bytes == way.tiling.ring_bytes(known.operands)) == is_in_ring


def facts(shape, output=bf16, **operands):
    return ProductFacts(*shape, 1, Operands(bf16, output, **operands))


@pytest.mark.parametrize("shape", [(256, 7168, 16384), (384, 8192, 8192), (512, 512, 512), (64, 7168, 2048)], ids=str)
def test_blocks_of_one_tile_are_candidates_where_all_tiles_are_resident(shape):
    """Their rings are as long as those of persistent blocks, or longer."""
    known = [each for _, each in ranked_products(facts(shape), rates_of())]
    single = [each for each in known if each.schedule in (IN_COLUMNS, IN_ROWS) and each.split_k == 1]
    assert single
    for each in single:
        assert facts(shape).tiles(each.tile) <= 2 * 132
        assert each.stages >= stages_of(each.tile, facts(shape).operands, resident=2)


@pytest.mark.parametrize(
    "known",
    [facts((8192, 8192, 8192)), facts((512, 512, 512), f32), facts((64, 7168, 2048), c="separate")],
    ids=["many tiles", "float32 and a short K", "C"],
)
def test_others_stay_persistent(known):
    tiles = [each for _, each in ranked_products(known, rates_of()) if each.split_k == 1 and each.tile[0] == 64]
    assert tiles and all(each.schedule == Strips() for each in tiles if not isinstance(each.schedule, ClusterStrips))


def test_a_schedule_of_the_caller_leaves_them_out():
    chosen = choose_product(facts((256, 7168, 16384)), rates_of(), DATA_PARALLEL)
    assert chosen.split_k == 1
