"""What a ring, a role or an mbarrier that is used wrongly is told by: the full text of each finding and its mend."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from tests.tracing import source_kernel

COLUMNS = """\
tiles = x.shared(2)
ring = pd.Ring(2, {ring})
with pd.warp(4), pd.elect():
    for i in range({rounds}):
        slot = ring.acquire()
        x.load(tiles.address(slot.index, 0, 0), (i * 4, 0), slot.full)
        {commit}
with pd.warp(0, 1, 2, 3) as readers:
    for i in range(4):
        stage = ring.wait()
        {read}
        y[128 * i + readers.thread] = tiles[stage.index, 0, readers.thread]
        {release}
"""
WRITTEN = """\
tile = pd.shared(f32, (2, 32))
ring = pd.Ring(2, producers=32, consumers=32)
with pd.warp(0) as writer:
    for i in range(4):
        slot = ring.acquire()
        tile[slot.index, writer.thread] = y[writer.thread]
        {commit}
with pd.warp(1) as reader:
    for i in range(4):
        slot = ring.wait()
        y[reader.thread] = tile[slot.index, reader.thread]
        ring.release()
"""
FULL = "threads 0–127 of block (0, 0, 0) wait for slot {} of `ring` to be full (kernel.py:12): "
EMPTY = "thread 128 of block (0, 0, 0) waits for slot {} of `ring` to be empty (kernel.py:7): "


def columns(**parts):
    """A column of each of 4 boxes of (4, 128) f32, through a ring of two stages; parts are those that are wrong."""
    usual = {"ring": "stage_bytes=x.bytes, consumers=128", "rounds": 4, "commit": "ring.commit()", "read": "pass",
             "release": "ring.release()"}  # fmt: skip
    body = COLUMNS.format(**usual | parts)
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]", '(arch="sm_90a", reqntid=160)')
    return first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))


def first(kernel, block, *arguments):
    """The first finding, or None."""
    with pd.config.using(arch="sm_90a"):
        return next(iter(pd.emulate(kernel, 1, block, *arguments).findings), None)


def lines(finding):
    return finding.message.splitlines()


def test_the_ring_that_is_used_rightly():
    assert columns() is None


def test_a_ring_that_nobody_releases():
    finding = columns(release="with pd.if_(readers.thread > 500): ring.release()")
    assert lines(finding) == [
        "every thread is blocked",
        "  " + FULL.format(0) + "0 of 1 arrivals received",
        "  " + EMPTY.format(0) + "0 of 128 arrivals received",
    ]
    assert finding.help == (
        "no thread releases slot 0 of `ring` (line 4); call `ring.release()` after the last read of each stage, "
        "in all 128 threads that `consumers=` counts"
    )
    assert "\n  by " not in str(finding)


OVERRUN = "slot 0 of `ring` (line 4) was filled once and released {}, by {} threads; {} per phase{}"
RELEASES_TOO_MANY = {
    ("consumers=64", "ring.release()"): ("128 times", 128, "`consumers=` counts 64", "pass `consumers=128`, or call `ring.release()` in fewer threads"),
    ("consumers=4", "ring.release()"): ("128 times", 128, "`consumers=` counts 4", "pass `consumers=128`, or call `ring.release()` in fewer threads"),
    ("consumers=64, each='warp'", "ring.release()"):
        ("4 times", 4, "`consumers=64` counts 2", "pass `consumers=128`, or call `ring.release()` in fewer threads"),
    ("consumers=128", "ring.release(stage); ring.release(stage)"):
        ("256 times", 128, "`consumers=` counts 128", "call `ring.release()` once per phase, after the last read of the stage"),
}  # fmt: skip


@pytest.mark.parametrize(("consumers", "release"), RELEASES_TOO_MANY)
def test_a_ring_that_is_released_more_often_than_it_counts(consumers, release):
    finding = columns(ring=f"stage_bytes=x.bytes, {consumers}", release=release)
    *came, mend = RELEASES_TOO_MANY[consumers, release]
    mend = f", one of each warp; {mend}" if "warp" in consumers else f"; {mend}"
    assert finding.help == OVERRUN.format(*came, mend)


def test_a_ring_that_is_released_before_it_was_filled():
    usual = {"ring": "stage_bytes=x.bytes, consumers=128", "rounds": 4, "commit": "ring.commit()", "read": "pass"}
    body = COLUMNS.format(**usual, release="pass").replace("stage = ring.wait()", "ring.release(); stage = ring.wait()")
    body = body.replace(
        "    for i in range(4):\n        slot", "    pd.ptx.nanosleep.u32(1000)\n    for i in range(4):\n        slot"
    )
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]", '(arch="sm_90a", reqntid=160)')
    finding = first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))
    assert finding.help == (
        "slot 0 of `ring` (line 4) was filled 0 times and released 128 times, by 128 threads; `consumers=` counts 128 "
        "per phase; call `ring.release()` after `ring.wait()`, once per phase"
    )


COMMITS_TOO_MANY = (
    "slot 0 of `ring` (line 4) was empty once and committed {}, by 32 threads; `producers=` counts {} per phase; {}"
)


@pytest.mark.parametrize("producers", [16, 4])
def test_a_ring_that_is_committed_by_more_than_it_counts(producers):
    body = WRITTEN.format(commit="ring.commit()").replace("producers=32", f"producers={producers}")
    finding = first(source_kernel(body, "y: ptr[f32]", '(arch="sm_90a", reqntid=64)'), 64, np.zeros(32, np.float32))
    assert finding.help == COMMITS_TOO_MANY.format(
        "32 times", producers, "pass `producers=32`, or call `ring.commit()` in fewer threads"
    )


def test_a_ring_that_some_release():
    finding = columns(release="with pd.if_(readers.thread < 64): ring.release()")
    assert lines(finding)[2] == "  " + EMPTY.format(0) + "64 of 128 arrivals received"
    assert finding.help == (
        "only 64 of 128 threads release slot 0 of `ring` (line 4); pass `consumers=64`, or call `ring.release()` after "
        "the last read of each stage, "
        "in all 128 threads that `consumers=` counts"
    )


def test_a_ring_that_nobody_fills_any_more():
    finding = columns(rounds=3)
    assert lines(finding)[1:] == ["  " + FULL.format(1) + "0 of 1 arrivals received"]
    assert finding.help == (
        "no thread fills slot 1 of `ring` (line 4); call `ring.commit()` after the copies of each stage, as often "
        "as `ring.wait()`"
    )


def test_copies_that_nobody_commits():
    finding = columns(commit="pass")
    assert finding.message == "1 arrival where the phase of the mbarrier waits for 0 more of 1"
    assert finding.help == (
        "call `ring.commit()` after the copies of a stage of `ring` (line 4), before the next `acquire()`, and "
        "`ring.release()` once per phase in each reader; if two threads fill a stage, one of them calls "
        "`ring.acquire(leads=False)`"
    )


def test_copies_that_nobody_commits_in_two_blocks():
    """A thread of each block is one thread that fills a ring."""
    usual = {"ring": "stage_bytes=x.bytes, consumers=128", "rounds": 4, "commit": "pass", "read": "pass"}
    body = COLUMNS.format(**usual, release="ring.release()")
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]", '(arch="sm_90a", reqntid=160)')
    with pd.config.using(arch="sm_90a"):
        report = pd.emulate(kernel, 2, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))
    assert report.findings[0].count == 2
    assert report.findings[0].help == (
        "call `ring.commit()` after the copies of a stage of `ring` (line 4), before the next `acquire()`, and "
        "`ring.release()` once per phase in each reader; if two threads fill a stage, one of them calls "
        "`ring.acquire(leads=False)`"
    )


def test_a_stage_that_all_lanes_of_a_warp_fill():
    body = COLUMNS.format(ring="stage_bytes=x.bytes, consumers=128", rounds=4, commit="ring.commit()", read="pass",
                          release="ring.release()").replace(", pd.elect()", "")  # fmt: skip
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]", '(arch="sm_90a", reqntid=160)')
    finding = first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))
    assert finding.kind == "mbarrier"
    assert (
        finding.help == "one thread fills the stages of `ring` (line 4): `with pd.elect():` in a warp, around its loop"
    )


def test_a_barrier_at_which_others_do_not_come_is_named_before_the_ring():
    finding = columns(read="pd.ptx.bar.sync(1, 160)")
    assert (
        "threads 0–127 of block (0, 0, 0) wait at barrier 1, where 128 of 160 threads have arrived" in finding.message
    )
    assert (
        finding.help
        == "barrier 1 waits for 32 more threads: execute it in all of them, or count only the 128 that arrive"
    )


def test_a_stage_that_nobody_waits_for():
    body = COLUMNS.format(ring="stage_bytes=x.bytes, consumers=128", rounds=4, commit="ring.commit()", read="pass",
                          release="ring.release()")  # fmt: skip
    body = body.replace("stage = ring.wait()", "pass").replace("stage.index", "i % 2")
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]", '(arch="sm_90a", reqntid=160)')
    finding = first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))
    assert finding.kind == "unwaited-async"
    assert finding.help == "call `ring.wait()` before reading slot 0 of `ring` (line 4)"


def test_fewer_bytes_than_a_stage_waits_for():
    finding = columns(ring="stage_bytes=2 * x.bytes, consumers=128")
    assert "  " + FULL.format(0) + "1 of 1 arrivals received, 2048 bytes still pending" in lines(finding)
    assert finding.help == "the copies into slot 0 transfer 2048 bytes less than `ring` (line 4) announces for a stage"


def test_more_bytes_than_a_stage_waits_for():
    finding = columns(ring="stage_bytes=1024, consumers=128")
    assert finding.message.endswith("completes 2048 bytes at mbarriers[0], whose phase expects 1024")
    assert finding.help == (
        "`stage_bytes=1024` of `ring` (line 4) is too small: the copies into a stage transfer at least 2048 bytes"
    )


def test_a_stage_that_is_released_before_it_is_read():
    finding = columns(read="ring.release()", release="pass")
    assert finding.kind == "race"
    assert "writes tiles[0, 0, 0], read by thread (0, 0, 0) of block (0, 0, 0)" in finding.message
    assert finding.help == "line 14 reads a slot after `ring.release()`; release it after its last read"


@pytest.mark.parametrize("committed", [0, 16])
def test_writes_that_nobody_commits(committed):
    commit = f"with pd.if_(writer.thread < {committed}): ring.commit()" if committed else "pass"
    kernel = source_kernel(WRITTEN.format(commit=commit), "y: ptr[f32]", '(arch="sm_90a", reqntid=64)')
    finding = first(kernel, 64, np.zeros(32, np.float32))
    who = "only 16 of 32 threads commit" if committed else "no thread commits"
    assert (
        f"wait for slot 0 of `ring` to be full (kernel.py:12): {committed} of 32 arrivals received" in finding.message
    )
    assert finding.help == (
        f"{who} slot 0 of `ring` (line 4); call `ring.commit()` after the writes of each stage, in all 32 threads that `producers=` "
        "counts"
    )


def test_a_ring_without_a_name_is_that_of_its_line():
    body = WRITTEN.format(commit="pass").replace(
        "ring = pd.Ring(2, producers=32, consumers=32)", "ring = (lambda: pd.Ring(2, producers=32, consumers=32))()"
    )
    finding = first(source_kernel(body, "y: ptr[f32]", '(arch="sm_90a", reqntid=64)'), 64, np.zeros(32, np.float32))
    assert "slot 0 of the ring of line 4 to be full" in finding.message
    assert finding.help.startswith("no thread commits slot 0 of the ring made at line 4; call `ring.commit()` after")


ROLES = """\
tile = pd.shared(f32, 32)
with {first} as writer:
    tile[writer.thread] = y[writer.thread]
