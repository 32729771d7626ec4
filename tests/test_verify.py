"""The rules that a module can break, each with its place and its own sentence."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.errors import EmulationError, VerifyError
from ptxdsl.isa.opaque import opaque
from ptxdsl.isa.target import requirement
from ptxdsl.parse import parse
from ptxdsl.verify import SHOWN, Need, check_operands, verify

HEADER = ".version 7.8\n.target sm_80\n.address_size 64\n"


def kernel(body, header=HEADER):
    return f"{header}.entry k()\n{{\n.reg .b32 %r<4>;\n.reg .f32 %f<2>;\n.reg .pred %p<2>;\n{body}\n}}\n"


def refusal(text):
    with pytest.raises(VerifyError) as caught:
        verify(parse(text))
    return str(caught.value)


def test_a_good_module_passes():
    verify(parse(kernel("mov.b32 %r1, 0; setp.eq.s32 %p0, %r1, 1; L: @%p0 bra L; add.s32 %r2, %r1, 1; ret;")))


def test_a_wrong_operand_is_shown_with_its_line():
    assert refusal(kernel("mov.f32 %f1, 0f00000000;\nadd.u32 %r1, %f1, 2;")) == (
        "add.u32: `a` is an f32 register; this form takes a 32-bit integer register\n  <ptx>:10"
    )


def test_all_problems_are_shown_at_once():
    assert refusal(kernel("add.u32 %r1, 1;\nadd.u32 %r1, 1, 2, 3;")) == (
        "2 problems\n\nadd.u32: takes d, a, b; 2 given\n  <ptx>:9\n\nadd.u32: takes d, a, b; 4 given\n  <ptx>:10"
    )


def test_of_many_problems_the_first_are_shown_and_the_others_counted():
    message = refusal(kernel("add.u32 %r1, 1;\n" * (SHOWN + 3)))
    assert message.startswith(f"{SHOWN + 3} problems\n") and message.endswith("\n\n… and 3 more")
    assert message.count("takes d, a, b") == SHOWN


def test_a_register_that_nothing_writes_is_refused_once_where_it_is_first_read():
    assert refusal(kernel("mov.b32 %r1, %r2;\nmov.b32 %r1, %r2;")) == (
        "mov.b32: `%r2` is read but never written\n  <ptx>:9\n  help: write it on every path before this line"
    )


def test_check_operands_looks_at_operands_only():
    check_operands(parse(kernel("mov.b32 %r1, %r2;")).functions)
    with pytest.raises(VerifyError, match=r"add\.u32: takes d, a, b; 2 given"):
        check_operands(parse(kernel("mov.b32 %r1, %r2; add.u32 %r1, 1;")).functions)


def test_a_parsed_kernel_with_wrong_operands_is_refused_before_it_runs():
    text = kernel("ld.param.u64 %rd1, [p];\nadd.u32 %r1, 1, 0f3F800000;\nst.global.u32 [%rd1], %r1;\nret;")
    module = pd.parse(text.replace("k()", "k(.param .u64 p)").replace("%r<4>;", "%r<4>; .reg .b64 %rd<2>;"))
    out = np.zeros(1, np.uint32)
    with pytest.raises(VerifyError) as caught:
        module["k"][1, 1](out)
    assert (
        str(caught.value)
        == "add.u32: `b` is a floating constant; this form takes a 32-bit integer register\n  <ptx>:10"
    )
    assert out[0] == 0


@pytest.mark.parametrize(
    "text, name",
    [
        ("@%p1 ret;", "%p1"),
        ("@!%p1 ret;", "%p1"),
        ("mov.b32 %r0, 1; st.local.b32 [%r1], %r0;", "%r1"),
        ("st.local.v2.b32 [0], {1, %r3};", "%r3"),
    ],
)
def test_guards_addresses_and_vectors_are_reads(text, name):
    assert f"`{name}` is read but never written" in refusal(kernel(text))


def test_what_calls_unknown_instructions_and_parameters_may_write_counts_as_written():
    functions = ".func (.reg .b32 r) f(.reg .b32 a) { mov.b32 r, a; ret; }\n"
    verify(parse(kernel("call (%r1), f, (1); unknown.b32 %r2, %r3; add.s32 %r1, %r1, %r2;", HEADER + functions)))


def test_what_the_target_or_the_version_lacks_is_refused():
    add = kernel("mov.b32 %r1, 0; add.u16x2 %r1, %r1, %r1;")
    assert refusal(add) == (
        "`add.u16x2` needs sm_90 or later; the target is sm_80\n  <ptx>:9\n"
        '  help: compile the kernel for sm_90 or later: arch="sm_90"'
    )
    assert refusal(add.replace("sm_80", "sm_90")) == (
        "`add.u16x2` needs PTX 8.0; the module has .version 7.8\n  <ptx>:9\n  help: write .version 8.0"
    )
    verify(parse(add.replace("sm_80", "sm_90").replace("7.8", "8.0")))


@pytest.mark.parametrize(
    "number, suffix, has, lacks",
    [
        (90, "", "sm_90 sm_90a sm_100 sm_120f", "sm_80 sm_89"),
        (90, "a", "sm_90a", "sm_90 sm_100 sm_100a"),
        (100, "f", "sm_100f sm_100a sm_103a sm_103f", "sm_100 sm_103 sm_110a sm_120f sm_90a"),
        (103, "f", "sm_103f sm_103a", "sm_100f sm_100a"),
    ],
)
def test_what_one_architecture_or_family_has_is_refused_on_others(number, suffix, has, lacks):
    need = Need("`x`", requirement("8.0", f"{number}{suffix}"))
    assert [need.missing(arch, None) for arch in has.split()] == [None] * len(has.split())
    wanted = f"sm_{number}{suffix}{'' if suffix else ' or later'}"
    for arch in lacks.split():
        assert need.missing(arch, None).message == f"`x` needs {wanted}; the target is {arch}"


def test_an_unknown_instruction_is_refused_when_it_runs():
    with pytest.raises(EmulationError) as caught:
        code = opaque("frobnicate.b32")
        code.op.execute(code, None)
    assert str(caught.value) == (
        "`frobnicate.b32` is not in the instruction table, so it cannot be emulated\n"
        "  help: run this kernel on a GPU, or add a class for the instruction in ptxdsl/isa"
    )
