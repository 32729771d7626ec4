"""The fit of rates to what kernels took: from rows that the model itself made, it finds the rates that made them."""

import importlib
import json
import random
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from ptxdsl import f16, f32
from ptxdsl.kernels.choose.candidates import GROUPED, label, of_convolutions
from ptxdsl.kernels.choose.gemm import shared
from ptxdsl.kernels.choose.model import CostModel, candidate, model_of
from ptxdsl.kernels.choose.rates import DEFAULT, FOLDER, known, read
from ptxdsl.types import TYPES

from ..benchmarks.fake_gpu import FakeGpu
from ..fake_driver import FakeCuda, installed

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHAPES = [(1, 4096, 4096), (64, 2048, 7168), (256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096), (2048, 512, 8192)]


@pytest.fixture
def fitting(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fitting")


def rows_of(fitting, rates):
    """What kernels take on a GPU with such rates, exactly."""
    rows = [
        fitting.Row("product", "f16", (shape,), o.tile, o.config.warp, o.stages, 0.0, 16, o.split_k, o.is_streamed)
        for shape in SHAPES
        for config in (
            fitting.GemmConfig(tile=(128, 256, 64), stages=3),
            fitting.GemmConfig(tile=(64, 64, 32), warp=(32, 32)),
        )
        for o in shared(candidate(config, f16), shape)
    ]
    rows += [
        fitting.Row("group", "f16", ((m, 1024, 2048),) * count, c.tile, c.warp, c.stages, 0.0)
        for m, count in ((16, 8), (300, 16), (2000, 4))
        for c in GROUPED
    ]
    rows += [
        fitting.Row("convolution", "f32", (shape,), c.tile, c.warp, c.stages, 0.0, slices=slices)
        for shape in ((1568, 512, 4608), (25088, 64, 576), (392, 1024, 256))
        for c in of_convolutions(f32, True)
        for slices in (1, 2)
    ]
    model = CostModel(rates)
    return [replace(row, us=fitting.predicted(model, row)) for row in rows]


def other(rates):
    """A GPU that differs in all that these rows tell."""
    changed = dict(
        dram_bandwidth=2.5e6, l2_bandwidth=8e6, shared_bandwidth=400e3, wave=3.0, launch=2.0, most_rate=400.0
    )
    tables = dict(
        multiply_adds={**rates.multiply_adds, "f16": 3e6}, grouped={n: v / 2 for n, v in rates.grouped.items()}
    )
    return replace(rates, **changed, **tables, convolution={n: 1.5 * v for n, v in rates.convolution.items()})


def test_values_by_name_make_the_same_rates(fitting):
    rates = known()[DEFAULT]
    assert fitting.with_values(rates, fitting.values_of(rates)) == rates
    assert "gpu" not in fitting.values_of(rates)


@pytest.mark.exhaustive
def test_the_fit_finds_what_explains_the_rows(fitting):
    start = known()[DEFAULT]
    rows = rows_of(fitting, other(start))
    before, after = fitting.quality(start, rows), fitting.quality(fitting.fit(start, rows), rows)
    assert [line["kind"] for line in after] == ["product", "group", "convolution"]
    for first, last in zip(before, after, strict=True):
        assert last["off, 90 %"] < 0.02 < first["off, 90 %"]
        assert last["choice/best, worst"] < 1.02


def test_rows_that_are_far_off_do_not_bend_the_others(fitting):
    start = known()[DEFAULT]
    rows = rows_of(fitting, other(start))
    rows = [replace(row, us=50 * row.us) if n == 3 else row for n, row in enumerate(rows) if row.kind == "product"]
    assert fitting.quality(fitting.fit(start, rows), rows)[0]["off, median"] < 0.02


def test_rates_that_no_row_tells_stay(fitting):
    start = known()[DEFAULT]
    products = [row for row in rows_of(fitting, other(start)) if row.kind == "product"]
    names = fitting.names_of(products, start)
    assert "multiply_adds.f16" in names and "dram_bandwidth" in names
    assert not {"multiply_adds.f64", "most_rate", "write", "short_row"} & {*names}
    fitted = fitting.fit(start, products)
    assert (fitted.grouped, fitted.convolution, fitted.short_row) == (start.grouped, start.convolution, start.short_row)


@pytest.mark.exhaustive
def test_steps_by_choices_lose_less_where_times_mislead(fitting):
    """Of rows that take 30 % longer than the model says, but for those of a tile that it passes over."""
    start = known()[DEFAULT]
    rows = [row for row in rows_of(fitting, start) if row.kind == "product"]
    rows = [replace(row, us=row.us * (0.7 if row.tile == (64, 64, 32) else 1.3)) for row in rows]
    cases = fitting.cases_of(rows)
    before, after = fitting.lost(start, cases), fitting.lost(fitting.by_choices(start, rows), cases)
    assert after < 0.6 * before
    assert fitting.by_choices(start, rows, lambda rates: False) == start


@pytest.mark.exhaustive
def test_kept_rows_and_the_file_of_rates_belong_together(fitting):
    """What choices lose among the rows is what the file says."""
    fit, source = importlib.import_module("fit"), json.loads((FOLDER / "h200.json").read_text())["source"]
    _, rows = fitting.read(BENCHMARKS / "results" / "fit.json")
    lost = fit.lost_of(known()[DEFAULT], rows)
    assert lost == source["choices"]
    assert all(lost[kind][0] < 3 for kind in fitting.KINDS)


@pytest.mark.parametrize("inputs", ["s8", "f32"])
def test_what_rates_that_choose_do_not_count_is_counted_beside_other_paths(fitting, inputs):
    """Of large products in the kept rows, by the choice among them."""
    _, rows = fitting.read(BENCHMARKS / "results" / "fit.json")
    cases = fitting.cases_of([row for row in rows if row.kind == "product" and row.inputs == inputs])
    model, off = model_of(), {False: [], True: []}
    for case in cases:
        row = min(case, key=lambda row: fitting.predicted(model, row))
        if 2 * prod(row.sizes[0]) < 40e9:
            continue
        for counted, errors in off.items():
            beside = model.uncounted(TYPES[inputs], row.sizes[0]) if counted else 0.0
            errors.append(abs((fitting.predicted(model, row) + beside) / row.us - 1))
    assert median(off[True]) < 0.06 < 0.2 < median(off[False])


def test_rates_of_tiles_in_no_table_follow_from_those_that_are(fitting):
    rates = replace(
        known()[DEFAULT],
        grouped={label(c): 800 * c.tile[0] * c.tile[1] / (c.tile[0] * c.tile[1] + 5000) for c in GROUPED},
    )
    others = fitting.with_rates_of_others(rates)
    assert (others.most_rate, others.half_rate) == (pytest.approx(800), pytest.approx(5000))


def test_fits_begin_at_ones_and_at_random_numbers_too(fitting):
    rates = known()[DEFAULT]
    rows = [row for row in rows_of(fitting, rates) if row.kind == "group"]
    starts = fitting.starts_of(rates, rows, 3)
    assert list(starts) == ["present", "ones", "random 1", "random 2"]
    assert starts["present"] is rates and {*starts["ones"].grouped.values()} == {1.0}
    assert starts["random 1"].between_tiles != starts["random 2"].between_tiles
    assert starts["ones"].wave == rates.wave


def test_least_squares_of_a_line(fitting):
    x = np.linspace(0, 1, 20)
    found = fitting.least_squares(lambda p: p[0] + p[1] * x - (0.5 - 0.25 * x), np.zeros(2))
    assert np.allclose(found, (0.5, -0.25), atol=1e-4)


def test_a_file_of_rows_becomes_a_file_of_rates(fitting, tmp_path, capsys):
    fit = importlib.import_module("fit")
    start = known()[DEFAULT]
    rows = [row for row in rows_of(fitting, other(start)) if row.kind == "product"]
    environment = {"gpu": "NVIDIA Test", "command": "python benchmarks/fit.py"}
    gpu = {**asdict(start.gpu), "name": "NVIDIA Test"}
    fitting.write(tmp_path / "rows.json", {"environment": environment, "gpu": gpu}, rows)
    out = fit.fit_file(tmp_path / "rows.json", tmp_path / "rates.json")
    rates = read(out)
    assert rates.gpu.name == "NVIDIA Test"
    assert all(fitting.predicted(CostModel(rates), row) == pytest.approx(row.us, rel=0.01) for row in rows)
    told = f"{len(rows)} of {len(rows)} in rows.json: product, group, convolution"
    assert json.loads(out.read_text())["source"] == {**environment, "rows": told, "choices": fit.lost_of(rates, rows)}
    assert "fitted: {'kind': 'product'" in capsys.readouterr().out


def test_rates_that_are_of_no_kind_that_is_fitted_stay(fitting, tmp_path):
    fit = importlib.import_module("fit")
    start = known()[DEFAULT]
    rows = [row for row in rows_of(fitting, other(start)) if row.kind == "convolution"]
    gpu = asdict(start.gpu)
    fitting.write(tmp_path / "rows.json", {"environment": {}, "gpu": gpu}, rows)
    fitted = read(fit.fit_file(tmp_path / "rows.json", tmp_path / "rates.json", ["product"]))
    assert fitted == start


@pytest.fixture
def fit(fitting, monkeypatch):
    """The script, on arrays that take no memory and launches that are not made."""
    script = importlib.import_module("fit")
    monkeypatch.setattr(script, "arrays", lambda inputs, *shapes: [np.empty((0, 0)) for _ in shapes])
    monkeypatch.setattr(script, "launcher", lambda function, *inputs, **options: lambda trial: lambda: None)
    for kind in ("PRODUCTS", "GROUPS", "LAYERS"):
        monkeypatch.setattr(script, kind, 12)
    return script


@pytest.mark.parametrize("kind", ["products", "groups", "convolutions"])
def test_the_rows_that_are_measured_are_such_as_the_model_knows(fitting, fit, kind):
    model = model_of()
    problems = list(getattr(fit, kind)(random.Random(1), model, "sm_90a"))
    trials = [trial for problem in problems for trial in problem.trials]
    assert len(problems) == 12 and len(trials) > 50
    for row, config in trials:
        assert fitting.predicted(model, row) > 0
        assert (config.tile, config.warp, config.stages) == (row.tile, row.warp, row.stages)
        assert fitting.Row.of(json.loads(json.dumps(asdict(row)))) == row


def test_problems_come_in_an_order_of_the_seed_and_none_takes_long(fitting, fit, monkeypatch):
    model = model_of()
    rows = [[trial.row for trial in problem.trials] for problem in fit.problems(3, fitting.KINDS, model, "sm_90a")]
    assert rows == [
        [trial.row for trial in problem.trials] for problem in fit.problems(3, fitting.KINDS, model, "sm_90a")
    ]
    kinds = [of_problem[0].kind for of_problem in rows]
    assert kinds != sorted(kinds) and {*kinds} == {"product", "group", "convolution"}
    monkeypatch.setattr(fit, "MOST_US", 50)
    short = [problem.trials for problem in fit.problems(3, fitting.KINDS, model, "sm_90a")]
    assert 0 < len(short) < len(rows)
    assert all(min(fitting.predicted(model, trial.row) for trial in trials) <= 50 for trials in short)


def test_a_problem_is_measured_at_rest_in_turns(fit, monkeypatch):
    gpu = FakeGpu()
    problem = next(fit.products(random.Random(1), model_of(), "sm_90a"))
    times = {id(trial): gpu.takes(str(n), n + 1) for n, trial in enumerate(problem.trials)}
    rows = list(fit.rows_of(gpu, replace(problem, start=lambda: lambda trial: times[id(trial)]), 3))
    assert [row.us for row in rows] == pytest.approx([1000 * (n + 1) for n in range(len(problem.trials))])
    assert [replace(row, us=0.0) for row in rows] == [trial.row for trial in problem.trials]
    assert "rest 0.5" not in gpu.log and any(entry.startswith("rest") for entry in gpu.log)


def test_a_budget_ends_the_measurement(fitting, fit, monkeypatch):
    gpu = FakeGpu()
    monkeypatch.setattr(fit, "ProcessPoolExecutor", InThisProcess)
    monkeypatch.setattr(fit, "TorchGpu", lambda: gpu)
    monkeypatch.setattr(fit.common, "START", 0.0)
    launch = gpu.takes("launch", 100.0)
    monkeypatch.setattr(fit, "launcher", lambda function, *inputs, **options: lambda trial: launch)
    with installed(FakeCuda()):
        rows = list(fit.measure(1, fitting.KINDS, 1, 30.0))
        every = sum(len(problem.trials) for problem in fit.problems(1, fitting.KINDS, model_of(0), "sm_90a"))
    assert 0 < len(rows) < every and 30 < gpu.seconds < 40


def test_rows_of_other_kinds_stay_in_the_file(fitting, fit, tmp_path):
    rows = [replace(row, us=round(row.us, 2)) for row in rows_of(fitting, known()[DEFAULT])]
    with installed(FakeCuda()):
        fit.save(tmp_path / "rows.json", rows)
        fit.save(tmp_path / "rows.json", [replace(row, us=1.0) for row in rows if row.kind == "group"], ["group"])
    data, kept = fitting.read(tmp_path / "rows.json")
    assert sorted(kept, key=str) == sorted([replace(r, us=1.0) if r.kind == "group" else r for r in rows], key=str)
    assert data["environment"]["command"].count("; python benchmarks/") == 1


class InThisProcess:
    """A pool of one process."""

    def __init__(self, processes, context):
        self.processes = processes

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def map(self, function, *arguments):
        return [function(*each) for each in zip(*arguments, strict=True)]
