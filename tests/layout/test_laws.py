"""The laws of the algebra, on random layouts against enumeration."""

from itertools import pairwise
from math import prod

import pytest
from hypothesis import assume, given
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
    cosize,
    crd2idx,
    depth,
    downcast,
    filter_,
    flat_divide,
    flat_product,
    idx2crd,
    left_inverse,
    logical_divide,
    logical_product,
    max_common_layout,
    nullspace,
    parse_layout,
    raked_product,
    rank,
    recast,
    right_inverse,
    size,
    slice_,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    upcast,
    zipped_divide,
    zipped_product,
)
from tests.layout.strategies import TWOS, bijections, layouts, swizzles


def representable(values):
    """Whether some flat layout from offset 0 has these values: tried with every first mode."""
    if len(values) == 1:
        return values[0] == 0
    for n in range(2, len(values) + 1):
        if len(values) % n == 0:
            first = [i * values[1] for i in range(n)]
            outer = values[::n]
            if values == [o + f for o in outer for f in first] and (n == len(values) or representable(outer)):
                return True
    return False


def refines(shape, coarser):
    if isinstance(coarser, tuple):
        return isinstance(shape, tuple) and len(shape) == len(coarser) and all(map(refines, shape, coarser))
    return size(shape) == coarser


def truth(a, b):
    return [a(offset) for offset in b.offsets()]


@given(layouts())
def test_a_layout_maps_each_coordinate_to_its_sum_of_strides(layout):
    for i, offset in enumerate(layout.offsets()):
        coord = idx2crd(i, layout.shape)
        assert layout(i) == layout(coord) == offset == crd2idx(coord, layout.shape, layout.stride)


@given(layouts())
def test_size_and_cosize_count_coordinates_and_reach(layout):
    assert size(layout) == len(layout.offsets())
    assert cosize(layout) == max(layout.offsets()) + 1
    assert rank(layout) == len(list(layout)) == len(layout)
    assert depth(layout) == depth(layout.shape)


@pytest.mark.parametrize("shape, expected", [(4, 0), ((4,), 1), ((4, 8), 1), ((4, (2, 2)), 2), (((2, (2, 2)), 3), 3)])
def test_depth_counts_the_nesting(shape, expected):
    assert depth(shape) == depth(Layout(shape)) == depth(composition(Swizzle(1, 1, 1), Layout(shape))) == expected


@given(layouts())
def test_a_layout_reads_back_from_its_text(layout):
    assert parse_layout(str(layout)) == layout


@given(swizzles(), layouts(), st.integers(0, 99))
def test_a_composed_layout_reads_back_from_its_text(swizzle, layout, offset):
    assert parse_layout(str(swizzle)) == swizzle
    composed = ComposedLayout(swizzle, offset, layout)
    assert parse_layout(str(composed)) == composed


@given(layouts())
def test_coalesce_keeps_the_function_in_the_fewest_modes(layout):
    result = coalesce(layout)
    assert result.offsets() == layout.offsets()
    pairs = result.flat()
    assert pairs == [(1, 0)] or all(n > 1 for n, _ in pairs)
    assert all(n * d != after for (n, d), (_, after) in pairwise(pairs))


@given(layouts())
def test_coalesce_by_mode_keeps_each_mode(layout):
    result = coalesce(layout, (1,) * layout.rank)
    assert [m.offsets() for m in result] == [m.offsets() for m in layout]


@given(layouts())
def test_filter_reaches_the_same_offsets(layout):
    assert set(filter_(layout).offsets()) == set(layout.offsets())


@given(layouts())
def test_nullspace_is_what_maps_to_zero_through_broadcast_modes(layout):
    kernel = nullspace(layout)
    assert all(layout(i) == 0 for i in kernel.offsets())
    assert size(kernel) == prod(n for n, d in layout.flat() if d == 0)
    assert len(set(kernel.offsets())) == size(kernel)


