"""Large products of 16 bits on the sm_90a path: the tile that fills rounds best, shared by two warpgroups or in turns.

All of these tiles reach about the same rate. What differs is how much of the last round is idle and how much lies
behind the edges; and that an epilogue is waited for in each round where warpgroups share a tile, though less where they
end it one after the other, else in the end alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from operator import itemgetter
from typing import NamedTuple

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_rates import LargeRates
from ptxdsl.kernels.choose.warpgroups import PERSISTENT, ProductFacts, most_stagger, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, TURNED
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import CLASSES, InterleavedStrips
from ptxdsl.schedule.arithmetic import ceil_div

ROWS, HIGHEST = 128, 192
HIGH_TILES = 144, 160, 176, 192  # columns of the highest tiles
HIGH_PAIRS = HIGH_TILES[1:]  # of two blocks that share copies


class LargeTile(NamedTuple):
    """Of so many rows and columns; of blocks alone, or of clusters of so many along M that share columns of B, where
    rows of A may be interleaved batches, or `across` them, along N, that share rows of A. Warpgroups that share a tile
    may end it `together`."""

    columns: int
    pingpong: bool = False
    blocks: int = 1
    interleaved: bool = False
    together: bool = False
    rows: int = ROWS
    across: bool = False

    @property
    def name(self) -> str:
        """As tables of rates have it."""
        kind = "interleaved" if self.interleaved else "across" if self.across else "clusters"
        how = "" if self.blocks == 1 else f" {kind} {self.blocks}"
        return f"{'turns ' * self.pingpong}{self.rows}x{self.columns}{how}"

    @property
    def is_staggered(self) -> bool:
        """Whether its warpgroups end it one after the other: where they share it, and blocks share no copies."""
        return not self.pingpong and self.blocks == 1 and not self.together

    def split_lines(self, facts: ProductFacts) -> tuple[bool, bool]:
        """Whether lines of A and of B come as parts of two L2 lines."""
        of_a, of_b = facts.split_lines
        return of_a and not self.interleaved, of_b

    def config(self, operands: Operands) -> GemmConfig:
        extents = self.rows, self.columns, LINE_BYTES // operands.inputs.bytes
        stages = stages_of(extents, operands, pingpong=self.pingpong)
        clusters = InterleavedStrips if self.interleaved else ClusterStrips
        schedule = clusters(self._cluster) if self.blocks > 1 else PERSISTENT
        stagger = most_stagger(stages, self.rows // GROUP_ROWS) if self.is_staggered else 0
        return GemmConfig(
            extents, stages=stages, atom=WGMMA, schedule=schedule, pingpong=self.pingpong, stagger=stagger
        )

    def taken(self, facts: ProductFacts) -> float:
        """How many tiles clusters have, with those outside of the product."""
        m = CLASSES * ceil_div(ceil_div(facts.m, CLASSES), self.rows) * self.rows if self.interleaved else facts.m
        rows, columns = self._cluster
        return facts._replace(m=m).tiles((self.rows * rows, self.columns * columns, 0)) * self.blocks

    @property
    def lines(self) -> tuple[float, float]:
        """Of A and of B, that come to a block."""
        down, across = self._cluster
        return self.rows / across, self.columns / down

    @property
    def _cluster(self) -> tuple[int, int]:
        """Blocks along M and N."""
        return (1, self.blocks) if self.across else (self.blocks, 1)


TILES = (
    LargeTile(256),
    LargeTile(224),
    LargeTile(192),
    LargeTile(160, pingpong=True),
    LargeTile(192, pingpong=True),
    LargeTile(208, pingpong=True),
    LargeTile(256, blocks=2),
    LargeTile(224, blocks=2),
    LargeTile(256, blocks=2, interleaved=True),
    LargeTile(224, blocks=2, interleaved=True),
    LargeTile(208, blocks=2),
    LargeTile(192, blocks=2),
    LargeTile(192, blocks=2, interleaved=True),
    *(LargeTile(columns, blocks=2, rows=HIGHEST) for columns in HIGH_PAIRS),
    *(LargeTile(columns, blocks=2, rows=HIGHEST, across=True) for columns in HIGH_PAIRS),
)
HIGH = tuple(LargeTile(columns, rows=HIGHEST) for columns in HIGH_TILES)  # for one round: of several they hide less
LARGEST = ROWS * 256
SHORT = 384  # a K of which other tiles lose, as was measured
MANY = 2  # rounds of the largest tile, of which tiles need not fill each
FILLED = 0.95  # the part of a round that fills it


def takes_large(operands: Operands) -> bool:
    """Whether these tiles are for such operands: types that were measured, and outputs that are stored in boxes."""
    in_boxes = operands.output.bits == 16 and operands.out_bytes == 16 and not operands.extras
    return operands.inputs in TURNED and in_boxes and (operands.c == "none" or operands.c_major == "row")


def choose_large(facts: ProductFacts, model: CostModel, other_time: float) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds."""
    time, config = min(ranked_large(facts, model), key=itemgetter(0))
    return config if time < other_time else None


