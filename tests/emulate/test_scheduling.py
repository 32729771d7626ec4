"""Lanes diverge, meet, wait for each other; no lane starves, and a deadlock is proved."""

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean, only, run

SPIN_LOCK = """
    ld.param.u64 %rd1, [lock]; ld.param.u64 %rd2, [x];
AGAIN:
    atom.global.acquire.gpu.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    atom.global.release.gpu.exch.b32 %r3, [%rd1], 0;
    ret;
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("threads", [1, 33, 256])
def test_a_spin_lock_per_thread_lets_every_thread_in_once(threads):
    lock, x = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    clean(run(SPIN_LOCK, lock, x, grid=2, block=threads, parameters="lock: u64, x: u64"))
    assert x[0] == 2 * threads
    assert lock[0] == 0


def test_loops_of_different_length_meet_again_behind_the_loop():
    body = """
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
    LOOP:
        add.u32 %r3, %r3, %r2;
        add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
        shfl.sync.idx.b32 %r4, %r3, 31, 31, -1;
        add.u32 %r4, %r4, %r3;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r4;
    """
    x = np.zeros(96, np.uint32)
    clean(run(body, x, block=96))
    sums = np.arange(96) * (np.arange(96) + 1) // 2
    assert (x == sums + sums[np.arange(96) // 32 * 32 + 31]).all()


def test_a_persistent_kernel_takes_tiles_from_a_counter():
    body = """
        ld.param.u64 %rd1, [counter]; ld.param.u64 %rd2, [x]; ld.param.u32 %r9, [tiles];
        mov.u32 %r1, %tid.x;
        setp.ne.u32 %p1, %r1, 0;
    NEXT:
        @%p1 bra TAKEN;
        atom.global.add.u32 %r2, [%rd1], 1;
        st.shared.u32 [tile], %r2;
    TAKEN:
        bar.sync 0;
        ld.shared.u32 %r2, [tile];
        bar.sync 0;
        setp.ge.u32 %p2, %r2, %r9;
        @%p2 ret;
        mov.u32 %r4, 0; mov.u32 %r5, 0;
    WORK:
        add.u32 %r4, %r4, %r5; add.u32 %r5, %r5, 1;
        setp.le.u32 %p3, %r5, %r2;
        @%p3 bra WORK;
        mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd2, %rd3;
        red.global.add.u32 [%rd3], %r4;
        bra NEXT;
    """
    counter, x = np.zeros(1, np.uint32), np.zeros(50, np.uint32)
    module = ".shared .u32 tile;"
    parameters = "counter: u64, x: u64, tiles: u32"
    clean(run(body, counter, x, 50, grid=7, block=64, parameters=parameters, module=module))
    tiles = np.arange(50)
    assert (x == 64 * tiles * (tiles + 1) // 2).all()
    assert counter[0] == 50 + 7


ORDERED = """
    ld.param.u64 %rd1, [semaphore]; ld.param.u64 %rd2, [x];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    {first}
WAIT:
    ld.global.acquire.gpu.u32 %r5, [%rd1];
    setp.ne.u32 %p1, %r5, %r4;
    @%p1 bra WAIT;
    bar.sync 0;
    mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd2, %rd3;
    ld.global.u32 %r6, [%rd3];
    mad.lo.u32 %r6, %r6, 3, %r1;
    st.global.u32 [%rd3], %r6;
    bar.sync 0;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 ret;
    add.u32 %r5, %r5, 1;
    st.global.release.gpu.u32 [%rd1], %r5;
