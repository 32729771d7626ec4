"""Pictures as grids of labelled cells in eight colours, rendered as terminal text, SVG and LaTeX."""

from __future__ import annotations

import contextlib
import os
import sys
from abc import abstractmethod
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from ptxdsl.errors import Error
from ptxdsl.layout.shape import kind_of, refusal


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


SVG_COLOURS = ("#c6dbef", "#fdd0a2", "#c7e9c0", "#f8c8dc", "#dadaeb", "#fff3b0", "#b5e8e4", "#e3d5ca")
TERMINAL_COLOURS = (153, 223, 151, 218, 189, 229, 159, 187)  # nearest colours of the 256-colour palette

# SVG, in pixels
_CHARACTER_WIDTH, _LINE_HEIGHT, _FONT_SIZE = 6.9, 13, 11
_LABEL_WIDTH = 30  # row numbers, left of the cells
_HEAD_HEIGHT = 42  # title and column numbers of a grid, above the cells
_MARGIN = 14


class Drawable:  # not an ABC: isinstance on layouts runs at every step, and an ABC makes it much slower
    """A value with a `picture()`; notebooks display it."""

    @abstractmethod
    def picture(self) -> Picture:
        """Return the picture to draw."""

    def _repr_svg_(self) -> str | None:
        return svg_or_none(lambda: to_svg(self))


def svg_or_none(draw: Callable[[], str]) -> str | None:
    """Return a drawing, or None if it is too large or empty."""
    with contextlib.suppress(Error):
        return draw()
    return None


def picture_html(draw: Callable[[], str]) -> str:
    """Return a drawing for notebooks, or the reason if it is too large or empty. The page's styles stay apart."""
    try:
        return f'<img alt="" src="data:image/svg+xml;base64,{b64encode(draw().encode()).decode()}">'
    except Error as reason:
        return f"<pre>{escape(reason.message)}</pre>"


def _picture(value: Drawable | Picture) -> Picture:
    if isinstance(value, Picture):
        return value
    if not isinstance(value, Drawable):
        raise refusal(
            f"only layouts, swizzles, atoms, tiled copies and tiled MMAs can be drawn; found {kind_of(value)}",
            "parse text first, as in parse('(4,8):(8,1)')" if isinstance(value, str) else "write Layout(SHAPE, STRIDE)",
        )
    return value.picture()


def to_text(value: Drawable | Picture, color: bool | None = None) -> str:
    """Return `value` as terminal text; with `color=None`, colours are used if stdout is a terminal and NO_COLOR is not
    set.
    """
    picture = _picture(value)
    if color is None:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    parts = [picture.title] + [_grid_text(grid, color) for grid in picture.grids]
    return "\n\n".join(parts) + "\n"


def _grid_text(grid: Grid, color: bool) -> str:
    texts = [[cell.line if cell else "" for cell in row] for row in grid.cells]
    width = max(len(text) for row in [grid.column_labels, *texts] for text in row) + 1
    margin = max(map(len, grid.row_labels)) + 1
    lines = [grid.title] if grid.title else []
    lines.append(" " * margin + "".join(f"{label:>{width}}" for label in grid.column_labels))
    for name, cells, row in zip(grid.row_labels, grid.cells, texts, strict=True):
        painted = [_paint(f"{t:>{width}}", c if color else None) for t, c in zip(row, cells, strict=True)]
        lines.append(f"{name:>{margin}}" + "".join(painted))
    return "\n".join(lines)


def _paint(text: str, cell: Cell | None) -> str:
    return f"\x1b[30;48;5;{TERMINAL_COLOURS[cell.colour]}m{text}\x1b[0m" if cell else text


def to_svg(value: Drawable | Picture) -> str:
    """Return `value` as an SVG document."""
    picture = _picture(value)
    cell_width, cell_height = _cell_size(picture)
    lefts = _starts(((g.at[0], g.width * cell_width) for g in picture.grids), _LABEL_WIDTH, _MARGIN)
    tops = _starts(((g.at[1], g.height * cell_height) for g in picture.grids), _HEAD_HEIGHT, _MARGIN)
    width = max(lefts[-1], len(picture.title) * (_CHARACTER_WIDTH + 1) + 2 * _MARGIN)
    lines = [*_svg_head(picture.title, width, tops[-1])]
    for grid in picture.grids:
        lines += _svg_grid(grid, lefts[grid.at[0]], tops[grid.at[1]], cell_width, cell_height)
    return "\n".join([*lines, "</svg>\n"])


def _cell_size(picture: Picture) -> tuple[float, float]:
    """Return the cell size that fits the longest line and the most lines of any cell."""
    texts = [line for cell in picture.filled() for line in cell.lines]
    texts += [label for grid in picture.grids for label in grid.column_labels]
    lines = max(len(cell.lines) for cell in picture.filled())
    return max(map(len, texts)) * _CHARACTER_WIDTH + 10, lines * _LINE_HEIGHT + 6


