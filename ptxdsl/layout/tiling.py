"""Divides and products: split layouts into tiles, and build layouts by repeating blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxdsl.layout.algebra import L, Tiler, as_layout, by_mode, complement, compose, plain, repetitions, through_swizzle
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.shape import IntTuple, int_tuple, is_int, modes, product, refusal, show
from ptxdsl.layout.swizzle import ComposedLayout


def logical_divide(layout: L, tiler: Tiler) -> L:
    """Return (tile, rest): the elements that `tiler` selects, and the repetition of the tile. A tuple divides mode by
    mode.

    Tiles are whole: if they do not divide the layout, the last one extends past its end, so that Layout(10) divided by
    4 has the 12 coordinates of (4,3).
    """
    return through_swizzle(_divide, layout, tiler)


def zipped_divide(layout: L, tiler: Tiler) -> L:
    """Divide, and group the result as ((tiles of all modes), (rests of all modes))."""
    return through_swizzle(_zipped_divide, layout, tiler)


def tiled_divide(layout: L, tiler: Tiler) -> L:
    """Divide, and group the result as ((tiles of all modes), rest of mode 0, rest of mode 1, …)."""
    return through_swizzle(lambda inner: _opened(_zipped_divide(inner, tiler), 1), layout)


def flat_divide(layout: L, tiler: Tiler) -> L:
    """Divide, and group the result as (tile of mode 0, tile of mode 1, …, rest of mode 0, rest of mode 1, …)."""
    return through_swizzle(lambda inner: _opened(_zipped_divide(inner, tiler), 0, 1), layout)


def logical_product(block: Layout, tiler: Tiler) -> Layout:
    """Return (block, tile): `block` repeated at the positions that `tiler` numbers. A tuple multiplies mode by mode.

    The positions are the offsets that the block leaves free, starting at the block itself; a padded block is repeated
    after its padding.
    """
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        return by_mode(plain(block), tiler, logical_product)
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)  # type: ignore[arg-type]
    return from_modes([block, compose(repetitions(block, tile.cosize), tile)])


def zipped_product(block: Layout, tiler: Tiler) -> Layout:
    """Multiply, and group the result as ((blocks of all modes), (tiles of all modes))."""
    return _zipped(logical_product(block, tiler), tiler)


def tiled_product(block: Layout, tiler: Tiler) -> Layout:
    """Multiply, and group the result as ((blocks of all modes), tile of mode 0, tile of mode 1, …)."""
    return _opened(zipped_product(block, tiler), 1)


def flat_product(block: Layout, tiler: Tiler) -> Layout:
    """Multiply, and group the result as (block of mode 0, block of mode 1, …, tile of mode 0, tile of mode 1, …)."""
    return _opened(zipped_product(block, tiler), 0, 1)


def blocked_product(block: L, tiler: Layout | IntTuple) -> L:
    """Multiply mode by mode into (block, tile), keeping each block contiguous. A shape `tiler` means its compact
    layout.
    """
    return through_swizzle(lambda inner: _interleaved(inner, plain(as_layout(tiler)), block_first=True), block)


def raked_product(block: L, tiler: Layout | IntTuple) -> L:
    """Multiply mode by mode into (tile, block), interleaving the blocks. A shape `tiler` means its compact layout."""
    return through_swizzle(lambda inner: _interleaved(inner, plain(as_layout(tiler)), block_first=False), block)


def tile_to_shape(block: L, shape: IntTuple, order: Sequence[int] | None = None) -> L:
    """Repeat `block` to fill `shape`, mode by mode; `order` ranks the modes, and the mode with the lowest rank repeats
    first.

    Modes of `shape` that the block does not have are only repeated. Raises LayoutError if blocks do not divide the
    shape.
    """
    if not isinstance(block, ComposedLayout):
        plain(block)
    wanted = [product(n) for n in modes(int_tuple(shape, "shape", least=1))]
    blocks = [product(b) for b in modes(block.shape)] + [1] * (len(wanted) - block.rank)
    if len(wanted) < block.rank or any(n % b for n, b in zip(wanted, blocks, strict=True)):
        raise _no_fill(block.shape, wanted, blocks)
    counts = [n // b for n, b in zip(wanted, blocks, strict=True)]
    ranks = _ranks(order, len(counts))
    strides, running = [0] * len(counts), 1
    for mode in sorted(range(len(counts)), key=lambda i: ranks[i]):
        if counts[mode] > 1:
            strides[mode] = running
        running *= counts[mode]
    return blocked_product(block, Layout(tuple(counts), tuple(strides)))


def _ranks(order: Any, modes: int) -> Sequence[int]:
    """Return the rank of each mode; the default is the order of the modes."""
    if order is None:
        return range(modes)
    known = isinstance(order, (tuple, list)) and all(map(is_int, order))
    if not known or len(order) != modes or len(set(order)) < modes:
        raise refusal(
            f"{order!r} is not an order of {modes} modes",
            f"give a different rank to each mode, such as {tuple(range(modes))}",
        )
    return tuple(order)


def _no_fill(block: IntTuple, wanted: list[int], blocks: list[int]) -> Exception:
    if len(wanted) < len(blocks):
        modes_of = f"{len(wanted)} mode" + "s" * (len(wanted) != 1)
        return refusal(f"blocks of {show(block)} do not fill {modes_of}", f"give a shape of {len(blocks)} modes")
    whole = tuple(-(-n // b) * b for n, b in zip(wanted, blocks, strict=True))
    return refusal(
        f"blocks of {show(block)} do not divide {show(tuple(wanted))}",
        f"fill {show(whole)}, and handle elements past the end",
    )


def _divide(layout: Layout, tiler: Tiler) -> Layout:
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode(layout, tiler, _divide)
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)  # type: ignore[arg-type]
    return compose(layout, from_modes([tile, complement(tile, layout.size)]))


def _zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    if isinstance(tiler, tuple):  # an undivided mode is all rest, in tiles of one
        tiler = tuple(1 if t is None else t for t in tiler)
    return _zipped(_divide(layout, tiler), tiler)


def _zipped(divided: Layout, tiler: Tiler) -> Layout:
    """Regroup modes of (first, second) as ((all firsts), (all seconds)); undivided modes join the seconds."""
    if not isinstance(tiler, tuple):
        return divided
    pairs, others = list(divided)[: len(tiler)], list(divided)[len(tiler) :]
    return from_modes([from_modes(p[0] for p in pairs), from_modes([p[1] for p in pairs] + others)])


def _opened(layout: Layout, *open_modes: int) -> Layout:
    """Replace the given modes by their own modes."""
    return from_modes(m for i, mode in enumerate(layout) for m in (mode if i in open_modes else [mode]))


def _interleaved(block: Layout, tiler: Layout, block_first: bool) -> Layout:
    width = max(block.rank, tiler.rank)
    divided = logical_product(_padded(block, width), _padded(tiler, width))
    pairs = zip(divided[0], divided[1], strict=True)
    return from_modes(from_modes(pair if block_first else reversed(pair)) for pair in pairs)


def _padded(layout: Layout, width: int) -> Layout:
    return from_modes([*layout, *[Layout(1, 0)] * (width - layout.rank)])
