"""Accesses that nothing orders, and those that something does: what is reported, and what is not."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from tests.emulate.support import clean, only, run

SHARED = "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r3, %r2; xor.b32 %r4, %r2, {flip};\n"
OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
TILE = ".shared .align 128 .u32 s[128];"


def shared(body, flip=4, block=128, **options):
    """A body in which %r2 is the address of a thread's own word in s, %r4 of another one."""
    return run(SHARED.format(flip=flip) + body, parameters="", module=TILE, block=block, **options)


def race(report):
    """The text of the race that a report has; there may be one more, of the same places."""
    kinds = [finding.kind for finding in report.findings]
    assert kinds and set(kinds) == {"race"}, str(report)
    return str(report.findings[0])


@pytest.mark.parametrize("flip, is_racy", [(128, False), (256, True)])
def test_pairs_of_warps_meet_at_barriers_of_their_own(flip, is_racy):
    """A thread reads a word of the other warp of its pair, or one of the other pair."""
    body = """
        st.shared.u32 [%r2], %r1; shr.u32 %r5, %r1, 6;
        bar.sync %r5, 64;
        ld.shared.u32 %r6, [%r4];
    """
    report = shared(body, flip)
    assert {finding.kind for finding in report.findings} == ({"race"} if is_racy else set())


@pd.kernel
def reversal(x: ptr[f32], y: ptr[f32], *, barrier: bool):
    tile = pd.shared(f32, 256)
    tile[pd.tid.x] = x[pd.tid.x]
    if barrier:
        pd.ptx.bar.sync(0)
    y[pd.tid.x] = tile[255 - pd.tid.x]


@pytest.mark.usefixtures("lockstep")
def test_a_reversal_without_its_barrier():
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    report = pd.emulate(reversal, 1, 256, x, y, barrier=False)
    assert race(report) == (
        "race: ld.shared.f32 reads tile[255], written by thread (255, 0, 0) of block (0, 0, 0) with st.shared.f32; "
        "no barrier orders the two\n"
        "  test_races.py:47 | y[pd.tid.x] = tile[255 - pd.tid.x]\n"
        "                                   ^\n"
        "  test_races.py:44 | tile[pd.tid.x] = x[pd.tid.x]\n"
        "                     ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 255 more threads\n"
        "  help: add a `bar.sync` between line 44 and line 47"
    )
    clean(pd.emulate(reversal, 1, 256, x, y, barrier=True))
    assert (y == x[::-1]).all()


@pytest.mark.usefixtures("lockstep")
def test_a_launch_raises_for_a_race_and_writes_nothing():
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    with pytest.raises(pd.EmulationError, match="written by thread"):
        reversal[1, 256](x, y, barrier=False)
    assert (y == 0).all()


def test_lanes_of_a_warp_without_a_collective_between_them():
    text = race(shared("st.shared.u32 [%r2], %r1;\nld.shared.u32 %r5, [%r4];", block=32))
    assert text == (
        "race: ld.shared.u32 reads s[1], written by thread (1, 0, 0) of block (0, 0, 0) with st.shared.u32; "
        "nothing orders the two: lanes of a warp run independently between barriers; the value reaches no output\n"
        "  <ptx>:8\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads\n"
        "  help: add a `bar.warp.sync` between line 7 and line 8"
    )


@pytest.mark.parametrize("sync", ["bar.warp.sync -1;", "bar.sync 0;", "barrier.sync 0;", "bar.red.popc.u32 %r9, 0, 1;"])
def test_barriers_order_lanes_of_a_warp(sync):
    clean(shared(f"st.shared.u32 [%r2], %r1; {sync} ld.shared.u32 %r5, [%r4];"))


@pytest.mark.parametrize(
    "sync",
    [
        "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;", "vote.sync.ballot.b32 %r9, 1, -1;", "match.any.sync.b32 %r9, %r1, -1;",
        "",
    ],
)  # fmt: skip
def test_exchanges_of_registers_order_no_memory(sync):
    """PTX ISA, "bar.warp.sync": it alone guarantees memory ordering among the lanes."""
    report = shared(f"st.shared.u32 [%r2], %r1; {sync} ld.shared.u32 %r5, [%r4];")
    assert "lanes of a warp run independently between barriers" in only(report).message


