"""The shape of a launch (blocks, threads, shared memory and clusters), checked before anything runs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn, TypedDict

import numpy as np

from ptxdsl.errors import LaunchError, caller
from ptxdsl.isa.cluster_size import Clusters

GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMITS = (1024, 1024, 64)
THREADS_PER_BLOCK = 1024
CLUSTER_BLOCKS = 16


class Shape(NamedTuple):
    """The extents of a launch in x, y, z. The grid counts blocks, also for launches in clusters.

    A `dependent` launch may start before the previous kernel on its stream has ended.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    dependent: bool = False

    @property
    def threads(self) -> int:
        """The threads of one block."""
        return math.prod(self.block)


class ShapeOptions(TypedDict, total=False):
    """The options of a launch besides grid and block, as `launch_shape` takes them."""

    shared_bytes: int
    cluster: int | tuple[int, ...] | None
    cooperative: bool
    dependent: bool


class WrittenShape(NamedTuple):
    """The unchecked shape of a launch as its caller wrote it, in the order of the arguments of `launch_shape`.

    The fast path uses a plain tuple instead.
    """

    grid: Any
    block: Any
    shared_bytes: Any
    cluster: Any
    cooperative: bool
    dependent: bool


def launch_shape(
    grid: object,
    block: object,
    shared_bytes: object = 0,
    cluster: object = None,
    cooperative: bool = False,
    dependent: bool = False,
) -> Shape:
    """Check the ints, or tuples of one to three ints, that a user wrote, and return the shape of the launch.

    Raises LaunchError for an extent that is zero or too large, and for a grid that is not a multiple of its clusters.
    """
    shape = Shape(
        _extents("grid", grid, GRID_LIMITS),
        _extents("block", block, BLOCK_LIMITS),
        _byte_count(shared_bytes),
        None if cluster is None else cluster_extents(cluster),
        bool(cooperative),
        bool(dependent),
    )
    if shape.threads > THREADS_PER_BLOCK:
        refuse(
            f"a block of {shape.block} has {shape.threads} threads; the limit is {THREADS_PER_BLOCK}",
            "use a smaller block and a larger grid",
        )
    if shape.cluster:
        _check_cluster(shape.grid, shape.cluster)
    return shape


def cluster_extents(cluster: object) -> tuple[int, int, int]:
    """Return the blocks of a cluster along each axis. Raises LaunchError for a zero extent or too many blocks."""
    extents = _extents("cluster", cluster, (CLUSTER_BLOCKS,) * 3)
    if math.prod(extents) > CLUSTER_BLOCKS:
        message = f"a cluster of {extents} has {math.prod(extents)} blocks; the limit is {CLUSTER_BLOCKS}"
        refuse(message, "every GPU with clusters supports up to 8 blocks")
    return extents


def in_clusters(shape: Shape, kernel: str, promised: Clusters) -> Shape:
    """Return the shape with the kernel's clusters. Raises LaunchError if the launch asks for other clusters."""
    asked, required = shape.cluster, promised.required
    if asked and required and asked != required:
        refuse(
            f"{kernel} is compiled for clusters of {required} blocks, but the launch asks for {asked}",
            "launch it without `cluster`, or compile it for another one: `@pd.kernel(cluster=…)`",
        )
    if promised.explicit and not asked and not required:
        refuse(
            f"{kernel} runs only in clusters (.explicitcluster), but the launch has no `cluster`",
            f"launch it as {kernel}[grid, block](…, cluster=2)",
        )
    if asked and promised.most is not None and math.prod(asked) > promised.most:
        message = (
            f"{kernel} is compiled for clusters of at most {promised.most} blocks, but the launch asks for {asked}"
        )
        refuse(message, "launch smaller clusters, or raise its .maxclusterrank")
    if not required:
        return shape
    _check_cluster(shape.grid, cluster_extents(required))
    return shape._replace(cluster=required)


def _extents(name: str, value: object, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    written = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(written) <= 3 or not all(isinstance(v, int | np.integer) for v in written):
        help = "call it before the launch and pass the result" if callable(value) else None
        if any(isinstance(v, float) for v in written):
            help = "use integer division `//`; to round up, write `-(-n // 128)`"
        if hasattr(value, "shape"):
            help = "grid and block come before the arguments: `k[grid, block](…)`, pd.emulate(k, grid, block, …)"
        shown = f"a {type(value).__name__}" if hasattr(value, "shape") else repr(value)
        refuse(f"{name} is {shown}; it must be an int, or a tuple of one to three ints", help)
    x, y, z = (*map(int, written), 1, 1)[:3]
    extents = x, y, z
    if min(extents) < 1:
        help = "skip the launch if there is nothing to do" if name == "grid" else None
        refuse(f"{name} is {extents}: every extent must be at least 1", help)
    for axis, extent, limit in zip("xyz", extents, limits, strict=True):
        if extent > limit:
            refuse(f"{name} is {extents}: the limit of its {axis} extent is {limit}")
    return extents


def _byte_count(value: object) -> int:
    if not isinstance(value, int | np.integer) or value < 0:
        refuse(f"shared_bytes is {value!r}; it must be a number of bytes of dynamic shared memory, 0 or more")
    return int(value)


def _check_cluster(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> None:
    if any(extent % part for extent, part in zip(grid, cluster, strict=True)):
        refuse(
            f"a grid of {grid} blocks is not a multiple of clusters of {cluster}",
            "round the grid up to whole clusters, and let the blocks past the end of the problem return",
        )


def refuse(message: str, help: str | None = None) -> NoReturn:
    """Raise LaunchError at the user's call."""
    raise LaunchError(message, at=caller(), help=help)
