"""Tile orders that depend on the whole tiled shape: grouped rows, the Hilbert curve and serpentine strips."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.number import BlockIndex, Computed, Extents, Number
from ptxdsl.schedule.arithmetic import ceil_shift, minimum, where
from ptxdsl.schedule.problems import TiledShape, sizes
from ptxdsl.schedule.swizzle import ThreadblockSwizzle, TileOffset, xyz

MOST_ORDER = 10  # limit of the order, so that 32 bits hold the length of the curve, 4**order


class Raster(ThreadblockSwizzle, ABC):
    """A swizzle whose blocks along x follow the order of the tiles; z is the slice of K, or the batch."""

    def tile_offset(
        self, block_idx: BlockIndex, log_tile: Number | None = None, tiled_shape: Extents | None = None
    ) -> TileOffset:
        """Return the tile of a block from the tiled shape; the log tile is ignored."""
        if tiled_shape is None:
            raise ScheduleError(
                f"{self.name}: the order of the tiles depends on the tiled shape", help="pass tiled_shape=tiled"
            )
        x, _, z = xyz(block_idx)
        return TileOffset(*self.tile(x, TiledShape(*tiled_shape)), z)

    def items(self, tiled: TiledShape) -> Computed:
        """Return the number of blocks along x for one slice, including blocks that pad to whole squares."""
        return self._grid(tiled, 0)[0]

    @abstractmethod
    def tile(self, x: Number, tiled: TiledShape) -> tuple[Computed, Computed]:
        """Return the (m, n) of a block along x."""


@dataclass(frozen=True)
class GroupedRowsThreadblockSwizzle(Raster):
    """Strips of `rows` tiles along m: the rows of a strip first, then along n ("group M"). No block is idle."""

    rows: int = 8
    name = "grouped-rows"

    def __post_init__(self) -> None:
        sizes((self.rows,), type(self).__name__, ("rows",), least=1)

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        return tiled.m * tiled.n, 1, tiled.k

    def tile(self, x: Number, tiled: TiledShape) -> tuple[Computed, Computed]:
        per_strip = tiled.n * self.rows
        strip = x // per_strip
        within, first = x - strip * per_strip, strip * self.rows
        height = minimum(tiled.m - first, self.rows)
        return first + within % height, within // height


@dataclass(frozen=True)
class HilbertThreadblockSwizzle(Raster):
    """A Hilbert curve in squares of 2**order tiles per side; strips of squares run along n, in alternating directions.

    Blocks of the same wave compute a compact region of the output, whatever their number.
    """

    order: int = 3
    name = "hilbert"

    def __post_init__(self) -> None:
        sizes((self.order,), type(self).__name__, ("order",))
        if self.order > MOST_ORDER:
            raise ScheduleError(
                f"{type(self).__name__}: order is {self.order}, but the limit is {MOST_ORDER}",
                help=f"a square of order {MOST_ORDER} already has {1 << MOST_ORDER} tiles per side",
            )

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        squares = ceil_shift(tiled.m, self.order) * ceil_shift(tiled.n, self.order)
        return squares << 2 * self.order, 1, tiled.k

    def tile(self, x: Number, tiled: TiledShape) -> tuple[Computed, Computed]:
        squares = ceil_shift(tiled.n, self.order)
        square = x >> 2 * self.order
        strip = square // squares
        column, row = hilbert(x - (square << 2 * self.order), self.order)
        column = column + ((square - strip * squares) << self.order)
        back = (squares << self.order) - 1 - column
        return row + (strip << self.order), where((strip & 1) == 1, back, column)


def hilbert(step: Number, order: int) -> tuple[Computed, Computed]:
    """Return the (x, y) after `step` steps on the Hilbert curve of 2**order x 2**order cells, starting at (0, 0) along
    x.
    """
    x, y = step & 0, step & 0
    for level in range(order):
        right = (step >> 1) & 1
        up = (step ^ right) & 1
        lower = up ^ 1
        mirror = (right & lower) * ((1 << level) - 1)  # the last quarter is rotated by 180 degrees
        x, y = x ^ mirror, y ^ mirror
        swap = (x ^ y) * lower  # the curve runs along the other axis in the first and last quarter
        x, y = (x ^ swap) + (right << level), (y ^ swap) + (up << level)
        step = step >> 2
    return x, y


class Serpentine(NamedTuple):
    """The serpentine order of the `tiles` along m and n of a problem, in strips of `width` tiles along m.

    The last strip may be narrower. A strip runs along n, across the strip first. Every second strip runs backwards,
    because the columns of B at the end of the previous strip are still in the L2 cache. On the host all fields are
    ints; in a kernel they may be registers.
    """

    tiles: tuple[Computed, Computed]
    width: Computed

    @property
    def items(self) -> Computed:
        return self.tiles[0] * self.tiles[1]

    def tile(self, item: Number) -> tuple[Computed, Computed]:
        """Return the (m, n) of a work item."""
        strip = item // (self.width * self.tiles[1])
        first = strip * self.width
        across = minimum(self.width, self.tiles[0] - first)
        in_strip = item - first * self.tiles[1]
        column = in_strip // across
        row = first + in_strip - column * across
        return row, where((strip & 1) == 1, self.tiles[1] - 1 - column, column)


def strip_width(blocks: int, tiles: tuple[int, int], tile: Extents) -> int:
    """Return the strip width with which a wave of `blocks` blocks reads the fewest rows of A and columns of B.

    Such a wave covers about a square of the output, and all strips have about the same width. If a wave covers several
    strips, the width does not change the traffic, and the width is 1, so that blocks that read the same rows are
    adjacent.
    """
    square = sqrt(blocks * tile[1] / tile[0])
    strips = max(1, round(tiles[0] / square))
    width = max(1, -(-tiles[0] // strips))
    has_several = strips > 1 and 2 * width * tiles[1] <= blocks
    return 1 if has_several else width
