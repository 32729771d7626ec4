"""Input from elsewhere: PTX that other compilers print, reductions that an H200 measured, malformed arrays."""

import os
import re
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import assemble as assembling
from ptxdsl.cached import cached_property
from ptxdsl.kernels.gemm import gemm
from ptxdsl.layout import Layout, make_tiled_copy

PACKAGE = Path(pd.__file__).parent
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
FILLER = ".visible .entry filler() { .reg .b32 %r<65536>; ret; }\n"
SCOPES = """.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    bra SET;
USE:
    {
        .reg .pred %p1;
        setp.ne.u32 %p1, %r1, %r1;
        selp.u32 %r2, 1, 0, %p1;
    }
    selp.u32 %r3, 7, 9, %p1;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    add.u32 %r3, %r3, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
SET:
    setp.lt.u32 %p1, %r1, 16;
    bra USE;
}
"""


@pytest.mark.parametrize("front", ["", FILLER], ids=["few registers", "more registers than are made at once"])
def test_a_register_of_a_nested_scope_takes_no_name_of_an_outer_one(front):
    printed = pd.parse(HEAD + front + SCOPES).ptx()
    for text in (HEAD + front + SCOPES, printed):
        out = np.zeros(32, np.uint32)
        pd.emulate(pd.parse(text)["k"], 1, 32, out)
        assert (out == np.where(np.arange(32) < 16, 7, 9)).all()
    assert pd.parse(printed).ptx() == printed


def test_a_register_that_a_family_declares_too_is_refused_in_words():
    text = HEAD + FILLER + ".visible .entry k() { .reg .b32 %r<8>; .reg .b32 %r3; ret; }"
    with pytest.raises(pd.ParseError, match="`%r3` is declared twice in this scope"):
        pd.parse(text)


@pytest.mark.parametrize("line", ["selp.b32 %r1, 7, 8, !%p1;", "mov.pred %p2, !%p1; selp.b32 %r1, 7, 8, %p2;"])
def test_a_predicate_may_be_negated(line):
    body = f".reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %a; ld.param.u64 %a, [o]; setp.eq.u32 %p1, 1, 1; {line}"
    out = np.zeros(1, np.uint32)
    pd.emulate(
        pd.parse(f"{HEAD}.visible .entry k(.param .u64 o) {{ {body} st.global.b32 [%a], %r1; ret; }}")["k"], 1, 1, out
    )
    assert out[0] == 8


def test_a_pragma_before_the_body():
    kernel = pd.parse(HEAD + '.visible .entry k() .maxntid 32 .pragma "nounroll"; { ret; }')["k"]
    assert not pd.emulate(kernel, 1, 32).findings
    with pytest.raises(pd.LaunchError, match="at most 32 threads"):
        pd.emulate(kernel, 1, 64)


STORE = """.visible .entry k(.param .u64 o, .param .u32 n)
{ .reg .b32 %r; .reg .b64 %a; ld.param.u64 %a, [o]; ld.param.u32 %r, [n]; st.global.b32 [%a], %r; ret; }"""


@pytest.mark.parametrize("number", [-100, -(2**31), 2**32 - 1])
def test_an_unsigned_parameter_takes_any_32_bits(number):
    out = np.zeros(1, np.uint32)
    pd.emulate(pd.parse(HEAD + STORE)["k"], 1, 1, out, number)
    assert out[0] == number % 2**32


@pytest.mark.parametrize("number", [-(2**31) - 1, 2**32])
def test_a_number_of_more_bits_is_refused(number):
    with pytest.raises(pd.LaunchError, match=r"is out of range \(-2147483648 to 4294967295\)"):
        pd.emulate(pd.parse(HEAD + STORE)["k"], 1, 1, np.zeros(1, np.uint32), number)


def test_redux_reads_only_the_lanes_of_its_mask():
    text = (
        HEAD
        + """.visible .entry k(.param .u64 out)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %a;
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p, %r2, 8;
    @%p bra END;
    mov.u32 %r4, %r2;
    redux.sync.add.s32 %r5, %r4, 255;
    ld.param.u64 %a, [out];
    st.global.u32 [%a], %r5;
END: ret;
}"""
    )
    out = np.zeros(1, np.uint32)
    assert not pd.emulate(pd.parse(text)["k"], 1, 32, out).findings
    assert out[0] == 28


