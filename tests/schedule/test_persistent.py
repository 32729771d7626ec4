"""The persistent schedulers of sm_90 against CUTLASS's numbers, and that ours drop no tile."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.schedule import GroupScheduler, PersistentScheduler
from tests.schedule.vectors import load, tuples

STATIC, GROUPS = load("swizzle_sm90_static"), load("grouped_sm90")
AXES = {"AlongM": "m", "AlongN": "n", "Heuristic": "heuristic"}


def scheduler(row, kind):
    return kind(tuple(row["cluster"]), row["max_swizzle_size"], AXES[row["raster_option"]])


def static_id(row):
    sizes = "x".join(map(str, row["problem_mnl"] + row["cluster"]))
    return f"{sizes}-{row['sm_count']}-{row['max_swizzle_size']}-{row['raster_option']}"


@pytest.mark.parametrize("row", STATIC, ids=static_id)
def test_the_static_scheduler_is_that_of_cutlass(row):
    m, n, batches = row["problem_mnl"]
    chosen = scheduler(row, PersistentScheduler)
    plan = chosen.plan((m, n, 1), row["tile"], row["sm_count"], batches=batches)
    assert plan.raster.along == AXES[row["raster_used"]]
    assert plan.raster.log == row["log_swizzle"]
    assert [*plan.raster.clusters, batches] == row["padded_clusters"]
    assert plan.items == row["blocks_per_problem"]
    assert plan.grid == tuple(row["grid"])
    coverage = plan.coverage()
    assert (len(coverage.tiles), len(coverage.no_op_blocks)) == (row["covered"], row["phantom"])
    assert not coverage.missing and not coverage.repeated
    for item, tile in enumerate(row.get("linear_to_mnl", [])):
        assert plan.tile(item) == tuple(tile)


@pytest.mark.parametrize("cluster, blocks", [((1, 1), 132), ((2, 1), 132), ((2, 2), 116), ((4, 2), 112), ((2, 4), 112)])
def test_how_many_blocks_fit_in_whole_clusters(cluster, blocks):
    assert PersistentScheduler(cluster).resident_blocks(132) == blocks
    assert PersistentScheduler(cluster).resident_blocks(132, max_active_clusters=5) == 5 * prod(cluster)


schedulers = {
    "cluster": st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]),
    "max_swizzle": st.sampled_from([1, 2, 4, 8]),
    "raster": st.sampled_from(["m", "n"]),
}


@given(st.builds(PersistentScheduler, **schedulers), st.integers(0, 20), st.integers(0, 20), st.integers(1, 3))
def test_persistent_blocks_together_do_every_tile_once(chosen, rows, columns, batches):
    plan = chosen.plan((rows, columns, 1), (1, 1), 16, batches=batches)
    done = [tile for block in range(prod(plan.grid)) for tile in plan.tiles(block)]
    assert sorted(done) == [(m, n, b) for m in range(rows) for n in range(columns) for b in range(batches)]


def group_plan(row):
    return scheduler(row, GroupScheduler).group(row["groups"], row["tile"], row["sm_count"])


@pytest.mark.parametrize("row", GROUPS, ids=lambda row: row["label"].replace(" ", "-"))
def test_the_group_scheduler_is_that_of_cutlass_where_that_is_sound(row):
    plan = group_plan(row)
    tiles = [tile for block in range(prod(plan.grid)) for tile in plan.tiles(block)]
    assert len(tiles) == len(set(tiles)) == row["real_tiles"]
    assert plan.grid == tuple(row["grid"])
    if not row["missing_tiles"]:
        assert plan.items == row["real_tiles"] + row["phantom_work_items"]
    for block in row.get("schedule", []):
        mine = plan.tiles(tuple(block["block"]))
        theirs = [work for work in tuples(block["work"]) if real(work, plan)]
        assert mine == theirs


def real(work, plan):
    group, m, n = work
    return m < plan.tiled[group].m and n < plan.tiled[group].n


def test_the_tiles_that_cutlass_drops():
    dropping = [row for row in GROUPS if row["missing_tiles"]]
    assert [row["missing_tiles"] for row in dropping] == [34]
    (row,) = dropping
    plan = group_plan(row)
    done = {tile for block in range(prod(plan.grid)) for tile in plan.tiles(block)}
    assert set(tuples(row["missing"])) <= done


@given(
    st.builds(GroupScheduler, **schedulers),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.just(1)), max_size=8),
)
def test_a_group_loses_no_tile(chosen, problems):
    plan = chosen.group(problems, (1, 1), 16)
    done = [tile for block in range(prod(plan.grid)) for tile in plan.tiles(block)]
    assert sorted(done) == [
        (g, m, n) for g, (rows, columns, _) in enumerate(problems) for m in range(rows) for n in range(columns)
    ]