"""
IN_ORDER = "mov.u32 %r4, %r1;"
REVERSED = "sub.u32 %r4, %r3, %r1; sub.u32 %r4, %r4, 1;"
BLOCKS = 24


@pytest.mark.parametrize("first", [IN_ORDER, REVERSED])
def test_blocks_fix_up_one_after_another_by_a_semaphore(first):
    semaphore, x = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = ORDERED.format(first=first)
    clean(run(body, semaphore, x, grid=BLOCKS, block=64, parameters="semaphore: u64, x: u64"))
    expected = 0
    for block in range(BLOCKS) if first == IN_ORDER else reversed(range(BLOCKS)):
        expected = (expected * 3 + block) % 2**32
    assert (x == expected).all()


def test_blocks_that_wait_for_later_ones_need_them_to_be_resident():
    semaphore, x = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = ORDERED.format(first=REVERSED)
    report = run(body, semaphore, x, grid=BLOCKS, block=64, parameters="semaphore: u64, x: u64", resident=8)
    finding = only(report)
    assert finding.kind == "deadlock"
    assert finding.message == (
        "every thread is blocked\n"
        "  512 threads of 8 blocks wait in a loop that makes no progress (<ptx>:11)\n"
        "  16 blocks cannot start until one of the 8 resident blocks ends"
    )
    assert finding.count == 512
    assert (x == 0).all()


def test_in_order_eight_resident_blocks_are_enough():
    semaphore, x = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = ORDERED.format(first=IN_ORDER)
    clean(run(body, semaphore, x, grid=BLOCKS, block=64, parameters="semaphore: u64, x: u64", resident=8))
    assert semaphore[0] == BLOCKS


def test_a_histogram_by_atomics(rng):
    body = """
        ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [bins]; ld.param.u32 %r9, [n];
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
        mad.lo.u32 %r1, %r1, %r2, %r3;
        setp.ge.u32 %p1, %r1, %r9;
        @%p1 ret;
        cvt.u64.u32 %rd3, %r1; add.u64 %rd3, %rd1, %rd3;
        ld.global.u8 %r4, [%rd3];
        mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd2, %rd4;
        red.global.add.u32 [%rd4], 1;
    """
    x = rng.integers(0, 256, 30_000, dtype=np.uint8)
    bins = np.zeros(256, np.uint32)
    clean(run(body, x, bins, len(x), grid=118, block=256, parameters="x: u64, bins: u64, n: u32"))
    assert (bins == np.bincount(x, minlength=256)).all()


def test_a_grid_barrier_needs_all_blocks_and_has_them():
    body = """
        ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [x];
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
        mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd2, %rd3;
        st.global.u32 [%rd3], %r1;
        red.release.gpu.global.add.u32 [%rd1], 1;
    WAIT:
        ld.acquire.gpu.global.u32 %r3, [%rd1];
        setp.lt.u32 %p1, %r3, %r2;
        @%p1 bra WAIT;
        sub.u32 %r4, %r2, %r1; sub.u32 %r4, %r4, 1;
        mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd2, %rd4;
        ld.global.u32 %r5, [%rd4];
        red.global.add.u32 [%rd1+4], %r5;
    """
    count, x = np.zeros(2, np.uint32), np.zeros(600, np.uint32)
    clean(run(body, count, x, grid=600, block=1, parameters="count: u64, x: u64"))
    assert list(count) == [600, 600 * 599 // 2]


def test_waiting_with_a_growing_backoff_starves_nobody():
    body = """
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %tid.x; mov.u32 %r7, 8;
        setp.eq.u32 %p1, %r1, 5;
        @%p1 bra WRITER;
    WAIT:
        ld.volatile.global.u32 %r2, [%rd1];
        nanosleep.u32 %r7;
        shl.b32 %r7, %r7, 1; min.u32 %r7, %r7, 1024;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
        ret;
    WRITER:
        mov.u32 %r3, 1;
        st.volatile.global.u32 [%rd1], %r3;
    """
    x = np.zeros(1, np.uint32)
    clean(run(body, x, block=64))
    assert x[0] == 1


def test_a_loop_that_counts_while_it_waits_starves_nobody():
    body = """
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %tid.x; mov.u32 %r7, 0;
        setp.eq.u32 %p1, %r1, 5;
        @%p1 bra WRITER;
    WAIT:
        add.u32 %r7, %r7, 1;
        ld.volatile.global.u32 %r2, [%rd1];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
        red.global.max.u32 [%rd1+4], %r7;
        ret;
    WRITER:
        mov.u32 %r3, 1;
        st.volatile.global.u32 [%rd1], %r3;
    """
    x = np.zeros(2, np.uint32)
    clean(run(body, x, block=64))
    assert x[0] == 1
    assert 0 < x[1] < 1000


def test_waiting_for_what_nobody_does_is_a_deadlock():
    body = """
        ld.param.u64 %rd1, [x];
    WAIT:
        ld.volatile.global.u32 %r2, [%rd1];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
    """
    finding = only(run(body, np.zeros(1, np.uint32), grid=2, block=48))
    assert str(finding) == (
        "deadlock: every thread is blocked\n"
        "  96 threads of 2 blocks wait in a loop that makes no progress (<ptx>:9)\n"
        "  <ptx>:9"
    )


def test_time_passes():
    body = """
        ld.param.u64 %rd1, [x];
        mov.u64 %rd2, %globaltimer;
    WAIT:
        mov.u64 %rd3, %globaltimer;
        sub.u64 %rd4, %rd3, %rd2;
        setp.lt.u64 %p1, %rd4, 1000;
        @%p1 bra WAIT;
        st.global.u64 [%rd1], %rd4;
    """
    x = np.zeros(1, np.uint64)
    clean(run(body, x))
    assert 1000 <= x[0] < 1100


def test_indexed_branches_go_to_their_targets():
    body = """
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %tid.x;
        and.b32 %r2, %r1, 3;
        targets: .branchtargets ZERO, ONE, TWO, ONE;
        brx.idx %r2, targets;
    ZERO: mov.u32 %r3, 10; bra DONE;
    ONE: mov.u32 %r3, 11; bra DONE;
    TWO: mov.u32 %r3, 12;
    DONE:
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r3;
    """
    x = np.zeros(40, np.uint32)
    clean(run(body, x, block=40))
    assert (x == np.array([10, 11, 12, 11])[np.arange(40) % 4]).all()


def test_an_index_beyond_the_targets_is_found():
    body = """
        mov.u32 %r1, %tid.x;
        targets: .branchtargets ZERO, ONE;
        brx.idx %r1, targets;
    ZERO: ret;
    ONE: ret;
    """
    finding = only(run(body, parameters="", block=3))
    assert (finding.kind, finding.message) == ("call", "brx.idx takes target 2 of targets, which has 2 targets")


CUTLASS_WAIT = """
    ld.param.u64 %rd1, [semaphore]; ld.param.u64 %rd2, [x];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r5, -1; setp.eq.u32 %p3, %r2, 0;
