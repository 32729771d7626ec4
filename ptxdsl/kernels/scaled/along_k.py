"""Scaled 8-bit grouped GEMM along groups of K on sm_90a: the weight gradients of a mixture of experts.

Unlike in `ragged_k.py`, the operands are K-major, as wgmma reads 8-bit types. `sm90/scales.py` and
`sm90/scales_along_k.py` apply the scales.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_group
from ptxdsl.kernels.call.scaled.along_k import ScaledRaggedKCall
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.product import Product, Work
from ptxdsl.kernels.product.sums import Sums
from ptxdsl.kernels.ragged import Multiply, compute_rows, copy_queued_tiles
from ptxdsl.kernels.ragged_k import GroupsVisitor, result_maps, results_of_group, walk_along_k
from ptxdsl.kernels.scaled.sums import TILING, scaled_alpha
from ptxdsl.kernels.sm90.copies import TensorCopies
from ptxdsl.kernels.sm90.maps import RewrittenMaps
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.parameters import scaled_ragged_k_parameters
from ptxdsl.kernels.sm90.scales import BLOCK, GROUP_UNIT, RowScales
from ptxdsl.kernels.sm90.scales_along_k import SpanScales, promoted
from ptxdsl.kernels.sm90.store import warpgroup_store
from ptxdsl.kernels.sm90.tile_queue import TileQueue, TileQueueWalk
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.group_visitors import check_sizes
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import bf16, e4m3

HOPPER = WarpgroupTraits(TILING, Operands(e4m3, bf16, batches="strided"), AHEAD)


@pd.kernel(reqntid=lambda traits: traits.threads)
def scaled_ragged_k_kernel(
    p: scaled_ragged_k_parameters(traits),
    *,
    traits: WarpgroupTraits = HOPPER,
    scaling: str = "blocks",
    in_pairs: bool = True,
    validate: bool = False,
) -> None:
    """`scaling` is "tensors", "rows" or "blocks"; `in_pairs` is as SpanScales has it; else as
    `warpgroup_ragged_k_kernel`."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = pd.Ring(tiling.stages, stage_bytes=traits.stage_bytes, consumers=tiling.holders, each="warpgroup")
    queue = BlocksTileQueue(p.counters, tiling.holders)
    maps = RewrittenMaps(traits, (p.a_map, p.b_map), p.maps)
    await_prerequisites(*result_maps(p, traits))
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, "ragged", GROUP_UNIT)
    alpha = scaled_alpha(p, scaling, p.alpha)
    copying, multiplying = ROLE_REGISTERS
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp):
        maps.begin()
        walk = walk_along_k(p, traits, queue.taken, UnitsVisitor, in_blocks=True)
        copy_queued_tiles(ring, TensorCopies(traits, memory), walk, queue, maps.of)
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = warpgroup_mma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        multiply = _multiplying(p, traits, consumer, scaling, in_pairs)
        compute_rows(ring, mma, store, TileQueueWalk(queue, partial(_told, p, traits, alpha)), consumer, multiply)


class UnitsVisitor(GroupsVisitor):
    """Groups that begin where tensor maps can: an offset between two such elements is taken for the next one."""

    def size(self, group: Scalar) -> Scalar:
        return pd.min(ceil_div(super().size(group), GROUP_UNIT) * GROUP_UNIT, self.most.to(u32))


class BlocksTileQueue(TileQueue):
    """Tiles of which those that multiply are told which block of 128 of all K is the first that their group reaches
    into, and how many these are."""

    def announce(self, work: Work) -> None:
        (group, _, first), is_empty = work.item, pd.cast(work.begin, u32) > 0
        self._pass_on(group, first // BLOCK, pd.select(is_empty, 0, work.end), *work.tile, 0)


def _told(
    p: Any,
    traits: WarpgroupTraits,
    alpha: Scalar,
    group: Scalar,
    _first: Scalar,
    blocks: Scalar,
    row: Scalar,
    column: Scalar,
    _halved: Scalar,
) -> Work:
    """What those that multiply make of what they are told. A group without blocks has one iteration, of zeros."""
    product = Product(p.m, p.n, blocks * BLOCK, None, None, *results_of_group(p, traits, group), alpha, p.beta)
    return Work(product, (row, column), 0, pd.max(blocks, 1), traits.tile)


def _multiplying(p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, scaling: str, in_pairs: bool) -> Multiply:
    """The sums of a tile, which are scaled but for the scales of tensors."""
    located = p.m, lambda work: (work.item[0], 0)
    if scaling == "blocks":
        spans = SpanScales(p, traits, consumer, *located, in_pairs=in_pairs)
        return lambda ring, mma, store, walk, work: spans.multiply(ring, mma, work)
    if scaling == "rows":
        rows = RowScales(p, traits, consumer, *located, may_be_ahead=False)
        return lambda ring, mma, store, walk, work: _scaled(rows, promoted(ring, mma, work), work)
    return lambda ring, mma, store, walk, work: promoted(ring, mma, work)


def _scaled(scales: RowScales, sums: Sums, work: Work) -> Sums:
    """The sums with their scales; those of an empty group stay 0, whatever its scales are."""
    with pd.if_(work.product.k > 0):
        scales.fetch(work)
        scales.scaled(sums, work)
    return sums


@public_group
def scaled_gemm_ragged_k(
    a: Any,
    b: Any,
    offsets: Any,
    scale_a: Any,
    scale_b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
) -> Any:
    """Compute out[i] = alpha·((scale_a·a)[:, K of i] @ (scale_b·b)[K of i]) + beta·c[i] for each group i; return out.

    Group i spans offsets[i - 1] to offsets[i] of K, half-open. With transposed output gradients as `a` and activations
    as `b`, these are the weight gradients of a mixture of experts.

    Parameters
    ----------
    a, b : array of shape (M, K) and (K, N)
        float8_e4m3fn or float8_e5m2, in any combination. Layouts as in `scaled_gemm`.
    offsets : int32 array of shape (groups,)
        The end of each group along K, on the same GPU: a multiple of 16, where TMA loads can start, or K itself. Other
        offsets are rounded up to a multiple of 16; otherwise invalid offsets and `validate` are as in
        `grouped_gemm_ragged`. The product of an empty group is 0.
    scale_a, scale_b : float32 array
        One scale per tensor, of shape () or (1,); or one per row and column of each group, (groups, M, 1) and
        (groups, 1, N); or one per 128 elements of K, (M, ⌈K/128⌉) and (⌈K/128⌉, N), by blocks of the whole K wherever
        groups start. Column scales are contiguous. Partial products over 128 elements of K are accumulated in float32.
    c, alpha, beta
        As in `grouped_gemm_ragged_k`. `c` has 16 bits or more if `out` has 8.
    out : array of shape (groups, M, N), optional
        Row-major matrices; types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        A configuration with atom="wgmma" and a tile of up to 192 columns. "tune" measures candidates as in
        `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, on another GPU than sm_90a, or for invalid offsets in host memory with `validate`.
        Nothing is written.

    Examples
    --------
    >>> ends = np.array([64, 64, 160], np.int32)  # groups of 64, 0 and 96 along K
    >>> grads = scaled_gemm_ragged_k(gradients_t, activations, ends, scale_a, scale_b)
    """
    options = out is None, c is None, flag("validate", validate)
    arrays = out, a, b, scale_a, scale_b, offsets, c
    return launch(ScaledRaggedKCall, scaled_ragged_k_kernel, arrays, config, options, (alpha, beta))
