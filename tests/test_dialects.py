"""PTX of others: what old compilers and people write, read as ptxas reads it, printed, assembled and emulated."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ir
from ptxdsl.assemble import assemblers
from ptxdsl.errors import EmulationError, VerifyError
from ptxdsl.types import f32

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body, before="", header=HEADER):
    """A kernel that reads and writes an array by `p`: each thread has its index in %r0, its element's address in %rd1."""
    return f"""{header}{before}
.visible .entry k(.param .u64 p) {{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
    ld.param.u64 %rd0, [p];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd1, %rd0, %rd1;
    ld.global.b32 %r1, [%rd1];
    {body}
    ret;
}}
"""


def old(target, version):
    return f".version {version}\n.target {target}\n"


def run(text, values):
    """The array after a launch of one block; the text assembles too."""
    module = pd.parse(text)
    assert module.ptx() == pd.parse(module.ptx()).ptx()
    if assemblers.NvJitLink().why_not() is None or assemblers.Ptxas().why_not() is None:
        module["k"].cubin(arch="sm_80")
    array = np.array(values)
    module["k"][1, len(array)](array)
    return array.tolist()


def numbers(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    "target, version",
    [("sm_10", "1.4"), ("sm_11", "1.4"), ("sm_12", "1.4"), ("sm_13", "1.4"), ("sm_20", "2.0"), ("sm_21", "2.3"),
     ("sm_30", "3.0"), ("sm_32", "4.0"), ("sm_35", "3.1"), ("sm_37", "4.1")],
)  # fmt: skip
def test_targets_without_an_assembler_run_on_later_ones(target, version):
    text = kernel("add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;", header=old(target, version))
    assert run(text, numbers(1, 2, 3)) == [2, 3, 4]
    module = pd.parse(text)
    assert f".target {target}\n" in module.ptx() and module.ir.version >= (3, 1)


def test_an_unknown_target_is_refused_by_name():
    with pytest.raises(VerifyError) as caught:
        pd.parse(kernel("", header=old("sm_22", "3.1"))).ptx()
    assert str(caught.value).startswith("`sm_22` is not a supported target\n  help: use one of sm_50, ")


def test_what_an_old_target_lacks_is_refused_by_name():
    with pytest.raises(VerifyError) as caught:
        pd.parse(kernel("fma.rn.f32 %f1, %f1, %f1, %f1;", header=old("sm_13", "1.4"))).ptx()
    assert str(caught.value).startswith("`fma.rn.f32` needs sm_20 or later; the target is sm_13\n")


SUBNORMAL, SUBNORMAL_SQUARE_ROOT = np.float32(1e-40), np.float32(1e-20)


@pytest.mark.parametrize("instruction", ["add.f32 %f1, %f1, 0f00000000", "mul.f32 %f1, %f1, 0f3F800000"])
def test_the_first_targets_take_subnormals_for_zero(instruction):
    body = f"ld.global.f32 %f1, [%rd1]; {instruction}; st.global.f32 [%rd1], %f1;"
    values = np.array([1, SUBNORMAL], np.float32)
    assert run(kernel(body, header=old("sm_13", "1.4")), values) == [1, 0]
    assert run(kernel(body, header=old("sm_20", "2.0")), values) == [1, SUBNORMAL]


def test_mad_without_rounding_is_one_of_the_first_targets():
    body = "ld.global.f32 %f1, [%rd1]; mad.f32 %f1, %f1, %f1, %f1; st.global.f32 [%rd1], %f1;"
    assert run(kernel(body, header=old("sm_13", "1.4")), np.array([1, 2, 3], np.float32)) == [2, 6, 12]


def test_special_registers_had_half_as_many_bits():
    body = """.reg .u16 %rh<3>; mov.u16 %rh1, %tid.x; mov.u16 %rh2, %ntid.x; mul.wide.u16 %r2, %rh1, %rh2;
    mov.u32 %r3, %gridid; cvt.u32.u16 %r4, %ctaid.x; add.u32 %r2, %r2, %r4; st.global.u32 [%rd1], %r2;"""
    assert run(kernel(body, header=old("sm_11", "1.4")), numbers(0, 0, 0)) == [0, 3, 6]


