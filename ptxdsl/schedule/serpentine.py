"""Tiles in strips that are walked to and fro: blocks that work at the same time share rows of A and columns of B."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ptxdsl.layout.number import Computed, Extents, Number
from ptxdsl.schedule.arithmetic import minimum, where


class Serpentine(NamedTuple):
    """The `tiles` along m and n of a problem, in strips of `width` tiles of m, the last of them maybe narrower. A strip
    is walked along n, across the strip first; every second one backwards, where the columns of the last one are still
    in the L2 cache. A NamedTuple of ints on the host; in a kernel they may be registers."""

    tiles: tuple[Computed, Computed]
    width: Computed

    @property
    def items(self) -> Computed:
        return self.tiles[0] * self.tiles[1]

    def tile(self, item: Number) -> tuple[Computed, Computed]:
        """The (m, n) of a work item."""
        strip = item // (self.width * self.tiles[1])
        first = strip * self.width
        across = minimum(self.width, self.tiles[0] - first)
        in_strip = item - first * self.tiles[1]
        column = in_strip // across
        row = first + in_strip - column * across
        return row, where((strip & 1) == 1, self.tiles[1] - 1 - column, column)


def strip_width(blocks: int, tiles: tuple[int, int], tile: Extents) -> int:
    """The width of strips with which so many blocks at work read the fewest rows of A and columns of B: together they
    are about a square of the output. All strips are about as wide. Where blocks have several strips at a time they read
    as much whatever the width, and of strips of one tile those that read the same rows are neighbours."""
    square = sqrt(blocks * tile[1] / tile[0])
    strips = max(1, round(tiles[0] / square))
    width = max(1, -(-tiles[0] // strips))
    has_several = strips > 1 and 2 * width * tiles[1] <= blocks
    return 1 if has_several else width