def reduction(operation):
    """Return a kernel that combines 8 x 16 values with a tensor through a tensor map."""
    copy = make_tiled_copy(f"cp.reduce.async.bulk.tensor.global.shared.{operation}", Layout((8, 16), (16, 1)), bits=32)

    @pd.kernel(arch="sm_90a", reqntid=32)
    def reduce(y: pd.TensorMap.of(pd.f32, copy), value: pd.f32):
        tile = y.shared()
        for i in range(4):
            tile[(pd.tid.x + 32 * i) // 16, (pd.tid.x + 32 * i) % 16] = value
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            copy.copy(y, (0, 0), tile, commit=True)
            pd.ptx.cp.async_.bulk.wait_group(0)

    return reduce


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_a_tensor_reduction_of_bits_takes_floats_as_bits(name):
    y = np.full((8, 16), 7, np.float32)
    reduction(name)[1, 32](y, 3.0)
    bits = getattr(np, f"bitwise_{name}")(np.float32(7).view(np.uint32), np.float32(3).view(np.uint32))
    assert (y.view(np.uint32) == bits).all()


def test_a_tensor_reduction_adds_subnormals():
    """An H200 keeps them here, and flushes them in red.global.add.f32 alone."""
    y = np.full((8, 16), 2.0**-130, np.float32)
    reduction("add")[1, 32](y, 2.0**-130)
    assert (y == np.float32(2.0**-129)).all()


class Interface:
    def __init__(self, **fields):
        self.__cuda_array_interface__ = fields


class Capsule:
    def __dlpack__(self, **_):
        return 5

    def __dlpack_device__(self):
        return 2, 0


@pytest.mark.parametrize(
    "broken, reason",
    [
        (Interface(shape=(8, 8)), "its __cuda_array_interface__ is malformed: it lacks 'typestr'"),
        (Interface(typestr="<f2", shape=(8, 8)), "its __cuda_array_interface__ is malformed: it lacks 'data'"),
        (Capsule(), "its __dlpack__ returned int, not a capsule"),
    ],
    ids=["no type", "no data", "no capsule"],
)
def test_a_malformed_array_is_refused(broken, reason):
    with pytest.raises(pd.LaunchError) as refused:
        gemm(broken, np.ones((8, 8), np.float16))
    assert reason in refused.value.message


PACK = """.func (.reg .v2 .u32 both) pack(
    .reg .v2 .u16 v,
    .reg .u32 n
)
{
    cvt.u32.u16 both.x, v.x;
    cvt.u32.u16 both.y, v.y;
    add.u32 both.y, both.y, n;
    ret;
}
"""
CALLS = """
.visible .entry k(
    .param .u64 out
)
{
    .reg .u64 a;
    .reg .u16 x;
    .reg .v2 .u16 v;
    .reg .v2 .u32 d;
    mov.u16 x, 3;
    mov.v2.u16 v, {x, 4};
    call (d), pack, (v, 7);
    ld.param.u64 a, [out];
    st.global.v2.u32 [a], d;
    ret;
}
"""


def test_vector_registers_are_printed_as_they_were_and_assemble():
    module = pd.parse(HEAD + "\n" + PACK + CALLS)
    assert module.ptx() == HEAD + "\n" + PACK + CALLS
    out = np.zeros(2, np.uint32)
    assert not pd.emulate(module["k"], 1, 1, out).findings
    assert out.tolist() == [3, 11]
    assert module["k"].cubin(arch="sm_90").kernels


def test_vector_registers_of_nested_scopes_and_prototypes():
    body = """
    .reg .u64 a, f;
    .reg .v2 .u16 v;
    .reg .v2 .u32 d;
    mov.u64 f, pack;
    {
        .reg .v2 .u16 v;
        mov.v2.u16 v, {1, 2};
        p: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u16 _, .reg .u32 _);
        call (d), f, (v, 5), p;
    }
    ld.param.u64 a, [out];
    st.global.v2.u32 [a], d;
    ret;"""
    module = pd.parse(f"{HEAD}{PACK}.visible .entry k(.param .u64 out) {{{body}}}")
    printed = module.ptx()
    assert ".callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u16 _, .reg .u32 _)" in printed
    assert ".reg .v2 .u16 v, v_1;" in printed and "mov.v2.u16 v_1, {1, 2};" in printed
    assert pd.parse(printed).ptx() == printed
    out = np.zeros(2, np.uint32)
    pd.emulate(module["k"], 1, 1, out)
    assert out.tolist() == [1, 7]
    assert module["k"].cubin(arch="sm_90").kernels


def seconds(text):
    """Return the processor time of a launch of at most a second, its preparation included."""
    kernel, start = pd.parse(text)["k"], time.process_time()
    report = pd.emulate(kernel, 1, 32, np.zeros(4, np.uint32), max_seconds=1)
    return time.process_time() - start, report


def nested_loops(n):
    """Return n loops of which each contains the next, written so that no register says which iteration it is."""
    labels = "".join(f"L{i}:\n" for i in range(3 * n))
    return f"{labels}" + "".join(f"bra L{i};\n" for i in range(0, 3 * n, 3))


def backwards(n):
    """Return n moves of an address, each before the one that it takes its value from."""
    moves = "".join(f"L{i}: mov.b64 %r{i}, %r{i - 1}; bra L{i + 1};\n" for i in range(n, 0, -1))
    last = f"L{n + 1}: st.global.u32 [%r{n}], 1; ret;"
    return f".reg .b64 %r<{n + 1}>; ld.param.u64 %r0, [o]; bra L1;\n{moves}{last}"


@pytest.mark.parametrize("body", [nested_loops, backwards])
def test_preparing_a_launch_takes_linear_time(body):
    def text(n):
        return f"{HEAD}.visible .entry k(.param .u64 o) {{ {body(n)} ret; }}"

    seconds(text(10))  # imports
    took, _ = seconds(text(6000))
    assert took < 4


def test_max_seconds_counts_from_the_call():
    loop = "L: add.u32 %r, %r, 1; bra L;"
    text = f"{HEAD}.visible .entry k(.param .u64 o) {{ .reg .b32 %r; mov.u32 %r, 0; {loop} }}"
    took, report = seconds(text)
    (finding,) = report.findings
    assert finding.kind == "limit" and finding.message.startswith("stopped after 1 seconds, at ")
    assert finding.help == "raise max_steps or max_seconds, or set PTXDSL_STEPS or PTXDSL_SECONDS"
    assert took < 3


MANY_REGISTERS = ".reg .b32 %r<200>; " + "".join(f"ld.volatile.global.u32 %r{n}, [%a];" for n in range(200))
KEPT = "".join(f"st.volatile.global.u32 [%a], %r{n};" for n in reversed(range(200)))
WIDE = f".reg .b64 %a; ld.param.u64 %a, [o]; {MANY_REGISTERS} {KEPT}"
OTHERS = "".join(f".visible .entry other{n}(.param .u64 o) {{ ret; }}\n" for n in range(3))


@pytest.fixture
def assembled(monkeypatch):
    """The texts that are assembled."""
    texts, assemble = [], assembling.assemble

    def record(text, arch, **options):
        texts.append(text)
        return assemble(text, arch, **options)

    for module in ("kernel", "runtime.variant"):  # each keeps the function that it has looked up
        monkeypatch.setattr(sys.modules[f"ptxdsl.{module}"].assembling, "assemble", record)
    return texts


def test_the_emulator_assembles_no_module_that_asks_for_no_registers(assembled):
    kernel = pd.parse(f"{HEAD}{OTHERS}.visible .entry k(.param .u64 o) {{ {WIDE} ret; }}")["k"]
    pd.emulate(kernel, 1, 1024, np.zeros(1, np.uint32), checks=False)
    assert assembled == []


def test_a_kernel_that_asks_for_registers_is_assembled_without_the_others(assembled):
    kernel = pd.parse(f"{HEAD}{OTHERS}.visible .entry k(.param .u64 o) .maxnreg 232 {{ {WIDE} ret; }}")["k"]
    with pytest.raises(pd.LaunchError) as refused:
        pd.emulate(kernel, 1, 1024, np.zeros(1, np.uint32))
    assert refused.value.message == "a block of (1024, 1, 1) has 1024 threads; k can have at most 256"
    assert refused.value.help == "use a smaller block; its registers or its .maxntid allow no more"
    (text,) = assembled
    assert ".entry k(" in text and "other" not in text


@pytest.mark.parametrize(
    "version, target, body, message, least",
    [
        ("7.8", "sm_90", "fence.mbarrier_init.release.cluster;", "`fence.mbarrier_init.release.cluster` needs PTX 8.0", "8.0"),
        ("8.0", "sm_90", ".reg .b128 q;", "a .b128 register needs PTX 8.3", "8.3"),
        ("8.0", "sm_90", ".reg .b32 r; mov.b32 r, %aggr_smem_size;", "`%aggr_smem_size` needs PTX 8.1", "8.1"),
        ("7.0", "sm_90", "", "sm_90 needs PTX 7.8", "7.8"),
    ],
    ids=["instruction", "register", "special register", "target"],
)  # fmt: skip
def test_the_version_is_checked_as_by_ptxas(version, target, body, message, least):
    def module(version):
        text = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {body} ret; }}"
        return pd.parse(text)

    with pytest.raises(pd.VerifyError) as refused:
        pd.emulate(module(version)["k"], 1, 32)
    assert refused.value.message == f"{message}; the module has .version {version}"
    assert refused.value.help == f"write .version {least}"
    assert not pd.emulate(module(least)["k"], 1, 32).findings
    assert module(least)["k"].cubin(arch="sm_90").kernels


