"""The layout algebra of CuTe on static layouts: every result is exact, or refused with the mode that cannot be.

Composed layouts are worked on through their inner layout: a swizzle acts on offsets, after all of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any, TypeAlias, TypeVar, overload

from ptxdsl.layout.index import check_operators, divide, remainder
from ptxdsl.layout.layout import Layout, check_bounds, coordinate, from_modes
from ptxdsl.layout.number import Computed, Coordinate, Number
from ptxdsl.layout.shape import (
    IntTuple,
    check_int,
    flatten,
    int_tuple,
    is_int,
    kind_of,
    like,
    mode_name,
    product,
    refusal,
    show,
)
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, InverseLayout, Swizzle

Modes: TypeAlias = list[tuple[int, int]]  # flat: (size, stride) of each mode
Tiler: TypeAlias = "AnyLayout | int | tuple[Tiler, ...] | None"
L = TypeVar("L", Layout, ComposedLayout, AnyLayout)


def size(layout: AnyLayout | IntTuple) -> int:
    """The number of coordinates of a layout or shape."""
    return as_layout(layout).size


def cosize(layout: AnyLayout) -> int:
    """How many elements an array needs to hold every offset."""
    return as_layout(layout).cosize


def rank(layout: AnyLayout | IntTuple) -> int:
    """The number of top-level modes of a layout or shape."""
    return as_layout(layout).rank


def depth(layout: AnyLayout | IntTuple) -> int:
    """How deeply the shape is nested: 0 for an int, 1 for a flat tuple."""
    return as_layout(layout).depth


def as_layout(value: Any) -> Layout | ComposedLayout:
    """A layout as it is; a shape as its compact layout."""
    return value if isinstance(value, (Layout, ComposedLayout)) else Layout(value)


def crd2idx(coord: Coordinate, shape: IntTuple, stride: IntTuple | None = None) -> Computed:
    """The offset of `coord` in the layout shape:stride, compact where no stride is given."""
    layout = Layout(shape) if stride is None else Layout(shape, stride)
    return layout(coord)


def idx2crd(index: Number, shape: IntTuple) -> Computed:
    """The coordinate, nested as `shape`, that counts to `index`, first mode fastest."""
    check_operators(index, "an index")
    leaves, weight, total = [], 1, product(int_tuple(shape, "shape", least=1))
    for n in flatten(shape):
        digit = divide(index, weight)
        leaves.append(0 if n == 1 else digit if weight * n == total else remainder(digit, n))
        weight *= n
    return like(shape, iter(leaves))


def slice_(layout: AnyLayout, *coord: Coordinate) -> ComposedLayout:
    """The layout of the modes whose coordinate is None, from the offset of the others, which may be traced."""
    whole = layout if isinstance(layout, ComposedLayout) else ComposedLayout(Swizzle(0, 0, 0), 0, plain(layout))
    kept: list[Layout] = []
    fixed = _slice(whole.layout, coordinate(coord), kept)
    check_bounds(whole.layout, fixed)
    rest = kept[0] if len(kept) == 1 else from_modes(kept or [Layout(1, 0)])
    return whole.starting_at(whole.layout.index(fixed), rest)


def _slice(layout: Layout, coord: Coordinate, kept: list[Layout]) -> Computed:
    """`coord` with 0 for None; the modes that it leaves open are added to `kept`."""
    if isinstance(coord, tuple) and len(coord) == layout.rank and isinstance(layout.shape, tuple):
        return tuple(_slice(mode, c, kept) for mode, c in zip(layout, coord, strict=True))
    if coord is None:
        kept.append(layout)
    return 0 if coord is None else coord


# ---- coalescing ----------------------------------------------------------------------------------------------------


def coalesced(flat: Iterable[tuple[int, int]]) -> Modes:
    """Without size-1 modes, neighbours joined where the second continues the first."""
    result: Modes = []
    for n, d in flat:
        if n == 1:
            continue
        if result and result[-1][0] * result[-1][1] == d:
            result[-1] = (result[-1][0] * n, result[-1][1])
        else:
            result.append((n, d))
    return result


def flat_layout(flat: Sequence[tuple[int, int]]) -> Layout:
    if len(flat) <= 1:
        return Layout(*(flat[0] if flat else (1, 0)))
    return Layout(tuple(n for n, _ in flat), tuple(d for _, d in flat))


def through_swizzle(operation: Callable[..., Layout], layout: L, *arguments: Any) -> L:
    """`operation` on a layout, or on the inner layout of a composed one."""
    if isinstance(layout, ComposedLayout):
        return replace(layout, layout=operation(layout.layout, *arguments))
    return operation(plain(layout), *arguments)


def plain(layout: Any) -> Layout:
    """`layout`, refused where it is none, or a swizzled one."""
    if isinstance(layout, Layout):
        return layout
    if isinstance(layout, ComposedLayout):
        raise refusal(f"{layout} is swizzled, which this does not take", "use its inner layout: layout.layout")
    raise refusal(f"a layout is needed; found {kind_of(layout)}", "write Layout(SHAPE, STRIDE)")


def coalesce(layout: L, profile: IntTuple | None = None) -> L:
    """The same function of the linear coordinate in as few modes as possible.

    With a tuple as profile, mode by mode, at each of its entries; modes past its end stay as they are.
    """
    return through_swizzle(_coalesce, layout, _profile(profile))


def _profile(profile: Any) -> Any:
    """A profile with tuples for lists."""
    if isinstance(profile, (tuple, list)):
        return tuple(map(_profile, profile))
    if profile is not None and not is_int(profile):
        raise refusal(
            f"a profile is nested ints; found {kind_of(profile)}", "write (1, 1) to coalesce each of two modes"
        )
    return profile


def _coalesce(layout: Layout, profile: IntTuple | None) -> Layout:
    if isinstance(profile, tuple):
        return by_mode(layout, profile, _coalesce)
    return flat_layout(coalesced(layout.flat()))


def filter_(layout: Layout) -> Layout:
    """Coalesced, without the modes that do not move the offset."""
    return flat_layout(coalesced((n, d) for n, d in plain(layout).flat() if d))


def nullspace(layout: Layout) -> Layout:
    """The linear coordinates that a layout maps to 0 through its stride-0 modes."""
    sizes = [n for n, _ in plain(layout).flat()]
    return flat_layout([(n, prod(sizes[:i])) for i, (n, d) in enumerate(layout.flat()) if d == 0 and n > 1])


def by_mode(layout: Layout, tiler: tuple[Any, ...], operation: Callable[[Layout, Any], Layout]) -> Layout:
    """`operation` of each mode and its entry of `tiler`; modes past its end stay as they are."""
    if len(tiler) > layout.rank:
        raise refusal(f"{len(tiler)} entries by mode meet {layout}, which has {layout.rank} modes")
    return from_modes([operation(m, t) for m, t in zip(layout, tiler, strict=False)] + list(layout)[len(tiler) :])


# ---- composition ---------------------------------------------------------------------------------------------------


def composition(a: Any, b: Any) -> Any:
    """R with R(c) = a(b(c)) for every c, its shape a refinement of b's; a tuple `b` composes mode by mode.

    Raises LayoutError where no layout has these values. A swizzle on the left gives a composed layout.
    """
    if isinstance(a, Swizzle):
        return _after_swizzle(a, b)
    if isinstance(b, (Swizzle, ComposedLayout)):
        raise refusal(
            f"{a} o {b}: a swizzle stands on the left, where it acts on offsets",
            "swizzle the offsets of the whole: composition(swizzle, composition(a, inner))",
        )
    return through_swizzle(_compose_any, a, b)


def _after_swizzle(swizzle: Swizzle, b: Any) -> Swizzle | ComposedLayout:
    if isinstance(b, Swizzle):
        return _joined(swizzle, b)
    if isinstance(b, ComposedLayout):
        return replace(b, swizzle=_joined(swizzle, b.swizzle))
    return ComposedLayout(swizzle, 0, Layout(b) if not isinstance(b, Layout) else b)


def _joined(a: Swizzle, b: Swizzle) -> Swizzle:
    """The swizzle that does b, then a."""
    source = a.source ^ b.source
    lowest = source & -source
    same_distance = a.shift == b.shift or 0 in (a.bits, b.bits)
    if not same_distance or a.source & b.target or source & (source + lowest):
        raise refusal(
            f"{a} o {b} is no single swizzle: their bits do not join into one run over one distance",
            "apply them one after the other to the offset",
        )
    shift = a.shift if a.bits else b.shift
    base = lowest.bit_length() - 1 - max(0, shift) if source else a.base
    return Swizzle(source.bit_count(), base, shift)


def _compose_any(a: Layout, b: Tiler) -> Layout:
    if b is None:
        return a
    if isinstance(b, tuple):
        return by_mode(a, b, _compose_any)
    return compose(a, b if isinstance(b, Layout) else Layout(b))  # type: ignore[arg-type]


def compose(a: Layout, b: Layout) -> Layout:
    """R(c) = a(b(c)): each mode of b by itself, then, where they might carry into each other, by all values."""
    source = _unbounded(a)
    steps = [_steps(source, n, d) for n, d in b.flat()]
    leaves = []
    for leaf, ((n, d), known) in enumerate(zip(b.flat(), steps, strict=True)):
        values = [(count, source[i][1] * step) for i, count, step in known] if known else _factored(a, n, d)
        if values is None:
            raise _not_a_mode(a, b, leaf)
        leaves.append(flat_layout(values))
    shape = like(b.shape, (leaf.shape for leaf in leaves))
    result = Layout(shape, like(b.shape, (leaf.stride for leaf in leaves)))
    if not _independent(source, steps):
        _check_values(a, b, result)
    return result


def _unbounded(layout: Layout) -> Modes:
    """Coalesced, but with the last mode kept even where its size is 1: it takes what lies past the end."""
    *others, (n, d) = layout.flat()
    result = coalesced(others)
    if result and result[-1][0] * result[-1][1] == d:
        size, d = result.pop()
        n *= size
    return [*result, (n, d)]


def _steps(source: Modes, n: int, d: int) -> list[tuple[int, int, int]] | None:
    """How n:d walks through the modes of `source`: (mode, count, step); None where the strides do not divide."""
    steps = []
    for i, (size, _) in enumerate(source[:-1]):
        if d and d % size == 0:  # passes over this mode
            d //= size
            continue
        if 0 <= (n - 1) * d < size:  # stays inside of this mode
            count = n
        elif d > 0 and size % d == 0 and n % (size // d) == 0:  # goes on to the next at the end of this one
            count = size // d
        else:
            return None
        if count > 1:
            steps.append((i, count, d))
        n, d = n // count, -(-d // size)
    return [*steps, (len(source) - 1, n, d)] if n > 1 or not steps else steps


def _factored(a: Layout, n: int, d: int) -> Modes | None:
    """The fewest modes with the values a(0), a(d), …, a((n - 1) * d), or None where there are none."""
    values = [a(d * c) for c in range(n)]
    result: Modes = []
    while len(values) > 1:
        step = values[1] - values[0]
        run = next((i for i, v in enumerate(values) if v != values[0] + i * step), len(values))
        starts = values[::run]
        if len(values) % run or values != [start + i * step for start in starts for i in range(run)]:
            return None
        result.append((run, step))
        values = starts
    return result


def _independent(source: Modes, steps: list[list[tuple[int, int, int]] | None]) -> bool:
    """Whether the modes of b together carry in no mode of `source`, so that their values add up."""
    reach = [0] * len(source)
    for known in steps:
        if known is None:
            return False
        for i, count, step in known:
            reach[i] += (count - 1) * step
    return all(r < size for r, (size, _) in zip(reach[:-1], source, strict=False))


def _check_values(a: Layout, b: Layout, result: Layout) -> None:
    for i, (offset, value) in enumerate(zip(b.offsets(), result.offsets(), strict=True)):
        if a(offset) != value:
            coord = idx2crd(i, b.shape)
            moving = max(leaf for leaf, c in enumerate(flatten(coord)) if c)
            raise refusal(
                f"{a} o {b} is no layout: {mode_name(b.shape, moving)} of the right layout carries into another: "
                f"at {show(coord)} the left layout gives {a(offset)}, where its modes add up to {value}",
                "compose with modes whose strides divide the left layout's shape",
            )


def _not_a_mode(a: Layout, b: Layout, leaf: int) -> Exception:
    n, d = b.flat()[leaf]
    values = ", ".join(str(a(d * c)) for c in islice(range(n), 8)) + (", …" if n > 8 else "")
    return refusal(
        f"{a} o {b} is no layout: {mode_name(b.shape, leaf)} of the right layout, {n}:{d}, reads the offsets {values}",
        f"give it a stride and a size that divide the left layout's shape {show(a.shape)}",
    )


# ---- complement and inverses ---------------------------------------------------------------------------------------


def complement(layout: Layout, cotarget: IntTuple | None = None) -> Layout:
    """The offsets that `layout` leaves out of each block: together they reach all below `cotarget` once.

    `cotarget` is a size or a shape, by default the layout's cosize. Raises LayoutError where the modes overlap, run
    backwards or leave a ragged gap.
    """
    target = plain(layout).cosize if cotarget is None else _cotarget(cotarget)
    gaps, covered = _gaps(layout, ragged=False)
    return flat_layout(coalesced([*gaps, (-(-target // covered), covered)]))


def repetitions(layout: Layout, count: int) -> Layout:
    """Where `layout` may stand `count` times without overlap; the rest of a ragged gap stays unused.

    Rows of 32 elements at a pitch of 33 are repeated behind the last of them, as CuTe's products do.
    """
    gaps, covered = _gaps(layout, ragged=True)
    return flat_layout(coalesced([*gaps, (-(-count // prod(n for n, _ in gaps)), covered)]))


def _gaps(layout: Layout, ragged: bool) -> tuple[Modes, int]:
    """How often the modes of a layout fit between each other, each with its stride, and the end of the last one."""
    _check_forwards(plain(layout), "complement")
    gaps: Modes = []
    covered = 1
    for n, d in _by_stride(layout):
        if d < covered or (d % covered and not ragged):
            raise _no_complement(layout, n, d, covered)
        gaps.append((d // covered, covered))
        covered = n * d
    return gaps, covered


def _cotarget(value: IntTuple) -> int:
    name = "the cotarget of a complement"
    if not isinstance(value, (tuple, list)):
        check_int(value, name, least=1)
        return value
    return product(int_tuple(value, name.removeprefix("the "), least=1))


def _check_forwards(layout: Layout, operation: str) -> None:
    """Refuse a mode that runs backwards."""
    for n, d in layout.flat():
        if n > 1 and d < 0:
            raise refusal(
                f"{layout} has no {operation}: the mode {n}:{d} has a negative stride",
                f"count this mode the other way: {n}:{-d}, from its last element on",
            )


def _by_stride(layout: Layout) -> Modes:
    return sorted(((n, d) for n, d in plain(layout).flat() if n > 1 and d), key=lambda mode: mode[1])


def _no_complement(layout: Layout, n: int, d: int, covered: int) -> Exception:
    where = "starts inside of" if d < covered else "is no whole multiple of"
    return refusal(
        f"{layout} has no complement: the mode {n}:{d} {where} the block of {covered} that the modes below it take up",
        f"give this mode a stride that is a multiple of {covered}",
    )


@overload
def right_inverse(layout: Layout) -> Layout: ...
@overload
def right_inverse(layout: ComposedLayout) -> InverseLayout: ...
def right_inverse(layout: AnyLayout) -> Layout | InverseLayout:
    """R with layout(R(i)) = i for all i below R's size: as far as the offsets have no gap.

    That of a swizzled layout takes the swizzle back first; it starts at offset 0.
    """
    if isinstance(layout, ComposedLayout):
        if layout.constant_offset():
            raise refusal(
                f"{layout} has no right inverse: nothing lies below its offset {layout.offset}",
                "take the inverse of the layout from offset 0 on",
            )
        return InverseLayout(right_inverse(layout.layout), 0, layout.swizzle)
    weights = _weights(layout)
    result, covered = [], 1
    for n, d, weight in sorted(weights, key=lambda mode: mode[1]):
        if d != covered:
            break
        result.append((n, weight))
        covered *= n
    return flat_layout(coalesced(result))


@overload
def left_inverse(layout: Layout) -> Layout: ...
@overload
def left_inverse(layout: ComposedLayout) -> InverseLayout: ...
def left_inverse(layout: AnyLayout) -> Layout | InverseLayout:
    """R with R(layout(i)) = i where the layout is injective, and layout(R(layout(i))) = layout(i) for all.

    That of a swizzled layout takes the swizzle back first. Raises LayoutError where two modes overlap, a stride is
    negative or no multiple of the one below it.
    """
    if isinstance(layout, ComposedLayout):
        return InverseLayout(left_inverse(layout.layout), layout.constant_offset(), layout.swizzle)
    _check_forwards(plain(layout), "left inverse")
    ordered = sorted(_weights(layout), key=lambda mode: mode[1])
    result, below = [], (1, 1, 0)
    for n, d, weight in ordered:
        if d < below[0] * below[1] or d % below[1]:
            raise refusal(
                f"{layout} has no left inverse: the mode {n}:{d} does not stand on whole multiples of the mode "
                f"{below[0]}:{below[1]} below it"
            )
        result.append((d // below[1], below[2]))
        below = (n, d, weight)
    return flat_layout(coalesced([*result, (below[0], below[2])]))


def _weights(layout: Layout) -> list[tuple[int, int, int]]:
    """(size, stride, weight in the linear coordinate) of each mode that moves the offset."""
    weighted, weight = [], 1
    for n, d in plain(layout).flat():
        if n > 1 and d:
            weighted.append((n, d, weight))
        weight *= n
    return weighted