WAIT:
    @%p3 ld.global.acquire.gpu.u32 %r5, [%rd1];
    setp.ne.u32 %p1, %r5, %r1;
    barrier.red.and.pred %p2, 0, %p1;
    @%p2 bra WAIT;
    bar.sync 0;
    red.global.add.u32 [%rd2], %r1;
    bar.sync 0;
    add.u32 %r6, %r1, {step};
    @%p3 st.global.release.gpu.u32 [%rd1], %r6;
"""


def test_waiting_with_a_barrier_in_the_loop():
    """As CUTLASS's semaphore waits: while (__syncthreads_and(state != status)) fetch();"""
    semaphore, x = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    parameters = "semaphore: u64, x: u64"
    clean(run(CUTLASS_WAIT.format(step=1), semaphore, x, grid=12, block=64, parameters=parameters))
    assert x[0] == 64 * sum(range(12))
    semaphore[0] = 0
    finding = only(run(CUTLASS_WAIT.format(step=2), semaphore, x, grid=12, block=64, parameters=parameters))
    assert finding.kind == "deadlock"
    assert finding.message == (
        "every thread is blocked\n  384 threads of 6 blocks wait in a loop that makes no progress (<ptx>:10)"
    )


def test_a_loop_whose_barrier_another_warp_counts_is_no_deadlock():
    """The rounds of one warp change nothing of their own, but the other warp counts them at the barrier."""
    body = """
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; setp.ge.u32 %p1, %r1, 32;
        @%p1 bra COUNT;
    WAIT:
        bar.sync 0;
        ld.volatile.global.u32 %r3, [%rd1];
        bar.sync 0;
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra WAIT;
        ret;
    COUNT:
        setp.eq.u32 %p3, %r2, 40;
        @%p3 st.volatile.global.u32 [%rd1], %r2;
        bar.sync 0;
        add.u32 %r2, %r2, 1;
        bar.sync 0;
        @!%p3 bra COUNT;
    """
    x = np.zeros(1, np.uint32)
    clean(run(body, x, block=64))
    assert x[0] == 40


