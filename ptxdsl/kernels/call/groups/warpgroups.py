"""Lists on sm_90a: which lists TMA can address, and the parameters of their kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ptxdsl import Parameters
from ptxdsl.kernels.call.groups.group import ProblemGroup
from ptxdsl.kernels.call.groups.table import ADDRESSES, NO_TABLE, Deal
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


def _without_k(group: ProblemGroup) -> np.ndarray:
    """Return which problems have an output and a K of 0."""
    m, n, k = group.shapes.T
    return np.asarray((m > 0) & (n > 0) & (k == 0))


def are_lists_boxed(group: ProblemGroup) -> bool:
    """Return True if TMA can store all outputs of row-major problems: their rows start and end at multiples of 16
    bytes."""
    out = group.out
    return out.type.bits == 16 and group.c is None and out.widest(out.lengths) == WIDEST_ACCESS


def unmappable_lists(group: ProblemGroup) -> Iterator[Refusal]:
    """Yield why TMA cannot address a matrix of row-major problems, or wgmma not read it in its order."""
    cause, otherwise = by_wgmma(group.a.type, group.out.type)
    if _without_k(group).any():
        number = int(_without_k(group).argmax())
        yield (
            f"{cause}, and problem {number} has nothing to multiply: its K is 0, or alpha is",
            "leave atom out" if otherwise else "leave such problems out, and scale their c by beta",
        )
    for operand, along_k in ((group.a, "row"), (group.b, "column")):
        if operand.type not in TURNED and operand.major != along_k:
            yield (
                f"matrices of `{operand.name}` are not K-major, as wgmma needs {describe_type(operand.type)} "
                "operands to be",
                f"pass row-major `a` and column-major `b`{otherwise}",
            )
        yield from _of_lines(operand, f"{otherwise}: then they are loaded without TMA" if otherwise else "")


def _of_lines(operand: Matrices, otherwise: str) -> Iterator[Refusal]:
    apart = np.where(operand.lines > 1, operand.strides, 0) * operand.type.bytes
    wrong = (operand.bytes > 0) & ((operand.pointers | apart) % WIDEST_ACCESS != 0)
    for number in np.flatnonzero(wrong)[:1].tolist():
        yield (
            f"`{operand.name}[{number}]` has lines {apart[number]} bytes apart from the address "
            f"{operand.pointers[number]:#x} on; TMA takes multiples of {WIDEST_ACCESS} bytes",
            f"pad its lines{otherwise}",
        )


def widen_single_lines(rows: np.ndarray, group: ProblemGroup) -> None:
    """Round the row stride of single-row matrices, in a table of problems, up to one that a tensor map accepts."""
    matrices = group.a, group.b, group.out
    for column, operand in zip((*ADDRESSES[:2], ADDRESSES[-1]), matrices, strict=True):
        unit = WIDEST_ACCESS // operand.type.bytes
        rows[:, column + 1] = np.where(operand.lines > 1, operand.strides, -(-operand.strides // unit) * unit)


def deal_longest_first(shapes: np.ndarray, traits: WarpgroupTraits, resident: int) -> Deal:
    """Assign tiles dynamically, the longest first."""
    return _dealt(shapes.tobytes(), traits.tile, traits.shares_rows, max(1, resident))


@lru_cache(maxsize=256)
def _dealt(shapes: bytes, tile: tuple[int, int, int], in_shares: bool, blocks: int) -> Deal:
    """Assign the tiles of problems, int64 (M, N, K) each, to this many blocks."""
    m, n, k = np.frombuffer(shapes, np.int64).reshape(-1, 3).T
    across, iterations = -(-n // tile[1]), -(-k // tile[2])
    down = -(-m // tile[0])
    rows = m / np.maximum(down, 1) if in_shares else np.ones(len(m))
    tiles = int((down * across).sum())
    longest = np.argsort(-iterations * rows, kind="stable")
    is_sorted = bool((longest == np.arange(len(m))).all())
    return Deal(min(blocks, tiles), tiles, None if is_sorted else longest, NO_TABLE, 0, down)


class ListValues:
    """The parameters of `warpgroup_grouped_kernel` for row-major problems, given the address of their table."""

    def __init__(self, traits: WarpgroupTraits, group: ProblemGroup, blocks: int) -> None:
        number = int(group.out.bytes.argmax())  # of a problem with all its matrices
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
    """Return one matrix of a list by tensor map."""
    lines, length = int(operand.lines[number]), int(operand.lengths[number])
    name, owner, array = f"{operand.name}[{number}]", operand.owners[number], operand.array(number)
    return MappedMatrix(name, owner, array, kind, (lines, length), (int(operand.strides[number]), 1))