TABLE = ".reg .u64 f; .reg .u32 a; mov.u32 a, 0; mov.u64 f, 0;\n"


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "brx.idx a, t;\nt: .branchtargets A; A:",
            "line 5, column 12: `t` is not a list of targets or a prototype that is declared above\n"
            "  <ptx>:5 | brx.idx a, t;\n"
            "                       ^\n"
            "  help: write `t: .branchtargets …;` before this line",
        ),
        (
            "call f, t;\nt: .callprototype _ ();",
            "line 5, column 9: `t` is not a list of targets or a prototype that is declared above\n"
            "  <ptx>:5 | call f, t;\n"
            "                    ^\n"
            "  help: write `t: .callprototype …;` before this line",
        ),
        (
            "A:\nbrx.idx a, A;",
            "line 6, column 12: `A` is not a list of targets or a prototype that is declared above\n"
            "  <ptx>:6 | brx.idx a, A; ret; }\n"
            "                       ^\n"
            "  help: write `A: .branchtargets …;` before this line",
        ),
    ],
    ids=["targets", "prototype", "label"],
)
def test_a_list_is_declared_before_it_is_used(body, message):
    with pytest.raises(pd.ParseError) as refused:
        pd.parse(f"{HEAD}.visible .entry k() {{ {TABLE}{body} ret; }}")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "body", ["t: .branchtargets A; { brx.idx a, t; } A:", "{ t: .branchtargets A; brx.idx a, t; } A:"]
)
def test_a_list_is_used_in_its_scope_and_inner_ones(body):
    kernel = pd.parse(f"{HEAD}.visible .entry k() {{ {TABLE}{body} ret; }}")["k"]
    assert not pd.emulate(kernel, 1, 1).findings


