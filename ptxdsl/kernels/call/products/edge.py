"""Products whose last tile along M ends before its last rows: tensor copies leave those out, in boxes of fewer rows."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.arithmetic import ceil_div

LEAST_ROWS = 32  # of a box: fewer were not measured


def ending_early(m: int, traits: Traits) -> Traits:
    """The same kernel, or that whose tiles of A come in boxes of some rows each, where the last box of the last tile
    would lie behind the `m` rows of A. Not where blocks leave sums in global memory, those of all rows; nor where tiles
    are swapped, whose rows are chosen to be few more than there are."""
    if not isinstance(traits, WarpgroupTraits) or traits.a.major != "k":
        return traits
    if traits.schedule.shares or traits.tiling.swap_ab or traits.from_registers:
        return traits
    rows, tile = LEAST_ROWS * ceil_div(m, LEAST_ROWS), traits.tile[0]
    if not rows % tile or tile % LEAST_ROWS:
        return traits
    operands = replace(traits.operands, a_rows=gcd(rows, tile))
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)
