"""Products of padded tiles, inverses of swizzled layouts and coalescing by mode, as CuTe defines them."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    blocked_product,
    coalesce,
    complement,
    composition,
    left_inverse,
    logical_divide,
    logical_product,
    raked_product,
    right_inverse,
    size,
    tile_to_shape,
    tiled_product,
    zipped_product,
)

ROWS_OF_33 = Layout((32, 32), (1, 33))


def test_a_padded_block_repeats_behind_its_padding():
    """CuTe divides strides with the rest dropped: 33 // 32 is 1, so nothing fits between the rows."""
    assert logical_product(ROWS_OF_33, Layout(3)) == Layout(((32, 32), 3), ((1, 33), 1056))
    assert zipped_product(ROWS_OF_33, Layout(3)) == Layout(((32, 32), 3), ((1, 33), 1056))
    assert tiled_product(ROWS_OF_33, Layout(3)) == Layout(((32, 32), 3), ((1, 33), 1056))


def test_a_padded_block_uses_gaps_that_hold_it_whole():
    assert logical_product(Layout((4, 2), (1, 10)), Layout(4)) == Layout(((4, 2), (2, 2)), ((1, 10), (4, 20)))


def test_a_block_that_stands_thrice_where_two_gaps_are_is_refused():
    """CuTe gives 3:3 here, which overlaps: its complement ends too early where a block is padded."""
    with pytest.raises(LayoutError) as caught:
        logical_product(Layout((3, 2, 2), (1, 8, 18)), Layout(3))
    assert caught.value.message == (
        "(2,2):(3,36) o 3:1 is not a layout: mode 0 of the right layout, 3:1, selects the offsets 0, 3, 36"
    )


def test_padded_blocks_fill_a_shape():
    padded = Layout((8, 8), (1, 9))
    assert tile_to_shape(padded, (16, 16)) == Layout(((8, 2), (8, 2)), ((1, 72), (9, 144)))
    assert tile_to_shape(padded, (16, 16), (1, 0)) == Layout(((8, 2), (8, 2)), ((1, 144), (9, 72)))
    assert blocked_product(padded, (2, 3)) == Layout(((8, 2), (8, 3)), ((1, 72), (9, 144)))
    assert raked_product(padded, (2, 3)) == Layout(((2, 8), (3, 8)), ((72, 1), (144, 9)))


def test_padded_and_swizzled_blocks_fill_a_shape():
    atom = composition(Swizzle(2, 3, 3), Layout((8, 32), (40, 1)))
    filled = tile_to_shape(atom, (16, 64))
    assert filled == ComposedLayout(Swizzle(2, 3, 3), 0, Layout(((8, 2), (32, 2)), ((40, 320), (1, 640))))
    assert len(set(filled.offsets())) == 16 * 64


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=1, max_size=2),
)
def test_padded_blocks_never_overlap(modes, counts):
    shape, stride, pitch = [], [], 1
    for count, padding in modes:
        shape.append(count)
        stride.append(pitch)
        pitch = pitch * count + padding
    try:
        product = logical_product(Layout(tuple(shape), tuple(stride)), Layout(tuple(counts)))
    except LayoutError as refused:  # counts that do not divide a gap, as CuTe has it
        assert "selects the offsets" in refused.message or "carries into another" in refused.message
        return
    assert len(set(product.offsets())) == size(product) == prod(shape) * prod(counts)


def test_a_complement_and_a_divide_keep_to_whole_gaps():
    """What they would leave out is no padding but elements of the caller."""
    with pytest.raises(LayoutError, match=r"the mode 32:33 is not a multiple of the block of 32"):
        complement(ROWS_OF_33)
    with pytest.raises(LayoutError, match=r"the mode 2:10 is not a multiple of the block of 4"):
        logical_divide(Layout(100), Layout((4, 2), (1, 10)))


