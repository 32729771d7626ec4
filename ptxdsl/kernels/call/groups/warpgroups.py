"""Lists on the sm_90a path: the checks for TMA, the assignment of tiles, and the parameters of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ptxdsl import Parameters
from ptxdsl.kernels.call.groups.group import ProblemGroup
from ptxdsl.kernels.call.groups.table import ADDRESSES, NO_TABLE, TileAssignment
from ptxdsl.kernels.call.launching.workspace import room, workspace
from ptxdsl.kernels.call.matrices import Matrices
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, MappedMatrix, describe_type
from ptxdsl.kernels.call.paths.kernel import Refusal, by_wgmma
from ptxdsl.kernels.sm90.maps import problem_map_bytes
from ptxdsl.kernels.sm90.parameters import tensor_grouped_parameters
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import u32


def _has_no_k(group: ProblemGroup) -> np.ndarray:
    """Return the mask of the problems that have an output and a K of 0."""
    m, n, k = group.shapes.T
    return np.asarray((m > 0) & (n > 0) & (k == 0))


def can_store_lists_by_tma(group: ProblemGroup) -> bool:
    """Return True if TMA can store all outputs of row-major problems, whose rows must start and end at multiples of 16
    bytes."""
    out = group.out
    return out.type.bits == 16 and group.c is None and out.widest(out.inner_extents) == WIDEST_ACCESS


def unmappable_lists(group: ProblemGroup) -> Iterator[Refusal]:
    """Yield the reasons why TMA cannot load row-major problems, or wgmma cannot read an operand in its major order."""
    cause, otherwise = by_wgmma(group.a.type, group.out.type)
    if _has_no_k(group).any():
        number = int(_has_no_k(group).argmax())
        yield (
            f"{cause}, and problem {number} has nothing to multiply: its K or alpha is 0",
            "leave atom out" if otherwise else "leave these problems out, and scale their c by beta",
        )
    for operand, along_k in ((group.a, "row"), (group.b, "column")):
        if operand.type not in TURNED and operand.major != along_k:
            yield (
                f"matrices of `{operand.name}` are not K-major, as wgmma needs {describe_type(operand.type)} operands "
                "to be",
                f"pass row-major `a` and column-major `b`{otherwise}",
            )
        yield from _misaligned_matrices(operand, f"{otherwise}: then they are loaded without TMA" if otherwise else "")


def _misaligned_matrices(operand: Matrices, otherwise: str) -> Iterator[Refusal]:
    """Yield the reason why TMA cannot load the first matrix with a misaligned address or stride."""
    stride_bytes = np.where(operand.outer_extents > 1, operand.strides, 0) * operand.type.bytes
    misaligned = (operand.bytes > 0) & ((operand.pointers | stride_bytes) % WIDEST_ACCESS != 0)
    for number in np.flatnonzero(misaligned)[:1].tolist():
        yield (
            f"`{operand.name}[{number}]` has a leading dimension of {stride_bytes[number]} bytes and the address "
            f"{operand.pointers[number]:#x}; TMA takes multiples of {WIDEST_ACCESS} bytes",
            f"pad its leading dimension{otherwise}",
        )


def align_single_row_strides(rows: np.ndarray, group: ProblemGroup) -> None:
    """Round up the strides of single-row matrices in a table of problems to multiples of 16 bytes, which tensor maps
    need."""
    matrices = group.a, group.b, group.out
    for column, operand in zip((*ADDRESSES[:2], ADDRESSES[-1]), matrices, strict=True):
        unit = WIDEST_ACCESS // operand.type.bytes
        rows[:, column + 1] = np.where(operand.outer_extents > 1, operand.strides, -(-operand.strides // unit) * unit)


def assign_longest_first(shapes: np.ndarray, traits: WarpgroupTraits, resident: int) -> TileAssignment:
    """Order the tiles of problems for dynamic assignment, the longest first. Each row of `shapes` is (M, N, K)."""
    return _assign_longest_first(shapes.tobytes(), traits.tile, traits.shares_rows, max(1, resident))


@lru_cache(maxsize=256)
def _assign_longest_first(shapes: bytes, tile: tuple[int, int, int], shares_rows: bool, blocks: int) -> TileAssignment:
    m, n, k = np.frombuffer(shapes, np.int64).reshape(-1, 3).T
    tiles_m, tiles_n, iterations = -(-m // tile[0]), -(-n // tile[1]), -(-k // tile[2])
    rows = m / np.maximum(tiles_m, 1) if shares_rows else np.ones(len(m))
    tiles = int((tiles_m * tiles_n).sum())
    longest = np.argsort(-iterations * rows, kind="stable")
    is_sorted = bool((longest == np.arange(len(m))).all())
    return TileAssignment(min(blocks, tiles), tiles, None if is_sorted else longest, NO_TABLE, 0, tiles_m)


class ListValues:
    """The parameters of `warpgroup_grouped_kernel` for row-major problems. Call it with the address of their table."""

    def __init__(self, traits: WarpgroupTraits, group: ProblemGroup, blocks: int) -> None:
        number = int(group.out.bytes.argmax())  # a problem whose matrices are not empty
        self.kind, self.problems = tensor_grouped_parameters(traits), len(group.shapes)
        self.patterns = {
            "a": _pattern(group.a, number, traits.map_of_rows),
            "b": _pattern(group.b, number, traits.b.map),
        }
        if traits.operands.out_boxes:
            self.patterns["boxes"] = _pattern(group.out, number, traits.out_map)
        self.map_bytes = blocks * problem_map_bytes(traits)

    def __call__(
        self, table: Any, schedule: Any, factors: tuple[float, ...], device: int | None, stream: int
    ) -> Parameters:
        alpha, beta = factors
        _, counters = workspace(device, stream, u32, 0, COUNTERS)
        maps = room(device, stream, "maps", self.map_bytes)
        numbers = {"problems": self.problems, "alpha": alpha, "beta": beta}
        return self.kind(**self.patterns, maps=maps, counters=counters, table=table, **numbers)


def _pattern(operand: Matrices, number: int, kind: TensorMap) -> MappedMatrix:
    """Return one matrix of a list as an argument with a tensor map."""
    shape = int(operand.outer_extents[number]), int(operand.inner_extents[number])
    name, owner, array = f"{operand.name}[{number}]", operand.owners[number], operand.array(number)
    return MappedMatrix(name, owner, array, kind, shape, (int(operand.strides[number]), 1))
