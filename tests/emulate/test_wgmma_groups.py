"""Groups of products of warpgroups: which registers are whose until when, and who must come."""

import re

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean, launch, only

SUMS = "{%f0, %f1, %f2, %f3}"
OTHERS = "{%f4, %f5, %f6, %f7}"
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x)
{{
.shared .align 1024 .b8 tile[4096];
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .b32 %h<4>;
ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x; and.b32 %r6, %r0, 127; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
mov.u32 %r1, tile; shl.b32 %r2, %r6, 5; add.u32 %r2, %r1, %r2;
mov.b32 %r3, 0x3f803f80; st.shared.v4.b32 [%r2], {{%r3, %r3, %r3, %r3}}; st.shared.v4.b32 [%r2+16], {{%r3, %r3, %r3, %r3}};
fence.proxy.async.shared::cta; bar.sync 0;
cvt.u64.u32 %d2, %r1; shr.u64 %d2, %d2, 4; or.b64 %d2, %d2, 0x1000080000;
mov.f32 %f0, 0f3f800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;
mov.b32 %h0, %r3; mov.b32 %h1, %r3; mov.b32 %h2, %r3; mov.b32 %h3, %r3;
{body}
st.global.f32 [%d0], %f0;
ret;
}}
"""
"""Every element of both operands is 1, so that a product adds 16 to each sum; they begin as 1."""


def mma(sums=SUMS, a="%d2", constants="1, 1, 0, 0", scale="1"):
    return f"{MMA} {sums}, {a}, %d2, {scale}, {constants};"


def wait(pending=0):
    return f"wgmma.wait_group.sync.aligned {pending};"


def run(*body, block=128, **options):
    """(report, the sums of each thread's first register)."""
    x = np.zeros(block, np.float32)
    return launch(TEXT.format(body="\n".join(body)), x, block=block, **options), x


FROM_REGISTERS = mma(a="{%h0, %h1, %h2, %h3}", constants="1, 1, 0")


def test_products_of_a_group_add_up_in_order():
    report, x = run(FENCE, mma(), mma(), COMMIT, wait())
    clean(report)
    assert (x == 33).all()


def test_a_product_that_does_not_add_forgets_the_sums():
    report, x = run(FENCE, mma(), mma(scale="0"), COMMIT, wait())
    clean(report)
    assert (x == 16).all()


def test_sums_need_not_be_written_where_nothing_is_added_to_them():
    never = "{%f8, %f9, %f10, %f11}"
    report, x = run(FENCE, mma(never, scale="0"), mma(never), COMMIT, wait(), "mov.f32 %f0, %f8;")
    clean(report)
    assert (x == 32).all()


def test_sums_that_nobody_wrote_are_found_where_they_are_stored():
    never = "{%f8, %f9, %f10, %f11}"
    finding = only(run(FENCE, mma(never), COMMIT, wait(), "mov.f32 %f0, %f8;")[0])
    assert (finding.kind, finding.message, finding.help) == (
        "uninitialized",
        f"{MMA} adds to register %f8, which was never written; st.global.f32 uses it (register %f0)",
        "pass a false `scale_d` to the first wgmma of a tile, or zero the accumulators first",
    )


def test_a_wait_leaves_the_newest_groups_under_way():
    """The older group's sums may be read, the newer one's not."""
    two = (FENCE, mma(), COMMIT, mma(OTHERS), COMMIT)
    report, x = run(*two, wait(1), "add.f32 %f0, %f0, 0f00000000;", wait())
    clean(report)
    assert (x == 17).all()
    finding = only(run(*two, wait(1), "mov.f32 %f0, %f4;", wait())[0])
    assert finding.kind == "unwaited-wgmma"


def test_registers_of_one_group_are_free_while_another_is_under_way():
    report, x = run(
        FENCE, mma(), COMMIT, wait(), "mov.f32 %f8, %f0;", FENCE, mma(OTHERS), COMMIT, "mov.f32 %f0, %f8;", wait()
    )
    clean(report)
    assert (x == 17).all()


@pytest.mark.parametrize("products, early, verb, what", [
    (mma(), "mov.f32 %f9, %f2;", "reads register %f2", "an accumulator"),
    (mma(), "mov.f32 %f2, 0f00000000;", "writes register %f2", "an accumulator"),
    (FROM_REGISTERS, "mov.b32 %h1, 0;", "writes register %h1", "a fragment of A"),
])  # fmt: skip
def test_registers_under_way_are_not_to_be_used(products, early, verb, what):
    finding = only(run(FENCE, products, COMMIT, early, wait())[0])
    assert finding.kind == "unwaited-wgmma"
    assert finding.message == (
        f"mov.{'b32' if '%h' in early else 'f32'} {verb}, {what} of {MMA}, before wgmma.wait_group: it is "
        "still in flight"
    )
    assert finding.help == "wait first: wgmma.wait_group.sync.aligned 0 after wgmma.commit_group"


def test_a_product_that_was_not_committed_is_not_waited_for():
    report, _ = run(FENCE, mma(), wait())
    assert only(report).message.startswith("st.global.f32 reads register %f0, an accumulator of wgmma.mma_async")


def test_fragments_of_a_may_be_read_while_they_are_multiplied():
    clean(run(FENCE, FROM_REGISTERS, COMMIT, "mov.b32 %r5, %h1;", wait())[0])


def test_another_shape_must_wait_for_the_sums():
    wide = mma("{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}").replace("n8", "n16")
    finding = only(run(FENCE, mma(), wide, COMMIT, wait())[0])
    assert (finding.kind, "uses register %f0" in finding.message) == ("unwaited-wgmma", True)


@pytest.mark.parametrize("before", ["", "mov.f32 %f3, %f0;"])
def test_the_first_product_needs_a_fence(before):
    finding = only(run(before, mma(), COMMIT, wait())[0])
    assert finding.kind == "unfenced-wgmma"
    assert finding.message == f"{MMA} is the first wgmma of its warps, and no wgmma.fence precedes it"
    assert finding.help == (
        "write wgmma.fence.sync.aligned between the last use of these registers and the first wgmma.mma_async"
    )


@pytest.mark.parametrize("use", ["mov.f32 %f3, 0f00000000;", "mov.f32 %f9, %f3;"])
def test_registers_that_were_used_since_need_another(use):
    body = (FENCE, mma(), COMMIT, wait(), use)
    finding = only(run(*body, mma(), COMMIT, wait())[0])
    assert finding.kind == "unfenced-wgmma"
    assert finding.message == f"{MMA} uses register %f3, which was accessed since the last wgmma.fence"
    clean(run(*body, FENCE, mma(), COMMIT, wait())[0])


def test_the_same_sums_need_no_second_fence():
    clean(run(FENCE, mma(), COMMIT, wait(), mma(), COMMIT, wait())[0])


def test_a_loop_of_products():
    body = (
        "mov.u32 %r4, 0;",
        "LOOP:",
        FENCE,
        mma(),
        COMMIT,
        wait(1),
        "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 40; @%p1 bra LOOP;",
        wait(),
    )
    report, x = run(*body)
    clean(report)
    assert (x == 1 + 40 * 16).all()


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:5"])
def test_whoever_runs_first(schedule):
    body = (
        FENCE,
        mma(),
        mma(OTHERS),
        COMMIT,
        mma(),
        COMMIT,
        wait(1),
        "mov.f32 %f9, %f4;",
        wait(),
        "add.f32 %f0, %f0, %f9;",
    )
    with config.using(schedule=schedule):
        report, x = run(*body, block=256, grid=2)
    clean(report)
    assert (x == 33 + 17).all()


def test_two_warpgroups_go_their_own_ways():
    body = (
        "setp.lt.u32 %p1, %r0, 128; @%p1 bra FIRST;",
        *(FENCE, mma(), mma(), COMMIT, wait(), "bra DONE;"),
        "FIRST:",
        *(FENCE, mma(), COMMIT, wait(), "DONE:"),
    )
    report, x = run(*body, block=256, grid=3)
    clean(report)
    assert (x[:128] == 17).all()
    assert (x[128:] == 33).all()


def test_a_warp_that_does_not_come():
    body = ("setp.lt.u32 %p1, %r0, 96; @!%p1 bra DONE;", FENCE, mma(), COMMIT, wait(), "DONE:", "bar.sync 1, 128;")
    finding = only(run(*body)[0])
    assert finding.kind == "divergent-collective"
    assert finding.message.startswith(
        "wgmma.fence.sync.aligned: threads 0–95 of a warpgroup wait for its other threads; threads 96–127 wait at"
    )


def test_a_warp_that_has_ended():
    body = ("setp.lt.u32 %p1, %r0, 96; @!%p1 ret;", FENCE)
    finding = only(run(*body)[0])
    assert finding.message == (
        "wgmma.fence.sync.aligned needs all 128 threads of the warpgroup; 96 arrived and the others have ended"
    )


def test_half_a_warpgroup():
    finding = only(run(FENCE, block=64)[0])
    assert finding.message == (
        "wgmma.fence.sync.aligned needs all 128 threads of the warpgroup; 64 arrived and a block of 64 threads has no "
        "others"
    )


def test_a_guard_that_leaves_lanes_out():
    finding = only(run("setp.lt.u32 %p1, %r0, 100;", FENCE, f"@%p1 {mma()}", "bar.sync 0;")[0])
    assert finding.kind == "divergent-collective"
    assert "threads 0–99 of a warpgroup wait for its other threads; threads 100–127 wait" in finding.message


def test_descriptors_that_differ_within_a_warpgroup():
    body = ("setp.lt.u32 %p1, %r0, 32; @%p1 add.u64 %d2, %d2, 0; @!%p1 add.u64 %d2, %d2, 2;", FENCE, mma(), COMMIT)
    report, _ = run(*body, wait())
    kinds = {finding.kind for finding in report.findings}
    assert kinds == {"divergent-collective"}
    assert "`a_desc` differs between the threads of a warpgroup" in str(report)


def test_shared_memory_that_nobody_wrote():
    text = TEXT.format(body="\n".join((FENCE, mma(), COMMIT, wait())))
    text = re.sub(r"st\.shared.*;", "", text)
    finding = only(launch(text, np.zeros(128, np.float32), block=128))
    assert finding.kind == "uninitialized"
    assert "which no thread has written" in finding.message


def run_without_bytes(first, last, *body):
    """The tile, of which nobody writes those from first to last."""
    text = TEXT.format(body="\n".join((FENCE, mma(), COMMIT, wait(), *body)))
    outside = f"setp.lt.u32 %p2, %r6, {first // 32}; setp.gt.or.u32 %p2, %r6, {last // 32}, %p2;"
    text = text.replace("mov.b32 %r3", f"{outside}\nmov.b32 %r3", 1).replace("st.shared", "@%p2 st.shared")
    return launch(text, np.zeros(128, np.float32), block=128)


def test_rows_of_a_that_nobody_wrote_are_in_the_sums_of_their_warp_alone():
    """A box behind the last row of a matrix need not be copied, where nobody stores what is there."""
    clean(run_without_bytes(1536, 2047, "setp.lt.u32 %p1, %r0, 96; @!%p1 ret;"))
    finding = only(run_without_bytes(1536, 2047))
    assert finding.kind == "uninitialized"
    assert [each.thread for each in finding.threads] == [(x, 0, 0) for x in range(96, 128)]


def test_columns_of_b_that_nobody_wrote_are_in_all_sums():
    finding = only(run_without_bytes(0, 255, "setp.gt.u32 %p1, %r0, 31; @!%p1 ret;"))
    assert finding.kind == "uninitialized"


def test_a_descriptor_that_points_nowhere():
    finding = only(run("mov.u64 %d2, 0x1000083000;", FENCE, mma(), COMMIT, wait())[0])
    assert finding.kind == "out-of-bounds"


def test_a_call_returns_sums():
    function = f""".func (.reg .f32 %o) sum(.reg .b64 %d2)
{{
.reg .f32 %f<4>;
{FENCE}
{mma(scale="0")}
{COMMIT}
{wait()}
mov.f32 %o, %f1;
ret;
}}
"""
    text = TEXT.format(body="call (%f0), sum, (%d2);").replace(".visible", f"{function}.visible", 1)
    x = np.zeros(128, np.float32)
    clean(launch(text, x, block=128))
    assert (x == 16).all()


def test_many_blocks_that_start_as_others_wait(rng):
    """Blocks join others, whose lanes move while products and sums are kept."""
    body = (
        *(FENCE, mma(), COMMIT, "bar.sync 0;", wait()),
        "ld.param.u64 %d4, [x]; mov.u32 %r7, %ctaid.x; setp.eq.u32 %p2, %r0, 0;",
        "@%p2 atom.global.add.u32 %r8, [%d4+512], 1;",
        "SPIN: ld.volatile.global.u32 %r9, [%d4+512]; setp.lt.u32 %p3, %r9, 100; @%p3 bra SPIN;",
        "bar.sync 0;",
        *(FENCE, mma(), COMMIT, wait()),
    )
    x = np.zeros(129, np.float32)
    report = launch(TEXT.format(body="\n".join(body)), x, block=128, grid=100)
    assert not [f for f in report.findings if f.kind != "race"], str(report)
    assert (x[:128] == 33).all()


# ---- shared memory, which the async proxy reads ---------------------------------------------------------------------

PROXY = "fence.proxy.async.shared::cta; "
BARRIER = "bar.sync 0;"
OVERWRITE = "mov.b32 %r3, 0; st.shared.b32 [%r2], %r3;"
ONE = (FENCE, mma(), COMMIT, wait())


def text_run(text, *body, block=128):
    x = np.zeros(block, np.float32)
    return launch(text.format(body="\n".join(body)), x, block=block)


@pytest.mark.parametrize("fence, barrier", [(False, False), (False, True), (True, False), (True, True)])
def test_what_threads_write_needs_a_proxy_fence_and_a_barrier(fence, barrier):
    """Every subset of the two; what is missing is what is told."""
    before, behind = PROXY + BARRIER, (PROXY if fence else "") + (BARRIER if barrier else "")
    assert before in TEXT
    report = text_run(TEXT.replace(before, behind), *ONE)
    if fence and barrier:
        clean(report)
        return
    finding = only(report)
    assert finding.kind == "race"
    lacks = "no barrier orders the two" if not barrier else "no proxy fence separates the two"
    assert finding.message.endswith(lacks)


@pytest.mark.parametrize("overwritten", [OVERWRITE, "st.shared.b32 [%r2], %r3;"])
def test_a_tile_is_not_to_be_overwritten_before_the_wait(overwritten):
    """Not with what it holds either."""
    finding = only(run(FENCE, mma(), COMMIT, overwritten, wait())[0])
    assert finding.kind == "unwaited-async"
    assert finding.message == "st.shared.b32 writes 4 bytes at tile[0], which an asynchronous operation still reads"


def test_a_tile_is_free_behind_the_wait():
    clean(run(*ONE, OVERWRITE)[0])


@pytest.mark.parametrize("between, kinds", [("", {"race"}), ("bar.sync 1, 256;", set())])
def test_others_must_be_told_that_a_tile_is_free(between, kinds):
    body = (
        *("setp.lt.u32 %p1, %r0, 128; @!%p1 bra SECOND;", *ONE, between, "bra DONE;"),
        *("SECOND:", between, OVERWRITE, "DONE:"),
    )
    assert {finding.kind for finding in run(*body, block=256)[0].findings} == kinds


def test_one_thread_of_a_warpgroup_may_tell_others_that_a_tile_is_free():
    """As rings do: an arrival of one thread speaks for all that the product has read."""
    body = (
        "mov.u32 %r10, flag; setp.eq.u32 %p2, %r0, 5; @%p2 mbarrier.init.shared.b64 [%r10], 1; bar.sync 2;",
        *("setp.lt.u32 %p1, %r0, 128; @!%p1 bra SECOND;", *ONE),
        *("@%p2 mbarrier.arrive.shared.b64 _, [%r10];", "bra DONE;", "SECOND:"),
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r10], 0; @!%p3 bra WAIT;",
        *(OVERWRITE, "DONE:"),
    )
    text = TEXT.replace(".reg .pred", ".shared .align 8 .b64 flag;\n.reg .pred", 1)
    clean(text_run(text, *body, block=256))


@pytest.mark.parametrize("fence", ["", PROXY])
def test_a_tile_that_is_filled_again_needs_another_proxy_fence(fence):
    report = run(*ONE, BARRIER, OVERWRITE, fence, BARRIER, *ONE)[0]
    assert [f.message.rpartition("; ")[2] for f in report.findings] == (
        [] if fence else ["no proxy fence separates the two"]
    )


def test_groups_of_two_warpgroups_end_one_by_one():
    """What they read together is taken apart: the first may fill its tile again while the second still reads its own."""
    body = (
        "mov.u32 %r11, 8192; setp.lt.u32 %p1, %r0, 128;",
        *(FENCE, mma(), COMMIT),
        *("@!%p1 bra SECOND;", wait(), "bar.sync 1, 128;", "bra DONE;"),
        *("SECOND:", "bar.sync 2, 128;", wait(), "DONE:"),
    )
    report, x = run(*body, block=256, grid=2)
    clean(report)
    assert (x == 17).all()
