"""Barriers of a block: who comes, how many are expected, what they agree on."""

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean, only, run

OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
REVERSE = (
    OWN
    + """
    shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    {barrier}
    mov.u32 %r4, %ntid.x; sub.u32 %r4, %r4, %r1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3;
    ld.shared.u32 %r5, [%r4-4];
    st.global.u32 [%rd2], %r5;
"""
)
SHARED = ".shared .u32 s[1024];"


@pytest.mark.parametrize(
    "barrier", ["bar.sync 0;", "barrier.sync 15;", "bar.sync 3, 96;", "barrier.cta.sync.aligned 1;"]
)
@pytest.mark.parametrize("threads", [96, 70])
def test_all_threads_meet(barrier, threads):
    x = np.zeros(threads, np.uint32)
    clean(run(REVERSE.replace("{barrier}", barrier), x, block=threads, module=SHARED))
    assert (x == np.arange(threads)[::-1]).all()


def test_a_warp_that_ended_is_not_waited_for():
    body = "mov.u32 %r9, %tid.x; setp.ge.u32 %p1, %r9, 64;\n@%p1 ret;" + OWN + "bar.sync 0;\nst.global.u32 [%rd2], 1;"
    x = np.zeros(64, np.uint32)
    clean(run(body, x, block=96))
    assert (x == 1).all()


def test_a_warp_that_ends_later_releases_the_others():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 64;
        @%p1 bra WAIT;
        mov.u32 %r2, 0;
    LOOP:
        add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 100;
        @%p2 bra LOOP;
        ret;
    WAIT:
        bar.sync 0;
        st.global.u32 [%rd2], 1;
    """
    )
    x = np.zeros(64, np.uint32)
    clean(run(body, x, block=96))
    assert (x == 1).all()


def test_producers_and_consumers():
    body = (
        OWN
        + """
        mov.u32 %r3, s; mov.u32 %r6, 0; mov.u32 %r8, 0;
        setp.ge.u32 %p1, %r1, 32;
        @%p1 bra CONSUMER;
    PRODUCER:
        bar.sync 2, 96;
        shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; mad.lo.u32 %r5, %r6, 1000, %r1;
        st.shared.u32 [%r4], %r5;
        bar.arrive 1, 96;
        add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 5;
        @%p2 bra PRODUCER;
        ret;
    CONSUMER:
        bar.arrive 2, 96;
        bar.sync 1, 96;
        and.b32 %r4, %r1, 31; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3;
        ld.shared.u32 %r7, [%r4];
        add.u32 %r8, %r8, %r7;
        add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 5;
        @%p2 bra CONSUMER;
        st.global.u32 [%rd2], %r8;
    """
    )
    x = np.zeros(96, np.uint32)
    clean(run(body, x, block=96, grid=3, module=SHARED))
    assert (x[32:] == 1000 * 10 + 5 * (np.arange(32, 96) % 32)).all()


@pytest.mark.parametrize("threads", [64, 70])
@pytest.mark.parametrize(("form", "expected"), [
    ("popc.u32 %r3", lambda odd: odd.sum()), ("and.pred %p2", lambda odd: odd.all()), ("or.pred %p2", lambda odd: odd.any()),
])  # fmt: skip
def test_reductions(form, expected, threads):
    body = (
        OWN
        + f"""
        and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; mov.u32 %r3, 0;
        barrier.red.{form}, 0, %p1;
        {"" if "popc" in form else "selp.u32 %r3, 1, 0, %p2;"}
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.full(threads, 99, np.uint32)
    clean(run(body, x, block=threads, grid=2))
    assert (x == expected(np.arange(threads) % 2 == 1)).all()


def test_counts_that_do_not_agree():
    body = """
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; selp.u32 %r2, 64, 96, %p1;
        bar.sync 1, %r2;
    """
    report = run(body, parameters="", block=96)
    assert report.findings[0].kind == "barrier"
    assert report.findings[0].message == (
        "bar.sync: barrier 1 counts 64 threads here and 96 threads where others wait at it"
    )


