"""Operands of an epilogue that are one value a row or a column, where the output is stored in boxes on sm_90a."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.plan import plan_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column, per_row
from ptxdsl.kernels.gemm import KERNELS, gemm
from tests.kernels.test_warpgroups import hopper
from tests.machines import MACHINES, machine

__all__ = ["hopper"]  # fixtures for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)


def wgmma(m, n, **more):
    return GemmConfig(tile=(m, n, 64), stages=3, atom="wgmma", **more)


CONFIGS = {"shared": wgmma(128, 64), "in turns": wgmma(64, 80, pingpong=True), "low": wgmma(64, 256)}
FULL = wgmma(128, 192, pingpong=True)  # no registers are left in which to read ahead


def widened(value, column, row):
    return pd.max(value * 2 + column, row)


@every_machine
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_values_of_rows_and_columns_beside_tiles_that_do_not_fit(name, config, beta, rng):
    for m, n in ((150, 200), (1, 8)):
        a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, 72), (72, n), (m, n)))
        columns, rows = rng.standard_normal(n).astype(np.float16), rng.standard_normal(m).astype(np.float32)
        expected = 2 * (a.astype(float) @ b + beta * c) + columns
        on = machine(name)
        out = on.array(np.full((m, n), np.nan, np.float16))
        operands = per_column(on.array(columns)), per_row(on.array(rows))
        inputs = [on.array(each) for each in (a, b, c)]
        gemm(*inputs, out=out, beta=beta, epilogue=widened, operands=operands, config=CONFIGS[config])
        assert np.allclose(on.values(out), np.maximum(expected, rows[:, None]), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [CONFIGS["low"], FULL], ids=["ahead", "beside"])
@pytest.mark.parametrize("type", [np.float16, np.float32])
@pytest.mark.parametrize("n", [200, 201])
def test_values_that_do_not_lie_in_pairs(name, config, type, n, rng):
    """They begin amid one, or 8 bytes hold one of them; columns that end within 16 bytes are stored by the warps, so
    that nothing is written behind them."""
    on = machine(name)
    a, wide = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 64), (64, 208)))
    values, factors = rng.standard_normal(n + 1).astype(type), rng.standard_normal(n).astype(np.float64)
    out = on.array(np.full((70, 208), np.nan, np.float16))
    operands = per_column(on.array(values)[1:]), per_column(on.array(factors))
    gemm(on.array(a), on.array(wide)[:, :n], out=out[:, :n], epilogue=shifted, operands=operands, config=config)
    expected = a.astype(float) @ wide[:, :n] + values[1:] * factors
    assert np.allclose(on.values(out)[:, :n], expected, rtol=2e-3, atol=3e-2)
    assert np.isnan(on.values(out)[:, n:]).all()


def shifted(value, column, factor):
    return value + column * factor


@every_machine
@pytest.mark.parametrize("config", [wgmma(128, 64), wgmma(64, 64, swap_ab=True)], ids=["as it is", "swapped"])
def test_a_value_of_each_filter(name, config, rng):
    x, w = rng.standard_normal((2, 7, 9, 64)).astype(np.float16), rng.standard_normal((72, 1, 1, 64)).astype(np.float16)
    bias = rng.standard_normal(72).astype(np.float32)
    on = machine(name)
    arrays, operands = [on.array(each) for each in (x, w)], (per_column(on.array(bias)),)
    result = on.values(conv2d(*arrays, config=config, epilogue=add_relu, operands=operands))
    expected = np.maximum(x.astype(float) @ w[:, 0, 0].astype(float).T + bias, 0)
    assert np.allclose(result, expected, rtol=2e-3, atol=3e-2)


def boxes_stored(*operands, columns=512):
    """How many tensor copies store a tile of 128×256, whose epilogue takes these, of so many columns of the output."""
    a, b, out = (np.zeros(shape, np.float16)[:, :columns] for shape in ((256, 64), (64, 512), (256, 512)))
    problem = problem_of(a, b, None, out, 0.0, add_relu, operands)
    plan = plan_of(KERNELS, problem, GemmOptions(wgmma(128, 256), epilogue=add_relu), (1.0, 0.0))
    return plan.kernel.ptx(arch="sm_90a", **plan.constants).count("cp.async.bulk.tensor.2d.global.shared::cta")


def test_vectors_leave_the_output_in_boxes_and_matrices_do_not():
    assert boxes_stored(per_column(np.zeros(512, np.float16))) == 4
    assert boxes_stored(per_row(np.zeros(256, np.float32))) == 4
    assert boxes_stored(np.zeros((256, 512), np.float16)) == 0


@pytest.mark.exhaustive
def test_a_gpu_would_write_the_last_16_bytes_of_a_line_as_a_whole():
    assert boxes_stored(per_row(np.zeros(256, np.float32)), columns=504) == 4
    assert boxes_stored(per_row(np.zeros(256, np.float32)), columns=505) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("config", [wgmma(128, 128), wgmma(128, 192, pingpong=True)], ids=["whole", "in turns"])
def test_values_that_are_read_ahead_spill_nothing(config):
    a, b, out = (np.zeros(shape, np.float16) for shape in ((256, 64), (64, 384), (256, 384)))
    operands = per_column(np.zeros(385, np.float16)[1:]), per_column(np.zeros(384))
    problem = problem_of(a, b, None, out, 0.0, shifted, operands)
    plan = plan_of(KERNELS, problem, GemmOptions(config, epilogue=shifted), (1.0, 0.0))
    try:
        resources = plan.kernel.resources("sm_90a", **plan.constants)
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == 0
