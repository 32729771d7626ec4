"""`pd.inline`: PTX as text in a kernel, checked by the parser and the table."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr, u32, u64
from tests.tracing import refusal


@pytest.fixture(params=[pytest.param("emulator"), pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    with config.using(device=request.param):
        yield request.param


@pd.kernel
def counting(out: ptr[u32], n: u32):
    i = pd.tid.x
    low, high = pd.inline("mul.lo.u32 low, a, b; mul.hi.u32 high, a, b;", low=u32, high=u32, a=i, b=n)
    count = pd.var(u32, 0)
    for _ in range(2):
        pd.inline(
            """
            .reg .pred p;
            .reg .u32 t<3>;
            .shared .align 4 .b32 box[32];
            mov.u32 t0, x;                      // how many bits it has
        AGAIN:
            add.u32 c, c, 1;
            shr.u32 t0, t0, 1;
            setp.ne.u32 p, t0, 0;
        @p  bra AGAIN;
            { .reg .u32 t0; mov.u32 t0, 3; mov.u32 t1, t0; }
            add.u32 t1, t1, c;
            st.global.u32 [place+128], t1;
            """,
            x=i,
            c=count,
            place=out + i,
        )
    out[i] = low + high + count


def test_a_text_with_results_a_loop_a_variable_and_a_pointer(device):
    out = np.zeros(64, np.uint32)
    counting[1, 32](out, 7)
    bits = np.array([max(1, int(i).bit_length()) for i in range(32)])
    assert (out[:32] == np.arange(32) * 7 + 2 * bits).all()
    assert (out[32:] == 2 * bits + 3).all()


def test_names_of_the_text_are_its_own_each_time():
    text = counting.ptx("sm_90a")
    assert text.count("bra $AGAIN;") == text.count("bra $AGAIN_1;") == 1
    assert ".shared .align 4 .b32 box[32];" in text and ".shared .align 4 .b32 box_1[32];" in text
    assert pd.parse(pd.parse(text).ptx()).ptx() == pd.parse(text).ptx()
    assert counting.resources("sm_90a").registers > 0


def test_one_result_comes_alone_and_is_named_after_its_target():
    @pd.kernel
    def k(x: ptr[f32]):
        root = pd.inline("rsqrt.approx.ftz.f32 d, a;", d=f32, a=x[0])
        pd.inline("membar.gl;")
        x[0] = root

    assert "rsqrt.approx.ftz.f32 %root, %f0;" in k.ptx()
    x = np.array([4], np.float32)
    k[1, 1](x)
    assert x[0] == 0.5


REFUSED = {
    'pd.inline("mul.loo.u32 d, a, a;", d=u32, a=n)': "`mul` has no form `mul.loo.u32`\n"
    "  help: did you mean `mul.lo.u32` or `mul.lo.s32` or `mul.lo.u64`?",
    'pd.inline("mull.lo.u32 d, a, a;", d=u32, a=n)': "ptxdsl does not know the PTX instruction `mull`\n"
    "  help: did you mean `mul` or `mul24`?",
    'pd.inline("mul.lo.u32 d, a, c;", d=u32, a=n)': "in the text of pd.inline, `mul.lo.u32 d, a, c;`: `c` is not declared\n"
    "  help: declare the register or variable, or write the label, before this",
    'pd.inline("mov.u32 d, a; add.u32 d, d, 1", d=u32, a=n)': "in the text of pd.inline, `mov.u32 d, a; add.u32 d, d, 1`: "
    "`;` is missing after this instruction\n  help: end every instruction with `;`",
    'pd.inline("add.u32 d, a, 3;", d=f32, a=n)': "in the text of pd.inline, `add.u32 d, a, 3;`: add.u32: `d` is an f32 "
    "register; this form takes a 32-bit integer register",
    'pd.inline("add.u32 d, a;", d=u32, a=n)': "in the text of pd.inline, `add.u32 d, a;`: add.u32: takes d, a, b; 2 given",
    'pd.inline("add.u32 a, a, 3;", a=n)': "the text of pd.inline writes `a`, and `n` was computed once\n"
    "  help: give it a variable, `pd.var`, or a result of its own: its name with a type",
    'pd.inline("mov.u32 c, a;", c=u32, d=u32, a=n)': "the text of pd.inline never writes its result `d`\n"
    "  help: leave it out, or write it",
    'pd.inline("} .func x() {")': "in the text of pd.inline, a `}` closes more than the text has opened\n"
    "  help: write one `}` for each `{`",
    'pd.inline("bra L;")': "in the text of pd.inline, `bra L;`: `L` is not declared\n"
    "  help: declare the register or variable, or write the label, before this",
    'pd.inline("add.u32 d, a, 3;", d=u32, a=3)': "operand `a` of pd.inline is 3, which has no type\n"
    "  help: write u32 and the like for a result, a value or a variable for what the text reads and writes",
    'pd.inline("mov.u64 d, a;", d=u64, a=pd.shared(u32, 3))': "operand `a` of pd.inline is <array shared of u32, "
    "(3):(1)>, which has no type\n  help: pass an address: `a=shared.address(0)`",
    'pd.inline("add.u32 d, a, 3;", d=u32, a=pd.var(u32))': "`pd.var(u32)` is read, but nothing was written to it before\n"
    "  help: give it a first value: `pd.var(u32, 0)`",
    'pd.inline("wgmma.fence.sync.aligned;")': "wgmma.fence.sync.aligned needs sm_90a; this kernel is traced for sm_80\n"
    '  help: ask for arch="sm_90a", or use instructions that sm_80 has',
    "pd.inline(3)": 'pd.inline takes a text of PTX; found 3\n  help: such as `pd.inline("brkpt;")`',
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_no_ptx_is_refused_at_the_python_line(call):
    lines = refusal(call, u64=u64).splitlines()
    place = [line for line in lines if line.startswith("  kernel.py:3 | ")]
    assert place == [f"  kernel.py:3 | {call}"]
    assert "\n".join([lines[0], *[line for line in lines if line.startswith("  help: ")]]) == REFUSED[call]
