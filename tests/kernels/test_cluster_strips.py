"""Clusters whose blocks take neighbouring tiles and share tensor copies: results, orders of tiles, refusals."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.errors import ScheduleError
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips, GroupedSerpentine
from ptxdsl.kernels.tiles.schedule import ProblemShape
from ptxdsl.schedule import Serpentine
from ptxdsl.schedule.problems import GemmShape
from ptxdsl.types import bf16, f32
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import MACHINES, machine

__all__ = ["hopper"]  # a fixture for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)
LAYOUTS = [("row", "column", "row"), ("row", "row", "row"), ("column", "column", "row"), ("column", "row", "column")]


def shared(m, n, blocks=(2, 1), stages=3, **more):
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", schedule=ClusterStrips(blocks), **more)


@every_machine
@pytest.mark.parametrize("orders", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("blocks", [(2, 1), (1, 2), (2, 2)], ids=str)
def test_products(name, orders, blocks, rng):
    run(name, rng, 136, 200, 264, orders, config=shared(64, 64, blocks))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("blocks", "beta"), [((2, 1), 0.0), ((1, 2), 0.5), ((4, 1), 0.0), ((2, 2), 0.0)], ids=str)
def test_warpgroups_in_turns(name, blocks, beta, rng, monkeypatch):
    """Two rounds, of which the last one has no tiles for some of the blocks."""
    monkeypatch.setattr("ptxdsl.kernels.call.launching.residency.EMULATED", 4)
    run(name, rng, 328, 200, 200, beta=beta, config=shared(64, 64, blocks, pingpong=True))


@every_machine
def test_tiles_outside_of_the_problem_are_zeros(name, rng):
    """Three tiles of M make two groups; the last block has none of its own, and copies for the other."""
    run(name, rng, 136, 64, 520, output="bf16", inputs="bf16", config=shared(64, 64))


@pytest.mark.exhaustive
@every_machine
def test_lines_of_a_leave_the_cache_first(name, rng):
    config = replace(shared(64, 64), schedule=ClusterStrips((1, 2), streamed=True))
    run(name, rng, 264, 200, 128, config=config)
    traits = config.traits(Operands(), "sm_90a")
    assert traits.general.schedule.streamed and not shared(64, 64).traits(Operands(), "sm_90a").schedule.streamed
    text = warpgroup_gemm_kernel.ptx("sm_90a", traits=traits.general)
    assert text.count("L2::cache_hint") == text.count("createpolicy.fractional.L2::evict_first") == 1  # B stays


@every_machine
def test_swapped_tiles_and_beta(name, rng):
    run(name, rng, 24, 300, 200, beta=0.5, config=shared(16, 64, (1, 2), swap_ab=True))


@pytest.mark.exhaustive
@every_machine
def test_several_rounds(name, rng, monkeypatch):
    monkeypatch.setattr("ptxdsl.kernels.call.launching.residency.EMULATED", 4)
    run(name, rng, 300, 260, 136, config=shared(64, 64))


@pytest.mark.exhaustive
@every_machine
def test_runs_do_not_differ_by_a_bit(name, rng):
    where = machine(name)
    a, b = (where.array(rng.standard_normal(shape).astype(np.float16)) for shape in ((200, 264), (136, 264)))
    first, *others = (where.values(gemm(a, b.T, config=shared(64, 64))) for _ in range(2 if name == "emulator" else 50))
    assert all(np.array_equal(first.view(np.uint16), other.view(np.uint16)) for other in others)


@pytest.mark.parametrize("blocks", [(2, 1), (1, 2), (4, 2)], ids=str)
def test_each_tile_is_taken_once(blocks):
    raster = GroupedSerpentine(Serpentine((3, 2), 2), blocks)
    tiles = [raster.tile(item) for item in range(raster.items)]
    assert sorted(tiles) == [(m, n) for m in range(3 * blocks[0]) for n in range(2 * blocks[1])]
    size = blocks[0] * blocks[1]
    for first in range(0, len(tiles), size):
        assert len({(m // blocks[0], n // blocks[1]) for m, n in tiles[first : first + size]}) == 1


def test_as_few_clusters_as_need_no_more_rounds():
    """5000³ in tiles of 128×224: 20 × 23 groups of two, in seven rounds of 66 clusters."""
    plan = ClusterStrips().plan(ProblemShape(GemmShape(5000, 5000, 5000)), (128, 224, 64), lambda: 132)
    assert plan.grid == (132, 1, 1)
    plan = ClusterStrips().plan(ProblemShape(GemmShape(4096, 4096, 64)), (128, 256, 64), lambda: 132)
    assert plan.grid == (128, 1, 1)


@pytest.mark.exhaustive
def test_the_large_tile_spills_nothing():
    config = GemmConfig((128, 224, 64), stages=4, atom="wgmma", schedule=ClusterStrips())
    traits = config.traits(replace(Operands(bf16, bf16), out_boxes=True), "sm_90a")
    resources = warpgroup_gemm_kernel.resources("sm_90a", traits=traits)
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0
    text = warpgroup_gemm_kernel.ptx("sm_90a", traits=traits)
    assert ".reqnctapercluster 2, 1, 1" in text
    assert text.count("multicast::cluster") == 1  # of B; each block has an A of its own


REFUSED = {
    "three": (
        lambda: ClusterStrips((3, 1)),
        ScheduleError,
        "blocks is (3, 1); ClusterStrips takes two powers of two, along M and N, together 2 to 8",
    ),
    "one": (
        lambda: ClusterStrips((1, 1)),
        ScheduleError,
        "blocks is (1, 1); ClusterStrips takes two powers of two, along M and N, together 2 to 8",
    ),
    "mma.sync": (
        lambda: GemmConfig(schedule=ClusterStrips()),
        pd.LaunchError,
        'GemmConfig: schedule is ClusterStrips(blocks=(2, 1), width=0); only blocks of "wgmma" share TMA loads',
    ),
    "windows": (
        lambda: conv2d(
            np.zeros((1, 8, 8, 64), np.float16), np.zeros((64, 3, 3, 64), np.float16), config=shared(64, 64)
        ),
        pd.LaunchError,
        "schedule is ClusterStrips(blocks=(2, 1), width=0), whose blocks share TMA loads, and this call has no "
        "such kernel",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, error, message = REFUSED[which]
    with pytest.raises(error) as caught:
        call()
    assert caught.value.message == message


@pytest.mark.exhaustive
def test_float8(rng):
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((130, 256), (80, 256)))
    config = GemmConfig((64, 64, 128), stages=3, atom="wgmma", schedule=ClusterStrips())
    out = np.zeros((130, 80), f32.dtype)
    gemm(a, b.T, out=out, config=config)
    assert np.allclose(out, a.astype(np.float64) @ b.astype(np.float64).T, rtol=2e-3, atol=2e-2)