def test_a_membermask_orders_only_the_lanes_that_it_names():
    body = "setp.ge.u32 %p1, %r1, {lanes}; @%p1 bra END; st.shared.u32 [%r2], %r1; bar.warp.sync {mask}; {more} END:"
    both = "ld.shared.u32 %r5, [%r4];"
    clean(shared(body.format(lanes=2, mask=3, more=both), block=32))
    halves = "setp.lt.u32 %p2, %r1, 1; mov.u32 %r9, 1; @!%p2 mov.u32 %r9, 2;"
    apart = halves + body.format(lanes=2, mask="%r9", more=both)
    assert "bar.warp.sync" in race(shared(apart, block=32))


@pytest.mark.usefixtures("lockstep")
def test_warps_meet_only_at_a_barrier_of_the_block():
    text = race(shared("st.shared.u32 [%r2], %r1; bar.warp.sync -1;\nld.shared.u32 %r5, [%r4];", flip=128))
    assert text == (
        "race: ld.shared.u32 reads s[32], written by thread (32, 0, 0) of block (0, 0, 0) with st.shared.u32; "
        "no barrier orders the two; the value reaches no output\n"
        "  <ptx>:8\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: add a `bar.sync` between line 7 and line 8"
    )


@pytest.mark.usefixtures("lockstep")
def test_a_read_before_a_write_needs_a_barrier_too():
    body = "st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r5, [%r4];\n{}st.shared.u32 [%r2], %r5;"
    assert race(shared(body.format(""), flip=128)) == (
        "race: st.shared.u32 writes s[0], read by thread (32, 0, 0) of block (0, 0, 0) with ld.shared.u32; "
        "no barrier orders the two\n"
        "  <ptx>:8\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: add a `bar.sync` between line 7 and line 8"
    )
    clean(shared(body.format("bar.sync 0; "), flip=128))


TREE = """st.shared.u32 [%r2], %r1; mov.u32 %r6, 64;
AGAIN:
    {first} setp.ge.u32 %p1, %r1, %r6; shl.b32 %r7, %r6, 2; add.u32 %r7, %r2, %r7;
    @!%p1 ld.shared.u32 %r8, [%r7];
    @!%p1 ld.shared.u32 %r5, [%r2];
    @!%p1 add.u32 %r5, %r5, %r8;
    @!%p1 st.shared.u32 [%r2], %r5;
    {last} shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0;
    @%p2 bra AGAIN;
"""


@pytest.mark.usefixtures("lockstep")
def test_a_tree_reduction_with_and_without_its_barrier():
    clean(shared(TREE.format(first="bar.sync 0;", last="")))
    text = race(shared(TREE.format(first="", last="")))
    assert "help: add a `bar.sync` between line 7 and line 10" in text
    text = race(shared("bar.sync 0;" + TREE.format(first="", last="bar.warp.sync -1;")))
    assert "ld.shared.u32 reads s[64], written by thread (64, 0, 0)" in text


@pytest.mark.usefixtures("lockstep")
def test_one_buffer_where_two_are_needed():
    body = """mov.u32 %r6, 3; mov.u32 %r5, %r1;
    AGAIN:
        st.shared.u32 [%r2], %r5; bar.sync 0;
        ld.shared.u32 %r5, [%r4]; {}
        sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0;
        @%p1 bra AGAIN;"""
    assert race(shared(body.format(""), flip=128)).endswith(
        "  help: add a `bar.sync` between line 10 and line 9 of the next iteration"
    )
    clean(shared(body.format("bar.sync 0;"), flip=128))


@pytest.mark.usefixtures("lockstep")
def test_many_threads_at_one_place():
    body = OWN + "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1;\nst.global.u32 [%rd1], %r2;"
    text = race(run(body, np.zeros(1, np.uint32), block=64))
    assert text == (
        "race: st.global.u32 writes x[0], read by threads of warp 1 of block (0, 0, 0) with ld.global.u32; "
        "no barrier orders the two\n"
        "  <ptx>:8\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads\n"
        "  help: let one thread do it, give each thread its own element, or use an atomic operation (atom, red)"
    )
    clean(run(OWN + "red.global.add.u32 [%rd1], %r1;", np.zeros(1, np.uint32), block=64, grid=100))


