"""Configurations of a product in bf16 whatever the rates think of them: all tiles that waste little, in all ways to
share them, as far as what they must take at least is not much more than that of others. `variants.py --all-tiles` times
them, where the options of the model may lack something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import ceil
from typing import Any

from warpgroup_cases import name_of

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.warpgroups import LEAST_STAGES, most_stagger, stages_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.choice import tile_schedule
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle
from ptxdsl.types import bf16

MULTIPROCESSORS, DEPTH = 132, 64  # elements of K in a tile
OPERANDS, PERSISTENT = Operands(bf16, bf16), Strips()
IN_COLUMNS, IN_ROWS = IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()
PARTS, MOST_SWAPPED = range(1, 9), 1024  # into how many tiles rows are cut that are swapped, and how many rows are
CLUSTERS = (2, 1), (4, 1), (1, 2), (1, 4)
SLICES = 2, 3, 4, 5, 6
MOST_OF_A_KIND, FAR = 12, 2.2  # configurations, and times the least time of all
# Microseconds: a column of 64 rows of an iteration, the least iteration, a line that a multiprocessor gets, an element
# that is stored, a byte of DRAM, a meeting
COLUMN, ITERATION, LINE, STORED, BYTE, MEETING = 0.00135, 0.1, 128 / 48e3, 3e-5, 1 / 4.3e6, 1.0


def all_tiles(m: int, n: int, k: int, count: int) -> dict[str, GemmConfig]:
    """So many by name, those first that must take the least time, and not all of one kind."""
    timed = sorted((least_time(config, m, n, k), name_of(config), config) for config in configs(m, n))
    kinds, known = Counter[str](), {}
    for time, name, config in timed:
        kind = TuningCandidate(config).kind
        if kinds[kind] < MOST_OF_A_KIND and time < FAR * timed[0][0]:
            kinds[kind] += name not in known
            known[name] = config
    return dict(islice(known.items(), count))


def configs(m: int, n: int) -> Iterator[GemmConfig]:
    """All that can be launched."""
    for tile, swaps in tiles(m, n):
        for how in ways(tile, swaps, ceil(m / tile[0]), ceil(n / tile[1])):
            try:
                yield GemmConfig((*tile, DEPTH), atom=WGMMA, swap_ab=swaps, **how)
            except LaunchError:
                continue  # such as sums of two tiles in the registers of one warpgroup


def tiles(m: int, n: int) -> Iterator[tuple[tuple[int, int], bool]]:
    """Tiles, and whether A and B are swapped: as many rows as there are in so many parts, or the usual ones."""
    for parts in PARTS if m <= MOST_SWAPPED else ():
        rows = 16 * ceil(m / 16 / parts) if m > 8 else 8
        if rows <= 256 and ceil(m / rows) == parts:
            yield from (((rows, columns), True) for columns in (64, 128, 192))
    for rows in (64, 128, 192):
        if rows == 64 or rows < 2 * m:
            yield from (((rows, columns), False) for columns in range(16, 257, 16) if columns < 2 * max(n, 16))


def ways(tile: tuple[int, int], swaps: bool, down: int, across: int) -> Iterator[dict[str, Any]]:
    """Fields of configurations of such a tile, of which there are so many along M and N."""

    def stages(schedule: Any = PERSISTENT, resident: int = 1, pingpong: bool = False) -> int:
        try:
            return stages_of((*tile, DEPTH), OPERANDS, swaps, resident, schedule, pingpong)
        except LaunchError:
            return 0

    in_ring, count = stages(tile_schedule(IN_COLUMNS, 1, "")), down * across
    known: list[dict[str, Any]] = [{"schedule": PERSISTENT, "stages": stages(resident=n)} for n in (1, 2)]
    known += [
        {"schedule": ClusterStrips(c), "stages": stages(ClusterStrips(c))} for c in CLUSTERS if fit(c, down, across)
    ]
    if count > MULTIPROCESSORS:
        known.append({"schedule": PERSISTENT, "stages": stages(pingpong=True), "pingpong": True})
    elif not swaps:
        stagger = most_stagger(in_ring, tile[0] // 64) if tile[0] > 64 and in_ring else 0
        known += [{"schedule": each, "stages": in_ring, "stagger": stagger} for each in (IN_COLUMNS, IN_ROWS)]
    for slices in SLICES:
        for length in {in_ring, stages(tile_schedule(IN_COLUMNS, slices, "cluster"))}:
            how = {"schedule": IN_COLUMNS, "split_k": slices, "reduction": "cluster", "stages": length}
            known += [how] * (count * slices <= MULTIPROCESSORS)
    yield from (how for how in known if how["stages"] >= LEAST_STAGES)


def fit(cluster: tuple[int, int], down: int, across: int) -> bool:
    """Whether there are tiles for all blocks of a cluster, and not many outside of the product."""
    return cluster[0] <= down and cluster[1] <= across and (down >= 6 or not down % cluster[0])


def least_time(config: GemmConfig, m: int, n: int, k: int) -> float:
    """Microseconds that it must take: the longest of multiplying, lines that come to multiprocessors, and DRAM."""
    (rows, columns, _), (below, beside) = config.tile, config.tile_schedule.multicast
    iterations = ceil(ceil(k / DEPTH) / config.split_k)
    blocks = ceil(ceil(m / rows) / below) * below * ceil(ceil(n / columns) / beside) * beside * config.split_k
    high, wide = (columns, rows) if config.swap_ab else (rows, columns)
    multiplying = high / 64 * COLUMN * max(wide, 32 + wide / 2)
    rounds = ceil(blocks / MULTIPROCESSORS)
    busy = rounds * iterations * max(multiplying, (rows / beside + columns / below) * LINE, ITERATION)
    stored = 0.0 if config.pingpong else rounds * rows * columns * STORED
    return max(busy, 2 * (m * k + n * k + m * n) * BYTE) + stored + MEETING * (config.split_k > 1)
