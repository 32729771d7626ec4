"""The configuration of a product, or of groups of rows, on the sm_90a path, where that should take less time
than the sm_80 path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod
from typing import NamedTuple, TypeAlias

import numpy as np

from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH, GROUP_ROWS, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule.arithmetic import ceil_div

TILES = {(128, 256): 0.95, (128, 192): 0.92, (128, 128): 0.85, (64, 256): 0.75, (64, 128): 0.65}
"""M and N, and the part of the rate of wgmma that they reach: small tiles wait for shared memory and for copies."""
RATE = 2 * 889e6 / 132  # bytes of inputs that a multiprocessor multiplies and adds in a microsecond, on an H200
READING = 3.8e6  # bytes of memory in a microsecond
BEGINNING, BETWEEN_TILES = 4.5, 1.0  # microseconds, of a launch with its first copies, and of a tile that is stored
MOST_STAGES, SWAPPED_STAGES, LEAST_STAGES = 8, 16, 3
RESERVED_BYTES = 1024  # of shared memory, in each block that is not alone
CLEARLY = 0.9  # of the other path's time: the estimate is a rough one
PERSISTENT = Strips()
STAGGER = 3  # iterations by which two warpgroups end a tile one after the other: as many stages are held meanwhile


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


def choose_warpgroups(facts: Facts, multiprocessors: int, other_time: float) -> GemmConfig | None:
    """The configuration that should take the least time; None where another path takes less, `other_time` in
    microseconds."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    tiles = [(m, n, depth) for m, n in TILES]
    timed = [(estimate(facts, tile, multiprocessors), tile) for tile in tiles if _takes(facts.operands, tile)]
    time, tile = min(timed, default=(other_time, None))
    if tile is None or time >= CLEARLY * other_time:
        return None
    return _config(facts, tile)


def choose_scaled(facts: Facts, multiprocessors: int) -> GemmConfig:
    """The same of scaled 8-bit floats, which have no other path."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    tiles = [(m, n, depth) for m, n in TILES if _takes(facts.operands, (m, n, depth))]
    tile = min(tiles, key=lambda tile: estimate(facts, tile, multiprocessors))
    return GemmConfig(tile=tile, stages=stages_of(tile, facts.operands), atom=WGMMA)


def ranked_warpgroups(facts: Facts, multiprocessors: int) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_warpgroups` chooses from, with the microseconds that each should take."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    tiles = [(m, n, depth) for m, n in TILES if _takes(facts.operands, (m, n, depth))]
    return [(estimate(facts, tile, multiprocessors), _config(facts, tile)) for tile in tiles]


def _config(facts: Facts, tile: tuple[int, int, int]) -> GemmConfig:
    """Of persistent blocks; of a product, warpgroups that share tiles end them one after the other."""
    stages, is_shared = stages_of(tile, facts.operands), tile[0] > GROUP_ROWS
    stagger = min(STAGGER, stages - 1) if is_shared and isinstance(facts, ProductFacts) else 0
    return GemmConfig(tile=tile, stages=stages, atom=WGMMA, schedule=PERSISTENT, stagger=stagger)


def estimate(facts: Facts, tile: tuple[int, int, int], multiprocessors: int) -> float:
    """Microseconds: rounds of tiles at the rate of the tensor cores, or reading and writing everything once."""
    rounds, iterations = ceil(facts.tiles(tile) / multiprocessors), ceil_div(facts.k, tile[2])
    multiplied = 2 * prod(tile) * facts.operands.inputs.bytes  # half of the rate for tf32, twice the rate for 8 bits
    multiplying = rounds * (iterations * multiplied / (RATE * TILES[tile[:2]]) + BETWEEN_TILES)
    return float(BEGINNING + max(multiplying, facts.moved / READING))


def _takes(operands: Operands, tile: tuple[int, int, int]) -> bool:
    return not any(WarpgroupTiling(tile).misfits(operands.inputs)) and stages_of(tile, operands) >= LEAST_STAGES


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


@lru_cache(maxsize=1024)
def shortest(tile: tuple[int, int, int], swap_ab: bool = False, pingpong: bool = False) -> WarpgroupTiling:
    """A tiling with a ring of two stages, the fewest."""
    return WarpgroupTiling(tile, 2, swap_ab, pingpong)


@lru_cache(maxsize=1024)
def _stored(operands: Operands, in_boxes: bool) -> Operands:
    """The operands with an output that is stored in boxes, or not."""
    return operands if operands.out_boxes == in_boxes else replace(operands, out_boxes=in_boxes)
