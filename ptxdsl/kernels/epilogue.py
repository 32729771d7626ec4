"""Functions for `epilogue=`, and wrappers that give the shape of `operands=`. Any function on traced values will do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ptxdsl as pd
from ptxdsl import f32
from ptxdsl.errors import TraceError
from ptxdsl.trace.instruction import Scalar

Epilogue = Callable[..., Any]
# log2 Φ(-y) as a polynomial, its highest term first: from 0 to 6 y·2^p is off by less than 1e-6, and goes to 0 behind
LOG2_TAIL = (
    *(-4.732715942864507e-4, 7.084311681686106e-3, -0.05182682966194196),
    *(-0.4599929504658807, -1.1507876769657104, -1.00003763565679),
)
FAR = 16.0  # where the tail is nothing
TANH_LINEAR, TANH_CUBIC = 0.7978845608028654, 0.035677408136300125  # √(2/π), and 0.044715 times that


@dataclass(frozen=True)
class VectorOperand:
    """An epilogue operand that is a vector."""

    array: Any  # at a launch an array, in the kernel a value


class per_row(VectorOperand):
    """An epilogue operand with one value per output row: an array of shape (M,).

    For groups with separate matrices, the shape is (groups, M).
    """


class per_column(VectorOperand):
    """An epilogue operand with one value per output column, such as a bias: an array of shape (N,).

    For groups of rows, the shape may also be (groups, N).
    """


def relu(x: Scalar) -> Scalar:
    """Return max(x, 0); NaN stays NaN."""
    return pd.ptx.max.NaN.f32(x, 0.0) if x.type is f32 else pd.select(x < 0, 0, x)


def add(x: Scalar, y: Scalar) -> Scalar:
    """Return x + y: a bias or a residual."""
    return x + y


def add_relu(x: Scalar, y: Scalar) -> Scalar:
    """Return relu(x + y)."""
    return relu(x + y)


def gelu(x: Scalar) -> Scalar:
    """Return x·Φ(x) with an absolute error of at most 1e-6 + |x|·2^-22.

    Computed as max(x, 0) - |x|·Φ(-|x|), with the tail as a single power of two: exp and a division would double the
    time spent in the special function unit.
    """
    _check_is_f32(x)
    distance = pd.ptx.min.NaN.f32(pd.ptx.abs.f32(x), FAR)  # so that 0 is not multiplied by infinity
    exponent: Any = LOG2_TAIL[0]
    for coefficient in LOG2_TAIL[1:]:
        exponent = pd.fma(distance, exponent, coefficient)
    return pd.fma(-distance, pd.ptx.ex2.approx.ftz.f32(exponent), pd.ptx.max.NaN.f32(x, 0.0))


def add_gelu(x: Scalar, y: Scalar) -> Scalar:
    """Return gelu(x + y)."""
    return gelu(x + y)


def gelu_tanh(x: Scalar) -> Scalar:
    """Return 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), torch's gelu with approximate="tanh".

    7 instructions, compared to 9 for `gelu`. Returns 0 at -infinity, where torch returns NaN. The error is at most
    |x|·2^-17 on an H200, and |x|·2^-12 if tanh.approx is only as accurate as the PTX manual promises. The formula \
itself
    differs from x·Φ(x) by up to 4.8e-4.
    """
    _check_is_f32(x)
    x = pd.ptx.max.NaN.f32(x, -FAR)  # so that -infinity gives 0
    inner = pd.fma(x * x, TANH_CUBIC, TANH_LINEAR) * x
    half = x * 0.5
    return pd.fma(half, pd.ptx.tanh.approx.f32(inner), half)


def add_gelu_tanh(x: Scalar, y: Scalar) -> Scalar:
    """Return gelu_tanh(x + y)."""
    return gelu_tanh(x + y)


def silu(x: Scalar) -> Scalar:
    """Return x·sigmoid(x)."""
    return x * sigmoid(x)


def sigmoid(x: Scalar) -> Scalar:
    """Return 1 / (1 + exp(-x)) of an f32, with a relative error of at most (8 + |x|)·2^-23; 0 below 2^-126."""
    _check_is_f32(x)
    return pd.ptx.rcp.approx.ftz.f32(1.0 + pd.ptx.ex2.approx.ftz.f32(x * -1.4426950408889634))


def _check_is_f32(x: Scalar) -> None:
    """Raises TraceError for other types, in which these functions are not computed."""
    if x.type is not f32:
        raise TraceError(
            f"sigmoid, gelu, gelu_tanh and silu are computed in f32; this value is {x.type}",
            help="write to a float32, float16 or bfloat16 `out`; for float64, pass a function of your own",
        )


def scale(x: Scalar, y: Scalar) -> Scalar:
    """Return x·y: a factor per row or column."""
    return x * y


def scale_rows_and_columns(x: Scalar, rows: Scalar, columns: Scalar) -> Scalar:
    """Return x·rows·columns, for quantised matrices."""
    return x * rows * columns
