"""The configurations that gemm() chooses from: each is right, spills nothing, and is taken where it should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptxdsl import f16, f32, f64, s8
from ptxdsl.config import using
from ptxdsl.kernels.choose.candidates import LARGE, OF_HALVES, OF_ODD_HALVES, SINGLE_WAVE_HALVES, SQUARE, of_products
from ptxdsl.kernels.choose.gemm import FULL, IN_COLUMNS, LITTLE, _persistent, choose, ranked, shared, shared_config
from ptxdsl.kernels.choose.grouped import least_of_tiles, ranked_tiles
from ptxdsl.kernels.choose.model import candidate, model_of, usual_traits
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.kernels.product.operands import Operands, outputs
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.stream_k import ANY
from ptxdsl.schedule import StreamKThreadblockSwizzle
from tests.kernels.test_gemm import check
from tests.machines import MACHINES, machine

NARROWEST = {
    **dict.fromkeys(OF_HALVES, 4),
    **dict.fromkeys(OF_ODD_HALVES, 2),
    **dict.fromkeys(SINGLE_WAVE_HALVES, 16),
}
CANDIDATES = pytest.mark.parametrize("config", NARROWEST, ids=lambda c: f"{c.tile}-{c.warp}-{c.stages}")
SHAPES = [
    (1, 1, 1),
    (16, 4096, 4096),
    (128, 2112, 7168),
    (1000, 3000, 500),
    (3072, 3072, 3072),
    (4096, 16, 4096),
    (4096,) * 3,
]


def is_stream_k(config):
    return isinstance(config.schedule, StreamKThreadblockSwizzle)


@pytest.mark.parametrize("name", MACHINES)
@CANDIDATES
def test_every_candidate_computes_the_product(name, config, rng):
    with using(arch="sm_90"):  # which has shared memory for all of them
        check(machine(name), rng, 70, 66, 130, config=config)
        check(machine(name), rng, 37, 83, 301, orders=("column", "row", "column"), config=replace(config, split_k=2))


@CANDIDATES
@pytest.mark.parametrize("major", ["k", "mn"])
def test_no_candidate_spills(config, major):
    """As whole tiles and, as it may be chosen, split or by stream-K; with the widest and the narrowest copies. Of widths,
    orders and whether K is split, where it may be, each two are together."""
    for width in (16, NARROWEST[config]):
        shapes = (300, 500, 9999), (1500, 3200, 9999)
        options = [o for shape in shapes for o in shared(candidate(config, f16), shape, width, major == "k")]
        found = [shared_config(option, 132) for option in options]
        assert any(is_stream_k(c) for c in found) == (
            width >= 8 and (config == LARGE or (config == SQUARE and major == "k"))
        )
        splits = (major == "k") == (width == 16) and any(c.split_k > 1 for c in found)
        for option in {
            replace(c, schedule=ANY) if is_stream_k(c) else replace(c, split_k=2 if splits else 1)
            for c in found
            if is_stream_k(c) or (c.split_k > 1) == splits
        }:
            operands = Operands(a_major=major, b_major=major, a_bytes=width, b_bytes=width, out_bytes=width)
            resources = gemm_kernel.resources(arch="sm_90", traits=option.traits(operands))
            assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


def test_few_rows_take_flat_tiles_and_many_take_large_ones():
    assert choose(16, 4096, 4096).tile[0] == 16
    assert choose(4096, 16, 4096).tile[1] == 16
    assert choose(4096, 4096, 4096) is choose(4096, 4096, 4096)
    assert choose(4096, 4096, 4096).tile == LARGE.tile


def test_k_is_shared_where_there_are_few_tiles():
    assert choose(64, 4096, 14336).split_k > 1
    assert choose(64, 4096, 14336, scheduled=True).split_k == 1
    assert (choose(128, 7168, 16384).split_k, choose(128, 7168, 16384).reduction) == (4, "scatter")
    assert choose(64, 4096, 14336).reduction == "parallel"
    assert is_stream_k(choose(1536, 1536, 1536)) and is_stream_k(choose(3072, 3072, 3072))
    assert not is_stream_k(choose(3072, 3072, 3072, scheduled=True))
    assert choose(3072, 3072, 3072, multiprocessors=108).schedule.multiprocessors == 108


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90"])
@pytest.mark.parametrize("inputs, width", [(f16, 16), (f16, 4), (f16, 2), (f32, 16), (f64, 8), (s8, 16), (s8, 1)])
def test_the_choice_fits_the_gpu_and_is_the_best_by_the_model(shape, arch, inputs, width):
    found = choose(*shape, inputs, arch, width)
    usual_traits(found, inputs).check(arch)
    assert found.split_k <= max(1, -(-shape[2] // found.tile[2]))
    every = ranked(*shape, inputs, arch, width, True, False, model_of())
    assert model_of().product(candidate(found, inputs), shape, width) <= LITTLE * min(time for time, _ in every)
    _persistent(choose(*shape, inputs, arch, width, scheduled=True), inputs).check(arch)


@pytest.mark.parametrize("inputs, width", [(f16, 16), (f16, 2), (s8, 4), (f32, 16), (f64, 8)])
def test_nothing_is_faster_than_the_least_that_a_product_takes(inputs, width):
    model = model_of()
    for shape in (*SHAPES, (64, 64, 64), (1024, 1024, 1024), (5000, 17, 40)):
        for scheduled in (False, True):
            best = min(time for time, _ in ranked(*shape, inputs, "sm_90a", width, True, scheduled, model))
            assert 0.1 * best < model.least(of_products(inputs, width, True), inputs, shape) <= best


@pytest.mark.parametrize("inputs, width", [(f16, 16), (f16, 2), (s8, 4), (f32, 16), (f64, 8)])
def test_no_tiles_keep_tensor_cores_less_busy_than_the_least_of_a_group(inputs, width):
    model, operands = model_of(), Operands(inputs, outputs(inputs)[0], a_bytes=width, b_bytes=width)
    for m, n, k in (*SHAPES, (5000, 17, 40)):
        for sizes in ((np.array([m]), n, np.array([k])), (np.array([m, 3, 700]), n, np.array([k, 64, 1]))):
            for average in (False, True):
                best = min(time for time, _ in ranked_tiles(sizes, "sm_90a", operands, AHEAD, model, average=average))
                assert 0.1 * best < least_of_tiles(sizes, operands, model, average=average) <= best


def test_low_grids_go_down_the_columns():
    assert choose(128, 4096, 4096).schedule == choose(128, 7168, 16384).schedule == IN_COLUMNS
    assert choose(128, 4096, 4096, scheduled=True).schedule == choose(4096, 4096, 4096).schedule != IN_COLUMNS
    assert choose(16, 1 << 23, 64).schedule != IN_COLUMNS  # y of a grid ends before that


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((768, 768, 768), (48, 96, 128)),
        ((128, 24576, 1536), (128, 192, 64)),
        ((24576, 128, 1536), (192, 128, 64)),
        ((1536, 1024, 4096), (96, 128, 64)),
        ((768, 1536, 768), (96, 96, 64)),
    ],
    ids=str,
)
def test_tiles_of_no_power_of_two_are_taken_where_each_multiprocessor_gets_one(shape, tile):
    found = choose(*shape)
    usual_traits(found, f16).check("sm_90")
    assert found.tile == tile and found.split_k == 1
    assert FULL * 132 <= np.prod(found.tiling.tiles(*shape[:2])) <= 132
    others = [
        choose(*shape, arch="sm_90a"),  # which has wgmma for these
        choose(*shape, width=8),
        choose(*shape, scheduled=True),
        choose(*shape, inputs=f32),
        choose(*shape, multiprocessors=78),
    ]
    assert not {option.tile for option in others} & {config.tile for config in SINGLE_WAVE_HALVES}


def test_rings_are_longer_where_reading_bounds_and_shorter_where_k_is_short():
    """Bytes that rings wait for hide the latency of DRAM; copies that a thread begins before it computes take time."""
    assert choose(128, 32768, 1536) == replace(LARGE, stages=4, schedule=IN_COLUMNS)
    assert choose(64, 4096, 4096).stages == 8
    assert choose(512, 512, 512).stages == 4
