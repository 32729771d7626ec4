"""Calls of 8-bit attention: checked arguments, and the two launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxdsl import arrays, f32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, empty
from ptxdsl.kernels.flash.problem import LOG2_E, bounds_of, output_of, problem_of, scale_of, window_of
from ptxdsl.kernels.flash.traits import SCALED_CONFIGS, AttentionTraits, parameters
from ptxdsl.types import bf16, e4m3, f16

PADDED = 128  # the keys of the transposed values are a multiple of this


def run_fp8(
    kernels: Sequence[Any], operands: tuple[Any, Any, Any], scales: tuple[Any, Any, Any], causal: bool, window: Any,
    scale: float | None, out: Any, return_lse: bool,
) -> Any:  # fmt: skip
    """Check a call of attention_fp8 and launch it. Returns out, or (out, lse)."""
    problem = problem_of(*operands, types=(e4m3,), dims=SCALED_CONFIGS)
    (batch, heads, m, columns), (kv_heads, n), q, v = problem.shape, problem.keys, problem.q, problem.v
    of_heads = {
        name: _checked_scale(name, owner, (batch, count)).owner
        for name, owner, count in zip(
            ("scale_q", "scale_k", "scale_v"), scales, (heads, kv_heads, kv_heads), strict=True
        )
    }
    factor, (bounds, sides) = scale_of(scale, problem.head), bounds_of(window_of(causal, window))
    output = output_of((q, problem.k, v), problem.out_shape, out, (bf16, f16))
    lse = empty(q, problem.lse_shape, f32)
    if output.array.size:
        dims = problem.head, columns
        traits = AttentionTraits(e4m3, *dims, SCALED_CONFIGS[dims], bounds, out=output.type)
        transpose_kernel, kernel = kernels
        blocks = -(-n // PADDED) or 1
        transposed = empty(q, (batch, kv_heads, columns, blocks * PADDED), e4m3)
        if n:
            transpose_kernel[(blocks, kv_heads, batch), PADDED](
                arrays.strided(v.owner), *v.array.strides[:3], n, transposed
            )
        launched = parameters(traits)(
            q=q.owner, k=problem.k.owner if n else q.owner, v=transposed, **of_heads, out=arrays.strided(output.owner),
            lse=lse, out_strides=output.array.strides[:3], lse_strides=(heads * m, m), extents=(m, n),
            group=heads // kv_heads, window=sides, scale=factor * LOG2_E,
        )  # fmt: skip
        kernel[(-(-m // traits.config.queries), heads, batch), traits.threads](launched, traits=traits)
    return (output.owner, lse) if return_lse else output.owner


def _checked_scale(name: str, owner: object, shape: tuple[int, int]) -> ArrayArgument:
    scale = array_argument(name, owner, 2, f"it is {shape}", "pass one scale a head", "float32")
    if scale.array.shape != shape or scale.type is not f32 or not scale.array.contiguous:
        raise LaunchError(
            f"`{name}` is {scale.array}; it has one scale a head", help=f"pass a contiguous float32 array of {shape}"
        )
    return scale
