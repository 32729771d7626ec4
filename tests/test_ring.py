"""The ring of mbarriers: what passes through it, in which order, what is refused, and what it emits."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

from .tracing import emitted, source_kernel

ROW = 32


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


@pd.kernel(reqntid=96)
def twice(x: ptr[f32], y: ptr[f32], n: u32, *, stages: int, each: str):
    """y = 2 x, each row turned round, by a warp that fills and two that read."""
    rows = pd.shared(f32, (stages, ROW))
    ring = pd.Ring(stages, producers=ROW, consumers=2 * ROW, each=each)
    with pd.warp(0):
        for i in pd.range(n):
            slot = ring.acquire()
            rows[slot.index, pd.laneid] = x[i * ROW + pd.laneid]
            ring.commit()
        ring.drain()
    with pd.warp(1, 2) as reader:
        for i in pd.range(n):
            slot = ring.wait()
            with pd.if_(reader.thread < ROW):
                y[i * ROW + reader.thread] = 2 * rows[slot.index, ROW - 1 - reader.thread]
            ring.release()


@pytest.mark.parametrize("each", ["thread", "warp"])
@pytest.mark.parametrize("stages, rounds", [(1, 1), (1, 5), (2, 2), (3, 10), (4, 3)])
def test_what_is_filled_is_read_in_order_however_often_the_ring_goes_round(stages, rounds, each):
    x = np.arange(rounds * ROW, dtype=np.float32).reshape(rounds, ROW)
    y = np.zeros_like(x)
    report = pd.emulate(twice, 1, 96, x, y, rounds, stages=stages, each=each)
    assert report.findings == []
    assert (y == 2 * x[:, ::-1]).all()


@pytest.mark.parametrize("schedule", ["skewed", "random:3"])
def test_no_order_of_warps_breaks_it(schedule):
    x = np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW)
    y = np.zeros_like(x)
    assert pd.emulate(twice, 1, 96, x, y, 6, stages=2, each="thread", schedule=schedule).findings == []
    assert (y == 2 * x[:, ::-1]).all()


@pd.kernel(reqntid=64)
def held(x: ptr[f32], y: ptr[f32], n: u32):
    """y[i] = x[i] + x[i + 1]: a slot is released one round after it was read, as a slot of products under way."""
    rows = pd.shared(f32, (3, ROW))
    ring = pd.Ring(3, producers=ROW, consumers=ROW)
    with pd.warp(0):
        for i in pd.range(n + 1):
            slot = ring.acquire()
            rows[slot.index, pd.laneid] = x[i * ROW + pd.laneid]
            ring.commit()
    with pd.warp(1):
        before = pd.var(u32)
        before.set(ring.wait().index)
        for i in pd.range(n):
            slot = ring.wait()
            y[i * ROW + pd.laneid] = rows[before, pd.laneid] + rows[slot.index, pd.laneid]
            ring.release()
            before.set(slot.index)


def test_a_slot_may_be_held_while_the_next_one_is_read():
    x = np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW)
    y = np.zeros((5, ROW), np.float32)
    assert pd.emulate(held, 1, 64, x, y, 5).findings == []
    assert (y == x[:-1] + x[1:]).all()


@pd.kernel(reqntid=64)
def gathered(x: pd.TensorMap(f32, (1, ROW)), order: ptr[u32], y: ptr[f32], n: u32):
    """Rows of x in an order, 32 a stage, of which each lane copies one; the first tells of the bytes of all."""
    rows = pd.shared(f32, (2, ROW, ROW), align=128)
    ring = pd.Ring(2, stage_bytes=ROW * ROW * 4, consumers=ROW, each="warp")
    with pd.warp(0):
        for i in pd.range(n):
            slot = ring.acquire(leads=pd.laneid == 0)
            x.load(rows.address(slot.index, pd.laneid, 0), (order[i * ROW + pd.laneid], 0), slot.full)
            ring.commit()
        ring.drain()
    with pd.warp(1):
        for i in pd.range(n):
            slot = ring.wait()
            for row in pd.range(ROW):
                y[(i * ROW + row) * ROW + pd.laneid] = rows[slot.index, row, pd.laneid]
            ring.release()


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:3"])
def test_copies_of_lanes_wait_for_the_lane_that_tells_of_their_bytes(schedule, rng):
    """Though other warps go round and round: 31 lanes copy to a stage that one lane is yet to come to."""
    x, order = rng.random((7, ROW), np.float32), rng.integers(0, 7, 5 * ROW).astype(np.uint32)
    y = np.zeros((5 * ROW, ROW), np.float32)
    assert pd.emulate(gathered, 1, 64, x, order, y, 5, schedule=schedule).findings == []
    assert (y == x[order]).all()


BODY = """
rows = pd.shared(f32, (2, 32))
ring = pd.Ring(2, producers=32, consumers=32)
with pd.warp(0):
    for i in pd.range(4):
        slot = ring.acquire()
        rows[slot.index, pd.laneid] = 1.0
        ring.commit()
