"""Products of many rows and few columns, and batches, on the sm_90a path: what is chosen, and clusters for batches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from tests.kernels.placed import placed
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import MACHINES, machine

__all__ = ["hopper"]  # a fixture for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)


def chosen(*shape):
    """The traits of a product (M, N, K), or of so many of them, in f16."""
    *batches, m, n, k = shape
    a, b, out = (placed((*batches, *extents), np.float16) for extents in ((m, k), (n, k), (m, n)))
    problem = problem_of(a, b.swapaxes(-1, -2), None, out, 0.0)
    return GemmPlanner(problem, GemmOptions()).traits()


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ((65536, 8, 4096), {16}),
        ((131072, 32, 512), {32}),
        ((401408, 64, 256), {64}),
        ((401408, 256, 64), {64, 96, 128, 192, 256}),  # no box of 16 columns: K is short
        ((65536, 256, 1536), {256}),
    ],
    ids=str,
)
def test_columns_of_the_tile_of_a_tall_product(shape, columns):
    traits = chosen(*shape)
    assert isinstance(traits, WarpgroupTraits) and traits.tile[1] in columns


@pytest.mark.parametrize(
    "shape",
    [(1024, 128, 128, 128), (64, 16, 4096, 1024), (256, 1, 4096, 1024), (96, 1024, 64, 1024), (100, 200, 304, 400)],
    ids=str,
)
def test_batches_go_by_wgmma(shape):
    """Each reads matrices of its own, which counts for mma.sync too."""
    assert isinstance(chosen(*shape), WarpgroupTraits)


def test_what_batches_take():
    """Warpgroups in turns of some; shared tiles where K is very short; clusters, which bring lines in the midst of
    sectors sooner."""
    assert chosen(64, 512, 512, 512).tiling.pingpong
    assert not chosen(8, 2048, 2048, 2048).tiling.pingpong
    assert chosen(48, 2048, 2048, 128).tile == (128, 128, 64)
    assert chosen(32, 1000, 1000, 1000).schedule.multicast != (1, 1)
    assert chosen(20, 777, 512, 1024).tile == (64, 256, 64)  # 280 tiles of 128x256 would take three rounds


@pytest.mark.parametrize(("shape", "rows"), [((100, 200, 304, 400), 208), ((32, 136, 2048, 512), 144)], ids=str)
def test_batches_of_few_rows_are_swapped(shape, rows):
    """Tiles of 128 rows would be a third empty."""
    tiling = chosen(*shape).tiling
    assert (tiling.tile[0], tiling.swap_ab, tiling.pingpong) == (rows, True, True)


def test_few_columns_in_pairs():
    """Of 128x96 two blocks beside each other have all columns, and share the lines of A."""
    traits = chosen(8192, 192, 8192)
    assert traits.tile == (128, 96, 64) and traits.schedule == ClusterStrips((1, 2))


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.float8_e4m3fn])
def test_batches_whose_blocks_should_share_k(type):
    """What a caller said is refused, not what was chosen beside it."""
    a, b = np.zeros((2, 256, 512), type), np.zeros((2, 512, 256), type)
    with pytest.raises(pd.LaunchError) as refusal:
        gemm(a, b, split_k=2)
    assert refusal.value.message == (
        "split_k is 2, and the products are batches: each of them is computed by blocks of its own"
    )
    assert refusal.value.help == "leave split_k out, or call gemm for each of the batches"


@every_machine
@pytest.mark.parametrize("n", [2, 8, 16, 24])
def test_tall_products(name, n, rng):
    run(name, rng, 330, n, 136, config=GemmConfig((128, 16, 64), stages=3, atom="wgmma"))
    run(name, rng, 330, n, 136, orders=("column", "row", "row"), beta=0.5)


@every_machine
@pytest.mark.parametrize("m", [129, 144, 300])
def test_swapped_batches_in_turns(name, m, rng):
    where = machine(name)
    config = GemmConfig((144, 64, 64), stages=3, atom="wgmma", swap_ab=True, schedule=Strips(), pingpong=True)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, m, 72), (3, 72, 136)))
    out = where.array(np.full((3, m, 136), np.nan, np.float16))
    gemm(where.array(a), where.array(b), out=out, config=config)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(where.values(out), exact, rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("blocks", [(2, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("pingpong", [False, True])
def test_clusters_of_batches(name, blocks, pingpong, rng, monkeypatch):
    """Three batches of an odd number of tiles: those of a cluster are of one batch."""
    monkeypatch.setattr("ptxdsl.kernels.call.launching.residency.EMULATED", 4)
    where = machine(name)
    config = GemmConfig((64, 64, 64), stages=3, atom="wgmma", schedule=ClusterStrips(blocks), pingpong=pingpong)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 136, 200), (3, 200, 136)))
    out = where.array(np.full((3, 136, 136), np.nan, np.float16))
    gemm(where.array(a), where.array(b), out=out, config=config)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(where.values(out), exact, rtol=2e-3, atol=2e-2)