@pytest.mark.parametrize(("count", "shown"), [(40, 40), (0, 0), (128, 128)])
@pytest.mark.usefixtures("lockstep")
def test_counts_that_cannot_be(count, shown):
    body = f"mov.u32 %r2, {count};\nbar.sync 1, %r2;"
    finding = only(run(body, parameters="", block=96))
    assert str(finding) == (
        f"barrier: bar.sync waits for {shown} threads; the count must be a multiple of 32, "
        "at least 32 and at most 96, the threads of the block\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 95 more threads\n"
        "  help: count whole warps, or omit the count for all threads"
    )


def test_a_barrier_that_does_not_exist():
    finding = only(run("mov.u32 %r2, 16;\nbar.sync %r2;", parameters=""))
    assert finding.message == "bar.sync: barrier 16 does not exist; a block has barriers 0 to 15"


@pytest.fixture(params=["lockstep", "skewed", "random:1", "random:2"])
def every_schedule(request):
    with config.using(schedule=request.param):
        yield


@pytest.mark.usefixtures("every_schedule")
def test_a_warp_arrives_and_then_waits():
    """Hardware counts arrivals, not warps."""
    body = OWN + "bar.arrive 9, 64;\nbar.sync 9, 64;\nst.global.u32 [%rd2], 1;"
    x = np.zeros(32, np.uint32)
    report = run("mov.u32 %r9, %tid.x; setp.ge.u32 %p1, %r9, 32;\n@%p1 ret;" + body, x, block=64)
    clean(report)
    assert (x == 1).all()


@pytest.mark.usefixtures("every_schedule")
def test_warps_take_turns_from_an_arrival_at_the_own_barrier():
    """The first warp starts itself, as FlashAttention-3 starts its warpgroups: each turn adds to one word."""
    body = """
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; selp.u32 %r2, 2, 1, %p1;
        mov.u32 %r3, 3; sub.u32 %r3, %r3, %r2; mov.u32 %r4, 0;
        and.b32 %r5, %r1, 31; setp.eq.u32 %p2, %r5, 0;
        @!%p1 bar.arrive 1, 64;
    LOOP:
        bar.sync %r2, 64;
        @!%p2 bra NEXT;
        ld.global.u32 %r6, [%rd1]; mad.lo.u32 %r6, %r6, 10, %r2; st.global.u32 [%rd1], %r6;
    NEXT:
        bar.arrive %r3, 64;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4;
        @%p3 bra LOOP;
    """
    x = np.zeros(1, np.uint32)
    clean(run(body, x, block=64))
    assert x[0] == 12121212


@pytest.mark.usefixtures("every_schedule")
def test_a_warp_takes_the_arrival_that_another_waits_for():
    body = """
        mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;
        @%p1 bra OTHER;
        bar.arrive 1, 64;
        bar.sync 1, 64;
        ret;
    OTHER:
        bar.sync 1, 64;
    """
    assert [f.kind for f in run(body, parameters="", block=64).findings] == ["barrier", "deadlock"]


@pytest.mark.usefixtures("lockstep")
def test_arrivals_of_one_warp_complete_a_barrier_unattended():
    body = """
        mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;
        @%p1 bra OTHER;
        bar.arrive 1, 64;
        bar.arrive 1, 64;
        ret;
    OTHER:
        nanosleep.u32 1000;
        bar.sync 1, 64;
    """
    report = run(body, parameters="", block=64)
    assert str(report.findings[0]) == (
        "barrier: bar.arrive: warp 0 arrives again at barrier 1 and completes it, but no thread waits there\n"
        "  <ptx>:10\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads\n"
        "  help: make the warps that wait at the barrier signal back (another barrier) before this one arrives again"
    )


