"""Atomics that later ones of other threads hide: weak accesses are held against them all the same."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32
from ptxdsl.emulate.run import machine
from ptxdsl.types import Type
from tests.emulate.support import clean

EVERY_LANE = 0xFFFFFFFF


def races(report):
    assert {finding.kind for finding in report.findings} <= {"race"}, str(report)
    return [str(finding) for finding in report.findings]


@pd.kernel
def counted_block_clears(counter: ptr[u32], *, count: int, orders: bool = False):
    """The block that is counted after `count` others sets the counter to 0; the counts order nothing else, or do."""
    last = pd.shared(u32, 1)
    with pd.if_(pd.tid.x == 0):
        if orders:
            last[0] = pd.ptx.atom.acq_rel.gpu.global_.add.u32(counter, 1)
        else:
            last[0] = pd.ptx.atom.relaxed.gpu.global_.add.u32(counter, 1)
    pd.ptx.bar.sync(0)
    with pd.if_((last[0] == count) & (pd.tid.x == 1)):
        counter[0] = 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("blocks", [2, 300])
@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:3"])
@pytest.mark.parametrize("orders", [False, True])
def test_the_last_block_clears_a_counter(orders, schedule, blocks, monkeypatch):
    """The value that the last one was given says that all others have counted; that of another one says nothing."""
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    counter = np.zeros(1, np.uint32)
    clean(pd.emulate(counted_block_clears, blocks, 32, counter, count=blocks - 1, orders=orders))
    assert counter == [0]
    assert races(pd.emulate(counted_block_clears, blocks, 32, counter, count=0, orders=orders))


@pd.kernel
def clears_another_counter(counters: ptr[u32]):
    """The last block, by its second count, clears both: of the first one the order is luck."""
    with pd.if_(pd.tid.x == 0):
        ticket = pd.ptx.atom.relaxed.gpu.global_.add.u32(counters, 1)
        ended = pd.ptx.atom.relaxed.gpu.global_.add.u32(counters + 1, 1)
        with pd.if_((ended == pd.nctaid.x - 1) & (ticket < pd.nctaid.x)):
            counters[0] = 0
            counters[1] = 0


@pytest.mark.parametrize("blocks", [2, 40])
@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:3"])
def test_a_count_says_nothing_of_another_counter(schedule, blocks, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    [text] = races(pd.emulate(clears_another_counter, blocks, 32, np.zeros(2, np.uint32)))
    assert "writes counters[0], updated by thread (0, 0, 0) of block" in text


@pd.kernel
def hidden_behind_a_store(counter: ptr[u32]):
    """Block 1 is given what block 2 stored, which took the place of what block 0 counted."""
    flag, word = counter + 1, pd.var(u32, 0)

    def comes_behind(block: int):
        with pd.while_(lambda: word != block):
            pd.ptx.ld.relaxed.gpu.global_.u32(flag, out=word)

    for block in range(3):
        with pd.if_(pd.ctaid.x == block):
            comes_behind(block)
            if block == 0:
                pd.ptx.red.relaxed.gpu.global_.add.u32(counter, 1)
            elif block == 1:
                pd.ptx.st.relaxed.gpu.global_.u32(counter, 7)
            else:
                word.set(pd.ptx.atom.relaxed.gpu.global_.add.u32(counter, 1))
                counter[0] = word
            pd.ptx.st.relaxed.gpu.global_.u32(flag, block + 1)


@pytest.mark.usefixtures("lockstep")
def test_who_is_given_a_store_is_not_given_what_it_took_the_place_of():
    [text] = races(pd.emulate(hidden_behind_a_store, 3, 1, np.zeros(2, np.uint32)))
    assert "updated by thread (0, 0, 0) of block (0, 0, 0) with red.relaxed.gpu.global.add.u32" in text


@pd.kernel
def last_block_of_the_grid_clears(counter: ptr[u32], *, part: Type = u32):
    with pd.if_(pd.tid.x == 0):
        pd.ptx.red.relaxed.gpu.global_.add.u32(counter, 1)
        with pd.if_(pd.ctaid.x == pd.nctaid.x - 1):
            counter.bitcast(part)[4 // part.bytes - 1] = 7


@pytest.mark.usefixtures("lockstep")
def test_the_text_of_it():
    [text] = races(pd.emulate(last_block_of_the_grid_clears, 3, 32, np.zeros(1, np.uint32)))
    assert text == (
        "race: st.global.u32 writes counter[0], updated by thread (0, 0, 0) of block (0, 0, 0) with "
        "red.relaxed.gpu.global.add.u32; nothing orders the two: blocks run in any order\n"
        "  test_behind.py:101 | counter.bitcast(part)[4 // part.bytes - 1] = 7\n"
        "                       ^\n"
        "  test_behind.py:99 | pd.ptx.red.relaxed.gpu.global_.add.u32(counter, 1)\n"
        "                      ^\n"
        "  by thread (0, 0, 0) of block (2, 0, 0)\n"
        "  help: st.global.u32 (line 101) is weak: a flag or a counter needs .relaxed, .acquire, .release or .volatile"
    )


@pd.kernel
def turns(counter: ptr[u32], flag: ptr[u32], *, first_orders: bool):
    """Each of three blocks counts; block 2 comes behind block 1 and clears, block 1 behind block 0 if that orders."""

    def comes_behind(turn: int):
        with pd.while_(lambda: pd.ptx.ld.acquire.gpu.global_.u32(flag) != turn):
            pass

    for block in range(3):
        with pd.if_(pd.ctaid.x == block):
            if block == 2 or (block == 1 and first_orders):
                comes_behind(block)
            pd.ptx.red.relaxed.gpu.global_.add.u32(counter, 1)
            if block == 1 or (block == 0 and first_orders):
                pd.ptx.st.release.gpu.global_.u32(flag, block + 1)
            if block == 2:
                counter[0] = 0


@pytest.mark.usefixtures("lockstep")
def test_who_knows_of_the_last_atomic_need_not_know_of_all():
    [text] = races(pd.emulate(turns, 3, 1, *np.zeros((2, 1), np.uint32), first_orders=False))
    assert "updated by thread (0, 0, 0) of block (0, 0, 0) with red.relaxed.gpu.global.add.u32" in text
    clean(pd.emulate(turns, 3, 1, *np.zeros((2, 1), np.uint32), first_orders=True))


@pytest.mark.parametrize("barrier", ["", "warp", "block"])
@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("schedule", ["lockstep", "skewed"])
def test_threads_of_a_block(schedule, threads, barrier, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)

    @pd.kernel
    def count():
        counter = pd.shared(u32, 1)
        counter[0] = 0
        pd.ptx.bar.sync(0)
        pd.ptx.red.shared.add.u32(counter.address(), 1)
        if barrier:
            (pd.ptx.bar.sync(0) if barrier == "block" else pd.ptx.bar.warp.sync(EVERY_LANE))
        with pd.if_(pd.tid.x == threads - 1):
            counter[0] = 0

    ordered = barrier == "block" or (barrier == "warp" and threads == 32)
    assert bool(races(pd.emulate(count, 1, threads))) != ordered


@pd.kernel
def add_up(sums: ptr[u32], counter: ptr[u32], *, orders: bool, element: Type = u32):
    """Each block adds to all sums, more than are remembered each; the last one sets them to 0."""
    last = pd.shared(u32, 1)
    pd.ptx.red.relaxed.gpu.global_.add.u32(sums + pd.tid.x, 1)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        if orders:
            last[0] = pd.ptx.atom.acq_rel.gpu.global_.add.u32(counter, 1)
        else:
            last[0] = pd.ptx.atom.relaxed.gpu.global_.add.u32(counter, 1)
    pd.ptx.bar.sync(0)
    with pd.if_(last[0] == pd.nctaid.x - 1):
        sums.bitcast(element)[pd.tid.x * (4 // element.bytes)] = 0


@pytest.mark.parametrize(("blocks", "element"), [(2, u32), (2, pd.u8), (5, u32)])
@pytest.mark.parametrize("schedule", ["lockstep", "skewed"])
def test_the_last_block_clears_many_sums(schedule, blocks, element, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    arrays = np.zeros(512, np.uint32), np.zeros(1, np.uint32)
    [text] = races(pd.emulate(add_up, blocks, 512, *arrays, orders=False, element=element))
    assert re.search(r"writes sums.(\d+)., updated by thread .\1, 0, 0. of block .* with red", text)
    arrays = np.zeros(512, np.uint32), np.zeros(1, np.uint32)
    clean(pd.emulate(add_up, blocks, 512, *arrays, orders=True, element=element))


@pytest.mark.parametrize("words", [4, 512])
@pytest.mark.parametrize("barrier", [False, True])
def test_while_other_blocks_come_in(words, barrier, monkeypatch):
    """Both halves of a block add to the same words, wait for a block that comes later, and the second one clears."""
    monkeypatch.setattr(machine, "LANES", 4 * words)

    @pd.kernel
    def kernel(flag: ptr[u32]):
        sums = pd.shared(u32, words)
        with pd.if_(pd.ctaid.x == 3):
            pd.ptx.st.release.gpu.global_.u32(flag, 1)
        with pd.else_():
            with pd.if_(pd.tid.x < words):
                sums[pd.tid.x] = 0
            pd.ptx.bar.sync(0)
            pd.ptx.red.shared.add.u32(sums.address(pd.tid.x % words), 1)
            with pd.while_(lambda: pd.ptx.ld.acquire.gpu.global_.u32(flag) == 0):
                pass
            if barrier:
                pd.ptx.bar.sync(0)
            with pd.if_(pd.tid.x >= words):
                sums[pd.tid.x - words] = 0

    report = pd.emulate(kernel, 4, 2 * words, np.zeros(1, np.uint32))
    assert bool(races(report)) != barrier


@pytest.mark.parametrize("bytes", [1, 2])
def test_parts_of_words(bytes):
    """Another access of a byte makes words smaller: what was remembered of them is remembered of all their parts."""
    part = {1: pd.u8, 2: pd.u16}[bytes]
    report = pd.emulate(last_block_of_the_grid_clears, 4, 32, np.zeros(1, np.uint32), part=part)
    assert "updated by thread (0, 0, 0) of block" in races(report)[0]
