"""Layouts of the same memory in wider or narrower elements."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from ptxdsl.layout.algebra import L, coalesced, compose, flat_layout, plain, right_inverse
from ptxdsl.layout.index import Index, is_power_of_two
from ptxdsl.layout.layout import Layout, check_bounds
from ptxdsl.layout.shape import check_int, like, map_leaves, mode_name, refusal
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start, Swizzle


def recast(layout: L, from_bits: int, to_bits: int) -> L:
    """The layout of the same memory in elements of another width."""
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
    """The layout in elements `factor` times as wide, each made of `factor` neighbours in memory."""
    check_int(factor, "the factor of an upcast", least=1)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, Start) or layout.offset % factor:
            raise refusal(f"{layout} does not start on a multiple of {factor} elements")
        swizzle = _narrowed(layout.swizzle, factor)
        return replace(layout, swizzle=swizzle, offset=layout.offset // factor, layout=upcast(layout.layout, factor))
    flat = [_upcast_mode(layout, leaf, factor) for leaf in range(len(layout.flat()))]
    return Layout(like(layout.shape, (n for n, _ in flat)), like(layout.shape, (d for _, d in flat)))


def _upcast_mode(layout: Layout, leaf: int, factor: int) -> tuple[int, int]:
    n, d = layout.flat()[leaf]
    if d % factor == 0:
        return n, d // factor
    joined = factor // abs(d)
    if factor % d or n % joined:
        raise refusal(
            f"{layout} has no wider elements of {factor}: {mode_name(layout.shape, leaf)}, {n}:{d}, cuts through them",
            f"give the mode a stride that is a multiple of {factor}, or a size that fills whole elements",
        )
    return n // joined, 1 if d > 0 else -1


def _narrowed(swizzle: Swizzle, factor: int) -> Swizzle:
    """Of offsets in wider elements: bits inside of one element vanish."""
    base = swizzle.base - (factor.bit_length() - 1)
    if base < 0 and swizzle.shift < 0 and swizzle.bits:
        raise refusal(
            f"{swizzle} moves elements by their place within the wider ones of {factor}, and tears these apart"
        )
    return Swizzle(max(0, swizzle.bits + min(0, base)), max(0, base), swizzle.shift)


def downcast(layout: L, factor: int) -> L:
    """The layout in elements that are pieces of 1/`factor` of the present ones, side by side in memory."""
    check_int(factor, "the factor of a downcast", least=1)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, Start):
            raise refusal(f"{layout} starts at a traced offset: downcast before slicing")
        swizzle = layout.swizzle.scaled(factor)
        return replace(layout, swizzle=swizzle, offset=layout.offset * factor, layout=downcast(layout.layout, factor))
    flat = [(n * factor, d) if abs(d) == 1 else (n, d * factor) for n, d in layout.flat()]
    return Layout(like(layout.shape, (n for n, _ in flat)), like(layout.shape, (d for _, d in flat)))


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


def byte_index(layout: AnyLayout, coord: Any, element_bytes: int) -> Index:
    """The byte offset of a coordinate, its constant part kept apart for the instruction's immediate.

    Raises LayoutError for a constant coordinate outside of the shape; a traced one is taken to be inside.
    """
    check_bounds(layout, coord)
    return in_bytes(layout, element_bytes).index(coord)
