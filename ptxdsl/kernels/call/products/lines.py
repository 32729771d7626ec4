"""Operands whose lines tensor copies cannot address, or only slowly: they are copied first, to a workspace of better
lines.

A copy reads and writes once what a product of some size reads many times. Tensor copies take lines that begin at
multiples of 16 bytes; those that begin in the midst of a sector of 32 come at less than half of the rate, for which
clusters make up where products are large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.workspace import memory
from ptxdsl.kernels.call.matrix import Matrix, matrix
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.choose.large_products import LARGEST, LargeTile, slowness_of_lines, time_of_large
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.reorder.lines import EACH, THREADS, WORD_BYTES, lines_kernel, lines_parameters, word_lines_kernel
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.traits.parameters import view
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


def copies_of(problem: GemmProblem, facts: ProductFacts, model: CostModel) -> LineCopies:
    """The copies with which a product should take the least time; lines that stay slow cost as much longer as tensor
    cores wait for them."""
    rates, (m, n, k, batches, *_) = model.rates.large, facts
    multiplied = LARGEST * LINE_BYTES / facts.operands.inputs.bytes / rates.iteration[LargeTile(256).name]
    multiplying = m * n * k * batches / (multiplied * model.multiprocessors)

    def with_copies(copies: LineCopies) -> LineCopies:
        slowness = slowness_of_lines(copies.split(problem), rates)
        return copies._replace(time=copies.time + (slowness - 1) * multiplying)

    return min(map(with_copies, _ways_to_copy(problem, model)), key=attrgetter("time"))


def copies_of_large(problem: GemmProblem, facts: ProductFacts, model: CostModel) -> LineCopies:
    """The same of a large product, of which clusters bring slow lines: the model of these knows what they cost."""

    def time(copies: LineCopies) -> float:
        interleaves = facts.interleaves and not copies.a
        known = facts._replace(split_lines=copies.split(problem), interleaves=interleaves)
        return copies.time + time_of_large(known, model)

    return min(_ways_to_copy(problem, model), key=time)


def _ways_to_copy(problem: GemmProblem, model: CostModel) -> Iterator[LineCopies]:
    """Whether A and B are copied, and how long the copies take."""
    for way in product(_ways(problem.a), _ways(problem.b)):
        copied = [operand for operand, is_copied in zip((problem.a, problem.b), way, strict=True) if is_copied]
        moved = sum(2 * operand.array.size * operand.type.bytes for operand in copied)
        each = model.rates.launch + model.rates.dram_latency
        yield LineCopies(*way, len(copied) * each + moved / model.rates.large.copy_bandwidth)


def _ways(operand: Matrix) -> tuple[bool, ...]:
    """Whether it may be copied or not."""
    if not operand.is_mappable:
        return (True,)
    return (False,) if operand.is_in_sectors else (False, True)


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
