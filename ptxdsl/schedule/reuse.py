"""Memory traffic of a tile order: blocks of the same wave share rows of A and columns of B in the L2 cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxdsl.layout.number import Extents
from ptxdsl.schedule.problems import sizes, tile_sizes
from ptxdsl.schedule.tile_map import TileMap

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
