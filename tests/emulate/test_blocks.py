"""Blocks that wait for each other through global memory, and which of them run at the same time."""

import time

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32
from tests.emulate.support import clean, only, run

THREADS = 1024


@pd.kernel
def relay(flags: ptr[u32], x: ptr[u32], *, step: int, release: str, acquire: str):
    """Each block adds to x after the block `step` places before it, the first of them at once; -1: after the next."""
    block = pd.ctaid.x if step > 0 else pd.nctaid.x - 1 - pd.ctaid.x
    with pd.if_(pd.tid.x == 0):
        seen = pd.var(u32, 0)
        with pd.while_(lambda: seen != block):
            seen.set(read(flags, acquire))
    pd.ptx.bar.sync(0)
    x[pd.tid.x] = x[pd.tid.x] * 3 + pd.ctaid.x
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        if release == "red":
            pd.ptx.red.release.gpu.global_.add.u32(flags, 1)
        else:
            pd.ptx.st.release.gpu.global_.u32(flags, block + 1)


def read(flags, acquire):
    if acquire == "ld":
        return pd.ptx.ld.acquire.gpu.global_.u32(flags)
    if acquire == "sleep":
        pd.ptx.nanosleep.u32(40)
        return pd.ptx.ld.acquire.gpu.global_.u32(flags)
    if acquire == "cas":
        return pd.ptx.atom.acquire.gpu.global_.cas.b32(flags, 0, 0).bitcast(u32)
    pd.ptx.red.relaxed.gpu.global_.add.u32(flags + 1, 1)  # counts its looks: memory changes in every round
    return pd.ptx.ld.acquire.gpu.global_.u32(flags)


def relayed(order):
    total = 0
    for block in order:
        total = (3 * total + block) % 2**32
    return total


@pytest.mark.cases(3)
@pytest.mark.parametrize(("release", "acquire"), [
    ("st", "ld"), ("red", "ld"), ("red", "cas"), ("st", "sleep"), ("st", "count"),
])  # fmt: skip
@pytest.mark.parametrize("blocks", [2, 20])
@pytest.mark.parametrize("step", [1, -1], ids=["block 1 waits for block 0", "block 0 waits for block 1"])
def test_blocks_wait_for_their_neighbours(step, blocks, release, acquire):
    """20 such blocks are more than start together; -1: all of them wait for the last one to start."""
    flags, x = np.zeros(2, np.uint32), np.zeros(THREADS, np.uint32)
    start = time.perf_counter()
    clean(pd.emulate(relay, blocks, THREADS, flags, x, step=step, release=release, acquire=acquire))
    assert time.perf_counter() - start < 20
    assert flags[0] == blocks
    assert (x == relayed(range(blocks)[::step])).all()


@pytest.mark.parametrize("step", [1, -1])
def test_a_neighbour_that_tells_nobody(step):
    """The wait for block 0, or for the last, is a deadlock of all others, however many wait to start."""
    flags, x = np.zeros(2, np.uint32), np.zeros(THREADS, np.uint32)
    flags[0] = 1000
    report = pd.emulate(relay, 3, THREADS, flags, x, step=step, release="red", acquire="ld")
    finding = only(report)
    assert finding.message == (
        "bar.sync: lanes 1–31 of a warp wait for lane 0; lane 0 waits in a loop that makes no progress "
        f"({finding.locations[1]})"
    )
    assert (x == 0).all()


WAITS_FOR_LAST = """
    ld.param.u64 %rd1, [flag]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;
    setp.eq.u32 %p1, %r1, %r2;
    @%p1 bra LAST;
WAIT:
    ld.acquire.gpu.global.u32 %r3, [%rd1];
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra WAIT;
    ret;
LAST:
    st.release.gpu.global.u32 [%rd1], 1;
"""
RESIDENT = [
    (1, 0, 132 * 32),  # blocks
    (1024, 0, 132 * 2),  # threads
    (32, 100 << 10, 132 * 2),  # shared memory, of which each block takes 1024 bytes more than it asks for
    (32, 114 << 10, 132 * 1),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("block", "shared", "most"), RESIDENT)
