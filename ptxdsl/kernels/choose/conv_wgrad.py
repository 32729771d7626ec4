"""The configuration of the gradient of a convolution's filters: its tiles, and how many blocks share the pixels of one.

There are few tiles, and many pixels to add up. So blocks share each tile, as many as all multiprocessors have, and add
up a part of it each. What blocks take for an iteration are the figures of convolutions; to read and write the sums of
others takes as long as `SUMS` says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.kernels.choose.conv_windows import BEGINNING, COSTS, PERSISTENT, WindowTile
from ptxdsl.kernels.choose.warpgroups import ProductFacts, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.tiles.choice import tile_schedule
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div

WIDEST_SPLIT = 128  # columns of a tile that blocks share
LEAST_ITERATIONS = 4  # of a block
MEETING, SUMS = 4.0, 2.5e6  # microseconds of blocks that share a tile, and bytes of sums of all blocks in one
IN_COLUMNS = IdentityThreadblockSwizzle(1)


def choose_wgrad(facts: ProductFacts, multiprocessors: int) -> GemmConfig:
    """The configuration that should take the least time."""
    return min(_options(facts, multiprocessors), key=lambda option: option[0])[1]


def _options(facts: ProductFacts, multiprocessors: int) -> Iterator[tuple[float, GemmConfig]]:
    """Configurations, and the microseconds that each should take."""
    iterations = ceil_div(facts.k, LINE_BYTES // facts.operands.inputs.bytes)
    for (m, n, *how), cost in COSTS.items():
        if WindowTile(m, n) != (m, n, *how) or m >= 2 * max(facts.m, 64):
            continue
        tile = m, n, LINE_BYTES // facts.operands.inputs.bytes
        count = ceil_div(facts.m, m) * ceil_div(facts.n, n)
        rounds = ceil_div(count, multiprocessors)
        whole = GemmConfig(tile, stages=stages_of(tile, facts.operands), schedule=PERSISTENT, atom=WGMMA)
        yield BEGINNING + rounds * (iterations * cost.iteration + cost.tile), whole
        slices = min(multiprocessors // count, iterations // LEAST_ITERATIONS) if n <= WIDEST_SPLIT else 1
        if slices > 1:
            stages = stages_of(tile, facts.operands, schedule=tile_schedule(IN_COLUMNS, slices, "scatter"))
            shared = GemmConfig(
                tile, stages=stages, schedule=IN_COLUMNS, atom=WGMMA, split_k=slices, reduction="scatter"
            )
            sums = slices * count * m * n * facts.operands.sum.bytes
            yield BEGINNING + ceil_div(iterations, slices) * cost.iteration + MEETING + sums / SUMS, shared
