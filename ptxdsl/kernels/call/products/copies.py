"""Copy operands that TMA cannot load in the layout that wgmma reads, or only slowly, or that wgmma would truncate.

A copy reads and writes an operand once that a large product reads many times. TMA loads rows that start at multiples of
16 bytes. Rows that are not 32-byte aligned arrive at less than half the rate, which clusters hide in large products.
wgmma reads 8-bit types and float32 K-major only; other layouts are transposed. wgmma truncates float32 to tf32, where
mma.sync operands are rounded: copies round it, unless the caller asks for wgmma. One float32 operand may come from
registers: A, or B if A and B are swapped. It may be M- or N-major and is rounded there, so that only the other operand
is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.workspace import NO_K, memory, room
from ptxdsl.kernels.call.matrix import SECTOR_BYTES, WIDEST_ACCESS, ArrayArgument, Matrix, matrix
from ptxdsl.kernels.call.paths.path import InputLayout
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.rates import Rates
from ptxdsl.kernels.product.operands import Major, Side, takes_wgmma
from ptxdsl.kernels.reorder.rows import THREADS, WORD_BYTES, rows_grid, rows_kernel, rows_parameters
from ptxdsl.kernels.reorder.transposed import edge_of, transposed_kernel, transposed_parameters
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type, f32

MOST_WORDS = 1 << 31  # which 32 bits count
ALONG_K = {"a": "row", "b": "column"}  # the major orders in which A and B are K-major


def can_copy(problem: GemmProblem) -> bool:
    """Return True if no array is empty, and the words of copies can be counted in 32 bits."""
    if not all((problem.a.array.size, problem.b.array.size, problem.out.array.size)):
        return False
    return all(_words(operand, along_k) < MOST_WORDS for operand, along_k in _operands(problem))


class CopiedOperands(NamedTuple):
    """The operands that are copied, and the estimate of the copies in microseconds. With `rounds`, the copies round
    float32 to tf32, and the kernel rounds the other operand in registers."""

    a: bool
    b: bool
    time: float
    rounds: bool = True

    @classmethod
    def named(cls, names: str) -> CopiedOperands:
        """Return copies of the named operands, such as "ab", without an estimate."""
        return cls("a" in names, "b" in names, 0.0)

    @property
    def names(self) -> str:
        """The operands that are copied, such as "ab"."""
        return "a" * self.a + "b" * self.b

    @property
    def left(self) -> str:
        """The operand that is not copied if the other one is: "a", "b" or "none"."""
        return {"a": "b", "b": "a"}.get(self.names, "none")

    def split(self, problem: GemmProblem) -> tuple[bool, bool]:
        """Return, for A and B, True if rows are not 32-byte aligned after the copies."""
        return not (self.a or problem.a.is_sector_aligned), not (self.b or problem.b.is_sector_aligned)

    def carry_out(self, problem: GemmProblem) -> tuple[GemmProblem, tuple[LaunchPlan, ...]]:
        """Return the problem with the copies, and the launches that make them."""
        if not self.names:  # the operands may be copies already
            return problem, ()
        launches = []
        for name, along_k in ALONG_K.items():
            if getattr(self, name):
                copy, launch = _copied(getattr(problem, name), along_k, problem.device_stream, self.rounds)
                launches.append(launch)
                problem = replace(problem, a=copy) if name == "a" else replace(problem, b=copy)
        rounded = self.left if self.rounds and is_rounded(problem.a.type) else "none"
        return replace(problem, rounded=rounded), tuple(launches)


def with_k(problem: GemmProblem, by_tma: bool = False) -> GemmProblem:
    """Return the problem. If K is 0 and its kernel uses wgmma, A and B are zeros that tensor maps can describe."""
    a, b, out = problem.a, problem.b, problem.out
    if problem.k or not out.array.size or not (by_tma or takes_wgmma(a.type, out.type)):
        return problem
    at = problem.device_stream
    scales = problem.scales and problem.scales.without_k(at)
    return replace(problem, a=zeros(a, at), b=zeros(b.transposed, at).transposed, scales=scales)


def zeros(old: Matrix, device_stream: tuple[int | None, int]) -> Matrix:
    """Return zeros in the workspace of a stream: a row-major matrix with the same rows and a K of 1, for all
    batches."""
    (device, stream), lines, each = device_stream, old.shape[0], SECTOR_BYTES // old.type.bytes
    address = room(device, stream, NO_K, lines * SECTOR_BYTES)
    if device is None:
        return matrix(old.name, address.view(old.owner.dtype).reshape(lines, each)[:, :1])
    array = replace(old.array, pointer=address, shape=(lines, 1), strides=(each, 1), owner=None)
    return Matrix(old.name, None, array, (lines, 1), "row", each)


def as_wgmma_reads(
    a: Matrix, b: Matrix, device_stream: tuple[int | None, int]
) -> tuple[Matrix, Matrix, tuple[LaunchPlan, ...]]:
    """Return A and B, copied if TMA cannot load them in the layout that wgmma reads, and the launches of the copies.
    Empty operands, and operands with too many words to count, are returned unchanged."""
    operands, launches = [], []
    for operand, along_k in ((a, ALONG_K["a"]), (b, ALONG_K["b"])):
        if operand.array.size and _is_needed(operand, along_k) and _words(operand, along_k) < MOST_WORDS:
            copy, launch = _copied(operand, along_k, device_stream)
            operand = _for_all(copy, operand)
            launches.append(launch)
        operands.append(operand)
    return operands[0], operands[1], tuple(launches)


def layouts_of(problem: GemmProblem, facts: ProductFacts, sets: Sequence[CopiedOperands]) -> tuple[InputLayout, ...]:
    """Return the layouts of a product with these facts after each of these sets of copies."""
    needed = sum(_ways(operand, along_k, True) == (True,) for operand, along_k in _operands(problem))
    least = max(needed, 1) if is_rounded(problem.a.type) else needed
    return tuple(
        InputLayout(facts_with(copies, facts, problem), copies.names, copies.time, max(0, len(copies.names) - least))
        for copies in sets
    )


def facts_with(copies: CopiedOperands, known: ProductFacts, problem: GemmProblem) -> ProductFacts:
    """Return the facts of a product of copies."""
    operands = replace(known.operands, a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS)
    if operands.inputs not in TURNED:
        operands = replace(
            operands,
            a_major=Major.K if copies.a else operands.a_major,
            b_major=Major.K if copies.b else operands.b_major,
            rounded=Side(copies.left) if is_rounded(operands.inputs) else Side.NONE,
        )
    return known._replace(operands=operands, split_lines=copies.split(problem))


def copies_along_k(problem: GemmProblem, first: str | None) -> CopiedOperands:
    """Return copies, without rounding, of operands in a major order that wgmma does not read. For float32, the operand
    `first`, "a" or "b", comes from registers; None stands for the larger of those that would be copied."""
    a, b = (_is_turned(operand, along_k) for operand, along_k in _operands(problem))
    if is_rounded(problem.a.type):
        larger = "a" if problem.m > problem.n else "b"
        spared = first or (larger if a and b else "a" if a else "b")
        a, b = a and spared != "a", b and spared != "b"
    return CopiedOperands(a, b, 0.0, rounds=False)


def copies_needed(problem: GemmProblem) -> CopiedOperands:
    """Return copies, without rounding, of operands that TMA cannot load in the layout that wgmma reads."""
    a, b = (_is_needed(operand, along_k) for operand, along_k in _operands(problem))
    return CopiedOperands(a, b, 0.0, rounds=False)


def copy_candidates(problem: GemmProblem, rates: Rates) -> Iterator[CopiedOperands]:
    """Yield the possible sets of copies with their estimates. For float32, at least one operand is copied."""
    is_single = problem.batches is None
    of_a, of_b = (_ways(operand, along_k, is_single) for operand, along_k in _operands(problem))
    for way in product(of_a, of_b):
        if any(way) or not is_rounded(problem.a.type):
            copies = CopiedOperands(*way, 0.0)
            yield copies._replace(time=time_to_copy(problem, copies, rates))


def time_to_copy(problem: GemmProblem, copies: CopiedOperands, rates: Rates) -> float:
    """Return the estimate of copies in microseconds."""
    copied = [each for each, name in zip(_operands(problem), ALONG_K, strict=True) if name in copies.names]
    moved = sum(2 * WORD_BYTES * _words(operand, along_k) for operand, along_k in copied)
    return rates.copy_time(len(copied), moved)


def _operands(problem: GemmProblem) -> list[tuple[Matrix, str]]:
    """Return A and B, each with the major order that is contiguous along K."""
    return [(problem.a, ALONG_K["a"]), (problem.b, ALONG_K["b"])]


def _ways(operand: Matrix, along_k: str, is_single: bool) -> tuple[bool, ...]:
    """Return the choices for one operand: True to copy it."""
    if is_rounded(operand.type):
        return (False, True) if operand.is_mappable else (True,)
    if _is_needed(operand, along_k):
        return (True,)
    return (False, True) if is_single and not operand.is_sector_aligned else (False,)


def is_rounded(type: Type) -> bool:
    """Return True for a type whose operands the sm_90a path rounds, as the sm_80 path does, unless the caller asks for
    wgmma."""
    return type is f32


def _is_needed(operand: Matrix, along_k: str) -> bool:
    """Return True if TMA cannot load an operand in the layout that wgmma reads."""
    return _is_turned(operand, along_k) or not operand.is_mappable


def _major(operand: Matrix, along_k: str) -> str:
    """Return the major order of a copy: that of the operand if wgmma reads its type either way."""
    return operand.major if operand.type in TURNED else along_k


def _is_turned(operand: Matrix, along_k: str) -> bool:
    """Return True if a copy transposes the operand in memory."""
    return operand.major != _major(operand, along_k)


def _lines(operand: Matrix, major: str) -> tuple[int, int]:
    """Return the number of rows in a major order, and the elements of each."""
    rows, columns = operand.shape
    return (rows, columns) if major == "row" else (columns, rows)


def _words(operand: Matrix, along_k: str) -> int:
    """Return the number of 16-byte words of a copy."""
    lines, length = _lines(operand, _major(operand, along_k))
    batches = operand.batches if operand.batch_stride else None
    return (batches or 1) * lines * ceil_div(length * operand.type.bytes, WORD_BYTES)


def _copied(
    operand: Matrix, along_k: str, device_stream: tuple[int | None, int], rounds: bool = False
) -> tuple[Matrix, LaunchPlan]:
    """Return a copy that TMA can load in the layout that wgmma reads, and the launch that makes it."""
    device, stream = device_stream
    copy, target = room_for_copy(operand, _major(operand, along_k), device, stream, operand.name)
    launch = (_transposed if _is_turned(operand, along_k) else _copy)(operand, copy, target, stream)
    if rounds and is_rounded(operand.type):
        launch = replace(launch, constants={**launch.constants, "rounded": True})
    return copy, launch


def _for_all(copy: Matrix, operand: Matrix) -> Matrix:
    """Return the copy with the batch dimension of its operand, one matrix that all batches share."""
    if operand.batches is None or operand.batch_stride:
        return copy
    if copy.owner is None:
        return replace(copy, batches=operand.batches)
    owner = np.broadcast_to(copy.owner, (operand.batches, *copy.owner.shape))
    array = matrix(copy.name, owner, batched=True).array
    return replace(copy, owner=owner, array=array, batches=operand.batches)


def room_for_copy(operand: Matrix, major: str, device: int | None, stream: int, use: str) -> tuple[Matrix, Any]:
    """Return memory for a copy of an operand: the copy as a matrix, and the target of the kernel that copies. On the
    emulator it is numpy memory, else the workspace of a stream for a use, by its address."""
    lines, length = _lines(operand, major)
    elements = ceil_div(length * operand.type.bytes, LINE_BYTES) * LINE_BYTES // operand.type.bytes
    batches = operand.batches if operand.batch_stride else None
    lies = {"major": major, "stride": elements, "batches": batches, "batch_stride": lines * elements * bool(batches)}
    if device is None:
        room = _aligned((*([batches] if batches else []), lines, elements), operand.owner.dtype)
        rows = room[..., :length]
        copy = matrix(operand.name, rows if major == "row" else rows.swapaxes(-1, -2), batched=True)
        return replace(copy, **lies), matrix(operand.name, room, batched=True)
    address = memory(device, stream, use, (batches or 1) * lines * elements * operand.type.bytes)
    strides = (elements, 1) if major == "row" else (1, elements)
    array = replace(operand.array, pointer=address, strides=strides, owner=None)
    return Matrix(operand.name, None, array, operand.shape, **lies), address


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an uninitialised array at a multiple of LINE_BYTES, as the workspaces of GPUs are."""
    length = prod(shape) * dtype.itemsize
    memory = np.empty(length + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + length].view(dtype).reshape(shape)


