"""The arrays of a GEMM, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ptxdsl import arrays
from ptxdsl.arrays import strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.config import ATOMS, Extra, outputs
from ptxdsl.kernels.matrix import Matrix, describe_type, empty, matrix
from ptxdsl.types import Type, f16, f64, s32


@dataclass(frozen=True)
class Vector:
    """An operand of `epilogue` that is no matrix."""

    array: Any


class per_row(Vector):
    """An operand of `epilogue` with one value for each row of the output: an array of shape (M,)."""


class per_column(Vector):
    """An operand of `epilogue` with one value for each column of the output, such as a bias: an array of (N,)."""


@dataclass(frozen=True)
class Operand:
    """An operand of the epilogue: one value a row ("m") or column ("n"), or a matrix that lies as the output ("mn")."""

    owner: Any
    extra: Extra
    matrix: Matrix | None = None

    @property
    def transposed(self) -> Operand:
        if self.matrix:
            return replace(self, matrix=self.matrix.transposed)
        return replace(self, extra=replace(self.extra, along={"m": "n", "n": "m"}[self.extra.along]))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the kernel is given."""
        return (strided(self.owner), self.matrix.stride) if self.matrix else (strided(self.owner),)


@dataclass(frozen=True)
class Problem:
    """The arrays of one GEMM, checked: A is m×k, B is k×n, C and out are m×n, and all of these lie alike."""

    a: Matrix
    b: Matrix
    c: Matrix | None
    out: Matrix
    operands: tuple[Operand, ...] = ()

    @property
    def m(self) -> int:
        return self.a.shape[0]

    @property
    def n(self) -> int:
        return self.b.shape[1]

    @property
    def k(self) -> int:
        return self.a.shape[1]

    @property
    def row_major(self) -> Problem:
        """The same product with a row-major out: the transpose of a column-major one, which is bᵀ@aᵀ."""
        if self.out.major == "row":
            return self
        c = self.c.transposed if self.c else None
        operands = tuple(operand.transposed for operand in self.operands)
        return Problem(self.b.transposed, self.a.transposed, c, self.out.transposed, operands)

    @property
    def place(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return self.a.place

    @property
    def in_place(self) -> bool:
        """Whether C is the memory of out, element for element."""
        c, out = self.c, self.out
        return c is not None and (c.array.pointer, c.major, c.stride) == (out.array.pointer, out.major, out.stride)


def problem_of(
    a: Any,
    b: Any,
    c: Any,
    out: Any,
    beta: float,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
) -> Problem:
    """The arrays of a call; out is made where it is not given. Raises LaunchError for what does not fit."""
    left, right = matrix("a", a), matrix("b", b)
    _check_inputs(left, right)
    if c is None and beta != 0:
        raise LaunchError(f"beta is {beta}, and `c` is not given", help="pass the array that beta multiplies as c=")
    shape = (left.shape[0], right.shape[1])
    usual = outputs(left.type)[0]
    written = matrix("out", empty(left, shape, usual) if out is None else out)
    added = matrix("c", c) if c is not None and beta != 0 else None
    for found in filter(None, (written, added)):
        _check_result(found, shape, left.type, written)
    if operands and epilogue is None:
        raise LaunchError(
            "operands are given, and no epilogue that takes them", help="pass the function, such as epilogue=add_relu"
        )
    beside = tuple(_operand(f"operands[{n}]", operand, written) for n, operand in enumerate(operands))
    return Problem(left, right, added, written, beside)


def _check_inputs(left: Matrix, right: Matrix) -> None:
    if left.type not in ATOMS or left.type is not right.type:
        raise LaunchError(
            f"`a` is {describe_type(left.type)} and `b` is {describe_type(right.type)}",
            help=f"gemm takes two matrices of one type, {_names(ATOMS)}; convert them before",
        )
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass a of (M, K) and b of (K, N); a transpose is a.T",
        )


def _names(types: Any) -> str:
    *first, last = map(describe_type, types)
    return f"{', '.join(first)} or {last}" if first else last


def _check_result(found: Matrix, shape: tuple[int, int], inputs: Type, written: Matrix) -> None:
    """C and out: their shape, and types that the accumulators are rounded to."""
    if found.shape != shape:
        raise LaunchError(
            f"`{found.name}` has the shape {found.shape}; a@b has {shape}", help=f"pass `{found.name}` of that shape"
        )
    if found.type not in outputs(inputs):
        raise LaunchError(
            f"`{found.name}` is {describe_type(found.type)}; "
            f"of {describe_type(inputs)} matrices gemm writes {_names(outputs(inputs))}",
            help="convert it before or after",
        )
    if found.type is not written.type:
        raise LaunchError(
            f"`c` is {describe_type(found.type)} and `out` {describe_type(written.type)}; they are of one type",
            help="convert c before",
        )
    _check_order(found, written)


def _check_order(found: Matrix, written: Matrix) -> None:
    if found.major != written.major:
        mend = ", or pass it as out too: gemm(a, b, c, out=c, beta=…)" if found.name == "c" else ""
        raise LaunchError(
            f"`{found.name}` is {found.major}-major and `out` {written.major}-major; they lie alike",
            help=f"copy {found.name} into the order of out{mend}",
        )


def _operand(name: str, operand: Any, out: Matrix) -> Operand:
    """An operand of the epilogue, checked."""
    if isinstance(operand, Vector):
        return vector_operand(name, operand, out)
    found = matrix(name, operand, vector_help="per_row(…) or per_column(…) says along what one of (M,) or (N,) lies")
    if found.shape != out.shape:
        raise LaunchError(f"`{name}` has the shape {found.shape}; the output has {out.shape}", help="reshape it")
    _check_order(found, out)
    return matrix_operand(found)


def matrix_operand(found: Matrix) -> Operand:
    """An operand of the epilogue that has the shape and the order of the output. Raises LaunchError for its type."""
    _check_operand_type(found.name, found.type)
    return Operand(found.owner, Extra(found.type, "mn", found.widest()), found)


def vector_operand(name: str, operand: Vector, out: Matrix) -> Operand:
    """An operand of the epilogue with one value a row or column. Raises LaunchError for what does not fit."""
    along, length = ("m", out.shape[0]) if isinstance(operand, per_row) else ("n", out.shape[1])
    what = "row" if along == "m" else "column"
    array = arrays.describe(operand.array)
    if array is None or array.shape != (length,) or array.type is None or array.strides[0] != 1:
        found = type(operand.array).__name__ if array is None else f"an array of shape {array.shape}"
        raise LaunchError(
            f"`{name}` is per {what}, and {found}",
            help=f"pass {length} values without gaps, one for each {what} of the output",
        )
    _check_operand_type(name, array.type)
    most = array.pointer & -array.pointer if array.pointer else 16
    return Operand(operand.array, Extra(array.type, along, min(16, most)))


def _check_operand_type(name: str, type: Type) -> None:
    known = (*outputs(f16), f64, s32)
    if type not in known:
        raise LaunchError(
            f"`{name}` is {describe_type(type)}; the epilogue reads {_names(known)}", help="convert it before"
        )
