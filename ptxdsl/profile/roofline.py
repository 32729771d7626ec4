"""A lower bound on the time of a launch on a GPU: the slowest of memory, shared memory, tensor cores and CUDA cores.

Sources: CUDA C++ Programming Guide, "Arithmetic Instructions", and the architecture white papers, for operations a
clock; `kernels/choose/h200.json` and `gpus.json` for the GPUs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptxdsl import driver
from ptxdsl.errors import Error
from ptxdsl.kernels.choose.rates import DEFAULT, Gpu, known, rates_of

# Operations of a multiprocessor per clock, by compute capability; multiply-adds count twice.
_LANES = {
    80: {"f32": 128, "f64": 64, "f16": 512, "special functions": 16},
    86: {"f32": 256, "f64": 4, "f16": 256, "special functions": 16},
    89: {"f32": 256, "f64": 4, "f16": 256, "special functions": 16},
    90: {"f32": 256, "f64": 128, "f16": 512, "special functions": 16},
    100: {"f32": 256, "f64": 128, "f16": 512, "special functions": 16},
}
_TENSOR = {
    80: {"f16": 2048, "tf32": 1024, "s8": 4096, "f64": 128, "s4": 8192, "b1": 16384},
    86: {"f16": 1024, "tf32": 512, "s8": 2048, "f64": 4, "s4": 4096, "b1": 8192},
    89: {"f16": 1024, "tf32": 512, "s8": 2048, "e4m3": 2048, "f64": 4, "s4": 4096, "b1": 8192},
    90: {"f16": 4096, "tf32": 2048, "s8": 8192, "e4m3": 8192, "f64": 256, "b1": 16384},
    100: {"f16": 8192, "tf32": 4096, "s8": 16384, "e4m3": 16384, "f64": 256},
}
ISSUED = 4  # warp instructions per clock
WARP = 32
USUAL = "h200"


@dataclass(frozen=True)
class GpuPeaks:
    """The peak rates of a GPU: bytes of memory per microsecond; operations of a multiprocessor per clock, by unit."""

    name: str
    arch: str
    multiprocessors: int
    clock_mhz: float
    bandwidth: float
    operations: Mapping[str, int]

    def __str__(self) -> str:
        memory = f"{self.bandwidth / 1000:.0f} GB/s"
        return f"{self.name}: {self.multiprocessors} multiprocessors at {self.clock_mhz:.0f} MHz, {memory}"


@dataclass(frozen=True, slots=True)
class FloorTerm:
    """A resource, the amount that a launch uses, and the least microseconds that this takes."""

    resource: str
    amount: float
    unit: str
    microseconds: float


def peaks_of(name: str | None = None) -> GpuPeaks:
    """Return a GPU by its short name (h200, h100, a100, …), by default the first GPU of this machine, else the H200.

    Raises Error for an unknown name.
    """
    if name is None:
        return peaks_of(USUAL) if driver.why_no_gpu() else _peaks(rates_of(0).gpu, driver.device(0).arch)
    if name not in names():
        raise Error(f"`{name}` is not a known GPU", help=f"choose one of {', '.join(names())}")
    if name == USUAL:
        return _peaks(known()[DEFAULT].gpu, "sm_90a")
    facts = dict(_sheets()[name])
    arch = str(facts.pop("arch"))
    return _peaks(Gpu(**facts), arch)  # type: ignore[arg-type]


def names() -> list[str]:
    return [USUAL, *_sheets()]


@cache
def _sheets() -> dict[str, Mapping[str, object]]:
    sheets = json.loads(Path(__file__).with_name("gpus.json").read_text())
    del sheets["source"]
    return dict(sheets)


def _peaks(gpu: Gpu, arch: str) -> GpuPeaks:
    capability = int(arch.removeprefix("sm_").rstrip("af"))
    nearest = max(known for known in _LANES if known <= max(capability, min(_LANES)))
    tensor = {f"tensor {type}": rate for type, rate in _TENSOR[nearest].items()}
    return GpuPeaks(
        gpu.name, arch, gpu.multiprocessors, gpu.clock_khz / 1000, gpu.bandwidth, {**_LANES[nearest], **tensor}
    )


def floor_of(
    peaks: GpuPeaks, blocks: int, touched: int, wavefronts: int, operations: Mapping[str, float]
) -> list[FloorTerm]:
    """Return the least time of each resource that a launch uses, the longest first.

    `touched` are the bytes of memory that are read or written, each once. A launch of few blocks uses as many
    multiprocessors.
    """
    clocks = peaks.clock_mhz * max(1, min(blocks, peaks.multiprocessors))  # of all multiprocessors, per microsecond
    terms = [
        FloorTerm("memory", touched, "bytes", touched / peaks.bandwidth),
        FloorTerm("shared memory", wavefronts, "wavefronts", wavefronts / clocks),
    ]
    for unit, count in operations.items():
        if unit in peaks.operations:
            terms.append(FloorTerm(unit, count, "operations", count / (peaks.operations[unit] * clocks)))
    return sorted((term for term in terms if term.amount), key=lambda term: -term.microseconds)


def issue_time(peaks: GpuPeaks, blocks: int, instructions: int) -> float:
    """Return the microseconds to issue the PTX instructions; the assembler may need fewer or more."""
    clocks = peaks.clock_mhz * max(1, min(blocks, peaks.multiprocessors))
    return math.ceil(instructions / WARP) / (ISSUED * clocks)
