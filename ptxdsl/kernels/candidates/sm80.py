"""Candidates of the sm_80 path: short lists of tiles by type, load width and kernel, with and without a split of K.

No candidate spills, even with the narrowest loads that its list is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from ptxdsl.kernels.candidates.candidate import IN_COLUMNS, Candidate, labelled
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.product.operands import CSource, Major, Operands, outputs
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm80.tiling import LEAST_ASYNCHRONOUS, MOST_REGISTERS
from ptxdsl.kernels.tiles.persistent import Persistent
from ptxdsl.schedule import (
    PersistentScheduler,
    StreamKThreadblockSwizzle,
    blocks_per_multiprocessor,
)
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type, f32, f64

MOST_SLICES, LEAST_ITERATIONS = 32, 2  # blocks that share the K of a tile, and iterations of each
LEAST_SCATTERED = 128 * 128  # elements of a tile: larger tiles are reduced by all blocks, smaller by the last block
MOST_CONV_SLICES, LEAST_CONV_ITERATIONS, MOST_CONV_BLOCKS = 8, 4, 4
LEAST_STREAMED = 8  # bytes of a load: narrower ones leave stream-K too few registers
MOST_WAVES = 8  # of whole tiles: with more, the last wave is too small a part for stream-K to gain
# With few rows of tiles, blocks are ordered by columns: the order of ROWS_OF_EIGHT without its divisions
FEW_ROWS, MOST_COLUMNS = ROWS_OF_EIGHT.rows, 65535

LARGE, SQUARE, MEDIUM, SMALL = labelled("128x256x64/64x64/3 128x128x64/64x64/3 128x128x32/64x64/4 64x64x32/32x32/4")
OF_HALVES = labelled("""
    128x256x64/64x64/3 128x256x64/64x64/4 128x128x64/64x64/3 128x128x32/64x64/4 64x64x32/32x32/4 128x128x64/64x64x32/6
    64x128x64/32x64/4 64x64x64/32x32/5 64x32x128/32x32x64/4 32x64x64/32x32x32/6 32x32x256/32x32x64/6
    16x64x256/16x64x64/4 16x32x256/16x32x64/8
""")
# Rows that are not 4-byte aligned are loaded by element, through registers: more threads a tile
OF_ODD_HALVES = labelled("128x128x32/32x32/3 128x64x32/32x32/3 64x64x64/32x16/3 64x64x32/32x32/4")
OF_BYTES = labelled("256x128x128/64x64/3 128x128x128/64x64/3 64x64x64/32x32/4")
OF_WORDS = {
    f32: labelled("256x128x16/64x64/4 128x128x16/32x64/4 64x64x16/32x32/4"),
    f64: labelled("128x128x16/64x32/3 64x128x16/32x32/3 64x64x16/32x32/3 32x32x32/16x16/3"),
}
GROUPED = labelled("""
    128x256x64/64x64/3 256x128x64/64x64/3 64x128x64/64x64x32/4 128x64x64/64x64x32/4 64x64x64/32x32/4
    16x64x128/16x16/3 64x16x128/16x16/3
