"""The configurations that gemm() chooses from: each is right, spills nothing, and is taken where it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ptxdsl import f16, f32, f64, s8
from ptxdsl.config import using
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.kernels.heuristic import IN_COLUMNS, LARGE, OF_HALVES, OF_ODD_HALVES, SQUARE, choose, microseconds, shared
from ptxdsl.kernels.scheduled import ANY_STREAM_K
from tests.kernels.test_gemm import check
from tests.machines import MACHINES, machine

NARROWEST = {**dict.fromkeys(OF_HALVES, 4), **dict.fromkeys(OF_ODD_HALVES, 2)}
CANDIDATES = pytest.mark.parametrize("config", NARROWEST, ids=lambda c: f"{c.tile}-{c.warp}-{c.stages}")
SHAPES = [(1, 1, 1), (16, 4096, 4096), (128, 2112, 7168), (1000, 3000, 500), (3072, 3072, 3072), (4096, 16, 4096)]


@pytest.mark.parametrize("name", MACHINES)
@CANDIDATES
def test_every_candidate_computes_the_product(name, config, rng):
    with using(arch="sm_90"):  # which has shared memory for all of them
        check(machine(name), rng, 70, 66, 130, config=config)
        check(machine(name), rng, 37, 83, 301, orders=("column", "row", "column"), config=replace(config, split_k=2))


@CANDIDATES
@pytest.mark.parametrize("major", ["k", "mn"])
def test_no_candidate_spills(config, major):
    """As whole tiles and, as it may be chosen, split or by stream-K; with the widest and the narrowest copies."""
    for width in (16, NARROWEST[config]):
        shapes = (300, 500, 9999), (1500, 3200, 9999)
        found = [c for shape in shapes for c in shared(config, shape, width, major == "k")]
        assert any(c.is_stream_k for c in found) == (
            width >= 8 and (config is LARGE or (config is SQUARE and major == "k"))
        )
        for option in {
            replace(c, schedule=ANY_STREAM_K) if c.is_stream_k else replace(c, split_k=min(2, c.split_k)) for c in found
        }:
            made = replace(option, a_major=major, b_major=major, a_bytes=width, b_bytes=width, out_bytes=width)
            resources = gemm_kernel.resources(arch="sm_90", config=made)
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
    assert choose(1536, 1536, 1536).is_stream_k and choose(3072, 3072, 3072).is_stream_k
    assert not choose(3072, 3072, 3072, scheduled=True).is_stream_k
    assert choose(3072, 3072, 3072, multiprocessors=108).schedule.multiprocessors == 108


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90"])
@pytest.mark.parametrize("inputs, width", [(f16, 16), (f16, 4), (f16, 2), (f32, 16), (f64, 8), (s8, 16), (s8, 1)])
def test_the_choice_fits_the_gpu_and_is_the_best_by_the_model(shape, arch, inputs, width):
    found = choose(*shape, inputs, arch, width)
    found.check(arch)
    assert found.split_k <= max(1, -(-shape[2] // found.tile[2]))
    whole = choose(*shape, inputs, arch, width, scheduled=True)
    assert microseconds(found, *shape, width) <= microseconds(whole, *shape, width)


def test_low_grids_go_down_the_columns():
    assert choose(128, 4096, 4096).schedule == choose(128, 7168, 16384).schedule == IN_COLUMNS
    assert choose(128, 4096, 4096, scheduled=True).schedule == choose(4096, 4096, 4096).schedule != IN_COLUMNS
    assert choose(16, 1 << 23, 64).schedule != IN_COLUMNS  # y of a grid ends before that


def test_rings_are_longer_where_reading_bounds_and_shorter_where_k_is_short():
    """Bytes that rings wait for hide the latency of DRAM; copies that a thread begins before it computes take time."""
    assert choose(128, 24576, 1536) == replace(LARGE, stages=4, schedule=IN_COLUMNS)
    assert choose(64, 4096, 4096).stages == 8
    assert choose(512, 512, 512).stages == 4
