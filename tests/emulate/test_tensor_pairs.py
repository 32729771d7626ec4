"""Pairs of blocks: allocation together, and the fences, waits and commits that products of both need."""

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean, only
from tests.emulate.tensor_kernels import global_words, launch, registers
from tests.emulate.test_tensor_order import AFTER, BEFORE, PROXY, WAIT_LD, A, B, fill
from tests.isa.pair_products import MEET, paired

# A 256 x 16 and B 16 x 32 of f16, all ones: half of both in each block
IDESC = 1 << 4 | 32 // 8 << 17 | 256 // 16 << 24
FULL, NEXT, EMPTY = "[%r4]", "[%r4+8]", "[%r4+16]"
SETUP = (
    f"mov.b64 %rd5, {A}; mov.b64 %rd6, {B}; mov.b32 %r13, {IDESC}; setp.ne.u32 %p4, 1, 1; setp.ne.u32 %p5, 1, 0;\n"
    "and.pred %p6, %p1, %p7; add.u32 %r16, %r4, 16; mapa.shared::cluster.u32 %r16, %r16, 0;\n"
)
INIT = "".join(f"@%p1 mbarrier.init.shared::cta.b64 [%r4+{8 * n}], {count};\n" for n, count in enumerate((1, 1, 256)))
INIT += "fence.mbarrier_init.release.cluster;\n"
LOAD = f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {registers(32)}, [%r8];\n"
OUT = "mul.wide.u32 %rd12, %r30, 16384; add.u64 %rd2, %rd2, %rd12;\n" + global_words("st", 32, "%rd2")
RELEASE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r16];\n"


def mma(guard="@%p6 ", adds="%p4"):
    return f"{guard}tcgen05.mma.cta_group::2.kind::f16 [%r7], %rd5, %rd6, %r13, {adds};\n"


def commit(mbarrier=FULL, guard="@%p6 "):
    name = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    return f"{guard}{name} {mbarrier}, %h1;\n"


def wait(mbarrier=FULL, label="W", how=""):
    return f"{label}: mbarrier.try_wait.parity{how}.shared::cta.b64 %p3, {mbarrier}, 0; @!%p3 bra {label};\n"


def run(body, meets=MEET, **options):
    result = np.zeros((2, 32, 128), np.uint32)
    report = launch(paired(body, 32, meets), np.zeros(1), result, grid=2, **options)
    return report, result.view(np.float32)


# The accumulators are used twice: threads of both blocks load them, and let the next product overwrite them.
TWICE = {
    "fill": fill(), "init": INIT, "proxy fence": PROXY, "meet": MEET, "setup": SETUP,
    "mma": mma(), "commit": commit(), "wait": wait(), "after": AFTER, "load": LOAD, "wait::ld": WAIT_LD,
    "before": BEFORE, "release": RELEASE, "others": "@!%p6 bra X;\n", "acquire": wait(EMPTY, "U", ".acquire.cluster"),
    "after 2": AFTER, "mma 2": mma("", "%p5"), "commit 2": commit(NEXT, ""), "join": "X: ", "wait 2": wait(NEXT, "V"),
    "after 3": AFTER, "load 2": LOAD, "wait::ld 2": WAIT_LD, "out": OUT,
}  # fmt: skip
NEEDED = {
    "proxy fence": "race", "meet": "cluster", "commit": "deadlock", "wait": "race", "after": "race",
    "wait::ld": "race", "before": "race", "release": "deadlock", "acquire": "race", "after 2": "race",
    "commit 2": "deadlock", "wait 2": "race", "after 3": "race", "wait::ld 2": "race",
}  # fmt: skip


def without(*names):
    return "".join(text for name, text in TWICE.items() if name not in names)


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1", "random:2"])
def test_the_whole_is_clean_and_right(schedule):
    with config.using(schedule=schedule):
        report, result = run(without())
    clean(report)
    assert (result == 32).all()


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", NEEDED)
def test_each_of_them_is_needed(name):
    report, _ = run(without(name))
    assert report.findings[0].kind == NEEDED[name], str(report)


def test_scopes_do_not_matter_to_tensor_memory():
    """tcgen05 fences need execution order alone; arrivals and waits of CUTLASS have the default scope."""
    body = without().replace("mbarrier.arrive.release.cluster", "mbarrier.arrive").replace(".acquire.cluster", "")
    clean(run(body)[0])


