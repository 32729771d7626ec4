"""Layouts: functions from coordinates to offsets, given by a nested shape and a stride for each mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxdsl.errors import called_elsewhere, public_class
from ptxdsl.layout.draw import Drawable, Grid, Picture, number_cell
from ptxdsl.layout.index import Digit, Index, check_operators, evaluate
from ptxdsl.layout.number import Computed, Coordinate
from ptxdsl.layout.shape import (
    IntTuple,
    compact,
    depth_of,
    flatten,
    int_tuple,
    kind_of,
    mismatch,
    modes,
    product,
    refusal,
    show,
)


@public_class
@called_elsewhere(strides="the keyword is `stride=`", order="pass the strides: Layout((8, 8), (8, 1))")
@dataclass(frozen=True, repr=False)
class Layout(Drawable):
    """A nested `shape` and a `stride` of the same nesting; without a stride the layout is compact, first mode fastest.

    `layout(i)`, `layout(i, j)` and `layout(((i0, i1), j))` return the offset of a coordinate. An int coordinate of a
    nested mode is its linear index, first mode fastest; the last mode is unbounded, as in CuTe. Traced values are
    evaluated with as few operations as possible and are assumed to be within the shape.
    """

    shape: IntTuple
    stride: IntTuple = None  # type: ignore[assignment]  # set below where it was left out

    def __post_init__(self) -> None:
        shape = int_tuple(self.shape, "shape", least=1)
        stride = compact(shape) if self.stride is None else int_tuple(self.stride, "stride")
        if difference := mismatch(shape, stride):
            raise _not_congruent(shape, stride, *difference)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return product(self.shape)

    @property
    def cosize(self) -> int:
        """One more than the difference between the largest and the smallest offset."""
        return 1 + sum((n - 1) * abs(d) for n, d in self.flat())

    @property
    def rank(self) -> int:
        return len(modes(self.shape))

    @property
    def depth(self) -> int:
        return depth_of(self.shape)

    def flat(self) -> list[tuple[int, int]]:
        """Return (size, stride) of each leaf mode."""
        return list(zip(flatten(self.shape), flatten(self.stride), strict=True))

    def offsets(self) -> list[int]:
        """Return the offsets of all coordinates in order, first mode fastest."""
        offsets = [0]
        for n, d in self.flat():
            offsets = [o + step for step in range(0, n * d, d) for o in offsets] if d else offsets * n
        return offsets

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, mode: int) -> Layout:
        try:
            return Layout(modes(self.shape)[mode], modes(self.stride)[mode])
        except (IndexError, TypeError):
            raise _no_mode(self, mode) from None

    def __iter__(self) -> Iterator[Layout]:
        return (Layout(s, d) for s, d in zip(modes(self.shape), modes(self.stride), strict=True))

    def __call__(self, *coord: Coordinate) -> Computed:
        """Return the offset of `coord`: an int if every coordinate is one, otherwise a value of their type."""
        return self.index(*coord).get()

    def index(self, *coord: Coordinate) -> Index:
        """Return the offset of `coord` with its constant part separate, for an address with an immediate."""
        return _index(coordinate(coord), self.shape, self.stride)

    def __str__(self) -> str:
        return f"{show(self.shape)}:{show(self.stride)}"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Draw the grid of offsets."""
        return Picture(str(self), (offset_grid(self),))


def from_modes(layouts: Iterable[Layout]) -> Layout:
    """Return one layout with the given layouts as its modes."""
    parts = list(layouts)
    return Layout(tuple(p.shape for p in parts), tuple(p.stride for p in parts))


def coordinate(coord: tuple[Coordinate, ...]) -> Computed:
    """Return the arguments of a call as one coordinate: `f(i)` and `f((i, j))` unchanged, `f(i, j)` as (i, j)."""
    return coord[0] if len(coord) == 1 else coord