GUARDED = """.visible .entry k(.param .u64 o)
{{
    .reg .pred %p, %q; .reg .b32 %r<4>; .reg .b16 %h<4>; .reg .f32 %f; .reg .f64 %d; .reg .b64 %a;
    ld.param.u64 %a, [o];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd, %r1, 4;
    add.u64 %a, %a, %rd;
    mov.b32 %r2, 5; mov.b32 %f, 0f40A00000; mov.b16 %h1, 5; mov.b16 %h2, 5; mov.f64 %d, 0d4014000000000000;
    setp.lt.u32 %p, %r1, {bound};
    setp.eq.u32 %q, %r1, %r1;
    {line}
    {result}
    st.global.b32 [%a], %r2;
    ret;
}}
""".replace(".reg .b64 %a;", ".reg .b64 %a, %rd;", 1)


def guarded(line, result="", bound=16):
    return pd.parse(HEAD + GUARDED.format(line=line, result=result, bound=bound))["k"]


IGNORED = {
    "set.eq.f32.u32": ("@%p set.eq.f32.u32 %f, %r1, %r1;", "mov.b32 %r2, %f;", 0x3F800000, 0x40A00000),
    "set.eq.u16.f16": ("@%p set.eq.u16.f16 %h1, %h2, %h2;", "cvt.u32.u16 %r2, %h1;", 0xFFFF, 5),
    "set.eq.u32.u16": ("@%p set.eq.u32.u16 %r2, %h2, %h2;", "", 0xFFFFFFFF, 5),
    "testp.infinite.f32": ("@%p testp.infinite.f32 %q, %f;", "selp.b32 %r2, 1, 0, %q;", 0, 1),
}


