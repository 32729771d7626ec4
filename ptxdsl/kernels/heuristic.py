"""Which configuration takes the least time for a shape: a model of the GPU, fitted to what some 2700 products took.

A multiprocessor goes through the k iterations of its blocks at the pace of what is slowest: tensor cores and shared
memory, the L2 cache, or the latency of a copy, which the stages of the ring share. The more bytes all rings wait for,
the faster DRAM delivers them. The constants are those of an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import ceil, prod

from ptxdsl.kernels.config import LEAST_ASYNCHRONOUS, ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.config import REGISTERS as MOST_REGISTERS
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle, blocks_per_multiprocessor
from ptxdsl.types import Type, f16, f32, f64, s8, s32

LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
SQUARE = GemmConfig(tile=(128, 128, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
OF_HALVES = (
    LARGE,
    GemmConfig(tile=(128, 256, 64), stages=4),
    SQUARE,
    MEDIUM,
    SMALL,
    GemmConfig(tile=(128, 128, 64), warp=(64, 64, 32), stages=6),
    GemmConfig(tile=(128, 64, 128), warp=(64, 32, 64), stages=4),
    GemmConfig(tile=(64, 128, 64), warp=(32, 64), stages=4),
    GemmConfig(tile=(64, 128, 64), warp=(32, 64), stages=8),
    GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=5),
    GemmConfig(tile=(64, 64, 128), warp=(64, 32, 64), stages=6),
    GemmConfig(tile=(64, 32, 128), warp=(32, 32, 64), stages=4),
    GemmConfig(tile=(32, 64, 128), warp=(32, 32, 64), stages=8),
    GemmConfig(tile=(32, 64, 64), warp=(32, 32, 32), stages=6),
    GemmConfig(tile=(32, 32, 256), warp=(32, 32, 64), stages=6),
    GemmConfig(tile=(16, 64, 256), warp=(16, 64, 64), stages=4),
    GemmConfig(tile=(16, 64, 128), warp=(16, 32, 32), stages=5),
    GemmConfig(tile=(16, 32, 256), warp=(16, 32, 64), stages=8),
    GemmConfig(tile=(32, 16, 256), warp=(32, 16, 64), stages=6),
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
# Of one multiprocessor in a microsecond: multiply-adds, bytes of shared memory, elements copied one by one. Both of the
# former count, as fragments are loaded before they are multiplied.
MULTIPLY_ADDS = {f16: 4.33e6, f32: 2.1e6, f64: 0.256e6, s8: 12.1e6}
SHARED_BANDWIDTH, ODD_ELEMENTS = 565e3, 11.5e3
L2_BANDWIDTH, DRAM_BANDWIDTH = 13.2e6, 3.79e6  # bytes in a microsecond
# Microseconds: a k iteration at least, beside its share of the latency of a copy; one of single elements; a wave of
# blocks; a launch; a launch that reads DRAM; a copy that a thread begins before the first iteration
ITERATION, COPY_LATENCY, ODD_ITERATION, WAVE = 0.0252, 0.636, 1.08, 2.15
LAUNCH, DRAM_LATENCY, BEGINNING = 1.18, 4.8, 0.00168
IN_FLIGHT = 0.835e6  # bytes: DRAM is at half of its bandwidth when all rings together wait for so many
READING = 0.248  # of the shorter of computing and reading DRAM: how much does not hide behind the longer one
SHORT_ROW, SLOWER = 256, 1.0401  # bytes of a row of a tile: DRAM takes so much longer for shorter ones
BUSY_THREADS, IDLENESS = 493, 0.221  # fewer do not keep a multiprocessor busy
MEETING, MEETING_BANDWIDTH = 3.12, 18.1e3  # of split K: µs, bytes of a multiprocessor in a µs
STREAM_BANDWIDTH = 13.1e3  # the same of stream-K, whose blocks have parts of two tiles
GATHERING = 24.8e3  # the same of warps that share the K of a tile
LITTLE = 1.01
MOST_WAVES = 8  # more lose little in the last one
LEAST_ITERATIONS, MOST_SLICES = 2, 32
LEAST_SCATTERED = 128 * 128  # elements of a tile whose sums blocks share out
LEAST_STREAMED = 8  # bytes of a copy: beside narrower ones stream-K has not registers enough
# Blocks go down one column of tiles after another: where there are few rows of tiles, that is the order of
# ROWS_OF_EIGHT, without its divisions, which take a part of a microsecond. y of the grid counts the columns.
IN_COLUMNS, FEW_ROWS, MOST_COLUMNS = IdentityThreadblockSwizzle(1), ROWS_OF_EIGHT.rows, 65535


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
    """The configuration that should take the least time and fits `arch`: tiles, a split of K or stream-K, and the order
    of the tiles.

    That order is ROWS_OF_EIGHT, or in grids of at most FEW_ROWS rows of tiles IN_COLUMNS: down one column of tiles
    after another. With `scheduled` only tiles are chosen, as the call says which blocks compute them.

    `width` is the narrowest copy of the operands, in bytes; `along_k` says that both are contiguous along k. The model
    knows an H200 only; `multiprocessors` are for stream-K, which must not have more blocks than can run.
    """
    found = _filled(_candidates(inputs, arch, width, along_k), m, n)
    if scheduled:
        return min(found, key=lambda config: microseconds(config, m, n, k, width))
    options = [c for config in found for c in shared(config, (m, n, k), width, along_k, multiprocessors)]
    took = {config: microseconds(config, m, n, k, width) for config in options}
    best = min(options, key=took.__getitem__)
    # Of rings that differ by little the shortest: the rest of the memory is the L1 cache of the epilogue
    alike = (c for c in options if replace(c, stages=best.stages) == best and took[c] < LITTLE * took[best])
    best = min(alike, key=lambda config: config.stages)
    return _in_columns(best) if _is_low(best, m, n) else best


def _is_low(config: GemmConfig, m: int, n: int) -> bool:
    """Whether its grid has so few rows of tiles that blocks may go down the columns."""
    rows, columns = config.tiles(m, n)
    return rows <= FEW_ROWS and columns <= MOST_COLUMNS and not config.is_stream_k


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


def _filled(found: tuple[GemmConfig, ...], m: int, n: int) -> list[GemmConfig]:
    """Without tiles that half as many rows or columns would do for, beside the smallest tile."""
    least = min((config.tile for config in found), key=lambda tile: prod(tile[:2]))
    rows, columns = 2 * max(m, least[0]), 2 * max(n, least[1])
    return [config for config in found if config.tile[0] < rows and config.tile[1] < columns]


@cache
def _split(config: GemmConfig, slices: int) -> GemmConfig:
    """All blocks of a large tile add up a share of it. Of a small one the last block has added up everything before
    the others would hear that they can begin."""
    is_large = slices > 1 and prod(config.tile[:2]) >= LEAST_SCATTERED
    return replace(config, split_k=slices, reduction="scatter" if is_large else config.reduction)


@cache
def _streamed(config: GemmConfig, multiprocessors: int) -> GemmConfig:
    return replace(config, schedule=StreamKThreadblockSwizzle(multiprocessors))


@cache
def _in_columns(config: GemmConfig) -> GemmConfig:
    return replace(config, schedule=IN_COLUMNS)


def shared(
    config: GemmConfig,
    shape: tuple[int, int, int],
    width: int = 16,
    along_k: bool = True,
    multiprocessors: int = MULTIPROCESSORS,
) -> Iterator[GemmConfig]:
    """The ways in which blocks may share the tiles of a configuration: whole tiles for each; slices of K, so many that
    all blocks are resident at once; stream-K, where whole tiles would leave the last wave short."""
    tiles, iterations = max(1, prod(config.tiles(*shape[:2]))), ceil(shape[2] / config.tile[2])
    most = min(MOST_SLICES, iterations // LEAST_ITERATIONS)
    for slices in {1, *(blocks * MULTIPROCESSORS // tiles for blocks in range(1, _resident(config) + 1))}:
        if slices == 1 or 1 < slices <= most:
            yield _split(config, slices)
    is_known = config is LARGE or (config is SQUARE and along_k)
    least, waves = prod(SQUARE.tile[:2]) / prod(config.tile[:2]), tiles / MULTIPROCESSORS
    if is_known and width >= LEAST_STREAMED and tiles % MULTIPROCESSORS and least < waves < MOST_WAVES:
        yield _streamed(config, multiprocessors)


def microseconds(config: GemmConfig, m: int, n: int, k: int, width: int = 16) -> float:
    """What a product should take, reading its operands from DRAM."""
    beginning = LAUNCH + BEGINNING * _copies_before(config, width)
    computing = beginning + _computing(config, (m, n, k), width) + _adding(config, prod(config.tiles(m, n)))
    moved = (m * k + k * n + m * n) * config.inputs.bytes
    slower = SLOWER if config.tile[2] * config.inputs.bytes < SHORT_ROW else 1
    waiting = 1 + IN_FLIGHT / max(1, _in_flight(config, (m, n, k)))
    reading = moved / DRAM_BANDWIDTH * slower * waiting + DRAM_LATENCY
    return max(computing, reading) + READING * min(computing, reading)


def _copies_before(config: GemmConfig, width: int) -> float:
    """How many copies a thread begins before the first iteration."""
    return (config.stages - 1) * config.stage_bytes / config.threads / max(width, LEAST_ASYNCHRONOUS)


def _in_flight(config: GemmConfig, shape: tuple[int, int, int]) -> int:
    """The bytes that the rings of all blocks wait for."""
    blocks = min(prod(config.tiles(*shape[:2])) * config.split_k, MULTIPROCESSORS * _resident(config))
    return blocks * min(config.stages - 1, _iterations(config, shape[2])) * config.stage_bytes


def _iterations(config: GemmConfig, k: int) -> int:
    return ceil(ceil(k / config.tile[2]) / config.split_k)


def _computing(config: GemmConfig, shape: tuple[int, int, int], width: int) -> float:
    """The k iterations of all waves of blocks."""
    blocks = prod(config.tiles(*shape[:2])) * config.split_k
    iterations = _iterations(config, shape[2])
    if config.is_stream_k:
        waves = blocks / MULTIPROCESSORS
        return waves * iterations * _iteration(config, MULTIPROCESSORS, width) + ceil(waves) * WAVE
    together = MULTIPROCESSORS * _resident(config)
    whole, rest = divmod(blocks, together)
    each = whole * _iteration(config, together, width) + (_iteration(config, rest, width) if rest else 0)
    return iterations * each + ceil(blocks / together) * WAVE


def _adding(config: GemmConfig, tiles: int) -> float:
    """What blocks that share a tile, and warps that share its K, take to add up their sums."""
    together = MULTIPROCESSORS * _resident(config)
    blocks, sums = tiles * config.split_k, prod(config.tile[:2]) * config.sum.bytes
    here = ceil(min(blocks, together) / MULTIPROCESSORS) * sums
    if config.is_stream_k:
        return sums / STREAM_BANDWIDTH
    took = ceil(blocks / together) * (config.slices - 1) * here / GATHERING
    return took + MEETING + here / MEETING_BANDWIDTH if config.split_k > 1 else took


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
    latency = ITERATION + COPY_LATENCY / (config.stages - 1)
    if width < LEAST_ASYNCHRONOUS:
        copied = max(copied, here * (tile_m + tile_n) * tile_k / ODD_ELEMENTS)
        latency = ODD_ITERATION
    idle = max(1.0, BUSY_THREADS / (here * config.threads)) ** IDLENESS
    return float(max((multiply + shared) * idle, copied, latency))


@cache
def _resident(config: GemmConfig) -> int:
    """Blocks that a multiprocessor holds."""
    registers = config.registers + sum(config.warp[:2]) // 4
    return max(1, blocks_per_multiprocessor(config.threads, min(MOST_REGISTERS, registers), config.shared_bytes))
