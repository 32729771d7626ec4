"""State spaces, generic addresses, atomics, asynchronous copies, arguments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.emulate.memory.conflicts import one_after_another
from ptxdsl.errors import EmulationError
from tests.emulate.support import clean, launch, only, run, source

OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"


@pytest.mark.parametrize(("type", "dtype", "register"), [
    ("u8", np.uint8, "%r2"), ("s8", np.int8, "%r2"), ("u16", np.uint16, "%r2"), ("s16", np.int16, "%r2"),
    ("b32", np.uint32, "%r2"), ("s64", np.int64, "%rd3"), ("f32", np.float32, "%f1"), ("f64", np.float64, "%d1"),
])  # fmt: skip
def test_every_width_is_loaded_and_stored(type, dtype, register, rng):
    body = f"""
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {np.dtype(dtype).itemsize};
        add.u64 %rd2, %rd1, %rd2;
        ld.global.{type} {register}, [%rd2];
        st.global.{type} [%rd2+{40 * np.dtype(dtype).itemsize}], {register};
    """
    x = rng.integers(0, 256, 80 * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    clean(run(body, x, block=40))
    assert x[:40].tobytes() == x[40:].tobytes()


def test_constants_of_128_bits_are_stored():
    x = np.ones(8, np.uint64)
    body = "ld.param.u64 %rd1, [x]; st.global.b128 [%rd1], 2; st.global.b128 [%rd1+16], -2;"
    clean(run(body, x, block=3))
    assert x.tolist() == [2, 0, 2**64 - 2, 2**64 - 1, 1, 1, 1, 1]


def test_narrow_values_are_extended_by_their_sign():
    body = (
        OWN
        + """
        mov.u32 %r3, -2; st.global.b8 [%rd1+60], %r3; st.global.b8 [%rd1+61], %r3;
        ld.global.s8 %r4, [%rd1+60]; ld.global.u8 %r5, [%rd1+61];
        st.global.v2.u32 [%rd1], {%r4, %r5};
        ld.global.s8 %h1, [%rd1+60]; ld.global.s8 %rd4, [%rd1+60];
        st.global.u16 [%rd1+8], %h1; st.global.u64 [%rd1+16], %rd4;
    """
    )
    x = np.zeros(16, np.uint32)
    clean(run(body, x, block=1))
    assert list(x[:2]) == [2**32 - 2, 254]
    assert x.view(np.uint16)[4] == 2**16 - 2
    assert x.view(np.int64)[2] == -2


@pytest.mark.parametrize("count", [2, 4])
def test_vectors(count, rng):
    registers = ", ".join(f"%f{n}" for n in range(count))
    body = f"""
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {4 * count}; add.u64 %rd2, %rd1, %rd2;
        ld.global.v{count}.f32 {{{registers}}}, [%rd2];
        add.f32 %f0, %f0, %f1;
        st.global.v{count}.f32 [%rd2], {{{registers}}};
    """
    x = rng.standard_normal((32, count)).astype(np.float32)
    expected = x.copy()
    expected[:, 0] += expected[:, 1]
    clean(run(body, x))
    assert (x == expected).all()


def test_one_register_of_a_vector_may_be_left_out():
    body = "ld.param.u64 %rd1, [x]; ld.global.v4.u32 {_, %r2, _, %r4}, [%rd1]; st.global.v2.u32 [%rd1], {%r4, %r2};"
    x = np.array([1, 2, 3, 4], np.uint32)
    clean(run(body, x, block=1))
    assert list(x) == [4, 2, 3, 4]


def test_generic_addresses_of_three_spaces_in_one_instruction():
    body = (
        OWN
        + """
        .shared .u32 s[32]; .local .u32 mine;
        mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; add.u32 %r2, %r1, 100; st.shared.u32 [%r9], %r2;
        add.u32 %r3, %r1, 200; st.local.u32 [mine], %r3;
        cvt.u64.u32 %rd4, %r9; cvta.shared.u64 %rd4, %rd4;
        mov.u64 %rd5, mine; cvta.local.u64 %rd5, %rd5;
        rem.u32 %r4, %r1, 3;
        setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 1;
        selp.u64 %rd6, %rd4, %rd5, %p2; selp.u64 %rd6, %rd2, %rd6, %p1;
        ld.u32 %r5, [%rd6];
        add.u32 %r5, %r5, 1000;
        st.u32 [%rd6], %r5;
        atom.add.u32 %r6, [%rd6], 10000;
        ld.shared.u32 %r7, [%r9]; ld.local.u32 %r8, [mine]; ld.global.u32 %r10, [%rd2];
        selp.u32 %r7, %r7, %r8, %p2; selp.u32 %r7, %r10, %r7, %p1;
        isspacep.shared %p3, %rd6; isspacep.local %p4, %rd6; isspacep.global %p5, %rd6;
        selp.u32 %r11, 1, 0, %p3; @%p4 or.b32 %r11, %r11, 2; @%p5 or.b32 %r11, %r11, 4;
        st.global.u32 [%rd2], %r7; st.global.u32 [%rd2+128], %r6; st.global.u32 [%rd2+256], %r11;
    """
    )
    x = np.arange(96, dtype=np.uint32)
    clean(run(body, x))
    i = np.arange(32)
    first = i + np.choose(i % 3, [0, 100, 200])
    assert (x[:32] == first + 11000).all()
    assert (x[32:64] == first + 1000).all()
    assert (x[64:] == np.choose(i % 3, [4, 1, 2])).all()


def test_the_address_of_local_memory_of_another_thread_means_that_of_the_own():
    body = (
        OWN
        + """
        .local .u32 mine; st.local.u32 [mine], %r1; mov.u64 %rd3, mine; cvta.local.u64 %rd3, %rd3;
        mov.b64 {%r2, %r3}, %rd3;
        shfl.sync.bfly.b32 %r2, %r2, 1, 31, 0xffffffff; shfl.sync.bfly.b32 %r3, %r3, 1, 31, 0xffffffff;
        mov.b64 %rd4, {%r2, %r3}; ld.u32 %r4, [%rd4]; st.global.u32 [%rd2], %r4;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert list(x) == list(range(32))


