"""The counted costs of a launch: lines, totals, occupancy, and the lower bound on its time on a GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxdsl.emulate.report import Finding, LineCounters, Report
from ptxdsl.errors import Error, Location
from ptxdsl.profile.operations import operations_of
from ptxdsl.profile.roofline import FloorTerm, GpuPeaks, floor_of, issue_time
from ptxdsl.runtime.shape import Shape
from ptxdsl.runtime.variant import Variant
from ptxdsl.schedule import blocks_per_multiprocessor
from ptxdsl.schedule.occupancy import limits_of

WARP = 32


@dataclass(frozen=True)
class LineCost:
    """The costs of a line: bytes and sectors of global memory, wavefronts of shared memory; `least` are the minima."""

    location: Location | None
    instructions: int
    by_name: dict[str, int]
    bytes: dict[str, int]
    wavefronts: int
    least_wavefronts: int
    sectors: int
    least_sectors: int
    operations: dict[str, float]

    @classmethod
    def of(cls, line: LineCounters) -> LineCost:
        operations: Counter[str] = Counter()
        for name, count in line.instructions.items():
            unit, each = operations_of(name)
            operations[unit] += count * each  # type: ignore[assignment]
        operations.pop("", None)
        return cls(
            line.location, sum(line.instructions.values()), dict(line.instructions.most_common()),
            {space: count for space, count in line.bytes.items() if count}, line.wavefronts, line.ideal_wavefronts,
            line.sectors, line.ideal_sectors, {unit: float(count) for unit, count in operations.items()},
        )  # fmt: skip


@dataclass(frozen=True)
class Occupancy:
    """The resources of a block, the number of blocks that fit on a multiprocessor, and the resource that limits it.

    Without an assembler the registers are unknown (None) and do not limit it.
    """

    threads: int
    registers: int | None
    shared_bytes: int
    resident: int
    limit: str
    warps: int
    most_warps: int
    waves: float

    def __str__(self) -> str:
        held = "registers unknown" if self.registers is None else f"{self.registers} registers a thread"
        blocks = f"{self.resident} block{'s' * (self.resident != 1)}"
        return (
            f"{self.threads} threads, {held}, {self.shared_bytes} bytes of shared memory a block: {blocks} of a "
            f"multiprocessor, {self.warps} of {self.most_warps} warps, limited by {self.limit}; {self.waves:.3g} waves"
        )


@dataclass(frozen=True)
class KernelProfile:
    """The counted costs of a launch. `touched` are the bytes of global memory in the sectors that it accesses, each
    once.

    `floor` and `measured` are in microseconds, on the GPU of `peaks` and on the GPU here. `why_not` is the reason for
    not measuring.
    """

    kernel: str
    launch: str
    lines: tuple[LineCost, ...]
    findings: tuple[Finding, ...]
    touched: int
    occupancy: Occupancy
    peaks: GpuPeaks
    terms: tuple[FloorTerm, ...]
    issue: float
    measured: float | None = None
    why_not: str = ""

    @property
    def total(self) -> LineCost:
        """The costs of all lines."""
        return total_of(self.lines)

    @property
    def floor(self) -> float:
        return max((term.microseconds for term in self.terms), default=0.0)

    @property
    def intensity(self) -> float:
        """Operations per byte of global memory."""
        return sum(self.total.operations.values()) / self.touched if self.touched else math.inf


def profile_of(
    kernel: str, launch: str, variant: Variant, shape: Shape, report: Report, peaks: GpuPeaks
) -> KernelProfile:
    """Return the profile of a launch from the report of its emulation with `traffic`."""
    lines = tuple(map(LineCost.of, report.counters))
    blocks, total = math.prod(shape.grid), total_of(lines)
    touched = sum(report.touched_bytes.values())
    return KernelProfile(
        kernel, launch, lines, tuple(report.findings), touched, occupancy_of(variant, shape, peaks), peaks,
        tuple(floor_of(peaks, blocks, touched, total.wavefronts, total.operations)),
        issue_time(peaks, blocks, total.instructions),
    )  # fmt: skip


def occupancy_of(variant: Variant, shape: Shape, peaks: GpuPeaks) -> Occupancy:
    """Return the number of blocks of a launch that fit on a multiprocessor of a GPU."""
    try:
        registers: int | None = variant.cubin.kernels[variant.name].registers
    except (Error, KeyError):  # no assembler, so the registers are unknown
        registers = None
    shared, arch = variant.static_bytes + shape.shared_bytes, peaks.arch
    resident = blocks_per_multiprocessor(shape.threads, registers or 1, shared, arch)
    alone = {
        "warps or blocks": blocks_per_multiprocessor(shape.threads, 1, 0, arch),
        "registers": blocks_per_multiprocessor(shape.threads, registers or 1, 0, arch),
        "shared memory": blocks_per_multiprocessor(shape.threads, 1, shared, arch),
    }
    limit = min(alone, key=lambda name: alone[name])
    warps = math.ceil(shape.threads / WARP)
    waves = math.prod(shape.grid) / max(1, resident * peaks.multiprocessors)
    most = limits_of(arch).warps
    return Occupancy(shape.threads, registers, shared, resident, limit, warps * resident, most, waves)


def total_of(lines: Sequence[LineCost]) -> LineCost:
    """Return the sum of the costs of lines."""
    by_name: Counter[str] = Counter()
    bytes: Counter[str] = Counter()
    operations: Any = Counter()
    for line in lines:
        by_name.update(line.by_name)
        bytes.update(line.bytes)
        operations.update(line.operations)
    return LineCost(
        None, by_name.total(), dict(by_name), dict(bytes),
        sum(line.wavefronts for line in lines), sum(line.least_wavefronts for line in lines),
        sum(line.sectors for line in lines), sum(line.least_sectors for line in lines), dict(operations),
    )  # fmt: skip


def lines_in_files(lines: Sequence[LineCost]) -> dict[str, dict[int, LineCost]]:
    """Group the costs by file and line; costs without a line are left out."""
    files: dict[str, dict[int, LineCost]] = {}
    for line in lines:
        if line.location is not None and line.location.line > 0:
            files.setdefault(line.location.file, {})[line.location.line] = line
    return files
