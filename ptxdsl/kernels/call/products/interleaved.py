"""Products whose rows of A are not 32-byte aligned, as batches of every eighth row: the rows of a batch start at the
same offset of an L2 line."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.kernels.call.matrix import Matrix
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.tiles.interleaved import CLASSES
from ptxdsl.kernels.traits.traits import Traits


def may_interleave(problem: GemmProblem) -> bool:
    """Return True if rows of A are not 32-byte aligned and M is a multiple of the number of classes."""
    a, c = problem.a, problem.c
    is_cut = problem.batches is None and problem.m % CLASSES == 0 and not problem.operands
    return is_cut and a.major == "row" and not a.is_in_sectors and (c is None or c.major == "row")


def interleaved(problem: GemmProblem, traits: Traits) -> tuple[GemmProblem, Traits]:
    """Return a product and its traits; as batches if its schedule interleaves rows."""
    schedule = traits.schedule.interleaved(problem.a.stride % traits.tile[2])
    if schedule is None or not isinstance(traits, WarpgroupTraits) or not may_interleave(problem):
        return problem, traits
    c = _classes(problem.c) if problem.c else None
    batches = replace(problem, a=_classes(problem.a), c=c, out=_classes(problem.out))
    operands = replace(traits.operands, batches="strided")
    return batches, warpgroup_traits_of(traits.tiling, operands, schedule, traits.epilogue)


def _classes(matrix: Matrix) -> Matrix:
    """Return the rows of a class as one matrix of a batch."""
    rows, columns = matrix.shape
    shape, stride = (rows // CLASSES, columns), CLASSES * matrix.stride
    return replace(matrix, shape=shape, stride=stride, batches=CLASSES, batch_stride=matrix.stride)