def test_stores_of_the_same_value_are_not_told():
    """compute-sanitizer does not warn of them either."""
    x = np.zeros(1, np.uint32)
    clean(run(OWN + "st.global.u32 [%rd1], 7;", x, block=64, grid=3))
    text = race(run(OWN + "st.global.u32 [%rd1], %r1;", x, block=64, grid=3))
    assert "let one thread do it" in text


@pytest.mark.usefixtures("lockstep")
def test_parts_of_a_word_are_different_places():
    body = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %rd1, %rd2; "
    clean(run(body + "ld.global.u8 %r2, [%rd2]; st.global.u8 [%rd2], %r2;", np.zeros(64, np.uint8), block=64))
    text = race(run(body + "st.global.u8 [%rd2], %r1; ld.global.u32 %r2, [%rd1];", np.zeros(64, np.uint8), block=64))
    assert "ld.global.u32 reads x[0], written by thread (1, 0, 0)" in text


@pytest.mark.usefixtures("lockstep")
def test_a_copy_of_another_warp_needs_a_barrier_behind_its_wait():
    body = (
        "ld.param.u64 %rd1, [x];"
        + SHARED.format(flip=128)
        + """
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
        cp.async.ca.shared.global [%r2], [%rd2], 4;
        cp.async.wait_all; {}
        ld.shared.u32 %r5, [%r4];"""
    )
    x = np.arange(128, dtype=np.uint32)
    assert race(run(body.format(""), x, block=128, module=TILE)) == (
        "race: ld.shared.u32 reads s[32], filled by thread (32, 0, 0) of block (0, 0, 0) with "
        "cp.async.ca.shared.global; no barrier orders the two; the value reaches no output\n"
        "  <ptx>:11\n"
        "  <ptx>:9\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: add a `bar.sync` between line 9 and line 11, after the wait for the copy"
    )
    clean(run(body.format("bar.sync 0;"), x, block=128, module=TILE))


@pytest.mark.usefixtures("lockstep")
def test_a_copy_must_not_begin_before_others_have_read():
    body = (
        "ld.param.u64 %rd1, [x];"
        + SHARED.format(flip=128)
        + """
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
        st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r5, [%r4]; {}
        cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.wait_all;"""
    )
    x = np.arange(128, dtype=np.uint32)
    assert race(run(body.format(""), x, block=128, module=TILE)).startswith(
        "race: cp.async.ca.shared.global writes s[0], read by thread (32, 0, 0) of block (0, 0, 0) with ld.shared.u32; "
    )
    clean(run(body.format("bar.sync 0;"), x, block=128, module=TILE))


HISTOGRAM = """@%p1 st.shared.u32 [%r2], 0; {} and.b32 %r5, %r1, 7; shl.b32 %r5, %r5, 2; add.u32 %r5, %r3, %r5;
    red.shared.add.u32 [%r5], 1;"""


@pytest.mark.usefixtures("lockstep")
def test_a_histogram_zeroed_without_a_barrier():
    text = race(shared("setp.lt.u32 %p1, %r1, 8;\n" + HISTOGRAM.format("")))
    assert text == (
        "race: red.shared.add.u32 updates s[0], written by thread (0, 0, 0) of block (0, 0, 0) with st.shared.u32; "
        "nothing orders the two: lanes of a warp run independently between barriers\n"
        "  <ptx>:9\n"
        "  <ptx>:8\n"
        "  by thread (8, 0, 0) of block (0, 0, 0) and 119 more threads\n"
        "  help: add a `bar.sync` between line 8 and line 9, since some of these threads also race with another warp; "
        "or, for a flag or a counter, make st.shared.u32 (line 8) .relaxed or .volatile"
    )
    clean(shared("setp.lt.u32 %p1, %r1, 8;" + HISTOGRAM.format("bar.sync 0;")))


# Named barriers: warps 0 and 1 fill, warps 2 and 3 read
ROLES = """setp.ge.u32 %p1, %r1, 64; @%p1 bra READ;
    st.shared.u32 [%r2], %r1; {arrive} ret;
READ:
    {wait} sub.u32 %r2, %r2, 256; ld.shared.u32 %r5, [%r2];"""


