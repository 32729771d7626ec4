"""A function of each element of groups of rows, with values of rows, of columns and of each group's columns."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import ragged as call
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add, per_column, per_row, relu
from ptxdsl.kernels.grouped import grouped_gemm_ragged
from tests.kernels.test_grouped_ragged import SMALL, normal, weights
from tests.machines import MACHINES, machine

ENDS = [0, 1, 1, 66, 130, 131, 171, 171]  # groups of 0, 1, 65, 64, 1, 40 and 0 rows
ROWS = 180
TILES = GemmConfig(tile=(128, 64, 64), stages=2, atom="wgmma")
SHARES = GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma", swap_ab=True)
CASES = {
    "sm_80": (SMALL, 72, False),
    "sm_80, scattered": (SMALL, 65, True),
    "in boxes": (TILES, 72, False),
    "in turns": (GemmConfig(tile=(128, 80, 64), stages=2, atom="wgmma", pingpong=True), 72, False),
    "shares": (SHARES, 72, False),
    "shares, scattered": (SHARES, 72, True),
    "scattered": (TILES, 65, True),
}


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 2)


def layer(x, weight, bias, of_expert):
    return relu(x + bias + of_expert) * weight


def check(where, rng, config, n, ends, scatters, rows=ROWS, k=64):
    a, b = normal(rng, (rows, k), "f16"), weights(rng, len(ends), k, n, "column", "f16")
    weight, bias, of_expert = normal(rng, rows, "f32"), normal(rng, n, "f16"), normal(rng, (len(ends), n), "f32")
    out, order = np.full((rows, n), np.nan, np.float16), rng.permutation(rows).astype(np.int32)
    x, y, offsets, z, rows_of_out = map(where.array, (a, b, np.array(ends, np.int32), out, order))
    operands = tuple(map(where.array, (weight, bias, of_expert)))
    operands = per_row(operands[0]), per_column(operands[1]), per_column(operands[2])
    options = {"out_rows": rows_of_out} if scatters else {}
    assert grouped_gemm_ragged(x, y, offsets, out=z, config=config, epilogue=layer, operands=operands, **options) is z
    values, begin = where.values(z), 0
    values = values[order] if scatters else values
    for group, end in enumerate(ends):
        sums = a[begin:end].astype(np.float64) @ b[group].astype(np.float64)
        exact = np.maximum(sums + bias + of_expert[group], 0) * weight[begin:end, None]
        assert (np.abs(values[begin:end] - exact) <= 2e-3 * (1 + np.abs(exact))).all(), group
        begin = end
    assert np.isnan(values[begin:]).all()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("config, n, scatters", CASES.values(), ids=CASES)
def test_a_function_with_values_of_rows_and_of_columns(name, config, n, scatters, rng):
    check(machine(name), rng, config, n, ENDS, scatters)


@pytest.mark.gpu
def test_calls_again_with_other_values_and_another_function(rng):
    where = machine("gpu")
    a, b, offsets = normal(rng, (96, 64), "f16"), weights(rng, 2, 64, 64, "column", "f16"), np.array([40, 96], np.int32)
    a, b, offsets = map(where.array, (a, b, offsets))
    exact = where.values(grouped_gemm_ragged(a, b, offsets))
    for times in (2.0, 3.0):
        for value in (0.5, 4.0):
            operand = per_row(where.array(np.full(96, value, np.float32)))
            for _ in range(3):
                out = grouped_gemm_ragged(a, b, offsets, epilogue=lambda x, y: x * y * times, operands=(operand,))  # noqa: B023
            assert np.abs(where.values(out) - exact * value * times).max() <= 2e-3 * times * value * np.abs(exact).max()


def f32(*shape):
    return np.ones(shape, np.float32)


REFUSALS = {
    "a matrix": (
        (f32(6, 8),),
        "`operands[0]` is of type ndarray; the epilogue of groups of rows takes one value per row or column\n"
        "  help: wrap it in per_row(…) or per_column(…); add a matrix to the output afterwards",
    ),
    "rows of another number": (
        (per_row(f32(5)),),
        "`operands[0]` has 5 values; the product has 6 rows\n"
        "  help: pass 6 values without gaps, one for each row of the product",
    ),
    "columns of another number": (
        (per_column(f32(2, 7)),),
        "`operands[0]` has 7 values; the product has 8 columns\n"
        "  help: pass 8 values without gaps, one for each column of the product, or (2, 8)",
    ),
    "other groups": (
        (per_column(f32(3, 8)),),
        "`operands[0]` has the shape (3, 8); there are 2 groups\n"
        "  help: pass 8 values without gaps, one for each column of the product, or (2, 8)",
    ),
    "three dimensions": (
        (per_column(f32(1, 2, 8)),),
        "`operands[0]` has the shape (1, 2, 8); per_column takes one dimension, or two of (groups, N)\n"
        "  help: pass 8 values without gaps, one for each column of the product, or (2, 8)",
    ),
    "rows of groups": (
        (per_row(f32(2, 6)),),
        "`operands[0]` has the shape (2, 6); per_row takes one dimension\n"
        "  help: pass 6 values without gaps, one for each row of the product",
    ),
    "gaps": (
        (per_column(f32(2, 16)[:, ::2]),),
        "`operands[0]` has a stride of 2 elements\n"
        "  help: pass 8 values without gaps, one for each column of the product, or (2, 8)",
    ),
    "a type that is not read": (
        (per_row(np.ones(6, np.uint8)),),
        "`operands[0]` is uint8; the epilogue reads float16, bfloat16, float32, float64 or int32\n  help: convert it before",
    ),
}


@pytest.mark.parametrize("operands, text", REFUSALS.values(), ids=REFUSALS)
def test_refusals(operands, text):
    out = np.full((6, 8), 7, np.float16)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(
            np.ones((6, 4), np.float16), np.ones((2, 4, 8), np.float16), np.array([2, 6], np.int32), out=out,
            epilogue=add, operands=operands,
        )  # fmt: skip
    assert f"{caught.value.message}\n  help: {caught.value.help}" == text
    assert (out == 7).all()


def test_operands_need_a_function_that_takes_them():
    arrays = np.ones((6, 4), np.float16), np.ones((2, 4, 8), np.float16), np.array([2, 6], np.int32)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(*arrays, operands=(per_row(f32(6)),))
    assert caught.value.message == "operands are given, and no epilogue that takes them"
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(*arrays, epilogue=add)
    assert caught.value.help == "it is called with an element of the product alone"
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(*arrays, epilogue=add, operands=np.ones(6, np.float16))
    assert caught.value.help == "write operands=(matrix,)"
