"""A profile as an HTML page: the source with the costs of its lines. The page loads nothing from elsewhere."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from types import MappingProxyType

from ptxdsl.profile.counted import KernelProfile, LineCost, lines_in_files
from ptxdsl.profile.formats import against, summary, time_text

AROUND = 3  # lines without costs that are shown around lines with costs
_HEADINGS = ("", "instructions", "global bytes", "sectors", "shared bytes", "wavefronts", "operations")
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --dim: #6a737d; --line: #d8dee4; --heat: 230, 126, 34;
        --over: #a84300 }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e4e7eb; --dim: #8b949e; --line: #30363d;
        --over: #ffb27a } }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.3rem; margin: 0 0 .3rem } h2 { font-size: 1rem; margin: 2rem 0 .5rem }
p { margin: .2rem 0; color: var(--dim) }
pre.summary { white-space: pre-wrap; padding: .8rem; border: 1px solid var(--line);
       border-radius: 6px; font: 13px/1.5 ui-monospace, monospace }
.scroll { overflow-x: auto } table { border-collapse: collapse; font: 13px/1.45 ui-monospace, monospace; width: 100% }
th { text-align: right; font-weight: 600; color: var(--dim); padding: .2rem .6rem; border-bottom: 1px solid var(--line);
     white-space: nowrap } th:first-child, td.source { text-align: left }
td { text-align: right; padding: 0 .6rem; white-space: pre; vertical-align: top } td.number { color: var(--dim) }
td.over { font-weight: 600; color: var(--over) } tr.gap td { color: var(--dim); text-align: center }
.finding { border-left: 4px solid #c0392b; padding-left: .8rem; white-space: pre; overflow-x: auto;
       font: 13px/1.5 ui-monospace, monospace; margin: .6rem 0 }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .2rem .8rem; align-items: center;
       font: 13px/1.5 ui-monospace, monospace; margin: 1rem 0 }
.bar { height: .8rem; border-radius: 3px; background: var(--line) }
.bar div { height: 100%; border-radius: 3px; background: rgb(var(--heat)) }
details { margin: .6rem 0 } summary { cursor: pointer }
details pre { overflow-x: auto; font: 12px/1.4 ui-monospace, monospace; border: 1px solid var(--line); padding: .8rem;
       border-radius: 6px; max-height: 40rem }
"""


def as_html(profile: KernelProfile, listings: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the page. `listings` are collapsed texts by title: PTX and SASS."""
    title = escape(f"{profile.launch} on {profile.peaks.name}")
    findings = "".join(f'<pre class="finding">{escape(str(finding))}</pre>' for finding in profile.findings)
    files = lines_in_files(profile.lines)
    tables = "".join(f"<h2>{escape(Path(file).name)}</h2>{_table(file, lines)}" for file, lines in files.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{title}</h1><p>{escape(str(profile.peaks))}</p>{findings}{_bars(profile)}"
        f'<pre class="summary">{escape(chr(10).join(summary(profile)))}</pre>{tables}{_listings(listings)}'
        "<p>Counted on the emulator. Minima are in brackets. The shade is a line's share of the "
        "instructions.</p></body></html>\n"
    )


def _bars(profile: KernelProfile) -> str:
    """Bars for occupancy, the terms of the floor, and the measured time; times share one scale."""
    held = profile.occupancy
    bars = [("occupancy", held.warps / max(1, held.most_warps), f"{held.warps} of {held.most_warps} warps")]
    terms = [(term.resource, term.microseconds) for term in profile.terms]
    terms.append(("issue", profile.issue))
    if profile.measured is not None:
        terms.append(("measured", profile.measured))
    longest = max(microseconds for _, microseconds in terms) or 1.0
    bars += [(name, microseconds / longest, time_text(microseconds)) for name, microseconds in terms]
    rows = "".join(
        f'<span>{escape(name)}</span><div class="bar"><div style="width: {share:.1%}"></div></div>'
        f"<span>{escape(text)}</span>"
        for name, share, text in bars
    )
    return f'<div class="bars">{rows}</div>'


def _listings(listings: Mapping[str, str]) -> str:
    return "".join(
        f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
        for title, text in listings.items()
    )


def _table(file: str, lines: Mapping[int, LineCost]) -> str:
    most = max(line.instructions for line in lines.values())
    head = "".join(f"<th>{heading}</th>" for heading in (*_HEADINGS, ""))
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(_rows(file, lines, most))}</table></div>'


def _rows(file: str, lines: Mapping[int, LineCost], most: int) -> Iterator[str]:
    """Yield the lines with costs and the lines around them."""
    shown = sorted({near for line in lines for near in range(max(1, line - AROUND), line + AROUND + 1)})
    before = shown[0] - 1
    for number in shown:
        source = linecache.getline(file, number).rstrip("\n")
        if number != before + 1:
            yield f'<tr class="gap"><td colspan="{len(_HEADINGS) + 1}">…</td></tr>'
        before = number
        if number in lines or source:
            yield _row(number, source, lines.get(number), most)


def _row(number: int, source: str, line: LineCost | None, most: int) -> str:
    cells = [""] * (len(_HEADINGS) - 1) if line is None else _cells(line)
    heat = 0.0 if line is None else 0.45 * line.instructions / most
    style = f' style="background: rgba(var(--heat), {heat:.2f})"' if line is not None else ""
    title = escape(", ".join(f"{count} {name}" for name, count in line.by_name.items())) if line is not None else ""
    marks = [' class="over"' * ("(" in cell) for cell in cells]
    columns = "".join(f"<td{mark}>{escape(cell)}</td>" for mark, cell in zip(marks, cells, strict=True))
    first, last = f'<td class="number">{number}</td>', f'<td class="source">{escape(source)}</td>'
    return f'<tr{style} title="{title}">{first}{columns}{last}</tr>'


def _cells(line: LineCost) -> list[str]:
    counts = [line.instructions, line.bytes.get("global", 0), None, line.bytes.get("shared", 0), None]
    texts = [f"{count:,}" if count else "" for count in counts]
    texts[2] = against(line.sectors, line.least_sectors)
    texts[4] = against(line.wavefronts, line.least_wavefronts)
    operations = sum(line.operations.values())
    return [*texts, f"{operations:,.0f}" if operations else ""]
