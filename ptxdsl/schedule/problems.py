"""Sizes of problems and tiles, checked."""

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
    """A problem that is a GEMM in another form, such as a convolution."""

    def implicit_gemm(self, op: str) -> tuple[int, int, int]:
        """Its (M, N, K) for an operation."""


ProblemLike: TypeAlias = ImplicitGemm | Extents
Problems: TypeAlias = Sequence[ProblemLike] | np.ndarray


class GemmShape(NamedTuple):
    """A is m×k, B is k×n, the output m×n. Sizes are ints, or values of a kernel."""

    m: Computed
    n: Computed
    k: Computed


class TiledShape(NamedTuple):
    """How many tiles there are along m and n, and in k: the slices of split-K, or the batches."""

    m: Computed
    n: Computed
    k: Computed


def sizes(values: object, subject: str, names: Sequence[str], least: int = 0) -> tuple[Computed, ...]:
    """`values`, one for each of `names`, known ones as ints. Raises ScheduleError for what is no size."""
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
        raise ScheduleError(f"{subject}: {name} is {size!r}, which is no integer", help="sizes are integers")
    if is_int(size) and size < least:
        raise ScheduleError(
            f"{subject}: {name} is {size}, and must be {least} or more", help=f"give {name} a size of {least} or more"
        )
    return int(size) if is_int(size) else size


def tile_sizes(tile: Extents, names: Sequence[str] = ("M", "N", "K")) -> tuple[Computed, ...]:
    """A tile's sizes, of which the last, K, may be left out where it does not matter."""
    extents = tuple(tile)
    return sizes(extents, "the tile", names[: len(extents)] if len(extents) == len(names) - 1 else names, least=1)


def gemm_shape(problem: ProblemLike, op: str | None = None) -> GemmShape:
    """The (M, N, K) of a GEMM, or of a convolution with its operation."""
    if hasattr(problem, "implicit_gemm"):
        if op is None:
            raise ScheduleError(
                f"a {type(problem).__name__} is a different GEMM for each operation",
                help=f"say which: op={', '.join(map(repr, OPERATIONS))}",
            )
        return GemmShape(*problem.implicit_gemm(op))
    return GemmShape(*sizes(problem, "the problem", ("M", "N", "K")))


def slices_of(problem: ProblemLike, split_k: Number | None) -> Computed:
    """How many slices K is cut into: as asked, else as a convolution says, else 1."""
    if split_k is None:
        return getattr(problem, "split_k", 1)
    return sizes((split_k,), "the split of K", ("split_k",), least=1)[0]


def countable(tiled: TiledShape) -> TiledShape:
    """Refuses more tiles than 32 bits count."""
    if all_ints(tiled) and prod(tiled) > MOST_TILES:
        raise ScheduleError(
            f"{' x '.join(map(str, tiled))} tiles are {prod(tiled)}, more than 2**31",
            help="take larger tiles, or compute the problem in parts",
        )
    return tiled


def check_block(block: object, count: int, subject: str = "persistent blocks") -> None:
    """Refuses what is no number of one of `count` blocks."""
    if isinstance(block, float | str | bool) or block is None:
        raise ScheduleError(f"{block!r} is no block", help="blocks are numbered by integers")
    if is_int(block) and not 0 <= block < count:
        numbers = f"they are numbered 0 to {count - 1}" if count else "a problem without tiles has none"
        raise ScheduleError(f"block {block} of {count} {subject}", help=numbers)


def check_position(block: BlockIndex, grid: tuple[int, ...]) -> None:
    """Refuses what is neither the number nor the index (x, y) of a block of a grid."""
    if not isinstance(block, tuple | list):
        check_block(block, prod(grid))
    elif len(block) not in (2, 3) or not all(is_int(i) and 0 <= i < n for i, n in zip(block, grid, strict=False)):
        raise ScheduleError(
            f"block {tuple(block)} of a grid of {' x '.join(map(str, grid))}",
            help="give its number, or its (x, y), counted from 0",
        )


def slice_of_k(number: Number, slices: Number, k: Number, tile_k: int) -> tuple[Computed, Computed]:
    """The first and last (half-open) K-iterations of a slice of split-K: as many for each, less for the last ones."""
    iterations = ceil_div(k, tile_k)
    each = ceil_div(iterations, slices)
    begin = minimum(number * each, iterations)
    return begin, minimum(begin + each, iterations)
