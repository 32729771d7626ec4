"""Grouped problems that compute only a triangle of the output: rank-k and rank-2k updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.number import Extents
from ptxdsl.schedule.grouped import GroupedProblemVisitor
from ptxdsl.schedule.problems import Problems


class TriangularProblemVisitor(GroupedProblemVisitor):
    """GroupedProblemVisitor for the tiles that touch the lower (or upper) triangle of square problems.

    Tiles that are not square are grouped into squares. A group may extend past the problem; a tile with an
    out-of-bounds m or n must be skipped.
    """

    def __init__(
        self,
        problems: Problems,
        tile: Extents,
        blocks: int,
        *,
        triangle: str = "lower",
        **options: Any,
    ) -> None:
        if triangle not in ("lower", "upper"):
            raise ScheduleError(f"triangle is {triangle!r}", help='take "lower" or "upper"')
        long, short = max(tile[:2]), min(tile[:2])
        if short < 1 or long % short:
            raise ScheduleError(
                f"the tile is {tile[0]} x {tile[1]}: the longer side must be a multiple of the shorter one",
                help="use a tile such as 128 x 64",
            )
        self.triangle, self.group = triangle, long // short
        super().__init__(problems, tile, blocks, **options)
        for number, (m, n, _) in enumerate(self.problems.tolist()):
            if m != n:
                raise ScheduleError(
                    f"problem {number} is {m} x {n}, but a triangle needs a square output",
                    help=("use equal M and N for a rank-k update"),
                )

    def _count(self) -> np.ndarray:
        """Return the number of squares on and below the diagonal, times the tiles of each square."""
        squares = np.minimum(self._tiles_m, self._tiles_n)
        return squares * (squares + 1) // 2 * self.group

    def _positions(self, where: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        square, part = tile // self.group, tile % self.group
        row = _triangle_row(square)
        column = square - row * (row + 1) // 2
        if self.triangle == "upper":
            row, column = column, row
        if self.tile[0] < self.tile[1]:
            return row * self.group + part, column
        return row, column * self.group + part


def _triangle_row(number: np.ndarray) -> np.ndarray:
    """Return the row of each cell of a triangle numbered row by row; exact for numbers below 2**31."""
    row: np.ndarray = (np.sqrt(8.0 * number + 1) - 1) // 2
    return row.astype(np.int64)
