"""Scales in the kernels of products: a part of alpha, or of the mainloop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import ptxdsl as pd
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.sm90.parameters import tensor_products_of
from ptxdsl.kernels.sm90.scales import Mainloop, RowScales, Scales
from ptxdsl.kernels.sm90.scales_along_k import BlockScales, GroupScales, SpanScales, TransposedBlockScales
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import KernelContext
from ptxdsl.trace.instruction import Scalar

Kinds: TypeAlias = "Mapping[Scaling | None, type[Scales]]"
SCALES: Kinds = {Scaling.TENSORS: Scales, Scaling.ROWS: RowScales, Scaling.BLOCKS: BlockScales}
SCALES_OF_SPANS: Kinds = {Scaling.ROWS: GroupScales, Scaling.BLOCKS: SpanScales}  # of groups along K


def scaled_alpha(p: Any, traits: WarpgroupTraits, alpha: Scalar | int) -> Any:
    """Return the factor of the accumulators: `alpha`, times the scales of both tensors unless it is 0."""
    if traits.operands.scaling is not Scaling.TENSORS:
        return alpha
    scaled = alpha * (p.scale_a.pointer[0] * p.scale_b.pointer[0])
    return scaled if isinstance(alpha, int) else pd.select(alpha == 0, alpha, scaled)


def scaled_context(p: Any, traits: WarpgroupTraits, context: KernelContext) -> KernelContext:
    """Return the context of consumers, whose products have the factor of `scaled_alpha`."""
    if traits.operands.scaling is None:
        return context
    return replace(context, products=tensor_products_of(p, traits, scaled_alpha(p, traits, p.alpha)))


def scaled_mainloop(
    plain: Mainloop,
    p: Any,
    traits: WarpgroupTraits,
    consumer: pd.warpgroup,
    rows: Scalar,
    located: Callable[[WorkTile], tuple[Index, Index]] | None = None,
    scales: Kinds = SCALES,
) -> Mainloop:
    """Return the mainloop of a kernel: `plain`, with scales if its operands have any. `rows` and `located` are the
    parameters of Scales, which are by default those of a product or of its batches."""
    kind = scales.get(traits.operands.scaling)
    if kind is None:
        return plain
    kind = TransposedBlockScales if kind is BlockScales and traits.tiling.swap_ab else kind
    return partial(kind(p, traits, consumer, rows, located or _batch_of(traits)).multiply, plain)


def _batch_of(traits: WarpgroupTraits) -> Callable[[WorkTile], tuple[Index, Index]]:
    """Return a function from a tile of a product to its batch and to 0, the first row of a batch."""
    if not traits.operands.is_batched:
        return lambda work: (0, 0)
    if traits.schedule.shares:  # the item of a tile is its number
        return lambda work: (pd.ctaid.z, 0)
    return lambda work: (work.item, 0)