@pytest.mark.parametrize(("arrive", "wait"), [
    ("bar.arrive 1, 128;", "bar.sync 1, 128;"), ("barrier.sync 3, 128;", "barrier.sync 3, 128;"),
    ("bar.red.popc.u32 %r9, 2, 128, 1;", "bar.red.popc.u32 %r9, 2, 128, 1;"),
])  # fmt: skip
def test_named_barriers_order_who_comes(arrive, wait):
    clean(shared(ROLES.format(arrive=arrive, wait=wait)))


@pytest.mark.parametrize(("arrive", "wait"), [
    ("", ""), ("bar.arrive 1, 128;", "bar.sync 2, 64;"), ("bar.sync 1, 64;", "bar.sync 2, 64;"),
])  # fmt: skip
def test_other_barriers_order_nothing(arrive, wait):
    body = ROLES.format(arrive=arrive, wait=wait)
    assert "no barrier orders the two" in race(shared(body))


def test_who_arrives_learns_nothing():
    """bar.arrive makes known what came before; behind it nothing is known of the others."""
    body = """setp.ge.u32 %p1, %r1, 64; @%p1 bra READ;
        bar.arrive 1, 128; ld.shared.u32 %r5, [%r2]; ret;
    READ:
        st.shared.u32 [%r2-256], %r1; bar.sync 1, 128;"""
    assert "no barrier orders the two" in race(shared("st.shared.u32 [%r2], %r1; bar.sync 0;" + body))


# Flags between blocks: block 0 writes x[1] and sets x[0], the others wait for it
FLAG = """ld.param.u64 %rd1, [x]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;
    st.global.u32 [%rd1+4], 5; {fence}
    {store}.u32 [%rd1], 1; ret;
WAIT:
    {load}.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
    {behind} ld.global.u32 %r3, [%rd1+4];"""


def flag(store="st.release.gpu.global", load="ld.acquire.gpu.global", fence="", behind=""):
    body = FLAG.format(store=store, load=load, fence=fence, behind=behind)
    return run(body, np.zeros(2, np.uint32), grid=3, block=1)


ORDERED = [
    {},
    {"store": "st.release.sys.global", "load": "ld.acquire.sys.global"},
    {"store": "red.release.gpu.global.add"},
    {"store": "st.relaxed.gpu.global", "fence": "fence.acq_rel.gpu;"},
    {"store": "st.volatile.global", "load": "ld.volatile.global", "fence": "membar.gl;", "behind": "membar.gl;"},
    {"load": "ld.relaxed.gpu.global", "behind": "fence.sc.gpu;"},
    {"store": "red.relaxed.gpu.global.add", "fence": "fence.acq_rel.sys;"},
]


@pytest.mark.parametrize("how", ORDERED, ids=str)
def test_flags_that_order(how):
    clean(flag(**how))


UNORDERED = [
    ({"store": "st.relaxed.gpu.global"}, "x[1]"),
    ({"load": "ld.relaxed.gpu.global"}, "x[1]"),
    ({"load": "ld.volatile.global"}, "x[1]"),
    ({"store": "st.volatile.global", "load": "ld.volatile.global"}, "x[1]"),
    ({"store": "st.relaxed.gpu.global", "fence": "fence.acq_rel.cta;"}, "x[1]"),
    ({"load": "ld.relaxed.gpu.global", "behind": "fence.acq_rel.cta;"}, "x[1]"),
    ({"store": "st.global"}, "x[0]"),
    ({"store": "st.global", "load": "ld.volatile.global", "fence": "membar.gl;", "behind": "membar.gl;"}, "x[0]"),
    ({"store": "st.release.cta.global"}, "x[0]"),
    ({"load": "ld.acquire.cta.global"}, "x[0]"),
]


@pytest.mark.parametrize(("how", "where"), UNORDERED, ids=str)
def test_flags_that_do_not_order(how, where):
    report = flag(**how)
    assert {finding.kind for finding in report.findings} == {"race"}
    assert any(where in finding.message for finding in report.findings), str(report)


