"""Products of scaled 8-bit floats on Hopper: a scale for each tensor, each row and column, or each block of 128.

What differs from `gemm.py` and `ragged.py` is where scales come in: `sm90/scales.py`.
"""

from __future__ import annotations

from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.elsewhere import public_group
from ptxdsl.kernels.call.groups.scaled import ScaledKernels, run
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import copy_tiles, multiply_tiles
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.product import Product
from ptxdsl.kernels.ragged import Multiply, compute_rows, copy_queued_tiles, groups_walk, rows_of_groups, told_walk
from ptxdsl.kernels.sm90.copies import TensorCopies, TensorView
from ptxdsl.kernels.sm90.gathered import ColumnCopies, GatheredRing, GatheredRows, gather_tiles
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import WarpgroupMma
from ptxdsl.kernels.sm90.parameters import TensorProducts, scaled_parameters, scaled_ragged_parameters, tensors_of
from ptxdsl.kernels.sm90.scales import BlockScales, RowScales, Scales
from ptxdsl.kernels.sm90.store import group_store, warpgroup_store
from ptxdsl.kernels.sm90.tile_queue import TileQueue
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import Scene
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import bf16, e4m3

TILING = WarpgroupTiling((128, 128, 128))
HOPPER = WarpgroupTraits(TILING, Operands(e4m3, bf16), Strips())
HOPPER_GROUPS = WarpgroupTraits(TILING, Operands(e4m3, bf16, batches="strided"), AHEAD)


@pd.kernel(reqntid=lambda traits: traits.threads)
def scaled_kernel(p: scaled_parameters(traits), *, traits: WarpgroupTraits = HOPPER, scaling: str = "blocks") -> None:
    """`scaling` is "tensors", "rows" or "blocks"; else as `warpgroup_gemm_kernel`."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = pd.Ring(tiling.stages, stage_bytes=traits.stage_bytes, consumers=tiling.holders, each="warpgroup")
    await_prerequisites(*tensors_of(p, traits))
    out: Any = TensorView(p.out) if traits.operands.out_boxes else p.out
    product = Product(p.m, p.n, p.k, TensorView(p.a), TensorView(p.b), out, out, _alpha(p, scaling), 0)
    scene = Scene(TensorProducts(product, traits.tile), p.schedule, traits.sums, memory.staging, ahead=True)
    copying, multiplying = ROLE_REGISTERS
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        copy_tiles(ring, TensorCopies(traits, memory), traits.schedule.walk(scene))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = WarpgroupMma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        kind = SCALES[scaling]
        scales = kind(p, traits, consumer, p.m, lambda work: (0, 0))
        compute_rows(ring, mma, store, traits.schedule.walk(scene), consumer, _multiplying(scales))


@pd.kernel(reqntid=lambda traits: traits.threads)
def scaled_ragged_kernel(
    p: scaled_ragged_parameters(traits, scatters),
    *,
    traits: WarpgroupTraits = HOPPER_GROUPS,
    scaling: str = "blocks",
    form: str = "ragged",
    scatters: bool = False,
) -> None:
    """The same of groups of rows, as `warpgroup_ragged_kernel`."""
    memory, tiling, gathers = SharedTiles(traits), traits.tiling, traits.operands.a_gathered
    ring = tile_ring(traits, GatheredRing if gathers else pd.Ring)
    queue = TileQueue(p.counters, tiling.holders + gathers * GatheredRing.writers)
    boxes = [p.boxes] if traits.operands.out_boxes and not scatters else []
    await_prerequisites(*([] if gathers else [p.a]), p.b, *boxes)
    matrices, alpha = rows_of_groups(p, traits, form, scatters), _alpha(p, scaling)
    copying, multiplying = ROLE_REGISTERS
    with pd.warpgroup(tiling.producer, registers=copying):
        with pd.warp(tiling.copying_warp):
            by_tensors = (ColumnCopies if gathers else TensorCopies)(traits, memory)
            copy_queued_tiles(ring, by_tensors, groups_walk(p, traits, form, matrices, queue.taken), queue)
        if gathers:
            with pd.warp(*tiling.gathering_warps) as gatherer:
                rows = GatheredRows(p, traits, memory, gatherer.index)
                gather_tiles(ring, rows, told_walk(p, traits, matrices, queue.reader()))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = WarpgroupMma(traits, memory, consumer.index), group_store(traits, memory, consumer, scatters)
        scales = SCALES[scaling](p, traits, consumer, p.rows, lambda work: (work.item[0], work.item[2]))
        walk = told_walk(p, traits, matrices, queue, alpha)
        compute_rows(ring, mma, store, walk, consumer, _multiplying(scales))


def _alpha(p: Any, scaling: str) -> Scalar | int:
    """What all sums are multiplied by: the scales of both tensors."""
    return p.scale_a.pointer[0] * p.scale_b.pointer[0] if scaling == "tensors" else 1


def _multiplying(scales: Scales) -> Multiply:
    """`gemm.multiply_tiles`, with sums that are scaled but for the scales of tensors."""
    if isinstance(scales, BlockScales):
        return lambda ring, mma, store, walk, work: scales.multiply(ring, mma, work)
    if isinstance(scales, RowScales):
        return lambda ring, mma, store, walk, work: scales.scaled(multiply_tiles(ring, mma, store, walk, work), work)
    return multiply_tiles


SCALES = {"tensors": Scales, "rows": RowScales, "blocks": BlockScales}
KERNELS = ScaledKernels(scaled_kernel, scaled_ragged_kernel)


@public_group
def scaled_gemm(
    a: Any, b: Any, scale_a: Any, scale_b: Any, *, out: Any = None, config: GemmConfig | Literal["tune"] | None = None
) -> Any:
    """out = (scale_a·a) @ (scale_b·b), of 8-bit floats on sm_90a. Returns out.

    a (M, K) is row-major and b (K, N) column-major, both float8_e4m3fn or both float8_e5m2. Scales are float32, on the
    same GPU, with any strides: one of each tensor, of the shape () or (1,); or one of each row, (M, 1), and of each
    column, (1, N); or one of each 128 along K, (M, ⌈K/128⌉), and of each block of 128×128 of b, (⌈K/128⌉, ⌈N/128⌉).
    By blocks, sums of 128 products are scaled and added up in float32. out is row-major: float32, which is made without
    it, float16, bfloat16, or one of 8 bits, which saturates. `config` has atom="wgmma"; its tile has up to 192 columns
    with scales of blocks, or 256; "tune" times some, as in gemm, of classes for each kind of scales.

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return run(KERNELS, None, a, b, scale_a, scale_b, None, out, config)


