"""The fit of rates, and the table of measured winners, on rows that are made up."""

import importlib
import pathlib
import sys
from dataclasses import replace

import pytest

from ptxdsl.kernels.candidates.facts import ProductFacts, class_name
from ptxdsl.kernels.candidates.sm90 import candidates_of_product
from ptxdsl.kernels.choose.estimate import estimate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
RATES = replace(rates_of(), winners={})


@pytest.fixture
def fit(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return importlib.import_module("fit")


def cases(fit, rates, sizes):
    """Cases whose times are those that the estimate has with other rates."""
    known = []
    for m, n, k in sizes:
        facts = ProductFacts(m, n, k, 1, Operands(bf16, bf16))
        every = candidates_of_product(facts, rates.multiprocessors)[::9]
        known.append(fit.Case(facts, "", every, [estimate(each, facts, rates) for each in every], {}))
    return known


def test_a_fit_finds_rates_that_lose_less(fit):
    """The rows are of a GPU with half of the bandwidth of shared memory."""
    slow = replace(RATES, sm90=replace(RATES.sm90, load=RATES.sm90.load / 2))
    rows = cases(fit, slow, [(512, 4096, 4096), (64, 7168, 2048), (2048, 2048, 2048)])
    fitted = fit.fit(RATES, "sm90", rows, steps=60, seed=1)
    assert fit.loss(rows, fitted) < fit.loss(rows, RATES) / 2
    assert fitted.sm80 == RATES.sm80
    assert fit.loss(rows, slow) == 0


def test_rates_that_explain_the_rows_stay(fit):
    rows = cases(fit, RATES, [(512, 4096, 4096)])
    assert fit.fit(RATES, "sm90", rows, steps=5, seed=1) == RATES


def test_the_table_has_the_best_where_the_estimate_misses_it(fit):
    (case,) = cases(fit, RATES, [(512, 4096, 4096)])
    assert fit.winners([case], RATES) == {}
    fast = case.us.index(max(case.us))
    case.us[fast] = 0.5 * min(case.us)
    assert fit.winners([case], RATES) == {class_name(case.facts): case.candidates[fast].config.label}
