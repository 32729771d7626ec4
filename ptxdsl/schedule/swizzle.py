"""Threadblock swizzles: the output tile that each thread block computes.

A swizzle is arithmetic on block indices. The same code runs on ints, on numpy arrays (all blocks at once, for pictures
and coverage) and on the registers of a kernel. Every grid covers every tile exactly once; a block whose tile is outside
the tiled shape must exit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.number import BlockIndex, Computed, Extents, Index3, Number
from ptxdsl.schedule.arithmetic import all_ints, ceil_div, ceil_shift, constant_like, is_int, low_bits, where
from ptxdsl.schedule.conv import Conv2dProblem
from ptxdsl.schedule.problems import ProblemLike, TiledShape, countable, gemm_shape, sizes, slices_of, tile_sizes
from ptxdsl.schedule.tile_map import Coverage, TileMap

MOST_BLOCKS = (2**31 - 1, 65535, 65535)  # limits of a grid along x, y and z
# Strip widths as (log2 of the width, minimum tiles of N)
STRIPS = ((1, 2), (2, 3), (3, 6))


class TileOffset(NamedTuple):
    """A tile along m and n, and in k the slice of split-K or the batch."""

    m: Computed
    n: Computed
    k: Computed


class ThreadblockSwizzle:
    """The base of all swizzles. Swizzles are hashable values, so that a kernel can be specialised for one."""

    name: str
    depth = "k"  # meaning of z in pictures

    @property
    def title(self) -> str:
        """The name of the swizzle with its parameter."""
        return " ".join([self.name, *map(str, vars(self).values())])

    def tiled_shape(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> TiledShape:
        """Return the number of tiles of a problem (M, N, K), and of slices of K (batches for a batched swizzle).

        A convolution needs its operation, `op`, and has its own split_k. Raises ScheduleError for invalid sizes, and
        for more than 2**31 tiles.
        """
        m, n, _ = gemm_shape(problem, op)
        tile_m, tile_n, *_ = tile_sizes(tile)
        return countable(TiledShape(ceil_div(m, tile_m), ceil_div(n, tile_n), slices_of(problem, split_k)))

    def log_tile(self, tiled: Extents) -> Computed:
        """Return log2 of the number of tiles along n that are adjacent along x in the grid."""
        return constant_like(TiledShape(*tiled).n, 0)

    def grid_shape(self, tiled: Extents) -> tuple[Computed, Computed, Computed]:
        """Return the blocks along x, y and z. Raises ScheduleError if the grid exceeds the launch limits."""
        return launchable(self.name, self._grid(TiledShape(*tiled), self.log_tile(tiled)))

    def tile_offset(
        self, block_idx: BlockIndex, log_tile: Number | None = None, tiled_shape: Extents | None = None
    ) -> TileOffset:
        """Return the tile of a block (x, y, z), given the log tile or the tiled shape of its grid."""
        return TileOffset(*self._offset(*xyz(block_idx), self._log(log_tile, tiled_shape)))

    def map(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> TileMap:
        """Return all blocks of the grid with their tiles, for pictures and statistics."""
        tiled = self.tiled_shape(problem, tile, split_k, op=op)
        grid = self.grid_shape(tiled)
        x, y, z = launch_order(grid)
        offsets = self.tile_offset((x, y, z), self.log_tile(tiled), tiled)
        tiles = np.stack(np.broadcast_arrays(*offsets), axis=1)
        return TileMap(self.title, TiledShape(*map(int, tiled)), grid, tiles, self.depth)

    def coverage(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> Coverage:
        """Return (tiles, missing, repeated, no_op_blocks).

        These are the tiles that the grid computes, misses, and computes more than once (the last two are always empty),
        and the blocks without a tile.
        """
        return self.map(problem, tile, split_k, op=op).coverage()

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        return tiled.m, tiled.n, tiled.k

    def _offset(self, x: Number, y: Number, z: Number, log: Number) -> tuple[Computed, Computed, Computed]:
        return x, y, z

    def _log(self, log_tile: Number | None, tiled_shape: Extents | None) -> Computed:
        if log_tile is not None:
            return log_tile
        return 0 if tiled_shape is None else self.log_tile(tiled_shape)


def launchable(name: str, grid: tuple[Number, Number, Number]) -> tuple[Computed, Computed, Computed]:
    """Return the grid; raise ScheduleError if it exceeds the launch limits."""
    for axis, blocks, most in zip("xyz", grid, MOST_BLOCKS, strict=True):
        if is_int(blocks) and blocks > most:
            wide = "use larger tiles, or a schedule with its blocks along x, such as GroupedRowsThreadblockSwizzle"
            deep = "split K into fewer slices; for more batches, use BatchedIdentityThreadblockSwizzle"
            raise ScheduleError(
                f"{name}: the grid has {blocks} blocks along {axis}, but the limit is {most}",
                help=deep if axis == "z" else wide,
            )
    return grid


def xyz(block_idx: BlockIndex) -> tuple[Computed, Computed, Computed]:
    """Return a block index as three numbers, given pd.ctaid or a tuple, which may omit y and z."""
    if hasattr(block_idx, "x"):
        index = cast(Index3, block_idx)
        return index.x, index.y, index.z
    x, y, z = (*block_idx, 0, 0)[:3] if isinstance(block_idx, tuple | list) else (block_idx, 0, 0)
    return x, y, z


def launch_order(grid: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return the block indices along each axis of a grid in launch order: x fastest."""
    return tuple(axis.ravel() for axis in np.indices(grid[::-1])[::-1])