def ranked_large(facts: ProductFacts, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """The configurations to choose from, with the microseconds that each should take."""
    rates, multiprocessors = model.rates.large, model.multiprocessors
    tiles = large_tiles(facts) if has_many_rounds(facts, multiprocessors) else filling_tiles(facts, multiprocessors)
    return [
        (estimate(tile, facts, rates, multiprocessors), tile.config(facts.operands))
        for tile in tiles or large_tiles(facts)
    ]


def time_of_large(facts: ProductFacts, model: CostModel) -> float:
    """The microseconds that the best of them should take."""
    rates, multiprocessors = model.rates.large, model.multiprocessors
    return min(estimate(tile, facts, rates, multiprocessors) for tile in large_tiles(facts))


def shares_lines(facts: ProductFacts) -> bool:
    """Whether lines in the midst of sectors come fast enough as they are: by clusters."""
    return takes_large(facts.operands)


def large_tiles(facts: ProductFacts) -> list[LargeTile]:
    """Turns are for single products: of batches tiles that warpgroups share are quicker by 2 to 5 %. Clusters gain
    nothing where lines begin at sectors. Where K is short, tiles are stored more than multiplied: the largest are best,
    and what one warpgroup leaves to the next tile finds no iterations there."""
    if facts.k < SHORT:
        blocks = 2 if any(facts.split_lines) else 1
        return [LargeTile(LARGEST // ROWS, blocks=blocks, together=True)]
    is_single = facts.operands.batches == "none"
    known = [tile for tile in TILES if is_single or not tile.pingpong]
    known = [tile for tile in known if tile.blocks == 1 or any(facts.split_lines)]
    known = [tile for tile in known if facts.interleaves or not tile.interleaved]
    return usable(known, facts)


def usable(tiles: Iterable[LargeTile], facts: ProductFacts) -> list[LargeTile]:
    """Those whose lines are whole lines of shared memory, where operands do not lie along K."""
    operands = facts.operands
    whole, along_k = LINE_BYTES // operands.inputs.bytes, operands.a_major == operands.b_major == "k"
    return [tile for tile in tiles if along_k or not tile.columns % whole]


def has_many_rounds(facts: ProductFacts, multiprocessors: int) -> bool:
    """Whether the largest tiles fill the GPU so often that the last round is a small part."""
    return facts.tiles((ROWS, LARGEST // ROWS, 0)) >= MANY * multiprocessors


def filling_tiles(facts: ProductFacts, multiprocessors: int) -> list[LargeTile]:
    """Those of which all rounds are full, and little lies behind the edges, where all lines begin at sectors: of a
    round or two, the rates of long products say no more. Turns are for more than one tile a block."""
    if any(facts.split_lines):
        return []
    for_one = [tile for tile in usable(HIGH, facts) if tile.taken(facts) <= multiprocessors]
    for_any = [tile for tile in large_tiles(facts) if not tile.pingpong or tile.taken(facts) > multiprocessors]
    full = [tile for tile in for_one + for_any if fills(tile.taken(facts), multiprocessors)]
    elements = facts.m * facts.n * facts.batches
    return [tile for tile in full if elements >= FILLED * tile.taken(facts) * tile.rows * tile.columns]


def fills(tiles: float, multiprocessors: int) -> bool:
    """Whether so many are whole rounds, or nearly."""
    return tiles >= FILLED * ceil(tiles / multiprocessors) * multiprocessors


def estimate(tile: LargeTile, facts: ProductFacts, rates: LargeRates, multiprocessors: int) -> float:
    """Microseconds."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    each = tile.taken(facts) / multiprocessors
    rounds = ceil(each)
    iterations = (rates.waited * rounds + (1 - rates.waited) * each) * ceil_div(facts.k, depth)
    multiplying = iterations * max(rates.iteration[tile.name], _copying(tile, facts, rates))
    busy = multiplying + _storing(tile, facts, rounds, rates)
    return float(rates.beginning + max(busy, facts.moved / rates.dram_bandwidth))


def _copying(tile: LargeTile, facts: ProductFacts, rates: LargeRates) -> float:
    """Microseconds of an iteration in which lines come to a multiprocessor."""
    lines, (of_a, of_b) = tile.lines, tile.split_lines(facts)
    return lines[0] / _lines(of_a, rates) + lines[1] / _lines(of_b, rates)


def _lines(are_split: bool, rates: LargeRates) -> float:
    return rates.split_lines if are_split else rates.lines


def slowness_of_lines(split_lines: tuple[bool, bool], rates: LargeRates) -> float:
    """How many times as long as it multiplies a block waits for lines of A and B, where that is longer."""
    tile = LargeTile(256)
    copying = sum(
        count / _lines(is_split, rates) for count, is_split in zip((tile.rows, tile.columns), split_lines, strict=True)
    )
    return max(1.0, copying / rates.iteration[tile.name])


def _storing(tile: LargeTile, facts: ProductFacts, rounds: int, rates: LargeRates) -> float:
    """Microseconds in which nothing is multiplied."""
    storing, adding = rates.stored + rates.computed * facts.computes, rates.added * (facts.operands.c != "none")
    if tile.pingpong:
        return storing * (rates.last + rates.felt * rounds) + adding * (rates.last + rates.felt_c * rounds)
    hidden = rates.staggered * (1 + (facts.operands.c != "none")) * tile.is_staggered
    felt = storing + adding - hidden
    return felt * rounds * ROWS * tile.columns / LARGEST
