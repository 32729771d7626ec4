"""Operands whose lines tensor copies cannot address: they are copied first, to a workspace of lines that they can.

A copy reads and writes what a product of some size reads many times, which is little beside what wgmma saves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ptxdsl.kernels.call.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import Matrix, matrix
from ptxdsl.kernels.call.problem import GemmProblem
from ptxdsl.kernels.call.workspace import memory
from ptxdsl.kernels.parameters import view
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.lines import THREADS, WORD_BYTES, lines_kernel, lines_parameters
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.tensor_map import TensorMap

MOST_WORDS = 1 << 31  # which 32 bits count


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


def copied_bytes(problem: GemmProblem) -> int:
    """What is read and written to copy the operands that need it."""
    return sum(2 * o.array.size * o.type.bytes for o in (problem.a, problem.b) if not o.is_mappable)


def lined(problem: GemmProblem) -> tuple[GemmProblem, tuple[LaunchPlan, ...]]:
    """The problem with the copies for the operands that need them, and the launches that make these."""
    copies = [_copied(operand, *problem.place) for operand in (problem.a, problem.b)]
    (a, _), (b, _) = copies
    return replace(problem, a=a, b=b), tuple(launch for _, launch in copies if launch)


def _copied(operand: Matrix, device: int | None, stream: int) -> tuple[Matrix, LaunchPlan | None]:
    """An operand, or its copy with the launch that makes it."""
    if operand.is_mappable:
        return operand, None
    copy, target = _workspace(operand, device, stream)
    return copy, _copy(operand, target, copy.stride, stream)


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
    blocks = ceil_div(_words(operand), THREADS)
    return LaunchPlan(lines_kernel, blocks, THREADS, values, {"type": type}, stream=stream)