def test_initial_values_of_module_variables():
    module = (
        ".global .f32 a[2][2] = {{1.0, 2.0}, {3.0}}; .global .u64 p[2] = {a, generic(a)+8};"
        " .const .b8 text[4] = {104, 105}; .global .u8 bytes[3] = {0xff(a), 0xff00(a), 0xff0000(a)};"
    )
    body = (
        OWN
        + """
        ld.global.f32 %f1, [a+8]; ld.global.u64 %rd3, [p+8]; ld.f32 %f2, [%rd3]; ld.global.f32 %f3, [a+12];
        ld.const.u8 %r3, [text+1]; ld.global.u8 %r4, [bytes+1]; mov.u64 %rd4, a; shr.u64 %rd4, %rd4, 8;
        cvt.u32.u64 %r5, %rd4; and.b32 %r5, %r5, 255; sub.u32 %r4, %r4, %r5;
        st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f3}; st.global.v2.u32 [%rd1+16], {%r3, %r4};
    """
    )
    x = np.zeros(8, np.float32)
    clean(run(body, x, block=1, module=module.replace("\n", "")))
    assert list(x[:4]) == [3, 3, 0, 0]
    assert list(x.view(np.uint32)[4:6]) == [105, 0]


def test_dynamic_shared_memory_lies_behind_the_static():
    body = (
        OWN
        + """
        mov.u32 %r2, fixed; mov.u32 %r3, more; mov.u32 %r4, other;
        st.global.v2.u32 [%rd1], {%r3, %r4};
        mad.lo.u32 %r3, %r1, 4, %r3; st.shared.u32 [%r3], %r1; ld.shared.u32 %r5, [%r3];
        mov.u32 %r6, %dynamic_smem_size; mov.u32 %r7, %total_smem_size; st.global.v2.u32 [%rd1+8], {%r6, %r7};
    """
    )
    module = ".shared .b8 fixed[10]; .extern .shared .align 64 .b8 more[]; .extern .shared .u32 other[];"
    x = np.zeros(4, np.uint32)
    clean(run(body, x, module=module, shared_bytes=128))
    assert x[0] == x[1]
    assert x[0] % 64 == 0
    assert list(x[2:]) == [128, 138]


