"""Layouts on traced coordinates: the same offsets, in few operations."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    byte_index,
    composition,
    idx2crd,
    in_bytes,
    make_tiled_copy_a,
    make_tiled_copy_b,
    make_tiled_mma,
    parse_layout,
    slice_,
)
from tests.layout.fakes import Traced
from tests.layout.strategies import bijections, layouts, swizzles

K_MAJOR = composition(Swizzle(3, 3, 3), Layout((128, 64), (64, 1)))


def traced_offsets(layout):
    """The offset of every linear coordinate, traced."""
    return [layout(Traced(i)) for i in range(layout.size)]


def number(offset):
    return offset.number if isinstance(offset, Traced) else offset


@given(layouts(strides=st.integers(-20, 40)))
def test_a_traced_linear_coordinate_gives_the_offsets_of_the_ints(layout):
    assert [number(o) for o in traced_offsets(layout)] == layout.offsets()


@given(bijections())
def test_it_does_so_where_modes_continue_each_other(layout):
    assert [number(o) for o in traced_offsets(layout)] == layout.offsets()


@given(bijections(gaps=True))
def test_it_does_so_in_no_more_operations_than_digit_by_digit(layout):
    moving = [n for n, d in layout.flat() if n > 1]
    coord = Traced(layout.size - 1)
    layout(coord)
    assert len(coord.log) <= max(0, 4 * len(moving) - 1)  # divide, remainder, multiply, add


@given(layouts(), st.data())
def test_a_traced_coordinate_by_mode_gives_the_offsets_of_the_ints(layout, data):
    traced = [data.draw(st.booleans()) for _ in layout]
    for i in range(layout.size):
        coord = idx2crd(i, tuple(m.size for m in layout))
        given_ = tuple(Traced(c) if t else c for c, t in zip(coord, traced, strict=True))
        index = layout.index(given_) if isinstance(layout.shape, tuple) else layout.index(given_[0])
        assert number(index.get()) == layout(i)
        if index.value is not None and index.bits >= 0:
            assert index.value.number & ~index.bits == 0


@given(swizzles(), layouts(), st.integers(0, 64), st.data())
def test_a_traced_coordinate_of_a_composed_layout_too(swizzle, inner, offset, data):
    layout = ComposedLayout(swizzle, offset, inner)
    traced = [data.draw(st.booleans()) for _ in inner]
    for i in range(layout.size):
        coord = idx2crd(i, tuple(m.size for m in inner))
        given_ = tuple(Traced(c) if t else c for c, t in zip(coord, traced, strict=True))
        got = layout(given_) if isinstance(layout.shape, tuple) else layout(given_[0])
        assert number(got) == layout(i)


@given(layouts(strides=st.integers(0, 20)), swizzles(), st.sampled_from([1, 2, 4]))
def test_bytes_are_elements_times_their_size(inner, swizzle, size):
    layout = composition(swizzle, inner)
    assert in_bytes(layout, size).offsets() == [size * o for o in layout.offsets()]
    part = in_bytes(slice_(layout, Traced(inner.size - 1)), size)
    assert number(part(0)) == size * layout(inner.size - 1)


@given(st.integers(0, 10**6), layouts())
def test_idx2crd_of_a_traced_index_is_that_of_the_int(index, layout):
    index %= layout.size
    coord = idx2crd(Traced(index), layout.shape)
    assert numbers(coord) == idx2crd(index, layout.shape)


def numbers(coord):
    return tuple(map(numbers, coord)) if isinstance(coord, tuple) else number(coord)


def test_numpy_arrays_are_coordinates_too():
    row, column = np.meshgrid(np.arange(128), np.arange(64), indexing="ij")
    offsets = K_MAJOR(row, column)
    assert (offsets.ravel(order="F") == K_MAJOR.offsets()).all()


EXPRESSIONS = [  # layout, coordinate, its expression
    ("(4,8):(1,4)", "x", "x"),  # continues: one mode
    ("(4,8):(8,1)", "x", "(((x&3)<<3)+(x>>2))"),
    ("(4,8):(0,1)", "x", "(x>>2)"),  # broadcast: nothing
    ("(4,8):(1,0)", "x", "(x&3)"),
    ("(4,8,2):(1,4,64)", "x", "(x+((x>>5)<<5))"),
    ("(4,3,2):(1,4,0)", "x", "(x%12)"),
    ("(1,8,1):(5,4,7)", "x", "(x<<2)"),
    ("(4,4):(0,4)", "x", "(x&12)"),  # cut out where it stands
    ("(2,2,2):(1,8,4)", "x", "((x&5)+((x&2)<<2))"),  # two digits move alike: one mask
    ("(64,8):(1,72)", "x", "(x+((x>>6)<<3))"),  # padded rows: no remainder
    ("(3,5):(5,1)", "x", "(((x%3)*5)+(x//3))"),
    ("(3,7):(1,4)", "x", "(x+(x//3))"),
    ("((4,8),(2,2)):((32,1),(16,8))", "x,3", "((((x&3)<<5)+(x>>2))+24)"),  # constants folded
    ("(8,64):(64,1)", "x,5", "((x<<6)+5)"),
    ("(8,64):(64,1)", "x,y", "((x<<6)+y)"),
    ("8:3", "x", "(x*3)"),
    ("1:3", "x", "0"),
    ("Sw<0,3,3> o 0 o (8,64):(64,1)", "x,5", "((x<<6)+5)"),  # no swizzle: nothing
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", "x,y", "(((x<<6)+y)^((((x<<6)+y)&448)>>3))"),
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", "x,0", "((x<<6)^((x<<6)>>3))"),  # nothing below to mask off
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", "x,16", "(((x<<6)^((x<<6)>>3))^16)"),  # the constant after the XOR
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", "x,5", "(((x<<6)^((x<<6)>>3))+5)"),  # bits the XOR leaves: added
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", "3,y", "((y^24)+192)"),  # the row is known: its XOR is
    ("Sw<3,3,3> o 0 o (8,(64,2)):(64,(1,512))", "x,64", "(((x<<6)^((x<<6)>>3))+512)"),
    ("Sw<2,0,-2> o 0 o 16:1", "x", "(x^((x&3)<<2))"),
]


@pytest.mark.parametrize("text, coord, expression", EXPRESSIONS)
def test_the_operations_of_a_traced_coordinate(text, coord, expression):
    coordinate = [int(c) if c.isdigit() else Traced(1, c) for c in coord.split(",")]
    assert repr(parse_layout(text)(*coordinate)) == expression


def test_a_constant_stays_apart_for_the_immediate():
    index = K_MAJOR.index(Traced(5, "row"), 2)
    assert index.constant == 2 and repr(index.value) == "((row<<6)^(((row<<6)&448)>>3))"


def test_bytes_shift_by_the_swizzled_bits_of_bytes():
    index = byte_index(K_MAJOR, (Traced(5, "row"), 2), 2)
    assert index.constant == 4 and repr(index.value) == "((row<<7)^(((row<<7)&896)>>3))"


@pytest.mark.parametrize("make, operations", [(make_tiled_copy_a, 10), (make_tiled_copy_b, 11)])
def test_a_thread_of_a_tiled_copy_pays_once_for_all_its_addresses(make, operations):
    mma = make_tiled_mma("mma.m16n8k16.f32.f16", (2, 2, 1), (32, 32, 16))
    copy = make("ldmatrix.x4", mma)
    thread = Traced(77, "t")
    part = copy.get_slice(thread).partition_s(K_MAJOR, bytes=True)
    whole = in_bytes(copy.partition_s(K_MAJOR), 2)
    assert len(thread.log) == operations
    _, tiles_mn, tiles_k = (mode.size for mode in part)
    for i in range(tiles_mn):
        for k in range(tiles_k):
            index = part.index(0, i, k)
            assert index.constant + index.value.number == whole(77, 0, i, k)
            assert index.constant == 4096 * i  # rows further down go into the immediate,
    assert len(thread.log) == operations + tiles_mn * (tiles_k - 1)  # a step in K is one XOR


def test_a_traced_stage_of_a_ring_is_added_to_the_swizzled_offset():
    ring = composition(Swizzle(3, 3, 3), Layout((128, 64, 3), (64, 1, 8192)))
    stage = slice_(ring, None, None, Traced(2, "stage"))
    assert repr(stage(1, 0)) == "((stage<<13)+72)"
    index = stage.index(Traced(9, "row"), 8)
    assert repr(index.get()) == "((stage<<13)+(((row<<6)^(((row<<6)&448)>>3))^8))"
    assert index.get().number == ring(9, 8, 2)


def test_a_thread_of_a_traced_stage_pays_one_addition_more():
    ring = composition(Swizzle(3, 3, 3), Layout((128, 64, 3), (64, 1, 8192)))
    copy = make_tiled_copy_a("ldmatrix.x4", make_tiled_mma("mma.m16n8k16.f32.f16", (2, 2, 1), (32, 32, 16)))
    log = []
    part = copy.get_slice(Traced(77, "t", log)).partition_s(ring)
    assert len(log) == 11
    at_stage = slice_(part, None, None, None, Traced(2, "stage", log))
    assert len(log) == 13  # shifted into place and added: no second XOR
    whole = copy.partition_s(ring)
    for i in range(4):
        for k in range(4):
            index = at_stage.index(0, i, k)
            assert index.constant == 2048 * i and index.get().number == whole(77, 0, i, k, 2)
    early = copy.get_slice(Traced(77, "t")).partition_s(slice_(ring, None, None, Traced(2, "stage")))
    assert [early(0, i, k).number for i in range(4) for k in range(4)] == [
        whole(77, 0, i, k, 2) for i in range(4) for k in range(4)
    ]


@given(layouts(), swizzles(), st.booleans(), st.data())
def test_a_slice_at_traced_coordinates_is_the_one_at_ints(inner, swizzle, plain, data):
    assume(isinstance(inner.shape, tuple))
    layout = inner if plain else composition(swizzle, inner)
    fixed = [data.draw(st.one_of(st.none(), st.integers(0, m.size - 1))) for m in inner]
    traced = [c if c is None or data.draw(st.booleans()) else Traced(c) for c in fixed]
    expected, part = slice_(layout, tuple(fixed)), slice_(layout, tuple(traced))
    assert [number(part(i)) for i in range(part.size)] == expected.offsets()
    assert [number(part(Traced(i))) for i in range(part.size)] == expected.offsets()


def test_a_constant_that_carries_into_the_traced_part_is_added_and_not_xored():
    layout = Layout((8, 4, 2), (1, 3, 64))
    assert [number(slice_(layout, Traced(5), 1, None)(k)) for k in range(2)] == [layout(5, 1, k) for k in range(2)]


def test_a_slice_of_a_slice_is_the_slice_of_both():
    ring = composition(Swizzle(3, 3, 3), Layout((128, 64, 4), (64, 1, 8192)))
    once = slice_(ring, Traced(9, "r"), None, Traced(3, "s"))
    twice = slice_(slice_(ring, Traced(9, "r"), None, None), None, Traced(3, "s"))
    assert (
        [number(once(i)) for i in range(64)]
        == [number(twice(i)) for i in range(64)]
        == [ring(9, i, 3) for i in range(64)]
    )


def test_an_offset_that_may_carry_is_swizzled_after_the_sum():
    layout = composition(Swizzle(2, 1, 2), Layout((5, 7), (3, 4)))
    part = slice_(layout, Traced(4, "i"), None)
    assert [number(part(j)) for j in range(7)] == [layout(4, j) for j in range(7)]