def _copy(operand: Matrix, copy: Matrix, target: Any, stream: int, index: ArrayArgument | None = None) -> LaunchPlan:
    """Return the launch that copies the rows of all matrices of an operand, or those that an index names."""
    type, (rows, length), batches = operand.type, _lines(operand, operand.major), copy.batches
    constants: dict[str, Any] = {}
    values: dict[str, Any] = {}
    if batches is not None:
        constants["batched"] = True
        values = {"source_batch": operand.batch_stride, "target_batch": copy.batch_stride, "batches": batches}
    if index is not None:
        constants["indexed"] = True
        values, rows = {"index": index, "source_rows": rows}, index.array.shape[0]
    source = view(type)(pointer=operand, stride=operand.stride)
    group = rows_parameters(type, **constants)(
        source=source, target=view(type)(pointer=target, stride=copy.stride), rows=rows, length=length, **values
    )
    words = (batches or 1) * rows * ceil_div(length * type.bytes, WORD_BYTES)
    in_words = _is_in_words(operand)
    constants = {"type": type, **constants, **({"in_words": True} if in_words else {})}
    return LaunchPlan(rows_kernel, rows_grid(words, type, in_words), THREADS, group, constants, stream=stream)


def copied_rows(
    a: Matrix, index: ArrayArgument, device_stream: tuple[int | None, int], use: str = "gathered rows"
) -> tuple[Matrix, LaunchPlan]:
    """Return the rows of a row-major matrix that an index names, in the workspace of a stream for a `use`, and the
    launch that gathers them."""
    device, stream = device_stream
    shape = index.array.shape[0], a.inner_extent
    like = replace(a, array=replace(a.array, shape=shape), shape=shape)
    copy, target = room_for_copy(like, "row", device, stream, use)
    return copy, _copy(a, copy, target, stream, index)


def _transposed(operand: Matrix, copy: Matrix, target: Any, stream: int) -> LaunchPlan:
    """Return the launch that transposes all matrices of an operand."""
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
    """Return True if rows start and end at multiples of 16 bytes."""
    return operand.is_mappable and not operand.inner_extent * operand.type.bytes % WORD_BYTES
