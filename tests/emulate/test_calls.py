"""Device functions, what they get and give back, and functions that the emulator provides or refuses."""

import numpy as np
import pytest

from ptxdsl.emulate import run as run_or_raise
from ptxdsl.errors import EmulationError
from ptxdsl.parse import parse
from tests.emulate.support import clean, launch, only, run, source

OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
TWICE = ".func (.reg .u32 d) twice (.reg .u32 a) { add.u32 d, a, a; ret; }"
HALVES = (
    ".func (.param .b32 d) half (.param .b32 a)"
    " { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; shr.u32 %r2, %r1, 1; st.param.b32 [d], %r2; ret; }"
)
CALL_HALF = "{ .param .b32 a, d; st.param.b32 [a], %r2; call (d), half, (a); ld.param.b32 %r2, [d]; }"


def test_arguments_in_registers():
    x = np.zeros(32, np.uint32)
    clean(run(OWN + "call (%r2), twice, (%r1); call (%r2), twice, (%r2); st.global.u32 [%rd2], %r2;", x, module=TWICE))
    assert (x == 4 * np.arange(32)).all()


def test_a_constant_as_argument():
    x = np.zeros(32, np.uint32)
    clean(run(OWN + "call (%r2), twice, (21); st.global.u32 [%rd2], %r2;", x, module=TWICE))
    assert (x == 42).all()


def test_arguments_in_parameter_space():
    x = np.zeros(32, np.uint32)
    clean(run(OWN + f"mov.u32 %r2, %r1; {CALL_HALF} st.global.u32 [%rd2], %r2;", x, module=HALVES))
    assert (x == np.arange(32) // 2).all()


def test_only_some_lanes_call():
    body = OWN + "mov.u32 %r2, 7; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;\n"
    body += "@%p1 call (%r2), twice, (%r1); st.global.u32 [%rd2], %r2;"
    x = np.zeros(32, np.uint32)
    clean(run(body, x, module=TWICE))
    assert (x == np.where(np.arange(32) % 2, 2 * np.arange(32), 7)).all()


def test_lanes_return_from_different_places():
    module = (
        ".func (.reg .u32 d) f (.reg .u32 a) { .reg .pred p; setp.lt.u32 p, a, 10; @p bra SMALL;"
        " mov.u32 d, 1000; ret; SMALL: add.u32 d, a, 1; ret; }"
    )
    x = np.zeros(32, np.uint32)
    body = OWN + "call (%r2), f, (%r1); redux.sync.add.u32 %r3, %r2, -1; st.global.u32 [%rd2], %r3;"
    clean(run(body, x, module=module))
    assert (x == sum(i + 1 if i < 10 else 1000 for i in range(32))).all()


def test_recursion_of_different_depth():
    module = (
        ".func (.reg .u64 d) factorial (.reg .u64 n) { .reg .pred p; .reg .u64 m, r; mov.u64 d, 1; setp.lt.u64 p, n, 2;"
        " @p ret; sub.u64 m, n, 1; call (r), factorial, (m); mul.lo.u64 d, r, n; ret; }"
    )
    body = """
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd2, %rd1, %rd2;
        cvt.u64.u32 %rd3, %r1; call (%rd4), factorial, (%rd3); st.global.u64 [%rd2], %rd4;
    """
    x = np.zeros(20, np.uint64)
    clean(run(body, x, block=20, module=module))
    assert list(x) == [int(np.prod(np.arange(1, i + 1, dtype=object), initial=1)) for i in range(20)]


def test_recursion_without_end():
    module = ".func f () { call f; ret; }"
    with pytest.raises(EmulationError) as caught:
        run("call f;", parameters="", module=module, block=1)
    assert str(caught.value) == (
        "f is nested 1024 calls deep, the limit of a thread's stack\n  <ptx>:4\n  help: look for unbounded recursion"
    )


POINTERS = (
    TWICE + " .func (.reg .u32 d) same (.reg .u32 a) { mov.u32 d, a; ret; } .global .u64 table[2] = {same, twice};"
)


def test_calls_through_a_table_of_functions():
    body = (
        OWN
        + """
        and.b32 %r2, %r1, 1; mul.wide.u32 %rd3, %r2, 8; mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd3;
        ld.global.u64 %rd5, [%rd4];
        proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);
        call (%r3), %rd5, (%r1), proto;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x, module=POINTERS))
    assert (x == np.arange(32) * (1 + np.arange(32) % 2)).all()


def test_a_call_of_an_address_that_is_no_function():
    body = "mov.u64 %rd5, 12;\nproto: .callprototype _ ();\ncall %rd5, proto;"
    with pytest.raises(EmulationError) as caught:
        run(body, parameters="", block=1)
    assert str(caught.value) == "call of address 0xc, which is not a function\n  <ptx>:8"


def test_local_arrays_of_callers_reach_their_callees():
    module = (
        ".func fill (.reg .u64 p, .reg .u32 v) { .local .u32 own[8]; .reg .u64 q; .reg .u32 t; mov.u64 q, own;"
        " st.local.u32 [q+4], v; ld.local.u32 t, [q+4]; st.u32 [p+8], t; ret; }"
    )
    body = (
        OWN
        + """
        .local .u32 mine[4];
        mov.u64 %rd3, mine; cvta.local.u64 %rd3, %rd3;
        call fill, (%rd3, %r1);
        ld.local.u32 %r2, [mine+8]; st.global.u32 [%rd2], %r2;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x, module=module))
    assert (x == np.arange(32)).all()


