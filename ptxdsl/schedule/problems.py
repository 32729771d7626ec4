"""Validated problem and tile sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from ptxdsl.errors import ScheduleError
from ptxdsl.layout.number import BlockIndex, Computed, Extents, Number
from ptxdsl.schedule.arithmetic import all_ints, ceil_div, is_int, minimum

MOST_TILES = 2**31
OPERATIONS = ("fprop", "dgrad", "deconv", "wgrad")


class ImplicitGemm(Protocol):
    """A problem that is computed as a GEMM, such as a convolution."""

    def implicit_gemm(self, op: str) -> tuple[int, int, int]:
        """Return the (M, N, K) of an operation."""


ProblemLike: TypeAlias = ImplicitGemm | Extents
Problems: TypeAlias = Sequence[ProblemLike] | np.ndarray


class GemmShape(NamedTuple):
    """The sizes of a GEMM: A is m×k, B is k×n, the output m×n. Sizes are ints, or values of a kernel."""

    m: Computed
    n: Computed
    k: Computed


class TiledShape(NamedTuple):
    """The number of tiles along m and n, and of slices of split-K or batches in k."""

    m: Computed
    n: Computed
    k: Computed


def sizes(values: object, subject: str, names: Sequence[str], least: int = 0) -> tuple[Computed, ...]:
    """Return `values`, one for each of `names`, with constants as ints. Raises ScheduleError for an invalid size."""
    is_one = not isinstance(values, Iterable) or (isinstance(values, np.ndarray) and not values.ndim)
    extents = (values,) if is_one else tuple(values)  # type: ignore[arg-type]
    wanted = f"({', '.join(names)})"
    if len(extents) != len(names):
        raise ScheduleError(f"{subject} has {len(extents)} sizes: {values}", help=f"give it as {wanted}")
    return tuple([_size(size, subject, name, least) for name, size in zip(names, extents, strict=True)])


def _size(size: object, subject: str, name: str, least: int) -> Computed:
    if type(size) is int and size >= least:
        return size
    if isinstance(size, float | np.floating | str | bool | type) or not hasattr(size, "__floordiv__"):
        raise ScheduleError(f"{subject}: {name} is {size!r}, which is not an integer", help="sizes must be integers")
    if is_int(size) and size < least:
        raise ScheduleError(
            f"{subject}: {name} must be {least} or more; found {size}", help=f"set {name} to {least} or more"
        )
    return int(size) if is_int(size) else size


def tile_sizes(tile: Extents, names: Sequence[str] = ("M", "N", "K")) -> tuple[Computed, ...]:
    """Return the sizes of a tile; the last one, K, may be omitted where it is not used."""
    extents = tuple(tile)
    return sizes(extents, "the tile", names[: len(extents)] if len(extents) == len(names) - 1 else names, least=1)


def gemm_shape(problem: ProblemLike, op: str | None = None) -> GemmShape:
    """Return the (M, N, K) of a GEMM, or of a convolution and an operation."""
    if hasattr(problem, "implicit_gemm"):
        if op is None:
            raise ScheduleError(
                f"the GEMM of a {type(problem).__name__} depends on the operation",
                help=f"pass the operation: op={', '.join(map(repr, OPERATIONS))}",
            )
        return GemmShape(*problem.implicit_gemm(op))
    return GemmShape(*sizes(problem, "the problem", ("M", "N", "K")))


def slices_of(problem: ProblemLike, split_k: Number | None) -> Computed:
    """Return the number of slices of K: `split_k` if given, otherwise that of the convolution, otherwise 1."""
    if split_k is None:
        return getattr(problem, "split_k", 1)
    return sizes((split_k,), "the split of K", ("split_k",), least=1)[0]


def countable(tiled: TiledShape) -> TiledShape:
    """Raise ScheduleError if 32 bits cannot count the tiles."""
    if all_ints(tiled) and prod(tiled) > MOST_TILES:
        raise ScheduleError(
            f"{' x '.join(map(str, tiled))} tiles are {prod(tiled)}, more than 2**31",
            help="use larger tiles, or compute the problem in parts",
        )
    return tiled


def check_block(block: object, count: int, subject: str = "persistent blocks") -> None:
    """Raise ScheduleError unless `block` is an index of one of `count` blocks."""
    if isinstance(block, float | str | bool) or block is None:
        raise ScheduleError(f"{block!r} is not a block index", help="a block index is an integer")
    if is_int(block) and not 0 <= block < count:
        numbers = f"blocks are numbered 0 to {count - 1}" if count else "a problem without tiles has no blocks"
        raise ScheduleError(f"block {block} is out of range for {count} {subject}", help=numbers)


def check_position(block: BlockIndex, grid: tuple[int, ...]) -> None:
    """Raise ScheduleError unless `block` is a linear index or an index (x, y) of the grid."""
    if not isinstance(block, tuple | list):
        check_block(block, prod(grid))
    elif len(block) not in (2, 3) or not all(is_int(i) and 0 <= i < n for i, n in zip(block, grid, strict=False)):
        raise ScheduleError(
            f"block {tuple(block)} is out of range for a grid of {' x '.join(map(str, grid))}",
            help="pass its linear index, or its (x, y), counted from 0",
        )


def slice_of_k(number: Number, slices: Number, k: Number, tile_k: int) -> tuple[Computed, Computed]:
    """Return the first K iteration of a split-K slice, and the end; slices are equal except for shorter last ones."""
    iterations = ceil_div(k, tile_k)
    each = ceil_div(iterations, slices)
    begin = minimum(number * each, iterations)
    return begin, minimum(begin + each, iterations)