def test_each_thread_has_its_own_local_memory(rng):
    body = (
        OWN
        + """
        .local .align 16 .b8 depot[64];
        mov.u64 %rd3, depot; rem.u32 %r2, %r1, 16; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd3, %rd3, %rd4;
        st.local.u32 [%rd3], %r1; bar.sync 0; ld.local.u32 %r3, [%rd3]; st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(100, np.uint32)
    clean(run(body, x, block=100))
    assert (x == np.arange(100)).all()


@pytest.mark.cases(3)
@pytest.mark.parametrize(("update", "scan"), [
    (np.add, np.add), (np.add, None), (np.maximum, np.maximum), (lambda m, a: a, None), (np.bitwise_xor, np.bitwise_xor),
    (lambda m, a: np.where(m >= a, np.uint32(0), m + np.uint32(1)), None),
])  # fmt: skip
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=60), st.integers(1, 4))
def test_atomics_are_done_one_after_another(update, scan, lanes, width):
    place, value = (np.array(column, np.uint32) for column in zip(*lanes, strict=True))
    place = np.unique(place.astype(int), return_inverse=True)[1]
    memory = np.arange(place.max() + 1, dtype=np.uint32) * 3
    seen, after = one_after_another(memory, place, update, (value,), scan)
    expected = memory.copy()
    for lane, (p, v) in enumerate(zip(place, value, strict=True)):
        assert seen[lane] == expected[p]
        expected[p] = update(expected[p : p + 1], np.array([v], np.uint32))[0]
    assert (after == expected).all()


def test_compare_and_swap_of_many_lanes_lets_one_win():
    body = OWN + "atom.global.cas.b32 %r2, [%rd1], 7, %r1; st.global.u32 [%rd2+4], %r2;"
    x = np.zeros(1025, np.uint32)
    x[0] = 7
    clean(run(body, x, block=1024))
    assert (x[1:] == 7).sum() == 1
    winner = int(np.flatnonzero(x[1:] == 7)[0])
    assert x[0] == winner
    assert (np.delete(x[1:], winner) == winner).all()


COPIES = """
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd3, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16;
    add.u64 %rd2, %rd1, %rd2; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 16, %r2;
"""
TILE = ".shared .align 16 .f32 s[1024];"


@pytest.mark.parametrize("size", [4, 8, 16])
def test_bytes_past_the_source_become_zero(size, rng):
    body = (
        COPIES
        + f"""
        rem.u32 %r3, %r1, {size // 4 + 1}; shl.b32 %r3, %r3, 2;
        st.shared.v4.f32 [%r2], {{0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000}};
        cp.async.ca.shared.global [%r2], [%rd2], {size}, %r3;
        cp.async.wait_all;
        ld.shared.v4.f32 {{%f0, %f1, %f2, %f3}}, [%r2];
        mul.wide.u32 %rd4, %r1, 16; add.u64 %rd4, %rd3, %rd4; st.global.v4.f32 [%rd4], {{%f0, %f1, %f2, %f3}};
    """
    )
    x, y = rng.standard_normal((32, 4)).astype(np.float32), np.zeros((32, 4), np.float32)
    clean(run(body, x, y, parameters="x: u64, y: u64", module=TILE))
    expected = np.ones((32, 4), np.float32)
    expected[:, : size // 4] = x[:, : size // 4]
    used = np.arange(32) % (size // 4 + 1)
    expected[(np.arange(4) >= used[:, None]) & (np.arange(4) < size // 4)] = 0
    assert (y == expected).all()


def test_a_lane_that_reads_nothing_may_have_any_address():
    body = (
        COPIES
        + """
        setp.ge.u32 %p1, %r1, 30;
        cp.async.cg.shared.global [%r2], [%rd2], 16, %p1;
        cp.async.wait_all;
        ld.shared.v4.f32 {%f0, %f1, %f2, %f3}, [%r2];
        mul.wide.u32 %rd4, %r1, 16; add.u64 %rd4, %rd3, %rd4; st.global.v4.f32 [%rd4], {%f0, %f1, %f2, %f3};
    """
    )
    x, y = np.ones((30, 4), np.float32), np.full((32, 4), 9, np.float32)
    clean(run(body, x, y, parameters="x: u64, y: u64", module=TILE))
    assert (y[:30] == 1).all()
    assert (y[30:] == 0).all()


def test_groups_of_copies_complete_in_order_and_late():
    body = (
        COPIES
        + """
        cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.commit_group;
        cp.async.ca.shared.global [%r2+4], [%rd2], 4; cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %r4, [%r2];
        ld.shared.u32 %r5, [%r2+4];
        cp.async.wait_group 0;
        ld.shared.u32 %r6, [%r2+4];
        mul.wide.u32 %rd4, %r1, 12; add.u64 %rd4, %rd3, %rd4;
        st.global.u32 [%rd4], %r4; st.global.u32 [%rd4+4], %r5; st.global.u32 [%rd4+8], %r6;
    """
    )
    x, y = np.arange(128, dtype=np.uint32), np.zeros((32, 3), np.uint32)
    clean(run(body, x, y, parameters="x: u64, y: u64", module=TILE, checks=False))
    assert (y[:, 0] == x[::4]).all()
    assert (y[:, 1] == 2**32 - 1).all(), "the second group must not have arrived yet: poison is what is there"
    assert (y[:, 2] == x[::4]).all()


def test_arrays_that_share_memory_are_one_allocation():
    base = np.arange(64, dtype=np.uint32)
    body = "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.global.u32 %r1, [%rd1+128]; st.global.u32 [%rd2], %r1;"
    clean(run(body, base, base[1:33], block=1, parameters="x: u64, y: u64"))
    assert base[1] == 32


def test_strided_views_reach_the_memory_between_them():
    base = np.zeros((4, 8), np.float32)
    body = "ld.param.u64 %rd1, [x]; st.global.f32 [%rd1+32], 0f40000000;"
    clean(run(body, base[:, 2:4], block=1))
    assert base[1, 2] == 2
    assert base.sum() == 2


@pytest.mark.parametrize(("kind", "value", "expected"), [
    ("u32", 7, 7), ("s32", -1, 2**32 - 1), ("f32", 1.0, 0x3F800000), ("u32", np.uint8(9), 9), ("b32", np.float32(1), 0x3F800000),
    ("f32", b"\0\0\x80?", 0x3F800000), ("u32", None, 0),
])  # fmt: skip
def test_scalars(kind, value, expected):
    body = "ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [a]; st.global.u32 [%rd1], %r1;"
    x = np.zeros(1, np.uint32)
    clean(run(body, x, value, block=1, parameters=f"x: u64, a: {kind}"))
    assert x[0] == expected


def test_a_struct_by_value():
    text = source("ld.param.u64 %rd1, [x]; ld.param.v2.u32 {%r1, %r2}, [s+8]; st.global.v2.u32 [%rd1], {%r2, %r1};")
    text = text.replace(".param .u64 x", ".param .u64 x, .param .align 8 .b8 s[16]")
    x = np.zeros(2, np.uint32)
    clean(launch(text, x, np.arange(4, dtype=np.uint32).tobytes(), block=1))
    assert list(x) == [3, 2]


def test_too_few_arguments():
    with pytest.raises(EmulationError) as caught:
        run(OWN)
    assert str(caught.value) == "k takes 1 arguments, 0 given"


def test_an_array_without_elements_is_not_touched():
    assert only(run("ld.param.u64 %rd1, [x]; ld.global.u8 %r1, [%rd1];", np.zeros(0, np.uint8), block=1)).message == (
        "ld.global.u8 reads 1 byte at x[0]; x has 0 u8"
    )


def test_a_register_keeps_its_value_when_the_one_it_was_moved_from_changes():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 8; setp.gt.u32 %p2, %r1, 20;
        mov.u32 %r2, 1;
        @%p1 mov.u32 %r2, 5;
        mov.u32 %r3, %r2;
        @%p2 mov.u32 %r2, 9;
        @%p1 bra SOME;
        add.u32 %r2, %r2, 0;
    SOME:
        mov.u32 %r4, %r2;
        @%p2 bra DONE;
        mov.u32 %r2, 100;
    DONE:
        mad.lo.u32 %r3, %r3, 1000, %r4;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    i = np.arange(32)
    first = np.where(i < 8, 5, 1)
    assert (x == first * 1000 + np.where(i > 20, 9, first)).all()
