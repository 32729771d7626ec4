"""A function of each element of the first rows of matrices, with values of rows, of columns and of each group's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import ragged as call
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add, per_column, per_row, scale_rows_and_columns
from ptxdsl.kernels.grouped import grouped_gemm_masked
from tests.kernels.test_grouped_ragged import SMALL, normal, weights
from tests.kernels.test_ragged_epilogue import SHARES, TILES, f32, layer
from tests.kernels.test_ragged_warpgroups import IN_TURNS, STAGGERED
from tests.machines import MACHINES, NAMES, machine

ROWS = 133  # of each matrix: neither even nor a multiple of a tile
COUNTS = [0, 1, 65, 64, 133, 40, 0, 128]
OF_BYTES = GemmConfig(tile=(64, 64, 128), stages=2, atom="wgmma")
CASES = {
    "sm_80": (SMALL, 72, "f16"),
    "sm_80, single elements": (SMALL, 65, "f16"),
    "sm_80, f32": (SMALL, 72, "f32"),
    "in boxes": (TILES, 72, "f16"),
    "by rows": (TILES, 65, "f16"),
    "f32": (TILES, 72, "f32"),
    "in turns": (IN_TURNS, 72, "f16"),
    "in turns, f32": (IN_TURNS, 72, "f32"),
    "shares": (SHARES, 72, "f16"),
    "shares, by rows": (SHARES, 65, "f16"),
    "shares, f32": (SHARES, 72, "f32"),
    "shares, staggered in pairs": (STAGGERED, 136, "f16"),
    "chosen": (None, 72, "f16"),
}
every_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 2)


def with_nan_behind(array, counts):
    """The same without a number in the rows that do not count."""
    array[np.arange(array.shape[1]) >= np.array(counts)[:, None]] = np.nan
    return array


def check(where, rng, config, n, output="f16", counts=COUNTS, rows=ROWS, k=64, values_of_rows=lambda values: values):
    """What belongs to rows that do not count is no number, so that none of it may reach another row."""
    groups = len(counts)
    a = with_nan_behind(normal(rng, (groups, rows, k), "f16"), counts)
    b, weight = weights(rng, groups, k, n, "column", "f16"), normal(rng, (groups, rows), "f32")
    weight = values_of_rows(with_nan_behind(weight, counts))
    bias, of_expert = normal(rng, n, "f16"), normal(rng, (groups, n), "f32")
    out = np.full((groups, rows, n), np.nan, NAMES[output])
    x, y, sizes, z = map(where.array, (a, b, np.array(counts, np.int32), out))
    of_rows, *of_columns = map(where.array, (weight, bias, of_expert))
    operands = per_column(of_columns[0]), per_column(of_columns[1]), per_row(of_rows)
    result = grouped_gemm_masked(
        x, y, sizes, out=z, config=config, epilogue=lambda x, b, c, w: layer(x, w, b, c), operands=operands
    )
    assert result is z
    values = where.values(z)
    for group, count in enumerate(counts):
        sums = a[group, :count].astype(np.float64) @ b[group].astype(np.float64)
        exact = np.maximum(sums + bias + of_expert[group], 0) * weight[group, :count, None]
        allowed = {"f16": 2e-3, "f32": 1e-5}[output] * (1 + np.abs(exact))
        assert (np.abs(values[group, :count] - exact) <= allowed).all(), group
        assert np.isnan(values[group, count:]).all(), group


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config, n, output", CASES.values(), ids=CASES)
def test_a_function_with_values_of_rows_and_of_columns(name, config, n, output, rng):
    check(machine(name), rng, config, n, output)


@every_machine
def test_halves_of_tiles_in_pairs_have_the_values_of_their_rows(name, rng):
    check(machine(name), rng, TILES, 128, counts=[64, 40, 128], rows=130)


def in_a_wider_array(values):
    wider = np.full((len(values), values.shape[1] + 8), np.nan, values.dtype)
    wider[:, 4:-4] = values
    return wider[:, 4:-4]


def of_every_group(values):
    return np.broadcast_to(np.nan_to_num(values).max(0), values.shape)


@every_machine
@pytest.mark.parametrize("config", [SMALL, TILES, SHARES], ids=["sm_80", "sm_90a", "shares"])
@pytest.mark.parametrize("values_of_rows", [in_a_wider_array, of_every_group])
def test_values_of_rows_may_lie_apart_from_those_of_other_groups(name, config, values_of_rows, rng):
    """Those of a group begin with a pair, and end anywhere."""
    check(machine(name), rng, config, 72, counts=[3, 0, 71, 1], rows=72, values_of_rows=values_of_rows)


@every_machine
@pytest.mark.parametrize("config", [None, OF_BYTES, replace(OF_BYTES, swap_ab=True)], ids=["sm_80", "sm_90a", "shares"])
def test_integers(name, config, rng):
    where, counts, (rows, n, k) = machine(name), [40, 0, 1, 70], (71, 72, 144)
    a, b = (rng.integers(-3, 4, shape).astype(np.int8) for shape in ((4, rows, k), (4, n, k)))
    of_rows, of_columns = (rng.integers(-9, 10, (4, length)).astype(np.int32) for length in (rows, n))
    out = where.array(np.full((4, rows, n), 77777, np.int32))
    grouped_gemm_masked(
        where.array(a), where.array(b).swapaxes(1, 2), where.array(np.array(counts, np.int32)), out=out, config=config,
        epilogue=scale_rows_and_columns, operands=(per_row(where.array(of_rows)), per_column(where.array(of_columns))),
    )  # fmt: skip
    sums = np.einsum("gmk,gnk->gmn", a.astype(np.int64), b.astype(np.int64))
    exact = sums * of_rows[:, :, None] * of_columns[:, None, :]
    assert np.array_equal(where.values(out), np.where(np.arange(rows)[:, None] < np.c_[counts][:, None], exact, 77777))


@every_machine
def test_a_function_alone_leaves_other_rows_alone(name, rng):
    where = machine(name)
    a, b = where.array(np.ones((2, 9, 16), np.float16)), where.array(np.ones((2, 16, 8), np.float16))
    out = where.array(np.full((2, 9, 8), -1, np.float16))
    grouped_gemm_masked(a, b, where.array(np.array([9, 2], np.int32)), out=out, epilogue=lambda x: x + 0.5)
    values = where.values(out)
    assert (values[0] == 16.5).all() and (values[1, :2] == 16.5).all() and (values[1, 2:] == -1).all()


@pytest.mark.parametrize("groups, rows", [(0, 6), (2, 0)])
def test_no_groups_and_no_rows(groups, rows):
    arrays = np.ones((groups, rows, 4), np.float16), np.ones((groups, 4, 8), np.float16), np.zeros(groups, np.int32)
    operands = per_row(f32(groups, rows)), per_column(f32(groups, 8))
    out = grouped_gemm_masked(*arrays, epilogue=scale_rows_and_columns, operands=operands)
    assert out.shape == (groups, rows, 8)


@pytest.mark.gpu
def test_calls_again_with_other_values(rng):
    where = machine("gpu")
    a, b = normal(rng, (2, 96, 64), "f16"), weights(rng, 2, 64, 64, "column", "f16")
    a, b, counts = map(where.array, (a, b, np.array([96, 96], np.int32)))
    exact = where.values(grouped_gemm_masked(a, b, counts))
    for value in (0.5, 4.0):
        factors = np.stack([np.full(96, value, np.float32), np.full(96, -value, np.float32)])
        for _ in range(3):
            out = grouped_gemm_masked(
                a, b, counts, epilogue=lambda x, y: x * y, operands=(per_row(where.array(factors)),)
            )
            difference = where.values(out) - exact * factors[:, :, None]
            assert np.abs(difference).max() <= 2e-3 * value * np.abs(exact).max()


ROW_HELP = "pass (2, 6) values, one for each row of each matrix, those of a group without gaps"
COLUMN_HELP = "pass 8 values without gaps, one for each column of the product, or (2, 8)"
REFUSALS = {
    "a matrix": (
        f32(2, 6, 8),
        "`operands[0]` is of type ndarray; the epilogue of groups of rows takes one value per row or column",
        "wrap it in per_row(…) or per_column(…); add a matrix to the output afterwards",
    ),
    "rows of another number": (
        per_row(f32(2, 5)), "`operands[0]` has 5 values; the product of each group has 6 rows", ROW_HELP
    ),
    "rows of other groups": (
        per_row(f32(3, 6)), "`operands[0]` has the shape (3, 6); there are 2 groups", ROW_HELP
    ),
    "rows of one group": (
        per_row(f32(6)), "`operands[0]` has the shape (6,); per_row takes two dimensions, (groups, M)", ROW_HELP
    ),
    "rows of all groups in a line": (
        per_row(f32(12)), "`operands[0]` has the shape (12,); per_row takes two dimensions, (groups, M)", ROW_HELP
    ),
    "rows of three dimensions": (
        per_row(f32(2, 6, 1)),
        "`operands[0]` has the shape (2, 6, 1); per_row takes two dimensions, (groups, M)",
        ROW_HELP,
    ),
    "rows with gaps": (per_row(f32(2, 12)[:, ::2]), "`operands[0]` has a stride of 2 elements", ROW_HELP),
    "rows transposed": (per_row(f32(6, 2).T), "`operands[0]` has a stride of 2 elements", ROW_HELP),
    "columns of another number": (
        per_column(f32(2, 7)), "`operands[0]` has 7 values; the product has 8 columns", COLUMN_HELP
    ),
    "columns of other groups": (
        per_column(f32(3, 8)), "`operands[0]` has the shape (3, 8); there are 2 groups", COLUMN_HELP
    ),
    "columns of three dimensions": (
        per_column(f32(1, 2, 8)),
        "`operands[0]` has the shape (1, 2, 8); per_column takes one dimension, or two of (groups, N)",
        COLUMN_HELP,
    ),
    "columns with gaps": (per_column(f32(2, 16)[:, ::2]), "`operands[0]` has a stride of 2 elements", COLUMN_HELP),
    "a type that is not read": (
        per_row(np.ones((2, 6), np.uint8)),
        "`operands[0]` is uint8; the epilogue reads float16, bfloat16, float32, float64 or int32",
        "convert it before",
    ),
    "no array": (
        per_row([[1.0] * 6] * 2),
        "`operands[0]` is of type list, not an array",
        "pass numpy arrays, or CUDA arrays of torch, CuPy or JAX",
    ),
}  # fmt: skip


def refused(*operands, **options):
    """What a call says that is refused, which writes nothing."""
    out = np.full((2, 6, 8), 7, np.float16)
    arrays = np.ones((2, 6, 4), np.float16), np.ones((2, 4, 8), np.float16), np.array([2, 6], np.int32)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_masked(*arrays, out=out, operands=operands, **options)
    assert (out == 7).all()
    return caught.value.message, caught.value.help


@pytest.mark.parametrize("operand, message, help", REFUSALS.values(), ids=REFUSALS)
def test_refusals(operand, message, help):
    assert refused(operand, epilogue=add) == (message, help)


def test_an_output_in_which_an_operand_lies():
    memory = np.full((2, 6, 8), 7, np.float16)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_masked(
            np.ones((2, 6, 4), np.float16), np.ones((2, 4, 8), np.float16), np.array([2, 6], np.int32), out=memory,
            epilogue=add, operands=(per_row(memory[:, 0, :6]),),
        )  # fmt: skip
    assert caught.value.message == "`out` is written and shares memory with `operands[0]`"
    assert caught.value.help == "give the output memory of its own"
    assert (memory == 7).all()


def test_operands_and_functions_that_do_not_go_together():
    values = per_row(f32(2, 6))
    assert refused(values)[0] == "operands are given, and no epilogue that takes them"
    assert refused(epilogue=add)[1] == "it is called with an element of the product alone"
    counts = "`counts[1]` is 7; group 1 takes a number from 0 to the 6 rows of each matrix"
    out = np.full((2, 6, 8), 7, np.float16)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_masked(
            np.ones((2, 6, 4), np.float16), np.ones((2, 4, 8), np.float16), np.array([2, 7], np.int32), out=out,
            epilogue=add, operands=(values,), validate=True,
        )  # fmt: skip
    assert caught.value.message == counts and (out == 7).all()