def test_a_function_that_nobody_defines():
    with pytest.raises(EmulationError) as caught:
        run("call mystery;", parameters="", module=".extern .func mystery ();", block=1)
    assert str(caught.value) == (
        "mystery is declared but not defined, and the emulator has no such function\n  <ptx>:6\n"
        "  help: link the module that defines it: pd.link(kernel, module)"
    )


def test_a_variable_that_nobody_defines():
    with pytest.raises(EmulationError) as caught:
        run("ld.global.u32 %r1, [far];", parameters="", module=".extern .global .u32 far;", block=1)
    assert str(caught.value) == (
        "far is declared but not defined\n  <ptx>:6\n  help: link the module that defines it, or run on a GPU"
    )


MALLOC = ".extern .func (.param .b64 r) malloc (.param .b64 size);"


def test_the_device_heap_is_refused():
    body = "{ .param .b64 a, d; st.param.b64 [a], 8; call (d), malloc, (a); }"
    with pytest.raises(EmulationError) as caught:
        run(body, parameters="", module=MALLOC, block=1)
    assert str(caught.value) == (
        "the kernel calls malloc: the emulator has no device heap\n  <ptx>:6\n"
        "  help: allocate the memory on the host and pass it to the kernel"
    )


def test_an_instruction_that_the_table_lacks_is_refused_when_it_is_reached():
    body = OWN + "setp.gt.u32 %p1, %r1, 100;\n@%p1 tex.nothing.f32 %f1, %f2;\nst.global.u32 [%rd2], 1;"
    x = np.zeros(128, np.uint32)
    clean(run(body, x, block=32))
    with pytest.raises(EmulationError) as caught:
        run(body, x, block=128)
    assert str(caught.value) == (
        "`tex.nothing.f32` is not in the instruction table, so it cannot be emulated\n  <ptx>:8\n"
        "  help: run this kernel on a GPU, or add a class for the instruction in ptxdsl/isa"
    )


PRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);"


def printed(template, stores, module_text=""):
    """What a lane prints with arguments that `stores` puts into `args`."""
    codes = ", ".join(str(c) for c in (*template.encode(), 0))
    module = f"{PRINTF} .global .b8 template[{len(template.encode()) + 1}] = {{{codes}}}; {module_text}"
    body = f"""
        .local .align 8 .b8 args[64];
        {stores}
        mov.u64 %rd1, template; mov.u64 %rd2, args; cvta.local.u64 %rd2, %rd2;
        {{ .param .b64 f, a; .param .b32 r; st.param.b64 [f], %rd1; st.param.b64 [a], %rd2;
        call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }}
    """
    return clean(run(body, parameters="", module=module.replace("\n", " "), block=1)).output


