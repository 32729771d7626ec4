"""The visitor of grouped problems: CUTLASS's schedules and tables, every tile once, and balanced loads."""

from heapq import heapify, heapreplace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.schedule import GroupedProblemVisitor, TriangularProblemVisitor, tile_of
from ptxdsl.schedule.grouped import _deal_longest_first, _deal_one_by_one, _triangle_row
from tests.schedule.vectors import load, tuples

VISITOR, BALANCE = load("grouped_visitor"), load("grouped_balance")
GEMM = [row for row in VISITOR if row["kind"] == "gemm"]
RANK2K = [row for row in VISITOR if row["kind"] == "rank2k"]
ARTICLE = GEMM[0]


def label(row):
    return row["label"].replace(" ", "-")[:30]


def visitor(row, **options):
    return GroupedProblemVisitor(row["problems"], row["threadblock"], row["blocks"], **options)


@pytest.mark.parametrize("mode", ["device", "host"])
@pytest.mark.parametrize("row", GEMM, ids=label)
def test_the_schedule_is_that_of_cutlass(row, mode):
    made = visitor(row, mode=mode)
    assert made.total == row["total_tiles"]
    assert made.load.tolist() == row["k_iters_per_block"]
    for block, work in enumerate(row["schedule"]):
        assert made.tiles(block) == list(tuples(work))


@pytest.mark.parametrize("row", GEMM, ids=label)
def test_the_table_is_that_of_cutlass(row):
    made = visitor(row, mode="host")
    assert made.table.tolist() == row["host_precompute"]
    assert made.table.shape[1] == row["entries_per_block"]
    assert made.workspace_bytes == row["workspace_bytes"]
    assert visitor(row).workspace_bytes == 0


@pytest.mark.parametrize("row", RANK2K, ids=label)
def test_triangles_are_those_of_cutlass(row):
    made = TriangularProblemVisitor(row["problems"], row["threadblock"], row["blocks"], triangle=row["fill"])
    assert made.total == row["total_tiles"]
    assert made._counts.tolist() == row["tiles_per_problem"]
    for block, work in enumerate(row["schedule"]):
        assert made.tiles(block) == list(tuples(work))


