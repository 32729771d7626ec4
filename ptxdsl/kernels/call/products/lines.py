"""Operands whose lines tensor copies cannot address, or only slowly: they are copied first, to a workspace of better
lines.

A copy reads and writes once what a product of some size reads many times. Tensor copies take lines that begin at
multiples of 16 bytes; those that begin in the midst of a sector of 32 come at less than half of the rate, for which
clusters make up where products are large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.residency import EMULATED
from ptxdsl.kernels.call.launching.workspace import memory
from ptxdsl.kernels.call.matrix import Matrix, matrix
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.choose.warpgroups import BEGINNING, RATE, READING
from ptxdsl.kernels.reorder.lines import EACH, THREADS, WORD_BYTES, lines_kernel, lines_parameters, word_lines_kernel
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.tensor_map import TensorMap

MOST_WORDS = 1 << 31  # which 32 bits count
LINES_OF_A = 1 / 3  # of all lines that come for a tile of 128 x 256
LINE_TIMES = {True: 0.73, False: 1.6}  # of them, in sectors or not, in the time in which they are multiplied


@dataclass(frozen=True)
class LinedMatrix(Matrix):
    """A copy in the workspace of a GPU."""

    def mapped(self, kind: TensorMap) -> Any:
        """The tensor map itself: the address stays."""
        return super().mapped(kind).encoder()(self.array.pointer)


def takes_lines(problem: GemmProblem) -> bool:
    """Whether its operands may be copied so: single matrices, where there is something to compute."""
    sizes = problem.a.array.size, problem.b.array.size, problem.out.array.size
    return problem.batches is None and all(sizes) and all(_words(o) < MOST_WORDS for o in (problem.a, problem.b))


class LineCopies(NamedTuple):
    """Whether A and B are copied, and the microseconds that the copies should take, with what lines that stay slow
    cost, where clusters do not bring them."""

    a: bool
    b: bool
    time: float

    def split(self, problem: GemmProblem) -> tuple[bool, bool]:
        """Of which operands lines begin in the midst of sectors then."""
        return not (self.a or problem.a.is_in_sectors), not (self.b or problem.b.is_in_sectors)

    def carry_out(self, problem: GemmProblem) -> tuple[GemmProblem, tuple[LaunchPlan, ...]]:
        """The problem with the copies, and the launches that make these."""
        launches = []
        for name in ("a", "b"):
            if getattr(self, name):
                operand: Matrix = getattr(problem, name)
                copy, target = _workspace(operand, *problem.device_stream)
                launches.append(_copy(operand, target, copy.stride, problem.device_stream[1]))
                problem = replace(problem, a=copy) if name == "a" else replace(problem, b=copy)
        return problem, tuple(launches)


def copies_of(problem: GemmProblem, only_unmappable: bool = False) -> LineCopies:
    """The copies with which a product should take the least time; where clusters bring all lines that a map takes,
    those of the others."""
    if only_unmappable:
        way = not problem.a.is_mappable, not problem.b.is_mappable
        return LineCopies(*way, _copying(problem, *way))
    ways = product(_ways(problem.a), _ways(problem.b))
    return min((LineCopies(*way, _time(problem, *way)) for way in ways), key=attrgetter("time"))


def _ways(operand: Matrix) -> tuple[bool, ...]:
    """Whether it may be copied or not."""
    if not operand.is_mappable:
        return (True,)
    return (False,) if operand.is_in_sectors else (False, True)


def _time(problem: GemmProblem, copies_a: bool, copies_b: bool) -> float:
    """Microseconds of copies, and those that a product takes longer than by the best of lines."""
    operands = (problem.a, copies_a, LINES_OF_A), (problem.b, copies_b, 1 - LINES_OF_A)
    busy = sum(part * LINE_TIMES[is_copied or o.is_in_sectors] for o, is_copied, part in operands)
    multiplying = 2 * problem.m * problem.n * problem.k * problem.a.type.bytes / (RATE * EMULATED)
    return _copying(problem, copies_a, copies_b) + max(0.0, busy - 1) * multiplying


def _copying(problem: GemmProblem, copies_a: bool, copies_b: bool) -> float:
    """Microseconds of copies."""
    copied = [o for o, is_copied in ((problem.a, copies_a), (problem.b, copies_b)) if is_copied]
    return sum(2 * o.array.size * o.type.bytes / READING + BEGINNING for o in copied)


def _lines(operand: Matrix) -> int:
    return operand.shape[0] if operand.major == "row" else operand.shape[1]


def _words(operand: Matrix) -> int:
    """Of 16 bytes, that a copy of an operand has."""
    return _lines(operand) * ceil_div(operand.length * operand.type.bytes, WORD_BYTES)


def _workspace(operand: Matrix, device: int | None, stream: int) -> tuple[Matrix, Any]:
    """Room for a copy of an operand, as a matrix and as all that the copy writes: numpy memory on the emulator, else
    the workspace of a stream, by its address."""
    lines, line_bytes = _lines(operand), ceil_div(operand.length * operand.type.bytes, LINE_BYTES) * LINE_BYTES
    elements = line_bytes // operand.type.bytes
    if device is None:
        room = np.empty((lines, elements), operand.owner.dtype)
        rows = room[:, : operand.length]
        return matrix(operand.name, rows if operand.major == "row" else rows.T), matrix(operand.name, room)
    address = memory(device, stream, operand.name, lines * line_bytes)
    strides = (elements, 1) if operand.major == "row" else (1, elements)
    array = replace(operand.array, pointer=address, strides=strides, owner=None)
    return LinedMatrix(operand.name, None, array, operand.shape, operand.major, elements), address


def _copy(operand: Matrix, target: Any, stride: int, stream: int) -> LaunchPlan:
    """The launch that copies the lines of an operand."""
    type = operand.type
    values = lines_parameters(type)(
        source=view(type)(pointer=operand, stride=operand.stride),
        lined=view(type)(pointer=target, stride=stride),
        lines=_lines(operand),
        length=operand.length,
    )
    in_words = operand.is_mappable and not operand.length * type.bytes % WORD_BYTES
    kernel, each = (word_lines_kernel, EACH) if in_words else (lines_kernel, 1)
    blocks = ceil_div(_words(operand), THREADS * each)
    return LaunchPlan(kernel, blocks, THREADS, values, {"type": type}, stream=stream)