def test_shuffles_without_sync():
    body = "shfl.down.b32 %r2|%p1, %r1, 1, 31; @%p1 add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;"
    header = old("sm_30", "3.0")
    assert run(kernel(body, header=header), numbers(*range(32))) == [2 * n + 1 for n in range(31)] + [31]
    assert run(
        kernel("shfl.idx.b32 %r1, %r1, 2, 31; st.global.u32 [%rd1], %r1;", header=header), numbers(*range(64))
    ) == ([2] * 32 + [34] * 32)


def test_votes_without_sync():
    body = """setp.gt.s32 %p1, %r1, 2; vote.ballot.b32 %r2, %p1; vote.any.pred %p2, !%p1;
    @%p2 add.u32 %r2, %r2, 1000; vote.all.pred %p2, %p1; @%p2 add.u32 %r2, %r2, 2000;
    vote.uni.pred %p2, %p1; @%p2 add.u32 %r2, %r2, 4000; st.global.u32 [%rd1], %r2;"""
    assert run(kernel(body, header=old("sm_20", "2.0")), numbers(1, 5, 7)) == [1006] * 3
    assert run(kernel(body, header=old("sm_20", "2.0")), numbers(3, 5, 7)) == [6007] * 3


def test_lanes_that_run_a_vote_together_are_those_of_their_branch():
    body = """setp.lt.u32 %p1, %r0, 2; @%p1 bra LOW; setp.gt.s32 %p2, %r1, 0; vote.ballot.b32 %r2, %p2; bra END;
    LOW: setp.gt.s32 %p2, %r1, 0; vote.ballot.b32 %r2, %p2; END: st.global.u32 [%rd1], %r2;"""
    assert run(kernel(body, header=old("sm_20", "2.0")), numbers(1, 1, 1, 0, 1)) == [3, 3, 20, 20, 20]


def test_a_shuffle_from_a_lane_in_another_branch_is_found():
    body = "setp.lt.u32 %p1, %r0, 4; @!%p1 bra END; shfl.idx.b32 %r1, %r1, 7, 31; END: st.global.u32 [%rd1], %r1;"
    with pytest.raises(EmulationError) as caught:
        run(kernel(body, header=old("sm_30", "3.0")), numbers(*range(8)))
    assert "shfl.idx.b32: lane 0 reads from lane 7, which does not run it together with this lane" in str(caught.value)
    assert "help: move it out of the divergent branch" in str(caught.value)


def test_what_later_targets_lost_is_refused_while_tracing():
    @pd.kernel
    def k(x: pd.ptr[pd.u32]):
        x[0] = pd.ptx.vote.ballot.b32(x[0] > 3)

    with pytest.raises(VerifyError) as caught:
        k.ptx(arch="sm_80")
    lines = str(caught.value).splitlines()
    assert lines[0] == "vote.ballot.b32 exists on targets before sm_70; this kernel is traced for sm_80"
    assert lines[-1] == "  help: write vote.sync.ballot.b32, with a mask of the participating lanes"


def test_loads_and_stores_of_a_shared_variable_without_its_space():
    before = ".shared .align 4 .b32 pad; .shared .align 4 .b32 s[64]; .global .b32 g[2] = {40, 50};"
    body = """.local .b32 l[4]; shl.b32 %r2, %r0, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; st.shared.b32 [%r3], %r1;
    bar.sync 0; st.b32 [l+4], 7; ld.local.b32 %r6, [l+4];
    ld.b32 %r4, [s+4]; ld.volatile.b32 %r5, [s]; ld.b32 %r7, [g+4]; sub.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
    add.u32 %r4, %r4, %r7; st.global.b32 [%rd1], %r4;"""
    assert run(kernel(body, before), numbers(10, 12, 3)) == [59, 59, 59]


