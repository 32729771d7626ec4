"""setmaxnreg: registers that warpgroups of a block give back, and others wait for."""

import numpy as np
import pytest

from ptxdsl.errors import EmulationError
from tests.emulate.support import clean, launch, only

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {promises}
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
setp.lt.u32 %p0, %r0, 128; @%p0 bra FIRST;
{others}
bra DONE;
FIRST:
{first}
DONE:
st.global.u32 [%d0], 1;
ret;
}}
"""
PROMISES = ".reqntid 384 .minnctapersm 1"


def run(first, others, threads=384, promises=PROMISES, grid=1):
    """(report, 1 for each thread that came to the end)."""
    x = np.zeros(threads, np.uint32)
    text = TEXT.format(promises=promises, first=first, others=others)
    return launch(text, x, block=threads, grid=grid), x


def dec(count):
    return f"setmaxnreg.dec.sync.aligned.u32 {count};"


def inc(count):
    return f"setmaxnreg.inc.sync.aligned.u32 {count};"


@pytest.mark.parametrize("grid", [1, 5])
@pytest.mark.parametrize("first, others", [(40, 232), (24, 240), (168, 168)])
def test_what_one_warpgroup_gives_back_two_others_get(first, others, grid):
    report, x = run(dec(first), inc(others), grid=grid)
    clean(report)
    assert x.all()


@pytest.mark.parametrize("first, others, left, wanted", [(48, 232, 7168, 8192), (24, 248, 8192, 10240)])
def test_more_than_the_block_has_is_a_deadlock_that_says_so(first, others, left, wanted):
    report, _ = run(dec(first), inc(others))
    finding = only(report)
    assert finding.kind == "deadlock"
    assert finding.message == (
        "every thread is blocked\n"
        f"  threads 256–383 of block (0, 0, 0) wait at setmaxnreg.inc.sync.aligned.u32 (<ptx>:9), for {wanted} registers; "
        f"{left} are left in the block"
    )


def test_nobody_gives_back():
    finding = only(run("", inc(176))[0])
    assert finding.message.endswith("for 1024 registers; 0 are left in the block")


def test_those_who_wait_go_on_when_others_give_back_later():
    late = f"bar.sync 1, 128; {dec(24)}"
    report, x = run(late, inc(240))
    clean(report)
    assert x.all()


@pytest.mark.parametrize("first, message, help", [
    (dec(200), "setmaxnreg.dec.sync.aligned.u32 200: the threads have 168 registers, and dec cannot change that to 200", "inc"),
    (inc(104), "setmaxnreg.inc.sync.aligned.u32 104: the threads have 168 registers, and inc cannot change that to 104", "dec"),
])  # fmt: skip
def test_dec_takes_and_inc_gives(first, message, help):
    finding = only(run(first, "")[0])
    assert (finding.kind, finding.message, finding.help) == ("registers", message, f"write setmaxnreg.{help}")


@pytest.mark.parametrize("promises, threads, most", [
    (".maxntid 256 .minnctapersm 1", 256, 248),
    (".maxntid 256 .minnctapersm 2", 256, 128),
    (".reqntid 512 .minnctapersm 1", 512, 128),
    (".reqntid 256 .maxnreg 96", 256, 96),
])  # fmt: skip
def test_registers_at_launch_follow_from_block_and_promises(promises, threads, most):
    clean(run(inc(most), "", threads, promises)[0])
    finding = only(run(inc(most + 8), "", threads, promises)[0])
    assert finding.message.endswith("for 1024 registers; 0 are left in the block")


def test_an_unknown_block_is_refused():
    with pytest.raises(EmulationError) as refusal:
        run(dec(40), "", promises="")
    assert refusal.value.message == (
        "setmaxnreg.dec.sync.aligned.u32: the number of registers is unknown, because the kernel does not declare its "
        "block size"
    )
    assert refusal.value.help == "declare it: `@pd.kernel(reqntid=384)`, or .reqntid in PTX"


def test_a_warpgroup_changes_its_registers_together():
    finding = only(run(f"setp.lt.u32 %p1, %r0, 64; @%p1 {dec(40)} bar.sync 2, 128;", "")[0])
    assert finding.kind == "divergent-collective"
