"""Products of few rows: swapped tiles of those that there are, computed all at once, or in turns."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import HEURISTIC
from ptxdsl.kernels.choose.products import choose_product, ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.types import bf16, f16, f32
from tests.kernels.placed import zeros
from tests.kernels.spills import check_no_spill
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_warpgroups import hopper, run

__all__ = ["hopper"]  # a fixture for all tests here
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PAIRS, IN_COLUMNS = ClusterStrips((2, 1)), IdentityThreadblockSwizzle(1)


def swapped(m, n, stages, schedule=PAIRS, **how):
    return GemmConfig((m, n, 64), stages=stages, atom="wgmma", swap_ab=True, schedule=schedule, **how)


def in_cluster(m, stages, slices):
    return swapped(m, 64, stages, IN_COLUMNS, split_k=slices, reduction="cluster")


def facts(shape, inputs=bf16, output=None, computes=False):
    return ProductFacts(*shape, 1, Operands(inputs, output or inputs), computes)


def chosen(shape, *types, decomposition=HEURISTIC, **how):
    return choose_product(facts(shape, *types, **how), rates_of(), decomposition)


WAYS = {
    "all rows": swapped(144, 64, 3, Strips()),
    "two, which share copies": swapped(80, 64, 4),
    "four beside each other, which share copies": swapped(144, 64, 4, ClusterStrips((1, 4))),
    "of two warpgroups": swapped(80, 128, 3),
    "K in a cluster": in_cluster(144, 8, 2),
    "K of two in a cluster": in_cluster(80, 12, 3),
    "in turns": swapped(80, 64, 4, Strips(), pingpong=True),
    "of 128 columns in turns": swapped(80, 128, 3, Strips(), pingpong=True),
}


@every_machine
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("m", "n", "k"), [(129, 72, 264), (144, 136, 200), (160, 71, 72)], ids=str)
def test_products(name, way, m, n, k, rng):
    run(name, rng, m, n, k, config=way)


@pytest.mark.exhaustive
@pytest.mark.parametrize("types", [(bf16, bf16), (f16, f16)], ids=str)
@pytest.mark.parametrize(
    "way",
    [
        in_cluster(256, 5, 8), swapped(256, 128, 4), swapped(256, 128, 4, Strips()),
        swapped(208, 128, 4, Strips(), pingpong=True), swapped(256, 64, 5, Strips(), pingpong=True),
    ],
    ids=["k", "pairs", "all", "turns", "turns of 64 columns"],
)  # fmt: skip
def test_the_most_rows_spill_nothing(way, types):
    check_no_spill(warpgroup_gemm_kernel, way.traits(Operands(*types), "sm_90a"))


FOURS = ClusterStrips((1, 4))


def test_they_are_what_a_call_takes():
    a, b = zeros(160, 4096, np.float16), zeros(4096, 4096, np.float16).T
    traits = GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions()).traits()
    assert (traits.tile, traits.tiling.swap_ab, traits.tiling.stages) == ((80, 64, 64), True, 12)
    assert traits.schedule == PAIRS


MATRICES = [(7168, 16384), (4096, 4096), (2112, 7168), (24576, 1536), (5120, 5120), (7168, 2048), (14336, 4096)]


@pytest.mark.parametrize("type", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("m", [1, 17, 80, 128, 129, 160, 240, 257, 320, 400, 448, 449, 640])
def test_all_that_is_chosen_from_can_be_launched(m, type):
    """Whatever lies behind the ring: of 320 rows with 24576×1536 a choice once took 6 KB too much."""
    known = {np.float16: f16}.get(type, bf16)
    for n, k in MATRICES:
        arrays = (np.empty(shape, type) for shape in ((m, k), (n, k), (m, n)))  # nobody touches them
        a, b, out = arrays
        problem = problem_of(a, b.T, None, out, 0.0)
        for _, config in ranked_products(facts((m, n, k), known), rates_of()):
            traits = GemmPlanner(problem, GemmOptions(config)).traits()
            assert traits.shared_bytes + traits.static_bytes <= shared_bytes("sm_90a")


@pytest.mark.parametrize(
    ("m", "rows"),
    [(1, {8}), (100, {112}), (128, {128}), (129, {144, 80}), (256, {256, 128}), (448, {224, 160}), (449, set())],
)
def test_swapped_tiles_have_as_many_rows_as_there_are(m, rows):
    known = ranked_products(facts((m, 4096, 7168)), rates_of())
    assert {config.tile[0] for _, config in known if config.swap_ab} == rows


@pytest.mark.parametrize(
    "known",
    [facts((160, 4096, 7168), bf16, f32), facts((160, 4096, 7168), computes=True)],
    ids=["f32", "an epilogue"],
)
def test_more_rows_are_swapped_of_plain_products_alone(known):
    assert not any(config.swap_ab for _, config in ranked_products(known, rates_of()))
