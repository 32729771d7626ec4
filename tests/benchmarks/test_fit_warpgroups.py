"""The rates of the sm_90a path: fits find what made the rows, and the file of the GPU is what the kept rows tell."""

import importlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from ptxdsl.kernels.choose import rates as data
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.product_options import TURNS, Option
from ptxdsl.kernels.choose.rates import DEFAULT, OF_WARPGROUPS, known
from ptxdsl.kernels.config import GemmConfig

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROWS = BENCHMARKS / "results" / "warpgroups.json"
RATES = known()[DEFAULT]
SOURCE = json.loads((data.FOLDER / "h200.json").read_text())["source"]
MOST_LOST, MOST_LOST_BY_ONE = 2, 13  # percent, on average and by one choice


@pytest.fixture
def fit(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fit_warpgroups")


@pytest.fixture
def cases(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("warpgroup_cases")


def rows_of(kinds):
    return [row for row in json.loads(ROWS.read_text())["rows"] if row["kind"] in kinds]


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("swap 16x64/10 cluster 2", Option((16, 64), True, 10, 2, 2, "cluster")),
        ("128x224/4", Option((128, 224), False, 4)),
        ("64x64/8 scatter 3", Option((64, 64), False, 8, 1, 3, "scatter")),
        ("swap 80x64/12 clusters 2", Option((80, 64), True, 12, cluster=(2, 1))),
        ("swap 144x64/8 across 4", Option((144, 64), True, 8, cluster=(1, 4))),
        ("swap 160x64/8 cluster 2", Option((160, 64), True, 8, 1, 2, "cluster", in_ring=True)),
        ("swap turns 96x64/11", Option((96, 64), True, 11, way=TURNS)),
        ("turns 128x208/5", None),
        ("cublas", None),
    ],
)
def test_options_of_products_by_name(fit, name, option):
    assert fit.option_of(name) == option


def test_each_configuration_that_is_measured_has_a_name_that_says_it(cases):
    model, names = CostModel(RATES), set()
    for kind, problems in cases.PROBLEMS.items():
        for problem in problems[::4]:
            for name, config in cases.candidates(kind, problem, model, 8).items():
                said = cases.config_of(name, 1 if kind == "bytes" else 2)
                assert replace(said, schedule=config.schedule) == config and cases.name_of(said) == name
                assert type(said.schedule) is type(config.schedule) or config.schedule == GemmConfig.schedule
                names.add(name)
    assert len(names) > 60


@pytest.mark.parametrize("section", OF_WARPGROUPS)
def test_a_fit_finds_rates_that_choose_as_well_as_those_that_made_the_times(fit, section):
    """Of a GPU whose every third number is another one, from those of today."""
    present, model = getattr(RATES, section), CostModel(RATES)
    rows = rows_of(fit.KINDS[section])[::4]
    numbers = list(fit.numbers_of(present, section).items())
    other = fit.with_numbers(present, {name: 1.5 * number for name, number in numbers[::3]})
    made = [
        case._replace(timed=[timed._replace(us=timed.estimate(other)) for timed in case.timed])
        for case in fit.cases(rows, section, model)
    ]
    before = fit.loss(present, made)
    assert fit.loss(other, made) < 1e-6 < before
    assert fit.loss(fit.fitted(present, section, made, 20), made) < 0.2 * before


def test_what_says_nothing_becomes_zero(fit):
    present, model = RATES.windows, CostModel(RATES)
    known = fit.cases(rows_of(["conv"])[:1], "windows", model)
    made = [known[0]._replace(timed=known[0].timed[:2])]
    rates = fit.without_idle(replace(present, by_warps=5.0), "windows", made)
    assert rates.by_warps == 0 and rates.dram_bandwidth == present.dram_bandwidth
    assert 0 not in {number for name, number in fit.numbers_of(rates, "windows").items() if "." in name}


@pytest.mark.exhaustive
def test_kept_rows_and_the_file_of_rates_belong_together(fit):
    """What choices lose is what the file says; it is little, and each kind of problem is among the rows."""
    told, model, rows = SOURCE["choices on sm_90a"], CostModel(RATES), rows_of([*told_kinds(fit)])
    lost = {}
    for section in OF_WARPGROUPS:
        lost |= fit.quality(fit.cases(rows, section, model), getattr(RATES, section))
    assert {"columns": fit.COLUMNS, **lost} == told
    assert {*lost} == {*told_kinds(fit)}
    assert all(mean < MOST_LOST and worst < MOST_LOST_BY_ONE for mean, worst, *_ in lost.values())
    assert [*RATES.warpgroups.in_clusters] == json.loads(ROWS.read_text())["in_clusters"]


def told_kinds(fit):
    return [kind for kinds in fit.KINDS.values() for kind in kinds]


def test_each_number_is_fitted_or_said_to_be_measured_otherwise(fit):
    for section, kind in OF_WARPGROUPS.items():
        fitted = {name.partition(".")[0] for name in fit.numbers_of(getattr(RATES, section), section)}
        names = {field.name for field in fields(kind)}
        assert {*fit.CONSTANTS[section]} <= names == fitted | {*fit.CONSTANTS[section]}
        assert all(f"{section}.{name}" in SOURCE["constants"] for name in fit.CONSTANTS[section])


@pytest.mark.exhaustive
def test_no_product_takes_longer_than_by_cublas_but_for_few_percent(fit):
    rows, known = rows_of(fit.KINDS["warpgroups"]), CostModel(RATES)
    cublas = {tuple(row["problem"]): row["us"]["cublas"] for row in rows if "cublas" in row["us"]}
    known_cases = [case for case in fit.cases(rows, "warpgroups", known) if case.problem in cublas]
    assert len(known_cases) > 200
    for case in known_cases:
        assert fit.chosen(case, RATES.warpgroups).us < 1.11 * cublas[case.problem], case.problem