with pd.warp(1):
    for i in pd.range(4):
        slot = ring.wait()
        x[i * 32 + pd.laneid] = rows[slot.index, pd.laneid]
        ring.release()
"""
WRONG = {
    "released before it is read": (("        x[i", "        ring.release()\n        x[i"), ("]\n        ring.release()\n", "]\n"), "race"),
    "never released": (("        ring.release()", "        with pd.if_(i > 4): ring.release()"), ("", ""), "deadlock"),
    "never committed": (("        ring.commit()\n", ""), ("", ""), "deadlock"),
    "filled without asking": (("slot = ring.acquire()", "slot = ring._slot(ring._written.index)"), ("", ""), "deadlock"),
    "read without waiting": (("slot = ring.wait()", "slot = ring._slot(ring._read.index)"), ("", ""), "race"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_each_step_is_needed(case):
    *changes, kind = WRONG[case]
    body = BODY
    for old, new in changes:
        assert old in body
        body = body.replace(old, new)
    kernel = source_kernel(body.strip(), "x: ptr[f32]", "(reqntid=64)")
    findings = pd.emulate(kernel, 1, 64, np.zeros(128, np.float32)).findings
    assert kind in {finding.kind for finding in findings}


UNRELEASED = {
    "in a loop of the kernel": BODY,
    "more often than there are stages": BODY.replace("pd.range(4)", "range(3)"),
    "by a second reader": BODY.replace("with pd.warp(1)", "other = ring.reader()\nwith pd.warp(1)").replace("ring.wait", "other.wait"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNRELEASED)
def test_a_ring_that_no_role_releases_is_refused(case):
    body = UNRELEASED[case].replace("        ring.release()\n", "").strip()
    with pytest.raises(pd.TraceError) as refused:
        source_kernel(body, "x: ptr[f32]", "(reqntid=64)").ptx()
    assert str(refused.value).splitlines()[::3] == [
        "no role releases the stages of `ring`: after 2 of them the producer would wait forever",
        "  help: call `release()` after the last read of each stage, in all threads that `consumers=` counts",
    ]
    assert refused.value.at.text.strip() == "ring = pd.Ring(2, producers=32, consumers=32)"


def test_a_ring_that_is_filled_once_need_not_be_released():
    body = BODY.replace("pd.range(4)", "range(2)").replace("        ring.release()\n", "").strip()
    x = np.zeros(64, np.float32)
    assert pd.emulate(source_kernel(body, "x: ptr[f32]", "(reqntid=64)"), 1, 64, x).findings == []
    assert (x == 1).all()


@pytest.mark.parametrize("release", ["ring.release()", "ring.release(slot)"])
def test_the_ring_as_it_should_be_has_no_findings(release):
    x, body = np.zeros(128, np.float32), BODY.strip().replace("ring.release()", release)
    assert pd.emulate(source_kernel(body, "x: ptr[f32]", "(reqntid=64)"), 1, 64, x).findings == []
    assert (x == 1).all()


def test_a_slot_is_released_as_a_whole():
    body = BODY.strip().replace("ring.release()", "ring.release(slot.index)")
    with pytest.raises(pd.TraceError) as refused:
        source_kernel(body, "x: ptr[f32]", "(reqntid=64)").ptx()
    assert refused.value.message == "`release` takes the slot that `wait` returned; found `ring.wait()`, a u32"
    assert refused.value.help == "write `ring.release(slot)`"


@pd.kernel(reqntid=256)
def bulk(a: pd.TensorMap(f32, (8, 32), swizzle=128)):
    tiles = a.shared(2)
    ring = pd.Ring(2, stage_bytes=a.bytes, consumers=128, each="warpgroup")
    with pd.warp(4), pd.elect():
        slot = ring.acquire()
        a.load(tiles.address(slot.index, 0, 0), (0, 0), slot.full)
        ring.commit()
    with pd.warpgroup(0):
        ring.release(ring.wait())


def test_bulk_copies_are_expected_by_one_thread_and_released_by_one_of_a_warpgroup():
    text = "\n".join(emitted(bulk, "sm_90a"))
    assert "mbarrier.init.shared::cta.b64 [mbarriers], 1;" in text
    assert "mbarrier.init.shared::cta.b64 [mbarriers+16], 1;" in text
    assert re.search(r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%r\d+\], 1024;", text)
    assert re.search(r"@%p\d+ mbarrier\.arrive\.shared::cta\.b64 _, \[", text)
    assert text.count("mbarrier.arrive.shared") == 1
    assert text.index("fence.mbarrier_init.release.cluster;") < text.index("bar.sync 0;") < text.index("elect.sync")


REFUSED = {
    "no stages": ("pd.Ring(0, producers=32, consumers=32)", "pd.Ring has 0 stages", "it takes an int that is known while tracing, such as 4"),
    "neither": (
        "pd.Ring(2, consumers=32)", "pd.Ring has neither stage_bytes nor producers",
        "give `stage_bytes` of bulk copies that fill a stage, or `producers`, the number of threads that write it",
    ),
    "both": (
        "pd.Ring(2, stage_bytes=64, producers=32, consumers=32)", "pd.Ring has both stage_bytes and producers",
        "give `stage_bytes` of bulk copies that fill a stage, or `producers`, the number of threads that write it",
    ),
    "too many bytes": (
        "pd.Ring(2, stage_bytes=1 << 20, consumers=32)",
        "pd.Ring has stages of 1048576 bytes; an mbarrier counts up to 1048575", None,
    ),
    "no consumers": ("pd.Ring(2, producers=32, consumers=0)", "pd.Ring has 0 consumers", "it is the number of threads that read each stage"),
    "no whole warpgroups": (
        "pd.Ring(2, producers=32, consumers=192, each='warpgroup')",
        "pd.Ring has 192 consumers, and one of each warpgroup arrives",
        "it is the number of threads that read each stage, a multiple of 128",
    ),
    "each of what": ("pd.Ring(2, producers=32, consumers=32, each='block')", "pd.Ring takes each='block'", 'it is "thread", "warp" or "warpgroup"'),
    "no producers": ("pd.Ring(2, producers=0, consumers=32)", "pd.Ring has 0 producers", "it is the number of threads that commit each stage"),
    "more consumers than threads": (
        "pd.Ring(2, producers=32, consumers=384)", "pd.Ring takes consumers=384; a block of this kernel has 256 threads",
        "count the threads of a block that call `release()`",
    ),
    "more producers than threads": (
        "pd.Ring(2, producers=257, consumers=32)", "pd.Ring takes producers=257; a block of this kernel has 256 threads",
        "count the threads of a block that call `commit()`",
    ),
    "in a role": (
        "with pd.warp(0):\n    pd.Ring(2, producers=32, consumers=32)",
        "pd.Ring is inside a role, `with pd.warp(0)` (kernel.py:3): all threads of the block reach it",
        "make it before, at the beginning of the kernel",
    ),
    "in a branch": (
        "with pd.if_(pd.tid.x == 0):\n    pd.Ring(2, producers=32, consumers=32)",
        "pd.Ring is inside a branch or a loop, `with pd.if_(…)` (kernel.py:3): all threads of the block reach it",
        "make it before, at the beginning of the kernel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_ring_that_cannot_be_is_refused(case):
    body, message, help = REFUSED[case]
    with pytest.raises(pd.TraceError) as refused:
        source_kernel(body, "x: ptr[f32]", "(reqntid=256)").ptx("sm_90a")
    assert (refused.value.message, refused.value.help) == (message, help)
    assert refused.value.at.line == 2 + len(body.splitlines())


@pd.kernel(reqntid=64)
def broadcast(x: ptr[f32], y: ptr[f32], n: u32, *, readers: int):
    """y[t] = the sum of the first elements of all rows: all threads of a warp read one word, and each releases."""
    rows = pd.shared(f32, (2, ROW))
    ring = pd.Ring(2, producers=ROW, consumers=readers)
    with pd.warp(0):
        for i in pd.range(n):
            slot = ring.acquire()
            rows[slot.index, pd.laneid] = x[i * ROW + pd.laneid]
            ring.commit()
    with pd.warp(1) as reader:
        total = pd.var(f32, 0.0)
        for _ in pd.range(n):
            slot = ring.wait()
            total += rows[slot.index, 0]
            with pd.if_(reader.thread < readers):
                ring.release(slot)
        y[reader.thread] = total


def test_threads_that_read_one_word_release_it_together():
    x, y = np.arange(5 * ROW, dtype=np.float32).reshape(5, ROW), np.zeros(ROW, np.float32)
    assert pd.emulate(broadcast, 1, 64, x, y, 5, readers=ROW).findings == []
    assert (y == x[:, 0].sum()).all()


def test_one_thread_that_does_not_release_what_all_read():
    x, y = np.ones((5, ROW), np.float32), np.zeros(ROW, np.float32)
    report = pd.emulate(broadcast, 1, 64, x, y, 5, readers=ROW - 1)
    assert {finding.kind for finding in report.findings} == {"race"}


@pd.kernel(reqntid=96)
def products(a: pd.TensorMap(f32, (4, ROW)), b: pd.TensorMap(f32, (4, ROW)), y: ptr[f32], n: u32, *, leads: tuple):
    """Sums of products of columns: a warp brings the rows of a, another those of b, to the same stages."""
    rows = [x.shared(2) for x in (a, b)]
    ring = pd.Ring(2, stage_bytes=a.bytes + b.bytes, consumers=ROW)
    for warp, x in enumerate((a, b)):
        with pd.warp(warp), pd.elect():
            for i in pd.range(n):
                slot = ring.acquire(leads=leads[warp])
                x.load(rows[warp].address(slot.index, 0, 0), (i * 4, 0), slot.full)
                ring.commit()
    with pd.warp(2) as reader:
        total = pd.var(f32, 0.0)
        for _ in pd.range(n):
            slot = ring.wait()
            for row in range(4):
                total += rows[0][slot.index, row, reader.thread] * rows[1][slot.index, row, reader.thread]
            ring.release()
        y[reader.thread] = total


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:7"])
@pytest.mark.parametrize("leads", [(True, False), (False, True)])
def test_two_roles_fill_one_stage(leads, schedule, monkeypatch, rng):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    a, b, y = *(rng.integers(-3, 4, (20, ROW)).astype(np.float32) for _ in range(2)), np.zeros(ROW, np.float32)
    products[1, 96](a, b, y, 5, leads=leads)
    assert np.array_equal(y, (a * b).sum(0))
    text = products.ptx(leads=leads)
    assert text.count("mbarrier.arrive.expect_tx") == 1
