"""Pointers, arrays in shared memory and variables: what they compute, and in how many instructions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b32, bf16, f16, f32, f64, ir, ptr, s8, s16, s32, s64, u8, u16, u32, u64
from ptxdsl.layout import Layout, Swizzle, composition
from ptxdsl.types import TYPES
from tests.tracing import emitted, mnemonics

ELEMENTS = [u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64]
INDICES = [u32, s32, u64, s64]


def dtype_of(type):
    return np.dtype(ml_dtypes.bfloat16) if type is bf16 else type.dtype


@pytest.mark.parametrize("type", ELEMENTS, ids=str)
def test_elements_of_every_type_are_copied(type, rng):
    @pd.kernel
    def k(x: ptr[type], out: ptr[type]):
        i = pd.tid.x
        out[i] = x[i + 1]
        out[32 + i] = 3

    x = rng.integers(0, 100, 40).astype(dtype_of(type))
    out = np.zeros(64, x.dtype)
    k[1, 32](x, out)
    assert np.array_equal(out[:32], x[1:33])
    assert (out[32:] == 3).all()


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("type", [u8, f32, f64], ids=str)
def test_an_index_is_widened_by_its_sign(type, index, rng):
    @pd.kernel
    def k(x: ptr[type], out: ptr[type]):
        i = pd.tid.x.to(index)
        middle = x + 8
        out[i] = middle[i - 8] if index.is_signed else x[i]
        out[i + 16] = (x + 15 - i)[0]

    x = rng.integers(0, 100, 16).astype(type.dtype)
    out = np.zeros(32, type.dtype)
    k[1, 16](x, out)
    assert np.array_equal(out, np.concatenate([x, x[::-1]]))


@pytest.mark.parametrize(
    "index, wanted",
    [
        (u32, ["mad.wide.u32", "ld.global.f32"]),
        (s32, ["mad.wide.s32", "ld.global.f32"]),
        (u64, ["mad.lo.u64", "ld.global.f32"]),
        (s64, ["mad.lo.s64", "ld.global.f32"]),
    ],
    ids=str,
)
def test_an_indexed_load_takes_two_instructions(index, wanted):
    @pd.kernel
    def k(x: ptr[f32], n: index):
        x[n]

    assert mnemonics(k) == wanted


def test_known_distances_go_into_the_address():
    @pd.kernel
    def k(x: ptr[f32], y: ptr[f64], n: u32):
        p = x + n
        p[3] = (p + 5)[-1]
        (y + 2 - 1)[3] = 1.0

    assert emitted(k) == [
        "mad.wide.u32 %p, %n, 4, %x;",
        "ld.global.f32 %f0, [%p+16];",
        "st.global.f32 [%p+12], %f0;",
        "st.global.f64 [%y+32], 0d3FF0000000000000;",
    ]


def test_a_distance_too_far_for_an_address_is_added_first():
    @pd.kernel
    def k(x: ptr[f32]):
        far = x + (1 << 29) - 1
        x[-1] = far[0]
        x[0] = far[1]

    assert emitted(k) == [
        "ld.global.f32 %f0, [%x+2147483644];",
        "st.global.f32 [%x+-4], %f0;",
        "add.u64 %rd1, %x, 2147483648;",
        "ld.global.f32 %f1, [%rd1];",
        "st.global.f32 [%x], %f1;",
    ]


def test_a_pointer_variable_moves_by_elements_and_leaves_copies_alone(rng):
    @pd.kernel
    def k(x: ptr[f32], out: ptr[f32], n: u32):
        p = pd.var(ptr[f32], x)
        first = p + 0
        bits = p.bitcast(b32)
        p += 2
        second = p + 1
        p += n
        p -= 1
        p -= n
        p.set(p + 3)
        out[0], out[1], out[2] = first[0], second[0], p[0]
        out[3] = bits[0].bitcast(f32)

    x, out = rng.standard_normal(16).astype(np.float32), np.zeros(4, np.float32)
    k[1, 1](x, out, 7)
    assert out.tolist() == [x[0], x[3], x[4], x[0]]


def test_addresses_in_bytes_and_back(rng):
    @pd.kernel
    def k(table: ptr[u64], out: ptr[f32]):
        p = pd.pointer((out + 2).value, f32)
        p[1] = 2.0
        s = pd.shared(u32, 4)
        q = pd.pointer(s.address(1).value ^ 8, u32, "shared")
        q[0] = 7
        out[0] = s[3].to(f32)

    out = np.zeros(4, np.float32)
    k[1, 1](np.zeros(1, np.uint64), out)
    assert out.tolist() == [7, 0, 0, 2]


def transposed(layout):
    @pd.kernel
    def k(x: ptr[f16], out: ptr[f16]):
        tile = pd.shared(f16, layout)
        for i in pd.range(8):
            tile[pd.tid.x, i] = x[pd.tid.x * 8 + i]
        pd.ptx.bar.sync(0)
        for i in pd.range(8):
            out[i * 32 + pd.tid.x] = tile[pd.tid.x, i]
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            tile[3, 5] = 1.0

    return k


@pytest.mark.parametrize(
    "layout",
    [
        (32, 8),
        Layout((32, 8)),
        Layout((32, 8), (12, 1)),
        composition(Swizzle(3, 0, 3), Layout((32, 8), (8, 1))),
    ],
    ids=str,
)
def test_shared_memory_is_found_through_any_layout(layout, rng):
    x, out = rng.standard_normal(256).astype(np.float16), np.zeros(256, np.float16)
    transposed(layout)[1, 32](x, out)
    assert np.array_equal(out.reshape(8, 32), x.reshape(32, 8).T)


def test_a_constant_coordinate_takes_no_instruction():
    @pd.kernel
    def k(out: ptr[f32]):
        tile = pd.shared(f32, (4, 8))
        tile[3, 5] = 2.0
        out[0] = tile[pd.cast(1, u32), 2]

    assert emitted(k) == [
        "st.shared.f32 [tile+116], 0f40000000;",
        "ld.shared.f32 %f0, [tile+40];",
        "st.global.f32 [%out], %f0;",
    ]


def test_known_parts_of_a_coordinate_go_into_the_address():
    @pd.kernel
    def k(n: u32):
        tile = pd.shared(f32, (4, 8))
        tile[2, n] = 1.0

    assert emitted(k) == ["mad.lo.u32 %r0, %n, 4, %tile;", "st.shared.f32 [%r0+64], 0f3F800000;"]


def test_arrays_in_shared_memory_do_not_alias(rng):
    @pd.kernel
    def k(out: ptr[u32]):
        a = pd.shared(u32, 33)
        b = pd.shared(u16, 5)
        c = pd.shared(u64, 3, align=128)
        for i in pd.range(33):
            a[i] = 1
        for i in pd.range(5):
            b[i] = 2
        for i in pd.range(3):
            c[i] = 3
        out[0], out[1], out[2] = a[32], b[0].to(u32), c[0].to(u32)
        out[3] = (c.address().value % 128).to(u32)

    out = np.zeros(4, np.uint32)
    k[1, 1](out)
    assert out.tolist() == [1, 2, 3, 0]


@pd.kernel
def dynamic(out: ptr[u32], n: u32, *, known: bool = True):
    a = pd.dynamic_shared(u16, 3)
    b = pd.dynamic_shared(u32, (2, 8), align=64)
    rest = pd.dynamic_shared(u32, 4 if known else None)
    for i in pd.range(3):
        a[i] = 7
    for i in pd.range(8):
        b[0, i] = i
        b[1, i] = i
    for i in pd.range(n):
        rest[i] = 9
    out[0], out[1], out[2], out[3] = a[2].to(u32), b[0, 0], b[1, 7], rest[n - 1]
    out[4] = b.address().value % 64


def test_dynamic_arrays_lie_behind_each_other_and_launches_give_what_they_need():
    out = np.zeros(5, np.uint32)
    dynamic[1, 1](out, 4)
    assert out.tolist() == [7, 0, 7, 9, 0]
    assert dynamic.variant(None, {}).dynamic_bytes == 64 + 64 + 16
    dynamic[1, 1, 1024](out, 4)
    dynamic[1, 1, 64 + 64 + 40](out, 10, known=False)
    assert out.tolist() == [7, 0, 7, 9, 0]


def test_a_view_reads_global_memory_through_a_layout(rng):
    @pd.kernel
    def k(x: ptr[f32], out: ptr[f32]):
        matrix = pd.view(x, Layout((4, 8), (8, 1)))
        row, column = pd.tid.x // 8, pd.tid.x % 8
        pd.view(out, (8, 4))[column, row] = matrix[row, column]

    x, out = rng.standard_normal((4, 8)).astype(np.float32), np.zeros((8, 4), np.float32)
    k[1, 32](x, out)
    assert np.array_equal(out, x.T)


@pytest.mark.parametrize("type", [u16, s32, u64, f16, bf16, f32, f64], ids=str)
def test_variables_of_every_type(type):
    @pd.kernel
    def k(out: ptr[type], n: type):
        v = pd.var(type, 1)
        v += n
        v *= 3
        v -= 2
        w = pd.var(type)
        w.set(v)
        v.set(0)
        out[0], out[1] = w, v

    out = np.ones(2, dtype_of(type))
    k[1, 1](out, 4)
    assert out.astype(float).tolist() == [13, 0]


def test_every_in_place_operator():
    @pd.kernel
    def k(out: ptr[s32], f: ptr[f32]):
        v = pd.var(s32, -100)
        v //= 7
        v %= 4
        v <<= 4
        v >>= 1
        v |= 5
        v &= 12
        v ^= 3
        v += 0
        out[0] = v
        w = pd.var(f32, 3.0)
        w /= 2.0
        f[0] = w

    out, f = np.zeros(1, np.int32), np.zeros(1, np.float32)
    k[1, 1](out, f)
    v = ((-100 // 7) % 4 << 4) >> 1
    assert out[0] == ((v | 5) & 12) ^ 3
    assert f[0] == 1.5


def test_what_is_read_of_a_variable_stays_when_it_is_written():
    @pd.kernel
    def k(out: ptr[u32]):
        v = pd.var(u32, 5)
        plus, same, signed, bits = v + 0, +v, v.to(s32), v.bitcast(b32)
        known = v * 1
        p = pd.var(pd.pred, v.bitcast(u32) == 5)
        negated = ~p
        v += 1
        p.set(v == 0)
        out[0], out[1], out[2], out[3], out[4] = plus, same, signed.to(u32), bits.bitcast(u32), known
        out[5] = negated.to(u32)

    out = np.zeros(6, np.uint32)
    k[1, 1](out)
    assert out.tolist() == [5, 5, 5, 5, 5, 0]


def test_names_of_registers_are_those_of_python():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        first = x[n]
        a, b = pd.ptx.ld.global_.v2.f32(x)
        both = pd.ptx.ld.global_.v2.f32(x)
        tid = n * 2
        x[0] = first + a + b + both[0] + both[1]
        x[tid] = first

    registers = [r.name for r in k.ir().kernels[0].registers]
    assert registers == [
        "%rd0", "%x", "%n", "%rd1", "%first", "%a", "%b", "%both0", "%both1", "%tid_1", "%f0", "%f1", "%f2", "%f3",
        "%rd2",
    ]  # fmt: skip


def test_what_python_calls_by_an_underscore_has_another_name():
    """In PTX it is what an instruction writes to that nobody reads."""

    @pd.kernel
    def k(_: ptr[f32], __: u32):
        shared = pd.shared(f32, 32)
        shared[pd.tid.x] = _[__]
        _ = pd.shared(f32, 32)
        _[pd.tid.x] = shared[pd.tid.x]

    text = k.ptx()
    assert ".param .u64 parameter,\n    .param .u32 __\n" in text
    assert ".shared .align 16 .b32 shared[32];" in text and ".shared .align 16 .b32 shared_1[32];" in text
    assert "k" in k.cubin().kernels


PARAMETERS = [type for type in TYPES.values() if type.bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("type", PARAMETERS, ids=str)
def test_every_type_of_whole_bytes_can_be_a_parameter(type):
    @pd.kernel
    def k(x: ptr[type], v: type):
        x[0] = v

    assert "st.global" in k.ptx()
    assert k.cubin().image


def test_an_array_knows_its_space():
    rows = Layout((16, 64), (64, 1))
    spaces = []

    @pd.kernel
    def k(x: ptr[f16]):
        spaces.extend([pd.shared(f16, rows).space, pd.view(x, rows).space])

    k.ptx()
    assert spaces == ["shared", "global"]


@pytest.mark.parametrize("align, bytes", [(16, 7), (128, 128), (1024, 1024)])
def test_arrays_beside_dynamic_memory_end_at_its_alignment(align, bytes):
    @pd.kernel
    def k(out: ptr[u32]):
        ring, flag = pd.dynamic_shared(u32, 64, align=align), pd.shared(u32, 1, name="flag")
        other = pd.shared(u8, 3)
        ring[0], flag[0], other[2] = 1, 2, 3
        out[0] = ring[0] + flag[0]

    static = sum(item.bytes for item in k.ir().kernels[0].body if isinstance(item, ir.Variable))
    assert static == bytes
    out = np.zeros(1, np.uint32)
    k[1, 1](out)
    assert out[0] == 3


@pd.kernel
def beside_dynamic(out: ptr[f32], of_first: u32, of_last: u32, *, align: int):
    first, last = pd.shared(f32, 5, name="first"), pd.shared(u8, (3, 3), name="last")
    ring = pd.dynamic_shared(f32, 64, align=align)
    first[of_first + pd.tid.x], last[0, of_last], ring[pd.tid.x] = 1.0, 2, 3.0
    out[pd.tid.x] = first[of_first + pd.tid.x] + ring[pd.tid.x]


@pytest.mark.parametrize("align", [16, 128, 1024])
@pytest.mark.parametrize("at, message", [
    ((4, 8), ""),
    ((5, 8), "st.shared.f32 writes 4 bytes at first[5]; first has 5 f32"),
    ((7, 8), "st.shared.f32 writes 4 bytes at first[7]; first has 5 f32"),
    ((4, 9), "st.shared.u8 writes 1 byte at last[3, 0]; last has 3 × 3 u8"),
    ((4, 107), "st.shared.u8 writes 1 byte at last[35, 2]; last has 3 × 3 u8"),
])  # fmt: skip
def test_what_arrays_are_lengthened_by_beside_dynamic_memory_is_not_theirs(align, at, message):
    out = np.zeros(1, np.float32)
    findings = pd.emulate(beside_dynamic, 1, 1, out, *at, align=align).findings
    assert [each.message for each in findings if each.kind == "out-of-bounds" and "st." in each.message] == (
        [message] if message else []
    )
    assert message or (not findings and out[0] == 4)


def test_coordinates_of_modes_and_wide_indices():
    @pd.kernel
    def k(x: ptr[f32], n: u64):
        tile = pd.shared(f32, Layout(((2, 2), 4), ((1, 8), 2)), align=64)
        tile[(1, 1), 2] = 1.0
        x[0] = tile.address()[n]
        assert tile.alignment == 64 and pd.view(x, 8).alignment is None
        assert {x: 1}[x] == 1

    listing = emitted(k)
    assert listing[0] == "st.shared.f32 [tile+52], 0f3F800000;"
    assert [text.partition(" ")[0] for text in listing[1:]] == [
        "cvt.u32.u64",
        "mad.lo.u32",
        "ld.shared.f32",
        "st.global.f32",
    ]


def test_a_table_holds_nan():
    @pd.kernel
    def k(x: ptr[bf16], n: u32):
        x[0] = pd.constant([float("nan"), float("-inf")], bf16)[n]

    assert ".const .align 16 .b16 table[2] = {32704, 65408};" in k.ptx()