@given(layouts(), layouts(most=3))
def test_composition_is_the_composed_function_or_refused_because_there_is_none(a, b):
    values = truth(a, b)
    try:
        result = composition(a, b)
    except LayoutError:
        leaves = [[a(d * c) for c in range(n)] for n, d in b.flat()]
        sums = [0]
        for leaf in leaves:
            sums = [s + v for v in leaf for s in sums]
        assert not all(map(representable, leaves)) or sums != values
    else:
        assert result.offsets() == values
        assert refines(result.shape, b.shape)


@given(layouts(sizes=TWOS), bijections(sizes=TWOS))
def test_composition_with_powers_of_two_inside_the_domain_always_exists(a, b):
    assume(size(b) <= size(a))
    assert composition(a, b).offsets() == truth(a, b)


@given(layouts(), st.data())
def test_composition_by_mode_composes_each_mode(a, data):
    tiler = tuple(data.draw(st.sampled_from([1, None, m.size, Layout(m.size, 1)])) for m in a)
    result = composition(a, tiler)
    for mode, tile, got in zip(a, tiler, result, strict=True):
        expected = mode if tile is None else composition(mode, tile)
        assert got.offsets() == expected.offsets()


@given(swizzles(), layouts())
def test_a_swizzle_permutes_its_blocks_and_undoes_itself(swizzle, layout):
    block = 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift))
    assert sorted(map(swizzle, range(block))) == list(range(block))
    assert all(swizzle(swizzle(i)) == i for i in range(2 * block))
    assert composition(swizzle, layout).offsets() == [swizzle(o) for o in layout.offsets()]


@given(swizzles(), layouts(), st.integers(0, 99))
def test_an_array_of_cosize_elements_holds_a_composed_layout(swizzle, layout, offset):
    composed = ComposedLayout(swizzle, offset, layout)
    assert max(composed.offsets()) < cosize(composed)
    block = 1 << swizzle.target.bit_length()
    assert cosize(composed) % block == 0 and cosize(composed) < offset + cosize(layout) + block


@given(swizzles(), st.integers(0, 3))
def test_equal_swizzles_join_to_none_and_different_ones_to_both(a, bits):
    assert composition(a, a).bits == 0
    b = Swizzle(min(bits, abs(a.shift)), a.base + a.bits, a.shift)
    try:
        joined = composition(a, b)
    except LayoutError:
        assert a.source & b.target or abs(a.shift) < a.bits + b.bits
    else:
        assert all(joined(i) == a(b(i)) for i in range(0, 1 << 13, 37))


@given(bijections(gaps=True), st.integers(1, 4))
def test_complement_and_layout_reach_each_offset_below_the_target_once(layout, more):
    target = cosize(layout) * more
    rest = complement(layout, target)
    both = [o + r for r in rest.offsets() for o in layout.offsets()]
    assert sorted(both) == list(range(len(both)))
    assert len(both) >= target


@given(layouts())
def test_complement_is_exact_or_refused(layout):
    try:
        rest = complement(layout)
    except LayoutError:
        return
    moving = filter_(layout).offsets()
    both = [o + r for r in rest.offsets() for o in moving]
    assert sorted(both) == list(range(len(both)))


@given(layouts())
def test_right_inverse_is_undone_by_the_layout(layout):
    inverse = right_inverse(layout)
    assert all(layout(inverse(i)) == i for i in range(size(inverse)))


@given(bijections(gaps=True))
def test_left_inverse_undoes_an_injective_layout(layout):
    inverse = left_inverse(layout)
    assert [inverse(o) for o in layout.offsets()] == list(range(size(layout)))


@given(layouts())
def test_left_inverse_of_any_layout_leads_back_to_the_same_offset(layout):
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        return
    assert [layout(inverse(o)) for o in layout.offsets()] == layout.offsets()


@given(bijections())
def test_both_inverses_of_a_bijection_agree(layout):
    assert coalesce(left_inverse(layout)).offsets() == coalesce(right_inverse(layout)).offsets()


@st.composite
def divided(draw):
    """A layout, and for each mode a tile that divides it."""
    layout = draw(bijections(gaps=True, sizes=st.sampled_from([1, 2, 4, 6, 8])))
    tiler = tuple(draw(st.sampled_from([t for t in range(1, m.size + 1) if m.size % t == 0])) for m in layout)
    return layout, tiler