def check_bounds(layout: Any, coord: Coordinate, name: str = "") -> None:
    """Raise LayoutError for a constant coordinate out of bounds; traced coordinates are not checked."""
    _check_bounds(layout, coord, layout.shape, name)


def _check_bounds(layout: Any, coord: Coordinate, shape: IntTuple, name: str) -> None:
    if isinstance(coord, (tuple, list)):
        for i, (c, s) in enumerate(_pairs(coord, shape)):
            _check_bounds(layout, c, s, f"{name}.{i}".lstrip("."))
    elif isinstance(coord, int) and not 0 <= coord < product(shape):
        where = f"mode {name} of {layout}" if name else str(layout)
        raise refusal(
            f"coordinate {coord} is out of bounds for {where}: valid coordinates are 0 to {product(shape) - 1}",
            f"the shape is {layout.shape}, and coordinates count from 0; negative coordinates are not supported",
        )


def _pairs(coord: Coordinate, shape: IntTuple) -> Iterable[tuple[Any, IntTuple]]:
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        count = len(shape) if isinstance(shape, tuple) else 1
        raise refusal(
            f"found a coordinate of {len(coord)} entries for the shape {show(shape)}, which has {count}",
            "give one coordinate for each mode, or a single linear coordinate",
        )
    return zip(coord, shape, strict=True)


def _index(coord: Coordinate, shape: IntTuple, stride: IntTuple) -> Index:
    if isinstance(coord, (tuple, list)):
        parts = [_index(c, s, d) for (c, s), d in zip(_pairs(coord, shape), modes(stride), strict=True)]
        return sum(parts, Index())
    if isinstance(coord, int):
        return Index(_linear(coord, flatten(shape), flatten(stride)))
    check_operators(coord, "a coordinate")
    return evaluate(coord, _digits(shape, stride))


def _linear(x: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    offset = 0
    for n, d in zip(shape[:-1], stride[:-1], strict=True):
        offset += x % n * d
        x //= n
    return offset + x * stride[-1]


@cache
def _digits(shape: IntTuple, stride: IntTuple) -> tuple[Digit, ...]:
    """Return the modes with a nonzero stride, with contiguous modes merged."""
    digits: list[Digit] = []
    weight, last = 1, product(shape)
    for n, d in zip(flatten(shape), flatten(stride), strict=True):
        below = digits[-1] if digits else None
        if below and below.weight * below.size == weight and below.size * below.stride == d:
            digits[-1] = Digit(below.weight, below.size * n, below.stride, weight * n == last)
        elif n > 1 and d:
            digits.append(Digit(weight, n, d, weight * n == last))
        weight *= n
    return tuple(digits)


def _no_mode(layout: Layout, mode: Any) -> Exception:
    if not hasattr(type(mode), "__index__"):
        return refusal(
            f"a mode is selected by an int; found {kind_of(mode)}", "use layout(i, j) for the offset of a coordinate"
        )
    numbered = "only mode 0" if layout.rank == 1 else f"modes 0 to {layout.rank - 1}"
    return refusal(
        f"there is no mode {mode} of {layout}", f"it has {numbered}; use layout(i) for the offset of a coordinate"
    )


def _not_congruent(shape: IntTuple, stride: IntTuple, one: Any, other: Any) -> Exception:
    def count(value: Any) -> str:
        if not isinstance(value, tuple):
            return f"{value} is an int"
        return f"{show(value)} has {len(value)} mode" + "s" * (len(value) != 1)

    return refusal(
        f"shape {show(shape)} and stride {show(stride)} have different nesting: in the shape {count(one)}, in the "
        f"stride {count(other)}",
        "give each int of the shape one int in the stride",
    )


def offset_grid(layout: Any, title: str = "") -> Grid:
    """Return the offsets of a layout of any rank as a grid: the first mode runs down, the others run to the right."""
    rows = product(modes(layout.shape)[0])
    offsets = layout.offsets()
    cells = [[number_cell(o) for o in offsets[row::rows]] for row in range(rows)]
    return Grid(title, tuple(map(tuple, cells)))
