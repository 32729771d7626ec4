"""Products of scaled 8-bit floats along groups of K, as gradients of the weights of experts are, on Hopper.

What differs from `ragged_k.py` is that lines are the K of products, which wgmma reads so, and where scales come in:
`sm90/scales.py`, `sm90/scales_along_k.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.call.elsewhere import public_group
from ptxdsl.kernels.call.scaled.along_k import run
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
    """out[i] = alpha·(scale_a·a)[:, K of i] @ (scale_b·b)[K of i] + beta·c[i] for each group i, of 8-bit floats on
    sm_90a. Returns out.

    a is (M, K) and b (K, N), float8_e4m3fn or float8_e5m2, each of either, and copied before as in `scaled_gemm` where
    they are not row-major and column-major; out is (groups, M, N) with row-major matrices, of the types of that;
    `offsets`, int32 (groups,) on the same GPU, say where the K of each group ends: with a of the transposed gradients
    and b of the activations, the gradients of the weights of a mixture of experts. An empty group has a product of 0.
    Sums of 128 products are added up in float32. c, alpha and beta are as in `grouped_gemm_ragged_k`: gradients add up
    in place where c is out and beta 1. Beside an out of 8 bits, c has 16 or more.

    Scales are float32, on the same GPU: one of each tensor, of the shape () or (1,); or one of each row and each column
    in each group, (groups, M, 1) and (groups, 1, N); or one of each 128 along K of each row and of each column,
    (M, ⌈K/128⌉) and (⌈K/128⌉, N), by blocks of all K wherever groups begin. Those of columns lie side by side.

    Groups end at multiples of 16, where tensor copies can begin, or at K. An offset between two of these is taken for
    the next one; for others that make no sense, and with `validate`, see `grouped_gemm_ragged`. `config` has
    atom="wgmma"; its tile has up to 192 columns; "tune" times some, as in `scaled_gemm`.

    Raises LaunchError for arrays that do not fit, for other GPUs, and with `validate` for such offsets in host memory;
    nothing is written then.
    """
    return run(scaled_ragged_k_kernel, a, b, offsets, scale_a, scale_b, c, out, alpha, beta, config, validate)
