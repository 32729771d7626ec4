"""A product of scaled 8-bit floats on Hopper: a scale for each tensor, each row and column, or each block of 128.

What differs from `gemm.py` is where scales come in: `sm90/scales.py`, `sm90/scales_along_k.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.elsewhere import public_fused
from ptxdsl.kernels.call.scaled.product import run
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
    """out = epilogue(alpha·(scale_a·a) @ (scale_b·b) + beta·c, *operands), of 8-bit floats on sm_90a. Returns out.

    a (M, K) and b (K, N) are float8_e4m3fn or float8_e5m2, each of either; they are read as they lie where a is
    row-major and b column-major, with lines at multiples of 16 bytes, and else are copied before, to a workspace.
    Either may be a batch, of three dimensions, as in gemm. M, N, K may be 0.

    Scales are float32, on the same GPU, with any strides: one of each tensor, of the shape () or (1,); or one of each
    row, (M, 1), and of each column, (1, N), which lie side by side (those of rows do where out is column-major); or
    one of each 128 along K, (M, ⌈K/128⌉), and of each block of 128×128 of b, (⌈K/128⌉, ⌈N/128⌉). Of a batch, they have
    three dimensions as well. By blocks, sums of 128 products are scaled and added up in float32.

    out is float32, which is made without it, float16, bfloat16, or one of 8 bits, which saturates; row-major, or also
    column-major but with scales of blocks. `c`, `alpha`, `beta`, `epilogue` and `operands` are as in gemm. `config` has
    atom="wgmma" and says, as in gemm, which tiles there are and how blocks share them; where it has no `schedule`,
    blocks are persistent. With scales of blocks a tile has 64 or 128 rows and up to 192 columns, or 256, or up to 32
    rows where A and B are swapped; and warpgroups multiply at the same time. "tune" times some, as in gemm, of classes
    for each kind of scales.

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return run(scaled_kernel, a, b, scale_a, scale_b, c, out, alpha, beta, config, epilogue, operands)
