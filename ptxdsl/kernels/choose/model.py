"""One model of the time that a kernel takes, for products, groups of products and convolutions.

A multiprocessor goes through the k iterations of its blocks at the pace of what is slowest: tensor cores and shared
memory, the L2 cache, or the latency of a copy, which the stages of the ring share. The more bytes all rings wait for,
the faster DRAM delivers them. Persistent blocks of many products, and convolutions, whose copies are gathered, go at
the rate of their tile. All rates are data: `rates.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import ceil, prod
from typing import TypeAlias

import numpy as np

from ptxdsl.kernels.choose.candidates import label
from ptxdsl.kernels.choose.rates import Rates, rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands, outputs
from ptxdsl.kernels.sm80.tiling import LEAST_ASYNCHRONOUS, MOST_REGISTERS
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import StreamKThreadblockSwizzle, blocks_per_multiprocessor
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type

PERSISTENT_REGISTERS = 40  # of a thread, beside those that traits count
Shape: TypeAlias = tuple[int, int, int]
Sizes: TypeAlias = "tuple[np.ndarray, np.ndarray | int, np.ndarray]"
"""M, N and K of many problems: arrays, or one number for all."""


@dataclass(frozen=True)
class Candidate:
    """A configuration, and what the model must know of its kernel for such inputs."""

    config: GemmConfig
    inputs: Type
    traits: Traits
    tile: Shape
    warps: int
    fragments: int  # rows and columns that all warps load for a step along k
    threads: int
    stages: int
    stage_bytes: int
    sums: int  # bytes of the sums of a tile
    slices: int  # warps that share the K of a tile
    resident: int  # blocks that a multiprocessor holds
    split_k: int = 1
    is_streamed: bool = False

    def split(self, slices: int) -> Candidate:
        """The same with the K of each tile cut into slices."""
        return self if slices == self.split_k else replace(self, split_k=slices)

    def streamed(self) -> Candidate:
        """The same by stream-K."""
        return replace(self, is_streamed=True)

    @property
    def but_stages(self) -> tuple[object, ...]:
        """What tells it from others, but for the length of the ring."""
        return self.tile, self.config.warp, self.split_k, self.is_streamed

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.tile[0]) * -(-n // self.tile[1])

    def iterations(self, k: int) -> int:
        """Of a block along k."""
        return ceil(ceil(k / self.tile[2]) / self.split_k)


@lru_cache(maxsize=4096)
def candidate(config: GemmConfig, inputs: Type) -> Candidate:
    """A configuration of the sm_80 path for such inputs, with the usual output."""
    traits = usual_traits(config, inputs)
    tiling = traits.tiling
    registers = traits.registers + sum(config.warp[:2]) // 4
    warps = prod(tiling.warps)
    return Candidate(
        config, inputs, traits, config.tile, warps,
        fragments=warps * sum(config.warp[:2]),
        threads=tiling.threads,
        stages=config.stages,
        stage_bytes=traits.stage_bytes,
        sums=prod(config.tile[:2]) * traits.sum.bytes,
        slices=tiling.slices,
        resident=_resident(traits, registers),
        split_k=config.split_k,
        is_streamed=isinstance(config.schedule, StreamKThreadblockSwizzle),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def usual_traits(config: GemmConfig, inputs: Type) -> WarpTraits:
    """What its kernel for such inputs is made for, with the usual output."""
    return config.warp_traits(_usual(inputs))


@cache
def _usual(inputs: Type) -> Operands:
    return Operands(inputs, outputs(inputs)[0])


def _resident(traits: Traits, registers: int) -> int:
    return max(1, blocks_per_multiprocessor(traits.threads, min(MOST_REGISTERS, registers), traits.shared_bytes))


@lru_cache(maxsize=1024)
def _persistent_blocks(config: GemmConfig, inputs: Type) -> int:
    """Blocks that a multiprocessor holds of a kernel that goes on from tile to tile."""
    traits = usual_traits(config, inputs)
    return _resident(traits, traits.registers + PERSISTENT_REGISTERS)


@dataclass(frozen=True)
class CostModel:
    """What kernels should take on a GPU with such rates, in microseconds."""

    rates: Rates

    @property
    def multiprocessors(self) -> int:
        return self.rates.gpu.multiprocessors

    def on(self, multiprocessors: int) -> CostModel:
        """The model of a GPU with so many, each as fast as these."""
        if multiprocessors == self.multiprocessors:
            return self
        return CostModel(self.rates.on(replace(self.rates.gpu, multiprocessors=multiprocessors)))

    def product(self, candidate: Candidate, shape: Shape, width: int = 16, batches: int = 1) -> float:
        """So many products (M, N, K), which read their operands from DRAM; `width` is the narrowest copy, in bytes."""
        rates, (m, n, k) = self.rates, shape
        tiles = candidate.tiles(m, n) * batches
        computing = rates.launch + rates.beginning * _copies_before(candidate, width)
        computing += self._computing(candidate, tiles, k, width) + self._adding(candidate, tiles)
        each = candidate.inputs.bytes
        slower = rates.slower if candidate.tile[2] * each < rates.short_row else 1
        waiting = 1 + rates.in_flight / max(1, self._in_flight(candidate, tiles, k))
        moved = (m * k + k * n + m * n) * each * batches
        reading = moved / rates.dram_bandwidth * slower * waiting + rates.dram_latency
        return max(computing, reading) + rates.reading * min(computing, reading)

    def uncounted(self, inputs: Type, shape: Shape) -> float:
        """What a product (M, N, K) takes beyond that, by whatever candidate: the rates choose among these alone."""
        known = self.rates.uncounted
        rate = known.get(inputs.name) or known.get(_usual_name(inputs))
        return prod(shape) / (rate * self.multiprocessors) if rate else 0.0

    def least(self, configs: Iterable[GemmConfig], inputs: Type, shape: Shape, batches: int = 1) -> float:
        """What none of these is faster than for so many products (M, N, K): with all multiprocessors busy, and reading
        at the full rate. It needs no candidates, which take longer to make."""
        rates, (m, n, k) = self.rates, shape
        shared = inputs.bytes * min(map(_elements_shared, configs))  # bytes a multiply-add
        multiply_add = 1 / _multiply_adds(rates, inputs) + shared / rates.shared_bandwidth
        computing = rates.launch + rates.wave + batches * m * n * k * multiply_add / self.multiprocessors
        moved = (m * k + k * n + m * n) * inputs.bytes * batches
        reading = moved / rates.dram_bandwidth * min(1, rates.slower) + rates.dram_latency
        return max(computing, reading) + rates.reading * min(computing, reading)

    def _in_flight(self, candidate: Candidate, tiles: int, k: int) -> int:
        """The bytes that the rings of all blocks wait for."""
        blocks = min(tiles * candidate.split_k, self.multiprocessors * candidate.resident)
        return blocks * min(candidate.stages - 1, candidate.iterations(k)) * candidate.stage_bytes

    def _computing(self, candidate: Candidate, tiles: int, k: int, width: int) -> float:
        """The k iterations of all waves of blocks."""
        blocks, iterations = tiles * candidate.split_k, candidate.iterations(k)
        wave = self.rates.wave
        if candidate.is_streamed:
            waves = blocks / self.multiprocessors
            return waves * iterations * self._iteration(candidate, self.multiprocessors, width) + ceil(waves) * wave
        together = self.multiprocessors * candidate.resident
        whole, rest = divmod(blocks, together)
        each = whole * self._iteration(candidate, together, width) if whole else 0.0
        each += self._iteration(candidate, rest, width) if rest else 0.0
        return iterations * each + ceil(blocks / together) * wave

    def _adding(self, candidate: Candidate, tiles: int) -> float:
        """What blocks that share a tile, and warps that share its K, take to add up their sums."""
        rates, together = self.rates, self.multiprocessors * candidate.resident
        if candidate.is_streamed:
            return candidate.sums / rates.stream_bandwidth
        blocks = tiles * candidate.split_k
        sums = ceil(min(blocks, together) / self.multiprocessors) * candidate.sums
        took = ceil(blocks / together) * (candidate.slices - 1) * sums / rates.gathering
        return took + rates.meeting + sums / rates.meeting_bandwidth if candidate.split_k > 1 else took

    def _iteration(self, candidate: Candidate, blocks: int, width: int) -> float:
        """A k iteration of so many blocks at the same time."""
        rates, (tile_m, tile_n, tile_k) = self.rates, candidate.tile
        on_each = max(1, ceil(blocks / self.multiprocessors))
        row = tile_k * candidate.inputs.bytes
        multiply = on_each * tile_m * tile_n * tile_k / _multiply_adds(rates, candidate.inputs)
        shared = on_each * (candidate.fragments + tile_m + tile_n) * row / rates.shared_bandwidth
        copied = blocks * (tile_m + tile_n) * row / rates.l2_bandwidth
        latency = rates.iteration + rates.copy_latency / (candidate.stages - 1)
        if width < LEAST_ASYNCHRONOUS:
            copied = max(copied, on_each * (tile_m + tile_n) * tile_k / rates.odd_elements)
            latency = rates.odd_iteration
        idle = max(1.0, rates.busy_threads / (on_each * candidate.threads)) ** rates.idleness
        return float(max((multiply + shared) * idle, copied, latency))

    def group(
        self, config: GemmConfig, inputs: Type, sizes: Sizes, balanced: bool = False, average: bool = False
    ) -> float:
        """Products of many sizes on persistent blocks: all tiles at the rate of the GPU, and half of the longest one
        alone at the end, but where they are `balanced`. With `average`, each M is that of many problems."""
        resident = _persistent_blocks(config, inputs)
        tiles, computing, last = self._of_group(config, inputs, sizes, average)
        between = tiles / (resident * self.multiprocessors) * self.rates.between_tiles / resident
        return computing + (0.0 if balanced else last * resident) + between

    def least_of_group(self, config: GemmConfig, inputs: Type, sizes: Sizes, average: bool = False) -> float:
        """What that is at least, before it is known how many blocks a multiprocessor holds, and if it holds one."""
        _, computing, last = self._of_group(config, inputs, sizes, average)
        return computing + last

    def _of_group(self, config: GemmConfig, inputs: Type, sizes: Sizes, average: bool) -> tuple[float, float, float]:
        """How many tiles there are, the microseconds of all of them, and of half of the longest one alone, where each
        multiprocessor has one block."""
        rates, (m, n, k), (tile_m, tile_n, _) = self.rates, sizes, config.tile
        down = np.maximum(1, m / tile_m + 0.5) if average else -(-m // tile_m)
        tiles, of_tile = down * -(-n // tile_n), 2e-6 * tile_m * tile_n * k
        rate = rates.most_rate * tile_m * tile_n / (tile_m * tile_n + rates.half_rate)
        if inputs.bits == 16:
            rate = rates.grouped.get(label(config), rate)
        last = float(of_tile.max()) * self.multiprocessors / rate / 2
        return float(tiles.sum()), float((tiles * of_tile).sum()) / rate, last

    def convolution(self, config: GemmConfig, inputs: Type, shape: Shape, slices: int = 1) -> float:
        """One convolution as a product (M, N, K) whose K is cut into slices, but for what all launches take."""
        rates, (m, n, k), (tile_m, tile_n, tile_k) = self.rates, shape, config.tile
        tiles = prod(config.tiling.tiles(m, n))
        rounds = ceil_div(tiles * slices, self.multiprocessors)
        iterations = ceil_div(ceil_div(k, tile_k), slices)
        cost = rates.convolution[f"{inputs.bits} {label(config)}"]
        multiply = cost * 1e-6 * iterations * tile_k * max(rounds, rates.alone)
        meet = rates.meet * tiles * slices if slices > 1 else 0.0
        return float(tile_m * tile_n * (multiply + rates.write * rounds + meet))


@lru_cache(maxsize=4096)
def _elements_shared(config: GemmConfig) -> float:
    """How many elements of shared memory an iteration writes and reads for a multiply-add."""
    (m, n, _), (warp_m, warp_n, *_) = config.tile, config.warp
    return 1 / m + 1 / n + 1 / warp_m + 1 / warp_n


def _copies_before(candidate: Candidate, width: int) -> float:
    """How many copies a thread begins before the first iteration."""
    return (candidate.stages - 1) * candidate.stage_bytes / candidate.threads / max(width, LEAST_ASYNCHRONOUS)


def _multiply_adds(rates: Rates, inputs: Type) -> float:
    return rates.multiply_adds.get(inputs.name) or rates.multiply_adds[_usual_name(inputs)]


def _usual_name(inputs: Type) -> str:
    """Of the type whose rates others of as many bits have."""
    return "s8" if inputs.bits == 8 else "f16"


def model_of(device: int | None = None) -> CostModel:
    """The model of a GPU of this machine, by its number; of the one that the emulator stands for without it."""
    return CostModel(rates_of(device))
