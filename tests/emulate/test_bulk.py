"""Bulk copies of rows of bytes: what they copy, when, and what goes wrong without their waits."""

import numpy as np
import pytest

from tests.emulate.support import clean, only, run

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
BUFFERS = ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar;"
BEGIN = """
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, s; mov.u32 %r3, bar; shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd5, %rd2, %rd4; @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
"""
LOAD = """
    @!%p1 bra LOADED;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], {expected};
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], {bytes}, [%r3];
LOADED:
"""
WAIT = "AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], {parity}; @!%p2 bra AGAIN;\n"
TAKE = "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;\n"
FILL = "add.u32 %r6, %r1, 100; st.shared.u32 [%r5], %r6;\n"
STORE = "@!%p1 bra STORED;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], {bytes};\n"
COMMIT = "cp.async.bulk.commit_group;\n"
PARAMETERS = "x: u64, y: u64"


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD)


def copied(*parts, threads=128, **options):
    """The report of a kernel of these parts, and what it was run with."""
    x, y = np.arange(1, 1 + threads, dtype=np.uint32), np.zeros(threads, np.uint32)
    return run(BEGIN + "".join(parts), x, y, block=threads, parameters=PARAMETERS, module=BUFFERS, **options), x, y


def loads(bytes=512, expected=None, parity=0, wait=True):
    expected = bytes if expected is None else expected
    return LOAD.format(bytes=bytes, expected=expected) + (WAIT.format(parity=parity) if wait else "") + TAKE


@pytest.mark.parametrize("grid", [1, 3])
@pytest.mark.parametrize("threads", [128, 4, 100])
def test_a_row_to_shared_memory(threads, grid):
    report, x, y = copied(loads(threads * 4), threads=threads, grid=grid)
    clean(report)
    assert (y == x).all()


def test_each_thread_copies_what_it_reads():
    body = """
        mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd1, %rd6; shl.b32 %r7, %r1, 4; add.u32 %r7, %r2, %r7;
        shl.b32 %r8, %r1, 3; add.u32 %r8, %r8, 16; and.b32 %r8, %r8, 48; setp.eq.u32 %p3, %r8, 48;
        @%p3 mov.u32 %r8, 16; @%p1 mbarrier.expect_tx.shared.b64 [%r3], 512; bar.sync 0;
        mov.u32 %r8, 16; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r7], [%rd7], %r8, [%r3];
        @%p1 mbarrier.arrive.shared.b64 %rd3, [%r3];
    """
    x, y = np.arange(128, dtype=np.uint32), np.zeros(32, np.uint32)
    take = "add.u32 %r5, %r7, 12;" + TAKE
    report = run(BEGIN + body + WAIT.format(parity=0) + take, x, y, parameters=PARAMETERS, module=BUFFERS)
    clean(report)
    assert (y == np.arange(3, 128, 4)).all()


@pytest.mark.parametrize("schedule, ends", [("lockstep", {""}), ("random", {"", "deadlock"})])
def test_at_random_a_copy_may_land_before_a_thread_comes_to_wait(schedule, ends, monkeypatch):
    """A wait for the other parity passes if the copy is still under way, and else waits for one that never comes."""
    first, second = WAIT.format(parity=1), WAIT.format(parity=0).replace("AGAIN", "LANDED")
    met = set()
    for seed in range(8):
        monkeypatch.setenv("PTXDSL_SCHEDULE", f"{schedule}:{seed}" if schedule == "random" else schedule)
        report, *_ = copied(LOAD.format(bytes=128, expected=128), "bar.sync 0;", first, second, threads=32)
        met |= {finding.kind for finding in report.findings} or {""}
    assert met == ends


@pytest.mark.usefixtures("lockstep")
def test_a_copy_that_nobody_waits_for():
    report, *_ = copied(loads(wait=False))
    assert [finding.kind for finding in report.findings] == ["unwaited-async", "unwaited-async"]
    assert str(report.findings[0]) == (
        "unwaited-async: ld.shared.u32 accesses 4 bytes at s[0] while an asynchronous copy to it is in flight\n"
        "  <ptx>:15\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: wait for bar[0] first, with mbarrier.try_wait and parity 0"
    )
    assert str(report.findings[1]) == (
        "unwaited-async: cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes still copies to s[0] "
        "when its block ends\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: wait for the phase of its mbarrier (mbarrier.try_wait) before the block ends"
    )


