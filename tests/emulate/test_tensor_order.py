"""The order of tcgen05 operations: which fences, waits and commits are needed, and which are not."""

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean
from tests.emulate.tensor_kernels import global_words, launch, registers, source

# A 128 x 16 and B 16 x 16 of f16, all ones, without a swizzle
A = 1 << 46 | 128 // 16 << 32 | 2048 // 16 << 16
B = 1 << 46 | 128 // 16 << 32 | 256 // 16 << 16 | 8192 >> 4
IDESC = 1 << 4 | 16 // 8 << 17 | 128 // 16 << 24
FULL, NEXT = "[%r4]", "[%r4+8]"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"
PROXY = "fence.proxy.async.shared::cta;\n"
SYNC = "bar.sync 0;\n"
LOAD = f"tcgen05.ld.sync.aligned.32x32b.x16.b32 {registers(16)}, [%r8];\n"
STORE = f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%r8], {registers(16)};\n"
WAIT_LD, WAIT_ST = "tcgen05.wait::ld.sync.aligned;\n", "tcgen05.wait::st.sync.aligned;\n"
INIT = "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\n@%p1 mbarrier.init.shared::cta.b64 [%r4+8], 1;\n"
OUT = global_words("st", 16, "%rd2")
SETUP = f"mov.b64 %rd5, {A}; mov.b64 %rd6, {B}; mov.b32 %r13, {IDESC}; setp.ne.u32 %p4, 1, 1; setp.ne.u32 %p5, 1, 0;\n"


def fill(value="0x3C003C00", bytes=16384):
    """Write every word of both operands."""
    return (
        f"mov.b32 %r10, {value}; shl.b32 %r11, %r1, 2; add.u32 %r11, %r3, %r11; mov.u32 %r12, 0;\n"
        f"F: st.shared.b32 [%r11], %r10; add.u32 %r11, %r11, 512; add.u32 %r12, %r12, 512;\n"
        f"setp.lt.u32 %p6, %r12, {bytes}; @%p6 bra F;\n"
    )


def mma(accumulates=False, guard="@%p1 ", d="%r7", a="%rd5", idesc="%r13"):
    p = "%p5" if accumulates else "%p4"
    return f"{guard}tcgen05.mma.cta_group::1.kind::f16 [{d}], {a}, %rd6, {idesc}, {p};\n"


def commit(mbarrier=FULL, guard="@%p1 "):
    return f"{guard}tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 {mbarrier};\n"


def wait(mbarrier=FULL, label="W"):
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p3, {mbarrier}, 0; @!%p3 bra {label};\n"


def run(body, **options):
    result = np.zeros((16, 128), np.uint32)
    report = launch(source(body, 32), np.zeros(1), result, **options)
    return report, result.view(np.float32)


# The accumulators are used twice: threads load them, and let the next product overwrite them.
TWICE = {
    "fill": fill(), "init": INIT, "proxy fence": PROXY, "sync": SYNC, "setup": SETUP,
    "mma": mma(), "commit": commit(), "wait": wait(), "after": AFTER, "load": LOAD, "wait::ld": WAIT_LD,
    "before": BEFORE, "sync 2": SYNC, "after 2": AFTER,
    "mma 2": mma(), "mma 3": mma(True), "commit 2": commit(NEXT), "wait 2": wait(NEXT, "V"), "after 3": AFTER,
    "load 2": LOAD, "wait::ld 2": WAIT_LD, "out": OUT,
}  # fmt: skip
NEEDED = {
    "proxy fence": "race", "sync": "race", "commit": "deadlock", "wait": "race", "after": "race", "wait::ld": "race",
    "before": "race", "sync 2": "race", "after 2": "race", "commit 2": "deadlock", "wait 2": "race", "after 3": "race",
    "wait::ld 2": "race",
}  # fmt: skip


def without(*names):
    return "".join(text for name, text in TWICE.items() if name not in names)


def test_the_whole_is_clean_and_right():
    report, result = run(without())
    clean(report)
    assert (result == 32).all()


@pytest.mark.parametrize("name", NEEDED)
def test_each_of_them_is_needed(name):
    report, _ = run(without(name), strict=False)
    assert report.findings[0].kind == NEEDED[name], str(report)
    assert report.findings[0].is_error == (name.split()[0] not in ("before", "after"))


def test_without_its_fences_the_result_is_right_and_the_findings_are_strict():
    report, result = run(without("before", "after", "after 2", "after 3"), strict=False)
    assert len(report.findings) == 3 and not report.errors
    assert (result == 32).all()


def test_without_a_fence_and_the_synchronisation_it_is_an_error():
    finding = run(without("before", "sync 2"), strict=False)[0].findings[0]
    assert finding.is_error and finding.message.endswith("; nothing orders the two")


