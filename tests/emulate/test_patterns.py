"""Release and acquire patterns: which accesses and fences synchronize threads, by scope, location and size."""

import numpy as np
import pytest

from ptxdsl import config
from tests.emulate.support import clean, only, run

# Thread 0 writes x[4] and releases it at x[0]; a thread of another warp or of another block waits for 2 there.
BODY = """
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r1, {warp}; setp.eq.and.u32 %p1, %r2, {block}, %p1; or.b32 %r3, %r1, %r2; setp.eq.u32 %p2, %r3, 0;
    @%p1 bra WAIT;
    @!%p2 ret;
    st.global.u32 [%rd1+16], 5;
    {release}
    ret;
WAIT:
    {load} setp.lt.u32 %p3, %r4, 2;
    @%p3 bra WAIT;
    {behind}
    ld.global.u32 %r5, [%rd1+16];
"""
SAME_BLOCK, OTHER_BLOCK = {"warp": 32, "block": 0}, {"warp": 0, "block": 1}
STORE = "st.{}.global.u32 [%rd1], {};\n"
LOAD = "ld.{}.global.u32 %r4, [%rd1];"
CTA, GPU = "fence.acq_rel.cta;\n", "fence.acq_rel.gpu;\n"
ACQUIRE = LOAD.format("acquire.gpu"), ""


def released(scope):
    return STORE.format(f"release.{scope}", 2)


PATTERNS = {  # release, load, what follows it; ordered in one block, ordered between blocks
    "gpu, gpu": (released("gpu"), *ACQUIRE, True, True),
    "gpu, cta": (released("gpu"), LOAD.format("acquire.cta"), "", True, False),
    "cta, gpu": (released("cta"), *ACQUIRE, True, False),
    "cta, cta": (released("cta"), LOAD.format("acquire.cta"), "", True, False),
    "sys, cta": (released("sys"), LOAD.format("acquire.cta"), "", True, False),
    "release, relaxed": (STORE.format("release.gpu", 1) + STORE.format("relaxed.gpu", 2), *ACQUIRE, True, True),
    "release, volatile": (STORE.format("release.gpu", 1) + STORE.format("volatile", 2), *ACQUIRE, True, True),
    "release, red": (STORE.format("release.gpu", 1) + "red.relaxed.gpu.global.add.u32 [%rd1], 1;", *ACQUIRE, True, True),
    "release, narrow relaxed": (STORE.format("release.gpu", 1) + STORE.format("relaxed.cta", 2), *ACQUIRE, True, False),
    "narrow release, relaxed": (STORE.format("release.cta", 1) + STORE.format("relaxed.gpu", 2), *ACQUIRE, True, False),
    "wide release, relaxed": ("st.release.gpu.global.u64 [%rd1], 1;" + STORE.format("relaxed.gpu", 2), *ACQUIRE, False, False),
    "release elsewhere": ("st.release.gpu.global.u32 [%rd1+8], 1;" + STORE.format("relaxed.gpu", 2), *ACQUIRE, False, False),
    "fence, fence": (GPU + STORE.format("relaxed.gpu", 2), LOAD.format("relaxed.gpu"), GPU, True, True),
    "fence, narrow fence": (GPU + STORE.format("relaxed.gpu", 2), LOAD.format("relaxed.gpu"), CTA, True, False),
    "fence, narrow load": (GPU + STORE.format("relaxed.gpu", 2), LOAD.format("relaxed.cta"), GPU, True, False),
    "narrow fence": (CTA + STORE.format("relaxed.gpu", 2), *ACQUIRE, True, False),
    "atom, fence": (released("gpu"), "atom.relaxed.gpu.global.or.b32 %r4, [%rd1], 0;", GPU, True, True),
    "wide release": ("st.release.gpu.global.u64 [%rd1], 2;", *ACQUIRE, False, False),
    "wide acquire": (released("gpu"), "ld.acquire.gpu.global.u64 %rd4, [%rd1]; cvt.u32.u64 %r4, %rd4;", "", False, False),
    "vector release": ("mov.u32 %r7, 2; st.release.gpu.global.v2.u32 [%rd1], {%r7, %r7};", *ACQUIRE, True, True),
    "vector acquire": (
        "st.release.gpu.global.u32 [%rd1+4], 2;", "ld.acquire.gpu.global.v2.u32 {%r7, %r4}, [%rd1];", "", True, True,
    ),
}  # fmt: skip


