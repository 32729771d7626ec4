"""Layouts of the same memory in wider or narrower elements."""

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
    """The layout of the same memory in elements of another width: `upcast` or `downcast` by the ratio of the widths.

    Of wider elements those that hold any of the present ones, with what else lies in them. Raises LayoutError where no
    layout of the same nesting has them all once.
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
        f"go by way of {common} bits: recast(recast(layout, {from_bits}, {common}), {common}, {to_bits})",
    )


def upcast(layout: L, factor: int) -> L:
    """The layout in elements `factor` times as wide, each made of `factor` neighbours in memory.

    A mode that steps over whole ones keeps its size: where it leaves gaps, the wider elements take them in. One mode
    may step inside of them, and loses size. Raises LayoutError where the wider elements are none of a layout.
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
            f"{layout} has no wider elements of {factor}: {mode_name(layout.shape, leaf)}, {n}:{d}, cuts through them",
            f"give the mode a stride that is a multiple of {factor}, or a size that fills whole elements",
        )
    return n // (factor // d), 1


def _upcast_together(layout: Layout, factor: int, leaves: list[int]) -> Exception:
    flat = layout.flat()
    named = [f"{mode_name(layout.shape, leaf)}, {flat[leaf][0]}:{flat[leaf][1]}" for leaf in leaves]
    return refusal(
        f"{layout} has no wider elements of {factor}: {', and '.join(named)}, step inside of the same ones",
        f"give all of these modes but one a stride that is a multiple of {factor}",
    )


def _narrowed(swizzle: Swizzle, factor: int) -> Swizzle:
    """Of offsets in wider elements: bits inside of one element vanish."""
    base = swizzle.base - (factor.bit_length() - 1)
    if base < 0 and swizzle.shift < 0 and swizzle.bits:
        raise refusal(
            f"{swizzle} moves elements by their place within the wider ones of {factor}, and tears these apart"
        )
    return Swizzle(max(0, swizzle.bits + min(0, base)), max(0, base), swizzle.shift)


def downcast(layout: L, factor: int) -> L:
    """The layout in elements that are pieces of 1/`factor` of the present ones, side by side in memory.

    The pieces make the mode of stride 1 longer: the first that has several elements, else the first. Raises LayoutError
    where there is none.
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
        f"{layout} has no mode of stride 1, which {factor} pieces of each element would make longer{where}",
        f"add one of a single element: {Layout(*wider)}",
    )


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """The longest run of coordinates from 0 on that is contiguous in both layouts at once."""
    inverse = right_inverse(b)
    common = coalesced(compose(plain(a), inverse).flat()) or [(1, 0)]
    return flat_layout(coalesced(compose(inverse, Layout(common[0][0])).flat() if common[0][1] == 1 else []))


def max_common_vector(a: Layout, b: Layout) -> int:
    """How many elements may be copied from `a` to `b` as one vector."""
    return max_common_layout(a, b).size


def scaled(layout: L, factor: int) -> L:
    """The same coordinates with every offset times `factor`: from elements to bytes, for one."""
    if isinstance(layout, Layout):
        return Layout(layout.shape, map_leaves(lambda d: d * factor, layout.stride))
    if not is_power_of_two(factor):
        raise refusal(f"{layout} swizzles the bits of an offset; {factor} times it is no shift of these bits")
    inner, offset = scaled(layout.layout, factor), layout.offset
    offset = Start(offset[0].times(factor), offset[1] * factor) if isinstance(offset, Start) else offset * factor
    return replace(layout, swizzle=layout.swizzle.scaled(factor), offset=offset, layout=inner)


def in_bytes(layout: L, element_bytes: int) -> L:
    """`layout` with offsets in bytes."""
    check_int(element_bytes, "the size of an element in bytes", least=1)
    return scaled(layout, element_bytes)


def byte_index(layout: AnyLayout, coord: Coordinate, element_bytes: int) -> Index:
    """The byte offset of a coordinate, its constant part kept apart for the instruction's immediate.

    Raises LayoutError for a constant coordinate outside of the shape; a traced one is taken to be inside.
    """
    check_bounds(layout, coord)
    return in_bytes(layout, element_bytes).index(coord)
