"""The fit of rates to what kernels took: from rows that the model itself made, it finds the rates that made them."""

import importlib
import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import f16, f32
from ptxdsl.kernels.choose.candidates import GROUPED, of_convolutions
from ptxdsl.kernels.choose.gemm import shared
from ptxdsl.kernels.choose.model import CostModel, candidate
from ptxdsl.kernels.choose.rates import DEFAULT, known, read

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
    rows[3] = replace(rows[3], us=50 * rows[3].us)
    assert fitting.quality(fitting.fit(start, rows), rows)[0]["off, median"] < 0.02


def test_rates_that_no_row_tells_stay(fitting):
    start = known()[DEFAULT]
    products = [row for row in rows_of(fitting, other(start)) if row.kind == "product"]
    names = fitting.names_of(products, start)
    assert "multiply_adds.f16" in names and "dram_bandwidth" in names
    assert not {"multiply_adds.f64", "most_rate", "write", "short_row"} & {*names}
    fitted = fitting.fit(start, products)
    assert (fitted.grouped, fitted.convolution, fitted.short_row) == (start.grouped, start.convolution, start.short_row)


def test_least_squares_of_a_line(fitting):
    x = np.linspace(0, 1, 20)
    found = fitting.least_squares(lambda p: p[0] + p[1] * x - (0.5 - 0.25 * x), np.zeros(2))
    assert np.allclose(found, (0.5, -0.25), atol=1e-4)


def test_a_file_of_rows_becomes_a_file_of_rates(fitting, tmp_path, capsys):
    fit = importlib.import_module("fit")
    start = known()[DEFAULT]
    rows = rows_of(fitting, other(start))
    environment = {"gpu": "NVIDIA Test", "command": "python benchmarks/fit.py"}
    gpu = {**asdict(start.gpu), "name": "NVIDIA Test"}
    (tmp_path / "rows.json").write_text(
        json.dumps({"environment": environment, "gpu": gpu, "rows": [*map(asdict, rows)]})
    )
    out = fit.fit_file(tmp_path / "rows.json", tmp_path / "rates.json")
    rates = read(out)
    assert rates.gpu.name == "NVIDIA Test"
    assert all(fitting.predicted(CostModel(rates), row) == pytest.approx(row.us, rel=0.01) for row in rows)
    assert json.loads(out.read_text())["source"] == {**environment, "rows": f"{len(rows)}, rows.json"}
    assert "fitted: {'kind': 'product'" in capsys.readouterr().out


@pytest.mark.parametrize("problems", ["products", "groups", "convolutions"])
def test_the_rows_that_are_measured_are_such_as_the_model_knows(fitting, monkeypatch, problems):
    fit, rates = importlib.import_module("fit"), known()[DEFAULT]
    monkeypatch.setattr(fit, "arrays", lambda inputs, *shapes: [np.empty((0, 0)) for _ in shapes])
    monkeypatch.setattr(fit, "launcher", lambda function, *inputs, config, **options: config)
    monkeypatch.setattr(fit, problems.upper() if problems != "convolutions" else "LAYERS", 12)
    trials = [trial for case in getattr(fit, problems)(random.Random(1), rates.gpu, "sm_90a") for trial in case]
    assert len(trials) > 50
    for row, config in trials:
        assert fitting.predicted(CostModel(rates), row) > 0
        assert (config.tile, config.warp, config.stages) == (row.tile, row.warp, row.stages)
        assert fitting.Row.of(json.loads(json.dumps(asdict(row)))) == row
