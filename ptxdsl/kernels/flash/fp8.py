"""Parts of 8-bit attention: traits, parameters, checked arguments, and the launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import arrays, f32, ptr, u32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, empty
from ptxdsl.kernels.flash.call import (
    DENSE,
    LOG2_E,
    check_apart,
    check_number,
    check_rows,
    check_strides,
    window_of,
)
from ptxdsl.kernels.flash.traits import AttentionConfig, AttentionTraits
from ptxdsl.types import Type, bf16, e4m3, f16, s32, s64

HEAD = 128  # columns of q, k and v
CONFIG = AttentionConfig(128, 192, 2)
PADDED = 128  # the keys of the transposed values are a multiple of this
SHIFT, SLACK = 4, 4  # weights are 2**8 at most, in e4m3, whose largest number is 448


@dataclass(frozen=True)
class Fp8Traits(AttentionTraits):
    """The compile-time properties of an 8-bit attention kernel; `out_type` is the type of its output."""

    dtype: Type = e4m3
    config: AttentionConfig = CONFIG
    out_type: Type = bf16

    @property
    def scores_atom(self) -> str:
        return f"wgmma.m64n{self.config.keys}k32.f32.{self.dtype}"

    @property
    def output_atom(self) -> str:
        return f"wgmma.m64n{self.value_head}k32.f32.{self.dtype}.rs"

    def map(self, rows: int, columns: int) -> pd.TensorMap:
        """Return the tensor map of a (batch, head, row, column) array with tiles of rows x columns."""
        swizzle = next(n for n in (128, 64, 32) if columns % n == 0)
        return pd.TensorMap.tiled(self.dtype, (1, 1, rows, columns), swizzle=swizzle)


@lru_cache(maxsize=256)
def fp8_parameters(traits: Fp8Traits) -> Any:
    """Return the parameters of `fp8_kernel`: those of `attention_kernel`, with V transposed, and the scales of each
    (batch, head) of q, k and v.
    """
    config = traits.config
    return pd.Parameters.of(
        "AttentionFp8",
        q=traits.map(config.queries, HEAD),
        k=traits.map(config.keys, HEAD),
        v=traits.map(HEAD, config.keys),
        **{f"scale_{name}": ptr[f32] for name in "qkv"},
        out=ptr[traits.out_type],
        lse=ptr[f32],
        out_strides=s64[3],
        lse_strides=s64[2],
        extents=s32[2],
        group=u32,
        window=s32[2],
        scale=f32,
    )


def run_fp8(
    kernels: Sequence[Any], operands: tuple[Any, Any, Any], scales: tuple[Any, Any, Any], causal: bool, window: Any,
    scale: float | None, out: Any, return_lse: bool,
) -> Any:  # fmt: skip
    """Check a call of attention_fp8 and launch it. Returns out, or (out, lse)."""
    q, k, v = _checked(*operands)
    (batch, heads, m, _), (_, kv_heads, n, _) = q.array.shape, k.array.shape
    of_heads = [
        _checked_scale(f"scale_{name}", owner, (batch, count))
        for name, owner, count in zip("qkv", scales, (heads, kv_heads, kv_heads), strict=True)
    ]
    factor = 1 / math.sqrt(HEAD) if scale is None else check_number("scale", scale, is_positive=True)
    sides = window_of(causal, window)
    output = _output(q, k, v, out)
    lse = empty(q, (batch, heads, m), f32)
    if output.array.size:
        left, right = (side is not None for side in sides)
        traits = Fp8Traits(is_bounded=(left, right), out_type=output.type)
        transpose_kernel, kernel = kernels
        blocks = -(-n // PADDED) or 1
        transposed = empty(q, (batch, kv_heads, HEAD, blocks * PADDED), e4m3)
        if n:
            transpose_kernel[(blocks, kv_heads, batch), PADDED](
                arrays.strided(v.owner), *v.array.strides[:3], n, transposed
            )
        launched = fp8_parameters(traits)(
            q=q.owner, k=k.owner if n else q.owner, v=transposed,
            **{x.name: x.owner for x in of_heads}, out=arrays.strided(output.owner), lse=lse,
            out_strides=output.array.strides[:3], lse_strides=(heads * m, m), extents=(m, n), group=heads // kv_heads,
            window=tuple(side or 0 for side in sides), scale=factor * LOG2_E,
        )  # fmt: skip
        kernel[(-(-m // traits.config.queries), heads, batch), traits.threads](launched, traits=traits)
    return (output.owner, lse) if return_lse else output.owner


def _checked(q: object, k: object, v: object) -> tuple[ArrayArgument, ArrayArgument, ArrayArgument]:
    """Check q, k and v. Raises LaunchError for arrays that do not fit each other or the kernel."""
    of_q, of_k, of_v = (
        array_argument(name, owner, 4, DENSE, "reshape it, or permute its axes", "float8_e4m3fn")
        for name, owner in (("q", q), ("k", k), ("v", v))
    )
    if not of_q.type is of_k.type is of_v.type is e4m3:
        raise LaunchError(
            f"`q`, `k` and `v` have elements of {of_q.array.dtype}, {of_k.array.dtype} and {of_v.array.dtype}",
            help="quantise all three to float8_e4m3fn, or call attention() for float16 and bfloat16",
        )
    of_queries, of_keys = of_q.array.shape, of_k.array.shape
    shown = f"`q` has the shape {of_queries}, `k` {of_keys} and `v` {of_v.array.shape}"
    if of_queries[0] != of_keys[0] or of_keys != of_v.array.shape or (of_queries[3], of_keys[3]) != (HEAD, HEAD):
        raise LaunchError(shown, help=f"q is (B, H, M, {HEAD}), k and v are (B, Hkv, N, {HEAD})")
    if not of_keys[1] or of_queries[1] % of_keys[1]:
        raise LaunchError(
            f"{shown}: {of_queries[1]} query heads do not divide among {of_keys[1]} key heads",
            help="H is a multiple of Hkv",
        )
    for operand in (of_q, of_k, of_v):
        check_strides(operand)
    return of_q, of_k, of_v


def _checked_scale(name: str, owner: object, shape: tuple[int, int]) -> ArrayArgument:
    scale = array_argument(name, owner, 2, f"it is {shape}", "pass one scale a head", "float32")
    if scale.array.shape != shape or scale.type is not f32 or not scale.array.contiguous:
        raise LaunchError(
            f"`{name}` is {scale.array}; it has one scale a head", help=f"pass a contiguous float32 array of {shape}"
        )
    return scale


def _output(q: ArrayArgument, k: ArrayArgument, v: ArrayArgument, out: object) -> ArrayArgument:
    """Return the output, allocated as bfloat16 unless it is given."""
    owner = empty(q, q.array.shape, bf16) if out is None else out
    rule = f"the output has the shape {q.array.shape}"
    output = array_argument("out", owner, 4, rule, "pass an array of that shape", "bfloat16 or float16")
    if output.array.shape != q.array.shape or output.type not in (bf16, f16):
        raise LaunchError(
            f"`out` is {output.array}; {rule} and elements of bfloat16 or float16", help="pass an array like this"
        )
    check_rows(output)
    for operand in (k, v, q):
        check_apart(operand, output)
    return output
