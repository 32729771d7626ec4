"""More threads arrive at an mbarrier than its phase waits for: those behind the last that counts belong to the next."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f32, ptr


@pd.kernel(reqntid=96, arch="sm_90")
def passed_on(y: ptr[f32], *, count: int):
    s, done = pd.shared(f32, 64), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(done.address(), count)
    with pd.if_(pd.tid.x < 64):
        s[pd.tid.x] = 1.0
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x < 64):
        y[pd.tid.x] = s[pd.tid.x]
        pd.ptx.mbarrier.arrive.shared__cta.b64(done.address(), out="_")
    with pd.else_():
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(done.address(), 0)):
            pass
        s[pd.tid.x - 64] = 2.0
        s[pd.tid.x - 32] = 2.0


def test_all_that_the_phase_waits_for_are_known_behind_it():
    y = np.zeros(64, np.float32)
    passed_on[1, 96](y, count=64)
    assert (y == 1).all()


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1"])
def test_one_thread_too_many(schedule, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    with pytest.raises(pd.EmulationError) as error:
        passed_on[1, 96](np.zeros(64, np.float32), count=63)
    if schedule == "lockstep":
        text = re.sub(r"test_overarrivals\.py:\d+", "test_overarrivals.py:N", str(error.value))
        assert re.sub(r"\n +\^+", "", text) == (
            "passed_on: st.shared.f32 writes s[63], read by thread (63, 0, 0) of block (0, 0, 0) with ld.shared.f32; "
            "no barrier orders the two, by thread (95, 0, 0) of block (0, 0, 0)\n"
            "  test_overarrivals.py:N | y[pd.tid.x] = s[pd.tid.x]\n"
            "  test_overarrivals.py:N | s[pd.tid.x - 32] = 2.0\n"
            "  help: add a `bar.sync` between line 23 and line 29"
        )
