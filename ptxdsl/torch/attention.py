"""Attention as a torch operator, with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ptxdsl.errors import called_elsewhere, public
from ptxdsl.kernels import attention as forward
from ptxdsl.kernels.attention_backward import attention_backward
from ptxdsl.kernels.flash.problem import check_number, scale_of, window_of
from ptxdsl.torch.operator import op

UNBOUNDED = -1  # a side of the window without a bound, in the operators


def _window(left: int, right: int) -> tuple[int | None, int | None]:
    return None if left == UNBOUNDED else left, None if right == UNBOUNDED else right


def _attention(
    q: Tensor, k: Tensor, v: Tensor, left: int, right: int, scale: float, softcap: float
) -> tuple[Tensor, Tensor]:
    """Return (out, lse) of q (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)."""
    out, lse = forward.attention(q, k, v, window=_window(left, right), scale=scale, softcap=softcap, return_lse=True)
    return out, lse


def _fake(
    q: Tensor, k: Tensor, v: Tensor, left: int, right: int, scale: float, softcap: float
) -> tuple[Tensor, Tensor]:
    return q.new_empty((*q.shape[:3], v.shape[3])), q.new_empty(q.shape[:3], dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.options = inputs[3:]


def _backward(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    (q, k, v, out, lse), options = ctx.saved_tensors, ctx.options
    return *attention_gradients(gradient.contiguous(), q, k, v, out, lse, *options), None, None, None, None


def _gradients(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    left: int,
    right: int,
    scale: float,
    softcap: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (dq, dk, dv)."""
    return attention_backward(dout, q, k, v, out, lse, window=_window(left, right), scale=scale, softcap=softcap)


def _gradients_fake(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    left: int,
    right: int,
    scale: float,
    softcap: float,
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = (x.new_empty(x.shape) for x in (q, k, v))
    return dq, dk, dv


attention_gradients = op("ptxdsl::attention_gradients", _gradients, fake=_gradients_fake)
attention_and_lse = op("ptxdsl::attention", _attention, fake=_fake, backward=_backward, setup_context=_save)


@public
@called_elsewhere(
    is_causal="use `causal=`; the last query is aligned with the last key",
    attn_mask="use `causal=` or `window=`; other masks are not supported",
    dropout_p="dropout is not supported",
    enable_gqa="leave it out: the number of heads of k and v may divide that of q",
)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Tensor:
    """Return softmax(scale · q @ kᵀ) @ v, like torch.nn.functional.scaled_dot_product_attention.

    q (B, H, M, D), k (B, Hkv, N, D), v (B, Hkv, N, Dv), in float16 or bfloat16. The arguments are those of
    `ptxdsl.kernels.attention.attention`. The gradient takes a D of 64 or 128, and is the same bits in every run.
    """
    left, right = (UNBOUNDED if side is None else side for side in window_of(causal, window))
    factor, cap = scale_of(scale, q.shape[-1]), check_number("softcap", softcap, is_positive=False)
    out: Tensor = attention_and_lse(q, k, v, left, right, factor, cap)[0]
    return out
