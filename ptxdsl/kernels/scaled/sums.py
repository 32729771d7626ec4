"""How sums come to their scales: what kernels of scaled products have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.gemm import compute_tiles, multiply_tiles
from ptxdsl.kernels.product.product import Index, Work
from ptxdsl.kernels.product.sums import Sums
from ptxdsl.kernels.ragged import Multiply, compute_rows
from ptxdsl.kernels.sm90.mma import StageMma
from ptxdsl.kernels.sm90.scales import RowScales, ScaledWalk, Scales
from ptxdsl.kernels.sm90.scales_along_k import BlockScales, TurnedBlockScales
from ptxdsl.kernels.sm90.store import WarpgroupStore
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import Walk, started_elsewhere
from ptxdsl.trace.instruction import Scalar

TILING = WarpgroupTiling((128, 128, 128))
SCALES: dict[str, type[Scales]] = {"tensors": Scales, "rows": RowScales, "blocks": BlockScales}


def scaled_alpha(p: Any, scaling: str, alpha: Scalar | int) -> Any:
    """Return the factor of the accumulators: `alpha`, times the scales of both tensors unless it is 0."""
    if scaling != "tensors":
        return alpha
    scaled = alpha * (p.scale_a.pointer[0] * p.scale_b.pointer[0])
    return scaled if isinstance(alpha, int) else pd.select(alpha == 0, alpha, scaled)


def scales_of(scaling: str, tiling: WarpgroupTiling) -> type[Scales]:
    """How scales come to the sums of a product."""
    return TurnedBlockScales if scaling == "blocks" and tiling.swap_ab else SCALES[scaling]


def multiply_with(scales: Scales) -> Multiply:
    """`gemm.multiply_tiles`, with sums that are scaled but for the scales of tensors."""
    if isinstance(scales, BlockScales):
        return lambda ring, mma, store, walk, work: scales.multiply(ring, mma, work)
    if isinstance(scales, RowScales):
        return partial(_multiply_rows, scales)
    return multiply_tiles


def _multiply_rows(
    scales: RowScales, ring: pd.Ring, mma: StageMma, store: WarpgroupStore, walk: Walk, work: Work
) -> Sums:
    scales.fetch(work)
    return scales.scaled(multiply_tiles(ring, mma, store, walk, work), work)


def compute_scaled(
    ring: pd.Ring,
    mma: StageMma,
    store: WarpgroupStore,
    walk: Walk,
    consumer: pd.warpgroup,
    scales: Scales,
    takes_part: bool,
) -> None:
    """As `gemm.compute_tiles`. Of tiles with scales of blocks a warpgroup lets those pass of which it has no rows, but
    where it `takes_part` in all, to meet others behind the products."""
    if isinstance(scales, RowScales):
        walk = ScaledWalk(walk, scales)
    if not isinstance(scales, BlockScales):
        compute_tiles(ring, mma, store, walk)
    elif takes_part:
        compute_blocks(ring, mma, store, walk, scales)
    else:
        compute_rows(ring, mma, store, walk, consumer, multiply_with(scales))


def compute_blocks(ring: pd.Ring, mma: StageMma, store: WarpgroupStore, walk: Walk, scales: BlockScales) -> None:
    """As `gemm.compute_tiles`, of sums that are scaled by blocks along K."""
    for work in walk.tiles(started_elsewhere):
        sums = scales.multiply(ring, mma, work)
        for part in walk.complete(work, sums):
            store(part)
    for part in walk.leftovers():
        store(part)
    store.finish()


def takes_part(traits: WarpgroupTraits) -> bool:
    """Whether warpgroups without rows in a tile meet others all the same: of their block, of others that share K."""
    schedule = traits.schedule
    return schedule.has_one_tile or not schedule.has_whole_tiles or schedule.multicast != (1, 1)


def role_registers(tiling: WarpgroupTiling, scaling: str) -> tuple[int, int] | tuple[None, None]:
    """As of a tiling; with scales of blocks those of two warpgroups that have products beside sums."""
    if scaling != "blocks":
        return tiling.role_registers
    return ROLE_REGISTERS if tiling.consumers > 1 and not tiling.swap_ab else (None, None)


def batch_of(traits: WarpgroupTraits) -> Callable[[Work], tuple[Index, Index]]:
    """Of some work of a product, its batch; and 0, the first row of a batch."""
    if traits.operands.batches == "none":
        return lambda work: (0, 0)
    if traits.schedule.shares:  # whose work is known by its tile
        return lambda work: (pd.ctaid.z, 0)
    return lambda work: (work.item, 0)
