"""Recast layouts to wider or narrower elements of the same memory."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ptxdsl.layout.algebra import L, coalesced, compose, flat_layout, plain, right_inverse
from ptxdsl.layout.index import Index, is_power_of_two
from ptxdsl.layout.layout import Layout, check_bounds
from ptxdsl.layout.number import Coordinate
from ptxdsl.layout.shape import check_int, like, map_leaves, mode_name, refusal
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start, Swizzle


def recast(layout: L, from_bits: int, to_bits: int) -> L:
    """Return the layout of the same memory in elements of another width: `upcast` or `downcast` by the ratio of the
    widths.

    A wider element is included if it contains any of the original elements. Raises LayoutError if no layout of the same
    nesting visits each element once.
    """
    for bits in (from_bits, to_bits):
        check_int(bits, "the width of an element in bits", least=1)
    if to_bits % from_bits == 0:
        return upcast(layout, to_bits // from_bits)
    if from_bits % to_bits == 0:
        return downcast(layout, from_bits // to_bits)
    common = gcd(from_bits, to_bits)
    raise refusal(
        f"{from_bits}-bit elements do not recast to {to_bits} bits: neither width divides the other",
        f"recast through {common} bits: recast(recast(layout, {from_bits}, {common}), {common}, {to_bits})",
    )


def upcast(layout: L, factor: int) -> L:
    """Return the layout in elements `factor` times as wide, each made of `factor` contiguous elements.

    A mode whose stride is a multiple of `factor` keeps its size; gaps between its elements become part of the wider
    elements. One mode may have a smaller stride; its size is reduced. Raises LayoutError if no layout describes the
    wider elements.
    """
    check_int(factor, "the factor of an upcast", least=1)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, Start) or layout.offset % factor:
            raise refusal(f"{layout} does not start on a multiple of {factor} elements")
        swizzle = _narrowed(layout.swizzle, factor)
        return replace(layout, swizzle=swizzle, offset=layout.offset // factor, layout=upcast(layout.layout, factor))
    flat = [_upcast_mode(layout, leaf, factor) for leaf in range(len(layout.flat()))]
    inside = [leaf for leaf, (n, d) in enumerate(layout.flat()) if n > 1 and d % factor]
    if len(inside) > 1:
        raise _upcast_together(layout, factor, inside)
    return Layout(like(layout.shape, (n for n, _ in flat)), like(layout.shape, (d for _, d in flat)))


def _upcast_mode(layout: Layout, leaf: int, factor: int) -> tuple[int, int]:
    n, d = layout.flat()[leaf]
    if d % factor == 0:
        return n, d // factor
    if n == 1:
        return n, -(-d // factor)
    if d < 0 or factor % d or n % (factor // d):
        raise refusal(
            f"{layout} cannot be upcast by {factor}: {mode_name(layout.shape, leaf)}, {n}:{d}, splits the wider "
            "elements",
            f"give the mode a stride that is a multiple of {factor}, or a size that fills whole elements",
        )
    return n // (factor // d), 1


def _upcast_together(layout: Layout, factor: int, leaves: list[int]) -> Exception:
    flat = layout.flat()
    named = [f"{mode_name(layout.shape, leaf)}, {flat[leaf][0]}:{flat[leaf][1]}" for leaf in leaves]
    return refusal(
        f"{layout} cannot be upcast by {factor}: {', and '.join(named)}, step inside the same wider elements",
        f"give all but one of these modes a stride that is a multiple of {factor}",
    )


def _narrowed(swizzle: Swizzle, factor: int) -> Swizzle:
    """Return the swizzle on offsets of wider elements; bits inside one wider element are dropped."""
    base = swizzle.base - (factor.bit_length() - 1)
    if base < 0 and swizzle.shift < 0 and swizzle.bits:
        raise refusal(f"{swizzle} permutes elements inside the wider elements of {factor}, and would split them")
    return Swizzle(max(0, swizzle.bits + min(0, base)), max(0, base), swizzle.shift)


def downcast(layout: L, factor: int) -> L:
    """Return the layout in elements 1/`factor` as wide, which are contiguous inside each original element.

    The mode of stride 1 grows by `factor`: the first one with several elements, otherwise the first one. Raises
    LayoutError if no mode has stride 1.
    """
    check_int(factor, "the factor of a downcast", least=1)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, Start):
            raise refusal(f"{layout} starts at a traced offset: downcast before slicing")
        swizzle = layout.swizzle.scaled(factor)
        return replace(layout, swizzle=swizzle, offset=layout.offset * factor, layout=downcast(layout.layout, factor))
    flat = layout.flat()
    unit = [leaf for leaf, (_, d) in enumerate(flat) if d == 1]
    if not unit and factor > 1:
        raise _no_pieces(layout, factor)
    longer = max(unit, key=lambda leaf: flat[leaf][0] > 1, default=None)
    leaves = [(n * factor, d) if leaf == longer else (n, d * factor) for leaf, (n, d) in enumerate(flat)]
    return Layout(like(layout.shape, (n for n, _ in leaves)), like(layout.shape, (d for _, d in leaves)))


def _no_pieces(layout: Layout, factor: int) -> Exception:
    backwards = next((leaf for leaf, (n, d) in enumerate(layout.flat()) if d == -1 and n > 1), None)
    where = "" if backwards is None else f": {mode_name(layout.shape, backwards)} runs backwards"
    wider = (1, layout.shape), (1, layout.stride)
    return refusal(
        f"{layout} has no mode of stride 1 to extend by the {factor} parts of each element{where}",
        f"add a mode of size 1: {Layout(*wider)}",
    )


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """Return the longest run of coordinates from 0 that is contiguous in both layouts."""
    inverse = right_inverse(b)
    common = coalesced(compose(plain(a), inverse).flat()) or [(1, 0)]
    return flat_layout(coalesced(compose(inverse, Layout(common[0][0])).flat() if common[0][1] == 1 else []))


def max_common_vector(a: Layout, b: Layout) -> int:
    """Return the largest number of elements that can be copied from `a` to `b` as one vector."""
    return max_common_layout(a, b).size


def scaled(layout: L, factor: int) -> L:
    """Multiply every offset by `factor`, for example to convert elements to bytes."""
    if isinstance(layout, Layout):
        return Layout(layout.shape, map_leaves(lambda d: d * factor, layout.stride))
    if not is_power_of_two(factor):
        raise refusal(f"{layout} swizzles bits of the offset, and multiplying by {factor} does not shift these bits")
    inner, offset = scaled(layout.layout, factor), layout.offset
    offset = Start(offset[0].times(factor), offset[1] * factor) if isinstance(offset, Start) else offset * factor
    return replace(layout, swizzle=layout.swizzle.scaled(factor), offset=offset, layout=inner)


def in_bytes(layout: L, element_bytes: int) -> L:
    """Return `layout` with offsets in bytes."""
    check_int(element_bytes, "the size of an element in bytes", least=1)
    return scaled(layout, element_bytes)


def byte_index(layout: AnyLayout, coord: Coordinate, element_bytes: int) -> Index:
    """Return the byte offset of a coordinate with its constant part separate, for an immediate of the instruction.

    Raises LayoutError for a constant coordinate out of bounds; a traced coordinate is assumed to be in bounds.
    """
    check_bounds(layout, coord)
    return in_bytes(layout, element_bytes).index(coord)