@pytest.mark.exhaustive
def test_blocks_that_join_leave_everything_of_the_others_in_place():
    """Each block waits for the next one, with something in shared and local memory, at a barrier and under way."""
    body = """
        .local .u32 mine;
        ld.param.u64 %rd1, [flags]; ld.param.u64 %rd2, [x]; ld.param.u64 %rd8, [y];
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r1, 64, %r2;
        mov.u32 %r5, s; mad.lo.u32 %r5, %r2, 4, %r5; add.u32 %r6, %r4, 7;
        st.shared.u32 [%r5], %r6; add.u32 %r6, %r6, 1; st.local.u32 [mine], %r6;
        mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd2, %rd3; add.u64 %rd8, %rd8, %rd3;
        cp.async.ca.shared.global [%r5+256], [%rd4], 4; cp.async.commit_group;
        add.cc.u32 %r6, %r4, -1;
        setp.ge.u32 %p1, %r2, 32;
        @%p1 bra MEET;
        add.u32 %r7, %r1, 1; mul.wide.u32 %rd5, %r7, 4; add.u64 %rd5, %rd1, %rd5;
        setp.eq.u32 %p2, %r7, %r3;
        @%p2 bra MEET;
    WAIT:
        ld.acquire.gpu.global.u32 %r8, [%rd5];
        setp.eq.u32 %p3, %r8, 0;
        @%p3 bra WAIT;
    MEET:
        addc.u32 %r12, 0, 0;
        bar.sync 0;
        ld.shared.u32 %r9, [%r5]; ld.local.u32 %r10, [mine];
        cp.async.wait_all;
        ld.shared.u32 %r11, [%r5+256];
        add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r11; add.u32 %r9, %r9, %r12;
        st.global.u32 [%rd8], %r9;
        mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd1, %rd5;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 st.release.gpu.global.u32 [%rd5], 1;
    """
    blocks = 500
    lanes = np.arange(64 * blocks, dtype=np.uint32)
    flags, x, y = np.zeros(blocks, np.uint32), lanes * 5, np.zeros(64 * blocks, np.uint32)
    parameters, module = "flags: u64, x: u64, y: u64", ".shared .u32 s[128];"
    clean(run(body, flags, x, y, grid=blocks, block=64, parameters=parameters, module=module))
    assert (flags == 1).all()
    assert (y == 2 * lanes + 15 + 5 * lanes + (lanes > 0)).all()


TWICE = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;
    setp.eq.u32 %p2, %r1, 0; mov.u32 %r2, flag; mov.u32 %r3, 0;
    @%p2 mbarrier.init.shared.b64 [%r2], 1;
    bar.sync 0;
    @%p1 bra ARRIVE;
FIRST:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;
    @!%p3 bra FIRST;
    ret;
ARRIVE:
    setp.ne.u32 %p4, %r1, 32;
    @%p4 bra DONE;
    LONGER
    mbarrier.arrive.shared.b64 %rd1, [%r2];
    LONGER
    mbarrier.arrive.shared.b64 %rd1, [%r2];
DONE:
    ret;
""".replace("LONGER", "add.u32 %r3, %r3, 1;" * 300)


def test_at_random_who_waits_sees_a_phase_end_at_once_or_when_it_is_too_late():
    """The second phase may end before anybody has looked: then the wait is for the third one."""
    hangs = set()
    for seed in range(12):
        with config.using(schedule=f"random:{seed}"):
            hangs.add(bool(run(TWICE, block=64, parameters="", module=".shared .align 8 .b64 flag;").findings))
    assert hangs == {True, False}