@pytest.mark.usefixtures("lockstep")
def test_a_barrier_in_one_branch_is_a_deadlock():
    body = """
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @%p1 bra WAIT;
        bar.sync 2;
        ret;
    WAIT:
        bar.sync 1;
    """
    finding = only(run(body, parameters="", block=64))
    assert str(finding) == (
        "deadlock: every thread is blocked\n"
        "  threads 32–63 of block (0, 0, 0) wait at barrier 2, where 32 of 64 threads have arrived (<ptx>:9)\n"
        "  threads 0–31 of block (0, 0, 0) wait at barrier 1, where 32 of 64 threads have arrived (<ptx>:12)\n"
        "  <ptx>:9\n"
        "  <ptx>:12\n"
        "  help: barrier 2 waits for 32 more threads: execute it in all of them, or count only the 32 that arrive"
    )


def test_a_barrier_that_half_a_warp_comes_to():
    body = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;\nbar.warp.sync -1;"
    finding = only(run(body, parameters=""))
    assert finding.kind == "divergent-collective"
    assert finding.message == (
        "bar.sync: lanes 0–15 of a warp wait for lanes 16–31; lanes 16–31 wait at bar.warp.sync (<ptx>:8)"
    )


HALF = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; setp.ge.and.u32 %p1, %r1, 16, %p1; mov.u32 %r9, 5;\n"
STORE = "ld.param.u64 %rd1, [x]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r9;\n"
ENDS_FIRST = "@%p1 ret;\n"
SKIPS = "@%p1 bra SKIP;\n{barrier}\nbra DONE;\nSKIP: nanosleep.u32 100;\nret;\nDONE:\n"
COME = (np.arange(64) < 16) | (np.arange(64) >= 32)


@pytest.mark.parametrize(("barrier", "result"), [
    ("bar.sync 0;", 5), ("bar.sync 1, 64;", 5), ("barrier.sync 0;", 5),
    ("setp.eq.u32 %p2, %r9, 5; bar.red.popc.u32 %r9, 0, %p2;", 48),
    ("setp.eq.u32 %p2, %r9, 5; bar.red.and.pred %p3, 0, %p2; selp.u32 %r9, 1, 0, %p3;", 1),
    ("@!%p0 bar.arrive 1, 64;\n@%p0 bar.sync 1, 64;", 5),
])  # fmt: skip
def test_half_a_warp_that_ended_before_is_not_waited_for(barrier, result):
    """As an H200 does; with a count too, for which the warp counts as 32 threads."""
    x = np.zeros(64, np.uint32)
    clean(run(HALF + "setp.ge.u32 %p0, %r1, 32;\n" + ENDS_FIRST + barrier + STORE, x, block=64))
    assert (x == np.where(COME, result, 0)).all()


def test_half_a_warp_that_ends_instead_of_coming_to_an_aligned_barrier():
    finding = only(run(HALF + SKIPS.format(barrier="bar.sync 0;") + STORE, np.zeros(64, np.uint32), block=64))
    assert str(finding) == (
        "divergent-collective: bar.sync: lanes 0–15 of a warp wait for lanes 16–31, which end instead of arriving; "
        "all threads must execute an aligned barrier\n"
        "  <ptx>:8\n"
        "  <ptx>:11\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 15 more threads\n"
        "  help: execute it in all threads, or use barrier without .aligned, which counts ended threads as arrived"
    )


def test_one_lane_that_skips_an_aligned_barrier_with_a_count():
    body = "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 31;\n@%p1 barrier.sync.aligned 3, 32;"
    finding = only(run(body, parameters=""))
    assert finding.message == (
        "barrier.sync.aligned: lanes 0–30 of a warp wait for lane 31, which ends instead of arriving; "
        "all threads must execute an aligned barrier"
    )


