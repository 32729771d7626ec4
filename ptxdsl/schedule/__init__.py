"""Which tile of the output is computed where and when: plain arithmetic for the host, for drawings and for kernels."""

from ptxdsl.schedule.conv import Conv2dProblem, Conv3dProblem
from ptxdsl.schedule.grouped import GroupedProblemVisitor, GroupedTile, TriangularProblemVisitor, WorkColumns, tile_of
from ptxdsl.schedule.occupancy import blocks_per_multiprocessor, sufficient_blocks
from ptxdsl.schedule.persistent import ClusterRaster, GroupPlan, GroupScheduler, PersistentPlan, PersistentScheduler
from ptxdsl.schedule.problems import GemmShape, TiledShape, slice_of_k
from ptxdsl.schedule.raster import GroupedRowsThreadblockSwizzle, HilbertThreadblockSwizzle, Serpentine, strip_width
from ptxdsl.schedule.stream_k import StreamKCoverage, StreamKNumbers, StreamKPlan, StreamKThreadblockSwizzle, TileWork
from ptxdsl.schedule.swizzle import (
    BatchedIdentityThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GemvBatchedStridedThreadblockSwizzle,
    GemvShape,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    ThreadblockSwizzle,
    TileOffset,
)
from ptxdsl.schedule.tile_map import Coverage, Reuse, TileMap, l2_reuse
from ptxdsl.schedule.timeline import Span, Timeline

__all__ = [
    "BatchedIdentityThreadblockSwizzle",
    "ClusterRaster",
    "Conv2dProblem",
    "Conv3dProblem",
    "Coverage",
    "DepthwiseThreadblockSwizzle",
    "GemmShape",
    "GemvBatchedStridedThreadblockSwizzle",
    "GemvShape",
    "GroupPlan",
    "GroupScheduler",
    "GroupedProblemVisitor",
    "GroupedRowsThreadblockSwizzle",
    "GroupedTile",
    "HilbertThreadblockSwizzle",
    "HorizontalThreadblockSwizzle",
    "IdentityNoPaddingThreadblockSwizzle",
    "IdentityThreadblockSwizzle",
    "PersistentPlan",
    "PersistentScheduler",
    "Reuse",
    "Serpentine",
    "Span",
    "SplitKHorizontalThreadblockSwizzle",
    "SplitKIdentityThreadblockSwizzle",
    "StreamKCoverage",
    "StreamKNumbers",
    "StreamKPlan",
    "StreamKThreadblockSwizzle",
    "StridedDgradHorizontalThreadblockSwizzle",
    "StridedDgradIdentityThreadblockSwizzle",
    "ThreadblockSwizzle",
    "TileMap",
    "TileOffset",
    "TileWork",
    "TiledShape",
    "Timeline",
    "TriangularProblemVisitor",
    "WorkColumns",
    "blocks_per_multiprocessor",
    "l2_reuse",
    "slice_of_k",
    "strip_width",
    "sufficient_blocks",
    "tile_of",
]
