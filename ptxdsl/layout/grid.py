"""Pictures as grids of labelled cells in eight colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """The label of one element: a few short lines and one of eight colours; terminals join the lines with `joint`."""

    lines: tuple[str, ...]
    colour: int
    joint: str = ""

    @property
    def line(self) -> str:
        return self.joint.join(self.lines)


class Grid(NamedTuple):
    """Cells by row and column, None for empty ones. `at` is the (column, row) of the grid in its picture."""

    title: str
    cells: tuple[tuple[Cell | None, ...], ...]
    at: tuple[int, int] = (0, 0)
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return len(self.cells[0])

    @property
    def height(self) -> int:
        return len(self.cells)

    @property
    def column_labels(self) -> Sequence[str]:
        return self.columns or [str(i) for i in range(self.width)]

    @property
    def row_labels(self) -> Sequence[str]:
        return self.rows or [str(i) for i in range(self.height)]

    def filled(self) -> Iterator[tuple[int, int, Cell]]:
        """Yield (row, column, cell) of every non-empty cell."""
        for row, cells in enumerate(self.cells):
            for column, cell in enumerate(cells):
                if cell:
                    yield row, column, cell


class Picture(NamedTuple):
    title: str
    grids: tuple[Grid, ...]

    def filled(self) -> Iterator[Cell]:
        return (cell for grid in self.grids for _, _, cell in grid.filled())


def number_cell(number: int) -> Cell:
    return Cell((str(number),), number % 8)


def thread_value_grid(title: str, height: int, values: Iterable[tuple[int, int, int]]) -> Grid:
    """Draw the thread and value of each element; if several threads hold an element, the first is shown.

    `values` are (thread, value, position), where positions count down the columns.
    """
    cells: dict[int, Cell] = {}
    for thread, value, position in values:
        cells.setdefault(position, thread_value_cell(thread, value))
    width = max(cells) // height + 1
    return Grid(title, tuple(tuple(cells.get(r + height * c) for c in range(width)) for r in range(height)))


def thread_value_cell(thread: int, value: int) -> Cell:
    """Return a cell with the thread above the value and a colour for the thread modulo 8, as CuTe labels them."""
    return Cell((f"T{thread}", f"V{value}"), thread % 8)