@given(divided())
def test_divides_partition_a_layout_into_its_tiles(case):
    layout, tiler = case
    try:
        parts = logical_divide(layout, tiler)
    except LayoutError:  # the tile cuts a nested mode where its sizes do not divide
        return
    everything = sorted(layout.offsets())
    for result in (parts, zipped_divide(layout, tiler), tiled_divide(layout, tiler), flat_divide(layout, tiler)):
        assert sorted(result.offsets()) == everything
    zipped = zipped_divide(layout, tiler)
    for i, (mode, tile) in enumerate(zip(layout, tiler, strict=True)):
        assert parts[i][0].offsets() == mode.offsets()[:tile]
        assert parts[i][1].offsets() == mode.offsets()[::tile]
        assert zipped[0][i] == parts[i][0] and zipped[1][i] == parts[i][1]
    assert tiled_divide(layout, tiler) == Layout(
        (zipped[0].shape, *zipped[1].shape), (zipped[0].stride, *zipped[1].stride)
    )


@given(bijections(gaps=True), bijections(most=3))
def test_products_repeat_the_block_at_disjoint_places(block, tile):
    try:
        product = logical_product(block, tile)
    except LayoutError:
        return
    assert product[0] == block
    assert len(set(product.offsets())) == size(block) * size(tile)
    assert refines(product[1].shape, tile.shape)
    assert zipped_product(block, tile) == product
    assert tiled_product(block, tile).offsets() == flat_product(block, tile).offsets() == product.offsets()


@given(bijections(most=3), bijections(most=3))
def test_blocked_and_raked_products_are_the_logical_one_regrouped(block, tile):
    offsets = sorted(logical_product(block, tile).offsets())
    blocked, raked = blocked_product(block, tile), raked_product(block, tile)
    assert sorted(blocked.offsets()) == sorted(raked.offsets()) == offsets
    assert [(m[1], m[0]) for m in blocked] == [(m[0], m[1]) for m in raked]


@given(bijections(most=2), st.permutations(range(2)), st.lists(st.integers(1, 4), min_size=2, max_size=2))
def test_tile_to_shape_fills_the_shape_with_blocks(block, order, counts):
    assume(block.rank == 2)
    shape = tuple(m.size * n for m, n in zip(block, counts, strict=True))
    result = tile_to_shape(block, shape, order)
    assert tuple(m.size for m in result) == shape
    assert sorted(result.offsets()) == list(range(size(block) * counts[0] * counts[1]))
    first = order.index(0)
    if counts[first] > 1:  # the mode of least order repeats first
        step = [0, 0]
        step[first] = block[first].size
        assert result(*step) == size(block)


def test_tile_to_shape_repeats_along_modes_that_the_block_has_not():
    assert str(tile_to_shape(Layout((8, 4)), (16, 4, 3))) == "((8,2),(4,1),(1,3)):((1,32),(8,0),(0,64))"


def test_tiles_of_a_divide_go_on_past_the_end():
    assert logical_divide(Layout(10), Layout(4)) == Layout((4, 3))


def test_a_product_takes_a_shape_for_its_compact_layout():
    block = Layout((2, 3))
    assert blocked_product(block, (4, 5)) == blocked_product(block, Layout((4, 5)))
    assert raked_product(block, (4, 5)) == raked_product(block, Layout((4, 5)))


