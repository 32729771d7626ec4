"""`mbarrier.try_wait` waits for a limited time: it may return false, and its result decides."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, ptr, u32
from tests.emulate.support import only, run

SCHEDULES = "lockstep", "skewed", "random:1", "random:2"
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)
WAIT = "mbarrier.try_wait.parity.shared::cta.b64"


@pd.kernel(arch="sm_90a", reqntid=64)
def handed_over(x: ptr[u32], y: ptr[u32], *, how: str):
    """Warp 0 adds for a while, and warp 1 reads its sums."""
    s, full = pd.shared(u32, 32), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 32)
    pd.ptx.bar.sync(0)
    with pd.warp(0):
        total = pd.var(u32, 0)
        for i in pd.range(200):
            total += x[i]
        s[pd.laneid] = total
        pd.ptx("mbarrier.arrive.shared::cta.b64", full.address(), out="_")
    with pd.warp(1):
        wait(full, how)
        y[pd.laneid] = s[31 - pd.laneid]


def wait(full, how):
    if how == "once":
        with pd.if_(pd.ptx(WAIT, full.address(), 0)):
            pass
    elif how == "in an outer loop":
        for _ in pd.range(1):
            wait(full, "once")
    elif how == "once, then again":
        with pd.if_(~pd.ptx(WAIT, full.address(), 0)):
            wait(full, "until it is true")
    elif how == "until it is true":
        with pd.while_(lambda: ~pd.ptx(WAIT, full.address(), 0)):
            pass


def launch(how, schedule):
    y = np.zeros(32, np.uint32)
    return pd.emulate(handed_over, 1, 64, np.ones(200, np.uint32), y, schedule=schedule, how=how), y


@every_schedule
@pytest.mark.parametrize("how", ["until it is true", "once, then again"])
def test_a_wait_that_is_repeated(how, schedule):
    report, y = launch(how, schedule)
    assert not report.findings, report
    assert (y == 200).all()


@every_schedule
def test_one_wait_may_end_too_early(schedule):
    report, _ = launch("once", schedule)
    assert report.findings


def test_a_loop_around_a_wait_need_not_repeat_it():
    report, _ = launch("in an outer loop", "skewed")
    assert report.findings


TEST_WAIT = """
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.arrive.shared.b64 %rd1, [full];
    mbarrier.test_wait.shared.b64 %p1, [full], %rd1;
    {use}
"""


@pytest.mark.parametrize("use", ["@%p1 ret;", "not.pred %p2, %p1;", "mov.u32 %r1, 0; @!%p1 mov.u32 %r1, 1;"])
def test_results_that_are_read(use):
    assert not run(TEST_WAIT.format(use=use), parameters="", module=".shared .b64 full;", block=1).findings


@pytest.mark.parametrize("name", ["mbarrier.test_wait", "mbarrier.try_wait"])
def test_a_result_that_nothing_reads(name, monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", ".version 8.0\n.target sm_90\n.address_size 64\n")
    body = TEST_WAIT.format(use="").replace("mbarrier.test_wait", name)
    finding = only(run(body, parameters="", module=".shared .b64 full;", block=1))
    assert str(finding) == (
        f"mbarrier: nothing reads the result of {name}.shared.b64, so the phase may not be complete after it\n"
        "  <ptx>:9\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: repeat it in a loop until its result is true"
    )
