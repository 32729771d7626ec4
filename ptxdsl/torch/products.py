"""Matrix products as torch operators, with their gradients, which are matrix products too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ptxdsl.arrays import type_of
from ptxdsl.errors import LaunchError
from ptxdsl.kernels import gemm as products
from ptxdsl.kernels import grouped as groups
from ptxdsl.kernels import ragged_k
from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.epilogue import add, per_column
from ptxdsl.kernels.product.operands import INPUTS, outputs
from ptxdsl.torch.operator import op


def output_dtype(tensor: Tensor) -> torch.dtype:
    """Return the output type of a product of such tensors; an unsupported type is returned as is, and the launch
    refuses it.
    """
    kind = type_of(tensor.dtype)
    dtype: torch.dtype = getattr(torch, describe_type(outputs(kind)[0])) if kind in INPUTS else tensor.dtype
    return dtype


def _gemm(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b of (M, K) and (K, N), or of batches of these; each row- or column-major."""
    out: Tensor = products.gemm(a, b)
    return out


def _gemm_fake(a: Tensor, b: Tensor) -> Tensor:
    batch = a.shape[:-2] or b.shape[:-2]
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=output_dtype(a))


def _gemm_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    (a, b), gradient = ctx.saved_tensors, gradient.contiguous()
    of_a, of_b = ctx.needs_input_grad
    return (
        _of_rank(a, gemm(gradient, b.mT)) if of_a else None,
        _of_rank(b, gemm(a.mT, gradient)) if of_b else None,
    )


def _of_rank(matrix: Tensor, gradient: Tensor) -> Tensor:
    """Reduce the gradient of a matrix that is broadcast over a batch."""
    return gradient.sum(0) if gradient.dim() > matrix.dim() else gradient


gemm = op("ptxdsl::gemm", _gemm, fake=_gemm_fake, backward=_gemm_backward)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight.T + bias of (rows, K), (N, K) and (N,), in one kernel."""
    try:
        if bias is None:
            return _gemm(x, weight.mT)
        out: Tensor = products.gemm(x, weight.mT, epilogue=add, operands=(per_column(bias),))
    except LaunchError as error:  # raised by the product, whose arguments have other names
        message = error.message.replace("`a`", "`x`").replace("`b`", "`weight.T`")
        raise LaunchError(message, at=error.at, help=error.help) from None
    return out


def _linear_fake(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _gemm_fake(x, weight.mT)


def _linear_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    (x, weight, _), gradient = ctx.saved_tensors, gradient.contiguous()
    of_x, of_weight, of_bias = ctx.needs_input_grad
    return (
        gemm(gradient, weight) if of_x else None,
        gemm(gradient.mT, x) if of_weight else None,
        gradient.sum(0) if of_bias else None,
    )


linear_rows = op("ptxdsl::linear", _linear, fake=_linear_fake, backward=_linear_backward)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ weight.T + bias, like torch.nn.functional.linear: x of (…, K), weight (N, K), bias (N,)."""
    if x.dim() == 2:
        return linear_rows(x, weight, bias)
    rows: Tensor = linear_rows(x.reshape(-1, x.shape[-1]), weight, bias)
    return rows.reshape(*x.shape[:-1], weight.shape[0])


def _ragged(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    """Multiply the rows of each group of a by the matrix of that group.

    The shapes are (rows, K), (groups, K, N) and int32 (groups,), the end of each group. Rows past the last group are
    uninitialised.
    """
    out: Tensor = groups.grouped_gemm_ragged(a, b, offsets)
    return out


def _ragged_fake(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    return a.new_empty((a.shape[0], b.shape[2]), dtype=output_dtype(a))


def _ragged_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    (a, b, offsets), gradient = ctx.saved_tensors, gradient.contiguous()
    of_a, of_b, _ = ctx.needs_input_grad
    return (
        ragged_rows(gradient, b.mT, offsets) if of_a else None,
        grouped_gemm_ragged_k(a, gradient, offsets) if of_b else None,
        None,
    )


grouped_gemm_ragged = op("ptxdsl::grouped_gemm_ragged", _ragged, fake=_ragged_fake, backward=_ragged_backward)


def _ragged_rows(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    """Return `_ragged` with zeros in the rows past the last group, which a gradient needs."""
    out = a.new_zeros((a.shape[0], b.shape[2]))
    return groups.grouped_gemm_ragged(a, b, offsets, out=out)


ragged_rows = op("ptxdsl::grouped_gemm_ragged_rows", _ragged_rows, fake=_ragged_fake)


def _ragged_k(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    """Return a[rows of i].T @ b[rows of i] for each group i: (rows, M) and (rows, N) to (groups, M, N)."""
    return ragged_k.grouped_gemm_ragged_k(a, b, offsets)


def _ragged_k_fake(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    return a.new_empty((offsets.shape[0], a.shape[1], b.shape[1]), dtype=output_dtype(a))


grouped_gemm_ragged_k = op("ptxdsl::grouped_gemm_ragged_k", _ragged_k, fake=_ragged_k_fake)
