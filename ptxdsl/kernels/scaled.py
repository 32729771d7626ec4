"""Products of scaled 8-bit floats on Hopper: a scale for each tensor, each row and column, or each block of 128.

What differs from `gemm.py` and `ragged.py` is where scales come in: `sm90/scales.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.elsewhere import public_group, public_scaled
from ptxdsl.kernels.call.scaled import groups, product
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.gemm import copy_tiles, multiply_tiles
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import Multiply, compute_rows, copy_queued_tiles, groups_walk, rows_of_groups, told_walk
from ptxdsl.kernels.sm90.copies import TensorCopies
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites
from ptxdsl.kernels.sm90.mma import WarpgroupMma
from ptxdsl.kernels.sm90.parameters import (
    scaled_parameters,
    scaled_ragged_parameters,
    tensor_products_of,
    tensors_of,
)
from ptxdsl.kernels.sm90.scales import BlockScales, RowScales, Scales
from ptxdsl.kernels.sm90.store import group_store, warpgroup_store
from ptxdsl.kernels.sm90.tile_queue import TileQueue
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.group_visitors import check_sizes
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
    products = tensor_products_of(p, traits, _alpha(p, scaling, p.alpha))
    scene = Scene(products, p.schedule, traits.sums, memory.staging, ahead=True)
    copying, multiplying = ROLE_REGISTERS
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        copy_tiles(ring, TensorCopies(traits, memory), traits.schedule.walk(scene))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = WarpgroupMma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        scales = SCALES[scaling](p, traits, consumer, p.m, lambda work: (work.item, 0))
        compute_rows(ring, mma, store, traits.schedule.walk(scene), consumer, _multiplying(scales))


@pd.kernel(reqntid=lambda traits: traits.threads)
def scaled_ragged_kernel(
    p: scaled_ragged_parameters(traits, scatters),
    *,
    traits: WarpgroupTraits = HOPPER_GROUPS,
    scaling: str = "blocks",
    form: str = "ragged",
    validate: bool = False,
    scatters: bool = False,
) -> None:
    """The same of groups of rows, as `warpgroup_ragged_kernel`."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = pd.Ring(tiling.stages, stage_bytes=traits.stage_bytes, consumers=tiling.holders, each="warpgroup")
    queue = TileQueue(p.counters, tiling.holders)
    await_prerequisites(p.a, p.b, *([p.boxes] if traits.operands.out_boxes and not scatters else []))
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, form)
    matrices, alpha = rows_of_groups(p, traits, form, scatters), _alpha(p, scaling, 1)
    copying, multiplying = ROLE_REGISTERS
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp):
        copy_queued_tiles(
            ring, TensorCopies(traits, memory), groups_walk(p, traits, form, matrices, queue.taken), queue
        )
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = WarpgroupMma(traits, memory, consumer.index), group_store(traits, memory, consumer, scatters)
        scales = SCALES[scaling](p, traits, consumer, p.rows, lambda work: (work.item[0], work.item[2]))
        walk = told_walk(p, traits, matrices, queue, alpha)
        compute_rows(ring, mma, store, walk, consumer, _multiplying(scales))


def _alpha(p: Any, scaling: str, alpha: Scalar | int) -> Any:
    """What all sums are multiplied by: `alpha`, and the scales of both tensors."""
    return alpha * (p.scale_a.pointer[0] * p.scale_b.pointer[0]) if scaling == "tensors" else alpha


def _multiplying(scales: Scales) -> Multiply:
    """`gemm.multiply_tiles`, with sums that are scaled but for the scales of tensors."""
    if isinstance(scales, BlockScales):
        return lambda ring, mma, store, walk, work: scales.multiply(ring, mma, work)
    if isinstance(scales, RowScales):
        return lambda ring, mma, store, walk, work: scales.scaled(multiply_tiles(ring, mma, store, walk, work), work)
    return multiply_tiles


SCALES = {"tensors": Scales, "rows": RowScales, "blocks": BlockScales}


@public_scaled
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

    a (M, K) and b (K, N) are both float8_e4m3fn or both float8_e5m2; they are read as they lie where a is row-major and
    b column-major, with lines at multiples of 16 bytes, and else are copied before, to a workspace. Either may be a
    batch, of three dimensions, as in gemm.

    Scales are float32, on the same GPU, with any strides: one of each tensor, of the shape () or (1,); or one of each
    row, (M, 1), and of each column, (1, N), which lie side by side; or one of each 128 along K, (M, ⌈K/128⌉), and of
    each block of 128×128 of b, (⌈K/128⌉, ⌈N/128⌉). Of a batch, they have three dimensions as well. By blocks, sums of
    128 products are scaled and added up in float32.

    out is row-major: float32, which is made without it, float16, bfloat16, or one of 8 bits, which saturates. `c`,
    `alpha`, `beta`, `epilogue` and `operands` are as in gemm. `config` has atom="wgmma"; its tile has up to 192 columns
    with scales of blocks, or 256; "tune" times some, as in gemm, of classes for each kind of scales.

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return product.run(scaled_kernel, a, b, scale_a, scale_b, c, out, alpha, beta, config, epilogue, operands)


@public_scaled
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
    validate: bool = False,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """out[rows of i] = epilogue((scale_a·a)[rows of i] @ (scale_b[i]·b[i]), *operands) for each group i of rows.
    Returns out.

    a is (rows, K), b (groups, K, N), out (rows, N); what is copied before is as in `scaled_gemm`, column-major matrices
    of b are not. `offsets`, `rows`, `out_rows`, `validate`, `epilogue` and `operands` are as in `grouped_gemm_ragged`.
    Scales are as in `scaled_gemm`: one of each tensor; or (rows, 1) and (groups, 1, N); or (rows, ⌈K/128⌉) and
    (groups, ⌈K/128⌉, ⌈N/128⌉). With `rows`, row n is of a[rows[n]] with the scales of that row, which lie in rows as
    well; both are gathered to a workspace before.

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    moved = rows, out_rows, epilogue, operands
    return groups.run(scaled_ragged_kernel, "ragged", a, b, scale_a, scale_b, offsets, out, config, validate, *moved)


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
    validate: bool = False,
) -> Any:
    """out[i, :counts[i]] = (scale_a[i]·a[i, :counts[i]]) @ (scale_b[i]·b[i]) for each group i. Returns out.

    a is (groups, M, K), b (groups, K, N), out (groups, M, N); `counts` and `validate` are as in `grouped_gemm_masked`,
    what is copied before as in `scaled_gemm`. So are scales: one of each tensor; or (groups, M, 1) and (groups, 1, N);
    or (groups, M, ⌈K/128⌉) and (groups, ⌈K/128⌉, ⌈N/128⌉).

    Raises LaunchError for arrays that do not fit, and for other GPUs; nothing is written then.
    """
    return groups.run(scaled_ragged_kernel, "masked", a, b, scale_a, scale_b, counts, out, config, validate)