def test_blocks_that_overlap_are_refused():
    with pytest.raises(LayoutError) as caught:
        logical_product(Layout((4, 2), (1, 2)), Layout(3))
    assert caught.value.message == (
        "(4,2):(1,2) has no complement: the mode 2:2 starts inside the block of 4 elements that the modes below it cover"
    )


SWIZZLED = [
    composition(Swizzle(2, 3, 3), Layout((8, 32), (32, 1))),
    composition(Swizzle(3, 3, 3), Layout((64, 64), (64, 1))),
    composition(Swizzle(3, 4, 3), Layout((8, 128), (1, 8))),
    composition(Swizzle(1, 0, -1), Layout((2, 8))),
    tile_to_shape(composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))), (16, 128)),
]


@pytest.mark.parametrize("layout", SWIZZLED, ids=str)
def test_inverses_of_swizzled_layouts(layout):
    right, left = right_inverse(layout), left_inverse(layout)
    assert right.size == size(layout)
    assert [layout(i) for i in right.offsets()] == list(range(right.size))
    assert [left(offset) for offset in layout.offsets()] == list(range(size(layout)))
    assert right.swizzle == layout.swizzle and right.layout == right_inverse(layout.layout)


def test_the_inverse_of_a_swizzled_layout_reads_as_it_works():
    layout = composition(Swizzle(2, 3, 3), Layout((8, 32), (32, 1)))
    assert str(right_inverse(layout)) == repr(left_inverse(layout)) == "(32,8):(8,1) o Sw<2,3,3>"


def test_a_padded_swizzled_layout_has_a_left_inverse_alone_as_far_as_its_gap():
    layout = composition(Swizzle(2, 3, 3), Layout((8, 32), (64, 1)))
    left, right = left_inverse(layout), right_inverse(layout)
    assert [left(offset) for offset in layout.offsets()] == list(range(256))
    assert [layout(i) for i in right.offsets()] == list(range(right.size)) and right.size == 32


def test_a_swizzled_layout_that_starts_later():
    layout = ComposedLayout(Swizzle(2, 3, 3), 256, Layout((8, 32), (32, 1)))
    left = left_inverse(layout)
    assert str(left) == "(32,8):(8,1) o -256 o Sw<2,3,3>"
    assert [left(offset) for offset in layout.offsets()] == list(range(256))
    with pytest.raises(LayoutError) as caught:
        right_inverse(layout)
    assert caught.value.message == (
        "Sw<2,3,3> o 256 o (8,32):(32,1) has no right inverse: no coordinate maps below its offset 256"
    )
    assert caught.value.help == "invert the layout without its offset"


@pytest.mark.parametrize(
    "layout, profile, expected",
    [
        (Layout(((2, 4), (3, 5))), (1, 1), Layout((8, 15), (1, 8))),
        (Layout(((2, 4), (3, 5))), [1, 1], Layout((8, 15), (1, 8))),
        (Layout(((2, 4), (3, 5))), (1,), Layout((8, (3, 5)), (1, (8, 24)))),
        (Layout((2, (1, 6)), (1, (6, 2))), (1, 1), Layout((2, 6), (1, 2))),
        (Layout((4, (2, 2)), (1, (4, 8))), (1, (1, 1)), Layout((4, (2, 2)), (1, (4, 8)))),
        (Layout(((4, 2), (2, 2)), ((1, 4), (8, 16))), None, Layout(32, 1)),
    ],
)
def test_coalescing_by_mode(layout, profile, expected):
    assert coalesce(layout, profile) == expected
    swizzle = Swizzle(2, 3, 3)
    assert coalesce(composition(swizzle, layout), profile) == composition(swizzle, expected)


def test_a_profile_is_nested_ints():
    with pytest.raises(LayoutError) as caught:
        coalesce(Layout((2, 2)), "ab")
    assert caught.value.message == "a profile must be an int or a nested tuple of ints; found 'ab' of type str"
    assert caught.value.help == "write (1, 1) to coalesce each of two modes"
