"""What a GPU does in a microsecond, as measured: one file of data a GPU beside this one, written by benchmarks/fit.py.

Rates of multiprocessors, caches and memory are in bytes, multiply-adds or elements a microsecond; times in
microseconds. Files are known by the name that the driver has for the GPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxdsl import driver
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.choose.warpgroup_rates import (
    FilterGradientRates,
    GroupRates,
    LargeRates,
    PathRates,
    WarpgroupRates,
    WindowRates,
)

FOLDER = Path(__file__).parent
DEFAULT = "NVIDIA H200"  # the GPU that the emulator stands for


@dataclass(frozen=True)
class Gpu:
    """Facts about a GPU that the driver knows. `bandwidth` is what its memory could do at best, bytes a microsecond."""

    name: str
    multiprocessors: int
    clock_khz: int
    bandwidth: float


@dataclass(frozen=True)
class Rates:
    """What the model is made of.

    Of one multiprocessor: `multiply_adds` by the type of inputs, `shared_bandwidth`, `odd_elements` that are copied one
    by one. Of the GPU: `l2_bandwidth`, `dram_bandwidth`. Times: an `iteration` along k at least, beside its share of
    the `copy_latency`; an `odd_iteration` of single elements; a `wave` of blocks; a `launch`; one that reads DRAM,
    `dram_latency`; a copy that a thread begins before the first iteration, `beginning`.

    DRAM is at half of its bandwidth when rings wait for `in_flight` bytes; `reading` is the part of the shorter of
    computing and reading that does not hide behind the longer one; rows of a tile below `short_row` bytes are read
    `slower`. Fewer than `busy_threads` do not keep a multiprocessor busy, by the power of `idleness`. Blocks that split
    K meet in `meeting` and leave sums at `meeting_bandwidth`, of stream-K at `stream_bandwidth`; warps that share the K
    of a tile at `gathering`.

    `uncounted` are multiply-adds by the type of inputs for whose time these rates, which tell configurations apart, do
    not account: it counts beside other paths.

    `grouped` has the TFLOP/s of candidates of persistent blocks; others reach half of `most_rate` with tiles of
    `half_rate` elements; a multiprocessor with one block waits `between_tiles`. `convolution` has the time of a
    multiprocessor for a million multiply-adds, by the bits of inputs and the candidate; a block `alone` takes so much
    of the time of two; `write` is for one element of the output, and `meet` of the whole GPU for one sum of a slice.
    """

    gpu: Gpu
    multiply_adds: Mapping[str, float]
    shared_bandwidth: float
    odd_elements: float
    l2_bandwidth: float
    dram_bandwidth: float
    iteration: float
    copy_latency: float
    odd_iteration: float
    wave: float
    launch: float
    dram_latency: float
    beginning: float
    in_flight: float
    reading: float
    short_row: float
    slower: float
    busy_threads: float
    idleness: float
    meeting: float
    meeting_bandwidth: float
    stream_bandwidth: float
    gathering: float
    uncounted: Mapping[str, float]
    grouped: Mapping[str, float]
    half_rate: float
    most_rate: float
    between_tiles: float
    convolution: Mapping[str, float]
    alone: float
    write: float
    meet: float
    warpgroups: WarpgroupRates
    large: LargeRates
    groups: GroupRates
    windows: WindowRates
    wgrad: FilterGradientRates

    def on(self, gpu: Gpu) -> Rates:
        """The same for another GPU of the kind: what its clock, its multiprocessors and its memory make of it."""
        clock, memory = gpu.clock_khz / self.gpu.clock_khz, gpu.bandwidth / self.gpu.bandwidth
        whole = clock * gpu.multiprocessors / self.gpu.multiprocessors
        return replace(
            self,
            gpu=gpu,
            multiply_adds=_scaled(self.multiply_adds, clock),
            uncounted=_scaled(self.uncounted, clock),
            shared_bandwidth=self.shared_bandwidth * clock,
            odd_elements=self.odd_elements * clock,
            l2_bandwidth=self.l2_bandwidth * whole,
            dram_bandwidth=self.dram_bandwidth * memory,
            grouped=_scaled(self.grouped, whole),
            most_rate=self.most_rate * whole,
            convolution=_scaled(self.convolution, 1 / clock),
            **{name: getattr(self, name).on(clock, memory) for name in OF_WARPGROUPS},
        )


OF_WARPGROUPS: dict[str, type[PathRates]] = {
    "warpgroups": WarpgroupRates,
    "large": LargeRates,
    "groups": GroupRates,
    "windows": WindowRates,
    "wgrad": FilterGradientRates,
}
"""What is of the sm_90a path, by kind of problem."""


def _scaled(rates: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: rate * factor for name, rate in rates.items()}


@cache
def known() -> dict[str, Rates]:
    """The rates of all GPUs that were measured, by name."""
    measured = (read(FOLDER / name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".json"))
    return {rates.gpu.name: rates for rates in measured}


def read(path: Path) -> Rates:
    """The rates in a file, whose other entries say where they come from."""
    data: dict[str, Any] = json.loads(path.read_text())
    wanted = {field.name: data[field.name] for field in fields(Rates)}
    data["warpgroups"]["in_clusters"] = tuple(data["warpgroups"]["in_clusters"])
    of_warpgroups = {name: kind(**data[name]) for name, kind in OF_WARPGROUPS.items()}
    return Rates(**{**wanted, **of_warpgroups, "gpu": Gpu(**data["gpu"])})


def write(path: Path, rates: Rates, source: Mapping[str, object]) -> None:
    """A file of rates; `source` says how they were measured."""
    path.write_text(json.dumps({"source": dict(source), **asdict(rates)}, indent=1) + "\n")


def rates_of(device: int | None) -> Rates:
    """Those of a GPU of this machine, by its number; of the default one for the emulator.

    Of a GPU that was not measured, those of the default one, scaled by what the driver says of its clock, its
    multiprocessors and its memory; of a part of one that was, with as many multiprocessors as it has.
    """
    return known()[DEFAULT] if device is None else _of_device(driver.device(device))


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
    except LaunchError:  # a driver that does not say
        clock, bandwidth = 0, 0.0
    gpu = default.gpu
    return default.on(Gpu(device.name, device.multiprocessors, clock or gpu.clock_khz, bandwidth or gpu.bandwidth))
