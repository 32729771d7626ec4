"""Scaled 8-bit floats against numpy in float64, on the emulator and on a GPU, from the same body.

Values are small integers, and scales powers of 2: sums are exact, whatever the accumulators drop.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call import scales as scales_call
from ptxdsl.kernels.call.groups import ragged as call
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import array_argument
from ptxdsl.kernels.call.paths.path import GroupRequest
from ptxdsl.kernels.call.paths.select import grouped
from ptxdsl.kernels.call.products import copies, scheduled
from ptxdsl.kernels.candidates.facts import GroupFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add, add_gelu, per_column, per_row
from ptxdsl.kernels.gemm import warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Extra, Operands, Scaling
from ptxdsl.kernels.ragged import warpgroup_ragged_kernel
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_masked, scaled_gemm_ragged
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_split import ClusterSplitK
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.types import bf16, e4m3, f32
from tests.kernels.scales import SCALINGS, check, powers, reference, scales_of, values
from tests.kernels.spills import check_no_spill
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
LOW, WIDE = GemmConfig((64, 64, 128), stages=2, atom="wgmma"), GemmConfig((128, 192, 128), stages=2, atom="wgmma")
HALVES = GemmConfig((128, 256, 128), stages=2, atom="wgmma")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 3)
    monkeypatch.setattr(scheduled, "resident_blocks", lambda *_, **__: 3)


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_scales_of_all_kinds(name, scaling, output, rng):
    check(machine(name), rng, scaling, 70, 200, 272, output=output, config=LOW)


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
def test_tiles_whose_columns_are_of_two_blocks(name, scaling, rng):
    check(machine(name), rng, scaling, 130, 392, 144, dtype="e5m2", output="f16", config=WIDE)


@every_machine
@pytest.mark.parametrize("m, n, k", [(130, 392, 656), (257, 129, 528), (64, 520, 128)])
def test_blocks_of_a_tile_in_halves(name, m, n, k, rng):
    """One of two warpgroups has no rows of some tiles; of K there are more blocks than lanes that read ahead, or one."""
    check(machine(name), rng, "blocks", m, n, k, output="bf16", config=HALVES)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("n", [80, 70, 69])
@pytest.mark.parametrize("output", ["e4m3", "e5m2"])
def test_outputs_of_8_bits_saturate(name, output, n, rng):
    where, m, k = machine(name), 5, 144
    a, b = values(rng, m, k), values(rng, n, k).T
    scales = scales_of(rng, "rows", m, n, k)
    scales[0][0] = 2.0**14
    out = np.zeros((m, n), NAMES[output])
    given = [where.array(x) for x in (a, b, *scales, out)]
    results = where.values(scaled_gemm(*given[:4], out=given[4], config=LOW))
    most = float(ml_dtypes.finfo(NAMES[output]).max)
    exact = reference(a, b, *scales).clip(-most, most)
    assert (results == exact.astype(np.float32).astype(NAMES[output]).astype(np.float64)).all()


@every_machine
def test_the_tile_is_chosen(name, rng):
    check(machine(name), rng, "blocks", 3, 5, 16)


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_groups_of_rows(name, scaling, output, rng):
    where, ends, (rows, n, k) = machine(name), [0, 1, 66, 66, 131], (140, 136, 144)
    a, b = values(rng, rows, k), values(rng, len(ends), n, k).swapaxes(1, 2)
    scale_a, scale_b = scales_of(rng, scaling, rows, n, k, (len(ends),))
    out = np.full((rows, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), scale_a, scale_b, out)]
    results, begin = where.values(scaled_gemm_ragged(*given[:5], out=given[5], config=LOW)), 0
    for group, end in enumerate(ends):
        of_a = scale_a if scaling == "tensors" else scale_a[begin:end]
        exact = reference(a[begin:end], b[group], of_a, scale_b if scaling == "tensors" else scale_b[group])
        assert (results[begin:end] == exact.astype(NAMES[output]).astype(np.float64)).all(), group
        begin = end
    assert np.isnan(results[begin:]).all()


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
def test_masked_groups(name, scaling, rng):
    where, counts, (rows, n, k) = machine(name), np.array([0, 70, 1, 64, -3, 99], np.int32), (70, 136, 144)
    a, b = values(rng, len(counts), rows, k), values(rng, len(counts), n, k).swapaxes(1, 2)
    scale_a, scale_b = scales_of(rng, scaling, rows, n, k, (len(counts),))
    if scaling != "tensors":
        scale_a = powers(rng, len(counts), *scale_a.shape)
    out = np.full((len(counts), rows, n), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, counts, scale_a, scale_b, out)]
    results = where.values(scaled_gemm_masked(*given[:5], out=given[5], config=LOW))
    for group, count in enumerate(counts.clip(0, rows)):
        of_a, of_b = (s if scaling == "tensors" else s[group] for s in (scale_a, scale_b))
        exact = reference(a[group], b[group], of_a, of_b).astype(NAMES["bf16"]).astype(np.float64)
        assert (results[group, :count] == exact[:count]).all(), group
        assert np.isnan(results[group, count:]).all()


@every_machine
def test_transposed_sums_take_scales_of_tensors(name, rng):
    config = GemmConfig((16, 64, 128), stages=2, atom="wgmma", swap_ab=True)
    check(machine(name), rng, "tensors", 20, 72, 144, config=config)


@every_machine
def test_scales_with_any_strides(name, rng):
    where, (m, n, k) = machine(name), (20, 130, 256)
    a, b = values(rng, m, k), values(rng, n, k).T
    scales = np.asfortranarray(powers(rng, m, 2)), np.asfortranarray(powers(rng, 2, 2))
    result = scaled_gemm(*[where.array(x) for x in (a, b, *scales)], config=LOW)
    assert (where.values(result) == reference(a, b, *scales)).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("gathers, scatters", [(True, False), (False, True), (True, True)])
def test_rows_that_are_gathered_and_scattered(name, scaling, gathers, scatters, rng):
    """Numbers of no row stand for zeros, and drop their row."""
    where, ends, (tokens, rows, n, k) = machine(name), [0, 1, 66, 66, 131], (50, 131, 136, 144)
    held = tokens if gathers else rows
    a, b = values(rng, held, k), values(rng, len(ends), n, k).swapaxes(1, 2)
    scale_a, scale_b = scales_of(rng, scaling, held, n, k, (len(ends),))
    index = rng.integers(0, tokens, rows).astype(np.int32) if gathers else np.arange(rows, dtype=np.int32)
    out_index = rng.permutation(rows + 9)[:rows].astype(np.int32)
    if gathers:
        index[[0, 70]] = -1, tokens
    out_index[[3, 80]] = -1, 2**30
    out = np.full((rows + 9 if scatters else rows, n), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), scale_a, scale_b)]
    options = {"rows": where.array(index)} if gathers else {}
    options |= {"out_rows": where.array(out_index)} if scatters else {}
    written = where.array(out)
    results = where.values(scaled_gemm_ragged(*given, **options, out=written, config=LOW))
    expected, begin = np.full(out.shape, np.nan), 0
    exists = (index >= 0) & (index < held)
    x = np.where(exists[:, None], a[index.clip(0, held - 1)].astype(np.float64), 0).astype(NAMES["e4m3"])
    for group, end in enumerate(ends):
        of_a = scale_a if scaling == "tensors" else scale_a[index.clip(0, held - 1)][begin:end]
        exact = reference(x[begin:end], b[group], of_a, scale_b if scaling == "tensors" else scale_b[group])
        for row in range(begin, end):
            to = out_index[row] if scatters else row
            if 0 <= to < len(expected):
                expected[to] = exact[row - begin].astype(NAMES["bf16"]).astype(np.float64)
        begin = end
    assert np.array_equal(results, expected, equal_nan=True)


def lying(values, major, padding=5):
    """The same values, row- or column-major, whose lines lie apart."""
    moved = values if major == "row" else values.swapaxes(-1, -2)
    *more, length = moved.shape
    room = np.zeros((*more, length + padding), values.dtype)
    room[..., :length] = moved
    room = room[..., :length]
    return room if major == "row" else room.swapaxes(-1, -2)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("majors", [("row", "row"), ("column", "column"), ("column", "row"), ("row", "column")])
def test_operands_that_are_copied_before(name, scaling, majors, rng):
    """Not contiguous along K, or with lines that tensor copies cannot address; the tile is chosen, or said."""
    where, (m, n, k) = machine(name), (70, 201, 133)
    a, b, scales = values(rng, m, k), values(rng, k, n), scales_of(rng, scaling, m, n, k)
    given = [where.array(x) for x in (lying(a, majors[0]), lying(b, majors[1]), *scales)]
    config = LOW if "row" in majors else None
    assert (where.values(scaled_gemm(*given, config=config)) == reference(a, b, *scales)).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("form", ["ragged", "masked"])
def test_groups_that_are_copied_before(name, scaling, form, rng):
    where, (rows, n, k) = machine(name), (70, 136, 133)
    is_masked, sizes = form == "masked", np.array([3, 64, 70], np.int32)
    groups, lines = (3,), (3, rows) if is_masked else (rows,)
    a, b = values(rng, *lines, k), values(rng, 3, k, n)
    scale_a, scale_b = scales_of(rng, scaling, rows, n, k, groups)
    if is_masked and scaling != "tensors":
        scale_a = powers(rng, *groups, *scale_a.shape)
    function = scaled_gemm_masked if is_masked else scaled_gemm_ragged
    sides = lying(a, "column"), lying(b, "row")
    given = [where.array(x) for x in (*sides, sizes, scale_a, scale_b)]
    results, begin = where.values(function(*given, config=LOW)), 0
    for group, size in enumerate(sizes):
        at = (group, slice(size)) if is_masked else (slice(begin, size),)
        of_a, of_b = (scale_a, scale_b) if scaling == "tensors" else (scale_a[at], scale_b[group])
        assert (results[at] == reference(a[at], b[group], of_a, of_b)).all()
        begin = size


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("count", [1, 3])
def test_one_matrix_for_all_groups_is_copied_once(name, count, rng):
    where, (rows, n, k) = machine(name), (3, 24, 133)
    a, b, scales = values(rng, rows, k), values(rng, k, n), powers(rng, 2, 1)
    ends, sides = np.arange(1, count + 1, dtype=np.int32), (where.array(lying(a, "row")), where.array(lying(b, "row")))
    of_all = sides[1][None] if count == 1 else np.broadcast_to(b, (count, k, n))
    if count > 1 and name != "emulator":
        of_all = sides[1].expand(count, k, n)
    results = where.values(scaled_gemm_ragged(sides[0], of_all, where.array(ends), *map(where.array, scales)))
    assert (results[:count] == reference(a, b, *scales)[:count]).all()


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output, shape, config", [("f32", (70, 200, 272), LOW), ("bf16", (66, 136, 144), None)])
@pytest.mark.parametrize("alpha, beta", [(2.0**-7, 0.5), (-(2.0**-6), 2.0)])
def test_alpha_beta_and_c(name, scaling, output, shape, config, alpha, beta, rng):
    """C is an array of its own, or out itself; for an output of 16 bits it is loaded by TMA."""
    where, (m, n, k) = machine(name), shape
    config = config or (HALVES if scaling == "blocks" else LOW)
    a, b, scales = values(rng, m, k), values(rng, n, k).T, scales_of(rng, scaling, m, n, k)
    c = where.array(rng.integers(-9, 10, (m, n)).astype(NAMES[output]))
    given = [where.array(x) for x in (a, b, *scales)]
    exact = alpha * reference(a, b, *scales) + beta * where.values(c)
    expected = exact.astype(NAMES[output]).astype(np.float64)
    factors = {"alpha": alpha, "beta": beta, "config": config}
    out = where.array(np.full((m, n), np.nan).astype(NAMES[output]))
    assert scaled_gemm(*given, c, out=out, **factors) is out
    assert (where.values(out) == expected).all()
    scaled_gemm(*given, c, out=c, **factors)
    assert (where.values(c) == expected).all()


TURNED = [("tensors", (20, 72, 144)), ("rows", (70, 200, 272)), ("rows", (2, 5, 33))]


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling, shape", TURNED)
@pytest.mark.parametrize("output", ["f32", "bf16", "e4m3"])
def test_columns_of_out(name, scaling, shape, output, rng):
    """As the transpose, with scales of columns that have gaps; the tile is chosen, or said."""
    where, (m, n, k) = machine(name), shape
    a, b, (scale_a, scale_b) = values(rng, m, k), values(rng, n, k, dtype="e5m2").T, scales_of(rng, scaling, m, n, k)
    if scaling == "rows":
        scale_b = scale_b.repeat(2, axis=1)[:, ::2]
    exact, most = 2.0**-7 * reference(a, b, scale_a, scale_b), float(ml_dtypes.finfo(NAMES[output]).max)
    expected = exact.clip(-most, most).astype(np.float32).astype(NAMES[output]).astype(np.float64)
    given = [where.array(x) for x in (a, b, scale_a, scale_b)]
    for config in (None, LOW, GemmConfig((16, 64, 128), stages=2, atom="wgmma", swap_ab=True)):
        out = where.array(np.zeros((n, m), NAMES[output])).T
        assert scaled_gemm(*given, out=out, alpha=2.0**-7, config=config) is out
        assert (where.values(out) == expected).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("c_major", ["row", "column"])
def test_columns_of_out_with_c_and_an_epilogue(name, c_major, rng):
    """Of batches that share A and its scales; a value a row, one a column, and a matrix."""
    where, (count, m, n, k) = machine(name), (2, 70, 136, 144)
    a, b = values(rng, m, k), values(rng, count, n, k).swapaxes(1, 2)
    scale_a, scale_b = powers(rng, m, 1), powers(rng, count, 1, n)
    c, other = (rng.integers(-9, 10, (count, m, n)).astype(np.float32) for _ in range(2))
    of_row, of_column = rng.integers(-3, 4, m).astype(np.float32), powers(rng, n)
    given = [where.array(x) for x in (a, b, scale_a, scale_b, lying(c, c_major))]
    operands = per_row(where.array(of_row)), per_column(where.array(of_column)), where.array(other)
    how = {"alpha": 2.0**-7, "beta": 0.5, "epilogue": lambda x, row, column, y: beside(x, row, column) - y}
    out = where.array(np.zeros((count, n, m), np.float32)).swapaxes(1, 2)
    results = where.values(scaled_gemm(*given, out=out, operands=operands, config=LOW, **how))
    for batch in range(count):
        exact = 2.0**-7 * reference(a, b[batch], scale_a, scale_b[batch]) + 0.5 * c[batch]
        assert (results[batch] == beside(exact, of_row[:, None], of_column) - other[batch]).all(), batch


@every_machine
def test_columns_of_out_are_added_to(name, rng):
    """C is out itself; with operands that are copied before, lying any way."""
    where, (m, n, k) = machine(name), (33, 71, 133)
    a, b, scales = values(rng, m, k), values(rng, k, n), scales_of(rng, "rows", m, n, k)
    c = rng.integers(-9, 10, (m, n)).astype(np.float32)
    out = where.array(np.asfortranarray(c).T).T
    given = [where.array(x) for x in (lying(a, "column"), lying(b, "row"), *scales)]
    assert scaled_gemm(*given, out, out=out, beta=2.0) is out
    assert (where.values(out) == reference(a, b, *scales) + 2 * c).all()


def beside(value, of_row, of_column):
    return value * of_column + of_row


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output", ["f32", "bf16", "e4m3"])
def test_epilogues(name, scaling, output, rng):
    """Of vectors, and of a matrix beside C."""
    where, (m, n, k) = machine(name), (130, 208, 144)
    a, b, scales = values(rng, m, k), values(rng, n, k).T, scales_of(rng, scaling, m, n, k)
    of_row, of_column, other = rng.integers(-3, 4, m), powers(rng, n), rng.integers(-3, 4, (m, n)).astype(np.float16)
    given = [where.array(x) for x in (a, b, *scales)]
    vectors = per_row(where.array(of_row.astype(np.float32))), per_column(where.array(of_column))
    exact = 2.0**-7 * reference(a, b, *scales)

    def out(rounded):
        return where.array(np.zeros((m, n)).astype(NAMES[rounded]))

    def as_rounded(exact, rounded):
        most = float(ml_dtypes.finfo(NAMES[rounded]).max)
        return exact.clip(-most, most).astype(np.float32).astype(NAMES[rounded]).astype(np.float64)

    result = scaled_gemm(*given, out=out(output), alpha=2.0**-7, epilogue=beside, operands=vectors, config=LOW)
    assert (where.values(result) == as_rounded(exact * of_column + of_row[:, None], output)).all()
    with_c = {"c": where.array(np.ones((m, n), np.float32)), "beta": 3.0, "config": LOW}
    operands = {"epilogue": add, "operands": (where.array(other),)}
    result = scaled_gemm(*given, out=out("f32"), alpha=2.0**-7, **with_c, **operands)
    assert (where.values(result) == (exact + 3 + other)).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_epilogues_of_groups(name, scaling, output, rng):
    """A value a row, and a value a column of each group."""
    where, ends, (rows, n, k) = machine(name), [0, 1, 66, 66, 131], (131, 136, 144)
    a, b = values(rng, rows, k), values(rng, len(ends), n, k).swapaxes(1, 2)
    scale_a, scale_b = scales_of(rng, scaling, rows, n, k, (len(ends),))
    of_row, of_column = powers(rng, rows), rng.integers(-3, 4, (len(ends), n)).astype(np.float32)
    out = np.full((rows, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), scale_a, scale_b, out)]
    operands = per_column(where.array(of_column)), per_row(where.array(of_row))
    options = {"epilogue": lambda value, column, row: (value + column) * row, "operands": operands, "validate": True}
    results, begin = where.values(scaled_gemm_ragged(*given[:5], out=given[5], config=LOW, **options)), 0
    for group, end in enumerate(ends):
        of_a, of_b = (scale_a, scale_b) if scaling == "tensors" else (scale_a[begin:end], scale_b[group])
        exact = (reference(a[begin:end], b[group], of_a, of_b) + of_column[group]) * of_row[begin:end, None]
        assert (results[begin:end] == exact.astype(NAMES[output]).astype(np.float64)).all(), group
        begin = end


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_epilogues_of_masked_groups(name, scaling, output, rng):
    """A value a row of each group, and a value a column of all."""
    where, counts, (rows, n, k) = machine(name), [0, 1, 66, 71], (71, 136, 144)
    a, b = values(rng, len(counts), rows, k), values(rng, len(counts), n, k).swapaxes(1, 2)
    scale_a, scale_b = scales_of(rng, scaling, rows, n, k, (len(counts),))
    if scaling != "tensors":
        scale_a = powers(rng, len(counts), *scale_a.shape)
    of_row, of_column = powers(rng, len(counts), rows), rng.integers(-3, 4, n).astype(np.float32)
    out = np.full((len(counts), rows, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, np.array(counts, np.int32), scale_a, scale_b, out)]
    operands = per_column(where.array(of_column)), per_row(where.array(of_row))
    options = {"epilogue": lambda value, column, row: (value + column) * row, "operands": operands}
    results = where.values(scaled_gemm_masked(*given[:5], out=given[5], config=LOW, **options))
    for group, count in enumerate(counts):
        scales = (scale_a, scale_b) if scaling == "tensors" else (scale_a[group], scale_b[group])
        exact = (reference(a[group], b[group], *scales) + of_column) * of_row[group, :, None]
        assert (results[group, :count] == exact[:count].astype(NAMES[output]).astype(np.float64)).all(), group
        assert np.isnan(results[group, count:]).all(), group


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("single, output", [("", "f32"), ("", "bf16"), ("a", "bf16"), ("b", "f32")])
def test_batches(name, scaling, single, output, rng):
    """With C, and one matrix for all; scales of a matrix for all are for all as well."""
    where, (m, n, k) = machine(name), (70, 136, 144)
    of_a, of_b = (() if single == which else (3,) for which in "ab")
    a, b = values(rng, *of_a, m, k), values(rng, *of_b, n, k).swapaxes(-1, -2)
    scale_a, scale_b = scales_of(rng, scaling, m, n, k)
    if scaling != "tensors":
        scale_a, scale_b = powers(rng, *of_a, *scale_a.shape), powers(rng, *of_b, *scale_b.shape)
    c = rng.integers(-9, 10, (3, m, n)).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, scale_a, scale_b, c)]
    out = where.array(np.zeros((3, m, n), NAMES[output]))
    results = where.values(scaled_gemm(*given, out=out, alpha=2.0**-7, beta=0.5, config=LOW))
    for batch in range(3):
        sides = a if single == "a" else a[batch], b if single == "b" else b[batch]
        tensors = scaling == "tensors"
        scales = (
            scale_a if tensors or single == "a" else scale_a[batch],
            scale_b if tensors or single == "b" else scale_b[batch],
        )
        exact = 2.0**-7 * reference(*sides, *scales) + 0.5 * c[batch].astype(np.float64)
        assert (results[batch] == exact.astype(NAMES[output]).astype(np.float64)).all(), batch


@every_machine
def test_a_batch_of_one_is_for_all(name, rng):
    """As in gemm; so are its scales."""
    where, (m, n, k) = machine(name), (20, 64, 128)
    a, b = values(rng, 1, m, k), values(rng, 3, n, k).swapaxes(1, 2)
    scales = powers(rng, 1, m, 1), powers(rng, 3, 1, n)
    results = where.values(scaled_gemm(*[where.array(x) for x in (a, b, *scales)]))
    for batch in range(3):
        assert (results[batch] == reference(a[0], b[batch], scales[0][0], scales[1][batch])).all()


def test_sizes_in_host_memory_are_validated():
    with pytest.raises(pd.LaunchError) as caught:
        scaled_gemm_ragged(A, B[None], ROWS + 1, ONE, ONE, validate=True)
    message = "`offsets[0]` is 65; group 0 takes a number from 0 to the 64 rows of `a`"
    help = "pass the end of each group; an empty group ends where the previous one does"
    assert (caught.value.message, caught.value.help) == (message, help)


def test_copies_of_more_words_than_32_bits_count_are_refused(monkeypatch):
    monkeypatch.setattr(copies, "MOST_WORDS", 64)
    message = "`b` is not K-major, as wgmma needs float8_e4m3fn operands to be"
    for run in (
        lambda: scaled_gemm(A, np.ascontiguousarray(B), ONE, ONE, config=LOW),
        lambda: scaled_gemm_ragged(A, np.ascontiguousarray(B)[None], ROWS, ONE, ONE, config=LOW),
    ):
        with pytest.raises(pd.LaunchError) as caught:
            run()
        assert (caught.value.message, caught.value.help) == (message, "pass a row-major `a` and a column-major `b`")


@every_machine
def test_no_rows(name, rng):
    where = machine(name)
    given = [where.array(x) for x in (values(rng, 0, 128), values(rng, 16, 128).T, *powers(rng, 2, 1))]
    assert where.values(scaled_gemm(*given)).shape == (0, 16)


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("config", [None, LOW])
def test_no_k(name, scaling, config, rng):
    """Sums are 0, also with scales of no blocks, and infinite ones."""
    where, (m, n) = machine(name), (70, 136)
    a, b, (scale_a, scale_b) = values(rng, m, 0), values(rng, n, 0).T, scales_of(rng, scaling, m, n, 0)
    scale_a[:] = np.inf
    c, bias = rng.integers(-9, 10, (m, n)).astype(NAMES["bf16"]), rng.integers(-3, 4, n).astype(np.float32)
    given = [where.array(x) for x in (a, b, scale_a, scale_b)]
    out = where.array(np.full((m, n), np.nan).astype(NAMES["bf16"]))
    assert scaled_gemm(*given, out=out, config=config) is out
    assert (where.values(out) == 0).all()
    how = {"beta": 2.0, "epilogue": add, "operands": [per_column(where.array(bias))], "config": config}
    assert (where.values(scaled_gemm(*given, where.array(c), out=out, **how)) == 2 * c.astype(np.float64) + bias).all()


@every_machine
def test_no_k_of_batches_in_columns(name, rng):
    where, (count, m, n) = machine(name), (2, 70, 24)
    scales = powers(rng, count, m, 1), powers(rng, 1, n)
    sides = np.zeros((count, m, 0), NAMES["e4m3"]), np.zeros((0, n), NAMES["e5m2"])
    out = where.array(np.full((count, n, m), np.nan, np.float32)).swapaxes(1, 2)
    assert (where.values(scaled_gemm(*(where.array(x) for x in (*sides, *scales)), out=out)) == 0).all()


def test_zeros_of_a_workspace_stand_for_scales(monkeypatch):
    """On a GPU, where K is 0: no array of the caller stands behind them."""
    monkeypatch.setattr(scales_call, "room", lambda *_: 4096)
    of_blocks = array_argument("scale_a", np.ones((64, 0), np.float32), 2, "", "")
    known = scales_call.ScaledOperands(Scaling.BLOCKS, of_blocks, of_blocks).without_k((0, 0))
    assert known.scaling is Scaling.TENSORS and known.a.pointer == known.b.pointer == 4096


A, B = np.ones((64, 256), NAMES["e4m3"]), np.ones((128, 256), NAMES["e4m3"]).T
ONE, HALF, ROWS = np.ones(1, np.float32), np.ones((64, 256), np.float16), np.array([64], np.int32)
REFUSED = {
    "shapes of scales": (
        lambda: scaled_gemm(A, B, np.ones((64, 3), np.float32), ONE),
        "`scale_a` has the shape (64, 3) and `scale_b` (1,)",
        "pass one number per tensor; (64, 1) and (1, 128) for rows and columns; or (64, 2) and (2, 1) for blocks "
        "of 128",
    ),
    "shapes of scales of masked groups": (
        lambda: scaled_gemm_masked(A[None], B[None], ROWS, np.ones((64, 1), np.float32), np.ones((1, 1, 128), np.float32)),
        "`scale_a` has the shape (64, 1) and `scale_b` (1, 1, 128)",
        "pass one number per tensor; (1, 64, 1) and (1, 1, 128) for rows and columns; or (1, 64, 2) and "
        "(1, 2, 1) for blocks of 128",
    ),
    "a single matrix of masked groups": (
        lambda: scaled_gemm_masked(A, B[None], ROWS, ONE, ONE),
        "`a` has the shape (64, 256); it must have 3 dimensions",
        "pass `a` of (groups, M, K)",
    ),
    "types of scales": (
        lambda: scaled_gemm(A, B, ONE.astype(np.float64), ONE),
        "`scale_a` is float64; it takes float32",
        "convert it",
    ),
    "a scale that is a number": (
        lambda: scaled_gemm(A, B, 0.5, ONE),
        "`scale_a` is 0.5, a number; the kernel reads scales from memory",
        "pass np.full(1, 0.5, np.float32), or the same array on the GPU of the matrices",
    ),
    "a scale that is a number of numpy": (
        lambda: scaled_gemm_ragged(A, B[None], ROWS, ONE, np.float32(2)),
        "`scale_b` is 2.0, a number; the kernel reads scales from memory",
        "pass np.full(1, 2.0, np.float32), or the same array on the GPU of the matrices",
    ),
    "scales of columns with gaps": (
        lambda: scaled_gemm(A, B, np.ones((64, 1), np.float32), np.ones((1, 256), np.float32)[:, ::2]),
        "`scale_b` has strides of (256, 2) elements; the scales of columns must be contiguous",
        "make a contiguous copy of it",
    ),
    "scales of gathered rows behind each other": (
        lambda: scaled_gemm_ragged(
            A, B[None], ROWS, np.ones((2, 64), np.float32).T, np.ones((1, 2, 1), np.float32),
            rows=np.zeros(64, np.int32),
        ),
        "`rows` gathers rows of `scale_a`, which has strides of (1, 64) elements: its rows are not contiguous",
        "make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
    ),
    "scattered rows of no output": (
        lambda: scaled_gemm_ragged(A, B[None], ROWS, ONE, ONE, out_rows=np.zeros(64, np.int32)),
        "`out_rows` says which rows of `out` are written, and `out` is not given",
        "pass `out`",
    ),
    "types": (
        lambda: scaled_gemm(HALF, HALF.T, ONE, ONE),
        "`a` and `b` are float16; only float8_e4m3fn or float8_e5m2 matrices have scales",
        "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)",
    ),
    "shapes of scales of batches": (
        lambda: scaled_gemm(np.stack([A] * 2), B, np.ones((64, 1), np.float32), np.ones((1, 128), np.float32)),
        "`scale_a` has the shape (64, 1) and `scale_b` (1, 128)",
        "pass one number per tensor; (2, 64, 1) and (1, 128) for rows and columns; or (2, 64, 2) and (2, 1) for "
        "blocks of 128",
    ),
    "a beta without c": (
        lambda: scaled_gemm(A, B, ONE, ONE, beta=1.0),
        "beta is 1, and `c` is not given",
        "pass the array that beta multiplies as c=",
    ),
    "an alpha beyond float32": (
        lambda: scaled_gemm(A, B, ONE, ONE, alpha=1e300),
        "`alpha` is 1e+300; the output is computed in float32, which ends at 3.4e38",
        "scale the matrices before, or multiply float64 ones",
    ),
    "a c of another type": (
        lambda: scaled_gemm(A, B, ONE, ONE, HALF[:, :128], out=np.zeros((64, 128), np.float32), beta=1.0),
        "`c` is float16 and `out` float32; they must have one type",
        "convert c before",
    ),
    "a matrix beside groups": (
        lambda: scaled_gemm_ragged(A, B[None], ROWS, ONE, ONE, epilogue=add, operands=(HALF[:, :128],)),
        "`operands[0]` is of type ndarray; the epilogue of groups of rows takes one value per row or column",
        "wrap it in per_row(…) or per_column(…); add a matrix to the output afterwards",
    ),
    "columns of out with scales of blocks": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32), out=np.zeros((128, 64), np.float32).T
        ),
        "`out` is column-major, and the scales are per block: its transpose would need a scale of B per column and 128 of "
        "K, which the kernel reads for A alone",
        "make a row-major output, or pass scales per tensor or per row and column",
    ),
    "scales of rows with gaps, and columns of out": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32)[:, :1], np.ones((1, 128), np.float32),
            out=np.zeros((128, 64), np.float32).T,
        ),
        "`scale_a` has strides of (2, 1) elements; the scales of rows, with a column-major `out`, must be contiguous",
        "make a contiguous copy of it",
    ),
    "a wide tile": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((128, 224, 128), stages=2, atom="wgmma"),
        ),
        "tile is (128, 224, 128); with block scales its N may be up to 192, or 256, multiplied in halves: a thread holds "
        "partial sums next to the accumulators of the tile",
        "use a narrower tile",
    ),
    "a high tile that is swapped": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((48, 64, 128), stages=2, atom="wgmma", swap_ab=True),
        ),
        "tile is (48, 64, 128), and swap_ab is True; with block scales its M may be up to 32: a thread holds the "
        "scales of a quarter of the rows next to partial sums and accumulators",
        "use a tile with fewer rows, or leave swap_ab out",
    ),
    "transposed sums of groups": (
        lambda: scaled_gemm_ragged(
            A, B[None], ROWS, np.ones((64, 1), np.float32), np.ones((1, 1, 128), np.float32),
            config=GemmConfig((64, 64, 128), stages=2, atom="wgmma", swap_ab=True),
        ),
        "`config` has swap_ab=True; scales of rows need accumulators that are not transposed",
        "leave swap_ab out, or pass one scale per tensor",
    ),
    "three warpgroups": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((192, 64, 128), stages=2, atom="wgmma"),
        ),
        "tile is (192, 64, 128); with scales its M is 64 or 128: partial sums are held next to the accumulators, "
        "and three warpgroups have too few registers for both",
        "use a tile for one or two warpgroups",
    ),
    "warpgroups in turns": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((128, 64, 128), stages=2, atom="wgmma", pingpong=True),
        ),
        "`config` has pingpong=True; with block scales, both warpgroups multiply the same tile at the same time",
        "leave pingpong out, or pass scales per tensor or per row and column",
    ),
    "warpgroups one after the other": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((128, 64, 128), stages=3, atom="wgmma", stagger=2),
        ),
        "`config` has stagger=2; with block scales, both warpgroups finish a tile at the same time",
        "leave stagger out, or pass scales per tensor or per row and column",
    ),
    "batches whose K blocks share": (
        lambda: scaled_gemm(
            np.stack([A] * 2), B, ONE, ONE, config=GemmConfig((64, 64, 128), stages=2, atom="wgmma", split_k=2)
        ),
        "split_k is 2, and the products are batches: each of them is computed by blocks of its own",
        "leave split_k out, or call gemm for each of the batches",
    ),
    "no K of groups": (
        lambda: scaled_gemm_ragged(A[:, :0], B[None, :0], ROWS, ONE, ONE),
        "`a` and `b` are float8_e4m3fn, which takes wgmma, and K is 0: there is nothing to multiply",
        "write to `out` what follows of products that are 0, without a launch",
    ),
    "an atom": (
        lambda: scaled_gemm(A, B, ONE, ONE, config=GemmConfig()),
        "`config` has atom=''; scaled 8-bit floats are multiplied by wgmma, on sm_90a",
        'pass a GemmConfig with atom="wgmma", or leave config out',
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    run, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        run()
    assert (caught.value.message, caught.value.help) == (message, help)


def test_names_that_others_have():
    with pytest.raises(pd.Error) as caught:
        scaled_gemm(A, B, ONE, ONE, bias=ONE)
    assert caught.value.message == (
        "scaled_gemm takes no `bias`; it takes a, b, scale_a, scale_b, c, out, alpha, beta, config, epilogue and operands"
    )
    assert caught.value.help == (
        "scaled_gemm(…, epilogue=add, operands=[per_column(bias)]) adds one; import add and per_column from ptxdsl.kernels.epilogue"
    )


def test_another_gpu():
    with pd.config.using(arch="sm_90"), pytest.raises(pd.LaunchError) as caught:
        scaled_gemm(A, B, ONE, ONE)
    assert caught.value.message == (
        "`a` and `b` are float8_e4m3fn, which are multiplied with scales on sm_90a; the kernel is for sm_90"
    )
    assert caught.value.help == "on the emulator, set PTXDSL_ARCH=sm_90a"


FUSED = [(tile, output, scaling) for tile in (192, 256) for output in (bf16, f32) for scaling in SCALINGS]


@pytest.mark.exhaustive
@pytest.mark.parametrize("columns, output, scaling", FUSED)
@pytest.mark.parametrize("what", ["c", "bias"])
def test_kernels_with_more_spill_nothing(columns, output, scaling, what):
    """C of batches, or a function of the sums and of a value of each column."""
    is_c = what == "c"
    operands = Operands(
        e4m3, output, batches="strided" if is_c else "none", c="separate" if is_c else "none",
        extras=() if is_c else (Extra(bf16, "n"),), out_boxes=output is bf16, scaling=Scaling(scaling),
    )  # fmt: skip
    tiling = WarpgroupTiling((128, columns, 128), 3)
    check_no_spill(warpgroup_gemm_kernel, WarpgroupTraits(tiling, operands, Strips(), None if is_c else add_gelu))


SHIPPED = [(False, tile, f32, scaling) for tile in ((128, 192), (64, 128)) for scaling in ("rows", "blocks")]
SHIPPED += [(groups, (128, n), bf16, "blocks") for groups in (False, True) for n in (192, 256)]
SHIPPED += [(groups, (128, n), f32, "blocks") for groups, n in ((True, 128), (False, 256), (True, 256))]
SHIPPED += [("gathered", (128, n), bf16, scaling) for n, scaling in ((192, "rows"), (192, "blocks"), (256, "blocks"))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_ragged, tile, output, scaling", SHIPPED)
def test_kernels_spill_nothing(is_ragged, tile, output, scaling):
    batches, gathers = "strided" if is_ragged else "none", is_ragged == "gathered"
    operands = Operands(
        e4m3, output, batches=batches, out_boxes=output is bf16, a_gathered=gathers, scaling=Scaling(scaling)
    )
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 128), 3), operands, AHEAD if is_ragged else Strips())
    check_no_spill(warpgroup_ragged_kernel if is_ragged else warpgroup_gemm_kernel, traits)


FEW_ROWS = [
    *(
        (scaling, WarpgroupTiling((m, n, 128), 8, swap_ab=True))
        for scaling in SCALINGS
        for m, n in ((16, 64), (32, 128))
    ),
    *((scaling, WarpgroupTiling((m, 128, 128), 4)) for scaling in ("rows", "blocks") for m in (64, 128)),
    ("rows", WarpgroupTiling((128, 128, 128), 4, swap_ab=True)),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scaling, tiling", FEW_ROWS)
@pytest.mark.parametrize("splits_k", [False, True])
def test_kernels_of_few_rows_spill_nothing(scaling, tiling, splits_k):
    """Of whole tiles, and of blocks of a cluster that share K."""
    schedule = ClusterSplitK(IdentityThreadblockSwizzle(1), 2) if splits_k else Strips()
    operands = Operands(e4m3, bf16, scaling=Scaling(scaling))
    check_no_spill(warpgroup_gemm_kernel, WarpgroupTraits(tiling, operands, schedule))


WARPGROUPS = [
    WarpgroupTiling((128, 256, 128), 3, stagger=2),
    WarpgroupTiling((128, 192, 128), 4, stagger=3),
    WarpgroupTiling((192, 192, 128), 3),
    WarpgroupTiling((128, 192, 128), 4, pingpong=True),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("tiling", WARPGROUPS)
def test_kernels_of_warpgroups_with_scales_of_rows_spill_nothing(tiling):
    operands = Operands(e4m3, bf16, out_boxes=True, scaling=Scaling.ROWS)
    check_no_spill(warpgroup_gemm_kernel, WarpgroupTraits(tiling, operands, Strips()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("average", [4, 16, 40, 64, 128, 600])
def test_kernels_that_groups_choose_spill_nothing(scaling, average):
    known = Operands(e4m3, bf16, batches="strided", scaling=Scaling(scaling))
    facts = GroupFacts(average, 512, 7168, 64, replace(known, out_boxes=True))
    request = GroupRequest("scaled_gemm_ragged", facts, None, form="ragged", boxed=True)
    check_no_spill(warpgroup_ragged_kernel, grouped(None, request), form="ragged")


@pytest.mark.exhaustive
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("m, n, k", [(1, 24576, 1536), (64, 18432, 7168), (160, 14336, 4096)])
def test_kernels_that_wide_products_of_few_rows_choose_spill_nothing(scaling, m, n, k, monkeypatch):
    plans = []
    monkeypatch.setattr(LaunchPlan, "carry_out", lambda plan, *_: plans.append(plan))
    a, b, out = (np.empty(shape, NAMES[name]) for shape, name in (((m, k), "e4m3"), ((n, k), "e4m3"), ((m, n), "bf16")))
    shapes = {"tensors": ((1,), (1,)), "rows": ((m, 1), (1, n)), "blocks": ((m, k // 128), (k // 128, n // 128))}
    scaled_gemm(a, b.T, *(np.empty(shape, np.float32) for shape in shapes[scaling]), out=out)
    check_no_spill(warpgroup_gemm_kernel, **plans[0].constants)