with {second} as reader:
    y[reader.thread] = tile[31 - reader.thread]
"""
MENDS = {
    ("pd.warp(0)", "pd.warp(1)"): "pd.warp(0) and pd.warp(1) share no `bar.sync`; use an mbarrier, with "
    "mbarrier.arrive after line 5 and mbarrier.try_wait before line 7",
    ("pd.warp(0)", "pd.warp(0)"): "add a `bar.warp.sync` between line 5 and line 7",
}  # fmt: skip


@pytest.mark.parametrize("roles", MENDS)
def test_a_race_between_roles_names_no_barrier_at_which_they_would_hang(roles):
    kernel = source_kernel(ROLES.format(first=roles[0], second=roles[1]), "y: ptr[f32]", "(reqntid=64)")
    finding = first(kernel, 64, np.zeros(32, np.float32))
    assert (finding.kind, finding.help) == ("race", MENDS[roles])


def test_a_race_within_a_role_of_several_warps_names_its_own_barrier():
    body = ROLES.format(first="pd.warp(0, 1)", second="pd.warp(0, 1)").replace("32)", "64)").replace("31", "63")
    kernel = source_kernel(body, "y: ptr[f32]", "(reqntid=96)")
    assert first(kernel, 96, np.zeros(64, np.float32)).help == (
        "use the role's own barrier between line 5 and line 7: `with pd.warp(0, 1) as role:` has `role.barrier()`"
    )


INDICES = {
    "pd.shared(f32, (4, 33))": "tile[1, 0]",
    "pd.shared(f32, pd.layout.Layout((4, 33), (1, 4)))": "tile[1, 0]",
    "pd.shared(f32, 132)": "tile[33]",
    "pd.dynamic_shared(f32, (4, 33))": "tile[1, 0]",
}


@pytest.mark.parametrize("array", INDICES)
def test_elements_of_shared_arrays_are_named_as_python_indexes_them(array):
    index = ("1, 0", "0, 0") if "4, 33" in array else ("33", "0")
    body = f"other = pd.dynamic_shared(f32, 4)\ntile = {array}\ntile[{index[1]}] = 1.0\ny[0] = tile[{index[0]}]"
    finding = first(source_kernel(body, "y: ptr[f32]"), 1, np.zeros(1, np.float32))
    assert f"reads 4 bytes at {INDICES[array]}, which no thread has written" in finding.message


MISCALLED = {
    "ring.commit(1)": ("Ring.commit takes no positional arguments; 1 given", "it takes after_mma"),
    "ring.acquire(lead=True)": (
        "Ring.acquire takes no `lead`; it takes expected_bytes and leads", "did you mean `leads`?",
    ),
    "x.prefetch((0, 0))": ("MappedTensor.prefetch takes no arguments; 1 given", "leave it out"),
    "x.load(tile, (0, 0))": (
        "MappedTensor.load lacks `mbarrier`; it takes destination, coordinates, mbarrier, offsets, multicast, policy "
        "and boxes", None,
    ),
    "x[0, 0]": (
        "`x` is a tensor map; it cannot be indexed",
        "copy a box to shared memory, `x.load(tile, …)`, and index that; or take the array as `ptr[…]` too",
    ),
    "x[0] = 1.0": (
        "`x` is a tensor map; it cannot be indexed",
        "copy a box to shared memory, `x.load(tile, …)`, and index that; or take the array as `ptr[…]` too",
    ),
    "x + 1": (
        "`+` is not supported for `x`, which is a tensor map",
        "boxes of its array are copied to shared memory and back: `x.load(…)`, `x.store(…)`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("statement", MISCALLED)
def test_calls_and_operators_that_rings_and_tensor_maps_have_not(statement):
    body = f"tile, ring = x.shared(), pd.Ring(2, stage_bytes=x.bytes, consumers=128)\n{statement}"
    kernel = source_kernel(body, "x: pd.TensorMap(f32, (16, 128))", '(arch="sm_90a", reqntid=160)')
    with pytest.raises(pd.Error) as refused:
        kernel.ptx()
    assert (refused.value.message, refused.value.help) == MISCALLED[statement]
