"""Resolve the arguments schedule=, split_k= and reduction= to a tile schedule.

A class of the caller's own is a TileSchedule, and needs no line here.
"""

from __future__ import annotations

from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS, ClusterSplitK
from ptxdsl.kernels.tiles.one_tile import OneTile
from ptxdsl.kernels.tiles.persistent import Persistent
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.tiles.split_k import SplitK
from ptxdsl.kernels.tiles.stream_k import StreamK
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GemvBatchedStridedThreadblockSwizzle,
    GroupScheduler,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    ThreadblockSwizzle,
)

Schedule = ThreadblockSwizzle | PersistentScheduler | StreamKThreadblockSwizzle | TileSchedule
# The reductions of blocks that share the K of a tile: one after another; all in the last one; a share of the tile each,
# through global memory or through the shared memory of a cluster
REDUCTIONS = ("serial", "parallel", "scatter", "cluster")
# Schedules whose tiles are not those of a GEMM of two matrices or of batches
OTHERS = (
    GemvBatchedStridedThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GroupScheduler,
)


class Misfit(Exception):
    """A schedule is not one, or does not support split-K."""


def tile_schedule(schedule: object, split_k: int, reduction: str) -> TileSchedule:
    """Return the tile schedule. Raises Misfit for other objects, and for schedules that cannot split K."""
    if isinstance(schedule, TileSchedule):
        check_whole(split_k, f"{schedule!r} says itself how blocks share a tile")
        return schedule
    if isinstance(schedule, StreamKThreadblockSwizzle):
        return StreamK(schedule, split_k)
    if not isinstance(schedule, ThreadblockSwizzle | PersistentScheduler) or isinstance(schedule, OTHERS):
        raise _other(repr(schedule))
    if isinstance(schedule, PersistentScheduler):
        name = "StreamKThreadblockSwizzle, whose blocks share them"
        check_whole(split_k, f"persistent blocks compute whole tiles; take {name}")
        return Persistent(schedule)
    if isinstance(schedule, BatchedIdentityThreadblockSwizzle):
        name = "SplitKIdentityThreadblockSwizzle, whose z is the slice of K"
        check_whole(split_k, f"z of the {schedule.name} grid is the batch; take {name}")
    if type(schedule) is ThreadblockSwizzle:
        raise _other("the base of all swizzles")
    if split_k <= 1:
        return OneTile(schedule)
    if reduction != "cluster":
        return SplitK(schedule, split_k, reduction)
    if split_k > MOST_BLOCKS:
        raise Misfit(f'split_k is {split_k}, and reduction is "cluster", of {MOST_BLOCKS} blocks at most')
    return ClusterSplitK(schedule, split_k)


def check_whole(split_k: int, why: str) -> None:
    """Raise Misfit if blocks should share the K of a tile."""
    if split_k > 1:
        raise Misfit(f"split_k is {split_k}, and {why}")


def _other(name: str) -> Misfit:
    return Misfit(
        f"schedule is {name}; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
        "StreamKThreadblockSwizzle of ptxdsl.schedule"
    )
