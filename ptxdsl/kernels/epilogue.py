"""Functions for `epilogue=`, and what says how its `operands=` lie. Any Python function on traced values is one too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ptxdsl as pd
from ptxdsl import f32
from ptxdsl.errors import TraceError
from ptxdsl.trace.instruction import Scalar

Epilogue = Callable[..., Any]


@dataclass(frozen=True)
class VectorOperand:
    """An operand of `epilogue` that is no matrix."""

    array: Any  # at a launch an array, in the kernel a value


class per_row(VectorOperand):
    """An operand of `epilogue` with one value for each row of the output: an array of shape (M,)."""


class per_column(VectorOperand):
    """An operand of `epilogue` with one value for each column of the output, such as a bias: an array of (N,)."""


def relu(x: Scalar) -> Scalar:
    """max(x, 0); NaN stays NaN."""
    return pd.select(x < 0, 0, x)


def add(x: Scalar, y: Scalar) -> Scalar:
    """x + y: a bias, or a residual."""
    return x + y


def add_relu(x: Scalar, y: Scalar) -> Scalar:
    """relu(x + y)"""
    return relu(x + y)


def gelu(x: Scalar) -> Scalar:
    """x·Φ(x), by the usual approximation with tanh, which is off by up to 0.0005."""
    return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def add_gelu(x: Scalar, y: Scalar) -> Scalar:
    """gelu(x + y)"""
    return gelu(x + y)


def silu(x: Scalar) -> Scalar:
    """x·sigmoid(x)"""
    return x * sigmoid(x)


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + exp(-x)) of an f32, with a relative error of at most (8 + |x|)·2^-23; 0 where that is below 2^-126."""
    if x.type is not f32:
        raise TraceError(
            f"sigmoid, gelu and silu are computed in f32; this value is {x.type}",
            help="write to a float32, float16 or bfloat16 `out`; for float64, pass a function of your own",
        )
    return pd.ptx.rcp.approx.ftz.f32(1.0 + pd.ptx.ex2.approx.ftz.f32(x * -1.4426950408889634))


def scale(x: Scalar, y: Scalar) -> Scalar:
    """x·y: a factor for each row, or column."""
    return x * y


def scale_rows_and_columns(x: Scalar, rows: Scalar, columns: Scalar) -> Scalar:
    """x·rows·columns, as quantised matrices need it."""
    return x * rows * columns
