"""HTML of values that notebooks display. All text is escaped; pictures stay SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FONT = "font:12px/1.45 ui-monospace,monospace"
MOST_ROWS = 50


def preformatted(text: str, colour: str = "transparent") -> str:
    """Return text with its line breaks and columns, and a coloured bar at its left."""
    return (
        f'<pre style="{FONT};margin:.3em 0;padding-left:.6em;border-left:3px solid {colour};overflow-x:auto">'
        f"{escape(text)}</pre>"
    )


def collapsed(title: str, text: str) -> str:
    """Return text that is shown after a click on its title."""
    return f"<details><summary>{escape(title)}</summary>{preformatted(text)}</details>" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], noun: str) -> str:
    """Return a table of up to MOST_ROWS rows; the last line counts the others, of which each is a `noun`."""
    rows = list(rows)
    cells = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    cells += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS]]
    return f'<table style="{FONT}">{"".join(cells)}</table>{more(len(rows) - MOST_ROWS, noun)}'


def more(count: int, noun: str) -> str:
    """Return a line that counts what is not shown."""
    return f"<p>… and {count} more {noun}{'s' * (count != 1)}</p>" if count > 0 else ""
