"""Calls of 8-bit attention: checked arguments, and the two launches."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.flash.call import planned
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    AttentionProblem,
    allocated,
    bounds_of,
    output_of,
    problem_of,
    scale_of,
)
from ptxdsl.kernels.flash.traits import SCALED_CONFIGS, AttentionTraits, band_of, parameters
from ptxdsl.types import bf16, e4m3, f16, s64

PADDED = 128  # the keys of the transposed values are a multiple of this


@lru_cache(maxsize=1)
def transpose_parameters() -> Any:
    """Return the parameters of `transpose_kernel`: V with `n` keys and its elements between batches, heads and keys."""
    return pd.Parameters.of("AttentionTranspose", v=ptr[e4m3], strides=s64[3], n=u32, out=ptr[e4m3])


class Fp8Call(CheckedCall):
    """A call of attention_fp8()."""

    name = "attention_fp8"
    problem: AttentionProblem

    def __init__(self, call: PublicCall) -> None:
        out, q, k, v, *scales = call.arrays
        *_, window, scale = call.options
        self.kernels = call.kernels
        self.problem = problem = problem_of(q, k, v, types=(e4m3,), dims=SCALED_CONFIGS)
        (batch, heads, _, _), (kv_heads, _) = problem.shape, problem.keys
        self.scales = {
            name: _checked_scale(name, owner, (batch, count))
            for name, owner, count in zip(
                ("scale_q", "scale_k", "scale_v"), scales, (heads, kv_heads, kv_heads), strict=True
            )
        }
        self.scale, (self.bounds, self.window) = scale_of(scale, problem.head), bounds_of(window)
        self.output = output_of((problem.q, problem.k, problem.v), problem.out_shape, out, (bf16, f16))
        self.lse = allocated("lse", None, problem.q, problem.lse_shape, f32)
        self.out = self.output.owner, self.lse.owner
        self.is_empty = not self.output.array.size

    def plan(self, config: Any, copied: str = "") -> LaunchPlan:
        """Return the launches: of the kernel that transposes V, if there are keys, and of attention."""
        problem, output = self.problem, self.output
        (batch, heads, rows, columns), (kv_heads, keys), v = problem.shape, problem.keys, problem.v
        transpose_kernel, kernel = self.kernels
        dims = problem.head, columns
        traits = AttentionTraits(e4m3, *dims, SCALED_CONFIGS[dims], self.bounds, out=output.type)
        blocks = -(-keys // PADDED) or 1
        transposed = allocated("transposed", None, problem.q, (batch, kv_heads, columns, blocks * PADDED), e4m3)
        before = None
        if keys:
            moved = {"v": v, "strides": v.array.strides[:3], "n": keys, "out": transposed}
            grid = blocks, kv_heads, batch
            before = planned(transpose_kernel, grid, PADDED, transpose_parameters(), {}, moved)
        fields = dict(
            q=problem.q, k=problem.k if keys else problem.q, v=transposed, **self.scales, out=output, lse=self.lse,
            out_strides=output.array.strides[:3], lse_strides=(heads * rows, rows), extents=(rows, keys),
            group=heads // kv_heads, window=self.window, scale=self.scale * LOG2_E,
        )  # fmt: skip
        band = band_of(traits, heads, heads // kv_heads, keys * (problem.head + columns))
        fields["band"], grid = band, (-(-rows // traits.config.queries) * band, heads // band, batch)
        definition, constants = parameters(traits), {"traits": traits}
        return planned(kernel, grid, traits.threads, definition, constants, fields, before=before)


def _checked_scale(name: str, owner: object, shape: tuple[int, int]) -> ArrayArgument:
    scale = array_argument(name, owner, 2, f"it is {shape}", "pass one scale a head", "float32")
    if scale.array.shape != shape or scale.type is not f32 or not scale.array.contiguous:
        raise LaunchError(
            f"`{name}` is {scale.array}; it has one scale a head", help=f"pass a contiguous float32 array of {shape}"
        )
    return scale