@dataclass(frozen=True)
class IdentityThreadblockSwizzle(ThreadblockSwizzle):
    """Strips of up to `n` tiles along n: the blocks of a strip run along n first, then along m.

    The strip is 8, 4 or 2 wide if the problem has at least 6, 3 or 2 tiles along n and `n` allows it. Blocks of the
    same wave then share columns of B as well as rows of A in the L2 cache.
    """

    n: int = 1
    name = "identity"

    def __post_init__(self) -> None:
        sizes((self.n,), type(self).__name__, ("n",), least=1)

    def log_tile(self, tiled: Extents) -> Computed:
        n = TiledShape(*tiled).n
        log = constant_like(n, 0)
        for strip, least in STRIPS:
            if self.n >= 1 << strip:
                log = where(self._fills(n, strip, least), strip, log)
        return log

    def _fills(self, n: Number, strip: int, least: int) -> Computed:
        return n >= least

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        return tiled.m << log, ceil_shift(tiled.n, log), tiled.k

    def _offset(self, x: Number, y: Number, z: Number, log: Number) -> tuple[Computed, Computed, Computed]:
        return x >> log, (y << log) + low_bits(x, log), z

    def _log(self, log_tile: Number | None, tiled_shape: Extents | None) -> Computed:
        if log_tile is not None:
            return log_tile
        if tiled_shape is None:
            raise ScheduleError(
                f"{self.name}: a block index alone does not determine a tile",
                help="pass log_tile=swizzle.log_tile(tiled), as for the grid",
            )
        log = self.log_tile(tiled_shape)
        if all_ints(tiled_shape):
            # The tiled shape alone implies strips of `n` tiles, or of one tile if there are fewer than `n`. CUTLASS
            # computes this form for any grid, and misses tiles.
            m, n, k = tiled_shape
            strip = 1 if m < self.n or n < self.n else self.n
            if strip != 1 << log:
                raise ScheduleError(
                    f"{type(self).__name__}({self.n}).tile_offset(tiled_shape=({m}, {n}, {k})) would miss tiles: it "
                    f"assumes strips of {strip}, but the grid of {m} x {n} tiles has strips of {1 << log}",
                    help="pass log_tile=swizzle.log_tile(tiled), as for the grid",
                )
        return log


@dataclass(frozen=True)
class IdentityNoPaddingThreadblockSwizzle(IdentityThreadblockSwizzle):
    """Identity with only strips that divide the tiles along n, so that every block has a tile."""

    name = "identity-no-padding"

    def _fills(self, n: Number, strip: int, least: int) -> Computed:
        return low_bits(n, strip) == 0


@dataclass(frozen=True)
class SplitKIdentityThreadblockSwizzle(IdentityThreadblockSwizzle):
    """Identity with split-K: z of the grid is the slice of K."""

    name = "split-k-identity"


@dataclass(frozen=True)
class HorizontalThreadblockSwizzle(ThreadblockSwizzle):
    """Blocks run along n first, over the whole width."""

    name = "horizontal"

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        return tiled.n, tiled.m, tiled.k

    def _offset(self, x: Number, y: Number, z: Number, log: Number) -> tuple[Computed, Computed, Computed]:
        return y, x, z


@dataclass(frozen=True)
class SplitKHorizontalThreadblockSwizzle(HorizontalThreadblockSwizzle):
    """Horizontal with split-K: z of the grid is the slice of K."""

    name = "split-k-horizontal"


