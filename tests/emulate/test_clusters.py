"""Clusters on the emulator: blocks that run together, their barrier, and their distributed shared memory."""

import numpy as np
import pytest

from ptxdsl import config

from . import support
from .support import clean, only

SCHEDULES = ("lockstep", "skewed", "random:3")
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def launch(body, *arguments, cluster=(2, 1, 1), schedule="lockstep", module="", parameters="x: u64", **options):
    """The report of a kernel of clusters with this body."""
    text = support.source(body, parameters, module)
    text = text.replace(support.HEAD, ".version 8.0\n.target sm_90\n.address_size 64\n")
    with config.using(schedule=schedule):
        return support.launch(text, *arguments, cluster=cluster, **options)


MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

# %rd1 = &x[16 * (number of the block in the grid)], for grids with three axes
ROW = """
    ld.param.u64 %rd0, [x];
    mov.u32 %r20, %ctaid.z; mov.u32 %r21, %nctaid.y; mov.u32 %r22, %ctaid.y; mad.lo.u32 %r20, %r20, %r21, %r22;
    mov.u32 %r21, %nctaid.x; mov.u32 %r22, %ctaid.x; mad.lo.u32 %r20, %r20, %r21, %r22;
    mad.wide.u32 %rd1, %r20, 64, %rd0;
"""
NAMES = [f"%{name}.{axis}" for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for axis in "xyz"]
NAMES += ["%cluster_ctarank", "%cluster_nctarank"]
SPECIAL = ROW + "".join(
    f"mov.u32 %r0, {name}; st.global.u32 [%rd1+{4 * n}], %r0;\n" for n, name in enumerate(NAMES)
) + "mov.pred %p0, %is_explicit_cluster; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+56], %r0;"  # fmt: skip


