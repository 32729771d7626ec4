"""Grouped GEMM along groups of rows whose sizes only the GPU knows: the weight gradients of a mixture of experts.

Each group has its own output, and its rows are the K of its product. Unlike in `ragged.py`, groups end along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl import s64, u32
from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_product
from ptxdsl.kernels.call.groups.ragged_k import RaggedKCall
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import compute, compute_tiles, multiply_tiles
from ptxdsl.kernels.product.operands import Batches, CSource, Major, Operands
from ptxdsl.kernels.product.product import Index, Product, View, WorkTile
from ptxdsl.kernels.ragged import load_queued_tiles, tile_of_group
from ptxdsl.kernels.sm80.copies import matrix_copies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.epilogue import warpgroup_epilogue
from ptxdsl.kernels.sm90.loads import TensorView, TmaLoads
from ptxdsl.kernels.sm90.maps import ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import tensor_ragged_k_parameters
from ptxdsl.kernels.sm90.scales import BLOCK, GROUP_UNIT, SCALES_OF_SPANS, promote_tiles, scaled_alpha, scaled_mainloop
from ptxdsl.kernels.sm90.tile_queue import TileQueue, TileQueueWalk
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.group_visitors import OffsetsVisitor, check_sizes
from ptxdsl.kernels.tiles.many import AHEAD, VisitorWalk
from ptxdsl.kernels.tiles.visitor import Succeeding
from ptxdsl.kernels.traits.parameters import ragged_k_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar

USUAL = WarpTraits(operands=Operands(a_major=Major.MN, b_major=Major.MN), schedule=AHEAD)
HOPPER = WarpgroupTraits(operands=Operands(a_major=Major.MN, b_major=Major.MN, batches=Batches.STRIDED), schedule=AHEAD)


@pd.kernel
def ragged_k_kernel(p: ragged_k_parameters(traits), *, traits: WarpTraits = USUAL, validate: bool = False) -> None:
    """`p.sizes` are the end offsets of the groups, which are the K of products of m×k and k×n."""
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, "ragged")
    memory = SharedMemory(traits)
    copies = matrix_copies(traits, memory)
    compute(traits, memory, copies, walk_along_k(p, traits))


@pd.kernel(reqntid=lambda traits: traits.threads)
def warpgroup_ragged_k_kernel(
    p: tensor_ragged_k_parameters(traits), *, traits: WarpgroupTraits = HOPPER, validate: bool = False
) -> None:
    """Compute the same on sm_90a: tensor maps that are rewritten for each group end where it does, and fill with zeros.

    With scales, A and B are K-major, as wgmma reads 8-bit types, and `p.rows` is their K.
    """
    scaling = traits.operands.scaling
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = pd.Ring(tiling.stages, stage_bytes=traits.stage_bytes, consumers=tiling.holders, each="warpgroup")
    queue = TileQueue(p.counters, tiling.holders)
    maps = ProblemMaps(traits, (p.a_map, p.b_map), p.maps)
    await_prerequisites(*result_maps(p, traits))
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, "ragged", GROUP_UNIT if scaling else 1)
    alpha = scaled_alpha(p, traits, p.alpha)
    copying, multiplying = ROLE_REGISTERS if scaling else tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp):
        maps.begin()
        walk = walk_along_k(p, traits, queue.taken)
        words = block_words if scaling else depth_words
        load_queued_tiles(ring, TmaLoads(traits, memory), walk, queue, words, partial(mapped, maps))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, epilogue = warpgroup_mma(traits, memory, consumer.index), warpgroup_epilogue(traits, memory, consumer)
        multiply = scaled_mainloop(
            promote_tiles if scaling else multiply_tiles,
            p,
            traits,
            consumer,
            p.m,
            lambda work: (work.item[0], 0),
            SCALES_OF_SPANS,
        )
        tiles = TileQueueWalk(queue, partial(_queued_tile, p, traits, alpha))
        compute_tiles(ring, mma, epilogue, consumer_walk(traits, tiles, ring, epilogue, consumer), multiply)


def mapped(maps: ProblemMaps, work: WorkTile) -> WorkTile:
    """Return a tile with A and B by the tensor maps of its group, which are rewritten if the group has changed."""
    maps.follow(work.item[0], lambda _: work.product)
    return work._replace(product=work.product._replace(a=maps.of(0), b=maps.of(1)))


def depth_words(work: WorkTile) -> Sequence[Index]:
    """Return the words of a tile for the consumers: its group, its iterations along K, its row and column."""
    return work.item[0], 0, work.iterations, *work.tile


def block_words(work: WorkTile) -> Sequence[Index]:
    """Return the words of a tile with scales: its group, the first block of 128 along K that the group overlaps, the
    number of these blocks, its row and column."""
    (group, _, first), is_empty = work.item, pd.cast(work.begin, u32) > 0
    return group, first // BLOCK, pd.select(is_empty, 0, work.end), *work.tile


def _queued_tile(
    p: Any,
    traits: WarpgroupTraits,
    alpha: Scalar,
    group: Scalar,
    first: Scalar,
    depth: Scalar,
    row: Scalar,
    column: Scalar,
) -> WorkTile:
    """Return a tile from its words in the queue. With scales, an empty group has one iteration, of zeros."""
    in_blocks = traits.operands.scaling is not None
    k = depth * BLOCK if in_blocks else depth
    product = Product(p.m, p.n, k, None, None, *results_of_group(p, traits, group), alpha, p.beta)
    iterations = pd.max(depth, 1) if in_blocks else depth
    return WorkTile(product, (row, column), 0, iterations, traits.tile, (group, row, first))


def results_of_group(p: Any, traits: Traits, group: Scalar) -> tuple[View | TensorView, View | TensorView]:
    """C of a group, which is the output where there is no other, and the output."""

    def matrix(view: Any) -> View:
        return View(view.pointer + group.to(s64) * view.apart, view.stride)

    in_boxes = traits.operands.out_boxes
    out = TensorView(p.boxes, group) if in_boxes else matrix(p.out)
    if traits.operands.c is not CSource.SEPARATE:
        return out, out
    return TensorView(p.c, group) if in_boxes else matrix(p.c), out


def result_maps(p: Any, traits: WarpgroupTraits) -> list[Any]:
    """The tensor maps of these."""
    if not traits.operands.out_boxes:
        return []
    return [p.boxes, p.c] if traits.operands.c is CSource.SEPARATE else [p.boxes]


class GroupsVisitor(OffsetsVisitor):
    """Finds groups of rows, each of which has as many tiles, of its output. Its work is (group, tile, first row)."""

    def tiles(self, rows: Scalar) -> tuple[Scalar, Scalar]:
        down, across = self.tile
        return pd.cast(down, u32), across

    def _measure(self, problem: Scalar) -> None:
        super()._measure(problem)
        self.count.set(pd.select(problem < self.problems, self.count, 0))


class UnitsVisitor(GroupsVisitor):
    """Finds groups that start where a tensor map can: offsets are rounded up to a multiple of 16 elements."""

    def size(self, group: Scalar) -> Scalar:
        """Return the end of a group."""
        return pd.min(ceil_div(super().size(group), GROUP_UNIT) * GROUP_UNIT, self.most.to(u32))


def walk_along_k(
    p: Any,
    traits: Traits,
    succeeding: Succeeding | None = None,
) -> VisitorWalk:
    """Return a walk through the tiles of all groups.

    On sm_90a an empty group has one iteration, past the end of the only row of its tensor maps: zeros. Iterations start
    with the group or, with scales, at a multiple of the tile's K in the whole K: a group that starts between two of
    these has zeros before its first row.
    """
    tile_m, tile_n, tile_k = traits.tile
    tiled = ceil_div(p.m, tile_m), ceil_div(p.n, tile_n)
    in_blocks = traits.operands.scaling is not None
    visitor = (UnitsVisitor if in_blocks else GroupsVisitor)(p.sizes, p.groups, p.rows, tiled, succeeding)
    is_mapped = isinstance(traits, WarpgroupTraits)

    def locate(group: Scalar, tile: Scalar, first: Scalar) -> WorkTile:
        k, begin = pd.max(visitor.size(group), first) - first, pd.cast(0, u32)
        k = pd.select(p.alpha == 0, 0, k)  # as in BLAS, A and B are not read
        if is_mapped:
            is_empty = k == 0
            first, begin = pd.select(is_empty, 0, first), pd.select(is_empty, 1, begin)
            k = pd.max(k, 1)
        lead = first % tile_k if in_blocks else 0
        end = begin + ceil_div(k + lead if in_blocks else k, tile_k)
        a, b = (
            View(m.pointer + (first.to(s64) * m.stride if by_row else first.to(s64)), m.stride)
            for m, by_row in ((p.a, traits.operands.a_major is Major.MN), (p.b, traits.operands.b_major is Major.MN))
        )
        product = Product(p.m, p.n, k, a, b, *results_of_group(p, traits, group), p.alpha, p.beta)
        return WorkTile(product, tile_of_group(tile, *tiled), begin, end, traits.tile, lead=lead)

    return VisitorWalk(visitor, locate, traits.is_ahead)


KERNELS = Kernels(ragged_k_kernel, warpgroup_ragged_k_kernel)


@public_product
def grouped_gemm_ragged_k(
    a: Any,
    b: Any,
    offsets: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
) -> Any:
    """Compute out[i] = alpha·(a[rows of i].T @ b[rows of i]) + beta·c[i] for each group i of rows; return out.

    The rows of group i are offsets[i - 1] to offsets[i], half-open. With activations as `a` and output gradients as
    `b`, these are the weight gradients of a mixture of experts. The host does not read the offsets.

    Parameters
    ----------
    a : array of shape (rows, M)
    b : array of shape (rows, N)
        Types as in `gemm`, both of one type.
    offsets : int32 array of shape (groups,)
        The end row of each group; invalid offsets are treated as in `grouped_gemm_ragged`. The product of an empty
        group is 0.
    c : array of shape (groups, M, N), optional
        Of the type of `out`. With c=out and beta=1, gradients accumulate in place.
    out : array of shape (groups, M, N), optional
        Row-major matrices; allocated by default.
    alpha, beta : float
        Scale factors. As in BLAS, `a` and `b` are not read if alpha is 0, nor `c` if beta is 0.
    config, validate
        As in `grouped_gemm_ragged`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or for invalid offsets in host memory with `validate`.

    Examples
    --------
    >>> grads = grouped_gemm_ragged_k(activations, gradients, ends)
    >>> grouped_gemm_ragged_k(activations, gradients, ends, grads, out=grads, beta=1.0)  # accumulate
    """
    options = out is None, c is None, flag("validate", validate)
    return launch(RaggedKCall, KERNELS, (out, a, b, offsets, c), config, options, (alpha, beta))
