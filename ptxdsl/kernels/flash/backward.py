"""Parts of the gradient of attention: traits, parameters, the tile of keys of a block, and the launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.kernels.flash.tile import find_sequence, sequence_rows, tile_of_block
from ptxdsl.kernels.flash.traits import AttentionConfig, AttentionTraits
from ptxdsl.types import Type, bf16, s32, s64

QUERY_TILES = {64: AttentionConfig(128, 128, 3), 128: AttentionConfig(128, 64, 2)}
"""The configuration of the kernel whose blocks own queries, by D, measured on an H200 at 16,384 queries and keys."""

KEY_TILES = {64: AttentionConfig(96, 128, 3), 128: AttentionConfig(64, 128, 3)}
"""The configuration of the kernel whose blocks own keys."""

ADDING_TILE = AttentionConfig(64, 128, 2)  # of the same kernel, if it adds to the gradient of q too


@dataclass(frozen=True)
class BackwardTraits(AttentionTraits):
    """The compile-time properties of a gradient kernel: with QUERY_TILES its blocks own queries, with KEY_TILES keys.

    With `adds_dq`, blocks that own keys add to the gradient of q too, by atomic additions.
    """

    dtype: Type = bf16
    config: AttentionConfig = QUERY_TILES[128]
    adds_dq: bool = False

    @property
    def consumers(self) -> int:
        return 2

    @property
    def is_pipelined(self) -> bool:
        """True if the scores of a tile are computed while the gradients of the tile before are: two such products take
        registers that soft caps and the gradient of q need, and with D = 128 they delay the kernel that owns queries.
        """
        owns_keys = self.config.queries < self.config.keys
        return not (self.is_capped or self.adds_dq) and (owns_keys or self.head == 64)

    @property
    def atom(self) -> str:
        """The wgmma of a tile of scores."""
        return self.wgmma(min(self.config.queries, self.config.keys))


@lru_cache(maxsize=256)
def backward_parameters(traits: BackwardTraits) -> Any:
    """Return the parameters of the gradient kernels.

    `lse` (in exponents of 2) and `delta` have `padded` rows a head: the rows after the last query have an lse of
    infinity, so that their weights are 0. `outputs` are dq, or dk and dv; `strides` count their elements between
    batches, heads and rows. `factor` is the scale of the scores, `scale` the same times log2(e); `extents`, `cap` and
    `scale` of capped scores, and `band`, are those of `traits.parameters`. `sums` are those of `QueryGradient`.
    """
    config = traits.config
    return pd.Parameters.of(
        "AttentionBackward",
        q=traits.map(config.queries, traits.head),
        dout=traits.map(config.queries, traits.head),
        k=traits.map(config.keys, traits.head),
        v=traits.map(config.keys, traits.head),
        lse=ptr[f32],
        delta=ptr[f32],
        padded=u32,
        outputs=ptr[traits.dtype][2],
        strides=s64[6],
        extents=s32[2],
        heads=u32,
        group=u32,
        band=u32,
        window=s32[2],
        scale=f32,
        factor=f32,
        **{"cap": f32} if traits.is_capped else {},
        **{"q_offsets": ptr[s32], "k_offsets": ptr[s32]} if traits.is_packed else {},
        **{"sums": ptr[f32]} if traits.adds_dq else {},
    )


class KeyTile:
    """The tile of keys that a block computes: its first key, and the tiles of queries that see one of its keys.

    The attributes are those of `AttentionTile`.
    """

    def __init__(self, p: Any, traits: BackwardTraits) -> None:
        self.traits, self.batch = traits, pd.ctaid.z
        number: Any
        number, self.kv_head, _ = tile_of_block(p)
        self.q_start: Any = 0
        self.k_start: Any = 0
        (self.m, self.n), config = p.extents, traits.config
        if traits.is_packed:
            self.sequence, number = find_sequence(number, p.k_offsets, p.extents[0], config.keys)
            self.q_start, self.k_start, self.m, self.n = sequence_rows(p, self.sequence)
        self.first = (number * config.keys).to(s32)
        self.shift, self.window = self.n - self.m, p.window
        left, right = traits.is_bounded
        begin: Any = 0
        end: Any = self.m
        if right:
            begin = pd.min(pd.max(self.first - self.shift - self.window[1], 0), self.m)
        if left:
            end = pd.max(pd.min(end, self.first + config.keys - self.shift + self.window[0]), 0)
        self.begin = begin // config.queries
        self.end = (end + (config.queries - 1)) // config.queries
        if traits.is_packed:
            self.end = pd.select(self.first < self.n, self.end, self.begin)

    def is_partial(self, number: Any) -> Any:
        """Return a predicate: some query of a tile does not see all keys of this one."""
        left, right = self.traits.is_bounded
        first, config = number * self.traits.config.queries, self.traits.config
        partial: Any = None
        if right:
            partial = first + self.shift + self.window[1] < self.first + (config.keys - 1)
        if left:
            after = first + (config.queries - 1) + self.shift - self.window[0] > self.first
            partial = after if partial is None else partial | after
        return partial

    def limits(self, row: Any, number: Any) -> tuple[Any, Any]:
        """Return the first and last query that sees the key of a row, relative to the thread's first column."""
        origin = number * self.traits.config.queries + row.first_column.to(s32)
        query = row.index.to(s32) + self.first - self.shift - origin  # the one that is aligned with the key
        left, right = self.traits.is_bounded
        return query - self.window[1] if right else None, query + self.window[0] if left else None
