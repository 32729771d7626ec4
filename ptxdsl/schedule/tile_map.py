"""Tile maps: the tile of every block of a grid, its coverage, a picture, and its memory traffic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture, picture_html, to_svg, to_text
from ptxdsl.layout.number import Extents
from ptxdsl.schedule.arithmetic import counted
from ptxdsl.schedule.problems import TiledShape, sizes, tile_sizes

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


UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Reuse:
    """Bytes of A and B: `fetched` by each wave of blocks, and `alone`, the sum if no block shared them."""

    fetched: tuple[int, ...]
    alone: tuple[int, ...]

    @property
    def factor(self) -> float:
        """The average number of times that a byte in the L2 cache is read."""
        return sum(self.alone) / sum(self.fetched) if sum(self.fetched) else 1.0

    def __str__(self) -> str:
        size, unit = float(sum(self.fetched)), 0
        while size >= 1000 and unit < len(UNITS) - 1:
            size, unit = size / 1000, unit + 1
        waves = f"{len(self.fetched)} wave" + "s" * (len(self.fetched) != 1)
        return f"{waves}, {size:.4g} {UNITS[unit]} of A and B fetched, each byte read by {self.factor:.1f} blocks"


def l2_reuse(tiles: TileMap, tile: Extents, k: int, resident: int, element_bytes: int = 2) -> Reuse:
    """Simulate waves of `resident` blocks that compute the tiles in launch order.

    Each block reads `k` elements of every row of A and column of B of its tile. Within a wave each row and column is
    fetched once; the cache is empty at the start of each wave. Blocks without a tile are ignored.
    """
    tile_m, tile_n, *_ = tile_sizes(tile)
    k, resident, element_bytes = sizes((k, resident, element_bytes), "L2 reuse", ("k", "resident", "element_bytes"), 1)
    m, n, z = tiles.order.T
    wave = np.arange(len(m)) // resident
    waves = len(m) and int(wave[-1]) + 1
    panel = k * element_bytes
    fetched = panel * (tile_m * _distinct(wave, m, z, waves) + tile_n * _distinct(wave, n, z, waves))
    alone = panel * (tile_m + tile_n) * np.bincount(wave, minlength=waves)
    return Reuse(tuple(fetched.tolist()), tuple(alone.tolist()))


def _distinct(wave: np.ndarray, line: np.ndarray, slices: np.ndarray, waves: int) -> np.ndarray:
    """Return the number of distinct (line, slice) pairs of each wave."""
    distinct = np.unique(np.stack([wave, line, slices], axis=1), axis=0)
    return np.bincount(distinct[:, 0], minlength=waves)