def test_a_flag_of_the_wrong_scope_is_told_so():
    text = race(flag(store="st.release.cta.global"))
    assert text == (
        "race: ld.acquire.gpu.global.u32 reads x[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
        "st.release.cta.global.u32; .cta scope does not include threads of the other block\n"
        "  <ptx>:10\n"
        "  <ptx>:8\n"
        "  by thread (0, 0, 0) of block (1, 0, 0) and 1 more thread\n"
        "  help: use .gpu scope in both"
    ) or text.startswith("race: st.release.cta.global.u32 writes x[0], read by thread")


@pytest.mark.usefixtures("lockstep")
def test_a_flag_without_its_release_is_told_with_both_ends():
    text = race(flag(store="st.relaxed.gpu.global"))
    assert text == (
        "race: ld.global.u32 reads x[1], written by thread (0, 0, 0) of block (0, 0, 0) with st.global.u32; "
        "nothing orders the two: blocks run in any order; the value reaches no output\n"
        "  <ptx>:11\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (1, 0, 0) and 1 more thread\n"
        "  help: after line 7, release at .gpu scope (st.release, or fence.acq_rel and an atomic in one thread); before "
        "line 11, acquire it (ld.acquire, or an atomic and fence.acq_rel in one thread); join both to the other "
        "threads of their blocks with bar.sync; or split the kernel into two launches"
    )


def test_only_the_lane_that_acquires_knows():
    """Until the lanes of its warp meet."""
    body = (
        FLAG.replace("WAIT:", "WAIT: mov.u32 %r4, %tid.x; setp.ne.u32 %p3, %r4, 0; @%p3 bra LATER;")
        + """
    LATER: {meet} ld.global.u32 %r3, [%rd1+4];"""
    )
    how = {"store": "st.release.gpu.global", "load": "ld.acquire.gpu.global", "fence": "", "behind": ""}
    start = "mov.u32 %r9, %tid.x; "
    first = start + body.format(meet="bar.warp.sync -1;", **how).replace("ret;", "bra END;", 1) + " END:"
    clean(run(first.replace("bra END;", "ret;"), np.zeros(2, np.uint32), grid=2, block=32))
    report = run(start + body.format(meet="", **how), np.zeros(2, np.uint32), grid=2, block=32)
    assert {finding.kind for finding in report.findings} == {"race"}


# The last block to come adds up what all of them left
LAST = """ld.param.u64 %rd1, [x]; ld.param.u64 %rd3, [count]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; setp.ne.u32 %p1, %r2, 0; @%p1 bra MEET;
    st.global.u32 [%rd2], %r1;
    {before}
    atom{order}.gpu.global.add.u32 %r3, [%rd3], 1;
    {behind} st.shared.u32 [s], %r3;
MEET:
    bar.sync 0; ld.shared.u32 %r3, [s]; mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r3, %r4;
    @%p2 ret;
    mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd1, %rd2; ld.global.u32 %r5, [%rd2];"""


def last_block(before="fence.acq_rel.gpu;", behind="fence.acq_rel.gpu;", order=".relaxed"):
    body = LAST.format(before=before, behind=behind, order=order)
    arrays = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    return run(body, *arrays, parameters="x: u64, count: u64", module=".shared .u32 s;", grid=64, block=64)


def test_the_last_block_with_its_fences():
    clean(last_block())
    clean(last_block("", "", ".acq_rel"))


@pytest.mark.parametrize("fences", [("", ""), ("", "fence.acq_rel.gpu;"), ("fence.acq_rel.gpu;", "")])
@pytest.mark.usefixtures("lockstep")
def test_the_last_block_without_one_of_its_fences(fences):
    assert "ld.global.u32 reads x[0], written by thread (0, 0, 0) of block (0, 0, 0)" in race(last_block(*fences))


def test_blocks_that_never_run_together_race_all_the_same():
    x = np.zeros(1, np.uint32)
    body = OWN + "mov.u32 %r3, %ctaid.x; st.global.u32 [%rd1], %r3;"
    assert "blocks run in any order" in race(run(body, x, grid=3, block=1, resident=1))


MBARRIER = """ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r3, %r2; setp.ge.u32 %p2, %r1, 32; @%p2 bra READ;
    st.shared.u32 [%r2], %r1; mbarrier.arrive{sem}.shared.b64 %rd2, [bar]; ret;
READ:
    {wait} ld.shared.u32 %r5, [%r2-128];"""
