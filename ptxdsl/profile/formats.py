"""Profiles as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ptxdsl import __version__
from ptxdsl.errors import printable
from ptxdsl.profile.counted import KernelProfile, LineCost

_HEADINGS = ("line", "instructions", "global bytes", "sectors", "shared bytes", "wavefronts", "operations", "source")
_SOURCE_COLUMNS = 60
_LEFT = (0, len(_HEADINGS) - 1)  # columns of text; the others are numbers


def as_text(profile: KernelProfile) -> str:
    """Format the launch, a table of its lines, and the summary."""
    rows = [_HEADINGS, *map(_cells, profile.lines), ("all", *_numbers(profile.total), "")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    findings = [f"{len(profile.findings)} findings: the counts below may be wrong", *map(str, profile.findings)]
    heading = [f"{profile.launch} on {profile.peaks}", *(findings if profile.findings else [])]
    return "\n".join([*heading, "", *table, "", *summary(profile)]) + "\n"


def summary(profile: KernelProfile) -> list[str]:
    """Return the occupancy, the arithmetic intensity, the floor and the measured time, a line of text each."""
    operations = sum(profile.total.operations.values())
    ratio = f"{profile.intensity:.3g}" if profile.touched else "no"
    lines = [
        f"occupancy   {profile.occupancy}",
        f"intensity   {_count(operations)} operations on {_count(profile.touched)} bytes of memory: {ratio} a byte",
        f"floor       {time_text(profile.floor)}" + (f", by {profile.terms[0].resource}" if profile.terms else ""),
    ]
    for term in profile.terms:
        lines.append(f"            {time_text(term.microseconds)}  {term.resource}: {_count(term.amount)} {term.unit}")
    lines.append(f"            {time_text(profile.issue)}  to issue the instructions, if SASS has as many as PTX")
    if profile.measured is None:
        lines.append(f"measured    not: {profile.why_not}")
    else:
        part = profile.floor / profile.measured
        lines.append(f"measured    {time_text(profile.measured)}: the floor is {part:.0%} of it")
    return lines


def as_json(profile: KernelProfile) -> str:
    """Return all numbers; times are in microseconds."""
    peaks, total = profile.peaks, profile.total
    facts: dict[str, Any] = {
        "ptxdsl": __version__,
        "kernel": profile.kernel,
        "launch": profile.launch,
        "gpu": {"name": peaks.name, "arch": peaks.arch, "multiprocessors": peaks.multiprocessors,
                "clock_mhz": peaks.clock_mhz, "bytes_a_microsecond": peaks.bandwidth},
        "instructions": total.instructions,
        "operations": total.operations,
        "bytes": total.bytes,
        "touched_bytes": profile.touched,
        "intensity": profile.intensity if profile.touched else None,
        "occupancy": vars(profile.occupancy),
        "floor": profile.floor,
        "terms": [
            {"what": t.resource, "amount": t.amount, "unit": t.unit, "microseconds": t.microseconds}
            for t in profile.terms
        ],
        "issue": profile.issue,
        "measured": profile.measured,
        "not_measured": profile.why_not or None,
        "findings": [str(finding) for finding in profile.findings],
        "lines": [_line(line) for line in profile.lines],
    }  # fmt: skip
    return json.dumps(facts, indent=1) + "\n"


def _line(line: LineCost) -> Mapping[str, Any]:
    location = line.location
    source = {"file": location.file, "line": location.line, "source": location.text.strip()} if location else {}
    return source | {name: value for name, value in vars(line).items() if name != "location"}


def _cells(line: LineCost) -> tuple[str, ...]:
    location = line.location
    source = printable(location.text.strip())[:_SOURCE_COLUMNS] if location is not None else ""
    return str(location or "(no line)"), *_numbers(line), source


def _numbers(line: LineCost) -> tuple[str, ...]:
    return (
        _count(line.instructions),
        _number(line.bytes.get("global", 0)),
        against(line.sectors, line.least_sectors),
        _number(line.bytes.get("shared", 0)),
        against(line.wavefronts, line.least_wavefronts),
        _number(sum(line.operations.values())),
    )


def against(taken: int, least: int) -> str:
    """Format a count, with the minimum in brackets if that is less."""
    if not taken:
        return ""
    return _count(taken) if taken == least else f"{_count(taken)} ({_count(least)})"


def time_text(microseconds: float) -> str:
    """Format microseconds with three digits."""
    return f"{microseconds:.3g} us"


def _number(count: float) -> str:
    return _count(count) if count else ""


def _count(count: float) -> str:
    return f"{count:.0f}" if float(count).is_integer() else f"{count:.1f}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        text.ljust(width) if number in _LEFT else text.rjust(width)
        for number, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