MESSAGES = {
    "after": (
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 reads columns 0 to 15 of tensor memory, which "
        "tcgen05.mma.cta_group::1.kind::f16 of the same warp wrote; no tcgen05.fence::after_thread_sync follows their "
        "synchronisation",
        "execute tcgen05.fence::after_thread_sync between the synchronisation and tcgen05.ld",
    ),
    "wait": (
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 reads columns 0 to 15 of tensor memory, which "
        "tcgen05.mma.cta_group::1.kind::f16 of the same warp may still write; no tcgen05.commit that covers it has "
        "arrived",
        "execute tcgen05.commit after it, and wait for the phase of its mbarrier (mbarrier.try_wait)",
    ),
    "wait::ld": (
        "tcgen05.mma.cta_group::1.kind::f16 writes columns 0 to 15 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 of the same warp may still read; its warp has not executed "
        "tcgen05.wait::ld",
        "execute tcgen05.wait::ld.sync.aligned after it, before the threads synchronise",
    ),
    "before": (
        "tcgen05.mma.cta_group::1.kind::f16 writes columns 0 to 15 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 of warp 1 read; no tcgen05.fence::before_thread_sync follows it",
        "execute tcgen05.fence::before_thread_sync in its threads, before they synchronise with these",
    ),
    "sync 2": (
        "tcgen05.mma.cta_group::1.kind::f16 writes columns 0 to 15 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 of warp 1 read; nothing orders the two",
        "synchronise the threads, for example by an mbarrier or bar.sync",
    ),
    "after 2": (
        "tcgen05.mma.cta_group::1.kind::f16 writes columns 0 to 15 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 of warp 1 read; no tcgen05.fence::after_thread_sync follows their "
        "synchronisation",
        "execute tcgen05.fence::after_thread_sync between the synchronisation and tcgen05.mma",
    ),
    "wait::ld 2": (
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 deallocates columns 0 to 15 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 of the same warp may still read; its warp has not executed "
        "tcgen05.wait::ld",
        "execute tcgen05.wait::ld.sync.aligned after it, before the threads synchronise",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_finding_says_what_is_missing(name):
    finding = run(without(name))[0].findings[0]
    assert (finding.message, finding.help) == MESSAGES[name]


@pytest.mark.parametrize("schedule", ["skewed", "random:1", "random:2"])
def test_every_schedule_gives_the_same(schedule):
    from ptxdsl import config

    with config.using(schedule=schedule):
        report, result = run(without())
    clean(report)
    assert (result == 32).all()


PREPARED = fill() + INIT + PROXY + SYNC + SETUP
FINISH = commit() + wait() + AFTER + LOAD + WAIT_LD + OUT


def kinds(body):
    return [finding.kind for finding in run(body)[0].findings]


def test_products_of_one_accumulator_follow_each_other():
    report, result = run(PREPARED + mma() + 3 * mma(True) + FINISH)
    clean(report)
    assert (result == 64).all()


def test_products_of_another_shape_do_not():
    narrow = "mov.b32 %r14, " + str(1 << 4 | 8 // 8 << 17 | 128 // 16 << 24) + ";\n"
    finding = run(PREPARED + narrow + mma() + mma(True, idesc="%r14") + FINISH)[0].findings[0]
    assert (finding.kind, finding.message) == (
        "race",
        "tcgen05.mma.cta_group::1.kind::f16 writes columns 0 to 7 of tensor memory, which "
        "tcgen05.mma.cta_group::1.kind::f16 of the same warp may still write; no tcgen05.commit that covers it has "
        "arrived",
    )


def test_a_commit_covers_all_products_before_it():
    """Two accumulators and one commit, the second."""
    second = "add.u32 %r14, %r7, 16; mov.b32 %r14, %r14;\n"
    body = PREPARED + second + mma() + mma(d="%r14") + FINISH
    clean(run(body)[0])


def test_a_product_of_another_thread_may_follow_after_fences():
    """Warp 1 adds to the accumulators of warp 0 without waiting for a commit: the two are pipelined."""
    other = "setp.eq.u32 %p7, %r1, 32;\n"
    body = PREPARED + other + mma() + "{}" + SYNC + "{}" + mma(True, "@%p7 ") + commit(guard="@%p7 ")
    body += wait() + AFTER + LOAD + WAIT_LD + OUT
    report, result = run(body.replace("{}", BEFORE, 1).replace("{}", AFTER, 1))
    clean(report)
    assert (result == 32).all()
    assert kinds(body.replace("{}", "", 1).replace("{}", AFTER, 1)) == ["race"]
    assert kinds(body.replace("{}", BEFORE, 1).replace("{}", "", 1)) == ["race"]


def test_what_threads_store_is_added_to_after_a_wait_and_fences():
    values = "".join(f"mov.b32 %v{n}, 0x40000000;\n" for n in range(16))
    stored = PREPARED + values + STORE + WAIT_ST + BEFORE + SYNC + AFTER + mma(True) + FINISH
    report, result = run(stored)
    clean(report)
    assert (result == 18).all()
    for missing in (WAIT_ST, BEFORE, "sync", AFTER):
        parts = stored.replace(BEFORE + SYNC, BEFORE) if missing == "sync" else stored.replace(missing, "", 1)
        assert kinds(parts)[0] == "race", missing


@pytest.mark.parametrize("first, second", [(STORE, LOAD), (LOAD, STORE), (STORE, STORE)])
def test_a_warp_waits_between_its_own_accesses(first, second):
    values = "".join(f"mov.b32 %v{n}, 1;\n" for n in range(16))
    begin = values + STORE + WAIT_ST
    assert kinds(begin + first + second + WAIT_LD + WAIT_ST) == ["race"]
    assert kinds(begin + first + WAIT_LD + WAIT_ST + second + WAIT_LD + WAIT_ST) == []


def test_a_stage_is_refilled_after_the_commit_of_its_products():
    refill = fill("0x40004000").replace("F:", "G:").replace("bra F", "bra G")
    body = PREPARED + mma() + commit() + "{}" + refill + PROXY + SYNC + wait(label="V") + AFTER + LOAD + WAIT_LD + OUT
    report, result = run(body.replace("{}", wait()))
    clean(report)
    assert (result == 16).all()
    finding = run(body.replace("{}", ""))[0].findings[0]
    assert (finding.kind, finding.message) == (
        "unwaited-async",
        "st.shared.b32 writes 4 bytes at s[0], which an asynchronous operation still reads",
    )


def test_a_stage_is_refilled_by_a_thread_that_knows_of_the_commit():
    """Warp 1 waits for the commit and raises a flag; warp 2 sees the flag, but acquires nothing."""
    flag = "add.u32 %r14, %r5, 4;\n@%p1 st.shared.b32 [%r14], 0;\n"
    body = flag + PREPARED + mma() + commit() + (
        "setp.eq.u32 %p7, %r2, 1; setp.eq.u32 %p6, %r1, 64; @%p7 bra ONE; @%p6 bra TWO; bra END;\n"
        "ONE: " + wait(label="U") + "{release} [%r14], 1; bra END;\n"
        "TWO: {acquire} %r15, [%r14]; setp.eq.u32 %p3, %r15, 1; @!%p3 bra TWO; st.shared.b32 [%r3], 0;\nEND: "
    ) + SYNC + wait() + AFTER + LOAD + WAIT_LD + OUT  # fmt: skip

    def under(release, acquire):
        return kinds(body.replace("{release}", release).replace("{acquire}", acquire))

    assert under("st.release.cta.shared.b32", "ld.acquire.cta.shared.b32") == []
    assert under("st.relaxed.cta.shared.b32", "ld.relaxed.cta.shared.b32") == ["race"]


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_stage_is_refilled_after_a_barrier_with_the_warp_that_issued_the_products(waits, schedule):
    """Warp 1 waits for the commit and raises a flag without a release; then warp 0, which issued it, meets warp 2."""
    flag = "add.u32 %r14, %r5, 4;\n@%p1 st.shared.b32 [%r14], 0;\n"
    body = flag + PREPARED + mma() + commit() + (
        "setp.eq.u32 %p7, %r2, 1; @%p7 bra ONE; @%p2 bra ZERO; setp.eq.u32 %p6, %r2, 2; @%p6 bra TWO; bra END;\n"
        "ONE: " + wait(label="U") + "st.relaxed.cta.shared.b32 [%r14], 1; bra END;\n"
        "ZERO: ld.relaxed.cta.shared.b32 %r15, [%r14]; setp.eq.u32 %p3, %r15, 1; @!%p3 bra ZERO;\n"
        + wait(label="V") * waits + "bar.sync 1, 64; bra END;\n"
        "TWO: bar.sync 1, 64; setp.eq.u32 %p6, %r1, 64; @%p6 st.shared.b32 [%r3], 0;\nEND: "
    ) + SYNC + wait() + AFTER + LOAD + WAIT_LD + OUT  # fmt: skip
    with config.using(schedule=schedule):
        found = [(finding.kind, finding.message) for finding in run(body)[0].findings]
    message = (
        "st.shared.b32 writes s[0], read by the async proxy for warp 0 of block (0, 0, 0) with "
        "tcgen05.mma.cta_group::1.kind::f16; these threads have not waited for the tcgen05.commit that covers it"
    )
    assert found == ([] if waits else [("race", message)])


@pytest.mark.parametrize("waits", [True, False])
def test_a_stage_is_refilled_by_copies_that_a_commit_lets_go(waits):
    """Warp 1 copies A, twice; it knows of the first copy by the commit of the products that waited for it."""
    copy = (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+{at}], 4096; cp.async.bulk.shared::cta.global."
        "mbarrier::complete_tx::bytes [%r3], [%rd1], 4096, [%r4+{at}];\n"
    )
    init = "".join(f"@%p1 mbarrier.init.shared::cta.b64 [%r4+{8 * n}], 1;\n" for n in range(4))
    init += "fence.mbarrier_init.release.cluster;\n"
    body = (
        fill() + init + PROXY + SYNC + SETUP + "setp.eq.u32 %p7, %r1, 32; @%p7 bra COPY; @%p1 bra MUL; bra END;\n"
        + "COPY: " + copy.format(at=16) + wait(FULL, "U") * waits + copy.format(at=24) + "bra END;\n"
        + "MUL: " + wait("[%r4+16]", "T") + mma(guard="") + commit(guard="") + wait("[%r4+24]", "S")
        + mma(True, guard="") + commit(NEXT, guard="") + "END: " + wait(NEXT) + AFTER + LOAD + WAIT_LD + OUT
    )  # fmt: skip
    result = np.zeros((16, 128), np.uint32)
    report = launch(source(body, 32), np.full(2048, 0x3C00, np.uint16), result)
    if waits:
        clean(report)
        assert (result.view(np.float32) == 32).all()
    else:
        assert report.findings[0].kind in ("race", "unwaited-async")


def test_a_commit_arrives_in_several_blocks_of_a_cluster():
    """Block 0 multiplies; block 1 waits for that, and then lets block 0 end."""
    many = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r4], %h1;\n"
    meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
    body = (
        ".reg .b16 %h<2>; mov.b16 %h1, 3; mov.u32 %r14, %cluster_ctarank; setp.eq.u32 %p7, %r14, 0;\n" + fill() + INIT
        + "fence.mbarrier_init.release.cluster;\n" + PROXY + meet + SETUP + "@!%p7 bra X; @!%p1 bra X;\n"
        + mma(guard="") + many + "X: " + wait() + AFTER + "@!%p7 bra Y;\n" + LOAD + WAIT_LD + OUT + "Y: " + meet
    )  # fmt: skip
    result = np.zeros((16, 128), np.uint32)
    text = source(body, 32).replace(".param .u64 y)\n", ".param .u64 y) .reqnctapercluster 2, 1, 1\n")
    clean(launch(text, np.zeros(1), result, grid=2))
    assert (result.view(np.float32) == 16).all()
    alone = text.replace("mov.b16 %h1, 3", "mov.b16 %h1, 1")
    assert launch(alone, np.zeros(1), np.zeros((16, 128), np.uint32), grid=2).findings[0].kind == "deadlock"


def test_products_in_flight_at_the_end_of_the_block():
    body = PREPARED + mma()
    report, _ = run(body)
    assert [finding.kind for finding in report.findings] == ["race", "unwaited-async"]
    assert report.findings[1].message == "tcgen05.mma.cta_group::1.kind::f16 is still in flight when its block ends"


def test_operands_that_were_never_written():
    report, _ = run(INIT + SYNC + SETUP + mma() + FINISH)
    finding = report.findings[0]
    assert (finding.kind, finding.message) == (
        "uninitialized",
        "tcgen05.mma.cta_group::1.kind::f16 reads 16 bytes at s[0], which no thread has written; st.global.b32 uses it "
        "(register %v0)",
    )


def test_accumulators_that_were_never_written():
    report, _ = run(PREPARED + mma(True) + FINISH)
    assert [finding.message for finding in report.findings] == [
        "tcgen05.mma.cta_group::1.kind::f16 adds to lane 0 from column 0 on of tensor memory, which was never written; "
        "st.global.b32 uses it (register %v0)"
    ]


def test_two_commits_may_complete_one_phase():
    body = PREPARED.replace("[%r4], 1;", "[%r4], 2;") + mma() + commit() + commit() + FINISH.replace(commit(), "")
    clean(run(body)[0])


def test_more_commits_than_a_phase_waits_for():
    """The phase never ends, since its bytes never come."""
    expects = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 16;\n"
    report, _ = run(PREPARED + expects + mma() + commit() + commit() + FINISH.replace(commit(), ""))
    assert (report.findings[0].kind, report.findings[0].message) == (
        "mbarrier",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 arrives at an mbarrier whose phase waits "
        "for no more arrivals",
    )


@pytest.mark.parametrize("checks", [True, False])
def test_results_are_the_same_without_checks(checks):
    _, result = run(without(), checks=checks)
    assert (result == 32).all()