WAIT = "AGAIN: mbarrier.test_wait.parity{sem}.shared.b64 %p3, [bar], 0; @!%p3 bra AGAIN;"


@pytest.mark.parametrize(("arrive", "wait", "ordered"), [
    ("", WAIT.format(sem=""), True), ("", "", False), (".relaxed.cta", WAIT.format(sem=""), False),
    ("", WAIT.format(sem=".relaxed.cta"), False), (".release.cta", WAIT.format(sem=".acquire.cta"), True),
])  # fmt: skip
def test_an_mbarrier_orders_who_arrives_before_who_waits(arrive, wait, ordered):
    body = MBARRIER.format(sem=arrive, wait=wait)
    module = ".shared .align 8 .b64 bar; .shared .align 128 .u32 s[64];"
    report = run(body, np.zeros(1, np.uint32), module=module, block=64)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"})


def test_without_checks_there_is_no_look_at_races():
    report = shared("st.shared.u32 [%r2], %r1; ld.shared.u32 %r5, [%r4];", checks=False)
    assert only_or_none(report) is None


def only_or_none(report):
    return only(report) if report.findings else None


@pd.kernel
def counter(flag: ptr[u32], *, relaxed: bool):
    if relaxed:
        pd.ptx.st.relaxed.gpu.global_.u32(flag, pd.ctaid.x)
    else:
        flag[0] = pd.ctaid.x


def test_strong_stores_do_not_race():
    clean(pd.emulate(counter, 4, 1, np.zeros(1, np.uint32), relaxed=True))
    assert pd.emulate(counter, 4, 1, np.zeros(1, np.uint32), relaxed=False).findings


READERS = 5


@pd.kernel
def read_by_many(x: ptr[f32], y: ptr[f32], *, late: int, at_once: bool):
    """Warps 1 to 5 read y[0]; warp 0 writes it behind a barrier to which all of them come but `late`."""
    warp = pd.tid.x // 32
    if at_once:
        with pd.if_(warp > 0):
            x[pd.tid.x] = y[0]
    else:
        for reader in range(1, READERS + 1):
            with pd.if_(warp == reader):
                x[pd.tid.x] = y[0]
    threads = 32 * (READERS + (not late))
    with pd.if_((warp > 0) & (warp != late)):
        pd.ptx.bar.arrive(1, threads)
    with pd.if_(warp == 0):
        pd.ptx.bar.sync(1, threads)
        with pd.if_(pd.laneid == 0):
            y[0] = 1.0


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:3"])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("late", range(READERS + 1))
def test_every_reader_of_a_global_word_is_remembered(late, at_once, schedule):
    arrays = np.zeros(192, np.float32), np.zeros(3, np.float32)
    report = pd.emulate(read_by_many, 1, 192, *arrays, late=late, at_once=at_once, schedule=schedule)
    if not late:
        clean(report)
        return
    told = race(report)
    assert schedule != "lockstep" or told.startswith("race: st.global.f32 writes y[0], read by")
    if told.startswith("race: st.global.f32 writes y[0], read by"):
        assert reader(told) == late
    else:
        assert told.startswith("race: ld.global.f32 reads y[0], written by thread (0, 0, 0) of block (0, 0, 0)")