@pytest.mark.usefixtures("lockstep")  # all warps of a GPU, one by one, take minutes
def test_as_many_blocks_run_together_as_an_h200_holds(block, shared, most):
    options = {"block": block, "parameters": "flag: u64", "shared_bytes": shared}
    options["module"] = ".extern .shared .b8 buffer[];" if shared else ""
    clean(run(WAITS_FOR_LAST, np.zeros(1, np.uint32), grid=most, **options))
    finding = only(run(WAITS_FOR_LAST, np.zeros(1, np.uint32), grid=most + 2, **options))
    assert finding.message == (
        f"every thread is blocked\n  {most * block} threads of {most} blocks wait in a loop that makes no progress (<ptx>:11)\n"
        f"  2 blocks cannot start until one of the {most} resident blocks ends"
    )


def test_later_blocks_start_when_earlier_ones_end():
    """Of 3 that fit, two end at once each time and one waits for the last of 20."""
    body = WAITS_FOR_LAST.replace("@%p1 bra LAST;", "@%p1 bra LAST;\nsetp.ne.u32 %p3, %r1, 0;\n@%p3 ret;")
    clean(run(body, np.zeros(1, np.uint32), grid=20, resident=3, parameters="flag: u64"))


BROADCAST = """
    ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [x]; ld.param.u32 %r8, [writer];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, %r8;
    @%p2 bra WRITE;
WAIT:
    @%p1 bra MEET;
    ld.acquire.gpu.global.u32 %r5, [%rd1];
    st.shared.u32 [s], %r5;
MEET:
    bar.sync 0;
    ld.shared.u32 %r6, [s];
    bar.sync 0;
    setp.eq.u32 %p3, %r6, 0;
    @%p3 bra WAIT;
    red.global.add.u32 [%rd2], 1;
    ret;
WRITE:
    @!%p1 red.release.gpu.global.add.u32 [%rd1], {amount};
"""
WAITERS = {"block": 256, "parameters": "flag: u64, x: u64, writer: u32", "module": ".shared .u32 s;"}


@pytest.mark.parametrize("writer", [0, 79])
def test_a_block_that_waits_together(writer):
    """One thread looks and tells the others, who come to two barriers in each round."""
    flag, x = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    clean(run(BROADCAST.format(amount=1), flag, x, writer, grid=80, **WAITERS))
    assert x[0] == 79 * 256


@pytest.mark.exhaustive
@pytest.mark.parametrize("blocks", [2, 6])
def test_a_block_that_waits_together_in_vain(blocks):
    """Its lanes part and meet in each round, and memory is written, but all that comes has been before."""
    flag, x = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    finding = only(run(BROADCAST.format(amount=0), flag, x, 0, grid=blocks, **WAITERS))
    assert finding.kind == "deadlock"
    who = f"{(blocks - 1) * 256} threads of {blocks - 1} blocks" if blocks > 2 else "threads 0–255 of block (1, 0, 0)"
    assert finding.message == f"every thread is blocked\n  {who} wait in a loop that makes no progress (<ptx>:11)"


@pytest.mark.exhaustive
def test_a_long_loop_is_no_deadlock():
    """One lane counts far, while the others of its block go round and round for it."""
    body = """
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; setp.ge.u32 %p1, %r1, 32;
        @%p1 bra WAIT;
    COUNT:
        add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9000;
        @%p2 bra COUNT;
        st.volatile.global.u32 [%rd1], %r2;
        ret;
    WAIT:
        and.b32 %r3, %r1, 1; setp.eq.u32 %p3, %r3, 0;
        @%p3 bra EVEN;
        add.u32 %r4, %r1, 1;
    EVEN:
        ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0;
        @%p2 bra WAIT;
    """
    x = np.zeros(1, np.uint32)
    clean(run(body, x, block=64))
    assert x[0] == 9000
