"""Which configuration takes the least time for a shape: a model of the GPU, fitted to what some 700 products took.

A multiprocessor goes through the k iterations of its blocks at the pace of what is slowest: tensor cores, shared
memory, the L2 cache, or the latency of one step after another. The constants are those of an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import ceil

from ptxdsl.kernels.config import REGISTERS as MOST_REGISTERS
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.schedule import StreamKThreadblockSwizzle, blocks_per_multiprocessor
from ptxdsl.types import Type, f16, f32, f64, s8, s32

LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
DEEP = GemmConfig(tile=(64, 64, 128), warp=(32, 32, 64), stages=4)
FLAT = GemmConfig(tile=(16, 32, 256), warp=(16, 32, 64), stages=6)
OF_HALVES = (
    LARGE,
    MEDIUM,
    SMALL,
    DEEP,
    FLAT,
    GemmConfig(tile=(128, 256, 64), stages=4),
    GemmConfig(tile=(128, 128, 64), warp=(64, 32), stages=5),
    GemmConfig(tile=(128, 64, 64), warp=(64, 32), stages=6),
    GemmConfig(tile=(128, 64, 128), warp=(64, 32, 64), stages=4),
    GemmConfig(tile=(64, 128, 64), warp=(32, 32), stages=6),
    GemmConfig(tile=(64, 128, 64), warp=(32, 64), stages=4),
    GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=5),
    GemmConfig(tile=(32, 64, 64), warp=(16, 16), stages=8),
    GemmConfig(tile=(16, 64, 256), warp=(16, 64, 64), stages=4),
    GemmConfig(tile=(16, 64, 128), warp=(16, 32, 32), stages=5),
    GemmConfig(tile=(32, 16, 256), warp=(32, 16, 64), stages=6),
    GemmConfig(tile=(64, 16, 128), warp=(32, 16, 32), stages=5),
)
# Rows that begin at odd elements are copied one element at a time, through registers: more threads a tile.
OF_ODD_HALVES = (
    GemmConfig(tile=(128, 128, 32), warp=(32, 32), stages=3),
    GemmConfig(tile=(128, 64, 32), warp=(32, 32), stages=3),
    GemmConfig(tile=(64, 64, 64), warp=(32, 16), stages=3),
    SMALL,
)
LARGE_TF32 = GemmConfig(f32, f32, tile=(256, 128, 16), stages=4)
MEDIUM_TF32 = GemmConfig(f32, f32, tile=(128, 128, 16), warp=(32, 64), stages=4)
SMALL_TF32 = GemmConfig(f32, f32, tile=(64, 64, 16), warp=(32, 32), stages=4)
LARGE_F64 = GemmConfig(f64, f64, tile=(128, 128, 16), warp=(64, 32), stages=3)
MEDIUM_F64 = GemmConfig(f64, f64, tile=(64, 128, 16), warp=(32, 32), stages=3)
SMALL_F64 = GemmConfig(f64, f64, tile=(64, 64, 16), warp=(32, 32), stages=3)
TINY_F64 = GemmConfig(f64, f64, tile=(32, 32, 32), warp=(16, 16), stages=3)
LARGE_S8 = GemmConfig(s8, s32, tile=(256, 128, 128), stages=3)
MEDIUM_S8 = GemmConfig(s8, s32, tile=(128, 128, 128), stages=3)
SMALL_S8 = GemmConfig(s8, s32, tile=(64, 64, 64), warp=(32, 32), stages=4)
OF_BYTES = (LARGE_S8, MEDIUM_S8, SMALL_S8)
CANDIDATES = {f32: (LARGE_TF32, MEDIUM_TF32, SMALL_TF32), f64: (LARGE_F64, MEDIUM_F64, SMALL_F64, TINY_F64)}

MULTIPROCESSORS = 132
CROWDED = 180  # registers of a thread that leave none for what a split of K must remember
# Of one multiprocessor in a microsecond: multiply-adds, bytes of shared memory, elements copied one by one
MULTIPLY_ADDS = {f16: 2.7e6, f32: 1.3e6, f64: 0.25e6, s8: 5.2e6}
SHARED_BANDWIDTH, ODD_ELEMENTS = 264e3, 6.5e3
L2_BANDWIDTH, DRAM_BANDWIDTH = 9e6, 3.8e6  # bytes in a microsecond
# Microseconds: a k iteration at least, and each of its steps; a wave of blocks; a launch; a launch that reads DRAM
ITERATION, STEP, WAVE, LAUNCH, DRAM_LATENCY = 0.05, 0.03, 3.2, 1.0, 8.4
OVERLAP = 0.33  # of shared memory and tensor cores, that is lost
BUSY_THREADS, IDLENESS = 256, 0.39  # fewer do not keep a multiprocessor busy
MEETING, MEETING_BANDWIDTH, MEETING_TRAFFIC = 1.2, 71e3, 16e6  # of split K: µs, bytes in a µs of one block, of all
STREAM_MEETING, MOST_WAVES = 13.0, 8  # µs of stream-K, whose parts are large; more waves lose little in the last one
LEAST_ITERATIONS, MOST_SLICES = 2, 32
LEAST_STREAMED = 8  # bytes of a copy: beside narrower ones stream-K has not registers enough


def choose(
    m: int,
    n: int,
    k: int,
    inputs: Type = f16,
    arch: str = "sm_90",
    width: int = 16,
    along_k: bool = True,
    scheduled: bool = False,
    multiprocessors: int = MULTIPROCESSORS,
) -> GemmConfig:
    """The configuration, with its split of K or stream-K, that should take the least time; it fits the shared memory
    of `arch`.

    `width` is the narrowest copy of the operands, in bytes; `along_k` says that both are contiguous along k. Where the
    call says which blocks do what, it is `scheduled`: whole tiles are then the rule. The model knows an H200 only;
    `multiprocessors` are for stream-K, which must not have more blocks than can run.
    """
    found = _candidates(inputs, arch, width, along_k)
    options = found if scheduled else (c for config in found for c in shared(config, (m, n, k), width, multiprocessors))
    return min(options, key=lambda config: microseconds(config, m, n, k, width))


@cache
def _candidates(inputs: Type, arch: str, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    return tuple(config for config in candidates(inputs, width, along_k) if config.fits(arch))


def candidates(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """Those whose registers are enough for narrow copies too, and for elements that are read one by one: those of 32
    bits that are not contiguous along k."""
    if inputs.bits == 16:
        return OF_HALVES if width >= 4 else OF_ODD_HALVES
    if inputs.bits == 8:
        return OF_BYTES[0 if width == 16 else 2 :]
    return CANDIDATES[inputs][inputs is f32 and not (width == 16 and along_k) :]


@cache
def _split(config: GemmConfig, slices: int) -> GemmConfig:
    return replace(config, split_k=slices)


@cache
def _streamed(config: GemmConfig, multiprocessors: int) -> GemmConfig:
    return replace(config, schedule=StreamKThreadblockSwizzle(multiprocessors))


def shared(
    config: GemmConfig, shape: tuple[int, int, int], width: int = 16, multiprocessors: int = MULTIPROCESSORS
) -> Iterator[GemmConfig]:
    """Whole tiles; slices of K that give whole waves of blocks; stream-K, where a block fills a multiprocessor."""
    tiles_m, tiles_n = config.tiles(*shape[:2])
    tiles, iterations = max(1, tiles_m * tiles_n), ceil(shape[2] / config.tile[2])
    most = min(MOST_SLICES, iterations // LEAST_ITERATIONS) if config.registers < CROWDED else 1
    for slices in {1, *(waves * MULTIPROCESSORS // tiles for waves in (1, 2, 4))}:
        if slices == 1 or 1 < slices <= most:
            yield _split(config, slices)
    is_alone = _resident(config) == 1 and config.registers >= CROWDED
    is_known = config.inputs.bits == 16 and width >= LEAST_STREAMED
    if is_alone and is_known and tiles % MULTIPROCESSORS and tiles < MOST_WAVES * MULTIPROCESSORS:
        yield _streamed(config, multiprocessors)


def microseconds(config: GemmConfig, m: int, n: int, k: int, width: int = 16) -> float:
    """What a product should take, reading its operands from DRAM."""
    tile_m, tile_n, tile_k = config.tile
    tiles_m, tiles_n = config.tiles(m, n)
    blocks, slices = tiles_m * tiles_n * config.split_k, config.split_k
    together = MULTIPROCESSORS * _resident(config)
    iterations = ceil(ceil(k / tile_k) / slices)
    waves = blocks / together if config.is_stream_k else ceil(blocks / together)
    took = waves * iterations * _iteration(config, min(blocks, together), width) + ceil(waves) * WAVE + LAUNCH
    if config.is_stream_k:
        took += STREAM_MEETING
    if slices > 1:
        left = tile_m * tile_n * config.sum.bytes
        took += MEETING + slices * left / MEETING_BANDWIDTH + 2 * blocks * left / MEETING_TRAFFIC
    read = (m * k + k * n + m * n) * config.inputs.bytes / DRAM_BANDWIDTH + DRAM_LATENCY
    return max(took, read) + 0.1 * took


def _iteration(config: GemmConfig, blocks: int, width: int) -> float:
    """A k iteration of so many blocks at the same time."""
    tile_m, tile_n, tile_k = config.tile
    warps = config.warps[0] * config.warps[1]
    here = max(1, ceil(blocks / MULTIPROCESSORS))
    row = tile_k * config.inputs.bytes
    rate = MULTIPLY_ADDS.get(config.inputs) or MULTIPLY_ADDS[s8 if config.inputs.bits == 8 else f16]
    multiply = here * tile_m * tile_n * tile_k / rate
    shared = here * (warps * sum(config.warp[:2]) + tile_m + tile_n) * row / SHARED_BANDWIDTH
    copied = blocks * (tile_m + tile_n) * row / L2_BANDWIDTH
    if width < 4:
        copied = max(copied, here * (tile_m + tile_n) * tile_k / ODD_ELEMENTS)
    latency = ITERATION + STEP * tile_k / config.k_step
    idle = max(1.0, BUSY_THREADS / (here * config.threads)) ** IDLENESS
    slowest = max(multiply * idle, shared * idle, copied, latency)
    return float(slowest + OVERLAP * min(multiply, shared))


@cache
def _resident(config: GemmConfig) -> int:
    """Blocks that a multiprocessor holds."""
    registers = config.registers + sum(config.warp[:2]) // 4
    return max(1, blocks_per_multiprocessor(config.threads, min(MOST_REGISTERS, registers), config.shared_bytes))
