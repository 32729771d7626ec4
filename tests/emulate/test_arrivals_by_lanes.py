"""Lanes of a warp that arrive at mbarriers, each for itself: who waits for a phase knows what each of them had read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f32, ptr, u32
from tests.emulate.support import clean

WARP = 32
NOBODY = WARP  # no lane has this number
spaces = pytest.mark.parametrize("space", ["shared", "global"])
schedules = pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1"])


def initialise(barrier, count):
    pd.ptx.mbarrier.init.shared__cta.b64(barrier, count)


def arrive(barrier):
    pd.ptx.mbarrier.arrive.shared__cta.b64(barrier, out="_")


def wait(barrier, parity):
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(barrier, parity)):
        pass


@pd.kernel(reqntid=64, arch="sm_90")
def passed_back(
    words: ptr[u32],
    y: ptr[u32],
    *,
    groups: int,
    space: str,
    count: int = WARP,
    early: int = NOBODY,
    absent: int = NOBODY,
):
    """Twice: lanes of warp 0, which come apart in groups, read a word and arrive; warp 1 waits for all and writes it.

    Lane `early` arrives before it reads, lane `absent` not at all."""
    memory, barriers = pd.shared(u32, 1) if space == "shared" else words, pd.shared(b64, 2)
    empty, full = (barriers.address(number) for number in range(2))
    with pd.if_(pd.tid.x == 0):
        memory[0] = 7
        initialise(empty, count)
        initialise(full, 1)
    pd.ptx.bar.sync(0)
    total = pd.var(u32, 0)
    with pd.if_(pd.warpid == 0):
        for turn in range(2):
            for group in range(groups):
                with pd.if_(pd.laneid % groups == group):
                    if turn:
                        wait(full, 0)
                    with pd.if_(pd.laneid == early):
                        arrive(empty)
                    total += memory[0]
                    with pd.if_((pd.laneid != early) & (pd.laneid != absent)):
                        arrive(empty)
    with pd.else_(), pd.if_(pd.laneid == 0):
        for turn in range(2):
            wait(empty, turn)
            memory[0] = 8 + turn
            arrive(full)
    y[pd.tid.x] = total


def run(kernel, schedule="lockstep", block=64, grid=1, **constants):
    with pd.config.using(schedule=schedule):
        return pd.emulate(kernel, grid, block, np.zeros(8, np.uint32), np.zeros(block, np.uint32), **constants)


@pytest.mark.cases(5)
@schedules
@spaces
@pytest.mark.parametrize("groups", [1, 2, 3, 32])
def test_each_lane_has_read_when_it_arrives(groups, space, schedule):
    clean(run(passed_back, schedule, groups=groups, space=space))


@pytest.mark.cases(5)
@schedules
@spaces
@pytest.mark.parametrize("groups", [1, 2, 32])
@pytest.mark.parametrize("wrong", ["early", "absent"])
def test_a_lane_that_arrives_too_early_or_never(wrong, groups, space, schedule):
    count = WARP - (wrong == "absent")
    report = run(passed_back, schedule, groups=groups, space=space, count=count, **{wrong: 5})
    assert {finding.kind for finding in report.findings} == {"race"}


@schedules
def test_one_arrival_too_few_is_waited_for(schedule):
    """The phase is complete before the last lane arrives, which may not have read yet."""
    report = run(passed_back, schedule, groups=32, space="shared", count=WARP - 1)
    assert "race" in {finding.kind for finding in report.findings}


@pd.kernel(reqntid=64, arch="sm_90")
def by_halves(words: ptr[u32], y: ptr[u32], *, space: str, other: bool):
    """All lanes of warp 0 read in one step; each half has a word and an mbarrier, for which a lane of warp 1 waits."""
    memory, barriers = pd.shared(u32, 2) if space == "shared" else words, pd.shared(b64, 2)
    with pd.if_(pd.tid.x < 2):
        memory[pd.tid.x] = 7
        initialise(barriers.address(pd.tid.x), WARP // 2)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.warpid == 0):
        half = pd.laneid // 16
        y[pd.tid.x] = memory[half]
        arrive(barriers.address(half))
    with pd.else_(), pd.if_(pd.laneid < 2):
        wait(barriers.address(pd.laneid), 0)
        memory[1 - pd.laneid if other else pd.laneid] = 8 + pd.laneid


@schedules
@spaces
def test_halves_of_a_warp_that_arrive_at_mbarriers_of_their_own(space, schedule):
    clean(run(by_halves, schedule, space=space, other=False))
    assert run(by_halves, schedule, space=space, other=True).findings


@pd.kernel(reqntid=96, arch="sm_90")
def known_by_two(words: ptr[u32], y: ptr[u32], *, groups: int, both: bool):
    """The lanes of two warps read a word, and arrive at an mbarrier a group; who writes it waits for each of these."""
    barriers = pd.shared(b64, groups)
    with pd.if_(pd.tid.x < groups):
        initialise(barriers.address(pd.tid.x), 2 * WARP // groups)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.warpid < 2):
        for group in range(groups):
            with pd.if_(pd.laneid % groups == group):
                y[pd.tid.x] = words[0]
                arrive(barriers.address(group))
    with pd.else_():
        for group in range(groups if both else groups - 1):
            with pd.if_((pd.laneid == 0) if group % 2 else (pd.laneid < WARP)):  # as a lane, or as a warp
                wait(barriers.address(group), 0)
        with pd.if_(pd.laneid == 0):
            words[0] = 1


@pytest.mark.cases(3)
@schedules
@pytest.mark.parametrize("groups", [2, 4, 32])
def test_what_a_thread_and_its_warp_have_waited_for_is_known_together(groups, schedule):
    clean(run(known_by_two, schedule, 96, groups=groups, both=True))
    assert run(known_by_two, schedule, 96, groups=groups, both=False).findings


@pd.kernel
def counted(words: ptr[u32], y: ptr[u32], *, groups: int, early: int = NOBODY):
    """The lanes of block 0 read a word, and each counts itself; a thread of block 1 waits for all and writes it."""
    count = words + 1
    with pd.if_(pd.ctaid.x == 0):
        for group in range(groups):
            with pd.if_(pd.laneid % groups == group):
                with pd.if_(pd.laneid == early):
                    pd.ptx.red.release.gpu.global_.add.u32(count, 1)
                y[pd.tid.x] = words[0]
                with pd.if_(pd.laneid != early):
                    pd.ptx.red.release.gpu.global_.add.u32(count, 1)
    with pd.else_(), pd.if_(pd.tid.x == 0):
        with pd.while_(lambda: pd.ptx.ld.acquire.gpu.global_.u32(count) != WARP):
            pass
        words[0] = 1


@pytest.mark.cases(3)
@schedules
@pytest.mark.parametrize("groups", [1, 2, 3, 32])
def test_a_counter_that_each_lane_releases(groups, schedule):
    clean(run(counted, schedule, 32, 2, groups=groups))
    assert {finding.kind for finding in run(counted, schedule, 32, 2, groups=groups, early=5).findings} == {"race"}


@pd.kernel(reqntid=64, arch="sm_90", cluster=2)
def from_another_block(words: ptr[u32], y: ptr[u32], *, groups: int, early: int = NOBODY):
    """Lanes of block 1 read a word of block 0, where they arrive; a thread there waits for all of them and writes it."""
    word, empty = pd.shared(u32, 1), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        word[0] = 7
        initialise(empty.address(), WARP)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.barrier.cluster.arrive()
    pd.ptx.barrier.cluster.wait()
    there = [pd.ptx.mapa.shared__cluster.u32(pointer, 0) for pointer in (word.address(), empty.address())]
    with pd.if_(pd.ctaid.x == 1):
        for group in range(groups):
            with pd.if_((pd.warpid == 0) & (pd.laneid % groups == group)):
                with pd.if_(pd.laneid == early):
                    pd.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(there[1])
                y[pd.tid.x] = pd.ptx.ld.shared__cluster.u32(there[0])
                with pd.if_(pd.laneid != early):
                    pd.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(there[1])
    with pd.else_(), pd.if_(pd.tid.x == 32):
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.acquire.cluster.shared__cta.b64(empty.address(), 0)):
            pass
        word[0] = 8
    pd.ptx.barrier.cluster.arrive()
    pd.ptx.barrier.cluster.wait()


@pytest.mark.cases(3)
@schedules
@pytest.mark.parametrize("groups", [1, 2, 3, 32])
def test_lanes_of_another_block_of_the_cluster(groups, schedule):
    clean(run(from_another_block, schedule, 64, 2, groups=groups))
    report = run(from_another_block, schedule, 64, 2, groups=groups, early=5)
    assert {finding.kind for finding in report.findings} == {"race"}


@pd.kernel(reqntid=64, arch="sm_90a")
def reloaded(x: pd.TensorMap(f32, (8, 32)), y: ptr[f32], *, groups: int, fences: int):
    """A lane of warp 1 loads a tile, twice; lanes of warp 0 read it, fence that in so many `groups`, and arrive."""
    tile, barriers = x.shared(), pd.shared(b64, 2)
    empty, full = (barriers.address(number) for number in range(2))
    with pd.if_(pd.tid.x == 0):
        initialise(empty, WARP)
        initialise(full, 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)
    total = pd.var(f32, 0)
    for turn in range(2):
        with pd.if_(pd.tid.x == 32):
            if turn:
                wait(empty, 0)
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full, x.bytes, out="_")
            x.load(tile, (0, 0), full)
        for group in range(groups):
            with pd.if_((pd.warpid == 0) & (pd.laneid % groups == group)):
                wait(full, turn)
                total += tile[turn, 0]
                if group < fences:
                    pd.ptx.fence.proxy.async_.shared__cta()
                arrive(empty)
    y[pd.tid.x] = total


@pytest.mark.cases(2)
@schedules
@pytest.mark.parametrize("groups", [1, 2, 32])
def test_each_lane_fences_what_it_has_read(groups, schedule):
    def told(fences):
        x, y = np.ones((8, 32), np.float32), np.zeros(64, np.float32)
        with pd.config.using(schedule=schedule):
            return pd.emulate(reloaded, 1, 64, x, y, groups=groups, fences=fences)

    clean(told(groups))
    assert {finding.kind for finding in told(groups - 1).findings} == {"race"}


class Op(NamedTuple):
    """One operation of threads: "read" or "write" a word, "meet" in a warp, or "arrive" and "wait" at a barrier."""

    what: str
    threads: tuple[int, ...]
    where: int = 0
    parity: int = 0


WARPS, BARRIERS, WORDS = 4, (2, 3, 4), 2


@pd.kernel(reqntid=WARPS * WARP, arch="sm_90")
def steps(words: ptr[u32], y: ptr[u32], *, program: tuple[Op, ...], space: str):
    memory, barriers = pd.shared(u32, WORDS) if space == "shared" else words, pd.shared(b64, len(BARRIERS))
    with pd.if_(pd.tid.x == 0):
        for word in range(WORDS):
            memory[word] = 0
        for number, count in enumerate(BARRIERS):
            initialise(barriers.address(number), count)
    pd.ptx.bar.sync(0)
    total = pd.var(u32, 0)
    for number, op in enumerate(program):
        masks = [sum(1 << thread % WARP for thread in op.threads if thread // WARP == warp) for warp in range(WARPS)]
        mask = pd.cast(masks[0], u32)
        for warp in range(1, WARPS):
            mask = pd.select(pd.warpid == warp, pd.cast(masks[warp], u32), mask)
        with pd.if_((mask >> pd.laneid & 1) != 0):
            if op.what == "read":
                total += memory[op.where]
            elif op.what == "write":
                memory[op.where] = 100 + number
            elif op.what == "meet":
                pd.ptx.bar.warp.sync(mask)
            elif op.what == "arrive":
                arrive(barriers.address(op.where))
            else:
                wait(barriers.address(op.where), op.parity)
    y[pd.tid.x] = total


def is_racy(program):
    """The rule itself: vector clocks of all threads."""
    threads = WARPS * WARP
    known = np.zeros((threads, threads), int)
    reads, writes = np.zeros((2, WORDS, threads), int)
    coming, complete = np.zeros((2, len(BARRIERS), threads), int)
    left = list(BARRIERS)
    for time, (what, who, where, _) in enumerate(program, 1):
        for thread in who if what in ("read", "write") else ():
            late = writes[where] > known[thread]
            late |= (reads[where] > known[thread]) & (what == "write")
            late[thread] = False
            if late.any():
                return True
            (reads if what == "read" else writes)[where, thread] = time
        if what == "meet":
            known[list(who), who] = time
            known[list(who)] = known[list(who)].max(0)
        for thread in who if what == "arrive" else ():
            known[thread, thread] = time
            coming[where] = np.maximum(coming[where], known[thread])
            left[where] -= 1
            if not left[where]:
                complete[where] = np.maximum(complete[where], coming[where])
                coming[where], left[where] = 0, BARRIERS[where]
        if what == "wait":
            known[list(who)] = np.maximum(known[list(who)], complete[where])
    return False


def handed_over(rng):
    """Threads read a word (one may write it), and arrive, by groups; another waits for all of them and writes it."""
    barrier, word = int(rng.integers(len(BARRIERS))), int(rng.integers(WORDS))
    near = rng.random() < 0.7
    threads = [lane + WARP * warp for warp in range(1 if near else WARPS) for lane in (0, 1, 2, 3, 31)]
    left = rng.choice(threads, BARRIERS[barrier], replace=False)
    while left.size:
        some, left = np.split(left, [rng.integers(1, left.size + 1)])
        alone = some.size == 1 and rng.random() < 0.2
        yield Op("write" if alone else "read", tuple(sorted(some.tolist())), word)
        if rng.random() < 0.2:
            yield Op("meet", tuple(sorted(some[some // WARP == some[0] // WARP].tolist())))
        yield Op("arrive", tuple(sorted(some.tolist())), barrier)
    writer = int(rng.choice([1, WARP, WARP + 1, 2 * WARP, 3 * WARP + 31]))
    yield Op("wait", (writer,), barrier)
    yield Op("write", (writer,), word)


def drawn(rng):
    """Some that go on side by side, of which one in 16 operations is missing. Whoever waits does so for a phase that is
    complete."""
    parts = [list(handed_over(rng)) for _ in range(rng.integers(1, 5))]
    arrivals, program = [0] * len(BARRIERS), []
    while parts := [part for part in parts if part]:
        op = parts[min(rng.integers(len(parts)), rng.integers(len(parts)))].pop(0)
        phases = arrivals[op.where] // BARRIERS[op.where] if op.what in ("arrive", "wait") else 1
        if rng.random() < 1 / 16 or (op.what == "wait" and not phases):
            continue
        if op.what == "arrive":
            arrivals[op.where] += len(op.threads)
        program.append(op._replace(parity=(phases - 1) % 2))
    return tuple(program)


@pytest.mark.cases(1)
@spaces
def test_any_program_of_threads_and_barriers_is_judged_by_the_rule(space, rng):
    for _ in range(25):
        program = drawn(rng)
        report = run(steps, block=WARPS * WARP, program=program, space=space)
        assert {finding.kind for finding in report.findings} == ({"race"} if is_racy(program) else set()), program