@pytest.mark.parametrize("mnemonic", IGNORED)
def test_a_guard_that_ptxas_ignores_is_a_strict_finding(mnemonic):
    line, result, where_true, where_false = IGNORED[mnemonic]
    out = np.zeros(32, np.uint32)
    report = pd.emulate(guarded(line, result), 1, 32, out)
    (finding,) = report.findings
    assert (finding.kind, finding.degree, finding.count) == ("guard", "strict", 16)
    assert finding.message == (
        f"{mnemonic} is guarded, and ptxas 13 writes its destination in threads whose guard is false; "
        "the emulator leaves it"
    )
    select = f"write `{mnemonic}` to a new register without the guard, and select with selp"
    copy = "write a new predicate without the guard, and copy it with a guarded mov.pred"
    assert finding.help == (copy if mnemonic.startswith("testp") else select)
    assert (out == np.where(np.arange(32) < 16, where_true, where_false)).all()
    assert not pd.emulate(guarded(line, result, bound=32), 1, 32, out).findings
    with pd.config.using(strict="1"), pytest.raises(pd.EmulationError, match="ptxas 13 writes its destination"):
        guarded(line, result)[1, 32](out)


@pytest.mark.parametrize("line", ["@%p set.eq.u32.f32 %r2, %f, %f;", "@%p set.eq.u32.f16x2 %r2, %r1, %r1;"])
def test_a_guard_that_ptxas_keeps_is_no_finding(line):
    assert not pd.emulate(guarded(line), 1, 32, np.zeros(32, np.uint32)).findings


def test_our_own_kernels_print_no_guard_that_ptxas_ignores():
    @pd.kernel
    def direct(y: pd.ptr[pd.f32]):
        x = pd.var(pd.f32, 5)
        pd.ptx.set.lt.f32.u32(pd.tid.x, 4, out=x, guard=pd.tid.x < 16)
        y[pd.tid.x] = x

    @pd.kernel
    def inlined(y: pd.ptr[pd.f32]):
        x, p = pd.var(pd.f32, 5), pd.tid.x < 16
        pd.inline("@p set.lt.f32.u32 x, a, 4;", x=x, p=p, a=pd.tid.x)
        y[pd.tid.x] = x

    with pytest.raises(pd.VerifyError) as refused:
        direct.ptx()
    assert refused.value.message == "set.lt.f32.u32: ptxas 13 ignores the guard of this instruction"
    assert refused.value.help == "execute it in `with pd.if_(guard):`, or write it to a new register and use pd.select"
    with pytest.raises(pd.VerifyError) as refused:
        inlined.ptx()
    assert "set.lt.f32.u32: ptxas 13 ignores the guard of this instruction" in refused.value.message
    assert refused.value.help == "write it to a new register without the guard, and select with selp"


