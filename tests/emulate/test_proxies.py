"""The async proxy beside the generic one: which fences and waits are needed, and which are not."""

from itertools import product

import numpy as np
import pytest

from tests.emulate.support import clean, only, run

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
MODULE = ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];"
BEGIN = """
    .reg .b64 %a<8>; .reg .b32 %i<8>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, s; mov.u32 %r3, full; mov.u32 %r12, empty; shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4;
    mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd2, %rd4;
"""
FENCE = "fence.proxy.async.shared::cta;\n"
FILL = "add.u32 %r6, %r1, 100; st.shared.u32 [%r5], %r6;\n"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 256; cp.async.bulk.commit_group;\n"
LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];\n"
PARAMETERS = "x: u64, y: u64"


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD)


def launched(body, threads=64, rows=1, checks=True):
    x, y = np.arange(1, 1 + rows * 64, dtype=np.uint32), np.zeros(rows * 64, np.uint32)
    report = run(BEGIN + body, x, y, block=threads, parameters=PARAMETERS, module=MODULE, checks=checks)
    return report, x, y


def fence(wanted):
    return FENCE if wanted else ""


def store_then_tma(fences):
    """Threads write, meet, and one of them has the async proxy read; fences before, between and after."""
    before, between, after = fences
    return launched(
        fence(before) + FILL + fence(between) + "bar.sync 0; @!%p1 bra END;\n" + STORE
        + fence(after) + "cp.async.bulk.wait_group 0;\nEND:"
    )[0]  # fmt: skip


@pytest.mark.parametrize("fences", list(product([False, True], repeat=3)))
def test_only_the_fence_between_store_and_tma_matters(fences):
    report = store_then_tma(fences)
    assert {finding.kind for finding in report.findings} == (set() if fences[1] else {"race"})


def test_the_fence_may_stand_behind_the_barrier():
    """What the thread knows, it fences for the async proxy, whoever wrote it."""
    clean(launched(FILL + "bar.sync 0; @!%p1 bra END;\n" + FENCE + STORE + "cp.async.bulk.wait_group 0;\nEND:")[0])


def test_a_fence_of_threads_is_no_fence_of_proxies():
    report, *_ = launched(
        FILL + "fence.acq_rel.gpu; bar.sync 0; @!%p1 bra END;\n" + STORE + "cp.async.bulk.wait_group 0;\nEND:"
    )
    assert str(report.findings[0]) == (
        "race: cp.async.bulk.global.shared::cta.bulk_group reads s[0] through the async proxy, written by "
        "thread (0, 0, 0) of block (0, 0, 0) with st.shared.u32 through the generic proxy; "
        "no proxy fence separates the two\n"
        "  <ptx>:13\n"
        "  <ptx>:11\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: add a `fence.proxy.async` between line 11 and line 13, in the threads that wrote, before the barrier "
        "that the other threads wait at"
    )


def test_a_bulk_reduction_is_not_atomic_to_another_proxy():
    reduction = (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r2], 256; cp.async.bulk.commit_group;\n"
    )
    report, *_ = launched(
        FILL + FENCE + "bar.sync 0; @!%p1 bra OTHER;\n" + reduction + "cp.async.bulk.wait_group 0; bra END;\n"
        "OTHER: setp.ne.u32 %p2, %r1, 32; @%p2 bra END;\nred.relaxed.gpu.global.add.u32 [%rd2], 1;\nEND:"
    )  # fmt: skip
    assert str(report.findings[0]) == (
        "race: red.relaxed.gpu.global.add.u32 updates y[0], updated by thread (0, 0, 0) of block (0, 0, 0) with "
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32; one of the two goes through the async proxy, so that "
        "neither is atomic to the other\n"
        "  <ptx>:17\n"
        "  <ptx>:14\n"
        "  by thread (32, 0, 0) of block (0, 0, 0)\n"
        "  help: update it by cp.reduce.async.bulk alone, or by red alone; or order the two: wait for the copy, then a "
        "`fence.proxy.async` and a barrier"
    )


def test_one_warp_that_does_not_fence():
    half = "setp.lt.u32 %p5, %r1, 32; @%p5 fence.proxy.async.shared::cta;\n"
    report, *_ = launched(FILL + half + "bar.sync 0; @!%p1 bra END;\n" + STORE + "cp.async.bulk.wait_group 0;\nEND:")
    assert "reads s[128] through the async proxy" in report.findings[0].message


def test_one_thread_that_writes_and_stores():
    body = "@!%p1 bra END; " + FILL + "FENCES" + STORE.replace("256", "16") + "cp.async.bulk.wait_group 0;\nEND:"
    zeros = "st.shared.v2.u32 [%r2], {%r1, %r1}; st.shared.v2.u32 [%r2+8], {%r1, %r1};"
    clean(launched(body.replace(FILL, zeros).replace("FENCES", FENCE))[0])
    report, *_ = launched(body.replace(FILL, zeros).replace("FENCES", ""))
    assert {finding.kind for finding in report.findings} == {"race"}


