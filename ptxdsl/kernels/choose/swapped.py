"""Configurations of products whose first factor is B, since it comes from registers: those of BᵀAᵀ, turned over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ptxdsl.kernels.choose.warpgroups import ProductFacts, stages_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle, ThreadblockSwizzle

TURNED_OVER: Mapping[Schedule, ThreadblockSwizzle] = {
    IdentityThreadblockSwizzle(1): HorizontalThreadblockSwizzle(),
    HorizontalThreadblockSwizzle(): IdentityThreadblockSwizzle(1),
}  # down the columns of tiles, or along their rows


def swapped(config: GemmConfig, facts: ProductFacts) -> GemmConfig:
    """That of a product by the one of its transpose, of whole tiles or of blocks that share K."""
    n, m, depth = config.tile
    schedule = TURNED_OVER.get(config.schedule, config.schedule)
    known = replace(config, tile=(m, n, depth), schedule=schedule, swap_ab=True)
    boxed = (replace(facts.operands, out_boxes=each) for each in (False, True))
    most = min(stages_of(known.tile, each, True, 1, known.tile_schedule, known.pingpong) for each in boxed)
    return replace(known, stages=min(config.stages, most))
