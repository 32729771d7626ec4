"""Tile maps: the tile of every block of a grid, its coverage and a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import Drawable, picture_html, to_svg, to_text
from ptxdsl.layout.grid import Cell, Grid, Picture
from ptxdsl.schedule.arithmetic import counted
from ptxdsl.schedule.problems import TiledShape

COLOURS = 8
MOST_CELLS = 2**16  # cells of a picture


class Coverage(NamedTuple):
    """Tiles as (m, n, k): computed, missing, computed more than once; and the (x, y, z) of blocks without a tile."""

    tiles: list[tuple[int, ...]]
    missing: list[tuple[int, ...]]
    repeated: list[tuple[int, ...]]
    no_op_blocks: list[tuple[int, ...]]


def check_tiles(tiled: TiledShape) -> None:
    """Raise ScheduleError if the tiles cannot be drawn."""
    if prod(tiled) > MOST_CELLS:
        raise ScheduleError(
            f"{prod(tiled)} tiles are too many for a picture; the limit is {MOST_CELLS}",
            help="draw a smaller problem",
        )
    if not min(tiled):
        raise ScheduleError(
            f"{' x '.join(map(str, tiled))} tiles: there is nothing to draw", help="draw a larger problem"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TileMap(Drawable):
    """The tiles of all blocks: `offsets[i]` is the (m, n, k) of block i in launch order; outside `tiled`, the block has
    no tile.

    `depth` names the third index: slices of "k", or "batch".
    """

    name: str
    tiled: TiledShape
    grid: tuple[int, ...]
    offsets: np.ndarray
    depth: str = "k"

    @property
    def working(self) -> np.ndarray:
        """A bool for each block: True if it has a tile."""
        inside: np.ndarray = (self.offsets >= 0) & (self.offsets < np.array(self.tiled))
        return np.logical_and.reduce(inside, axis=1)

    @property
    def order(self) -> np.ndarray:
        """The tiles in launch order."""
        return self.offsets[self.working]

    def coverage(self) -> Coverage:
        order, tiled = self.order, np.array(self.tiled)
        numbers = np.ravel_multi_index(tuple(order.T), self.tiled) if tiled.all() else order[:, 0]
        times = np.bincount(numbers, minlength=prod(self.tiled))
        done, missing, repeated = (
            _tuples(np.unravel_index(np.flatnonzero(at), self.tiled)) for at in (times > 0, times == 0, times > 1)
        )
        idle = _tuples(self._counted_as(np.flatnonzero(~self.working)))
        return Coverage(done, missing, repeated, idle)

    def _counted_as(self, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the (x, y, z) that coverage reports for these entries."""
        return self._blocks(numbers)

    def _blocks(self, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the (x, y, z) of the blocks that compute these entries."""
        return np.unravel_index(numbers, self.grid[::-1])[::-1]

    def picture(self) -> Picture:
        """Draw tiles along m as rows and along n as columns; a cell shows its block number, and its index if that
        differs.

        A colour is an eighth of all blocks in launch order.
        """
        check_tiles(self.tiled)
        cells = np.full(self.tiled, None, object)
        for number in np.flatnonzero(self.working):
            cells[tuple(self.offsets[number])] = self._cell(int(number))
        grid = " x ".join(map(str, self.grid))
        idle = self._without_tile(int((~self.working).sum()))
        title = f"{self.name}: {self.tiled.m} x {self.tiled.n} tiles, grid {grid}, {idle}"
        names = ("",) if self.tiled.k == 1 else tuple(f"{self.depth} {k}" for k in range(self.tiled.k))
        grids = [Grid(name, tuple(map(tuple, cells[:, :, k])), (0, k)) for k, name in enumerate(names)]
        return Picture(title, tuple(grids))

    def _without_tile(self, idle: int) -> str:
        return f"{counted(idle, 'block')} without a tile"

    def _cell(self, number: int) -> Cell:
        where = [self._index(number)] if sum(extent > 1 for extent in self.grid) > 1 else []
        return Cell((str(number), *where), number * COLOURS // len(self.offsets), joint=" at ")

    def _index(self, number: int) -> str:
        """Return the block index of one entry along the axes with several blocks."""
        axes = [axis for axis, extent in enumerate(self.grid) if extent > 1] or [0]
        index = self._blocks(np.array(number))
        return ",".join(str(index[axis]) for axis in axes)

    def _repr_html_(self) -> str:
        return picture_html(self.to_svg)

    def to_text(self, color: bool | None = None) -> str:
        return to_text(self, color)

    def to_svg(self) -> str:
        return to_svg(self)

    def to_json(self) -> str:
        """Return JSON with the blocks in launch order: index, tile, and whether the tile exists."""
        indices = np.stack(self._blocks(np.arange(len(self.offsets))), axis=1)
        rows = zip(indices.tolist(), self.offsets.tolist(), self.working.tolist(), strict=True)
        blocks = [{"block": block, "tile": tile, "works": works} for block, tile, works in rows]
        head: dict[str, Any] = {"schedule": self.name, "tiled_shape": list(self.tiled), "grid": list(self.grid)}
        return json.dumps({**head, "blocks": blocks})


def _tuples(columns: tuple[np.ndarray, ...]) -> list[tuple[int, ...]]:
    return list(map(tuple, np.stack(columns, axis=1).tolist()))
