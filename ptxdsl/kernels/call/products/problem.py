"""Check the arrays of a GEMM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from ptxdsl import arrays
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.launching.residency import stream_of
from ptxdsl.kernels.call.matrix import (
    ArrayArgument,
    Matrix,
    array_argument,
    check_input_types,
    describe_type,
    describe_types,
    empty,
    matrix,
)
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.epilogue import VectorOperand, per_row
from ptxdsl.kernels.product.operands import FLOATS, FP8, INPUTS, Along, Extra, gemm_outputs, outputs
from ptxdsl.kernels.store.function import check_function
from ptxdsl.runtime.arguments import overlap
from ptxdsl.types import Type, f16, f64, s32


@dataclass(frozen=True)
class EpilogueOperand:
    """An operand of the epilogue: one value per row, one per column, or a matrix."""

    argument: ArrayArgument
    extra: Extra

    @property
    def transposed(self) -> EpilogueOperand:
        """The operand of the transposed product."""
        if isinstance(self.argument, Matrix):
            return replace(self, argument=self.argument.transposed)
        return replace(self, extra=replace(self.extra, along={Along.M: Along.N, Along.N: Along.M}[self.extra.along]))


@dataclass(frozen=True)
class GemmProblem:
    """The checked arrays of a GEMM: A is m×k, B is k×n, C and out are m×n.

    A matrix that all batches share has a batch stride of 0. `rounded` is the operand that the kernel rounds to tf32,
    "a" or "b", if the other one is a rounded copy; else "none".
    """

    a: Matrix
    b: Matrix
    c: Matrix | None
    out: Matrix
    operands: tuple[EpilogueOperand, ...] = ()
    rounded: str = "none"
    scales: ScaledOperands | None = None

    @property
    def m(self) -> int:
        return self.a.shape[0]

    @property
    def n(self) -> int:
        return self.b.shape[1]

    @property
    def k(self) -> int:
        return self.a.shape[1]

    def scaled(self, alpha: float) -> GemmProblem:
        """Return the problem for this alpha: as in BLAS, an alpha of 0 makes K 0, so that A and B are not read."""
        if alpha != 0:
            return self
        return replace(self, a=self.a.without_columns, b=self.b.transposed.without_columns.transposed)

    @property
    def batches(self) -> int | None:
        """The number of batches, None for a single product."""
        return self.out.batches

    @property
    def row_major(self) -> GemmProblem:
        """The product with a row-major out: a column-major one is the transpose bᵀ@aᵀ."""
        if self.out.major == "row":
            return self
        c = self.c.transposed if self.c else None
        operands = tuple(operand.transposed for operand in self.operands)
        scales = self.scales.transposed if self.scales else None
        return GemmProblem(self.b.transposed, self.a.transposed, c, self.out.transposed, operands, scales=scales)

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return stream_of(self.a.array, self.b.array, self.out.array)

    @property
    def is_in_workspace(self) -> bool:
        """True if A or B is in the workspace of the stream."""
        return self.a.owner is None or self.b.owner is None

    @property
    def in_place(self) -> bool:
        """True if C is out, element for element."""
        c, out = self.c, self.out
        return c is not None and is_same(c, out)


def problem_of(
    a: object,
    b: object,
    c: object,
    out: object,
    beta: float,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = (),
) -> GemmProblem:
    """Check the arrays of a call; out is allocated if it is None. Raises LaunchError for arrays that do not fit."""
    left, right = matrix("a", a, batched=True), matrix("b", b, batched=True)
    _check_inputs(left, right)
    right = right.along_column if right.type.bits == 8 else right  # 8-bit B is read K-major only, or faster
    check_added(c, beta)
    shape = (*_batches(left, right), left.shape[0], right.shape[1])
    output_types = gemm_outputs(left.type)
    results = empty(left, shape, output_types[0]) if out is None else out
    written = matrix("out", results, batched=True, types=describe_types(output_types))
    added_types = describe_types([type for type in output_types if type not in FP8])
    addend = matrix("c", c, batched=True, types=added_types) if c is not None else None
    for argument in filter(None, (written, addend)):
        _check_result(argument, shape, left.type, written)
    if addend is not None and addend.type in FP8:
        raise LaunchError(
            f"`c` is {describe_type(addend.type)}; C must have 16 bits or more",
            help=f"convert it to {describe_types(FLOATS)}; `out` may be of 8 bits",
        )
    added = addend if beta != 0 else None
    check_function(epilogue, operands)
    extras = tuple(_operand(f"operands[{n}]", operand, written) for n, operand in enumerate(operands))
    problem = GemmProblem(left, right, added, written, extras)
    check_devices([left, right, written, *filter(None, [added]), *(operand.argument for operand in extras)])
    read = [operand.argument for operand in extras if not operand.extra.in_place]
    check_written(written, [left, right, *([added] if added and not problem.in_place else []), *read])
    return problem


def check_added(c: object, beta: float) -> None:
    """Raise LaunchError for a beta without a C."""
    if c is None and beta != 0:
        raise LaunchError(f"beta is {beta}, and `c` is not given", help="pass the array that beta multiplies as c=")


def is_same(one: Matrix, other: Matrix) -> bool:
    """Return True if two matrices of one shape are the same memory, element for element."""
    return _memory(one) == _memory(other)


def _memory(matrix: Matrix) -> tuple[Any, ...]:
    return matrix.array.pointer, matrix.major, matrix.stride, matrix.batch_stride, matrix.type


def check_devices(arguments: Sequence[ArrayArgument]) -> None:
    """Raise LaunchError for arrays on different devices. An array that does not name its GPU may be on any."""
    first = arguments[0]
    for other in arguments:
        device, other_device = first.array.device, other.array.device
        if device != other_device and (None not in (device, other_device) or arrays.HOST in (device, other_device)):
            emulated = (
                "; with numpy arrays alone, the kernel runs on the emulator"
                if arrays.HOST in (device, other_device)
                else ""
            )
            raise LaunchError(
                f"`{first.name}` is {_where(device)} and `{other.name}` {_where(other_device)}",
                help=f"move one of them to the other{emulated}",
            )


def _where(device: int | None) -> str:
    return "on a GPU" if device is None else "in host memory" if device == arrays.HOST else f"on cuda:{device}"


def check_written(out: ArrayArgument, others: Sequence[ArrayArgument], help: str = "") -> None:
    """Raise LaunchError for an output that is read-only or overlaps an input; `help` replaces the help text of the
    latter."""
    if out.array.readonly:
        raise LaunchError(f"`{out.name}` is read-only", help="pass an array that may be written")
    for other in others:
        if overlap(out.array, other.array):
            message = f"`{out.name}` is written and shares memory with `{other.name}`"
            raise LaunchError(message, help=help or _apart(other.name))


def _apart(name: str) -> str:
    """Return the help text for an output that overlaps this array."""
    if name in ("a", "b", "x", "w"):
        return "give the output memory of its own: its elements are written while others still read"
    return f"pass `{name}` as out itself, element for element, or give the output memory of its own"


def _check_inputs(left: Matrix, right: Matrix) -> None:
    types = (*INPUTS, *FP8)
    help = f"gemm takes two matrices of one type, {describe_types(types)}; convert them before"
    check_input_types(left, right, types, help)
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass a of (M, K) and b of (K, N); a transpose is a.T",
        )


def _batches(left: Matrix, right: Matrix) -> tuple[int, ...]:
    """Return the number of products as a tuple, () for two matrices. A 2-D matrix is shared by all batches."""
    counts = [operand.batches for operand in (left, right) if operand.batches is not None]
    several = {count for count in counts if count != 1}
    if len(several) > 1:
        raise LaunchError(
            f"`a` has the shape {left.full_shape} and `b` {right.full_shape}: {counts[0]} batches meet {counts[1]}",
            help="pass as many matrices of each, or a single one, of two dimensions, for all",
        )
    return (*several, *counts[:1])[:1]


def _check_result(operand: Matrix, shape: tuple[int, ...], inputs: Type, written: Matrix) -> None:
    """Check the shape and type of C or out. One C may be shared by all batches."""
    is_for_all = (
        operand is not written and operand.shape == shape[-2:] and operand.batches in (None, 1) and len(shape) == 3
    )
    if operand.full_shape != shape and not is_for_all:
        raise LaunchError(
            f"`{operand.name}` has the shape {operand.full_shape}; a@b has {shape}",
            help=f"pass `{operand.name}` of that shape",
        )
    if operand is written and not operand.is_disjoint:
        raise LaunchError(
            f"`out` has the shape {shape} and batches {operand.batch_stride} elements apart, which overlap",
            help="give each product memory of its own",
        )
    if operand.type not in gemm_outputs(inputs):
        raise LaunchError(
            f"`{operand.name}` is {describe_type(operand.type)}; "
            f"for {describe_type(inputs)} inputs gemm writes {describe_types(gemm_outputs(inputs))}",
            help="pass one of these, and convert it afterwards" if operand is written else "convert it before",
        )
    if operand.type is not written.type and written.type not in FP8:
        raise LaunchError(
            f"`c` is {describe_type(operand.type)} and `out` {describe_type(written.type)}; they must have one type",
            help="convert c before",
        )


def _operand(name: str, operand: object, out: Matrix) -> EpilogueOperand:
    """Check an operand of the epilogue."""
    if isinstance(operand, VectorOperand):
        return vector_operand(name, operand, out)
    vector_help = "per_row(…) or per_column(…) says along what one of (M,) or (N,) lies"
    argument = matrix(name, operand, vector_help, batched=True, types=describe_types(types_read(out.type)))
    is_for_all = argument.shape == out.shape and argument.batches in (None, 1)
    if argument.full_shape != out.full_shape and not is_for_all:
        shape = argument.full_shape
        raise LaunchError(f"`{name}` has the shape {shape}; the output has {out.full_shape}", help="reshape it")
    return matrix_operand(argument, out)


def matrix_operand(operand: Matrix, out: Matrix) -> EpilogueOperand:
    """Return an epilogue operand with the shape of the output. Raises LaunchError for its type."""
    _check_operand_type(operand.name, operand.type, out.type)
    if is_same(operand, out):
        return EpilogueOperand(operand, Extra(operand.type, Along.MN, in_place=True))
    along, width = (Along.MN, operand.widest()) if operand.major == out.major else (Along.NM, operand.type.bytes)
    return EpilogueOperand(operand, Extra(operand.type, along, width, is_batched=operand.batch_stride != 0))


def vector_operand(
    name: str,
    operand: VectorOperand,
    out: Matrix,
    rows: int | None = None,
    groups: int | None = None,
    in_matrices: bool = False,
) -> EpilogueOperand:
    """Return an epilogue operand with one value per row or column. With `groups` of `rows`, a per_column operand may
    have values for each group; with `in_matrices`, each group has rows of its own. Raises LaunchError for operands that
    do not fit."""
    lengths = {Along.M: out.shape[0] if rows is None else rows, Along.N: out.shape[1]}
    along = Along.M if isinstance(operand, per_row) else Along.N
    length = lengths[along]
    line, owner = ("row" if along is Along.M else "column"), "output" if rows is None else "product"
    help = f"pass {length} values without gaps, one for each {line} of the {owner}"
    rule = f"per_{line} takes one dimension"
    dimensions: tuple[int, ...] = (1,)
    if along is Along.N and groups is not None:
        help, rule, dimensions = f"{help}, or ({groups}, {length})", f"{rule}, or two of (groups, N)", (1, 2)
    elif in_matrices:
        help = f"pass ({groups}, {length}) values, one for each row of each matrix, those of a group without gaps"
        owner, rule, dimensions = "product of each group", "per_row takes two dimensions, (groups, M)", (2,)
    argument = array_argument(name, operand.array, dimensions, rule, help, describe_types(types_read(out.type)))
    (*count, extent), (*group_stride, stride) = argument.array.shape, argument.array.strides
    if extent != length:
        raise LaunchError(f"`{name}` has {extent} values; the {owner} has {length} {line}s", help=help)
    if count not in ([], [groups]):
        raise LaunchError(f"`{name}` has the shape {argument.array.shape}; there are {groups} groups", help=help)
    if stride != 1 and extent > 1 and argument.array.size:
        raise LaunchError(f"`{name}` has a stride of {stride} elements", help=help)
    _check_operand_type(name, argument.type, out.type)
    # Values are read in pairs if the values of each group start and end with a pair; groups of rows start anywhere
    unit = 1 if along is Along.M and rows is not None else length
    width = gcd(16, argument.array.pointer, *(elements * argument.type.bytes for elements in (unit, *group_stride)))
    return EpilogueOperand(argument, Extra(argument.type, along, width, is_batched=bool(count)))


def types_read(output: Type) -> tuple[Type, ...]:
    """Return the types of epilogue operands: integers for an int32 output."""
    return (s32,) if output is s32 else (*outputs(f16), f64, s32)


def _check_operand_type(name: str, type: Type, output: Type) -> None:
    types = types_read(output)
    if type not in types:
        reader = "an int32 output's epilogue" if output is s32 else "the epilogue"
        help = "write to a float32 out, or convert it before" if output is s32 else "convert it before"
        raise LaunchError(f"`{name}` is {describe_type(type)}; {reader} reads {describe_types(types)}", help=help)