PRINT = """.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[{count}] = {{{bytes}}};
.visible .entry k(.param .u64 displaced)
{{
    .local .align 8 .b8 values[16];
    .reg .b64 %a, %b;
    .reg .b32 %r;
    ld.param.u64 %b, [displaced];
    mov.u64 %a, format;
    cvta.global.u64 %a, %a;
    add.u64 %a, %a, %b;
    mov.u64 %b, values;
    cvta.local.u64 %b, %b;
    mov.u32 %r, 7;
    st.local.u32 [values], %r;
    st.local.u32 [values+4], %r;
    {{
        .param .b64 x; .param .b64 y; .param .b32 z;
        st.param.b64 [x], %a;
        st.param.b64 [y], %b;
        call.uni (z), vprintf, (x, y);
    }}
    ret;
}}
"""


def printing(template):
    content = [*template.encode(), 0]
    return pd.parse(HEAD + PRINT.format(count=len(content), bytes=", ".join(map(str, content))))["k"]


@pytest.mark.parametrize("template", ["%900000000d", "%.900000000d", "%900000000s", "%-4096x"])
def test_a_number_of_many_characters_is_refused(template):
    with pytest.raises(pd.EmulationError) as refused:
        pd.emulate(printing(template), 1, 1, 0)
    count = "".join(filter(str.isdigit, template))
    assert refused.value.message == f"vprintf is asked for a number of {count} characters; the maximum is 4095"
    assert refused.value.help == "write a smaller width or precision in the format"


def test_a_text_of_many_characters_is_refused():
    with pytest.raises(pd.EmulationError, match="vprintf writes more than 65536 characters"):
        pd.emulate(printing("%4095d" * 17), 1, 1, 0, checks=False)


def test_widths_that_c_guarantees_are_printed(capsys):
    assert not pd.emulate(printing("%4095d|%-3u|"), 1, 1, 0).findings
    assert capsys.readouterr().out == f"{7:4095}|7  |"


@pytest.mark.parametrize("displaced", [2**64 - 2**46, 2**45, 2**64 - 1])
def test_a_wild_address_of_a_format_is_a_finding(displaced, capsys):
    finding, *_ = pd.emulate(printing("%d"), 1, 1, displaced).findings
    assert finding.kind == "out-of-bounds" and len(capsys.readouterr().out) < 9


LARGE = """.global .b8 g[3000000000];
.visible .entry k(.param .u64 o)
{
    .reg .b64 %a; .reg .b32 %r;
    mov.u64 %a, g;
    ld.global.u32 %r, [%a+2000000000];
    add.u32 %r, %r, 1;
    st.global.u32 [%a+2000000000], %r;
    ld.param.u64 %a, [o];
    st.global.u32 [%a], %r;
    ret;
}"""


def test_a_large_variable_takes_memory_only_where_it_is_used():
    kernel, out = pd.parse(HEAD + LARGE)["k"], np.zeros(1, np.uint32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count in (1, 2):
        assert not pd.emulate(kernel, 1, 1, out).findings
        assert out[0] == count
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KB


def test_a_lazy_attribute_holds_no_lock_while_it_is_computed():
    """A process that is forked meanwhile would wait for the lock forever, as with functools of Python 3.11."""

    class Slow:
        @cached_property
        def value(self):
            entered.set()
            assert leave.wait(10)
            return 3

    entered, leave, slow, other = threading.Event(), threading.Event(), Slow(), []
    thread = threading.Thread(target=lambda: other.append(slow.value))
    thread.start()
    assert entered.wait(10)
    child = os.fork()
    if child == 0:
        leave.set()
        os._exit(Slow().value)
    leave.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    thread.join()
    assert other == [3] and slow.value == 3


def test_the_package_takes_no_lazy_attributes_with_a_lock():
    uses = [
        path for path in PACKAGE.rglob("*.py") if re.search(r"functools import .*cached_property", path.read_text())
    ]
    assert {path.name for path in uses} == {"cached.py", "contents.py"}


def test_a_module_is_printed_once_for_all_of_its_kernels(monkeypatch):
    printed, lower = [], sys.modules["ptxdsl.kernel"].lower
    monkeypatch.setattr(sys.modules["ptxdsl.kernel"], "lower", lambda module: printed.append(module) or lower(module))
    module = pd.parse(HEAD + OTHERS)
    for n in range(3):
        pd.emulate(module[f"other{n}"], 1, 32, 0)
    assert len(printed) == 1
