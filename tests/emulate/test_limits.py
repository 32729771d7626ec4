"""Schedules, and limits of steps and of time."""

import signal

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr, u32
from tests.emulate.support import clean, only

SCHEDULES = ["lockstep", "skewed", "random", "random:7"]


@pd.kernel
def count(x: ptr[u32], *, rounds: int):
    i = pd.var(u32, 0)
    with pd.while_(lambda: i < rounds):
        i += 1
    x[pd.tid.x] = i


@pd.kernel
def tree(x: ptr[f32], y: ptr[f32]):
    """The sum of 256 numbers in each block."""
    sums = pd.shared(f32, 256)
    sums[pd.tid.x] = x[pd.ctaid.x * 256 + pd.tid.x]
    half = pd.var(u32, 128)
    with pd.while_(lambda: half > 0):
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x < half):
            sums[pd.tid.x] = sums[pd.tid.x] + sums[pd.tid.x + half]
        half >>= 1
    with pd.if_(pd.tid.x == 0):
        y[pd.ctaid.x] = sums[0]


@pd.kernel
def unordered(x: ptr[u32]):
    """What a lane reads is up to the schedule; all of it is strong, so that it is no race."""
    old = pd.ptx.ld.relaxed.gpu.global_.u32(x)
    pd.ptx.st.relaxed.gpu.global_.u32(x, old + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_right_kernel_gives_the_same_under_each_schedule(schedule):
    x, y = np.arange(1024, dtype=np.float32), np.zeros(4, np.float32)
    clean(pd.emulate(tree, 4, 256, x, y, schedule=schedule))
    assert (y == x.reshape(4, 256).sum(1)).all()


def test_schedules_run_warps_in_other_orders():
    sums = {}
    for schedule in SCHEDULES:
        x = np.zeros(1, np.uint32)
        clean(pd.emulate(unordered, 4, 64, x, schedule=schedule))
        sums[schedule] = int(x[0])
    assert sums["lockstep"] == 1
    assert sums["skewed"] == 8  # one warp after another
    assert 1 <= sums["random"] <= 8


def test_the_same_seed_is_the_same_schedule():
    results = set()
    for _ in range(3):
        x = np.zeros(1, np.uint32)
        pd.emulate(unordered, 64, 64, x, schedule="random:3")
        results.add(int(x[0]))
    assert len(results) == 1


def test_a_schedule_that_is_none():
    with pytest.raises(pd.Error) as refused:
        pd.emulate(unordered, 1, 32, np.zeros(1, np.uint32), schedule="reversed")
    assert str(refused.value).startswith(
        "schedule is `reversed`; it must be lockstep, skewed, random or random:SEED, with a number as seed"
    )


@pytest.mark.usefixtures("lockstep")
def test_a_limit_of_steps_names_the_line_and_the_threads():
    x = np.zeros(64, np.uint32)
    report = pd.emulate(count, 1, 64, x, rounds=10**6, max_steps=5000)
    assert str(only(report)) == (
        "limit: stopped after 5000 steps, at setp.lt.u32\n"
        "  test_limits.py:18 | with pd.while_(lambda: i < rounds):\n"
        "                                             ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads\n"
        "  help: raise max_steps or max_seconds, or set PTXDSL_STEPS or PTXDSL_SECONDS"
    )
    assert (x == 0).all()
    clean(pd.emulate(count, 1, 64, x, rounds=100, max_steps=5000))


def test_a_limit_of_time():
    report = pd.emulate(count, 1, 64, np.zeros(64, np.uint32), rounds=10**8, max_seconds=0.2)
    assert only(report).message.startswith("stopped after 0.2 seconds, at ")


def test_limits_and_schedules_from_the_environment(monkeypatch):
    monkeypatch.setenv("PTXDSL_STEPS", "1000")
    with pytest.raises(pd.EmulationError, match="stopped after 1000 steps"):
        count[1, 32](np.zeros(32, np.uint32), rounds=10**6)
    monkeypatch.setenv("PTXDSL_SCHEDULE", "skewed")
    x = np.zeros(1, np.uint32)
    unordered[1, 64](x)
    assert x[0] == 2


def test_launches_without_checks():
    x, y = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    with pytest.raises(pd.EmulationError, match="written by thread"):
        shift[1, 32](x, y)
    with config.using(checks=False):
        shift[1, 32](x, y)
    assert (y == (np.arange(32) + 1) % 32).all()


@pd.kernel
def shift(x: ptr[u32], y: ptr[u32]):
    x[pd.tid.x] = pd.tid.x
    y[pd.tid.x] = x[(pd.tid.x + 1) % 32]


@pytest.mark.usefixtures("lockstep")
def test_an_interruption_says_where_the_kernel_was():
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt) as interrupted:
            pd.emulate(count, 1, 64, np.zeros(64, np.uint32), rounds=10**9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (note,) = interrupted.value.__notes__
    assert note.startswith("count was at ")
    assert "test_limits.py:1" in note
    assert note.endswith(" steps, with thread (0, 0, 0) of block (0, 0, 0) and others")


@pytest.mark.parametrize(("variable", "value", "expected"), [
    ("PTXDSL_STEPS", "many", "a whole number of 1 or more"), ("PTXDSL_SECONDS", "-1", "a number of seconds above 0"),
    ("PTXDSL_SCHEDULE", "random:x", "lockstep, skewed, random or random:SEED, with a number as seed"),
])  # fmt: skip
def test_settings_that_are_none(monkeypatch, variable, value, expected):
    monkeypatch.setenv(variable, value)
    with pytest.raises(pd.Error) as refused:
        config.current()
    assert str(refused.value).startswith(f"{variable} is `{value}`; it must be {expected}")
