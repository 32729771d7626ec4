"""Memory traffic: wavefronts of shared accesses and sectors of global ones, with the minimum for the same accesses.

Instructions and bytes are counted by line too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..memory.access import READS, UPDATES, WRITES, Access, Event, Landing, Observer, Origin, Requester
from ..report import Report, Traffic
from ..run.residents import WARP
from .lines import by_line

BANKS, BANK_BYTES, SECTOR_BYTES = 32, 4, 32


@dataclass(slots=True)
class _Sums:
    """The wavefronts or sectors of an instruction, and the minimum."""

    taken: int = 0
    ideal: int = 0


class TrafficCounter(Observer):
    """Counts the traffic of each instruction; `tell` writes it into the report when the kernel has ended.

    Asynchronous copies of global memory count when they land, because they read their source then.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.sums: dict[tuple[Origin, str], _Sums] = {}
        self.instructions: Counter[Origin] = Counter()
        self.bytes: Counter[tuple[Origin, str]] = Counter()
        self.touched: dict[str, np.ndarray] = {}  # for reads and writes, a bool for each sector of global memory

    def count(self, origin: Origin, lanes: int) -> None:
        """Count an instruction of lanes."""
        self.instructions[origin] += lanes

    def access(self, access: Access) -> None:
        space = access.space.partition("::")[0]
        if access.asynchronous and _counts_later(access, space):
            return
        number, flat = np.arange(access.flat.size), access.flat.reshape(-1)
        if access.allowed is not None:
            number = np.flatnonzero(access.allowed)
            flat = flat[number]
        self.bytes[access.by.origin, space] += flat.size * access.size
        if space == "global":
            self._touch(access.kind, flat, access.size)
        if space == "global" or (space == "shared" and access.ordering.proxy != "async"):
            count = _wavefronts if space == "shared" else _sectors
            self._add(access.by.origin, space, *count(_groups(access, number, space), flat, access.size))

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, Landing) and event.source is not None:
            used = np.full(event.source.size, event.bytes) if event.used is None else event.used
            reads = used > 0
            self.bytes[event.origin, "global"] += int(used.sum())
            counts = _sectors((event.lanes // WARP)[reads], event.source[reads], event.bytes)
            self._add(event.origin, "global", *counts)
            self._touch(READS, event.source[reads], event.bytes)

    def _touch(self, kind: str, flat: np.ndarray, size: int) -> None:
        """Mark the sectors of accesses; atomic operations both read and write them."""
        if not flat.size:
            return
        sectors = np.concatenate((flat // SECTOR_BYTES, (flat + size - 1) // SECTOR_BYTES))
        end = int(sectors.max()) + 1
        for way in (READS, WRITES) if kind == UPDATES else (kind,):
            known = self.touched.get(way, np.zeros(0, bool))
            if len(known) < end:
                known = np.concatenate((known, np.zeros(2 * end - len(known), bool)))
            known[sectors] = True
            self.touched[way] = known

    def _add(self, origin: Origin, space: str, taken: int, ideal: int) -> None:
        sums = self.sums.setdefault((origin, space), _Sums())
        sums.taken += taken
        sums.ideal += ideal

    def tell(self) -> None:
        """Write the counts into the report."""
        self.report.bank_conflicts = self._traffic("shared")
        self.report.global_sectors = self._traffic("global")
        self.report.touched_bytes = {way: SECTOR_BYTES * int(on.sum()) for way, on in self.touched.items()}
        self.report.counters = by_line(
            self.instructions, self.bytes, self.report.bank_conflicts, self.report.global_sectors
        )

    def _traffic(self, wanted: str) -> list[Traffic]:
        return [
            Traffic(origin.name, origin.location, sums.taken, sums.ideal)
            for (origin, space), sums in self.sums.items()
            if space == wanted
        ]


def _counts_later(access: Access, space: str) -> bool:
    """True if an asynchronous access counts when it is carried out; mbarrier arrivals move no data."""
    if access.ordering.proxy != "async":
        return space == "global"
    return access.kind == UPDATES or (access.kind == WRITES and space == "global")


def _groups(access: Access, number: np.ndarray, space: str) -> np.ndarray:
    """Return the group that serves each access: a warp, or half or a quarter of one for wide shared accesses."""
    lanes = access.lanes.reshape(-1)[number]
    instruction = number // max(1, access.flat.size // max(1, len(access.flat))) if access.flat.ndim > 2 else 0
    parts = max(1, access.size // BANK_BYTES) if space == "shared" else 1
    each = WARP // parts
    groups: np.ndarray = (instruction * access.by.residents.lanes + lanes // WARP * WARP) + lanes % WARP // each
    return groups


def _distinct(groups: np.ndarray, flat: np.ndarray, size: int, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct units of memory of each group: (groups numbered from 0, units)."""
    units = (flat[:, np.newaxis] + np.arange(0, max(size, 1), min(unit, size))) // unit
    _, dense = np.unique(groups, return_inverse=True)
    pairs = np.unique(np.stack([np.repeat(dense, units.shape[1]), units.reshape(-1)]), axis=1)
    return pairs[0], pairs[1]


def _wavefronts(groups: np.ndarray, flat: np.ndarray, size: int) -> tuple[int, int]:
    """Count wavefronts: each serves one word of each bank."""
    group, word = _distinct(groups, flat, size, BANK_BYTES)
    if not group.size:
        return 0, 0
    held = np.bincount(group * BANKS + word % BANKS, minlength=(int(group[-1]) + 1) * BANKS).reshape(-1, BANKS)
    return int(held.max(1).sum()), int((-(-held.sum(1) // BANKS)).sum())


def _sectors(groups: np.ndarray, flat: np.ndarray, size: int) -> tuple[int, int]:
    """Count sectors of 32 bytes, and the minimum for the distinct bytes."""
    group, _ = _distinct(groups, flat, size, SECTOR_BYTES)
    parts, _ = _distinct(groups, flat, size, min(size, SECTOR_BYTES))
    least = np.bincount(parts) * min(size, SECTOR_BYTES)
    return len(group), int((-(-least // SECTOR_BYTES)).sum())
