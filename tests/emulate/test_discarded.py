"""Races of reads whose value reaches no output say so."""

import numpy as np
import pytest

from tests.emulate.support import only, run

BEGIN = """
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r3, s; add.u32 %r4, %r3, %r2; setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 40;
    @!%p1 bra READ;
    st.shared.u32 [%r4], %r1;
    bra.uni END;
READ:
    ld.shared.u32 %r5, [%r4+-128];
"""
SUFFIX = "; the value reaches no output"
DISCARDED = {
    "never used": "",
    "overwritten": "mov.u32 %r5, 1; st.global.u32 [%rd3], %r5;",
    "computed with, and not stored": "add.u32 %r6, %r5, 1; mul.lo.u32 %r7, %r6, %r6;",
    "not selected": "setp.eq.u32 %p3, %r1, 1000; selp.u32 %r6, %r5, 7, %p3; st.global.u32 [%rd3], %r6;",
    "shuffled to lanes that do not store": "shfl.sync.idx.b32 %r6, %r5, 0, 31, 0xffffffff;",
    "stored by no lane": "setp.gt.u32 %p3, %r1, 1000; @%p3 st.global.u32 [%rd3], %r5;",
}
USED = {
    "stored": "st.global.u32 [%rd3], %r5;",
    "stored by one lane": "@%p2 st.global.u32 [%rd3], %r5;",
    "stored after arithmetic": "add.u32 %r6, %r5, 1; st.global.u32 [%rd3], %r6;",
    "stored to shared memory": "st.shared.u32 [%r4+128], %r5;",
    "a condition": "setp.eq.u32 %p3, %r5, 3; @%p3 bra END; st.global.u32 [%rd3], %r1;",
    "an address": "mul.wide.u32 %rd4, %r5, 4; add.u64 %rd5, %rd1, %rd4; ld.global.u32 %r6, [%rd5];",
    "added to memory": "red.global.add.u32 [%rd1], %r5;",
    "shuffled and stored": "shfl.sync.idx.b32 %r6, %r5, 0, 31, 0xffffffff; st.global.u32 [%rd3], %r6;",
}


def raced(use, **options):
    x = np.zeros(64, np.uint32)
    return run(BEGIN + use + "\nEND:", x, block=64, module=".shared .align 16 .b8 s[512];", **options)


@pytest.mark.parametrize("use", DISCARDED)
def test_a_race_whose_value_is_discarded_says_so(use):
    finding = only(raced(DISCARDED[use]))
    assert finding.message == (
        "ld.shared.u32 reads s[0], written by thread (0, 0, 0) of block (0, 0, 0) with st.shared.u32; no barrier orders "
        f"the two{SUFFIX}"
    )


@pytest.mark.parametrize("use", USED)
def test_a_race_whose_value_is_used_does_not_say_that_it_is_discarded(use):
    finding = only(raced(USED[use]))
    assert (finding.kind, SUFFIX in finding.message) == ("race", False)


IN_PLACE = {
    "arithmetic": "add.u32 %r5, %r5, 1;",
    "arithmetic of half the lanes": "setp.lt.u32 %p3, %r1, 16; @%p3 add.u32 %r5, %r5, 1; @%p3 st.global.u32 [%rd3], %r5; @%p3 bra END;",
    "a shuffle": "shfl.sync.bfly.b32 %r5, %r5, 1, 31, 0xffffffff;",
}


@pytest.mark.parametrize("divergent", [False, True])
@pytest.mark.parametrize("step", IN_PLACE)
def test_a_register_that_is_updated_in_place_stays_uninitialised(step, divergent):
    """And its finding names the read that the value comes from."""
    text = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;"
    branch = "setp.ge.u32 %p2, %r1, 32; @%p2 bra END;" if divergent else ""
    body = f"{text} {branch} shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;\nld.shared.u32 %r5, [%r4];\n"
    finding = only(run(body + IN_PLACE[step] + "\nst.global.u32 [%rd3], %r5;\nEND:", np.zeros(64, np.uint32),
                       block=64 if divergent else 32, module=".shared .align 16 .b8 s[512];"))  # fmt: skip
    assert finding.kind == "uninitialized"
    assert finding.message.startswith(
        "ld.shared.u32 reads 4 bytes at s[0], which no thread has written; st.global.u32 uses it"
    )