@dataclass(frozen=True)
class BatchedIdentityThreadblockSwizzle(ThreadblockSwizzle):
    """z of the grid is the batch. Above 65535 batches, 2**log_tile consecutive batches share a z and are adjacent along
    x.
    """

    name = "batched-identity"
    depth = "batch"

    def log_tile(self, tiled: Extents) -> Computed:
        batches = TiledShape(*tiled).k
        log = constant_like(batches, 0)
        for bits in range(1, 17):
            log = where(batches > MOST_BLOCKS[2] << (bits - 1), bits, log)
        return log

    def _grid(self, tiled: TiledShape, log: Number) -> tuple[Computed, Computed, Computed]:
        return tiled.m << log, tiled.n, ceil_shift(tiled.k, log)

    def _offset(self, x: Number, y: Number, z: Number, log: Number) -> tuple[Computed, Computed, Computed]:
        return x >> log, y, (z << log) + low_bits(x, log)


class GemvShape(NamedTuple):
    m: Computed
    n: Computed
    k: Computed
    batch: Computed


@dataclass(frozen=True)
class GemvBatchedStridedThreadblockSwizzle(ThreadblockSwizzle):
    """Batched matrix-vector product: problem, tile and tiled shape are (M, N, K, batch); M is one tile."""

    name = "gemv-batched-strided"

    def tiled_shape(  # type: ignore[override]
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> GemvShape:
        names = GemvShape._fields
        _, n, k, batch = sizes(problem, "the problem", names)
        _, tile_n, tile_k, tile_batch = sizes(tile, "the tile", names, least=1)
        return GemvShape(1, ceil_div(n, tile_n), ceil_div(k, tile_k), ceil_div(batch, tile_batch))

    def log_tile(self, tiled: Extents) -> Computed:
        return constant_like(GemvShape(*tiled).n, 0)

    def grid_shape(self, tiled: Extents) -> tuple[Computed, Computed, Computed]:
        """Return the tiles along n, along the batch and along k."""
        _, n, k, batch = tiled
        return launchable(self.name, (n, batch, k))

    def tile_offset(  # type: ignore[override]
        self, block_idx: BlockIndex, log_tile: Number | None = None, tiled_shape: Extents | None = None
    ) -> GemvShape:
        x, y, z = xyz(block_idx)
        return GemvShape(0, x, z, y)

    def batch(self, block_y: Number, thread_y: Number, threads_y: Number) -> Computed:
        """Return the batch of a thread in a block of `threads_y` threads along y."""
        return threads_y * block_y + thread_y

    def map(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> TileMap:
        _, n, k, batch = self.tiled_shape(problem, tile)
        grid = self.grid_shape((1, n, k, batch))
        _, n_, k_, batch_ = self.tile_offset(launch_order(grid))
        return TileMap(self.name, TiledShape(n, k, batch), grid, np.stack([n_, k_, batch_], axis=1), "batch")


class _StridedDgrad(ThreadblockSwizzle):
    """The gradient of a strided convolution: each stride phase has its own rows of tiles."""

    def tiled_shape(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> TiledShape:
        """Return the tiled shape of dgrad; the problem is a Conv2dProblem."""
        if not isinstance(problem, Conv2dProblem):
            raise ScheduleError(
                f"{self.name} needs a convolution; found {problem!r}", help="pass a Conv2dProblem, which has a stride"
            )
        if op not in (None, "dgrad", "deconv"):
            raise ScheduleError(f"{self.name} computes dgrad, not {op}", help=f"use another swizzle for {op}")
        tile_m, tile_n, *_ = tile_sizes(tile)
        _, n, _ = problem.implicit_gemm("dgrad")
        rows = problem.stride[0] * problem.stride[1] * problem.strided_dgrad_rows(tile_m)
        return countable(TiledShape(rows, ceil_div(n, tile_n), slices_of(problem, split_k)))


@dataclass(frozen=True)
class StridedDgradIdentityThreadblockSwizzle(_StridedDgrad, IdentityThreadblockSwizzle):
    """Identity for the gradient of a strided convolution: each stride phase has whole rows of tiles."""

    name = "strided-dgrad-identity"


@dataclass(frozen=True)
class StridedDgradHorizontalThreadblockSwizzle(_StridedDgrad, HorizontalThreadblockSwizzle):
    """Horizontal for the gradient of a strided convolution: each stride phase has whole rows of tiles."""

    name = "strided-dgrad-horizontal"


@dataclass(frozen=True)
class DepthwiseThreadblockSwizzle(IdentityThreadblockSwizzle):
    """Direct depthwise convolution: the slices partition the pixels, so there is one tile along m."""

    name = "depthwise"

    def tiled_shape(
        self, problem: ProblemLike, tile: Extents, split_k: Number | None = None, *, op: str | None = None
    ) -> TiledShape:
        return super().tiled_shape(problem, tile, split_k, op=op)._replace(m=1)