def test_half_a_warp_that_ends_instead_of_coming_to_a_barrier_that_is_not_aligned():
    x = np.zeros(64, np.uint32)
    clean(run(HALF + SKIPS.format(barrier="barrier.sync 0;") + STORE, x, block=64))
    assert (x == 5 * COME).all()


def test_half_a_warp_that_waits_for_what_follows_the_barrier():
    body = HALF + "ld.param.u64 %rd1, [x];\n@%p1 bra SPIN;\nbarrier.sync 0;\nst.global.u32 [%rd1], 1;\nret;\nSPIN:"
    body += "ld.relaxed.gpu.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0;\n@%p2 bra SPIN;"
    finding = only(run(body, np.zeros(1, np.uint32), block=64))
    assert finding.message == (
        "barrier.sync: lanes 0–15 of a warp wait for lanes 16–31; "
        "lanes 16–31 wait in a loop that makes no progress (<ptx>:12)"
    )


def test_a_count_is_not_lowered_by_warps_that_end():
    body = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 1, 64;"
    finding = only(run(body, parameters="", block=64))
    assert finding.message == (
        "every thread is blocked\n  threads 0–31 of block (0, 0, 0) wait at barrier 1, where 32 of 64 threads have arrived (<ptx>:8)"
    )


TWO_PLACES = """
    @%p1 bra OTHER;
    {0}
    add.u32 %r9, %r9, 10;
    {0}
    bra DONE;
OTHER:
    mov.u32 %r9, 7;
    {0}
    {0}
    add.u32 %r9, %r9, 1;
DONE:
"""


def test_a_warp_comes_to_a_barrier_in_two_places():
    """Barriers behind one another: those of one place go on to where the others are held."""
    x = np.zeros(128, np.uint32)
    clean(run(HALF + TWO_PLACES.format("barrier.sync 0;") + STORE, x, block=128))
    half = (np.arange(128) >= 16) & (np.arange(128) < 32)
    assert (x == np.where(half, 8, 15)).all()


def test_a_warp_votes_at_a_barrier_in_two_places():
    """First 48 threads have 5 and 16 have 7; then 48 have 26 and 16 have 16."""
    vote = "setp.ne.u32 %p2, %r9, 7; barrier.red.popc.u32 %r8, 2, %p2; shr.u32 %r8, %r8, 4; add.u32 %r9, %r9, %r8;"
    x = np.zeros(64, np.uint32)
    clean(run(HALF + TWO_PLACES.format(vote) + STORE, x, block=64))
    assert (x == np.where(COME, 5 + 3 + 10 + 4, 7 + 3 + 4 + 1)).all()


def test_halves_of_a_warp_at_neighbouring_instructions():
    body = HALF + "@%p1 bra SECOND;\nbar.warp.sync -1;\nSECOND: bar.warp.sync -1;\n@!%p1 bra DONE;\n"
    x = np.zeros(64, np.uint32)
    clean(run(body + "bar.warp.sync -1;\nDONE:" + STORE, x, block=64))
    assert (x == 5).all()


def test_an_aligned_barrier_in_two_places():
    finding = only(run(HALF + TWO_PLACES.format("bar.sync 0;") + STORE, np.zeros(64, np.uint32), block=64))
    assert finding.kind == "divergent-collective"
    assert finding.message == (
        "bar.sync: lanes 0–15 of a warp wait for lanes 16–31; lanes 16–31 wait at bar.sync (<ptx>:15)"
    )


def test_lanes_of_a_warp_at_two_barriers():
    body = "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; bar.sync %r2;"
    finding = only(run(body, parameters=""))
    assert finding.message == "bar.sync: lanes of one warp pass the barriers 0 and 1"
    assert finding.count == 16


def test_lanes_of_a_warp_with_two_counts():
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 3; selp.u32 %r2, 32, 64, %p1; bar.sync 1, %r2;"
    finding = only(run(body, parameters="", block=64))
    assert finding.message == "bar.sync: lanes of one warp pass the counts 64 and 32"