@pytest.mark.parametrize(("template", "stores", "expected"), [
    ("plain %%\n", "", "plain %\n"),
    ("%d|%5d|%-5u|%05d", "st.local.s32 [args], -7; st.local.s32 [args+4], 42; st.local.u32 [args+8], 7; st.local.s32 [args+12], 9;",
     "-7|   42|7    |00009"),
    ("%x %X %o %#x", "st.local.v4.u32 [args], {255, 255, 8, 16};", "ff FF 10 0x10"),
    ("%lld %llu", "st.local.s64 [args], -5; st.local.u64 [args+8], 0xffffffffffffffff;", "-5 18446744073709551615"),
    ("%d %lld", "st.local.s32 [args], 1; st.local.s64 [args+8], 2;", "1 2"),
    ("%.2f %e %g", "st.local.f64 [args], 0d3FF8000000000000; st.local.f64 [args+8], 0d3FF0000000000000; st.local.f64 [args+16], 0d3FE0000000000000;",
     "1.50 1.000000e+00 0.5"),
    ("%c%c", "st.local.v2.u32 [args], {104, 105};", "hi"),
    ("%*d|%.*f", "st.local.v2.u32 [args], {4, 7}; st.local.u32 [args+8], 1; st.local.f64 [args+16], 0d3FF8000000000000;", "   7|1.5"),
    ("%hhd %hd", "st.local.v2.u32 [args], {255, 65535};", "-1 -1"),
    ("%s!", "mov.u64 %rd5, word; st.local.u64 [args], %rd5;", "hey!"),
    ("%p", "st.local.u64 [args], 4096;", "0x1000"),
])  # fmt: skip
def test_printf(template, stores, expected):
    assert printed(template, stores, ".global .b8 word[4] = {104, 101, 121, 0};") == expected


def test_launching_raises_the_first_finding_and_leaves_arrays_alone():
    module = parse(source(OWN + "st.global.u32 [%rd2], 5; bar.sync 0;\nld.global.u32 %r2, [%rd2+4];"))
    x = np.zeros(32, np.uint32)
    with pytest.raises(EmulationError) as caught:
        run_or_raise(module.kernels[0], module, (1, 1, 1), (32, 1, 1), (x,))
    assert str(caught.value) == (
        "k: ld.global.u32 reads 4 bytes at x[32]; x has 32 u32, by thread (31, 0, 0) of block (0, 0, 0)\n  <ptx>:8"
    )
    assert (x == 0).all()
    run_or_raise(module.kernels[0], module, (1, 1, 1), (31, 1, 1), (x,))
    assert (x[:31] == 5).all()


def test_launching_says_how_to_mend_it():
    module = parse(source("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;"))
    with pytest.raises(EmulationError) as caught:
        run_or_raise(module.kernels[0], module, (1, 1, 1), (32, 1, 1), (None,))
    assert str(caught.value) == (
        "k: bar.sync: lanes 0–7 of a warp wait for lanes 8–31, which end instead of arriving; "
        "all threads must execute an aligned barrier, by thread (0, 0, 0) of block (0, 0, 0) and 7 more threads\n"
        "  <ptx>:7\n"
        "  help: execute it in all threads, or use barrier without .aligned, which counts ended threads as arrived"
    )


def test_a_report_in_words():
    report = run(OWN + "ld.global.u32 %r2, [%rd2+4];", np.zeros(32, np.uint32))
    assert str(report) == (
        "192 thread instructions, 1 finding\n"
        "out-of-bounds: ld.global.u32 reads 4 bytes at x[32]; x has 32 u32\n"
        "  <ptx>:7\n"
        "  by thread (31, 0, 0) of block (0, 0, 0)"
    )
    assert only(report).threads[0].thread == (31, 0, 0)


def test_several_kernels_of_a_module():
    text = source("trap;").replace("entry k", "entry first")
    text += source(OWN + "st.global.u32 [%rd2], 3;").partition(".visible")[2].join((".visible", ""))
    x = np.zeros(4, np.uint32)
    clean(launch(text, x, name="k", block=4))
    assert (x == 3).all()
