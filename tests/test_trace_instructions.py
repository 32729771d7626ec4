"""`pd.ptx`: one call, one instruction; how it is spelled, what it takes and what it gives back."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b32, b64, bf16, f16, f32, pred, ptr, s32, tf32, u32, u64
from ptxdsl.errors import TraceError
from ptxdsl.trace.mnemonic import ptx
from ptxdsl.types import f16x2
from tests.tracing import FILE, emitted, mnemonics, refusal, source_kernel


@pytest.mark.parametrize(
    "spelled, text",
    [
        (ptx.ld.global_.f32, "ld.global.f32"),
        (ptx.and_.b32, "and.b32"),
        (ptx.ld.shared__cta.u32, "ld.shared::cta.u32"),
        (ptx.cp.async_.cg.shared.global_.L2__128B, "cp.async.cg.shared.global.L2::128B"),
        (ptx.cp.async_.bulk.tensor._2d, "cp.async.bulk.tensor.2d"),
        (ptx.mbarrier.arrive.expect_tx.shared.b64, "mbarrier.arrive.expect_tx.shared.b64"),
        (ptx.cp.async_.commit_group, "cp.async.commit_group"),
    ],
)
def test_attributes_spell_the_mnemonic(spelled, text):
    assert repr(spelled) == f"pd.ptx.{text}"


def test_a_string_spells_it_too():
    @pd.kernel
    def k(x: ptr[f32]):
        s = pd.shared(f32, 4)
        pd.ptx("cp.async.cg.shared.global.L2::128B", s.address(0), x, 16)

    assert emitted(k) == ["cp.async.cg.shared.global.L2::128B [s], [%x], 16;"]


def test_destinations_are_returned():
    seen = {}

    @pd.kernel
    def k(x: ptr[f32], n: u32):
        seen["one"] = pd.ptx.add.u32(n, 1)
        seen["vector"] = pd.ptx.ld.global_.v4.f32(x)
        seen["nothing"] = pd.ptx.st.global_.f32(x, 1.0)
        seen["first"] = pd.ptx.shfl.sync.idx.b32(n, 0, 31, 0xFFFFFFFF)
        seen["both"] = pd.ptx.shfl.sync.idx.b32(n, 0, 31, 0xFFFFFFFF, pair=True)

    listing = emitted(k)
    assert seen["one"].type is u32
    assert [v.type for v in seen["vector"]] == [f32] * 4
    assert seen["nothing"] is None
    assert seen["first"].type is u32
    assert [v.type for v in seen["both"]] == [u32, pred]
    assert listing[-1].startswith("shfl.sync.idx.b32 %r") and "|%p0, %n" in listing[-1]


def test_variables_take_results():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        acc = [pd.var(f32, 0.0) for _ in range(2)]
        v = pd.var(u32, 0)
        given = pd.ptx.ld.global_.v2.f32(x, out=acc)
        assert given is acc
        pd.ptx.fma.rn.f32(acc[0], 2.0, acc[1], out=acc[0])
        pd.ptx.atom.global_.add.u32(x.bitcast(u32), n, out=v)
        x[0] = acc[0]
        x.bitcast(u32)[1] = v

    x = np.array([3, 4], np.float32)
    k[1, 1](x, 5)
    assert x[0] == 10.0


def test_constants_of_floats_that_ptx_cannot_spell_go_through_a_register():
    @pd.kernel
    def k(h: f16, b: bf16, p: f16x2):
        _ = pd.ptx.add.f16(h, 1.5)
        _ = pd.ptx.fma.rn.bf16(b, 1.5, -2.0)
        _ = pd.ptx.add.f16x2(p, 1.0)

    assert emitted(k) == [
        "mov.b16 %fs0, 15872;",
        "add.f16 %fs1, %h, %fs0;",
        "mov.b16 %bs0, 16320;",
        "mov.b16 %bs1, 49152;",
        "fma.rn.bf16 %bs2, %b, %bs0, %bs1;",
        "mov.b32 %h0, 1006648320;",
        "add.f16x2 %h1, %p, %h0;",
    ]


def test_an_mma_takes_tuples_and_accumulates_into_variables(rng):
    @pd.kernel
    def k(a: ptr[f16], b: ptr[f16], d: ptr[f32]):
        group, lane = pd.laneid // 4, pd.laneid % 4
        row = a.bitcast(b32) + (group * 8 + lane)
        column = b.bitcast(b32) + (group * 8 + lane)
        acc = [pd.var(f32, 0.0) for _ in range(4)]
        fragment = (row[0], row[64], row[4], row[68])
        for _ in range(2):
            pd.ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32(fragment, (column[0], column[4]), acc, out=acc)
        place = d + (group * 8 + lane * 2)
        place[0], place[1], place[64], place[65] = acc

    a, b = (rng.integers(-3, 4, (n, 16)).astype(np.float16) for n in (16, 8))
    d = np.zeros((16, 8), np.float32)
    k[1, 32](a, b, d)
    assert np.array_equal(d, 2 * a.astype(np.float32) @ b.astype(np.float32).T)


def test_tf32_operands_are_rounded_or_cut():
    @pd.kernel
    def k(x: f32):
        rounded, cut = x.to(tf32), x.bitcast(b32)
        a, c = (rounded, cut, rounded, cut), [pd.var(f32, 0.0) for _ in range(4)]
        pd.ptx.mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32(a, (rounded, cut), c, out=c)

    assert mnemonics(k)[-1] == "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    assert k.cubin().image


def test_special_registers_are_read_once_before_the_first_line():
    @pd.kernel
    def k(x: ptr[u32]):
        with pd.if_(pd.tid.x > 3):
            x[pd.warpid] = pd.tid.x + pd.laneid
        x[pd.warpid] = pd.tid.x + pd.ntid.z

    text = k.ptx()
    assert text.count("mov.u32 %tid_x, %tid.x;") == 1
    assert text.index("%laneid_1, %laneid;") < text.index("setp")
    assert "shr.u32 %warpid_1, %tid_x, 5;" in text


def test_special_registers_need_no_percent_sign():
    @pd.kernel
    def masks(x: ptr[u32]):
        x[0] = pd.special("lanemask_lt") ^ pd.special("%lanemask_lt")

    out = np.ones(1, np.uint32)
    masks[1, 1](out)
    assert out[0] == 0


def test_other_special_registers_are_read_where_they_stand():
    @pd.kernel
    def k(x: ptr[u64]):
        start = pd.special("%clock64")
        x[0] = pd.special("%clock64") - start

    assert emitted(k)[:2] == ["mov.u64 %start, %clock64;", "mov.u64 %rd1, %clock64;"]


def test_helper_functions_are_inlined_with_their_lines():
    kernel = source_kernel("def twice(v):\n    return v * 2\nx[0] = twice(n)", "x: ptr[u32], n: u32")
    place = next(i.location for i in kernel.ir().kernels[0].walk() if str(i).startswith("mul"))
    assert (place.file, place.line, place.function) == (FILE, 4, "twice")
    assert (place.inlined_at.line, place.inlined_at.function, place.inlined_at.inlined_at) == (5, "k", None)
    assert "function_name $L__info_string0, inlined_at 1 5" in kernel.ptx()


def test_exceptions_of_the_users_code_pass_through():
    class Mine(Exception):
        pass

    @pd.kernel
    def k(x: ptr[f32]):
        raise Mine

    with pytest.raises(Mine):
        k.ptx()
    assert refusal("x[0] = 1.0") == ""


def test_values_of_another_kernel_are_refused():
    kept = []

    @pd.kernel
    def first(x: ptr[f32], n: u32):
        kept.append(n + 1)

    @pd.kernel
    def second(x: ptr[f32]):
        x[kept[0]] = 1.0

    first.ptx()
    with pytest.raises(TraceError) as error:
        second.ptx()
    assert str(error.value).splitlines()[0] == ("`n + 1` belongs to another kernel, or to an earlier trace of this one")
    with pytest.raises(TraceError) as error:
        kept[0] + 1
    assert str(error.value).startswith("`add.u32` is used outside of a kernel")


OUTSIDE = {
    "an instruction": lambda: pd.ptx.add.u32(1, 2),
    "a special register": lambda: pd.tid.x + 1,
    "a variable": lambda: pd.var(u32, 0),
    "shared memory": lambda: pd.shared(f32, 8),
    "a loop": lambda: pd.range(3),
    "a branch": lambda: pd.if_(True),
    "a constant": lambda: pd.cast(3, u32),
}


@pytest.mark.parametrize("use", OUTSIDE.values(), ids=OUTSIDE)
def test_what_needs_a_kernel_is_refused_outside_of_one(use):
    with pytest.raises(TraceError) as error:
        use()
    assert "is used outside of a kernel" in str(error.value)
    assert "help: call it from a function that is decorated with @pd.kernel" in str(error.value)


def test_forms_are_chosen_by_their_operands():
    @pd.kernel
    def k(w: b64, n: b32, m: s32):
        _ = pd.unpack(w, b32)
        _ = pd.ptx.mov.b64((n, n))
        _ = pd.ptx.mov.b64(w)
        _ = pd.ptx.add.s32(m, -1)

    assert emitted(k) == [
        "mov.b64 {%b0, %b1}, %w;",
        "mov.b64 %bd0, {%n, %n};",
        "mov.b64 %bd1, %w;",
        "add.s32 %i0, %m, -1;",
    ]


def test_an_instruction_that_only_a_later_target_has():
    body = 'pd.ptx("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32", n, n, n)'
    assert refusal(body, arch="sm_80") != ""

    @pd.kernel
    def k(a: bf16):
        _ = pd.ptx.add.bf16(a, a)

    assert k.ptx("sm_90")
    with pytest.raises(pd.VerifyError) as error:
        k.ptx("sm_80")
    assert str(error.value).startswith("add.bf16 needs sm_90; this kernel is traced for sm_80\n")