@pytest.fixture(params=["lockstep", "skewed", "random:1"])
def every_schedule(request):
    with config.using(schedule=request.param):
        yield


def launch(where, release, load=ACQUIRE[0], behind=""):
    body = BODY.format(release=release, load=load, behind=behind, **where)
    return run(body, np.zeros(8, np.uint32), grid=2, block=64)


@pytest.mark.usefixtures("every_schedule")
@pytest.mark.parametrize("name", PATTERNS)
def test_what_synchronizes(name):
    *code, in_block, between_blocks = PATTERNS[name]
    for where, ordered in ((SAME_BLOCK, in_block), (OTHER_BLOCK, between_blocks)):
        kinds = {finding.kind for finding in launch(where, *code).findings}
        assert kinds == (set() if ordered else {"race"}), (where, kinds)


@pytest.mark.usefixtures("lockstep")  # block 0 first: no read comes before the stores
@pytest.mark.parametrize("load", [LOAD.format("acquire.gpu"), "atom.acquire.gpu.global.or.b32 %r4, [%rd1], 0;"])
def test_an_acquire_comes_after_what_it_acquires(load):
    """Also after an earlier store to the flag, whose scope does not include its thread."""
    clean(launch(OTHER_BLOCK, STORE.format("relaxed.cta", 1) + "fence.acq_rel.gpu;" + released("gpu"), load))


@pytest.mark.usefixtures("every_schedule")
@pytest.mark.parametrize("first", [STORE.format("release.gpu", 1), GPU])
def test_a_pattern_releases_what_precedes_its_first_operation(first):
    """x[4] is written between the release or the fence and the relaxed store."""
    report = launch(OTHER_BLOCK, first + "st.global.u32 [%rd1+16], 6;" + STORE.format("relaxed.gpu", 2))
    assert {finding.kind for finding in report.findings} == {"race"}


# Block 1 releases x[4] at x[1], block 0 fences before it acquires that and stores to x[0], block 2 waits for this.
LATER = """
    ld.param.u64 %rd1, [x]; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1;
    @%p1 bra MIDDLE; @%p2 bra FIRST;
LAST:
    ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.eq.u32 %p3, %r4, 0; @%p3 bra LAST;
    ld.global.u32 %r5, [%rd1+16]; ret;
FIRST:
    st.global.u32 [%rd1+16], 5; st.release.gpu.global.u32 [%rd1+4], 1; st.relaxed.gpu.global.u32 [%rd1+8], 1; ret;
MIDDLE:
    ld.relaxed.gpu.global.u32 %r4, [%rd1+8]; setp.eq.u32 %p3, %r4, 0; @%p3 bra MIDDLE;
    {early} ld.acquire.gpu.global.u32 %r4, [%rd1+4]; {late}
    st.relaxed.gpu.global.u32 [%rd1], 1;
"""


@pytest.mark.usefixtures("every_schedule")
def test_a_fence_releases_what_its_thread_knew_then():
    """Not what it acquired since, though that was written before the fence."""
    x = np.zeros(8, np.uint32)
    clean(run(LATER.format(early="", late=GPU), x.copy(), grid=3, block=1))
    report = run(LATER.format(early=GPU, late=""), x.copy(), grid=3, block=1)
    assert {finding.kind for finding in report.findings} == {"race"}


@pytest.mark.usefixtures("every_schedule")
@pytest.mark.parametrize(("update", "ordered"), [("red.relaxed.gpu.global.add.u32 [%rd1], 1;", False),
                                                 ("atom.relaxed.gpu.global.add.u32 %r4, [%rd1], 0;", True)])  # fmt: skip
