"""Scaled 8-bit GEMM on sm_90a, with one scale per tensor, per row and column, or per block of 128.

The mainloop is that of `gemm.py`; `sm90/scales.py` and `sm90/scales_along_k.py` apply the scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.call import launch
from ptxdsl.kernels.call.elsewhere import public_fused
from ptxdsl.kernels.call.scaled.product import ScaledCall
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.gemm import copy_tiles
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.scaled.sums import (
    TILING,
    batch_of,
    compute_scaled,
    role_registers,
    scaled_alpha,
    scales_of,
    takes_part,
)
from ptxdsl.kernels.sm90.copies import tensor_copies
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import scaled_parameters, tensor_products_of, tensors_of
from ptxdsl.kernels.sm90.store import warpgroup_store
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import Scene
from ptxdsl.types import bf16, e4m3

HOPPER = WarpgroupTraits(TILING, Operands(e4m3, bf16), Strips())


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def scaled_kernel(p: scaled_parameters(traits), *, traits: WarpgroupTraits = HOPPER, scaling: str = "blocks") -> None:
    """`scaling` is "tensors", "rows" or "blocks"; else as `warpgroup_gemm_kernel`."""
    memory, tiling = SharedTiles(traits), traits.tiling
    scene = Scene(tensor_products_of(p, traits), p.schedule, traits.sums, memory.staging, True, memory.exchange)
    walk = traits.schedule.walk(scene).begun_by(pd.warpid == tiling.copying_warp)
    ring = tile_ring(traits)
    await_prerequisites(*tensors_of(p, traits))
    copying, multiplying = role_registers(tiling, scaling)
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        copy_tiles(ring, tensor_copies(traits, memory, traits.operands.a_rows), walk)
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = warpgroup_mma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        scene = replace(scene, products=tensor_products_of(p, traits, scaled_alpha(p, scaling, p.alpha)))
        walk = consumer_walk(traits, scene, ring, store, consumer)
        scales = scales_of(scaling, tiling)(p, traits, consumer, p.m, batch_of(traits))
        compute_scaled(ring, mma, store, walk, consumer, scales, takes_part(traits))


@public_fused
def scaled_gemm(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out = epilogue(alpha·((scale_a·a) @ (scale_b·b)) + beta·c, *operands) for 8-bit floats; return out.

    Parameters
    ----------
    a, b : array of shape (M, K) and (K, N)
        float8_e4m3fn or float8_e5m2, in any combination; or batches of them, as in `gemm`. A row-major `a` and a
        column-major `b` whose leading dimensions are multiples of 16 bytes are read in place; other layouts are copied
        to a workspace first. M, N and K may be 0.
    scale_a, scale_b : float32 array
        One scale per tensor, of shape () or (1,); or one per row, (M, 1), and one per column, (1, N), each contiguous
        (row scales are contiguous if `out` is column-major); or one per 128 elements of K, (M, ⌈K/128⌉), and one per
        128×128 block of `b`, (⌈K/128⌉, ⌈N/128⌉). Three-dimensional for batches. With block scales, partial products
        over 128 elements of K are scaled and accumulated in float32.
    c, alpha, beta, epilogue, operands
        As in `gemm`.
    out : array of shape (M, N), optional
        float32 by default; also float16, bfloat16, or an 8-bit type, which saturates. Row-major, or column-major
        without block scales.
    config : GemmConfig or "tune", optional
        A configuration with atom="wgmma"; persistent by default. With block scales, a tile has 64 or 128 rows and up to
        192 columns, or 256, or up to 32 rows with swap_ab, and no ping-pong. "tune" measures candidates as in `gemm`,
        with one result for each kind of scale.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> scale_a, scale_b = np.full(1, 0.5, np.float32), np.full(1, 2.0, np.float32)
    >>> out = scaled_gemm(a, b, scale_a, scale_b)
    """
    arrays, options = (out, a, b, scale_a, scale_b, c), (out is None, c is None)
    return launch(ScaledCall, scaled_kernel, arrays, config, options, (alpha, beta), epilogue, operands)
