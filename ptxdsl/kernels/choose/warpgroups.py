"""The configuration of a product, or of groups of rows, on the sm_90a path, where that should take less time
than the sm_80 path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_rates import GroupRates
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH, GROUP_ROWS, MOST_COLUMNS, TURNED, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule.arithmetic import ceil_div

TILES = ((128, 256), (128, 192), (128, 128), (64, 256), (64, 128))  # M and N
TURNS = ((128, 128), (128, 192), (64, 256))  # of tiles that warpgroups take in turns
USUAL_COLUMNS = 128, MOST_COLUMNS  # of tiles of 128 rows
MOST_STAGES, SWAPPED_STAGES, LEAST_STAGES = 8, 16, 3
RESERVED_BYTES = 1024  # of shared memory, in each block that is not alone
CLEARLY = 0.9  # of the other path's time: the estimate is a rough one
PERSISTENT = Strips()
# Microseconds by which an iteration takes longer whose first factor is loaded, times columns of its products, as of
# 64, 128 and 256 was measured; with fewer a block waits for copies meanwhile
LOADED, LEAST_LOADED = 7.0, 64
STAGGER = 3  # iterations by which warpgroups end a tile one after the other: as many stages are held meanwhile by two


class ProductFacts(NamedTuple):
    """What the choice depends on: sizes, types, whether an epilogue `computes` something, whether lines of A and of B
    begin in the midst of sectors, and whether rows of A may be taken as batches that interleave."""

    m: int
    n: int
    k: int
    batches: int
    operands: Operands
    computes: bool = False
    split_lines: tuple[bool, bool] = (False, False)
    interleaves: bool = False

    @property
    def longest(self) -> int:
        """The K of a tile, at most."""
        return self.k

    @property
    def swapped(self) -> ProductFacts:
        """Those of BᵀAᵀ, whose tiles are the transposes of those of AB."""
        known, names = self.operands, {"a": "b", "b": "a"}
        operands = replace(
            known, a_major=known.b_major, b_major=known.a_major, rounded=names.get(known.rounded, "none")
        )
        return self._replace(m=self.n, n=self.m, operands=operands, split_lines=self.split_lines[::-1])

    def tiles(self, tile: tuple[int, int, int]) -> float:
        """How many there are of all batches."""
        return float(ceil_div(self.m, tile[0]) * ceil_div(self.n, tile[1]) * self.batches)

    @property
    def moved(self) -> float:
        """Bytes that are read and written."""
        return self.batches * _bytes_of(self.m, self.n, self.k, self.operands)


class GroupFacts(NamedTuple):
    """The same of groups, of so many rows on average, each with a matrix of B."""

    rows: float
    n: int
    k: int
    groups: int
    operands: Operands

    @property
    def longest(self) -> int:
        """The K of a tile, at most."""
        return self.k

    def tiles(self, tile: tuple[int, int, int]) -> float:
        """How many there are of all groups: the last tile of a group is half empty on average."""
        return max(1.0, self.rows / tile[0] + 0.5) * ceil_div(self.n, tile[1]) * self.groups

    @property
    def moved(self) -> float:
        """Bytes that are read and written."""
        return self.groups * _bytes_of(self.rows, self.n, self.k, self.operands)


@dataclass(frozen=True)
class ListFacts:
    """The same of a list of problems: columns of M, N and K."""

    sizes: tuple[np.ndarray, np.ndarray, np.ndarray]
    operands: Operands

    @property
    def k(self) -> int:
        """The K of all together: that of each counts as often as its outputs."""
        m, n, k = self.sizes
        return int((m * n * k).sum() // max(1, (m * n).sum()))

    @property
    def longest(self) -> int:
        """The K of a tile, at most: a block is busy so long, however short the others are."""
        m, n, k = self.sizes
        return int((k * (m * n > 0)).max(initial=0))

    def tiles(self, tile: tuple[int, int, int]) -> float:
        """How many there are of all problems."""
        m, n, _ = self.sizes
        return float((-(-m // tile[0]) * -(-n // tile[1])).sum())

    @property
    def moved(self) -> float:
        """Bytes that are read and written."""
        m, n, k = self.sizes
        return float(((m + n) * k).sum() * self.operands.inputs.bytes + (m * n).sum() * self.operands.output.bytes)


Facts: TypeAlias = ProductFacts | GroupFacts | ListFacts


def _bytes_of(m: float, n: int, k: int, operands: Operands) -> float:
    """Of one product."""
    return (m + n) * k * operands.inputs.bytes + m * n * operands.output.bytes


class RaggedTile(NamedTuple):
    """M and N of a tile of groups, and whether warpgroups take turns at such tiles."""

    m: int
    n: int
    pingpong: bool = False

    @property
    def name(self) -> str:
        """As tables of rates have it."""
        return f"{'turns ' * self.pingpong}{self.m}x{self.n}"

    def config(self, operands: Operands, staggers: bool) -> GemmConfig:
        """Of persistent blocks; where it `staggers`, warpgroups that share tiles end them one after the other."""
        tile = self.m, self.n, LINE_BYTES // operands.inputs.bytes
        stages, is_shared = stages_of(tile, operands, pingpong=self.pingpong), self.m > GROUP_ROWS and not self.pingpong
        stagger = most_stagger(stages) if staggers and is_shared else 0
        return GemmConfig(
            tile=tile, stages=stages, atom=WGMMA, schedule=PERSISTENT, pingpong=self.pingpong, stagger=stagger
        )


def choose_warpgroups(facts: Facts, model: CostModel, other_time: float, in_turns: bool = False) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds. Warpgroups may take turns where `in_turns` says so."""
    time, config = min(ranked_warpgroups(facts, model, in_turns), default=(other_time, None), key=itemgetter(0))
    return config if time < CLEARLY * other_time else None


