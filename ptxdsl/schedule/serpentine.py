"""Serpentine tile order: strips in alternating directions, so that blocks of the same wave share rows of A and columns
of B.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ptxdsl.layout.number import Computed, Extents, Number
from ptxdsl.schedule.arithmetic import minimum, where


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
