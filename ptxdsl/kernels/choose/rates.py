"""Rates of GPUs, and the configurations that were measured best on them: one JSON file a GPU, next to this module.

`benchmarks/fit.py` writes the files. Rates are per microsecond, times are in microseconds, and both are of one
multiprocessor where nothing else is said. Files are found by the driver's name of the GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxdsl import driver
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.choose.winners import winners
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import Type

FOLDER = Path(__file__).parent
DEFAULT = "NVIDIA H200"  # the GPU that the emulator stands for
COPY_LAUNCH = 3.6  # microseconds of a launch that copies an operand, apart from its bytes


@dataclass(frozen=True)
class Gpu:
    """Facts that the driver reports. `bandwidth` is the peak of its memory in bytes per microsecond."""

    name: str
    multiprocessors: int
    clock_khz: int
    bandwidth: float


@dataclass(frozen=True)
class PathRates:
    """The rates of one path (sm_80 or sm_90a).

    `multiply_adds` is a table by the type of the inputs; types of 16 bits share f16. `narrow` is the least time of a
    warpgroup's products in an iteration, half of which wide products hide. `load` is the bytes that an iteration moves
    through shared memory, and `overlap_lost` the part of the shorter of math and load that the longer does not hide.
    `latency` is that of a load, which the stages of the ring share. A wave of blocks takes `wave`; `store` is for an
    element of the accumulators, of which cooperative blocks expose `exposed` in all tiles but the last. `dram` is the
    bandwidth of the whole GPU, and `dram_lost` the part of the shorter of computing and reading that is not hidden.
    Blocks that share the K of a tile take `meeting`, and `sum` for an element of the accumulators; those that add
    through global memory take `global_sum`. `multicast` is what a cluster takes to share its loads. Rows of
    operands that are not 16-byte aligned (sm_80: 4-byte) load `unaligned` times as slowly. Blocks that draw tiles of
    groups take `groups` to begin, and those of lists, whose matrices each have an address or a tensor map, `lists`.
    """

    multiply_adds: Mapping[str, float]
    narrow: float
    load: float
    overlap_lost: float
    latency: float
    wave: float
    store: float
    exposed: float
    dram: float
    dram_lost: float
    meeting: float
    sum: float
    global_sum: float
    multicast: float
    unaligned: float
    groups: float
    lists: float

    def of(self, inputs: Type) -> float:
        """The multiply-adds of a type."""
        usual = "s8" if inputs.bits == 8 else "f16"
        return self.multiply_adds.get(inputs.name) or self.multiply_adds[usual]

    def on(self, clock: float, memory: float) -> PathRates:
        """The rates of a GPU whose clock and memory are faster by these factors."""
        return replace(
            self,
            multiply_adds={name: rate * clock for name, rate in self.multiply_adds.items()},
            load=self.load * clock,
            narrow=self.narrow / clock,
            store=self.store / clock,
            dram=self.dram * memory,
        )


@dataclass(frozen=True)
class Rates:
    """All that is measured of a GPU. `launch` is the time that any launch takes next to others back to back, and
    `clusters` are the parts of the GPU that clusters of 1, 2, … blocks fill. `winners` maps shape classes to the labels
    of the configurations that were measured best."""

    gpu: Gpu
    cache_bytes: int
    launch: float
    clusters: tuple[float, ...]
    sm80: PathRates
    sm90: PathRates
    winners: Mapping[str, str] = field(default_factory=dict)

    @property
    def multiprocessors(self) -> int:
        return self.gpu.multiprocessors

    def of(self, config: GemmConfig) -> PathRates:
        """The rates of the path of a configuration."""
        rates: PathRates = getattr(self, config.path)
        return rates

    def on(self, gpu: Gpu) -> Rates:
        """The rates of another GPU, scaled by its clock and memory. Its winners are not known."""
        clock, memory = gpu.clock_khz / self.gpu.clock_khz, gpu.bandwidth / self.gpu.bandwidth
        return replace(self, gpu=gpu, sm80=self.sm80.on(clock, memory), sm90=self.sm90.on(clock, memory), winners={})

    def copy_time(self, launches: int, moved: float) -> float:
        """The microseconds of launches that copy operands, which read and write so many bytes."""
        return launches * COPY_LAUNCH + moved / self.gpu.bandwidth


@cache
def known() -> dict[str, Rates]:
    """The rates of all measured GPUs, by name."""
    return {rates.gpu.name: rates for rates in map(read, sorted(FOLDER.glob("*.json")))}


def read(path: Path) -> Rates:
    """Return the rates in a file, whose `source` says where they come from."""
    data: dict[str, Any] = json.loads(path.read_text())
    data = {each.name: data[each.name] for each in fields(Rates)}
    paths = {name: PathRates(**data[name]) for name in ("sm80", "sm90")}
    return Rates(**{**data, **paths, "gpu": Gpu(**data["gpu"]), "clusters": tuple(data["clusters"])})


def write(path: Path, rates: Rates, source: Mapping[str, object]) -> None:
    """Write a file of rates; `source` says how they were measured."""
    path.write_text(json.dumps({"source": dict(source), **asdict(rates)}, indent=1) + "\n")


def rates_of(device: int | None = None) -> Rates:
    """Return the rates of a GPU of this machine; those of the default GPU for the emulator.

    A GPU that was not measured has the rates of the default one, scaled by its clock, multiprocessors and memory. What
    config="tune" has measured comes before the winners of a file.
    """
    if device is None:
        return known()[DEFAULT]
    rates = _of_device(driver.device(device))
    measured = winners(rates.gpu.name)
    return replace(rates, winners={**rates.winners, **measured}) if measured else rates


@cache
def _of_device(device: driver.Device) -> Rates:
    measured = known().get(device.name)
    if measured and measured.gpu.multiprocessors == device.multiprocessors:
        return measured
    if measured:
        return measured.on(replace(measured.gpu, multiprocessors=device.multiprocessors))
    default = known()[DEFAULT]
    try:
        clock, bandwidth = driver.clock_khz(device.ordinal), driver.memory_bandwidth(device.ordinal)
    except LaunchError:  # the driver does not report them
        clock, bandwidth = 0, 0.0
    gpu = default.gpu
    return default.on(Gpu(device.name, device.multiprocessors, clock or gpu.clock_khz, bandwidth or gpu.bandwidth))
