"""Adapt a kernel of sm_90a to how TMA loads the operands of a product.

- If the last M tile has out-of-bounds rows, shorter boxes leave them out.
- If there are few rows or columns, the larger operand is read once and loaded with evict_first: its lines then replace
  each other in the L2 cache, and not those that are used again.
- If rows of A are not 32-byte aligned, they are taken as batches of every eighth row, whose rows start at the same
  offset of an L2 line.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from ptxdsl.kernels.call.matrix import Matrix
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.product.operands import Batches, Major, Side
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.tiles.interleaved import CLASSES, InterleavedStrips
from ptxdsl.schedule.arithmetic import ceil_div

LEAST_ROWS = 32  # of a box: fewer were not measured
# Rows next to columns, or the other way round: up to the first, an operand that fits the cache is worth keeping there
# for the next launch; with more than the second, tiles read the operand too often, and at different times
FEW_ROWS, MOST_ROWS = 128, 448
LEAST_COLUMNS, LEAST_BYTES = 2048, 24 << 20  # of the operand: fewer were not measured
MOST_COLUMNS = 32768  # with more, the outputs count: lines that are yet to be read would be evicted


def with_tma(problem: Any, traits: WarpgroupTraits) -> tuple[Any, WarpgroupTraits]:
    """Return a row-major problem, a GemmProblem, and its traits, adapted to TMA loads."""
    problem, traits = interleaved(problem, traits)
    cache_bytes = rates_of(problem.device_stream[0]).cache_bytes
    return problem, streaming(problem, ending_early(problem.m, traits), cache_bytes)


def may_interleave(problem: Any) -> bool:
    """Return True if rows of A are not 32-byte aligned and M is a multiple of the number of classes."""
    a, c = problem.a, problem.c
    is_cut = problem.batches is None and problem.m % CLASSES == 0 and not problem.operands
    return is_cut and a.major == "row" and not a.is_in_sectors and (c is None or c.major == "row")


def interleaved(problem: Any, traits: WarpgroupTraits) -> tuple[Any, WarpgroupTraits]:
    """Return a product and its traits; as batches if its schedule interleaves rows."""
    schedule = traits.schedule
    if not isinstance(schedule, InterleavedStrips) or not may_interleave(problem):
        return problem, traits
    schedule = replace(schedule, step=problem.a.stride % traits.tile[2])
    c = _classes(problem.c) if problem.c else None
    batches = replace(problem, a=_classes(problem.a), c=c, out=_classes(problem.out))
    operands = replace(traits.operands, batches=Batches.STRIDED)
    return batches, warpgroup_traits_of(traits.tiling, operands, schedule, traits.epilogue)


def _classes(matrix: Matrix) -> Matrix:
    """Return the rows of a class as one matrix of a batch."""
    rows, columns = matrix.shape
    shape, stride = (rows // CLASSES, columns), CLASSES * matrix.stride
    return replace(matrix, shape=shape, stride=stride, batches=CLASSES, batch_stride=matrix.stride)


def ending_early(m: int, traits: WarpgroupTraits) -> WarpgroupTraits:
    """Return the traits, with shorter boxes of A if the last box of the last tile would be past the `m` rows. Not for
    split-K through global memory, which adds all rows, nor for swapped tiles, which are chosen to have few rows to
    spare."""
    if traits.a.major is not Major.K or traits.schedule.shares or traits.tiling.swap_ab or traits.from_registers:
        return traits
    rows, tile = LEAST_ROWS * ceil_div(m, LEAST_ROWS), traits.tile[0]
    if not rows % tile or tile % LEAST_ROWS:
        return traits
    operands = replace(traits.operands, a_rows=gcd(rows, tile))
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def streaming(problem: Any, traits: WarpgroupTraits, cache_bytes: float) -> WarpgroupTraits:
    """Return the traits, with evict_first loads of the larger operand if it does not fit an L2 cache of this size."""
    if problem.batches is not None:
        return traits
    extents = {Side.B: (problem.m, problem.n), Side.A: (problem.n, problem.m)}
    line_bytes = problem.k * problem.a.type.bytes
    if problem.n > traits.tile[1]:  # tiles next to each other, which read a row of A at different times
        del extents[Side.A]
    names = (name for name, (few, many) in extents.items() if _is_streamed(few, many, line_bytes, cache_bytes))
    operands = replace(traits.operands, streamed=next(names, Side.NONE))
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def _is_streamed(rows: int, columns: int, line_bytes: int, cache_bytes: float) -> bool:
    """Return True if an operand with this many columns is streamed, next to one with this many rows."""
    bytes = columns * line_bytes
    if not LEAST_COLUMNS <= columns <= MOST_COLUMNS or bytes < LEAST_BYTES:
        return False
    return bytes > cache_bytes if rows <= FEW_ROWS else rows <= MOST_ROWS
