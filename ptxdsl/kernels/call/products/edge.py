"""Products whose last M tile has out-of-bounds rows: shorter TMA boxes leave them out."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.arithmetic import ceil_div

LEAST_ROWS = 32  # of a box: fewer were not measured


def ending_early(m: int, traits: Traits) -> Traits:
    """Return the traits, with shorter boxes of A if the last box of the last tile would be past the `m` rows. Not for
    split-K through global memory, which adds all rows, nor for swapped tiles, which are chosen to have few rows to
    spare."""
    if not isinstance(traits, WarpgroupTraits) or traits.a.major != "k":
        return traits
    if traits.schedule.shares or traits.tiling.swap_ab or traits.from_registers:
        return traits
    rows, tile = LEAST_ROWS * ceil_div(m, LEAST_ROWS), traits.tile[0]
    if not rows % tile or tile % LEAST_ROWS:
        return traits
    operands = replace(traits.operands, a_rows=gcd(rows, tile))
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)