def test_more_bytes_are_expected_than_come():
    finding = only(copied(loads(expected=528))[0])
    assert finding.kind == "deadlock"
    assert "for the mbarrier bar[0]: 1 of 1 arrivals received, 16 bytes still pending" in finding.message


def test_fewer_bytes_are_expected_than_come():
    report, *_ = copied(loads(expected=256))
    assert str(report.findings[0]) == (
        "mbarrier: cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes completes 512 bytes at bar[0], "
        "whose phase expects 256\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: execute mbarrier.arrive.expect_tx once per phase, with the bytes of all copies that complete there"
    )


@pytest.mark.usefixtures("lockstep")
def test_a_wait_for_the_wrong_parity():
    report, *_ = copied(loads(parity=1))
    assert {finding.kind for finding in report.findings} == {"unwaited-async"}


@pytest.mark.usefixtures("lockstep")
def test_only_those_who_wait_know_that_a_copy_has_landed():
    """The second warp reads when the first has waited, and told it by a flag that orders nothing."""
    body = LOAD.format(bytes=512, expected=512) + """
        setp.ge.u32 %p4, %r1, 32; mov.u32 %r9, s; @%p4 bra OTHER;
        AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra AGAIN;
        st.relaxed.cta.shared.u32 [%r9+2048], 1; bra END;
        OTHER: ld.relaxed.cta.shared.u32 %r10, [%r9+2048]; setp.ne.u32 %p5, %r10, 1; @%p5 bra OTHER;
        """ + TAKE + "END:"  # fmt: skip
    clear = "@%p1 st.shared.u32 [%r2+2048], 0; bar.sync 0;"
    report, *_ = copied(clear, body)
    race = report.findings[-1]
    assert str(race) == (
        "race: ld.shared.u32 reads s[128], filled with "
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes; "
        "the thread has not waited on the mbarrier where the copy completes\n"
        "  <ptx>:20\n"
        "  <ptx>:13\n"
        "  by thread (32, 0, 0) of block (0, 0, 0) and 95 more threads\n"
        "  help: wait with mbarrier.try_wait for the phase that the copy completes, before line 20"
    )


FENCE = "fence.proxy.async.shared::cta;\n"
DRAIN = COMMIT + "cp.async.bulk.wait_group 0;\nSTORED:\n"
DRAIN_READS = DRAIN.replace("wait_group", "wait_group.read")


def stores(fence=True, wait=DRAIN, bytes=512, barrier="bar.sync 0;\n"):
    return FILL + (FENCE if fence else "") + barrier + STORE.format(bytes=bytes) + wait


@pytest.mark.parametrize("threads", [128, 12])
def test_a_row_to_global_memory(threads):
    report, _, y = copied(stores(bytes=threads * 4), threads=threads)
    clean(report)
    assert (y == 100 + np.arange(threads)).all()


@pytest.mark.usefixtures("lockstep")
def test_a_store_does_not_end_because_others_take_long():
    """They go round without waiting for anybody, and the block ends behind them."""
    long = "STORED: mov.u32 %r7, 0;\nROUND: add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 200; @%p3 bra ROUND;\n"
    warps = "@%p1 exit;\n"
    assert "still reads s[0] when its block ends" in str(only(copied(stores(wait=COMMIT + warps + long))[0]))


def test_a_store_that_nobody_waits_for():
    found = only(copied(stores(wait="STORED:"))[0])
    assert str(found) == (
        "unwaited-async: cp.async.bulk.global.shared::cta.bulk_group still reads s[0] when its block ends\n"
        "  <ptx>:14\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: execute cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 in the thread that issued it"
    )
    assert not copied(stores(wait=DRAIN_READS))[0].findings