INIT = (
    "@%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 mbarrier.init.shared.b64 [%r12], {count};\n"
    "fence.mbarrier_init.release.cluster; bar.sync 0;\n"
)
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], 256;\n"
WAIT_FULL = "F{n}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], {parity}; @!%p2 bra F{n};\n"
WAIT_EMPTY = "E{n}: mbarrier.try_wait.parity.shared.b64 %p3, [%r12], {parity}; @!%p3 bra E{n};\n"
TAKE = "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;\n"


FENCED = FENCE + "mbarrier.arrive.shared.b64 %rd7, [%r12];\n"


def refilled(release=FENCED, wait=True, written=False, early=False, acquired="", warp=False):
    """Thread 64 fills a slot twice, 64 threads take from it; `release` is how they say that they have, and `acquired`
    what that one does when it knows. The others of its warp wait for it, or with `warp` wait with it."""
    consume = WAIT_FULL.format(n=0, parity=0) + (release if early else "") + TAKE
    consume += (FILL if written else "") + ("" if early else release)
    consume += WAIT_FULL.format(n=1, parity=1) + TAKE.replace("[%rd5]", "[%rd5+256]")
    one = "" if warp else "setp.gt.u32 %p5, %r1, 64; @%p5 bra MEET;\n"
    wait_empty = WAIT_EMPTY if wait else WAIT_FULL
    copies = EXPECT + LOAD, EXPECT + LOAD.replace("[%rd1]", "[%rd1+256]")
    if warp:
        copies = tuple(f"setp.ne.u32 %p5, %r1, 64; @%p5 bra N{n};\n{c}N{n}:\n" for n, c in enumerate(copies))
    produce = (
        one + copies[0] + wait_empty.format(n=2, parity=0) + acquired + copies[1] + "MEET: bar.warp.sync 0xffffffff;\n"
    )
    body = INIT.format(count=64) + "setp.ge.u32 %p4, %r1, 64; @%p4 bra PRODUCE;\n"
    return launched(body + consume + "bra END;\nPRODUCE:\n" + produce + "END:", threads=96, rows=2)


def test_a_slot_is_filled_again_when_all_have_read_it_and_fenced():
    report, x, y = refilled()
    clean(report)
    assert (y == x).all()


ARRIVE = FENCED.removeprefix(FENCE)


@pytest.mark.parametrize("warp", [False, True])
def test_whoever_knows_of_the_reads_may_fence_them(warp):
    clean(refilled(ARRIVE, acquired=FENCE, warp=warp)[0])


@pytest.mark.parametrize("warp", [False, True])
@pytest.mark.parametrize("release", [ARRIVE, ARRIVE + FENCE, "setp.lt.u32 %p5, %r1, 32; @%p5 " + FENCE + ARRIVE])
def test_reads_that_are_not_fenced(release, warp):
    """The copy may write before the threads have read, on an H200 it does (PTX ISA, "Async proxy"): neither the arrival
    nor the wait for it order the one proxy before the other."""
    report, *_ = refilled(release, warp=warp)
    assert {finding.kind for finding in report.findings} == {"race"}


def test_reads_that_are_not_fenced_in_words():
    finding = only(refilled(ARRIVE)[0])
    assert str(finding) == (
        "race: cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes writes s[0] through the async proxy, read "
        "by thread (0, 0, 0) of block (0, 0, 0) with ld.shared.u32 through the generic proxy; no proxy fence "
        "separates the two\n"
        "  <ptx>:26\n"
        "  <ptx>:15\n"
        "  by thread (64, 0, 0) of block (0, 0, 0)\n"
        "  help: add a `fence.proxy.async` between line 15 and line 26, in the threads that read, before the barrier that "
        "the other threads wait at"
    )


@pytest.mark.parametrize("fences", list(product([False, True], repeat=3)))
def test_reads_before_a_barrier_are_fenced_behind_them(fences):
    """At first, between reads and barrier, or behind it by the thread that copies."""
    first, behind_reads, by_one = fences
    body = INIT.format(count=1) + FILL + FENCE + fence(first) + TAKE + fence(behind_reads) + "bar.sync 0;\n"
    report, *_ = launched(
        body + "@!%p1 bra END;\n" + fence(by_one) + EXPECT + LOAD + WAIT_FULL.format(n=0, parity=0) + "END:"
    )
    assert {finding.kind for finding in report.findings} == (set() if behind_reads or by_one else {"race"})


def test_reads_by_the_async_proxy_need_no_fence():
    """A bulk store has read when its group has: a copy may come to the same place then."""
    store = STORE.replace("%rd2", "%rd2+256") + "cp.async.bulk.wait_group.read 0;\n"
    body = INIT.format(count=1) + "@!%p1 bra END;\n" + EXPECT + LOAD + WAIT_FULL.format(n=0, parity=0) + store
    clean(launched(body + EXPECT + LOAD + WAIT_FULL.format(n=1, parity=1) + "END:", rows=2)[0])


