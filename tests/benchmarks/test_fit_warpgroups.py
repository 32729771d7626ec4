"""The fit of the rates of the sm_90a path: from times that other rates made, it comes nearer to these."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ptxdsl.kernels.choose.rates import DEFAULT, known
from ptxdsl.kernels.choose.warpgroup_products import Option, estimate, options
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RATES = known()[DEFAULT].warpgroups


@pytest.fixture
def fit_warpgroups(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fit_warpgroups")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("swap 16x64/10 cluster 2", Option((16, 64), True, 10, 2, 2, "cluster")),
        ("128x224/4", Option((128, 224), False, 4)),
        ("64x64/8 scatter 3", Option((64, 64), False, 8, 1, 3, "scatter")),
        ("cublas", None),
    ],
)
def test_names_of_variants(fit_warpgroups, name, option):
    assert fit_warpgroups.option_of(name) == option


def test_rates_come_nearer(fit_warpgroups, tmp_path):
    faster = replace(RATES, dram_bandwidth=1.3 * RATES.dram_bandwidth, launch=0.5 * RATES.launch)
    rows = []
    for shape in ((16, 4096, 4096), (64, 2112, 7168), (1024, 1024, 1024)):
        facts = ProductFacts(*shape, 1, Operands(bf16, bf16))
        some = [option for option in options(facts, 132) if option.slices < 4][::3]
        names = [f"{'swap ' * o.swap_ab}{o.tile[0]}x{o.tile[1]}/{o.stages}" + f" {o.way} {o.slices}" * bool(o.way)
                 for o in some]  # fmt: skip
        us = dict(zip(names, (estimate(option, facts, faster, 132) for option in some), strict=True))
        rows.append({"shape": shape, "us": us})
    path = tmp_path / "variants.json"
    path.write_text(json.dumps({"rows": rows}))
    measured = fit_warpgroups.cases([path])
    before = fit_warpgroups.loss(RATES, measured, 132)
    assert fit_warpgroups.loss(faster, measured, 132) < 1e-6
    assert fit_warpgroups.loss(fit_warpgroups.fitted(RATES, measured, 132, 300), measured, 132) < 0.5 * before


def test_the_rates_choose_well_among_what_was_measured(fit_warpgroups):
    """No product takes longer than by cuBLAS, nor 6 % longer than by the best configuration, nor 2 % on average."""
    path = BENCHMARKS / "results" / "variants.json"
    cublas = [row["us"]["cublas"] for row in json.loads(path.read_text())["rows"]]
    losses = []
    for (facts, timed), usual in zip(fit_warpgroups.cases([path]), cublas, strict=True):
        chosen = min(timed, key=lambda each: estimate(each[0], facts, RATES, 132))[1]
        assert chosen < usual, facts
        losses.append(chosen / min(us for _, us in timed) - 1)
    assert max(losses) < 0.06
    assert sum(losses) / len(losses) < 0.02
