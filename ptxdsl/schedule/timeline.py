"""Timelines: the work of each block as a bar whose length is in K iterations."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import accumulate, count
from typing import NamedTuple

from ptxdsl.cached import cached_property
from ptxdsl.errors import ScheduleError
from ptxdsl.layout.draw import SVG_COLOURS, TERMINAL_COLOURS, picture_html, svg_or_none

TEXT_WIDTH = 72  # characters of the longest bar
MOST_OF_A_PICTURE = 2**16  # limit of rows, and of spans
# SVG, in pixels
_LEFT, _TOP, _ROW, _BAR_WIDTH, _MARGIN = 70, 44, 18, 900, 14
_CHARACTER_WIDTH, _FONT_SIZE, _TICKS = 6.2, 10, 8


def check_rows(rows: int, row_name: str, spans: int) -> None:
    """Raise ScheduleError if a picture would be too large; called with a lower bound before the spans are created."""
    for number, name, help in (
        (rows, f"{row_name}s", "draw fewer blocks"),
        (spans, "pieces of work", "draw a smaller problem"),
    ):
        if number > MOST_OF_A_PICTURE:
            raise ScheduleError(
                f"{number} {name} are too many for a picture; the limit is {MOST_OF_A_PICTURE}", help=help
            )


class Span(NamedTuple):
    """A piece of work: its length, its label, and the group that determines its colour."""

    length: int
    label: str
    group: int = 0

    @property
    def colour(self) -> int:
        return self.group % len(SVG_COLOURS)


@dataclass(frozen=True)
class Timeline:
    """The work of each block, one span after another. A row may stand for a resident slot that several blocks use in
    turn.
    """

    name: str
    rows: tuple[tuple[Span, ...], ...]
    row_name: str = "block"

    @cached_property
    def loads(self) -> list[int]:
        """The K iterations of each block."""
        return [sum(span.length for span in row) for row in self.rows]

    @cached_property
    def longest(self) -> int:
        return max(self.loads, default=0)

    @property
    def imbalance(self) -> float:
        """The maximum load divided by the mean: 1.0 if no block waits for another one."""
        total = sum(self.loads)
        return self.longest * len(self.rows) / total if total else 1.0

    @property
    def title(self) -> str:
        mean = sum(self.loads) / max(1, len(self.rows))
        return (
            f"{self.name}; K-iterations: {self.longest} at most, {mean:.1f} on average, max/mean {self.imbalance:.2f}"
        )

    def to_text(self, color: bool | None = None) -> str:
        """Return text for a terminal; with `color=None`, colours are used if stdout is a terminal and NO_COLOR is not
        set.
        """
        self._check_rows()
        if color is None:
            color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        width = len(str(max(0, len(self.rows) - 1)))
        lines = [self.title, ""]
        for number, (row, load) in enumerate(zip(self.rows, self.loads, strict=True)):
            bar = "".join(_bar_text(span, cells, color) for span, _, cells in self._placed(row, TEXT_WIDTH) if cells)
            idle = " " * (TEXT_WIDTH - round(load * TEXT_WIDTH / max(1, self.longest)))
            lines.append(f"{self.row_name} {number:>{width}} {bar}{idle} {load}")
        return "\n".join(lines) + "\n"

    def _check_rows(self) -> None:
        check_rows(len(self.rows), self.row_name, sum(map(len, self.rows)))

    def _placed(self, row: tuple[Span, ...], width: int) -> Iterator[tuple[Span, int, int]]:
        """Yield (span, start, extent), scaled to `width`."""
        done = start = 0
        for span in row:
            done += span.length
            end = round(done * width / max(1, self.longest))
            yield span, start, end - start
            start = end

    def to_svg(self) -> str:
        self._check_rows()
        height = _TOP + _ROW * len(self.rows) + 2 * _MARGIN
        width = _LEFT + _BAR_WIDTH + 60
        colours = "".join(f".c{i}{{fill:{colour}}}" for i, colour in enumerate(SVG_COLOURS))
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
            f"<style>text{{font:{_FONT_SIZE}px monospace;fill:#111}}.t{{font-weight:bold}}.n{{fill:#777}}"
            f".m{{text-anchor:middle}}rect{{stroke:#888;stroke-width:.5}}{colours}</style>",
            '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>',
            f'<text class="t" x="{_MARGIN}" y="{_MARGIN + 4}">{escape(self.title)}</text>',
            *self._svg_scale(),
        ]
        for number, row in enumerate(self.rows):
            lines += self._svg_row(number, row, _TOP + _ROW * number)
        return "\n".join([*lines, "</svg>\n"])

    def _svg_scale(self) -> Iterator[str]:
        step = next(step for step in _steps() if step * _TICKS >= self.longest)
        for tick in range(0, self.longest + 1, step):
            x = _LEFT + tick * _BAR_WIDTH / max(1, self.longest)
            yield f'<text class="n m" x="{x:.0f}" y="{_TOP - 6}">{tick}</text>'

    def _svg_row(self, number: int, row: tuple[Span, ...], top: int) -> Iterator[str]:
        baseline = top + _ROW - 6
        yield f'<text class="n" x="{_MARGIN}" y="{baseline}">{self.row_name} {number}</text>'
        end = _LEFT
        for span, start, extent in self._placed(row, _BAR_WIDTH):
            x, end = _LEFT + start, _LEFT + start + extent
            if extent:
                yield f'<rect class="c{span.colour}" x="{x}" y="{top}" width="{extent}" height="{_ROW - 3}"/>'
            if len(span.label) * _CHARACTER_WIDTH <= extent:
                yield f'<text class="m" x="{x + extent / 2:g}" y="{baseline}">{escape(span.label)}</text>'
        yield f'<text class="n" x="{end + 6}" y="{baseline}">{self.loads[number]}</text>'

    def _repr_svg_(self) -> str | None:
        return svg_or_none(self.to_svg)

    def _repr_html_(self) -> str:
        return picture_html(self.to_svg)

    def to_json(self) -> str:
        """Return JSON with the loads, max / mean, and (begin, end, label, group) of each span of each block."""
        blocks = []
        for row in self.rows:
            ends = accumulate(span.length for span in row)
            blocks.append([[e - s.length, e, s.label, s.group] for s, e in zip(row, ends, strict=True)])
        head = {"schedule": self.name, "loads": self.loads, "imbalance": self.imbalance}
        return json.dumps({**head, "blocks": blocks})


def _steps() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, …"""
    return (factor * 10**power for power in count() for factor in (1, 2, 5))


def _bar_text(span: Span, cells: int, color: bool) -> str:
    text = span.label[: cells - 1].center(cells - 1, " " if color else "-") + "|"
    return f"\x1b[30;48;5;{TERMINAL_COLOURS[span.colour]}m{text}\x1b[0m" if color else text
