"""Through which parameters a kernel may write, where their values are kept in memory on the way."""

import pytest

import ptxdsl as pd
from ptxdsl.verify.effects import written

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.extern .func keep(.param .b64 address);
.shared .align 16 .b64 table[4];
.shared .align 16 .b64 other[4];
.visible .entry kernel(.param .u64 x, .param .u64 y)
{{
    .local .align 8 .b64 spilled[2];
    .reg .b64 %x, %y, %p, %q;
    .reg .b32 %t, %o, %n;
    .reg .pred %is;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mov.u32 %t, table;
    mov.u32 %o, other+8;
    {body}
}}
"""
STRUCT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .align 8 .b8 p[32], .param .u64 q)
{{
    .reg .b64 %x, %y, %z;
    .reg .b32 %n, %m;
    {body}
}}
"""
STRUCTS = {
    "a member": (
        "ld.param.u64 %x, [p+8]; ld.param.u64 %y, [p]; ld.global.b32 %n, [%y]; st.global.b32 [%x], %n;",
        "p+8",
    ),
    "one of two": ("ld.param.v2.u64 {%x, %y}, [p+16]; st.global.b32 [%y], %n;", "p+16 p+24"),
    "halves": ("ld.param.v2.u32 {%n, %m}, [p+24]; mov.b64 %x, {%n, %m}; st.global.b32 [%x], 0;", "p+24"),
    "somewhere": ("mov.b64 %z, p; ld.param.u64 %x, [%z+8]; st.global.b32 [%x], 0;", "p"),
    "none": ("ld.param.u64 %x, [p+8]; ld.global.b32 %n, [%x]; ld.param.u64 %y, [q]; st.global.b32 [%y], %n;", "q"),
}
CASES = {
    "an address that is only read through": ("st.shared.b64 [table], %x; ld.shared.b64 %p, [table]; ld.global.b32 %n, [%p];", ""),
    "an address that is loaded again": ("st.shared.b64 [table], %x; ld.shared.b64 %p, [table+8]; st.global.b32 [%p], %n;", "x"),
    "one of a pair": ("st.shared.v2.b64 [%t], {%x, %q}; ld.shared.v2.b64 {%q, %p}, [%t]; st.global.b32 [%p], %n;", "x"),
    "the memory of another variable": (
        "st.shared.b64 [%t], %x; st.shared.b64 [%o], %y; ld.shared.b64 %p, [other]; st.global.b32 [%p], %n;", "y",
    ),
    "a place that is computed": (
        "st.shared.b64 [%t], %x; add.u32 %n, %t, %n; ld.shared.b64 %p, [%n]; st.global.b32 [%p], %n;", "x",
    ),
    "a place that nobody knows": ("st.shared.b64 [%t], %x; ld.shared.b64 %p, [%n]; st.global.b32 [%p], %n;", "x"),
    "stored in a place that nobody knows": ("st.shared.b64 [%n], %x; ld.shared.b64 %p, [%t]; st.global.b32 [%p], %n;", "x"),
    "both in a place that nobody knows": ("st.shared.b64 [0], %x; ld.shared.b64 %p, [0]; st.global.b32 [%p], %n;", "x"),
    "loaded before it is stored, in a loop": (
        "again: ld.shared.b64 %p, [%t]; st.global.b32 [%p], %n; st.shared.b64 [%t], %x; @%is bra again;", "x",
    ),
    "from variable to variable": (
        "st.shared.b64 [%t], %x; ld.shared.b64 %p, [%t]; st.shared.b64 [%o], %p; ld.shared.b64 %q, [%o];"
        " red.global.add.u32 [%q], 1;", "x",
    ),
    "exchanged": ("st.shared.b64 [%t], %x; atom.shared.exch.b64 %p, [%t], %y; st.global.b32 [%p], %n;", "x y"),
    "spilled and read": ("st.local.b64 [spilled], %x; ld.local.b64 %p, [spilled]; ld.global.b32 %n, [%p];", ""),
    "spilled and written": ("st.local.b64 [spilled+8], %x; ld.local.b64 %p, [spilled]; st.global.b32 [%p], %n;", "x"),
    "loaded by a generic address": (
        "st.shared.b64 [%t], %x; mov.u64 %q, table; cvta.shared.u64 %q, %q; ld.b64 %p, [%q]; st.global.b32 [%p], %n;", "x",
    ),
    "stored by a generic address": ("mov.u64 %q, table; cvta.shared.u64 %q, %q; st.b64 [%q], %x;", "x"),
    "stored in global memory": ("st.global.b64 [%y], %x;", "x y"),
    "the place of an address in global memory": (
        "st.shared.b64 [%t], %x; mov.u64 %q, table; cvta.shared.u64 %q, %q; st.global.b64 [%y], %q;", "x y",
    ),
    "loaded from global memory": ("ld.global.b64 %p, [%x]; st.global.b32 [%p], %n;", ""),
    "kept where a function may read it": (
        "st.shared.b64 [%t], %x; { .param .b64 address; st.param.b64 [address], %y; call keep, (address); }", "x y",
    ),
    "copied asynchronously": ("mov.u32 %n, table; cp.async.cg.shared.global [%n], [%x], 16; st.global.b32 [%y], %n;", "y"),
}  # fmt: skip


