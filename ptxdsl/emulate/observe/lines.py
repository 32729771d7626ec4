"""Counters of instructions, summed by source line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...errors import Location
from ..memory.access import Origin
from ..report import LineCounters, LineTable, Traffic

_NOWHERE = ("", 0)


def by_line(
    instructions: Mapping[Origin, int],
    bytes: Mapping[tuple[Origin, str], int],
    wavefronts: Sequence[Traffic],
    sectors: Sequence[Traffic],
) -> list[LineCounters]:
    """Return the counters of each line, in the order of files and lines."""
    lines: dict[tuple[str, int], LineCounters] = {}

    def at(location: Location | None) -> LineCounters:
        key = (location.file, location.line) if location is not None else _NOWHERE
        return lines.setdefault(key, LineCounters(location, Counter(), Counter()))

    for origin, count in instructions.items():
        at(origin.location).instructions[origin.name] += count
    for (origin, space), count in bytes.items():
        at(origin.location).bytes[space] += count
    for traffic in wavefronts:
        line = at(traffic.location)
        line.wavefronts += traffic.taken
        line.ideal_wavefronts += traffic.ideal
    for traffic in sectors:
        line = at(traffic.location)
        line.sectors += traffic.taken
        line.ideal_sectors += traffic.ideal
    return LineTable(lines[key] for key in sorted(lines))
