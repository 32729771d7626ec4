"""Proxy fences between blocks of a grid and of a cluster, and the state spaces that they are for."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, ptr, u32

SCHEDULES = "lockstep", "skewed", "random:1"
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)
GLOBAL, ANY, SHARED = "fence.proxy.async.global", "fence.proxy.async", "fence.proxy.async.shared::cta"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"


def fence(text):
    if text:
        pd.ptx(text)


def wait(barrier):
    with pd.while_(lambda: ~pd.ptx("mbarrier.try_wait.parity.shared::cta.b64", barrier.address(), 0)):
        pass


def spin(flag):
    with pd.while_(lambda: pd.ptx("ld.acquire.gpu.global.u32", flag) == 0):
        pass


def release(flag):
    pd.ptx("st.release.gpu.global.u32", flag, 1)


def copy_in(s, full, x):
    """Thread 0 copies 256 bytes to shared memory."""
    pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
    pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), 256, out="_")
    pd.ptx(LOAD, s.address(0), x, 256, full.address())


@pd.kernel(arch="sm_90a")
def passed_on(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, text: str, places: tuple):
    """Block 0 writes x, block 1 passes it on, block 2 copies it, with fences in some places."""
    s, full = pd.shared(u32, 64, align=128), pd.shared(b64, 1)
    with pd.if_(pd.ctaid.x == 0):
        fence(text * ("before writing" in places))
        x[pd.tid.x] = pd.tid.x + 1
        fence(text * ("writers" in places))
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            fence(text * ("releaser" in places))
            release(flags)
            fence(text * ("after releasing" in places))
    with pd.elif_(lambda: pd.ctaid.x == 1), pd.if_(pd.tid.x == 0):
        fence(text * ("before passing" in places))
        spin(flags)
        fence(text * ("passer" in places))
        release(flags + 1)
    with pd.else_():
        with pd.if_(pd.tid.x == 0):
            fence(text * ("before acquiring" in places))
            spin(flags + 1)
            fence(text * ("reader" in places))
            copy_in(s, full, x)
        pd.ptx.bar.sync(0)
        wait(full)
        y[pd.tid.x] = s[pd.tid.x]


def emulated(kernel, grid, schedule, count=64, **constants):
    y = np.zeros(count, np.uint32)
    report = pd.emulate(
        kernel, grid, 64, np.zeros(64, np.uint32), np.zeros(4, np.uint32), y, schedule=schedule, **constants
    )
    return report, y


ENOUGH = "writers", "releaser", "passer", "reader"
USELESS = "before writing", "after releasing", "before passing", "before acquiring"


@every_schedule
@pytest.mark.parametrize("text", [GLOBAL, ANY])
@pytest.mark.parametrize("place", ENOUGH)
def test_one_fence_on_the_path_is_enough(place, text, schedule):
    report, y = emulated(passed_on, 3, schedule, text=text, places=(place,))
    assert not report.findings, report
    assert (y == np.arange(1, 65)).all()


@every_schedule
@pytest.mark.parametrize(("text", "places"), [("", ()), (ANY, USELESS), (SHARED, ENOUGH)])
def test_fences_off_the_path_or_for_other_memory(text, places, schedule):
    report, _ = emulated(passed_on, 3, schedule, text=text, places=places)
    assert {finding.kind for finding in report.findings} == {"race"}


def test_a_missing_fence_between_blocks_in_words():
    report, _ = emulated(passed_on, 3, "lockstep", text="", places=())
    assert report.findings[0].message == (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes reads x[0] through the async proxy, written by "
        "thread (0, 0, 0) of block (0, 0, 0) with st.global.u32 through the generic proxy; no proxy fence separates the two"
    )
    assert report.findings[0].help == (
        "add a `fence.proxy.async` in the threads that wrote, after line 49 and before they release the data, or in this "
        "thread, after it acquires the data and before line 40"
    )


@pd.kernel(arch="sm_90a")
def in_one_block(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, text: str):
    s, full = pd.shared(u32, 64, align=128), pd.shared(b64, 1)
    x[pd.tid.x] = pd.tid.x + 1
    fence(text)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        copy_in(s, full, x)
    pd.ptx.bar.sync(0)
    wait(full)
    y[pd.tid.x] = s[pd.tid.x]


@every_schedule
@pytest.mark.parametrize(("text", "ordered"), [(GLOBAL, True), (ANY, True), (SHARED, False), ("", False)])
def test_the_space_of_a_fence(text, ordered, schedule):
    report, _ = emulated(in_one_block, 1, schedule, text=text)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"})


def test_a_fence_for_other_memory_in_words():
    report, _ = emulated(in_one_block, 1, "lockstep", text=SHARED)
    assert report.findings[0].message == (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes reads x[0] through the async proxy, written by "
        "thread (0, 0, 0) of block (0, 0, 0) with st.global.u32 through the generic proxy; the proxy fence between them "
        "is for shared memory"
    )
    assert report.findings[0].help == (
        "use `fence.proxy.async` without a state space, which orders shared and global memory"
    )


@pd.kernel(arch="sm_90a", cluster=2)
def in_a_cluster(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, writer: str, owner: str):
    """Threads store to the other block, whose thread 0 copies that to global memory."""
    s, rank = pd.shared(u32, 64, align=128), pd.special("%cluster_ctarank")
    meet()
    there = pd.ptx.mapa.shared__cluster.u32(s.address(pd.tid.x), rank ^ 1)
    pd.ptx("st.shared::cluster.u32", pd.pointer(there, u32, "shared::cluster"), pd.tid.x)
    fence(writer)
    meet()
    with pd.if_(pd.tid.x == 0):
        fence(owner)
        pd.ptx(STORE, y + rank * 64, s.address(0), 256)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


def meet():
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


@every_schedule
@pytest.mark.parametrize(
    ("writer", "owner", "ordered"),
    [(SHARED.replace("cta", "cluster"), "", True), (ANY, "", True), ("", ANY, True), ("", SHARED, True),
     (GLOBAL, GLOBAL, False), ("", "", False)],
)  # fmt: skip
def test_stores_to_another_block_of_the_cluster(writer, owner, ordered, schedule):
    report, y = emulated(in_a_cluster, 2, schedule, 128, writer=writer, owner=owner)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"}), report
    if ordered:
        assert (y == np.arange(128) % 64).all()


@pd.kernel(arch="sm_90a")
def copied_twice(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, text: str, reader: int):
    """Thread 0 of block 0 copies to x, and thread 0 of block `reader` from there."""
    s, full = pd.shared(u32, 64, align=128), pd.shared(b64, 1)
    with pd.if_(pd.ctaid.x == 0):
        s[pd.tid.x] = pd.tid.x + 1
        pd.ptx("fence.proxy.async.shared::cta")
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            pd.ptx(STORE, x, s.address(0), 256)
            pd.ptx.cp.async_.bulk.commit_group()
            pd.ptx.cp.async_.bulk.wait_group(0)
            release(flags)
    with pd.if_(pd.ctaid.x == reader):
        with pd.if_(pd.tid.x == 0):
            spin(flags)
            fence(text)
            copy_in(s, full, x)
        pd.ptx.bar.sync(0)
        wait(full)
        y[pd.tid.x] = s[pd.tid.x]


@every_schedule
@pytest.mark.parametrize(("reader", "text", "ordered"), [(0, "", True), (1, GLOBAL, True), (1, "", False)])
def test_copies_of_one_block_need_no_fence(reader, text, ordered, schedule):
    """PTX ISA, "Causality order": accesses through one proxy are ordered without a fence within a block."""
    report, _ = emulated(copied_twice, 2, schedule, text=text, reader=reader)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"}), report


@pd.kernel(arch="sm_90a", cluster=2)
def refilled_by_another_block(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, access: str, reader: str, copier: str):
    """Threads of block 1 read or write a tile, which thread 0 of block 0 fills again by multicast."""
    s, full = pd.shared(u32, 64, align=128), pd.shared(b64, 1)
    rank = pd.special("%cluster_ctarank")
    s[pd.tid.x] = pd.tid.x
    fence(SHARED)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), 256, out="_")
    meet()
    with pd.if_(rank == 1):
        if access == "read":
            y[pd.tid.x] = s[pd.tid.x]
        elif access == "write":
            s[pd.tid.x] = pd.tid.x + 5
        fence(reader)
    meet()
    with pd.if_((rank == 0) & (pd.tid.x == 0)):
        fence(copier)
        pd.ptx(LOAD + ".multicast::cluster", s.address(0), x, 256, full.address(), pd.ptx.cvt.u16.u32(3))
    wait(full)
    meet()


@every_schedule
@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize(
    ("reader", "copier", "ordered"),
    [(SHARED, "", True), (ANY, "", True), ("", ANY, True), (GLOBAL, GLOBAL, False), ("", "", False)],
)
def test_a_tile_that_another_block_fills_again(access, reader, copier, ordered, schedule):
    report, _ = emulated(refilled_by_another_block, 2, schedule, access=access, reader=reader, copier=copier)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"}), report


def test_a_tile_that_another_block_fills_again_in_words():
    report, _ = emulated(refilled_by_another_block, 2, "lockstep", access="read", reader="", copier="")
    assert report.findings[0].message == (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster writes s[0] through the "
        "async proxy, read by thread (0, 0, 0) of block (1, 0, 0) with ld.shared.u32 through the generic proxy; no "
        "proxy fence separates the two"
    )
    assert report.findings[0].degree.value == "error"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_of_two_blocks_to_one_tile_need_no_fence(schedule):
    report, _ = emulated(refilled_by_another_block, 2, schedule, access="", reader="", copier="")
    assert not report.findings, report


@pd.kernel(arch="sm_90a")
def reduced_by_two_blocks(x: ptr[u32], flags: ptr[u32], y: ptr[u32], *, text: str):
    """Both blocks clear a part of y of their own, add to it, and add to the rest of y."""
    s = pd.shared(u32, 32, align=128)
    with pd.if_(pd.tid.x < 32):
        s[pd.tid.x] = pd.tid.x
        y[pd.ctaid.x * 32 + pd.tid.x] = 0
    fence(text)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        for place in (pd.ctaid.x * 32, 64):
            pd.ptx(STORE.replace("cp.async", "cp.reduce.async") + ".add.u32", y + place, s.address(0), 128)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


@every_schedule
@pytest.mark.parametrize(("text", "ordered"), [(ANY, True), (SHARED, False)])
def test_reductions_need_a_fence_after_stores_but_not_among_blocks(text, ordered, schedule):
    """PTX ISA, "cp.reduce.async.bulk": each reduction is relaxed at .gpu scope."""
    report, y = emulated(reduced_by_two_blocks, 2, schedule, 96, text=text)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"}), report
    assert not ordered or (y == np.outer([1, 1, 2], np.arange(32)).reshape(-1)).all()