def usual_tile(facts: ProductFacts, model: CostModel) -> tuple[int, int, int]:
    """That of a product whose caller chooses wgmma and no tile: the one of two that should take less time."""
    known = [RaggedTile(2 * GROUP_ROWS, columns) for columns in USUAL_COLUMNS]
    best = min(known, key=lambda tile: estimate(tile, facts, model.rates.groups, model.multiprocessors))
    return best.m, best.n, LINE_BYTES // facts.operands.inputs.bytes


def choose_scaled(facts: Facts, model: CostModel, most_columns: int = MOST_COLUMNS) -> GemmConfig:
    """The same of scaled 8-bit floats, which have no other path, in tiles of so many columns at most."""
    _, config = min(ranked_scaled(facts, model, most_columns), key=itemgetter(0))
    return config


def ranked_scaled(facts: Facts, model: CostModel, most_columns: int = MOST_COLUMNS) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_scaled` chooses from, with the microseconds that each should take."""
    ranked = [each for each in ranked_warpgroups(facts, model) if each[1].tile[1] <= most_columns]
    return [(time, replace(config, schedule=GemmConfig.schedule, stagger=0)) for time, config in ranked]


def ranked_warpgroups(facts: Facts, model: CostModel, in_turns: bool = False) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_warpgroups` chooses from, with the microseconds that each should take."""
    tiles, operands, rates = group_tiles(facts.operands, in_turns), facts.operands, model.rates.groups
    staggers = isinstance(facts, ProductFacts)
    return [(estimate(tile, facts, rates, model.multiprocessors), tile.config(operands, staggers)) for tile in tiles]


@lru_cache(maxsize=1024)
def group_tiles(operands: Operands, in_turns: bool = False) -> tuple[RaggedTile, ...]:
    """The tiles that there are for such operands."""
    turns = [RaggedTile(m, n, True) for m, n in TURNS if in_turns and operands.inputs in TURNED]
    return tuple(tile for tile in [*(RaggedTile(m, n) for m, n in TILES), *turns] if _takes(operands, tile))


def estimate(tile: RaggedTile, facts: Facts, rates: GroupRates, multiprocessors: int) -> float:
    """Microseconds: rounds of tiles, the longest tile at least, and reading and writing everything once."""
    extents = tile.m, tile.n, LINE_BYTES // facts.operands.inputs.bytes
    each = facts.tiles(extents) / multiprocessors
    rounds = rates.waited * ceil(each) + (1 - rates.waited) * max(1.0, each)
    usual, longest = (
        ceil_div(k, extents[2]) * rates.iteration[tile.name] + rates.tile[tile.name] for k in (facts.k, facts.longest)
    )
    computing = max(rounds * usual, longest)
    return rates.beginning + overlapped(computing, facts.moved / rates.dram_bandwidth, rates.hidden)


def overlapped(computing: float, reading: float, hidden: float) -> float:
    """Microseconds of both at the same time, where so much of the shorter does not hide behind the longer."""
    longer, shorter = (computing, reading) if computing > reading else (reading, computing)
    return longer + hidden * shorter


def _takes(operands: Operands, tile: RaggedTile) -> bool:
    extents = tile.m, tile.n, LINE_BYTES // operands.inputs.bytes
    misfits = WarpgroupTiling(extents, pingpong=tile.pingpong).misfits(operands.inputs)
    return not any(misfits) and stages_of(extents, operands, pingpong=tile.pingpong) >= LEAST_STAGES


@lru_cache(maxsize=4096)
def stages_of(
    tile: tuple[int, int, int],
    operands: Operands,
    swap_ab: bool = False,
    resident: int = 1,
    schedule: TileSchedule = PERSISTENT,
    pingpong: bool = False,
) -> int:
    """As many stages as shared memory has room for beside the staged output, up to MOST_STAGES, where so many blocks
    shall be resident; 0 for too few."""
    beside = _beside_ring(tile, operands, swap_ab, schedule, pingpong)
    if beside is None:
        return 0
    room = shared_bytes(ARCH) // resident - RESERVED_BYTES * (resident > 1) - beside
    stage_bytes = shortest(tile, swap_ab, pingpong).stage_bytes(operands.inputs)
    return min(SWAPPED_STAGES if swap_ab else MOST_STAGES, room // stage_bytes)


@lru_cache(maxsize=4096)
def _beside_ring(
    tile: tuple[int, int, int], operands: Operands, swap_ab: bool, schedule: TileSchedule, pingpong: bool
) -> int | None:
    """The bytes of shared memory that a block takes beside its ring; None where a ring of two stages does not fit."""
    is_whole = not swap_ab and schedule.has_whole_tiles
    may_be_boxed = is_whole and operands.output.bits == 16 and not any(extra.is_matrix for extra in operands.extras)
    ways = (False, True) if may_be_boxed else (swap_ab and operands.out_boxes,)
    tiling = shortest(tile, swap_ab, pingpong)
    known = [WarpgroupTraits(tiling, _stored(operands, in_boxes), schedule) for in_boxes in ways]
    bytes = max(traits.shared_bytes + traits.static_bytes for traits in known)
    if bytes > shared_bytes(ARCH) or any(tiling.shortages(operands, ARCH)):
        return None
    return bytes - tiling.ring_bytes(operands)


def loading(operands: Operands, columns: int) -> float:
    """Microseconds by which an iteration takes longer where the first factor is loaded to registers: less where its
    products are wide, during which those of the next are loaded."""
    is_felt = operands.from_registers != "none" and columns >= LEAST_LOADED
    return LOADED / columns if is_felt else 0.0


def most_stagger(stages: int, warpgroups: int = 2) -> int:
    """Iterations by which so many warpgroups that share a tile end it one after the other, with a ring of so many
    stages."""
    return min(STAGGER, (stages - 1) // (warpgroups - 1))


@lru_cache(maxsize=1024)
def shortest(tile: tuple[int, int, int], swap_ab: bool = False, pingpong: bool = False) -> WarpgroupTiling:
    """A tiling with a ring of two stages, the fewest."""
    return WarpgroupTiling(tile, 2, swap_ab, pingpong)


@lru_cache(maxsize=1024)
def _stored(operands: Operands, in_boxes: bool) -> Operands:
    """The operands with an output that is stored in boxes, or not."""
    return operands if operands.out_boxes == in_boxes else replace(operands, out_boxes=in_boxes)