@pytest.mark.parametrize("variable, before", [("p", ""), ("c", ".const .b32 c = 3;")])
def test_what_has_no_generic_address_by_its_name_is_refused(variable, before):
    space = {"p": "param", "c": "const"}[variable]
    with pytest.raises(VerifyError) as caught:
        run(kernel(f"ld.b32 %r1, [{variable}];", before), numbers(1))
    assert f"`a` is `{variable}` in .{space}, which has no generic address" in str(caught.value)
    assert f"help: name the space: ld.{space}" in str(caught.value)


def test_an_index_is_an_address_in_memory_or_a_value():
    before = ".shared .b32 pad[4]; .shared .b32 s[8]; .shared .v2 .b32 v[8];"
    body = """st.shared.b32 s[2], %r1; bar.sync 0; ld.shared.b32 %r2, s[2]; mov.u32 %r3, s[2]; mov.u32 %r4, s;
    sub.u32 %r3, %r3, %r4; mov.u32 %r5, v[1]; mov.u32 %r6, v; sub.u32 %r5, %r5, %r6; mad.lo.u32 %r3, %r3, 100, %r2;
    mad.lo.u32 %r3, %r5, 10000, %r3; mov.u32 %r4, s[1+1]; ld.shared.b32 %r4, [%r4]; st.global.b32 [%rd1], %r3;"""
    assert run(kernel(body, before), numbers(5)) == [40805]
    text = pd.parse(kernel(body, before)).ptx()
    assert "st.shared.b32 [s+8], %r1;" in text and "mov.u32 %r3, s+8;" in text and "mov.u32 %r5, v+4;" in text


def test_an_index_in_an_initial_value_is_an_address():
    module = pd.parse(HEADER + ".global .b32 t[4]; .global .u64 a[2] = {t[2], t[0]};")
    table, addresses = module.ir.globals
    assert addresses.initial == (ir.Offset(table, 8), table)


def test_a_register_and_a_constant_as_a_value():
    body = """mov.u32 %r2, %r1+5; add.u32 %r2, %r2+-1, %r1+1; setp.gt.s32 %p1, %r1, 1; @%p1 mov.b32 %r2, %r2+1000;
    mov.u64 %rd2, %rd0+4+4; sub.u64 %rd2, %rd2, %rd0; cvt.u32.u64 %r3, %rd2; mad.lo.u32 %r2, %r3, 10000, %r2;
    st.global.b32 [%rd1], %r2+2;"""
    assert run(kernel(body), numbers(1, 2)) == [80009, 81011]


def test_calls_without_a_list_of_arguments():
    before = ".func (.reg .b32 r) seven { mov.b32 r, 7; ret; }\n.func nothing { ret; }\n"
    body = "call (%r2), seven; call nothing; call (%r3), seven, (); add.u32 %r2, %r2, %r3; st.global.b32 [%rd1], %r2;"
    assert run(kernel(body, before), numbers(0)) == [14]


def test_prototypes_without_a_semicolon():
    before = """.visible .func (.reg .b32 r) twice (.reg .b32 a)
    .visible .func (.reg .b32 r) twice (.reg .b32 a)
    { add.u32 r, a, a; ret; }"""
    assert run(kernel("call (%r1), twice, (%r1); st.global.b32 [%rd1], %r1;", before), numbers(4)) == [8]


def test_vector_registers_as_parameters():
    before = """.func (.reg .v2 .b32 r) swapped (.reg .v2 .b32 a, .reg .b32 b)
    { mov.b32 r.x, a.y; add.u32 r.y, a.x, b; ret; }"""
    body = """.reg .v2 .b32 v, w; mov.b32 v.x, 10; mov.b32 v.y, 20; call (w), swapped, (v, 5);
    mad.lo.u32 %r1, w.x, 100, w.y; st.global.b32 [%rd1], %r1;"""
    assert run(kernel(body, before), numbers(0)) == [2015]


def test_vector_registers_as_parameters_of_a_linked_module():
    before = """.func (.reg .b32 r) sum (.reg .b32 b, .reg .v4 .b32 a)
    { add.u32 r, a.x, a.y; add.u32 r, r, a.z; mad.lo.u32 r, a.w, b, r; ret; }"""
    body = """.reg .v4 .b32 v; mov.v4.b32 v, {1, 20, 300, 4000}; call (%r1), sum, (2, v); st.global.b32 [%rd1], %r1;"""
    assert run(kernel(body, before), numbers(0)) == [8321]