def test_rows_of_a_triangle_are_exact_up_to_the_last_tile():
    rows = np.arange(65535)
    assert (_triangle_row(rows * (rows + 1) // 2) == rows).all()
    assert (_triangle_row(rows * (rows + 1) // 2 + rows) == rows).all()


@given(st.integers(1, 400), st.sampled_from([(32, 32), (64, 32), (32, 64), (16, 64)]), st.integers(1, 7))
def test_a_triangle_has_all_its_tiles_once(n, tile, blocks):
    made = {
        triangle: TriangularProblemVisitor([(n, n, 8)], (*tile, 8), blocks, triangle=triangle)
        for triangle in ("lower", "upper")
    }
    rows, columns = -(-n // tile[0]), -(-n // tile[1])
    side = max(tile)
    for triangle, one in made.items():
        done = [(m, n_) for block in range(blocks) for _, _, m, n_ in one.tiles(block)]
        assert len(done) == len(set(done))
        square = [(m * tile[0] // side, c * tile[1] // side) for m in range(rows) for c in range(columns)]
        needed = {
            (m, c)
            for (m, c), (i, j) in zip(((m, c) for m in range(rows) for c in range(columns)), square, strict=True)
            if (i >= j if triangle == "lower" else i <= j)
        }
        assert {(m, c) for m, c in done if m < rows and c < columns} == needed


def random_problems(rng, most=12, largest=300):
    """Up to `most` problems; a third of the sizes are 0 or 1."""
    shapes = rng.integers(0, largest, (rng.integers(0, most + 1), 3))
    return np.where(rng.random(shapes.shape) < 0.3, rng.integers(0, 2, shapes.shape), shapes)


OPTIONS = [
    {},
    {"sort": True},
    {"mode": "host"},
    {"mode": "host", "sort": True},
    {"mode": "host", "balance": "k"},
]


@pytest.mark.exhaustive
def test_every_tile_is_done_once_for_10000_random_lists(rng):
    for trial in range(10_000):
        problems, blocks = random_problems(rng), int(rng.integers(1, 20))
        tile = tuple(rng.integers(8, 129, 3).tolist())
        made = GroupedProblemVisitor(problems, tile, blocks, **OPTIONS[trial % len(OPTIONS)])
        check_each_iteration_is_done_once(made, problems, tile)


def check_each_iteration_is_done_once(made, problems, tile):
    """The parts of each tile, in order, go on where the one before ended, from 0 to the whole of K."""
    m, n, k = (-(-problems // tile)).T
    block, problem, number, begin, end = made.work
    assert ((block >= 0) & (block < made.blocks)).all()
    counts = m * n
    first = (counts.cumsum() - counts)[problem] + number
    assert ((number >= 0) & (number < counts[problem])).all()
    order = np.lexsort((begin, first))
    first, begin, end, whole = first[order], begin[order], end[order], k[problem][order]
    starts = np.flatnonzero(np.r_[True, first[1:] != first[:-1]]) if len(first) else np.arange(0)
    assert first[starts].tolist() == list(range(counts.sum()))
    assert (begin[starts] == 0).all()
    follow = np.setdiff1d(np.arange(len(first)), starts)
    assert (begin[follow] == end[follow - 1]).all() and (begin[follow] < end[follow]).all()
    last = np.r_[starts[1:], len(first)][: len(starts)] - 1
    assert (end[last] == whole[last]).all()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_work_of_a_block_is_its_tiles(options, rng):
    for _ in range(20):
        problems = random_problems(rng)
        made = GroupedProblemVisitor(problems, (64, 48, 32), 5, **options)
        m, n = tile_of(made.work.tile, -(-problems[:, 1] // 48)[made.work.problem])
        rows = np.stack([*made.work[:3], m, n], axis=1).tolist()
        assert [[block, *tile] for block in range(5) for tile in made.tiles(block)] == rows


def test_longest_k_first_keeps_the_order_of_equals_and_the_callers_numbers():
    problems = [(1, 1, 8), (1, 1, 9), (0, 1, 99), (1, 1, 8), (1, 1, 9)]
    made = GroupedProblemVisitor(problems, (1, 1, 1), 1, sort=True)
    assert [tile.problem for tile in made.tiles(0)] == [1, 4, 0, 3]


def test_many_problems_of_one_k_stay_in_order():
    made = GroupedProblemVisitor([(1, 1, 8 + i % 2) for i in range(100)], (1, 1, 1), 1, sort=True)
    assert [tile.problem for tile in made.tiles(0)] == [*range(1, 100, 2), *range(0, 100, 2)]


def test_no_tile_is_cut_into_crumbs():
    made = GroupedProblemVisitor([(1, 1, 30)], (1, 1, 1), 132, mode="host", balance="k")
    assert sorted((made.work.k_end - made.work.k_begin).tolist()) == [3, 3, 4, 4, 4, 4, 4, 4]


def longest_first(lengths, blocks):
    """The makespan of whole tiles, the longest first, each to the block with the least load."""
    loads = [0] * blocks
    heapify(loads)
    for length in sorted(lengths, reverse=True):
        heapreplace(loads, loads[0] + length)
    return max(loads)


@pytest.mark.parametrize("row", BALANCE, ids=label)
def test_loads_are_those_of_cutlass_and_better_with_balance(row):
    made = {
        name: GroupedProblemVisitor(row["problems"], row["tile"], row["blocks"], mode="host", **options)
        for name, options in (("unsorted", {}), ("sorted", {"sort": True}), ("balanced", {"balance": "k"}))
    }
    assert made["unsorted"].total == row["total_tiles"]
    assert made["unsorted"].load.sum() == made["balanced"].load.sum() == row["total_k_iters"]
    assert made["unsorted"].load.max() == row["round_robin_unsorted"]
    assert made["sorted"].load.max() == row["round_robin_sorted_by_K_desc"]
    work = made["unsorted"].work
    assert longest_first((work.k_end - work.k_begin).tolist(), row["blocks"]) == row["lpt_greedy"]
    assert made["balanced"].load.max() <= row["lpt_greedy"]


def test_a_tile_with_a_huge_k_is_split_and_leaves_no_block_alone():
    problems = [(128, 128, 16384), *[(256, 256, 512)] * 16]
    alone = GroupedProblemVisitor(problems, (128, 128, 32), 32, sort=True)
    split = GroupedProblemVisitor(problems, (128, 128, 32), 32, mode="host", balance="k")
    assert alone.load.max() == 544 and alone.load.mean() == 48
    assert split.load.max() == 51
    assert len(split.work.block[split.work.problem == 0]) == 11


def test_problems_without_k_are_spread_too():
    made = GroupedProblemVisitor([(64, 64, 0)], (8, 8, 8), 8, mode="host", balance="k")
    assert [len(made.tiles(block)) for block in range(8)] == [8] * 8


def test_the_table_of_parts_holds_the_work():
    problems = [(64, 64, 512), (16, 16, 64), (0, 16, 8)]
    made = GroupedProblemVisitor(problems, (32, 32, 32), 3, mode="host", balance="k")
    used = made.table[made.table[..., 0] >= 0]
    assert used.tolist() == np.stack(made.work[1:], axis=1).tolist()
    assert made.workspace_bytes == made.table.size * 4


def test_lists_of_sizes_are_problems():
    made = GroupedProblemVisitor.of_sizes([512, 256], [512, 384], [256, 1024], (128, 128, 32), 6, sort=True)
    assert made.problems.tolist() == [[512, 512, 256], [256, 384, 1024]]
    assert made.tiles(0)[0].problem == 1


def test_no_problem_is_no_work():
    for options in OPTIONS:
        made = GroupedProblemVisitor([], (128, 128, 32), 4, **options)
        assert made.total == 0 and made.tiles(3) == [] and made.table.size == 0
        assert made.load.tolist() == [0, 0, 0, 0]


def test_tiles_of_a_last_round_are_cut_for_all_blocks():
    """32 tiles more than 8 rounds of 132 blocks: without the cut, 32 blocks would do a ninth tile alone."""
    problems = [(m, 4096, 7168) for m in (512, 640, 896, 1024, 1152, 1280, 1536, 1664)]
    whole, cut = (
        GroupedProblemVisitor(problems, (128, 256, 64), 132, mode="host", **options)
        for options in ({}, {"balance": "k"})
    )
    assert whole.load.max() == 9 * 112 and cut.load.max() == 924 and cut.load.mean() > 923
    assert len(cut.work.block) == 1056 + 4 * 32


@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 9, 30]), max_size=120).map(lambda n: sorted(n, reverse=True)),
    st.integers(1, 20),
)
def test_equal_parts_are_dealt_together_as_one_by_one(lengths, blocks):
    lengths = np.array(lengths, np.int64)
    assert (_deal_longest_first(lengths, blocks) == _deal_one_by_one(np.maximum(lengths, 1), blocks)).all()


def test_strips_of_rows_go_down_the_rows_first():
    made = GroupedProblemVisitor([(5, 3, 1), (2, 2, 1)], (1, 1, 1), 1, strip=2)
    first = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2)]
    rest = [(4, 0), (4, 1), (4, 2)]
    assert [tile[2:] for tile in made.tiles(0)] == [*first, *rest, (0, 0), (1, 0), (0, 1), (1, 1)]
