"""CuTe's layout algebra on static layouts. Results are exact; an operation without an exact result raises LayoutError
and names the mode.

Operations on a composed layout act on its inner layout, since the swizzle applies to the final offsets.
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

Modes: TypeAlias = list[tuple[int, int]]  # flattened: (size, stride) of each mode
Tiler: TypeAlias = "AnyLayout | int | tuple[Tiler, ...] | None"
L = TypeVar("L", Layout, ComposedLayout, AnyLayout)


def size(layout: AnyLayout | IntTuple) -> int:
    """The number of coordinates of a layout or shape."""
    return as_layout(layout).size


def cosize(layout: AnyLayout) -> int:
    """The number of elements an array needs to hold every offset."""
    return as_layout(layout).cosize


def rank(layout: AnyLayout | IntTuple) -> int:
    """The number of top-level modes of a layout or shape."""
    return as_layout(layout).rank


def depth(layout: AnyLayout | IntTuple) -> int:
    """The nesting depth of the shape: 0 for an int, 1 for a flat tuple."""
    return as_layout(layout).depth


def as_layout(value: Any) -> Layout | ComposedLayout:
    """Return a layout unchanged, and a shape as its compact layout."""
    return value if isinstance(value, (Layout, ComposedLayout)) else Layout(value)


def crd2idx(coord: Coordinate, shape: IntTuple, stride: IntTuple | None = None) -> Computed:
    """Return the offset of `coord` in the layout shape:stride; without a stride the layout is compact.

    Raises LayoutError if the arguments are swapped: if the coordinate is outside of the shape in every mode.
    """
    if isinstance(coord, Layout | ComposedLayout) or isinstance(shape, Layout | ComposedLayout):
        layout, other = (coord, shape) if isinstance(coord, Layout | ComposedLayout) else (shape, coord)
        raise refusal(
            f"crd2idx takes a coordinate, a shape and a stride; found the layout {layout}",
            f"call the layout: `layout({other})`",
        )
    if stride is None and _are_swapped(coord, shape):
        raise refusal(
            f"the coordinate {coord} is outside of the shape {shape} in every mode",
            f"the coordinate comes first: crd2idx({shape}, {coord})",
        )
    layout = Layout(shape) if stride is None else Layout(shape, stride)
    return layout(coord)


def _are_swapped(coord: Coordinate, shape: IntTuple) -> bool:
    """True if all modes of a known coordinate are outside of the shape, and the shape would be one of it."""
    pair = flatten(coord), flatten(shape)
    known = len(pair[0]) == len(pair[1]) and all(isinstance(n, int) for part in pair for n in part)
    return known and all(n >= extent > 0 for n, extent in zip(*pair, strict=True)) and coord != shape


def idx2crd(index: Number, shape: IntTuple) -> Computed:
    """Return the coordinate, nested like `shape`, with the linear index `index` (first mode fastest)."""
    check_operators(index, "an index")
    leaves, weight, total = [], 1, product(int_tuple(shape, "shape", least=1))
    for n in flatten(shape):
        digit = divide(index, weight)
        leaves.append(0 if n == 1 else digit if weight * n == total else remainder(digit, n))
        weight *= n
    return like(shape, iter(leaves))


def slice_(layout: AnyLayout, *coord: Coordinate) -> ComposedLayout:
    """Return the layout of the modes whose coordinate is None, starting at the offset of the other coordinates.

    The other coordinates may be traced values.
    """
    whole = layout if isinstance(layout, ComposedLayout) else ComposedLayout(Swizzle(0, 0, 0), 0, plain(layout))
    kept: list[Layout] = []
    fixed = _slice(whole.layout, coordinate(coord), kept)
    check_bounds(whole.layout, fixed)
    rest = kept[0] if len(kept) == 1 else from_modes(kept or [Layout(1, 0)])
    return whole.starting_at(whole.layout.index(fixed), rest)


def _slice(layout: Layout, coord: Coordinate, kept: list[Layout]) -> Computed:
    """Return `coord` with None replaced by 0, and append the modes it leaves open to `kept`."""
    if isinstance(coord, tuple) and len(coord) == layout.rank and isinstance(layout.shape, tuple):
        return tuple(_slice(mode, c, kept) for mode, c in zip(layout, coord, strict=True))
    if coord is None:
        kept.append(layout)
    return 0 if coord is None else coord


# ---- coalescing ----------------------------------------------------------------------------------------------------


def coalesced(flat: Iterable[tuple[int, int]]) -> Modes:
    """Drop size-1 modes and merge each mode with the next where their strides are contiguous."""
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
    """Apply `operation` to a layout, or to the inner layout of a composed one."""
    if isinstance(layout, ComposedLayout):
        return replace(layout, layout=operation(layout.layout, *arguments))
    return operation(plain(layout), *arguments)


def plain(layout: Any) -> Layout:
    """Return `layout` if it is a Layout; raise LayoutError for a swizzled layout or anything else."""
    if isinstance(layout, Layout):
        return layout
    if isinstance(layout, ComposedLayout):
        raise refusal(
            f"this operation takes a layout without a swizzle; found {layout}", "use its inner layout: layout.layout"
        )
    raise refusal(f"expected a layout; found {kind_of(layout)}", "write Layout(SHAPE, STRIDE)")


def coalesce(layout: L, profile: IntTuple | None = None) -> L:
    """Return the same function of the linear coordinate with as few modes as possible.

    With a tuple as `profile`, coalesce mode by mode, one mode for each entry; modes past the end of the profile are
    unchanged.
    """
    return through_swizzle(_coalesce, layout, _profile(profile))


def _profile(profile: Any) -> Any:
    """Return a profile with its lists converted to tuples."""
    if isinstance(profile, (tuple, list)):
        return tuple(map(_profile, profile))
    if profile is not None and not is_int(profile):
        raise refusal(
            f"a profile must be an int or a nested tuple of ints; found {kind_of(profile)}",
            "write (1, 1) to coalesce each of two modes",
        )
    return profile


def _coalesce(layout: Layout, profile: IntTuple | None) -> Layout:
    if isinstance(profile, tuple):
        return by_mode(layout, profile, _coalesce)
    return flat_layout(coalesced(layout.flat()))


def filter_(layout: Layout) -> Layout:
    """Coalesce the layout and drop its stride-0 modes."""
    return flat_layout(coalesced((n, d) for n, d in plain(layout).flat() if d))


def nullspace(layout: Layout) -> Layout:
    """Return the linear coordinates that a layout maps to 0 through its stride-0 modes."""
    sizes = [n for n, _ in plain(layout).flat()]
    return flat_layout([(n, prod(sizes[:i])) for i, (n, d) in enumerate(layout.flat()) if d == 0 and n > 1])


def by_mode(layout: Layout, tiler: tuple[Any, ...], operation: Callable[[Layout, Any], Layout]) -> Layout:
    """Apply `operation` to each mode and its entry of `tiler`; modes past the end of `tiler` are unchanged."""
    if len(tiler) > layout.rank:
        raise refusal(
            f"{len(tiler)} entries, one for each mode, were given for {layout}, which has {layout.rank} modes"
        )
    return from_modes([operation(m, t) for m, t in zip(layout, tiler, strict=False)] + list(layout)[len(tiler) :])


# ---- composition ---------------------------------------------------------------------------------------------------


def composition(a: Any, b: Any) -> Any:
    """Return R with R(c) = a(b(c)) for every c; R's shape refines b's. A tuple `b` composes mode by mode.

    A swizzle on the left gives a composed layout. Raises LayoutError if no layout has these values.
    """
    if isinstance(a, Swizzle):
        return _after_swizzle(a, b)
    if isinstance(b, (Swizzle, ComposedLayout)):
        raise refusal(
            f"{a} o {b} has its swizzle on the right; a swizzle maps offsets, so it must be on the left",
            "swizzle the final offsets: composition(swizzle, composition(a, inner))",
        )
    return through_swizzle(_compose_any, a, b)


def _after_swizzle(swizzle: Swizzle, b: Any) -> Swizzle | ComposedLayout:
    if isinstance(b, Swizzle):
        return _joined(swizzle, b)
    if isinstance(b, ComposedLayout):
        return replace(b, swizzle=_joined(swizzle, b.swizzle))
    return ComposedLayout(swizzle, 0, Layout(b) if not isinstance(b, Layout) else b)


def _joined(a: Swizzle, b: Swizzle) -> Swizzle:
    """Return the swizzle that applies b, then a."""
    source = a.source ^ b.source
    lowest = source & -source
    same_distance = a.shift == b.shift or 0 in (a.bits, b.bits)
    if not same_distance or a.source & b.target or source & (source + lowest):
        raise refusal(
            f"{a} o {b} is not a single swizzle: the combined bits must be contiguous and have one shift",
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
    """Compose each mode of b separately, then compare all values if modes of b may carry into each other."""
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
    """Coalesce the layout but keep its last mode, even of size 1, because coordinates past the end extend it."""
    *others, (n, d) = layout.flat()
    result = coalesced(others)
    if result and result[-1][0] * result[-1][1] == d:
        size, d = result.pop()
        n *= size
    return [*result, (n, d)]


def _steps(source: Modes, n: int, d: int) -> list[tuple[int, int, int]] | None:
    """Return how n:d steps through the modes of `source` as (mode, count, step); None if the strides do not divide."""
    steps = []
    for i, (size, _) in enumerate(source[:-1]):
        if d and d % size == 0:  # skips this mode
            d //= size
            continue
        if 0 <= (n - 1) * d < size:  # stays inside this mode
            count = n
        elif d > 0 and size % d == 0 and n % (size // d) == 0:  # fills this mode and continues in the next
            count = size // d
        else:
            return None
        if count > 1:
            steps.append((i, count, d))
        n, d = n // count, -(-d // size)
    return [*steps, (len(source) - 1, n, d)] if n > 1 or not steps else steps


def _factored(a: Layout, n: int, d: int) -> Modes | None:
    """Return the fewest modes with the values a(0), a(d), …, a((n - 1) * d), or None if no modes have these values."""
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
    """True if the modes of b together carry in no mode of `source`, so that their values add up."""
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
                f"{a} o {b} is not a layout: {mode_name(b.shape, moving)} of the right layout carries into another "
                f"mode: at {show(coord)} the left layout gives {a(offset)}, but the composed modes add up to {value}",
                "use modes on the right whose strides divide the left layout's shape",
            )


def _not_a_mode(a: Layout, b: Layout, leaf: int) -> Exception:
    n, d = b.flat()[leaf]
    values = ", ".join(str(a(d * c)) for c in islice(range(n), 8)) + (", …" if n > 8 else "")
    return refusal(
        f"{a} o {b} is not a layout: {mode_name(b.shape, leaf)} of the right layout, {n}:{d}, selects the offsets "
        f"{values}",
        f"choose a stride and a size that divide the left layout's shape {show(a.shape)}",
    )


# ---- complement and inverses ---------------------------------------------------------------------------------------


def complement(layout: Layout, cotarget: IntTuple | None = None) -> Layout:
    """Return a layout of the offsets that `layout` leaves free: together they cover 0 to `cotarget` once.

    `cotarget` is a size or a shape; the default is the layout's cosize. Raises LayoutError if modes overlap, have a
    negative stride, or leave a gap that is not a multiple of the modes below.
    """
    target = plain(layout).cosize if cotarget is None else _cotarget(cotarget)
    gaps, covered = _gaps(layout, ragged=False)
    return flat_layout(coalesced([*gaps, (-(-target // covered), covered)]))


def repetitions(layout: Layout, count: int) -> Layout:
    """Return the start offsets of `count` copies of `layout` that do not overlap.

    If a gap does not fit a whole number of copies, its remainder stays unused: rows of 32 elements at a pitch of 33 are
    repeated after the last row, as in CuTe's products.
    """
    gaps, covered = _gaps(layout, ragged=True)
    return flat_layout(coalesced([*gaps, (-(-count // prod(n for n, _ in gaps)), covered)]))


def _gaps(layout: Layout, ragged: bool) -> tuple[Modes, int]:
    """Return, for each gap between the modes, how many copies fit and their stride; and the end of the last mode."""
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
    """Raise LayoutError for a mode with a negative stride."""
    for n, d in layout.flat():
        if n > 1 and d < 0:
            raise refusal(
                f"{layout} has no {operation}: the mode {n}:{d} has a negative stride",
                f"reverse this mode: use {n}:{-d} and start at its last element",
            )


def _by_stride(layout: Layout) -> Modes:
    return sorted(((n, d) for n, d in plain(layout).flat() if n > 1 and d), key=lambda mode: mode[1])


def _no_complement(layout: Layout, n: int, d: int, covered: int) -> Exception:
    where = "starts inside" if d < covered else "is not a multiple of"
    return refusal(
        f"{layout} has no complement: the mode {n}:{d} {where} the block of {covered} elements that the modes below "
        "it cover",
        f"give this mode a stride that is a multiple of {covered}",
    )


@overload
def right_inverse(layout: Layout) -> Layout: ...
@overload
def right_inverse(layout: ComposedLayout) -> InverseLayout: ...
def right_inverse(layout: AnyLayout) -> Layout | InverseLayout:
    """Return R with layout(R(i)) = i for all i below R's size, which is the first gap of the offsets.

    The inverse of a swizzled layout undoes the swizzle first; such a layout must start at offset 0.
    """
    if isinstance(layout, ComposedLayout):
        if layout.constant_offset():
            raise refusal(
                f"{layout} has no right inverse: no coordinate maps below its offset {layout.offset}",
                "invert the layout without its offset",
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
    """Return R with R(layout(i)) = i if the layout is injective, and layout(R(layout(i))) = layout(i) in any case.

    The inverse of a swizzled layout undoes the swizzle first. Raises LayoutError if two modes overlap, or if a stride
    is negative or not a multiple of the next smaller stride.
    """
    if isinstance(layout, ComposedLayout):
        return InverseLayout(left_inverse(layout.layout), layout.constant_offset(), layout.swizzle)
    _check_forwards(plain(layout), "left inverse")
    ordered = sorted(_weights(layout), key=lambda mode: mode[1])
    result, below = [], (1, 1, 0)
    for n, d, weight in ordered:
        if d < below[0] * below[1] or d % below[1]:
            raise refusal(
                f"{layout} has no left inverse: the mode {n}:{d} overlaps the mode {below[0]}:{below[1]}, or its "
                "stride is not a multiple of that mode's stride"
            )
        result.append((d // below[1], below[2]))
        below = (n, d, weight)
    return flat_layout(coalesced([*result, (below[0], below[2])]))


def _weights(layout: Layout) -> list[tuple[int, int, int]]:
    """Return (size, stride, weight in the linear coordinate) of each mode with a nonzero stride."""
    weighted, weight = [], 1
    for n, d in plain(layout).flat():
        if n > 1 and d:
            weighted.append((n, d, weight))
        weight *= n
    return weighted
