"""Resolve the arguments schedule=, split_k= and reduction= to a tile schedule.

A class of the caller's own is a TileSchedule, and needs no line here.
"""

from __future__ import annotations

from functools import singledispatch

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
# How blocks that share the K of a tile add up: one after another; the last one all; each of them a share of the tile,
# by way of global memory or of the shared memory of a cluster
REDUCTIONS = ("serial", "parallel", "scatter", "cluster")


class Misfit(Exception):
    """A schedule is not one, or does not support split-K."""


@singledispatch
def tile_schedule(schedule: object, split_k: int, reduction: str) -> TileSchedule:
    """Return the tile schedule. Raises Misfit for other objects, and for schedules that cannot split K."""
    name = "the base of all swizzles" if type(schedule) is ThreadblockSwizzle else repr(schedule)
    raise Misfit(
        f"schedule is {name}; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
        "StreamKThreadblockSwizzle of ptxdsl.schedule"
    )


# What their tiles are made of has no place in a GEMM of two matrices, or of batches
for other in (
    GemvBatchedStridedThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GroupScheduler,
):
    tile_schedule.register(other, tile_schedule.dispatch(object))


def check_whole(split_k: int, why: str) -> None:
    """Raise Misfit if blocks should share the K of a tile."""
    if split_k > 1:
        raise Misfit(f"split_k is {split_k}, and {why}")


@tile_schedule.register
def _(schedule: TileSchedule, split_k: int, reduction: str) -> TileSchedule:
    check_whole(split_k, f"{schedule!r} says itself how blocks share a tile")
    return schedule


@tile_schedule.register
def _(schedule: ThreadblockSwizzle, split_k: int, reduction: str) -> TileSchedule:
    if type(schedule) is ThreadblockSwizzle:
        return tile_schedule.dispatch(object)(schedule, split_k, reduction)
    if split_k > 1 and reduction == "cluster":
        if split_k > MOST_BLOCKS:
            raise Misfit(f'split_k is {split_k}, and reduction is "cluster", of {MOST_BLOCKS} blocks at most')
        return ClusterSplitK(schedule, split_k)
    return SplitK(schedule, split_k, reduction) if split_k > 1 else OneTile(schedule)


@tile_schedule.register
def _(schedule: BatchedIdentityThreadblockSwizzle, split_k: int, reduction: str) -> TileSchedule:
    name = "SplitKIdentityThreadblockSwizzle, whose z is the slice of K"
    check_whole(split_k, f"z of the {schedule.name} grid is the batch; take {name}")
    return OneTile(schedule)


@tile_schedule.register
def _(schedule: PersistentScheduler, split_k: int, reduction: str) -> TileSchedule:
    name = "StreamKThreadblockSwizzle, whose blocks share them"
    check_whole(split_k, f"persistent blocks compute whole tiles; take {name}")
    return Persistent(schedule)


@tile_schedule.register
def _(schedule: StreamKThreadblockSwizzle, split_k: int, reduction: str) -> TileSchedule:
    return StreamK(schedule, split_k)
