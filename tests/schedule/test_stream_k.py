"""Stream-K against CUTLASS's numbers, and that every K-iteration of every tile is done once."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.schedule import StreamKPlan, StreamKThreadblockSwizzle, TiledShape
from tests.schedule.vectors import load, tuples

ROWS = load("swizzle_streamk")
# CUTLASS's name: ours
FIELDS = {
    "tiles": "tiles",
    "iters_per_tile": "iterations",
    "dp_tiles": "dp_tiles",
    "sk_tiles": "sk_tiles",
    "sk_waves": "sk_waves",
    "dp_blocks": "dp_blocks",
    "dp_first_wave_tiles": "first_wave_tiles",
    "reduction_blocks": "reduction_blocks",
    "remap_block_indices": "interleaved",
    "cohort_raster": "cohorts",
    "active_blocks": "active_blocks",
}
# Divisors in the kernel: where there are no stream-K blocks, CUTLASS has 0 and we have 1
DIVISORS = {
    "sk_regions": "regions",
    "sk_blocks_per_region": "blocks_per_region",
    "sk_iters_per_normal_block": "iterations_per_block",
    "sk_iters_per_region": "iterations_per_region",
}


def row_id(row):
    return f"{'x'.join(map(str, row['problem']))}-{row['device_sms']}x{row['sm_occupancy']}-{row['split_or_batch']}"


def planned(row):
    made = StreamKThreadblockSwizzle(row["device_sms"], row["sm_occupancy"], row["avail_sms"], row["acc_fragments"])
    count = {"batched": "batches", "gemm": "split_k"}[row["mode"]]
    return made.plan(row["problem"], row["tile"], **{count: row["split_or_batch"]})


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_the_parameters_are_those_of_cutlass(row):
    plan = planned(row)
    assert {name: getattr(plan, ours) for name, ours in FIELDS.items()} == {name: row[name] for name in FIELDS}
    divisors = {name: getattr(plan.numbers, ours) for name, ours in DIVISORS.items()}
    assert divisors == {name: max(1, row[name]) for name in DIVISORS}
    assert plan.numbers.big_blocks_per_region == row["sk_big_blocks_per_region"]
    assert plan.tiled == tuple(row["tiled_shape"])
    assert plan.grid == tuple(row["grid"])
    assert plan.swizzle.grid_shape(plan) == plan.grid


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_every_iteration_is_done_once(row):
    plan = planned(row)
    coverage = plan.coverage()
    assert not coverage.missing and not coverage.repeated
    assert len(coverage.tiles) == row["tiles"] * row["iters_per_tile"]
    assert len(coverage.no_op_blocks) == row["dp_exit_ctas"] + row["padding_ctas"]


@pytest.mark.parametrize("row", [row for row in ROWS if "schedule" in row], ids=row_id)
def test_the_schedule_of_each_block_is_that_of_cutlass(row):
    plan = planned(row)
    for block in row["schedule"]:
        assert plan.mapped(block["block"]) == block["mapped"]
        assert plan.role(block["block"]) == block["role"]
        assert plan.work(block["block"]) == list(tuples(block["work"]))


problems = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 40))
gpus = st.builds(StreamKThreadblockSwizzle, st.integers(1, 12), st.integers(1, 3))


@given(problems, gpus)
def test_every_iteration_of_any_problem_is_done_once(problem, swizzle):
    coverage = swizzle.coverage(problem, (1, 1, 1))
    assert not coverage.missing and not coverage.repeated
    assert len(coverage.tiles) == prod(problem)


@given(problems, gpus)
def test_the_peers_of_a_tile_are_the_blocks_that_compute_a_part_of_it(problem, swizzle):
    plan = swizzle.plan(problem, (1, 1, 1))
    of_tile = {plan.tile_offset(tile): set() for tile in range(plan.sk_tiles)}
    for block in range(plan.grid[0]):
        for m, n, _, _ in plan.work(block) if plan.role(block) == "sk" else []:
            of_tile[m, n].add(plan.mapped(block))
    assert [set(plan.peers(tile)) for tile in range(plan.sk_tiles)] == list(of_tile.values())


@given(problems, gpus)
def test_stream_k_is_never_longer_than_whole_tiles(problem, swizzle):
    plan = swizzle.plan(problem, (1, 1, 1))
    whole = -(-plan.tiles // swizzle.free) * plan.iterations
    alone = StreamKThreadblockSwizzle(swizzle.multiprocessors).plan(problem, (1, 1, 1))
    assert alone.timeline().longest <= whole


def test_each_fragment_of_a_shared_tile_has_one_reduction_block():
    plan = planned(next(row for row in ROWS if row["remap_block_indices"]))
    reduced = [plan.reduction(block) for block in range(plan.grid[0]) if plan.role(block) == "reduction"]
    assert sorted(reduced) == [(tile, fragment) for tile in range(plan.sk_tiles) for fragment in range(8)]


@pytest.mark.parametrize("rows, columns, cohorts", [(32, 32, True), (33, 33, False), (32, 29, True)])
def test_tiles_go_in_cohorts_where_few_of_their_blocks_are_idle(rows, columns, cohorts):
    plan = StreamKThreadblockSwizzle(1).plan((rows, columns, 8), (1, 1, 1))
    assert plan.cohorts == cohorts
    coverage = plan.coverage()
    assert not coverage.missing and not coverage.repeated


@pytest.mark.parametrize(
    "columns, sk_tiles, fill", [(31, 32, True), (31, 258, False), (33, 258, False), (64, 258, True)]
)
def test_stream_k_tiles_stay_in_whole_cohorts(columns, sk_tiles, fill):
    swizzle = StreamKThreadblockSwizzle(132)
    plan = StreamKPlan(swizzle, TiledShape(64, columns, 1), 16, sk_tiles, 132, 64 * columns - sk_tiles)
    assert plan._sk_tiles_fill_cohorts() == fill


def test_the_first_wave_takes_more_tiles_where_that_makes_whole_wavesets():
    """One stream-K wave and three waves of tiles are one more than a waveset of three: four blocks take two tiles."""
    plan = StreamKThreadblockSwizzle(4, 3).plan((3, 6, 16), (1, 1, 1))
    assert (plan.sk_waves, plan.dp_tiles, plan.dp_blocks, plan.first_wave_tiles) == (1, 12, 8, 2)
    whole = [block for block in range(plan.grid[0]) if plan.role(block) == "dp"]
    assert [len(plan.work(block)) for block in whole] == [2] * 4 + [1] * 4
    coverage = plan.coverage()
    assert not coverage.missing and not coverage.repeated


@given(problems, gpus)
def test_an_iteration_belongs_to_the_block_whose_extent_has_it(problem, swizzle):
    plan = swizzle.plan(problem, (1, 1, 1))
    for block in range(plan.sk_blocks):
        begin, end = plan.extent(block)
        assert {plan.numbers.block_of(iteration) for iteration in (begin, (begin + end) // 2, end - 1)} == {block}


@given(problems, gpus)
def test_the_peers_of_a_tile_are_the_blocks_that_compute_parts_of_it(problem, swizzle):
    plan = swizzle.plan(problem, (1, 1, 1))
    parts = {}
    for block in range(plan.grid[0]):
        if plan.role(block) == "sk":
            for m, n, *_ in plan.work(block):
                parts.setdefault((m, n), set()).add(plan.mapped(block))
    assert {plan.tile_offset(tile): set(plan.peers(tile)) for tile in range(plan.sk_tiles)} == parts


@given(problems, gpus)
def test_a_tile_is_ended_by_the_last_of_its_peers_and_left_by_all_others_first(problem, swizzle):
    """So that a block waits only for what others do first, and for none that waits for it."""
    plan = swizzle.plan(problem, (1, 1, 1))
    works = {plan.mapped(b): plan.work(b) for b in range(plan.grid[0]) if plan.role(b) == "sk"}
    for tile in range(plan.sk_tiles):
        *others, last = plan.peers(tile)
        assert next(work for work in works[last] if work[:2] == plan.tile_offset(tile)).k_end == plan.iterations
        for other in others:
            assert works[other][0][:2] == plan.tile_offset(tile)
