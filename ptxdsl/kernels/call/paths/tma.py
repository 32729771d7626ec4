"""Adapt a kernel of sm_90a to how TMA loads the operands of a product.

- If the last M tile has out-of-bounds rows, shorter boxes leave them out.
- If there are few rows or columns, the larger operand is read once and loaded with evict_first: its lines then replace
  each other in the L2 cache, and not those that are used again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.product.operands import Side
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of

LEAST_ROWS = 32  # of a box: fewer were not measured
# Rows next to columns, or the other way round: up to the first, an operand that fits the cache is worth keeping there
# for the next launch; with more than the second, tiles read the operand too often, and at different times
FEW_ROWS, MOST_ROWS = 128, 448
LEAST_COLUMNS, LEAST_BYTES = 2048, 24 << 20  # of the operand: fewer were not measured
MOST_COLUMNS = 32768  # with more, the outputs count: lines that are yet to be read would be evicted


def with_tma(problem: Any, traits: WarpgroupTraits) -> WarpgroupTraits:
    """Return the traits for a row-major problem, a GemmProblem, adapted to TMA loads."""
    cache_bytes = rates_of(problem.device_stream[0]).cache_bytes
    return streaming(problem, traits, cache_bytes)


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
