"""Our algebra and atoms against those of PyPI tensor-layouts."""

import pytest
import tensor_layouts as peer
from hypothesis import assume, given
from hypothesis import strategies as st
from tensor_layouts import atoms_nv

import ptxdsl.layout as pl
from ptxdsl.errors import LayoutError
from ptxdsl.layout import Layout, Swizzle, mma_atom
from tests.layout.strategies import TWOS, bijections, layouts, swizzles

COMPACT = bijections(sizes=TWOS, most=3)
SMALL = bijections(sizes=st.sampled_from([1, 2, 4]), most=2)


def theirs(layout):
    return peer.Layout(layout.shape, layout.stride)


def same(mine, other):
    """Whether the two give the same offsets in the same order."""
    return mine.offsets() == [other(i) for i in range(peer.size(other))]


@given(layouts())
def test_layouts_agree_on_size_cosize_and_offsets(layout):
    other = theirs(layout)
    for measure in ("size", "cosize", "rank", "depth"):
        assert getattr(pl, measure)(layout) == getattr(peer, measure)(other)
    assert same(layout, other)


@given(layouts())
def test_coalesce_agrees(layout):
    result, other = pl.coalesce(layout), peer.coalesce(theirs(layout))
    assert (result.shape, result.stride) == (other.shape, other.stride) or result.size == 1


@given(layouts(), layouts(most=2))
def test_composition_agrees_wherever_the_peer_is_right(a, b):
    try:
        other = peer.compose(theirs(a), theirs(b))
    except Exception:  # what it rejects is judged by enumeration, in test_laws.py
        assume(False)
    truth = [a(o) for o in b.offsets()]
    right = peer.size(other) == b.size and [other(i) for i in range(b.size)] == truth
    if right:
        assert pl.composition(a, b).offsets() == truth


@given(bijections(gaps=True), st.integers(1, 200))
def test_complement_agrees(layout, target):
    assert same(pl.complement(layout, target), peer.complement(theirs(layout), target))


@given(bijections())
def test_left_inverses_of_bijections_agree(layout):
    assert same(pl.left_inverse(layout), peer.left_inverse(theirs(layout)))


@given(bijections(gaps=True))
def test_right_inverses_agree(layout):
    assert same(pl.right_inverse(layout), peer.right_inverse(theirs(layout)))


@pytest.mark.parametrize("name", ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"])
@given(layout=COMPACT, tile=COMPACT)
def test_divides_agree(name, layout, tile):
    assume(layout.size % tile.size == 0 and tile.cosize <= layout.size)
    assert same(getattr(pl, name)(layout, tile), getattr(peer, name)(theirs(layout), theirs(tile)))


@pytest.mark.parametrize("name", ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"])
@given(layout=COMPACT, data=st.data())
def test_divides_by_mode_agree(name, layout, data):
    assume(layout.rank > 1)
    tiler = tuple(data.draw(st.sampled_from([n for n in (1, 2, 4, 8) if m.size % n == 0])) for m in layout)
    mine = getattr(pl, name)(layout, tiler)
    other = getattr(peer, name)(theirs(layout), tuple(peer.Layout(t, 1) for t in tiler))
    assert same(mine, other)


@pytest.mark.parametrize("name", ["logical", "zipped", "tiled", "blocked", "raked"])
@given(block=SMALL, tile=SMALL)
def test_products_agree(name, block, tile):
    mine, other = getattr(pl, f"{name}_product"), getattr(peer, f"{name}_product")
    assert same(mine(block, tile), other(theirs(block), theirs(tile)))


@given(COMPACT, st.sampled_from([2, 4]))
def test_recasts_agree(layout, factor):
    if [d for _, d in layout.flat()].count(1) == 1:  # of several the peer makes each longer, and repeats elements
        assert same(pl.downcast(layout, factor), peer.downcast(theirs(layout), factor))
    try:
        mine = pl.upcast(layout, factor)
    except LayoutError:
        return
    assert same(mine, peer.upcast(theirs(layout), factor))


@given(swizzles(), layouts())
def test_swizzled_layouts_agree(swizzle, layout):
    assume(swizzle.bits > 0)
    other = peer.compose(peer.Swizzle(swizzle.bits, swizzle.base, swizzle.shift), theirs(layout))
    assert pl.composition(swizzle, layout).offsets() == [other(i) for i in range(layout.size)]


PEER_ATOMS = {
    "SM80_16x8x8_F32F16F16F32_TN": "mma.m16n8k8.f32.f16",
    "SM80_16x8x16_F32F16F16F32_TN": "mma.m16n8k16.f32.f16",
    "SM80_16x8x16_F32BF16BF16F32_TN": "mma.m16n8k16.f32.bf16",
    "SM80_16x8x4_F32TF32TF32F32_TN": "mma.m16n8k4.f32.tf32",
    "SM80_16x8x8_F32TF32TF32F32_TN": "mma.m16n8k8.f32.tf32",
    "SM80_8x8x4_F64F64F64F64_TN": "mma.m8n8k4.f64",
    "SM80_8x8x16_S32S8S8S32_TN": "mma.m8n8k16.s32.s8",
    "SM80_16x8x16_S32S8S8S32_TN": "mma.m16n8k16.s32.s8",
    "SM80_16x8x32_S32S8S8S32_TN": "mma.m16n8k32.s32.s8",
    "SM90_16x8x4_F64F64F64F64_TN": "mma.m16n8k4.f64",
    "SM90_16x8x8_F64F64F64F64_TN": "mma.m16n8k8.f64",
    "SM90_16x8x16_F64F64F64F64_TN": "mma.m16n8k16.f64",
}


@pytest.mark.parametrize("name", PEER_ATOMS)
def test_atoms_agree(name):
    mine, other = mma_atom(PEER_ATOMS[name]), getattr(atoms_nv, name)
    assert mine.shape == other.shape_mnk
    for operand in "abc":
        assert same(getattr(mine, operand), getattr(other, f"{operand}_layout"))


def test_the_peer_is_really_another_implementation():
    assert peer.Layout.__module__.startswith("tensor_layouts")
    assert Layout.__module__ == "ptxdsl.layout.layout" and Swizzle.__module__ == "ptxdsl.layout.swizzle"
