"""A block of one tile stages it in the ring, when all warpgroups have read that to the end."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.product_options import ANY, WHOLE
from ptxdsl.kernels.choose.warpgroup_products import choose_product, one_tile_each, ranked_products
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
)
from ptxdsl.types import bf16, e4m3, f32, s8, s32
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


@pytest.mark.parametrize(
    ("shape", "tile", "stages"),
    [
        ((256, 7168, 16384), (128, 112, 64), 7),
        ((384, 8192, 8192), (128, 192, 64), 5),
        ((512, 7168, 16384), (128, 224, 64), 5),
        ((384, 4096, 7168), (128, 96, 64), 8),
        ((256, 14336, 4096), (128, 224, 64), 5),
    ],
)
def test_products_of_one_tile_a_block_take_a_stage_more(shape, tile, stages):
    chosen = choose_product(facts(shape), model_of(), inf)
    assert chosen == config(*tile[:2], stages=stages, stagger=3)
    ranked = (each for _, each in ranked_products(facts(shape), model_of()))
    assert chosen in ranked


@pytest.mark.parametrize(
    ("shape", "tile", "stages"),
    [
        ((384, 7168, 16384), (128, 176), 5),  # 123 tiles; as many stages by persistent blocks
        ((1024, 2112, 7168), (128, 144), 6),
        ((1536, 1536, 1536), (128, 144), 6),
        ((640, 6144, 4096), (128, 240), 4),
    ],
)
def test_columns_that_leave_few_multiprocessors_idle(shape, tile, stages):
    assert choose_product(facts(shape), model_of(), inf) == config(*tile, stages=stages, stagger=3)


def test_they_are_taken_in_turns_where_there_are_more_tiles():
    """250 tiles, and a K that is long."""
    chosen = choose_product(facts((640, 7168, 16384)), model_of(), inf)
    assert chosen == config(128, 144, 6, Strips(), pingpong=True)


@pytest.mark.parametrize("known", [facts((384, 7168, 16384), f32), facts((1536, 3072, 3072))], ids=["f32", "short K"])
def test_they_are_not_where_nobody_measured_that_they_gain(known):
    columns = {each.tile[1] for _, each in ranked_products(known, model_of())}
    assert not columns & {144, 176, 240}


@pytest.mark.parametrize(
    ("inputs", "output", "stagger"), [(bf16, f32, 0), (f32, f32, 0), (s8, s32, 0), (e4m3, bf16, 3)]
)
def test_other_types_too(inputs, output, stagger):
    """Staggered where boxes store the output."""
    shape = 256, 8192, 8192 * bf16.bytes // inputs.bytes
    chosen = choose_product(ProductFacts(*shape, 1, Operands(inputs, output)), model_of(), inf)
    assert (chosen.stages, chosen.schedule, chosen.stagger) == (7, IN_COLUMNS, stagger)


@pytest.mark.parametrize(
    ("shape", "columns", "schedule"),
    [
        ((256, 256, 256), 32, IN_COLUMNS),
        ((300, 400, 500), 32, IN_COLUMNS),
        ((512, 512, 512), 32, IN_COLUMNS),  # 128 blocks, all of which run at once
        ((64, 7168, 2048), 64, IN_COLUMNS),
        ((136, 5120, 5120), 128, IN_COLUMNS),
        ((1024, 128, 256), 32, IN_ROWS),
    ],
)
def test_tiles_of_one_warpgroup_that_are_computed_all_at_once(shape, columns, schedule):
    """By rings as long as those of persistent blocks."""
    chosen = choose_product(facts(shape), model_of(), inf)
    assert (chosen.tile[:2], chosen.schedule, chosen.stagger) == ((64, columns), schedule, 0)
    assert chosen in (each for _, each in ranked_products(facts(shape), model_of()))


@pytest.mark.parametrize("columns, resident", [(64, 2), (128, 1)])
def test_they_are_where_as_many_are_resident(columns, resident):
    """Of 132 multiprocessors."""
    persistent = config(64, columns, 6 if resident == 2 else 8, Strips())
    for tiles, schedule in ((132 * resident, IN_COLUMNS), (132 * resident + 1, Strips())):
        known = facts((64, columns * tiles, 2048))
        assert one_tile_each(persistent, known, 132) == replace(persistent, schedule=schedule)


@pytest.mark.parametrize(
    ("known", "model", "sharing"),
    [
        (facts((320, 14336, 4096)), model_of(), ANY),  # more tiles than multiprocessors
        (facts((512, 512, 512), f32), model_of(), ANY),
        (facts((512, 512, 512), c="separate"), model_of(), ANY),
        (facts((1024, 4096, 4096)), model_of(), ANY),  # four stages of 128×256, with other memory or without
        (facts((256, 7168, 16384), c="separate"), model_of(), ANY),
        (facts((1536, 1536, 1536), f32), model_of(), ANY),  # it is measured of longer K
        (facts((256, 7168, 16384)), model_of(), WHOLE),  # a caller's schedule
    ],
)
def test_others_stay_persistent(known, model, sharing):
    assert choose_product(known, model, inf, sharing).schedule == Strips()
