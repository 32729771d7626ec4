"""Products of few rows: swapped tiles of those that there are, computed all at once, or in turns."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from math import inf
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.plan import traits_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.product_options import ANY, Sharing, options, parts_of_rows
from ptxdsl.kernels.choose.warpgroup_products import choose_product, ranked_products
from ptxdsl.kernels.choose.warpgroups import ProductFacts
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


def chosen(shape, *types, sharing=ANY, **how):
    return choose_product(facts(shape, *types, **how), model_of(), inf, sharing)


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
CHOSEN = {
    (160, 4096, 7168): in_cluster(160, 6, 2),
    (240, 4096, 7168): in_cluster(240, 5, 2),  # whose sums meet in the ring
    (136, 2112, 7168): in_cluster(144, 7, 3),
    (160, 7168, 16384): replace(in_cluster(160, 6, 2), tile=(160, 128, 64)),
    (272, 7168, 16384): swapped(144, 128, 5, Strips()),
    (224, 4096, 7168): swapped(112, 64, 10),
    (320, 4096, 7168): swapped(160, 64, 7),
    (136, 7168, 16384): swapped(144, 64, 8, FOURS),
    (192, 14336, 4096): swapped(192, 128, 5, FOURS),
    (272, 14336, 4096): swapped(144, 128, 6, Strips(), pingpong=True),
    (272, 24576, 1536): swapped(144, 128, 6, Strips(), pingpong=True),  # two rounds of 128x256 are full
    (1, 129280, 7168): swapped(8, 128, 13, Strips(), pingpong=True),
}


@pytest.mark.parametrize("shape", CHOSEN, ids=str)
def test_they_are_chosen(shape):
    assert chosen(shape) == chosen(shape, f16) == CHOSEN[shape]
    assert chosen(shape) in [each for _, each in ranked_products(facts(shape), model_of())]


def test_they_are_what_a_call_takes():
    a, b = zeros(160, 4096, np.float16), zeros(4096, 4096, np.float16).T
    traits = traits_of(problem_of(a, b, None, None, 0.0), Choice(), takes_warpgroups=True)
    assert (traits.tile, traits.tiling.swap_ab, traits.tiling.stages) == ((80, 64, 64), True, 12)
    assert traits.schedule == PAIRS


@pytest.mark.parametrize(
    ("m", "parts"),
    [
        (1, []), (128, []),  # tiles of 64 and of 128 rows
        (129, [1, 2]), (176, [1, 2]), (256, [1, 2]),
        (257, [2, 3]), (448, [2, 3]),
        (449, []), (1000, []),
    ],
)  # fmt: skip
def test_rows_of_which_they_are_tried(m, parts):
    assert [*parts_of_rows(m)] == parts


@pytest.mark.parametrize(
    "known",
    [
        facts((160, 4096, 7168), bf16, f32),
        facts((160, 4096, 7168), computes=True),
        facts((160, 1016, 7168)),
        facts((160, 4096, 1528)),
        facts((449, 4096, 7168)),
    ],
    ids=["f32", "an epilogue", "short N", "short K", "many rows"],
)
def test_others_are_chosen_from_what_they_were(known):
    model = model_of()
    tried = options(known, model.rates.warpgroups, model.multiprocessors)
    assert not any(option.swap_ab for option in tried)


def test_what_a_caller_says_of_blocks_holds():
    sharing = Sharing(2, "cluster")
    assert not chosen((160, 4096, 7168), sharing=sharing).swap_ab


def test_a_block_that_is_alone_has_a_long_ring():
    """Of two on each multiprocessor each had three stages, though there were 128 in all: 23.5 µs."""
    assert chosen((128, 2048, 7168)) == GemmConfig(
        (128, 80, 64), stages=6, atom="wgmma", schedule=IN_COLUMNS, split_k=4, reduction="cluster"
    )
    model = model_of()
    for shape in ((128, 2048, 7168), (96, 4096, 4096), (64, 14336, 4096)):
        for option in options(facts(shape), model.rates.warpgroups, model.multiprocessors):
            count = math.prod(map(math.ceil, (shape[0] / option.tile[0], shape[1] / option.tile[1])))
            assert option.resident == 1 or option.stages >= 5 or count * option.slices > model.multiprocessors


def test_choices_among_the_kept_rows(monkeypatch):
    """What is chosen takes at most 7 % more than the best that was timed, 1.5 % on average, and hardly more than what
    was chosen before; rest and held count the same. Tiles in turns were not among them."""
    monkeypatch.syspath_prepend(str(RESULTS.parent))
    from warpgroup_cases import name_of

    lost = []
    for row in json.loads((RESULTS / "swapped_rows.json").read_text())["rows"]:
        times = {name: math.prod(us) ** 0.5 for name, us in row["us"].items()}
        now = name_of(chosen(row["shape"]))
        if row["shape"][0] % 128 == 0 or now not in {*times, row["before"]}:
            continue
        taken = times["chosen before" if now == row["before"] else now]
        ours = {name: us for name, us in times.items() if "whole" not in name and name != "cublas"}
        assert taken <= 1.05 * times["chosen before"]
        lost.append(taken / min(ours.values()))
    assert len(lost) > 25
    assert max(lost) < 1.07 and math.prod(lost) ** (1 / len(lost)) < 1.015


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
        for _, config in ranked_products(facts((m, n, k), known), model_of()):
            traits = traits_of(problem, Choice(config), takes_warpgroups=True)
            assert traits.shared_bytes + traits.static_bytes <= shared_bytes("sm_90a")
