"""The tile of a block: its queries, its head, and the tiles of keys that its queries see."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import s32, u32
from ptxdsl.kernels.flash.traits import WARP, AttentionTraits


class AttentionTile:
    """The tile of queries that a block computes.

    `first` is its first query in the sequence of `m` queries and `n` keys, which start at the rows `q_start` and
    `k_start` of their arrays. The tiles of keys from `begin` to `end` are visited; those from `whole_begin` to
    `whole_end` are seen in whole by all queries of the tile, the others are masked.
    """

    def __init__(self, p: Any, traits: AttentionTraits) -> None:
        self.traits, self.batch = traits, pd.ctaid.z
        number: Any
        count: Any
        number, self.head, count = tile_of_block(p)
        self.kv_head = self.head // p.group
        self.sequence: Any = self.batch
        self.q_start: Any = 0
        self.k_start: Any = 0
        self.m: Any
        self.n: Any
        (self.m, self.n), queries = p.extents, traits.config.queries
        if traits.is_packed:
            self.sequence, number = find_sequence(number, p.q_offsets, p.extents[0], queries)
            self.q_start, self.k_start, self.m, self.n = sequence_rows(p, self.sequence)
            count = (self.m + (queries - 1)).to(u32) // queries
        if traits.is_bounded[1]:  # the tiles that see most keys start first
            number = pd.select(number < count, count - 1 - number, number)
        self.first = (number * queries).to(s32)
        self.shift = self.n - self.m  # query i is aligned with key i + shift
        self.window = p.window
        self._find_keys()

    def _find_keys(self) -> None:
        """Derive the range of tiles of keys, and of those that need no mask."""
        config = self.traits.config
        first, last = self.first + self.shift, self.first + self.shift + (config.queries - 1)
        begin: Any = 0
        whole_begin: Any = 0
        end, whole_end = self.n, self.n
        left, right = self.traits.is_bounded
        if right:
            end = pd.min(end, last + self.window[1] + 1)
            whole_end = pd.min(whole_end, first + self.window[1] + 1)
        if left:
            begin = pd.max(first - self.window[0], 0)
            whole_begin = pd.max(last - self.window[0], 0)
        self.end = (pd.max(end, 0) + (config.keys - 1)) // config.keys
        self.begin = pd.min(begin // config.keys, self.end) if left else 0
        self.end = pd.select(self.first < self.m, self.end, self.begin)
        self.whole_end = pd.max(pd.min(pd.max(whole_end, 0) // config.keys, self.end), self.begin)
        self.whole_begin = (whole_begin + (config.keys - 1)) // config.keys if left else 0

    @property
    def count(self) -> Any:
        """The number of tiles of keys."""
        return self.end - self.begin

    def limits(self, row: Any, number: Any) -> tuple[Any, Any]:
        """Return the first and last column that a row of accumulators sees, relative to its own first column; None for
        a side that is not bounded.
        """
        origin = number * self.traits.config.keys + row.first_column.to(s32)
        query = row.index.to(s32) + self.first + self.shift
        left, right = self.traits.is_bounded
        last = pd.min(self.n - 1, query + self.window[1]) if right else self.n - 1
        return query - self.window[0] - origin if left else None, last - origin


def tile_of_block(p: Any) -> tuple[Any, Any, Any]:
    """Return the number of a block's tile, its head, and the number of tiles of a head.

    The grid is (tiles x heads of a band, bands, batches): all tiles 0 of a band come before its tiles 1.
    """
    return pd.ctaid.x // p.band, pd.ctaid.y * p.band + pd.ctaid.x % p.band, pd.nctaid.x // p.band


def sequence_rows(p: Any, sequence: Any) -> tuple[Any, Any, Any, Any]:
    """Return the first query, the first key, and the numbers of queries and keys of a packed sequence."""
    q_start, k_start = p.q_offsets[sequence], p.k_offsets[sequence]
    return q_start, k_start, p.q_offsets[sequence + 1] - q_start, p.k_offsets[sequence + 1] - k_start


def find_sequence(number: Any, offsets: Any, count: Any, rows: int) -> tuple[Any, Any]:
    """Return the sequence of a tile of `rows` rows, and the number of the tile in the sequence.

    Tiles are numbered through all `count` sequences. Each warp adds up the tiles of 32 sequences at a time. Numbers
    past the last tile are those of tiles past the end of the last sequence.
    """
    number = number.to(s32)
    sequence, before = pd.var(s32, 0), pd.var(s32, 0)
    start = pd.var(s32, 0)
    lane = pd.laneid.to(s32)
    for base in pd.range(0, count, WARP):
        tiles = pd.var(s32, 0)
        with pd.if_(base + lane < count):
            length = offsets[base + lane + 1] - offsets[base + lane]
            tiles.set((length + (rows - 1)) // rows)
        ends = tiles.value
        for distance in (1, 2, 4, 8, 16):
            other = pd.ptx.shfl.sync.up.b32(ends, distance, 0, 0xFFFFFFFF)
            ends = ends + pd.select(lane >= distance, other, 0)
        ends = ends + before
        passed = pd.ptx.popc.b32(pd.ptx.vote.sync.ballot.b32(ends <= number, 0xFFFFFFFF)).to(s32)
        sequence += passed
        last = pd.ptx.shfl.sync.idx.b32(ends, pd.max(passed - 1, 0), 31, 0xFFFFFFFF)
        start.set(pd.select(passed > 0, last, start))
        before.set(pd.ptx.shfl.sync.idx.b32(ends, 31, 31, 0xFFFFFFFF))
    return pd.min(sequence, count - 1), pd.select(sequence < count, number - start, number).to(u32)