@pytest.mark.parametrize("fenced", [False, True])
def test_a_slot_that_threads_have_written_needs_a_fence_before_it_is_filled(fenced):
    report, *_ = refilled(FENCED if fenced else ARRIVE, written=True)
    assert {finding.kind for finding in report.findings} == (set() if fenced else {"race"})
    if not fenced:
        assert "writes s[0] through the async proxy, written by" in report.findings[0].message


@pytest.mark.usefixtures("lockstep")
def test_a_slot_that_is_filled_again_before_it_is_released():
    report, *_ = refilled(wait=False)
    assert report.findings[0].kind == "race"
    assert report.findings[0].message.startswith(
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes writes s[0], read by thread (0, 0, 0) "
    )


def test_a_slot_that_is_released_before_it_is_read():
    report, *_ = refilled(early=True)
    assert report.findings[0].kind in ("race", "unwaited-async")


def test_a_release_that_orders_nothing():
    report, *_ = refilled(release=FENCE + "mbarrier.arrive.relaxed.cta.shared.b64 %rd7, [%r12];\n")
    assert {finding.kind for finding in report.findings} == {"race"}


@pytest.mark.parametrize("needed", [True, False])
def test_an_array_that_threads_wrote_before_it_is_copied(needed):
    """Global memory has two proxies too."""
    write = "add.u64 %rd6, %rd1, %rd4; st.global.u32 [%rd6], %r1;\n"
    body = INIT.format(count=1) + write + ("fence.proxy.async.global;\n" if needed else "") + "bar.sync 0;\n"
    body += "@!%p1 bra TAKE;" + EXPECT + LOAD + "TAKE:" + WAIT_FULL.format(n=0, parity=0) + TAKE
    report, _, y = launched(body)
    assert {finding.kind for finding in report.findings} == (set() if needed else {"race"})
    assert not needed or (y == np.arange(64)).all()


def test_an_array_may_be_overwritten_by_those_who_waited_for_its_copy():
    body = INIT.format(count=1) + "@!%p1 bra TAKE;" + EXPECT + LOAD + "TAKE:" + WAIT_FULL.format(n=0, parity=0)
    report, x, _ = launched(body + "add.u64 %rd6, %rd1, %rd4; st.global.u32 [%rd6], %r1;\n")
    clean(report)
    assert (x == np.arange(64)).all()


OF_MBARRIERS = "fence.mbarrier_init.release.cluster;"
OTHER = "mov.u32 %r9, %tid.x; setp.eq.u32 %p3, %r9, 32;\n"
LANDED = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;\n"


def initialised(before="", behind="", by="%p1"):
    """Thread 0 initialises an mbarrier, with fences before and behind the block's barrier; a thread has TMA use it."""
    body = f"{OTHER}@!%p1 bra MEET; mbarrier.init.shared.b64 [%r3], 1;\n{before}\nMEET: bar.sync 0; {behind}\n"
    copy = f"@!{by} bra WAIT;\n{EXPECT}{LOAD}WAIT:\n"
    return launched(body + copy + LANDED)[0]


@pytest.mark.parametrize(("before", "behind", "by", "seen"), [
    (OF_MBARRIERS, "", "%p1", True),
    (OF_MBARRIERS, "", "%p3", True),
    (FENCE, "", "%p3", True),
    ("", FENCE, "%p3", True),  # a thread that knows of the initialisation fences it
    ("", OF_MBARRIERS, "%p1", True),  # the thread that initialised issues the copy itself
    ("", OF_MBARRIERS, "%p3", False),  # the other thread need not know of the fence
    ("", "", "%p1", False),
    ("fence.acq_rel.gpu;", "", "%p3", False),  # orders threads, not proxies
])  # fmt: skip
@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:2"])
def test_tma_needs_a_fence_behind_the_initialisation_of_its_mbarrier(before, behind, by, seen, schedule, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    assert {finding.kind for finding in initialised(before, behind, by).findings} == (set() if seen else {"race"})


def test_an_initialisation_without_a_fence_in_words():
    finding = only(initialised(by="%p3"))
    assert finding.message == (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes updates full[0] through the async proxy, "
        "written by thread (0, 0, 0) of block (0, 0, 0) with mbarrier.init.shared.b64 through the generic proxy; "
        "no proxy fence separates the two"
    )
    assert finding.help == (
        "add a `fence.mbarrier_init.release.cluster` between line 12 and line 17, in the thread that initialised it"
    )


def test_threads_of_the_block_need_no_fence_of_an_mbarrier():
    arrive = "@!%p1 bra W; mbarrier.arrive.shared.b64 %rd3, [%r3];\n"
    clean(launched("@%p1 mbarrier.init.shared.b64 [%r3], 1;\nbar.sync 0;\n" + arrive + LANDED)[0])
