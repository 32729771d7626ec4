"""Large products of 16 bits on the sm_90a path: the tile that fills rounds best, shared by two warpgroups or in turns.

All of these tiles reach about the same rate. What differs is how much of the last round is idle and how much lies
behind the edges; and that an epilogue is waited for in each round where warpgroups share a tile, though less where they
end it one after the other, else in the end alone.
"""

from __future__ import annotations

from math import ceil, prod
from typing import NamedTuple

from ptxdsl.kernels.choose.warpgroups import (
    BEGINNING,
    CLEARLY,
    PERSISTENT,
    RATE,
    READING,
    STAGGER,
    ProductFacts,
    stages_of,
)
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import CLASSES, InterleavedStrips
from ptxdsl.schedule.arithmetic import ceil_div

ROWS = 128


class LargeTile(NamedTuple):
    """Of 128 rows, and so many columns; of blocks alone, or of clusters of so many along M that share columns of B,
    where rows of A may be interleaved batches."""

    columns: int
    pingpong: bool = False
    blocks: int = 1
    interleaved: bool = False

    def split_lines(self, facts: ProductFacts) -> tuple[bool, bool]:
        """Whether lines of A and of B come as parts of two L2 lines."""
        of_a, of_b = facts.split_lines
        return of_a and not self.interleaved, of_b

    def taken(self, facts: ProductFacts) -> float:
        """How many tiles clusters have, with those outside of the product."""
        m = CLASSES * ceil_div(ceil_div(facts.m, CLASSES), ROWS) * ROWS if self.interleaved else facts.m
        return facts._replace(m=m).tiles((ROWS * self.blocks, self.columns, 0)) * self.blocks


RATES = {
    LargeTile(256): 0.945,
    LargeTile(224): 0.935,
    LargeTile(192): 0.928,
    LargeTile(160, pingpong=True): 0.93,
    LargeTile(192, pingpong=True): 0.94,
    LargeTile(208, pingpong=True): 0.934,
    LargeTile(256, blocks=2): 0.93,
    LargeTile(224, blocks=2): 0.92,
    LargeTile(256, blocks=2, interleaved=True): 0.93,
    LargeTile(224, blocks=2, interleaved=True): 0.92,
}
"""The part of the rate of wgmma that tiles reach on an H200, of bf16, at rest and held."""
LINES = 800, 380
"""Lines of 128 bytes that tensor copies bring to a multiprocessor in a microsecond, and those that begin in the midst
of sectors, which are parts of two lines each."""
WAITED = 0.5  # of the last round: where some multiprocessors have none to compute, the others have more of the power
STORED, COMPUTED, ADDED = 0.5, 2.0, 2.3  # microseconds of a tile of 128×256: to store it; its epilogue; C
HIDDEN = 0.4  # of these, where the warpgroups that share it end it one after the other
LARGEST = ROWS * 256
LAST = 1.7  # such times that are waited for in the end where warpgroups take turns
FELT, FELT_C = 0.14, 0.5  # and the parts that are felt in each round before


def takes_large(operands: Operands) -> bool:
    """Whether these tiles are for such operands: types that were measured, and outputs that are stored in boxes."""
    in_boxes = operands.output.bits == 16 and operands.out_bytes == 16 and not operands.extras
    return operands.inputs in TURNED and in_boxes and (operands.c == "none" or operands.c_major == "row")


def choose_large(facts: ProductFacts, multiprocessors: int, other_time: float) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds."""
    time, config = min(ranked_large(facts, multiprocessors), key=lambda pair: pair[0])
    return config if time < CLEARLY * other_time else None


def ranked_large(facts: ProductFacts, multiprocessors: int) -> list[tuple[float, GemmConfig]]:
    """The configurations to choose from, with the microseconds that each should take."""
    return [(estimate(tile, facts, multiprocessors), _config(tile, facts.operands)) for tile in _tiles(facts)]


def shares_lines(facts: ProductFacts) -> bool:
    """Whether lines in the midst of sectors come fast enough as they are: by clusters, of which there are none for
    batches."""
    return takes_large(facts.operands) and facts.operands.batches == "none"


def _tiles(facts: ProductFacts) -> list[LargeTile]:
    """Those whose lines of B are whole lines of shared memory, where operands do not lie along K; turns are for single
    products, of which they were measured. Clusters gain nothing where lines begin at sectors."""
    operands, is_single = facts.operands, facts.operands.batches == "none"
    whole, along_k = LINE_BYTES // operands.inputs.bytes, operands.a_major == operands.b_major == "k"
    known = [tile for tile in RATES if is_single or not tile.pingpong]
    known = [tile for tile in known if tile.blocks == 1 or (is_single and any(facts.split_lines))]
    known = [tile for tile in known if facts.interleaves or not tile.interleaved]
    return [tile for tile in known if along_k or not tile.columns % whole]


def _config(tile: LargeTile, operands: Operands) -> GemmConfig:
    extents = ROWS, tile.columns, LINE_BYTES // operands.inputs.bytes
    stages = stages_of(extents, operands, pingpong=tile.pingpong)
    clusters = InterleavedStrips if tile.interleaved else ClusterStrips
    schedule = clusters((tile.blocks, 1)) if tile.blocks > 1 else PERSISTENT
    stagger = min(STAGGER, stages - 1) if _is_staggered(tile) else 0
    return GemmConfig(extents, stages=stages, atom=WGMMA, schedule=schedule, pingpong=tile.pingpong, stagger=stagger)


def _is_staggered(tile: LargeTile) -> bool:
    """Whether its warpgroups end it one after the other: where they share it, and blocks share no copies."""
    return not tile.pingpong and tile.blocks == 1


def estimate(tile: LargeTile, facts: ProductFacts, multiprocessors: int) -> float:
    """Microseconds."""
    extents = ROWS, tile.columns, LINE_BYTES // facts.operands.inputs.bytes
    each = tile.taken(facts) / multiprocessors
    rounds = ceil(each)
    iteration = 2 * prod(extents) * facts.operands.inputs.bytes / (RATE * RATES[tile])
    iterations = (WAITED * rounds + (1 - WAITED) * each) * ceil_div(facts.k, extents[2])
    multiplying = iterations * max(iteration, _copying(tile, facts))
    return float(BEGINNING + max(multiplying + _storing(tile, facts, rounds), facts.moved / READING))


def _copying(tile: LargeTile, facts: ProductFacts) -> float:
    """Microseconds of an iteration in which lines come to a multiprocessor."""
    lines = ROWS, tile.columns / tile.blocks
    return float(sum(count / LINES[is_split] for count, is_split in zip(lines, tile.split_lines(facts), strict=True)))


def _storing(tile: LargeTile, facts: ProductFacts, rounds: int) -> float:
    """Microseconds in which nothing is multiplied."""
    storing, adding = STORED + COMPUTED * facts.computes, ADDED * (facts.operands.c != "none")
    if tile.pingpong:
        return storing * (LAST + FELT * rounds) + adding * (LAST + FELT_C * rounds)
    return (storing + adding - HIDDEN * _is_staggered(tile)) * rounds * ROWS * tile.columns / LARGEST
