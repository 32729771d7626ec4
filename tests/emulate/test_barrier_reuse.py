"""A barrier of a block that is used again: by threads that know that it completed before, or by some that do not."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f32, ptr

SCHEDULES = ("lockstep", "skewed", "random:1")
FIRST, SECOND = 0, 64  # threads with which two groups of two warps begin


def findings(body, schedule="lockstep", threads=128):
    """What is found in a kernel of two groups, each of which reverses its half of an array."""

    @pd.kernel(arch="sm_90", reqntid=threads)
    def k(y: ptr[f32]):
        s = pd.shared(f32, threads)
        s[pd.tid.x] = pd.tid.x.to(f32)
        body()
        y[pd.tid.x] = s[pd.tid.x ^ 63]

    return pd.emulate(k, 1, threads, np.zeros(threads, np.float32), schedule=schedule).findings


def groups(first, second):
    """Each group does its own."""
    with pd.if_(pd.tid.x < SECOND):
        first()
    with pd.else_():
        second()


def meet(barrier):
    return lambda: pd.ptx.bar.sync(barrier, 64)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_groups_at_one_barrier(schedule):
    (finding,) = findings(lambda: groups(meet(1), meet(1)), schedule)
    assert finding.kind == "barrier"


def test_two_groups_at_one_barrier_in_words():
    (finding,) = findings(lambda: groups(meet(1), meet(1)))
    assert str(finding) == (
        "barrier: bar.sync: warp 2 arrives at barrier 1, where warps 0 and 1 met before; nothing orders the two uses, so "
        "their arrivals may mix\n"
        "  test_barrier_reuse.py:35 | return lambda: pd.ptx.bar.sync(barrier, 64)\n"
        "                                            ^\n"
        "  by thread (64, 0, 0) of block (0, 0, 0) and 1 more thread\n"
        "  help: give each group of threads its own barrier (0 to 15), or synchronize the groups before they swap barriers"
    )


def test_a_count_that_lets_groups_of_warps_through_in_words():
    (finding,) = findings(lambda: pd.ptx.bar.sync(0, 64))
    assert str(finding) == (
        "barrier: bar.sync: 128 threads are at barrier 0, which counts 64: any of them may complete it\n"
        "  test_barrier_reuse.py:57 | (finding,) = findings(lambda: pd.ptx.bar.sync(0, 64))\n"
        "                                                           ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: count all 128, or give each group of warps its own barrier (0 to 15)"
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_count_that_lets_groups_of_warps_through(schedule):
    kinds = {finding.kind for finding in findings(lambda: pd.ptx.bar.sync(0, 64), schedule)}
    assert "barrier" in kinds


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_of_their_own(schedule):
    assert not findings(lambda: groups(meet(1), meet(2)), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_meeting_of_all_between(schedule):
    def body():
        with pd.if_(pd.tid.x < SECOND):
            pd.ptx.bar.sync(1, 64)
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x >= SECOND):
            pd.ptx.bar.sync(1, 64)

    assert not findings(body, schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_thread_that_was_told_by_an_mbarrier(schedule):
    def body():
        passed = pd.shared(b64, 1)
        with pd.if_(pd.tid.x == 0):
            pd.ptx.mbarrier.init.shared__cta.b64(passed.address(), 64)
        pd.ptx.bar.sync(0)

        def first():
            pd.ptx.bar.sync(1, 64)
            pd.ptx.mbarrier.arrive.shared__cta.b64(passed.address(), out="_")

        def second():
            complete = pd.ptx.mbarrier.try_wait.parity.shared__cta.b64
            with pd.if_(pd.tid.x % 32 == 0), pd.while_(lambda: ~complete(passed.address(), 0)):
                pass
            pd.ptx.bar.sync(1, 64)

        groups(first, second)

    assert not findings(body, schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rounds_with_a_way_back(schedule):
    """One group arrives, the other one waits, three times, and lets the first go on."""

    def first():
        for n in pd.range(3):
            with pd.if_(n > 0):
                pd.ptx.bar.sync(2, 128)
            pd.ptx.bar.arrive(1, 128)

    def second():
        for n in pd.range(3):
            pd.ptx.bar.sync(1, 128)
            with pd.if_(n < 2):
                pd.ptx.bar.arrive(2, 128)

    def body():
        groups(first, second)
        pd.ptx.bar.sync(0)

    assert not findings(body, schedule)