@given(bijections(sizes=TWOS), st.sampled_from([2, 4]))
def test_upcast_groups_neighbours_and_downcast_opens_them(layout, factor):
    assume([d for _, d in layout.flat()].count(1) == 1)
    fine = downcast(layout, factor)
    assert sorted(fine.offsets()) == list(range(size(layout) * factor))
    try:
        wide = upcast(layout, factor)
    except LayoutError:
        return
    assert set(wide.offsets()) == {o // factor for o in layout.offsets()}
    assert recast(layout, 8, 8 * factor) == wide and recast(layout, 8 * factor, 8) == fine


@given(layouts(strides=st.integers(-9, 9)), st.sampled_from([1, 2, 3, 4]))
def test_a_recast_holds_the_same_memory_or_is_refused(layout, factor):
    """Pieces of all elements, each as often as its element; all wider elements that hold one."""
    offsets = layout.offsets()
    try:
        fine = downcast(layout, factor)
    except LayoutError:
        assert factor > 1 and not any(d == 1 for _, d in layout.flat())
    else:
        assert sorted(fine.offsets()) == sorted(factor * o + piece for o in offsets for piece in range(factor))
    try:
        wide = upcast(layout, factor)
    except LayoutError:
        assert any(n > 1 and d % factor for n, d in layout.flat())
    else:
        assert set(wide.offsets()) == {o // factor for o in offsets}


def test_pieces_of_an_element_lengthen_one_mode_of_stride_1():
    assert recast(Layout((1, 4), (1, 4)), 32, 16) == Layout((2, 4), (1, 8))
    assert recast(Layout((1, 4), (1, 1)), 32, 16) == Layout((1, 8), (2, 1))
    assert recast(Layout((2, 2), (1, 1)), 32, 16) == Layout((4, 2), (1, 2))
    assert recast(Layout((1, 1), (1, 1)), 32, 16) == Layout((2, 1), (1, 2))
    assert recast(Layout(4, 4), 32, 32) == Layout(4, 4)


@given(bijections(sizes=TWOS), swizzles(), st.sampled_from([2, 4, 8]), st.integers(0, 3))
def test_a_swizzle_is_recast_with_its_layout(inner, swizzle, factor, start):
    layout = ComposedLayout(swizzle, start * factor, inner)
    fine = downcast(layout, factor)
    assert [fine.swizzle(factor * o) for o in range(256)] == [factor * swizzle(o) for o in range(256)]
    try:
        wide = upcast(layout, factor)
    except LayoutError:
        return
    assert set(wide.offsets()) == {o // factor for o in layout.offsets()}


def test_a_swizzle_of_bytes_is_one_of_wider_elements_and_loses_the_bits_within_them():
    bytes_ = composition(Swizzle(3, 4, 3), Layout((8, 128), (128, 1)))
    assert recast(bytes_, 8, 16) == composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
    assert recast(bytes_, 8, 32) == composition(Swizzle(3, 2, 3), Layout((8, 32), (32, 1)))
    assert recast(bytes_, 8, 256) == composition(Swizzle(2, 0, 3), Layout((8, 4), (4, 1)))
    assert recast(bytes_, 8, 1024).swizzle == Swizzle(0, 0, 3)


@given(layouts(), layouts())
def test_the_common_layout_is_contiguous_in_both(a, b):
    try:
        common = max_common_layout(a, b)
    except LayoutError:
        return
    assert [a(i) for i in common.offsets()] == [b(i) for i in common.offsets()] == list(range(size(common)))


@given(layouts(), st.data())
def test_a_slice_is_the_layout_with_some_coordinates_fixed(layout, data):
    assume(isinstance(layout.shape, tuple))
    fixed = tuple(data.draw(st.one_of(st.none(), st.integers(0, m.size - 1))) for m in layout)
    part = slice_(layout, fixed)
    open_modes = fixed.count(None)
    for i in range(size(part)):
        coord = idx2crd(i, part.shape)
        kept = iter(coord if open_modes > 1 else (coord,))
        assert part(i) == layout(tuple(next(kept) if f is None else f for f in fixed))
    assert size(part) == prod(m.size for m, f in zip(layout, fixed, strict=True) if f is None)


@pytest.mark.parametrize(
    "a, b",
    [
        (Layout((16, 2), (1, 100)), Layout((4, 5), (4, 1))),  # 12 + 4 carries out of the mode of 16
        (Layout((4, 2), (1, 10)), Layout((2, 2), (3, 3))),
    ],
)
def test_modes_that_fit_alone_but_carry_together_are_refused(a, b):
    with pytest.raises(LayoutError, match="carries into another"):
        composition(a, b)


def test_a_law_fails_for_a_wrong_composition():
    assert not representable([0, 6, 7, 8, 9, 15])
    assert representable([0, 4, 1, 5])
    with pytest.raises(LayoutError):
        composition(Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3))