@public_group
def scaled_gemm_ragged(
    a: Any,
    b: Any,
    offsets: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    rows: Any = None,
    out_rows: Any = None,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
) -> Any:
    """out[rows of i] = (scale_a·a)[rows of i] @ (scale_b[i]·b[i]) for each group i of rows. Returns out.

    a is (rows, K), b (groups, K, N) with column-major matrices, out (rows, N); `offsets`, `rows` and `out_rows` are as
    in `grouped_gemm_ragged`. Scales are as in `scaled_gemm`: one of each tensor; or (rows, 1) and (groups, 1, N); or
    (rows, ⌈K/128⌉) and (groups, ⌈K/128⌉, ⌈N/128⌉). With `rows`, row n is of a[rows[n]] with the scales of that row,
    which lie in rows as well: those of A are gathered as in `grouped_gemm_ragged`, scales to a workspace before.

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return run(KERNELS, "ragged", a, b, scale_a, scale_b, offsets, out, config, rows, out_rows)


@public_group
def scaled_gemm_masked(
    a: Any,
    b: Any,
    counts: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
) -> Any:
    """out[i, :counts[i]] = (scale_a[i]·a[i, :counts[i]]) @ (scale_b[i]·b[i]) for each group i. Returns out.

    a is (groups, M, K), b (groups, K, N) with column-major matrices, out (groups, M, N); `counts` are as in
    `grouped_gemm_masked`. Scales are as in `scaled_gemm`: one of each tensor; or (groups, M, 1) and (groups, 1, N); or
    (groups, M, ⌈K/128⌉) and (groups, ⌈K/128⌉, ⌈N/128⌉).

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return run(KERNELS, "masked", a, b, scale_a, scale_b, counts, out, config)