MESSAGES = {
    "before": (
        "tcgen05.mma.cta_group::2.kind::f16 writes columns 0 to 31 of tensor memory, which "
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 of warp 1 read; no tcgen05.fence::before_thread_sync follows it",
        "execute tcgen05.fence::before_thread_sync in its threads, before they synchronise with these",
    ),
    "wait": (
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 reads columns 0 to 31 of tensor memory, which "
        "tcgen05.mma.cta_group::2.kind::f16 of the same warp may still write; no tcgen05.commit that covers it has "
        "arrived",
        "execute tcgen05.commit after it, and wait for the phase of its mbarrier (mbarrier.try_wait)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_finding_says_what_is_missing(name):
    finding = run(without(name))[0].findings[0]
    assert (finding.message, finding.help) == MESSAGES[name]


def test_a_load_of_the_other_block_that_no_fence_follows():
    """The threads of the odd block leave out the fence."""
    finding = run(without().replace(BEFORE, "@%p7 " + BEFORE))[0].findings[0]
    assert finding.message == (
        "tcgen05.mma.cta_group::2.kind::f16 writes columns 0 to 31 of tensor memory of block (1, 0, 0), which "
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 of warp 0 of block (1, 0, 0) read; no "
        "tcgen05.fence::before_thread_sync follows it"
    )


PREPARED = fill() + INIT + PROXY + MEET + SETUP
FINISH = commit() + wait() + AFTER + LOAD + WAIT_LD + OUT


@pytest.mark.parametrize("waits", [True, False])
def test_the_other_block_refills_a_stage_after_the_commit(waits):
    refill = fill("0x40004000").replace("F:", "@%p7 bra R;\nG:").replace("bra F", "bra G") + "R:\n"
    body = PREPARED + mma() + commit() + (wait(label="Q") if waits else "") + refill + PROXY + wait() + AFTER + LOAD
    report, result = run(body + WAIT_LD + OUT)
    if waits:
        clean(report)
        assert (result == 16).all()
    else:
        assert (report.findings[0].kind, report.findings[0].message) == (
            "unwaited-async",
            "st.shared.b32 writes 4 bytes at s[0], which an asynchronous operation still reads",
        )


def test_a_commit_to_one_block_lets_only_that_one_refill():
    """The even block waits for the commit; nothing tells the odd block, which refills its half of A."""
    alone = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64"
    many = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    body = PREPARED + mma() + commit().replace(many, alone).replace(", %h1", "") + "@!%p7 bra D;\n" + wait()
    body += "D: @%p7 bra E; st.shared.b32 [%r3], 0;\nE:\n"
    with config.using(schedule="random:3"):  # the commit may arrive before the store
        kinds = {finding.kind for finding in run(body)[0].findings}
    assert kinds & {"race", "unwaited-async"}


def test_copies_go_from_each_block_to_its_own_tensor_memory():
    desc = 1 << 46 | 128 // 16 << 32 | 2048 // 16 << 16
    values = "add.u32 %r15, %r30, 7; " + fill("%r15").replace("mov.b32 %r10, %r15; ", "mov.b32 %r10, %r15; ")
    body = values + INIT + PROXY + MEET + SETUP + f"mov.b64 %rd5, {desc};\n"
    body += "@%p6 tcgen05.cp.cta_group::2.128x256b [%r7], %rd5;\n" + commit() + wait() + AFTER
    body += LOAD.replace("x32.b32", "x8.b32").replace(registers(32), registers(8)) + WAIT_LD
    report, result = run(body + OUT.replace(global_words("st", 32, "%rd2"), global_words("st", 8, "%rd2")))
    clean(report)
    words = result.view(np.uint32)
    assert (words[0, :8] == 7).all() and (words[1, :8] == 8).all() and (words[:, 8:] == 0).all()


# Allocation

ALLOC, FREE = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32", "tcgen05.dealloc.cta_group::2.sync.aligned.b32"


def edited(*edits, body="", meets=MEET, grid=2):
    text = paired(body, 32, meets)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return launch(text, np.zeros(1), np.zeros((2, 32, 128), np.uint32), grid=grid)


def test_both_blocks_allocate():
    finding = only(edited((f"@!%p2 bra A; {ALLOC}", f"mov.u32 %r31, %cluster_ctarank; setp.ne.u32 %p7, %r31, 0; @%p7 "
                           f"bra A; @!%p2 bra A; {ALLOC}")))  # fmt: skip
    assert finding.kind == "deadlock"
    assert "threads 0–31 of block (0, 0, 0) wait at tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32" in (
        finding.message
    )
    assert ", for a warp of block (1, 0, 0), which has not executed it" in finding.message


def test_blocks_free_after_they_have_met():
    """The manual's example of a program that may hang: one block meets before it frees, the other after."""
    free = f"@!%p2 bra Y; {FREE} %r7, 32;\nY: "
    text = "@%p7 bra T;\n" + free + MEET + "bra U;\nT: " + MEET + free.replace("Y", "O") + "U: ret;\n"
    finding = edited(body=text, meets="").findings[0]
    assert finding.kind == "divergent-collective" or finding.kind == "deadlock"
    assert ", for a warp of block (0, 0, 0), which has not executed it" in finding.message


def test_different_sizes_in_a_pair():
    half = "mov.u32 %r31, %cluster_ctarank; shl.b32 %r31, %r31, 5; add.u32 %r31, %r31, 32;\n"
    finding = edited(
        ("@!%p2 bra A; ", half + "@!%p2 bra A; "), (f"{ALLOC} [%r5], 32", f"{ALLOC} [%r5], %r31")
    ).findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "tensor-memory",
        f"{ALLOC} of 32 and 64 columns in the blocks of a pair, which allocate the same columns together",
        "pass the same `columns` in both blocks",
    )


def test_the_other_block_frees_other_columns():
    finding = edited((f"{FREE} %r7, 32", f"shl.b32 %r31, %r30, 5; add.u32 %r7, %r7, %r31; {FREE} %r7, 32")).findings[0]
    assert (finding.kind, finding.message) == (
        "tensor-memory", f"{FREE} of 32 columns at 0x20: no allocation begins there"
    )  # fmt: skip


def test_columns_that_are_not_freed():
    report = edited((f"{FREE} %r7, 32;", ""))
    assert [(finding.kind, finding.message) for finding in report.findings] == [
        ("tensor-memory", "block (0, 0, 0) ends and columns 0 to 31 of tensor memory are still allocated")
    ]


def test_pairs_need_clusters_of_an_even_number_of_blocks():
    finding = edited((".reqnctapercluster 2, 1, 1", ".reqnctapercluster 3, 1, 1"), grid=3).findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "tensor-memory",
        f"{ALLOC} is for two blocks of a cluster; the launch has clusters of 3 blocks",
        "launch clusters of an even number of blocks: @pd.kernel(cluster=2)",
    )


