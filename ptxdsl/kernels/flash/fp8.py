"""Calls of 8-bit attention: checked arguments, and the two launches."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.flash.call import AttentionCall, planned
from ptxdsl.kernels.flash.problem import (
    allocated,
    bounds_of,
    output_of,
    problem_of,
    scale_of,
)
from ptxdsl.kernels.flash.traits import SCALED_CONFIGS, AttentionTraits
from ptxdsl.types import bf16, e4m3, f16, s64

PADDED = 128  # the keys of the transposed values are a multiple of this


@lru_cache(maxsize=1)
def transpose_parameters() -> Any:
    """Return the parameters of `transpose_kernel`: V with `n` keys and its elements between batches, heads and keys."""
    return pd.Parameters.of("AttentionTranspose", v=ptr[e4m3], strides=s64[3], n=u32, out=ptr[e4m3])


class Fp8Call(AttentionCall):
    """A call of attention_fp8()."""

    name = "attention_fp8"

    def __init__(self, call: PublicCall) -> None:
        out, q, k, v, *scales = call.arrays
        *_, window, scale = call.options
        self.transpose_kernel, self.kernel = call.kernels
        self.problem = problem = problem_of(q, k, v, types=(e4m3,), dims=SCALED_CONFIGS)
        (batch, heads, _, columns), (kv_heads, _) = problem.shape, problem.keys
        self.scales = {
            name: _checked_scale(name, owner, (batch, count))
            for name, owner, count in zip(
                ("scale_q", "scale_k", "scale_v"), scales, (heads, kv_heads, kv_heads), strict=True
            )
        }
        self.scale, self.softcap, (bounds, self.window) = scale_of(scale, problem.head), 0.0, bounds_of(window)
        output = output_of((problem.q, problem.k, problem.v), problem.out_shape, out, (bf16, f16))
        dims = problem.head, columns
        self.traits = AttentionTraits(e4m3, *dims, SCALED_CONFIGS[dims], bounds, out=output.type)
        self.returns(output, None)

    def plan(self, config: Any, copied: str = "") -> LaunchPlan:
        """Return the launches: of the kernel that transposes V, if there are keys, and of attention."""
        problem, v = self.problem, self.problem.v
        (batch, *_, columns), (kv_heads, keys) = problem.shape, problem.keys
        blocks = -(-keys // PADDED) or 1
        transposed = allocated("transposed", None, problem.q, (batch, kv_heads, columns, blocks * PADDED), e4m3)
        before = None
        if keys:
            moved = {"v": v, "strides": v.array.strides[:3], "n": keys, "out": transposed}
            grid = blocks, kv_heads, batch
            before = planned(self.transpose_kernel, grid, PADDED, transpose_parameters(), {}, moved)
        return self.plan_of(problem.k if keys else problem.q, transposed, before, **self.scales)


def _checked_scale(name: str, owner: object, shape: tuple[int, int]) -> ArrayArgument:
    scale = array_argument(name, owner, 2, f"it is {shape}", "pass one scale a head", "float32")
    if scale.array.shape != shape or scale.type is not f32 or not scale.array.contiguous:
        raise LaunchError(
            f"`{name}` is {scale.array}; it has one scale a head", help=f"pass a contiguous float32 array of {shape}"
        )
    return scale