""")
CONVOLUTIONS = {  # by the bits of the inputs
    8: labelled("128x128x128/64x64/3 256x64x64/64x64/3 128x64x128/64x32/3 64x64x64/32x32/4"),
    16: labelled("128x128x64/64x64/3 256x64x32/64x64/4 128x64x32/64x32/4 64x64x64/32x32/4"),
    32: labelled("128x128x16/64x64/4 256x64x16/64x64/4 128x64x32/64x32/4 64x64x32/32x32/3"),
    64: labelled("64x64x32/32x32/3"),
}
DEEP, TALL, NARROW, CUBE = CONVOLUTIONS[16]
FOR_NARROW_LOADS = (NARROW, CUBE, *CONVOLUTIONS[64])  # the others lack registers for many loads per thread


def of_products(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """Return the list for loads of `width` bytes. 32-bit operands that are not K-major are loaded by element."""
    if inputs.bits == 16:
        return OF_HALVES if width >= 4 else OF_ODD_HALVES
    if inputs.bits == 8:
        return OF_BYTES[0 if width == 16 else 2 :]
    return OF_WORDS[inputs][inputs is f32 and not (width == 16 and along_k) :]


def of_groups(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """Return the list for grouped products."""
    if inputs.bits == 16:
        return GROUPED if width > 4 else OF_ODD_HALVES
    return of_products(inputs, width, along_k)


def of_convolutions(inputs: Type, is_wide: bool) -> tuple[GemmConfig, ...]:
    """Return the list for convolutions, whose images are loaded by 16 bytes if `is_wide`."""
    configs = CONVOLUTIONS[inputs.bits]
    return configs if is_wide else tuple(config for config in configs if config in FOR_NARROW_LOADS)


@lru_cache(maxsize=4096)
def candidate(config: GemmConfig, inputs: Type, width: int = WIDEST, persistent: bool = False) -> Candidate:
    """Return a candidate of the sm_80 path for operands of this type, loaded by `width` bytes, and the default
    output."""
    traits = config.traits(Operands(inputs, outputs(inputs)[0]))
    m, n, k = config.tile
    row, warps = k * inputs.bytes, prod(traits.accumulators.warps)
    registers = min(MOST_REGISTERS, traits.registers + (40 if persistent else sum(config.warp[:2]) // 4))
    resident = max(1, blocks_per_multiprocessor(traits.threads, registers, traits.shared_bytes))
    slow = width < LEAST_ASYNCHRONOUS
    return Candidate(config, resident, (m * row, n * row), warps * sum(config.warp[:2]) * row, (slow, slow))


def candidates_of_products(
    facts: ProductFacts, arch: str, multiprocessors: int, scheduled: bool = False
) -> Iterator[Candidate]:
    """Yield the candidates of a product: whole tiles, slices of K while all blocks are resident, and stream-K. With
    `scheduled`, the caller sets the schedule, and tiles leave shared memory for the staging of persistent blocks."""
    operands, (m, n) = facts.operands, facts[:2]
    inputs, width, along_k = operands.inputs, operands.narrowest, operands.a_major == operands.b_major is Major.K
    configs = [config for config in of_products(inputs, width, along_k) if _fits(config, inputs, arch, scheduled)]
    least = min((config.tile for config in configs), key=lambda tile: prod(tile[:2]))
    rows, columns = 2 * max(m, least[0]), 2 * max(n, least[1])
    for config in configs:
        if config.tile[0] >= rows or config.tile[1] >= columns:
            continue
        whole = candidate(config, inputs, width)
        yield whole if scheduled else replace(whole, config=_in_columns(config, m, n))
        if not scheduled:
            yield from _split(whole, facts, multiprocessors, may_stream=width >= LEAST_STREAMED and along_k)


def _split(whole: Candidate, facts: ProductFacts, multiprocessors: int, may_stream: bool) -> Iterator[Candidate]:
    """Yield candidates that split the K of tiles."""
    config, tiles = whole.config, int(max(1, facts.tiles(whole.config.tile)))
    most = min(MOST_SLICES, ceil_div(facts.k, config.tile[2]) // LEAST_ITERATIONS)
    for slices in sorted({blocks * multiprocessors // tiles for blocks in range(1, whole.resident + 1)}):
        if 1 < slices <= most:
            is_large = prod(config.tile[:2]) >= LEAST_SCATTERED
            reduction = "scatter" if is_large else config.reduction
            split = replace(config, split_k=slices, reduction=reduction)
            yield replace(whole, config=_in_columns(split, facts.m, facts.n))
    least, waves = prod(SQUARE.tile[:2]) / prod(config.tile[:2]), tiles / multiprocessors
    if config in (LARGE, SQUARE) and may_stream and tiles % multiprocessors and least < waves < MOST_WAVES:
        yield replace(whole, config=replace(config, schedule=StreamKThreadblockSwizzle(multiprocessors)))


def candidates_of_convolutions(
    facts: ProductFacts, multiprocessors: int, is_wide: bool, split_k: int | None = None
) -> Iterator[Candidate]:
    """Yield the candidates of a convolution: whole tiles and slices of K, or `split_k` slices if it is given."""
    for config in of_convolutions(facts.operands.inputs, is_wide):
        tiles, iterations = facts.tiles(config.tile), ceil_div(facts.k, config.tile[2])
        for slices in [split_k] if split_k else range(1, MOST_CONV_SLICES + 1):
            is_short = (
                slices * LEAST_CONV_ITERATIONS > iterations or slices * tiles > MOST_CONV_BLOCKS * multiprocessors
            )
            if split_k or slices == 1 or not is_short:
                whole = candidate(config, facts.operands.inputs, facts.operands.narrowest)
                yield replace(whole, config=replace(config, split_k=slices))


@lru_cache(maxsize=4096)
def _fits(config: GemmConfig, inputs: Type, arch: str, scheduled: bool) -> bool:
    traits = config.traits(Operands(inputs, outputs(inputs)[0]))
    if scheduled:
        staged = replace(traits.operands, c=CSource.SEPARATE)
        traits = replace(traits, operands=staged, schedule=Persistent(PersistentScheduler()))
    return traits.fits(arch)


def _in_columns(config: GemmConfig, m: int, n: int) -> GemmConfig:
    """Return the configuration with the order IN_COLUMNS if its grid has few rows of tiles."""
    rows, columns = ceil_div(m, config.tile[0]), ceil_div(n, config.tile[1])
    return replace(config, schedule=IN_COLUMNS) if rows <= FEW_ROWS and columns <= MOST_COLUMNS else config
