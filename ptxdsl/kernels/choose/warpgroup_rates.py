"""What a GPU does in a microsecond on the sm_90a path, by kind of problem. All of it is data, in the file of the GPU.

Times are in microseconds, of one multiprocessor where nothing else is said; an iteration is 128 bytes of K. Tables are
by the name of a tile: "128x256", "turns 128x192" where warpgroups take turns, "swap 256x64" where A and B are swapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

Table: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class PathRates:
    """Rates of which some go with the clock of a GPU, as times or by the microsecond, and some with its memory."""

    CLOCKED_TIMES: ClassVar[tuple[str, ...]] = ()
    CLOCKED: ClassVar[tuple[str, ...]] = ()
    OF_MEMORY: ClassVar[tuple[str, ...]] = ("dram_bandwidth",)

    def on(self, clock: float, memory: float) -> Self:
        """The same where a multiprocessor and DRAM are so many times as fast."""
        factors = dict.fromkeys(self.CLOCKED_TIMES, 1 / clock) | dict.fromkeys(self.CLOCKED, clock)
        factors |= dict.fromkeys(self.OF_MEMORY, memory)
        changes: dict[str, Any] = {name: times(getattr(self, name), factor) for name, factor in factors.items()}
        return replace(self, **changes)


def times(rate: float | Table, factor: float) -> float | Table:
    """A rate, or a table of them, so many times."""
    if isinstance(rate, Mapping):
        return {name: number * factor for name, number in rate.items()}
    return rate * factor


@dataclass(frozen=True)
class WarpgroupRates(PathRates):
    """Of products. Of one multiprocessor: `column`, the time of 64 rows and one column of wgmma over 128 bytes
    of K, to half of which `narrow` is added where that is more; `copies` in bytes; an iteration at least its share of
    the `copy_latency`; `store` for an element of a tile that is stored while nothing is multiplied, and in all rounds
    but the last for the part of it that is `felt`. Of the GPU: `cache_bandwidth`, by which lines come from the L2
    cache; `dram_bandwidth`; `again` is the part of reading the larger operand that comes on top where several tiles
    read it; `hidden` is the part of the shorter of computing and reading that does not hide behind the other, and
    `crowding` that of lines that come from the L2 cache. Clusters whose blocks share copies take `sharing` longer.

    Blocks that share K in a cluster take `cluster` for each, and `cluster_sum` for an element of a tile, or
    `swapped_sum` of one that is swapped; `cluster_again` is the part of reading the larger operand that comes on top of
    that where several tiles read it. Sums that meet in the ring take `in_ring` longer. By way of global memory blocks
    take `scatter`, and `scatter_sum` for an element. Blocks of one tile each that warpgroups share take `one_tile`
    less. `in_clusters` are the parts of the GPU that clusters of 1, 2, … blocks fill.
    """

    CLOCKED_TIMES = "column", "narrow", "copy_latency"
    CLOCKED = "copies", "cache_bandwidth"

    launch: float
    column: float
    narrow: float
    copies: float
    cache_bandwidth: float
    copy_latency: float
    store: float
    felt: float
    dram_bandwidth: float
    again: float
    hidden: float
    cluster: float
    cluster_sum: float
    swapped_sum: float
    cluster_again: float
    one_tile: float
    scatter: float
    scatter_sum: float
    crowding: float
    sharing: float
    in_ring: float
    in_clusters: tuple[float, ...]


@dataclass(frozen=True)
class LargeRates(PathRates):
    """Of large products of 16 bits. An `iteration` of each tile, or as long as lines of 128 bytes take that tensor
    copies bring, so many in a microsecond: `lines`, and `split_lines`, which begin in the midst of sectors. `waited` is
    the part of the last round in which multiprocessors without a tile do not help the others by their power.

    Of a tile of 128×256: what it takes to be `stored`, if an epilogue has it `computed`, or C is `added`; of all these
    so much is hidden where the warpgroups that share it end it one after the other: `staggered`; with C at least twice
    that, as it is there before the tile ends. Where warpgroups take turns, the `last` tiles are waited for so many
    times, and the parts `felt` and `felt_c` of the others. A launch takes `beginning`, reading and writing all once
    `dram_bandwidth`. A copy to better lines moves bytes by `copy_bandwidth`.
    """

    CLOCKED_TIMES = "iteration", "stored", "computed", "added", "staggered"
    CLOCKED = "lines", "split_lines"
    OF_MEMORY = "dram_bandwidth", "copy_bandwidth"

    iteration: Table
    lines: float
    split_lines: float
    waited: float
    stored: float
    computed: float
    added: float
    staggered: float
    last: float
    felt: float
    felt_c: float
    beginning: float
    dram_bandwidth: float
    copy_bandwidth: float


@dataclass(frozen=True)
class GroupRates(PathRates):
    """Of groups and lists, and of large products of other types: an `iteration` of each tile, and all else that a block
    does for a `tile`. `waited` is the part of the last round that counts as a whole one; `hidden` is that of
    WarpgroupRates. A launch takes `beginning`, on the sm_80 path too, whose low tiles take `low` times what the rates
    of lists say where they stream weights along a long K.
    """

    CLOCKED_TIMES = "iteration", "tile"

    iteration: Table
    tile: Table
    waited: float
    beginning: float
    dram_bandwidth: float
    hidden: float
    low: float


@dataclass(frozen=True)
class WindowRates(PathRates):
    """Of convolutions: an `iteration` of each tile; all else that a block does for a `tile`; for such a tile at `least`
    where it is taken in turns; and the part by which DRAM takes longer for `bursts`, of what the L2 cache, of `cache`
    bytes, has no room for, where much is written at once. Blocks that share the K of a tile take `meeting` for each.

    `unboxed` is for an element of a tile that is not stored in boxes, `beside` for one to which a warpgroup that is
    alone, whose time no other one fills, adds operands; `slow_line` for a line of a box that reaches over
    the last channel. Images are packed by `packing` bytes in a microsecond. `hidden` is that of WarpgroupRates. A
    launch takes `beginning`, one of the sm_80 path `by_warps`; that path takes `reading` times as long as the bandwidth
    allows at least.
    """

    CLOCKED_TIMES = "iteration", "tile", "least", "meeting", "unboxed", "beside", "slow_line"
    OF_MEMORY = "dram_bandwidth", "packing"

    iteration: Table
    tile: Table
    least: Table
    bursts: Table
    meeting: float
    unboxed: float
    beside: float
    slow_line: float
    packing: float
    cache: float
    beginning: float
    dram_bandwidth: float
    hidden: float
    by_warps: float
    reading: float


@dataclass(frozen=True)
class FilterGradientRates(PathRates):
    """Of gradients of filters: an `iteration` of each tile, and all else that a block does for a `tile`; of blocks that
    share one `meeting`, and by `sum_bandwidth` the bytes of sums that all of them read and write."""

    CLOCKED_TIMES = "iteration", "tile"
    OF_MEMORY = "dram_bandwidth", "sum_bandwidth"

    iteration: Table
    tile: Table
    meeting: float
    sum_bandwidth: float
    dram_bandwidth: float
    hidden: float