def test_reductions_form_no_acquire_pattern(update, ordered):
    """PTX ISA, "Reductions do not form acquire patterns": x[0] is 3 once the red has seen the release."""
    wait = f"{update} fence.acq_rel.gpu; ld.volatile.global.u32 %r4, [%rd1+4];"
    signal = released("gpu") + "st.volatile.global.u32 [%rd1+4], 2;"
    report = launch(OTHER_BLOCK, signal, LOAD.format("volatile").replace("[%rd1]", "[%rd1+4]"), wait)
    assert {finding.kind for finding in report.findings} == (set() if ordered else {"race"})


@pytest.mark.usefixtures("lockstep")
def test_a_scope_that_does_not_include_the_other_block_in_words():
    flag, _ = launch(OTHER_BLOCK, released("gpu"), LOAD.format("acquire.cta")).findings
    assert str(flag) == (
        "race: ld.acquire.cta.global.u32 reads x[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
        "st.release.gpu.global.u32; .cta scope does not include threads of the other block\n"
        "  <ptx>:16\n"
        "  <ptx>:12\n"
        "  by thread (0, 0, 0) of block (1, 0, 0)\n"
        "  help: use .gpu scope in both"
    )


# Both blocks, or both warps of a block, access x[0] with no order between them.
TOGETHER = """
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.b64 %rd2, 1; mov.b32 %r3, 1; or.b32 %r4, %r1, %r2;
    and.b32 %r5, %r1, 31; setp.ne.u32 %p1, %r5, 0; @%p1 ret; setp.ne.u32 %p2, %r4, 0; mov.b16 %h1, 1;
    @%p2 bra SECOND;
    {first}
    ret;
SECOND:
    {second}
"""
SIZES = [
    ("red.relaxed.gpu.global.add.u32 [%rd1], 1;", "red.relaxed.gpu.global.add.u32 [%rd1], 1;", True),
    ("red.relaxed.gpu.global.add.u32 [%rd1], 1;", "red.relaxed.gpu.global.add.u64 [%rd1], 1;", False),
    ("red.relaxed.gpu.global.add.u64 [%rd1], 1;", "atom.relaxed.gpu.global.exch.b32 %r6, [%rd1+4], 1;", False),
    ("st.relaxed.gpu.global.u64 [%rd1], %rd2;", "ld.relaxed.gpu.global.u32 %r6, [%rd1+4];", False),
    ("st.relaxed.gpu.global.v2.u32 [%rd1], {%r3, %r3};", "ld.relaxed.gpu.global.u32 %r6, [%rd1+4];", True),
    ("st.relaxed.gpu.global.v2.u32 [%rd1], {%r3, %r3};", "ld.relaxed.gpu.global.u64 %rd3, [%rd1];", False),
    (
        "red.relaxed.gpu.global.add.noftz.f16x2 [%rd1], %r3;",
        "red.relaxed.gpu.global.add.noftz.f16 [%rd1+2], %h1;",
        True,
    ),
]


@pytest.mark.usefixtures("every_schedule")
@pytest.mark.parametrize(("first", "second", "alike"), SIZES)
@pytest.mark.parametrize(("grid", "block"), [(2, 1), (1, 64)])
def test_strong_accesses_of_one_size_do_not_race(first, second, alike, grid, block):
    body = TOGETHER.replace("{first}", first).replace("{second}", second)
    report = run(body, np.zeros(8, np.uint32), grid=grid, block=block)
    assert {finding.kind for finding in report.findings} == (set() if alike else {"race"})


@pytest.mark.usefixtures("lockstep")
def test_accesses_of_two_sizes_in_words():
    body = TOGETHER.replace("{first}", SIZES[1][0]).replace("{second}", SIZES[1][1])
    assert str(only(run(body, np.zeros(8, np.uint32), grid=2, block=1))) == (
        "race: red.relaxed.gpu.global.add.u64 updates x[0], updated by thread (0, 0, 0) of block (0, 0, 0) with "
        "red.relaxed.gpu.global.add.u32; the two access 8 and 4 bytes, so that neither is atomic to the other\n"
        "  <ptx>:13\n"
        "  <ptx>:10\n"
        "  by thread (0, 0, 0) of block (1, 0, 0)\n"
        "  help: access it with the same size everywhere, or order the two by a barrier"
    )
