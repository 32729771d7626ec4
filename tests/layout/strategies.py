"""Random layouts, small enough to enumerate."""

from hypothesis import strategies as st

from ptxdsl.layout import Layout, Swizzle

SIZES = st.sampled_from([1, 2, 3, 4, 5, 6, 8])
TWOS = st.sampled_from([1, 2, 4, 8])


def nest(draw, leaves):
    """The leaves grouped at random, at most two levels deep."""
    shape = []
    while leaves:
        n = draw(st.integers(1, len(leaves)))
        group, leaves = leaves[:n], leaves[n:]
        shape.append(group[0] if n == 1 and draw(st.booleans()) else tuple(group))
    return tuple(shape) if len(shape) > 1 or draw(st.booleans()) else shape[0]


def pick(shape, values):
    """`values` by leaf, nested as `shape`."""
    return tuple(pick(s, values) for s in shape) if isinstance(shape, tuple) else next(values)


@st.composite
def layouts(draw, sizes=SIZES, strides=None, most=4):
    """Any layout: strides at random, zero and repeated ones among them."""
    shape = nest(draw, draw(st.lists(sizes, min_size=1, max_size=most)))
    strides = st.integers(0, 40) if strides is None else strides
    return Layout(shape, pick(shape, iter(lambda: draw(strides), None)))


@st.composite
def bijections(draw, sizes=SIZES, gaps=False, most=4):
    """A layout onto 0 … size - 1 with its modes in any order; with `gaps` injective, with holes between modes."""
    shape = nest(draw, draw(st.lists(sizes, min_size=1, max_size=most)))
    leaves = Layout(shape).flat()
    strides, running = [0] * len(leaves), 1
    for leaf in draw(st.permutations(range(len(leaves)))):
        running *= draw(st.integers(1, 3)) if gaps else 1
        strides[leaf] = running
        running *= leaves[leaf][0]
    return Layout(shape, pick(shape, iter(strides)))


@st.composite
def swizzles(draw):
    bits = draw(st.integers(0, 3))
    shift = draw(st.integers(bits, 4)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 4)), shift)
