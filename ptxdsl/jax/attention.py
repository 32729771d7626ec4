"""Attention as a function of JAX arrays, with its gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from ptxdsl.arrays import DeviceBuffer
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.jax.calls import call
from ptxdsl.kernels.attention import ELSEWHERE, attention_kernel
from ptxdsl.kernels.attention_backward import KERNELS
from ptxdsl.kernels.flash.call import remembered, run
from ptxdsl.kernels.flash.gradients import BackwardCall, check_head, statistics_shape
from ptxdsl.kernels.flash.problem import AttentionProblem, check_number, problem_of, scale_of, window_of

UNBOUNDED = -1  # a side of the window without a bound, as a number


def _problem(q: Any, k: Any, v: Any) -> AttentionProblem:
    """Check the shapes and types of arrays without memory."""
    of_q, of_k, of_v = (DeviceBuffer(0, x.shape, np.dtype(x.dtype), 0) for x in (q, k, v))
    return problem_of(of_q, of_k, of_v)


def _window(left: int, right: int) -> tuple[int | None, int | None]:
    return None if left == UNBOUNDED else left, None if right == UNBOUNDED else right


def _launch(
    q: Any, k: Any, v: Any, left: int, right: int, scale: float, softcap: float, out: Any, lse: Any
) -> None:  # fmt: skip
    run(
        attention_kernel, (q, k, v), None, out=out, lse=lse, return_lse=True, causal=False,
        window=_window(left, right), scale=scale, softcap=softcap, config=None,
    )  # fmt: skip


def _launch_backward(
    dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, left: int, right: int, scale: float, softcap: float,
    dq: Any, *results: Any,
) -> None:  # fmt: skip
    arrays = dq, q, k, v, dout, out, lse, *results
    remembered(BackwardCall, KERNELS, arrays, _window(left, right), scale, softcap, True)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _attention(q: Any, k: Any, v: Any, options: tuple[int, int, float, float]) -> Any:
    return _forward(q, k, v, options)[0]


def _forward(q: Any, k: Any, v: Any, options: tuple[int, int, float, float]) -> tuple[Any, tuple[Any, ...]]:
    """Return the output, and what the gradient needs."""
    problem = _problem(q, k, v)
    structs = jax.ShapeDtypeStruct(problem.out_shape, q.dtype), jax.ShapeDtypeStruct(problem.lse_shape, np.float32)
    out, lse = call(_launch, out=structs)(q, k, v, *options)
    return out, (q, k, v, out, lse)


def _backward(options: tuple[int, int, float, float], saved: tuple[Any, ...], dout: Any) -> tuple[Any, Any, Any]:
    operands = saved[:3]
    problem = _problem(*operands)
    check_head(problem)
    if not operands[0].size or not operands[1].size:
        return tuple(jax.numpy.zeros_like(x) for x in operands)
    statistics = jax.ShapeDtypeStruct(statistics_shape(problem), np.float32)
    structs = *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands), statistics, statistics
    return call(_launch_backward, out=structs)(dout, *saved, *options)[:3]


_attention.defvjp(_forward, _backward)


@public
@called_elsewhere(
    **{name: ELSEWHERE["attn_mask"] for name in ("mask", "bias")},
    **dict.fromkeys(("local_window_size", "window_size"), ELSEWHERE["window_size"]),
    is_causal=ELSEWHERE["is_causal"],
    out="leave it out: JAX allocates its outputs; ptxdsl.kernels.attention takes `out=`",
)
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Any:
    """Return softmax(scale · q @ kᵀ) @ v of q (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv), with its gradient.

    The axes are those of `ptxdsl.kernels.attention.attention`, not of `jax.nn.dot_product_attention`, and so are the
    other arguments, which are Python numbers. The gradient takes a D of 64 or 128, and is the same bits in every run.
    Raises LaunchError during tracing for arrays that do not fit.
    """
    sides = (UNBOUNDED if side is None else side for side in window_of(causal, window))
    factor = scale_of(scale, q.shape[-1])
    return _attention(q, k, v, (*sides, factor, check_number("softcap", softcap, is_positive=False)))
