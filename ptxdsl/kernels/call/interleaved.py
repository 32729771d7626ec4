"""Products whose A has lines in the midst of sectors, as batches whose rows take turns: those of one batch begin at the
same part of an L2 line."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.kernels.call.matrix import L2_LINE_BYTES, SECTOR_BYTES, Matrix
from ptxdsl.kernels.call.problem import GemmProblem
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import InterleavedStrips
from ptxdsl.kernels.traits import Traits

ROWS = L2_LINE_BYTES // (SECTOR_BYTES // 2)  # after which one begins at the same part again


def interleaved(problem: GemmProblem, traits: Traits) -> tuple[GemmProblem, Traits]:
    """A product and its kernel, as they are or, where clusters along M bring such an A, as batches."""
    if not isinstance(traits, WarpgroupTraits) or not _may_interleave(problem, traits):
        return problem, traits
    c = _batches(problem.c) if problem.c else None
    batches = replace(problem, a=_batches(problem.a), c=c, out=_batches(problem.out))
    step = problem.a.stride % traits.tile[2]
    operands = replace(traits.operands, batches="strided")
    schedule = InterleavedStrips(traits.schedule.multicast, step=step)
    return batches, warpgroup_traits_of(traits.tiling, operands, schedule, traits.epilogue)


def _may_interleave(problem: GemmProblem, traits: WarpgroupTraits) -> bool:
    """Whether the blocks of a cluster share columns of B alone, and all batches have as many rows."""
    in_clusters = type(traits.schedule) is ClusterStrips and traits.schedule.multicast[1] == 1
    a_lies_so = problem.a.major == "row" and not problem.a.is_in_sectors
    return in_clusters and a_lies_so and traits.operands.out_boxes and problem.m % ROWS == 0


def _batches(matrix: Matrix) -> Matrix:
    rows, columns = matrix.shape
    shape, stride = (rows // ROWS, columns), ROWS * matrix.stride
    return replace(matrix, shape=shape, stride=stride, batches=ROWS, batch_stride=matrix.stride)