def reader(told):
    """The warp that a race names as the reader."""
    warp, thread = re.search(r"read by (?:threads of warp (\d+)|thread \((\d+), 0, 0\))", told).groups()
    return int(warp or int(thread) // 32)


@pytest.mark.usefixtures("lockstep")
def test_readers_of_parts_of_words_and_of_wide_ones_are_remembered():
    body = (
        OWN
        + """mov.u32 %r2, %tid.x; shr.u32 %r2, %r2, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, {late};
        @!%p1 ld.global.v2.u32 {{%r4, %r5}}, [%rd1+8];
        @!%p1 ld.global.u8 %h1, [%rd1+13];
        @%p2 bra end; @!%p1 bar.arrive 1, 128; @%p1 bar.sync 1, 128;
        setp.eq.u32 %p3, %r1, 0; @%p3 st.global.u8 [%rd1+13], 1;
        end: ret;"""
    )
    for late in (1, 2, 3, 4):
        report = run(body.format(late=late), np.zeros(8, np.uint32), block=160)
        told = race(report)
        assert told.startswith("race: st.global.u8 writes x[3] plus 1 byte, read by thread")
        assert reader(told) == late


HIDDEN = """{head}; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r1, 32; mov.u32 %r9, {flag};
    @%p1 bra OTHERS; st{space}.u32 [{flag}], 1; atom{space}.add.u32 %r8, [{flag}], 1;
OTHERS: {meet} @%p2 bra END; {second} END:"""


@pytest.mark.parametrize(
    "second", ["ld.relaxed.gpu{space}.u32 %r7, [{flag}];", "atom{space}.add.u32 %r7, [{flag}], 1;"]
)
@pytest.mark.parametrize("space", [".shared", ".global"])
@pytest.mark.usefixtures("lockstep")
def test_a_strong_write_does_not_hide_the_weak_one_before_it(space, second):
    flag = {".shared": "s", ".global": "%rd1"}[space]
    head = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x"

    def report(meet):
        body = HIDDEN.format(head=head, flag=flag, space=space, meet=meet, second=second.format(space=space, flag=flag))
        return run(body.replace("mov.u32 %r9, %rd1;", ""), np.zeros(1, np.uint32), module=TILE, block=64)

    assert f"with st{space}.u32; no barrier orders the two" in race(report(""))
    clean(report("bar.sync 0;"))


READ_TWICE = """{head}; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r1, 32; mov.u32 %r9, {flag};
    @%p1 bra OTHERS; {first} ld.relaxed.gpu{space}.u32 %r8, [{flag}];
OTHERS: {meet} @%p2 bra END; st.relaxed.gpu{space}.u32 [{flag}], 1; END:"""


@pytest.mark.parametrize("space", [".shared", ".global"])
@pytest.mark.usefixtures("lockstep")
def test_a_strong_read_does_not_hide_the_weak_one_before_it(space):
    flag = {".shared": "s", ".global": "%rd1"}[space]
    head = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x"
    if space == ".shared":
        head += "; st.shared.u32 [s], 1; bar.sync 0"

    def report(first, meet=""):
        body = READ_TWICE.format(
            head=head, flag=flag, space=space, meet=meet, first=f"{first}{space}.u32 %r7, [{flag}];"
        )
        return run(body.replace("mov.u32 %r9, %rd1;", ""), np.zeros(1, np.uint32), module=TILE, block=64)

    assert f"with ld{space}.u32; no barrier orders the two" in race(report("ld"))
    clean(report("ld", "bar.sync 0;"))
    clean(report("ld.relaxed.gpu"))


@pytest.mark.usefixtures("lockstep")
def test_an_mbarrier_that_was_initialised_and_counted_at_by_one_thread_alone():
    body = (
        "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r3, bar; @%p1 bra AGAIN;\n"
        "mbarrier.init.shared.b64 [%r3], 1;\nmbarrier.arrive.shared.b64 %rd2, [%r3];\n" + WAIT.format(sem="")
    )
    report = run(body, np.zeros(1, np.uint32), module=".shared .align 8 .b64 bar;", block=64)
    finding = only(report)
    assert finding.message == (
        "mbarrier.test_wait.parity.shared.b64 reads bar[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
        "mbarrier.init.shared.b64; nothing orders the two: lanes of a warp run independently between "
        "barriers"
    )
    assert (
        finding.help
        == "add a `bar.sync` between line 7 and line 9, since some of these threads also race with another warp"
    )


@pytest.mark.usefixtures("lockstep")
def test_no_round_where_there_is_no_loop():
    body = """setp.ge.u32 %p1, %r1, 64; @%p1 bra WRITE; nanosleep.u32 100; {wait}
        ld.shared.u32 %r5, [%r2]; ret;
    WRITE: st.shared.u32 [%r2-256], %r1; {arrive}"""
    text = race(shared(body.format(wait="", arrive="")))
    assert text.endswith("  help: add a `bar.sync` between line 9 and line 8")
    clean(shared(body.format(wait="bar.sync 1, 128;", arrive="bar.arrive 1, 128;")))


def test_two_accesses_of_one_line_without_a_loop():
    text = race(shared("st.shared.u32 [%r2], %r1; ld.shared.u32 %r5, [%r4];", flip=128))
    assert text.endswith("  help: add a `bar.sync` between the two accesses in line 7")


@pytest.mark.parametrize("schedule", ["lockstep", "skewed"])
def test_a_store_of_what_an_atomic_left_there_races_with_it(schedule, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    body = (
        OWN
        + """setp.eq.u32 %p1, %r1, {0}; setp.eq.u32 %p2, %r1, {1}; @%p1 atom.global.add.u32 %r5, [%rd1], 1;
    @%p2 st.global.u32 [%rd1], 1;"""
    )
    for threads in ((0, 32), (32, 0)):
        report = run(body.format(*threads), np.zeros(1, np.uint32), block=64)
        assert "no barrier orders the two" in race(report)


OTHERS = ".shared .align 128 .u32 s[128]; .shared .align 128 .u32 t[64];"
BESIDE = SHARED.format(flip=128) + "mov.u32 %r5, t; sub.u32 %r6, %r2, %r3; add.u32 %r5, %r5, %r6;\n"


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:4"])
def test_writes_are_remembered_behind_reads_of_parts_of_words(schedule, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    body = """st.shared.u32 [%r5], %r1; bar.sync 0;
        st.shared.u32 [%r2], %r1; ld.shared.u8 %h1, [%r5]; st.shared.u32 [%r2+256], %r1; {}
        ld.shared.u32 %r7, [%r4+256];"""
    text = race(run(BESIDE + body.format(""), parameters="", module=OTHERS, block=64))
    assert re.search(r"s\[(64|96)\]", text)
    clean(run(BESIDE + body.format("bar.sync 0;"), parameters="", module=OTHERS, block=64))


def test_accesses_beyond_shared_memory_are_held_against_no_others():
    body = "st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r2+1000000], %r1;"
    assert only(shared(body)).kind == "out-of-bounds"


@pytest.mark.parametrize(("synced", "shift"), [(True, 0), (False, 0), (True, 32)])
def test_warps_with_parts_of_their_own(synced, shift):
    """Each warp writes every other word of its part and reads it; with a shift another warp's, which nothing orders."""

    @pd.kernel
    def kernel(y: ptr[f32]):
        s = pd.shared(f32, 256)
        tid = pd.tid.x
        for turn in range(3):
            s[2 * tid] = tid.to(f32)
            s[2 * tid + 1] = 1.0
            if synced:
                pd.ptx.bar.warp.sync(0xFFFFFFFF)
            y[tid] = s[(2 * (tid ^ 1) + 2 * shift) % 256] + turn
            pd.ptx.bar.warp.sync(0xFFFFFFFF)

    report = pd.emulate(kernel, 1, 128, np.zeros(128, np.float32))
    races = [finding for finding in report.findings if finding.kind == "race"]
    assert bool(races) == (not synced or bool(shift)), report


@pytest.mark.parametrize("row", [0, 7, 19])
@pytest.mark.parametrize(
    ("lane", "warp", "barrier"), [(0, 0, ""), (1, 0, ""), (1, 0, "warp"), (0, 1, "warp"), (0, 1, "block")]
)
@pytest.mark.parametrize("interleaved", [False, True])
def test_one_of_many_accesses_of_a_warp(row, lane, warp, barrier, interleaved):
    """Each warp writes 20 rows of 32 words; a lane reads one of them, its own, another lane's, or another warp's."""

    @pd.kernel
    def kernel(y: ptr[u32]):
        s = pd.shared(u32, 4 * 20 * 32)
        number, mine = pd.tid.x // 32, pd.tid.x % 32
        rows, step = (number * 32, 128) if interleaved else (number * 640, 32)
        for n in range(20):
            s[rows + n * step + mine] = mine + n
        if barrier:
            (pd.ptx.bar.sync(0) if barrier == "block" else pd.ptx.bar.warp.sync(0xFFFFFFFF))
        other = (number ^ warp) * (32 if interleaved else 640)
        y[pd.tid.x] = s[other + row * step + (mine ^ lane)]

    report = pd.emulate(kernel, 1, 128, np.zeros(128, np.uint32))
    races = [finding for finding in report.findings if finding.kind == "race"]
    ordered = barrier == "block" or (not warp and (barrier or not lane))
    assert bool(races) != bool(ordered), report
