"""Scaled 8-bit grouped GEMM over groups of rows on sm_90a, as in a mixture of experts.

The mainloop is that of `ragged.py`; `sm90/scales.py` and `sm90/scales_along_k.py` apply the scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_fused
from ptxdsl.kernels.call.scaled.groups import ScaledRaggedCall
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import compute_rows, copy_queued_tiles, groups_walk, rows_of_groups, told_walk
from ptxdsl.kernels.scaled.sums import SCALES, TILING, multiply_with, scaled_alpha
from ptxdsl.kernels.sm90.copies import TensorCopies
from ptxdsl.kernels.sm90.gathered import ColumnCopies, GatheredRing, GatheredRows, gather_tiles
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.parameters import scaled_ragged_parameters
from ptxdsl.kernels.sm90.store import group_store
from ptxdsl.kernels.sm90.tile_queue import TileQueue
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.group_visitors import check_sizes
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, e4m3

HOPPER = WarpgroupTraits(TILING, Operands(e4m3, bf16, batches="strided"), AHEAD)


@pd.kernel(reqntid=lambda traits: traits.threads)
def scaled_ragged_kernel(
    p: scaled_ragged_parameters(traits, scatters),
    *,
    traits: WarpgroupTraits = HOPPER,
    scaling: str = "blocks",
    form: str = "ragged",
    validate: bool = False,
    scatters: bool = False,
) -> None:
    """`scaling` is "tensors", "rows" or "blocks"; else as `warpgroup_ragged_kernel`."""
    memory, tiling, gathers = SharedTiles(traits), traits.tiling, traits.operands.a_gathered
    ring = tile_ring(traits, GatheredRing if gathers else pd.Ring)
    queue = TileQueue(p.counters, tiling.holders + gathers * GatheredRing.writers)
    boxes = [p.boxes] if traits.operands.out_boxes and not scatters else []
    await_prerequisites(*([] if gathers else [p.a]), p.b, *boxes)
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, form)
    matrices, alpha = rows_of_groups(p, traits, form, scatters), scaled_alpha(p, scaling, 1)
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
        mma, store = warpgroup_mma(traits, memory, consumer.index), group_store(traits, memory, consumer, scatters)
        scales = SCALES[scaling](p, traits, consumer, p.rows, lambda work: (work.item[0], work.item[2]))
        walk = told_walk(p, traits, matrices, queue, alpha)
        compute_rows(ring, mma, store, walk, consumer, multiply_with(scales))


@public_fused
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
    """Compute out[rows of i] = epilogue((scale_a·a)[rows of i] @ (scale_b[i]·b[i]), *operands) for each group; return
    out.

    Parameters
    ----------
    a : array of shape (rows, K)
    b : array of shape (groups, K, N)
        float8 types and layouts as in `scaled_gemm`; matrices of `b` are not copied and must be column-major.
    offsets, rows, out_rows, validate, epilogue, operands
        As in `grouped_gemm_ragged`.
    scale_a, scale_b : float32 array
        One scale per tensor; or (rows, 1) and (groups, 1, N); or (rows, ⌈K/128⌉) and (groups, ⌈K/128⌉, ⌈N/128⌉). With
        `rows`, row n uses a[rows[n]] and its scales, which are then contiguous and gathered to a workspace first.
    out : array of shape (rows, N), optional
        Types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        As in `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> ends = np.array([3, 3, 10], np.int32)  # groups of 3, 0 and 7 rows
    >>> out = scaled_gemm_ragged(tokens, weights, ends, scale_a, scale_b)
    """
    options = out is None, "ragged", flag("validate", validate), rows is None, out_rows is None
    arrays = out, a, b, offsets, rows, out_rows, scale_a, scale_b
    return launch(ScaledRaggedCall, scaled_ragged_kernel, arrays, config, options, (), epilogue, operands)


@public_fused
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
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out[i, :n] = epilogue((scale_a[i]·a[i, :n]) @ (scale_b[i]·b[i]), *operands) with n = counts[i]; return
    out.

    Parameters
    ----------
    a : array of shape (groups, M, K)
    b : array of shape (groups, K, N)
        float8 types and layouts as in `scaled_gemm`.
    counts, validate, epilogue, operands
        As in `grouped_gemm_masked`.
    scale_a, scale_b : float32 array
        One scale per tensor; or (groups, M, 1) and (groups, 1, N); or (groups, M, ⌈K/128⌉) and
        (groups, ⌈K/128⌉, ⌈N/128⌉).
    out : array of shape (groups, M, N), optional
        Types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        As in `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> counts = np.array([3, 0, 7], np.int32)
    >>> out = scaled_gemm_masked(tokens, weights, counts, scale_a, scale_b)
    """
    options = out is None, "masked", flag("validate", validate)
    arrays = out, a, b, counts, None, None, scale_a, scale_b
    return launch(ScaledRaggedCall, scaled_ragged_kernel, arrays, config, options, (), epilogue, operands)