@pytest.mark.usefixtures("lockstep")
def test_a_buffer_that_is_filled_again_while_a_store_reads_it():
    again = "bar.sync 0;\n" + FILL
    assert not copied(stores(), again)[0].findings
    assert not copied(stores(wait=DRAIN_READS), again)[0].findings
    report, *_ = copied(stores(wait=COMMIT + "STORED:\n"), again)
    assert str(report.findings[0]) == (
        "unwaited-async: st.shared.u32 writes 4 bytes at s[0], which an asynchronous operation still reads\n"
        "  <ptx>:18\n"
        "  <ptx>:14\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 127 more threads\n"
        "  help: execute cp.async.bulk.wait_group.read before line 18, in the thread that issued the copy"
    )


@pytest.mark.usefixtures("lockstep")
def test_a_buffer_that_is_filled_again_by_threads_that_do_not_know_of_the_wait():
    report, *_ = copied(stores(), FILL)
    assert report.findings[0].kind == "race"
    assert "writes s[4], read by thread (0, 0, 0)" in report.findings[0].message


def test_the_order_of_a_store_and_what_other_threads_wrote():
    report, *_ = copied(stores(barrier=""))
    assert report.findings[0].kind == "race"
    assert report.findings[0].message == (
        "cp.async.bulk.global.shared::cta.bulk_group reads s[0], written by thread (1, 0, 0) of block (0, 0, 0) "
        "with st.shared.u32; nothing orders the two: lanes of a warp run independently between "
        "barriers"
    )


def test_what_nobody_wrote_is_stored():
    found = only(copied(STORE.format(bytes=512) + DRAIN)[0])
    assert str(found) == (
        "uninitialized: cp.async.bulk.global.shared::cta.bulk_group copies s[0] to global memory, "
        "which no thread has written\n"
        "  <ptx>:11\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: write it first, for example with zeros"
    )


@pytest.mark.parametrize(("operation", "expected"), [
    ("add.u32", lambda y, s: y + s), ("max.u32", np.maximum), ("xor.b32", np.bitwise_xor),
    ("inc.u32", lambda y, s: np.where(y >= s, 0, y + 1)),
])  # fmt: skip
def test_reductions(operation, expected):
    store = STORE.replace("cp.async.bulk", "cp.reduce.async.bulk").replace("bulk_group", f"bulk_group.{operation}")
    y = np.arange(128, dtype=np.uint32) * 3
    before = y.copy()
    body = BEGIN + FILL + FENCE + "bar.sync 0;\n" + store.format(bytes=512) + DRAIN
    clean(run(body, y, y, block=128, grid=1, parameters=PARAMETERS, module=BUFFERS))
    assert (y == expected(before, 100 + np.arange(128))).all()


def test_sums_of_many_blocks():
    store = STORE.replace("cp.async.bulk", "cp.reduce.async.bulk").replace("bulk_group", "bulk_group.add.f32")
    fill = "cvt.rn.f32.u32 %f1, %r1; st.shared.f32 [%r5], %f1;\n"
    body = BEGIN + fill + FENCE + "bar.sync 0;\n" + store.format(bytes=512) + DRAIN
    y = np.ones(128, np.float32)
    clean(run(body, y, y, block=128, grid=5, parameters=PARAMETERS, module=BUFFERS))
    assert (y == 1 + 5 * np.arange(128)).all()


@pytest.mark.parametrize(("change", "message"), [
    (("], 512, [", "], %r1, ["), "`size` is 1 bytes, not a multiple of 16"),
    (("[%r2], [%rd1]", "[%r2+8], [%rd1]"), None),
    (("[%r2], [%rd1]", "[%r2+4000], [%rd1]"), None),
])  # fmt: skip
def test_sizes_and_places_that_cannot_be(change, message):
    load = LOAD.format(bytes=512, expected=512).replace("%p1 bra", "%p3 bra")
    report, *_ = copied("setp.eq.u32 %p3, %r1, 1;", load.replace(*change))
    assert report.findings[0].kind in ("misaligned", "out-of-bounds")
    if message:
        assert report.findings[0].message == message