@pytest.mark.parametrize("body, parameters", CASES.values(), ids=CASES)
def test_addresses_are_followed_through_memory(body, parameters):
    kernel = pd.parse(KERNEL.format(body=body)).ir.kernels[0]
    assert written(kernel) == set(parameters.split())


@pytest.mark.parametrize("case", STRUCTS)
def test_what_is_written_through_members_of_structs(case):
    body, expected = STRUCTS[case]
    kernel = pd.parse(STRUCT.format(body=body))["kernel"]
    assert written(kernel.function) == frozenset(expected.split())


CALLED = """
.version 8.0
.target sm_90
.address_size 64
.extern .func unknown(.param .b64 address);
.func other(.param .b64 p, .param .b32 n);
.func read(.param .b64 p) {{ .reg .b64 %p; .reg .b32 %n; ld.param.b64 %p, [p]; ld.b32 %n, [%p]; ret; }}
.func write(.param .b64 p, .param .b64 q)
{{
    .reg .b64 %p, %q; .reg .b32 %n;
    ld.param.b64 %p, [p];
    ld.param.b64 %q, [q];
    ld.b32 %n, [%p];
    st.b32 [%q+4], %n;
    ret;
}}
.func (.param .b64 r) moved(.param .b64 p) {{ .reg .b64 %p; ld.param.b64 %p, [p]; st.param.b64 [r], %p; ret; }}
.func (.reg .b64 %r) kept(.reg .b64 %p) {{ mov.b64 %r, %p; ret; }}
.func recurse(.param .b64 p, .param .b32 n)
{{
    .reg .b64 %p;
    ld.param.b64 %p, [p];
    {{ .param .b64 a; .param .b32 b; st.param.b64 [a], %p; call other, (a, b); }}
    ret;
}}
.func other(.param .b64 p, .param .b32 n)
{{
    .reg .b64 %p;
    ld.param.b64 %p, [p];
    {{ .param .b64 a; .param .b32 b; st.param.b64 [a], %p; call recurse, (a, b); }}
    st.b32 [%p], 1;
    ret;
}}
.visible .entry kernel(.param .u64 x, .param .u64 y)
{{
    .reg .b64 %x, %y, %p;
    .reg .b32 %n;
    .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 n;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    st.param.b64 [a], %x;
    st.param.b64 [b], %y;
    {body}
}}
"""
CALLS = {
    "read": ("call read, (a);", ""),
    "written": ("call write, (a, b);", "y"),
    "written, and read by another": ("call write, (a, b); call read, (b);", "y"),
    "given back and read": ("call (c), moved, (a); ld.param.b64 %p, [c]; ld.b32 %n, [%p];", ""),
    "given back and written": ("call (c), moved, (a); ld.param.b64 %p, [c]; st.b32 [%p], 1;", "x"),
    "through two functions that call each other": ("call recurse, (b, n);", "y"),
    "to a function that is not there": ("call read, (a); call unknown, (b);", "y"),
    "in registers": ("call (%p), kept, (%x); st.b32 [%p], 1;", "x"),
}


@pytest.mark.parametrize("body, parameters", CALLS.values(), ids=CALLS)
def test_addresses_are_followed_into_functions(body, parameters):
    kernel = pd.parse(CALLED.format(body=body)).ir.kernels[0]
    assert written(kernel) == set(parameters.split())