def _starts(extents: Iterable[tuple[int, float]], room: float, margin: float) -> list[float]:
    """Return the start of each column (or row) of grids, followed by the end of the last one."""
    largest: dict[int, float] = defaultdict(float)
    for index, extent in extents:
        largest[index] = max(largest[index], extent)
    starts = [margin + room]
    for index in range(max(largest) + 1):
        starts.append(starts[-1] + largest[index] + margin + room)
    starts[-1] -= room
    return starts


def _svg_head(title: str, width: float, height: float) -> Iterator[str]:
    colours = "".join(f".c{i}{{fill:{colour}}}" for i, colour in enumerate(SVG_COLOURS))
    size = f'width="{width:.0f}" height="{height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {width:.0f} {height:.0f}">'
    yield f"<title>{_escape(title)}</title>"
    yield (
        f"<style>text{{font:{_FONT_SIZE}px monospace;text-anchor:middle;fill:#111}}text.n{{fill:#777}}"
        f"text.t{{font-weight:bold;text-anchor:start}}path{{stroke:#888;stroke-width:.5}}{colours}</style>"
    )
    yield '<rect width="100%" height="100%" fill="#fff"/>'
    yield f'<text class="t" x="{_MARGIN}" y="{_MARGIN + 4}">{_escape(title)}</text>'


def _svg_grid(grid: Grid, left: float, top: float, width: float, height: float) -> Iterator[str]:
    if grid.title:
        yield f'<text class="t" x="{left:g}" y="{top - 18:g}">{_escape(grid.title)}</text>'
    middles = [left + (column + 0.5) * width for column in range(grid.width)]
    yield _svg_words("n", top - 4, zip(middles, grid.column_labels, strict=True))
    yield from _svg_backgrounds(grid, left, top, width, height)
    for row, (name, cells) in enumerate(zip(grid.row_labels, grid.cells, strict=True)):
        centre = top + (row + 0.5) * height
        yield _svg_words("n", centre + 4, [(left - _LABEL_WIDTH / 2, name)])
        count = max(len(cell.lines) if cell else 0 for cell in cells)
        for line in range(count):
            baseline = centre + 4 + (line - (count - 1) / 2) * _LINE_HEIGHT
            words = [(x, cell.lines[line]) for x, cell in zip(middles, cells, strict=True) if cell]
            yield _svg_words("", baseline, words)


def _svg_words(kind: str, y: float, words: Iterable[tuple[float, str]]) -> str:
    """Return one text element per line, which halves the size compared with one per cell."""
    spans = "".join(f'<tspan x="{x:g}">{_escape(word)}</tspan>' for x, word in words)
    return f'<text class="{kind}" y="{y:g}">{spans}</text>' if kind else f'<text y="{y:g}">{spans}</text>'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _svg_backgrounds(grid: Grid, left: float, top: float, width: float, height: float) -> Iterator[str]:
    """Yield one path per colour."""
    outlines: dict[int, list[str]] = defaultdict(list)
    box = f"h{width:g}v{height:g}h-{width:g}z"
    for row, column, cell in grid.filled():
        outlines[cell.colour].append(f"M{left + column * width:g} {top + row * height:g}{box}")
    return (f'<path class="c{colour}" d="{"".join(boxes)}"/>' for colour, boxes in sorted(outlines.items()))


def to_latex(value: Drawable | Picture) -> str:
    """Return `value` as a standalone LaTeX document with one TikZ picture."""
    picture = _picture(value)
    colours = [f"\\definecolor{{c{i}}}{{HTML}}{{{c[1:].upper()}}}" for i, c in enumerate(SVG_COLOURS)]
    lefts = _starts(((g.at[0], g.width) for g in picture.grids), room=1, margin=1)
    tops = _starts(((g.at[1], g.height) for g in picture.grids), room=2, margin=1)
    lines = [
        f"% Layout: {picture.title}",
        "\\documentclass[tikz,border=4pt]{standalone}",
        *colours,
        "\\begin{document}",
        "\\begin{tikzpicture}[x=1cm,y=-1cm,cell/.style={draw,minimum size=1cm,inner sep=0pt,font=\\tiny\\ttfamily,"
        "align=center},label/.style={font=\\scriptsize\\ttfamily}]",
    ]
    for grid in picture.grids:
        lines += _latex_grid(grid, lefts[grid.at[0]], tops[grid.at[1]])
    return "\n".join([*lines, "\\end{tikzpicture}", "\\end{document}", ""])


def _latex_grid(grid: Grid, left: float, top: float) -> Iterator[str]:
    def node(style: str, column: float, row: float, text: str) -> str:
        return f"\\node[{style}] at ({left + column:g},{top + row:g}) {{{_latex_text(text)}}};"

    if grid.title:
        yield node("label,anchor=west", -0.5, -1.5, grid.title)
    for column, label in enumerate(grid.column_labels):
        yield node("label", column, -1, label)
    for row, name in enumerate(grid.row_labels):
        yield node("label", -1, row, name)
    for row, column, cell in grid.filled():
        yield node(f"cell,fill=c{cell.colour}", column, row, "\n".join(cell.lines))


def _latex_text(text: str) -> str:
    for special in "&%$#_{}":
        text = text.replace(special, "\\" + special)
    return text.replace("\n", "\\\\")
