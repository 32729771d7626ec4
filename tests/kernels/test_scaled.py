"""Scaled 8-bit floats against numpy in float64, on the emulator and on a GPU, from the same body.

Values are small integers, and scales powers of 2: sums are exact, whatever the accumulators drop.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import scaled as call
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.scaled import (
    scaled_gemm,
    scaled_gemm_masked,
    scaled_gemm_ragged,
    scaled_kernel,
    scaled_ragged_kernel,
)
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.types import bf16, e4m3, f32
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SCALINGS = "tensors", "rows", "blocks"
LOW, WIDE = GemmConfig((64, 64, 128), stages=2, atom="wgmma"), GemmConfig((128, 192, 128), stages=2, atom="wgmma")
HALVES = GemmConfig((128, 256, 128), stages=2, atom="wgmma")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 3)


def values(rng, *shape, dtype="e4m3"):
    """Small integers, in rows that begin at multiples of 16 bytes."""
    *more, length = shape
    return rng.integers(-2, 3, (*more, length + -length % 16)).astype(NAMES[dtype])[..., :length]


def powers(rng, *shape):
    return np.array(np.exp2(rng.integers(-2, 3, shape)), np.float32)


def scales_of(rng, scaling, rows, n, k, groups=()):
    """Of a (rows, k) and b (*groups, k, n)."""
    blocks = -(-k // 128), -(-n // 128)
    shapes = {
        "tensors": ((1,), ()),
        "rows": ((rows, 1), (*groups, 1, n)),
        "blocks": ((rows, blocks[0]), (*groups, *blocks)),
    }
    return [powers(rng, *shape) for shape in shapes[scaling]]


def whole(scale, k, n=None):
    """A scale for each element: of a where n is None, else of b."""
    if scale.size == 1:
        return scale.reshape(1, 1)
    if n is None:
        return scale if scale.shape[1] == 1 else scale.repeat(128, axis=1)[:, :k]
    return scale if scale.shape == (1, n) else scale.repeat(128, axis=0)[:k].repeat(128, axis=1)[:, :n]


def reference(a, b, scale_a, scale_b):
    """What `scaled_gemm` computes."""
    k, n = b.shape
    return (a.astype(np.float64) * whole(scale_a, k)) @ (b.astype(np.float64) * whole(scale_b, k, n))


def check(where, rng, scaling, m, n, k, *, dtype="e4m3", output="f32", **options):
    a, b = values(rng, m, k, dtype=dtype), values(rng, n, k, dtype=dtype).T
    scales = scales_of(rng, scaling, m, n, k)
    out = np.full((m, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, *scales, out)]
    assert scaled_gemm(*given[:4], out=given[4], **options) is given[4]
    exact = reference(a, b, *scales)
    assert (where.values(given[4]) == exact.astype(NAMES[output]).astype(np.float64)).all()


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


@every_machine
def test_no_rows(name, rng):
    where = machine(name)
    given = [where.array(x) for x in (values(rng, 0, 128), values(rng, 16, 128).T, *powers(rng, 2, 1))]
    assert where.values(scaled_gemm(*given)).shape == (0, 16)


A, B = np.ones((64, 256), NAMES["e4m3"]), np.ones((128, 256), NAMES["e4m3"]).T
ONE, HALF, ROWS = np.ones(1, np.float32), np.ones((64, 256), np.float16), np.array([64], np.int32)
REFUSED = {
    "shapes of scales": (
        lambda: scaled_gemm(A, B, np.ones((64, 3), np.float32), ONE),
        "`scale_a` has the shape (64, 3) and `scale_b` (1,)",
        "pass one number for each tensor; (64, 1) and (1, 128) for rows and columns; or (64, 2) and (2, 1) for blocks "
        "of 128",
    ),
    "shapes of scales of masked groups": (
        lambda: scaled_gemm_masked(A[None], B[None], ROWS, np.ones((64, 1), np.float32), np.ones((1, 1, 128), np.float32)),
        "`scale_a` has the shape (64, 1) and `scale_b` (1, 1, 128)",
        "pass one number for each tensor; (1, 64, 1) and (1, 1, 128) for rows and columns; or (1, 64, 2) and "
        "(1, 2, 1) for blocks of 128",
    ),
    "a single matrix of masked groups": (
        lambda: scaled_gemm_masked(A, B[None], ROWS, ONE, ONE),
        "`a` has the shape (64, 256); it has 3 dimensions",
        "pass `a` of (groups, M, K)",
    ),
    "types of scales": (
        lambda: scaled_gemm(A, B, ONE.astype(np.float64), ONE),
        "`scale_a` is float64; it takes float32",
        "convert it",
    ),
    "a scale that is a number": (
        lambda: scaled_gemm(A, B, 0.5, ONE),
        "`scale_a` is 0.5, a number; the kernel reads scales in memory",
        "pass np.full(1, 0.5, np.float32), or such an array on the GPU of the matrices",
    ),
    "a scale that is a number of numpy": (
        lambda: scaled_gemm_ragged(A, B[None], ROWS, ONE, np.float32(2)),
        "`scale_b` is 2.0, a number; the kernel reads scales in memory",
        "pass np.full(1, 2.0, np.float32), or such an array on the GPU of the matrices",
    ),
    "scales of columns with gaps": (
        lambda: scaled_gemm(A, B, np.ones((64, 1), np.float32), np.ones((1, 256), np.float32)[:, ::2]),
        "`scale_b` has strides of (256, 2) elements; scales of columns lie side by side",
        "make a contiguous copy of it",
    ),
    "scales of gathered rows behind each other": (
        lambda: scaled_gemm_ragged(
            A, B[None], ROWS, np.ones((2, 64), np.float32).T, np.ones((1, 2, 1), np.float32),
            rows=np.zeros(64, np.int32),
        ),
        "`rows` gathers rows of `scale_a`, which has strides of (1, 64) elements: they do not lie without gaps",
        "make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
    ),
    "scattered rows of no output": (
        lambda: scaled_gemm_ragged(A, B[None], ROWS, ONE, ONE, out_rows=np.zeros(64, np.int32)),
        "`out_rows` says which rows of `out` are written, and `out` is not given",
        "pass `out`",
    ),
    "types": (
        lambda: scaled_gemm(HALF, HALF.T, ONE, ONE),
        "`a` and `b` are float16; scales are of float8_e4m3fn or float8_e5m2 matrices",
        "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)",
    ),
    "batches": (
        lambda: scaled_gemm(A[None], B[None], ONE, ONE),
        "`a` and `b` are batches of 1 matrices; scaled_gemm multiplies single ones",
        "call scaled_gemm for each of them, or scaled_gemm_ragged for groups of rows",
    ),
    "columns of out": (
        lambda: scaled_gemm(A, B, ONE, ONE, out=np.zeros((128, 64), np.float32).T),
        "`out` is column-major; scaled_gemm writes rows",
        "make a row-major output",
    ),
    "a wide tile": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 2), np.float32), np.ones((2, 1), np.float32),
            config=GemmConfig((128, 224, 128), stages=2, atom="wgmma"),
        ),
        "tile is (128, 224, 128); with scales of blocks its N is 192 at most, or 256, of which each half is multiplied "
        "alone: a thread has products beside the sums of the tile",
        "take a narrower tile",
    ),
    "transposed sums": (
        lambda: scaled_gemm(
            A, B, np.ones((64, 1), np.float32), np.ones((1, 128), np.float32),
            config=GemmConfig((64, 64, 128), stages=2, atom="wgmma", swap_ab=True),
        ),
        "`config` has swap_ab=True; scales of rows are multiplied to sums that are not transposed",
        "leave swap_ab out, or pass one scale of each tensor",
    ),
    "an atom": (
        lambda: scaled_gemm(A, B, ONE, ONE, config=GemmConfig()),
        "`config` has atom=''; scaled 8-bit floats are multiplied by wgmma, on sm_90a",
        'pass a GemmConfig with atom="wgmma", or none',
    ),
    "rows of b": (
        lambda: scaled_gemm(A, np.ascontiguousarray(B), ONE, ONE, config=LOW),
        "`b` is not contiguous along K; of float8_e4m3fn wgmma reads matrices that are",
        "pass a row-major `a` and a column-major `b`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    run, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        run()
    assert (caught.value.message, caught.value.help) == (message, help)


def test_another_gpu():
    with pd.config.using(arch="sm_90"), pytest.raises(pd.LaunchError) as caught:
        scaled_gemm(A, B, ONE, ONE)
    assert caught.value.message == (
        "`a` and `b` are float8_e4m3fn, multiplied with scales on sm_90a; the kernel is for sm_90"
    )
    assert caught.value.help == "on the emulator, PTXDSL_ARCH=sm_90a says that it is such a GPU"


SHIPPED = [(False, tile, f32, scaling) for tile in ((128, 192), (64, 128)) for scaling in ("rows", "blocks")]
SHIPPED += [(groups, (128, n), bf16, "blocks") for groups in (False, True) for n in (192, 256)]
SHIPPED += [(groups, (128, n), f32, "blocks") for groups, n in ((True, 128), (False, 256), (True, 256))]
SHIPPED += [("gathered", (128, n), bf16, scaling) for n, scaling in ((192, "rows"), (192, "blocks"), (256, "blocks"))]


@pytest.mark.parametrize("is_ragged, tile, output, scaling", SHIPPED)
def test_kernels_spill_nothing(is_ragged, tile, output, scaling):
    batches, gathers = "strided" if is_ragged else "none", is_ragged == "gathered"
    operands = Operands(e4m3, output, batches=batches, out_boxes=output is bf16, a_gathered=gathers)
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 128), 3), operands, AHEAD if is_ragged else Strips())
    try:
        kernel = scaled_ragged_kernel if is_ragged else scaled_kernel
        resources = kernel.resources("sm_90a", traits=traits, scaling=scaling)
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0
