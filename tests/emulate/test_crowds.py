"""Lanes of a warp that meet without the others: who has read a word is known lane by lane."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f32, ptr, u32
from ptxdsl.emulate.observe.races.crowds import Crowds
from ptxdsl.emulate.observe.races.stamps import STAMP
from tests.emulate.support import clean

EVERYONE = 0xFFFFFFFF
spaces = pytest.mark.parametrize("space", ["shared", "global"])


@pd.kernel
def steps(words: ptr[u32], y: ptr[u32], *, program: tuple[tuple[str, int, int], ...], space: str):
    """("read", lanes, word), ("write", lane, word), ("meet", lanes, 0): one after another, by one warp."""
    memory = pd.shared(u32, 2) if space == "shared" else words
    with pd.if_(pd.tid.x < 2):
        memory[pd.tid.x] = 0
    pd.ptx.bar.sync(0)
    bit, total = pd.cast(1, u32) << pd.tid.x, pd.var(u32, 0)
    for number, (what, which, word) in enumerate(program):
        if what == "write":
            with pd.if_(pd.tid.x == which):
                memory[word] = 100 + number
        else:
            with pd.if_((bit & which) != 0):
                if what == "read":
                    total += memory[word]
                else:
                    pd.ptx.bar.warp.sync(which)
    y[pd.tid.x] = total


def run(program, space):
    return pd.emulate(steps, 1, 32, np.zeros(2, np.uint32), np.zeros(32, np.uint32), program=program, space=space)


def lanes_of(mask):
    return [lane for lane in range(32) if mask >> lane & 1]


def is_racy(program):
    """The rule itself: vector clocks of 32 lanes."""
    known, reads, writes = np.zeros((32, 32), int), np.zeros((2, 32), int), np.zeros((2, 32), int)
    for time, (what, which, word) in enumerate(program, 1):
        lanes = [which] if what == "write" else lanes_of(which)
        for lane in lanes if what != "meet" else ():
            late = writes[word] > known[lane]
            late |= (reads[word] > known[lane]) & (what == "write")
            late[lane] = False
            if late.any():
                return True
        if what == "meet":
            known[lanes] = np.maximum(known[lanes].max(0), [time if lane in lanes else 0 for lane in range(32)])
        else:
            (reads if what == "read" else writes)[word, lanes] = time
    return False


def drawn(rng):
    def some():
        return sum(1 << int(lane) for lane in rng.choice([0, 1, 2, 31], rng.integers(1, 4), replace=False))

    kinds = {
        "read": lambda: ("read", int(rng.choice([some(), some(), 0xFF, EVERYONE])), int(rng.integers(2))),
        "write": lambda: ("write", int(rng.choice([0, 1, 2, 31])), int(rng.integers(2))),
        "meet": lambda: ("meet", int(rng.choice([some(), some(), 0x1FF, EVERYONE])), 0),
    }
    return tuple(
        kinds[kind]() for kind in rng.choice(["read", "write", "meet"], rng.integers(3, 12), p=[0.4, 0.2, 0.4])
    )


@spaces
def test_any_program_of_a_warp_is_judged_by_the_rule(space, rng):
    for _ in range(25):
        program = drawn(rng)
        report = run(program, space)
        assert {finding.kind for finding in report.findings} == ({"race"} if is_racy(program) else set()), program


@spaces
@pytest.mark.parametrize("writer", [0, 3, 8])
def test_those_who_read_and_met_may_write(space, writer):
    clean(
        run(
            (("read", 0x1FF, 0), ("meet", 0x1FF, 0), ("write", writer, 0), ("meet", 0x1FF, 0), ("read", 0x1FF, 0)),
            space,
        )
    )


@spaces
def test_who_met_only_one_of_the_readers_may_not(space):
    """Lane 31 met lane 0: what the others have read is as open as before."""
    assert run((("read", EVERYONE, 0), ("meet", 0x80000001, 0), ("write", 0, 0)), space).findings


@spaces
def test_a_reader_behind_which_another_lane_reads_is_remembered(space):
    assert run((("read", 1 << 3, 0), ("read", 1 << 5, 0), ("write", 5, 0)), space).findings


@spaces
def test_halves_of_a_warp_are_warps_of_their_own(space):
    """All lanes read in one step, each half another word; one lane of each half writes it when that half has met."""
    half = pd.kernel(halves)
    clean(pd.emulate(half, 1, 32, np.zeros(2, np.uint32), np.zeros(32, np.uint32), space=space))


def halves(words: ptr[u32], y: ptr[u32], *, space: str):
    memory = pd.shared(u32, 2) if space == "shared" else words
    half, total = pd.laneid // 16, pd.var(u32, 0)
    with pd.if_(pd.laneid % 16 == 0):
        memory[half] = 1
    for _ in pd.range(3):
        mask = pd.cast(0xFFFF, u32) << half * 16
        pd.ptx.bar.warp.sync(mask)
        total += memory[half]
        pd.ptx.bar.warp.sync(mask)
        with pd.if_(pd.laneid % 16 == 0):
            memory[half] = total
    y[pd.tid.x] = total


@pd.kernel
def released(flag: ptr[u32], x: ptr[u32], y: ptr[u32], *, meets: int):
    """Nine lanes of warp 0 read x[0], `meets` of them meet, and one tells warp 1, which writes it."""
    with pd.if_(pd.tid.x < 9):
        y[pd.tid.x] = x[0]
        with pd.if_(pd.tid.x < meets):
            pd.ptx.bar.warp.sync((1 << meets) - 1)
            with pd.if_(pd.tid.x == 0):
                pd.ptx.st.release.gpu.global_.u32(flag, 1)
    with pd.if_(pd.tid.x == 32):
        with pd.while_(lambda: pd.ptx.ld.acquire.gpu.global_.u32(flag) == 0):
            pass
        x[0] = 1


def test_what_lanes_that_met_have_read_is_released_together():
    arrays = [np.zeros(16, np.uint32) for _ in range(3)]
    clean(pd.emulate(released, 1, 64, *arrays, meets=9))
    assert pd.emulate(released, 1, 64, *arrays, meets=8).findings


@pytest.mark.parametrize(("lanes", "told"), [(8, 2), (9, 9)])
def test_crowds_of_a_step_beyond_those_that_can_be_told_apart_are_one(lanes, told):
    """Each word is read by two lanes: by 28 pairs of eight, for which there are numbers, or by 36 of nine."""
    crowds, pairs = Crowds(), np.array([*combinations(range(lanes), 2)])
    words, zeros = np.repeat(np.arange(len(pairs)), 2), np.zeros(pairs.size, STAMP)
    stamps = crowds.gathered(words, (640 + pairs.reshape(-1)).astype(STAMP), zeros, zeros)
    readers = crowds.readers(zeros, stamps)
    assert ((readers != 0).sum(1) == told).all()
    assert (readers[np.arange(pairs.size), pairs.reshape(-1)] == 640 + pairs.reshape(-1)).all()


@pd.kernel(arch="sm_90a", reqntid=32)
def reloaded(x: pd.TensorMap(f32, (8, 32)), y: pd.TensorMap(f32, (8, 32))):
    """Twice: one lane loads, all add, the lane stores and loads anew when that has been read; its mbarrier tells all."""
    tile, full = x.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)
    for turn in pd.range(2):
        with pd.if_(pd.tid.x == 0):
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
            x.load(tile, (0, 0), full)
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), turn)):  # noqa: B023
            pass
        for row in range(8):
            tile[row, pd.tid.x] = tile[row, pd.tid.x] + 1
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            y.store((0, 0), tile)
            pd.ptx.cp.async_.bulk.commit_group()
            pd.ptx.cp.async_.bulk.wait_group(0)


def test_a_read_that_an_mbarrier_made_known_is_no_longer_one_of_a_crowd():
    x, y = np.ones((8, 32), np.float32), np.zeros((8, 32), np.float32)
    clean(pd.emulate(reloaded, 1, 32, x, y))
    assert (y == 2).all()
