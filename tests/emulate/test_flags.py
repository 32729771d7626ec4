"""Flags, locks and counters by which threads tell each other what they did: which fences and accesses order."""

import numpy as np
import pytest

from tests.emulate.support import clean, run

# Warp 0 writes s[4] and sets s[0], warp 1 waits for it
IN_A_BLOCK = """mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32; @%p1 st.shared.u32 [s], 0;
    bar.sync 0; @%p2 bra WAIT; @!%p1 ret; st.shared.u32 [s+16], 5; {before} st.{how}.shared.u32 [s], 9; ret;
WAIT: ld.{how}.shared.u32 %r5, [s]; setp.ne.u32 %p3, %r5, 9; @%p3 bra WAIT; {behind} ld.shared.u32 %r6, [s+16];"""
CTA, GPU = "fence.acq_rel.cta;", "fence.acq_rel.gpu;"


@pytest.mark.parametrize("how", ["volatile", "relaxed.cta", "relaxed.gpu", "relaxed.sys"])
@pytest.mark.parametrize(
    ("before", "behind", "ordered"),
    [
        ("membar.cta;", "membar.cta;", True), (CTA, CTA, True), (GPU, CTA, True), (CTA, GPU, True),
        (GPU + CTA, CTA, True), ("fence.sc.cta;", CTA, True), ("", CTA, False), (CTA, "", False), ("", "", False),
    ],
)  # fmt: skip
def test_fences_of_a_block_order_flags_in_it(how, before, behind, ordered):
    """However far the accesses to the flag reach."""
    body = IN_A_BLOCK.format(how=how, before=before, behind=behind)
    report = run(body, parameters="", module=".shared .u32 s[8];", block=64)
    assert [finding.kind for finding in report.findings] == ["race"] * (not ordered), str(report)


# Block 0 writes x[1] and sets x[0] to 1, block 1 makes 2 of it, block 2 waits for 2
CHAIN = """ld.param.u64 %rd1, [x]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2;
    @%p1 bra SECOND; @%p2 bra THIRD; st.global.u32 [%rd1+4], 5; st.release.gpu.global.u32 [%rd1], 1; ret;
SECOND: ld.{sem}.gpu.global.u32 %r3, [%rd1]; setp.ne.u32 %p3, %r3, 1; @%p3 bra SECOND; {second} ret;
THIRD: ld.relaxed.gpu.global.u32 %r3, [%rd1]; setp.ne.u32 %p3, %r3, 2; @%p3 bra THIRD; fence.acq_rel.gpu;
    ld.global.u32 %r4, [%rd1+4];"""


@pytest.mark.usefixtures("lockstep")
@pytest.mark.parametrize(
    ("sem", "second", "ordered"),
    [
        ("relaxed", "red.relaxed.gpu.global.add.u32 [%rd1], 1;", True),
        ("relaxed", "atom.relaxed.gpu.global.exch.b32 %r9, [%rd1], 2;", True),
        ("acquire", "st.release.gpu.global.u32 [%rd1], 2;", True),
        ("relaxed", GPU + "st.relaxed.gpu.global.u32 [%rd1], 2;", True),
        ("relaxed", "fence.sc.gpu; st.relaxed.gpu.global.u32 [%rd1], 2;", True),
        ("relaxed", CTA + "st.relaxed.gpu.global.u32 [%rd1], 2;", False),
        ("relaxed", "st.relaxed.gpu.global.u32 [%rd1], 2;", False),
        ("acquire", "st.relaxed.gpu.global.u32 [%rd1], 2;", False),
    ],
)
def test_updates_and_fences_pass_on_what_was_released(sem, second, ordered):
    """A store that releases nothing does not: what it writes is another's. A fence releases what it acquires."""
    report = run(CHAIN.format(sem=sem, second=second), np.zeros(2, np.uint32), grid=3, block=1)
    kinds = {finding.kind for finding in report.findings}
    assert kinds == (set() if ordered else {"race"}), str(report)


LOCK = """ld.param.u64 %rd1, [x]; AGAIN: atom.{sem}.gpu.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p1, %r2, 0;
    @%p1 bra AGAIN; {behind} ld.global.u32 %r3, [%rd1+4]; add.u32 %r3, %r3, 1; st.global.u32 [%rd1+4], %r3;
    {before} {unlock}.u32 [%rd1], 0;"""


@pytest.mark.parametrize(
    ("sem", "behind", "before", "unlock", "ordered"),
    [
        ("acquire", "", "", "st.release.gpu.global", True), ("relaxed", GPU, GPU, "st.relaxed.gpu.global", True),
        ("relaxed", "membar.gl;", "membar.gl;", "st.volatile.global", True),
        ("relaxed", "", GPU, "st.relaxed.gpu.global", False), ("acquire", "", "", "st.relaxed.gpu.global", False),
        ("acquire", "", "", "st.release.cta.global", False), ("relaxed", GPU, CTA, "st.volatile.global", False),
        ("relaxed", CTA, GPU, "st.volatile.global", False),
    ],
)  # fmt: skip
def test_a_lock_between_blocks(sem, behind, before, unlock, ordered):
    body, x = LOCK.format(sem=sem, behind=behind, before=before, unlock=unlock), np.zeros(2, np.uint32)
    report = run(body, x, grid=5, block=1)
    if ordered:
        clean(report)
        assert x.tolist() == [0, 5]
    else:
        assert {finding.kind for finding in report.findings} == {"race"}, str(report)


# Copies under way, and who writes what they read
COPY = """ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r3, %r2;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; xor.b64 %rd3, %rd2, {flip};
    cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.commit_group;
    {before} st.global.u32 [%rd3], 9;
    cp.async.wait_group 0;"""
WAITED = "cp.async.wait_group 0;"


def copying(flip, before):
    body = COPY.format(flip=flip, before=before)
    return run(body, np.arange(64, dtype=np.uint32), module=".shared .u32 s[64];", block=64)


@pytest.mark.usefixtures("lockstep")
def test_what_a_copy_reads_is_written_by_another_thread():
    report = copying(128, "")
    assert str(report.findings[0]) == (
        "race: cp.async.ca.shared.global reads x[0], written by thread (32, 0, 0) of block (0, 0, 0) with "
        "st.global.u32 while the copy was in flight\n"
        "  <ptx>:10\n"
        "  <ptx>:8\n"
        "  <ptx>:9\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads\n"
        "  help: wait for the copy before line 9, and put a barrier between the two"
    )
    assert copying(128, "bar.sync 0;").findings and copying(128, WAITED).findings
    clean(copying(128, WAITED + "bar.sync 0;"))


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:3"])
def test_what_a_copy_reads_is_written_by_its_thread(schedule, monkeypatch):
    monkeypatch.setenv("PTXDSL_SCHEDULE", schedule)
    (finding,) = copying(0, "").findings
    assert (finding.kind, finding.help) == ("unwaited-async", "wait for the copy before line 9")
    assert finding.message.endswith(" with st.global.u32 while the copy was in flight")
    clean(copying(0, WAITED))