# One block ends early


def test_a_product_after_the_other_block_has_ended():
    """It frees nothing, either."""
    body = PREPARED + "@!%p7 bra Z;\nnanosleep.u32 20;\n" + mma() + commit().replace("%h1", "1") + wait()
    messages = [finding.message for finding in edited(body=body, meets="").findings]
    assert messages[0] == "block (1, 0, 0) ends and columns 0 to 31 of tensor memory are still allocated"
    assert messages[1] == (
        "tcgen05.mma.cta_group::2.kind::f16 is executed after the other block of its pair, (1, 0, 0), has ended"
    )


def test_a_block_that_ends_while_a_product_reads_its_shared_memory():
    body = PREPARED + mma() + commit().replace("%h1", "1") + "@!%p7 bra Z;\n" + wait()
    kinds = [finding.kind for finding in edited(body=body, meets="").findings]
    assert kinds[:2] == ["unwaited-async", "tensor-memory"]


def test_a_commit_to_a_block_that_has_ended():
    body = PREPARED + commit() + "@!%p7 bra Z;\n" + wait()
    messages = [finding.message for finding in edited(body=body, meets="").findings]
    assert (
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 arrives at an "
        "mbarrier of block (1, 0, 0), which has ended"
    ) in messages


def test_blocks_free_after_products_of_the_other_are_complete():
    """The odd block knows of the product's end, and the even one of the loads: neither meets the other."""
    kinds = [finding.kind for finding in run(PREPARED + mma() + FINISH, meets="")[0].findings]
    assert kinds and set(kinds) <= {"race", "cluster"}


@pytest.mark.parametrize("schedule", ["lockstep", "random:1"])
def test_two_pairs_of_a_cluster_and_clusters_that_start_later(schedule):
    """Each pair multiplies numbers of its own: block 2n and 2n + 1 by 16 + n."""
    edits = (
        ("mov.b16 %h1, 3; mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p7, %r30, 0;",
         "mov.u32 %r30, %cluster_ctarank; and.b32 %r31, %r30, 2; mov.u32 %r29, 3; shl.b32 %r29, %r29, %r31; "
         "cvt.u16.u32 %h1, %r29; and.b32 %r29, %r30, 1; setp.eq.u32 %p7, %r29, 0;"),
        ("mapa.shared::cluster.u32 %r16, %r16, 0;", "mapa.shared::cluster.u32 %r16, %r16, %r31;"),
        ("mul.wide.u32 %rd12, %r30, 16384;", "mov.u32 %r30, %ctaid.x; mul.wide.u32 %rd12, %r30, 16384;"),
        (".reqnctapercluster 2, 1, 1", ".reqnctapercluster 4, 1, 1"),
        ("mov.b32 %r10, 0x3C003C00;", "mov.u32 %r10, %ctaid.x; shr.b32 %r10, %r10, 1; shl.b32 %r10, %r10, 6; "
         "add.u32 %r10, %r10, 0x3C00; shl.b32 %r15, %r10, 16; or.b32 %r10, %r10, %r15;"),
    )  # fmt: skip
    text = paired(without(), 32)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    result = np.zeros((16, 32, 128), np.uint32)
    with config.using(schedule=schedule):
        clean(launch(text, np.zeros(1), result, grid=16, resident=8))
    number = (1 + np.arange(8) / 16) ** 2 * 32  # f16 0x3C00 + 64n is 1 + n / 16
    wanted = np.repeat(number, 2)[:, np.newaxis, np.newaxis]
    np.testing.assert_array_equal(result.view(np.float32), np.broadcast_to(wanted, result.shape))
