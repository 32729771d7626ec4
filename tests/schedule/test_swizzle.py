"""Threadblock swizzles against CUTLASS's numbers, and the laws that each of them keeps."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl import schedule
from ptxdsl.errors import ScheduleError
from ptxdsl.schedule import Conv2dProblem, Conv3dProblem, TiledShape, slice_of_k
from tests.schedule.vectors import load

GEMM, CONV, GEMV = load("swizzle_gemm"), load("swizzle_conv"), load("swizzle_gemv")
# 65536 and 65539 batches: CUTLASS computes 0 and 3 of them.
TRUNCATED = [row for row in GEMM if row["split_or_batch"] > 65535]
# The tiled shape alone gives another strip than the grid has: CUTLASS misses tiles.
UNSOUND = [row for row in GEMM if row["covered"] < row["tiles"]]
SOUND = [row for row in GEMM if row not in UNSOUND and row not in TRUNCATED]


def named(name, n=0):
    """Our swizzle for a CUTLASS class name."""
    name = name.removeprefix("Gemm").replace("ThreadblockSwizzleNoPadding", "NoPaddingThreadblockSwizzle")
    name = name.replace("GemvBatchedStridedThreadblockDefaultSwizzle", "GemvBatchedStridedThreadblockSwizzle")
    name = name.replace("DepthwiseDirect2dConvIdentity", "Depthwise")
    made = getattr(schedule, name)
    return made(n) if n else made()


def row_id(row):
    problem = row["problem"] if isinstance(row["problem"], list) else row["problem"].values()
    return f"{row['swizzle'][:24]}{row.get('N', '')}-{'x'.join(map(str, problem)).replace(' ', '')}"[:70]


@pytest.mark.parametrize("row", SOUND, ids=row_id)
def test_gemm_swizzles_are_those_of_cutlass(row):
    swizzle = named(row["swizzle"], row["N"])
    tiled = swizzle.tiled_shape(row["problem"], row["tile"], row["split_or_batch"])
    assert tiled == tuple(row["tiled_shape"])
    assert swizzle.log_tile(tiled) == row["log_tile"]
    assert swizzle.grid_shape(tiled) == tuple(row["grid"])
    how = {"log_tile": row["log_tile"]} if row["overload"] == "log_tile" else {"tiled_shape": tiled}
    for block, tile in row["block_to_tile"]:
        assert swizzle.tile_offset(tuple(block), **how) == tuple(tile)
    coverage = swizzle.coverage(row["problem"], row["tile"], row["split_or_batch"])
    assert (len(coverage.tiles), len(coverage.no_op_blocks)) == (row["covered"], row["noop_ctas"])
    assert not coverage.missing and not coverage.repeated
    assert prod(swizzle.grid_shape(tiled)) == row["ctas"]


@pytest.mark.parametrize("row", UNSOUND, ids=row_id)
def test_a_tiled_shape_that_would_miss_tiles_is_refused(row):
    swizzle = named(row["swizzle"], row["N"])
    tiled = swizzle.tiled_shape(row["problem"], row["tile"])
    assert (tiled, swizzle.grid_shape(tiled)) == (tuple(row["tiled_shape"]), tuple(row["grid"]))
    with pytest.raises(ScheduleError, match="would miss"):
        swizzle.tile_offset((0, 0, 0), tiled_shape=tiled)
    assert not swizzle.coverage(row["problem"], row["tile"]).missing


def cutlass_tiled_shape_form(n, tiled, x, y):
    """What CUTLASS computes from the tiled shape, sound or not."""
    return (x, y) if tiled[0] < n or tiled[1] < n else (x // n, y * n + x % n)


@given(st.integers(1, 16), st.integers(1, 20), st.integers(1, 20))
def test_a_tiled_shape_is_refused_exactly_where_cutlass_misses_tiles(n, rows, columns):
    swizzle, tiled = schedule.IdentityThreadblockSwizzle(n), TiledShape(rows, columns, 1)
    width, height, _ = swizzle.grid_shape(tiled)
    blocks = [(x, y) for y in range(height) for x in range(width)]
    theirs = [cutlass_tiled_shape_form(n, tiled, x, y) for x, y in blocks]
    if len({(i, j) for i, j in theirs if i < rows and j < columns}) < rows * columns:
        with pytest.raises(ScheduleError):
            swizzle.tile_offset((0, 0, 0), tiled_shape=tiled)
    else:
        assert [swizzle.tile_offset(block, tiled_shape=tiled)[:2] for block in blocks] == theirs


@pytest.mark.parametrize("row", TRUNCATED, ids=row_id)
def test_batches_past_65535_are_all_computed(row):
    swizzle = named(row["swizzle"])
    tiled = swizzle.tiled_shape(row["problem"], row["tile"], row["split_or_batch"])
    assert tiled.k == row["split_or_batch"]
    assert max(swizzle.grid_shape(tiled)[1:]) <= 65535
    coverage = swizzle.coverage(row["problem"], row["tile"], row["split_or_batch"])
    assert len(coverage.tiles) == row["split_or_batch"] and not coverage.missing and not coverage.repeated


def conv(row):
    return {"conv2d": Conv2dProblem, "conv3d": Conv3dProblem}[row["kind"]](**row["problem"])


@pytest.mark.parametrize("row", CONV, ids=row_id)
def test_convolutions_are_those_of_cutlass(row):
    problem, swizzle = conv(row), named(row["swizzle"], row["swizzle_N"])
    assert problem.implicit_gemm(row["op"]) == tuple(row["implicit_gemm"])
    tiled = swizzle.tiled_shape(problem, row["tile"], op=row["op"])
    assert tiled == tuple(row["tiled_shape"])
    assert (swizzle.log_tile(tiled), swizzle.grid_shape(tiled)) == (row["log_tile"], tuple(row["grid"]))
    assert problem.k_iterations(row["op"], row["tile"][2]) == row["gemm_k_iterations_analytic"]
    if row["kind"] == "conv2d":
        assert problem.strided_dgrad_rows(row["tile"][0]) == row["strided_dgrad_tile_m_per_filter"]
    coverage = swizzle.coverage(problem, row["tile"], op=row["op"])
    assert len(coverage.tiles) == prod(tiled) and not coverage.missing and not coverage.repeated


@pytest.mark.parametrize("row", GEMV, ids=lambda row: "x".join(map(str, row["problem_mnkb"])))
def test_batched_gemv_is_that_of_cutlass(row):
    swizzle = named(row["swizzle"])
    tiled = swizzle.tiled_shape(row["problem_mnkb"], row["tile_mnkb"])
    assert tiled == tuple(row["tiled_mnkb"])
    assert swizzle.grid_shape(tiled) == tuple(row["grid"])
    for sample in row["samples"]:
        offset = swizzle.tile_offset(tuple(sample["block"]))
        assert offset == tuple(sample["tile_mnkb"]) and offset.batch == sample["batch_tile_idx"]
        batch = swizzle.batch(sample["block"][1], thread_y=2, threads_y=4)
        assert batch == sample["batch_idx_with_blockDim.y=4_threadIdx.y=2"]
    coverage = swizzle.coverage(row["problem_mnkb"], row["tile_mnkb"])
    assert len(coverage.tiles) == prod(tiled) and not coverage.missing and not coverage.repeated


SWIZZLES = [
    *(made(n) for n in (1, 2, 3, 4, 8, 16) for made in (
        schedule.IdentityThreadblockSwizzle,
        schedule.IdentityNoPaddingThreadblockSwizzle,
        schedule.SplitKIdentityThreadblockSwizzle,
    )),
    schedule.HorizontalThreadblockSwizzle(),
    schedule.SplitKHorizontalThreadblockSwizzle(),
    schedule.BatchedIdentityThreadblockSwizzle(),
]  # fmt: skip


@given(st.sampled_from(SWIZZLES), st.integers(0, 25), st.integers(0, 25), st.integers(1, 4))
def test_no_tile_is_missed_or_done_twice(swizzle, rows, columns, slices):
    """The map from the grid is onto the tiles, one to one where it meets them; the other blocks have nothing to do."""
    tiles, missing, repeated, no_op_blocks = swizzle.coverage((rows, columns, 5), (1, 1, 1), slices)
    assert not missing and not repeated
    assert len(set(tiles)) == rows * columns * slices
    grid = swizzle.grid_shape(swizzle.tiled_shape((rows, columns, 5), (1, 1, 1), slices))
    assert len(set(no_op_blocks)) == prod(grid) - len(tiles)


@given(st.sampled_from(SWIZZLES), st.integers(1, 25), st.integers(1, 25))
def test_arrays_give_what_ints_give(swizzle, rows, columns):
    tiled = TiledShape(rows, columns, 2)
    log, grid = swizzle.log_tile(tiled), swizzle.grid_shape(tiled)
    x, y, z = np.indices(grid)
    m, n, k = np.broadcast_arrays(*swizzle.tile_offset((x, y, z), log_tile=log))
    for block in ((0, 0, 0), tuple(extent - 1 for extent in grid), tuple(extent // 2 for extent in grid)):
        assert swizzle.tile_offset(block, log_tile=log) == (m[block], n[block], k[block])


def test_the_shapes_of_many_problems_at_once():
    swizzle, sizes = schedule.IdentityThreadblockSwizzle(8), np.arange(1, 2000, 7)
    tiled = swizzle.tiled_shape((sizes, sizes[::-1], 64), (128, 64, 32))
    grids = np.stack(np.broadcast_arrays(*swizzle.grid_shape(tiled)), axis=1)
    for i in range(len(sizes)):
        one = swizzle.tiled_shape((int(sizes[i]), int(sizes[::-1][i]), 64), (128, 64, 32))
        assert swizzle.grid_shape(one) == tuple(grids[i])


def test_what_a_wide_strip_costs():
    """9 tiles along n in strips of 8: 14 of 32 blocks are idle."""
    wide = schedule.IdentityThreadblockSwizzle(8).coverage((2, 9, 1), (1, 1, 1))
    assert (len(wide.no_op_blocks), len(wide.tiles)) == (14, 18)
    exact = schedule.IdentityNoPaddingThreadblockSwizzle(8).coverage((2, 9, 1), (1, 1, 1))
    assert exact.no_op_blocks == []


def test_swizzles_are_values():
    assert schedule.IdentityThreadblockSwizzle(4) == schedule.IdentityThreadblockSwizzle(4)
    assert len({*SWIZZLES, *SWIZZLES}) == len(SWIZZLES)


def test_the_output_of_a_dilated_window_is_the_textbook_one():
    problem = Conv2dProblem(1, 17, 19, 48, 40, 5, 3, pad=(2, 1), dilation=(2, 2))
    assert (problem.P, problem.Q) == (13, 17)


def test_padding_may_differ_before_and_after():
    problem = Conv2dProblem(2, 10, 10, 8, 8, 3, 3, pad=((0, 1), (2, 0)), stride=(2, 1))
    assert (problem.P, problem.Q) == (5, 10)


def test_a_strided_dgrad_starts_where_a_filter_place_first_lands():
    for stride, pad in product(range(1, 5), range(6)):
        problem = Conv2dProblem(1, 20, 20, 8, 8, 7, 7, pad=(pad, 0), stride=(stride, 1))
        for r in range(7):
            first = next(h for h in range(20) if (h + pad - r) % stride == 0)
            assert problem.strided_dgrad_start(r, 0) == (first, 0)


@given(st.integers(1, 9), st.integers(0, 300), st.sampled_from([16, 32, 64]))
def test_slices_of_k_follow_each_other_and_none_is_longer_than_needed(slices, k, tile_k):
    parts = [slice_of_k(number, slices, k, tile_k) for number in range(slices)]
    assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == -(-k // tile_k)
    assert max(end - begin for begin, end in parts) == -(-parts[-1][1] // slices)
