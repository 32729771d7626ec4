"""Fill the parameters of a kernel with the arguments of a call."""

from __future__ import annotations

from typing import Any

from ptxdsl import Parameters
from ptxdsl.kernels.call.matrix import Matrix
from ptxdsl.kernels.call.paths.select import path_of
from ptxdsl.kernels.call.products.problem import EpilogueOperand, GemmProblem
from ptxdsl.kernels.call.products.scheduled import Scheduled
from ptxdsl.kernels.call.scales import scale_values
from ptxdsl.kernels.product.operands import CSource, Operands
from ptxdsl.kernels.traits.parameters import BATCHES, extra_view, extras, view
from ptxdsl.kernels.traits.traits import Traits


def gemm_values(
    problem: GemmProblem, scheduled: Scheduled, factors: tuple[float, float], batches: Parameters | None = None
) -> Parameters:
    """Return the parameters of a GEMM kernel for a row-major problem. With `batches`, the addresses are in a table, and
    the pointers are null."""
    traits = scheduled.traits
    return path_of(traits).parameters(traits)(
        **_matrices(traits, problem, listed=batches is not None),
        m=problem.m,
        n=problem.n,
        k=problem.k,
        alpha=factors[0],
        beta=factors[1],
        schedule=scheduled.fields,
        batches=batches or _batches(problem, traits.operands),
        extras=extra_values(problem.operands, traits.operands),
        **scale_values(problem.scales),
    )


def _matrices(traits: Traits, problem: GemmProblem, listed: bool) -> dict[str, Any]:
    """Return A, B, C and out in the form that the kernel of the path takes."""
    matrices = {"a": problem.a, "b": problem.b, "out": problem.out}
    if problem.c is not None and traits.operands.c is CSource.SEPARATE:
        matrices["c"] = problem.c
    nothing = {"c": view(traits.operands.added)(pointer=0, stride=0)}  # a null address, which is not read
    views = {name: _view(matrix, listed) for name, matrix in matrices.items()}
    return {**nothing, **views, **path_of(traits).matrices(traits, matrices)}


def _view(matrix: Matrix, listed: bool) -> Parameters:
    return view(matrix.type)(pointer=0 if listed else matrix, stride=matrix.stride)


def _batches(problem: GemmProblem, operands: Operands) -> Parameters:
    """Return the strides of the batches of an array."""
    if not operands.is_batched:
        return BATCHES["none"]()
    c = problem.c.batch_stride if problem.c and operands.c is CSource.SEPARATE else 0
    a, b, out = problem.a.batch_stride, problem.b.batch_stride, problem.out.batch_stride
    return BATCHES["strided"](count=problem.batches, a=a, b=b, c=c, out=out)


def extra_values(extra: tuple[EpilogueOperand, ...], operands: Operands) -> Parameters:
    """Return the operands of the epilogue."""
    groups = {f"of_{n}": _extra(operand) for n, operand in enumerate(extra) if not operand.extra.in_place}
    return extras(operands)(**groups)


def _extra(operand: EpilogueOperand) -> Parameters:
    argument, extra = operand.argument, operand.extra
    stride = {"stride": argument.stride} if isinstance(argument, Matrix) else {}
    batch_stride = argument.batch_stride if isinstance(argument, Matrix) else argument.array.strides[0]
    batch = {"batch": batch_stride} if extra.is_batched else {}
    return extra_view(extra)(pointer=argument, **stride, **batch)


def shared_values(problem: GemmProblem, scheduled: Scheduled) -> dict[str, Parameters]:
    """Return the parameters of the schedule and the epilogue of a single product."""
    traits: Traits = scheduled.traits
    return {
        "schedule": scheduled.fields,
        "batches": BATCHES["none"](),
        "extras": extra_values(problem.operands, traits.operands),
    }
