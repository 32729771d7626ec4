"""Products with few rows or columns: the larger operand is read once and loaded with evict_first.

Its lines then replace each other in the L2 cache, and not those that are used again.
"""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.traits.traits import Traits

# Rows beside columns, or the other way round: up to the first, what fits the cache is worth keeping there for the next
# launch; with more than the second, tiles read the operand too often, and at times that lie apart
FEW_ROWS, MOST_ROWS = 128, 448
LEAST_COLUMNS, LEAST_BYTES = 2048, 24 << 20  # of the operand: fewer were not measured
MOST_COLUMNS = 32768  # of more the outputs count: what is driven out then are lines that are yet to be read


def streaming(problem: GemmProblem, traits: Traits, cache_bytes: float) -> Traits:
    """Return the traits, with evict_first loads of the larger operand if it does not fit an L2 cache of this size."""
    if not isinstance(traits, WarpgroupTraits) or problem.batches is not None:
        return traits
    extents = {"b": (problem.m, problem.n), "a": (problem.n, problem.m)}
    line_bytes = problem.k * problem.a.type.bytes
    if problem.n > traits.tile[1]:  # tiles beside each other, which read a line of A at times that lie apart
        del extents["a"]
    known = (name for name, (few, many) in extents.items() if _is_streamed(few, many, line_bytes, cache_bytes))
    operands = replace(traits.operands, streamed=next(known, "none"))
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def _is_streamed(rows: int, columns: int, line_bytes: int, cache_bytes: float) -> bool:
    """Return True if an operand with this many columns is streamed, next to one with this many rows."""
    bytes = columns * line_bytes
    if not LEAST_COLUMNS <= columns <= MOST_COLUMNS or bytes < LEAST_BYTES:
        return False
    return bytes > cache_bytes if rows <= FEW_ROWS else rows <= MOST_ROWS
