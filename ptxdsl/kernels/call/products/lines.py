"""Operands that tensor copies cannot bring as wgmma reads them, or only slowly, or that wgmma would cut bits off: they
are copied first, to a workspace of better lines.

A copy reads and writes once what a product of some size reads many times. Tensor copies take lines that begin at
multiples of 16 bytes; those that begin in the midst of a sector of 32 come at less than half of the rate, for which
clusters make up where products are large. Of 8 bits, and of float32, wgmma reads lines along K alone: others are
transposed. Float32 it reads as tf32 by cutting off low bits, which mma.sync gets rounded: so it does where copies round
on the way, unless a caller chooses wgmma. One operand of float32 may come from registers, A or, where A and B are
swapped, B: it may lie along M or N, and is rounded there, so that of one alone a copy is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.workspace import NO_K, memory, room
from ptxdsl.kernels.call.matrix import SECTOR_BYTES, Matrix, matrix
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.choose.large_products import LARGEST, LargeTile, slowness_of_lines, time_of_large
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.product.operands import takes_wgmma
from ptxdsl.kernels.reorder.lines import EACH, THREADS, WORD_BYTES, lines_kernel, lines_parameters, word_lines_kernel
from ptxdsl.kernels.reorder.transposed import edge_of, transposed_kernel, transposed_parameters
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type, f32

MOST_WORDS = 1 << 31  # which 32 bits count
ALONG_K = {"a": "row", "b": "column"}  # how A and B lie that are contiguous along K


def takes_copies(problem: GemmProblem) -> bool:
    """Whether there is something to compute, and copies make operands of its type such as tensor copies bring."""
    if not all((problem.a.array.size, problem.b.array.size, problem.out.array.size)):
        return False
    return all(_words(operand, along_k) < MOST_WORDS for operand, along_k in _operands(problem))


class LineCopies(NamedTuple):
    """Whether A and B are copied, and the microseconds that the copies should take, with what lines that stay slow
    cost, where clusters do not bring them; and whether float32 `rounds` to tf32 on the way: that which is not copied
    in registers."""

    a: bool
    b: bool
    time: float
    rounds: bool = True

    @classmethod
    def named(cls, names: str) -> LineCopies:
        """Copies of the operands that are named so, whatever the time."""
        return cls("a" in names, "b" in names, 0.0)

    @property
    def names(self) -> str:
        """Of the operands that are copied, such as "ab"."""
        return "a" * self.a + "b" * self.b

    @property
    def left(self) -> str:
        """The operand that is not copied where the other one is: "a", "b" or "none"."""
        return {"a": "b", "b": "a"}.get(self.names, "none")

    def split(self, problem: GemmProblem) -> tuple[bool, bool]:
        """Of which operands lines begin in the midst of sectors then."""
        return not (self.a or problem.a.is_in_sectors), not (self.b or problem.b.is_in_sectors)

    def carry_out(self, problem: GemmProblem) -> tuple[GemmProblem, tuple[LaunchPlan, ...]]:
        """The problem with the copies, and the launches that make these."""
        launches = []
        for name, along_k in ALONG_K.items():
            if getattr(self, name):
                copy, launch = _copied(getattr(problem, name), along_k, problem.device_stream, self.rounds)
                launches.append(launch)
                problem = replace(problem, a=copy) if name == "a" else replace(problem, b=copy)
        rounded = self.left if self.rounds and is_rounded(problem.a.type) else "none"
        return replace(problem, rounded=rounded), tuple(launches)


def with_k(problem: GemmProblem, by_wgmma: bool = False) -> GemmProblem:
    """The same; where K is 0 and wgmma is asked for, or alone multiplies such types, with zeros of which tensor maps
    can be made."""
    a, b, out = problem.a, problem.b, problem.out
    if problem.k or not out.array.size or not (by_wgmma or takes_wgmma(a.type, out.type)):
        return problem
    at = problem.device_stream
    scales = problem.scales and problem.scales.without_k(at)
    return replace(problem, a=zeros(a, at), b=zeros(b.transposed, at).transposed, scales=scales)


def zeros(old: Matrix, device_stream: tuple[int | None, int]) -> Matrix:
    """Zeros of a stream as a row-major matrix of as many rows, with a K of 1; one for all batches."""
    (device, stream), lines, each = device_stream, old.shape[0], SECTOR_BYTES // old.type.bytes
    address = room(device, stream, NO_K, lines * SECTOR_BYTES)
    if device is None:
        return matrix(old.name, address.view(old.owner.dtype).reshape(lines, each)[:, :1])
    array = replace(old.array, pointer=address, shape=(lines, 1), strides=(each, 1), owner=None)
    return Matrix(old.name, None, array, (lines, 1), "row", each)


def as_wgmma_reads(
    a: Matrix, b: Matrix, device_stream: tuple[int | None, int]
) -> tuple[Matrix, Matrix, tuple[LaunchPlan, ...]]:
    """A and B, or copies of them where tensor copies cannot bring them as wgmma reads them; and the launches that make
    the copies. What has nothing in it, or more words than are counted, is left as it is."""
    operands, launches = [], []
    for operand, along_k in ((a, ALONG_K["a"]), (b, ALONG_K["b"])):
        if operand.array.size and _is_needed(operand, along_k) and _words(operand, along_k) < MOST_WORDS:
            copy, launch = _copied(operand, along_k, device_stream)
            operand = _for_all(copy, operand)
            launches.append(launch)
        operands.append(operand)
    return operands[0], operands[1], tuple(launches)


def copies_of(problem: GemmProblem, facts: ProductFacts, model: CostModel) -> LineCopies:
    """The copies with which a product should take the least time; lines that stay slow cost as much longer as tensor
    cores wait for them."""
    rates, (m, n, k, batches, *_) = model.rates.large, facts
    multiplied = LARGEST * LINE_BYTES / facts.operands.inputs.bytes / rates.iteration[LargeTile(256).name]
    multiplying = m * n * k * batches / (multiplied * model.multiprocessors)

    def with_copies(copies: LineCopies) -> LineCopies:
        slowness = slowness_of_lines(copies.split(problem), rates)
        return copies._replace(time=copies.time + (slowness - 1) * multiplying)

    return min(map(with_copies, ways_to_copy(problem, model)), key=attrgetter("time"))


def copies_of_large(problem: GemmProblem, facts: ProductFacts, model: CostModel) -> LineCopies:
    """The same of a large product, of which clusters bring slow lines: the model of these knows what they cost."""

    def time(copies: LineCopies) -> float:
        interleaves = facts.interleaves and not copies.a
        known = facts._replace(split_lines=copies.split(problem), interleaves=interleaves)
        return copies.time + time_of_large(known, model)

    return min(ways_to_copy(problem, model), key=time)


def copies_along_k(problem: GemmProblem, first: str | None) -> LineCopies:
    """Only of operands that wgmma does not read as they lie, whatever the time, and as they are. Of float32 the `first`
    factor comes from registers, "a" or "b"; None for the larger of those that would be copied."""
    a, b = (_is_turned(operand, along_k) for operand, along_k in _operands(problem))
    if is_rounded(problem.a.type):
        larger = "a" if problem.m > problem.n else "b"
        spared = first or (larger if a and b else "a" if a else "b")
        a, b = a and spared != "a", b and spared != "b"
    return LineCopies(a, b, 0.0, rounds=False)


def copies_needed(problem: GemmProblem) -> LineCopies:
    """The same, and of those whose lines tensor copies cannot address."""
    a, b = (_is_needed(operand, along_k) for operand, along_k in _operands(problem))
    return LineCopies(a, b, 0.0, rounds=False)


def ways_to_copy(problem: GemmProblem, model: CostModel) -> Iterator[LineCopies]:
    """Whether A and B are copied, and how long the copies take. Of float32 one is at least."""
    is_single = problem.batches is None
    of_a, of_b = (_ways(operand, along_k, is_single) for operand, along_k in _operands(problem))
    for way in product(of_a, of_b):
        if any(way) or not is_rounded(problem.a.type):
            copies = LineCopies(*way, 0.0)
            yield copies._replace(time=time_to_copy(problem, copies, model))


def time_to_copy(problem: GemmProblem, copies: LineCopies, model: CostModel) -> float:
    """The microseconds that it takes to copy operands."""
    copied = [each for each, name in zip(_operands(problem), ALONG_K, strict=True) if name in copies.names]
    each = model.rates.launch + model.rates.dram_latency
    moved = sum(2 * WORD_BYTES * _words(operand, along_k) for operand, along_k in copied)
    return len(copied) * each + moved / model.rates.large.copy_bandwidth


def _operands(problem: GemmProblem) -> list[tuple[Matrix, str]]:
    """A and B, each with how one lies that is contiguous along K."""
    return [(problem.a, ALONG_K["a"]), (problem.b, ALONG_K["b"])]


def _ways(operand: Matrix, along_k: str, is_single: bool) -> tuple[bool, ...]:
    """Whether it may be copied or not."""
    if is_rounded(operand.type):
        return (False, True) if operand.is_mappable else (True,)
    if _is_needed(operand, along_k):
        return (True,)
    return (False, True) if is_single and not operand.is_in_sectors else (False,)


def is_rounded(type: Type) -> bool:
    """Whether a product by wgmma that is not asked for rounds its operands, as mma.sync gets such elements rounded."""
    return type is f32


def _is_needed(operand: Matrix, along_k: str) -> bool:
    """Whether tensor copies cannot bring an operand as wgmma reads it."""
    return _is_turned(operand, along_k) or not operand.is_mappable


def _major(operand: Matrix, along_k: str) -> str:
    """How a copy lies: as the operand does where wgmma reads such types either way."""
    return operand.major if operand.type in TURNED else along_k


def _is_turned(operand: Matrix, along_k: str) -> bool:
    """Whether a copy is the transpose in memory."""
    return operand.major != _major(operand, along_k)


def _lines(operand: Matrix, major: str) -> tuple[int, int]:
    """How many lines it has that lies so, and the elements of each."""
    rows, columns = operand.shape
    return (rows, columns) if major == "row" else (columns, rows)


def _words(operand: Matrix, along_k: str) -> int:
    """Of 16 bytes, that a copy of an operand has."""
    lines, length = _lines(operand, _major(operand, along_k))
    batches = operand.batches if operand.batch_stride else None
    return (batches or 1) * lines * ceil_div(length * operand.type.bytes, WORD_BYTES)


def _copied(
    operand: Matrix, along_k: str, device_stream: tuple[int | None, int], rounds: bool = False
) -> tuple[Matrix, LaunchPlan]:
    """A copy that tensor copies bring as wgmma reads it, and the launch that makes it."""
    device, stream = device_stream
    copy, target = room_for_copy(operand, _major(operand, along_k), device, stream, operand.name)
    launch = (_transposed if _is_turned(operand, along_k) else _copy)(operand, copy, target, stream)
    if rounds and is_rounded(operand.type):
        launch = replace(launch, constants={**launch.constants, "rounded": True})
    return copy, launch


def _for_all(copy: Matrix, operand: Matrix) -> Matrix:
    """A copy as often as the operand has its matrix, where that is one for all batches: the copy is one as well."""
    if operand.batches is None or operand.batch_stride:
        return copy
    if copy.owner is None:
        return replace(copy, batches=operand.batches)
    owner = np.broadcast_to(copy.owner, (operand.batches, *copy.owner.shape))
    array = matrix(copy.name, owner, batched=True).array
    return replace(copy, owner=owner, array=array, batches=operand.batches)


def room_for_copy(operand: Matrix, major: str, device: int | None, stream: int, use: str) -> tuple[Matrix, Any]:
    """Return memory for a copy of an operand, as a matrix and as all that the copy writes: numpy memory on the
    emulator, else the memory of a stream for a use, by its address."""
    lines, length = _lines(operand, major)
    elements = ceil_div(length * operand.type.bytes, LINE_BYTES) * LINE_BYTES // operand.type.bytes
    batches = operand.batches if operand.batch_stride else None
    lies = {"major": major, "stride": elements, "batches": batches, "batch_stride": lines * elements * bool(batches)}
    if device is None:
        room = np.empty((*([batches] if batches else []), lines, elements), operand.owner.dtype)
        rows = room[..., :length]
        copy = matrix(operand.name, rows if major == "row" else rows.swapaxes(-1, -2), batched=True)
        return replace(copy, **lies), matrix(operand.name, room, batched=True)
    address = memory(device, stream, use, (batches or 1) * lines * elements * operand.type.bytes)
    strides = (elements, 1) if major == "row" else (1, elements)
    array = replace(operand.array, pointer=address, strides=strides, owner=None)
    return Matrix(operand.name, None, array, operand.shape, **lies), address


def _copy(operand: Matrix, copy: Matrix, target: Any, stream: int) -> LaunchPlan:
    """The launch that copies the lines of an operand, or of all matrices of it."""
    type, (lines, length), batches = operand.type, _lines(operand, operand.major), copy.batches
    apart = {"source_batch": operand.batch_stride, "lined_batch": copy.batch_stride, "batches": batches}
    values = lines_parameters(type, batches is not None)(
        source=view(type)(pointer=operand, stride=operand.stride),
        lined=view(type)(pointer=target, stride=copy.stride),
        lines=lines,
        length=length,
        **(apart if batches is not None else {}),
    )
    kernel, each = (word_lines_kernel, EACH) if _is_in_words(operand) else (lines_kernel, 1)
    blocks = ceil_div((batches or 1) * lines * ceil_div(length * type.bytes, WORD_BYTES), THREADS * each)
    constants = {"type": type, **({"batched": True} if batches is not None else {})}
    return LaunchPlan(kernel, blocks, THREADS, values, constants, stream=stream)


def _transposed(operand: Matrix, copy: Matrix, target: Any, stream: int) -> LaunchPlan:
    """The launch that transposes an operand, or all matrices of it."""
    type, (lines, length) = operand.type, _lines(operand, operand.major)
    values = transposed_parameters(type)(
        source=view(type)(pointer=operand, stride=operand.stride),
        target=view(type)(pointer=target, stride=copy.stride),
        source_batch=operand.batch_stride,
        target_batch=copy.batch_stride,
        lines=lines,
        length=length,
    )
    edge, constants = edge_of(type), {"type": type, "in_words": _is_in_words(operand)}
    blocks = (copy.batches or 1) * ceil_div(lines, edge) * ceil_div(length, edge)
    return LaunchPlan(transposed_kernel, blocks, THREADS, values, constants, stream=stream)


def _is_in_words(operand: Matrix) -> bool:
    """Whether its lines begin and end at multiples of 16 bytes."""
    return operand.is_mappable and not operand.length * operand.type.bytes % WORD_BYTES