@pytest.mark.parametrize(
    "grid, cluster",
    [((6, 1, 1), (2, 1, 1)), ((4, 6, 1), (2, 3, 1)), ((4, 2, 6), (2, 2, 3)), ((2, 2, 2), (1, 1, 1)), ((3, 4, 1), None)],
    ids=str,
)
def test_special_registers_say_where_a_block_is_in_its_cluster(grid, cluster):
    blocks = int(np.prod(grid))
    x = np.full((blocks, 16), 99, np.uint32)
    clean(launch(SPECIAL, x, grid=grid, block=1, cluster=cluster))
    c = np.array(cluster or (1, 1, 1))
    for n in range(blocks):
        at = np.array([n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])])
        inner = at % c
        rank = inner[0] + c[0] * (inner[1] + c[1] * inner[2])
        expected = [*at // c, *np.array(grid) // c, *inner, *c, rank, c.prod(), cluster is not None]
        assert x[n, :15].tolist() == [int(v) for v in expected]


# Each block adds 1 to a counter of its cluster in global memory, and after the barrier reads all of them.
COUNT = ROW + f"""
    mov.u32 %r0, %clusterid.x; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0;
    @%p0 red.relaxed.gpu.global.add.u32 [%rd2], 1;
    {MEET}
    ld.global.u32 %r2, [%rd2];
    mov.u32 %r3, %cluster_nctarank; setp.ne.u32 %p1, %r2, %r3;
    @%p1 trap;
"""  # fmt: skip


@every_schedule
@pytest.mark.parametrize("blocks, cluster, threads", [(8, 2, 33), (60, 4, 96), (16, 16, 1), (6, 3, 128)])
def test_no_thread_passes_the_barrier_of_its_cluster_before_all_have_come(schedule, blocks, cluster, threads):
    x = np.zeros(blocks, np.uint32)
    report = launch(COUNT, x, grid=blocks, block=threads, cluster=(cluster, 1, 1), schedule=schedule)
    clean(report)
    assert (x[: blocks // cluster] == cluster).all()


@every_schedule
def test_blocks_of_a_cluster_start_together_though_few_are_resident(schedule):
    x = np.zeros(12, np.uint32)
    clean(launch(COUNT, x, grid=12, block=64, cluster=(4, 1, 1), resident=5, schedule=schedule))
    assert (x[:3] == 4).all()


def test_lanes_may_arrive_in_different_places_without_aligned():
    body = """
        mov.u32 %r1, %laneid; setp.lt.u32 %p0, %r1, 16;
        @%p0 bra first;
        barrier.cluster.arrive; bra wait;
        first: barrier.cluster.arrive.release;
        wait: barrier.cluster.wait.acquire;
    """
    clean(launch(body, np.zeros(1, np.uint32), grid=2))


def test_threads_that_have_ended_are_not_waited_for():
    body = f"mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p0, %r1, 1; @%p0 ret; {MEET}"
    clean(launch(body, np.zeros(1, np.uint32), grid=4, block=64))


DEADLOCK = """
    mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p0, %r1, 1;
    @%p0 bra other;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    bra done;
    other: mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 32;
    @%p1 bar.sync 1, 64;
    @!%p1 bar.sync 2, 64;
    done:
"""


@every_schedule
def test_a_deadlock_is_found_under_every_schedule(schedule):
    finding = only(launch(DEADLOCK, np.zeros(1, np.uint32), grid=2, block=64, schedule=schedule))
    assert finding.kind == "deadlock"
    assert "64 of 128 threads have arrived; the others are in block (1, 0, 0)" in finding.message


def test_a_deadlock_names_who_waits_at_the_barrier_of_the_cluster():
    finding = only(launch(DEADLOCK, np.zeros(1, np.uint32), grid=2, block=64))
    assert finding.message.splitlines() == [
        "every thread is blocked",
        "  threads 0–31 of block (1, 0, 0) wait at barrier 1, where 32 of 64 threads have arrived (<ptx>:13)",
        "  threads 32–63 of block (1, 0, 0) wait at barrier 2, where 32 of 64 threads have arrived (<ptx>:14)",
        "  threads 0–63 of block (0, 0, 0) wait at the cluster barrier, where 64 of 128 threads have arrived; "
        "the others are in block (1, 0, 0) (<ptx>:10)",
    ]


@pytest.mark.parametrize(
    "body, message, help",
    [
        (
            "barrier.cluster.arrive; barrier.cluster.arrive;",
            "barrier.cluster.arrive: the thread already arrived at the cluster barrier and has not waited since",
            "execute barrier.cluster.wait between two arrivals of a thread",
        ),
        (
            "barrier.cluster.wait;",
            "barrier.cluster.wait: the thread waits at the cluster barrier but has not arrived",
            "execute barrier.cluster.arrive before it",
        ),
    ],
    ids=["arrived twice", "never arrived"],
)
def test_arrivals_and_waits_come_in_turn(body, message, help):
    finding = only(launch(body, np.zeros(1, np.uint32), grid=2))
    assert (finding.kind, finding.message, finding.help) == ("barrier", message, help)


# Distributed shared memory: %r4 = the rank of the next block, %r5 = the address there of buf[tid] of this block.
SHARED = ".shared .align 8 .b32 buf[64]; .shared .align 8 .b64 mbar;"
NEXT = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;
    add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3;
    mov.u32 %r5, buf; mad.lo.u32 %r6, %r1, 4, %r5; mapa.shared::cluster.u32 %r5, %r6, %r4;
    mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ntid.x; mad.lo.u32 %r7, %r7, %r8, %r1;
    ld.param.u64 %rd0, [x]; mad.wide.u32 %rd1, %r7, 4, %rd0;
"""
PUT, GET = "st.shared.u32 [%r6], %r7;", "ld.shared::cluster.u32 %r9, [%r5]; st.global.u32 [%rd1], %r9;"
READ = NEXT + "{before}" + PUT + "{between}" + GET + "{behind}"
BARRIER = f"\n    {MEET}\n    "


def neighbours(count, cluster, threads):
    """What each thread reads: the number that the thread of the next block of its cluster wrote."""
    number = np.arange(count * threads).reshape(-1, cluster, threads)
    return np.roll(number, -1, axis=1).reshape(-1)


def read(*, cluster=2, grid=4, threads=33, schedule="lockstep", body=None, resident=None, **parts):
    """A kernel whose threads read what threads of the next block of the cluster wrote: its output and the report."""
    parts = {"before": "", "between": BARRIER, "behind": BARRIER} | parts
    x = np.zeros(grid * threads, np.uint32)
    text = (body or READ).format(**parts)
    report = launch(text, x, grid=grid, block=threads, cluster=(cluster, 1, 1), schedule=schedule, module=SHARED,
                    resident=resident)  # fmt: skip
    return x, report


@every_schedule
@pytest.mark.parametrize("cluster, grid, threads", [(2, 4, 33), (3, 9, 64), (16, 16, 1), (8, 8, 40), (1, 2, 32)])
def test_threads_read_shared_memory_of_another_block(schedule, cluster, grid, threads):
    x, report = read(cluster=cluster, grid=grid, threads=threads, schedule=schedule)
    clean(report)
    assert (x == neighbours(grid, cluster, threads)).all()


@every_schedule
def test_more_clusters_than_a_machine_holds(schedule):
    x, report = read(cluster=4, grid=40, threads=32, schedule=schedule, resident=7)
    clean(report)
    assert (x == neighbours(40, 4, 32)).all()


@every_schedule
@pytest.mark.parametrize(
    "get",
    [
        "cvta.shared::cluster.u64 %rd2, %rd3; ld.u32 %r9, [%rd2];",
        "cvta.shared.u64 %rd2, %rd4; mapa.u64 %rd2, %rd2, %r4; ld.u32 %r9, [%rd2];",
        "cvta.shared.u64 %rd2, %rd4; mapa.u64 %rd2, %rd2, %r4; cvta.to.shared::cluster.u64 %rd2, %rd2; "
        "ld.shared::cluster.u32 %r9, [%rd2];",
    ],
    ids=["cvta of mapa", "generic mapa", "cvta.to"],
)
def test_generic_addresses_reach_other_blocks(schedule, get):
    body = READ.replace(GET, "cvt.u64.u32 %rd3, %r5; cvt.u64.u32 %rd4, %r6;" + get + " st.global.u32 [%rd1], %r9;")
    x, report = read(body=body, schedule=schedule)
    clean(report)
    assert (x == neighbours(4, 2, 33)).all()


def test_an_address_of_the_own_block_is_one_of_the_cluster():
    body = READ.replace("[%r5]", "[%r6]")
    x, report = read(body=body)
    clean(report)
    assert (x == np.arange(4 * 33)).all()


def test_isspacep_and_getctarank_tell_whose_memory_it_is():
    body = (
        NEXT
        + """
        cvt.u64.u32 %rd3, %r5; cvta.shared::cluster.u64 %rd3, %rd3; cvt.u64.u32 %rd4, %r6; cvta.shared.u64 %rd4, %rd4;
        mapa.u64 %rd5, %rd4, %r2;
        isspacep.shared::cta %p0, %rd3; isspacep.shared::cluster %p1, %rd3; isspacep.shared %p2, %rd4;
        isspacep.shared::cta %p3, %rd5;
        selp.u32 %r10, 1, 0, %p0; selp.u32 %r11, 2, 0, %p1; selp.u32 %r12, 4, 0, %p2; selp.u32 %r13, 8, 0, %p3;
        or.b32 %r10, %r10, %r11; or.b32 %r10, %r10, %r12; or.b32 %r10, %r10, %r13;
        getctarank.shared::cluster.u32 %r11, %r5; mad.lo.u32 %r10, %r11, 100, %r10;
        getctarank.u64 %r11, %rd4; mad.lo.u32 %r10, %r11, 10000, %r10;
        st.global.u32 [%rd1], %r10;
    """
    )
    x = np.zeros(6, np.uint32)
    clean(launch(body, x, grid=6, block=1, cluster=(3, 1, 1), module=SHARED))
    assert x.tolist() == [(n % 3) * 10000 + (n + 1) % 3 * 100 + 14 for n in range(6)]


@every_schedule
def test_atomics_of_many_blocks_meet_in_the_memory_of_one(schedule):
    body = (
        NEXT
        + f"""
        st.shared.u32 [%r6], 0;
        {MEET}
        mov.u32 %r10, buf; mapa.shared::cluster.u32 %r10, %r10, 0;
        red.relaxed.cluster.shared::cluster.add.u32 [%r10], %r1;
        {MEET}
        setp.eq.u32 %p0, %r2, 0;
        @%p0 ld.shared.u32 %r11, [buf];
        @%p0 st.global.u32 [%rd1], %r11;
    """
    )
    x = np.zeros(8 * 32, np.uint32)
    clean(launch(body, x, grid=8, block=32, cluster=(4, 1, 1), module=SHARED, schedule=schedule))
    assert x.reshape(8, 32)[::4].tolist() == [[4 * 31 * 16] * 32] * 2


# Thread 0 of each block tells the next block, by an mbarrier there, that buf is ready; and its own, that it has been read.
REMOTE = (
    NEXT
    + """
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared.b64 [mbar], 32;
    {init}
    mov.u32 %r10, mbar; mapa.shared::cluster.u32 %r10, %r10, %r4;
    st.shared::cluster.u32 [%r5], %r7;
    {arrive}
    wait: mbarrier.try_wait.parity{acquire}.shared.b64 %p1, [mbar], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd1], %r9;
"""
)
TOLD = {"init": MEET, "arrive": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];",
        "acquire": ".acquire.cluster"}  # fmt: skip


@every_schedule
def test_an_mbarrier_of_another_block_orders_stores_there(schedule):
    x, report = read(body=REMOTE, threads=32, cluster=4, grid=8, schedule=schedule, **TOLD)
    clean(report)
    number = np.arange(8 * 32).reshape(-1, 4, 32)
    assert (x == np.roll(number, 1, axis=1).reshape(-1)).all()


@every_schedule
@pytest.mark.parametrize("scope", [".release.cta", ""])
@pytest.mark.parametrize("wait", [".acquire.cta", "", ".acquire.cluster"])
def test_an_arrival_of_block_scope_releases_no_stores_to_another_block(scope, wait, schedule):
    """The default scope of both is .cta, which does not include threads of the other block."""
    arrive = f"mbarrier.arrive{scope}.shared::cluster.b64 _, [%r10];"
    _, report = read(body=REMOTE, threads=32, schedule=schedule, **TOLD | {"arrive": arrive, "acquire": wait})
    assert report.findings[0].kind == "race"


@every_schedule
@pytest.mark.parametrize("wait", [".acquire.cta", ""])
def test_a_wait_of_block_scope_acquires_no_stores_of_another_block(wait, schedule):
    _, report = read(body=REMOTE, threads=32, schedule=schedule, **TOLD | {"acquire": wait})
    assert report.findings[0].kind == "race"


def test_a_wait_of_block_scope_in_words():
    _, report = read(body=REMOTE, threads=32, cluster=2, grid=2, **TOLD | {"acquire": ""})
    assert str(report.findings[0]) == (
        "race: ld.shared.u32 reads buf[0], written by thread (0, 0, 0) of block (1, 0, 0) with st.shared::cluster.u32; "
        "nothing orders the two: the blocks of a cluster run concurrently\n"
        "  <ptx>:21\n"
        "  <ptx>:17\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads\n"
        "  help: add a `barrier.cluster.arrive` and a `barrier.cluster.wait` between line 17 and line 21, or an mbarrier "
        "with `mbarrier.arrive.release.cluster` and `mbarrier.try_wait.acquire.cluster`"
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "parts, kind",
    [
        ({"between": "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"}, "race"),
        ({"behind": ""}, "cluster"),
        ({"between": "bar.sync 0;"}, "cluster"),
    ],
    ids=["relaxed arrival", "no barrier before the end", "no barrier of the cluster"],
)
def test_every_barrier_is_needed_under_every_schedule(parts, kind, schedule):
    _, report = read(schedule=schedule, **parts)
    assert report.findings[0].kind == kind


RELAXED_MEETING = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
SOME = "setp.lt.u32 %p0, %r1, {}; @%p0 fence.acq_rel.cluster;\n"
FENCES = [
    ("fence.acq_rel.cluster;", None),
    ("bar.warp.sync -1;\n" + SOME.format(1), None),  # cumulativity: lane 0 fences what the warp did
    (SOME.format(1) + "bar.warp.sync -1;", 1),  # what lane 0 learns after its fence is not released
    (SOME.format(16), 16),
    ("fence.acq_rel.cta;", 0),
    ("", 0),
]


@every_schedule
@pytest.mark.parametrize(("fence", "first"), FENCES)
def test_a_relaxed_arrival_orders_what_each_lane_fenced(fence, first, schedule):
    """Without a fence, lanes from the `first` on may not have written yet."""
    x, report = read(between=f"\n{fence}\n{RELAXED_MEETING}\n", threads=32, schedule=schedule)
    if first is None:
        clean(report)
        assert (x == neighbours(4, 2, 32)).all()
    else:
        assert only(report).message.startswith(f"ld.shared::cluster.u32 reads buf[{first}] of block (")


@every_schedule
@pytest.mark.parametrize("everyone", [False, True])
def test_one_lane_fences_the_mbarrier_that_it_initialised(everyone, schedule):
    """As in DeepGEMM: the other lanes of the warp have nothing to fence, and arrive relaxed as well."""
    fence = "fence.mbarrier_init.release.cluster;"
    init = f"{fence if everyone else '@%p0 ' + fence}\n{RELAXED_MEETING}"
    x, report = read(body=REMOTE, threads=32, cluster=2, grid=4, schedule=schedule, **TOLD | {"init": init})
    clean(report)
    assert (x == np.roll(np.arange(128).reshape(-1, 2, 32), 1, axis=1).reshape(-1)).all()


@every_schedule
def test_nobody_fences_an_mbarrier_before_a_relaxed_meeting(schedule):
    _, report = read(body=REMOTE, threads=32, cluster=2, grid=2, schedule=schedule, **TOLD | {"init": RELAXED_MEETING})
    assert "mbarrier.init.shared.b64" in report.findings[0].message


def test_a_block_that_ends_early_is_found():
    _, report = read(behind="")
    finding = only(report)
    assert finding.message == (
        "block (0, 0, 0) ends, and nothing orders its end after the access of threads of warp 0 of block (1, 0, 0) to "
        "its buf[0] with ld.shared::cluster.u32"
    )
    assert finding.help == (
        "keep every block alive until a barrier.cluster.arrive and .wait after the last access to its shared memory"
    )


# Each thread stores its number to the next block by st.async; the block waits for all the bytes.
SENT = (
    NEXT
    + """
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared.b64 [mbar], 1;
    {init}
    @%p0 mbarrier.arrive.expect_tx.shared.b64 %rd5, [mbar], 128;
    mov.u32 %r10, mbar; mapa.shared::cluster.u32 %r10, %r10, %r4;
    {send}
    wait: mbarrier.try_wait.parity.shared.b64 %p1, [mbar], 0;
    @!%p1 bra wait;
    {read}
"""
)
SEND = {
    "init": MEET,
    "send": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r7, [%r10];",
    "read": "ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd1], %r9;",
}


@every_schedule
@pytest.mark.parametrize("resident", [None, 4])
def test_asynchronous_stores_complete_at_the_mbarrier_of_their_block(schedule, resident):
    x, report = read(body=SENT, threads=32, cluster=4, grid=12, schedule=schedule, resident=resident, **SEND)
    clean(report)
    assert (x == np.roll(np.arange(12 * 32).reshape(-1, 4, 32), 1, axis=1).reshape(-1)).all()


@every_schedule
def test_asynchronous_reductions_add_up(schedule):
    send = (
        "st.shared.u32 [%r6], 5; " + MEET + " red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
        ".add.u32 [%r5], %r7, [%r10];"
    )
    x, report = read(body=SENT, threads=32, cluster=2, grid=4, schedule=schedule, **SEND | {"send": send})
    clean(report)
    assert (x == np.roll(np.arange(4 * 32).reshape(-1, 2, 32), 1, axis=1).reshape(-1) + 5).all()


def test_an_asynchronous_store_takes_effect_late():
    """Without the wait its bytes are not there, whatever the schedule."""
    early = SENT.replace("wait: mbarrier", "ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd1], %r9; wait: mbarrier")
    for schedule in SCHEDULES:
        _, report = read(body=early, threads=32, cluster=2, grid=2, schedule=schedule, **SEND | {"read": ""})
        assert report.findings[0].kind == "uninitialized", str(report)


def test_a_block_that_ends_before_it_has_received_all():
    body = SENT.replace("wait: mbarrier.try_wait.parity.shared.b64 %p1, [mbar], 0;\n    @!%p1 bra wait;", "")
    for schedule in SCHEDULES:
        _, report = read(body=body, threads=32, cluster=2, grid=2, schedule=schedule, **SEND | {"read": ""})
        finding = report.findings[0]
        assert finding.kind == "cluster"
        assert finding.message in [
            f"block ({n}, 0, 0) ends while st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 to its shared "
            "memory is in flight"
            for n in (0, 1)
        ]
        assert finding.help == "wait on the mbarrier where the bytes complete, before the block ends"


def test_too_few_bytes_are_a_deadlock():
    body = SENT.replace("[mbar], 128", "[mbar], 132")
    _, report = read(body=body, threads=32, cluster=2, grid=2, **SEND)
    assert only(report).kind == "deadlock"


# Findings of ranks, starts and ends


def test_a_rank_that_the_cluster_does_not_have():
    body = NEXT + "mapa.shared::cluster.u32 %r5, %r6, 2;" + GET
    finding = only(launch(body, np.zeros(64, np.uint32), grid=2, module=SHARED))
    assert (finding.kind, finding.message, finding.help) == (
        "cluster",
        "ld.shared::cluster.u32 reads shared memory of the block of rank 2; the launch has clusters of 2 blocks, "
        "whose ranks are 0 to 1",
        "pass mapa a rank less than %cluster_nctarank",
    )


def test_a_rank_where_there_are_no_clusters():
    body = NEXT + "mapa.shared::cluster.u32 %r5, %r6, 1;" + GET
    finding = only(launch(body, np.zeros(64, np.uint32), grid=2, module=SHARED, cluster=None))
    assert finding.message == (
        "ld.shared::cluster.u32 reads shared memory of the block of rank 1; the launch has no clusters"
    )


def test_an_address_of_another_block_in_the_own_space():
    body = NEXT + GET.replace("shared::cluster", "shared")
    finding = launch(body, np.zeros(64, np.uint32), grid=2, module=SHARED).findings[0]
    assert finding.kind == "out-of-bounds"
    assert finding.message.endswith("an address in shared memory of the block of rank 1 in the cluster, not in .shared")
    assert finding.help == "write .shared::cluster"


def test_an_index_beyond_the_memory_of_another_block():
    body = READ.replace("[%r5]", "[%r5+256]")
    _, report = read(body=body, threads=32)
    finding = report.findings[0]
    assert finding.kind == "out-of-bounds"
    assert finding.message == "ld.shared::cluster.u32 reads 4 bytes at buf[64]; buf has 64 b32"


def test_a_block_that_may_not_have_started():
    _, report = read(between="", behind="", threads=32, body=NEXT + "st.shared::cluster.u32 [%r5], %r7;" + BARRIER)
    finding = report.findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "cluster",
        "st.shared::cluster.u32 writes buf[0] of block (1, 0, 0), which may not have started",
        "add a barrier.cluster.arrive and .wait before the first access",
    )


def test_a_block_that_has_ended():
    body = (
        NEXT
        + f"""
        setp.eq.u32 %p0, %r2, 1;
        {MEET}
        @%p0 ret;
        nanosleep.u32 100; bar.sync 0;
        {{wait}}
        ld.shared::cluster.u32 %r9, [%r5]; st.global.u32 [%rd1], %r9;
    """
    )
    x = np.zeros(64, np.uint32)
    body = body.format(wait="")
    report = launch(body, x, grid=2, block=32, module=SHARED, schedule="skewed")
    finding = report.findings[0]
    assert (finding.kind, finding.message) == (
        "cluster", "ld.shared::cluster.u32 reads buf[0] of the block of rank 1 in the cluster, which has ended"
    )  # fmt: skip


# Races between blocks of a cluster

FLAG = (
    NEXT
    + """
    setp.ne.u32 %p0, %r2, 0;
    mov.u32 %r10, mbar; mapa.shared::cluster.u32 %r10, %r10, 0;
    st.shared.u32 [mbar], 0; st.shared.u32 [%r6], 7;
"""
    + f"    {MEET}"
    + """
    @%p0 bra reader;
    st.shared.u32 [%r6], 9;
    {release} [mbar], 1;
    bra done;
    reader: {acquire} %r11, [%r10];
    setp.eq.u32 %p1, %r11, 0;
    @%p1 bra reader;
    ld.shared::cluster.u32 %r9, [%r5];
    st.global.u32 [%rd1], %r9;
    done:
"""
    + f"    {MEET}"
)


@every_schedule
@pytest.mark.parametrize(
    "release, acquire, reason",
    [
        ("st.release.cluster.shared.u32", "ld.acquire.cluster.shared::cluster.u32", None),
        ("st.release.gpu.shared.u32", "ld.acquire.cluster.shared::cluster.u32", None),
        ("fence.acq_rel.cluster; st.relaxed.cluster.shared.u32", "ld.acquire.cluster.shared::cluster.u32", None),
        ("st.release.cta.shared.u32", "ld.acquire.cluster.shared::cluster.u32", ".cta scope does not include"),
        ("fence.acq_rel.cta; st.relaxed.cluster.shared.u32", "ld.acquire.cluster.shared::cluster.u32", "concurrently"),
        ("st.relaxed.cluster.shared.u32", "ld.acquire.cluster.shared::cluster.u32", "concurrently"),
        ("st.release.cluster.shared.u32", "ld.relaxed.cluster.shared::cluster.u32", "concurrently"),
    ],
)
def test_a_flag_orders_what_its_scope_reaches(release, acquire, reason, schedule):
    x, report = read(body=FLAG, threads=1, cluster=2, grid=4, schedule=schedule, release=release, acquire=acquire)
    if reason is None:
        clean(report)
        assert x.tolist() == [0, 9, 0, 9]
    else:
        assert report.findings[0].kind == "race"
        assert reason in report.findings[0].message


def test_a_race_between_blocks_of_a_cluster_in_words():
    _, report = read(threads=32, cluster=2, grid=2, between=BARRIER + "st.shared.u32 [%r6], 5;\n")
    finding = only(report)
    assert finding.kind == "race"
    assert finding.message == (
        "ld.shared::cluster.u32 reads buf[0] of block (1, 0, 0), written by thread (0, 0, 0) of block (1, 0, 0) with "
        "st.shared.u32; nothing orders the two: the blocks of a cluster run concurrently"
    )
    assert finding.help == (
        "add a `barrier.cluster.arrive` and a `barrier.cluster.wait` between line 14 and line 15, or an mbarrier with "
        "`mbarrier.arrive.release.cluster` and `mbarrier.try_wait.acquire.cluster`"
    )


def test_a_write_races_with_a_read_by_another_block():
    _, report = read(threads=32, cluster=2, grid=2, behind="\nst.shared.u32 [%r6], 5;" + BARRIER)
    finding = only(report)
    assert finding.kind == "race"
    assert "st.shared.u32 writes buf[0], read by" in finding.message
    assert "with ld.shared::cluster.u32" in finding.message


@every_schedule
def test_an_arrival_in_another_block_orders_writes_at_the_scope_of_the_cluster_alone(schedule):
    narrow = TOLD | {"arrive": "mbarrier.arrive.shared::cluster.b64 _, [%r10];"}
    _, report = read(body=REMOTE, threads=32, cluster=2, grid=2, schedule=schedule, **narrow)
    assert report.findings[0].kind == "race"


# A block reads what the next one wrote, and tells it so by an mbarrier there: then that one writes again.
RELEASED = (
    NEXT
    + """
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared.b64 [mbar], 1;
    st.shared.u32 [%r6], %r7;
"""
    + f"    {MEET}"
    + """
    ld.shared::cluster.u32 %r9, [%r5]; st.global.u32 [%rd1], %r9;
    mov.u32 %r10, mbar; mapa.shared::cluster.u32 %r10, %r10, %r4;
    {meet}
    @%p0 mbarrier.arrive.shared::cluster.b64 _, [%r10];
    wait: mbarrier.try_wait.parity.shared.b64 %p1, [mbar], 0;
    @!%p1 bra wait;
    st.shared.u32 [%r6], 0;
"""
)


@every_schedule
@pytest.mark.parametrize("threads, meet", [(32, "bar.warp.sync -1;"), (64, "bar.sync 0;")])
def test_an_arrival_in_another_block_says_that_memory_was_read(threads, meet, schedule):
    x, report = read(body=RELEASED, threads=threads, cluster=2, grid=4, meet=meet, schedule=schedule)
    clean(report)
    assert (x == neighbours(4, 2, threads)).all()


def test_threads_that_did_not_meet_have_not_said_that_they_have_read():
    _, report = read(body=RELEASED, threads=64, cluster=2, grid=2, meet="bar.warp.sync -1;")
    assert report.findings[0].kind == "race"


# A ring of one stage that both blocks of a cluster fill: each copies its half of the bytes to both, and fills again when
# both have told it that they have read. Warp 0 fills, warp 1 adds what it reads to out.
RING = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, 0;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared.b64 [full], 1;
    @%p0 mbarrier.init.shared.b64 [empty], 2;
    fence.mbarrier_init.release.cluster;
    {init}
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra consumer;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra done;
    mov.u32 %r4, tile; mad.lo.u32 %r4, %r2, 128, %r4;
    mul.wide.u32 %rd2, %r2, 128; add.u64 %rd2, %rd2, %rd0;
    fill:
    and.b32 %r5, %r3, 1; xor.b32 %r5, %r5, 1;
    wait_empty: {wait_empty}
    @!%p2 bra wait_empty;
    mbarrier.arrive.expect_tx.shared.b64 %rd5, [full], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r4], [%rd2], 128, [full], %h0;
    add.u64 %rd2, %rd2, 256; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 5;
    @%p2 bra fill;
    bra done;
    consumer:
    sub.u32 %r6, %r1, 32; mov.u32 %r7, tile; mad.lo.u32 %r7, %r6, 8, %r7; mov.u32 %r12, 0;
    read:
    and.b32 %r5, %r3, 1;
    wait_full: {wait_full}
    @!%p2 bra wait_full;
    ld.shared.v2.u32 {{%r8, %r9}}, [%r7];
    add.u32 %r8, %r8, %r9; mad.lo.u32 %r12, %r12, 3, %r8;
    bar.warp.sync -1;
    setp.lt.u32 %p0, %r6, 2;
    mov.u32 %r10, empty; mapa.shared::cluster.u32 %r10, %r10, %r6;
    {release}
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 5;
    @%p2 bra read;
    mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, 32, %r6; mad.wide.u32 %rd1, %r4, 4, %rd1;
    st.global.u32 [%rd1], %r12;
    done:
    {end}
"""
RING_PARTS = {
    "init": MEET,
    "wait_empty": "mbarrier.try_wait.parity.shared.b64 %p2, [empty], %r5;",
    "wait_full": "mbarrier.try_wait.parity.shared.b64 %p2, [full], %r5;",
    "release": "fence.proxy.async.shared::cta; bar.warp.sync -1; @%p0 mbarrier.arrive.shared::cluster.b64 _, [%r10];",
    "end": "bar.warp.sync -1; " + MEET,
}
RING_SHARED = ".shared .align 128 .b8 tile[256]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;"


def ring(schedule="lockstep", grid=4, resident=None, mask=3, **parts):
    x, out = np.arange(5 * 64, dtype=np.uint32), np.zeros((grid, 32), np.uint32)
    body = "mov.b16 %h0, " + f"{mask};" + RING.format(**RING_PARTS | parts)
    report = launch(body, x, out, grid=grid, block=64, parameters="x: u64, out: u64", module=RING_SHARED,
                    schedule=schedule, resident=resident)  # fmt: skip
    return report, x, out


@pytest.mark.cases(1)
@pytest.mark.cases(3)
@every_schedule
@pytest.mark.parametrize("grid, resident", [(4, None), (12, 2), (12, 4)])
def test_both_blocks_of_a_cluster_fill_a_ring_by_multicast(schedule, grid, resident):
    report, x, out = ring(schedule, grid, resident)
    clean(report)
    pairs = x.reshape(5, 32, 2).sum(2, dtype=np.uint32)
    expected = sum(row * np.uint32(3) ** np.uint32(4 - n) for n, row in enumerate(pairs))
    assert (out == expected).all()


@pytest.mark.cases(4)
@pytest.mark.cases(10)
@every_schedule
@pytest.mark.parametrize(
    "parts",
    [
        {"wait_empty": "setp.eq.u32 %p2, %r3, %r3;"},
        {"wait_full": "setp.eq.u32 %p2, %r3, %r3;"},
        {"release": "setp.eq.u32 %p0, %r6, 0; @%p0 mbarrier.arrive.shared::cluster.b64 _, [%r10], 2;"},
        {"release": "@%p0 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r10];"},
        {"mask": 1},
        {"mask": 7},
        {"init": "bar.sync 0;"},
        {"end": ""},
    ],
    ids=["no wait for empty", "no wait for full", "one block tells twice", "relaxed", "one block", "three blocks",
         "no start", "no end"],
)  # fmt: skip
def test_what_the_ring_of_two_blocks_needs(parts, schedule):
    report, *_ = ring(schedule, **parts)
    assert report.findings


@every_schedule
def test_a_bulk_reduction_into_shared_memory_of_another_block(schedule):
    send = (
        "st.shared.u32 [%r6], %r7; fence.proxy.async.shared::cta; bar.warp.sync -1; mov.u32 %r11, buf;"
        "mov.u32 %r12, sums; mapa.shared::cluster.u32 %r12, %r12, %r4;"
        "@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
        " [%r12], [%r11], 128, [%r10];"
    )
    module = SHARED.replace("buf[64];", "buf[64]; .shared .align 16 .b32 sums[32];").replace(
        ".align 8 .b32", ".align 16 .b32"
    )
    parts = SEND | {
        "init": "mov.u32 %r13, sums; mad.lo.u32 %r13, %r1, 4, %r13; st.shared.u32 [%r13], 1000; fence.proxy.async;"
        + MEET,
        "send": send,
        "read": "ld.shared.u32 %r9, [%r13]; st.global.u32 [%rd1], %r9;" + MEET,
    }
    x = np.zeros(4 * 32, np.uint32)
    report = launch(SENT.format(**parts), x, grid=4, block=32, module=module, schedule=schedule)
    clean(report)
    assert (x == np.roll(np.arange(4 * 32).reshape(-1, 2, 32), 1, axis=1).reshape(-1) + 1000).all()


TWO_LANES = """mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 0; setp.eq.and.u32 %p4, %r1, 1, %p2;
    @%p4 ret; setp.eq.u32 %p1, %r2, 1; setp.eq.and.u32 %p1, %r1, 1, %p1; ld.param.u64 %rd1, [x]; bar.sync 0;
    barrier.cluster.arrive; barrier.cluster.wait; @!%p1 bra SET;
WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p3, %r3, 0; @%p3 bra WAIT;
SET: @!%p2 bra ON; atom.release.gpu.global.exch.b32 %r3, [%rd1], 1;
ON: fence.release.gpu; barrier.cluster.arrive.relaxed; barrier.cluster.wait; bar.sync 0;
    barrier.cluster.arrive; barrier.cluster.wait;"""


@every_schedule
def test_lanes_that_leave_the_cluster_barrier_one_after_another_meet_again(schedule):
    """The last lane to arrive comes to the next barrier while the others of its warp are still to leave this one."""
    clean(launch(TWO_LANES, np.zeros(1, np.uint32), grid=2, block=2, schedule=schedule))