def test_lines_of_a_file_that_is_not_named():
    text = kernel(".loc 1 12 5\nst.global.b32 [%rd1], %r1;")
    *_, store, _ = pd.parse(text).ir.functions[0].walk()
    assert str(store.location) == f"<ptx>:{text[: text.index('st.global')].count(chr(10)) + 1}"
    assert ".loc" not in pd.parse(text).ptx() and run(text, numbers(3)) == [3]


def test_zeros_in_the_number_of_a_register():
    assert run(kernel("add.u32 %r02, %r1, %r01; st.global.b32 [%rd001], %r2;"), numbers(4)) == [8]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{1.0 -2.0, 3.0}", (-1.0, 3.0)), ("{1.0+0.5*4.0}", (3.0,)), ("{(1.0 + 2.0) / 4.0, -.5, 5.}", (0.75, -0.5, 5.0)),
        ("{+1.5, --2.5}", (1.5, 2.5)),
    ],
)  # fmt: skip
def test_decimals_are_added_up_as_ptxas_does(text, expected):
    (variable,) = pd.parse(f"{HEADER}.global .f32 x[3] = {text};").ir.globals
    assert variable.initial == tuple(ir.Immediate.float(number, f32) for number in expected)


def test_comparisons_of_decimals_are_whole_numbers():
    (variable,) = pd.parse(HEADER + ".global .b32 x = 1.0 < 2.0 ? 3 : 4;").ir.globals
    assert variable.initial == ir.Immediate(3)


def test_a_decimal_in_32_bits_is_an_f32():
    (variable,) = pd.parse(HEADER + ".global .b32 x = 1.0;").ir.globals
    assert str(variable.initial) == "0f3F800000"


def test_an_array_takes_its_length_from_its_initial_value():
    body = "ld.global.b32 %r2, [t+8]; st.global.b32 [%rd1], %r2;"
    text = kernel(body, ".global .b32 t[] = {1, 2, 3};")
    assert run(text, numbers(0)) == [3] and "t[3] = {1, 2, 3};" in pd.parse(text).ptx()


def test_reserved_shared_memory_is_there_and_clear():
    body = """mov.u32 %r2, %reserved_smem_offset_1; ld.shared.b32 %r3, [%r2]; bar.sync 0;
    setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.b32 [%r2], 7; bar.sync 0; ld.shared.b32 %r4, [%r2];
    mov.u32 %r5, %reserved_smem_offset_begin; mov.u32 %r6, %reserved_smem_offset_end; sub.u32 %r5, %r6, %r5;
    mov.u32 %r6, %reserved_smem_offset_cap; sub.u32 %r5, %r5, %r6; mov.u32 %r7, %reserved_smem_offset_0;
    setp.ne.u32 %p2, %r7, %r2; @%p2 add.u32 %r5, %r5, 100; add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;
    st.global.b32 [%rd1], %r3;"""
    assert run(kernel(body, ".shared .b32 s[4];"), numbers(0, 0)) == [107, 107]


def test_reserved_shared_memory_has_an_end():
    body = "mov.u32 %r2, %reserved_smem_offset_end; ld.shared.b32 %r3, [%r2]; st.global.b32 [%rd1], %r3;"
    with pytest.raises(EmulationError, match=r"ld.shared.b32 reads 4 bytes at reserved\[2048\]; reserved has 2048 b8"):
        run(kernel(body), numbers(0))


def test_every_kind_of_literal_of_the_manual():
    body = "mov.u32 %r2, 0b101; mov.u32 %r3, 0XaU; mov.u32 %r4, 017; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;"
    assert run(kernel(body + "st.global.b32 [%rd1], %r2;"), numbers(0)) == [5 + 10 + 15]
    assert re.search(r"mov.u32 %r3, 10;", pd.parse(kernel(body)).ptx())
