"""Clusters for batches whose rows take turns in one matrix, with a K that begins where lines of A do."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.paths.tma import interleaved
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import InterleavedStrips, even_first
from ptxdsl.kernels.tiles.schedule import ProblemShape
from ptxdsl.schedule.problems import GemmShape
from tests.kernels.test_lines import plan, zeros
from tests.kernels.test_warpgroups import hopper
from tests.machines import MACHINES, machine

__all__ = ["hopper"]  # a fixture for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)


def config(step, tile=(64, 64), **more):
    return GemmConfig((*tile, 64), stages=3, atom="wgmma", schedule=InterleavedStrips((2, 1), step=step), **more)


def planes(matrix, count):
    """Every so many rows of a matrix are a plane."""
    return matrix.reshape(matrix.shape[0] // count, count, matrix.shape[1]).swapaxes(0, 1)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("m", "n", "k", "beta"), [(520, 72, 72, 0.0), (1032, 64, 200, 0.5), (264, 136, 40, 0.0)])
@pytest.mark.parametrize("pingpong", [False, True], ids=["shared", "in turns"])
def test_rows_of_one_matrix_as_batches(name, m, n, k, beta, pingpong, rng, monkeypatch):
    """Tiles that two batches share a cluster for, several rounds, and a K that ends in any part of a tile."""
    monkeypatch.setattr("ptxdsl.kernels.call.launching.residency.EMULATED", 4)
    where = machine(name)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k), (m, n)))
    a_there, c_there, out = (where.array(x) for x in (a, c, np.full((m, n), np.nan, np.float16)))
    product = config(step=k % 64, pingpong=pingpong)
    gemm(planes(a_there, 8), where.array(b).T, planes(c_there, 8), beta=beta, out=planes(out, 8), config=product)
    expected = a.astype(np.float64) @ b.T.astype(np.float64) + beta * c
    assert np.allclose(where.values(out), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("step", [0, 8, 24, 56])
def test_where_k_begins_changes_nothing(step, rng):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 70, 136), (40, 136)))
    assert np.allclose(gemm(a, b.T, config=config(step)), a.astype(np.float32) @ b.T.astype(np.float32), atol=5e-2)


@every_machine
@pytest.mark.parametrize("batches", [(), (3,)], ids=["one product", "batches"])
def test_clusters_have_tiles_behind_the_last_rows(name, batches, rng):
    """Of which nobody writes what an earlier block has stored, nor behind the array."""
    where, (m, n, k) = machine(name), (40, 24, 72)
    a, b, whole = rng.integers(-2, 3, (*batches, m, k)), rng.integers(-2, 3, (n, k)), np.ones((5, m, n), np.float32)
    expected, kept = whole.copy(), where.array(whole)
    out = kept[1:4] if batches else kept[1]
    given = where.array(a.astype(np.float16)), where.array(b.astype(np.float16)).T
    gemm(*given, out, out=out, beta=1.0, config=config(0))
    expected[1:4] += a @ b.T if batches else [a @ b.T, np.zeros((m, n)), np.zeros((m, n))]
    assert (where.values(kept) == expected).all()


def test_blocks_share_one_b_alone():
    a = np.zeros((2, 64, 64), np.float16)
    with pytest.raises(pd.LaunchError) as refusal:
        gemm(a, a, config=config(8))
    assert refusal.value.message == (
        "schedule is InterleavedStrips(blocks=(2, 1), width=0, step=8), whose blocks share what is copied of one B, and "
        "each batch has its own"
    )
    assert refusal.value.help == "pass one matrix as b, for all batches, or leave schedule out"


def test_tiles_of_all_batches_fill_the_clusters():
    """8 × 5 tiles of 625 rows make 20 pairs."""
    shape = ProblemShape(GemmShape(625, 5000, 5000), 8)
    planned = InterleavedStrips((2, 1), step=8).plan(shape, (128, 224, 64), lambda: 132)
    assert planned.grid == (132, 1, 1)
    assert (planned.numbers["step"], planned.numbers["even_first"]) == (8, 1)
    others = InterleavedStrips(step=8).plan(shape._replace(batches=3), (128, 224, 64), lambda: 132)
    assert others.numbers["even_first"] == 0


@pytest.mark.parametrize("step", [8, 24, 40, 56])
def test_rows_of_two_batches_in_one_cluster_begin_whole_sectors_apart(step):
    """Of an odd number of tiles each, so that every second batch begins in the midst of a cluster."""
    assert sorted(map(even_first, range(8))) == [*range(8)]
    for number in range(0, 8, 2):
        apart = (even_first(number + 1) - even_first(number)) * step * 2  # bytes
        assert apart % 32 == 0


@pytest.mark.exhaustive
def test_large_products_are_taken_so_where_lines_of_a_begin_in_the_midst_of_sectors():
    launch = plan(5000, 5000, 5000)
    traits = launch.constants["traits"]
    assert traits.schedule == InterleavedStrips((2, 1)) and launch.grid == (132, 1, 1)
    a, b, out = list(launch.array_arguments.values())[:3]
    assert (a.shape, a.strides) == ((8, 625, 5000), (5000, 40000, 1)) == (out.shape, out.strides)
    assert (b.shape, b.kind.l2_promotion) == ((1, 5000, 5000), 128)
    assert plan(5001, 5000, 5000).constants["traits"].schedule == ClusterStrips()
    assert plan(4104, 4104, 4104).constants["traits"].schedule == ClusterStrips()  # 8 × 513 rows take 8 × 5 tiles
    assert plan(5000, 5000, 5008).constants["traits"].schedule.cluster is None


def test_who_chooses_clusters_gets_these():
    chosen = GemmConfig((128, 224, 64), stages=4, atom="wgmma", schedule=ClusterStrips())
    assert plan(5000, 5000, 5000, config=chosen).constants["traits"].schedule == ClusterStrips()


def product(m=64, k=72, **more):
    return problem_of(zeros(m, k, np.float16), zeros(k, 64, np.float16), None, None, 0.0, **more)


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [
        (product(), ClusterStrips()),
        (product(m=65), InterleavedStrips()),
        (product(k=80), InterleavedStrips()),
        (product(epilogue=add, operands=[zeros(64, 64, np.float16)]), InterleavedStrips()),
    ],
    ids=["another schedule", "rows left over", "rows in sectors", "an operand of the epilogue"],
)
def test_others_are_not_cut_into_batches(problem, schedule):
    traits = GemmConfig((64, 64, 64), stages=3, atom="wgmma", schedule=schedule).traits(Operands(), "sm_90a")
    assert interleaved(problem, traits) == (problem, traits)


@every_machine
@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_a_single_product_is_cut_into_batches(name, beta, rng):
    where = machine(name)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((264, 72), (40, 72), (264, 40)))
    out = gemm(where.array(a), where.array(b).T, where.array(c), beta=beta, config=config(0))
    expected = a.astype(np.float64) @ b.T.astype(np.float64) + beta * c
    assert np.allclose(where.values(out), expected, rtol=2e-3, atol=2e-2)
